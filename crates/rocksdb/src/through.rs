//! Methods that pass on to RocksDB, as they do not concern doors.

use std::path::Path;

use rocksdb::checkpoint::Checkpoint;
use rocksdb::{
    CompactOptions, DBWALIterator, Error, FlushOptions, LiveFile, Range, WaitForCompactOptions,
};

use crate::base::{Base, RocksDb, RocksOptimisticDb};
use crate::db::{Db, DoorDb};
use crate::family::ColumnFamily;
use crate::snapshot::Snapshot;

/// Methods of RocksDB: see its own documentation.
impl<B: Base> DoorDb<B> {
    /// See [`rocksdb::DB::path`].
    pub fn path(&self) -> &Path {
        self.inner().path()
    }

    /// See [`rocksdb::DB::snapshot`].
    pub fn snapshot(&self) -> Snapshot<'_, B> {
        Snapshot::new(self)
    }

    /// See [`rocksdb::DB::flush`].
    pub fn flush(&self) -> Result<(), Error> {
        self.flush_opt(&FlushOptions::default())
    }

    /// See [`rocksdb::DB::flush_opt`].
    pub fn flush_opt(&self, options: &FlushOptions) -> Result<(), Error> {
        self.inner().flush_opt(options)
    }

    /// See [`rocksdb::DB::flush_cf`].
    pub fn flush_cf(&self, family: &ColumnFamily<'_>) -> Result<(), Error> {
        self.flush_cf_opt(family, &FlushOptions::default())
    }

    /// See [`rocksdb::DB::flush_cf_opt`].
    pub fn flush_cf_opt(
        &self,
        family: &ColumnFamily<'_>,
        options: &FlushOptions,
    ) -> Result<(), Error> {
        self.inner().flush_cf_opt(family, options)
    }

    /// See [`rocksdb::DB::flush_wal`].
    pub fn flush_wal(&self, is_synced: bool) -> Result<(), Error> {
        self.inner().flush_wal(is_synced)
    }

    /// See [`rocksdb::DB::property_value`].
    pub fn property_value(&self, name: &str) -> Result<Option<String>, Error> {
        self.inner().property_value(name)
    }

    /// See [`rocksdb::DB::property_int_value`].
    pub fn property_int_value(&self, name: &str) -> Result<Option<u64>, Error> {
        self.inner().property_int_value(name)
    }

    /// See [`rocksdb::DB::flush_cfs_opt`].
    pub fn flush_cfs_opt(
        &self,
        families: &[&ColumnFamily<'_>],
        options: &FlushOptions,
    ) -> Result<(), Error> {
        self.inner().flush_cfs_opt(families, options)
    }
}

/// Methods of RocksDB: see its own documentation.
impl Db {
    /// See [`rocksdb::DB::disable_file_deletions`].
    pub fn disable_file_deletions(&self) -> Result<(), Error> {
        self.inner().disable_file_deletions()
    }

    /// See [`rocksdb::DB::enable_file_deletions`].
    pub fn enable_file_deletions(&self) -> Result<(), Error> {
        self.inner().enable_file_deletions()
    }
}

