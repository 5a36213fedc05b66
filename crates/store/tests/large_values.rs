//! Large values: written once, into files of their own, and read back wherever they are.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use trommel::merge_operators::Concat;
use trommel::storage::Memory;
use trommel::{Background, Batch, Db, Environment, KeyspaceOptions, Options, SyncPolicy};

const DIR: &str = "db";

fn options() -> Options {
    Options::new()
        .value_threshold(1 << 10)
        .value_file_bytes(64 << 10)
        .write_buffer_bytes(64 << 10)
        .background(Background::Stepped)
        .sync(SyncPolicy::Always)
}

fn open_with(disk: &Memory, options: Options) -> Db {
    let environment = Environment::default().storage(Arc::new(disk.clone()));
    Db::open_with(DIR, options, environment).expect("opens")
}

fn open(disk: &Memory) -> Db {
    open_with(disk, options())
}

/// A value of so many bytes that no other number has.
fn value(number: u64, len: usize) -> Vec<u8> {
    (0..len as u64).map(|at| (at.wrapping_mul(number * 2 + 1) >> 3) as u8).collect()
}

/// The names of the store's value files.
fn value_files(disk: &Memory) -> Vec<String> {
    let names = trommel::storage::Storage::list(disk, Path::new(DIR)).expect("lists");
    names.into_iter().filter(|name| name.ends_with(".value")).collect()
}

fn bytes_of(disk: &Memory, kind: &str) -> usize {
    let names = trommel::storage::Storage::list(disk, Path::new(DIR)).expect("lists");
    let files = names.iter().filter(|name| name.ends_with(kind));
    files.map(|name| disk.file(Path::new(DIR).join(name)).expect("is there").len()).sum()
}

const LENGTHS: [usize; 6] = [1 << 10, 5000, 64 << 10, (64 << 10) + 1, 300_000, 3 << 20];

#[test]
fn values_of_any_length_are_read_from_memory_tables_and_logs() {
    let disk = Memory::new();
    let db = open(&disk);
    let check = |db: &Db, what: &str| {
        for (number, len) in LENGTHS.into_iter().enumerate() {
            let found = db.get([number as u8]).expect("reads").expect(what);
            assert!(*found == *value(number as u64, len), "{what}: {len} bytes");
        }
        let all: Vec<_> = db.iter().map(|entry| entry.expect("reads").1.len()).collect();
        assert_eq!(all, LENGTHS, "{what}");
        let back: Vec<_> = db.iter().rev().map(|entry| entry.expect("reads").1.len()).collect();
        assert_eq!(back, LENGTHS.iter().rev().copied().collect::<Vec<_>>(), "{what}");
        let keys: Vec<[u8; 1]> = (0..LENGTHS.len()).map(|number| [number as u8]).collect();
        let many = db.multi_get(&keys);
        let lengths = many.into_iter().map(|it| it.expect("reads").expect(what).len());
        assert!(lengths.eq(LENGTHS), "{what}");
        assert!(db.verify().expect("verifies").damage.is_empty(), "{what}");
    };
    for (number, len) in LENGTHS.into_iter().enumerate() {
        db.put([number as u8], value(number as u64, len)).expect("puts");
    }
    check(&db, "in memory");
    let logged = bytes_of(&disk, ".wal");
    assert!(logged < 1000, "{logged} bytes of log");
    drop(db);
    let db = open(&disk);
    check(&db, "in the log");
    db.flush().expect("flushes");
    check(&db, "in a table");
    db.compact().expect("merges");
    check(&db, "merged");
    let tables = bytes_of(&disk, ".table");
    assert!(tables < 2000, "{tables} bytes of tables");
    drop(db);
    check(&open(&disk), "opened");
}

#[test]
fn short_values_and_operands_stay_with_their_keys() {
    let disk = Memory::new();
    let db = open_with(&disk, options().merge_operator(Concat::new("+")));
    db.put("short", value(1, (1 << 10) - 1)).expect("puts");
    db.merge("operands", value(2, 4000)).expect("merges");
    db.flush().expect("flushes");
    assert_eq!(value_files(&disk), [""; 0]);
    db.put("operands", value(3, 2000)).expect("puts");
    db.merge("operands", "more").expect("merges");
    let expected = [&value(3, 2000)[..], b"+more"].concat();
    for _ in 0..2 {
        assert_eq!(db.get("operands").expect("reads").expect("is there"), expected);
        db.compact().expect("merges");
    }
    assert_eq!(value_files(&disk).len(), 1);
}

#[test]
fn no_value_is_apart_where_that_is_off() {
    let disk = Memory::new();
    let db = open_with(&disk, options().value_threshold(0));
    db.put("a", value(1, 100_000)).expect("puts");
    let apart =
        db.keyspace("apart", KeyspaceOptions::new().value_threshold(1 << 10)).expect("made");
    assert_eq!(value_files(&disk), [""; 0]);
    apart.put("a", value(2, 100_000)).expect("puts");
    assert_eq!(value_files(&disk).len(), 1);
    drop((apart, db));
    let db = open_with(&disk, options().value_threshold(0));
    assert_eq!(db.get("a").expect("reads").expect("is there"), value(1, 100_000));
    let apart = db.open_keyspace("apart").expect("is there");
    assert_eq!(apart.get("a").expect("reads").expect("is there"), value(2, 100_000));
    db.drop_keyspace("apart").expect("drops");
    assert_eq!(value_files(&disk), [""; 0], "they go with their key space");
}

