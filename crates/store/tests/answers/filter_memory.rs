//! A filter with less memory than it would take: its parts get bits by what is asked of them, and
//! every answer is right while they are built anew.
//! ```text
//! questions about one part -> steps -> that part has many bits, the others few, all fit
//!                             '-- flushes and merges between two of them
//! ```

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use trommel::Environment;
use trommel::research::Research as _;
use trommel::stats::{FilterRecovery, PartitionStats};
use trommel::storage::{Memory, Storage as _};
use trommel::{Background, Db, GuardKind, KeyspaceOptions, Options, SyncPolicy};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

const KEYS: u64 = 60_000;
/// Half of what the filter of so many keys takes.
const HALF: u64 = KEYS * 12 / 8 / 2;
/// Questions of which enough are noted: one of 64 is.
const QUESTIONS: u64 = 80_000;
const PATIENCE: Duration = Duration::from_secs(60);

fn options(filter_memory: u64) -> Options {
    Options::new()
        .size_ratio(4)
        .filter_memory(filter_memory)
        .block_bytes(512)
        .compression(false)
        .table_bytes(8192)
        .partition_bytes(160 << 10)
        .sync(SyncPolicy::Never)
        .background(Background::Stepped)
}

fn open(disk: &Memory, options: Options) -> Db {
    let environment = Environment::new().storage(Arc::new(disk.clone()));
    Db::open_with("db", options, environment).expect("opens")
}

/// Numbers are in order; keys between them are not stored.
fn key(number: u64) -> Vec<u8> {
    (number * 1_000_003).to_be_bytes().to_vec()
}

/// A key behind that of a number, which is not stored.
fn absent(number: u64, distance: u64) -> Vec<u8> {
    (number * 1_000_003 + 1 + distance % 1_000_002).to_be_bytes().to_vec()
}

fn put(db: &Db, map: &mut Map, numbers: impl Iterator<Item = u64>, round: u8) {
    for number in numbers {
        let value = vec![round; 20];
        db.put(key(number), &value).expect("puts");
        map.insert(key(number), value);
    }
    db.flush().expect("flushes");
}

/// A store whose last level has partitions, and newer runs.
fn filled(disk: &Memory, options: Options) -> (Db, Map) {
    let (db, mut map) = (open(disk, options), Map::new());
    put(&db, &mut map, 0..KEYS, 0);
    db.compact().expect("merges");
    for round in 1..3 {
        put(&db, &mut map, (0..KEYS).skip(round as usize).step_by(40), round);
        db.settle().expect("merges");
    }
    (db, map)
}

/// Asks for keys that are not there, nine of ten in this twelfth of all.
fn ask(db: &Db, twelfth: u64) {
    for number in 0..QUESTIONS {
        let mixed = (number * 0x9e37_79b9) >> 8;
        let among =
            if mixed % 10 == 0 { mixed % KEYS } else { (twelfth * KEYS + mixed % KEYS) / 12 };
        assert_eq!(db.get(absent(among, mixed)).expect("gets"), None);
    }
}

fn bits(part: &PartitionStats) -> f64 {
    part.filter_bytes as f64 * 8.0 / (part.base_entries + part.overlay_entries) as f64
}

/// The bits per key of the first partition that begins in this twelfth, and of all others.
fn bits_of(db: &Db, twelfth: u64) -> (f64, f64) {
    let all = db.stats().expect("open").partitions;
    assert!(all.len() > 8, "{} partitions", all.len());
    let place = all.partition_point(|part| part.from < key(twelfth * KEYS / 12));
    let others = all.iter().enumerate().filter(|(other, _)| *other != place);
    let others: Vec<f64> = others.map(|(_, part)| bits(part)).collect();
    (bits(&all[place]), others.iter().sum::<f64>() / others.len() as f64)
}

fn memory(db: &Db) -> u64 {
    db.stats().expect("open").guard.memory_bytes
}

#[track_caller]
fn check(db: &Db, map: &Map) {
    check_answers(db, map);
    assert_eq!(db.verify().expect("verifies").damage, Vec::<String>::new());
}

#[track_caller]
fn check_answers(db: &Db, map: &Map) {
    for (key, value) in map {
        assert_eq!(db.get(key).expect("gets").as_deref(), Some(&value[..]));
    }
    let scanned = db.range(..).map(|entry| entry.expect("scans"));
    assert!(scanned.map(|(key, value)| (key, value.to_vec())).eq(map.clone()));
    for number in (0..KEYS).step_by(397) {
        let bounds = key(number)..absent(number + 1, 0);
        let found = db.range(bounds.clone()).rev().map(|entry| entry.expect("scans").0);
        assert!(found.eq(map.range(bounds).rev().map(|(key, _)| key.clone())), "{number}");
    }
}

