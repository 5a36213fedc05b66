//! The law of counts: the truth lies between `least` and `most`, and where keys are told apart
//! these are close.
//! ```text
//! Truth     keys in order   a  b  d  ...
//!           entries before  0  3  4  ...  one for the base and one for each flush that has the key
//! ```
//! Invariant: nothing here knows how the filter works.

use crate::twin::*;
use trommel_filters::{CountBounds, Fingerprints, FlushNumber, GrfOptions, KeyRange, Part, Shape};

/// What the twin says about counts.
struct Truth<'a> {
    keys: Vec<&'a Key>,
    /// Per key, and at the end of all: the entries before it, and those of them that are in the
    /// base.
    before: Vec<(u64, u64)>,
}

impl<'a> Truth<'a> {
    fn new(twin: &'a Twin) -> Self {
        let mut before = vec![(0, 0)];
        for (place, flushes) in twin.values().enumerate() {
            let (entries, base) = before[place];
            let in_base = u64::from(flushes.contains(&BASE_FLUSH));
            before.push((entries + flushes.len() as u64, base + in_base));
        }
        Truth { keys: twin.keys().collect(), before }
    }

    /// The base keys below a key.
    fn rank(&self, key: &[u8]) -> u64 {
        self.before[self.keys.partition_point(|other| other.as_slice() < key)].1
    }

    /// The entries of a range.
    fn count(&self, range: &KeyRange<'_>) -> u64 {
        let first = self.keys.partition_point(|key| key.as_slice() < range.lower());
        let after = match range.upper() {
            Some(upper) => self.keys.partition_point(|key| key.as_slice() <= upper),
            None => self.keys.len(),
        };
        self.before[after].0 - self.before[first].0
    }
}

fn assert_rank(part: &Part, truth: &Truth<'_>, key: &[u8]) {
    let (bounds, rank) = (part.rank_bounds(key), truth.rank(key));
    assert!(bounds.least <= rank && rank <= bounds.most, "{key:?}: {bounds:?}, but {rank}");
}

fn assert_count(part: &Part, truth: &Truth<'_>, lower: &[u8], upper: Option<&[u8]>) {
    let Some(range) = KeyRange::new(lower, upper) else { return };
    let (count, entries) = (part.approximate_count(&range), truth.count(&range));
    assert!(
        count.least <= entries && entries <= count.most,
        "{count:?}, but {entries} entries in {lower:?}..={upper:?}"
    );
    assert!(count.least <= count.estimate && count.estimate <= count.most, "{count:?}");
}

/// The law, for some of the keys, their neighbours, and ranges between them.
pub(crate) fn assert_counts(part: &Part, twin: &Twin) {
    let truth = Truth::new(twin);
    for key in probes(twin, 400) {
        assert_rank(part, &truth, &key);
    }
    let some = probes(twin, 12);
    for (place, lower) in some.iter().enumerate() {
        some[place..].iter().for_each(|upper| assert_count(part, &truth, lower, Some(upper)));
        assert_count(part, &truth, lower, None);
    }
    let step = truth.keys.len() / 200 + 1;
    for place in (0..truth.keys.len()).step_by(step) {
        for apart in [0, 1, 2, 70] {
            let upper = truth.keys.get(place + apart).map(|key| key.as_slice());
            assert_count(part, &truth, truth.keys[place], upper);
        }
    }
}

fn options_of(fingerprints: Fingerprints) -> GrfOptions {
    GrfOptions { fingerprints, ..options(12.0) }
}

#[test]
fn counts_of_numbers_are_off_by_little() {
    let mut random = Random(21);
    let (base, flushes) = deal(&numbers(30_000, || random.next()), 10, 3);
    for fingerprints in Fingerprints::ALL {
        let (part, twin) =
            tree_with(&options_of(fingerprints), &base, &flushes, Schedule::LazyLeveling);
        let truth = Truth::new(&twin);
        let (mut wrong, mut asked) = (0, 0);
        for place in (0..truth.keys.len() - 1000).step_by(37) {
            let range = KeyRange::new(truth.keys[place], Some(truth.keys[place + 999]));
            assert_count(&part, &truth, truth.keys[place], Some(truth.keys[place + 999]));
            let count = part.approximate_count(&range.expect("in order"));
            assert!(count.most - count.least <= 12, "{fingerprints:?}: {count:?}");
            (wrong, asked) = (wrong + count.estimate.abs_diff(1000), asked + 1);
        }
        assert!(wrong * 2 < asked, "{fingerprints:?}: {wrong} too many or too few in {asked}");
    }
}

