//! Processes that are killed while they write.

use crate::common::Workplace;

#[test]
fn killed_processes_lose_nothing_that_they_had_acknowledged() {
    let place = Workplace::new();
    let report = place.run("stress --kills 8 --seed 2 --dir killed --json").json(0);
    assert_eq!((&report["kills"], &report["failure"]), (&8.into(), &serde_json::Value::Null));
    assert!(report["acknowledged"].as_u64() > Some(0), "{report}");
    assert!(place.path("killed/store/MANIFEST").exists(), "the folder that was named stays");
    place.run("verify --db killed/store").with_status(0);
    place.run("stress --kills 1 --dir killed").fails(3, &["killed", "not empty"]);
}

#[test]
fn what_was_killed_is_told_in_words() {
    let place = Workplace::new();
    let text = place.run("stress --kills 2").with_status(0);
    for part in ["2 processes killed", "during ", "merge ", "Nothing acknowledged is missing"] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}

#[test]
fn processes_that_promise_more_than_they_do_are_found() {
    for lie in ["early-ack", "lost-write", "split-batch"] {
        let place = Workplace::new();
        let report = place.run(&format!("stress --kills 200 --dir d --lie {lie} --json")).json(1);
        let failure = &report["failure"];
        let wrong = failure["wrong"].as_str().expect("says what is wrong");
        assert!(wrong.contains("lane"), "{lie}: {failure}");
        assert!(place.path("d/before").exists(), "the store is kept as it was left");
        assert_eq!(failure["again"], "trommel stress --kills 200 --seed 1");
    }
}

#[test]
fn kills_and_simulations_are_not_mixed() {
    let place = Workplace::new();
    for wrong in ["--kills 0", "--kills 3 --seeds 2", "--kills 3 --minutes 1", "--dir x"] {
        place.run(&format!("stress {wrong}")).fails(2, &["error"]);
    }
    let help = place.run("stress --help").with_status(0);
    assert!(help.contains("--kills") && help.contains("--dir") && !help.contains("--lie"));
    assert!(!place.run("help").with_status(0).contains("victim"));
}
