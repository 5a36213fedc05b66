//! Bulk loading: sorted entries are there as a whole, newer than all that was written before, or
//! not at all.

use std::path::Path;
use std::sync::Arc;

use allocation_counter::measure;
use trommel::Environment;
use trommel::limits::VALUE_BYTES_MAX;
use trommel::storage::{Memory, Storage};
use trommel::testing::Fault;
use trommel::{Background, Db, Error, GuardKind, Options, SyncPolicy};

fn options(guard: GuardKind) -> Options {
    Options::new()
        .guard(guard)
        .size_ratio(4)
        .block_bytes(256)
        .table_bytes(4096)
        .sync(SyncPolicy::Never)
        .background(Background::Stepped)
}

fn open_with(disk: &Memory, options: Options) -> trommel::Result<Db> {
    let environment = Environment::new().storage(Arc::new(disk.clone()));
    Db::open_with(Path::new("db"), options, environment)
}

fn open(disk: &Memory, guard: GuardKind) -> trommel::Result<Db> {
    open_with(disk, options(guard))
}

/// With so little memory for writes that the keys of a load are read from its tables.
fn little_memory(guard: GuardKind) -> Options {
    options(guard).write_buffer_bytes(1024).partition_bytes(16 << 10)
}

fn key(number: u32) -> String {
    format!("{number:05}")
}

fn entries(numbers: std::ops::Range<u32>, value: &str) -> impl Iterator<Item = (String, String)> {
    numbers.map(move |number| (key(number), value.to_string()))
}

fn value(db: &Db, number: u32) -> Option<String> {
    let found = db.get(key(number)).expect("gets");
    let by_scan = db.range(key(number)..=key(number)).next().map(|entry| entry.expect("reads").1);
    assert_eq!(found, by_scan, "{number}");
    found.map(|value| String::from_utf8(value.to_vec()).expect("text"))
}

fn tables(disk: &Memory) -> usize {
    let names = disk.list(Path::new("db")).expect("lists");
    names.iter().filter(|name| name.ends_with(".table")).count()
}

#[test]
fn what_is_ingested_is_newer_than_all_before_and_older_than_all_behind() {
    for guard in trommel_guards::all_guards() {
        let disk = Memory::new();
        let db = open(&disk, guard).expect("opens");
        assert_eq!(db.ingest(entries(0..1000, "first")).expect("ingests"), 1000);
        let stats = db.stats().expect("open");
        assert_eq!((stats.run_count(), stats.entries(), stats.writes), (1, 1000, 1000), "{guard}");
        entries(10..20, "written").for_each(|(key, value)| db.put(key, value).expect("puts"));
        let before = db.snapshot();
        db.ingest(entries(15..25, "second")).expect("ingests");
        db.put(key(16), "last").expect("puts");
        let expected = |number| match number {
            16 => "last",
            15..25 => "second",
            10..15 => "written",
            _ => "first",
        };
        for step in ["at once", "flushed", "settled", "merged", "opened again"] {
            let mut again = None;
            match step {
                "flushed" => db.flush().expect("flushes"),
                "settled" => db.settle().expect("settles"),
                "merged" => db.compact().expect("compacts"),
                "opened again" => again = Some(disk.crash_hard()),
                _ => {}
            }
            let again = again.map(|disk| open(&disk, guard).expect("opens"));
            let db = again.as_ref().unwrap_or(&db);
            for number in 0..30 {
                assert_eq!(value(db, number).as_deref(), Some(expected(number)), "{guard} {step}");
            }
            assert_eq!(db.range(..).count(), 1000, "{guard} {step}");
            assert_eq!(db.verify().expect("verifies").damage, [""; 0], "{guard} {step}");
        }
        assert_eq!(before.get(key(15)).expect("gets").as_deref(), Some(&b"written"[..]));
        assert_eq!(before.get(key(21)).expect("gets").as_deref(), Some(&b"first"[..]));
    }
}

#[test]
fn keys_out_of_order_are_named_and_leave_nothing_behind() {
    let disk = Memory::new();
    let db = open(&disk, GuardKind::Grf).expect("opens");
    db.put("a", "1").expect("puts");
    db.flush().expect("flushes");
    let many = || entries(0..5000, "a value of some length");
    let twice = many().chain([(key(4999), "again".into())]);
    let error = db.ingest(twice).expect_err("a key twice");
    assert!(matches!(&error, Error::Unsorted { before, key } if before == key), "{error}");
    let back = many().chain([(key(7), "back".into())]);
    let error = db.ingest(back).expect_err("descends");
    assert!(error.to_string().contains("00007 comes after 04999"), "{error}");
    let long = vec![b'z'; trommel::limits::KEY_BYTES_MAX + 1];
    let error = db.ingest([(b"k".to_vec(), ""), (long, "")]).expect_err("too long");
    assert!(matches!(error, Error::KeyTooLong { .. }), "{error}");
    let failing = [Ok(("k", "v")), Err(Error::Missing { path: "the source".into() })];
    let error = db.try_ingest(failing).expect_err("the source fails");
    assert!(error.to_string().contains("the source"), "{error}");
    assert_eq!((tables(&disk), db.range(..).count()), (1, 1));
    assert_eq!(db.ingest(Vec::<(&str, &str)>::new()).expect("nothing"), 0);
    assert_eq!(db.stats().expect("open").run_count(), 1);
    db.put("b", "2").and_then(|()| db.flush()).expect("the store goes on");
    db.ingest([("c", "3")]).expect("ingests");
    assert_eq!((tables(&disk), db.range(..).count()), (3, 3));
    drop(db);
    assert_eq!(open(&disk.crash_hard(), GuardKind::Grf).expect("opens").range(..).count(), 3);
}

