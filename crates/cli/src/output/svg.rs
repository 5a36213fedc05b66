//! Draws the tree as a picture in its own file (SVG).
//! ```text
//! rocksdb: grf, 12.01 bits per key
//! level 0    [998,999) [997,998) [996,997)      boxes: runs, newest first; width: root of entries
//! level 1    [ 960, 996 )
//! level 2    [            0, 960            ]
//! guard      [  base  ][ overlay ]              width: root of bytes
//! parts      [ o ][ oo ][ o ][ oo ][ o ]        in key order: overlay on base, by their shares
//!            [ b ][ bb ][ b ][ bb ][ b ]
//! ```
//! Invariants: the widest row fills the picture. A box shows its numbers when the pointer is on it.
//! The file is self-contained.

use std::fmt::Write as _;

use trommel::stats::{LevelStats, PartitionStats, RunStats, Stats};

use trommel_lab::experiment::palette::{self, Colour};
use trommel_lab::experiment::{escaped, width_of};

use crate::output::keytext::show;
use crate::output::table::{bytes, counted, whole};
use crate::output::tree_picture::{level_text, policy_text, span};

const WIDTH: f64 = 680.0;
const MARGIN: f64 = 12.0;
/// Large enough to be readable when the picture is shrunk to a narrow window.
const TEXT: f64 = 13.0;
const TITLE_TEXT: f64 = 15.0;
/// The space between boxes.
const GAP: f64 = 3.0;
/// The least width of a box.
const BOX_LEAST: f64 = 3.0;
const BOX_HEIGHT: f64 = 68.0;
const HEADING: f64 = 24.0;
const ROW: f64 = HEADING + BOX_HEIGHT + 18.0;
const TITLE: f64 = 64.0;
/// The most boxes of parts; with more parts, a box stands for several.
const PART_BOXES_MAX: usize = 100;
const BASE: &str = "base";
const OVERLAY: &str = "overlay";

/// A box of a row.
struct SvgBox {
    /// The square root of this determines the width.
    weight: u64,
    label: String,
    /// The text below the label, if there is room.
    detail: String,
    /// The text shown when the pointer is on the box.
    tooltip: String,
    /// The class of its colour.
    class: &'static str,
    /// The upper share of the box that has the overlay's colour.
    overlay: f64,
}

/// A row of the picture.
struct Row {
    heading: String,
    shapes: Vec<SvgBox>,
}

/// Draws the picture of a store.
pub(crate) fn picture(stats: &Stats) -> String {
    let mut rows: Vec<Row> = stats
        .levels
        .iter()
        .map(|level| level_row(level, level.level + 1 == stats.levels.len()))
        .collect();
    rows.push(guard_row(stats));
    rows.extend(parts_row(stats));
    let height = TITLE + rows.len() as f64 * ROW + MARGIN / 2.0;
    let mut out = String::new();
    write_start(&mut out, height);
    let guard = &stats.guard;
    let title = format!(
        "{}; guard {}, {:.2} bits per key",
        policy_text(&stats.policy),
        guard.kind,
        guard.bits_per_key
    );
    write_text(&mut out, (MARGIN, 26.0), TITLE_TEXT, &title);
    let legend = "runs, newest first, with the flushes that they hold; width: the root of entries";
    write_text(&mut out, (MARGIN, 47.0), TEXT, legend);
    // All runs have the same scale, so that they are comparable.
    let (runs, guard) = rows.split_at(stats.levels.len());
    let of_guard = guard.iter().map(|row| scale(std::slice::from_ref(row)));
    let scales = std::iter::repeat_n(scale(runs), runs.len()).chain(of_guard);
    for ((place, row), scale) in rows.iter().enumerate().zip(scales) {
        write_row(&mut out, row, TITLE + place as f64 * ROW, scale);
    }
    out.push_str("</svg>\n");
    out
}

fn level_row(level: &LevelStats, is_last: bool) -> Row {
    let class = palette::LEVELS[level.level % palette::LEVELS.len()].name;
    let shapes = level.runs.iter().map(|run| run_shape(run, class));
    let heading = format!("level {}: {}", level.level, level_text(level, is_last));
    Row { heading, shapes: shapes.collect() }
}

fn run_shape(run: &RunStats, class: &'static str) -> SvgBox {
    let (label, detail) = (span(run), format!("{} keys", whole(run.entries)));
    let (size, files) = (bytes(run.bytes), counted(run.tables, "file"));
    let tooltip = format!("{label}: {detail}, {size}, {files}, {}", counted(run.units, "unit"));
    SvgBox { weight: run.entries, label, detail, tooltip, class, overlay: 0.0 }
}

fn guard_row(stats: &Stats) -> Row {
    let guard = &stats.guard;
    let of_part = |name: &str, memory: u64, entries: u64, class| {
        let detail = format!("{} entries", whole(entries));
        let tooltip = format!("{name}: {}, {detail}", bytes(memory));
        let label = format!("{name} {}", bytes(memory));
        SvgBox { weight: memory, label, detail, tooltip, class, overlay: 0.0 }
    };
    let parts = [
        of_part("base", guard.base_bytes, guard.base_entries, BASE),
        of_part("overlay", guard.overlay_bytes, guard.overlay_entries, OVERLAY),
    ];
    let shapes = parts.into_iter().filter(|part| part.weight > 0).collect();
    let memory = bytes(guard.memory_bytes);
    Row { heading: format!("guard {}: {memory}; width: the root of bytes", guard.kind), shapes }
}

