//! The store of a kill test with its key spaces: neighbouring slots are in different ones, so that
//! most batches are over all of them.

use trommel::{Batch, Db, Keyspace, KeyspaceOptions};

use super::history::{bytes_of, key_of};
use crate::keys::rng::Rng;

/// Key spaces, the default one among them.
pub(super) const SPACES: usize = 4;

/// A store that is open, with all of its key spaces.
pub(super) struct Spaces {
    pub(super) db: Db,
    handles: Vec<Keyspace>,
}

impl Spaces {
    /// Opens them, each with options of its own. Those that are not there are made.
    pub(super) fn open(db: Db, rng: &mut Rng) -> trommel::Result<Self> {
        let mut handles = vec![Keyspace::clone(&db)];
        for number in 1..SPACES {
            let options = KeyspaceOptions::from(super::child::options(rng));
            handles.push(db.keyspace(format!("space {number}"), options)?);
        }
        Ok(Spaces { db, handles })
    }

    pub(super) fn all(&self) -> &[Keyspace] {
        &self.handles
    }

    /// The key space of a slot.
    pub(super) fn of(&self, slot: usize) -> &Keyspace {
        &self.handles[space_of(slot)]
    }

    /// Has a batch go on in the key space of a slot; gives the slot's key.
    pub(super) fn enter(&self, batch: &mut Batch, lane: usize, slot: usize) -> Vec<u8> {
        batch.to(self.of(slot));
        key_of(lane, slot)
    }

    /// Whether a slot has a value, or none if it is 0.
    pub(super) fn has(&self, lane: usize, slot: usize, value: u64) -> trommel::Result<bool> {
        let found = self.of(slot).get(key_of(lane, slot))?;
        Ok(found.as_deref() == (value != 0).then(|| bytes_of(value)).as_deref())
    }
}

/// The number of a slot's key space.
pub(super) fn space_of(slot: usize) -> usize {
    slot % SPACES
}
