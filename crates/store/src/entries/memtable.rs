//! The memtable: the newest entries, in memory.
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

/// The result of a lookup.
#[derive(Clone, Debug)]
pub(crate) struct FoundEntry {
    pub(crate) sequence: Sequence,
    pub(crate) kind: Kind,
    pub(crate) value: Value,
}

impl FoundEntry {
    /// Replaces what was found for a key by a range tombstone that covers the key, if that is
    /// newer.
    pub(crate) fn or_deleted(found: Option<FoundEntry>, deleted: Sequence) -> Option<FoundEntry> {
        let gone =
            || FoundEntry { sequence: deleted, kind: Kind::DeleteRange, value: Value::empty() };
        Some(found.filter(|found| found.sequence > deleted).unwrap_or_else(gone))
    }
}

/// A sorted set of entries that grows until it is flushed. Range tombstones are kept beside them.
pub(crate) struct Memtable {
    bloom: Bloom,
    list: Arc<SkipList>,
    ranges: MemtableRanges,
}

/// The expected size of a store's memtables.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemtableSize {
    expected_bytes: usize,
    /// Whether there are many memtables, most of which never fill.
    is_of_many: bool,
}

impl MemtableSize {
    /// Memtables of about `expected_bytes` bytes.
    pub(crate) fn of(expected_bytes: usize) -> Self {
        MemtableSize { expected_bytes, is_of_many: false }
    }

    /// The expected size in bytes.
    pub(crate) fn expected_bytes(self) -> usize {
        self.expected_bytes
    }

    /// Memtables of at most `expected_bytes` bytes, in many stores that share the memory.
    pub(crate) fn of_many(expected_bytes: usize) -> Self {
        MemtableSize { expected_bytes, is_of_many: true }
    }
}

impl Memtable {
    /// Creates an empty memtable that expects about `expected_bytes` bytes. It accepts more, but
    /// then its Bloom filter has more false positives.
    pub(crate) fn new(expected_bytes: usize) -> Self {
        Memtable::sized(MemtableSize::of(expected_bytes))
    }

    /// Creates an empty memtable of this size.
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

    /// Adds an entry, or a deletion of the range from `key` up to `value`.
    ///
    /// Requires: no entry with this key and sequence number exists. A deleted range is not empty. A
    /// range deletion, and every entry after the first one, is newer than everything in the
    /// memtable. No other thread adds at the same time. Readers are not blocked.
    pub(crate) fn insert(&self, key: &[u8], sequence: Sequence, kind: Kind, value: &[u8]) {
        if kind == Kind::DeleteRange {
            let has_newer =
                |from: &[u8], until: &[u8], than| self.list.has_newer(from, until, than);
            return self.ranges.insert(key, value, sequence, has_newer);
        }
        self.bloom.add(key);
        let entry = Entry { key, sequence, kind, value };
        // Scans use sequence numbers to skip deleted entries.
        if self.ranges.is_empty() {
            self.list.insert(&entry);
        } else {
            self.list.insert_marked(&entry);
            self.ranges.note_put(key, sequence);
        }
    }

    /// Adds entries in order, faster than one by one. Requires: as `insert`, for each entry.
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

    /// Returns the newest entry of `key` with a sequence number of at most `at`. If a range
    /// tombstone that covers the key and is visible at `at` is newer, returns that.
    #[inline]
    pub(crate) fn get(self: &Arc<Self>, key: &[u8], at: Sequence) -> Option<FoundEntry> {
        let found = self.find(key, at);
        match self.ranges.covering_tombstone(key, at) {
            Some(deleted) => FoundEntry::or_deleted(found, deleted),
            None => found,
        }
    }

    /// Prefetches the Bloom bits that a lookup of `key` reads first.
    #[inline]
    pub(crate) fn prefetch(&self, key: &[u8]) {
        self.bloom.prefetch(key);
    }

    /// Prefetches the Bloom bits that an insert of `key` sets.
    #[inline]
    pub(crate) fn prefetch_insert(&self, key: &[u8]) {
        self.bloom.prefetch_insert(key);
    }

    /// False: the memtable has no entry of the key.
    pub(crate) fn may_contain(&self, key: &[u8]) -> bool {
        self.bloom.may_contain(key)
    }

    /// Returns the sequence number of the newest entry of `key` with a number of at most `at`.
    pub(crate) fn find_number(&self, key: &[u8], at: Sequence) -> Option<Sequence> {
        self.list.find(key, at).map(|(sequence, ..)| sequence)
    }

    #[inline]
    fn find(self: &Arc<Self>, key: &[u8], at: Sequence) -> Option<FoundEntry> {
        if !self.bloom.may_contain(key) {
            return None;
        }
        let (sequence, kind, held) = self.list.find(key, at)?;
        Some(FoundEntry { sequence, kind, value: Value::in_memtable(held) })
    }

    /// The memory of entries, range tombstones and the Bloom filter, in bytes.
    pub(crate) fn size_bytes(&self) -> usize {
        self.list.size_bytes() + self.bloom.size_bytes() + self.ranges.size_bytes()
    }

    /// The range tombstones.
    pub(crate) fn ranges(&self) -> &MemtableRanges {
        &self.ranges
    }

    /// The number of entries.
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether nothing was written to the memtable.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0 && self.ranges.is_empty()
    }

    /// Returns all entries in order, borrowed. Range tombstones are not among them.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        self.list.entries()
    }

    /// Returns a cursor at no entry. It sees later inserts, and keeps the entries alive.
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
