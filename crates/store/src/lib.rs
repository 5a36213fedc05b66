//! Trommel: an embedded, persistent key-value store (an LSM-tree) that keeps one small filter in
//! memory for the whole tree. Before it opens a file, it asks that filter once: *which sorted runs
//! may hold this key, or this key range?* Misses and empty ranges are answered from memory, hits
//! read one block.
//!
//! ```
//! use trommel::{Db, Options};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! let db = Db::open(folder.path(), Options::default())?;
//! db.put("zug", "47.17 N")?;
//! assert_eq!(db.get("zug")?.as_deref(), Some(&b"47.17 N"[..]));
//! assert!(db.range("a".."y").next().is_none()); // answered from memory
//! db.close()?;
//! # Ok(())
//! # }
//! ```
//!
//! # Where to go on
//!
//! | to | begin with |
//! |---|---|
//! | write | [`Db::put`], [`Db::write`] with a [`Batch`], [`Db::delete_range`], [`Db::put_ttl`] |
//! | read what a batch would do | [`IndexedBatch`] |
//! | load sorted entries | [`Db::ingest`] |
//! | read keys | [`Db::get`], [`Db::multi_get`], [`Db::queue`] for many reads under way at once |
//! | read ranges | [`Db::range`], [`Db::prefix`], [`Db::may_contain_range`] |
//! | count | [`Db::approximate_count`], [`Db::estimate_count`] |
//! | read one state while writes go on | [`Db::snapshot`] |
//! | choose what a crash may lose | [`Options::sync`], [`Db::sync`] |
//! | choose the filter and its memory | [`Options::guard`], [`Options::bits_per_key`] |
//! | choose when runs merge | [`Options::policy`], [`Options::size_ratio`] |
//! | bound memory, files, threads | [`Options::write_buffer_bytes`] and its neighbours |
//! | see what it does | [`Db::stats`], [`Stats::prometheus`], [`Stats::metrics`] |
//! | back it up | [`Db::checkpoint`] |
//! | look for damage, and mend it | [`Db::verify`], [`verify_files`], [`repair()`], [`dump()`] |
//! | test against a disk that lies | [`Environment`], [`Memory`], [`Storage`] |
//!
//! # What to know first
//!
//! - A store is a folder, and one process at a time has it open.
//! - A [`Db`] is shared by reference among threads. Reads take no lock.
//! - Every error says what was wrong, where, and what to do: see [`Error`].
//! - After an acknowledged write with [`Sync::Always`], a crash loses nothing. With the other
//!   settings it loses at most the last writes, and never half a batch.
//! - Options are not fixed: a store can be opened with others, and moves there as it merges.

mod cost;
mod db;
mod entries;
mod error;
mod files;
mod guard;
mod open;
mod plan;
mod read;
mod storage;
mod sync;
mod tools;
mod tree;
mod write;

pub use db::{Db, Snapshot};
pub use entries::batch::Batch;
pub use entries::entry::{BATCH_BYTES_MAX, KEY_BYTES_MAX, VALUE_BYTES_MAX, WRITE_BYTES};
pub use entries::expiry::Expiry;
pub use entries::key_bounds::KeyBounds;
pub use entries::value::Value;
pub use error::{Error, Result};
pub use files::log_check::LogCounts;
pub use files::manifest::FORMAT_VERSION;
pub use guard::elastic_stats::ElasticStats;
pub use guard::filter_recovery::FilterRecovery;
pub use plan::options::{Background, GuardKind, Options, Sync};
pub use plan::partitions::Granularity;
pub use plan::policy::{LevelRule, Policy};
pub use plan::registry::{register_filter, register_run_locator};
pub use read::batch_scan::BatchScan;
pub use read::indexed_batch::{IndexedBatch, Readable};
pub use read::queue::{Answer, Answered, Queue};
pub use read::scan::{KeyValue, Scan};
pub use storage::disk::Disk;
pub use storage::environment::{Clock, Environment, ManualClock, PausePoint, Pauses};
pub use storage::io_mode::{Access, DirectIo, IoStats, Overlap};
pub use storage::memory::{Fault, Handles, Memory};
pub use storage::open_files::FileStats;
pub use storage::read_queue::{Completed, ReadBuffer, ReadQueue};
pub use storage::{
    Append, Folder, FolderWrapper, RawFile, ReadAt, ReadAtWrapper, Storage, StorageWrapper, Syncer,
};
pub use tools::dump::{DumpItem, FileKind, dump};
pub use tools::progress::{Listener, Progress};
pub use tools::repair::{repair, repair_with, repair_with_progress};
pub use tools::repair_report::{Doubt, Loss, RepairReport};
pub use tools::verify::VerifyReport;
pub use tools::verify_files::{verify_files, verify_files_with, verify_files_with_progress};
pub use tree::metrics::{Metric, MetricKind, MetricValue};
pub use tree::partition_stats::{PartitionStats, UnderWay};
pub use tree::peek::{RunPeek, TreePeek, peek};
pub use tree::stats::{GuardStats, ObsoleteStats, QueryStats, Stats};
pub use tree::tree_stats::{LevelStats, RunStats};
pub use tree::tree_view::PinnedTree;
pub use tree::write_stalls::StallStats;

pub use trommel_filters::{
    AlignedBytes, AnyFilter, AnyFilterBuilder, Corrupt, CountBounds, FilterKind, FilterOptions,
    FilterTuning, HashedKey, KeyRange, LowerBound, OutOfOrder, RunLocatorKind, RunLocatorSize,
    SurfKind, SurfOptions, SurfSuffix, TableFilter, TableFilterBuilder, TableKind, Trace, Tuning,
    UpperBound, kinds,
};

/// The README's example compiles and runs as it stands.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
