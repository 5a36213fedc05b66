//! Keys that are text: the filter learns a model of them when the last level is written, and ranges
//! are told apart as numbers are.
//! ```text
//! user00042731time00815472     60 % of the rows in the last level, the others in newer runs
//! ```
//! Invariant: every reader sees what a sorted map has, whatever was learnt.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use trommel::Environment;
use trommel::storage::{Memory, Storage};
use trommel::{Background, Db, GuardKind, Options, Policy, SyncPolicy};

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

const ROWS: u64 = 40_000;

fn options() -> Options {
    Options::new()
        .guard(GuardKind::Grf)
        .size_ratio(3)
        .policy(Policy::lazy_leveling())
        .bits_per_key(16.0)
        .write_buffer_bytes(512 << 10)
        .sync(SyncPolicy::Never)
        .background(Background::Stepped)
}

fn open(disk: &Memory, options: Options) -> Db {
    let environment = Environment::new().storage(Arc::new(disk.clone()));
    Db::open_with("db", options, environment).expect("opens")
}

fn mixed(number: u64) -> u64 {
    let mut x = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

/// The `nth` row: of eight rows, each has another user's turn.
fn row(nth: u64) -> Vec<u8> {
    let (user, time) = (mixed(nth % (ROWS / 8)) % 100_000_000, mixed(nth + ROWS) % 100_000_000);
    format!("user{user:08}time{time:08}").into_bytes()
}

fn put(db: &Db, rows: &mut Rows, range: std::ops::Range<u64>) {
    for nth in range {
        let (key, value) = (row(nth), nth.to_le_bytes().to_vec());
        db.put(&key, &value).expect("puts");
        rows.insert(key, value);
    }
    db.flush().expect("flushes");
    db.settle().expect("settles");
}

/// A last level, and newer runs above it.
fn filled(options: Options) -> (Memory, Db, Rows) {
    let (disk, mut rows) = (Memory::new(), Rows::new());
    let db = open(&disk, options);
    put(&db, &mut rows, 0..ROWS * 7 / 10);
    db.compact().expect("merges");
    for part in 0..3 {
        let from = ROWS * (7 + part) / 10;
        put(&db, &mut rows, from..from + ROWS / 10);
    }
    (disk, db, rows)
}

fn check(db: &Db, rows: &Rows) {
    for (key, value) in rows.iter().step_by(7) {
        assert_eq!(db.get(key).expect("reads").as_deref(), Some(&value[..]), "{key:?}");
    }
    let found: Rows = db
        .range(..)
        .map(|entry| entry.expect("reads"))
        .map(|(key, value)| (key.to_vec(), value.to_vec()))
        .collect();
    assert_eq!(found.len(), rows.len());
    assert!(found.iter().eq(rows), "a scan gives all rows in order");
    for nth in (0..ROWS).step_by(101) {
        let user = row(nth)[..12].to_vec();
        let end = [&user[..], &[0xff]].concat();
        let found = db.range(&user[..]..&end[..]).map(|entry| entry.expect("reads").0.to_vec());
        let expected = rows.range(user.clone()..end.clone()).map(|(key, _)| key.clone());
        assert!(found.eq(expected), "rows of {}", user.escape_ascii());
    }
    let keys: Vec<Vec<u8>> = (0..512).map(|nth| row(mixed(nth) % (2 * ROWS))).collect();
    for (key, found) in keys.iter().zip(db.multi_get(&keys)) {
        assert_eq!(found.expect("reads").as_deref(), rows.get(key).map(Vec::as_slice));
    }
}

/// Of so many absent users, for how many a run was searched.
fn searched_users(db: &Db, users: u64) -> u64 {
    let before = db.stats().expect("open").closed_seek;
    for nth in 0..users {
        let user = format!("user{:08}", mixed(nth + 9 * ROWS) % 100_000_000).into_bytes();
        let end = [&user[..], &[0xff]].concat();
        assert!(!db.may_contain_range(&user[..]..&end[..]).expect("open") || nth < users);
        assert_eq!(db.range(&user[..]..&end[..]).count(), 0, "an absent user");
    }
    db.stats().expect("open").closed_seek.since(&before).false_positives
}

/// Whoever asks for single keys, however often, does not make the filter blind for ranges of rows.
#[test]
fn a_flood_of_points_leaves_ranges_half_of_what_they_had() {
    let (_disk, db, rows) = filled(options().bits_per_key(12.0));
    db.compact().expect("merges");
    let before = searched_users(&db, 4000);
    for round in 0..3 {
        for nth in 0..400_000 {
            assert!(db.get(row(ROWS + 400_000 * round + nth)).expect("reads").is_none());
        }
        db.compact().expect("merges");
    }
    let after = searched_users(&db, 4000);
    assert!(after <= 2 * before + 40, "{after} of 4,000 needless searches, {before} before");
    check(&db, &rows);
}

#[test]
fn rows_of_users_are_told_apart() {
    let (disk, db, rows) = filled(options());
    check(&db, &rows);
    // Without a model every absent user costs a search of each run.
    let searched = searched_users(&db, 2000);
    assert!(searched < 100, "{searched} runs were searched for 2000 absent users");
    db.close().expect("closes");
    let db = open(&disk, options());
    check(&db, &rows);
    assert_eq!(searched_users(&db, 2000), searched, "the image is the filter");
}

#[test]
fn a_filter_that_is_read_from_the_runs_learns_as_well() {
    let (disk, db, rows) = filled(options());
    db.close().expect("closes");
    let names = disk.list(Path::new("db")).expect("lists");
    let images: Vec<_> = names.iter().filter(|name| name.ends_with(".filter")).collect();
    assert!(!images.is_empty(), "{names:?}");
    for name in images {
        disk.remove(&Path::new("db").join(name)).expect("removes");
    }
    let db = open(&disk, options());
    check(&db, &rows);
    assert!(searched_users(&db, 2000) < 100);
}

#[test]
fn other_keys_than_those_learnt_are_found() {
    let (_, db, mut rows) = filled(options());
    for nth in 0..3000 {
        let key = match nth % 3 {
            0 => mixed(nth).to_be_bytes().to_vec(),
            1 => format!("order/{nth}/{}", mixed(nth) % 1000).into_bytes(),
            _ => [&row(nth)[..], &[0; 3], &[0xff; 80], &[nth as u8]].concat(),
        };
        db.put(&key, b"other").expect("puts");
        rows.insert(key, b"other".to_vec());
    }
    db.flush().expect("flushes");
    db.settle().expect("settles");
    check(&db, &rows);
    db.compact().expect("merges");
    check(&db, &rows);
}

#[test]
fn bits_go_where_questions_are() {
    let needless = |learn_questions: bool| {
        let options = options().learn_questions(learn_questions).bits_per_key(10.0);
        let (_, db, mut rows) = filled(options);
        let ask = |from: u64| {
            let before = db.stats().expect("open").point;
            for nth in from..from + 150_000 {
                assert!(db.get(row(nth + 3 * ROWS)).expect("reads").is_none());
            }
            db.stats().expect("open").point.since(&before).false_positives
        };
        ask(0);
        put(&db, &mut rows, ROWS..ROWS + 2000);
        db.compact().expect("merges");
        let needless = ask(500_000);
        check(&db, &rows);
        needless
    };
    let (even, learnt) = (needless(false), needless(true));
    assert!(learnt < even / 2, "{learnt} runs were searched, {even} without learning");
}
