//! `stats`: counters and the newest version, collected as plain data.

use std::collections::BTreeMap;

use crate::entries::entry::Sequence;
use crate::files::placed_run::PlacedRun;
use crate::files::value_file::ValueFile;
use crate::files::value_file::format::HEADER_BYTES;
use crate::guard::Guard;
use crate::guard::elastic::Elastic;
use crate::guard::filter_recovery::FilterRecovery;
use crate::guard::parts::Parts;
use crate::plan::options::Options;
use crate::plan::policy::Schedule;
use crate::sync::{Arc, AtomicU64, Ordering};
use crate::tree::open_tree::OpenTree;
use crate::tree::partition_stats::{partitions, under_way};
use crate::tree::stats::{GuardStats, QueryKind, Stats};
use crate::tree::tree_stats::{LevelStats, RunStats};
use crate::tree::version::Version;
use crate::write::engine::Engine;

/// The numbers that only the writer of a tree knows.
#[derive(Default)]
struct OfWriter {
    /// The number of needed logs, and their bytes.
    logs: (u64, u64),
    merging: u64,
    /// The runs that open merges have claimed.
    claimed: Vec<u64>,
    unsynced_seconds: Option<f64>,
    durable_through: Option<u64>,
    failure: Option<String>,
}

pub(crate) fn stats(engine: &Engine) -> Stats {
    // Taken before the version: what is visible by then is in the version's memtables or tables.
    let visible = engine.snapshots.visible();
    let version = engine.current.hold();
    let unsynced = engine.commit.unsynced.oldest();
    let of_writer = OfWriter {
        logs: engine.logs.sizes(),
        merging: engine.open_merges() as u64,
        claimed: engine.claimed_runs(),
        unsynced_seconds: unsynced.map(|since| engine.since(since).as_secs_f64()),
        durable_through: (!engine.has_log()).then(|| match engine.manifest().is_durable() {
            true => version.flushed_through(visible).0,
            false => 0,
        }),
        failure: engine.failure(),
    };
    stats_of(engine, (visible, &version), of_writer)
}

/// Returns the statistics of a tree that another process writes, as of number `at`. `logs`: how
/// many were read, and their bytes.
pub(crate) fn stats_of_followed(tree: &OpenTree, at: u64, logs: (u64, u64)) -> Stats {
    let of_writer = OfWriter { logs, ..OfWriter::default() };
    stats_of(tree, (Sequence(at), &tree.current.hold()), of_writer)
}

fn stats_of(
    tree: &OpenTree,
    (visible, version): (Sequence, &Version),
    of_writer: OfWriter,
) -> Stats {
    let of_runs = version.runs.iter().map(|placed| placed.run.fence_bytes());
    let fences = version.files().map(|table| table.fence_bytes()).chain(of_runs);
    let (value_files, value_bytes, value_garbage_bytes) = value_sizes(version);
    let obsolete = tree.obsolete_files.stats(version);
    let (logs, log_bytes) = of_writer.logs;
    let (kept_logs, kept_log_bytes) = tree.logs.kept();
    let (kept_value_files, kept_value_bytes) = kept_value_sizes(tree, version);
    let counters = &tree.counters;
    let (slowdowns, stops) = (counters.slowdowns.get(), counters.stops.get());
    Stats {
        point: counters.query_stats(QueryKind::Point),
        open_seek: counters.query_stats(QueryKind::OpenSeek),
        closed_seek: counters.query_stats(QueryKind::ClosedSeek),
        gets: counters.gets.get(),
        seeks: counters.seeks.get(),
        batches: counters.batches.get(),
        guard: guard_stats(tree, version),
        filter_recovery: tree.filter_recovery.clone(),
        policy: tree.table_files.options.policy.clone(),
        size_ratio: tree.table_files.options.size_ratio,
        levels: levels(version, &tree.table_files.options, &of_writer.claimed),
        partitions: partitions(version),
        under_way: under_way(&version.layout),
        trimmed_tables: version.tables().filter(|table| table.is_trimmed()).count() as u64,
        table_file_bytes: version.files().map(|table| table.bytes()).sum(),
        memtables: 1 + version.sealed.len() as u64,
        memtable_bytes: memtable_bytes(version),
        memtable_entries: version.memtable_entries(),
        first_unflushed: version.first_unflushed().map(|first| first.0),
        durable_through: of_writer.durable_through,
        logs,
        log_bytes,
        kept_logs,
        kept_log_bytes,
        kept_value_files,
        kept_value_bytes,
        value_files,
        value_bytes,
        value_garbage_bytes,
        fence_bytes: fences.sum::<usize>() as u64,
        cache_bytes: tree.table_files.cache.size_bytes(),
        writes: count(&counters.writes),
        bytes_written_user: count(&counters.user_bytes),
        bytes_flushed: count(&counters.flushed_bytes),
        bytes_merged: count(&counters.merged_bytes),
        flushes: count(&counters.flushes),
        merges: count(&counters.merges),
        merging: of_writer.merging,
        slowdowns,
        stops,
        lock_waits: counters.lock_waits.get(),
        stalls: slowdowns.count + stops.count,
        stall_seconds: slowdowns.seconds + stops.seconds,
        sequence: visible.0,
        oldest_pin: tree.snapshots.oldest().map(|sequence| sequence.0),
        transaction_bytes: tree.snapshots.kept_bytes(),
        leaving_tables: obsolete.tables,
        obsolete,
        unsynced_seconds: of_writer.unsynced_seconds,
        io: tree.table_files.io,
        files: tree.table_files.files.stats(),
        failure: of_writer.failure,
    }
}

