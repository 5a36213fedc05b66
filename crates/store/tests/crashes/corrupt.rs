//! Damaged files: an error that names file and place, or the right answer. Never a wrong answer,
//! never a panic, and what is intact stays.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use trommel::Environment;
use trommel::stats::FilterRecovery;
use trommel::storage::{Memory, Storage};
use trommel::tools::repair_with;
use trommel::{Background, Db, Error, GuardKind, Options, SyncPolicy};
use trommel_guards::kinds;

const DIR: &str = "db";

fn options(guard: GuardKind) -> Options {
    Options::new()
        .guard(guard)
        .size_ratio(3)
        .block_bytes(256)
        .block_cache_bytes(0)
        .sync(SyncPolicy::Always)
        .background(Background::Stepped)
}

fn open(disk: &Memory, guard: GuardKind) -> trommel::Result<Db> {
    let environment = Environment::new().storage(Arc::new(disk.clone()));
    Db::open_with(Path::new(DIR), options(guard), environment)
}

type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

/// A store with two runs, a log, and under a global guard the image of its filter.
fn small_store(guard: GuardKind) -> (Memory, Contents) {
    let disk = Memory::new();
    let db = open(&disk, guard).expect("opens");
    let mut contents = Contents::new();
    let mut put = |number: u32, value: &str| {
        let key = format!("key {number:03}");
        db.put(&key, value).expect("puts");
        contents.insert(key.into_bytes(), value.as_bytes().to_vec());
    };
    (0..40).for_each(|number| put(number, "in the last level"));
    db.compact().expect("compacts");
    (20..30).for_each(|number| put(number, "newer"));
    db.flush().expect("flushes");
    (35..45).for_each(|number| put(number, "in the log"));
    drop(db);
    (disk, contents)
}

fn files(disk: &Memory, ending: &str) -> Vec<PathBuf> {
    let names = disk.list(Path::new(DIR)).expect("lists");
    let wanted = names.into_iter().filter(|name| name.ends_with(ending));
    wanted.map(|name| Path::new(DIR).join(name)).collect()
}

/// Every key and the whole range: right, or an error that names a file.
fn check_all(db: &Db, contents: &Contents) -> usize {
    let mut errors = 0;
    let mut is_named = |error: &Error| {
        let text = error.to_string();
        assert!(text.contains(DIR), "no file is named: {text}");
        errors += 1;
    };
    for (key, value) in contents {
        match db.get(key) {
            Ok(found) => assert_eq!(found.as_deref(), Some(&value[..]), "a wrong answer"),
            Err(error) => is_named(&error),
        }
    }
    let mut expected = contents.iter();
    for entry in db.range(..) {
        match entry {
            Ok((key, value)) => {
                let next = expected.next().map(|(key, value)| (&key[..], &value[..]));
                assert_eq!(Some((&key[..], &value[..])), next, "a wrong answer");
            }
            Err(error) => is_named(&error),
        }
    }
    errors
}

#[test]
fn every_flipped_byte_of_a_table_is_noticed_or_harmless() {
    for guard in trommel_guards::all_guards() {
        let (pristine, contents) = small_store(guard);
        for path in files(&pristine, ".table") {
            let len = pristine.file(&path).expect("is there").len() as u64;
            for byte in 0..len {
                let disk = copy(&pristine);
                disk.flip_bit(&path, byte, (byte % 8) as u32);
                match open(&disk, guard) {
                    Err(error) => assert!(error.to_string().contains(".table"), "{error}"),
                    Ok(db) => {
                        let errors = check_all(&db, &contents);
                        let report = db.verify().expect("verify itself goes through");
                        let noticed = errors > 0 || !report.damage.is_empty();
                        assert!(noticed, "{guard}: byte {byte} of {} unnoticed", path.display());
                        assert!(report.damage.iter().all(|text| text.contains(".table")));
                    }
                }
            }
        }
    }
}

