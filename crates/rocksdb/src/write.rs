//! Writes: keys are noted before RocksDB gets them.
//! ```text
//! enter ── note ── RocksDB ── leave
//! ```
//! Invariant: a key is noted before RocksDB gets it. Until RocksDB is done, the write counts as in
//! flight in the key's list.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rocksdb::{Error, IngestExternalFileOptions, WriteOptions};

use crate::base::{Base, RocksDb, RocksOptimisticDb};
use crate::batch::{self, Act};
use crate::db::{Db, DoorDb};
use crate::door::{Door, Ticket};
use crate::family::ColumnFamily;
use crate::ingest;
use crate::pause::{self, Point, Rule};

/// Notes a key that is about to be written.
fn noted<'d>(door: &'d Door, key: &[u8]) -> Ticket<&'d Door> {
    let mut ticket = Ticket::enter(door);
    if !pause::is_broken(Rule::Noting) {
        ticket.note(key);
    }
    pause::at(Point::Noted);
    ticket
}

/// Writes of single keys.
impl<B: Base> DoorDb<B> {
    /// See [`rocksdb::DB::put`].
    pub fn put<K: AsRef<[u8]>, V: AsRef<[u8]>>(&self, key: K, value: V) -> Result<(), Error> {
        self.put_opt(key, value, &WriteOptions::default())
    }

    /// See [`rocksdb::DB::put_opt`].
    pub fn put_opt<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        key: K,
        value: V,
        options: &WriteOptions,
    ) -> Result<(), Error> {
        let _ticket = noted(self.default_door(), key.as_ref());
        self.told(self.inner().put_opt(key.as_ref(), value.as_ref(), options))
    }

    /// See [`rocksdb::DB::put_cf`].
    pub fn put_cf<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        family: &ColumnFamily<'_>,
        key: K,
        value: V,
    ) -> Result<(), Error> {
        self.put_cf_opt(family, key, value, &WriteOptions::default())
    }

    /// See [`rocksdb::DB::put_cf_opt`].
    pub fn put_cf_opt<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        family: &ColumnFamily<'_>,
        key: K,
        value: V,
        options: &WriteOptions,
    ) -> Result<(), Error> {
        let _ticket = noted(family.door(), key.as_ref());
        self.told(self.inner().put_cf_opt(family, (key.as_ref(), value.as_ref()), options))
    }

    /// See [`rocksdb::DB::merge`].
    pub fn merge<K: AsRef<[u8]>, V: AsRef<[u8]>>(&self, key: K, value: V) -> Result<(), Error> {
        self.merge_opt(key, value, &WriteOptions::default())
    }

    /// See [`rocksdb::DB::merge_opt`].
    pub fn merge_opt<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        key: K,
        value: V,
        options: &WriteOptions,
    ) -> Result<(), Error> {
        let _ticket = noted(self.default_door(), key.as_ref());
        self.told(self.inner().merge_opt(key.as_ref(), value.as_ref(), options))
    }

    /// See [`rocksdb::DB::merge_cf`].
    pub fn merge_cf<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        family: &ColumnFamily<'_>,
        key: K,
        value: V,
    ) -> Result<(), Error> {
        self.merge_cf_opt(family, key, value, &WriteOptions::default())
    }

    /// See [`rocksdb::DB::merge_cf_opt`].
    pub fn merge_cf_opt<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        family: &ColumnFamily<'_>,
        key: K,
        value: V,
        options: &WriteOptions,
    ) -> Result<(), Error> {
        let _ticket = noted(family.door(), key.as_ref());
        self.told(self.inner().merge_cf_opt(family, (key.as_ref(), value.as_ref()), options))
    }

    /// See [`rocksdb::DB::delete`].
    pub fn delete<K: AsRef<[u8]>>(&self, key: K) -> Result<(), Error> {
        self.delete_opt(key, &WriteOptions::default())
    }

    /// See [`rocksdb::DB::delete_opt`].
    pub fn delete_opt<K: AsRef<[u8]>>(&self, key: K, options: &WriteOptions) -> Result<(), Error> {
        self.default_door().note_deletes();
        self.inner().delete_opt(key.as_ref(), options)
    }

    /// See [`rocksdb::DB::delete_cf`].
    pub fn delete_cf<K: AsRef<[u8]>>(
        &self,
        family: &ColumnFamily<'_>,
        key: K,
    ) -> Result<(), Error> {
        self.delete_cf_opt(family, key, &WriteOptions::default())
    }

    /// See [`rocksdb::DB::delete_cf_opt`].
    pub fn delete_cf_opt<K: AsRef<[u8]>>(
        &self,
        family: &ColumnFamily<'_>,
        key: K,
        options: &WriteOptions,
    ) -> Result<(), Error> {
        family.door().note_deletes();
        self.inner().delete_cf_opt(family, key.as_ref(), options)
    }
}

