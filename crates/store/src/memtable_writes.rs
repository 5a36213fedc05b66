//! What memtables hold as it was written, for logs: entries and deletions of ranges, from old to new.

use crate::cursor::Cursor;
use crate::entry::{Kind, Sequence};
use crate::error::Result;
use crate::memtable::Memtable;
use crate::sync::Arc;
use crate::value::Value;

/// A write that is in a memtable.
pub(crate) struct Write {
    pub(crate) sequence: Sequence,
    kind: Kind,
    key: Vec<u8>,
    value: Payload,
}

enum Payload {
    Value(Value),
    /// The end of a deleted range.
    Key(Vec<u8>),
}

impl Write {
    /// As logs take it.
    pub(crate) fn parts(&self) -> (Kind, &[u8], &[u8]) {
        let value = match &self.value {
            Payload::Value(value) => value,
            Payload::Key(key) => &key[..],
        };
        (self.kind, &self.key, value)
    }

    pub(crate) fn size_bytes(&self) -> usize {
        let (_, key, value) = self.parts();
        key.len() + value.len()
    }
}

/// The writes of memtables up to a sequence number, in the order of those.
pub(crate) fn writes_up_to<'m>(
    memtables: impl Iterator<Item = &'m Arc<Memtable>>,
    last: Sequence,
) -> Result<Vec<Write>> {
    let mut writes = Vec::new();
    for memtable in memtables {
        let mut cursor = memtable.cursor();
        cursor.seek_first()?;
        while let Some(entry) = cursor.entry() {
            if entry.sequence <= last {
                writes.push(Write {
                    sequence: entry.sequence,
                    kind: entry.kind,
                    key: entry.key.to_vec(),
                    value: Payload::Value(cursor.value()),
                });
            }
            cursor.next()?;
        }
        memtable.ranges().for_each_written(|delete| {
            if delete.sequence <= last {
                writes.push(Write {
                    sequence: delete.sequence,
                    kind: Kind::DeleteRange,
                    key: delete.from.to_vec(),
                    value: Payload::Key(delete.to.to_vec()),
                });
            }
        });
    }
    writes.sort_unstable_by_key(|write| write.sequence);
    Ok(writes)
}
