//! `stats`: what a store counted, as a table, as JSON, or as Prometheus text.

use std::io::Write;

use serde_json::{Value, json};
use trommel::{
    ElasticStats, FileStats, FilterRecovery, GuardKind, ObsoleteStats, Policy, QueryStats, Stats,
};

use crate::args::StatsArgs;
use crate::failure::{Outcome, Status};
use crate::io_args::direct_text;
use crate::table::{TextTable, bytes, counted, whole};

pub(crate) fn run(arguments: &StatsArgs, json: bool, out: &mut dyn Write) -> Outcome {
    let db = arguments.store.open_to_read(GuardKind::Grf)?;
    let stats = db.stats()?;
    if arguments.prometheus {
        out.write_all(stats.prometheus().as_bytes())?;
    } else if json {
        writeln!(out, "{}", as_json(&stats))?;
    } else {
        out.write_all(as_text(&stats).as_bytes())?;
    }
    Ok(Status::Fine)
}

fn query_json(stats: &QueryStats) -> Value {
    json!({
        "queries": stats.queries,
        "reached_runs": stats.reached_runs,
        "guard_probes": stats.guard_probes,
        "true_positives": stats.true_positives,
        "false_positives": stats.false_positives,
        "true_negatives": stats.true_negatives,
        "blocks_read": stats.blocks_read,
        "blocks_saved": stats.blocks_saved(),
        "disk_reads": stats.disk_reads,
        "cache_hits": stats.cache_hits(),
        "bytes_read": stats.bytes_read,
    })
}

/// When runs merge, as JSON.
pub(crate) fn policy_json(stats: &Stats) -> Value {
    let Policy { ratios, inner_runs, last_runs, delay_merges } = &stats.policy;
    // No limit is no number.
    let limit = |runs: u32| (runs < u32::MAX).then_some(runs);
    json!({
        "name": stats.policy.name(),
        "ratios": ratios,
        "inner_runs": inner_runs.iter().map(|&runs| limit(runs)).collect::<Vec<_>>(),
        "last_runs": limit(*last_runs),
        "delay_merges": delay_merges,
    })
}

/// The levels as JSON, newest first.
pub(crate) fn levels_json(stats: &Stats) -> Value {
    let levels = stats.levels.iter().map(|level| {
        let runs = level.runs.iter().map(|run| {
            json!({
                "tables": run.tables, "entries": run.entries, "range_deletes": run.range_deletes,
                "bytes": run.bytes,
                "span": [run.span.0, run.span.1], "units": run.units,
            })
        });
        json!({
            "level": level.level, "size_ratio": level.size_ratio, "runs_max": level.runs_max,
            "runs": runs.collect::<Vec<_>>(),
        })
    });
    levels.collect()
}

fn elastic_json(elastic: &ElasticStats) -> Value {
    json!({
        "budget_bytes": elastic.budget_bytes,
        "unit_bytes": elastic.unit_bytes,
        "tables_by_units": elastic.tables_by_units,
        "loads": elastic.loads,
        "drops": elastic.drops,
        "counted_gets": elastic.counted_gets,
        "expected_rate": elastic.expected_rate,
    })
}

/// How many tables have how many units, cold ones first: `3 of 0, 120 of 1, 80 of 2`.
pub(crate) fn tables_by_units(elastic: &ElasticStats) -> String {
    let queues = elastic.tables_by_units.iter().enumerate().filter(|(_, tables)| **tables > 0);
    let texts: Vec<String> =
        queues.map(|(units, tables)| format!("{} of {units}", whole(*tables))).collect();
    if texts.is_empty() { "none".into() } else { texts.join(", ") }
}

/// The guard as JSON.
pub(crate) fn guard_json(stats: &Stats) -> Value {
    let guard = &stats.guard;
    json!({
        "kind": guard.kind.name(),
        "bits_per_key": guard.bits_per_key,
        "memory_bytes": guard.memory_bytes,
        "base_bytes": guard.base_bytes,
        "overlay_bytes": guard.overlay_bytes,
        "base_entries": guard.base_entries,
        "overlay_entries": guard.overlay_entries,
        "built_at_open": guard.built_at_open,
        "open_seconds": guard.open_seconds,
        "seconds": guard.seconds,
        "rebuild_peak_bytes": guard.rebuild_peak_bytes,
        "damaged": guard.damaged,
        "unregistered": guard.unregistered,
        "told": guard.told,
        "elastic": guard.elastic.as_ref().map(elastic_json),
        "located": guard.located.map(|located| json!({
            "bytes": located.bytes,
            "overflow_bytes": located.overflow_bytes,
            "entries": located.entries,
            "room": located.room,
        })),
    })
}

fn obsolete_json(obsolete: &ObsoleteStats) -> Value {
    json!({
        "tables": obsolete.tables,
        "bytes": obsolete.bytes,
        "scans": obsolete.scans,
        "pinned_trees": obsolete.pinned_trees,
        "followed_trees": obsolete.followed_trees,
    })
}

