//! `export`, `import`, `upgrade`: what leaves a store arrives in another, byte by byte, or is told.

use std::os::unix::fs::PermissionsExt;

use crate::common::{Workplace, flip_bit};
use serde_json::Value;

/// A store with keys and values of all kinds, some of them in tables and some in the log.
fn odd() -> Workplace {
    let place = Workplace::new();
    let hex: String = (0..=255).map(|byte| format!("{byte:02x}ff00\t{byte:02x}0a095c\n")).collect();
    place.file("odd", hex);
    place.run("load --db s --hex --format tsv --value-column 2 odd").with_status(0);
    place.run("put --db s Zürich drum").with_status(0);
    place.run("put --db s --ttl 7d soon gone").with_status(0);
    place.run("put --db s deleted value").with_status(0);
    place.run("delete --db s deleted").with_status(0);
    place
}

fn contents(place: &Workplace, store: &str) -> String {
    place.run(&format!("export --db {store} --format tsv -")).with_status(0)
}

#[test]
fn every_form_carries_every_byte_and_has_the_same_checksum() {
    let place = odd();
    let mut checksums = Vec::new();
    for form in ["native", "jsonl", "tsv"] {
        let export = format!("export --db s --format {form} of.{form} --json");
        let exported = place.run(&export).json(0);
        assert_eq!(exported["exported"], 258, "{exported}");
        let imported = place.run(&format!("import --db {form} of.{form} --json")).json(0);
        assert_eq!((&imported["imported"], &imported["checked"]), (&258.into(), &true.into()));
        assert_eq!(imported["checksum"], exported["checksum"], "{form}");
        assert_eq!(contents(&place, form), contents(&place, "s"), "{form}");
        place.run(&format!("verify --db {form}")).with_status(0);
        checksums.push(exported["checksum"].clone());
    }
    assert!(checksums.iter().all(|one| *one == checksums[0]), "{checksums:?}");
    assert_eq!(place.run("get --db native Zürich").with_status(0), "drum\n");
    let expiries = contents(&place, "jsonl");
    let soon = expiries.lines().find(|line| line.starts_with("soon\t")).expect("it is there");
    assert_eq!(soon.split('\t').count(), 3, "it still expires: {soon}");
    let folder = place.run("import --db of-folder s --json").json(0);
    assert_eq!((&folder["imported"], &folder["checksum"]), (&258.into(), &checksums[0]));
    assert!(!place.path("of.tsv.part").exists());
}

#[test]
fn streams_go_through_pipes_and_the_result_goes_to_standard_error() {
    let place = odd();
    let exported = place.run("export --db s --format jsonl --json -");
    let output: Value = serde_json::from_str(&exported.err).expect("one object");
    assert_eq!((&output["exported"], exported.status), (&258.into(), 0));
    let lines: Vec<Value> =
        exported.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.len(), 259);
    assert_eq!(lines[258]["end"]["entries"], 258);
    assert!(lines.iter().any(|line| line["key"] == "Zürich" && line["value"] == "drum"));
    let imported = place.run_with_input("import --db copy -", exported.out.as_bytes());
    assert!(imported.with_status(0).starts_with("258 keys imported, "));
    assert_eq!(contents(&place, "copy"), contents(&place, "s"));
    // What `scan` prints is such a text, without its end.
    place.run("delete --db s soon").with_status(0);
    let scanned = place.run("scan --db s").with_status(0);
    let imported = place.run_with_input("import --db scanned - --json", scanned.as_bytes()).json(0);
    assert_eq!((&imported["imported"], &imported["checked"]), (&257.into(), &false.into()));
    assert_eq!(contents(&place, "scanned"), contents(&place, "s"));
}

#[test]
fn a_broken_import_says_what_was_kept() {
    let place = Workplace::new();
    let lines: String = (0..3000).map(|number| format!("key{number:05}\t{number}\n")).collect();
    place.file("keys", &lines);
    place.run("load --db s --format tsv --value-column 2 keys").with_status(0);
    place.run("export --db s whole").with_status(0);
    let whole = std::fs::read(place.path("whole")).expect("read");
    place.file("cut", &whole[..whole.len() - 5]);
    let cut = place.run("import --db cut-short cut");
    cut.fails(3, &["cut, byte", "cut short", "3,000 keys imported before it, and kept"]);
    assert_eq!(place.run("get --db cut-short key00042").with_status(0), "42\n");
    place.file("damaged", &whole);
    flip_bit(&place.path("damaged"), 100);
    let damaged = place.run("import --db damaged-first damaged");
    damaged.fails(3, &["damaged, byte 12", "checksum", "no key was imported"]);
    place.file("bad.tsv", "a\t1\nb\n");
    let bad = place.run("import --db bad bad.tsv");
    bad.fails(3, &["bad.tsv, line 2", "1 columns", "1 key imported before it, and kept"]);
    place.file("letter", "dear");
    place.run("import --db x --format native letter").fails(3, &["letter, byte 0", "cut short"]);
    std::fs::create_dir(place.path("empty")).expect("made");
    place.run("import --db x empty").fails(3, &["empty is a folder", "RocksDB and LevelDB"]);
    place.run("import --db x nowhere").fails(3, &["nowhere"]);
    assert!(!place.path("x").exists(), "nothing was made");
    place.file("nothing", "");
    let nothing = place.run("import --db none nothing");
    assert!(nothing.err.contains("nothing holds no keys"), "{}", nothing.err);
    assert!(nothing.with_status(0).starts_with("0 keys imported"));
}

