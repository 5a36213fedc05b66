//! The databases that a door can guard: three kinds with one set of methods.
//! ```text
//! RocksDb                   DBWithThreadMode            plain writes
//! RocksOptimisticDb         OptimisticTransactionDB     commits that fail after a conflict
//! RocksTransactionDb        TransactionDB               keys that are locked until the commit
//! ```

use std::path::Path;
use std::sync::Arc;

use rocksdb::{
    BoundColumnFamily, DBAccess, DBRawIteratorWithThreadMode, DBWithThreadMode, Error,
    FlushOptions, MultiThreaded, OptimisticTransactionDB, Options, ReadOptions,
    SnapshotWithThreadMode, TransactionDB, WriteBatch, WriteBatchWithTransaction, WriteOptions,
};

use crate::family::ColumnFamily;

/// The database behind the doors of a [`Db`](crate::Db).
pub type RocksDb = DBWithThreadMode<MultiThreaded>;
/// The database behind the doors of an [`OptimisticTransactionDb`](crate::OptimisticTransactionDb).
pub type RocksOptimisticDb = OptimisticTransactionDB<MultiThreaded>;
/// The database behind the doors of a [`TransactionDb`](crate::TransactionDb).
pub type RocksTransactionDb = TransactionDB<MultiThreaded>;

type Family<'a> = ColumnFamily<'a>;

/// A RocksDB database: see its own methods of these names. Only this crate implements it.
pub trait Base: DBAccess + Sized + Send + Sync + 'static {
    /// The type that [`DoorDb::write`](crate::DoorDb::write) takes.
    type Batch;

    #[doc(hidden)]
    fn bytes_of(batch: &Self::Batch) -> &[u8];
    #[doc(hidden)]
    fn write_opt(&self, batch: Self::Batch, options: &WriteOptions) -> Result<(), Error>;

    #[doc(hidden)]
    fn path(&self) -> &Path;
    #[doc(hidden)]
    fn cf_handle(&self, name: &str) -> Option<Arc<BoundColumnFamily<'_>>>;
    #[doc(hidden)]
    fn create_cf(&self, name: &str, options: &Options) -> Result<(), Error>;
    #[doc(hidden)]
    fn drop_cf(&self, name: &str) -> Result<(), Error>;

    #[doc(hidden)]
    fn put_opt(&self, key: &[u8], value: &[u8], options: &WriteOptions) -> Result<(), Error>;
    #[doc(hidden)]
    fn merge_opt(&self, key: &[u8], value: &[u8], options: &WriteOptions) -> Result<(), Error>;
    #[doc(hidden)]
    fn delete_opt(&self, key: &[u8], options: &WriteOptions) -> Result<(), Error>;
    #[doc(hidden)]
    fn put_cf_opt(
        &self,
        family: &Family<'_>,
        entry: (&[u8], &[u8]),
        options: &WriteOptions,
    ) -> Result<(), Error>;
    #[doc(hidden)]
    fn merge_cf_opt(
        &self,
        family: &Family<'_>,
        entry: (&[u8], &[u8]),
        options: &WriteOptions,
    ) -> Result<(), Error>;
    #[doc(hidden)]
    fn delete_cf_opt(
        &self,
        family: &Family<'_>,
        key: &[u8],
        options: &WriteOptions,
    ) -> Result<(), Error>;

    #[doc(hidden)]
    fn raw_iterator_opt(&self, options: ReadOptions) -> DBRawIteratorWithThreadMode<'_, Self>;
    #[doc(hidden)]
    fn raw_iterator_cf_opt<'a>(
        &'a self,
        family: &Family<'a>,
        options: ReadOptions,
    ) -> DBRawIteratorWithThreadMode<'a, Self>;

    #[doc(hidden)]
    fn flush_opt(&self, options: &FlushOptions) -> Result<(), Error>;
    #[doc(hidden)]
    fn flush_cf_opt(&self, family: &Family<'_>, options: &FlushOptions) -> Result<(), Error>;
    #[doc(hidden)]
    fn flush_cfs_opt(&self, families: &[&Family<'_>], options: &FlushOptions) -> Result<(), Error>;
    #[doc(hidden)]
    fn flush_wal(&self, is_synced: bool) -> Result<(), Error>;
    #[doc(hidden)]
    fn property_value(&self, name: &str) -> Result<Option<String>, Error>;
    #[doc(hidden)]
    fn property_int_value(&self, name: &str) -> Result<Option<u64>, Error>;

    /// First and last keys of a family's files, in order; empty if they are unknown.
    #[doc(hidden)]
    fn places(&self, family: &str) -> Vec<Vec<u8>>;
    /// The estimated number of keys in a family. None: it is unknown.
    #[doc(hidden)]
    fn estimated_keys(&self, family: &str) -> Option<u64>;

    /// The sequence number of the last write.
    #[doc(hidden)]
    fn last_sequence_number(&self) -> u64 {
        SnapshotWithThreadMode::new(self).sequence_number()
    }
}

/// The methods that have the same names in all three kinds.
macro_rules! shared_methods {
    () => {
        fn bytes_of(batch: &Self::Batch) -> &[u8] {
            batch.data()
        }

        fn write_opt(&self, batch: Self::Batch, options: &WriteOptions) -> Result<(), Error> {
            self.write_opt(batch, options)
        }

        fn path(&self) -> &Path {
            self.path()
        }

        fn cf_handle(&self, name: &str) -> Option<Arc<BoundColumnFamily<'_>>> {
            self.cf_handle(name)
        }

        fn create_cf(&self, name: &str, options: &Options) -> Result<(), Error> {
            self.create_cf(name, options)
        }

        fn drop_cf(&self, name: &str) -> Result<(), Error> {
            self.drop_cf(name)
        }

        fn put_opt(&self, key: &[u8], value: &[u8], options: &WriteOptions) -> Result<(), Error> {
            self.put_opt(key, value, options)
        }

        fn merge_opt(&self, key: &[u8], value: &[u8], options: &WriteOptions) -> Result<(), Error> {
            self.merge_opt(key, value, options)
        }

        fn delete_opt(&self, key: &[u8], options: &WriteOptions) -> Result<(), Error> {
            self.delete_opt(key, options)
        }

        fn put_cf_opt(
            &self,
            family: &Family<'_>,
            (key, value): (&[u8], &[u8]),
            options: &WriteOptions,
        ) -> Result<(), Error> {
            self.put_cf_opt(family, key, value, options)
        }

        fn merge_cf_opt(
            &self,
            family: &Family<'_>,
            (key, value): (&[u8], &[u8]),
            options: &WriteOptions,
        ) -> Result<(), Error> {
            self.merge_cf_opt(family, key, value, options)
        }

        fn delete_cf_opt(
            &self,
            family: &Family<'_>,
            key: &[u8],
            options: &WriteOptions,
        ) -> Result<(), Error> {
            self.delete_cf_opt(family, key, options)
        }

        fn raw_iterator_opt(&self, options: ReadOptions) -> DBRawIteratorWithThreadMode<'_, Self> {
            self.raw_iterator_opt(options)
        }

        fn raw_iterator_cf_opt<'a>(
            &'a self,
            family: &Family<'a>,
            options: ReadOptions,
        ) -> DBRawIteratorWithThreadMode<'a, Self> {
            self.raw_iterator_cf_opt(family, options)
        }

        fn flush_opt(&self, options: &FlushOptions) -> Result<(), Error> {
            self.flush_opt(options)
        }

        fn flush_cf_opt(&self, family: &Family<'_>, options: &FlushOptions) -> Result<(), Error> {
            self.flush_cf_opt(family, options)
        }

        fn flush_cfs_opt(
            &self,
            families: &[&Family<'_>],
            options: &FlushOptions,
        ) -> Result<(), Error> {
            self.flush_cfs_opt(families, options)
        }

        fn flush_wal(&self, is_synced: bool) -> Result<(), Error> {
            self.flush_wal(is_synced)
        }

        fn property_value(&self, name: &str) -> Result<Option<String>, Error> {
            self.property_value(name)
        }

        fn property_int_value(&self, name: &str) -> Result<Option<u64>, Error> {
            self.property_int_value(name)
        }
    };
}

