//! The page that plays a tree back, as far as no browser is needed. (`scripts/check-replay.sh`
//! opens it in one.)

use crate::common::Workplace;
use serde_json::Value;

#[test]
fn a_page_holds_all_that_it_needs() {
    let place = Workplace::new();
    let output = place.run("replay grown.html --flushes 20 --follow 5 --json").json(0);
    assert_eq!((&output["flushes"], &output["keys"]), (&20.into(), &7.into()));
    let page = std::fs::read_to_string(place.path("grown.html")).expect("was written");
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    let outside = ["http:", "https:", "src=", "href=", "url(", "import"];
    outside.iter().for_each(|word| assert!(!page.contains(word), "{word} leads out of the page"));
    let recording = recording_of(&page);
    let json = page.lines().find(|line| line.starts_with("const recording = "));
    assert!(!json.expect("a line").contains('<'), "nothing in it can end the script");
    let steps = recording["steps"].as_array().expect("steps");
    let of_kind = |kind: &str| steps.iter().filter(|step| step["event"]["kind"] == kind).count();
    assert_eq!((of_kind("begin"), of_kind("flush")), (1, 20));
    assert_eq!(Some(of_kind("merge") as u64), output["merges"].as_u64());
    let colours = page.lines().find_map(|line| line.strip_prefix("const colours = "));
    assert!(colours.is_some_and(|line| line.starts_with("[\"level0\"")), "{colours:?}");
    assert!(page.contains("--level0:") && page.contains("prefers-color-scheme:dark"), "both modes");
    // It begins where there is something to see.
    let start = page.lines().find_map(|line| line.strip_prefix("const start = "));
    let start = start.and_then(|line| line.strip_suffix(';')).and_then(|text| text.parse().ok());
    let levels_of = |step: &Value| step["levels"].as_array().cloned().expect("levels");
    let runs = |step: &Value| -> usize {
        levels_of(step).iter().filter_map(|level| level.as_array()).map(Vec::len).sum()
    };
    let start: usize = start.expect("a step");
    assert!(start > 1 && runs(&steps[start]) >= 3, "step {start}: {}", steps[start]);
    let is_less = |step: &Value| {
        let used = levels_of(step).iter().filter(|level| level != &&serde_json::json!([])).count();
        used < 2 || runs(step) < 3
    };
    assert!(steps[..start].iter().all(is_less), "none before it shows as much");
}

/// The recording that a page has in it.
fn recording_of(page: &str) -> Value {
    let json = page.lines().find_map(|line| line.strip_prefix("const recording = "));
    let json = json.and_then(|line| line.strip_suffix(';')).expect("the recording");
    serde_json::from_str(json).expect("JSON")
}

#[test]
fn a_run_is_recorded_and_played_back() {
    let place = Workplace::new();
    let lines: String =
        (0..30_000).map(|number| format!("key{:05}\n", number * 7 % 30_000)).collect();
    place.file("keys", lines);
    let load = "load --db s keys --write-buffer 64KiB --size-ratio 4 --record run.jsonl --record-key key00007 --record-key <no>";
    place.run(load).with_status(0);
    let output = place.run("replay run.html --run run.jsonl --json").json(0);
    let lines = std::fs::read_to_string(place.path("run.jsonl")).expect("was written");
    let flushes = lines.lines().filter(|line| line.contains("\"kind\":\"flush\"")).count() as u64;
    assert_eq!((output["flushes"].as_u64(), &output["keys"]), (Some(flushes), &2.into()));
    assert!(flushes > 10, "{output}");
    let recording = recording_of(&std::fs::read_to_string(place.path("run.html")).expect("reads"));
    assert_eq!(recording["keys"], serde_json::json!(["key00007", "<no>"]));
    let steps = recording["steps"].as_array().expect("steps");
    assert_eq!(steps.len(), lines.lines().count() - 1);
    // Loaded, flushed and merged: the last step has all entries, and one run has the key.
    let last = steps.last().expect("a step");
    let runs = last["levels"].as_array().expect("levels").iter().flat_map(|runs| runs.as_array());
    let entries = runs.flatten().map(|run| run["entries"].as_u64().expect("a number"));
    assert_eq!(entries.sum::<u64>(), 30_000);
    let holds = |key: usize| last["answers"][key]["holds"].as_array().map(Vec::len);
    assert_eq!((holds(0), holds(1)), (Some(1), Some(0)));
    assert_eq!(recording["written"][0].as_array().map(Vec::len), Some(1));

    let write =
        "bench write --keys 20000 --write-buffer 128KiB --size-ratio 4 --record w.jsonl --json";
    let report = place.run(write).json(0);
    let output = place.run("replay w.html --run w.jsonl --json").json(0);
    assert_eq!((&output["flushes"], &output["keys"]), (&report["flushes"], &12.into()));
    assert!(output["merges"].as_u64() >= report["merges"].as_u64(), "{output}, {report}");
}

#[test]
fn what_cannot_be_recorded_is_named() {
    let place = Workplace::new();
    place.run("replay grown.html --guard bloom").fails(2, &["bloom", "codes"]);
    place.run("replay grown.html --flushes 0").fails(2, &["flushes"]);
    place.run("replay nowhere/grown.html --flushes 2").fails(3, &["nowhere/grown.html"]);
    assert!(!place.path("grown.html").exists());
    place.file("keys", "a\n");
    place.run("load --db s keys --record run.jsonl").fails(2, &["--record-key"]);
    place.run("load --db s keys --record-key a").fails(2, &["--record"]);
    place.run("load --db s keys --record no/run.jsonl --record-key a").fails(3, &["no/run.jsonl"]);
    place.run("bench write --guard grf,none --keys 10 --record w").fails(2, &["one guard"]);
    place.run("bench write --keys 10 --record w --record-key xyz").fails(2, &["hexadecimal"]);
    place.run("replay r.html --run keys").fails(3, &["keys", "no recording"]);
    place.run("replay r.html --run keys --flushes 3").fails(2, &["--run"]);
    place.run("replay ./keys --run keys").fails(2, &["keys", "over the recording"]);
    assert_eq!(std::fs::read(place.path("keys")).expect("reads"), b"a\n", "it is as it was");
}
