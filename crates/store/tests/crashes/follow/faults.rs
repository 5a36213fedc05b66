//! Reads of a follower that fail, one after the other.
//! ```text
//! first look    refused, or right          later looks    as it was, or further; then it goes on
//! ```
//! Invariant: what it shows is what the store was at its number.

use trommel::storage::Memory;
use trommel::testing::Fault;
use trommel::{Db, Error, FollowOptions, Follower};

use super::{catch_up, environment, follow, follow_write, open_with, options, owned, text};

/// Rows that are written in rounds, so that a number tells which of them are there.
const KEYS: u64 = 30;
const ROUNDS: u64 = 4;

fn key_text(key: u64) -> String {
    format!("{key:02}")
}

/// Every third one is apart.
fn row(key: u64, round: u64) -> String {
    format!("{round}").repeat(if key.is_multiple_of(3) { 600 } else { 20 })
}

fn write_round(db: &Db, round: u64) {
    for key in 0..KEYS {
        db.put(key_text(key), row(key, round)).expect("puts");
    }
}

/// Rounds that are flushed and merged, and one that is in the log alone.
fn write_later_rounds(db: &Db) {
    for round in 2..ROUNDS {
        write_round(db, round);
        db.flush().expect("flushes");
    }
    db.compact().expect("merges");
    while db.step().expect("removes files") {}
    write_round(db, ROUNDS);
    follow_write(db);
}

/// What a follower shows is what the store was at its number.
fn shows_its_number(follower: &Follower, what: &str) {
    let last = follower.sequence();
    let mut rows = Vec::new();
    for key in 0..KEYS {
        let round = ((last + KEYS - key - 1) / KEYS).min(ROUNDS);
        let expected = (round > 0).then(|| row(key, round));
        assert_eq!(text(follower, &key_text(key)), expected, "{what}: {key} at {last}");
        rows.extend(expected.map(|value| (key_text(key).into_bytes(), value.into_bytes())));
    }
    let scanned = follower.range(..).expect("open").map(owned);
    let scanned: Vec<_> = scanned.filter(|(key, _)| *key != b"~").collect();
    assert!(scanned == rows, "{what}: {} rows at {last}, not {}", scanned.len(), rows.len());
}

fn is_the_fault(error: &Error) -> bool {
    error.to_string().contains("input/output error")
}

/// Far more operations than a look at so small a store takes.
const OPERATIONS_MAX: u64 = 2000;

#[test]
fn a_follower_whose_first_reads_fail_is_refused_or_right() {
    let disk = Memory::new();
    let db = open_with(&disk, options().value_threshold(256));
    write_round(&db, 1);
    db.flush().expect("flushes");
    write_later_rounds(&db);
    let mut failed = 0;
    for n in 0..OPERATIONS_MAX {
        let what = format!("operation {n}");
        disk.fail_at(n, Fault::Io);
        let followed = Db::follow_with("db", FollowOptions::default(), environment(&disk));
        let has_fired = !disk.may_fail();
        disk.mend();
        match followed {
            Ok(follower) => {
                shows_its_number(&follower, &what);
                catch_up(&follower);
                assert!(follower.sequence() >= ROUNDS * KEYS, "{what}");
                shows_its_number(&follower, &what);
            }
            Err(error) => {
                assert!(has_fired && is_the_fault(&error), "{what}: {error}");
                failed += 1;
            }
        }
        let again = follow(&disk);
        assert!(again.sequence() >= ROUNDS * KEYS, "{what}, again");
        shows_its_number(&again, &format!("{what}, again"));
        if !has_fired {
            assert!(failed > 10, "{failed} have failed");
            return;
        }
    }
    panic!("a look has no end");
}

#[test]
fn a_follower_whose_later_reads_fail_stays_right_and_goes_on() {
    let mut failed = 0;
    for n in 0..OPERATIONS_MAX {
        let what = format!("operation {n}");
        let disk = Memory::new();
        let db = open_with(&disk, options().value_threshold(256));
        write_round(&db, 1);
        db.flush().expect("flushes");
        let follower = follow(&disk);
        let before = follower.sequence();
        assert!(before > 0, "{what}: nothing of the flush is seen");
        // What it has read stays open.
        shows_its_number(&follower, &what);
        write_later_rounds(&db);
        disk.fail_at(n, Fault::Io);
        let caught_up = follower.catch_up();
        let has_fired = !disk.may_fail();
        disk.mend();
        if let Err(error) = caught_up {
            assert!(has_fired && is_the_fault(&error), "{what}: {error}");
            failed += 1;
        }
        assert!(follower.sequence() >= before, "{what}: it went back");
        shows_its_number(&follower, &what);
        catch_up(&follower);
        for follower in [follower, follow(&disk)] {
            assert!(follower.sequence() >= ROUNDS * KEYS, "{what}, again");
            shows_its_number(&follower, &format!("{what}, again"));
        }
        if !has_fired {
            assert!(failed > 10, "{failed} have failed");
            return;
        }
    }
    panic!("a look has no end");
}
