//! Databases with transactions. Reads in a transaction are RocksDB's own. A commit notes its keys.
//! ```text
//! transaction ── put, get, ... : RocksDB        commit ── keys of its batch noted ── RocksDB
//! ```
//! Invariant: only [`Transaction::commit`] commits a transaction.

use std::ops::Deref;
use std::path::Path;

use rocksdb::{
    ColumnFamilyDescriptor, Error, OptimisticTransactionOptions, Options, TransactionDBOptions,
    TransactionOptions, WriteOptions,
};

use crate::base::{Base, RocksOptimisticDb, RocksTransactionDb};
use crate::db::{DoorDb, with_default};
use crate::options::DoorOptions;
use crate::pause::{self, Rule};

/// Like [`Db`](crate::Db), with transactions whose commit fails if something that they read or
/// wrote has changed. The methods are those of [`rocksdb::OptimisticTransactionDB`].
pub type OptimisticTransactionDb = DoorDb<RocksOptimisticDb>;

/// Like [`Db`](crate::Db), with transactions that lock what they write. The methods are those of
/// [`rocksdb::TransactionDB`].
pub type TransactionDb = DoorDb<RocksTransactionDb>;

/// A transaction, with the methods of [`rocksdb::Transaction`].
///
/// [`Transaction::commit`] ends it. Dropping it rolls it back, unless it is prepared: then the next
/// opening has it in [`TransactionDb::prepared_transactions`]. Its reads see its own writes, and do
/// not query the door.
pub struct Transaction<'db, B: Base> {
    db: &'db DoorDb<B>,
    inner: rocksdb::Transaction<'db, B>,
}

impl<'db, B: Base> Transaction<'db, B> {
    /// Commits its writes, unless RocksDB finds a conflict: see [`rocksdb::Transaction::commit`].
    pub fn commit(self) -> Result<(), Error> {
        let batch = self.inner.get_writebatch();
        let is_noted = !pause::is_broken(Rule::Committing);
        let _tickets = is_noted.then(|| self.db.noted_batch(batch.data()));
        self.db.told(self.inner.commit())
    }
}

impl<'db, B: Base> Deref for Transaction<'db, B> {
    type Target = rocksdb::Transaction<'db, B>;

    fn deref(&self) -> &Self::Target {
        &self.inner
    }
}

/// Opening, and beginning transactions.
impl OptimisticTransactionDb {
    /// See [`rocksdb::OptimisticTransactionDB::open_default`].
    pub fn open_default<P: AsRef<Path>>(path: P) -> Result<Self, Error> {
        let mut options = Options::default();
        options.create_if_missing(true);
        Self::open(&options, path)
    }

    /// See [`rocksdb::OptimisticTransactionDB::open`].
    pub fn open<P: AsRef<Path>>(options: &Options, path: P) -> Result<Self, Error> {
        Self::open_cf_descriptors(options, path, [default_family(options)])
    }

    /// See [`rocksdb::OptimisticTransactionDB::open_cf`].
    pub fn open_cf<P, I, N>(options: &Options, path: P, names: I) -> Result<Self, Error>
    where
        P: AsRef<Path>,
        I: IntoIterator<Item = N>,
        N: AsRef<str>,
    {
        Self::open_cf_descriptors(options, path, names.into_iter().map(plain_family))
    }

    /// See [`rocksdb::OptimisticTransactionDB::open_cf_descriptors`].
    pub fn open_cf_descriptors<P, I>(options: &Options, path: P, families: I) -> Result<Self, Error>
    where
        P: AsRef<Path>,
        I: IntoIterator<Item = ColumnFamilyDescriptor>,
    {
        Self::open_with(options, path, families, DoorOptions::default())
    }

    /// Opens a database with these families, and options for the doors.
    pub fn open_with<P, I>(
        options: &Options,
        path: P,
        families: I,
        door_options: DoorOptions,
    ) -> Result<Self, Error>
    where
        P: AsRef<Path>,
        I: IntoIterator<Item = ColumnFamilyDescriptor>,
    {
        let families = with_default(families);
        Self::open_behind(path.as_ref(), families, door_options, |families| {
            RocksOptimisticDb::open_cf_descriptors(options, &path, families)
        })
    }

