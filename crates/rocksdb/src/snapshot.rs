//! Snapshots of the database, and reads of them.

use rocksdb::{DBPinnableSlice, Error, IteratorMode, SnapshotWithThreadMode};

use crate::base::{Base, RocksDb};
use crate::db::DoorDb;
use crate::family::ColumnFamily;
use crate::iterator::{DbIterator, DbRawIterator};
use crate::read_options::ReadOptions;

/// A snapshot of the database. The door can answer its reads if its last scan is not newer.
///
/// Its iterators borrow it:
///
/// ```compile_fail,E0505
/// use trommel_rocksdb::Db;
/// use trommel_rocksdb::rocksdb::IteratorMode;
///
/// fn rows(db: &Db) {
///     let snapshot = db.snapshot();
///     let rows = snapshot.iterator(IteratorMode::Start);
///     drop(snapshot);
///     rows.count();
/// }
/// ```
pub struct Snapshot<'a, B: Base = RocksDb> {
    db: &'a DoorDb<B>,
    inner: SnapshotWithThreadMode<'a, B>,
    sequence_number: u64,
}

impl<'a, B: Base> Snapshot<'a, B> {
    pub(crate) fn new(db: &'a DoorDb<B>) -> Snapshot<'a, B> {
        let inner = SnapshotWithThreadMode::new(db.inner());
        // Without snapshots, RocksDB has no sequence number to ask for.
        let sequence_number = if db.has_snapshots() { inner.sequence_number() } else { 0 };
        Snapshot { db, sequence_number, inner }
    }

    pub(crate) fn inner(&self) -> &SnapshotWithThreadMode<'a, B> {
        &self.inner
    }

    /// The sequence number of the last write that the snapshot sees.
    pub fn sequence_number(&self) -> u64 {
        self.sequence_number
    }

    fn at(&self, mut options: ReadOptions) -> ReadOptions {
        options.set_snapshot(self);
        // Iterators that are made with them borrow this snapshot.
        options.snapshot_may_end = false;
        options
    }

    /// See [`DoorDb::get`].
    pub fn get<K: AsRef<[u8]>>(&self, key: K) -> Result<Option<Vec<u8>>, Error> {
        self.get_opt(key, ReadOptions::default())
    }

    /// See [`DoorDb::get_opt`].
    pub fn get_opt<K: AsRef<[u8]>>(
        &self,
        key: K,
        options: ReadOptions,
    ) -> Result<Option<Vec<u8>>, Error> {
        self.db.get_opt(key, &self.at(options))
    }

    /// See [`DoorDb::get_cf`].
    pub fn get_cf<K: AsRef<[u8]>>(
        &self,
        family: &ColumnFamily<'_>,
        key: K,
    ) -> Result<Option<Vec<u8>>, Error> {
        self.get_cf_opt(family, key, ReadOptions::default())
    }

    /// See [`DoorDb::get_cf_opt`].
    pub fn get_cf_opt<K: AsRef<[u8]>>(
        &self,
        family: &ColumnFamily<'_>,
        key: K,
        options: ReadOptions,
    ) -> Result<Option<Vec<u8>>, Error> {
        self.db.get_cf_opt(family, key, &self.at(options))
    }

