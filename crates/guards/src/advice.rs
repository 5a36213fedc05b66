//! Measures which table filter suits the caller's keys.
//! ```text
//! keys, in order    a   b   c   d   e   f   g
//! every second      a       c       e       g ──> one filter of each kind
//! the others            b       d       f     ──> queries for absent keys, short ranges, prefixes
//! ```
//! Invariant: nothing that is queried exists, so each "maybe" is a false positive.

use std::ops::{Bound, Range};

use trommel_filters::{
    AlignedBytes, FilterKind, FilterOptions, FilterTuning, KeyRange, OutOfOrder,
};

use crate::kinds;
use crate::range::base::number::common_bytes;
use crate::range::prefix_ribbon::candidates;

/// The kinds that are compared: range filters, and the usual point filter. In addition,
/// `prefix-ribbon` with the prefix lengths that suit it best.
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

/// The weights of the kinds of queries, in any unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueryWeights {
    /// Gets of single keys.
    pub points: f64,
    /// Scans of short ranges.
    pub ranges: f64,
    /// Scans of all keys with a common prefix.
    pub prefixes: f64,
}

impl Default for QueryWeights {
    /// Equal weights.
    fn default() -> QueryWeights {
        QueryWeights { points: 1.0, ranges: 1.0, prefixes: 1.0 }
    }
}

/// The measured result of a filter: its false positive rate for each kind of query.
#[derive(Clone, Debug)]
pub struct Advice {
    /// The filter and its options.
    pub options: FilterOptions,
    /// Its size in bits per key.
    pub bits_per_key: f64,
    /// The false positive rate of points.
    pub points: f64,
    /// The false positive rate of ranges: those given by the caller, or ranges from an absent key
    /// half-way to the next key.
    pub ranges: f64,
    /// The false positive rate of prefixes: the shortest prefix of an absent key that no key has.
    pub prefixes: f64,
}

impl Advice {
    /// The false positive rate of a mix of queries.
    pub fn rate(&self, weights: QueryWeights) -> f64 {
        let all = weights.points + weights.ranges + weights.prefixes;
        let wrong = weights.points * self.points
            + weights.ranges * self.ranges
            + weights.prefixes * self.prefixes;
        if all > 0.0 { wrong / all } else { 0.0 }
    }
}

/// Compares filters of `bits_per_key` on a sample of keys. Returns the best one first. The sample
/// should have some thousand keys or more, consecutive ones as a table has them. With fewer than
/// three keys there is nothing to compare.
///
/// # Errors
/// The keys are not in ascending order.
///
/// ```
/// use trommel_guards::{QueryWeights, advise};
///
/// let key = |n| format!("user{:04}time{:06}", n / 9, n * 331);
/// let keys: Vec<String> = (0..3000).map(key).collect();
/// let advice = advise(&keys, 14.0, QueryWeights { points: 0.2, ranges: 0.8, prefixes: 0.0 })?;
/// println!("{} denies all but {:.3} of it", advice[0].options.kind.name(), advice[0].ranges);
/// # assert!(advice[0].ranges <= advice[8].ranges);
/// # Ok::<(), trommel_filters::OutOfOrder>(())
/// ```
pub fn advise(
    keys: &[impl AsRef<[u8]>],
    bits_per_key: f64,
    weights: QueryWeights,
) -> Result<Vec<Advice>, OutOfOrder> {
    let from_absent = |three: &[_; 3]| from_absent(three.each_ref().map(AsRef::as_ref));
    let ranges: Vec<Range<Vec<u8>>> = absent(keys).map(from_absent).collect();
    advise_for(keys, bits_per_key, weights, &ranges)
}

/// Same as [`advise`], with the ranges that will be scanned. If these are much shorter than the
/// distance between keys, such as one hour of one user, another filter may be best. Ranges that
/// hold keys are left out. Scans of prefixes may be passed as ranges; if all are, set the weight of
/// prefixes to 0.
///
/// ```
/// use trommel_guards::{QueryWeights, PrefixLevels, advise_for};
///
/// let text = |user: u64, time: u64| format!("user{user:08}time{time:08}");
/// let keys: Vec<String> = (0..4000).map(|n| text(n * 24_877, n * 7919)).collect();
/// let times = |n: u64| text(n * 24_877, n * 9973)..text(n * 24_877, n * 9973 + 1000);
/// let user = |n: u64| format!("user{:08}", n * 24_877 + 7)..format!("user{:08}", n * 24_877 + 8);
/// let ranges: Vec<_> = (0..4000).map(times).chain((0..4000).map(user)).collect();
///
/// let weights = QueryWeights { points: 1.0, ranges: 1.0, prefixes: 0.0 };
/// let best = &advise_for(&keys, 14.0, weights, &ranges)?[0];
/// assert_eq!(best.options.kind.name(), "prefix-ribbon");
/// assert_eq!(best.options.tuning.get::<PrefixLevels>().to_string(), "12+21");
/// # Ok::<(), trommel_filters::OutOfOrder>(())
/// ```
pub fn advise_for(
    keys: &[impl AsRef<[u8]>],
    bits_per_key: f64,
    weights: QueryWeights,
    ranges: &[Range<impl AsRef<[u8]>>],
) -> Result<Vec<Advice>, OutOfOrder> {
    if keys.len() < 3 {
        return Ok(Vec::new());
    }
    let queries = SampleQueries::new(keys, ranges);
    let of = |kind| FilterOptions::new(kind, bits_per_key);
    let measured = |options| measure(keys, options, &queries);
    let by_rate = |one: &Advice, other: &Advice| one.rate(weights).total_cmp(&other.rate(weights));
    let all = COMPARED.into_iter().map(of).map(measured);
    let mut all = all.collect::<Result<Vec<Advice>, OutOfOrder>>()?;
    let levels = candidates(keys, &queries.ranges).into_iter();
    let prefixes = levels.map(|it| of(kinds::PREFIX_RIBBON).tuned(FilterTuning::new().with(it)));
    let prefixes = prefixes.map(measured).collect::<Result<Vec<Advice>, OutOfOrder>>()?;
    all.extend(prefixes.into_iter().min_by(by_rate));
    all.sort_by(by_rate);
    Ok(all)
}

