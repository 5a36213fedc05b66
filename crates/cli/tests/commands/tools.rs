//! `checkpoint`, `dump`, `repair` and `bench write`, as a user runs them: what they print, and the
//! exit status.

use crate::common::{Workplace, flip_bit};

/// A store with one table of several blocks, and writes in its log.
fn loaded() -> Workplace {
    let place = Workplace::new();
    let lines: String = (0..3000).map(|number| format!("key{number:05}\n")).collect();
    place.file("keys", lines);
    place.run("load --db s keys").with_status(0);
    place.run("put --db s drum turns").with_status(0);
    place
}

#[test]
fn a_checkpoint_is_a_store_of_its_own() {
    let place = loaded();
    let report = place.run("checkpoint --db s backups/copy --json").json(0);
    assert_eq!((&report["ok"], &report["tables"]), (&true.into(), &1.into()));
    place.run("delete --db s drum").with_status(0);
    place.run("get --db s drum").with_status(1);
    assert_eq!(place.run("get --db backups/copy drum").with_status(0), "turns\n");
    place.run("verify --db backups/copy").with_status(0);
    place.run("checkpoint --db s backups/copy").fails(3, &["backups/copy is not empty"]);
    place.run("checkpoint --db s s").fails(3, &["s is not empty"]);
    place.run("checkpoint --db nowhere other").fails(3, &["there is no store"]);
    assert!(!place.path("other").exists(), "nothing was made");
    place.run("checkpoint --db s").fails(2, &["<DIR>"]);
    let text = place.run("checkpoint --db s again").with_status(0);
    assert!(text.starts_with("checkpoint in again: 1 table, "), "{text}");
}

/// A store is written, backed up, lost, and restored.
#[test]
fn a_store_that_is_lost_comes_back_from_its_backups() {
    let place = loaded();
    place.file("long", vec![b'x'; 1 << 20]);
    place.run("put --db s long --file long").with_status(0);
    let everything = |store: &str| place.run(&format!("scan --db {store}")).with_status(0);
    let first = place.run("backup --db s kept --json").json(0);
    assert_eq!(first["generation"]["number"], 1);
    let before = everything("s");
    place.run("put --db s --kept-log-bytes 1000000 drum rests").with_status(0);
    let text = place.run("backup --db s kept --changes").with_status(0);
    assert!(text.starts_with("changes behind write "), "{text}");
    place.run("put --db s more words").with_status(0);
    let second = place.run("backup --db s kept --json").json(0);
    let write = |generation: &serde_json::Value| {
        generation["generation"]["sequence"].as_u64().expect("a number")
    };
    let after = everything("s");
    assert_ne!(before, after);
    std::fs::remove_dir_all(place.path("s")).expect("it is lost");

    let listed = place.run("backups kept --verify --json").json(0);
    assert_eq!(listed["generations"].as_array().expect("a list").len(), 2);
    let text = place.run("restore kept s").with_status(0);
    assert_eq!(text, format!("restored in s, as of write {}\n", write(&second)));
    assert_eq!(everything("s"), after);
    place.run("restore kept first --generation 1").with_status(0);
    assert_eq!(everything("first"), before);
    let until = write(&first) + 1;
    place.run(&format!("restore kept between --until {until}")).with_status(0);
    assert_eq!(place.run("get --db between drum").with_status(0), "rests\n");
    place.run("get --db between more").with_status(1);
    place.run(&format!("restore kept so --until {until} --leave-unlogged")).with_status(0);
    assert_eq!(everything("so"), everything("between"));
    place.run("restore kept then --leave-unlogged").fails(2, &["--until"]);
    place.run("restore kept then --until @0.5").fails(3, &["no generation is so old"]);
    place.run("restore kept then --until yesterday").fails(2, &["'yesterday' is neither"]);
    place.run("restore kept s").fails(3, &["s is not empty"]);
    place.run("restore nowhere then").fails(3, &["nowhere"]);
    assert!(!place.path("nowhere").exists() && !place.path("then").exists());

    place.run("backups kept --keep 1").with_status(0);
    place
        .run("restore kept first-again --generation 1")
        .fails(3, &["no generation of this number"]);
    flip_bit(&place.largest_file("kept", ".table"), 10);
    let ended = place.run("backups kept --verify");
    assert_eq!(ended.status, 3);
    assert!(ended.err.contains("1 object damaged"), "{}", ended.err);
    assert!(ended.out.contains("other bytes than"), "{}", ended.out);
    place.run("restore kept damaged").fails(3, &["other bytes than"]);
    assert!(!place.path("damaged/MANIFEST").exists());
}

