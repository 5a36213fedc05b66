//! The range tombstones of a memtable.
//! ```text
//! deletes   0     1     2     in order of writing, each with its state (interval_tree.rs)
//! reader    at 17: the last deletion up to 17 -> its state -> the newest deletion of a key,
//!           and the interval in which it is the newest
//! ```
//! A deletion takes O(log n) to add, whatever it overlaps. So does a lookup of a key at any
//! sequence number. O(log n) also finds how far the keys around one are deleted and not written
//! again, even over many adjacent deletions. Readers take no lock; without deletions a lookup costs
//! one load.
//!
//! Invariants: sequence numbers ascend. A deletion is added before its sequence number is
//! published. An entry newer than the deletion that covers it is noted before the entry's number is
//! published.

use crate::cost;
use crate::entries::append_list::AppendList;
use crate::entries::entry::Sequence;
use crate::entries::interval_tree::{
    self, Around, BEFORE, BEHIND, Bound, Bounds, NONE, NodeId, Nodes, Packed, Scratch,
};
use crate::entries::tombstones::{RangeDelete, RangeTombstones, Stretch};
use crate::sync::{AtomicUsize, Mutex, OnceLock, Ordering, lock};

/// A deletion as it was written, and the state after it.
struct Delete {
    /// The first key, then the exclusive end.
    keys: Box<[u8]>,
    from_len: u32,
    sequence: Sequence,
    root: NodeId,
    /// The number of the deletion that is the newest behind the end of this one, in this state.
    under: Option<usize>,
}

impl Delete {
    fn from(&self) -> &[u8] {
        &self.keys[..self.from_len as usize]
    }

    fn to(&self) -> &[u8] {
        &self.keys[self.from_len as usize..]
    }
}

/// What the single writer alone uses.
#[derive(Default)]
struct Writing {
    node_count: usize,
    scratch: Scratch,
}

/// The range tombstones of a memtable.
pub(crate) struct MemtableRanges {
    /// The number of published deletions.
    count: AtomicUsize,
    size_bytes: AtomicUsize,
    deletes: AppendList<OnceLock<Delete>>,
    nodes: Nodes,
    writing: Mutex<Writing>,
}

/// The deletions that a reader at one sequence number sees. Valid for its own memtable only.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RangesAt(NodeId);

impl MemtableRanges {
    pub(crate) fn new() -> Self {
        MemtableRanges {
            count: AtomicUsize::new(0),
            size_bytes: AtomicUsize::new(0),
            deletes: AppendList::new(),
            nodes: Nodes::new(),
            writing: Mutex::default(),
        }
    }

    /// Adds a deletion of [from, to). `has_newer` tells whether the memtable has an entry in a
    /// range that is newer than a number. Requires: from < to; the deletion is newer than
    /// everything in the memtable.
    pub(crate) fn insert(
        &self,
        from: &[u8],
        to: &[u8],
        sequence: Sequence,
        has_newer: impl Fn(&[u8], &[u8], Sequence) -> bool,
    ) {
        assert!(from < to, "a deletion of nothing");
        let mut writing = lock(&self.writing);
        let writing = &mut *writing;
        let number = self.count.load(Ordering::Relaxed);
        let last = number.checked_sub(1).map(|last| self.delete(last));
        let is_newer = last.is_none_or(|last| last.sequence < sequence);
        assert!(is_newer, "{sequence:?} after newer ones");
        let before = (last.map_or(NONE, |last| last.root), writing.node_count);
        let bounds = Written { ranges: self, has_newer };
        let assigned = (number, from, to);
        let scratch = &mut writing.scratch;
        let state = interval_tree::assign(&self.nodes, before, scratch, assigned, &bounds);
        let delete = Delete {
            keys: [from, to].concat().into(),
            from_len: u32::try_from(from.len()).expect("keys have a bound"),
            sequence,
            root: state.root,
            under: state.under.and_then(|bound| self.newest_from(bound)),
        };
        let nodes = (state.node_count - writing.node_count) * size_of::<Packed>();
        let bytes = nodes + size_of::<OnceLock<Delete>>() + delete.keys.len();
        writing.node_count = state.node_count;
        assert!(self.deletes.make(number).set(delete).is_ok(), "the place of another deletion");
        self.size_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.count.store(number + 1, Ordering::Release);
    }