/// Returns the row of a global filter's parts, each over its base. None: there are not several
/// parts.
fn parts_row(stats: &Stats) -> Option<Row> {
    let parts = &stats.partitions;
    let has_several = parts.len() > 1 && parts.iter().any(|part| part.filter_bytes > 0);
    let together = parts.len().div_ceil(PART_BOXES_MAX);
    let shapes = parts.chunks(together).zip((0..).step_by(together));
    let heading = format!(
        "parts of it, in key order, {} in a box; lower: bases, upper: overlays",
        whole(together as u64)
    );
    has_several.then(|| Row {
        heading,
        shapes: shapes.map(|(parts, first)| parts_shape(parts, first)).collect(),
    })
}

/// Returns the box of neighbouring parts, from number `first` on.
fn parts_shape(parts: &[PartitionStats], first: usize) -> SvgBox {
    let sum = |of: &dyn Fn(&PartitionStats) -> u64| parts.iter().map(of).sum::<u64>();
    let (all, base) = (sum(&|part| part.filter_bytes), sum(&|part| part.base_bytes));
    let (keys, entries) = (sum(&|part| part.base_entries), sum(&|part| part.overlay_entries));
    let last = first + parts.len() - 1;
    let label = if last == first { format!("{first}") } else { format!("{first} to {last}") };
    let from = show(&parts[0].from, true);
    let tooltip = format!(
        "part {label}, from key {from} on: base {}, {} keys; overlay {}, {} entries",
        bytes(base),
        whole(keys),
        bytes(all - base),
        whole(entries)
    );
    let overlay = (all - base) as f64 / all.max(1) as f64;
    SvgBox { weight: all, label, detail: bytes(all), tooltip, class: BASE, overlay }
}

/// Returns the factor of widths with which the widest row fills the picture.
fn scale(rows: &[Row]) -> f64 {
    let fits = rows.iter().filter(|row| !row.shapes.is_empty()).map(|row| {
        let roots: f64 = row.shapes.iter().map(|shape| (shape.weight as f64).sqrt()).sum();
        let gaps = (row.shapes.len() - 1) as f64 * GAP;
        (WIDTH - 2.0 * MARGIN - gaps).max(WIDTH / 4.0) / roots.max(1.0)
    });
    fits.fold(f64::INFINITY, f64::min)
}

fn write_row(out: &mut String, row: &Row, top: f64, scale: f64) {
    write_text(out, (MARGIN, top + 16.0), TEXT, &row.heading);
    let mut left = MARGIN;
    for shape in &row.shapes {
        let width = ((shape.weight as f64).sqrt() * scale).max(BOX_LEAST);
        write_box(out, shape, (left, top + HEADING), width);
        left += width + GAP;
    }
}

fn write_box(out: &mut String, shape: &SvgBox, (left, top): (f64, f64), width: f64) {
    let SvgBox { label, detail, tooltip, class, overlay, .. } = shape;
    write!(
        out,
        "<g><title>{}</title><rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" \
         height=\"{BOX_HEIGHT}\" rx=\"3\" class=\"{class} frame\"/>",
        escaped(tooltip)
    )
    .expect(TAKES_ALL);
    let fits = |text: &str, room: f64| width_of(text, TEXT) <= room;
    if *overlay > 0.0 {
        let height = BOX_HEIGHT * overlay;
        write!(
            out,
            "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"3\" \
             class=\"{OVERLAY}\"/>"
        )
        .expect(TAKES_ALL);
    }
    let (middle, centre) = (left + width / 2.0, top + BOX_HEIGHT / 2.0);
    if fits(label, width - 6.0) {
        let two_lines = fits(detail, width - 6.0);
        let first = if two_lines { centre - 4.0 } else { centre + 4.5 };
        write_middle(out, (middle, first), "", label);
        if two_lines {
            write_middle(out, (middle, centre + 14.0), "", detail);
        }
    } else if fits(label, BOX_HEIGHT) && width >= 12.0 {
        let turned = format!(" transform=\"rotate(-90 {middle:.1} {centre:.1})\"");
        write_middle(out, (middle, centre + 4.5), &turned, label);
    }
    out.push_str("</g>\n");
}

/// Why writing into a string cannot fail.
const TAKES_ALL: &str = "a string takes everything";

fn write_start(out: &mut String, height: f64) {
    write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" width=\"{WIDTH}\" \
         height=\"{height:.0}\" font-family=\"sans-serif\" font-size=\"{TEXT}\">\n<style>:root{{color-scheme:light dark}}\
         {}</style>\n<rect width=\"100%\" height=\"100%\" class=\"paper\"/>\n",
        style()
    )
    .expect(TAKES_ALL);
}

/// Returns the style sheet with the colours of both modes.
fn style() -> String {
    let named = [
        ("text", "fill", palette::INK),
        (".paper", "fill", palette::PAPER),
        (".frame", "stroke", palette::AXIS),
    ];
    let named = named.into_iter().map(|(on, what, colour)| (on.to_string(), what, colour));
    let boxes = palette::LEVELS.into_iter().chain(palette::BOXES);
    let boxes = boxes.map(|colour: Colour| (format!(".{}", colour.name), "fill", colour));
    palette::rules(named.chain(boxes))
}

fn write_text(out: &mut String, (x, y): (f64, f64), size: f64, text: &str) {
    writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\">{}</text>", escaped(text))
        .expect(TAKES_ALL);
}

fn write_middle(out: &mut String, (x, y): (f64, f64), more: &str, text: &str) {
    let at = format!("x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\"");
    write!(out, "<text {at}{more}>{}</text>", escaped(text)).expect(TAKES_ALL);
}
