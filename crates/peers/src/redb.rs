//! redb behind the `Engine` trait: a B-tree in one file, which readers share. One writer at a time
//! copies what it changes.
//! ```text
//! put --> a transaction of its own, not durable: in memory until a durable one
//!     --> flush: a durable one
//! ```
//! Invariant: redb has no log. When a put returns, it is not even in the system's page cache, to
//! which other stores write their logs.

use std::ops::Bound;
use std::path::Path;

use redb::{Database, Durability, ReadableDatabase, TableDefinition};
use trommel_lab::{Engine, LabError, Peer, PeerSettings, PeerShape};

use crate::lock::version_of;

type Result<T> = std::result::Result<T, LabError>;

/// The engine redb.
pub(crate) struct Redb;

struct Opened {
    db: Database,
    settings: String,
}

const KEYS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("keys");

impl Engine for Redb {
    fn name(&self) -> &'static str {
        "redb"
    }

    fn filters(&self) -> Vec<String> {
        vec!["none".into()]
    }

    fn open(&self, folder: &Path, filter: &str, settings: &PeerSettings) -> Result<Box<dyn Peer>> {
        if filter != "none" {
            return Err(LabError::Plan(format!("no filter '{filter}'")));
        }
        if matches!(settings.shape, PeerShape::Runs(_)) {
            return Err(LabError::Plan("redb has no runs: --shape default".into()));
        }
        let mut builder = Database::builder();
        let db =
            builder.set_cache_size(settings.block_cache_bytes).create(folder.join("keys.redb"));
        let settings = format!(
            "redb {}; a B-tree, pages of 4096 bytes; no filter; cache {} MiB, read and written, no compression, through the system's \
             cache; no log: a put is a transaction that is durable with the next flush; else defaults",
            version_of("redb"),
            settings.block_cache_bytes >> 20,
        );
        let opened = Opened { db: db.map_err(failed)?, settings };
        // This creates the table, so that readers find it.
        opened.write(Durability::Immediate, |_| Ok(()))?;
        Ok(Box::new(opened))
    }
}

fn failed(error: impl Into<redb::Error>) -> LabError {
    LabError::Peer(format!("redb: {}", error.into()))
}

type Table<'t> = redb::Table<'t, &'static [u8], &'static [u8]>;

impl Opened {
    /// Runs a write transaction on the table, and commits it.
    fn write(
        &self,
        durability: Durability,
        change: impl FnOnce(&mut Table<'_>) -> std::result::Result<(), redb::StorageError>,
    ) -> Result<()> {
        let mut transaction = self.db.begin_write().map_err(failed)?;
        transaction.set_durability(durability).map_err(failed)?;
        let mut table = transaction.open_table(KEYS).map_err(failed)?;
        change(&mut table).map_err(failed)?;
        drop(table);
        transaction.commit().map_err(failed)
    }
}

impl Peer for Opened {
    fn settings(&self) -> String {
        self.settings.clone()
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.write(Durability::None, |table| table.insert(key, value).map(drop))
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        self.write(Durability::None, |table| table.remove(key).map(drop))
    }

    fn get(&self, key: &[u8], seen: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let transaction = self.db.begin_read().map_err(failed)?;
        let table = transaction.open_table(KEYS).map_err(failed)?;
        let value = table.get(key).map_err(failed)?;
        if let Some(value) = &value {
            seen(value.value());
        }
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
        let transaction = self.db.begin_read().map_err(failed)?;
        let table = transaction.open_table(KEYS).map_err(failed)?;
        let end = before.map_or(Bound::Unbounded, Bound::Excluded);
        let entries = table.range::<&[u8]>((Bound::Included(from), end)).map_err(failed)?;
        let mut count = 0;
        for entry in entries.take(limit) {
            let (key, value) = entry.map_err(failed)?;
            seen(key.value(), value.value());
            count += 1;
        }
        Ok(count)
    }

    fn flush(&self) -> Result<()> {
        self.write(Durability::Immediate, |_| Ok(()))
    }

    /// Does nothing: redb has no background work.
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
