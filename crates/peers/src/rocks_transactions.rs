//! RocksDB's optimistic transactions behind the `Engine` trait.
//! ```text
//! get     GetForUpdate at the transaction's snapshot: the commit checks for writes of others
//! scan    an iterator at the snapshot. The commit does not check what it shows, except in
//!         CheckedRocks: GetForUpdate of each key. New keys between them stay unseen: RocksDB
//!         cannot check ranges.
//! ```
//! A transaction without writes is not committed: it has read one snapshot anyway.
//!
//! Invariant: key spaces are column families with the same options and one block cache.

use std::cell::Cell;
use std::path::Path;

use rocksdb::{
    ColumnFamily, ColumnFamilyDescriptor, ErrorKind, FlushOptions, OptimisticTransactionDB,
    OptimisticTransactionOptions, Options, ReadOptions, SnapshotWithThreadMode, Transaction,
    WaitForCompactOptions, WriteOptions,
};
use trommel_lab::{
    Attempt, Engine, LabError, OpenTransaction, Peer, PeerSettings, Space, TransactionWork,
    TransactionalStore,
};

use crate::rocks::{Rocks, failed, options_named, settings_named};

type Result<T> = std::result::Result<T, LabError>;
type Db = OptimisticTransactionDB;

/// The engine RocksDB, with transactions that also check the keys that scans have shown.
pub(crate) struct CheckedRocks;

impl Engine for CheckedRocks {
    fn name(&self) -> &'static str {
        "rocksdb-checked"
    }

    fn filters(&self) -> Vec<String> {
        Rocks.filters()
    }

    fn open(&self, folder: &Path, filter: &str, settings: &PeerSettings) -> Result<Box<dyn Peer>> {
        Rocks.open(folder, filter, settings)
    }

    fn open_transactional(
        &self,
        folder: &Path,
        filter: &str,
        settings: &PeerSettings,
        spaces: &[&str],
    ) -> Result<Option<Box<dyn TransactionalStore>>> {
        open(folder, (filter, true), settings, spaces).map(Some)
    }
}

struct OpenSpaces {
    db: Db,
    names: Vec<String>,
    checks_scans: bool,
    writes: WriteOptions,
    settings: String,
}

/// Opens RocksDB with its column families. The first one is the default family.
pub(crate) fn open(
    folder: &Path,
    (filter, checks_scans): (&str, bool),
    settings: &PeerSettings,
    spaces: &[&str],
) -> Result<Box<dyn TransactionalStore>> {
    let mut options: Options = options_named(filter, settings)?;
    options.create_missing_column_families(true);
    let others = spaces.iter().skip(1).map(|name| name.to_string());
    let names: Vec<String> = std::iter::once("default".to_string()).chain(others).collect();
    // All clones of the options share one table factory, so one cache.
    let families = names.iter().map(|name| ColumnFamilyDescriptor::new(name, options.clone()));
    let db = Db::open_cf_descriptors(&options, folder, families).map_err(failed)?;
    let scans =
        if checks_scans { "keys that scans show are checked" } else { "scans are not checked" };
    let settings = format!(
        "{}; column families: {}; optimistic transactions, {scans}",
        settings_named(filter, settings)?,
        names.len(),
    );
    Ok(Box::new(OpenSpaces { db, names, checks_scans, writes: WriteOptions::default(), settings }))
}

impl OpenSpaces {
    fn family(&self, space: Space) -> &ColumnFamily {
        self.db.cf_handle(&self.names[space.0]).expect("it was opened")
    }

    fn begin(&self) -> Transaction<'_, Db> {
        let mut options = OptimisticTransactionOptions::default();
        options.set_snapshot(true);
        self.db.transaction_opt(&self.writes, &options)
    }
}

/// Whether the error is a conflict, so that the transaction is to be tried again.
fn is_conflict(error: &rocksdb::Error) -> bool {
    matches!(error.kind(), ErrorKind::Busy | ErrorKind::TryAgain)
}