/// What lies in memory is flushed first: rule 1.
#[test]
fn writes_in_memory_come_before() {
    let disk = Memory::new();
    let db = open(&disk, GuardKind::Grf).expect("opens");
    db.put(key(1), "in memory").expect("puts");
    db.delete_range(key(5), key(9)).expect("deletes");
    db.ingest(entries(0..10, "ingested")).expect("ingests");
    assert_eq!(value(&db, 1).as_deref(), Some("ingested"));
    assert_eq!(value(&db, 6).as_deref(), Some("ingested"));
    assert_eq!(db.stats().expect("open").run_count(), 2);
    db.delete_range(key(6), key(8)).expect("deletes");
    assert_eq!((value(&db, 6), value(&db, 8).as_deref()), (None, Some("ingested")));
    drop(db);
    let db = open(&disk.kill(), GuardKind::Grf).expect("opens");
    assert_eq!(db.range(..).count(), 8);
}

/// Every operation of the disk fails once, or from then on, and the power goes: all of it is there,
/// or nothing.
#[test]
fn whatever_fails_all_is_there_or_nothing() {
    for lasts in [false, true] {
        for after in 0..60 {
            let disk = Memory::new();
            let db = open(&disk, GuardKind::Grf).expect("opens");
            entries(0..50, "old").for_each(|(key, value)| db.put(key, value).expect("puts"));
            db.sync().expect("syncs");
            match lasts {
                true => disk.fail_from(after, Fault::NoSpace),
                false => disk.fail_at(after, Fault::Io),
            }
            let ingested = db.ingest(entries(40..300, "new"));
            disk.mend();
            let case = format!("{after} {lasts}: {ingested:?}");
            let seen = value(&db, 45);
            assert_eq!(
                seen.as_deref(),
                Some(if ingested.is_ok() { "new" } else { "old" }),
                "{case}"
            );
            // Later writes are newer, whatever became of it.
            db.put(key(44), "later").expect("puts");
            db.sync().expect("syncs");
            for crashed in [disk.crash_hard(), disk.kill()] {
                let again = open(&crashed, GuardKind::Grf).expect("opens");
                let found = value(&again, 45).expect("is there");
                assert!(ingested.is_err() || found == "new", "{case}: {found}");
                let rest = value(&again, 299);
                assert_eq!(rest.is_some(), found == "new", "{case}: half of it");
                assert_eq!(value(&again, 44).as_deref(), Some("later"), "{case}");
                assert_eq!(again.verify().expect("verifies").damage, [""; 0], "{case}");
            }
            db.compact().expect("goes on");
            let count = if ingested.is_ok() { 300 } else { 50 };
            assert_eq!(db.range(..).count(), count, "{case}");
        }
    }
}

/// Others write meanwhile, with threads that flush and merge.
#[test]
fn writers_wait_and_lose_nothing() {
    let disk = Memory::new();
    let environment = Environment::new().storage(Arc::new(disk.clone()));
    let options =
        Options::new().write_buffer_bytes(1 << 14).size_ratio(3).background(Background::Threads(1));
    let db = Db::open_with(Path::new("db"), options, environment).expect("opens");
    std::thread::scope(|scope| {
        for writer in 0..2 {
            let db = &db;
            scope.spawn(move || {
                for number in 0..2000 {
                    db.put(format!("writer {writer} {number:05}"), [7; 30]).expect("puts");
                }
            });
        }
        for round in 0..10 {
            let list = (0..200).map(|number| (format!("round {round} {number:05}"), [round; 20]));
            assert_eq!(db.ingest(list).expect("ingests"), 200);
        }
    });
    db.settle().expect("settles");
    assert_eq!(db.range(..).count(), 4000 + 2000);
    assert_eq!(db.verify().expect("verifies").damage, [""; 0]);
}

/// Found by `trommel stress --seed 2`: the edit looked like a torn end, and no log told of what it
/// had named.
#[test]
fn a_manifest_that_lost_the_edit_of_an_ingest_is_noticed() {
    for rounds in 1..3 {
        let disk = Memory::new();
        let db = open(&disk, GuardKind::Open).expect("opens");
        db.put(key(500), "before").and_then(|()| db.flush()).expect("flushes");
        (0..rounds).for_each(|round| {
            db.ingest(entries(round..round + 1, "ingested")).expect("ingests");
        });
        drop(db);
        let manifest = Path::new("db/MANIFEST");
        for at in 0..disk.file(manifest).expect("is there").len() as u64 {
            let copy = disk.kill();
            copy.flip_bit(manifest, at, 5);
            if let Ok(db) = open(&copy, GuardKind::Open) {
                assert_eq!(db.range(..).count() as u32, 1 + rounds, "byte {at}");
            }
        }
    }
}