#[test] // It restored the generation before, since the listed seconds were rounded down.
fn the_listed_time_of_a_generation_restores_it() {
    let place = loaded();
    place.run("backup --db s kept").with_status(0);
    place.run("put --db s drum rests").with_status(0);
    place.run("backup --db s kept").with_status(0);
    let listed = place.run("backups kept").with_status(0);
    for row in listed.lines().skip(2) {
        let cells: Vec<&str> = row.split_whitespace().collect();
        let (number, sequence, time) = (cells[0], cells[1], cells[2]);
        let restored = place.run(&format!("restore kept r{number} --until @{time} --json")).json(0);
        assert_eq!(restored["sequence"].to_string(), sequence, "{listed}");
    }
    assert_eq!(place.run("get --db r2 drum").with_status(0), "rests\n");
}

#[test]
fn a_dump_tells_every_entry_and_names_damage() {
    let place = loaded();
    let text = place.run("dump --db s").with_status(0);
    for words in ["s/MANIFEST: manifest", ".table: table", ".wal: log", ".filter: filter"] {
        assert!(text.contains(words), "{words} is not in it");
    }
    assert!(text.contains(" put key02999\n") && text.contains(" put drum = turns\n"));
    let dump = place.run("dump --db s --json").json(0);
    let files = dump["files"].as_array().expect("a list");
    let entries = files.iter().flat_map(|file| file["items"].as_array().expect("a list"));
    let keys = entries.filter(|item| item["key"].is_string()).count();
    assert_eq!((keys, &dump["ok"], &dump["damage"]), (3001, &true.into(), &serde_json::json!([])));

    let table = place.largest_file("s", ".table");
    let name = table.file_name().expect("a name").to_string_lossy().into_owned();
    flip_bit(&table, 10);
    let damaged = place.run(&format!("dump s/{name} --json")).json(3);
    let text = damaged["damage"].to_string();
    assert!(text.contains(&name) && text.contains("damaged at byte 0"), "{text}");
    let ended = place.run(&format!("dump s/{name}"));
    assert_eq!(ended.status, 3);
    assert!(ended.err.contains(&name) && ended.out.contains("DAMAGED: data block 0"));
    assert!(ended.out.contains("put key02999"), "other blocks are told");
}

#[test]
fn a_dump_of_what_is_no_store_is_refused() {
    let place = loaded();
    place.file("letter.txt", "dear");
    place.run("dump letter.txt --json").json(3);
    std::fs::create_dir(place.path("empty")).expect("made");
    place.run("dump --db empty").fails(3, &["not a Trommel store"]);
    place.run("dump missing --json").fails(3, &["missing"]);
    place.run("dump").fails(2, &["--db <DIR>"]);
    let short = place.run("dump --db s --hex --value-bytes 2").with_status(0);
    assert!(short.contains(" put 6472756d = 7475... (5 bytes)"), "hexadecimal, cut short");
}

