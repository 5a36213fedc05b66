//! The view of a living tree: draws a snapshot, given the previous one and the time between.
//! ```text
//! words     372,113 entries, 23.0 MiB, 3 runs of 900 flushes
//! writes    103,400/s, 10.6 MiB/s; stalls 2 (0.12 s)
//! merges    1 under way (>), 14 done; 900 flushes; 2 memtables, 3.1 MiB
//! reads     1,200 probes/s, 12 needless/s; 93.1 % of blocks from the cache
//! guard     grf, 605.4 KiB, 12.01 bits per key: base 499.1 KiB, overlay 106.3 KiB
//!
//! level 0   2 runs
//!   [899, 900)  ███▏              413 entries   26.1 KiB
//! > [898, 899)  ▒▒▒▒              413 entries   26.1 KiB
//! ```
//! Invariants: the view has no state, no clock and no terminal, so the same snapshots give the same
//! picture. If runs do not fit, each level has one line.

use std::str::FromStr;

use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::Paragraph;
use trommel_lab::experiment::palette;

use crate::output::table::{bytes, counted, whole};
use crate::output::tree_picture::bar;
use crate::watch::tree_snapshot::{OwnerSnapshot, RunSnapshot, TreeSnapshot};

/// The width of the words on the left.
const HEAD: usize = 10;
const BAR_MAX: usize = 40;
/// A shorter bar is meaningless.
const BAR_MIN: usize = 6;
/// Narrower pictures leave out the number of entries.
const ENTRIES_FROM: usize = 56;
/// Shown for what is unknown about another process's store.
const UNKNOWN: &str = "unknown: another process has the store, or none";

/// Draws a snapshot in `width` columns and `height` lines. `before` was taken `seconds` earlier.
pub(crate) fn picture(
    before: Option<&TreeSnapshot>,
    now: &TreeSnapshot,
    seconds: f64,
    (width, height): (u16, u16),
) -> Paragraph<'static> {
    let mut lines = heading(before, now, seconds);
    let left = usize::from(height).saturating_sub(lines.len());
    lines.extend(tree(now, usize::from(width), left));
    Paragraph::new(Text::from(lines))
}

fn plural(count: u64, [one, many]: [&str; 2]) -> String {
    format!("{} {}", whole(count), if count == 1 { one } else { many })
}

fn headed(head: &str, text: String) -> Line<'static> {
    Line::from(vec![Span::from(format!("{head:<HEAD$}")).bold(), Span::from(text)])
}

/// Returns the lines of text above the levels.
fn heading(before: Option<&TreeSnapshot>, now: &TreeSnapshot, seconds: f64) -> Vec<Line<'static>> {
    let name = now.store.rsplit(['/', '\\']).next().unwrap_or_default();
    let (runs, flushes) = (now.runs.len() as u64, now.flushes());
    let tree = format!(
        "{}, {}, {} of {}",
        plural(now.entries(), ["entry", "entries"]),
        bytes(now.bytes()),
        counted(runs, "run"),
        plural(flushes, ["flush", "flushes"]),
    );
    let mut lines = vec![headed(&format!("{name} "), tree)];
    match &now.owner {
        Some(owner) => lines.extend(owned(before, now, owner, seconds)),
        None => ["writes", "merges", "reads", "guard"]
            .into_iter()
            .for_each(|head| lines.push(headed(head, UNKNOWN.to_string()))),
    }
    if let Some(merge) = &now.last_merge {
        let merging = format!("{}, done up to key {}", counted(merge.runs, "run"), merge.done_to);
        lines.push(headed("last level", format!(" merges with {merging}")));
    }
    lines.push(Line::default());
    lines
}

fn owned(
    before: Option<&TreeSnapshot>,
    now: &TreeSnapshot,
    owner: &OwnerSnapshot,
    seconds: f64,
) -> Vec<Line<'static>> {
    let rates = before.and_then(|before| now.rates(before, seconds));
    let (stalls, stalled) = (whole(owner.stalls), owner.stall_seconds);
    let (writes, reads) = match &rates {
        Some(rates) => {
            let cache = match rates.cache_hit_share {
                Some(share) => format!("{:.1} % of blocks from the cache", 100.0 * share),
                None => "no block read".to_string(),
            };
            let (probes, needless) = (whole(rates.probes as u64), whole(rates.needless as u64));
            let (writes, written) = (whole(rates.writes as u64), bytes(rates.bytes_written as u64));
            (
                format!("{writes}/s, {written}/s"),
                format!("{probes} probes/s, {needless} needless/s; {cache}"),
            )
        }
        None => (whole(owner.writes), format!("{} probes", whole(owner.probes))),
    };
    let merging = match owner.merging {
        0 => "none under way".to_string(),
        count => format!("{} under way (>)", whole(count)),
    };
    let (merges, flushes) = (whole(owner.merges), whole(owner.flushes));
    let memory = bytes(owner.memtable_bytes);
    let memtables = counted(owner.memtables, "memtable");
    let mut lines = vec![
        headed("writes", format!("{writes}; stalls {stalls} ({stalled:.2} s)")),
        headed(
            "merges",
            format!("{merging}, {merges} done; {flushes} flushed; {memtables}, {memory}"),
        ),
        headed("reads", reads),
        headed("guard", guard_text(owner)),
    ];
    if let Some(failure) = &owner.failure {
        lines.push(headed("stopped", failure.clone()).red());
    }
    lines
}

