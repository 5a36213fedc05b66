//! Costs that were measured on machines at hand, from which `lab scale` and `lab cluster` go on.
//! Invariant: docs/scale.md names the command by which each was measured.

/// Of keys spread evenly with one bit per key, were the law to hold so far down: each bit more
/// halves it. Twelve bits: 0.31 in a hundred, sixteen: 0.02.
const NEEDLESS_AT_NO_BITS: f64 = 12.7;
/// With the image of the filter: it is read, and checked.
const OPEN_NS_PER_KEY: f64 = 3.8;
/// Without it: each key is read.
const OPEN_NS_PER_KEY_WITHOUT_IMAGE: f64 = 163.0;

/// Runs that a get reads in vain, or a short range, where nothing is: of a full tree of keys that
/// are spread evenly.
pub(super) fn needless_reads(bits_per_key: f64) -> f64 {
    (NEEDLESS_AT_NO_BITS * (-bits_per_key).exp2()).min(1.0)
}

pub(super) fn opening_seconds(entries: u64) -> f64 {
    1e-9 * OPEN_NS_PER_KEY * entries as f64
}

pub(super) fn opening_without_image_seconds(entries: u64) -> f64 {
    1e-9 * OPEN_NS_PER_KEY_WITHOUT_IMAGE * entries as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needless_reads_are_as_measured_with_one_million_keys() {
        for (bits, measured) in [(8.0, 0.049), (10.0, 0.013), (12.0, 0.0031), (14.0, 0.0008)] {
            let near = needless_reads(bits) / measured;
            assert!((0.8..1.25).contains(&near), "{bits} bits: {near} times as many");
        }
        assert_eq!(needless_reads(1.0), 1.0);
    }
}
