//! Stores that are damaged, in use, or of another version: a message that names the file, exit
//! status 3.

use std::io::Write;
use std::time::{Duration, Instant};

use trommel::backup::Backups;
use trommel::{Db, Options};

use crate::common::{Ended, Workplace, flip_bit};

/// A store with one table, and nothing left in its log.
fn loaded(arguments: &str) -> Workplace {
    let place = Workplace::new();
    let lines: String = (0..5000).map(|number| format!("key{number:05}\n")).collect();
    place.file("keys", lines);
    place.run(&format!("load --db s {arguments} keys")).with_status(0);
    place
}

#[test]
fn a_sound_store_verifies() {
    let place = loaded("");
    let report = place.run("verify --db s --json").json(0);
    assert_eq!((&report["ok"], &report["entries"]), (&true.into(), &5000.into()));
    assert!(place.run("verify --db s").with_status(0).starts_with("fine: "));
}

#[test]
fn every_damaged_part_of_a_table_is_found() {
    for guard in ["none", "blocked-bloom"] {
        let place = loaded(&format!("--guard {guard}"));
        let table = place.largest_file("s", ".table");
        let sound = std::fs::read(&table).expect("read");
        let name = table.file_name().expect("a name").to_string_lossy().into_owned();
        let step = sound.len() / 40;
        for byte in (0..40).map(|place| place * step).chain([sound.len() - 1]) {
            flip_bit(&table, byte);
            place.run("verify --db s").fails(3, &[&name]);
            std::fs::write(&table, &sound).expect("mended");
        }
        std::fs::write(&table, &sound[..sound.len() / 2]).expect("cut");
        place.run("verify --db s").fails(3, &[&name]);
        let report = place.run("verify --db s --json").json(3);
        assert_eq!(report["ok"], false);
        std::fs::remove_file(&table).expect("removed");
        place.run("verify --db s").fails(3, &[&name]);
        std::fs::write(&table, &sound).expect("mended");
        place.run("verify --db s").with_status(0);
    }
}

#[test]
fn verify_finds_more_than_the_damage_that_hinders_the_guard() {
    let place = loaded("");
    for round in 0..2 {
        let lines: String = (0..10).map(|number| format!("new{round}{number}\n")).collect();
        place.file("more", lines);
        place.run("load --db s more").with_status(0);
    }
    let folder = std::fs::read_dir(place.path("s")).expect("a folder");
    let files = folder.map(|file| file.expect("a file").path());
    let tables: Vec<_> = files.filter(|path| path.to_string_lossy().ends_with(".table")).collect();
    assert!(tables.len() > 1, "one table is too few for this test");
    tables.iter().for_each(|table| flip_bit(table, 20));
    let report = place.run("verify --db s --json").json(3);
    let damage = report["damage"].to_string();
    for table in &tables {
        let name = table.file_name().expect("a name").to_string_lossy();
        assert!(damage.contains(&*name), "{name} is not in {damage}");
    }
    place.run("verify --db s --guard grf").fails(3, &["damaged at byte"]);
}

#[test]
fn damage_is_told_with_the_way_out() {
    const REPAIR: &str =
        "`trommel repair --db s` mends the store, and tells what it could not save\n";
    let place = loaded("--guard none");
    let table = place.largest_file("s", ".table");
    flip_bit(&table, 10);
    let way_out = format!("\ntrommel: `trommel verify --db s` tells all damage; {REPAIR}");
    for command in [
        "scan --db s --guard none",
        "get --db s --guard none key00000",
        "stats --db s",
        "inspect --db s",
        "load --db s keys",
        // The damage is met by a thread that merges.
        "compact --db s --all --guard none",
    ] {
        place.run(command).fails(3, &["is damaged at byte", &way_out]);
    }
    let dumped = place.run("dump --db s");
    assert!(dumped.status == 3 && dumped.err.ends_with(&way_out), "{}", dumped.err);
    place.run("verify --db s").fails(3, &[&format!("\ntrommel: {REPAIR}")]);
    assert!(!place.run("verify --db s").err.contains("trommel verify"), "it was just that");
    let elsewhere = place.file("copy.table", std::fs::read(&table).expect("read"));
    let dumped = place.run("dump copy.table").err;
    assert!(dumped.contains("damaged") && !dumped.contains("repair"), "{elsewhere:?}: {dumped}");

    std::fs::remove_file(&table).expect("removed");
    place.run("get --db s key00000").fails(3, &["is missing: ", &way_out]);
    let output = place.run("get --db nowhere key");
    assert!(output.status == 3 && !output.err.contains("repair"), "{}", output.err);
}