/// Returns triples of neighbours: the filter has the first and the last one, not the middle one.
fn absent<K: AsRef<[u8]>>(keys: &[K]) -> impl Iterator<Item = &[K; 3]> {
    let threes = keys.windows(3).step_by(2).filter_map(|three| three.first_chunk());
    threes.filter(|[before, key, after]| {
        before.as_ref() < key.as_ref() && key.as_ref() < after.as_ref()
    })
}

/// Queries for keys, ranges and prefixes that no filter here contains.
struct SampleQueries<'k> {
    /// Absent keys, with their shortest prefixes that no key has. A key that is a prefix of another
    /// one has none.
    points: Vec<(&'k [u8], Option<&'k [u8]>)>,
    ranges: Vec<KeyRange<'k>>,
}

impl<'k> SampleQueries<'k> {
    fn new<K: AsRef<[u8]>, R: AsRef<[u8]>>(
        keys: &'k [K],
        ranges: &'k [Range<R>],
    ) -> SampleQueries<'k> {
        let with_prefix = |three: &'k [K; 3]| {
            let [before, key, after] = three.each_ref().map(AsRef::as_ref);
            let shared = common_bytes(before, key).max(common_bytes(key, after));
            (key, key.get(..=shared))
        };
        let is_kept = |place: usize| place.is_multiple_of(2);
        let range = |range: &'k Range<R>| {
            let (lower, upper) = (range.start.as_ref(), range.end.as_ref());
            let first = keys.partition_point(|key| key.as_ref() < lower);
            let kept = keys.get(first + usize::from(!is_kept(first)));
            let range = KeyRange::of_bounds(Bound::Included(lower), Bound::Excluded(upper))?;
            kept.is_none_or(|key| key.as_ref() >= upper).then_some(range)
        };
        SampleQueries {
            points: absent(keys).map(with_prefix).collect(),
            ranges: ranges.iter().filter_map(range).collect(),
        }
    }
}

fn measure(
    keys: &[impl AsRef<[u8]>],
    options: FilterOptions,
    queries: &SampleQueries<'_>,
) -> Result<Advice, OutOfOrder> {
    let mut builder = options.builder();
    for key in keys.iter().step_by(2) {
        builder.add(key.as_ref())?;
    }
    let bytes = builder.finish();
    let bits_per_key = bytes.len() as f64 * 8.0 / keys.len().div_ceil(2) as f64;
    let filter = options.kind.read(AlignedBytes::from_slice(&bytes)).expect("it was just built");
    let SampleQueries { points, ranges } = queries;
    let is_there = |prefix: Option<&[u8]>| prefix.is_none_or(|it| filter.may_contain_prefix(it));
    Ok(Advice {
        bits_per_key,
        points: share(points, |(key, _)| filter.may_contain(key)),
        ranges: share(ranges, |range| filter.may_overlap(range)),
        prefixes: share(points, |(_, prefix)| is_there(*prefix)),
        options,
    })
}

/// The share of items for which `is_so` holds.
fn share<T>(all: &[T], is_so: impl Fn(&T) -> bool) -> f64 {
    all.iter().filter(|one| is_so(one)).count() as f64 / all.len().max(1) as f64
}

/// Returns the range from the middle one of three keys to half-way before the last one.
fn from_absent([_, key, after]: [&[u8]; 3]) -> Range<Vec<u8>> {
    let mut end = half_way(key, after);
    end.push(0);
    key.to_vec()..end
}