    /// See [`rocksdb::OptimisticTransactionDB::transaction`].
    pub fn transaction(&self) -> Transaction<'_, RocksOptimisticDb> {
        Transaction { db: self, inner: self.inner().transaction() }
    }

    /// See [`rocksdb::OptimisticTransactionDB::transaction_opt`].
    pub fn transaction_opt(
        &self,
        write_options: &WriteOptions,
        options: &OptimisticTransactionOptions,
    ) -> Transaction<'_, RocksOptimisticDb> {
        Transaction { db: self, inner: self.inner().transaction_opt(write_options, options) }
    }
}

/// Opening, and beginning transactions.
impl TransactionDb {
    /// See [`rocksdb::TransactionDB::open_default`].
    pub fn open_default<P: AsRef<Path>>(path: P) -> Result<Self, Error> {
        let mut options = Options::default();
        options.create_if_missing(true);
        Self::open(&options, &TransactionDBOptions::default(), path)
    }

    /// See [`rocksdb::TransactionDB::open`].
    pub fn open<P: AsRef<Path>>(
        options: &Options,
        transaction_options: &TransactionDBOptions,
        path: P,
    ) -> Result<Self, Error> {
        Self::open_cf_descriptors(options, transaction_options, path, [default_family(options)])
    }

    /// See [`rocksdb::TransactionDB::open_cf`].
    pub fn open_cf<P, I, N>(
        options: &Options,
        transaction_options: &TransactionDBOptions,
        path: P,
        names: I,
    ) -> Result<Self, Error>
    where
        P: AsRef<Path>,
        I: IntoIterator<Item = N>,
        N: AsRef<str>,
    {
        let families = names.into_iter().map(plain_family);
        Self::open_cf_descriptors(options, transaction_options, path, families)
    }

    /// See [`rocksdb::TransactionDB::open_cf_descriptors`].
    pub fn open_cf_descriptors<P, I>(
        options: &Options,
        transaction_options: &TransactionDBOptions,
        path: P,
        families: I,
    ) -> Result<Self, Error>
    where
        P: AsRef<Path>,
        I: IntoIterator<Item = ColumnFamilyDescriptor>,
    {
        Self::open_with(options, transaction_options, path, families, DoorOptions::default())
    }

    /// Opens a database with these families, and options for the doors.
    pub fn open_with<P, I>(
        options: &Options,
        transaction_options: &TransactionDBOptions,
        path: P,
        families: I,
        door_options: DoorOptions,
    ) -> Result<Self, Error>
    where
        P: AsRef<Path>,
        I: IntoIterator<Item = ColumnFamilyDescriptor>,
    {
        let families = with_default(families);
        Self::open_behind(path.as_ref(), families, door_options, |families| {
            RocksTransactionDb::open_cf_descriptors(options, transaction_options, &path, families)
        })
    }

    /// See [`rocksdb::TransactionDB::transaction`].
    pub fn transaction(&self) -> Transaction<'_, RocksTransactionDb> {
        Transaction { db: self, inner: self.inner().transaction() }
    }

    /// See [`rocksdb::TransactionDB::transaction_opt`].
    pub fn transaction_opt(
        &self,
        write_options: &WriteOptions,
        options: &TransactionOptions,
    ) -> Transaction<'_, RocksTransactionDb> {
        Transaction { db: self, inner: self.inner().transaction_opt(write_options, options) }
    }

    /// Returns transactions that were prepared but not committed when the database was closed. See
    /// [`rocksdb::TransactionDB::prepared_transactions`].
    pub fn prepared_transactions(&self) -> Vec<Transaction<'_, RocksTransactionDb>> {
        let prepared = self.inner().prepared_transactions().into_iter();
        prepared.map(|inner| Transaction { db: self, inner }).collect()
    }
}

fn default_family(options: &Options) -> ColumnFamilyDescriptor {
    ColumnFamilyDescriptor::new(rocksdb::DEFAULT_COLUMN_FAMILY_NAME, options.clone())
}

fn plain_family(name: impl AsRef<str>) -> ColumnFamilyDescriptor {
    ColumnFamilyDescriptor::new(name.as_ref(), Options::default())
}