#[test]
fn a_damaged_filter_is_told_and_not_used() {
    let place = loaded("--guard blocked-bloom");
    let table = place.largest_file("s", ".table");
    // The filter is the largest of the sections, which stand at the end.
    let byte = table.metadata().expect("there").len() as usize - 2000;
    flip_bit(&table, byte);
    let stats = place.run("stats --db s --guard blocked-bloom").with_status(0);
    assert!(stats.contains("damaged filters, not used"), "{stats}");
    let picture = place.run("inspect --db s --guard blocked-bloom").with_status(0);
    assert!(picture.contains("damaged filters, not used: 1"), "{picture}");
    place.run("get --db s --guard blocked-bloom key00001").with_status(0);
    place.run("verify --db s").fails(3, &[".table is damaged at byte"]);
}

#[test]
fn a_damaged_image_of_the_filter_is_told_and_the_store_goes_on() {
    let place = loaded("");
    let image = place.largest_file("s", ".filter");
    let name = image.file_name().expect("a name").to_string_lossy().into_owned();
    flip_bit(&image, 200);
    place.run("get --db s key00001").with_status(0);
    let stats = place.run("stats --db s").with_status(0);
    assert!(stats.contains("rebuilt: the image is damaged"), "{stats}");
    let json = place.run("stats --db s --json").json(0);
    assert_eq!(json["guard"]["built_at_open"], true);
    assert!(json["guard"]["damaged"][0].to_string().contains(&name), "{json}");
    let picture = place.run("inspect --db s").with_status(0);
    assert!(picture.contains("its image is damaged"), "{picture}");
    for guard in ["grf", "none"] {
        place.run(&format!("verify --db s --guard {guard}")).fails(3, &[&name, "damaged at byte"]);
    }
    // What changes the tree writes a new image.
    place.run("load --db s keys").with_status(0);
    place.run("verify --db s").with_status(0);
}

#[test] // It was told as damaged at byte 0.
fn a_missing_image_of_the_filter_is_told_as_missing() {
    let place = loaded("");
    let image = place.largest_file("s", ".filter");
    let name = image.file_name().expect("a name").to_string_lossy().into_owned();
    std::fs::remove_file(&image).expect("removed");
    place.run("get --db s key00001").with_status(0);
    let stats = place.run("stats --db s").with_status(0);
    assert!(stats.contains("rebuilt: the image is missing"), "{stats}");
    let expected = format!("s/{name} is missing: the manifest names it");
    for guard in ["grf", "none"] {
        let verified = place.run(&format!("verify --db s --guard {guard}"));
        verified.fails(3, &[&expected, "`trommel repair --db s`"]);
    }
    place.run("repair --db s").with_status(0);
    place.run("verify --db s").with_status(0);
}

#[test]
fn a_torn_log_is_normal_and_a_damaged_one_is_not() {
    let place = Workplace::new();
    for number in 0..6 {
        place.run(&format!("put --db s key{number} value{number}")).with_status(0);
    }
    let log = place.largest_file("s", ".wal");
    let name = log.file_name().expect("a name").to_string_lossy().into_owned();
    let sound = std::fs::read(&log).expect("read");
    flip_bit(&log, sound.len() / 2);
    place.run("scan --db s").fails(3, &[&name, "damaged"]);
    place.run("put --db s key value").fails(3, &[&name, "damaged"]);
    std::fs::write(&log, &sound[..sound.len() - 3]).expect("torn");
    let scanned = place.run("scan --db s --keys-only").with_status(0);
    assert!(scanned.starts_with("key0\nkey1\nkey2\nkey3\nkey4\n"), "{scanned}");
}

