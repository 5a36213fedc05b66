//! `bench ycsb`, as a user runs it.

use crate::common::Workplace;

const SMALL: &str =
    "bench ycsb --keys 2000 --operations 1000 --value-bytes 50 --write-buffer 64KiB";

#[test]
fn a_table_for_each_workload_and_json_for_each_store_under_each() {
    let place = Workplace::new();
    let two = format!("{SMALL} --workload a,E --guard grf,blocked-bloom --threads 2");
    let table = place.run(&two).with_status(0);
    for word in [
        "trommel, blocked-bloom: filled with 2,000 keys",
        "A (zipfian:0.99), 2 clients, one operation after the other, 7 rounds",
        "E (zipfian:0.99)",
        "update",
        "scan",
        "p99.9",
    ] {
        assert!(table.contains(word), "{word} is not in {table}");
    }
    let json = place.run(&format!("{two} --json")).json(0);
    let reports = json.as_array().expect("an array");
    let named: Vec<_> = reports
        .iter()
        .map(|report| (report["workload"].as_str(), report["guard"].as_str()))
        .collect();
    let (grf, bloom) = (Some("grf"), Some("blocked-bloom"));
    assert_eq!(named, [(Some("A"), grf), (Some("A"), bloom), (Some("E"), grf), (Some("E"), bloom)]);
    for report in reports {
        assert_eq!((&report["wrong_answers"], &report["ops"]), (&0.into(), &1000.into()));
        assert_eq!((&report["engine"], &report["threads"]), (&"trommel".into(), &2.into()));
        assert!(report["rate"].is_null() && report["blocks_read_per_op"].is_number());
    }
}

#[test]
fn options_reach_the_store_and_one_report_is_an_array_too() {
    let place = Workplace::new();
    let json = place.run(&format!(
        "{SMALL} --workload D --rate 100000 --distribution uniform --policy rocksdb --size-ratio 7 --granularity full \
         --bits-per-key 9 --block-cache 2MiB --merge-threads 2 --direct --seed 3 --db store --json"
    ));
    let report = &json.json(0)[0];
    let settings = report["settings"].as_str().expect("text");
    for word in ["rocksdb", "T = 7", "2 threads merge", "9 bits", "block cache 2 MiB"] {
        assert!(settings.contains(word), "{word} is not in {settings}");
    }
    assert_eq!((&report["rate"], &report["rounds"]), (&100_000.0.into(), &1.into()));
    assert_eq!(
        (&report["distribution"], &report["policy"]),
        (&"uniform".into(), &"rocksdb".into())
    );
    assert!(place.path("store/trommel-grf").is_dir(), "the store stays");
    place.run(&format!("{SMALL} --db store")).fails(3, &["not empty"]);
}

#[test]
fn filters_and_trees_are_as_they_are_typed() {
    let place = Workplace::new();
    let run = "bench ycsb --keys 2000 --operations 300 --guard bloom,surf-real,grf --policy levelled-from:2 --size-ratio 4 \
               --granularity full --table-bytes 64KiB --monkey --point-bits 2 --surf-suffix real:8 --json";
    let reports = place.run(run).json(0);
    let settings = |nth: usize| reports[nth]["settings"].as_str().expect("text").to_string();
    let monkey = [0, 1, 2].map(|nth| settings(nth).contains("divided as Monkey does"));
    assert_eq!(monkey, [true, true, false], "where a guard can");
    assert!(settings(1).contains("surf-suffix hash:0+real:8"), "{}", settings(1));
    assert!(settings(2).contains("point bits 2"), "{}", settings(2));
    assert!((0..3).all(|nth| reports[nth]["policy"] == "levelled-from:2"), "{reports}");
    let own = run
        .replace("--policy levelled-from:2", "--policy lazy-leveling;inner_runs=3,2;last_runs=2");
    assert_eq!(place.run(&own).json(0)[0]["policy"], "custom");
}

#[test]
fn unknown_names_are_answered_with_the_known_ones() {
    let place = Workplace::new();
    for (option, words) in [
        ("--workload G", "A, B, C, D, E, F"),
        ("--distribution zipf", "uniform, zipfian:S, latest:S"),
        ("--policy levelling", "lazy-leveling, leveling, tiering, rocksdb"),
        ("--granularity half", "full, partitioned, partial"),
        ("--guard blom", "blocked-bloom"),
        ("--value-bytes 23", "24 bytes"),
        ("--rate -1", "--rate"),
        ("--operations 5 --seconds 5", "--seconds"),
    ] {
        let (option, words) = (option.to_string(), [words]);
        place.run(&format!("bench ycsb --keys 100 {option}")).fails(2, &words);
    }
}

/// A script in the place of the program that has other engines.
#[cfg(unix)]
#[test]
fn other_stores_are_measured_by_their_program() {
    use std::os::unix::fs::PermissionsExt;
    use trommel_lab::{Engine, PeerTask, Silent, Trommel, bench_ycsb};

    let place = Workplace::new();
    let run = format!("{SMALL} --workload B --guard grf --peer trommel:none,trommel:bloom");
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
    let PeerTask::Ycsb(mut plan) = task else { panic!("{text}") };
    assert_eq!((plan.stores.contenders.len(), &plan.stores.contenders[1].filter[..]), (3, "none"));
    plan.stores.folder = place.path("stores");
    let engines: Vec<Box<dyn Engine>> = vec![Box::new(Trommel)];
    let reports = bench_ycsb(&plan, &engines, &mut Silent).expect("measured");
    place.file("reports", serde_json::to_string(&reports).expect("plain data"));
    let table = place.run(&run).with_status(0);
    assert!(table.contains("trommel, none") && table.contains("trommel, bloom"), "{table}");
}
