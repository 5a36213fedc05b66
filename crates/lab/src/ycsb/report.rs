//! The report of one store under one workload.

use serde::{Deserialize, Serialize};

use crate::compare::PeerCounts;
use crate::ycsb::latency::LatencyReport;
use crate::ycsb::request::Distribution;
use crate::ycsb::workload::{Operation, Workload};

/// What `bench ycsb` measured. Field names are an interface.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct YcsbReport {
    /// The engine.
    pub engine: String,
    /// Its filter.
    pub guard: String,
    /// The workload.
    pub workload: Workload,
    /// The distribution of keys.
    pub distribution: Distribution,
    /// The number of clients.
    pub threads: u64,
    /// The requested operations per second of all clients; null: no limit.
    pub rate: Option<f64>,
    /// Operations, of all clients.
    pub ops: u64,
    /// Seconds of the turns of all rounds, without the background work after them.
    pub seconds: f64,
    /// Seconds of the background work after the turns.
    pub settle_seconds: f64,
    /// Operations per second.
    pub ops_per_s: f64,
    /// Operations per second of each round.
    pub ops_per_s_of_rounds: Vec<f64>,
    /// The number of rounds.
    pub rounds: u64,
    /// Gets before the first round, untimed.
    pub warm_up: u64,
    /// Times of single operations.
    #[serde(flatten)]
    pub times: TimesReport,
    /// The store's own counts.
    #[serde(flatten)]
    pub costs: CostReport,
    /// Wrong answers. For the last workload, also the entries that the final scan found wrong. Must
    /// be 0.
    pub wrong_answers: u64,
    /// Keys in the store at the end.
    pub keys: u64,
    /// Keys that the store was filled with.
    pub keys_filled: u64,
    /// Bytes of a value.
    pub value_bytes: u64,
    /// Seconds of filling, until everything was settled.
    pub fill_seconds: f64,
    /// The part of that after the last put.
    pub fill_settle_seconds: f64,
    /// Puts per second, until the last put returned.
    pub fill_ops_per_s: f64,
    /// Bytes of the store's folder at the end.
    pub disk_bytes: u64,
    /// Sorted runs at the beginning of this workload. None: the engine has none.
    pub runs_filled: Option<u64>,
    /// Sorted runs at the end. None: the engine has none.
    pub runs: Option<u64>,
    /// Entries of the smallest run, at the beginning or at the end. None: unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default)]
    pub smallest_run_keys: Option<u64>,
    /// Flushes during this workload. None: the engine does not count them.
    pub flushes: Option<u64>,
    /// Memory of filters at the beginning of this workload, in bits per key.
    pub guard_bits_per_key_filled: Option<f64>,
    /// Memory of filters at the end, in bits per key.
    pub guard_bits_per_key: Option<f64>,
    /// Bits per key that were asked for.
    pub bits_per_key: f64,
    /// The setting of bits per key with which the filter was built.
    pub bits_setting: f64,
    /// True if no setting that was tried takes the requested memory, within 3 percent.
    pub unfit: bool,
    /// Capacity of the block cache.
    pub block_cache_bytes: u64,
    /// Whether direct I/O was asked for.
    pub direct: bool,
    /// The planned merge policy, which applies to this store alone.
    pub policy: String,
    /// The seed.
    pub seed: u64,
    /// All settings, and the engine's version.
    pub settings: String,
}

/// Times of single operations.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TimesReport {
    /// Times of all operations.
    pub all: LatencyReport,
    /// Times of gets; None if there were none, as for the kinds below.
    pub read: Option<LatencyReport>,
    /// Times of updates.
    pub update: Option<LatencyReport>,
    /// Times of inserts.
    pub insert: Option<LatencyReport>,
    /// Times of scans.
    pub scan: Option<LatencyReport>,
    /// Times of gets followed by a write, both together.
    pub read_modify_write: Option<LatencyReport>,
}

/// What the store counted, if it counts. Numbers per operation refer to operations that read: gets,
/// scans, and gets followed by a write.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CostReport {
    /// Operations that read.
    pub reads: u64,
    /// Blocks asked for, cached or not.
    pub blocks_read_per_op: Option<f64>,
    /// Blocks among these that came from the disk.
    pub disk_reads_per_op: Option<f64>,
    /// Filter probes.
    pub guard_probes_per_op: Option<f64>,
    /// Runs searched in vain.
    pub needless_runs_per_op: Option<f64>,
    /// Bytes of tables that flushes and merges wrote, including those after the turns.
    pub table_bytes_written: Option<u64>,
    /// The total time that writers were slowed down or stopped, in seconds.
    pub stall_seconds: Option<f64>,
}

impl CostReport {
    /// Computes the costs of `reads` operations that read, from the counts before and after them.
    pub(crate) fn of(reads: u64, counts: Option<(PeerCounts, PeerCounts)>) -> Self {
        let per_read = |field: fn(&PeerCounts) -> u64| {
            let (before, after) = counts?;
            Some((field(&after) - field(&before)) as f64 / reads.max(1) as f64)
        };
        CostReport {
            reads,
            blocks_read_per_op: per_read(|counts| counts.blocks_read),
            disk_reads_per_op: per_read(|counts| counts.disk_reads),
            guard_probes_per_op: per_read(|counts| counts.guard_probes),
            needless_runs_per_op: per_read(|counts| counts.needless_runs),
            table_bytes_written: counts
                .map(|(before, after)| after.table_bytes - before.table_bytes),
            stall_seconds: counts.map(|(before, after)| after.stall_seconds - before.stall_seconds),
        }
    }
}

impl TimesReport {
    /// Returns the kinds of operations that occurred.
    pub fn kinds(&self) -> Vec<(Operation, &LatencyReport)> {
        let of_kind = |kind| match kind {
            Operation::Read => &self.read,
            Operation::Update => &self.update,
            Operation::Insert => &self.insert,
            Operation::Scan => &self.scan,
            Operation::ReadModifyWrite => &self.read_modify_write,
        };
        let kinds = Operation::ALL.into_iter();
        kinds.filter_map(|kind| Some((kind, of_kind(kind).as_ref()?))).collect()
    }
}
