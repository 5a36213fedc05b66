//! The contents of memtables in the order of their writes, for logs: entries and range deletions.
//! ```text
//! memtable   a9 a4 b7 c5 c6      by key
//! writes     4 5 6 7 9           by sequence number; the entries are borrowed
//! groups     [4 5 6 7] [9]       consecutive numbers, of bounded length
//! ```
//! Invariant: a group stays far below the maximum length of a log record, however large the
//! memtable.

use crate::entries::entry::{Entry, Kind, Sequence, WRITE_BYTES};
use crate::entries::keyspace_id::KeyspaceId;
use crate::entries::memtable::Memtable;
use crate::entries::tombstones::RangeDelete;

/// Target size of a group in bytes. The write that exceeds it is still included.
pub(crate) const GROUP_BYTES: usize = 1 << 20;

/// A write of a memtable. A range deletion is an entry whose value is the exclusive end of the
/// range.
#[derive(Clone, Copy)]
pub(crate) struct MemtableWrite<'m> {
    pub(crate) keyspace: KeyspaceId,
    pub(crate) entry: Entry<'m>,
}

impl<'m> MemtableWrite<'m> {
    /// Returns the write as the log takes it: key space, kind, key, value.
    pub(crate) fn as_logged(&self) -> (KeyspaceId, Kind, &'m [u8], &'m [u8]) {
        let Entry { kind, key, value, .. } = self.entry;
        (self.keyspace, kind, key, value)
    }
}

/// Returns the writes of the memtables of key spaces up to `last`, sorted by sequence number and
/// borrowed.
pub(crate) fn writes_up_to<'m>(
    memtables: impl Iterator<Item = (KeyspaceId, &'m Memtable)>,
    last: Sequence,
) -> Vec<MemtableWrite<'m>> {
    let mut writes = Vec::new();
    for (keyspace, memtable) in memtables {
        let ranges = memtable.ranges().written().map(|RangeDelete { from, to, sequence }| Entry {
            key: from,
            sequence,
            kind: Kind::DeleteRange,
            value: to,
        });
        let entries = memtable.entries().chain(ranges).filter(|entry| entry.sequence <= last);
        writes.extend(entries.map(|entry| MemtableWrite { keyspace, entry }));
    }
    writes.sort_unstable_by_key(|write| write.entry.sequence);
    writes
}

/// Splits the writes into groups for a log. Requires: they are sorted by sequence number.
pub(crate) fn groups<'w, 'm>(
    mut rest: &'w [MemtableWrite<'m>],
) -> impl Iterator<Item = &'w [MemtableWrite<'m>]> + use<'w, 'm> {
    std::iter::from_fn(move || {
        let (group, later) = rest.split_at_checked(group_len(rest)?)?;
        rest = later;
        Some(group)
    })
}

/// Returns the length of the first group: writes with consecutive numbers that fit. `None`: there
/// are no writes.
fn group_len(writes: &[MemtableWrite<'_>]) -> Option<usize> {
    let mut bytes = 0;
    let goes_on = |pair: &&[MemtableWrite<'_>]| {
        let (one, next) = (&pair[0].entry, &pair[1].entry);
        bytes += one.key.len() + one.value.len() + WRITE_BYTES;
        one.sequence.0 + 1 == next.sequence.0 && bytes < GROUP_BYTES
    };
    (!writes.is_empty()).then(|| 1 + writes.windows(2).take_while(goes_on).count())
}