#[test]
fn parts_that_are_asked_more_have_more_bits_and_all_fit() {
    let disk = Memory::new();
    let (db, map) = filled(&disk, options(HALF));
    let settled = memory(&db);
    assert!(settled <= HALF && settled > HALF * 7 / 10, "{settled} of {HALF}");
    let (least, most) = db.stats().expect("open").guard.part_bits.expect("they share memory");
    assert!(most - least < 1.5, "nobody has asked: {least} to {most}");
    ask(&db, 4);
    db.settle().expect("builds parts");
    let (hot, cold) = bits_of(&db, 4);
    assert!(hot > cold + 3.0, "{hot}, others {cold}");
    assert!(memory(&db) <= HALF, "{}", memory(&db));
    check(&db, &map);
    // What is asked moves, and the bits with it.
    (0..7).for_each(|_| ask(&db, 9));
    db.settle().expect("builds parts");
    let ((before, _), (now, _)) = (bits_of(&db, 4), bits_of(&db, 9));
    assert!(now > before + 3.0, "{now}, before {before}");
    assert!(!db.step().expect("steps"), "nothing is left to do");
    check(&db, &map);
    let bits = db.stats().expect("open").guard.part_bits;
    db.close().expect("closes");
    let db = open(&disk, options(HALF));
    let stats = db.stats().expect("open");
    let recovery = stats.filter_recovery;
    assert!(matches!(recovery, FilterRecovery::Image { .. }), "{recovery}");
    assert_eq!(stats.guard.part_bits, bits, "images have the bits");
    assert!((bits_of(&db, 9).0 - now).abs() < 0.5, "{now}, then {}", bits_of(&db, 9).0);
    check(&db, &map);
}

#[test]
fn memory_is_set_and_taken_back_at_an_opening() {
    let disk = Memory::new();
    let (db, map) = filled(&disk, options(0));
    let whole = memory(&db);
    assert_eq!(db.stats().expect("open").guard.part_bits, None);
    db.close().expect("closes");
    let db = open(&disk, options(whole / 2));
    let recovery = db.stats().expect("open").filter_recovery;
    assert!(matches!(recovery, FilterRecovery::Image { .. }), "as they were kept: {recovery}");
    assert_eq!(memory(&db), whole);
    db.settle().expect("builds parts");
    assert!(memory(&db) <= whole / 2, "{} of {whole}", memory(&db));
    check(&db, &map);
    db.close().expect("closes");
    // As much as it wants, of a store that has kept less.
    let db = open(&disk, Options::new().filter_memory(0).background(Background::Stepped));
    let recovery = db.stats().expect("open").filter_recovery.to_string();
    assert!(recovery.contains("other options"), "{recovery}");
    assert!(memory(&db) >= whole * 9 / 10, "{} of {whole}", memory(&db));
    check(&db, &map);
    drop(db);
    // Without images parts are built within the memory.
    let names = disk.list(Path::new("db")).expect("lists");
    for name in names.iter().filter(|name| name.ends_with(".filter")) {
        disk.remove(&Path::new("db").join(name)).expect("removes");
    }
    let db = open(&disk, options(whole / 2));
    assert!(db.stats().expect("open").guard.built_at_open);
    assert!(memory(&db) <= whole * 2 / 3, "{} of {whole}", memory(&db));
    db.settle().expect("builds parts");
    assert!(memory(&db) <= whole / 2, "{} of {whole}", memory(&db));
    check_answers(&db, &map);
}

#[test]
fn a_limit_beyond_what_the_filter_takes_changes_nothing() {
    let disk = Memory::new();
    let (db, map) = filled(&disk, options(0));
    let whole = memory(&db);
    db.close().expect("closes");
    let db = open(&disk, options(4 * whole));
    ask(&db, 3);
    assert!(!db.step().expect("steps"), "there is nothing to do");
    assert_eq!(memory(&db), whole);
    assert_eq!(db.stats().expect("open").guard.part_bits, Some((12.0, 12.0)));
    check(&db, &map);
}

// A part is built in one step and installed by the next. What comes between them must be in it.
#[test]
fn what_is_flushed_while_a_part_is_built_is_in_it() {
    let disk = Memory::new();
    let (db, mut map) = filled(&disk, options(0));
    let whole = memory(&db);
    db.close().expect("closes");
    let db = open(&disk, options(whole / 2));
    let mut rounds = 0;
    while db.step().expect("builds a part") {
        rounds += 1;
        // Too few for a merge at once; merges come as runs become many.
        let numbers = (0..60).map(|nth| (nth * 211 + rounds * 13) % (2 * KEYS));
        put(&db, &mut map, numbers, rounds as u8);
        if rounds % 8 == 0 {
            check(&db, &map);
        }
        assert!(rounds < 2000, "it does not settle");
        if rounds > 40 {
            break;
        }
    }
    assert!(rounds > 8, "{rounds} steps");
    db.settle().expect("goes on");
    check(&db, &map);
    assert!(db.stats().expect("open").guard.part_bits.expect("they share memory").0 < 8.0);
}

