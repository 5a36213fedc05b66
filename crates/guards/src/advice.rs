//! Which filter of one table suits which keys, measured with keys of the caller's.
//! ```text
//! keys, in order    a   b   c   d   e   f   g
//! every second      a       c       e       g ──> one filter of each kind
//! the others            b       d       f     ──> keys, short ranges, prefixes that are not there
//! ```
//! Invariant: nothing that is asked for is there; so each "maybe" is wrong.

use trommel_filters::{AlignedBytes, AnyFilter, FilterKind, FilterOptions, KeyRange, OutOfOrder};

use crate::kinds;

/// What is compared: those that know ranges, and the usual filter of points.
const COMPARED: [&dyn FilterKind; 8] = [
    kinds::CELL,
    kinds::GAP,
    kinds::CODED,
    kinds::SNARF,
    kinds::SURF_REAL,
    kinds::ROSETTA,
    kinds::RENCODER,
    kinds::BLOCKED_BLOOM,
];

/// How often each kind of question is asked, in any unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Asked {
    /// Gets of single keys.
    pub points: f64,
    /// Scans of short ranges.
    pub ranges: f64,
    /// Scans of all keys that begin alike.
    pub prefixes: f64,
}

impl Default for Asked {
    /// Each as often as the others.
    fn default() -> Asked {
        Asked { points: 1.0, ranges: 1.0, prefixes: 1.0 }
    }
}

/// How a filter did: the shares of questions for what is not there that it could not deny.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Advice {
    /// Which filter.
    pub kind: &'static dyn FilterKind,
    /// What it had for each key.
    pub bits_per_key: f64,
    /// Of keys.
    pub points: f64,
    /// Of ranges that begin with such a key and end half-way to the next one that is there.
    pub ranges: f64,
    /// Of prefixes: the shortest that such a key has and none that is there.
    pub prefixes: f64,
}

impl Advice {
    /// Of all that is asked, the share that it could not deny.
    pub fn rate(&self, asked: Asked) -> f64 {
        let all = asked.points + asked.ranges + asked.prefixes;
        let wrong = asked.points * self.points
            + asked.ranges * self.ranges
            + asked.prefixes * self.prefixes;
        if all > 0.0 { wrong / all } else { 0.0 }
    }
}

/// Compares filters of so many bits for each key with a sample of keys, the best one first. The
/// sample: some thousand keys or more, each with its neighbours, as one table has them. With fewer
/// than three keys there is nothing to compare. An error: they are not in ascending order.
///
/// ```
/// use trommel_guards::{Asked, advise};
///
/// let key = |n| format!("user{:04}time{:06}", n / 9, n * 331);
/// let keys: Vec<String> = (0..3000).map(key).collect();
/// let advice = advise(&keys, 14.0, Asked { points: 0.2, ranges: 0.8, prefixes: 0.0 })?;
/// println!("{} denies all but {:.3} of it", advice[0].kind.name(), advice[0].ranges);
/// # assert!(advice[0].ranges <= advice[7].ranges);
/// # Ok::<(), trommel_filters::OutOfOrder>(())
/// ```
pub fn advise(
    keys: &[impl AsRef<[u8]>],
    bits_per_key: f64,
    asked: Asked,
) -> Result<Vec<Advice>, OutOfOrder> {
    if keys.len() < 3 {
        return Ok(Vec::new());
    }
    let one = |kind| measure(keys, &FilterOptions::new(kind, bits_per_key));
    let mut all = COMPARED.into_iter().map(one).collect::<Result<Vec<Advice>, _>>()?;
    all.sort_by(|one, other| one.rate(asked).total_cmp(&other.rate(asked)));
    Ok(all)
}

fn measure(keys: &[impl AsRef<[u8]>], options: &FilterOptions) -> Result<Advice, OutOfOrder> {
    let mut builder = options.builder();
    for key in keys.iter().step_by(2) {
        builder.add(key.as_ref())?;
    }
    let bytes = builder.finish();
    let bits_per_key = bytes.len() as f64 * 8.0 / keys.len().div_ceil(2) as f64;
    let filter = options.kind.read(AlignedBytes::from_slice(&bytes)).expect("it was just built");
    let mut counts = Counts::default();
    for three in keys.windows(3).step_by(2) {
        counts.ask(&*filter, [three[0].as_ref(), three[1].as_ref(), three[2].as_ref()]);
    }
    let share = |wrong: u32| f64::from(wrong) / f64::from(counts.asked.max(1));
    Ok(Advice {
        kind: options.kind,
        bits_per_key,
        points: share(counts.points),
        ranges: share(counts.ranges),
        prefixes: share(counts.prefixes),
    })
}

