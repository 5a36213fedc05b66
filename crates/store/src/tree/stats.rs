//! What a store has done, and what it holds.
//! ```text
//! reader threads -> a shard each (no shared cache line) --.
//! writers, background -> plain counters -------------------+-> Stats, on request
//! ```
//! Invariant: counters only grow. Everything else is read from the newest version.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use trommel_filters::RunLocatorSize;

use crate::guard::elastic_stats::ElasticStats;
use crate::guard::filter_recovery::FilterRecovery;
use crate::plan::guard_kind::GuardKind;
use crate::plan::policy::Policy;
use crate::storage::io_mode::IoStats;
use crate::storage::open_files::FileStats;
use crate::sync::{AtomicU64, OnceLock, Ordering};
use crate::tree::latency::{Latency, Recorder};
use crate::tree::partition_stats::{PartitionStats, UnderWay};
use crate::tree::thread_place::{OWN, PLACES, place};
use crate::tree::tree_stats::LevelStats;
use crate::tree::write_stalls::{StallCounter, StallStats};

/// Defines the struct and the order of its fields by one list.
macro_rules! query_stats {
    ($($(#[$doc:meta])+ $field:ident)+) => {
        /// The cost of one kind of query so far. All fields only grow.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct QueryStats {
            $($(#[$doc])+ pub $field: u64,)+
        }

        impl QueryStats {
            pub(crate) const PATHS: [&'static str; [$(stringify!($field)),+].len()] =
                [$(concat!("query.", stringify!($field))),+];

            pub(crate) fn fields(&self) -> [u64; Self::PATHS.len()] {
                [$(self.$field),+]
            }

            pub(crate) fn add(&mut self, other: &QueryStats) {
                $(self.$field += other.$field;)+
            }

            fn of_fields([$($field),+]: [u64; Self::PATHS.len()]) -> Self {
                QueryStats { $($field),+ }
            }
        }
    };
}

query_stats! {
    /// Queries of this kind.
    queries
    /// Queries that no memtable answered, so that they asked the guard.
    reached_runs
    /// Filter probes. With a global guard: one for each query that reaches the runs.
    guard_probes
    /// Searched runs that had an entry for the query.
    true_positives
    /// Runs searched needlessly.
    false_positives
    /// Runs left out. (A guard never leaves out a run with an entry for the query.)
    true_negatives
    /// Blocks asked for, cache hits included.
    blocks_read
    /// Blocks read from disk.
    disk_reads
    /// Values apart read from disk.
    value_reads
    /// Bytes read from disk.
    bytes_read
}

impl QueryStats {
    /// Returns the number of blocks found in the cache.
    pub fn cache_hits(&self) -> u64 {
        self.blocks_read - self.disk_reads
    }

    /// Returns the number of block reads that the guard has avoided: one for each run left out.
    pub fn blocks_saved(&self) -> u64 {
        self.true_negatives
    }

    /// Returns what was counted since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &QueryStats) -> QueryStats {
        let (now, before) = (self.fields(), earlier.fields());
        QueryStats::of_fields(std::array::from_fn(|place| now[place] - before[place]))
    }
}

/// The kinds of queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueryKind {
    Point,
    OpenSeek,
    ClosedSeek,
}

const KINDS: usize = 3;

/// The counters of one thread place, on cache lines of their own.
#[derive(Default)]
#[repr(align(128))]
struct Shard {
    fields: [[AtomicU64; QueryStats::PATHS.len()]; KINDS],
}

impl Shard {
    /// Adds the costs with `add`, which returns a counter's former value. Returns the former number
    /// of queries.
    #[inline(always)]
    fn add(
        &self,
        kind: QueryKind,
        costs: &QueryStats,
        add: impl Fn(&AtomicU64, u64) -> u64,
    ) -> u64 {
        let [queries, counters @ ..] = &self.fields[kind as usize];
        let [count, costs @ ..] = costs.fields();
        for (counter, cost) in counters.iter().zip(costs) {
            if cost > 0 {
                add(counter, cost);
            }
        }
        add(queries, count)
    }
}

/// All counters of an open store.
#[derive(Default)]
pub(crate) struct Counters {
    /// Made by the first query: of many trees, most are not queried for long.
    shards: OnceLock<Box<[OnceLock<Box<Shard>>; PLACES]>>,
    pub(crate) flushes: AtomicU64,
    pub(crate) merges: AtomicU64,
    pub(crate) writes: AtomicU64,
    pub(crate) user_bytes: AtomicU64,
    pub(crate) flushed_bytes: AtomicU64,
    pub(crate) merged_bytes: AtomicU64,
    /// Entries that merges have read.
    pub(crate) merged_entries: AtomicU64,
    pub(crate) guard_nanoseconds: AtomicU64,
    pub(crate) rebuild_peak_bytes: AtomicU64,
    pub(crate) slowdowns: StallCounter,
    pub(crate) stops: StallCounter,
    pub(crate) lock_waits: StallCounter,
    pub(crate) gets: Recorder,
    pub(crate) seeks: Recorder,
    pub(crate) batches: Recorder,
}

impl Counters {
    /// Adds the cost of one query. Returns the number of queries of its kind before, in the same
    /// shard.
    #[inline]
    pub(crate) fn queried(&self, kind: QueryKind, costs: &QueryStats) -> u64 {
        let place = place();
        let shards = self.shards.get_or_init(|| Box::new(std::array::from_fn(|_| OnceLock::new())));
        let shard = shards[place].get_or_init(Box::default);
        match place < OWN {
            true => shard.add(kind, costs, |counter, count| {
                let before = counter.load(Ordering::Relaxed);
                counter.store(before + count, Ordering::Relaxed);
                before
            }),
            false => {
                shard.add(kind, costs, |counter, count| counter.fetch_add(count, Ordering::Relaxed))
            }
        }
    }

    pub(crate) fn query_stats(&self, kind: QueryKind) -> QueryStats {
        let sum = |place: usize| {
            let shards = self.shards.get().into_iter().flat_map(|shards| shards.iter());
            let shards = shards.filter_map(OnceLock::get);
            shards.map(|shard| shard.fields[kind as usize][place].load(Ordering::Relaxed)).sum()
        };
        QueryStats::of_fields(std::array::from_fn(sum))
    }

    /// Requires: the caller is the writer. So no locked addition is needed.
    pub(crate) fn wrote(&self, writes: u64, bytes: u64) {
        for (counter, more) in [(&self.writes, writes), (&self.user_bytes, bytes)] {
            counter.store(counter.load(Ordering::Relaxed) + more, Ordering::Relaxed);
        }
    }

    pub(crate) fn flushed(&self, bytes: u64, filter_seconds: f64) {
        self.flushed_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.guard_worked(Duration::from_secs_f64(filter_seconds));
    }

    pub(crate) fn merged(&self, bytes: u64, filter_seconds: f64) {
        self.merged_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.guard_worked(Duration::from_secs_f64(filter_seconds));
    }

    /// Runs work for the guard, and counts its time.
    pub(crate) fn time_guard<T>(&self, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let done = work();
        self.guard_worked(start.elapsed());
        done
    }

    pub(crate) fn guard_worked(&self, time: Duration) {
        self.guard_nanoseconds.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
    }

    pub(crate) fn rebuilt(&self, peak_bytes: usize) {
        self.rebuild_peak_bytes.fetch_max(peak_bytes as u64, Ordering::Relaxed);
    }
}

/// The guard of a store, and its cost.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct GuardStats {
    /// The kind of guard.
    pub kind: GuardKind,
    /// Memory per entry on disk, in bits, with everything included.
    pub bits_per_key: f64,
    /// Memory of all filters, in bytes.
    pub memory_bytes: u64,
    /// For a global filter: memory of the bases, in bytes.
    pub base_bytes: u64,
    /// For a global filter: memory of the overlays, in bytes.
    pub overlay_bytes: u64,
    /// The least and the most bits per key that a part was built with. None: parts do not share
    /// [`filter_memory`](crate::options::OptionValues::filter_memory).
    pub part_bits: Option<(f64, f64)>,
    /// For a global filter: keys in the bases, which are those of the oldest run.
    pub base_entries: u64,
    /// For a global filter: entries in the overlays, which were flushed since.
    pub overlay_entries: u64,
    /// Whether the opening rebuilt a global filter from the runs, since no image fitted.
    pub built_at_open: bool,
    /// The time that the opening needed to make the guard, in seconds.
    pub open_seconds: f64,
    /// Time spent building and updating filters, in seconds.
    pub seconds: f64,
    /// The most memory that rebuilding a part took, in bytes, beside the replaced part.
    pub rebuild_peak_bytes: u64,
    /// Filters and images of filters that did not decode when the store was opened, with file and
    /// place. They are not used. The list shrinks as merges replace them.
    pub damaged: Vec<String>,
    /// Kinds of table filters that are not registered, by name or tag, with the number of their
    /// tables. Such a table is read without its filter.
    pub unregistered: BTreeMap<String, u64>,
    /// For a guard with a filter per table: the parameters of new filters besides memory, as text.
    /// None: there are none.
    pub tuning: Option<String>,
    /// For the guard `elastic`: which sub-filters are in memory.
    pub elastic: Option<ElasticStats>,
    /// For a filter that knows which run each key is in: its entries, and those that did not fit.
    pub locator: Option<RunLocatorSize>,
}

/// Tables that left the tree but still have files, and the long-lived holders of these. If there is
/// no such holder, a read, merge or checkpoint in progress holds them. Snapshots hold no files:
/// merges keep entries for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ObsoleteStats {
    /// The number of tables.
    pub tables: u64,
    /// Bytes of their files.
    pub bytes: u64,
    /// Scans that last moved in an older tree; the two ends of a scan count separately. A scan
    /// releases the tree when it moves or is dropped.
    pub scans: u64,
    /// Trees of `pinned_tree` that are older than the newest tree.
    pub pinned_trees: u64,
    /// Trees that a follower was given and still holds, older than the newest tree.
    pub followed_trees: u64,
}