/// Its memory is not touched.
#[test]
fn a_value_beyond_the_longest_is_refused_and_nothing_is_left() {
    let disk = Memory::new();
    let db = open(&disk, GuardKind::Grf).expect("opens");
    db.put(key(5), "before").expect("puts");
    let beyond = vec![0; VALUE_BYTES_MAX + 1];
    let entries = [(key(3), &b"short"[..]), (key(4), &beyond)];
    match db.ingest(entries) {
        Err(Error::ValueTooLong { len, max }) => {
            assert_eq!((len, max), (VALUE_BYTES_MAX + 1, VALUE_BYTES_MAX));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!((value(&db, 3), value(&db, 4)), (None, None));
    // What was in memory is flushed first.
    assert_eq!((tables(&disk), value(&db, 5).as_deref()), (1, Some("before")));
    assert_eq!(db.ingest(self::entries(3..5, "next")).expect("the store goes on"), 2);
}

#[test]
fn a_load_whose_keys_are_read_again_is_like_any() {
    for guard in trommel_guards::all_guards() {
        let disk = Memory::new();
        let db = open_with(&disk, little_memory(guard)).expect("opens");
        let every = |nth: usize| (0..6000).step_by(nth);
        let load = |db: &Db, nth: usize, value: &str| {
            let rows = every(nth).map(|number| (key(number), value));
            assert_eq!(db.ingest(rows).expect("loads"), every(nth).count() as u64, "{guard}");
        };
        let check = |db: &Db, thirds: &str| {
            for number in 0..6000 {
                let expected = match number {
                    it if it % 3 == 0 => Some(thirds),
                    it if it % 2 == 0 => Some("first"),
                    _ => None,
                };
                let found = db.get(key(number)).expect("gets");
                assert_eq!(found.as_deref(), expected.map(str::as_bytes), "{guard} {number}");
            }
            assert_eq!(db.range(..).count(), 4000, "{guard}");
            assert_eq!(db.verify().expect("verifies").damage, [""; 0], "{guard}");
        };
        load(&db, 2, "first");
        load(&db, 3, "second");
        check(&db, "second");
        db.compact().expect("merges");
        load(&db, 3, "third");
        check(&db, "third");
        drop(db);
        check(&open_with(&disk, little_memory(guard)).expect("opens"), "third");
    }
}

/// Reads fail, too.
#[test]
fn a_load_whose_keys_cannot_be_read_again_leaves_nothing() {
    for first in [true, false] {
        for after in 0.. {
            let disk = Memory::new();
            let db = open_with(&disk, little_memory(GuardKind::Grf)).expect("opens");
            if !first {
                db.ingest(entries(500..900, "before")).expect("loads");
            }
            disk.fail_at(after, Fault::Io);
            let loaded = db.ingest(entries(0..1000, "new"));
            let was_late = disk.may_fail();
            disk.mend();
            let before = if first { 0 } else { 400 };
            let count = if loaded.is_ok() { 1000 } else { before };
            assert_eq!(db.range(..).count(), count, "{after}: {loaded:?}");
            db.put("later", "1").and_then(|()| db.sync()).expect("goes on");
            db.compact().expect("merges");
            assert_eq!(db.range(..).count(), count + 1, "{after}: {loaded:?}");
            assert_eq!(db.verify().expect("verifies").damage, [""; 0], "{after}");
            db.close().expect("closes");
            let files = tables(&disk);
            // An opening removes what no edit names.
            drop(open_with(&disk, little_memory(GuardKind::Grf)).expect("opens"));
            assert_eq!(tables(&disk), files, "{after}: {loaded:?}");
            if was_late {
                assert!(loaded.is_ok() && after > 10, "{after}: {loaded:?}");
                break;
            }
        }
    }
}

/// A load takes the memory of a table, of some keys, and of the filter.
#[test]
fn a_load_has_few_of_its_keys_in_memory() {
    const ROWS: u32 = 200_000;
    const KEY_BYTES: usize = 200;
    const MEMORY_MAX: u64 = 24 << 20;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let options = options(GuardKind::Grf)
        .block_bytes(4096)
        .table_bytes(1 << 20)
        .write_buffer_bytes(64 << 10)
        .block_cache_bytes(0);
    let db = Db::open(folder.path().join("db"), options).expect("opens");
    // Into an empty store, and beside what is there.
    for round in 0..2 {
        let row = |number: u32| {
            let mut key = [b'.'; KEY_BYTES];
            key[..4].copy_from_slice(&(2 * number + round).to_be_bytes());
            (key, "value")
        };
        let load = || assert_eq!(db.ingest((0..ROWS).map(row)).expect("loads"), u64::from(ROWS));
        let taken = measure(load).bytes_max;
        let all = u64::from(ROWS) * KEY_BYTES as u64;
        assert!(taken < MEMORY_MAX, "{taken} bytes, where keys have {all}");
    }
    assert_eq!(db.verify().expect("verifies").damage, [""; 0]);
}