fn as_json(stats: &Stats) -> Value {
    json!({
        "point": query_json(&stats.point),
        "open_seek": query_json(&stats.open_seek),
        "closed_seek": query_json(&stats.closed_seek),
        "guard": guard_json(stats),
        "filter_recovery": stats.filter_recovery.to_string(),
        "policy": policy_json(stats),
        "levels": levels_json(stats),
        "ranges": crate::partitions::partitions_json(stats),
        "memtables": stats.memtables,
        "memtable_bytes": stats.memtable_bytes,
        "memtable_entries": stats.memtable_entries,
        "logs": stats.logs,
        "log_bytes": stats.log_bytes,
        "fence_bytes": stats.fence_bytes,
        "cache_bytes": stats.cache_bytes,
        "memory_bytes": stats.memory_bytes(),
        "resident_bytes": resident_bytes("VmRSS"),
        "resident_heap_bytes": resident_bytes("RssAnon"),
        "writes": stats.writes,
        "bytes_written_user": stats.bytes_written_user,
        "bytes_flushed": stats.bytes_flushed,
        "bytes_merged": stats.bytes_merged,
        "write_amplification": stats.write_amplification(),
        "flushes": stats.flushes,
        "merges": stats.merges,
        "merging": stats.merging,
        "stalls": stats.stalls,
        "stall_seconds": stats.stall_seconds,
        "sequence": stats.sequence,
        "oldest_pin": stats.oldest_pin,
        "leaving_tables": stats.leaving_tables,
        "obsolete": obsolete_json(&stats.obsolete),
        "unsynced_seconds": stats.unsynced_seconds,
        "direct": {
            "reads": stats.io.direct.reads,
            "flushes": stats.io.direct.flushes,
            "merges": stats.io.direct.merges,
        },
        "overlap": stats.io.overlap.name(),
        "files": {
            "open": stats.files.open,
            "max": stats.files.max,
            "reopened": stats.files.reopened,
        },
        "failure": stats.failure,
    })
}

