//! What crashes and damage leave of large values.
//! ```text
//! power cut   a suffix of writes is gone, each with its value
//! kill        all are there, and become durable with the next sync
//! damage      told with its file; a repair tells what is lost
//! ```
//! Invariant: no reference that counts is without its value, unless a file was damaged.

use std::path::Path;
use std::sync::Arc;

use trommel::storage::Memory;
use trommel::{Batch, Db, Environment, SyncPolicy};

use super::{DIR, open, open_with, options, value, value_files, values_since};

/// Writes numbered batches, each of a short and a large value that name it.
fn write_batches(db: &Db, numbers: std::ops::Range<u64>) {
    for number in numbers {
        let mut batch = Batch::new();
        batch.put("last", number.to_be_bytes());
        batch.put(format!("batch {number:05}"), value(number, 900 + number as usize * 97 % 5000));
        db.write(batch).expect("writes");
        if number % 7 == 0 {
            db.step().expect("goes on");
        }
    }
}

/// How many batches are there. Panics if one is in half, or one in the middle is missing.
fn batches_found(db: &Db) -> u64 {
    let last = db.get("last").expect("reads");
    let count = last.map_or(0, |last| u64::from_be_bytes((*last).try_into().expect("8")) + 1);
    let found: Vec<_> = db.prefix("batch ").map(|entry| entry.expect("reads")).collect();
    assert_eq!(found.len() as u64, count, "a batch is missing");
    for (number, (key, found)) in (0..).zip(found) {
        assert_eq!(key, format!("batch {number:05}").into_bytes());
        assert!(*found == *value(number, 900 + number as usize * 97 % 5000), "batch {number}");
    }
    count
}

#[test]
fn synced_values_survive_any_crash() {
    for seed in 0..40 {
        let (mut disk, mut written) = (Memory::new(), 0);
        for generation in 0..4 {
            let db = open(&disk);
            assert_eq!(batches_found(&db), written, "seed {seed}, generation {generation}");
            let count = (seed * 13 + generation * 29) % 50;
            write_batches(&db, written..written + count);
            written += count;
            disk = disk.crash(seed * 10 + generation);
        }
    }
}

#[test]
fn feeds_tell_values_that_were_overwritten_after_any_power_cut() {
    let mut held = 0;
    for seed in 0..40 {
        let (mut disk, mut written) = (Memory::new(), 0);
        let kept = || options().value_file_bytes(8 << 10).kept_log_bytes(1 << 30);
        for generation in 0..4 {
            let db = open_with(&disk, kept());
            for _ in 0..1 + (seed * 13 + generation * 29) % 20 {
                db.put([written as u8 % 3], value(written, 2000)).expect("puts");
                written += 1;
                match (seed + written) % 11 {
                    0 => db.compact().expect("merges"),
                    _ => _ = db.step().expect("goes on"),
                }
            }
            let told = values_since(&db, 0).expect("all are kept");
            let expected: Vec<_> = (0..written).map(|number| value(number, 2000)).collect();
            assert!(told == expected, "seed {seed}, generation {generation}");
            held += db.stats().expect("open").kept_value_files;
            disk = disk.crash(seed * 10 + generation);
        }
    }
    assert!(held > 200, "{held} files: it does not test overwriting");
}

// It may bring back logs and value files that were removed.
#[test]
fn a_power_cut_amid_the_letting_go_of_values_leaves_a_store_that_opens() {
    for seed in 0..40 {
        let disk = Memory::new();
        let kept = || options().value_file_bytes(8 << 10).kept_log_bytes(40 << 10);
        let db = open_with(&disk, kept());
        for number in 0..60 + seed {
            db.put([number as u8 % 3], value(number, 2000)).expect("puts");
            while db.step().expect("goes on") {}
        }
        let disk = disk.crash(seed);
        drop(db);
        let db = open_with(&disk, kept());
        for number in 57 + seed..60 + seed {
            let found = db.get([number as u8 % 3]).expect("reads").expect("it is there");
            assert!(*found == *value(number, 2000), "seed {seed}, {number}");
        }
        match values_since(&db, 0) {
            Err(trommel::Error::Gone { .. }) => {}
            other => panic!("seed {seed}: {:?}", other.map(|told| told.len())),
        }
        assert!(db.verify().expect("verifies").damage.is_empty());
    }
}

// The log may be there as a whole, and of a value no part, or the first and the last.
#[test]
fn a_crash_without_sync_loses_a_suffix_of_writes_with_their_values() {
    let (mut lost, mut kept) = (0, 0);
    for seed in 0..150 {
        let disk = Memory::new();
        let options = options().sync(SyncPolicy::Never).write_buffer_bytes(16 << 10);
        let db = open_with(&disk, options.clone());
        write_batches(&db, 0..20);
        if seed % 3 == 0 {
            db.sync().expect("syncs");
        }
        write_batches(&db, 20..60);
        let disk = disk.crash(seed);
        drop(db);
        let db = open_with(&disk, options.clone());
        let found = batches_found(&db);
        assert!(found <= 60 && (seed % 3 > 0 || found >= 20), "seed {seed}: {found}");
        (lost, kept) = (lost + 60 - found, kept + found.saturating_sub(20));
        // What was recovered stays, and writing goes on behind it.
        write_batches(&db, found..found + 10);
        drop(db);
        let db = open_with(&disk.crash(seed), options.clone());
        let again = batches_found(&db);
        assert!((found..=found + 10).contains(&again), "seed {seed}: {found}, then {again}");
        db.compact().expect("merges");
        assert_eq!(batches_found(&db), again);
        assert!(db.verify().expect("verifies").damage.is_empty());
    }
    assert!(lost > 500 && kept > 100, "{lost} lost, {kept} kept: it does not test loss");
}

