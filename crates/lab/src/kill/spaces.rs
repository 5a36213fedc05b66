//! The store of a kill test and its key spaces. Neighbouring slots are in different key spaces, so
//! most batches cover all of them.

use std::io::Read;
use std::sync::Arc;

use trommel::{Batch, Db, Keyspace, KeyspaceOptions};

use super::history::{bytes_of, key_of};
use crate::keys::rng::{Rng, scramble};

/// The number of key spaces, including the default one.
pub(super) const SPACES: usize = 4;

/// The key space that has no log in half of the tests.
pub(super) const UNLOGGED: usize = 3;

/// Whether a key space of the test has no log.
pub(super) fn has_unlogged(seed: u64) -> bool {
    scramble(seed).is_multiple_of(2)
}

/// An open store with all its key spaces.
pub(super) struct Spaces {
    pub(super) db: Db,
    handles: Vec<Keyspace>,
}

impl Spaces {
    /// Opens the key spaces, each with its own options. Missing ones are created.
    pub(super) fn open(db: Db, rng: &mut Rng, has_unlogged: bool) -> trommel::Result<Self> {
        let mut handles = vec![Keyspace::clone(&db)];
        for number in 1..SPACES {
            let has_log = !has_unlogged || number != UNLOGGED;
            let options = KeyspaceOptions::from(super::child::options(rng)).log(has_log);
            handles.push(db.keyspace(format!("space {number}"), options)?);
        }
        Ok(Spaces { db, handles })
    }

    pub(super) fn all(&self) -> &[Keyspace] {
        &self.handles
    }

    /// Returns the key space of a slot.
    pub(super) fn of(&self, slot: usize) -> &Keyspace {
        &self.handles[space_of(slot)]
    }

    /// Directs further writes of a batch to the key space of a slot. Returns the slot's key.
    pub(super) fn enter(&self, batch: &mut Batch, lane: usize, slot: usize) -> Vec<u8> {
        batch.to(self.of(slot));
        key_of(lane, slot)
    }

    /// Whether a slot has this value; 0 means no value. Some values are also read as a stream.
    pub(super) fn has(&self, lane: usize, slot: usize, value: u64) -> trommel::Result<bool> {
        let (space, key) = (self.of(slot), key_of(lane, slot));
        let found = space.get(&key)?;
        let expected = (value != 0).then(|| bytes_of(value));
        if scramble(value).is_multiple_of(3) {
            let mut read = Vec::new();
            if let Some(mut reader) = space.get_reader(&key)? {
                let path = || key.escape_ascii().to_string().into();
                let failed = |error| trommel::Error::Io { path: path(), source: Arc::new(error) };
                reader.read_to_end(&mut read).map_err(failed)?;
            }
            return Ok(
                found.as_deref() == expected.as_deref() && read == expected.unwrap_or_default()
            );
        }
        Ok(found.as_deref() == expected.as_deref())
    }
}

/// Returns the number of a slot's key space.
pub(super) fn space_of(slot: usize) -> usize {
    slot % SPACES
}
