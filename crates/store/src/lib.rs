//! Trommel: an embedded, persistent key-value store, built as an LSM-tree. It keeps one small
//! filter in memory for the whole tree. Before it opens a file, it asks that filter once: *which
//! sorted runs may hold this key, or this key range?* Misses and empty ranges are answered from
//! memory; a hit reads one block.
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
//! # Where to start
//!
//! | to | start with |
//! |---|---|
//! | write | [`Db::put`], [`Db::write`] with a [`Batch`], [`Db::delete_range`], [`Db::put_ttl`] |
//! | add to values without reading them | [`Db::merge`], [`Options::merge_operator`] |
//! | read through a batch before it is written | [`IndexedBatch`] |
//! | bulk-load sorted or unsorted entries | [`Db::ingest`], [`Db::ingest_unsorted`] |
//! | write and read values of any length | [`Db::put_reader`], [`Db::get_reader`] |
//! | read keys | [`Db::get`], [`Db::multi_get`], [`Db::queue`] for many concurrent reads |
//! | read ranges | [`Db::range`], [`Db::prefix`], [`Db::may_contain_range`] |
//! | estimate the number of keys | [`Db::approximate_count`], [`Db::estimate_count`] |
//! | read a consistent state while writes continue | [`Db::snapshot`] |
//! | start from a preset of options | [`Options::server`], [`Options::small_device`], ... |
//! | take options from text | [`Options::set`], [`Options::list`] |
//! | choose what a crash may lose | [`SyncPolicy`], [`Db::sync`] |
//! | choose the filter and its memory | [`Options::guard`], [`Options::bits_per_key`] |
//! | choose when runs merge | [`Options::policy`], [`Options::size_ratio`] |
//! | bound memory, files, threads | [`Options::write_buffer_bytes`] and its neighbours |
//! | share these limits between many stores | [`Resources`] |
//! | stream all writes in commit order | [`Db::changes_since`] |
//! | read a store that another process writes | [`Db::follow`] |
//! | be notified of events | [`events::Listener`] |
//! | read statistics | [`Db::stats`], [`stats::Stats::prometheus`], [`stats::Stats::metrics`] |
//! | back up a store | [`Db::checkpoint`], [`backup`] |
//! | find and repair damage | [`Db::verify`], [`tools`] |
//! | test against a simulated, faulty disk | [`storage::Memory`], [`testing`] |
//!
//! # From RocksDB
//!
//! | RocksDB | Trommel |
//! |---|---|
//! | `Put`, `Get`, `MultiGet` | [`Db::put`], [`Db::get`], [`Db::multi_get`] |
//! | `Write`, `Delete`, `DeleteRange` | [`Db::write`], [`Db::delete`], [`Db::delete_range`] |
//! | `WriteBatch`, `WriteBatchWithIndex` | [`Batch`], [`IndexedBatch`] |
//! | `WriteOptions::sync` | [`SyncPolicy`] for all writes, [`Db::write_synced`] for one |
//! | `Iterator`, `Seek`, `SeekForPrev` | [`Db::range`], [`Scan::seek`], [`Scan::seek_back`] |
//! | `ReadOptions::iterate_upper_bound`, prefix seek | the end of the range, [`Db::prefix`] |
//! | `GetSnapshot` | [`Db::snapshot`] |
//! | `Flush`, `CompactRange` | [`Db::flush`], [`Db::compact`] (no ranges) |
//! | `IngestExternalFile` | [`Db::ingest`] |
//! | `Checkpoint` | [`Db::checkpoint`] |
//! | `BackupEngine` | [`backup::Backups`] |
//! | `GetApproximateSizes`, `KeyMayExist` | [`Db::approximate_count`], [`Db::may_contain_range`] |
//! | `GetProperty`, `Statistics` | [`Db::stats`] |
//! | `GetUpdatesSince` | [`Db::changes_since`] |
//! | `compression`, `bottommost_compression` | [`Options::compression`] and its neighbours |
//! | `EventListener` | [`events::Listener`] |
//! | `Env`, shared `Cache`, `WriteBufferManager`, `RateLimiter` | [`Environment`], [`Resources`] |
//! | TTL (`DBWithTTL`) | [`Db::put_ttl`], for each entry |
//! | filter policy, `optimize_filters_for_hits` | [`Options::guard`], [`Options::monkey`] |
//! | OPTIONS file | the store keeps the options that were set, per key space |
//! | `MergeOperator`, `Merge` | [`Options::merge_operator`], [`Db::merge`] |
//! | compaction filter | none; entries can expire instead |
//! | column families | [`Db::keyspace`], [`Batch::to`], [`Snapshot::of`] |
//! | optimistic transactions | [`Db::transaction`], [`Db::run`], [`Batch::only_if`] |
//! | pessimistic transactions, `GetForUpdate` | [`Transaction::get_for_update`], for chosen keys |
//! | secondary or read-only instance | [`Db::follow`], [`Follower::catch_up`] |
//!
//! # What to know first
//!
//! - A store is a folder. One process at a time has it open; others may [follow](Db::follow) it.
//! - A [`Db`] is a handle. Clone it to use it from another thread. Reads take no lock.
//! - Every error says what went wrong, where, and what to do: see [`Error`].
//! - With [`SyncPolicy::Always`], a crash loses no acknowledged write. With the other settings it
//!   loses at most the last writes, and never half a batch.
//! - Options are not fixed. A store can be reopened with other options; its tree adapts to them as
//!   it merges.
//!
//! [`Db::approximate_count`]: Keyspace::approximate_count
//! [`Db::delete`]: Keyspace::delete
//! [`Db::delete_range`]: Keyspace::delete_range
//! [`Db::estimate_count`]: Keyspace::estimate_count
//! [`Db::get`]: Keyspace::get
//! [`Db::get_reader`]: Keyspace::get_reader
//! [`Db::ingest`]: Keyspace::ingest
//! [`Db::ingest_unsorted`]: Keyspace::ingest_unsorted
//! [`Db::may_contain_range`]: Keyspace::may_contain_range
//! [`Db::merge`]: Keyspace::merge
//! [`Db::multi_get`]: Keyspace::multi_get
//! [`Db::prefix`]: Keyspace::prefix
//! [`Db::put`]: Keyspace::put
//! [`Db::put_reader`]: Keyspace::put_reader
//! [`Db::put_ttl`]: Keyspace::put_ttl
//! [`Db::queue`]: Keyspace::queue
//! [`Db::range`]: Keyspace::range
//! [`Db::stats`]: Keyspace::stats