fn guard_text(owner: &OwnerSnapshot) -> String {
    let OwnerSnapshot { guard, guard_bytes, base_bytes, overlay_bytes, bits_per_key, .. } = owner;
    let all = format!("{guard}, {}, {bits_per_key:.2} bits per key", bytes(*guard_bytes));
    match base_bytes + overlay_bytes {
        0 => all,
        _ => format!("{all}: base {}, overlay {}", bytes(*base_bytes), bytes(*overlay_bytes)),
    }
}

/// Draws the levels: a line for each run if there is room, otherwise one for each level.
fn tree(now: &TreeSnapshot, width: usize, height: usize) -> Vec<Line<'static>> {
    if now.runs.is_empty() {
        return vec![Line::from("nothing on disk yet")];
    }
    let levels = now.runs.iter().map(|run| run.level + 1).max().unwrap_or(0);
    let of_level = |level: usize| -> Vec<&RunSnapshot> {
        now.runs.iter().filter(|run| run.level == level).collect()
    };
    let has_room = levels + now.runs.len() <= height;
    let columns = ViewColumns::of(&now.runs, width);
    let mut lines = Vec::new();
    for level in 0..levels {
        let runs = of_level(level);
        let head = format!("level {level:<3}");
        let count = counted(runs.len() as u64, "run");
        if has_room {
            lines.push(headed(&head, count));
            lines.extend(runs.into_iter().map(|run| run_line(run, &columns)));
        } else {
            lines.push(level_line(&head, &count, &runs, width));
        }
    }
    lines
}

/// The widths of the columns, and the bytes of the longest bar.
struct ViewColumns {
    span: usize,
    bar: usize,
    entries: usize,
    bytes: usize,
    bytes_most: u64,
}

impl ViewColumns {
    fn of(runs: &[RunSnapshot], width: usize) -> Self {
        let longest = |text: &dyn Fn(&RunSnapshot) -> String| {
            runs.iter().map(|run| text(run).chars().count()).max().unwrap_or(0)
        };
        let span = longest(&span_text);
        let entries = if width < ENTRIES_FROM { 0 } else { longest(&|run| whole(run.entries)) };
        let bytes = longest(&|run| bytes(run.bytes));
        let entries_taken = if entries == 0 { 0 } else { entries + " entries  ".len() };
        let bar = width.saturating_sub(span + entries_taken + bytes + 6);
        ViewColumns {
            span,
            bar: if bar < BAR_MIN { 0 } else { bar.min(BAR_MAX) },
            entries,
            bytes,
            bytes_most: runs.iter().map(|run| run.bytes).max().unwrap_or(0),
        }
    }
}

fn span_text(run: &RunSnapshot) -> String {
    format!("[{}, {})", run.span.0, run.span.1)
}

/// Returns the level's colour, which is readable on dark and on light terminals.
fn style(run: &RunSnapshot) -> Style {
    let colour = palette::TERMINAL[run.level % palette::TERMINAL.len()];
    Style::new().fg(Color::from_str(colour).unwrap_or_default())
}

fn is_merging(run: &RunSnapshot) -> bool {
    run.is_merging == Some(true)
}

fn run_line(run: &RunSnapshot, columns: &ViewColumns) -> Line<'static> {
    let mark = if is_merging(run) { '>' } else { ' ' };
    let mut parts =
        vec![Span::from(format!("{mark} {:<width$}  ", span_text(run), width = columns.span))];
    if columns.bar > 0 {
        let drawn = bar(run.bytes, columns.bytes_most, columns.bar);
        let drawn = if is_merging(run) { "▒".repeat(drawn.chars().count()) } else { drawn };
        parts.push(Span::styled(format!("{drawn:<width$}  ", width = columns.bar), style(run)));
    }
    if columns.entries > 0 {
        let entries = whole(run.entries);
        parts.push(Span::from(format!("{entries:>width$} entries  ", width = columns.entries)));
    }
    parts.push(Span::from(format!("{:>width$}", bytes(run.bytes), width = columns.bytes)));
    Line::from(parts)
}

/// Returns a level's line with as many of its runs as fit, newest first.
fn level_line(head: &str, count: &str, runs: &[&RunSnapshot], width: usize) -> Line<'static> {
    let mut line = headed(head, format!("{count:<8}"));
    let mut taken = HEAD + count.len().max(8);
    for (place, run) in runs.iter().enumerate() {
        let mark = if is_merging(run) { ">" } else { "" };
        let text = format!(" {mark}{}", span_text(run));
        taken += text.chars().count();
        if taken + 4 > width && place + 1 < runs.len() {
            line.push_span(Span::from(" ..."));
            break;
        }
        line.push_span(Span::styled(text, style(run)));
    }
    line
}

#[cfg(test)]
mod tests;
