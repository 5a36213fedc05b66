//! `bench transactions`, as a user runs it.

use crate::common::Workplace;

const SMALL: &str = "bench transactions --keys 1000 --operations 300 --write-buffer 64KiB \
                     --warehouses 1 --scan-entries 20";

#[test]
fn a_table_for_each_workload_and_json_for_each_store_under_each() {
    let place = Workplace::new();
    let two =
        format!("{SMALL} --workload counter-hot,put-if-absent --guard grf,none --threads 1,2");
    let table = place.run(&two).with_status(0);
    for word in [
        "counter-hot, 1 client, 1,000 keys, 7 rounds",
        "counter-hot, 2 clients",
        "increment",
        "conflicts per commit",
        "trommel, none: put_if_absent takes",
        "serializable",
    ] {
        assert!(table.contains(word), "{word} is not in {table}");
    }
    let json = place.run(&format!("{two} --json")).json(0);
    let reports = json.as_array().expect("an array");
    let named: Vec<_> = reports
        .iter()
        .map(|report| (report["workload"].as_str(), report["threads"].as_u64()))
        .collect();
    let (hot, absent) = (Some("counter-hot"), Some("put-if-absent"));
    let cells = [(hot, 1), (hot, 2), (absent, 1), (absent, 2)];
    let expected: Vec<_> =
        cells.iter().flat_map(|(name, threads)| [(*name, Some(*threads)); 2]).collect();
    assert_eq!(named, expected);
    for report in reports {
        assert_eq!(report["broken"], serde_json::json!([]), "{report}");
        assert!(report["commits_per_s"].is_number() && report["conflicts_per_commit"].is_number());
        assert!(report["all"]["p99_ns"].is_number(), "{report}");
    }
    assert_eq!((&reports[1]["guard"], &reports[0]["commits"]), (&"none".into(), &300.into()));
    assert!(reports[4]["times_a_put"].is_number() && reports[0]["times_a_put"].is_null());
}

#[test]
fn tpcc_is_checked_and_shown_by_kind() {
    let place = Workplace::new();
    let run = format!("{SMALL} --workload tpcc --threads 2 --seed 3");
    let table = place.run(&run).with_status(0);
    assert!(table.contains("new_order") && table.contains("order_status"), "{table}");
    let report = &place.run(&format!("{run} --json")).json(0)[0];
    assert_eq!((&report["seed"], &report["rounds"]), (&3.into(), &1.into()));
    let kinds: Vec<_> = report["kinds"]
        .as_array()
        .expect("an array")
        .iter()
        .map(|kind| kind["kind"].as_str().expect("a name"))
        .collect();
    assert_eq!(kinds, ["new_order", "payment", "order_status"]);
}

#[test]
fn unknown_names_are_answered_with_the_known_ones() {
    let place = Workplace::new();
    for (option, words) in [
        ("--workload tpc-c", "counter-hot, counter-cold, read10-write2, long-scan, tpcc"),
        ("--threads 0", "threads"),
        ("--keys 5", "keys"),
        ("--value-bytes 7", "8 bytes"),
        ("--operations 5 --seconds 5", "--seconds"),
    ] {
        place.run(&format!("bench transactions {option}")).fails(2, &[words]);
    }
}

/// A script in the place of the program that has other engines.
#[cfg(unix)]
#[test]
fn other_stores_are_measured_by_their_program() {
    use std::os::unix::fs::PermissionsExt;
    use trommel_lab::{Engine, PeerTask, Silent, TransactionsReport, Trommel, bench_transactions};

    let place = Workplace::new();
    let run = format!("{SMALL} --workload counter-cold --threads 1 --peer trommel:none");
    let mut command = place.command(&run);
    let output = command.env("PATH", place.path("")).output().expect("runs");
    crate::common::Ended::from(output).fails(3, &["trommel-peers", "cargo build", "--program"]);

    let file = place.file("trommel-peers", "#!/bin/sh\ncat > task; cat reports\n");
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(file, executable).expect("made executable");
    place.file("reports", "[]");
    let run = format!("{run} --program ./trommel-peers --db stores");
    assert_eq!(place.run(&format!("{run} --json")).with_status(0), "[]\n");
    let text = std::fs::read_to_string(place.path("task")).expect("a task was written");
    let task = serde_json::from_str(&text).expect("the task is JSON");
    let PeerTask::Transactions(mut plan) = task else { panic!("{text}") };
    assert_eq!((plan.stores.contenders.len(), plan.rounds, plan.keys), (2, 7, 1000));
    plan.stores.folder = place.path("stores");
    let engines: Vec<Box<dyn Engine>> = vec![Box::new(Trommel)];
    let mut reports: Vec<TransactionsReport> =
        bench_transactions(&plan, &engines, &mut Silent).expect("measured");
    place.file("reports", serde_json::to_string(&reports).expect("plain data"));
    let table = place.run(&run).with_status(0);
    assert!(table.contains("trommel, none") && table.contains("1.00x"), "{table}");

    // What is broken is told, and is a "no".
    reports[1].broken = vec!["the sum of all numbers: 299, not 300".into()];
    place.file("reports", serde_json::to_string(&reports).expect("plain data"));
    let output = place.command(&run).output().expect("runs");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let words = "trommel, none, counter-cold, 1 client: the sum of all numbers: 299, not 300";
    assert!(output.status.code() == Some(1) && stderr.contains(words), "{stderr}");
}
