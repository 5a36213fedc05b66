//! Tests that compare pictures of trees line by line with a terminal of that size.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;

use super::*;
use crate::watch::tree_snapshot::LastMergeSnapshot;

fn run(level: usize, span: (u64, u64), entries: u64, merging: bool) -> RunSnapshot {
    let (tables, bytes) = (1, entries * 64);
    RunSnapshot { level, span, tables, entries, bytes, is_merging: Some(merging) }
}

/// Returns a tree of T = 4 after eleven flushes, with two runs being merged.
fn living() -> TreeSnapshot {
    TreeSnapshot {
        store: "data/words".into(),
        runs: vec![
            run(0, (10, 11), 1000, false),
            run(0, (9, 10), 1000, true),
            run(0, (8, 9), 1000, true),
            run(1, (0, 8), 8000, false),
        ],
        last_merge: None,
        owner: Some(OwnerSnapshot {
            guard: "grf".into(),
            guard_bytes: 16 << 10,
            base_bytes: 12 << 10,
            overlay_bytes: 4 << 10,
            bits_per_key: 11.92,
            memtables: 2,
            memtable_bytes: 3 << 20,
            writes: 11_500,
            bytes_written: 736_000,
            flushes: 11,
            merges: 2,
            merging: 1,
            stalls: 3,
            stall_seconds: 0.25,
            probes: 900,
            needless: 20,
            blocks_read: 500,
            cache_hits: 400,
            failure: None,
        }),
    }
}

/// Returns the same store half a second earlier.
fn earlier() -> TreeSnapshot {
    let mut snapshot = living();
    let owner = snapshot.owner.as_mut().expect("has an owner");
    (owner.writes, owner.bytes_written) = (10_500, 672_000);
    (owner.probes, owner.needless) = (400, 10);
    (owner.blocks_read, owner.cache_hits) = (400, 380);
    snapshot
}

fn drawn(before: Option<&TreeSnapshot>, now: &TreeSnapshot, width: u16, height: u16) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
    let paragraph = picture(before, now, 0.5, (width, height));
    terminal.draw(|frame| frame.render_widget(&paragraph, frame.area())).expect("draws");
    terminal.backend().buffer().clone()
}

fn lines(buffer: &Buffer) -> Vec<String> {
    let width = usize::from(buffer.area.width);
    let line = |cells: &[ratatui::buffer::Cell]| {
        cells.iter().map(|cell| cell.symbol()).collect::<String>().trim_end().to_string()
    };
    buffer.content.chunks(width).map(line).collect()
}

#[test]
fn a_small_tree_with_a_merge_under_way() {
    let buffer = drawn(Some(&earlier()), &living(), 76, 13);
    let expected = [
        "words     11,000 entries, 687.5 KiB, 4 runs of 11 flushes",
        "writes    2,000/s, 125.0 KiB/s; stalls 3 (0.25 s)",
        "merges    1 under way (>), 2 done; 11 flushed; 2 memtables, 3.0 MiB",
        "reads     1,000 probes/s, 20 needless/s; 20.0 % of blocks from the cache",
        "guard     grf, 16.0 KiB, 11.92 bits per key: base 12.0 KiB, overlay 4.0 KiB",
        "",
        "level 0   3 runs",
        "  [10, 11)  █████████████████████████▎              1,000 entries   62.5 KiB",
        "> [9, 10)   ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒              1,000 entries   62.5 KiB",
        "> [8, 9)    ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒              1,000 entries   62.5 KiB",
        "level 1   1 run",
        "  [0, 8)    ██████████████████████████████████████  8,000 entries  500.0 KiB",
        "",
    ];
    assert_eq!(lines(&buffer), expected);
    // Bars have the colours of the levels.
    let colour = |x: u16, y: u16| buffer[(x, y)].fg;
    assert_eq!(colour(13, 7), Color::Rgb(0xae, 0x63, 0x18));
    assert_eq!(colour(13, 11), Color::Rgb(0x92, 0x70, 0x0f));
}

#[test]
fn a_first_look_knows_no_rates() {
    let first = lines(&drawn(None, &living(), 76, 13));
    assert_eq!(first[1], "writes    11,500; stalls 3 (0.25 s)");
    assert_eq!(first[3], "reads     900 probes");
    // Nor does the first look after a look at another store.
    let other = TreeSnapshot { store: "data/others".into(), ..earlier() };
    assert_eq!(lines(&drawn(Some(&other), &living(), 76, 13)), first);
}

#[test]
fn a_narrow_terminal_keeps_spans_and_sizes() {
    let narrow = lines(&drawn(Some(&earlier()), &living(), 32, 12));
    let expected = [
        "level 0   3 runs",
        "  [10, 11)  ██████      62.5 KiB",
        "> [9, 10)   ▒▒▒▒▒▒      62.5 KiB",
        "> [8, 9)    ▒▒▒▒▒▒      62.5 KiB",
        "level 1   1 run",
        "  [0, 8)    █████████  500.0 KiB",
    ];
    assert_eq!(narrow[6..], expected);
    // The same if there is no room for a bar.
    let least = lines(&drawn(None, &living(), 20, 12));
    assert_eq!(least[7], "  [10, 11)   62.5 Ki");
}

#[test]
fn where_runs_do_not_fit_each_level_has_a_line() {
    let low = lines(&drawn(Some(&earlier()), &living(), 44, 8));
    assert_eq!(low[6], "level 0   3 runs   [10, 11) >[9, 10) >[8, 9)");
    assert_eq!(low[7], "level 1   1 run    [0, 8)");
    let lower = lines(&drawn(Some(&earlier()), &living(), 34, 8));
    assert_eq!(lower[6], "level 0   3 runs   [10, 11) ...");
}

#[test]
fn nothing_there_yet() {
    let owner =
        Some(OwnerSnapshot { guard: "grf".into(), memtables: 1, ..OwnerSnapshot::default() });
    let empty = TreeSnapshot { store: "new".into(), runs: vec![], last_merge: None, owner };
    let expected = [
        "new       0 entries, 0 B, 0 runs of 0 flushes",
        "writes    0/s, 0 B/s; stalls 0 (0.00 s)",
        "merges    none under way, 0 done; 0 flushed; 1 memtable, 0 B",
        "reads     0 probes/s, 0 needless/s; no block read",
        "guard     grf, 0 B, 0.00 bits per key",
        "",
        "nothing on disk yet",
    ];
    assert_eq!(lines(&drawn(Some(&empty.clone()), &empty, 70, 7)), expected);
}

#[test]
fn of_another_processs_store_the_rest_is_unknown() {
    let mut seen = TreeSnapshot { owner: None, ..living() };
    seen.runs.iter_mut().for_each(|run| run.is_merging = None);
    seen.last_merge = Some(LastMergeSnapshot { runs: 3, done_to: "m".into() });
    let text = lines(&drawn(Some(&seen.clone()), &seen, 76, 14));
    for (line, head) in text[1..5].iter().zip(["writes", "merges", "reads", "guard"]) {
        assert_eq!(*line, format!("{head:<10}{UNKNOWN}"));
    }
    assert_eq!(text[5], "last level merges with 3 runs, done up to key m");
    assert!(text.iter().all(|line| !line.contains('▒') && !line.starts_with('>')), "{text:?}");
    assert_eq!(text[8].trim_start().split("  ").next(), Some("[10, 11)"));
}
