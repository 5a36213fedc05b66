//! Large values: written once, into files of their own, and read back wherever they are.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use trommel::merge_operators::Concat;
use trommel::options::Compression;
use trommel::storage::Memory;
use trommel::testing::Fault;
use trommel::{Background, Batch, Db, Environment, KeyspaceOptions, Options, SyncPolicy};

const DIR: &str = "db";

fn options() -> Options {
    Options::new()
        .value_threshold(1 << 10)
        .value_file_bytes(64 << 10)
        .write_buffer_bytes(64 << 10)
        .compression(false)
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
    [false, true]
        .into_iter()
        .for_each(values_of_any_length_are_read_from_memory_tables_and_logs_packed_or_not);
}

fn values_of_any_length_are_read_from_memory_tables_and_logs_packed_or_not(packs: bool) {
    let disk = Memory::new();
    let db = open_with(&disk, options().compression(packs));
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
    let db = open_with(&disk, options().compression(packs));
    check(&db, "in the log");
    db.flush().expect("flushes");
    check(&db, "in a table");
    db.compact().expect("merges");
    check(&db, "merged");
    let tables = bytes_of(&disk, ".table");
    assert!(tables < 2000, "{tables} bytes of tables");
    drop(db);
    check(&open_with(&disk, options().compression(packs)), "opened");
}

#[test]
fn values_are_packed_as_the_options_say_whatever_was_before() {
    let disk = Memory::new();
    let put_all = |db: &Db, from: u64| {
        (from..from + 20).for_each(|it| db.put(it.to_be_bytes(), value(it, 5000)).expect("puts"));
    };
    let db = open(&disk);
    put_all(&db, 0);
    let plain = bytes_of(&disk, ".value");
    assert!(plain > 20 * 5000, "{plain} bytes");
    drop(db);
    let db = open_with(&disk, options().compression(true));
    put_all(&db, 20);
    let packed = bytes_of(&disk, ".value") - plain;
    assert!(packed < plain / 2, "{packed} bytes, where {plain} are plain");
    let check = |db: &Db, packed: &str| {
        for number in 0..40u64 {
            let found = db.get(number.to_be_bytes()).expect("reads").expect("it is there");
            assert!(*found == *value(number, 5000), "{packed}");
        }
        assert!(db.verify().expect("verifies").damage.is_empty(), "{packed}");
    };
    check(&db, "either way");
    // Those that merges move are packed as the last level is.
    drop(db);
    let with = options().compression(false).last_level_compression(Some(Compression::Lz4));
    let db = open_with(&disk, with);
    check(&db, "before they are moved");
    for number in (0..40u64).filter(|number| number % 2 == 0) {
        db.delete(number.to_be_bytes()).expect("deletes");
    }
    db.compact().expect("merges");
    db.compact().expect("merges");
    let moved = bytes_of(&disk, ".value");
    assert!(moved < plain / 2, "{moved} bytes");
    for number in 0..40u64 {
        let found = db.get(number.to_be_bytes()).expect("reads");
        assert_eq!(found.is_some(), number % 2 == 1, "{number}");
        assert!(found.is_none_or(|found| *found == *value(number, 5000)));
    }
}

/// Entries of a range, from both ends, while the range changes under the scan.
fn check_scan(db: &Db, all: &BTreeMap<u64, Vec<u8>>, numbers: std::ops::Range<u64>, turn: u64) {
    let bounds = numbers.start.to_be_bytes()..numbers.end.to_be_bytes();
    let mut expected: VecDeque<_> = all.range(numbers).collect();
    let mut scan = db.range(bounds);
    let mut step = turn;
    loop {
        step += 1;
        // From the front, mostly; now and then some are passed.
        let (found, wanted) = match mixed(step) % 7 {
            0..4 => (scan.next(), expected.pop_front()),
            4..6 => (scan.next_back(), expected.pop_back()),
            _ => {
                let to = expected.front().map_or(0, |(number, _)| **number + step % 5);
                expected.retain(|(number, _)| **number >= to);
                scan.seek(to.to_be_bytes());
                continue;
            }
        };
        if step.is_multiple_of(11) {
            db.step().expect("merges");
        }
        let found = found.map(|entry| entry.expect("reads"));
        assert_eq!(found.is_some(), wanted.is_some(), "turn {turn}, step {step}");
        let (Some((key, value)), Some((number, own))) = (found, wanted) else { return };
        assert_eq!(key, number.to_be_bytes(), "turn {turn}, step {step}");
        assert!(*value == **own, "turn {turn}, {number}");
    }
}