/// Writes of keys with user timestamps.
impl Db {
    /// See [`rocksdb::DB::put_cf_with_ts`]. Doors do not answer for families with user timestamps.
    pub fn put_cf_with_ts<K: AsRef<[u8]>, V: AsRef<[u8]>, S: AsRef<[u8]>>(
        &self,
        family: &ColumnFamily<'_>,
        key: K,
        time: S,
        value: V,
    ) -> Result<(), Error> {
        let _ticket = noted(family.door(), key.as_ref());
        self.inner().put_cf_with_ts(family, key, time, value)
    }

    /// See [`rocksdb::DB::put_cf_with_ts_opt`].
    pub fn put_cf_with_ts_opt<K: AsRef<[u8]>, V: AsRef<[u8]>, S: AsRef<[u8]>>(
        &self,
        family: &ColumnFamily<'_>,
        key: K,
        time: S,
        value: V,
        options: &WriteOptions,
    ) -> Result<(), Error> {
        let _ticket = noted(family.door(), key.as_ref());
        self.inner().put_cf_with_ts_opt(family, key, time, value, options)
    }

    /// See [`rocksdb::DB::put_with_ts`].
    pub fn put_with_ts<K: AsRef<[u8]>, V: AsRef<[u8]>, S: AsRef<[u8]>>(
        &self,
        key: K,
        time: S,
        value: V,
    ) -> Result<(), Error> {
        let _ticket = noted(self.default_door(), key.as_ref());
        self.inner().put_with_ts(key, time, value)
    }

    /// See [`rocksdb::DB::put_with_ts_opt`].
    pub fn put_with_ts_opt<K: AsRef<[u8]>, V: AsRef<[u8]>, S: AsRef<[u8]>>(
        &self,
        key: K,
        time: S,
        value: V,
        options: &WriteOptions,
    ) -> Result<(), Error> {
        let _ticket = noted(self.default_door(), key.as_ref());
        self.inner().put_with_ts_opt(key, time, value, options)
    }

    /// See [`rocksdb::DB::delete_cf_with_ts`].
    pub fn delete_cf_with_ts<K: AsRef<[u8]>, S: AsRef<[u8]>>(
        &self,
        family: &ColumnFamily<'_>,
        key: K,
        time: S,
    ) -> Result<(), Error> {
        family.door().note_deletes();
        self.inner().delete_cf_with_ts(family, key, time)
    }

    /// See [`rocksdb::DB::delete_cf_with_ts_opt`].
    pub fn delete_cf_with_ts_opt<K: AsRef<[u8]>, S: AsRef<[u8]>>(
        &self,
        family: &ColumnFamily<'_>,
        key: K,
        time: S,
        options: &WriteOptions,
    ) -> Result<(), Error> {
        family.door().note_deletes();
        self.inner().delete_cf_with_ts_opt(family, key, time, options)
    }

    /// See [`rocksdb::DB::delete_with_ts`].
    pub fn delete_with_ts<K: AsRef<[u8]>, S: AsRef<[u8]>>(
        &self,
        key: K,
        time: S,
    ) -> Result<(), Error> {
        self.default_door().note_deletes();
        self.inner().delete_with_ts(key, time)
    }

    /// See [`rocksdb::DB::delete_with_ts_opt`].
    pub fn delete_with_ts_opt<K: AsRef<[u8]>, S: AsRef<[u8]>>(
        &self,
        key: K,
        time: S,
        options: &WriteOptions,
    ) -> Result<(), Error> {
        self.default_door().note_deletes();
        self.inner().delete_with_ts_opt(key, time, options)
    }
}

/// Writes of batches.
impl<B: Base> DoorDb<B> {
    /// See [`rocksdb::DB::write`].
    pub fn write(&self, batch: B::Batch) -> Result<(), Error> {
        self.write_opt(batch, &WriteOptions::default())
    }

    /// See [`rocksdb::DB::write_opt`].
    pub fn write_opt(&self, batch: B::Batch, options: &WriteOptions) -> Result<(), Error> {
        let _tickets = self.noted_batch(B::bytes_of(&batch));
        self.told(self.inner().write_opt(batch, options))
    }

    /// See [`rocksdb::DB::write_without_wal`].
    pub fn write_without_wal(&self, batch: B::Batch) -> Result<(), Error> {
        let mut options = WriteOptions::default();
        options.disable_wal(true);
        self.write_opt(batch, &options)
    }

    /// Notes all keys of a batch. Returns the tickets of the families that it writes to.
    pub(crate) fn noted_batch(&self, batch: &[u8]) -> (Option<Ticket<&Door>>, Tickets) {
        let (mut default, mut others) = (None, Tickets::new());
        let walked = batch::walk(batch, |id, act, key| match (id, act) {
            (0, Act::Delete) => self.default_door().note_deletes(),
            (0, Act::Write) => {
                default.get_or_insert_with(|| Ticket::enter(self.default_door())).note(key);
            }
            (_, Act::Delete) => self.shared().door(id).iter().for_each(|door| door.note_deletes()),
            (_, Act::Write) => self.note_other(id, key, &mut others),
        });
        if walked.is_err() {
            // A record is unknown. A scan sees everything that the batch writes before anything is
            // denied.
            let doors = self.shared().doors().into_iter();
            others.extend(doors.map(|door| (door.id, Ticket::lapse(door))));
        }
        pause::at(Point::Noted);
        (default, others)
    }