/// What this process has in memory, by the name of a line of its status. None: this system does not tell.
fn resident_bytes(name: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// Deletions of ranges in all runs.
fn range_deletes(stats: &Stats) -> u64 {
    let runs = stats.levels.iter().flat_map(|level| &level.runs);
    runs.map(|run| run.range_deletes).sum()
}

fn open_text(files: &FileStats) -> String {
    let [open, max, reopened] = [files.open, files.max, files.reopened].map(whole);
    format!("{open}, {max} at most; opened again {reopened} times")
}

/// Tables that have left the tree, and who holds them: `2 (1.5 MB), held by 1 scan`.
fn obsolete_text(obsolete: &ObsoleteStats) -> String {
    let holders = [
        (obsolete.scans, "scan"),
        (obsolete.pinned_trees, "pinned tree"),
        (obsolete.followed_trees, "followed tree"),
    ];
    let of_kind = |(count, kind): &(u64, &str)| {
        let plural = if *count == 1 { "" } else { "s" };
        format!("{} {kind}{plural}", whole(*count))
    };
    let held: Vec<String> = holders.iter().filter(|(count, _)| *count > 0).map(of_kind).collect();
    let tables = format!("{} ({})", whole(obsolete.tables), bytes(obsolete.bytes));
    match held.is_empty() {
        true => tables,
        false => format!("{tables}, held by {}", held.join(", ")),
    }
}

fn as_text(stats: &Stats) -> String {
    let guard = &stats.guard;
    let mut table = TextTable::new(1, &["", ""]);
    let mut row = |name: &str, value: String| table.row(vec![name.into(), value]);
    row("entries in tables", whole(stats.entries()));
    row("entries in memory and logs alone", whole(stats.memtable_entries));
    row("logs", format!("{} ({})", whole(stats.logs), bytes(stats.log_bytes)));
    row("range deletions in tables", whole(range_deletes(stats)));
    row("bytes of tables", bytes(stats.table_bytes()));
    row("policy", stats.policy.name().to_string());
    row("levels", whole(stats.levels.len() as u64));
    row("runs", whole(stats.run_count() as u64));
    row("memtables", bytes(stats.memtable_bytes));
    row("guard", guard.kind.to_string());
    if let Some(told) = &guard.told {
        row("new filters", told.clone());
    }
    row("guard memory", bytes(guard.memory_bytes));
    row("guard bits per key", format!("{:.2}", guard.bits_per_key));
    if stats.filter_recovery != FilterRecovery::Nothing {
        let (came_from, seconds) = (&stats.filter_recovery, guard.open_seconds);
        row("filter at open", format!("{came_from} ({seconds:.2} s)"));
    }
    if let Some(elastic) = &guard.elastic {
        let (loaded, budget) = (bytes(elastic.unit_bytes), bytes(elastic.budget_bytes));
        row("units in memory", format!("{loaded} of {budget}"));
        row("tables by units, cold to hot", tables_by_units(elastic));
        let (loads, drops) = (whole(elastic.loads), whole(elastic.drops));
        row("units read, dropped since open", format!("{loads}, {drops}"));
    }
    if !guard.damaged.is_empty() {
        row("damaged filters, not used", whole(guard.damaged.len() as u64));
    }
    for (name, tables) in &guard.unregistered {
        row("filters not known, not used", format!("{name}, in {}", counted(*tables, "table")));
    }
    row("time in the guard", format!("{:.2} s", guard.seconds));
    row("fence pointers", bytes(stats.fence_bytes));
    row("block cache", bytes(stats.cache_bytes));
    row("memory, all of these", bytes(stats.memory_bytes()));
    if let Some(resident) = resident_bytes("VmRSS") {
        row("memory of this process", bytes(resident));
    }
    row("past the system's cache", direct_text(&stats.io));
    row("reads at once", stats.io.overlap.name().into());
    row("files of tables open", open_text(&stats.files));
    row("flushes since open", whole(stats.flushes));
    row("merges since open", whole(stats.merges));
    row("merges under way", whole(stats.merging));
    row("tables out of the tree", obsolete_text(&stats.obsolete));
    let unsynced = |seconds: f64| format!("{seconds:.2} s");
    row("oldest write not synced", stats.unsynced_seconds.map_or("none".into(), unsynced));
    row("oldest pin", stats.oldest_pin.map_or("none".into(), whole));
    row("write stalls", format!("{} ({:.2} s)", whole(stats.stalls), stats.stall_seconds));
    if let Some(failure) = &stats.failure {
        row("stopped", failure.clone());
    }
    format!("{}\n{}", table.render_body(), queries_text(stats))
}

fn queries_text(stats: &Stats) -> String {
    let mut queries = TextTable::new(
        1,
        &["queries since open", "count", "probes", "blocks read", "disk reads", "needless runs"],
    );
    let kinds = [
        ("point", &stats.point),
        ("open seek", &stats.open_seek),
        ("closed seek", &stats.closed_seek),
    ];
    for (name, kind) in kinds {
        let counts = [
            kind.queries,
            kind.guard_probes,
            kind.blocks_read,
            kind.disk_reads,
            kind.false_positives,
        ];
        queries.row(std::iter::once(name.to_string()).chain(counts.map(whole)).collect());
    }
    queries.render()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use trommel::{Background, Db, Environment, Fault, Memory, Options};

    use super::*;

    #[test]
    fn what_left_the_tree_is_told_with_who_holds_it() {
        let environment =
            Environment { storage: Arc::new(Memory::new()), ..Environment::default() };
        let options = Options { background: Background::Stepped, ..Options::default() };
        let db = Db::open_with("db", options, environment).expect("opens");
        let fill = || db.put("key", "value").and_then(|()| db.compact()).expect("merges");
        fill();
        let trees = (db.pinned_tree(), db.pinned_tree());
        fill();
        db.put("key", "of the log").expect("puts");
        let stats = db.stats().expect("open");
        let json = as_json(&stats);
        assert_eq!(json["obsolete"]["tables"], 1);
        assert_eq!(json["obsolete"]["bytes"], stats.obsolete.bytes);
        assert_eq!(json["obsolete"]["pinned_trees"], 2);
        assert_eq!(
            (&json["obsolete"]["scans"], &json["obsolete"]["followed_trees"]),
            (&0.into(), &0.into())
        );
        assert!(json["unsynced_seconds"].is_f64(), "{json}");
        let text = as_text(&stats);
        assert!(text.contains(", held by 2 pinned trees\n"), "{text}");
        drop(trees);
        db.step().and_then(|_| db.sync()).expect("removes it");
        let stats = db.stats().expect("open");
        let (json, text) = (as_json(&stats), as_text(&stats));
        assert_eq!(
            (&json["obsolete"]["tables"], &json["unsynced_seconds"]),
            (&0.into(), &Value::Null)
        );
        assert!(!text.contains("held by"), "{text}");
    }

    #[test]
    fn a_store_that_is_held_up_says_so() {
        let disk = Memory::new();
        let environment = Environment { storage: Arc::new(disk.clone()), ..Environment::default() };
        let db = Db::open_with("db", Options::default(), environment).expect("opens");
        assert!(!as_text(&db.stats().expect("open")).contains("stopped"));
        disk.fail_from(0, Fault::NoSpace);
        db.put("key", "value").expect_err("the disk is full");
        let text = as_text(&db.stats().expect("open"));
        assert!(text.contains("stopped") && text.contains("no storage space"), "{text}");
        let failure = as_json(&db.stats().expect("open"))["failure"].to_string();
        assert!(failure.contains("no storage space"), "{failure}");
    }
}