#[test]
fn scans_from_both_ends_come_to_values_wherever_they_are() {
    for packs in [false, true] {
        let disk = Memory::new();
        let with = options().compression(packs).sync(SyncPolicy::Never).block_bytes(512);
        let db = open_with(&disk, with.write_buffer_bytes(8 << 10));
        let mut all = BTreeMap::new();
        for turn in 0..600u64 {
            let key = mixed(turn) % 100;
            if mixed(turn + 7).is_multiple_of(5) {
                db.delete(key.to_be_bytes()).expect("deletes");
                all.remove(&key);
            } else {
                // Stretches of long values, of short ones, and of both.
                let is_long = key % 50 < 20 || key % 50 < 40 && turn.is_multiple_of(2);
                let own = value(turn, if is_long { 1500 } else { 20 });
                db.put(key.to_be_bytes(), &own).expect("puts");
                all.insert(key, own);
            }
            if turn.is_multiple_of(3) {
                let from = mixed(turn + 1) % 100;
                check_scan(&db, &all, from..from + mixed(turn + 2) % 60, turn);
            }
        }
    }
}

/// What a scan has found before it is asked for may have expired when it is.
#[test]
fn a_value_that_expires_during_a_scan_is_not_given() {
    let (disk, clock) = (Memory::new(), Arc::new(trommel::testing::ManualClock::default()));
    let environment = Environment::default().storage(Arc::new(disk)).clock(clock.clone());
    let db = Db::open_with(DIR, options(), environment).expect("opens");
    for number in 0..20u64 {
        let seconds = Duration::from_secs(if number % 4 == 3 { 5 } else { 50 });
        db.put_ttl(number.to_be_bytes(), value(number, 2000), seconds).expect("puts");
    }
    for back in [false, true] {
        db.flush().expect("flushes");
        let mut scan = db.iter();
        let mut next = || if back { scan.next_back() } else { scan.next() };
        let first: Vec<_> =
            (0..6).map(|_| next().expect("there are more").expect("reads")).collect();
        assert_eq!(first.len(), 6);
        clock.advance(Duration::from_secs(6));
        let rest = std::iter::from_fn(next).map(|entry| entry.expect("reads").0);
        let expired = rest.filter(|key| key[7] % 4 == 3).count();
        assert_eq!(expired, 0, "{back}");
        for number in (0..20u64).filter(|number| number % 4 == 3) {
            let seconds = Duration::from_secs(5);
            db.put_ttl(number.to_be_bytes(), value(number, 2000), seconds).expect("puts");
        }
    }
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

#[test]
fn whether_a_key_is_there_is_told_without_its_value() {
    let (disk, clock) = (Memory::new(), Arc::new(trommel::testing::ManualClock::default()));
    let environment = Environment::default().storage(Arc::new(disk.clone())).clock(clock.clone());
    let db = Db::open_with(DIR, options(), environment).expect("opens");
    db.put("stays", value(1, 5000)).expect("puts");
    db.put_ttl("expires", value(2, 5000), Duration::from_secs(9)).expect("puts");
    db.flush().expect("flushes");
    for name in value_files(&disk) {
        disk.flip_bit(Path::new(DIR).join(&name), 2000, 1);
    }
    let snapshot = db.snapshot();
    for is_there in [true, false] {
        assert!(db.contains_key("stays").expect("tells"));
        assert_eq!(db.contains_key("expires").expect("tells"), is_there);
        assert_eq!(snapshot.contains_key("expires").expect("tells"), is_there);
        assert!(!db.contains_key("missing").expect("tells"));
        clock.advance(Duration::from_secs(9));
    }
    let error = db.get("stays").expect_err("its bytes were changed");
    assert!(error.tells_of_damage(), "{error}");
}

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

#[test]
fn a_feed_tells_values_or_that_they_are_gone() {
    let disk = Memory::new();
    let db = open_with(&disk, options().kept_log_bytes(1 << 20));
    db.put("a", value(1, 5000)).expect("puts");
    db.put_ttl("b", value(2, 5000), Duration::from_secs(1 << 30)).expect("puts");
    let told = |since: u64| {
        let mut all = Vec::new();
        for batch in db.changes_since(since).expect("begins") {
            for change in batch?.changes {
                all.push(match change.kind {
                    trommel::ChangeKind::Put(value) => value,
                    trommel::ChangeKind::PutWithExpiry { value, .. } => value,
                    other => panic!("{other:?}"),
                });
            }
        }
        Ok::<_, trommel::Error>(all)
    };
    assert_eq!(told(0).expect("tells"), [value(1, 5000), value(2, 5000)]);
    db.compact().expect("merges");
    assert_eq!(told(1).expect("tells"), [value(2, 5000)]);
    db.put("a", "short").expect("puts");
    db.put("b", "short").expect("puts");
    db.compact().expect("merges");
    let gone = told(0).expect_err("the values are gone");
    assert!(matches!(gone, trommel::Error::Gone { since: 0, first: 2, .. }), "{gone}");
    assert_eq!(told(2).expect("tells"), [b"short", b"short"]);
}

/// Bytes that come in parts of odd lengths.
struct Stream {
    number: u64,
    at: u64,
    end: u64,
}

impl Stream {
    fn new(number: u64, end: u64) -> Stream {
        Stream { number, at: 0, end }
    }
}

impl std::io::Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = buffer.len().min(7777).min((self.end - self.at) as usize);
        for byte in &mut buffer[..count] {
            *byte = (self.at.wrapping_mul(self.number * 2 + 1) >> 3) as u8;
            self.at += 1;
        }
        Ok(count)
    }
}

