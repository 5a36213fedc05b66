//! Repairs: whatever is damaged, the store opens and verifies again, holds all that could be read,
//! and what could not is told; nothing is deleted.

mod doubts;
mod kept;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use trommel::Environment;
use trommel::merge_operators::Add;
use trommel::storage::{Memory, Storage};
use trommel::testing::Fault;
use trommel::tools::{RepairReport, repair_with};
use trommel::{Background, Db, Error, GuardKind, Options, SyncPolicy};
use trommel_guards::kinds;

const DIR: &str = "db";

fn environment(disk: &Memory) -> Environment {
    Environment::new().storage(Arc::new(disk.clone()))
}

fn open(disk: &Memory, guard: GuardKind) -> trommel::Result<Db> {
    let options = Options::new()
        .guard(guard)
        .size_ratio(4)
        .block_bytes(256)
        .sync(SyncPolicy::Always)
        .background(Background::Stepped)
        .value_threshold(256)
        .create_if_missing(false);
    let is_new = disk.list(Path::new(DIR)).is_err();
    let options = options.create_if_missing(is_new);
    Db::open_with(Path::new(DIR), options, environment(disk))
}

fn repair(disk: &Memory) -> trommel::Result<RepairReport> {
    repair_with(DIR, &environment(disk))
}

type Contents = BTreeMap<String, String>;

fn contents(db: &Db) -> Contents {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
    let entries = db.range(..).map(|entry| entry.expect("reads"));
    entries.map(|(key, value)| (text(&key), text(&value))).collect()
}

/// A store with an oldest run of several blocks, two newer runs with deletions, the image of a
/// filter, and a log.
fn small_store() -> (Memory, Contents) {
    let disk = Memory::new();
    let db = open(&disk, GuardKind::Grf).expect("opens");
    let put = |number: u32, value: &str| {
        db.put(format!("key {number:02}"), format!("{value} {number}")).expect("puts");
    };
    (0..40).for_each(|number| put(number, "oldest"));
    db.compact().expect("compacts");
    (10..15).for_each(|number| put(number, "newer"));
    db.flush().expect("flushes");
    (5..8).for_each(|number| db.delete(format!("key {number:02}")).expect("deletes"));
    put(20, "newest");
    db.flush().expect("flushes");
    (35..45).for_each(|number| put(number, "in the log"));
    let contents = contents(&db);
    drop(db);
    (disk, contents)
}

fn files(disk: &Memory, ending: &str) -> Vec<PathBuf> {
    let names = disk.list(Path::new(DIR)).expect("lists").into_iter();
    let names = names.filter(|name| name.ends_with(ending) && name != "LOCK" && name != "lost");
    names.map(|name| Path::new(DIR).join(name)).collect()
}

fn manifest() -> PathBuf {
    Path::new(DIR).join("MANIFEST")
}

/// The same files on another disk.
fn copy(disk: &Memory) -> Memory {
    let copy = Memory::new();
    for path in files(disk, "") {
        copy.put_file(&path, disk.file(&path).expect("is there"));
    }
    copy
}

/// Panics if the store does not open and verify under every guard. Gives its contents.
#[track_caller]
fn sound_contents(disk: &Memory, case: &str) -> Contents {
    let mut all = Vec::new();
    for guard in [GuardKind::Open, GuardKind::Table(kinds::BLOCKED_BLOOM), GuardKind::Grf] {
        let db = open(disk, guard).unwrap_or_else(|error| panic!("{case}: {error}"));
        let report = db.verify().expect("verifies");
        assert!(report.damage.is_empty(), "{case}: {guard}: {:?}", report.damage);
        all.push(contents(&db));
        for (key, value) in &all[0] {
            let found = db.get(key).expect("gets");
            assert_eq!(found.as_deref(), Some(value.as_bytes()), "{case}: {guard}: {key}");
        }
    }
    assert!(all.iter().all(|contents| contents == &all[0]), "{case}: guards differ");
    let db = open(disk, GuardKind::Grf).expect("opens");
    db.put("new", "1").and_then(|()| db.compact()).expect("the store goes on");
    let mut contents = contents(&db);
    contents.remove("new");
    assert_eq!(contents, all[0], "{case}: after a merge");
    all.swap_remove(0)
}