#[test]
fn a_damaged_filter_is_told_once_and_hides_no_other_damage() {
    let (pristine, _) = small_store(GuardKind::Table(kinds::BLOCKED_BLOOM));
    let path = files(&pristine, ".table").remove(0);
    let len = pristine.file(&path).expect("is there").len() as u64;
    let damages_the_filter = |byte: &u64| {
        let disk = copy(&pristine);
        disk.flip_bit(&path, *byte, 0);
        let opened = open(&disk, GuardKind::Table(kinds::BLOCKED_BLOOM));
        opened.is_ok_and(|db| !db.stats().expect("open").guard.damaged.is_empty())
    };
    let in_filter = (0..len).rev().find(damages_the_filter).expect("the table has a filter");
    let disk = copy(&pristine);
    disk.flip_bit(&path, in_filter, 0);
    let verify = |disk: &Memory| {
        let db =
            open(disk, GuardKind::Table(kinds::BLOCKED_BLOOM)).expect("opens without the filter");
        db.verify().expect("verifies").damage
    };
    assert_eq!(verify(&disk).len(), 1, "{:?}", verify(&disk));
    disk.flip_bit(&path, 10, 0);
    assert_eq!(verify(&disk).len(), 2, "{:?}", verify(&disk));
}

/// The bytes of a table that are a filter's: damage to them is told of, and the table is used
/// without it.
fn filter_bytes(pristine: &Memory, path: &Path, guard: GuardKind) -> Vec<u64> {
    let len = pristine.file(path).expect("is there").len() as u64;
    let damages_the_filter = |byte: &u64| {
        let disk = copy(pristine);
        disk.flip_bit(path, *byte, 0);
        open(&disk, guard).is_ok_and(|db| !db.stats().expect("open").guard.damaged.is_empty())
    };
    (0..len).filter(damages_the_filter).collect()
}

/// Found while repairs of filters were written: `stats` told of a damaged filter for as long as the
/// store was open, also after a merge had made a new one, and a repaired table had none.
#[test]
fn a_damaged_filter_is_bypassed_and_made_anew_by_merges_and_repairs() {
    // Sub-filters of `elastic` are read when they are worth it: elastic.rs.
    let at_open = kinds::TABLE_FILTERS.into_iter().filter(|kind| *kind != kinds::ELASTIC);
    for kind in at_open {
        let guard = GuardKind::Table(kind);
        let (pristine, contents) = small_store(guard);
        let path = files(&pristine, ".table").remove(0);
        let bytes = filter_bytes(&pristine, &path, guard);
        assert!(!bytes.is_empty(), "{guard}: the table has no filter");
        let filters =
            open(&pristine, guard).expect("opens").stats().expect("open").guard.memory_bytes;
        for byte in bytes.iter().step_by(bytes.len().div_ceil(5)).chain(bytes.last()) {
            let disk = copy(&pristine);
            disk.flip_bit(&path, *byte, (byte % 8) as u32);
            let db = open(&disk, guard).expect("opens without the filter");
            let case = format!("{guard}, byte {byte}");
            assert_eq!(check_all(&db, &contents), 0, "{case}");
            let damaged = db.stats().expect("open").guard.damaged;
            assert!(damaged.len() == 1 && damaged[0].contains(".table"), "{case}: {damaged:?}");
            assert!(db.stats().expect("open").guard.memory_bytes < filters, "{case}");
            db.compact().expect("compacts");
            assert_eq!(db.stats().expect("open").guard.damaged, [""; 0], "{case}");
            assert_eq!(db.verify().expect("verifies").damage, [""; 0], "{case}");
            assert_eq!(check_all(&db, &contents), 0, "{case}");
            drop(db);
            let disk = copy(&pristine);
            disk.flip_bit(&path, *byte, (byte % 8) as u32);
            let environment = Environment::new().storage(Arc::new(disk.clone()));
            let report = repair_with(DIR, &environment).expect("repairs");
            assert_eq!((report.rewritten, report.lost.len()), (1, 0), "{case}: {report:?}");
            let db = open(&disk, guard).expect("opens");
            let stats = db.stats().expect("open").guard;
            let has_all = stats.memory_bytes * 10 >= filters * 9;
            assert!(stats.damaged.is_empty() && has_all, "{case}: {stats:?}");
            assert_eq!(db.verify().expect("verifies").damage, [""; 0], "{case}");
            assert_eq!(check_all(&db, &contents), 0, "{case}");
        }
    }
}

