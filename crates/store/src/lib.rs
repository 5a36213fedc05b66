//! Trommel: an embedded, persistent key-value store (an LSM-tree) that keeps one small filter in
//! memory for the whole tree, and asks it one question, once, before it opens a file: *which sorted
//! runs may hold this key, or this key range?*
//!
//! Misses and empty ranges are answered from memory, hits read one block. Begin with [`Db::open`].

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
pub use entries::value::Value;
pub use error::{Error, Result};
pub use files::log_check::LogCounts;
pub use guard::elastic_stats::ElasticStats;
pub use guard::filter_recovery::FilterRecovery;
pub use plan::options::{Background, GuardKind, Options, Sync};
pub use plan::partitions::Granularity;
pub use plan::policy::{LevelRule, Policy};
pub use plan::registry::{register_filter, register_run_locator};
pub use read::queue::{Answer, Answered, Queue};
pub use read::scan::{KeyValue, Scan};
pub use storage::disk::Disk;
pub use storage::environment::{Clock, Environment, ManualClock, PausePoint, Pauses};
pub use storage::io_mode::{Access, DirectIo, IoStats, Overlap};
pub use storage::memory::{Fault, Handles, Memory};
pub use storage::open_files::FileStats;
pub use storage::read_queue::{Completed, ReadBuffer, ReadQueue};
pub use storage::{Append, Folder, RawFile, ReadAt, Storage, Syncer};
pub use tools::dump::{DumpItem, FileKind, dump};
pub use tools::repair::{repair, repair_with};
pub use tools::repair_report::{Doubt, Loss, RepairReport};
pub use tools::verify::VerifyReport;
pub use tools::verify_files::{verify_files, verify_files_with};
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