/// Panics if bytes of the store as it was are nowhere.
#[track_caller]
fn nothing_was_deleted(before: &Memory, after: &Memory, case: &str) {
    let dir = Path::new(DIR);
    let in_dir = |dir: &Path| {
        let names = after.list(dir).unwrap_or_default().into_iter();
        names.filter_map(|name| after.file(dir.join(name))).collect::<Vec<_>>()
    };
    let kept = [in_dir(dir), in_dir(&dir.join("lost"))].concat();
    for path in files(before, "") {
        let bytes = before.file(&path).expect("was there");
        assert!(kept.contains(&bytes), "{case}: {} was deleted", path.display());
    }
}

/// Whether each key has a value that it had at some time, or none.
fn all_from_history(found: &Contents) -> bool {
    found.iter().all(|(key, value)| {
        let number: u32 = key[4..].parse().expect("a number");
        ["oldest", "newer", "newest", "in the log"]
            .iter()
            .any(|word| *value == format!("{word} {number}"))
    })
}

#[test]
fn a_sound_store_is_not_touched() {
    for guard in trommel_guards::all_guards() {
        let (disk, expected) = small_store();
        let db = open(&disk, guard).expect("opens");
        db.put("one", "more").expect("puts");
        drop(db);
        let before = copy(&disk);
        let report = repair(&disk).expect("repairs");
        assert!(!report.changed && report.lost.is_empty() && report.notes.is_empty(), "{report:?}");
        assert_eq!(report.doubts, []);
        assert_eq!((report.tables, report.entries), (3, 49));
        for path in files(&before, "") {
            assert_eq!(disk.file(&path), before.file(&path), "{}", path.display());
        }
        assert_eq!(files(&disk, "").len(), files(&before, "").len());
        let with_one = Contents::from_iter([("one".to_string(), "more".to_string())]);
        let mut found = contents(&open(&disk, guard).expect("opens"));
        found.retain(|key, _| !with_one.contains_key(key));
        assert_eq!(found, expected);
    }
}

#[test]
fn every_flipped_byte_is_repaired_or_told() {
    let (pristine, expected) = small_store();
    let mut refused = 0;
    for path in files(&pristine, "") {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let len = pristine.file(&path).expect("is there").len();
        let mut lossy = 0;
        for byte in 0..len {
            let case = format!("byte {byte} of {name}");
            let disk = copy(&pristine);
            disk.flip_bit(&path, byte as u64, byte as u32 % 8);
            let before = copy(&disk);
            let report = match repair(&disk) {
                Ok(report) => report,
                Err(Error::Version { .. }) if name == "MANIFEST" && (8..12).contains(&byte) => {
                    refused += 1;
                    continue;
                }
                Err(error) => panic!("{case}: {error}"),
            };
            nothing_was_deleted(&before, &disk, &case);
            let found = sound_contents(&disk, &case);
            assert!(all_from_history(&found), "{case}: {found:?}");
            lossy += u32::from(!report.lost.is_empty());
            if found != expected {
                let torn_log = name.ends_with(".wal") && report.lost.is_empty();
                let missing = expected.keys().filter(|key| !found.contains_key(*key)).count();
                assert!(
                    !report.lost.is_empty() || (torn_log && missing <= 1),
                    "{case}: {report:?}"
                );
            }
            assert!(report.lost.iter().all(|loss| loss.file == name), "{case}: {report:?}");
            assert_eq!(!report.doubts.is_empty(), report.manifest_rebuilt, "{case}: {report:?}");
            assert_eq!(repair(&disk).map(|again| again.changed).ok(), Some(false), "{case}: again");
        }
        assert_eq!(
            lossy > 0,
            name.ends_with(".table") || name.ends_with(".wal"),
            "{name}: {lossy}"
        );
    }
    assert!(refused < 4, "only the lowest byte of a version is believed");
}

#[test]
fn every_file_that_is_missing_is_told() {
    let (pristine, expected) = small_store();
    for path in files(&pristine, "") {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let disk = copy(&pristine);
        disk.remove(&path).expect("removes");
        let report = repair(&disk).expect("repairs");
        let found = sound_contents(&disk, &name);
        assert!(all_from_history(&found));
        let is_table = name.ends_with(".table");
        let is_loss = is_table || name.ends_with(".wal");
        assert_eq!(!report.lost.is_empty(), is_loss, "{name}: {report:?}");
        assert_eq!(report.manifest_rebuilt, name == "MANIFEST", "{name}: {report:?}");
        assert_eq!(!report.doubts.is_empty(), report.manifest_rebuilt, "{name}: {report:?}");
        assert!(found == expected || is_loss, "{name}");
        let counted: u64 = report.lost.iter().filter_map(|loss| loss.entries).sum();
        assert!(!is_table || [40, 5, 4].contains(&counted), "{name}: {report:?}");
    }
}

