//! The interface of cursors over sorted entries, wherever these lie.
//! ```text
//! past the start   entry   entry   entry   past the end
//!                    <- prev         next ->
//! ```
//! Invariant: a cursor returns entries in the order of entries, each once. After an error it is
//! past an end until it is positioned again.

use std::ops::AddAssign;

use crate::entries::entry::{Entry, Sequence};
use crate::entries::value::Value;
use crate::error::Result;

/// Counts of what a cursor read from tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reads {
    /// Data blocks requested, including those found in the cache.
    pub(crate) blocks: u64,
    /// Data blocks read from the disk.
    pub(crate) disk_reads: u64,
    /// Bytes read from the disk.
    pub(crate) bytes: u64,
}

impl AddAssign for Reads {
    fn add_assign(&mut self, other: Reads) {
        self.blocks += other.blocks;
        self.disk_reads += other.disk_reads;
        self.bytes += other.bytes;
    }
}

/// What a cursor over several runs has read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunsRead {
    /// Runs of which it has read anything.
    pub(crate) positioned: u64,
    /// Those of them that supplied an entry.
    pub(crate) useful: u64,
}

/// A position among sorted entries: at an entry, or past either end.
pub(crate) trait Cursor {
    /// Moves to the first entry whose user key is at or after `key`. It is the newest version of
    /// that key.
    fn seek(&mut self, key: &[u8]) -> Result<()>;
    /// Moves to the first entry at or after (key, at) in the order of entries. Of that key, this is
    /// the newest with a sequence number of at most `at`. Requires: the cursor was positioned at
    /// this key.
    fn seek_version(&mut self, key: &[u8], at: Sequence) -> Result<()>;
    /// Moves to the first entry.
    fn seek_first(&mut self) -> Result<()> {
        self.seek(&[])
    }
    /// Moves to the last entry whose user key is before `key`. It is the oldest version of that
    /// key.
    fn seek_before(&mut self, key: &[u8]) -> Result<()>;
    /// Moves to the last entry.
    fn seek_last(&mut self) -> Result<()>;
    /// Moves to the next entry. Requires: at an entry.
    fn next(&mut self) -> Result<()>;
    /// Moves to the previous entry. Requires: at an entry.
    fn prev(&mut self) -> Result<()>;
    /// Moves to the next entry that is newer than a range tombstone with this sequence number. A
    /// cursor without a faster way moves by one entry. Requires: at an entry that is older. Its
    /// source holds that tombstone, or was written after everything older than it.
    fn next_newer(&mut self, _than: Sequence) -> Result<()> {
        self.next()
    }
    /// Does the same, to the nearest such entry before.
    fn prev_newer(&mut self, _than: Sequence) -> Result<()> {
        self.prev()
    }
    /// The current entry. `None`: past either end.
    fn entry(&self) -> Option<Entry<'_>>;
    /// Whether the entry is the newest of its key here, and the previous entry lies in another
    /// block. False: unknown.
    fn ends_key_and_block(&self) -> bool {
        false
    }
    /// Returns a handle on the current entry's value. Requires: at an entry.
    fn value(&self) -> Value;
    /// Returns what was read since the last call.
    fn reads(&mut self) -> Reads;
    /// Returns which runs the cursor has read, if it is a cursor over several. Such a cursor has
    /// one entry for each key.
    fn runs_read(&self) -> Option<RunsRead> {
        None
    }
}

#[cfg(test)]
pub(crate) mod checks {
    //! Tests of any cursor, against a sorted list of entries.

    use super::*;
    use crate::entries::entry::{Kind, order};
    use proptest::prelude::*;
    use proptest::sample::Index;

    /// Key, sequence number, kind, value.
    pub(crate) type Owned = (Vec<u8>, u64, Kind, Vec<u8>);

    pub(crate) fn entry((key, sequence, kind, value): &Owned) -> Entry<'_> {
        Entry { key, sequence: Sequence(*sequence), kind: *kind, value }
    }

    /// Sorts entries and removes duplicates.
    pub(crate) fn sorted(mut list: Vec<Owned>) -> Vec<Owned> {
        list.sort_by(|a, b| order((&a.0, Sequence(a.1)), (&b.0, Sequence(b.1))));
        list.dedup_by(|a, b| (&a.0, a.1) == (&b.0, b.1));
        list
    }

    /// Any entries in any order. Keys use a small alphabet, so that prefixes and versions abound.
    pub(crate) fn any_entries(count_max: usize) -> impl Strategy<Value = Vec<Owned>> {
        let byte = prop::sample::select(vec![0u8, 1, b'a', 0xff]);
        let kind = prop::sample::select(vec![Kind::Put, Kind::Delete]);
        let one = (
            prop::collection::vec(byte, 0..12),
            0u64..40,
            kind,
            prop::collection::vec(any::<u8>(), 0..20),
        );
        prop::collection::vec(one, 1..count_max)
    }

    /// Moves: which one, and where to take its key from.
    pub(crate) fn any_moves() -> impl Strategy<Value = Vec<(u8, Index)>> {
        prop::collection::vec((0u8..14, any::<Index>()), 1..80)
    }

    /// Applies the moves to the cursor and to a position in the list, and compares. Requires: the
    /// list is sorted and not empty.
    pub(crate) fn follows(cursor: &mut dyn Cursor, list: &[Owned], moves: &[(u8, Index)]) {
        let mut place: Option<usize> = None;
        assert_eq!(cursor.entry(), None, "a new cursor is at no entry");
        for (action, index) in moves {
            let mut key = list[index.index(list.len())].0.clone();
            match index.index(5) {
                0 => key.push(0),
                1 => drop(key.pop()),
                _ => {}
            }
            let first_at = list.partition_point(|owned| owned.0 < key);
            let there = place.filter(|&at| at < list.len());
            (place, _) = match (action, there) {
                (0, _) => (Some(first_at), cursor.seek(&key).unwrap()),
                (1, _) => (first_at.checked_sub(1), cursor.seek_before(&key).unwrap()),
                (2, _) => (Some(0), cursor.seek_first().unwrap()),
                (3, _) => (Some(list.len() - 1), cursor.seek_last().unwrap()),
                (4..8, Some(at)) => (Some(at + 1), cursor.next().unwrap()),
                (8..12, Some(at)) => (at.checked_sub(1), cursor.prev().unwrap()),
                (12.., Some(here)) => {
                    let key = &list[here].0;
                    let at = Sequence(index.index(41) as u64);
                    let before =
                        |owned: &Owned| order((&owned.0, Sequence(owned.1)), (key, at)).is_lt();
                    (Some(list.partition_point(before)), cursor.seek_version(key, at).unwrap())
                }
                _ => continue,
            };
            let expected = place.and_then(|at| list.get(at)).map(entry);
            assert_eq!(cursor.entry(), expected);
            if let Some(entry) = expected {
                assert_eq!(cursor.value(), entry.value);
            }
        }
    }
}