    /// Notes an entry that was put. Requires: it is newer than all deletions, and no thread reads
    /// at its sequence number yet.
    pub(crate) fn note_put(&self, key: &[u8], sequence: Sequence) {
        let _writing = lock(&self.writing);
        let Some(last) = self.count.load(Ordering::Relaxed).checked_sub(1) else { return };
        let last = self.delete(last);
        assert!(last.sequence < sequence, "{sequence:?} after newer ones");
        let around = self.around(RangesAt(last.root), key);
        if let Some(bound) = around.at_or_before.filter(|_| around.shows_nothing) {
            interval_tree::mark(&self.nodes, last.root, bound, |bound| self.key(bound).cmp(key));
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// Returns the newest deletion that covers a key, of those with a sequence number of at most
    /// `at`.
    #[inline]
    pub(crate) fn covering_tombstone(&self, key: &[u8], at: Sequence) -> Option<Sequence> {
        if self.is_empty() { None } else { self.newest(self.around(self.at(at)?, key)) }
    }

    /// Returns the state that a reader at `at` sees, in O(log n). `None`: nothing is deleted.
    pub(crate) fn at(&self, at: Sequence) -> Option<RangesAt> {
        let (mut low, mut high) = (0, self.count.load(Ordering::Acquire));
        // Most readers want the newest state.
        let mut middle = high.checked_sub(1)?;
        while low < high {
            cost::step();
            if self.delete(middle).sequence <= at {
                low = middle + 1
            } else {
                high = middle
            }
            middle = low.midpoint(high);
        }
        let last = low.checked_sub(1)?;
        Some(RangesAt(self.delete(last).root))
    }

    /// Returns the keys around one that have the same newest deletion.
    pub(crate) fn stretch(&self, at: RangesAt, key: &[u8]) -> Stretch<'_> {
        let around = self.around(at, key);
        Stretch {
            newest: self.newest(around),
            from: around.at_or_before.map(|bound| self.key(bound)),
            until: around.behind.map(|bound| self.key(bound)),
        }
    }

    /// Returns whether the keys around one that have the same newest deletion may include an entry
    /// newer than it.
    pub(crate) fn shows(&self, at: RangesAt, key: &[u8]) -> bool {
        !self.around(at, key).shows_nothing
    }

    /// Returns the end of the hidden keys around one: those that are deleted and not written again.
    /// If entries may be newer than the deletion that covers the key, returns the end of that
    /// deletion's stretch. Requires: the key is deleted.
    pub(crate) fn hidden_until(&self, at: RangesAt, key: &[u8]) -> &[u8] {
        let around = self.around(at, key);
        let compare = |bound: Bound| self.key(bound).cmp(key);
        let until = match around.shows_nothing {
            true => interval_tree::shown(&self.nodes, at.0, BEHIND, compare),
            false => around.behind,
        };
        self.key(until.expect("what is deleted ends somewhere"))
    }

    /// Returns the first of the keys that `hidden_until` ends.
    pub(crate) fn hidden_from(&self, at: RangesAt, key: &[u8]) -> &[u8] {
        let around = self.around(at, key);
        let compare = |bound: Bound| self.key(bound).cmp(key);
        let shown = match around.shows_nothing {
            true => interval_tree::shown(&self.nodes, at.0, BEFORE, compare),
            false => around.at_or_before,
        };
        let from = match shown {
            // Meanwhile an entry may have been put there, which this reader does not see.
            shown if shown == around.at_or_before => shown,
            Some(shown) => self.around(at, self.key(shown)).behind,
            None => interval_tree::first(&self.nodes, at.0),
        };
        self.key(from.expect("what is deleted begins somewhere"))
    }

    /// Returns the first deletion. Everything in older memtables is older. Requires: there is one.
    pub(crate) fn first(&self) -> Sequence {
        self.delete(0).sequence
    }

    #[inline]
    fn around(&self, RangesAt(root): RangesAt, key: &[u8]) -> Around {
        interval_tree::around(&self.nodes, root, |bound| self.key(bound).cmp(key))
    }

    #[inline]
    fn newest(&self, around: Around) -> Option<Sequence> {
        let number = self.newest_from(around.at_or_before?)?;
        Some(self.delete(number).sequence)
    }

    /// Returns the number of the newest deletion from a bound on. It is the same in all states with
    /// that bound.
    #[inline]
    fn newest_from(&self, bound: Bound) -> Option<usize> {
        let number = bound.delete();
        if bound.is_to() { self.delete(number).under } else { Some(number) }
    }

    /// Requires: the deletion is published, or the caller is the writer.
    #[inline]
    fn delete(&self, number: usize) -> &Delete {
        self.deletes.get(number).get().expect("a deletion that was written")
    }

    #[inline]
    fn key(&self, bound: Bound) -> &[u8] {
        let delete = self.delete(bound.delete());
        if bound.is_to() { delete.to() } else { delete.from() }
    }

    /// Returns the deletions in order of writing.
    pub(crate) fn written(&self) -> impl Iterator<Item = RangeDelete<'_>> {
        let deletes = (0..self.count.load(Ordering::Acquire)).map(|number| self.delete(number));
        deletes.map(|delete| RangeDelete {
            from: delete.from(),
            to: delete.to(),
            sequence: delete.sequence,
        })
    }

