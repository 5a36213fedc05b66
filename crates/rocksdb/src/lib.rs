//! RocksDB with one filter of all keys of each column family: the door. It answers gets of absent
//! keys, and iterators over empty ranges, from memory.
//! ```text
//! put, merge, batch, file ──> keys noted as recent ──> RocksDB
//! get, iterator ──> filter of all keys, recent keys ── nothing there: done
//!                                                  '── perhaps: RocksDB
//! worker ──> adds recent keys to the filter; rebuilds it by a scan when it is worn
//! ```
//! ```
//! use trommel_rocksdb::{Db, DbIterator, ReadOptions};
//! use rocksdb::{Direction, IteratorMode};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! let db = Db::open_default(folder.path())?;
//! db.put(b"user7/time1", b"in")?;
//! assert!(db.get(b"user8/time1")?.is_none());
//!
//! let mut options = ReadOptions::default();
//! options.set_iterate_upper_bound(b"user7/time9");
//! let from = IteratorMode::From(b"user7/time2", Direction::Forward);
//! assert_eq!(db.iterator_opt(from, options).count(), 0);
//! # Ok(())
//! # }
//! ```
//!
//! [`Db`] has the methods of [`rocksdb::DB`], and [`ReadOptions`] those of
//! [`rocksdb::ReadOptions`]. [`OptimisticTransactionDb`] and [`TransactionDb`] are for
//! transactions.
//!
//! Requires: all writes go through these types. Invariant: the door answers "nothing" only if
//! RocksDB would find nothing. If it is not sure, it leaves the answer to RocksDB.

mod arena;
mod base;
mod batch;
mod bell;
mod counts;
mod db;
mod door;
mod family;
mod filter;
mod habit;
mod hashes;
mod image;
mod index;
mod ingest;
mod iterator;
mod keys;
mod options;
mod options_file;
mod pause;
mod read;
mod read_options;
mod recent;
mod scan;
mod snapshot;
#[cfg(test)]
mod tests;
mod through;
mod transactions;
mod view;
mod worker;
mod write;

pub use base::{Base, RocksDb, RocksOptimisticDb, RocksTransactionDb};
pub use db::{Db, DoorDb};
pub use family::ColumnFamily;
pub use iterator::{DbIterator, DbRawIterator};
pub use options::{DoorOptions, DoorState};
pub use read_options::ReadOptions;
pub use rocksdb;
pub use snapshot::Snapshot;
pub use transactions::{OptimisticTransactionDb, Transaction, TransactionDb};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
