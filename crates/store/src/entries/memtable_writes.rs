//! What memtables hold as it was written, for logs: entries and deletions of ranges, from old to
//! new.
//! ```text
//! memtable   a9 a4 b7 c5 c6      by key
//! writes     4 5 6 7 9           by sequence number: the entries themselves stay where they are
//! groups     [4 5 6 7] [9]       without a gap, and none much longer than a bound
//! ```
//! Invariant: a group's length stays far below what a record of a log can have, however large a
//! memtable is.

use crate::entries::entry::{Entry, Kind, Sequence, WRITE_BYTES};
use crate::entries::keyspace_id::KeyspaceId;
use crate::entries::memtable::Memtable;
use crate::entries::tombstones::RangeDelete;

/// Bytes of one group, about: it has one write more than fit.
pub(crate) const GROUP_BYTES: usize = 1 << 20;

/// A write of a memtable. A deletion of a range is an entry here, whose value is the key behind its
/// last one.
#[derive(Clone, Copy)]
pub(crate) struct MemtableWrite<'m> {
    pub(crate) keyspace: KeyspaceId,
    pub(crate) entry: Entry<'m>,
}

impl<'m> MemtableWrite<'m> {
    /// As a log takes it.
    pub(crate) fn as_logged(&self) -> (KeyspaceId, Kind, &'m [u8], &'m [u8]) {
        let Entry { kind, key, value, .. } = self.entry;
        (self.keyspace, kind, key, value)
    }
}

/// The writes of the memtables of key spaces up to a sequence number, in the order of those, where
/// they are.
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

/// The writes in groups that a log can take. Requires: they are in the order of their sequence
/// numbers.
pub(crate) fn groups<'w, 'm>(
    mut rest: &'w [MemtableWrite<'m>],
) -> impl Iterator<Item = &'w [MemtableWrite<'m>]> + use<'w, 'm> {
    std::iter::from_fn(move || {
        let (group, later) = rest.split_at_checked(group_len(rest)?)?;
        rest = later;
        Some(group)
    })
}

/// How many of the writes follow each other without a gap and fit into one group. None: there is
/// none.
fn group_len(writes: &[MemtableWrite<'_>]) -> Option<usize> {
    let mut bytes = 0;
    let goes_on = |pair: &&[MemtableWrite<'_>]| {
        let (one, next) = (&pair[0].entry, &pair[1].entry);
        bytes += one.key.len() + one.value.len() + WRITE_BYTES;
        one.sequence.0 + 1 == next.sequence.0 && bytes < GROUP_BYTES
    };
    (!writes.is_empty()).then(|| 1 + writes.windows(2).take_while(goes_on).count())
}