#[test]
fn a_value_that_was_durable_and_is_gone_is_damage() {
    let disk = Memory::new();
    let db = open(&disk);
    write_batches(&db, 0..10);
    db.close().expect("closes");
    let name = Path::new(DIR).join(&value_files(&disk)[0]);
    let bytes = disk.file(&name).expect("is there");
    for cut in [0, 20, 28, 1000, bytes.len() - 1] {
        let disk = disk.kill();
        disk.put_file(&name, &bytes[..cut]);
        let environment = Environment::default().storage(Arc::new(disk));
        let opened = Db::open_with(DIR, options(), environment);
        assert!(opened.is_err_and(|error| error.tells_of_damage()), "{cut} bytes");
    }
    let disk = disk.kill();
    disk.remove(&name).expect("removes");
    let environment = Environment::default().storage(Arc::new(disk));
    let opened = Db::open_with(DIR, options(), environment);
    let error = opened.expect_err("a file is missing");
    assert!(matches!(error, trommel::Error::FileMissing { .. }), "{error}");
}

// The second group does not count, since its value is torn. Still, it says that the first was
// synced.
#[test]
fn a_durable_value_that_is_damaged_is_not_lost_in_silence_before_a_torn_one() {
    let disk = Memory::new();
    let db = open_with(&disk, options().sync(SyncPolicy::Never));
    db.put("a", value(1, 3000)).expect("puts");
    db.sync().expect("syncs");
    db.put("b", value(2, 3000)).expect("puts");
    let disk = disk.kill();
    drop(db);
    let path = Path::new(DIR).join(&value_files(&disk)[0]);
    let mut bytes = disk.file(&path).expect("is there");
    bytes.truncate(28 + 16 + 3000 + 4);
    bytes[28 + 16 + 100] ^= 1;
    disk.put_file(&path, bytes);
    let environment = Environment::default().storage(Arc::new(disk));
    let opened = Db::open_with(DIR, options(), environment);
    let error = opened.and_then(|db| db.get("a").map(drop)).expect_err("it was durable");
    assert!(error.tells_of_damage(), "{error}");
}

#[test]
fn what_a_crash_has_left_of_values_is_removed() {
    let disk = Memory::new();
    let db = open_with(&disk, options().sync(SyncPolicy::Never));
    db.put("short", "value").expect("puts");
    db.sync().expect("syncs");
    db.put("large", value(1, 9000)).expect("puts");
    let left = disk.kill();
    let log = trommel::storage::Storage::list(&left, Path::new(DIR)).expect("lists");
    let log = log.into_iter().find(|name| name.ends_with(".wal")).expect("a log");
    // The log has lost the group.
    let path = Path::new(DIR).join(log);
    let bytes = left.file(&path).expect("is there");
    left.put_file(&path, &bytes[..bytes.len() - 1]);
    assert_eq!(value_files(&left).len(), 1);
    let db = open(&left);
    assert!(db.get("large").expect("reads").is_none());
    assert_eq!(value_files(&left), [""; 0]);
}

/// A store with values in a table and in the log, and the value file that a key's value is in.
fn with_values_in_two_files() -> (Memory, [String; 2]) {
    let disk = Memory::new();
    let db = open(&disk);
    db.put("a", "older").expect("puts");
    db.put("b", value(1, 40_000)).expect("puts");
    db.put("c", "short").expect("puts");
    db.flush().expect("flushes");
    db.put("a", value(2, 64 << 10)).expect("puts");
    db.put("d", value(3, 3000)).expect("puts");
    db.flush().expect("flushes");
    db.put("e", value(4, 3000)).expect("puts");
    db.close().expect("closes");
    let files = value_files(&disk);
    assert_eq!(files.len(), 2, "{files:?}");
    let [first, second] = [&files[0], &files[1]].map(String::clone);
    (disk, [first, second])
}