/// Opens and answers as if nothing were wrong, and tells of the damage with the image's name.
fn check_damaged_image(disk: &Memory, path: &Path, contents: &Contents, case: &str) {
    let db = open(disk, GuardKind::Grf).unwrap_or_else(|error| panic!("{case}: {error}"));
    assert_eq!(check_all(&db, contents), 0, "{case}");
    let stats = db.stats().expect("open");
    assert!(matches!(stats.filter_recovery, FilterRecovery::Rebuilt { .. }), "{case}: {stats:?}");
    let name = path.display().to_string();
    let names_it = |texts: &[String]| texts.len() == 1 && texts[0].contains(&name);
    assert!(names_it(&stats.guard.damaged), "{case}: {:?}", stats.guard.damaged);
    let damage = db.verify().expect("verifies").damage;
    assert!(names_it(&damage), "{case}: {damage:?}");
}

#[test]
fn every_flipped_byte_and_every_cut_of_an_image_is_told_and_harmless() {
    let (pristine, contents) = small_store(GuardKind::Grf);
    let path = files(&pristine, ".filter").pop().expect("has an image");
    let len = pristine.file(&path).expect("is there").len() as u64;
    for byte in 0..len {
        let disk = copy(&pristine);
        disk.flip_bit(&path, byte, (byte % 8) as u32);
        check_damaged_image(&disk, &path, &contents, &format!("byte {byte}"));
    }
    for cut in (0..len).step_by(7) {
        let disk = copy(&pristine);
        disk.truncate(&path, cut);
        check_damaged_image(&disk, &path, &contents, &format!("cut at {cut}"));
    }
    let disk = copy(&pristine);
    disk.remove(&path).expect("removes");
    check_damaged_image(&disk, &path, &contents, "removed");
}

#[test]
fn an_image_that_rots_in_use_is_found() {
    let (disk, _) = small_store(GuardKind::Grf);
    let path = files(&disk, ".filter").pop().expect("has an image");
    for guard in [GuardKind::Grf, GuardKind::Open] {
        let db = open(&disk, guard).expect("opens");
        assert_eq!(db.verify().expect("verifies").damage, [""; 0]);
        disk.flip_bit(&path, 100, 0);
        let damage = db.verify().expect("verifies").damage;
        assert!(damage.len() == 1 && damage[0].contains(".filter"), "{damage:?}");
        disk.flip_bit(&path, 100, 0);
    }
}

#[test] // Its last bytes, by which opening finds all others, were not looked at again.
fn every_byte_of_a_table_that_rots_in_use_is_found() {
    let guard = GuardKind::Table(kinds::BLOCKED_BLOOM);
    let (disk, _) = small_store(guard);
    let db = open(&disk, guard).expect("opens");
    for path in files(&disk, ".table") {
        let bytes = disk.file(&path).expect("is there").len() as u64;
        for byte in 0..bytes {
            disk.flip_bit(&path, byte, (byte % 8) as u32);
            let damage = db.verify().expect("verifies").damage;
            let name = path.to_string_lossy();
            let is_found = damage.iter().any(|damage| damage.contains(&*name));
            assert!(is_found, "byte {byte} of {bytes} of {name}: {damage:?}");
            disk.flip_bit(&path, byte, (byte % 8) as u32);
        }
    }
    assert_eq!(db.verify().expect("verifies").damage, [""; 0]);
}