#[test]
fn a_manifest_of_any_length_loses_nothing() {
    let (pristine, expected) = small_store();
    let bytes = pristine.file(manifest()).expect("is there");
    for len in 0..bytes.len() {
        let disk = copy(&pristine);
        disk.truncate(manifest(), len as u64);
        let report = repair(&disk).expect("repairs");
        assert_eq!(report.lost, [], "{len} bytes");
        // One that ends as after a crash, and fits the files, is as sound as for an opening.
        assert_eq!(!report.doubts.is_empty(), report.manifest_rebuilt, "{len} bytes: {report:?}");
        assert_eq!(sound_contents(&disk, &format!("{len} bytes")), expected);
    }
}

#[test]
fn a_sound_table_in_the_place_of_another_is_set_aside() {
    let (pristine, _) = small_store();
    let tables = files(&pristine, ".table");
    assert!(tables.len() > 2, "{tables:?}");
    for (place, other) in tables.iter().flat_map(|a| tables.iter().map(move |b| (a, b))) {
        let case = format!("{} in the place of {}", other.display(), place.display());
        let disk = copy(&pristine);
        disk.put_file(place, pristine.file(other).expect("is there"));
        let report = repair(&disk).expect("repairs");
        let is_reported = report.lost.iter().any(|loss| loss.what.contains("under another name"));
        assert_eq!(is_reported, place != other, "{case}: {report:?}");
        assert!(all_from_history(&sound_contents(&disk, &case)), "{case}");
    }
}

#[test]
fn a_damaged_block_costs_its_entries_alone() {
    let (disk, expected) = small_store();
    let size = |path: &PathBuf| disk.file(path).expect("is there").len();
    let oldest = files(&disk, ".table").into_iter().max_by_key(size).expect("a table");
    disk.flip_bit(&oldest, 20, 3);
    let report = repair(&disk).expect("repairs");
    assert!(report.changed && !report.manifest_rebuilt, "{report:?}");
    let [loss] = &report.lost[..] else { panic!("{report:?}") };
    let entries = loss.entries.expect("the index knows");
    assert!(loss.offset == 0 && (2..20).contains(&entries), "{report:?}");
    let found = sound_contents(&disk, "a block");
    let missing = expected.keys().filter(|key| !found.contains_key(*key)).count() as u64;
    // Three of them are deleted, and five have newer values.
    assert!(missing < entries && missing + 8 >= entries, "{missing} of {entries}");
    assert!(found.iter().all(|(key, value)| expected.get(key) == Some(value)));
}

#[test]
fn groups_behind_a_damaged_one_are_saved() {
    let (disk, expected) = small_store();
    let size = |path: &PathBuf| disk.file(path).expect("is there").len();
    let log = files(&disk, ".wal").into_iter().max_by_key(size).expect("a log");
    let bytes = disk.file(&log).expect("is there");
    let at = bytes.windows(6).position(|window| window == b"key 41").expect("is there");
    disk.flip_bit(&log, at as u64, 0);
    assert!(open(&disk, GuardKind::Open).is_err(), "an open is stricter");
    let report = repair(&disk).expect("repairs");
    assert_eq!(report.saved_from_logs, 9);
    assert!(matches!(&report.lost[..], [loss] if loss.entries == Some(1)), "{report:?}");
    let mut expected = expected;
    expected.remove("key 41");
    assert_eq!(sound_contents(&disk, "a group"), expected);
}

/// A store where a scan keeps tables that a merge has made others of, as a crash would leave it.
fn store_with_left_overs() -> (Memory, Contents) {
    let disk = Memory::new();
    let db = open(&disk, GuardKind::Grf).expect("opens");
    (0..9).for_each(|n| db.put(format!("key {n:02}"), format!("oldest {n}")).expect("puts"));
    db.flush().expect("flushes");
    let mut scan = db.range(..);
    scan.next().expect("an entry").expect("reads");
    db.delete("key 03").expect("deletes");
    db.compact().expect("compacts");
    drop(db.snapshot());
    let crashed = disk.crash_hard();
    let expected = contents(&db);
    assert_eq!(expected.len(), 8);
    (crashed, expected)
}

