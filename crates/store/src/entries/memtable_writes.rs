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
use crate::entries::memtable::Memtable;

/// Bytes of one group, about: it has one write more than fit.
pub(crate) const GROUP_BYTES: usize = 1 << 20;

/// A write that is in a memtable.
pub(crate) enum Write<'m> {
    /// Where it is.
    Entry(Entry<'m>),
    /// The keys from `from` up to `to` are deleted.
    Range { sequence: Sequence, from: Vec<u8>, to: Vec<u8> },
}

impl Write<'_> {
    pub(crate) fn sequence(&self) -> Sequence {
        match self {
            Write::Entry(entry) => entry.sequence,
            Write::Range { sequence, .. } => *sequence,
        }
    }

    /// As logs take it.
    pub(crate) fn parts(&self) -> (Kind, &[u8], &[u8]) {
        match self {
            Write::Entry(entry) => (entry.kind, entry.key, entry.value),
            Write::Range { from, to, .. } => (Kind::DeleteRange, from, to),
        }
    }

    fn size_bytes(&self) -> usize {
        let (_, key, value) = self.parts();
        key.len() + value.len() + WRITE_BYTES
    }
}

/// The writes of memtables up to a sequence number, in the order of those.
pub(crate) fn writes_up_to<'m>(
    memtables: impl Iterator<Item = &'m Memtable>,
    last: Sequence,
) -> Vec<Write<'m>> {
    let mut writes = Vec::new();
    for memtable in memtables {
        let entries = memtable.entries().filter(|entry| entry.sequence <= last);
        writes.extend(entries.map(Write::Entry));
        memtable.ranges().for_each_written(|delete| {
            if delete.sequence <= last {
                let (from, to) = (delete.from.to_vec(), delete.to.to_vec());
                writes.push(Write::Range { sequence: delete.sequence, from, to });
            }
        });
    }
    writes.sort_unstable_by_key(Write::sequence);
    writes
}

/// The writes in groups that a log can take. Requires: they are in the order of their sequence
/// numbers.
pub(crate) fn groups<'w, 'm>(
    mut rest: &'w [Write<'m>],
) -> impl Iterator<Item = &'w [Write<'m>]> + use<'w, 'm> {
    std::iter::from_fn(move || {
        let (group, later) = rest.split_at_checked(group_len(rest)?)?;
        rest = later;
        Some(group)
    })
}

/// How many of the writes follow each other without a gap and fit into one group. None: there is
/// none.
fn group_len(writes: &[Write<'_>]) -> Option<usize> {
    let mut bytes = 0;
    let goes_on = |pair: &&[Write<'_>]| {
        bytes += pair[0].size_bytes();
        pair[0].sequence().0 + 1 == pair[1].sequence().0 && bytes < GROUP_BYTES
    };
    (!writes.is_empty()).then(|| 1 + writes.windows(2).take_while(goes_on).count())
}