    fn note_other(&self, id: u32, key: &[u8], tickets: &mut Tickets) {
        let known = tickets.iter().position(|(of, _)| *of == id);
        let place = known.or_else(|| {
            // RocksDB refuses batches for a dropped family.
            tickets.push((id, Ticket::enter(self.shared().door(id)?)));
            Some(tickets.len() - 1)
        });
        if let Some(place) = place {
            tickets[place].1.note(key);
        }
    }

    /// Notes all keys of files. If they cannot be read, nothing is denied until a scan after
    /// RocksDB has ingested them.
    fn noted_files<'d>(&self, door: &'d Door, files: &[PathBuf]) -> Ticket<&'d Door> {
        if !door.rules.is_bytewise {
            return Ticket::enter(door);
        }
        let mut ticket = Ticket::enter(door);
        match ingest::read_keys(self.path(), files, |key| ticket.note(key)) {
            Ok(()) => ticket,
            Err(_) => Ticket::lapse(door),
        }
    }
}

/// Methods that `TransactionDB` lacks.
macro_rules! ranges_and_files {
    ($kind:ty) => {
        /// Deletions of ranges and files, and ingestion of files.
        impl DoorDb<$kind> {
            /// See [`rocksdb::DB::delete_range_cf`].
            pub fn delete_range_cf<K: AsRef<[u8]>>(
                &self,
                family: &ColumnFamily<'_>,
                from: K,
                to: K,
            ) -> Result<(), Error> {
                family.door().note_deletes();
                self.inner().delete_range_cf(family, from, to)
            }

            /// See [`rocksdb::DB::delete_range_cf_opt`].
            pub fn delete_range_cf_opt<K: AsRef<[u8]>>(
                &self,
                family: &ColumnFamily<'_>,
                from: K,
                to: K,
                options: &WriteOptions,
            ) -> Result<(), Error> {
                family.door().note_deletes();
                self.inner().delete_range_cf_opt(family, from, to, options)
            }

            /// See [`rocksdb::DB::delete_file_in_range_cf`]. Deleted keys may come back, so the
            /// family is scanned again.
            pub fn delete_file_in_range_cf<K: AsRef<[u8]>>(
                &self,
                family: &ColumnFamily<'_>,
                from: K,
                to: K,
            ) -> Result<(), Error> {
                let _ticket = Ticket::lapse(&**family.door());
                self.inner().delete_file_in_range_cf(family, from, to)
            }

            /// See [`rocksdb::DB::delete_file_in_range`], and [`Db::delete_file_in_range_cf`].
            pub fn delete_file_in_range<K: AsRef<[u8]>>(
                &self,
                from: K,
                to: K,
            ) -> Result<(), Error> {
                let _ticket = Ticket::lapse(self.default_door());
                self.inner().delete_file_in_range(from, to)
            }

            /// See [`rocksdb::DB::ingest_external_file`]. The door reads the files before.
            pub fn ingest_external_file<P: AsRef<Path>>(&self, paths: Vec<P>) -> Result<(), Error> {
                self.ingest_external_file_opts(&IngestExternalFileOptions::default(), paths)
            }

            /// See [`rocksdb::DB::ingest_external_file_opts`]. The door reads the files before.
            pub fn ingest_external_file_opts<P: AsRef<Path>>(
                &self,
                options: &IngestExternalFileOptions,
                paths: Vec<P>,
            ) -> Result<(), Error> {
                let paths = owned(paths);
                let _ticket = self.noted_files(self.default_door(), &paths);
                self.told(self.inner().ingest_external_file_opts(options, paths))
            }

            /// See [`rocksdb::DB::ingest_external_file_cf`]. The door reads the files before.
            pub fn ingest_external_file_cf<P: AsRef<Path>>(
                &self,
                family: &ColumnFamily<'_>,
                paths: Vec<P>,
            ) -> Result<(), Error> {
                self.ingest_external_file_cf_opts(
                    family,
                    &IngestExternalFileOptions::default(),
                    paths,
                )
            }

            /// See [`rocksdb::DB::ingest_external_file_cf_opts`]. The door reads the files before.
            pub fn ingest_external_file_cf_opts<P: AsRef<Path>>(
                &self,
                family: &ColumnFamily<'_>,
                options: &IngestExternalFileOptions,
                paths: Vec<P>,
            ) -> Result<(), Error> {
                let paths = owned(paths);
                let _ticket = self.noted_files(family.door(), &paths);
                self.told(self.inner().ingest_external_file_cf_opts(family, options, paths))
            }
        }
    };
}

ranges_and_files!(RocksDb);
ranges_and_files!(RocksOptimisticDb);

/// Tickets, each with RocksDB's id of its family.
type Tickets = Vec<(u32, Ticket<Arc<Door>>)>;

fn owned<P: AsRef<Path>>(paths: Vec<P>) -> Vec<PathBuf> {
    paths.iter().map(|path| path.as_ref().to_path_buf()).collect()
}