#[test]
fn tables_that_a_merge_has_left_over_bring_nothing_back() {
    let (pristine, expected) = store_with_left_overs();
    assert!(files(&pristine, ".table").len() >= 2, "nothing is left over");
    // The first edit tells of an empty tree; the manifest is not trusted without it.
    let disk = copy(&pristine);
    disk.flip_bit(manifest(), 30, 0);
    let report = repair(&disk).expect("repairs");
    assert!(report.manifest_rebuilt && report.lost.is_empty(), "{report:?}");
    assert_eq!(sound_contents(&disk, "left over"), expected);
    // Without any manifest it cannot be known: nothing is lost, and the doubt is told.
    let disk = copy(&pristine);
    disk.remove(&manifest()).expect("removes");
    let report = repair(&disk).expect("repairs");
    let left_over = |doubt: &trommel::tools::Doubt| doubt.what.contains("left over from a merge");
    let has_doubt = report.doubts.iter().any(left_over);
    assert!(has_doubt && report.lost.is_empty(), "{report:?}");
    let found = sound_contents(&disk, "no manifest");
    assert!(expected.iter().all(|(key, value)| found.get(key) == Some(value)));
}

/// A table that a merge made is damaged, and its input is still there. What can be read of it may
/// have an old version of a key whose newer one was in the damaged block: then neither table is the
/// newer one as a whole.
/// Opens a store of counters.
fn counters(disk: &Memory) -> Db {
    let options = Options::new()
        .merge_operator(Add::LITTLE_ENDIAN)
        .size_ratio(4)
        .block_bytes(256)
        .sync(SyncPolicy::Always)
        .background(Background::Stepped);
    Db::open_with(DIR, options, environment(disk)).expect("opens")
}

fn counts(db: &Db) -> Vec<(Vec<u8>, u64)> {
    let count = |value: &[u8]| u64::from_le_bytes(value.try_into().expect("8 bytes"));
    let entries = db.range(..).map(|entry| entry.expect("reads"));
    entries.map(|(key, value)| (key, count(&value))).collect()
}

#[test] // An operand counted twice: in the one that a merge had made, and in the table it was from.
fn operands_that_a_merge_has_combined_count_once_beside_what_it_left_over() {
    let disk = Memory::new();
    let db = counters(&disk);
    // So many that merges of flushes stay above them.
    for key in 20..2000u32 {
        db.put(key.to_be_bytes(), 1u64.to_le_bytes()).expect("puts");
        if key % 20 == 0 {
            db.flush().expect("flushes");
        }
    }
    db.compact().expect("compacts");
    let mut before = BTreeMap::new();
    for turn in 1..20u32 {
        // Some keys are in each flush, some in one alone.
        for key in (0..60u32).filter(|key| key % 5 == 0 || key % 7 == turn) {
            db.merge(key.to_be_bytes(), (1u64 << (3 * turn)).to_le_bytes()).expect("merges");
        }
        db.flush().expect("flushes");
        let tables = files(&disk, ".table").into_iter();
        before.extend(tables.map(|path| (path.clone(), disk.file(path).expect("is there"))));
        while db.step().expect("steps") {}
        let now = files(&disk, ".table");
        before.retain(|path, _| !now.contains(path));
        if !before.is_empty() {
            break;
        }
    }
    assert!(before.len() > 1, "a merge has several inputs");
    assert!(db.stats().expect("open").run_count() > 1, "and not into the oldest run");
    let expected = counts(&db);
    drop(db);
    for subset in 0..1u32 << before.len() {
        let disk = copy(&disk);
        let chosen = before.iter().enumerate().filter(|(place, _)| subset >> place & 1 == 1);
        chosen.for_each(|(_, (path, bytes))| disk.put_file(path, bytes.clone()));
        disk.remove(&manifest()).expect("removes");
        let report = repair(&disk).expect("repairs");
        assert!(report.manifest_rebuilt && report.lost.is_empty(), "{subset:b}: {report:?}");
        let db = counters(&disk);
        assert_eq!(counts(&db), expected, "{subset:b}");
        assert_eq!(db.verify().expect("verifies").damage, [""; 0], "{subset:b}");
        db.compact().expect("compacts");
        assert_eq!(counts(&db), expected, "{subset:b}, merged");
    }
}

