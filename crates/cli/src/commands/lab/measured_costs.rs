//! Costs that were measured on available machines; `lab scale` and `lab cluster` extrapolate from
//! them.
//! Invariant: docs/scale.md names the command by which each cost was measured.

/// The rate that the law of evenly spread keys gives for zero bits: each further bit halves it.
/// Twelve bits give 0.31 in a hundred, sixteen give 0.02.
const NEEDLESS_AT_NO_BITS: f64 = 12.7;
/// With the image of the filter, which is read and checked.
const OPEN_NS_PER_KEY: f64 = 3.8;
/// Without the image: each key is read.
const OPEN_NS_PER_KEY_WITHOUT_IMAGE: f64 = 163.0;

/// Returns how many runs a get or a short range searches in vain when nothing is there. The tree is
/// full, and its keys are spread evenly.
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