pub mod backup;
mod cost;
mod db;
mod entries;
mod error;
pub mod events;
mod files;
mod follow;
mod guard;
mod open;
mod plan;
mod read;
pub mod research;
mod shared;
pub mod storage;
mod sync;
pub mod tools;
mod tree;
mod write;

pub use db::{
    Db, Isolation, Keyspace, Savepoint, Snapshot, Swap, Transaction, TransactionIn,
    TransactionScan, Update,
};
pub use entries::batch::Batch;
pub use entries::expiry::Expiry;
pub use entries::key_bounds::KeyBounds;
pub use entries::value::Value;
pub use error::{Error, Result};
pub use follow::{FollowOptions, FollowedKeyspace, Follower, Moment, Staleness};
pub use plan::background::Background;
pub use plan::guard_kind::GuardKind;
pub use plan::options::Options;
pub use plan::options::keyspace::KeyspaceOptions;
pub use plan::policy::Policy;
pub use plan::sync_policy::SyncPolicy;
pub use read::batch_scan::BatchScan;
pub use read::changes::{Change, ChangeBatch, ChangeKind, Changes};
pub use read::indexed_batch::{IndexedBatch, Readable};
pub use read::queue::{Answer, Answered, Queue};
pub use read::scan::{KeyValue, Scan};
pub use read::value_reader::ValueReader;
pub use shared::environment::Environment;
pub use shared::resources::Resources;
pub use sync::giving_up::giving_up;

/// Merge operators: they combine a value and the operands merged into it into one value.
pub mod merge_operators {
    pub use crate::entries::merge_operator::{
        Add, Concat, MergeError, MergeOperator, OperatorOption,
    };
}

/// Upper bounds on keys, values and batches.
pub mod limits {
    pub use crate::entries::entry::{BATCH_BYTES_MAX, KEY_BYTES_MAX, VALUE_BYTES_MAX, WRITE_BYTES};
}

/// Bulk loading of unsorted entries: [`Db::ingest_unsorted`](crate::Keyspace::ingest_unsorted).
pub mod sorting {
    pub use crate::files::sort::{OnSorting, SortOptions, SortProgress, SortStage};
}

/// The types of option values, and the list of all options.
pub mod options {
    pub use crate::entries::compression::Compression;
    pub use crate::plan::options::{OptionInfo, OptionValues, whole_number};
    pub use crate::plan::partitions::Granularity;
    pub use crate::plan::policy::LevelRule;
    pub use crate::shared::resources::ResourceOptions;
    pub use crate::storage::io_mode::{DirectIo, Overlap};
    pub use trommel_filters::{
        FilterTuning, SurfKind, SurfOptions, SurfSuffix, Tuning, TuningOption,
    };
}

/// Statistics of a store: [`Db::stats`](crate::Keyspace::stats) and the types that it returns.
pub mod stats {
    pub use crate::guard::elastic_stats::ElasticStats;
    pub use crate::guard::filter_recovery::FilterRecovery;
    pub use crate::shared::resources::ResourceStats;
    pub use crate::storage::io_mode::IoStats;
    pub use crate::storage::open_files::FileStats;
    pub use crate::tree::latency::Latency;
    pub use crate::tree::metrics::{Metric, MetricKind, MetricValue};
    pub use crate::tree::partition_stats::{PartitionStats, UnderWay};
    pub use crate::tree::stats::{GuardStats, ObsoleteStats, QueryStats, Stats};
    pub use crate::tree::tree_stats::{LevelStats, RunStats};
    pub use crate::tree::write_stalls::StallStats;
}

/// User-defined filters: the traits that a kind of filter implements, and how to register it.
pub mod filters {
    pub use crate::plan::registry::{register_filter, register_run_locator};
    pub use trommel_filters::{
        AlignedBytes, AnyFilter, AnyFilterBuilder, Corrupt, CountBounds, FilterKind, FilterOptions,
        HashedKey, KeyRange, LowerBound, OutOfOrder, RunLocatorKind, RunLocatorSize, TableFilter,
        TableFilterBuilder, TableKind, Trace, UpperBound, kinds,
    };
}

/// For tests: faults of a simulated disk ([`storage::Memory`]), a clock that is set by hand, and
/// pauses at places that threads rarely reach together. This module is not stable: it changes with
/// the implementation.
pub mod testing {
    pub use crate::storage::clock::ManualClock;
    pub use crate::storage::memory::Fault;
    pub use crate::storage::pauses::{PausePoint, Pauses};
}

/// The examples of both READMEs compile and run as they stand.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeOfTheCrate;