#[test]
fn a_folder_of_rocksdb_needs_the_program_that_reads_it() {
    let place = Workplace::new();
    std::fs::create_dir(place.path("rocks")).expect("made");
    place.file("rocks/CURRENT", "MANIFEST-000001\n");
    let output = place.run("import --db x --program nowhere rocks");
    output.fails(3, &["nowhere: there is no such program", "crates/peers"]);
    assert!(!place.path("x").exists(), "nothing was made");
}

/// A program in the place of `trommel-peers`, that keeps its task and does this.
fn program(place: &Workplace, does: &str) -> String {
    let script = place.file("peers", format!("#!/bin/sh\ncat > task\n{does}\n"));
    let rights = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&script, rights).expect("may be started");
    script.display().to_string()
}

#[test]
fn entries_come_through_the_program_that_reads_other_stores() {
    let place = odd();
    place.run("export --db s whole").with_status(0);
    std::fs::create_dir(place.path("rocks")).expect("made");
    place.file("rocks/CURRENT", "MANIFEST-000001\n");
    let good = program(&place, "cat whole");
    let import = format!("import --db x --column-family users --program {good} rocks --json");
    assert_eq!(place.run(&import).json(0)["imported"], 258);
    assert_eq!(contents(&place, "x"), contents(&place, "s"));
    let task: Value = serde_json::from_slice(&std::fs::read(place.path("task")).expect("read"))
        .expect("one object");
    let asked =
        serde_json::json!({ "task": "export", "folder": "rocks", "column_family": "users" });
    assert_eq!(task, asked);
    // One that fails amid the stream has told why.
    let failing = program(&place, "head -c 100 whole; echo told >&2; exit 3");
    let ended = place.run(&format!("import --db y --program {failing} rocks"));
    ended.fails(3, &["told", "exit status: 3", "no key was imported before it"]);
    let cut = program(&place, "head -c 100 whole");
    let ended = place.run(&format!("import --db y --program {cut} rocks"));
    ended.fails(3, &["rocks, byte 12", "cut short", "no key was imported before it"]);
}

#[test]
fn an_export_replaces_a_file_when_it_is_whole() {
    let place = odd();
    place.file("kept", "as it was");
    place.run("export --db nowhere kept").fails(3, &["there is no store"]);
    assert_eq!(std::fs::read(place.path("kept")).expect("read"), b"as it was");
    place.run("export --db s nowhere/file").fails(3, &["nowhere/file.part"]);
    let text = place.run("export --db s kept").with_status(0);
    assert!(text.starts_with("258 keys exported, "), "{text}");
    assert!(std::fs::read(place.path("kept")).expect("read").starts_with(b"TRMLEXP\0"));
}

#[test]
fn a_store_of_the_present_version_needs_no_upgrade() {
    let place = odd();
    let before = contents(&place, "s");
    let output = place.run("upgrade --db s --json").json(0);
    assert_eq!((&output["changed"], &output["version"]), (&false.into(), &8.into()));
    assert!(place.run("upgrade --db s").with_status(0).starts_with("nothing to do: s has"));
    assert_eq!(contents(&place, "s"), before);
    // The version stands behind a magic of eight bytes.
    flip_bit(&place.path("s/MANIFEST"), 8);
    place.run("upgrade --db s").fails(3, &["s has format version 24", "a newer Trommel"]);
    place.run("upgrade --db nowhere").fails(3, &["nowhere"]);
    place.run("upgrade s").fails(2, &["trommel upgrade --db s"]);
}

#[test]
fn a_store_of_the_version_before_is_upgraded() {
    let place = odd();
    let golden = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../store/tests/golden_folder/version_7/plain");
    std::fs::create_dir(place.path("old")).expect("makes");
    for file in std::fs::read_dir(golden).expect("lists").map(|file| file.expect("a file")) {
        std::fs::copy(file.path(), place.path("old").join(file.file_name())).expect("copies");
    }
    place.run("get --db old log").fails(3, &["format version 7", "trommel upgrade"]);
    let manifest = std::fs::read(place.path("old/MANIFEST")).expect("reads");
    let output = place.run("upgrade --db old --json").json(0);
    assert_eq!((&output["version_before"], &output["version"]), (&7.into(), &8.into()));
    assert_eq!(place.run("get --db old log").with_status(0), "in no table yet\n");
    place.run("verify --db old").with_status(0);
    let kept = std::fs::read(place.path("old.version-7/MANIFEST")).expect("reads");
    assert_eq!(kept, manifest, "the old store is as it was");
    assert!(place.run("upgrade --db old").with_status(0).starts_with("nothing to do"));
}
