//! What is in logs alone is counted, and files that are gone are told: by name, all of them, with
//! the way out.

use std::path::PathBuf;

use crate::common::Workplace;
use serde_json::Value;

/// A store that was killed, as it were: five writes in its log, and no table.
fn logged() -> Workplace {
    let place = Workplace::new();
    for number in 0..5 {
        place.run(&format!("put --db s key{number} value")).with_status(0);
    }
    place
}

/// A store of three tables, in as many runs, and nothing in its log.
fn tables() -> Workplace {
    let place = Workplace::new();
    for round in 0..3 {
        let lines: String = (0..100).map(|number| format!("key{round}{number}\n")).collect();
        place.file("keys", lines);
        place.run("load --db s --policy tiering --size-ratio 30 keys").with_status(0);
    }
    place
}

fn files(place: &Workplace, ending: &str) -> Vec<PathBuf> {
    let folder = std::fs::read_dir(place.path("s")).expect("a folder");
    let paths = folder.map(|file| file.expect("a file").path());
    let mut files: Vec<_> = paths.filter(|path| path.to_string_lossy().ends_with(ending)).collect();
    files.sort();
    files
}

fn name(path: &std::path::Path) -> String {
    path.file_name().expect("a name").to_string_lossy().into_owned()
}

#[test] // After a kill `verify` said "0 tables, 0 entries", and `stats` "entries on disk 0".
fn what_is_in_logs_alone_is_counted() {
    let place = logged();
    let verified = place.run("verify --db s --json").json(0);
    let repaired = place.run("repair --db s --json").json(0);
    let stats = place.run("stats --db s --json").json(0);
    let inspected = place.run("inspect --db s --json").json(0);
    let size = files(&place, ".wal")[0].metadata().expect("there").len();
    for (report, what) in [(&verified, "verify"), (&repaired, "repair")] {
        assert_eq!((&report["entries"], &report["logs"]), (&0.into(), &1.into()), "{what}");
        assert_eq!(report["log_entries"], 5, "{what}: {report}");
        assert!(report["log_groups"].as_u64() > Some(0), "{what}: {report}");
        assert_eq!(report["log_bytes"], size, "{what}: {report}");
    }
    assert_eq!(verified["memtable_entries"], 5);
    for (report, what) in [(&stats, "stats"), (&inspected["memory"], "inspect")] {
        assert_eq!(report["memtable_entries"], 5, "{what}: {report}");
        assert_eq!((&report["logs"], &report["log_bytes"]), (&1.into(), &size.into()), "{what}");
    }
    let output = place.run("verify --db s").with_status(0);
    assert!(
        output.contains("0 entries, 0 B; 1 log, ") && output.contains(" 5 entries"),
        "{output}"
    );
    let output = place.run("repair --db s").with_status(0);
    assert!(output.starts_with("nothing to repair: 0 tables, 0 entries; 1 log, "), "{output}");
    assert!(output.contains(" 5 entries"), "{output}");
    let output = place.run("stats --db s").with_status(0);
    for words in ["entries in memory and logs alone", "logs"] {
        assert!(output.contains(words), "{words}: {output}");
    }
    let output = place.run("inspect --db s").with_status(0);
    assert!(output.contains("1 memtable, 5 entries") && output.contains("1 log"), "{output}");
    let output = place.run("stats --db s --prometheus").with_status(0);
    assert!(output.contains("trommel_memtable_entries 5\n") && output.contains("trommel_logs 1\n"));
    let output = place.run("dump --db s").with_status(0);
    assert!(output.contains("groups of 5 entries"), "{output}");
}

#[test] // `verify` ended at the first one, and said nothing of `repair`.
fn every_table_that_is_gone_is_told() {
    let place = tables();
    let tables = files(&place, ".table");
    assert!(tables.len() >= 3, "{tables:?}");
    let (gone, damaged) = (&tables[..2], &tables[2]);
    gone.iter().for_each(|table| std::fs::remove_file(table).expect("removed"));
    crate::common::flip_bit(damaged, 10);
    let report = place.run("verify --db s --json").json(3);
    let output: Vec<&str> = lines(&report["damage"]);
    for table in gone {
        let words = format!("s/{} is missing: ", name(table));
        assert!(output.iter().any(|line| line.starts_with(&words)), "{words}: {output:?}");
    }
    let words = format!("s/{} is damaged at byte 0", name(damaged));
    assert!(output.iter().any(|line| line.starts_with(&words)), "{words}: {output:?}");
    assert_eq!((&report["ok"], &report["opens"]), (&false.into(), &false.into()));
    place.run("verify --db s").fails(3, &[&name(&gone[0]), &name(&gone[1]), &name(damaged)]);
    for command in ["get --db s key", "put --db s key value", "scan --db s", "stats --db s"] {
        place.run(command).fails(3, &["is missing: the manifest", "`trommel repair --db s`"]);
    }
    place.run("repair --db s").with_status(1);
    place.run("verify --db s").with_status(0);
}

fn lines(list: &Value) -> Vec<&str> {
    list.as_array().expect("a list").iter().map(|line| line.as_str().expect("text")).collect()
}

#[test]
fn a_manifest_that_is_gone_is_told_with_the_way_out() {
    let place = tables();
    std::fs::remove_file(place.path("s/MANIFEST")).expect("removed");
    for command in ["get --db s key", "put --db s key value", "load --db s keys", "inspect --db s"]
    {
        place.run(command).fails(3, &["s/MANIFEST is missing: ", "`trommel repair --db s`"]);
    }
    let damaged = files(&place, ".table").remove(0);
    crate::common::flip_bit(&damaged, 10);
    place.run("verify --db s").fails(3, &["s/MANIFEST is missing", &name(&damaged)]);
    // A folder of something else is none that can be repaired.
    std::fs::create_dir(place.path("other")).expect("made");
    place.file("other/letter.txt", "dear");
    let refused = place.run("get --db other key");
    assert!(refused.err.contains("not a Trommel store") && !refused.err.contains("repair"));
}

#[test] // `dump` called the half table of an interrupted merge damaged.
fn a_file_that_is_none_of_the_stores_is_no_damage() {
    let place = tables();
    let whole = std::fs::read(files(&place, ".table").remove(0)).expect("read");
    place.file("s/000900.table", &whole[..whole.len() / 2]);
    place.file("s/000901.table", &whole);
    place.file("s/000902.wal.new", "half");
    let dumped = place.run("dump --db s").with_status(0);
    for left in ["000900.table", "000901.table", "000902.wal.new"] {
        let of_file = dumped.split_once(left).expect("is told").1;
        let head: String = of_file.lines().take(2).collect();
        assert!(head.contains("no part of the store"), "{left}: {head}");
    }
    let dump = place.run("dump --db s --json").json(0);
    assert_eq!((&dump["ok"], &dump["damage"]), (&true.into(), &serde_json::json!([])));
    place.run("dump s/000900.table").with_status(0);
    // What the store needs is damaged as ever.
    let needed = files(&place, ".table").remove(0);
    crate::common::flip_bit(&needed, 10);
    let dumped = place.run("dump --db s");
    let words = format!("{} is damaged at byte 0", name(&needed));
    assert!(dumped.status == 3 && dumped.err.contains(&words), "{}", dumped.err);
}
