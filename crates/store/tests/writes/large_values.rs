//! Large values: written once, into files of their own, and read back wherever they are.
//! ```text
//! put     value -> *.value, appended     reference -> log, memtable, tables
//! reads   reference -> its value         space    what nobody refers to goes
//! crash   values before references       in doubt what the manifest may name stays
//! ```

mod crashes;
mod held;
mod in_doubt;
mod reads;
mod space;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use trommel::merge_operators::Concat;
use trommel::options::Compression;
use trommel::storage::Memory;
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

/// A number that looks drawn.
fn mixed(number: u64) -> u64 {
    let mixed = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 31
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

/// The values that a feed tells of the puts after this one.
fn values_since(db: &Db, since: u64) -> trommel::Result<Vec<Vec<u8>>> {
    let mut all = Vec::new();
    for batch in db.changes_since(since)? {
        for change in batch?.changes {
            all.push(match change.kind {
                trommel::ChangeKind::Put(value) => value,
                trommel::ChangeKind::PutWithExpiry { value, .. } => value,
                other => panic!("{other:?}"),
            });
        }
    }
    Ok(all)
}

// Kept logs kept no values.
#[test]
fn a_feed_tells_values_or_that_they_are_gone() {
    for (kept, are_kept) in [(1 << 20, true), (9000, false)] {
        let disk = Memory::new();
        let mut db = open_with(&disk, options().kept_log_bytes(kept));
        db.put("a", value(1, 5000)).expect("puts");
        db.put_ttl("b", value(2, 5000), Duration::from_secs(1 << 30)).expect("puts");
        let (large, short) = ([value(1, 5000), value(2, 5000)], [b"short", b"short"]);
        assert_eq!(values_since(&db, 0).expect("tells"), large);
        db.compact().expect("merges");
        assert_eq!(values_since(&db, 1).expect("tells"), large[1..]);
        db.put("a", "short").expect("puts");
        db.put("b", "short").expect("puts");
        db.compact().expect("merges");
        for when in ["at once", "opened again"] {
            assert_eq!(values_since(&db, 2).expect("tells"), short, "{when}");
            match are_kept {
                true => assert_eq!(values_since(&db, 0).expect("tells")[..2], large, "{when}"),
                false => {
                    let gone = values_since(&db, 0).expect_err("the values are gone");
                    assert!(matches!(gone, trommel::Error::Gone { since: 0, .. }), "{gone}");
                }
            }
            assert_eq!(value_files(&disk).len(), usize::from(are_kept), "{when}");
            db.close().expect("closes");
            db = open_with(&disk, options());
        }
        db.close().expect("closes");
        open_with(&disk, options().kept_log_bytes(0));
        assert_eq!(value_files(&disk), [""; 0]);
    }
}

#[test]
fn a_feed_tells_values_of_a_key_space_that_was_dropped() {
    let disk = Memory::new();
    let db = open_with(&disk, options().kept_log_bytes(1 << 20));
    let with = KeyspaceOptions::new().value_threshold(1 << 10);
    let short = db.keyspace("short", with).expect("made");
    short.put("a", value(1, 5000)).expect("puts");
    short.flush().expect("flushes");
    short.put("a", value(2, 5000)).expect("puts");
    drop(short);
    db.drop_keyspace("short").expect("drops");
    db.put("b", "short").expect("puts");
    db.compact().expect("merges");
    let told = [value(1, 5000), value(2, 5000), b"short".to_vec()];
    assert_eq!(values_since(&db, 0).expect("tells"), told);
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
