//! Threads that write and read a store on the real disk.

use crate::common::Workplace;

#[test]
fn threads_find_nothing_wrong_and_tell_what_they_did() {
    let place = Workplace::new();
    let line = "stress --threads 2 --disk --seconds 2 --seed 6 --dir work --json";
    let report = place.run(line).json(0);
    assert_eq!(report["failure"], serde_json::Value::Null);
    for count in ["openings", "operations", "writes", "answers"] {
        assert!(report[count].as_u64() > Some(0), "{count}: {report}");
    }
    assert!(place.path("work").exists(), "the folder that was named stays");
    let text = place.run("stress --threads 1 --disk --seconds 1").with_status(0);
    for part in ["1 writing thread", "flushes", "checkpoints", "No wrong answer"] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}

#[test]
fn transactions_of_threads_are_run_again_in_order() {
    let place = Workplace::new();
    let line = "stress --transactions --threads 2 --disk --seconds 1 --dir work";
    let report = place.run(&format!("{line} --json")).json(0);
    assert!(report["failure"].is_null(), "{report}");
    for count in ["openings", "commits", "reads", "adds"] {
        assert!(report[count].as_u64() > Some(0), "{count}: {report}");
    }
    let text = place.run("stress --transactions --threads 2 --disk --seconds 1").with_status(0);
    assert!(text.contains("as if one had come after the other"), "{text}");
}

#[test]
fn threads_need_the_disk_and_no_other_kind_of_stress() {
    let place = Workplace::new();
    for wrong in [
        "--threads 2",
        "--disk",
        "--threads 0 --disk",
        "--threads 9 --disk",
        "--threads 2 --disk --kills 3",
        "--threads 2 --disk --seeds 3",
        "--threads 2 --disk --minutes 1 --seconds 1",
        "--seconds 3",
        "--dir x",
    ] {
        place.run(&format!("stress {wrong}")).fails(2, &["error"]);
    }
    place.file("taken", "");
    place.run("stress --threads 1 --disk --dir .").fails(3, &["not empty"]);
    let help = place.run("stress --help").with_status(0);
    assert!(help.contains("--threads") && help.contains("--disk --minutes 60"), "{help}");
}