fn memtable_bytes(version: &Version) -> u64 {
    let sealed = version.sealed.iter().map(|sealed| sealed.memtable.size_bytes());
    (version.active.memtable.size_bytes() + sealed.sum::<usize>()) as u64
}

/// Returns the number of a version's value files, their bytes, and their unreferenced bytes.
fn value_sizes(version: &Version) -> (u64, u64, u64) {
    let (mut files, mut bytes, mut garbage) = (0, 0, 0);
    for (file, referred) in version.value_files().values() {
        files += 1;
        bytes += file.len();
        garbage += file.len().saturating_sub(HEADER_BYTES as u64).saturating_sub(*referred);
    }
    (files, bytes, garbage)
}

/// Returns the number of value files that only logs hold, and their bytes.
fn kept_value_sizes(tree: &OpenTree, version: &Version) -> (u64, u64) {
    let held = tree.logs.held_values();
    if held.is_empty() {
        return (0, 0);
    }
    let referred = version.value_files();
    let is_kept = |file: &&Arc<ValueFile>| {
        file.keyspace() == tree.keyspace && !referred.contains_key(&file.number())
    };
    let kept = held.iter().filter(is_kept);
    (kept.clone().count() as u64, kept.map(|file| file.len()).sum())
}

fn count(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

fn guard_stats(tree: &OpenTree, version: &Version) -> GuardStats {
    let entries: u64 = version.runs.iter().map(|placed| placed.run.entry_count()).sum();
    let part = version.guard.parts().map(Parts::size).unwrap_or_default();
    let per_table = version.files().map(|table| table.filter_bytes() as u64).sum::<u64>();
    let locator = match &version.guard {
        Guard::Locator(guard) => Some(guard.size()),
        Guard::Open | Guard::PerTable | Guard::Global(_) => None,
    };
    let global = part.base_bytes + part.overlay_bytes + locator.map_or(0, |size| size.bytes as u64);
    let (memory_bytes, options) = (per_table + global, &tree.table_files.options);
    GuardStats {
        kind: options.guard,
        bits_per_key: if entries == 0 { 0.0 } else { memory_bytes as f64 * 8.0 / entries as f64 },
        memory_bytes,
        part_bits: options.part_memory().and(version.guard.parts()).map(Parts::least_and_most_bits),
        base_bytes: part.base_bytes,
        overlay_bytes: part.overlay_bytes,
        base_entries: part.base_entries,
        overlay_entries: part.overlay_entries,
        built_at_open: matches!(
            tree.filter_recovery,
            FilterRecovery::Rebuilt { .. } | FilterRecovery::Mixed { .. }
        ),
        open_seconds: tree.guard_open_seconds,
        seconds: count(&tree.counters.guard_nanoseconds) as f64 * 1e-9,
        rebuild_peak_bytes: count(&tree.counters.rebuild_peak_bytes),
        damaged: tree.damage_of_filters(version),
        unregistered: unregistered(version),
        tuning: options.guard.table_filter().and_then(|kind| kind.tuning_text(&options.filter)),
        elastic: tree.elastic.as_deref().map(Elastic::stats),
        locator,
    }
}

/// Returns the unregistered kinds of table filters, with the number of their tables.
fn unregistered(version: &Version) -> BTreeMap<String, u64> {
    let mut tables = BTreeMap::new();
    for name in version.tables().filter_map(|table| table.table.unregistered_filter()) {
        *tables.entry(name.to_owned()).or_default() += 1;
    }
    tables
}

fn levels(version: &Version, options: &Options, claimed: &[u64]) -> Vec<LevelStats> {
    let schedule = &options.schedule();
    let count = version.layout.level_count();
    let level = |level: usize| {
        let runs = version.runs.iter().filter(|placed| placed.level == level);
        let is_last = level + 1 == count;
        let runs_max = if is_last { schedule.last_runs(level) } else { schedule.inner_runs(level) };
        LevelStats {
            level,
            size_ratio: schedule.ratio(level) as u64,
            runs_max: runs_max as u64,
            compression: options.packing(is_last).compression,
            runs: runs.map(|placed| run_stats(placed, schedule, claimed)).collect(),
        }
    };
    (0..count).map(level).collect()
}

fn run_stats(placed: &PlacedRun, schedule: &Schedule<'_>, claimed: &[u64]) -> RunStats {
    let (tables, span) = (placed.run.tables(), placed.span());
    RunStats {
        tables: tables.len() as u64,
        entries: placed.run.entry_count(),
        range_deletes: tables.iter().map(|table| table.tombstones().len() as u64).sum(),
        bytes: placed.run.bytes(),
        raw_bytes: tables.iter().map(|table| table.table.properties().raw_bytes).sum(),
        dictionary_bytes: tables.iter().map(|table| table.table.dictionary_bytes()).sum(),
        span: (span.lo().0, span.hi().0),
        units: schedule.units_of(placed.level, span.hi().0 - span.lo().0) as u64,
        is_merging: claimed.contains(&placed.id),
    }
}