/// Methods that the `TransactionDB` of the crate `rocksdb` lacks.
macro_rules! knowledge_of_files {
    () => {
        fn places(&self, family: &str) -> Vec<Vec<u8>> {
            let files = self.live_files().unwrap_or_default();
            let of_family = files.into_iter().filter(|file| file.column_family_name == family);
            let ends = of_family.flat_map(|file| [file.start_key, file.end_key]);
            let mut places: Vec<Vec<u8>> = ends.flatten().collect();
            places.sort_unstable();
            places.dedup();
            places
        }

        fn estimated_keys(&self, family: &str) -> Option<u64> {
            let name = rocksdb::properties::ESTIMATE_NUM_KEYS;
            self.property_int_value_cf(&self.cf_handle(family)?, name).ok()?
        }
    };
}

impl Base for RocksDb {
    type Batch = WriteBatch;

    shared_methods!();
    knowledge_of_files!();
}

impl Base for RocksOptimisticDb {
    type Batch = WriteBatchWithTransaction<true>;

    shared_methods!();
    knowledge_of_files!();
}

impl Base for RocksTransactionDb {
    type Batch = WriteBatchWithTransaction<true>;

    shared_methods!();

    fn places(&self, _family: &str) -> Vec<Vec<u8>> {
        Vec::new()
    }

    fn estimated_keys(&self, _family: &str) -> Option<u64> {
        None
    }
}
