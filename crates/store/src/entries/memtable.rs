//! The newest entries, in memory.
//! ```text
//! insert -> Bloom bits -> skip list        get -> Bloom bits --no--> nothing
//!                                                      \-maybe-> skip list -> value
//! ```
//! Invariant: an entry's Bloom bits are set before it is linked. It is linked before its sequence
//! number is published, so a reader of that number finds both.

use crate::entries::entry::{Entry, Kind, Sequence};
use crate::entries::memtable_bloom::{Bloom, Growth};
use crate::entries::memtable_tombstones::MemtableRanges;
use crate::entries::skiplist::{ListCursor, SkipList};
use crate::entries::value::Value;
use crate::sync::Arc;

/// An entry that was looked up.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) sequence: Sequence,
    pub(crate) kind: Kind,
    pub(crate) value: Value,
}

impl Found {
    /// What was found of a key, unless a deletion of a range around it is newer.
    pub(crate) fn or_deleted(found: Option<Found>, deleted: Sequence) -> Option<Found> {
        let gone = || Found { sequence: deleted, kind: Kind::DeleteRange, value: Value::empty() };
        Some(found.filter(|found| found.sequence > deleted).unwrap_or_else(gone))
    }
}

/// A sorted set of entries, with deletions of ranges beside them, that grows until it is flushed.
pub(crate) struct Memtable {
    bloom: Bloom,
    list: Arc<SkipList>,
    ranges: MemtableRanges,
}

/// How large the memtables of a store become.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemtableSize {
    expected_bytes: usize,
    /// Whether there are many, most of which never fill.
    is_of_many: bool,
}

impl MemtableSize {
    /// About so many bytes.
    pub(crate) fn of(expected_bytes: usize) -> Self {
        MemtableSize { expected_bytes, is_of_many: false }
    }

    /// The bytes that are expected.
    pub(crate) fn expected_bytes(self) -> usize {
        self.expected_bytes
    }

    /// At most so many, where many stores share the memory.
    pub(crate) fn of_many(expected_bytes: usize) -> Self {
        MemtableSize { expected_bytes, is_of_many: true }
    }
}

impl Memtable {
    /// An empty memtable that expects about so many bytes. It takes more, with a weaker Bloom.
    pub(crate) fn new(expected_bytes: usize) -> Self {
        Memtable::sized(MemtableSize::of(expected_bytes))
    }

    /// As above.
    pub(crate) fn sized(size: MemtableSize) -> Self {
        let MemtableSize { expected_bytes, is_of_many } = size;
        Memtable {
            bloom: match is_of_many {
                true => Bloom::new(expected_bytes, Growth::OF_MANY),
                false => Bloom::new(expected_bytes, Growth::OF_ONE).made(),
            },
            list: Arc::new(SkipList::new(expected_bytes)),
            ranges: MemtableRanges::new(),
        }
    }

    /// Adds an entry, or a deletion of the keys from `key` up to `value`. Requires: no entry with
    /// this key and sequence number is there. A deleted range is not empty. Its deletion, and every
    /// entry after the first such deletion, is newer than everything that is there. No other thread
    /// adds meanwhile; readers go on.
    pub(crate) fn insert(&self, key: &[u8], sequence: Sequence, kind: Kind, value: &[u8]) {
        if kind == Kind::DeleteRange {
            let has_newer =
                |from: &[u8], until: &[u8], than| self.list.has_newer(from, until, than);
            return self.ranges.insert(key, value, sequence, has_newer);
        }
        self.bloom.add(key);
        let entry = Entry { key, sequence, kind, value };
        // Scans go by sequence numbers past what was deleted.
        if self.ranges.is_empty() {
            self.list.insert(&entry);
        } else {
            self.list.insert_marked(&entry);
            self.ranges.note_put(key, sequence);
        }
    }