/// A store at one moment.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// Gets.
    pub point: QueryStats,
    /// Scans without an end bound.
    pub open_seek: QueryStats,
    /// Scans with an end bound.
    pub closed_seek: QueryStats,
    /// Latency of gets. Empty without [`time_calls`](crate::options::OptionValues::time_calls), as
    /// are the next two.
    pub gets: Latency,
    /// Latency of the first step of scans.
    pub seeks: Latency,
    /// Latency of writes, each of one batch, including the sync if the write waits for one.
    pub batches: Latency,
    /// The guard.
    pub guard: GuardStats,
    /// The source of the global filter at the opening.
    pub filter_recovery: FilterRecovery,
    /// The merge policy.
    pub policy: Policy,
    /// T as set by the options. Levels of some policies have their own ratios.
    pub size_ratio: u32,
    /// The tree, newest level first.
    pub levels: Vec<LevelStats>,
    /// Partitions of the last level, in key order.
    pub partitions: Vec<PartitionStats>,
    /// The half-done merge into the last level, if it proceeds by partitions.
    pub under_way: Option<UnderWay>,
    /// Tables of which some keys no longer belong to the tree, since a merge of a key range has
    /// moved them.
    pub trimmed_tables: u64,
    /// Bytes of all files of tables: those of [`table_bytes`](Stats::table_bytes), and the rest of
    /// trimmed tables.
    pub table_file_bytes: u64,
    /// Memtables, the active one included.
    pub memtables: u64,
    /// Memory of the memtables, in bytes.
    pub memtable_bytes: u64,
    /// Entries in the memtables, which are in no table yet. Deleted ranges do not count.
    pub memtable_entries: u64,
    /// All writes of the key space before this sequence number are in tables. None: all writes are,
    /// and memtables are empty.
    pub first_unflushed: Option<u64>,
    /// A crash loses no write of the key space up to this sequence number, but may lose all later
    /// ones. It is 0 until the first write or sync after an opening: writes of a killed process
    /// need not be durable. None: the key space has a [`log`](crate::options::OptionValues::log).
    pub durable_through: Option<u64>,
    /// Logs with writes that are not in tables yet.
    pub logs: u64,
    /// Bytes of these logs.
    pub log_bytes: u64,
    /// Logs that are kept for change feeds only: see
    /// [`kept_log_bytes`](crate::options::OptionValues::kept_log_bytes).
    pub kept_logs: u64,
    /// Bytes of these logs, at least 4096 each.
    pub kept_log_bytes: u64,
    /// Value files that no entry of the key space refers to any more, and that logs keep.
    pub kept_value_files: u64,
    /// Bytes of these files.
    pub kept_value_bytes: u64,
    /// Value files that entries of the key space refer to: see
    /// [`value_threshold`](crate::options::OptionValues::value_threshold).
    pub value_files: u64,
    /// Bytes of these files.
    pub value_bytes: u64,
    /// Bytes of these files that no entry refers to. Merges free them.
    pub value_garbage_bytes: u64,
    /// Memory of fence pointers, of deleted ranges, and of the slots for cached blocks, in bytes.
    pub fence_bytes: u64,
    /// Memory of this key space's cached blocks, in bytes.
    pub cache_bytes: u64,
    /// Writes: puts and deletions.
    pub writes: u64,
    /// Bytes of their keys and values.
    pub bytes_written_user: u64,
    /// Bytes of tables that flushes wrote.
    pub bytes_flushed: u64,
    /// Bytes of tables that merges wrote.
    pub bytes_merged: u64,
    /// Flushes done.
    pub flushes: u64,
    /// Merges done.
    pub merges: u64,
    /// Open merges. Each has its own runs; some may wait for a thread.
    pub merging: u64,
    /// Times that writers were slowed down because flushes or merges lagged behind. In stepped mode
    /// no writer waits, but the time counts as if it had.
    pub slowdowns: StallStats,
    /// Times that writers were stopped, because slowing them down was not enough. In stepped mode
    /// no writer waits, and no time is counted.
    pub stops: StallStats,
    /// Times that reads for update and writes waited for a transaction that had locked their key.
    /// The time of a wait counts once it has ended.
    pub lock_waits: StallStats,
    /// The number of slowdowns and stops.
    pub stalls: u64,
    /// The total time that writers waited, in seconds.
    pub stall_seconds: f64,
    /// Newest sequence number that reads see.
    pub sequence: u64,
    /// Oldest sequence number that a snapshot or scan still reads at.
    pub oldest_pin: Option<u64>,
    /// Bytes of replaced filter parts that transactions need, in all key spaces: see
    /// [`transaction_memory`](crate::options::OptionValues::transaction_memory).
    pub transaction_bytes: u64,
    /// Tables that left the tree but still have files: those of [`obsolete`](Stats::obsolete).
    pub leaving_tables: u64,
    /// Files that the tree no longer needs.
    pub obsolete: ObsoleteStats,
    /// With `SyncPolicy::Interval`: the age of the oldest acknowledged write that is not durable.
    /// None: all are durable.
    pub unsynced_seconds: Option<f64>,
    /// How tables are read and written.
    pub io: IoStats,
    /// Files of tables that are open.
    pub files: FileStats,
    /// Why flushes or merges fail, or why the log is unusable. Flushes and merges are tried again;
    /// the next write, `sync` or `flush` replaces the log.
    pub failure: Option<String>,
}

