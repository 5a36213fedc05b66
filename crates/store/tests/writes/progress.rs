//! Long calls tell how far they have come, and end when their caller says so.

use std::ops::ControlFlow;
use std::sync::Arc;

use trommel::Environment;
use trommel::storage::Memory;
use trommel::tools::{OnProgress, Progress, repair_with_progress, verify_files_with_progress};
use trommel::{Background, Db, Error, Options, Result};

const DIR: &str = "db";

fn environment(disk: &Memory) -> Environment {
    Environment::new().storage(Arc::new(disk.clone()))
}

/// A store of some tables.
fn store(disk: &Memory) -> Db {
    let options = Options::new().background(Background::Stepped).table_bytes(20 << 10);
    let db = Db::open_with(DIR, options, environment(disk)).expect("opens");
    (0..10_000).for_each(|i| db.put(format!("key{i:05}"), [7; 20]).expect("puts"));
    db.compact().expect("merges");
    db
}

/// What a call told.
fn heard<T>(call: impl FnOnce(&mut OnProgress<'_>) -> Result<T>) -> Vec<Progress> {
    let mut heard = Vec::new();
    let called = call(&mut |progress| {
        heard.push(progress);
        ControlFlow::Continue(())
    });
    called.expect("nobody stops it");
    heard
}

/// Asserts that a call comes from nothing to all, and ends where its listener wants it to.
fn check<T>(call: impl Fn(&mut OnProgress<'_>) -> Result<T>) -> u64 {
    let reports = heard(&call);
    let (first, last) = (reports[0], reports[reports.len() - 1]);
    assert_eq!((first.done, last.done), (0, last.total));
    assert!(reports.len() > 3 && reports.is_sorted_by_key(|progress| progress.done), "{reports:?}");
    for place in 0..reports.len() {
        let mut left = place;
        let stopped = call(&mut |_| match left.checked_sub(1) {
            None => ControlFlow::Break(()),
            Some(less) => {
                left = less;
                ControlFlow::Continue(())
            }
        });
        assert!(matches!(stopped, Err(Error::Cancelled)), "it did not end at {place}");
    }
    last.total
}

#[test]
fn verifying_tells_its_entries_and_can_be_stopped() {
    let disk = Memory::new();
    let db = store(&disk);
    let entries = check(|listener| db.verify_with_progress(listener));
    assert_eq!(entries, 10_000);
    db.put("another", "value").expect("it goes on");
    assert!(db.verify().expect("verifies").damage.is_empty());
}

#[test]
fn tools_tell_their_tables_and_leave_the_store_alone_when_stopped() {
    let disk = Memory::new();
    store(&disk).close().expect("closes");
    let tables = check(|listener| verify_files_with_progress(DIR, &environment(&disk), listener));
    assert!(tables > 3, "{tables}");
    let repair =
        |listener: &mut OnProgress<'_>| repair_with_progress(DIR, &environment(&disk), listener);
    assert_eq!(check(repair), tables);
    let db = Db::open_with(DIR, Options::default(), environment(&disk)).expect("opens");
    assert_eq!(db.iter().filter(Result::is_ok).count(), 10_000);
}

#[test]
fn a_checkpoint_tells_its_tables_and_leaves_nothing_when_stopped() {
    let disk = Memory::new();
    let db = store(&disk);
    let copied = std::cell::Cell::new(0);
    let tables = check(|listener| {
        let folder = format!("copy{}", copied.get());
        let copy = db.checkpoint_with_progress(&folder, listener);
        copied.set(copied.get() + u32::from(copy.is_ok()));
        copy
    });
    assert!(tables > 3, "{tables}");
    assert_eq!(copied.get(), 1, "the others were stopped, and their folder was taken again");
    let copy = Db::open_with("copy0", Options::default(), environment(&disk)).expect("opens");
    assert_eq!(copy.iter().count(), 10_000);
}

/// A store of some runs that are not due to be merged.
fn store_of_runs(background: Background) -> Db {
    let options = Options::new().background(background).merge_piece_bytes(20 << 10);
    let db = Db::open_with(DIR, options, environment(&Memory::new())).expect("opens");
    for run in 0..4 {
        (run..40_000).step_by(4).for_each(|i| db.put(format!("key{i:05}"), [7; 20]).expect("puts"));
        db.flush().expect("flushes");
    }
    db
}

fn runs(db: &Db) -> usize {
    db.stats().expect("open").levels.iter().map(|level| level.runs.len()).sum()
}

#[test]
fn merging_all_tells_its_entries_and_can_be_stopped() {
    for background in [Background::Stepped, Background::Threads(2)] {
        let db = store_of_runs(background);
        let mut first = true;
        let stopped = db.compact_with_progress(&mut |_| match std::mem::take(&mut first) {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        });
        assert_eq!(db.iter().count(), 40_000);
        // Threads may have been faster, and merge on their own what is due.
        if background == Background::Stepped {
            assert!(matches!(stopped, Err(Error::Cancelled)), "{stopped:?}");
            assert_eq!(runs(&db), 4, "as before");
        } else {
            assert!(matches!(stopped, Ok(()) | Err(Error::Cancelled)), "{stopped:?}");
        }
        let reports = heard(|listener| db.compact_with_progress(listener));
        let (first, last) = (reports[0], reports[reports.len() - 1]);
        assert_eq!((first.done, last.done, last.total), (0, 40_000, 40_000));
        assert!(reports.is_sorted_by_key(|progress| progress.done));
        assert!(background != Background::Stepped || reports.len() > 5, "{reports:?}");
        assert_eq!((runs(&db), db.iter().count()), (1, 40_000));
        db.settle().expect("nothing is left to do");
    }
}

// Its documentation said that the runs were as before.
#[test]
fn a_stop_between_partitions_leaves_the_rest_of_them_to_background_work() {
    let options = Options::new().background(Background::Stepped).compression(false);
    let options = options.partition_bytes(16 << 10).size_ratio(60);
    let db = Db::open_with(DIR, options, environment(&Memory::new())).expect("opens");
    let put = |i: usize| db.put(format!("key{i:05}"), [7; 20]).expect("puts");
    (0..4000).for_each(put);
    db.compact().expect("merges");
    for run in 0..3 {
        (run..4000).step_by(3).for_each(put);
        db.flush().expect("flushes");
    }
    let is_half_done = || db.stats().expect("open").under_way.is_some();
    let stopped = db.compact_with_progress(&mut |_| match is_half_done() {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    });
    assert!(matches!(stopped, Err(Error::Cancelled)), "{stopped:?}");
    assert!(is_half_done() && runs(&db) == 4, "{} runs", runs(&db));
    db.settle().expect("the rest is merged");
    assert!(!is_half_done() && runs(&db) == 1, "{} runs", runs(&db));
    assert_eq!(db.iter().count(), 4000);
}

#[test]
fn merging_nothing_is_done_at_once() {
    let db = Db::open_with(DIR, Options::default(), environment(&Memory::new())).expect("opens");
    let reports = heard(|listener| db.compact_with_progress(listener));
    assert!(reports.iter().all(|progress| *progress == reports[0]) && reports[0].total == 0);
}

#[test] // It said that it was stopped, and all was merged.
fn a_stop_at_the_end_comes_too_late() {
    let db = store_of_runs(Background::Stepped);
    let merged = db.compact_with_progress(&mut |progress| match progress.done == progress.total {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    });
    assert!(merged.is_ok() && runs(&db) == 1, "{merged:?}, {} runs", runs(&db));
}

#[test] // The other one returned Ok, and nothing was merged.
fn a_stopped_call_does_not_stop_another_ones_merge() {
    let db = store_of_runs(Background::Threads(1));
    std::thread::scope(|scope| {
        let other = scope.spawn(|| db.compact());
        for _ in 0..20 {
            let mut calls = 0;
            let _ = db.compact_with_progress(&mut |_| {
                calls += 1;
                if calls > 1 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
        }
        other.join().expect("no panic").expect("merges");
    });
    assert_eq!((runs(&db), db.iter().count()), (1, 40_000));
}