#[test]
fn a_store_of_another_version_is_left_alone() {
    let place = loaded("");
    let manifest = place.path("s/MANIFEST");
    // The version stands behind a magic of eight bytes.
    flip_bit(&manifest, 8);
    let before = std::fs::read(&manifest).expect("read");
    let load = "load --db s keys";
    for command in ["verify --db s", "get --db s key00001", "put --db s key value", load] {
        place.run(command).fails(3, &["MANIFEST", "format version 24", "reads version 8"]);
    }
    assert_eq!(std::fs::read(&manifest).expect("read"), before);
    flip_bit(&manifest, 8);
    place.run("get --db s key00001").with_status(0);
}

#[test]
fn a_damaged_manifest_is_named() {
    let place = loaded("");
    flip_bit(&place.path("s/MANIFEST"), 14);
    place.run("verify --db s").fails(3, &["MANIFEST", "damaged"]);
}

#[test]
#[cfg(target_os = "linux")]
fn output_that_cannot_be_written_is_an_error_and_a_closed_pipe_is_none() {
    let place = loaded("");
    let full = std::fs::File::options().write(true).open("/dev/full").expect("a full device");
    let child = place.command("scan --db s").stdout(full).spawn().expect("started");
    let ended = Ended::from(child.wait_with_output().expect("ended"));
    ended.fails(3, &["standard output"]);
    let mut child = place.command("scan --db s").spawn().expect("started");
    drop(child.stdout.take());
    let ended = Ended::from(child.wait_with_output().expect("ended"));
    assert_eq!((ended.status, ended.err.as_str()), (0, ""));
}

/// Runs a command whose output nobody reads.
fn unread(place: &Workplace, arguments: &str) -> i32 {
    let (_, closed) = std::io::pipe().expect("a pipe");
    let child = place.command(arguments).stdout(closed).spawn().expect("started");
    Ended::from(child.wait_with_output().expect("ended")).status
}

#[test] // Each had status 0.
fn a_closed_pipe_hides_no_failure() {
    let place = loaded("");
    assert_eq!(unread(&place, "get --db s none --json"), 1);
    std::fs::remove_file(place.largest_file("s", ".table")).expect("removed");
    assert_eq!(unread(&place, "repair --db s"), 1);
    assert_eq!(unread(&place, "repair --db s"), 0, "there is nothing to repair any more");

    // So many generations are listed that the pipe is met amid their table.
    let db = Db::open(place.path("t"), Options::default()).expect("opens");
    db.put("drum", "turns").and_then(|()| db.flush()).expect("writes");
    let backups = Backups::in_folder(place.path("kept")).expect("a folder");
    (0..100).for_each(|_| drop(backups.back_up(&db).expect("stored")));
    db.close().expect("closes");
    flip_bit(&place.largest_file("kept", ".table"), 10);
    assert_eq!(unread(&place, "backups kept --verify"), 3);
    assert_eq!(unread(&place, "backups kept --verify --json"), 3);
}

#[test]
fn a_store_that_is_open_elsewhere_is_not_opened_twice() {
    let place = Workplace::new();
    let mut first = place.command("load --db s -").spawn().expect("started");
    let mut input = first.stdin.take().expect("a pipe");
    input.write_all(b"a key\n").expect("written");
    // The manifest appears once the lock is held, which lasts until the input ends.
    let deadline = Instant::now() + Duration::from_secs(60);
    while !place.path("s/MANIFEST").exists() {
        assert!(Instant::now() < deadline, "the store is never made");
        std::thread::sleep(Duration::from_millis(5));
    }
    for command in ["put --db s key value", "load --db s -", "compact --db s"] {
        place.run(command).fails(3, &["open already, by another process", "trommel get"]);
    }
    drop(input);
    assert!(first.wait().expect("ended").success());
    place.run("get --db s --json key").json(1);
    assert_eq!(place.run("scan --db s --keys-only").with_status(0), "a key\n");
}