#[test]
fn values_are_written_and_read_as_streams_of_any_length() {
    [false, true]
        .into_iter()
        .for_each(values_are_written_and_read_as_streams_of_any_length_packed_or_not);
}

fn values_are_written_and_read_as_streams_of_any_length_packed_or_not(packs: bool) {
    use std::io::{Read, Seek, SeekFrom};
    let disk = Memory::new();
    let db = open_with(&disk, options().compression(packs));
    let lengths = [0, 1, 1 << 10, 512 << 10, (512 << 10) + 1, 5_000_003];
    for (number, length) in (0..).zip(lengths) {
        db.put_reader([number as u8], length, Stream::new(number, length + 9)).expect("puts");
    }
    for round in 0..2 {
        for (number, length) in (0..).zip(lengths) {
            let expected = value(number, length as usize);
            assert!(*db.get([number as u8]).expect("reads").expect("it is there") == *expected);
            let mut reader = db.get_reader([number as u8]).expect("reads").expect("it is there");
            assert_eq!(reader.len(), length);
            let mut all = Vec::new();
            reader.read_to_end(&mut all).expect("reads");
            assert!(all == expected, "{length} bytes, round {round}");
            for at in [0, length / 3, length.saturating_sub(5), length, length + 7] {
                let mut part = [0; 70_000];
                assert_eq!(reader.seek(SeekFrom::Start(at)).expect("seeks"), at);
                let room = (length.saturating_sub(at) as usize).min(part.len());
                reader.read_exact(&mut part[..room]).expect("reads");
                let from = (at as usize).min(expected.len());
                assert!(part[..room] == expected[from..from + room], "{length} bytes, at {at}");
            }
            assert_eq!(reader.seek(SeekFrom::End(0)).expect("seeks"), length);
            assert!(reader.seek(SeekFrom::Current(-1 - length as i64)).is_err());
        }
        db.flush().expect("flushes");
    }
    assert!(db.get_reader("none").expect("reads").is_none());
    // What was put there before stays as it is while it is read.
    let mut reader = db.get_reader([5]).expect("reads").expect("it is there");
    let snapshot = db.snapshot();
    db.delete([5]).expect("deletes");
    drop(snapshot);
    db.compact().expect("merges");
    let mut all = Vec::new();
    reader.read_to_end(&mut all).expect("reads");
    assert!(all == value(5, 5_000_003));
}