#[derive(Default)]
struct Counts {
    asked: u32,
    points: u32,
    ranges: u32,
    prefixes: u32,
}

impl Counts {
    /// Asks for the key in the middle of three, of which the filter has the others.
    fn ask(&mut self, filter: &dyn AnyFilter, [before, key, after]: [&[u8]; 3]) {
        if before == key || key == after {
            return;
        }
        self.asked += 1;
        self.points += u32::from(filter.may_contain(key));
        let end = half_way(key, after);
        let range = KeyRange::new(key, Some(&end)).expect("it ends behind its beginning");
        self.ranges += u32::from(filter.may_overlap(&range));
        let shared = common(before, key).max(common(key, after));
        // A key that another one begins with has no prefix of its own.
        let is_there = key.get(..=shared).is_none_or(|prefix| filter.may_contain_prefix(prefix));
        self.prefixes += u32::from(is_there);
    }
}

fn common(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

/// A key from `key` on, half-way to `after`, by the eight bytes behind what both share. Requires:
/// `key` is before `after`.
fn half_way(key: &[u8], after: &[u8]) -> Vec<u8> {
    let shared = common(key, after);
    let number = |key: &[u8]| {
        let mut bytes = [0; 8];
        let rest = &key[shared..];
        let len = rest.len().min(8);
        bytes[..len].copy_from_slice(&rest[..len]);
        u64::from_be_bytes(bytes)
    };
    let (low, high) = (number(key), number(after));
    let middle = low + (high - low) / 2;
    let end = [&key[..shared], &middle.to_be_bytes()].concat();
    // Where eight bytes do not tell them apart, nothing is known to be between.
    let is_between = key <= end.as_slice() && end.as_slice() < after;
    if is_between { end } else { key.to_vec() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_way_lies_between() {
        for (key, after) in [
            (&b"a"[..], &b"c"[..]),
            (b"user1time5", b"user1time6"),
            (b"a", b"a\0"),
            (b"", b"\0\0\0\0\0\0\0\0\0"),
            (b"abcdefghijkl", b"abcdefghijkm"),
            (b"12345678901", b"123456789011"),
        ] {
            let end = half_way(key, after);
            assert!(key <= end.as_slice() && end.as_slice() < after, "{}", end.escape_ascii());
        }
        assert_eq!(half_way(b"a", b"c"), *b"b\0\0\0\0\0\0\0");
    }

    #[test]
    fn bloom_is_advised_for_points_alone_and_never_for_ranges() {
        let keys: Vec<[u8; 8]> = {
            let spread = (0..4000u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
            let ordered: std::collections::BTreeSet<[u8; 8]> = spread.collect();
            ordered.into_iter().collect()
        };
        let ranges = Asked { points: 0.0, ranges: 1.0, prefixes: 0.0 };
        let advice = advise(&keys, 14.0, ranges).expect("in order");
        assert_eq!(advice.len(), COMPARED.len());
        let last = advice.last().expect("some");
        assert_eq!((last.kind.name(), last.ranges), ("blocked-bloom", 1.0));
        assert!(advice[0].ranges < 0.01 && advice[0].rate(ranges) == advice[0].ranges);
        assert!(advice.iter().all(|it| it.bits_per_key < 18.0), "{advice:?}");
        let points = Asked { points: 1.0, ..Asked { points: 0.0, ranges: 0.0, prefixes: 0.0 } };
        let best = advise(&keys, 14.0, points).expect("in order")[0];
        assert!(best.points < 0.01, "{best:?}");
    }

    #[test]
    fn what_is_out_of_order_or_too_little_is_told() {
        assert!(advise(&["b", "a", "a", "a"], 14.0, Asked::default()).is_err());
        assert!(advise(&["a", "b"], 14.0, Asked::default()).expect("in order").is_empty());
        let same = advise(&["a"; 9], 14.0, Asked::default()).expect("in order");
        assert!(same.iter().all(|it| it.points == 0.0));
    }
}