    /// See [`DoorDb::get_pinned`].
    pub fn get_pinned<K: AsRef<[u8]>>(&self, key: K) -> Result<Option<DBPinnableSlice<'_>>, Error> {
        self.get_pinned_opt(key, ReadOptions::default())
    }

    /// See [`DoorDb::get_pinned_cf`].
    pub fn get_pinned_cf<K: AsRef<[u8]>>(
        &self,
        family: &ColumnFamily<'_>,
        key: K,
    ) -> Result<Option<DBPinnableSlice<'_>>, Error> {
        self.get_pinned_cf_opt(family, key, ReadOptions::default())
    }

    /// See [`DoorDb::get_pinned_opt`].
    pub fn get_pinned_opt<K: AsRef<[u8]>>(
        &self,
        key: K,
        options: ReadOptions,
    ) -> Result<Option<DBPinnableSlice<'_>>, Error> {
        self.db.get_pinned_opt(key, &self.at(options))
    }

    /// See [`DoorDb::get_pinned_cf_opt`].
    pub fn get_pinned_cf_opt<K: AsRef<[u8]>>(
        &self,
        family: &ColumnFamily<'_>,
        key: K,
        options: ReadOptions,
    ) -> Result<Option<DBPinnableSlice<'_>>, Error> {
        self.db.get_pinned_cf_opt(family, key, &self.at(options))
    }

    /// See [`DoorDb::multi_get`].
    pub fn multi_get<K, I>(&self, keys: I) -> Vec<Result<Option<Vec<u8>>, Error>>
    where
        K: AsRef<[u8]>,
        I: IntoIterator<Item = K>,
    {
        self.multi_get_opt(keys, ReadOptions::default())
    }

    /// See [`DoorDb::multi_get_opt`].
    pub fn multi_get_opt<K, I>(
        &self,
        keys: I,
        options: ReadOptions,
    ) -> Vec<Result<Option<Vec<u8>>, Error>>
    where
        K: AsRef<[u8]>,
        I: IntoIterator<Item = K>,
    {
        self.db.multi_get_opt(keys, &self.at(options))
    }

    /// See [`DoorDb::multi_get_cf`].
    pub fn multi_get_cf<'b, K, I>(&self, keys: I) -> Vec<Result<Option<Vec<u8>>, Error>>
    where
        K: AsRef<[u8]>,
        I: IntoIterator<Item = (&'b ColumnFamily<'b>, K)>,
    {
        self.multi_get_cf_opt(keys, ReadOptions::default())
    }

    /// See [`DoorDb::multi_get_cf_opt`].
    pub fn multi_get_cf_opt<'b, K, I>(
        &self,
        keys: I,
        options: ReadOptions,
    ) -> Vec<Result<Option<Vec<u8>>, Error>>
    where
        K: AsRef<[u8]>,
        I: IntoIterator<Item = (&'b ColumnFamily<'b>, K)>,
    {
        self.db.multi_get_cf_opt(keys, &self.at(options))
    }

    /// See [`DoorDb::iterator`].
    pub fn iterator(&self, mode: IteratorMode<'_>) -> DbIterator<'_, B> {
        self.iterator_opt(mode, ReadOptions::default())
    }

    /// See [`DoorDb::iterator_opt`].
    pub fn iterator_opt(&self, mode: IteratorMode<'_>, options: ReadOptions) -> DbIterator<'_, B> {
        self.db.iterator_opt(mode, self.at(options))
    }

    /// See [`DoorDb::iterator_cf`].
    pub fn iterator_cf(
        &self,
        family: &ColumnFamily<'a>,
        mode: IteratorMode<'_>,
    ) -> DbIterator<'_, B> {
        self.iterator_cf_opt(family, ReadOptions::default(), mode)
    }

    /// See [`DoorDb::iterator_cf_opt`].
    pub fn iterator_cf_opt(
        &self,
        family: &ColumnFamily<'a>,
        options: ReadOptions,
        mode: IteratorMode<'_>,
    ) -> DbIterator<'_, B> {
        self.db.iterator_cf_opt(family, self.at(options), mode)
    }

    /// See [`DoorDb::raw_iterator`].
    pub fn raw_iterator(&self) -> DbRawIterator<'_, B> {
        self.raw_iterator_opt(ReadOptions::default())
    }

    /// See [`DoorDb::raw_iterator_cf`].
    pub fn raw_iterator_cf(&self, family: &ColumnFamily<'a>) -> DbRawIterator<'_, B> {
        self.raw_iterator_cf_opt(family, ReadOptions::default())
    }

    /// See [`DoorDb::raw_iterator_opt`].
    pub fn raw_iterator_opt(&self, options: ReadOptions) -> DbRawIterator<'_, B> {
        self.db.raw_iterator_opt(self.at(options))
    }

    /// See [`DoorDb::raw_iterator_cf_opt`].
    pub fn raw_iterator_cf_opt(
        &self,
        family: &ColumnFamily<'a>,
        options: ReadOptions,
    ) -> DbRawIterator<'_, B> {
        self.db.raw_iterator_cf_opt(family, self.at(options))
    }
}
