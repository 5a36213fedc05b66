//! Edits in doubt: writing one has failed, and the manifest may have it all the same.
//! ```text
//! merge, bulk load   values -> tables -> edit: it fails     in the file, or not
//! reopened, dropped  the tree that knew of it is gone       but only when the edit surely is
//! killed then        the next process finds the tables      so their values have to be there
//! ```
//! Invariant: a value stays as long as the manifest may name a table that refers to it.

use std::ops::Range;

use trommel::storage::Memory;
use trommel::testing::Fault;
use trommel::{Db, Keyspace, KeyspaceOptions, Options};

use super::{bytes_of, open, open_with, options, value};

/// Merges move values soon.
fn moving() -> Options {
    options().value_file_bytes(16 << 10).value_garbage_share(0.05)
}

/// Gives a key space what a merge drops, and what it moves.
fn fill(space: &Keyspace) {
    (0..20u64).for_each(|n| space.put(n.to_be_bytes(), value(n, 5000)).expect("puts"));
    space.flush().expect("flushes");
    (0..20u64).step_by(2).for_each(|n| space.delete(n.to_be_bytes()).expect("deletes"));
    space.flush().expect("flushes");
}

/// It has what it was given, whatever has come of a call since.
fn is_filled(space: &Keyspace, what: &str) {
    for n in 0..20u64 {
        let expected = (n % 2 == 1).then(|| value(n, 5000));
        let found = space.get(n.to_be_bytes()).expect("its value is there");
        assert_eq!(found.as_deref(), expected.as_deref(), "{n}, {what}");
    }
}

const LOADED: Range<u64> = 100..110;

fn load(space: &Keyspace) -> trommel::Result<()> {
    space.ingest(LOADED.map(|n| (n.to_be_bytes(), value(n, 5000)))).map(drop)
}

/// What was loaded is there as a whole, or not at all.
fn is_loaded_or_not(space: &Keyspace) {
    let is_there = |n: &u64| space.get(n.to_be_bytes()).expect("its value is there").is_some();
    assert!([0, 10].contains(&LOADED.filter(is_there).count()));
}

/// A store whose next call may fail at any operation, and is killed then.
fn killed_after_each_fault(call: impl Fn(&Db) -> trommel::Result<()>, check: impl Fn(&Db)) {
    let mut failed = 0;
    for after in 0.. {
        let disk = Memory::new();
        let db = open_with(&disk, moving());
        fill(&db);
        disk.fail_at(after, Fault::Io);
        let called = call(&db);
        let has_struck = !disk.may_fail();
        disk.mend();
        failed += u32::from(called.is_err());
        let killed = open(&disk.kill());
        is_filled(&killed, &format!("after {after}"));
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
    killed_after_each_fault(|db| load(db), |db| is_loaded_or_not(db));
}

const NAME: &str = "space";

/// A key space whose next call may fail at any operation, and which nobody uses then.
fn let_go_after_each_fault(
    call: impl Fn(&Keyspace) -> trommel::Result<()>,
    check: impl Fn(&Db, &Memory, &str),
) {
    let mut failed = 0;
    for after in 0.. {
        let disk = Memory::new();
        let db = open(&disk);
        let space = db.keyspace(NAME, KeyspaceOptions::from(moving())).expect("made");
        fill(&space);
        disk.fail_at(after, Fault::Io);
        let called = call(&space);
        let has_struck = !disk.may_fail();
        disk.mend();
        failed += u32::from(called.is_err());
        drop(space);
        check(&db, &disk, &format!("after {after}"));
        if !has_struck {
            break;
        }
    }
    assert!(failed > 5, "{failed}");
}

/// Opens the key space anew, as another tree. Then the process is killed.
fn reopened_and_killed(db: &Db, disk: &Memory, what: &str) {
    // An option that is kept would be an edit, after which nothing is in doubt.
    let anew = KeyspaceOptions::new().size_ratio(5).for_now("size_ratio");
    let space = db.keyspace(NAME, anew).expect("opens anew");
    assert_eq!(space.stats().expect("tells").size_ratio, 5, "{what}: another tree");
    // Files go that nobody holds, and no edit is written: a merge that is due only begins.
    db.step().expect("goes on");
    let killed = open(&disk.kill());
    for space in [space, killed.open_keyspace(NAME).expect("is there")] {
        is_filled(&space, what);
        is_loaded_or_not(&space);
    }
}

// Only the tree that had failed knew of them, and it went.
#[test]
fn values_in_doubt_outlive_the_reopening_of_their_key_space() {
    let_go_after_each_fault(Keyspace::compact, reopened_and_killed);
    let_go_after_each_fault(load, reopened_and_killed);
}

// Its tables stayed until the store was opened again.
#[test]
fn a_key_space_that_is_dropped_amid_doubt_leaves_no_file() {
    let_go_after_each_fault(Keyspace::compact, |db, disk, what| {
        db.drop_keyspace(NAME).expect("drops");
        while db.step().expect("removes files") {}
        assert_eq!([".table", ".value"].map(|kind| bytes_of(disk, kind)), [0, 0], "{what}");
        assert_eq!(open(&disk.kill()).keyspaces().expect("tells"), ["default"], "{what}");
    });
}
