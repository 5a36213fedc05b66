//! What a store has done and what it holds.
//! ```text
//! reader threads -> a shard each (no shared cache line) --.
//! writers, background -> plain counters -------------------+-> Stats, on request
//! ```
//! Invariant: counters only grow. What is not a counter is read from the newest version.

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

/// Makes the struct, and its fields in their order, of one list.
macro_rules! query_stats {
    ($($(#[$doc:meta])+ $field:ident)+) => {
        /// What one kind of query has cost so far. Monotone counters.
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
    /// Queries that no memtable answered, so that the guard was asked.
    reached_runs
    /// Filter probes. With a global guard one per query that reaches the runs.
    guard_probes
    /// Runs searched that had something for the query.
    true_positives
    /// Runs searched needlessly.
    false_positives
    /// Runs left out. (A guard never leaves out a run that has something.)
    true_negatives
    /// Blocks asked for, cache hits included.
    blocks_read
    /// Blocks that came from the disk.
    disk_reads
    /// Values apart that did.
    value_reads
    /// Bytes that came from the disk.
    bytes_read
}

impl QueryStats {
    /// Blocks that were in the cache.
    pub fn cache_hits(&self) -> u64 {
        self.blocks_read - self.disk_reads
    }

    /// Block reads that the guard has spared: one for each run left out.
    pub fn blocks_saved(&self) -> u64 {
        self.true_negatives
    }

    /// What was counted since `earlier`.
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

/// The counters of a place for threads, away from the cache lines of others.
#[derive(Default)]
#[repr(align(128))]
struct Shard {
    fields: [[AtomicU64; QueryStats::PATHS.len()]; KINDS],
}

impl Shard {
    /// `add` adds to a counter, and tells what it was before.
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
    /// Made when a thread first asks something: of many trees most are not asked for long.
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
    /// Adds one query's costs. How many queries of its kind were counted before in the same shard.
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

    /// Does work for the guard, and counts its time.
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

/// What the guard is and costs.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct GuardStats {
    /// The guard.
    pub kind: GuardKind,
    /// Memory per entry on disk, in bits, everything included.
    pub bits_per_key: f64,
    /// Memory of all filters, in bytes.
    pub memory_bytes: u64,
    /// Of a global filter: memory for the last level.
    pub base_bytes: u64,
    /// Of a global filter: memory for what was flushed since.
    pub overlay_bytes: u64,
    /// Of a filter whose parts share
    /// [`filter_memory`](crate::options::OptionValues::filter_memory): the least and the most bits
    /// per key that a part was made with.
    pub part_bits: Option<(f64, f64)>,
    /// Of a global filter: keys of the last level.
    pub base_entries: u64,
    /// Of a global filter: entries flushed since.
    pub overlay_entries: u64,
    /// Whether a global filter was read from the runs when the store was opened, for want of a
    /// fitting image.
    pub built_at_open: bool,
    /// How long making the guard took when the store was opened, in seconds.
    pub open_seconds: f64,
    /// Time spent building and updating filters, in seconds.
    pub seconds: f64,
    /// The most memory that building a part has taken, in bytes, beside the part it replaces.
    pub rebuild_peak_bytes: u64,
    /// Filters and images of filters that did not decode when the store was opened, with file and
    /// place, as long as the tree has them. They are not used. A merge makes new ones.
    pub damaged: Vec<String>,
    /// Filters of tables that are of unregistered kinds, by name or tag, and how many tables have
    /// them. Such a table is read without its filter.
    pub unregistered: BTreeMap<String, u64>,
    /// Of a guard with a filter for each table: the parameters of new ones beside their memory, as
    /// text. None: there are none.
    pub tuning: Option<String>,
    /// Of the guard `elastic`: which sub-filters are in memory.
    pub elastic: Option<ElasticStats>,
    /// Of a filter that knows in which run each key is: its entries, and what did not fit.
    pub locator: Option<RunLocatorSize>,
}

/// Tables that left the tree and whose files are still there, and what holds them for long. If none
/// of these does, a read, a merge or a checkpoint that is under way does, until it is done.
/// Snapshots hold no files: merges keep entries for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ObsoleteStats {
    /// How many.
    pub tables: u64,
    /// Bytes of their files.
    pub bytes: u64,
    /// Scans that last moved in an older tree, each end counted by itself. They release it when
    /// they move or are dropped.
    pub scans: u64,
    /// Trees of `pinned_tree` that are older than the newest one.
    pub pinned_trees: u64,
    /// Trees that a follower was given and holds, older than the newest one.
    pub followed_trees: u64,
}

/// A store at one moment.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// Gets.
    pub point: QueryStats,
    /// Scans without a bound where they end.
    pub open_seek: QueryStats,
    /// Scans with a bound where they end.
    pub closed_seek: QueryStats,
    /// How long gets take; empty without [`time_calls`](crate::options::OptionValues::time_calls),
    /// as the next two.
    pub gets: Latency,
    /// How long the first step of scans takes.
    pub seeks: Latency,
    /// How long writes take, of a batch each, with their sync where they wait for it.
    pub batches: Latency,
    /// The guard.
    pub guard: GuardStats,
    /// Where the global filter came from when the store was opened.
    pub filter_recovery: FilterRecovery,
    /// Which merges keep the tree in shape.
    pub policy: Policy,
    /// T of the policy, as it was asked for: levels of some policies have ratios of their own.
    pub size_ratio: u32,
    /// The tree, newest level first.
    pub levels: Vec<LevelStats>,
    /// Partitions of the last level, in key order.
    pub partitions: Vec<PartitionStats>,
    /// The merge into the last level that is half done, if it goes from partition to partition.
    pub under_way: Option<UnderWay>,
    /// Tables of which some keys belong to the tree no more: a merge of a key range has taken
    /// these.
    pub trimmed_tables: u64,
    /// Bytes of the files of the tree's tables: those of [`table_bytes`](Stats::table_bytes), and
    /// what trimmed tables have beside.
    pub table_file_bytes: u64,
    /// Memtables, the active one included.
    pub memtables: u64,
    /// Their memory, in bytes.
    pub memtable_bytes: u64,
    /// Entries in them: they are in no table yet. Deleted ranges do not count.
    pub memtable_entries: u64,
    /// All writes of the key space before this sequence number are in tables. None: all are, and
    /// nothing is in memory.
    pub first_unflushed: Option<u64>,
    /// A crash takes no write of the key space up to this sequence number; it may take all later
    /// ones. 0 before anything is written after an opening, or synced: what a killed process wrote
    /// need not be durable. None: the key space has a [`log`](crate::options::OptionValues::log).
    pub durable_through: Option<u64>,
    /// Logs whose writes are not all in tables.
    pub logs: u64,
    /// Their bytes.
    pub log_bytes: u64,
    /// Logs that are kept for change feeds alone: see
    /// [`kept_log_bytes`](crate::options::OptionValues::kept_log_bytes).
    pub kept_logs: u64,
    /// Their bytes; of each 4096 at least.
    pub kept_log_bytes: u64,
    /// Files of values that the key space's entries refer to: see
    /// [`value_threshold`](crate::options::OptionValues::value_threshold).
    pub value_files: u64,
    /// Their bytes.
    pub value_bytes: u64,
    /// Of these, bytes that no entry refers to: merges bring them back.
    pub value_garbage_bytes: u64,
    /// Memory of fence pointers, of deleted ranges and of the places for cached blocks, in bytes.
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
    /// Merges that are open: each has runs of its own, some may wait for a thread.
    pub merging: u64,
    /// Times that writers were slowed down because flushes or merges lagged behind. In stepped mode
    /// no writer waits, but the time counts as if it had.
    pub slowdowns: StallStats,
    /// Times that they were stopped, because slowing down was not enough. In stepped mode no
    /// writer waits, and no time is counted.
    pub stops: StallStats,
    /// Times that reads for update, and writes, waited for a transaction to end that had locked
    /// their key. The time of a wait counts when it has ended.
    pub lock_waits: StallStats,
    /// Slowdowns and stops.
    pub stalls: u64,
    /// How long writers waited in all, in seconds.
    pub stall_seconds: f64,
    /// Newest sequence number that reads see.
    pub sequence: u64,
    /// Oldest sequence number that a snapshot or scan still reads at.
    pub oldest_pin: Option<u64>,
    /// Bytes of replaced filters that transactions need: see
    /// [`transaction_memory`](crate::options::OptionValues::transaction_memory). Of all key spaces.
    pub transaction_bytes: u64,
    /// Tables that left the tree and are still being read: those of
    /// [`obsolete`](Stats::obsolete).
    pub leaving_tables: u64,
    /// Files that the tree does not need any more.
    pub obsolete: ObsoleteStats,
    /// With `SyncPolicy::Interval`: the age of the oldest write that was acknowledged and is not
    /// durable. None: all are.
    pub unsynced_seconds: Option<f64>,
    /// How tables are read and written.
    pub io: IoStats,
    /// Files of tables that are open.
    pub files: FileStats,
    /// What stops flushes or merges, or has made the log unusable, if something has. It is tried
    /// again: the log's place is taken by another with the next write, `sync` or `flush`.
    pub failure: Option<String>,
}

impl Stats {
    /// Bytes of tables written per byte of keys and values written; 0 before the first write.
    pub fn write_amplification(&self) -> f64 {
        let written = (self.bytes_flushed + self.bytes_merged) as f64;
        if self.bytes_written_user == 0 { 0.0 } else { written / self.bytes_written_user as f64 }
    }

    /// Sorted runs in all levels.
    pub fn run_count(&self) -> usize {
        self.levels.iter().map(|level| level.runs.len()).sum()
    }

    /// Entries in tables, deletions included. Those of
    /// [`memtable_entries`](Stats::memtable_entries) are not: they are in memory, and in logs if
    /// the key space has one.
    pub fn entries(&self) -> u64 {
        self.levels.iter().flat_map(|level| &level.runs).map(|run| run.entries).sum()
    }

    /// Memory that the store knows it takes, in bytes: guard, memtables, fence pointers, cached
    /// blocks; no buffers of merges.
    pub fn memory_bytes(&self) -> u64 {
        self.guard.memory_bytes + self.memtable_bytes + self.fence_bytes + self.cache_bytes
    }

    /// Bytes of tables.
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
            // More than have a place for themselves, and some after others have ended.
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
