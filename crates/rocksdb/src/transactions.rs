//! Databases with transactions. A transaction's own reads are RocksDB's; what it commits is noted.
//! ```text
//! transaction ── put, get, ... : RocksDB        commit ── its batch's keys noted ── RocksDB
//! ```
//! Invariant: no transaction is committed but by [`Transaction::commit`].

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

/// As [`Db`](crate::Db), with transactions that fail at their commit if what they read or wrote has
/// changed meanwhile: the methods are those of [`rocksdb::OptimisticTransactionDB`].
pub type OptimisticTransactionDb = DoorDb<RocksOptimisticDb>;

/// As [`Db`](crate::Db), with transactions that lock what they write: the methods are those of
/// [`rocksdb::TransactionDB`].
pub type TransactionDb = DoorDb<RocksTransactionDb>;

/// A transaction: it has the methods of [`rocksdb::Transaction`].
///
/// It ends with [`Transaction::commit`], or is rolled back when it is dropped, unless it is
/// prepared: then it waits in [`TransactionDb::prepared_transactions`] of the next opening. Reads
/// within it see its own writes, and ask no door.
pub struct Transaction<'db, B: Base> {
    db: &'db DoorDb<B>,
    inner: rocksdb::Transaction<'db, B>,
}

impl<'db, B: Base> Transaction<'db, B> {
    /// Writes what it did, if RocksDB finds no conflict: see [`rocksdb::Transaction::commit`].
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

    /// Opens a database with these families, and doors that are kept so.
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

    /// Opens a database with these families, and doors that are kept so.
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

    /// Transactions that were prepared and not yet committed when the database was closed: see
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