#[test]
fn every_cut_of_a_table_is_noticed() {
    let (pristine, _) = small_store(GuardKind::Table(kinds::BLOCKED_BLOOM));
    let path = files(&pristine, ".table").remove(0);
    let len = pristine.file(&path).expect("is there").len() as u64;
    for cut in 0..len {
        let disk = copy(&pristine);
        disk.truncate(&path, cut);
        let error =
            open(&disk, GuardKind::Table(kinds::BLOCKED_BLOOM)).expect_err("a table is cut short");
        assert!(error.to_string().contains(".table"), "{error}");
    }
}

#[test]
fn every_flipped_byte_of_a_manifest_is_noticed_or_the_tail_is_torn() {
    let (pristine, contents) = small_store(GuardKind::Grf);
    let path = Path::new(DIR).join("MANIFEST");
    let len = pristine.file(&path).expect("is there").len() as u64;
    for byte in 0..len {
        let disk = copy(&pristine);
        disk.flip_bit(&path, byte, (byte % 8) as u32);
        match open(&disk, GuardKind::Grf) {
            Err(error) => {
                let text = error.to_string();
                assert!(text.contains("MANIFEST") || text.contains(".wal"), "{text}");
            }
            // The last edit looks torn: the tree before it, whose files may be gone by now.
            Ok(db) => check_all_or_less(&db, &contents),
        }
    }
}

/// An older state of the store: each key has one of the values it has had.
fn check_all_or_less(db: &Db, contents: &Contents) {
    for (key, value) in contents {
        if let Some(found) = db.get(key).expect("gets") {
            assert!(found[..] == value[..] || found[..] == *b"in the last level");
        }
    }
}

#[test]
fn every_flipped_byte_of_a_log_is_damage_or_a_torn_tail() {
    let (pristine, contents) = small_store(GuardKind::Grf);
    let path = files(&pristine, ".wal").pop().expect("has a log");
    let bytes = pristine.file(&path).expect("is there");
    let mut refused = 0;
    for byte in 0..bytes.len() as u64 {
        let disk = copy(&pristine);
        disk.flip_bit(&path, byte, (byte % 8) as u32);
        match open(&disk, GuardKind::Grf) {
            Err(error) => {
                let text = error.to_string();
                assert!(text.contains(".wal"), "{text}");
                refused += 1;
            }
            Ok(db) => {
                // Only the last record can look torn; all before it must be there.
                let missing = contents.iter().filter(|(key, value)| {
                    db.get(key).expect("gets").as_deref() != Some(&value[..])
                });
                assert!(missing.count() <= 1, "byte {byte}");
            }
        }
    }
    assert!(refused * 10 > bytes.len() * 7, "{refused} of {} refused", bytes.len());
}

#[test]
fn every_cut_of_a_log_loses_a_suffix_silently() {
    let (pristine, contents) = small_store(GuardKind::Grf);
    let path = files(&pristine, ".wal").pop().expect("has a log");
    let bytes = pristine.file(&path).expect("is there");
    // The manifest tells that the header and the first record (docs/format.md) were durable.
    let beginning = 28 + u64::from(bytes[16]);
    for cut in 0..bytes.len() as u64 {
        let disk = copy(&pristine);
        disk.truncate(&path, cut);
        let opened = open(&disk, GuardKind::Grf);
        if cut < beginning {
            assert!(opened.is_err_and(|error| error.tells_of_damage()), "cut at {cut}");
            continue;
        }
        let db = opened.expect("a torn tail is normal");
        let there = |number: u32| {
            let key = format!("key {number:03}").into_bytes();
            db.get(&key).expect("gets").as_deref() == contents.get(&key).map(|value| &value[..])
        };
        let found: Vec<bool> = (35..45).map(there).collect();
        assert!(found.windows(2).all(|pair| pair[0] >= pair[1]), "not a suffix: {found:?}");
        assert!((0..35).all(there));
    }
}

#[test]
fn a_missing_table_is_named() {
    let (disk, _) = small_store(GuardKind::Grf);
    let path = files(&disk, ".table").remove(0);
    disk.remove(&path).expect("removes");
    let error = open(&disk, GuardKind::Grf).expect_err("a table is missing");
    assert!(error.to_string().contains(&path.display().to_string()), "{error}");
}

