//! Passes writes of a history to the store: singly if possible, otherwise as a batch.
//! ```text
//! one put -> put, put_ttl    one deletion -> delete, delete_range    several, or synced -> a batch
//! ```
//! Invariant: the store receives exactly these writes, as one group.

use trommel::{Batch, Db, Expiry};

use super::keys::Keys;
use super::model::{expiry_of, value_of};
use super::operation::Write;
use super::setup;
use super::values::put;

/// The bounds of a range to delete.
pub(crate) type DeletedRange = (Vec<u8>, Vec<u8>);

/// A store, and the keys and the time of writes to it.
pub(crate) struct Writer<'w> {
    pub(crate) db: &'w Db,
    pub(crate) keys: &'w Keys,
    pub(crate) tick: u32,
}

impl Writer<'_> {
    pub(crate) fn write(&self, writes: &[Write], synced: bool) -> trommel::Result<()> {
        match writes {
            [write] if !synced && write.number == 0 => {
                return self.db.delete(self.keys.get(write.place));
            }
            [write] if !synced => return self.put(write),
            _ => {}
        }
        let mut batch = Batch::new();
        self.fill(&mut batch, writes);
        self.write_batch(batch, synced)
    }

    /// Deletes ranges, between other writes.
    pub(crate) fn delete_ranges(
        &self,
        before: &[Write],
        ranges: &[DeletedRange],
        after: &[Write],
        synced: bool,
    ) -> trommel::Result<()> {
        if let ([(from, to)], [], [], false) = (ranges, before, after, synced) {
            return self.db.delete_range(from, to);
        }
        let mut batch = Batch::new();
        self.fill(&mut batch, before);
        for (from, to) in ranges {
            batch.delete_range(from, to);
        }
        self.fill(&mut batch, after);
        self.write_batch(batch, synced)
    }

    /// Loads writes past the log. Requires: keys ascend, each once, and nothing is deleted.
    pub(crate) fn ingest(&self, writes: &[Write]) -> trommel::Result<()> {
        let entries = writes.iter().map(|w| (self.keys.get(w.place), value_of(w.number)));
        self.db.ingest(entries).map(|_| ())
    }

    fn write_batch(&self, batch: Batch, synced: bool) -> trommel::Result<()> {
        if synced { self.db.write_synced(batch) } else { self.db.write(batch) }
    }

    fn fill(&self, batch: &mut Batch, writes: &[Write]) {
        for write in writes {
            let key = self.keys.get(write.place);
            match (write.number, expiry_of(write.number)) {
                (0, _) => batch.delete(key),
                (number, None) => batch.put(key, value_of(number)),
                (number, Some(tick)) => {
                    batch.put_with_expiry(key, value_of(number), expiry_at(tick))
                }
            };
        }
    }

    fn put(&self, write: &Write) -> trommel::Result<()> {
        let (key, value) = (self.keys.get(write.place), value_of(write.number));
        let Some(tick) = expiry_of(write.number) else {
            return put(self.db, key, write.number, value);
        };
        let left = tick.saturating_sub(self.tick);
        self.db.put_ttl(key, value, setup::INTERVAL * left)
    }
}

/// Returns the time of a tick.
pub(crate) fn expiry_at(tick: u32) -> Expiry {
    Expiry::at_milliseconds((setup::INTERVAL * tick).as_millis() as u64)
}