#[test]
fn a_stream_that_ends_early_writes_nothing() {
    let disk = Memory::new();
    let db = open(&disk);
    for length in [2000, 3 << 20] {
        let put = db.put_reader("a", length, Stream::new(1, length - 1));
        assert!(matches!(put, Err(trommel::Error::Io { .. })), "{put:?}");
        assert!(db.get("a").expect("reads").is_none());
    }
    db.put("b", "short").expect("puts");
    db.compact().expect("merges");
    assert_eq!(value_files(&disk), [""; 0]);
    let long = db.put_reader("a", (1 << 40) + 1, std::io::empty());
    assert!(matches!(long, Err(trommel::Error::ValueTooLong { .. })), "{long:?}");
    let off = open_with(&Memory::new(), options().value_threshold(0));
    let long = off.put_reader("a", (1 << 30) + 1, std::io::empty());
    assert!(matches!(long, Err(trommel::Error::ValueTooLong { .. })), "{long:?}");
    off.put_reader("a", 100_000, Stream::new(1, 100_000)).expect("puts");
    assert_eq!(off.get_reader("a").expect("reads").expect("it is there").len(), 100_000);
}

/// A number that looks drawn.
fn mixed(number: u64) -> u64 {
    let mixed = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 31
}

// Values are replaced evenly, ten times over: what is on the disk is little more than what is live.
#[test]
fn space_comes_back_under_even_overwriting() {
    const KEYS: u64 = 500;
    for (share, most) in [(0.2, 1.35), (0.5, 1.75)] {
        for last_runs in [1, 9] {
            let policy = format!("tiering last_runs={last_runs}").parse().expect("a policy");
            let disk = Memory::new();
            let options = options()
                .policy(policy)
                .value_garbage_share(share)
                .value_file_bytes(128 << 10)
                .write_buffer_bytes(16 << 10)
                .sync(SyncPolicy::Never);
            let db = open_with(&disk, options);
            let mut newest = std::collections::BTreeMap::new();
            for number in 0..KEYS * 11 {
                // In any order, once all are there.
                let drawn = mixed(number) % KEYS;
                let key = if number < KEYS { number } else { drawn };
                let length = 4000 + (number % 1000) as usize;
                db.put(key.to_be_bytes(), value(number, length)).expect("puts");
                newest.insert(key, (number, length));
                if number % 50 == 0 {
                    db.step().expect("goes on");
                }
            }
            db.settle().expect("comes to rest");
            let live: usize = newest.values().map(|(_, length)| length + 8).sum();
            let there = bytes_of(&disk, ".value") + bytes_of(&disk, ".table");
            let ratio = there as f64 / live as f64;
            println!("share {share}, {last_runs} last runs: {ratio:.3}");
            assert!(ratio < most, "share {share}, {last_runs} last runs: {ratio}");
            for (key, (number, length)) in newest {
                let found = db.get(key.to_be_bytes()).expect("reads").expect("it is there");
                assert!(*found == *value(number, length));
            }
            let stats = db.stats().expect("tells");
            assert_eq!(stats.value_files as usize, value_files(&disk).len());
            assert_eq!(stats.value_bytes as usize, bytes_of(&disk, ".value"));
            assert!(stats.value_garbage_bytes < stats.value_bytes / 2);
            assert!(db.verify().expect("verifies").damage.is_empty());
        }
    }
}