    /// Returns, as one list, what readers at one of these ascending numbers or later see.
    pub(crate) fn visible_at(&self, snapshots: &[Sequence]) -> RangeTombstones {
        RangeTombstones::visible_at(self.written(), snapshots)
    }

    pub(crate) fn size_bytes(&self) -> usize {
        self.size_bytes.load(Ordering::Relaxed)
    }
}

/// What `interval_tree::assign` needs to know of the deletions and entries so far.
struct Written<'a, F> {
    ranges: &'a MemtableRanges,
    has_newer: F,
}

impl<F: Fn(&[u8], &[u8], Sequence) -> bool> Bounds for Written<'_, F> {
    fn key(&self, bound: Bound) -> &[u8] {
        self.ranges.key(bound)
    }

    fn shows(&self, bound: Bound, from: &[u8], until: &[u8]) -> bool {
        let deleted = self.ranges.newest_from(bound).map(|number| self.ranges.delete(number));
        deleted.is_none_or(|deleted| (self.has_newer)(from, until, deleted.sequence))
    }
}

#[cfg(test)]
mod shown_tests;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NO_ENTRIES: fn(&[u8], &[u8], Sequence) -> bool = |_, _, _| false;

    type Owned = (Vec<u8>, Vec<u8>);

    fn any_key() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(prop::sample::select(vec![0u8, b'a', b'b', 0xff]), 0..4)
    }

    fn any_deletes() -> impl Strategy<Value = Vec<Owned>> {
        let ordered =
            |(one, other): (Vec<u8>, Vec<u8>)| (one.clone().min(other.clone()), one.max(other));
        let one =
            (any_key(), any_key()).prop_filter("not empty", |(a, b)| a != b).prop_map(ordered);
        prop::collection::vec(one, 0..14)
    }

    /// Adds the deletions with sequence numbers 10, 20, ...
    fn made(list: &[Owned]) -> MemtableRanges {
        let ranges = MemtableRanges::new();
        for ((from, to), number) in list.iter().zip(1..) {
            ranges.insert(from, to, Sequence(10 * number), NO_ENTRIES);
        }
        ranges
    }

    /// The naive way.
    fn covering_tombstone(list: &[Owned], key: &[u8], at: u64) -> Option<Sequence> {
        let numbered = list.iter().zip((1..).map(|number| 10 * number));
        let seen = numbered
            .filter(|((from, to), sequence)| &from[..] <= key && key < &to[..] && *sequence <= at);
        seen.map(|(_, sequence)| Sequence(sequence)).max()
    }

    proptest! {
        #[test]
        fn the_newest_that_is_seen_is_found_and_how_far_it_is(
            list in any_deletes(),
            keys in prop::collection::vec(any_key(), 1..8),
        ) {
            let ranges = made(&list);
            let ends = list.iter().flat_map(|(from, to)| [from.clone(), to.clone()]);
            let keys: Vec<Vec<u8>> = keys.iter().cloned().chain(ends).collect();
            for at in (0..10 * list.len() as u64 + 20).step_by(5) {
                for key in &keys {
                    let expected = covering_tombstone(&list, key, at);
                    prop_assert_eq!(ranges.covering_tombstone(key, Sequence(at)), expected);
                    let Some(view) = ranges.at(Sequence(at)) else {
                        prop_assert!(at < 10 || list.is_empty());
                        continue;
                    };
                    let stretch = ranges.stretch(view, key);
                    prop_assert_eq!(stretch.newest, expected);
                    prop_assert!(stretch.from.is_none_or(|from| from <= &key[..]));
                    prop_assert!(stretch.until.is_none_or(|until| &key[..] < until));
                    for other in &keys {
                        let is_within = stretch.from.is_none_or(|from| from <= &other[..])
                            && stretch.until.is_none_or(|until| &other[..] < until);
                        prop_assert!(!is_within || covering_tombstone(&list, other, at) == expected);
                    }
                    // The stretch is as long as possible.
                    let behind = stretch.until.map(|until| covering_tombstone(&list, until, at));
                    prop_assert!(behind.is_none_or(|behind| behind != expected));
                }
            }
        }

        #[test]
        fn what_a_flush_writes_is_what_is_seen(
            list in any_deletes(),
            snapshots in prop::collection::btree_set(0u64..160, 0..4),
            keys in prop::collection::vec(any_key(), 1..20),
        ) {
            let ranges = made(&list);
            let numbers: Vec<Sequence> = snapshots.iter().map(|&number| Sequence(number)).collect();
            let written = ranges.visible_at(&numbers);
            for key in &keys {
                for at in snapshots.iter().copied().chain([1000]) {
                    let expected = ranges.covering_tombstone(key, Sequence(at));
                    prop_assert_eq!(written.covering_tombstone(key, Sequence(at)), expected);
                }
            }
        }
    }

    /// The range of the n-th of `count` deletions.
    pub(super) type Pattern = (&'static str, fn(u64, u64) -> (u64, u64));

    pub(super) const PATTERNS: [Pattern; 7] = [
        ("a log is cut", |n, _| (0, n + 1)),
        ("nested, to the inside", |n, count| (n, 2 * count - n)),
        ("nested, to the outside", |n, count| (count - n, count + n + 1)),
        ("staggered", |n, _| (10 * n, 10 * n + 25)),
        ("repeated", |n, _| (n % 7, n % 7 + 100)),
        ("apart, in any order", |n, count| {
            let place = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) % (8 * count);
            (10 * place, 10 * place + 3)
        }),
        ("many, then all of them", |n, count| {
            if n % 1000 == 999 { (0, 100 * count) } else { (100 * n, 100 * n + 50) }
        }),
    ];

    pub(super) fn keys((from, to): (u64, u64)) -> ([u8; 8], [u8; 8]) {
        (from.to_be_bytes(), to.to_be_bytes())
    }

    // A naive list cut the newest of nested deletions at all others: 3 s for 16,000.
    #[test]
    #[cfg_attr(miri, ignore = "steps among more ranges than Miri can do are counted")]
    fn whatever_overlaps_each_takes_the_logarithm_of_their_number() {
        for (name, pattern) in PATTERNS {
            for count in [1_000u64, 10_000, 100_000] {
                let ranges = MemtableRanges::new();
                let log = u64::from(count.ilog2());
                let add = |n: u64| {
                    let (from, to) = keys(pattern(n, count));
                    ranges.insert(&from, &to, Sequence(n + 1), NO_ENTRIES);
                };
                let ((), steps) = cost::steps_of(|| (0..count).for_each(add));
                assert!(steps / count <= 12 * log, "{name}: {steps} steps for {count}");
                let bytes = ranges.size_bytes() as u64 / count;
                assert!(bytes <= 100 + 60 * log, "{name}: {bytes} bytes each, of {count}");
                for n in (0..count).step_by(97) {
                    let (from, to) = pattern(n, count);
                    let key = from.midpoint(to).to_be_bytes();
                    for at in [count, n + 1, count / 2].map(Sequence) {
                        let look = || ranges.at(at).map(|view| ranges.stretch(view, &key));
                        let (_, steps) = cost::steps_of(look);
                        assert!(steps <= 4 * log, "{name}: {steps} steps of {count}");
                    }
                }
            }
        }
    }

    #[test]
    fn readers_see_whole_states_while_a_writer_adds() {
        let count = if cfg!(miri) { 60 } else { 20_000u64 };
        let ranges = MemtableRanges::new();
        std::thread::scope(|scope| {
            for reader in 0..3u64 {
                let ranges = &ranges;
                scope.spawn(move || {
                    let mut seen = 0;
                    while seen < count {
                        seen = ranges.written().count() as u64;
                        // Of the ranges [0, n], the newest one seen at `at` has the number `at`.
                        for at in [seen, seen / 2, seen.saturating_sub(reader)] {
                            let expected = Some(Sequence(at)).filter(|_| at > 0);
                            assert_eq!(ranges.covering_tombstone(&[0; 8], Sequence(at)), expected);
                        }
                    }
                });
            }
            for n in 0..count {
                let (from, to) = keys((0, n + 1));
                ranges.insert(&from, &to, Sequence(n + 1), NO_ENTRIES);
            }
        });
    }
}