// Steps are taken in any order: a merge into the oldest run comes between building a part and
// installing it, too, which is given up then.
#[test]
fn answers_are_right_whatever_comes_between_two_steps() {
    for seed in 0..4u64 {
        let disk = Memory::new();
        let (mut db, mut map) = filled(&disk, options(HALF));
        let mut random = seed;
        let mut draw = |below: u64| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % below
        };
        for round in 0..60u64 {
            match draw(8) {
                0 => ask(&db, draw(12)),
                1 => {
                    let (from, to) = (draw(KEYS), draw(300));
                    db.delete_range(key(from), key(from + to)).expect("deletes");
                    map.retain(|one, _| *one < key(from) || *one >= key(from + to));
                }
                2 => {
                    for number in (0..50).map(|_| draw(KEYS)) {
                        db.delete(key(number)).expect("deletes");
                        map.remove(&key(number));
                    }
                    db.flush().expect("flushes");
                }
                3 if draw(4) == 0 => db.compact().expect("merges"),
                4 if draw(4) == 0 => {
                    db.close().expect("closes");
                    db = open(&disk, options([HALF, HALF / 2, 2 * HALF][draw(3) as usize]));
                }
                _ => {
                    let numbers: Vec<u64> = (0..200).map(|_| draw(KEYS + 500)).collect();
                    put(&db, &mut map, numbers.into_iter(), round as u8);
                }
            }
            for _ in 0..draw(6) {
                db.step_any(draw(16) as usize).expect("steps");
            }
            if round % 12 == 0 {
                check(&db, &map);
            }
        }
        db.settle().expect("settles");
        check(&db, &map);
    }
}

#[test]
fn threads_keep_to_the_memory_beside_writers() {
    let disk = Memory::new();
    let (db, _) = filled(&disk, options(0));
    db.close().expect("closes");
    let (threads, limit) = (Background::Threads(2), HALF * 3 / 2);
    let db = open(&disk, options(limit).write_buffer_bytes(64 << 10).background(threads));
    let written = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut map = Map::new();
            for number in (0..KEYS).flat_map(|number| [number, (number * 7919) % KEYS]) {
                let value = number.to_be_bytes().to_vec();
                db.put(key(number), &value).expect("puts");
                map.insert(key(number), value);
            }
            map
        });
        let asker = scope.spawn(|| ask(&db, 7));
        asker.join().expect("asks");
        writer.join().expect("writes")
    });
    db.settle().expect("merges");
    let started = Instant::now();
    while memory(&db) > limit {
        assert!(started.elapsed() < PATIENCE, "{} of {limit}", memory(&db));
        std::thread::sleep(Duration::from_millis(20));
    }
    check(&db, &written);
    db.close().expect("closes");
    check(&open(&disk, options(limit)), &written);
}

#[test]
fn each_key_space_has_a_limit_of_its_own() {
    let disk = Memory::new();
    let db = open(&disk, options(0));
    let other = db.keyspace("other", KeyspaceOptions::from(options(HALF))).expect("makes it");
    let mut map = Map::new();
    for number in 0..KEYS {
        other.put(key(number), [7; 20]).expect("puts");
        db.put(key(number), [8; 20]).expect("puts");
        map.insert(key(number), vec![8; 20]);
    }
    other.flush().expect("flushes");
    other.compact().expect("merges");
    db.flush().expect("flushes");
    db.compact().expect("merges");
    db.settle().expect("settles");
    let limited = other.stats().expect("open").guard;
    assert!(limited.memory_bytes <= HALF && limited.part_bits.is_some(), "{limited:?}");
    assert!(memory(&db) > HALF * 3 / 2);
    assert!(
        (0..KEYS).all(|number| other.get(key(number)).expect("gets").as_deref() == Some(&[7; 20]))
    );
    check(&db, &map);
    drop(other);
    db.close().expect("closes");
    let db = open(&disk, Options::new().background(Background::Stepped));
    let other = db.open_keyspace("other").expect("opens");
    assert!(other.stats().expect("open").guard.memory_bytes <= HALF, "the limit is kept");
}

#[test]
fn other_guards_have_no_such_limit() {
    let disk = Memory::new();
    let (db, map) = filled(&disk, options(1).guard(GuardKind::GrfSpline));
    assert_eq!(db.stats().expect("open").guard.part_bits, None);
    assert!(memory(&db) > HALF);
    check(&db, &map);
}