#[test]
fn a_damaged_table_hides_nothing_that_a_merge_has_left_over() {
    let disk = Memory::new();
    let db = open(&disk, GuardKind::Open).expect("opens");
    let write = |value: &str| {
        let value = value.repeat(20);
        (0..9).for_each(|n| db.put(format!("key {n}"), format!("{value} {n}")).expect("puts"));
        db.flush().expect("flushes");
    };
    // So that blocks end between the versions of a key.
    db.put("a key", "alone".repeat(12)).expect("puts");
    write("old");
    let snapshot = db.snapshot();
    write("new");
    let mut scan = db.range(..);
    scan.next().expect("an entry").expect("reads");
    db.compact().expect("compacts");
    let (crashed, expected) = (disk.crash_hard(), contents(&db));
    drop((scan, snapshot));
    crashed.remove(&manifest()).expect("removes");
    let tables = files(&crashed, ".table");
    assert!(tables.len() >= 3, "two inputs are left over");
    let merged = tables.last().expect("the merged one");
    let bytes = crashed.file(merged).expect("is there").len() as u64;
    for byte in (0..bytes).step_by(20) {
        let disk = copy(&crashed);
        disk.flip_bit(merged, byte, 0);
        let damaged = copy(&disk);
        repair(&disk).expect("repairs");
        let case = format!("byte {byte} of {bytes}");
        nothing_was_deleted(&damaged, &disk, &case);
        assert_eq!(sound_contents(&disk, &case), expected, "{case}");
    }
}

/// A store with three values in two files: one file belongs to a table and the log, the other one
/// to the log alone.
fn store_of_values() -> (Memory, Contents) {
    let disk = Memory::new();
    let value = |name: &str| format!("{name} ").repeat(100);
    let db = open(&disk, GuardKind::Grf).expect("opens");
    db.put("key 01", "short").expect("puts");
    db.put("value 1", value("flushed")).and_then(|()| db.flush()).expect("flushes");
    db.put("value 2", value("in the log")).expect("puts");
    drop(db);
    let db = open(&disk, GuardKind::Grf).expect("opens");
    db.put("value 3", value("in another file")).expect("puts");
    let contents = contents(&db);
    drop(db);
    assert_eq!(files(&disk, ".value").len(), 2);
    (disk, contents)
}

fn remove_for_good(disk: &Memory, files: &[PathBuf]) {
    files.iter().for_each(|file| disk.remove(file).expect("removes"));
    disk.sync_dir("db".as_ref()).expect("syncs");
}

type Damage<'d> = (&'d str, &'d dyn Fn(&Memory));

#[test]
fn a_repair_that_fails_or_is_cut_short_can_be_done_again() {
    let (pristine, expected) = small_store();
    let (log, table) = (files(&pristine, ".wal").remove(0), files(&pristine, ".table").remove(0));
    let damages: [Damage<'_>; 3] = [
        ("manifest", &|disk| disk.flip_bit(manifest(), 30, 0)),
        ("log", &|disk| disk.flip_bit(&log, 13, 0)),
        ("filter of a table", &|disk| {
            let end = disk.file(&table).expect("is there").len() as u64;
            disk.flip_bit(&table, end - 100, 0);
        }),
    ];
    damages.iter().for_each(|damage| can_be_repaired_again((&pristine, &expected), damage));
}

#[test]
fn a_repair_of_lost_values_that_fails_or_is_cut_short_can_be_done_again() {
    let (pristine, expected) = store_of_values();
    let values = files(&pristine, ".value");
    let damages: [Damage<'_>; 4] = [
        ("a value of a table is damaged", &|disk| disk.flip_bit(&values[0], 50, 0)),
        ("a value of the log is damaged", &|disk| disk.flip_bit(&values[1], 50, 0)),
        ("values of a table and the log are missing", &|disk| {
            remove_for_good(disk, &[values[0].clone()])
        }),
        ("the manifest and a value are missing", &|disk| {
            remove_for_good(disk, &[manifest(), values[1].clone()]);
        }),
    ];
    for damage in &damages {
        let disk = copy(&pristine);
        damage.1(&disk);
        let report = repair(&disk).expect("repairs");
        let found = sound_contents(&disk, damage.0);
        let lost: Vec<_> = expected.keys().filter(|key| !found.contains_key(*key)).collect();
        assert!(!lost.is_empty() && lost.len() == report.lost.len(), "{}: {report:?}", damage.0);
        assert!(found.iter().all(|(key, value)| expected.get(key) == Some(value)), "{}", damage.0);
        can_be_repaired_again((&pristine, &expected), damage);
    }
}

