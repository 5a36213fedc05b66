//! Filter files beside closed databases: used if nothing changed, and never otherwise.

use std::fs;
use std::path::{Path, PathBuf};

use rocksdb::{SstFileWriter, TransactionDBOptions, WriteBatch};

use super::{Numbers, count, options, scan_anew, wait};
use crate::pause::{self, Point};
use crate::{Db, RocksDb, TransactionDb};

const KEYS: u64 = 3000;

fn key(at: u64) -> [u8; 8] {
    Numbers(at).next().to_be_bytes()
}

fn file(folder: &Path) -> PathBuf {
    folder.join("trommel-door-0.filter")
}

fn make(folder: &Path) {
    let db = Db::open(&options(), folder).expect("it opens");
    wait(&db);
    (0..KEYS).for_each(|at| db.put(key(at), b"value").expect("written"));
    // A sleeping door would leave no file.
    wait(&db);
}

/// Checks that all keys are found. Returns whether the filter file was used.
fn check(folder: &Path, keys: u64) -> bool {
    let db = Db::open(&options(), folder).expect("it opens");
    let state = db.door_state();
    let is_taken = state.is_open && state.scans == 0;
    for round in 0..2 {
        for at in 0..keys {
            assert!(db.get(key(at)).expect("read").is_some(), "{round}: {at}");
            assert_eq!(count(&db, &key(at), &[&key(at)[..], b"\0"].concat()), 1);
        }
        wait(&db);
    }
    let before = db.door_state().denied;
    (keys..keys + 1000).for_each(|at| assert_eq!(db.get(key(at)).expect("read"), None));
    assert!(db.door_state().denied > before + 900);
    is_taken
}

#[test]
fn a_filter_is_taken_where_nothing_changed() {
    let folder = tempfile::tempdir().expect("a folder");
    make(folder.path());
    for _ in 0..3 {
        assert!(file(folder.path()).exists());
        assert!(check(folder.path(), KEYS));
    }
}

#[test]
fn damaged_filters_are_made_anew() {
    let folder = tempfile::tempdir().expect("a folder");
    make(folder.path());
    let whole = fs::read(file(folder.path())).expect("read");
    for round in 0..12 {
        let mut bytes = fs::read(file(folder.path())).expect("read");
        let at = (Numbers(round).next() % bytes.len() as u64) as usize;
        match round % 3 {
            0 => bytes[at] ^= 1 << (round % 8),
            1 => bytes.truncate(at),
            _ => bytes.extend(b"more"),
        }
        fs::write(file(folder.path()), bytes).expect("written");
        assert!(!check(folder.path(), KEYS), "round {round}");
    }
    // The file is intact, but was written for another state of the folder.
    fs::write(file(folder.path()), whole).expect("written");
    assert!(!check(folder.path(), KEYS));
}

/// RocksDB's lock is free before the opening has it, and after the closing has let go of it.
#[test]
fn what_others_wrote_beside_an_opening_or_a_closing_is_found() {
    for point in [Point::Read, Point::Closed] {
        let folder = tempfile::tempdir().expect("a folder");
        make(folder.path());
        let path = folder.path().to_path_buf();
        pause::then(point, move || {
            let plain = RocksDb::open(&options(), path).expect("it opens");
            plain.put(key(KEYS), b"value").expect("written");
        });
        drop(Db::open(&options(), folder.path()).expect("it opens"));
        check(folder.path(), KEYS + 1);
    }
}

#[test]
fn what_others_wrote_meanwhile_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    make(folder.path());
    {
        let plain = RocksDb::open(&options(), folder.path()).expect("it opens");
        plain.put(key(KEYS), b"value").expect("written");
    }
    assert!(!check(folder.path(), KEYS + 1));
    {
        // The keys of this file get no sequence number of their own.
        let plain = RocksDb::open(&options(), folder.path()).expect("it opens");
        let options = options();
        let mut writer = SstFileWriter::create(&options);
        let path = folder.path().join("other.sst");
        writer.open(&path).expect("it opens");
        writer.put(key(KEYS + 1), b"value").expect("first");
        writer.finish().expect("written");
        plain.ingest_external_file(vec![path]).expect("taken");
    }
    assert!(!check(folder.path(), KEYS + 2));
    {
        let plain = RocksDb::open(&options(), folder.path()).expect("it opens");
        plain.flush().expect("flushed");
    }
    check(folder.path(), KEYS + 2);
}

#[test]
fn a_copy_of_the_folder_is_taken_as_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let copy = tempfile::tempdir().expect("a folder");
    make(folder.path());
    for entry in fs::read_dir(folder.path()).expect("a folder") {
        let entry = entry.expect("a file");
        fs::copy(entry.path(), copy.path().join(entry.file_name())).expect("copied");
    }
    assert!(check(copy.path(), KEYS));
    let checkpoint = copy.path().join("checkpoint");
    {
        let db = Db::open(&options(), folder.path()).expect("it opens");
        db.create_checkpoint(&checkpoint).expect("made");
    }
    assert!(!check(&checkpoint, KEYS));
}

/// Pipelined writes log a batch before RocksDB finds that one of its families was dropped.
#[test]
fn a_write_that_failed_and_is_in_the_log_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut options = options();
    options.set_enable_pipelined_write(true);
    {
        let db = Db::open_cf(&options, folder.path(), ["other"]).expect("it opens");
        (0..KEYS).for_each(|at| db.put(key(at), b"value").expect("written"));
        wait(&db);
        let mut batch = WriteBatch::default();
        batch.put(b"in the log", b"value");
        batch.put_cf(&db.cf_handle("other").expect("it was made"), b"key", b"value");
        db.drop_cf("other").expect("dropped");
        assert!(db.write(batch).is_err());
        scan_anew(&db);
        assert_eq!(db.get(b"in the log").expect("read"), None);
    }
    let db = Db::open(&options, folder.path()).expect("it opens");
    assert!(db.inner().get(b"in the log").expect("read").is_some(), "the log was read");
    assert!(db.get(b"in the log").expect("read").is_some());
}

/// With in-place updates of memtables RocksDB supports no snapshots, so no scan has a moment.
#[test]
fn a_database_without_snapshots_is_passed_on() {
    let [one, other] = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    let mut options = options();
    options.set_inplace_update_support(true);
    options.set_allow_concurrent_memtable_write(false);
    let db = Db::open(&options, one.path()).expect("it opens");
    let locks = TransactionDBOptions::default();
    let locking = TransactionDb::open(&options, &locks, other.path()).expect("it opens");
    for at in 0..100 {
        db.put(key(at), b"value").expect("written");
        locking.put(key(at), b"value").expect("written");
    }
    wait(&db);
    wait(&locking);
    assert_eq!(db.snapshot().sequence_number(), 0);
    for at in 0..200 {
        assert_eq!(db.get(key(at)).expect("read").is_some(), at < 100);
        assert_eq!(locking.get(key(at)).expect("read").is_some(), at < 100);
    }
    assert!(!db.door_state().is_able && !locking.door_state().is_able);
}