/// Returns a key half-way from `key` to `after`, by the eight bytes after their common prefix.
/// Requires: `key` is below `after`.
fn half_way(key: &[u8], after: &[u8]) -> Vec<u8> {
    let shared = common_bytes(key, after);
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
    // If eight bytes do not tell them apart, it is unknown whether a key lies between them.
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
        let ranges = QueryWeights { points: 0.0, ranges: 1.0, prefixes: 0.0 };
        let advice = advise(&keys, 14.0, ranges).expect("in order");
        assert_eq!(advice.len(), COMPARED.len() + 1);
        let last = advice.last().expect("some");
        assert_eq!((last.options.kind.name(), last.ranges), ("blocked-bloom", 1.0));
        assert!(advice[0].ranges < 0.01 && advice[0].rate(ranges) == advice[0].ranges);
        assert!(advice.iter().all(|it| it.bits_per_key < 18.0), "{advice:?}");
        let points = QueryWeights {
            points: 1.0,
            ..QueryWeights { points: 0.0, ranges: 0.0, prefixes: 0.0 }
        };
        let best = &advise(&keys, 14.0, points).expect("in order")[0];
        assert!(best.points < 0.01, "{best:?}");
    }

    fn text(user: u64, time: u64) -> String {
        format!("user{user:08}time{time:08}")
    }

    /// Returns the rank of `prefix-ribbon`, and its result.
    fn of_prefixes(advice: &[Advice]) -> (usize, &Advice) {
        let is_it = |(_, it): &(usize, &Advice)| it.options.kind.name() == "prefix-ribbon";
        advice.iter().enumerate().find(is_it).expect("it is compared")
    }

    fn levels(advice: &Advice) -> String {
        advice.options.tuning.get::<crate::PrefixLevels>().to_string()
    }

    const RANGES: QueryWeights = QueryWeights { points: 0.0, ranges: 1.0, prefixes: 0.0 };

    /// A table with one row per user.
    #[test]
    fn filters_of_parts_are_advised_for_stretches_of_a_part() {
        let row = |nth: u64| (nth * 24_877, nth * 7_919_993 % 99_000_000);
        let keys: Vec<String> = (0..4000).map(row).map(|(user, time)| text(user, time)).collect();
        let stretch = |nth: u64| {
            let (user, time) = (row(nth).0, row(nth * 7 + 1).1);
            text(user, time)..text(user, time + 1000)
        };
        let ranges: Vec<Range<String>> = (0..4000).map(stretch).collect();
        let advice = advise_for(&keys, 14.0, RANGES, &ranges).expect("in order");
        let (place, best) = of_prefixes(&advice);
        assert_eq!((place, levels(best).as_str()), (0, "21"));
        assert!(best.ranges < 0.02, "{best:?}");
        assert!(advice[1].ranges > 10.0 * best.ranges, "{advice:?}");
        let user = |nth: u64| format!("user{:08}", row(nth).0 + 9);
        let users = (0..4000).map(|nth| user(nth)..format!("{}~", user(nth)));
        let ranges: Vec<Range<String>> = ranges.into_iter().chain(users).collect();
        let advice = advise_for(&keys, 14.0, RANGES, &ranges).expect("in order");
        let (place, best) = of_prefixes(&advice);
        assert_eq!((place, levels(best).as_str()), (0, "12+21"));
        assert!(advice[1].ranges > 10.0 * best.ranges, "{advice:?}");
        let again = advise_for(&keys, 14.0, RANGES, &ranges).expect("in order");
        assert_eq!(format!("{advice:?}"), format!("{again:?}"));
    }

    /// A table with many rows per user, and ranges between these.
    #[test]
    fn filters_of_parts_are_near_where_ranges_lie_between_rows_of_a_part() {
        let row =
            |nth: u64| text(nth / 40 * 2_487_709, nth % 40 * 2_000_003 + nth * 7919 % 999_983);
        let mut keys: Vec<String> = (0..8000).map(row).collect();
        keys.sort_unstable();
        let advice = advise(&keys, 14.0, RANGES).expect("in order");
        let (place, it) = of_prefixes(&advice);
        assert!(place < 4 && it.ranges < 0.1, "{place}: {advice:?}");
    }

    /// The even ones of keys 0 to 8 exist.
    #[test]
    fn ranges_that_hold_a_key_are_not_asked_for() {
        let keys: Vec<String> = (0..9).map(|nth| format!("{nth}")).collect();
        let ranges =
            ["1".."2", "1".."20", "0".."1", "01".."2", "7".."9", "80".."9", "9".."99", "2".."1"];
        let queries = SampleQueries::new(&keys, &ranges);
        let lowers = queries.ranges.iter().map(|range| range.lower());
        assert_eq!(lowers.collect::<Vec<_>>(), [&b"1"[..], b"01", b"80", b"9"]);
        assert_eq!(queries.points.len(), 4);
    }

    #[test]
    fn what_is_out_of_order_or_too_little_is_told() {
        assert!(advise(&["b", "a", "a", "a"], 14.0, QueryWeights::default()).is_err());
        assert!(advise(&["a", "b"], 14.0, QueryWeights::default()).expect("in order").is_empty());
        let same = advise(&["a"; 9], 14.0, QueryWeights::default()).expect("in order");
        assert!(same.iter().all(|it| it.points == 0.0));
    }
}