#[test]
fn merges_move_the_values_of_the_oldest_files() {
    for (share, is_moved) in
        [(0.0, [false; 4]), (0.5, [true, true, false, false]), (1.0, [true; 4])]
    {
        let disk = Memory::new();
        let db = open_with(&disk, options().value_file_bytes(8 << 10).value_move_oldest(share));
        for number in 0..8 {
            db.put([number as u8], value(number, 5000)).expect("puts");
        }
        let before = value_files(&disk);
        assert_eq!(before.len(), 4, "{before:?}");
        db.compact().expect("merges");
        db.settle().expect("comes to rest");
        let after = value_files(&disk);
        assert_eq!([0, 1, 2, 3].map(|file| !after.contains(&before[file])), is_moved, "{share}");
        for number in 0..8 {
            let found = db.get([number as u8]).expect("reads").expect("it is there");
            assert!(*found == *value(number, 5000));
        }
        assert!(db.verify().expect("verifies").damage.is_empty());
    }
}

// A merge from range to range chose the oldest files anew in each: of the file that its last range
// had begun to move the rest was garbage, for which the next merge was due, without an end.
#[test]
fn a_store_whose_old_values_are_moved_comes_to_rest() {
    let key = |number: u64| format!("{number:0100}");
    for (share, file_bytes) in [(0.3, 16 << 10), (0.5, 64 << 10), (1.0, 1 << 20)] {
        let disk = Memory::new();
        let small = options().value_threshold(256).table_bytes(4096).partition_bytes(8192);
        let small = small.value_file_bytes(file_bytes).value_garbage_share(0.05);
        let db = open_with(&disk, small.value_move_oldest(share));
        for round in 0..2 {
            for number in (0..1000).step_by(1 + 2 * round) {
                db.put(key(number), value(number + round as u64, 300)).expect("puts");
            }
            db.flush().expect("flushes");
        }
        let rests = (0..3_000).any(|_| !db.step().expect("steps"));
        let merges = db.stats().expect("tells").merges;
        assert!(rests, "{share}: {merges} merges, and more are due");
        for number in 0..1000 {
            let found = db.get(key(number)).expect("reads").expect("it is there");
            assert!(found == value(number + u64::from(number % 3 == 0), 300), "{number}");
        }
    }
}

#[test]
fn snapshots_and_damage_outlive_the_moving_of_values() {
    [false, true]
        .into_iter()
        .for_each(snapshots_and_damage_outlive_the_moving_of_values_packed_or_not);
}