/// Each operation of a repair fails once, and then the power goes: the next repair does the same as
/// one of which nothing fails.
fn can_be_repaired_again((pristine, expected): (&Memory, &Contents), (name, damage): &Damage<'_>) {
    let whole = copy(pristine);
    damage(&whole);
    let lost = repair(&whole).expect("repairs").lost;
    let wanted = sound_contents(&whole, name);
    assert!(!lost.is_empty() || wanted == *expected, "{name}");
    for n in 0.. {
        let disk = copy(pristine);
        damage(&disk);
        let before = copy(&disk);
        let operations = disk.operations();
        disk.fail_at(n, if n % 2 == 0 { Fault::Io } else { Fault::NoSpace });
        let result = repair(&disk);
        if disk.operations() - operations <= n {
            result.expect("nothing has failed");
            break;
        }
        for (place, after) in [disk.crash_hard(), disk.crash(n), disk].iter().enumerate() {
            let case = format!("{name}, operation {n}, crash {place}");
            repair(after).unwrap_or_else(|error| panic!("{case}: {error}"));
            nothing_was_deleted(&before, after, &case);
            assert_eq!(sound_contents(after, &case), wanted, "{case}");
        }
    }
}

#[test]
fn what_cannot_be_repaired_is_refused() {
    let (disk, _) = small_store();
    let db = open(&disk, GuardKind::Open).expect("opens");
    assert!(matches!(repair(&disk), Err(Error::Locked { .. })));
    drop(db);
    let empty = Memory::new();
    assert!(matches!(repair(&empty), Err(Error::Missing { .. })));
    empty.put_file("db/letter", b"dear".as_slice());
    assert!(matches!(repair(&empty), Err(Error::NotAStore { .. })));
    assert_eq!(empty.list(Path::new(DIR)).expect("lists"), ["letter"]);
    let log = files(&disk, ".wal").pop().expect("there is a log");
    let sound = disk.file(&log).expect("is there");
    let mut bytes = sound.clone();
    bytes[8] = 1;
    disk.put_file(&log, bytes);
    let names = disk.list(Path::new(DIR)).expect("lists");
    assert!(matches!(repair(&disk), Err(Error::Version { found: 1, known: 7, .. })));
    assert_eq!(disk.list(Path::new(DIR)).expect("lists"), names, "nothing has changed");
    disk.put_file(&log, sound);
    let mut bytes = disk.file(manifest()).expect("is there");
    bytes[8] = 1;
    disk.put_file(manifest(), bytes);
    assert!(matches!(repair(&disk), Err(Error::Version { found: 1, .. })));
}

#[test]
fn a_manifest_that_has_lost_its_last_edit_is_noticed_by_open_and_repaired() {
    // The edit of a flush is damaged, so that the manifest ends before it; the flushed log is gone,
    // and nothing was written to the log that follows.
    let disk = Memory::new();
    let db = open(&disk, GuardKind::Open).expect("opens");
    db.put("one", "1").and_then(|()| db.flush()).expect("flushes");
    db.put("two", "2").and_then(|()| db.flush()).expect("flushes");
    // That the flushed log was removed is on disk as well.
    disk.sync_dir(Path::new(DIR)).expect("syncs");
    let crashed = [disk.crash_hard(), disk.crash(1), disk.crash(2)];
    drop(db);
    for disk in crashed {
        let last = disk.file(manifest()).expect("is there").len() as u64 - 1;
        disk.flip_bit(manifest(), last, 0);
        let tables = files(&disk, ".table");
        let refused = open(&disk, GuardKind::Open).expect_err("what was acknowledged is missing");
        assert!(refused.tells_of_damage(), "{refused}");
        assert_eq!(files(&disk, ".table"), tables, "nothing was removed");
        let report = repair(&disk).expect("repairs");
        assert!(report.manifest_rebuilt && report.lost.is_empty(), "{report:?}");
        assert_eq!(sound_contents(&disk, "lost edit").len(), 2);
    }
}