#[test]
fn a_repair_says_what_it_has_done() {
    let place = loaded();
    let report = place.run("repair --db s --json").json(0);
    assert_eq!((&report["ok"], &report["changed"]), (&true.into(), &false.into()));
    assert!(
        place
            .run("repair --db s")
            .with_status(0)
            .starts_with("nothing to repair: 1 table, 3,000 e")
    );

    std::fs::remove_file(place.path("s/MANIFEST")).expect("removed");
    place.run("verify --db s").fails(3, &["s/MANIFEST is missing"]);
    let text = place.run("repair --db s").with_status(1);
    assert!(
        text.contains("the manifest was made anew") && text.contains("saved from logs: 1 write")
    );
    assert!(text.contains("in doubt: MANIFEST: it is missing"), "{text}");
    place.run("verify --db s").with_status(0);
    assert_eq!(place.run("get --db s drum").with_status(0), "turns\n");

    let table = place.largest_file("s", ".table");
    let name = table.file_name().expect("a name").to_string_lossy().into_owned();
    flip_bit(&table, 10);
    place.run("verify --db s").fails(3, &[&name]);
    let report = place.run("repair --db s --json").json(1);
    let loss = &report["lost"][0];
    assert_eq!(
        (&report["ok"], &loss["file"], &loss["offset"]),
        (&false.into(), &name.clone().into(), &0.into())
    );
    let lost = loss["entries"].as_u64().expect("the index knows");
    assert_eq!(report["entries"], 3001 - lost);
    assert!(place.path("s/lost").join(&name).exists(), "nothing is deleted");
    place.run("verify --db s").with_status(0);
    place.run("get --db s key02999").with_status(0);

    place.run("repair --db nowhere").fails(3, &["there is no store"]);
    std::fs::create_dir(place.path("empty")).expect("made");
    place.run("repair --db empty").fails(3, &["there is no store"]);
}

#[test] // It was "ok", with exit status 0, and nothing was said of 3,000 keys.
fn a_table_that_is_gone_with_the_manifest_is_not_all_saved() {
    let place = loaded();
    std::fs::remove_file(place.largest_file("s", ".table")).expect("removed");
    std::fs::remove_file(place.path("s/MANIFEST")).expect("removed");
    let report = place.run("repair --db s --json").json(1);
    let doubt = &report["doubts"][0];
    assert_eq!(
        (&report["ok"], &report["lost"], &doubt["file"]),
        (&false.into(), &serde_json::json!([]), &"MANIFEST".into())
    );
    assert!(doubt["offset"].is_null() && doubt["what"].is_string(), "{report}");
    let again = place.run("repair --db s --json").json(0);
    assert_eq!((&again["ok"], &again["doubts"]), (&true.into(), &serde_json::json!([])));
}

#[test]
fn bench_write_prints_the_promised_fields() {
    let place = Workplace::new();
    let run = "bench write --threads 2 --sync never --keys 3000 --value-bytes 20 --write-buffer 16KiB --json";
    for pattern in ["random", "sequential", "update"] {
        let report = place.run(&format!("{run} --guard grf --pattern {pattern}")).json(0);
        for field in [
            "ops_per_s",
            "write_amplification",
            "space_amplification_peak",
            "guard_ns_per_key",
            "flushes",
            "merges",
        ] {
            assert!(report[field].as_f64().is_some_and(|number| number > 0.0), "{field}: {report}");
        }
        for percentile in ["p50", "p99", "p999", "max"] {
            assert!(report["put_ns"][percentile].as_u64().is_some_and(|time| time > 0), "{report}");
        }
        assert!(report["stalls"]["count"].is_u64() && report["stalls"]["seconds"].is_f64());
        assert_eq!((&report["wrong_answers"], &report["pattern"]), (&0.into(), &pattern.into()));
    }
    let both = place.run(&format!("{run} --guard none,blocked-bloom")).json(0);
    assert_eq!(both.as_array().map(Vec::len), Some(2));
    let table = place.run("bench write --sync always --keys 20 --db stores").with_status(0);
    assert!(table.contains("writes per second") && place.path("stores/grf/MANIFEST").exists());
    place.run("bench write --keys 20 --db stores").fails(3, &["not empty"]);
    place.run("bench write --threads 0").fails(2, &["threads"]);
    let steady =
        place.run("bench write --keys 400 --value-bytes 92 --rate 400KiB --sync never --json");
    assert_eq!(steady.json(0)["bytes_per_s_asked"], 400 << 10);
    place.run("bench write --keys 20 --rate 0").fails(2, &["per second"]);
    place.run("bench write --pattern zigzag").fails(2, &["random, sequential, update"]);
    place.run("bench write --sync sometimes").fails(2, &["always, interval, never"]);
}