/// Methods that `TransactionDB` lacks.
macro_rules! more_of_rocksdb {
    ($kind:ty) => {
        /// Methods of RocksDB: see its own documentation.
        impl DoorDb<$kind> {
            /// See [`rocksdb::DB::compact_range`].
            pub fn compact_range<S: AsRef<[u8]>, E: AsRef<[u8]>>(
                &self,
                start: Option<S>,
                end: Option<E>,
            ) {
                self.inner().compact_range(start, end);
            }

            /// See [`rocksdb::DB::compact_range_opt`].
            pub fn compact_range_opt<S: AsRef<[u8]>, E: AsRef<[u8]>>(
                &self,
                start: Option<S>,
                end: Option<E>,
                options: &CompactOptions,
            ) {
                self.inner().compact_range_opt(start, end, options);
            }

            /// See [`rocksdb::DB::compact_range_cf`].
            pub fn compact_range_cf<S: AsRef<[u8]>, E: AsRef<[u8]>>(
                &self,
                family: &ColumnFamily<'_>,
                start: Option<S>,
                end: Option<E>,
            ) {
                self.inner().compact_range_cf(family, start, end);
            }

            /// See [`rocksdb::DB::compact_range_cf_opt`].
            pub fn compact_range_cf_opt<S: AsRef<[u8]>, E: AsRef<[u8]>>(
                &self,
                family: &ColumnFamily<'_>,
                start: Option<S>,
                end: Option<E>,
                options: &CompactOptions,
            ) {
                self.inner().compact_range_cf_opt(family, start, end, options);
            }

            /// See [`rocksdb::DB::wait_for_compact`].
            pub fn wait_for_compact(&self, options: &WaitForCompactOptions) -> Result<(), Error> {
                self.inner().wait_for_compact(options)
            }

            /// See [`rocksdb::DB::cancel_all_background_work`].
            pub fn cancel_all_background_work(&self, waits: bool) {
                self.inner().cancel_all_background_work(waits);
            }

            /// See [`rocksdb::DB::property_value_cf`].
            pub fn property_value_cf(
                &self,
                family: &ColumnFamily<'_>,
                name: &str,
            ) -> Result<Option<String>, Error> {
                self.inner().property_value_cf(family, name)
            }

            /// See [`rocksdb::DB::property_int_value_cf`].
            pub fn property_int_value_cf(
                &self,
                family: &ColumnFamily<'_>,
                name: &str,
            ) -> Result<Option<u64>, Error> {
                self.inner().property_int_value_cf(family, name)
            }

            /// See [`rocksdb::DB::latest_sequence_number`].
            pub fn latest_sequence_number(&self) -> u64 {
                self.inner().latest_sequence_number()
            }

            /// See [`rocksdb::DB::live_files`].
            pub fn live_files(&self) -> Result<Vec<LiveFile>, Error> {
                self.inner().live_files()
            }

            /// Copies the current database into a new folder: see
            /// [`rocksdb::checkpoint::Checkpoint`]. The copy has no filters, so its first opening
            /// scans it.
            pub fn create_checkpoint<P: AsRef<Path>>(&self, path: P) -> Result<(), Error> {
                Checkpoint::new(self.inner())?.create_checkpoint(path)
            }

            /// See [`rocksdb::DB::get_approximate_sizes`].
            pub fn get_approximate_sizes(&self, ranges: &[Range<'_>]) -> Vec<u64> {
                self.inner().get_approximate_sizes(ranges)
            }

            /// See [`rocksdb::DB::get_approximate_sizes_cf`].
            pub fn get_approximate_sizes_cf(
                &self,
                family: &ColumnFamily<'_>,
                ranges: &[Range<'_>],
            ) -> Vec<u64> {
                self.inner().get_approximate_sizes_cf(family, ranges)
            }

            /// See [`rocksdb::DB::get_db_identity`].
            pub fn get_db_identity(&self) -> Result<Vec<u8>, Error> {
                self.inner().get_db_identity()
            }

            /// See [`rocksdb::DB::get_updates_since`].
            pub fn get_updates_since(&self, sequence_number: u64) -> Result<DBWALIterator, Error> {
                self.inner().get_updates_since(sequence_number)
            }

            /// See [`rocksdb::DB::get_full_history_ts_low`].
            pub fn get_full_history_ts_low(
                &self,
                family: &ColumnFamily<'_>,
            ) -> Result<Vec<u8>, Error> {
                self.inner().get_full_history_ts_low(family)
            }

            /// See [`rocksdb::DB::increase_full_history_ts_low`].
            pub fn increase_full_history_ts_low<S: AsRef<[u8]>>(
                &self,
                family: &ColumnFamily<'_>,
                time: S,
            ) -> Result<(), Error> {
                self.inner().increase_full_history_ts_low(family, time)
            }

            /// See [`rocksdb::DB::set_options`].
            pub fn set_options(&self, options: &[(&str, &str)]) -> Result<(), Error> {
                self.inner().set_options(options)?;
                self.read_rules_again();
                Ok(())
            }

            /// See [`rocksdb::DB::set_options_cf`].
            pub fn set_options_cf(
                &self,
                family: &ColumnFamily<'_>,
                options: &[(&str, &str)],
            ) -> Result<(), Error> {
                self.inner().set_options_cf(family, options)?;
                self.read_rules_again();
                Ok(())
            }
        }
    };
}

more_of_rocksdb!(RocksDb);
more_of_rocksdb!(RocksOptimisticDb);
