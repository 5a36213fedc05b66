//! Deletions of ranges that are not flushed yet.
//! ```text
//! lists   [ 8 deletions ] [ 2 ] [ 1 ]     + one   ->   [ 8 ] [ 2 ] [ 1 1 ]   ->   [ 8 ] [ 4 ]
//! ```
//! Two lists of a size become one, so that there are few, and each deletion is sorted in a few times. Readers take the lists as
//! they are, without a lock; who finds none pays one load.
//!
//! Invariant: a deletion is in a list before its sequence number is published.

use crate::entry::Sequence;
use crate::sync::{Arc, AtomicUsize, Mutex, Ordering, Switch, lock};
use crate::tombstones::{RangeDelete, RangeTombstones};

/// Lists with this many times more pieces than deletions are left apart: of ranges within ranges each is cut by all others.
const PIECES_PER_DELETE_MAX: usize = 8;

/// Deletions, and how many of them there are.
#[derive(Clone)]
struct List {
    deletes: usize,
    tombstones: Arc<RangeTombstones>,
}

/// A deletion as it was written.
pub(crate) struct WrittenDelete {
    pub(crate) from: Vec<u8>,
    pub(crate) to: Vec<u8>,
    pub(crate) sequence: Sequence,
}

/// The deletions of ranges of a memtable.
pub(crate) struct MemtableRanges {
    count: AtomicUsize,
    size_bytes: AtomicUsize,
    lists: Switch<Vec<List>>,
    /// As they were written, for logs. Readers never come here.
    written: Mutex<Vec<WrittenDelete>>,
}

impl MemtableRanges {
    pub(crate) fn new() -> Self {
        MemtableRanges {
            count: AtomicUsize::new(0),
            size_bytes: AtomicUsize::new(0),
            lists: Switch::new(Arc::new(Vec::new())),
            written: Mutex::new(Vec::new()),
        }
    }

    /// Adds a deletion of [from, to). Requires: from < to.
    pub(crate) fn insert(&self, from: &[u8], to: &[u8], sequence: Sequence) {
        assert!(from < to, "a deletion of nothing");
        let mut written = lock(&self.written);
        let delete = WrittenDelete { from: from.to_vec(), to: to.to_vec(), sequence };
        written.push(delete);
        let mut lists = (*self.lists.hold()).clone();
        let of_one = RangeTombstones::of([RangeDelete { from, to, sequence }]);
        lists.push(List { deletes: 1, tombstones: Arc::new(of_one) });
        while let Some(joined) = join_last(&lists) {
            lists.truncate(lists.len() - 2);
            lists.push(joined);
        }
        // As written, and in a list.
        let bytes = 2 * (from.len() + to.len()) + size_of::<WrittenDelete>() + size_of::<List>();
        self.size_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.lists.store(Arc::new(lists));
        self.count.fetch_add(1, Ordering::Release);
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// The newest deletion with a sequence number of at most `at` that is in force for a key.
    #[inline]
    pub(crate) fn covering(&self, key: &[u8], at: Sequence) -> Option<Sequence> {
        if self.is_empty() {
            return None;
        }
        self.lists.pin().iter().filter_map(|list| list.tombstones.covering(key, at)).max()
    }

    /// The lists as they are now.
    pub(crate) fn lists(&self) -> Vec<Arc<RangeTombstones>> {
        self.lists.pin().iter().map(|list| Arc::clone(&list.tombstones)).collect()
    }

    /// What those see of all who read at one of these numbers, which ascend, or at a later one; as one list.
    pub(crate) fn visible_at(&self, snapshots: &[Sequence]) -> RangeTombstones {
        let written = lock(&self.written);
        RangeTombstones::visible_at(written.iter().map(WrittenDelete::as_delete), snapshots)
    }

    /// Calls `f` with each deletion as it was written.
    pub(crate) fn for_each_written(&self, f: impl FnMut(&WrittenDelete)) {
        lock(&self.written).iter().for_each(f);
    }

    pub(crate) fn size_bytes(&self) -> usize {
        self.size_bytes.load(Ordering::Relaxed)
    }
}

impl WrittenDelete {
    fn as_delete(&self) -> RangeDelete<'_> {
        RangeDelete { from: &self.from, to: &self.to, sequence: self.sequence }
    }
}

/// The last two lists as one, if they are of a size.
fn join_last(lists: &[List]) -> Option<List> {
    let [.., older, newer] = lists else { return None };
    if older.deletes != newer.deletes {
        return None;
    }
    let deletes = older.deletes + newer.deletes;
    let joined = RangeTombstones::of(older.tombstones.pieces().chain(newer.tombstones.pieces()));
    let is_small = joined.len() <= PIECES_PER_DELETE_MAX * deletes;
    is_small.then(|| List { deletes, tombstones: Arc::new(joined) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_lists_hold_many_deletions_and_each_is_found() {
        let ranges = MemtableRanges::new();
        assert!(ranges.is_empty() && ranges.covering(b"a", Sequence::MAX).is_none());
        for number in 0..1000u64 {
            let (from, to) = (number * 7 % 1000, number * 7 % 1000 + 2);
            ranges.insert(&from.to_be_bytes(), &to.to_be_bytes(), Sequence(number));
        }
        assert!(ranges.lists().len() <= 10, "{} lists", ranges.lists().len());
        let snapshots = [0, 10, 500, 1000];
        let all = ranges.visible_at(&snapshots.map(Sequence));
        for number in 0..1002u64 {
            for at in snapshots {
                let (key, at) = (number.to_be_bytes(), Sequence(at));
                assert_eq!(ranges.covering(&key, at), all.covering(&key, at));
            }
        }
    }

    #[test]
    fn ranges_within_ranges_take_no_more_room_than_their_number() {
        let ranges = MemtableRanges::new();
        for number in 0..2000u64 {
            let (from, to) = (number, 10_000 - number);
            ranges.insert(&from.to_be_bytes(), &to.to_be_bytes(), Sequence(number));
        }
        let pieces: usize = ranges.lists().iter().map(|list| list.len()).sum();
        assert!(pieces <= 2000 * PIECES_PER_DELETE_MAX, "{pieces}");
        assert_eq!(ranges.covering(&5000u64.to_be_bytes(), Sequence::MAX), Some(Sequence(1999)));
        assert_eq!(ranges.covering(&5000u64.to_be_bytes(), Sequence(70)), Some(Sequence(70)));
    }
}
