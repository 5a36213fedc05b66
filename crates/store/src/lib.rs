//! Trommel: an embedded, persistent key-value store (an LSM-tree) that keeps one small filter in
//! memory for the whole tree, and asks it one question, once, before it opens a file: *which sorted
//! runs may hold this key, or this key range?*
//!
//! Misses and empty ranges are answered from memory, hits read one block. Begin with [`Db::open`].

mod access;
mod append_list;
mod background;
mod batch;
mod block;
mod block_cursor;
mod budget;
mod cache;
mod checkpoint;
mod claims;
mod closing;
mod commit;
mod compaction;
mod copying;
mod core;
mod cost;
#[cfg(test)]
mod cost_laws;
mod count;
mod cursor;
mod db;
mod disk;
mod disk_direct;
mod disk_folder;
mod disk_many;
mod due;
mod dump;
mod elastic;
mod elastic_stats;
mod entry;
mod environment;
mod error;
mod exhausted;
mod expiry;
mod fences;
mod fetched;
mod filter_recovery;
mod flush;
#[cfg_attr(
    not(any(loom, shuttle, miri)),
    expect(
        unsafe_code,
        reason = "a page of memory that a fork wipes is mapped and named by a pointer"
    )
)]
mod fork_word;
mod guard;
mod guard_parts;
mod image;
mod ingest;
mod interval_tree;
#[expect(
    unsafe_code,
    reason = "the kernel reads into memory by pointers that entries of a ring name"
)]
mod io_uring;
#[cfg(miri)]
#[expect(unsafe_code, reason = "it writes by the pointers that entries name, as the kernel does")]
mod io_uring_fake;
mod keeper;
mod key_bounds;
mod keys;
mod lanes;
mod layout;
mod leaving;
mod life;
mod located;
mod located_merge;
mod log_check;
mod manifest;
mod memory;
mod memtable;
mod memtable_bloom;
mod memtable_ranges;
mod memtable_writes;
mod merge;
mod merge_inputs;
mod merge_install;
mod merge_parts;
mod merge_piece;
mod merging;
#[cfg(all(test, loom))]
mod models;
mod multi_get;
mod open_files;
mod open_folder;
mod options;
mod output;
mod pacing;
mod partial;
mod partition_stats;
mod partitions;
mod peek;
mod pinned_tree;
mod policy;
mod pool;
mod questions;
mod queue;
mod queue_get;
mod queue_range;
mod read;
mod read_pool;
mod read_queue;
mod record;
mod recovery;
mod repair;
mod repair_layout;
mod repair_logs;
mod repair_manifest;
mod repair_report;
mod repair_tables;
mod repair_untangle;
mod report;
mod retention;
mod ring_queue;
mod run;
mod run_table;
mod salvage;
mod scan;
mod scan_ahead;
mod scan_deleted;
mod scan_side;
mod scan_sources;
mod scan_waiting;
mod sectors;
mod skiplist;
mod snapshots;
mod stalls;
mod stats;
mod storage;
mod subdivide;
mod sync;
mod table;
mod table_cursor;
mod table_format;
mod table_writer;
mod threads;
mod tombstones;
mod tree_stats;
mod tuning;
mod unsynced;
mod user_keys;
mod value;
mod verify;
mod verify_files;
mod version;
mod version_search;
mod view_cursor;
mod wal;

pub use access::{Access, DirectIo, IoStats, Overlap};
pub use batch::Batch;
pub use db::{Db, Snapshot};
pub use disk::Disk;
pub use dump::{DumpItem, FileKind, dump};
pub use elastic_stats::ElasticStats;
pub use entry::{BATCH_BYTES_MAX, KEY_BYTES_MAX, VALUE_BYTES_MAX, WRITE_BYTES};
pub use environment::{Clock, Environment, ManualClock, PausePoint, Pauses};
pub use error::{Error, Result};
pub use expiry::Expiry;
pub use filter_recovery::FilterRecovery;
pub use log_check::LogCounts;
pub use memory::{Fault, Handles, Memory};
pub use open_files::FileStats;
pub use options::{Background, ElasticOptions, GuardKind, Options, Sync};
pub use partition_stats::{PartitionStats, UnderWay};
pub use partitions::Granularity;
pub use peek::{RunPeek, TreePeek, peek};
pub use pinned_tree::PinnedTree;
pub use policy::{LevelRule, Policy};
pub use queue::{Answer, Answered, Queue};
pub use read_queue::{Completed, ReadBuffer, ReadQueue};
pub use repair::{repair, repair_with};
pub use repair_report::{Doubt, Loss, RepairReport};
pub use scan::{KeyValue, Scan};
pub use stalls::StallStats;
pub use stats::{GuardStats, ObsoleteStats, QueryStats, Stats};
pub use storage::{Append, Folder, RawFile, ReadAt, Storage, Syncer};
pub use tree_stats::{LevelStats, RunStats};
pub use tuning::FilterTuning;
pub use value::Value;
pub use verify::VerifyReport;
pub use verify_files::{verify_files, verify_files_with};

pub use trommel_filters::{
    CountBounds, FilterKind, LocatedKind, LocatedSize, PrefixRule, RencoderPlan, RosettaPlan,
    RosettaSplit, SurfOptions, SurfSuffix,
};

/// The README's example compiles and runs as it stands.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
