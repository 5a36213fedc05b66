//! Draws the tree in lines of text.
//! ```text
//! level 0    9 runs (at most 9), 9 of 10 units; lz4 2.1 to 1
//!   [998, 999)  ####                  413 keys   26.1 KiB
//! level 2    1 run (at most 1)
//!   [0, 900)    ##############    371,700 keys   22.9 MiB
//! guard grf: 605.4 KiB, 12.01 bits per key (base 499.1 KiB, overlay 106.3 KiB)
//!            one question for all runs
//! ```
//! Invariants: the length of a bar is logarithmic in its run's bytes. Lines fit into 80 columns.

use std::fmt::Write as _;

use trommel::stats::{ElasticStats, LevelStats, RunStats, Stats};
use trommel::{GuardKind, Policy};

use crate::output::partitions::partition_lines;
use crate::output::table::{bytes, counted, whole};

/// Formats how many tables have how many sub-filters, cold tables first: `3 of 0, 120 of 1, 80 of
/// 2`.
pub(crate) fn tables_by_sub_filters(elastic: &ElasticStats) -> String {
    let queues =
        elastic.tables_by_sub_filters.iter().enumerate().filter(|(_, tables)| **tables > 0);
    let texts: Vec<String> =
        queues.map(|(count, tables)| format!("{} of {count}", whole(*tables))).collect();
    if texts.is_empty() { "none".into() } else { texts.join(", ") }
}

const BAR_COLUMNS: usize = 32;

/// Draws the tree as lines of text.
pub(crate) fn picture(stats: &Stats) -> String {
    let runs = || stats.levels.iter().flat_map(|level| &level.runs);
    let mut text = String::new();
    let columns = PictureColumns {
        span: runs().map(|run| span(run).len()).max().unwrap_or(0),
        keys: runs().map(|run| whole(run.entries).len()).max().unwrap_or(0),
        bytes: runs().map(|run| bytes(run.bytes).len()).max().unwrap_or(0),
        bytes_most: runs().map(|run| run.bytes).max().unwrap_or(0),
    };
    line(
        &mut text,
        format_args!("newest first; a span [from, to) counts flushes; bars are logarithmic"),
    );
    line(&mut text, format_args!("policy     {}", policy_text(&stats.policy)));
    let memtables = counted(stats.memtables, "memtable");
    let (entries, size) = (whole(stats.memtable_entries), bytes(stats.memtable_bytes));
    line(&mut text, format_args!("memory     {memtables}, {entries} entries, {size}"));
    let (logs, size) = (counted(stats.logs, "log"), bytes(stats.log_bytes));
    line(&mut text, format_args!("           {logs} with what is in no table yet, {size}"));
    for level in &stats.levels {
        let is_last = level.level + 1 == stats.levels.len();
        draw_level(&mut text, level, is_last, &columns);
    }
    partition_lines(stats)
        .into_iter()
        .for_each(|text_line| line(&mut text, format_args!("{text_line}")));
    draw_guard(&mut text, stats, runs().count());
    text
}

/// The widths of the columns, and the bytes of the longest bar.
struct PictureColumns {
    span: usize,
    keys: usize,
    bytes: usize,
    bytes_most: u64,
}

fn line(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    writeln!(text, "{arguments}").expect("a string takes everything");
}

/// Formats a span.
pub(crate) fn span(run: &RunStats) -> String {
    format!("[{}, {})", run.span.0, run.span.1)
}

/// Formats a policy in a few words. It is the policy with which the store was opened; each opening
/// may use another.
pub(crate) fn policy_text(policy: &Policy) -> String {
    let delayed =
        if policy.delay_merges { ", delayed where entries replace each other" } else { "" };
    format!("{}{delayed}", policy.name())
}

/// Formats the runs of a level, and their limits.
pub(crate) fn level_text(level: &LevelStats, is_last: bool) -> String {
    let runs = counted(level.runs.len() as u64, "run");
    // The oldest run's span begins at 0 by definition, so it says nothing about the run's size.
    let units = format!(", {} of {} units", level.units(), level.size_ratio);
    let units = if is_last { String::new() } else { units };
    format!("{runs} (at most {}){units}", level.runs_max)
}

/// Formats how merges compress a level, and the resulting ratio.
fn packed_text(level: &LevelStats) -> String {
    let Some(ratio) = level.packed_ratio() else { return String::new() };
    let dictionaries = level.runs.iter().map(|run| run.dictionary_bytes).sum::<u64>();
    let with = match dictionaries {
        0 => String::new(),
        all => format!(", dictionaries {}", bytes(all)),
    };
    format!("; {} {ratio:.1} to 1{with}", level.compression)
}

