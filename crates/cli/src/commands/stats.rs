//! `stats`: prints a store's counters, as a table, as JSON, or as Prometheus text.

use std::io::Write;

use clap::Args;
use serde_json::{Value, json};
use trommel::GuardKind;
use trommel::options::DirectIo;
use trommel::stats::{FileStats, FilterRecovery, GuardStats, IoStats, ObsoleteStats, Stats};

use crate::args::store::StoreArgs;
use crate::output::partitions::partitions_json;
use crate::output::table::{TextTable, bytes, counted, whole};
use crate::output::tree_json::{extend, guard_json, levels_json, metrics_json, policy_json};
use crate::output::tree_picture::tables_by_sub_filters;
use crate::process::failure::{Outcome, Status};

#[derive(Debug, Args)]
pub(crate) struct StatsArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Print them as Prometheus text.
    #[arg(long, conflicts_with = "json")]
    pub(crate) prometheus: bool,
}

pub(crate) fn run(arguments: &StatsArgs, json: bool, out: &mut dyn Write) -> Outcome {
    let db = arguments.store.read(GuardKind::Grf)?;
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

fn as_json(stats: &Stats) -> Value {
    let mut all = metrics_json(stats);
    let queries = [
        ("point", &stats.point),
        ("open_seek", &stats.open_seek),
        ("closed_seek", &stats.closed_seek),
    ];
    for (kind, stats) in queries {
        all[kind]["blocks_saved"] = json!(stats.blocks_saved());
        all[kind]["cache_hits"] = json!(stats.cache_hits());
    }
    let others = json!({
        "guard": guard_json(stats),
        "filter_recovery": stats.filter_recovery.to_string(),
        "policy": policy_json(stats),
        "levels": levels_json(stats),
        "ranges": partitions_json(stats),
        "resident_bytes": resident_bytes("VmRSS"),
        "resident_heap_bytes": resident_bytes("RssAnon"),
        "oldest_pin": stats.oldest_pin,
        // None differs from 0: everything is in tables.
        "first_unflushed": stats.first_unflushed,
        "durable_through": stats.durable_through,
        // None differs from 0: everything is durable.
        "unsynced_seconds": stats.unsynced_seconds,
        "direct": {
            "reads": stats.io.direct.reads,
            "flushes": stats.io.direct.flushes,
            "merges": stats.io.direct.merges,
        },
        "overlap": stats.io.overlap.name(),
        "failure": stats.failure,
    });
    extend(&mut all, others);
    all
}

/// Returns this process's memory, by the name of a line of its status. None: the system does not
/// report it.
fn resident_bytes(name: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// Returns the number of range deletions in all runs.
fn range_deletes(stats: &Stats) -> u64 {
    let runs = stats.levels.iter().flat_map(|level| &level.runs);
    runs.map(|run| run.range_deletes).sum()
}

fn open_text(files: &FileStats) -> String {
    let [open, max, reopened] = [files.open, files.max, files.reopened].map(whole);
    format!("{open}, {max} at most; opened again {reopened} times")
}

/// Formats the obsolete tables and their holders: `2 (1.5 MB), held by 1 scan`.
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

/// Formats which writes a crash would lose: those behind `through`.
fn taken_text(stats: &Stats, through: u64) -> String {
    stats.first_unflushed.map_or("none".into(), |_| format!("behind {}", whole(through)))
}

/// Formats the bits per key; if parts share memory, also the least and the most of a part.
fn bits_text(guard: &GuardStats) -> String {
    let of_parts =
        guard.part_bits.map(|(least, most)| format!(" (parts: {least:.1} to {most:.1})"));
    format!("{:.2}{}", guard.bits_per_key, of_parts.unwrap_or_default())
}

/// The logs that are kept, and the value files that only they need.
fn kept_text(stats: &Stats) -> String {
    let logs = format!("{} ({})", whole(stats.kept_logs), bytes(stats.kept_log_bytes));
    let (files, size) = (stats.kept_value_files, bytes(stats.kept_value_bytes));
    let values = (files > 0).then(|| format!(", with {} value files ({size})", whole(files)));
    logs + &values.unwrap_or_default()
}

fn as_text(stats: &Stats) -> String {
    let guard = &stats.guard;
    let mut table = TextTable::new(1, &["", ""]);
    let mut row = |name: &str, value: String| table.row(vec![name.into(), value]);
    row("entries in tables", whole(stats.entries()));
    match stats.durable_through {
        None => row("entries in memory and logs alone", whole(stats.memtable_entries)),
        Some(through) => {
            row("entries in memory alone", whole(stats.memtable_entries));
            row("writes that a crash takes", taken_text(stats, through));
        }
    }
    row("logs", format!("{} ({})", whole(stats.logs), bytes(stats.log_bytes)));
    if stats.kept_logs > 0 {
        row("logs kept for changes", kept_text(stats));
    }
    row("range deletions in tables", whole(range_deletes(stats)));
    row("bytes of tables", bytes(stats.table_bytes()));
    row("policy", stats.policy.name().to_string());
    row("levels", whole(stats.levels.len() as u64));
    row("runs", whole(stats.run_count() as u64));
    row("memtables", bytes(stats.memtable_bytes));
    row("guard", guard.kind.to_string());
    if let Some(tuning) = &guard.tuning {
        row("new filters", tuning.clone());
    }
    row("guard memory", bytes(guard.memory_bytes));
    row("guard bits per key", bits_text(guard));
    if stats.filter_recovery != FilterRecovery::Nothing {
        let (came_from, seconds) = (&stats.filter_recovery, guard.open_seconds);
        row("filter at open", format!("{came_from} ({seconds:.2} s)"));
    }
    if let Some(elastic) = &guard.elastic {
        let (loaded, budget) = (bytes(elastic.sub_filter_bytes), bytes(elastic.budget_bytes));
        row("sub-filters in memory", format!("{loaded} of {budget}"));
        row("tables by sub-filters, cold to hot", tables_by_sub_filters(elastic));
        let (loads, drops) = (whole(elastic.loads), whole(elastic.drops));
        row("sub-filters read, dropped since open", format!("{loads}, {drops}"));
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

/// Formats which I/O bypasses the system's cache.
fn direct_text(io: &IoStats) -> String {
    let DirectIo { reads, flushes, merges } = io.direct;
    let names = [(reads, "reads"), (flushes, "flushes"), (merges, "merges")];
    let names: Vec<&str> =
        names.into_iter().filter(|(is_direct, _)| *is_direct).map(|(_, name)| name).collect();
    if names.is_empty() { "nothing".into() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use trommel::Environment;
    use trommel::storage::Memory;
    use trommel::testing::Fault;
    use trommel::{Background, Db, Options};

    use trommel::research::Research as _;

    use super::*;

    #[test]
    fn what_left_the_tree_is_told_with_who_holds_it() {
        let environment = Environment::new().storage(Arc::new(Memory::new()));
        let options = Options::new().background(Background::Stepped);
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
        let environment = Environment::new().storage(Arc::new(disk.clone()));
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
