//! LMDB behind the `Engine` trait: a B-tree in one memory-mapped file, with one writer at a time,
//! which copies the pages that it changes.
//! ```text
//! put --> a transaction of its own: written to the file, not synced
//!     --> flush: synced
//! ```
//! Invariant: LMDB has no log and no cache of its own. Pages are in the system's page cache.

use std::ops::Bound;
use std::path::Path;

use heed::types::Bytes;
use heed::{Database, Env, EnvFlags, EnvOpenOptions, RwTxn};
use trommel_lab::{Engine, LabError, Peer, PeerSettings, PeerShape};

use crate::lock::version_of;

type Result<T> = std::result::Result<T, LabError>;

/// The engine LMDB.
pub(crate) struct Lmdb;

struct Opened {
    env: Env,
    keys: Database<Bytes, Bytes>,
    settings: String,
}

/// Bytes of address space that are reserved for the file, which grows as it is written.
const MAPPED_BYTES: usize = 1 << 38;

impl Engine for Lmdb {
    fn name(&self) -> &'static str {
        "lmdb"
    }

    fn filters(&self) -> Vec<String> {
        vec!["none".into()]
    }

    fn open(&self, folder: &Path, filter: &str, settings: &PeerSettings) -> Result<Box<dyn Peer>> {
        if filter != "none" {
            return Err(LabError::Plan(format!("no filter '{filter}'")));
        }
        if matches!(settings.shape, PeerShape::Runs(_)) {
            return Err(LabError::Plan("lmdb has no runs: --shape default".into()));
        }
        let env = open(folder).map_err(failed)?;
        let mut transaction = env.write_txn().map_err(failed)?;
        let keys = env.create_database(&mut transaction, None).map_err(failed)?;
        transaction.commit().map_err(failed)?;
        let settings = format!(
            "LMDB, heed {}; a B-tree, pages of 4096 bytes, mapped; no filter; the system's cache, which it cannot limit to {} MiB; no \
             compression; no log: a put is a transaction that is durable with the next flush; else defaults",
            version_of("heed"),
            settings.block_cache_bytes >> 20,
        );
        Ok(Box::new(Opened { env, keys, settings }))
    }
}

#[expect(unsafe_code, reason = "a file that is mapped, which nobody else changes, and no sync")]
fn open(folder: &Path) -> std::result::Result<Env, heed::Error> {
    let mut options = EnvOpenOptions::new();
    options.map_size(MAPPED_BYTES);
    // SAFETY: the folder belongs to this process alone, and is opened once. Without syncs, a
    // failure of the machine loses the last writes at most.
    unsafe { options.flags(EnvFlags::NO_SYNC).open(folder) }
}

fn failed(error: heed::Error) -> LabError {
    LabError::Peer(format!("LMDB: {error}"))
}

impl Opened {
    /// Runs a write transaction, and commits it.
    fn write(
        &self,
        change: impl FnOnce(&mut RwTxn<'_>) -> std::result::Result<(), heed::Error>,
    ) -> Result<()> {
        let mut transaction = self.env.write_txn().map_err(failed)?;
        change(&mut transaction).map_err(failed)?;
        transaction.commit().map_err(failed)
    }
}

impl Peer for Opened {
    fn settings(&self) -> String {
        self.settings.clone()
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.write(|transaction| self.keys.put(transaction, key, value))
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        self.write(|transaction| self.keys.delete(transaction, key).map(drop))
    }

    fn get(&self, key: &[u8], seen: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let transaction = self.env.read_txn().map_err(failed)?;
        let value = self.keys.get(&transaction, key).map_err(failed)?;
        value.into_iter().for_each(seen);
        Ok(value.is_some())
    }

    fn scan(
        &self,
        from: &[u8],
        before: Option<&[u8]>,
        limit: usize,
        seen: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<usize> {
        if before.is_some_and(|before| before <= from) {
            return Ok(0);
        }
        let transaction = self.env.read_txn().map_err(failed)?;
        // LMDB refuses the empty key, also as a bound.
        let start = if from.is_empty() { Bound::Unbounded } else { Bound::Included(from) };
        let range = (start, before.map_or(Bound::Unbounded, Bound::Excluded));
        let mut count = 0;
        for entry in self.keys.range(&transaction, &range).map_err(failed)?.take(limit) {
            let (key, value) = entry.map_err(failed)?;
            seen(key, value);
            count += 1;
        }
        Ok(count)
    }

    fn flush(&self) -> Result<()> {
        self.env.force_sync().map_err(failed)
    }

    /// Does nothing: LMDB has no background work.
    fn settle(&self) -> Result<()> {
        Ok(())
    }

    /// Flushes only: a B-tree has one sorted order, always.
    fn compact(&self) -> Result<()> {
        self.flush()
    }

    fn runs(&self) -> Result<Option<u64>> {
        Ok(None)
    }

    fn filter_bytes(&self) -> Result<Option<u64>> {
        Ok(None)
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.flush()
    }
}