fn draw_level(text: &mut String, level: &LevelStats, is_last: bool, columns: &PictureColumns) {
    let packed = packed_text(level);
    line(text, format_args!("level {:<4} {}{packed}", level.level, level_text(level, is_last)));
    for run in &level.runs {
        let bar = bar(run.bytes, columns.bytes_most, BAR_COLUMNS);
        let (keys, size) = (whole(run.entries), bytes(run.bytes));
        line(
            text,
            format_args!(
                "  {:<span$}  {bar:<BAR_COLUMNS$}  {keys:>keys_columns$} keys  {size:>bytes_columns$}  {}",
                self::span(run),
                counted(run.tables, "file"),
                span = columns.span,
                keys_columns = columns.keys,
                bytes_columns = columns.bytes,
            ),
        );
        if run.range_deletes > 0 {
            let ranges = counted(run.range_deletes, "range");
            line(text, format_args!("  {:<span$}  deletes {ranges}", "", span = columns.span));
        }
    }
}

/// Draws a bar in eighths of a column, from one kibibyte up. `bytes_most` fills all columns.
pub(crate) fn bar(bytes: u64, bytes_most: u64, columns: usize) -> String {
    const EIGHTHS: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];
    let size = |bytes: u64| (bytes as f64 / 1024.0 + 1.0).log2();
    let share = size(bytes) / size(bytes_most).max(f64::MIN_POSITIVE);
    let eighths = ((share * (columns * 8) as f64) as usize).clamp(1, columns * 8);
    let mut bar = "█".repeat(eighths / 8);
    if !eighths.is_multiple_of(8) {
        bar.push(EIGHTHS[eighths % 8 - 1]);
    }
    bar
}

fn draw_guard(text: &mut String, stats: &Stats, runs: usize) {
    let guard = &stats.guard;
    let memory = format!("{}, {:.2} bits per key", bytes(guard.memory_bytes), guard.bits_per_key);
    match guard.kind {
        GuardKind::Open => line(text, format_args!("guard none: every run is searched")),
        GuardKind::Table(kind) => {
            let filters = counted(runs as u64, "filter");
            line(text, format_args!("guard {}: {memory}", guard.kind));
            let asked = if kind.knows_ranges() {
                format!("points and ranges ask up to {filters}, one for each run")
            } else {
                format!("points ask up to {filters}, ranges none")
            };
            line(text, format_args!("           {asked}"));
            if let Some(tuning) = &guard.tuning {
                line(text, format_args!("           new filters: {tuning}"));
            }
            if let Some(elastic) = &guard.elastic {
                let tables = tables_by_sub_filters(elastic);
                line(text, format_args!("           tables by sub-filters, cold to hot: {tables}"));
            }
        }
        GuardKind::Locator(kind) => {
            line(text, format_args!("guard {}: {memory}", guard.kind));
            if let Some(locator) = &guard.locator {
                let (entries, room) = (whole(locator.entries), whole(locator.room));
                let overflow = bytes(locator.overflow_bytes as u64);
                let what = format!("entries {entries}, room for {room}; did not fit {overflow}");
                line(text, format_args!("           {what}"));
            }
            let asked = if kind.knows_ranges() { "" } else { "; ranges search every run" };
            line(text, format_args!("           one question for all runs{asked}"));
        }
        // All global filters.
        _ => {
            let (base, overlay) = (bytes(guard.base_bytes), bytes(guard.overlay_bytes));
            line(
                text,
                format_args!("guard {}: {memory} (base {base}, overlay {overlay})", guard.kind),
            );
            line(text, format_args!("           one question for all runs"));
        }
    }
    for (name, tables) in &guard.unregistered {
        let tables = counted(*tables, "table");
        let what = format!("a filter that is not known, not used: {name}, in {tables}");
        line(text, format_args!("           {what}"));
    }
    if !guard.damaged.is_empty() {
        let what = if guard.kind.fingerprints().is_some() {
            "its image is damaged or missing: it was read from the runs".to_string()
        } else {
            let filters = whole(guard.damaged.len() as u64);
            format!("damaged filters, not used: {filters}; their tables are always searched")
        };
        line(text, format_args!("           {what}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_grow_with_the_logarithm() {
        let most = 1 << 30;
        let lengths: Vec<usize> = [0, 1 << 10, 1 << 20, most]
            .iter()
            .map(|size| bar(*size, most, BAR_COLUMNS).chars().count())
            .collect();
        assert!(lengths.is_sorted() && lengths[0] == 1 && lengths[3] == BAR_COLUMNS, "{lengths:?}");
        assert!(lengths[2].abs_diff(BAR_COLUMNS / 2) <= 1, "{lengths:?}");
        assert_eq!(bar(0, 0, BAR_COLUMNS).chars().count(), 1);
    }
}