impl Stats {
    /// Returns the bytes of tables written per byte of keys and values written; 0 before the first
    /// write.
    pub fn write_amplification(&self) -> f64 {
        let written = (self.bytes_flushed + self.bytes_merged) as f64;
        if self.bytes_written_user == 0 { 0.0 } else { written / self.bytes_written_user as f64 }
    }

    /// Returns the number of sorted runs in all levels.
    pub fn run_count(&self) -> usize {
        self.levels.iter().map(|level| level.runs.len()).sum()
    }

    /// Returns the number of entries in tables, deletions included.
    /// [`memtable_entries`](Stats::memtable_entries) do not count: these are in memory, and in logs
    /// if the key space has one.
    pub fn entries(&self) -> u64 {
        self.levels.iter().flat_map(|level| &level.runs).map(|run| run.entries).sum()
    }

    /// Returns the memory that the store knows of, in bytes: guard, memtables, fence pointers and
    /// cached blocks. Buffers of merges are not included.
    pub fn memory_bytes(&self) -> u64 {
        self.guard.memory_bytes + self.memtable_bytes + self.fence_bytes + self.cache_bytes
    }

    /// Returns the bytes of all tables.
    pub fn table_bytes(&self) -> u64 {
        self.levels.iter().flat_map(|level| &level.runs).map(|run| run.bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_add_up() {
        let counters = Counters::default();
        let costs = QueryStats { queries: 1, blocks_read: 2, disk_reads: 1, ..Default::default() };
        std::thread::scope(|scope| {
            // More threads than there are own places, some of them after others have ended.
            for _ in 0..100 {
                scope.spawn(|| {
                    (0..1000).for_each(|_| {
                        counters.queried(QueryKind::Point, &costs);
                    });
                });
            }
        });
        let total = counters.query_stats(QueryKind::Point);
        let counted = (total.queries, total.blocks_read, total.cache_hits());
        assert_eq!(counted, (100_000, 200_000, 100_000));
        assert_eq!(total.since(&costs).queries, 99_999);
        assert_eq!(counters.query_stats(QueryKind::OpenSeek), QueryStats::default());
    }
}