#[test]
fn another_format_version_is_refused() {
    let (disk, _) = small_store(GuardKind::Grf);
    let path = Path::new(DIR).join("MANIFEST");
    let mut bytes = disk.file(&path).expect("is there");
    bytes[8] = 200;
    disk.put_file(&path, bytes);
    let error = open(&disk, GuardKind::Grf).expect_err("version 200");
    assert!(matches!(error, Error::Version { found: 200, known: 8, .. }), "{error}");
}

fn copy(disk: &Memory) -> Memory {
    let twin = Memory::new();
    twin.create_dir(Path::new(DIR)).expect("makes the folder");
    for name in disk.list(Path::new(DIR)).expect("lists") {
        let path = Path::new(DIR).join(name);
        twin.put_file(&path, disk.file(&path).expect("is there"));
    }
    twin
}

#[test]
fn a_log_that_is_cut_to_nothing_is_missed_by_the_one_that_follows_it() {
    let disk = Memory::new();
    let small = options(GuardKind::Grf).write_buffer_bytes(1024);
    let environment = Environment::new().storage(Arc::new(disk.clone()));
    let db = Db::open_with(Path::new(DIR), small, environment).expect("opens");
    // In stepped mode full memtables wait, each with its log.
    for number in 0..60 {
        db.put(format!("key {number}"), vec![b'.'; 50]).expect("puts");
    }
    drop(db);
    let logs = files(&disk, ".wal");
    assert!(logs.len() > 2, "{logs:?}");
    for path in &logs[..logs.len() - 1] {
        let len = disk.file(path).expect("is there").len() as u64;
        for cut in [0, 5, 12, 20, 30, len / 2, len - 1] {
            let disk = copy(&disk);
            disk.truncate(path, cut);
            let error = open(&disk, GuardKind::Grf).expect_err("a log is cut short");
            assert!(error.to_string().contains(".wal"), "{error}");
        }
    }
}

#[test]
fn a_store_that_does_not_open_keeps_its_files() {
    // Without an image of the filter, whose edit would be the last one.
    let (pristine, _) = small_store(GuardKind::Open);
    let path = Path::new(DIR).join("MANIFEST");
    let len = pristine.file(&path).expect("is there").len() as u64;
    // The last edit looks torn: its table is in no layout, but neither are its entries elsewhere.
    let disk = copy(&pristine);
    disk.flip_bit(&path, len - 1, 0);
    let before = disk.list(Path::new(DIR)).expect("lists");
    let error = open(&disk, GuardKind::Grf).expect_err("the log before the log is missing");
    assert!(error.to_string().contains(".wal"), "{error}");
    let after = disk.list(Path::new(DIR)).expect("lists");
    assert_eq!(before, after, "files are gone");
}

#[test]
fn a_manifest_that_lost_its_last_edit_is_noticed_after_a_power_cut_too() {
    for written in [false, true] {
        let disk = Memory::new();
        let db = open(&disk, GuardKind::Open).expect("opens");
        db.put("flushed", "1").expect("puts");
        db.flush().expect("flushes");
        // Of the log that was begun by the flush, all that is durable stays.
        let disk = disk.crash_hard();
        drop(db);
        let db = open(&disk, GuardKind::Open).expect("opens");
        if written {
            db.put("later", "2").expect("puts");
        }
        db.close().expect("closes");
        let path = Path::new(DIR).join("MANIFEST");
        let len = disk.file(&path).expect("is there").len() as u64;
        disk.flip_bit(&path, len - 1, 0);
        // The log that had come back was removed when the manifest was written anew: then the edit
        // was its only one.
        let error =
            open(&disk, GuardKind::Open).expect_err("the flushed log is missing").to_string();
        let is_noticed = error.contains(".wal") || error.contains("the first edit is missing");
        assert!(is_noticed, "written: {written}, {error}");
    }
}