#[test]
fn verify_finds_damaged_values_and_repair_tells_what_is_lost() {
    use trommel::tools::{repair_with, verify_files_with};
    let (disk, [first, second]) = with_values_in_two_files();
    let environment = |disk: &Memory| Environment::default().storage(Arc::new(disk.clone()));
    assert_eq!(verify_files_with(DIR, &environment(&disk)).expect("verifies").damage, [""; 0]);
    let report = repair_with(DIR, &environment(&disk)).expect("repairs");
    assert!(!report.changed, "{report:?}");
    for (file, lost, stay) in [(&first, 2, ["c", "d", "e"]), (&second, 2, ["b", "c", "c"])] {
        for what in ["values", "header", "file"] {
            let disk = disk.kill();
            let path = Path::new(DIR).join(file);
            let mut bytes = disk.file(&path).expect("is there");
            match what {
                // All values in it, but no head.
                "values" => {
                    (28 + 16 + 100..bytes.len()).step_by(1500).for_each(|at| bytes[at] ^= 1)
                }
                _ => bytes[10] ^= 1,
            }
            disk.put_file(&path, bytes.clone());
            if what == "file" {
                disk.remove(&path).expect("removes");
            }
            let damage = verify_files_with(DIR, &environment(&disk)).expect("verifies").damage;
            assert!(!damage.is_empty(), "{file}: {what}");
            if what == "values" {
                let db = open(&disk);
                let damage = db.verify().expect("verifies").damage;
                assert!(damage.iter().all(|what| what.contains(file)), "{damage:?}");
                assert!(!damage.is_empty() && db.get("c").is_ok());
            }
            let report = repair_with(DIR, &environment(&disk)).expect("repairs");
            assert_eq!(report.lost.len(), lost, "{file}: {what}: {report:?}");
            let all = report.lost.iter().all(|loss| loss.what.contains(file.as_str()));
            assert!(all, "{report:?}");
            assert_eq!(
                verify_files_with(DIR, &environment(&disk)).expect("verifies").damage,
                [""; 0]
            );
            let db = open(&disk);
            stay.iter().for_each(|key| assert!(db.get(key).expect("reads").is_some(), "{key}"));
            assert!(db.verify().expect("verifies").damage.is_empty());
            // Nothing is deleted. Whoever has more tools than this store may read the rest of it.
            let set_aside = disk.file(Path::new(DIR).join("lost").join(file));
            assert!(set_aside == (what != "file").then_some(bytes), "{file}: {what}");
        }
    }
}

// Sound values in the same file keep it in the store, until these are moved or overwritten.
#[test]
fn a_file_with_a_damaged_value_is_kept_when_its_other_values_have_left_it() {
    use trommel::tools::repair_with;
    let (disk, [first, _]) = with_values_in_two_files();
    let environment = Environment::default().storage(Arc::new(disk.clone()));
    let path = Path::new(DIR).join(&first);
    let mut bytes = disk.file(&path).expect("is there");
    bytes[28 + 16 + 100] ^= 1;
    disk.put_file(&path, bytes.clone());
    let report = repair_with(DIR, &environment).expect("repairs");
    assert!(report.lost.len() == 1 && report.set_aside.contains(&first), "{report:?}");
    let db = open(&disk);
    assert!(db.get("b").expect("reads").is_none());
    assert!(db.get("a").expect("reads").is_some_and(|found| *found == *value(2, 64 << 10)));
    ["a", "d", "e"].iter().for_each(|key| db.put(key, "short").expect("puts"));
    db.compact().expect("merges");
    assert!(!value_files(&disk).contains(&first));
    assert!(disk.file(Path::new(DIR).join("lost").join(&first)) == Some(bytes));
}

#[test]
fn a_repair_leaves_kept_logs_the_values_that_only_they_name() {
    use trommel::storage::Storage;
    use trommel::tools::repair_with;
    let disk = Memory::new();
    let kept = || options().kept_log_bytes(1 << 20);
    let db = open_with(&disk, kept());
    db.put("a", value(1, 70_000)).expect("puts");
    db.put("a", "short").expect("puts");
    db.compact().expect("merges");
    db.put("b", "short").expect("puts");
    db.flush().expect("flushes");
    db.close().expect("closes");
    let names = Storage::list(&disk, Path::new(DIR)).expect("lists");
    let table = names.iter().rfind(|name| name.ends_with(".table")).expect("there is one");
    disk.remove(&Path::new(DIR).join(table)).expect("removes");
    let environment = Environment::default().storage(Arc::new(disk.clone()));
    let report = repair_with(DIR, &environment).expect("repairs");
    assert!(report.changed && report.lost.len() == 1, "{report:?}");
    let db = open_with(&disk, kept());
    let told = values_since(&db, 0).expect("they are kept");
    assert_eq!(told, [value(1, 70_000), b"short".to_vec(), b"short".to_vec()]);
}

// What a killed process has written need not be durable, though it is read.
#[test]
fn values_of_a_killed_process_become_durable_with_the_next_sync() {
    let disk = Memory::new();
    let options = || options().sync(SyncPolicy::Never);
    let db = open_with(&disk, options());
    write_batches(&db, 0..20);
    let disk = disk.kill();
    drop(db);
    let db = open_with(&disk, options());
    assert_eq!(batches_found(&db), 20);
    db.put("more", "short").expect("puts");
    db.sync().expect("syncs");
    assert_eq!(batches_found(&db), 20);
    let db = open_with(&disk.crash_hard(), options());
    assert_eq!(batches_found(&db), 20);
    assert!(db.verify().expect("verifies").damage.is_empty());
}
