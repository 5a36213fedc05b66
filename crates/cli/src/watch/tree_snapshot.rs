//! A snapshot of a tree at one moment, and the rates of its counters since another snapshot.
//! ```text
//! Stats, of the process that has the store  --> TreeSnapshot with an owner   everything
//! TreePeek, of the manifest                 --> TreeSnapshot without one     runs alone
//! two of them, seconds between them         --> Rates
//! ```
//! Invariant: nothing is guessed. What a snapshot cannot see is None, never zero.

use serde::Serialize;
use trommel::stats::{QueryStats, Stats, UnderWay};
use trommel::tools::TreePeek;

use crate::output::keytext::show;

/// A tree at one moment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct TreeSnapshot {
    /// The name of the store.
    pub(crate) store: String,
    /// The runs, newest first.
    pub(crate) runs: Vec<RunSnapshot>,
    /// A partitioned merge into the last level that has done a part of its partitions.
    pub(crate) last_merge: Option<LastMergeSnapshot>,
    /// None: another process has the store open, or no process has.
    pub(crate) owner: Option<OwnerSnapshot>,
}

/// A run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct RunSnapshot {
    pub(crate) level: usize,
    /// Its flushes, as a half-open interval.
    pub(crate) span: (u64, u64),
    pub(crate) tables: u64,
    pub(crate) entries: u64,
    pub(crate) bytes: u64,
    /// Whether an open merge has claimed it. None: only the owner knows.
    pub(crate) is_merging: Option<bool>,
}

/// The progress of the merge into the last level.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct LastMergeSnapshot {
    /// The runs that it merges into the oldest run.
    pub(crate) runs: u64,
    /// Keys before this one are done.
    pub(crate) done_to: String,
}

/// What only the process with the open store knows. Counters begin at the opening.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct OwnerSnapshot {
    pub(crate) guard: String,
    pub(crate) guard_bytes: u64,
    pub(crate) base_bytes: u64,
    pub(crate) overlay_bytes: u64,
    pub(crate) bits_per_key: f64,
    pub(crate) memtables: u64,
    pub(crate) memtable_bytes: u64,
    pub(crate) writes: u64,
    pub(crate) bytes_written: u64,
    pub(crate) flushes: u64,
    pub(crate) merges: u64,
    /// Open merges.
    pub(crate) merging: u64,
    pub(crate) stalls: u64,
    pub(crate) stall_seconds: f64,
    /// Filter probes of all kinds of queries.
    pub(crate) probes: u64,
    /// Runs searched in vain.
    pub(crate) needless: u64,
    pub(crate) blocks_read: u64,
    /// Blocks among these that were in the cache.
    pub(crate) cache_hits: u64,
    /// Why the store refuses writes. None: it accepts them.
    pub(crate) failure: Option<String>,
}

/// Counts per second between two snapshots.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Rates {
    pub(crate) writes: f64,
    pub(crate) bytes_written: f64,
    pub(crate) probes: f64,
    pub(crate) needless: f64,
    pub(crate) blocks_read: f64,
    /// The share of blocks found in the cache. None: no block was read.
    pub(crate) cache_hit_share: Option<f64>,
    /// The time that writers were stalled, in total, per second.
    pub(crate) stall_share: f64,
}

impl TreeSnapshot {
    /// Takes a snapshot of a store that this process has open.
    pub(crate) fn of_stats(store: &str, stats: &Stats) -> Self {
        let of_level = |level: &trommel::stats::LevelStats| {
            let at = level.level;
            let run = |run: &trommel::stats::RunStats| RunSnapshot {
                level: at,
                span: run.span,
                tables: run.tables,
                entries: run.entries,
                bytes: run.bytes,
                is_merging: Some(run.is_merging),
            };
            level.runs.iter().map(run).collect::<Vec<_>>()
        };
        TreeSnapshot {
            store: store.to_string(),
            runs: stats.levels.iter().flat_map(of_level).collect(),
            last_merge: stats.under_way.as_ref().map(LastMergeSnapshot::of),
            owner: Some(OwnerSnapshot::of(stats)),
        }
    }

    /// Takes a snapshot of a store that another process may have open.
    pub(crate) fn of_peek(store: &str, peek: &TreePeek) -> Self {
        let run = |run: &trommel::tools::RunPeek| RunSnapshot {
            level: run.level,
            span: run.span,
            tables: run.tables,
            entries: run.entries,
            bytes: run.bytes,
            is_merging: None,
        };
        TreeSnapshot {
            store: store.to_string(),
            runs: peek.runs.iter().map(run).collect(),
            last_merge: peek.under_way.as_ref().map(LastMergeSnapshot::of),
            owner: None,
        }
    }

    pub(crate) fn entries(&self) -> u64 {
        self.runs.iter().map(|run| run.entries).sum()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.runs.iter().map(|run| run.bytes).sum()
    }

    /// Returns the number of flushes in the tree: the end of the newest run's span.
    pub(crate) fn flushes(&self) -> u64 {
        self.runs.first().map_or(0, |run| run.span.1)
    }

    /// Returns the rates of the counters since `before`. None: they are unknown, or the snapshots
    /// are of different stores.
    pub(crate) fn rates(&self, before: &TreeSnapshot, seconds: f64) -> Option<Rates> {
        let (now, before) = match (&self.owner, &before.owner) {
            (Some(now), Some(then)) if self.store == before.store && seconds > 0.0 => (now, then),
            _ => return None,
        };
        let grown = |of: fn(&OwnerSnapshot) -> u64| of(now).saturating_sub(of(before)) as f64;
        let (blocks, hits) = (grown(|owner| owner.blocks_read), grown(|owner| owner.cache_hits));
        Some(Rates {
            writes: grown(|owner| owner.writes) / seconds,
            bytes_written: grown(|owner| owner.bytes_written) / seconds,
            probes: grown(|owner| owner.probes) / seconds,
            needless: grown(|owner| owner.needless) / seconds,
            blocks_read: blocks / seconds,
            cache_hit_share: (blocks > 0.0).then_some(hits / blocks),
            stall_share: (now.stall_seconds - before.stall_seconds).max(0.0) / seconds,
        })
    }
}

impl LastMergeSnapshot {
    fn of(merge: &UnderWay) -> Self {
        LastMergeSnapshot { runs: merge.runs, done_to: show(&merge.done_to, false) }
    }
}

impl OwnerSnapshot {
    fn of(stats: &Stats) -> Self {
        let kinds = [&stats.point, &stats.open_seek, &stats.closed_seek];
        let sum = |of: fn(&QueryStats) -> u64| kinds.into_iter().map(of).sum();
        OwnerSnapshot {
            guard: stats.guard.kind.to_string(),
            guard_bytes: stats.guard.memory_bytes,
            base_bytes: stats.guard.base_bytes,
            overlay_bytes: stats.guard.overlay_bytes,
            bits_per_key: stats.guard.bits_per_key,
            memtables: stats.memtables,
            memtable_bytes: stats.memtable_bytes,
            writes: stats.writes,
            bytes_written: stats.bytes_written_user,
            flushes: stats.flushes,
            merges: stats.merges,
            merging: stats.merging,
            stalls: stats.stalls,
            stall_seconds: stats.stall_seconds,
            probes: sum(|kind| kind.guard_probes),
            needless: sum(|kind| kind.false_positives),
            blocks_read: sum(|kind| kind.blocks_read),
            cache_hits: sum(QueryStats::cache_hits),
            failure: stats.failure.clone(),
        }
    }
}
