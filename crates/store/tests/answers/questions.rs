//! A store that is asked for what lies close behind its keys learns it, and keeps what it has
//! learnt.
//! ```text
//! questions that find nothing -> merge into the last level -> fewer runs are searched in vain
//!                                  -> closed, opened, merged: as few
//! ```

use std::path::Path;
use std::sync::Arc;

use trommel::Environment;
use trommel::storage::Memory;
use trommel::{Background, Db, Options, SyncPolicy};

const ROWS: u64 = 120_000;
const ASKED: u64 = 30_000;

fn options() -> Options {
    Options::new()
        .write_buffer_bytes(4 << 20)
        .sync(SyncPolicy::Never)
        .background(Background::Stepped)
        .bits_per_key(12.0)
}

fn open(disk: &Memory, options: &Options) -> Db {
    let environment = Environment::new().storage(Arc::new(disk.clone()));
    Db::open_with(Path::new("db"), options.clone(), environment).expect("opens")
}

fn mixed(number: u64) -> u64 {
    let mixed = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

/// A key, without its last bits.
fn row(number: u64) -> u64 {
    mixed(number + 1) >> 20 << 20
}

fn behind(number: u64, seed: u64) -> [u8; 8] {
    (row(number % ROWS) + 1 + mixed(number ^ seed << 32) % (1 << 19)).to_be_bytes()
}

fn filled(disk: &Memory, options: &Options) -> Db {
    let db = open(disk, options);
    for number in 0..ROWS {
        db.put(row(number).to_be_bytes(), number.to_be_bytes()).expect("puts");
    }
    db.compact().expect("merges");
    db
}

fn check(db: &Db) {
    for number in 0..ROWS {
        let found = db.get(row(number).to_be_bytes()).expect("reads").expect("is there");
        assert_eq!(*found, number.to_be_bytes());
    }
}

/// Needless runs of a question.
fn ask(db: &Db, seed: u64, get: impl Fn(&Db, &[u64])) -> f64 {
    let before = db.stats().expect("open").point;
    let numbers: Vec<u64> = (0..ASKED).map(|number| number * 7 + seed).collect();
    numbers.chunks(100).for_each(|numbers| get(db, numbers));
    let stats = db.stats().expect("open").point.since(&before);
    stats.false_positives as f64 / stats.queries as f64
}

fn one_by_one(seed: u64) -> impl Fn(&Db, &[u64]) {
    move |db, numbers| {
        let nothing =
            |number: &u64| assert!(db.get(behind(*number, seed)).expect("reads").is_none());
        numbers.iter().for_each(nothing);
    }
}

fn together(seed: u64) -> impl Fn(&Db, &[u64]) {
    move |db, numbers| {
        let keys: Vec<[u8; 8]> = numbers.iter().map(|number| behind(*number, seed)).collect();
        assert!(db.multi_get(&keys).into_iter().all(|found| found.expect("reads").is_none()));
    }
}

/// One row more, and everything is merged.
fn rebuild(db: &Db) {
    db.put(row(0).to_be_bytes(), 0u64.to_be_bytes()).expect("puts");
    db.compact().expect("merges");
}

#[test]
fn what_comes_close_behind_keys_is_learnt_at_once_and_kept() {
    for is_many in [false, true] {
        let disk = Memory::new();
        let db = filled(&disk, &options());
        let ask = |db: &Db, seed| match is_many {
            true => ask(db, seed, together(seed)),
            false => ask(db, seed, one_by_one(seed)),
        };
        let before = ask(&db, 1);
        assert!(before > 0.99, "{before}");
        rebuild(&db);
        let learnt = ask(&db, 2);
        assert!(learnt < 0.06, "{learnt}");
        check(&db);
        db.close().expect("closes");
        // Nobody asks before the next merge.
        let db = open(&disk, &options());
        rebuild(&db);
        let kept = ask(&db, 3);
        assert!(kept < 0.1, "{kept}");
        check(&db);
    }
}

#[test] // What came since the last merge was lost.
fn what_was_asked_is_kept_by_a_store_that_is_closed() {
    let disk = Memory::new();
    let db = filled(&disk, &options());
    assert!(ask(&db, 1, one_by_one(1)) > 0.99, "nothing is learnt yet");
    db.put(row(0).to_be_bytes(), 0u64.to_be_bytes()).expect("puts");
    db.flush().expect("flushes");
    db.close().expect("closes");
    // Images that are written again keep all of it.
    for _ in 0..5 {
        let db = open(&disk, &options());
        db.put(row(0).to_be_bytes(), 0u64.to_be_bytes()).expect("puts");
        db.flush().expect("flushes");
        db.close().expect("closes");
    }
    let db = open(&disk, &options());
    rebuild(&db);
    let learnt = ask(&db, 2, one_by_one(2));
    assert!(learnt < 0.1, "{learnt}");
    check(&db);
}

#[test]
fn nothing_is_learnt_where_that_is_not_wanted() {
    let disk = Memory::new();
    let db = filled(&disk, &options().learn_questions(false));
    for seed in 1..3 {
        let needless = ask(&db, seed, one_by_one(seed));
        assert!(needless > 0.99, "{needless}");
        rebuild(&db);
    }
    check(&db);
}

#[test]
fn the_same_questions_make_the_same_filter() {
    let images = [1, 2].map(|_| {
        let disk = Memory::new();
        let db = filled(&disk, &options());
        ask(&db, 1, one_by_one(1));
        for number in 0..2000 {
            let key = behind(number, 5);
            assert!(db.range(&key[..]..=&key[..]).next().is_none());
        }
        rebuild(&db);
        db.close().expect("closes");
        let mut names = trommel::storage::Storage::list(&disk, Path::new("db")).expect("lists");
        names.retain(|name| name.ends_with(".filter"));
        assert!(!names.is_empty());
        names.iter().map(|name| disk.file(Path::new("db").join(name))).collect::<Vec<_>>()
    });
    assert!(images[0] == images[1]);
}