#[test]
fn all_keys_are_counted_exactly() {
    let base: Vec<Key> = (0..5000).map(|i| number_key(i << 30)).collect();
    let flush: Vec<Key> = (0..500).map(|i| number_key((i << 33) + 12_345_678)).collect();
    for fingerprints in Fingerprints::ALL {
        let options = options_of(fingerprints);
        let (part, _) =
            tree_with(&options, &base, &[flush.clone(), flush.clone()], Schedule::LazyLeveling);
        let all = part.approximate_count(&KeyRange::all());
        assert_eq!(all, CountBounds::exact(5000 + 2 * 500), "{fingerprints:?}");
        let nothing = KeyRange::new(&[0xff], None).map(|range| part.approximate_count(&range));
        assert_eq!(nothing, Some(CountBounds::exact(0)));
    }
    let empty = Part::empty(&options(12.0)).approximate_count(&KeyRange::all());
    assert_eq!(empty, CountBounds::exact(0));
}

#[test]
fn keys_that_only_add_zeros_count_where_they_belong() {
    // Every seventh key has four others that add zeros to it.
    let zeros = |i: u64| if i.is_multiple_of(7) { 0..5 } else { 0..1 };
    let long = |i: u64, zeros: usize| [number_key(i << 24), vec![0; zeros]].concat();
    let keys = sorted((0..9000).flat_map(|i| zeros(i).map(move |zeros| long(i, zeros))));
    for fingerprints in Fingerprints::ALL {
        let (part, twin) = tree_with(&options_of(fingerprints), &keys, &[], Schedule::LazyLeveling);
        assert_eq!(part.size().base_entries, keys.len() as u64);
        assert_counts(&part, &twin);
        let truth = Truth::new(&twin);
        for (from, to) in [(100, 8900), (1, 4000), (4000, 8999)] {
            let (lower, upper) = (number_key(from << 24), number_key(to << 24));
            let range = KeyRange::new(&lower, Some(&upper)).expect("in order");
            let (count, entries) = (part.approximate_count(&range), truth.count(&range));
            // At each end those that add zeros in its group, which has a thousand others at most,
            // and a cell.
            assert!(count.most - count.least <= 2 * ((1024 / 7 + 1) * 4 + 1), "{count:?}");
            assert!(count.least <= entries && entries <= count.most, "{count:?}: {entries}");
        }
    }
}

#[test]
fn keys_that_only_add_zeros_at_the_edge_of_a_group() {
    let mut random = Random(22);
    let plain = numbers(2000, || random.next());
    for place in (700..1200).step_by(13) {
        let zeros = (1..40).map(|zeros| [plain[place].clone(), vec![0; zeros]].concat());
        let keys = sorted(zeros.chain(plain.iter().cloned()));
        for fingerprints in Fingerprints::ALL {
            let (part, twin) =
                tree_with(&options_of(fingerprints), &keys, &[], Schedule::LazyLeveling);
            let truth = Truth::new(&twin);
            keys.iter().for_each(|key| assert_rank(&part, &truth, key));
            let last = part.rank_bounds(&keys[keys.len() - 1]);
            assert!(last.most - last.least <= 1, "{last:?}: a group without zeros");
        }
    }
}

#[test]
fn keys_that_share_a_place_with_others_of_their_flush_are_within_the_bounds() {
    // Longer than what a place tells apart.
    let key = |stem: u64, rest: u64| {
        [number_key(stem << 40), vec![0x55; 30], rest.to_be_bytes().to_vec()].concat()
    };
    let base: Vec<Key> = (0..300).map(|stem| number_key(stem << 40)).collect();
    let flush = sorted((0..300).flat_map(|stem| (0..20).map(move |rest| key(stem, rest))));
    let flushes = [flush.clone(), flush];
    assert_all_kinds(12.0, &base, &flushes);
    assert_all_kinds(12.0, &[], &flushes);
    let (part, _) = tree(12.0, &base, &flushes);
    let kept = part.size().overlay_entries;
    assert!(kept < 12_000 / 4, "{kept} entries: most keys have others at their place");
    let all = part.approximate_count(&KeyRange::all());
    let stored = (kept + 300, 12_300, 12_300);
    assert_eq!((all.least, all.estimate, all.most), stored);
}

#[test]
fn an_insert_leaves_the_counts_of_the_old_part() {
    let keys: Vec<Key> = (0..2000).map(|i| number_key(i << 20)).collect();
    let old = base_of(&options(12.0), &keys);
    let newer = insert(&old, BASE_END.0, &keys[..1000], &Shape::default());
    let count = |part: &Part| part.approximate_count(&KeyRange::all()).most;
    assert_eq!((count(&old), count(&newer)), (2000, 3000));
    let emptied = old.inserter(FlushNumber(9), &Shape::default()).finish();
    assert_eq!(count(&emptied), 2000);
}