struct Open<'a> {
    store: &'a OpenSpaces,
    transaction: &'a Transaction<'a, Db>,
    snapshot: &'a SnapshotWithThreadMode<'a, Transaction<'a, Db>>,
    reads: &'a ReadOptions,
    has_written: Cell<bool>,
}

impl OpenTransaction for Open<'_> {
    fn get(&self, space: Space, key: &[u8], seen: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let family = self.store.family(space);
        let value = self
            .transaction
            .get_pinned_for_update_cf_opt(family, key, true, self.reads)
            .map_err(failed)?;
        if let Some(value) = &value {
            seen(value);
        }
        Ok(value.is_some())
    }

    fn scan(
        &self,
        space: Space,
        (from, before): (&[u8], Option<&[u8]>),
        limit: usize,
        seen: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<usize> {
        if before.is_some_and(|before| before <= from) {
            return Ok(0);
        }
        let mut options = ReadOptions::default();
        options.set_snapshot(self.snapshot);
        if let Some(before) = before {
            options.set_iterate_upper_bound(before);
        }
        let family = self.store.family(space);
        let mut iterator = self.transaction.raw_iterator_cf_opt(family, options);
        iterator.seek(from);
        let mut count = 0;
        while count < limit {
            let Some((key, value)) = iterator.item() else { break };
            seen(key, value);
            if self.store.checks_scans {
                self.get(space, key, &mut |_| {})?;
            }
            count += 1;
            if count < limit {
                iterator.next();
            }
        }
        iterator.status().map_err(failed)?;
        Ok(count)
    }

    fn put(&self, space: Space, key: &[u8], value: &[u8]) -> Result<()> {
        self.has_written.set(true);
        self.transaction.put_cf(self.store.family(space), key, value).map_err(failed)
    }
}

impl TransactionalStore for OpenSpaces {
    fn settings(&self) -> String {
        self.settings.clone()
    }

    fn put(&self, space: Space, key: &[u8], value: &[u8]) -> Result<()> {
        self.db.put_cf_opt(self.family(space), key, value, &self.writes).map_err(failed)
    }

    /// Runs transactions until one commits, because RocksDB has no such operation.
    fn put_if_absent(&self, space: Space, key: &[u8], value: &[u8]) -> Result<bool> {
        loop {
            let done = self.attempt(&mut |open| {
                if open.get(space, key, &mut |_| {})? {
                    return Ok(false);
                }
                open.put(space, key, value).map(|()| true)
            })?;
            match done {
                Attempt::Conflict => {}
                done => return Ok(done == Attempt::Committed),
            }
        }
    }

    fn attempt(&self, work: &mut TransactionWork<'_>) -> Result<Attempt> {
        let transaction = self.begin();
        let has_written = {
            let snapshot = transaction.snapshot();
            let mut reads = ReadOptions::default();
            reads.set_snapshot(&snapshot);
            let open = Open {
                store: self,
                transaction: &transaction,
                snapshot: &snapshot,
                reads: &reads,
                has_written: Cell::new(false),
            };
            if !work(&open)? {
                return Ok(Attempt::RolledBack);
            }
            open.has_written.get()
        };
        if !has_written {
            return Ok(Attempt::Committed);
        }
        match transaction.commit() {
            Ok(()) => Ok(Attempt::Committed),
            Err(error) if is_conflict(&error) => Ok(Attempt::Conflict),
            Err(error) => Err(failed(error)),
        }
    }

    fn flush(&self) -> Result<()> {
        let mut options = FlushOptions::default();
        options.set_wait(true);
        let mut spaces = (0..self.names.len()).map(Space);
        spaces.try_for_each(|space| {
            self.db.flush_cf_opt(self.family(space), &options).map_err(failed)
        })
    }

    fn settle(&self) -> Result<()> {
        self.db.wait_for_compact(&WaitForCompactOptions::default()).map_err(failed)
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}
