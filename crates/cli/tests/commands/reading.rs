//! Commands that only read leave the tree as it is, whatever they are told, or not told, of its
//! policy.

use crate::common::Workplace;
use serde_json::Value;

/// A store of many runs, where its own policy merges none, and the one that commands have by
/// default would merge them all.
fn tiered() -> Workplace {
    let place = Workplace::new();
    let lines: String = (0..13_000).map(|number| format!("key{number:06}\n")).collect();
    place.file("keys", lines);
    let tiering = "--policy tiering --size-ratio 30 --write-buffer 16KiB";
    place.run(&format!("load --db s {tiering} keys")).with_status(0);
    place
}

/// The spans of the runs that the manifest names. Opens nothing.
fn spans(place: &Workplace) -> Vec<Value> {
    let look = place.run("inspect --db s --watch --looks 1 --json").json(0);
    let runs = look["tree"]["runs"].as_array().expect("a list");
    runs.iter().map(|run| run["span"].clone()).collect()
}

/// The same, as `stats` tells it.
fn spans_of_stats(stats: &Value) -> Vec<Value> {
    let levels = stats["levels"].as_array().expect("a list");
    let runs = levels.iter().flat_map(|level| level["runs"].as_array().expect("a list"));
    runs.map(|run| run["span"].clone()).collect()
}

#[test] // `verify` of a tiered store of 26 runs left 5 of them.
fn reading_merges_nothing() {
    let place = tiered();
    let before = spans(&place);
    assert!(before.len() > 20, "too few for merges to be due: {before:?}");
    for command in [
        "verify --db s",
        "verify --db s --guard none",
        "stats --db s",
        "stats --db s --prometheus",
        "inspect --db s",
        "get --db s key000077",
        "scan --db s --keys-only",
        "scan --db s --reverse --guard grf",
        "count --db s",
        "count --db s --guard grf",
        "dump --db s --value-bytes 0",
        "checkpoint --db s copy",
    ] {
        place.run(command).with_status(0);
        assert_eq!(spans(&place), before, "after {command}");
    }
    assert_eq!(spans_of_stats(&place.run("stats --db s --json").json(0)), before);
    assert_eq!(spans_of_stats(&place.run("stats --db copy --json").json(0)), before);
}

#[test]
fn writes_that_are_in_the_log_are_read_and_stay_there() {
    let place = tiered();
    place.run("put --db s drum turns --policy tiering --size-ratio 30").with_status(0);
    let before = spans(&place);
    let log = place.largest_file("s", ".wal");
    let logged = std::fs::read(&log).expect("read");
    for _ in 0..2 {
        assert_eq!(place.run("get --db s drum").with_status(0), "turns\n");
        place.run("verify --db s").with_status(0);
    }
    assert_eq!((spans(&place), std::fs::read(&log).expect("still there")), (before, logged));
}