#[test]
fn what_nobody_refers_to_is_freed() {
    let disk = Memory::new();
    let db = open(&disk);
    db.put("kept", value(1, 5000)).expect("puts");
    db.put("large", value(2, 100_000)).expect("puts");
    db.flush().expect("flushes");
    let snapshot = db.snapshot();
    db.delete("large").expect("deletes");
    db.put("next", value(3, 100_000)).expect("puts");
    db.compact().expect("merges");
    assert_eq!(snapshot.get("large").expect("reads").expect("is there"), value(2, 100_000));
    drop(snapshot);
    db.delete("next").expect("deletes");
    db.compact().expect("merges");
    // The first file has both, the second one the last.
    assert_eq!(value_files(&disk).len(), 1);
    db.delete_range("", "z").expect("deletes");
    let scan = db.iter();
    db.compact().expect("merges");
    drop(scan);
    db.put("other", "short").expect("puts");
    db.compact().expect("merges");
    assert_eq!(value_files(&disk), [""; 0]);
}

#[test]
fn a_value_expires_with_its_key() {
    let (disk, clock) = (Memory::new(), Arc::new(trommel::testing::ManualClock::default()));
    let environment = Environment::default().storage(Arc::new(disk.clone())).clock(clock.clone());
    let db = Db::open_with(DIR, options(), environment).expect("opens");
    db.put_ttl("a", value(1, 5000), Duration::from_secs(9)).expect("puts");
    for round in 0..2 {
        let found = db.get("a").expect("reads").expect("is there");
        assert_eq!(found, value(1, 5000), "{round}");
        let left = found.expiry().expect("it expires").milliseconds();
        assert_eq!(left, 9000, "{round}");
        db.flush().expect("flushes");
    }
    assert_eq!(db.iter().count(), 1);
    clock.advance(Duration::from_secs(9));
    assert!(db.get("a").expect("reads").is_none());
    assert_eq!(db.iter().count(), 0);
    db.compact().expect("merges");
    db.put("b", "short").expect("puts");
    db.compact().expect("merges");
    assert!(bytes_of(&disk, ".table") > 0);
}

#[test]
fn batches_transactions_and_bulk_loads_have_large_values() {
    let disk = Memory::new();
    let db = open(&disk);
    let other = db.keyspace("other", KeyspaceOptions::new().value_threshold(2000)).expect("made");
    let mut batch = Batch::new();
    batch.put("a", value(1, 1500)).to(&other).put("b", value(2, 1500)).put("c", value(3, 3000));
    batch.delete("d").to(&db).put("e", value(4, 1500));
    db.write(batch).expect("writes");
    let transaction = db.transaction();
    transaction.put("f", value(5, 9000)).expect("puts");
    assert_eq!(transaction.get("f").expect("reads").expect("its own"), value(5, 9000));
    transaction.commit().expect("commits");
    let swapped = db.compare_and_swap("a", Some(&value(1, 1500)), Some(&value(6, 7000)));
    assert!(matches!(swapped.expect("swaps"), trommel::Swap::Done));
    db.ingest([(b"g".to_vec(), value(7, 4000)), (b"h".to_vec(), value(8, 10))]).expect("loads");
    let check = |db: &Db| {
        let other = db.open_keyspace("other").expect("is there");
        for (key, number, len) in [("a", 6, 7000), ("e", 4, 1500), ("f", 5, 9000), ("g", 7, 4000)] {
            assert_eq!(db.get(key).expect("reads").expect(key), value(number, len));
        }
        assert_eq!(db.get("h").expect("reads").expect("h"), value(8, 10));
        for (key, number, len) in [("b", 2, 1500), ("c", 3, 3000)] {
            assert_eq!(other.get(key).expect("reads").expect(key), value(number, len));
        }
    };
    check(&db);
    drop((other, db));
    check(&open(&disk.crash_hard()));
}

#[test]
fn a_checkpoint_has_the_values_and_shares_no_file_that_grows() {
    let disk = Memory::new();
    let db = open(&disk);
    db.put("a", value(1, 5000)).expect("puts");
    db.flush().expect("flushes");
    db.put("b", value(2, 5000)).expect("puts");
    db.checkpoint("copy").expect("copies");
    let before = value_files(&disk);
    let sizes = |disk: &Memory| {
        let size = |name: &String| disk.file(Path::new("copy").join(name)).map(|it| it.len());
        before.iter().map(size).collect::<Vec<_>>()
    };
    let shared = sizes(&disk);
    db.put("c", value(3, 5000)).expect("puts");
    assert_eq!(sizes(&disk), shared, "nothing is appended to a file with a second name");
    db.delete_range("", "z").expect("deletes");
    db.compact().expect("merges");
    let environment = Environment::default().storage(Arc::new(disk.crash_hard()));
    let copy = Db::open_with("copy", options(), environment).expect("opens");
    assert_eq!(copy.get("a").expect("reads").expect("a"), value(1, 5000));
    assert_eq!(copy.get("b").expect("reads").expect("b"), value(2, 5000));
    assert!(copy.get("c").expect("reads").is_none());
    assert!(copy.verify().expect("verifies").damage.is_empty());
}

#[test]
fn a_scan_of_keys_alone_reads_no_value() {
    let disk = Memory::new();
    let db = open(&disk);
    for number in 0..20u8 {
        db.put([number], value(u64::from(number), 5000)).expect("puts");
    }
    db.flush().expect("flushes");
    let bytes_read = || db.stats().expect("tells").open_seek.bytes_read;
    let before = bytes_read();
    assert_eq!(db.iter().keys_only().count(), 20);
    assert!(bytes_read() - before < 5000);
    assert!(db.iter().keys_only().all(|entry| entry.expect("reads").1.is_empty()));
}
