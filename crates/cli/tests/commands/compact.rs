//! `compact`: what it merges, what it says, and how it ends.

use crate::common::Workplace;

/// A store of 26 runs in one level, of which every key has been written twice and one was deleted.
fn tiered() -> Workplace {
    let place = Workplace::new();
    let lines: String = (0..6_656).map(|number| format!("key{number:05}\n")).collect();
    place.file("keys", lines.repeat(2));
    place
        .run("load --db s --policy tiering --size-ratio 30 --write-buffer 8KiB keys")
        .with_status(0);
    place.run("delete --db s --policy tiering --size-ratio 30 key00077").with_status(0);
    place
}

/// How many runs the manifest names. Opens nothing.
fn runs(place: &Workplace) -> usize {
    let look = place.run("inspect --db s --watch --looks 1 --json").json(0);
    look["tree"]["runs"].as_array().expect("a list").len()
}

fn keys(place: &Workplace) -> usize {
    place.run("scan --db s --keys-only").with_status(0).lines().count()
}

#[test]
fn what_is_due_under_the_policy_is_merged() {
    let place = tiered();
    assert_eq!((runs(&place), keys(&place)), (26, 6_655));
    let idle = "compact --db s --policy tiering --size-ratio 30";
    assert_eq!(place.run(idle).with_status(0), "nothing to merge: 26 runs\n");
    let report = place.run("compact --db s --policy tiering --size-ratio 8 --json").json(0);
    assert_eq!((&report["runs_before"], &report["runs_after"]), (&26.into(), &runs(&place).into()));
    assert!(runs(&place) < 26, "{report}");
    for field in ["merges", "bytes_merged", "bytes_before", "bytes_after"] {
        assert!(report[field].as_u64() > Some(0), "{field}: {report}");
    }
    let again = place.run("compact --db s --policy tiering --size-ratio 8 --json").json(0);
    assert_eq!((&again["merges"], &again["runs_after"]), (&0.into(), &report["runs_after"]));
    assert_eq!(keys(&place), 6_655);
    place.run("verify --db s").with_status(0);
}

#[test]
fn everything_is_merged_into_one_run() {
    let place = tiered();
    let text = place.run("compact --db s --all --merge-threads 2 --size-ratio 30").with_status(0);
    assert!(text.starts_with("from 26 to 1 run, from ") && text.contains(" merge"), "{text}");
    let stats = place.run("stats --db s --json").json(0);
    let level = stats["levels"].as_array().expect("a list").last().expect("a level").clone();
    assert_eq!(level["runs"][0]["entries"], 6_655, "what was replaced or deleted is gone");
    assert_eq!((runs(&place), keys(&place)), (1, 6_655));
    place.run("verify --db s").with_status(0);
}

#[test]
fn merges_are_watched() {
    let place = tiered();
    let text = place.run("compact --db s --all --watch --every 0.02 --json").with_status(0);
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let (report, looks) = lines.split_last().expect("a report");
    assert_eq!(report["runs_after"], 1);
    let last = &looks.last().expect("a look")["tree"];
    assert_eq!(last["runs"].as_array().expect("runs").len(), 1, "{last}");
    place.run("compact --db s --watch").fails(2, &["terminal", "--json"]);
}

#[test]
fn what_is_no_store_is_not_merged() {
    let place = Workplace::new();
    place.run("compact --db missing").fails(3, &["missing", "no store"]);
    assert!(!place.path("missing").exists(), "merging makes nothing");
    std::fs::create_dir(place.path("other")).expect("made");
    place.file("other/file", "something");
    place.run("compact --db other --all").fails(3, &["not a Trommel store"]);
    place.run("compact --db other --policy some").fails(2, &["lazy-leveling, leveling"]);
    place.run("put --db one key value").with_status(0);
    assert_eq!(place.run("compact --db one").with_status(0), "nothing to merge: 0 runs\n");
    let help = place.run("help compact").with_status(0);
    assert!(help.contains("trommel compact --db words --all"), "{help}");
}