    /// Adds entries one after the other; it takes less time for many than for one. Requires: as for
    /// each.
    pub(crate) fn insert_all(&self, entries: &[Entry<'_>]) {
        let are_plain = || entries.iter().all(|entry| entry.kind != Kind::DeleteRange);
        if entries.len() == 1 || !self.ranges.is_empty() || !are_plain() {
            for &Entry { key, sequence, kind, value } in entries {
                self.insert(key, sequence, kind, value);
            }
            return;
        }
        entries.iter().for_each(|entry| self.bloom.add(entry.key));
        self.list.insert_all(entries);
    }

    /// The newest entry of `key` with a sequence number of at most `at`, or the deletion of a range
    /// around it that is newer.
    #[inline]
    pub(crate) fn get(self: &Arc<Self>, key: &[u8], at: Sequence) -> Option<Found> {
        let found = self.find(key, at);
        match self.ranges.covering_tombstone(key, at) {
            Some(deleted) => Found::or_deleted(found, deleted),
            None => found,
        }
    }

    /// Asks for the memory of what tells first whether it has a key.
    #[inline]
    pub(crate) fn ask_for(&self, key: &[u8]) {
        self.bloom.ask_for(key);
    }

    /// Asks for memory that an entry of a key will be noted in.
    #[inline]
    pub(crate) fn ask_for_insert(&self, key: &[u8]) {
        self.bloom.ask_for_insert(key);
    }

    /// False: it has no entry of the key.
    pub(crate) fn may_contain(&self, key: &[u8]) -> bool {
        self.bloom.may_contain(key)
    }

    /// The number of a key's newest entry with at most this one.
    pub(crate) fn find_number(&self, key: &[u8], at: Sequence) -> Option<Sequence> {
        self.list.find(key, at).map(|(sequence, ..)| sequence)
    }

    #[inline]
    fn find(self: &Arc<Self>, key: &[u8], at: Sequence) -> Option<Found> {
        if !self.bloom.may_contain(key) {
            return None;
        }
        let (sequence, kind, held) = self.list.find(key, at)?;
        Some(Found { sequence, kind, value: Value::in_memtable(held) })
    }

    /// The memory that the entries, the deleted ranges and the Bloom take.
    pub(crate) fn size_bytes(&self) -> usize {
        self.list.size_bytes() + self.bloom.size_bytes() + self.ranges.size_bytes()
    }

    /// The deletions of ranges.
    pub(crate) fn ranges(&self) -> &MemtableRanges {
        &self.ranges
    }

    /// How many entries it has.
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether nothing was written to it.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0 && self.ranges.is_empty()
    }

    /// All entries in order, where they are; deletions of ranges are apart.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        self.list.entries()
    }

    /// A cursor at no entry. It sees what is added later, and keeps the entries alive.
    pub(crate) fn cursor(&self) -> ListCursor {
        ListCursor::new(Arc::clone(&self.list))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entries::cursor::checks::{any_entries, any_moves, entry, follows, sorted};
    use crate::entries::memtable_bloom::ENTRY_BYTES;
    use crate::sync::{AtomicU64, Ordering};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_memtable_is_a_sorted_list(list in any_entries(120), moves in any_moves()) {
            let mut distinct = list;
            let order = sorted(distinct.clone());
            let mut seen = std::collections::BTreeSet::new();
            distinct.retain(|owned| seen.insert((owned.0.clone(), owned.1)));
            let list = sorted(distinct.clone());
            prop_assert_eq!(list.len(), order.len());
            let memtable = Arc::new(Memtable::new(1 << 10));
            let (alone, together) = distinct.split_at(distinct.len() / 3);
            for (key, sequence, kind, value) in alone {
                memtable.insert(key, Sequence(*sequence), *kind, value);
            }
            memtable.insert_all(&together.iter().map(entry).collect::<Vec<_>>());
            prop_assert_eq!(memtable.len(), list.len());
            follows(&mut memtable.cursor(), &list, &moves);
            for (key, sequence, ..) in &list {
                prop_assert!(memtable.bloom.may_contain(key));
                for at in [*sequence, sequence.saturating_sub(1), 39] {
                    let expected = list.iter().find(|owned| owned.0 == *key && owned.1 <= at);
                    let found = memtable.get(key, Sequence(at));
                    prop_assert_eq!(
                        found.map(|found| (found.sequence.0, found.kind, found.value.to_vec())),
                        expected.map(|owned| (owned.1, owned.2, owned.3.clone()))
                    );
                }
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "a rate is told by more keys than Miri can do")]
    fn a_miss_is_mostly_seen_by_the_bloom() {
        let memtable = Arc::new(Memtable::new(10_000 * ENTRY_BYTES));
        assert!(memtable.is_empty());
        for number in 0..10_000u64 {
            memtable.insert(&number.to_be_bytes(), Sequence(number), Kind::Put, b"value");
        }
        assert!((0..10_000u64).all(|number| memtable.bloom.may_contain(&number.to_be_bytes())));
        let misses = 10_000..110_000u64;
        let maybes =
            misses.filter(|number| memtable.bloom.may_contain(&number.to_be_bytes())).count();
        assert!(maybes < 2_000, "{maybes} of 100,000");
        assert!(memtable.size_bytes() < 10_000 * 100);
    }

    #[test]
    fn what_is_published_is_found_at_once() {
        let memtable = Arc::new(Memtable::new(1 << 16));
        let published = AtomicU64::new(0);
        let count = if cfg!(miri) { 50 } else { 50_000u64 };
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let mut last = 0;
                    while last < count {
                        last = published.load(Ordering::Acquire);
                        for number in last.saturating_sub(5)..last {
                            let key = (number % 1_000).to_be_bytes();
                            let found = memtable.get(&key, Sequence(number)).expect("published");
                            assert_eq!(found.sequence, Sequence(number));
                            assert_eq!(found.value, number.to_be_bytes());
                        }
                    }
                });
            }
            for number in 0..count {
                let key = (number % 1_000).to_be_bytes();
                memtable.insert(&key, Sequence(number), Kind::Put, &number.to_be_bytes());
                published.store(number + 1, Ordering::Release);
            }
        });
    }
}
