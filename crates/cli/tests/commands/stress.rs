//! The simulation from the command line.

use crate::common::Workplace;

#[test]
fn a_simulation_is_one_json_object_and_repeats_itself() {
    let place = Workplace::new();
    let run = || place.run("stress --seed 5 --seeds 3 --steps 400 --json").json(0);
    let (once, again) = (run(), run());
    assert_eq!((&once["seeds"], &once["operations"]), (&3.into(), &1200.into()));
    assert!(once["failure"].is_null() && once["ops_per_s"].as_f64() > Some(0.0), "{once}");
    for field in ["answers", "errors", "flushes", "merges", "power_cuts", "disk_operations"] {
        assert!(once[field].as_u64() > Some(0), "{field}: {once}");
        assert_eq!(once[field], again[field], "{field}");
    }
}

#[test]
fn transactions_are_simulated_too() {
    let place = Workplace::new();
    let run = || place.run("stress --transactions --seed 5 --seeds 3 --steps 400 --json").json(0);
    let (once, again) = (run(), run());
    assert!(once["failure"].is_null(), "{once}");
    for field in ["answers", "commits", "conflicts", "flushes", "reopened"] {
        assert!(once[field].as_u64() > Some(0), "{field}: {once}");
        assert_eq!(once[field], again[field], "{field}");
    }
    let text = place.run("stress --transactions --steps 500").with_status(0);
    assert!(text.contains("transactions have committed"), "{text}");
}

#[test]
fn a_simulation_says_in_words_what_it_did() {
    let place = Workplace::new();
    let text = place.run("stress --steps 300").with_status(0);
    assert!(text.contains("1 history of 300 operations, seeds from 1 on"), "{text}");
    assert!(text.contains("No wrong answer"), "{text}");
    let brief = place.run("stress --minutes 0").with_status(0);
    assert!(brief.contains("0 histories"), "{brief}");
}

#[test]
fn a_simulation_without_sense_is_refused() {
    let place = Workplace::new();
    for wrong in ["--steps 0", "--seeds 0", "--minutes -1", "--minutes soon", "--seed x"] {
        place.run(&format!("stress {wrong}")).fails(2, &["error"]);
    }
    place.run("stress --seads 3").fails(2, &["--seeds", "--minutes"]);
}