fn snapshots_and_damage_outlive_the_moving_of_values_packed_or_not(packs: bool) {
    let disk = Memory::new();
    let db = open_with(&disk, options().compression(packs));
    for number in 0..30 {
        db.put([number as u8], value(number, 3000)).expect("puts");
    }
    db.compact().expect("merges");
    let before = value_files(&disk);
    let snapshot = db.snapshot();
    for number in (0..30).filter(|number| number % 5 > 0) {
        db.put([number as u8], value(100 + number, 3000)).expect("puts");
    }
    db.compact().expect("merges");
    for number in 0..30 {
        let found = snapshot.get([number as u8]).expect("reads").expect("it is there");
        assert_eq!(found, value(number, 3000));
    }
    drop(snapshot);
    db.compact().expect("merges");
    db.compact().expect("merges");
    let after = value_files(&disk);
    assert!(before.iter().any(|file| !after.contains(file)), "{before:?}, then {after:?}");
    for number in 0..30 {
        let new = if number % 5 > 0 { 100 + number } else { number };
        let found = db.get([number as u8]).expect("reads").expect("it is there");
        assert_eq!(found, value(new, 3000));
    }
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

/// A store whose next call may fail at any operation, and is killed then.
fn killed_after_each_fault(call: impl Fn(&Db) -> trommel::Result<()>, check: impl Fn(&Db)) {
    let mut failed = 0;
    for after in 0.. {
        let disk = Memory::new();
        let with = options().value_file_bytes(16 << 10).value_garbage_share(0.05);
        let db = open_with(&disk, with);
        (0..20u64).for_each(|n| db.put(n.to_be_bytes(), value(n, 5000)).expect("puts"));
        db.flush().expect("flushes");
        (0..20u64).step_by(2).for_each(|n| db.delete(n.to_be_bytes()).expect("deletes"));
        db.flush().expect("flushes");
        disk.fail_at(after, Fault::Io);
        let called = call(&db);
        let has_struck = !disk.may_fail();
        disk.mend();
        failed += u32::from(called.is_err());
        let killed = open(&disk.kill());
        (0..20u64).for_each(|n| {
            let expected = (n % 2 == 1).then(|| value(n, 5000));
            let found = killed.get(n.to_be_bytes()).expect("its value is there");
            assert_eq!(found.as_deref(), expected.as_deref(), "{n}, after {after}");
        });
        check(&killed);
        if !has_struck {
            break;
        }
    }
    assert!(failed > 5, "{failed}");
}

#[test]
fn a_merge_that_the_manifest_may_name_keeps_the_values_that_it_moved() {
    killed_after_each_fault(Db::compact, |_| {});
}

#[test]
fn a_bulk_load_that_the_manifest_may_name_keeps_its_values() {
    let keys = || (100..110u64).map(u64::to_be_bytes);
    let load = |db: &Db| {
        let entries = keys().map(|key| (key, value(u64::from_be_bytes(key), 5000)));
        db.ingest(entries).map(drop)
    };
    killed_after_each_fault(load, |db| {
        let found = keys().filter(|key| db.get(key).expect("its value is there").is_some());
        assert!([0, 10].contains(&found.count()));
    });
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
        for is_missing in [false, true] {
            let disk = disk.kill();
            let path = Path::new(DIR).join(file);
            let mut bytes = disk.file(&path).expect("is there");
            if is_missing {
                disk.remove(&path).expect("removes");
            } else {
                // All values in it, but no head.
                let places = (28 + 16 + 100..bytes.len()).step_by(1500);
                places.for_each(|at| bytes[at] ^= 1);
                disk.put_file(&path, bytes);
            }
            let damage = verify_files_with(DIR, &environment(&disk)).expect("verifies").damage;
            assert!(!damage.is_empty(), "{file}, missing: {is_missing}");
            if !is_missing {
                let db = open(&disk);
                let damage = db.verify().expect("verifies").damage;
                assert!(damage.iter().all(|what| what.contains(file)), "{damage:?}");
                assert!(!damage.is_empty() && db.get("c").is_ok());
            }
            let report = repair_with(DIR, &environment(&disk)).expect("repairs");
            assert_eq!(report.lost.len(), lost, "{file}, missing: {is_missing}: {report:?}");
            let all = report.lost.iter().all(|loss| loss.what.contains(file.as_str()));
            assert!(all, "{report:?}");
            assert_eq!(
                verify_files_with(DIR, &environment(&disk)).expect("verifies").damage,
                [""; 0]
            );
            let db = open(&disk);
            stay.iter().for_each(|key| assert!(db.get(key).expect("reads").is_some(), "{key}"));
            assert!(db.verify().expect("verifies").damage.is_empty());
        }
    }
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

#[test]
fn key_spaces_without_a_log_have_values_once_they_are_flushed() {
    let disk = Memory::new();
    let db = open(&disk);
    let unlogged = KeyspaceOptions::new().value_threshold(1 << 10).log(false);
    let cache = db.keyspace("cache", unlogged).expect("made");
    cache.put("a", value(1, 5000)).expect("puts");
    cache.flush().expect("flushes");
    cache.put("b", value(2, 5000)).expect("puts");
    let after = disk.crash_hard();
    let db = open(&after);
    let cache = db.open_keyspace("cache").expect("is there");
    assert_eq!(cache.get("a").expect("reads").expect("a"), value(1, 5000));
    assert!(cache.get("b").expect("reads").is_none());
    assert!(db.verify().expect("verifies").damage.is_empty());
}

// Each long stream has a file of its own: a process may have fewer files open than a store has.
#[test]
fn files_that_take_no_more_values_are_closed() {
    let disk = Memory::new();
    let db = open_with(&disk, options().value_file_bytes(4096).max_open_files(Some(4)));
    let put = |number: u64| match number % 2 {
        0 => db.put_reader(number.to_be_bytes(), 520 << 10, Stream::new(number, 520 << 10)),
        _ => db.put(number.to_be_bytes(), value(number, 5000)),
    };
    (0..8).try_for_each(put).expect("puts");
    let before = disk.handles().open;
    (8..40).try_for_each(put).expect("puts");
    assert!(disk.handles().open <= before + 4, "{:?}, and before {before}", disk.handles());
    assert!(value_files(&disk).len() >= 20);
    db.checkpoint("copy").expect("copies");
    let found = db.iter().filter(|entry| entry.is_ok()).count();
    assert_eq!(found, 40);
}

// Entries that are found ahead have keys of their own, which are not those of the value in hand.
#[test]
fn a_scan_gives_each_value_with_its_own_key() {
    let disk = Memory::new();
    let db = open(&disk);
    for number in 0..40 {
        let len = if number % 4 == 3 { 10 } else { 2000 };
        db.put([number as u8], value(number, len)).expect("puts");
    }
    for place in ["in memory", "in a table"] {
        let check = |entry: trommel::Result<trommel::KeyValue>| {
            let (key, found) = entry.expect("reads");
            let number = u64::from(key[0]);
            let len = if number % 4 == 3 { 10 } else { 2000 };
            assert!(*found == *value(number, len), "{place}: another value than that of {number}");
            number
        };
        assert!(db.iter().map(check).eq(0..40), "{place}");
        assert!(db.iter().rev().map(check).eq((0..40).rev()), "{place}, backward");
        db.flush().expect("flushes");
    }
}

#[test]
fn values_that_are_read_again_come_from_the_cache() {
    let disk = Memory::new();
    let db = open_with(&disk, options().block_cache_bytes(256 << 10));
    for number in 0..20u64 {
        db.put(number.to_be_bytes(), value(number, 8000)).expect("puts");
    }
    db.flush().expect("flushes");
    let reads = |db: &Db| db.stats().expect("tells").point.value_reads;
    let get_all = |db: &Db, from: u64| {
        for number in 0..20u64 {
            let found = db.get(number.to_be_bytes()).expect("reads").expect("it was put");
            assert!(*found == *value(from + number, 8000), "value {number}");
        }
    };
    get_all(&db, 0);
    let before = reads(&db);
    get_all(&db, 0);
    assert_eq!(reads(&db), before, "all are in the cache");
    assert!(db.stats().expect("tells").cache_bytes > 20 * 8000);
    // Others take their place, in the same files and in new ones.
    for number in 0..20u64 {
        db.put(number.to_be_bytes(), value(100 + number, 8000)).expect("puts");
    }
    get_all(&db, 100);
    db.compact().expect("merges");
    db.settle().expect("settles");
    get_all(&db, 100);
    assert!(db.stats().expect("tells").cache_bytes <= 256 << 10);
}

/// Values apart were counted as blocks from the disk, and so more of these than were asked for.
#[test]
fn a_value_apart_that_is_read_is_no_block() {
    let db = open_with(&Memory::new(), options().block_cache_bytes(0));
    db.put("a", value(1, 8000)).expect("puts");
    for flushed in [false, true] {
        let before = db.stats().expect("tells").point;
        assert!(db.get("a").expect("reads").is_some());
        let point = db.stats().expect("tells").point.since(&before);
        assert_eq!(point.value_reads, 1);
        assert_eq!((point.blocks_read, point.cache_hits()), (u64::from(flushed), 0));
        assert!((8000..8200).contains(&point.bytes_read) || flushed, "{point:?}");
        db.flush().expect("flushes");
    }
}

#[test]
fn a_scan_gives_each_value_apart_with_its_own_key() {
    let disk = Memory::new();
    let db = open(&disk);
    let is_right = |number: u64, (key, found): (Vec<u8>, trommel::Value)| {
        assert_eq!(key, number.to_be_bytes(), "key {number}");
        assert!(*found == *value(number, 2000 + number as usize), "value {number}");
    };
    for number in 0..60u64 {
        db.put(number.to_be_bytes(), value(number, 2000 + number as usize)).expect("puts");
    }
    let check = |db: &Db| {
        let mut all = db.iter();
        (0..60)
            .for_each(|number| is_right(number, all.next().expect("it is there").expect("reads")));
        assert!(all.next().is_none());
        let mut back = db.iter().rev();
        let mut turned = db.iter();
        for number in 0..60 {
            is_right(59 - number, back.next().expect("it is there").expect("reads"));
            let (turn, end) = (number / 2, number % 2 == 1);
            let next = if end { turned.next_back() } else { turned.next() };
            let expected = if end { 59 - turn } else { turn };
            is_right(expected, next.expect("it is there").expect("reads"));
        }
        assert!(back.next().is_none() && turned.next().is_none());
    };
    check(&db);
    db.flush().expect("flushes");
    // A merge between any two steps has the scan begin anew behind what it gave.
    for stop in 0..5 {
        let mut scan = db.iter();
        let mut give = |numbers: std::ops::Range<u64>| {
            for number in numbers {
                is_right(number, scan.next().expect("it is there").expect("reads"));
            }
        };
        give(0..stop);
        db.compact().expect("merges");
        give(stop..60);
    }
    check(&db);
}

/// Values apart are read last and in the order of their places; each comes to its own key.
#[test]
fn many_keys_at_once_have_their_own_values_in_any_order() {
    let (disk, clock) = (Memory::new(), Arc::new(trommel::testing::ManualClock::default()));
    let environment = Environment::default().storage(Arc::new(disk)).clock(clock.clone());
    let db = Db::open_with(DIR, options(), environment).expect("opens");
    let put = |number: u64| {
        let key = number.to_be_bytes();
        match number % 4 {
            0 => db.put(key, b"short"),
            1 => db.put(key, value(number, 2000 + number as usize)),
            2 => db.put_ttl(key, value(number, 3000), Duration::from_secs(1)),
            _ => db.put_ttl(key, value(number, 4000), Duration::from_secs(100_000)),
        }
        .expect("puts");
    };
    // Some in tables, the last ones in memory, in an order that is not that of their keys.
    let numbers = || (0..600).map(|number: u64| number * 7 % 600);
    numbers().for_each(put);
    db.flush().expect("flushes");
    numbers().filter(|number| number % 5 == 0).for_each(put);
    clock.advance(Duration::from_secs(10));
    let asked: Vec<u64> = (0..900).map(|number: u64| number * 11 % 700).collect();
    let keys: Vec<_> = asked.iter().map(|number| number.to_be_bytes()).collect();
    let found = db.multi_get(&keys).into_iter().map(|found| found.expect("reads"));
    for (number, found) in asked.into_iter().zip(found) {
        let expected = match number % 4 {
            _ if number >= 600 => None,
            0 => Some(b"short".to_vec()),
            1 => Some(value(number, 2000 + number as usize)),
            2 => None,
            _ => Some(value(number, 4000)),
        };
        assert!(found.as_deref() == expected.as_deref(), "{number}");
    }
}
