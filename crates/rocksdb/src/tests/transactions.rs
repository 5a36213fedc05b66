//! Databases with transactions: committed keys are found, others are denied.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rocksdb::{Error, ErrorKind, TransactionDBOptions, WriteBatchWithTransaction};

use super::{FAMILIES, LONG, Numbers, count, families, options, wait};
use crate::pause::{self, Point};
use crate::{
    Base, DoorDb, OptimisticTransactionDb, RocksOptimisticDb, RocksTransactionDb, Transaction,
    TransactionDb,
};

/// The two kinds of databases that have transactions.
trait Kind: Base<Batch = WriteBatchWithTransaction<true>> {
    fn open_in(folder: &Path) -> DoorDb<Self>;
    fn begin(db: &DoorDb<Self>) -> Transaction<'_, Self>;
}

impl Kind for RocksOptimisticDb {
    fn open_in(folder: &Path) -> DoorDb<Self> {
        let opened = OptimisticTransactionDb::open_cf_descriptors(&options(), folder, families());
        opened.expect("it opens")
    }

    fn begin(db: &DoorDb<Self>) -> Transaction<'_, Self> {
        db.transaction()
    }
}

impl Kind for RocksTransactionDb {
    fn open_in(folder: &Path) -> DoorDb<Self> {
        let mut locks = TransactionDBOptions::default();
        locks.set_default_lock_timeout(1);
        locks.set_txn_lock_timeout(1);
        let opened = TransactionDb::open_cf_descriptors(&options(), &locks, folder, families());
        opened.expect("it opens")
    }

    fn begin(db: &DoorDb<Self>) -> Transaction<'_, Self> {
        db.transaction()
    }
}

/// Whether the error is a conflict with another write.
fn is_conflict(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Busy | ErrorKind::TimedOut | ErrorKind::TryAgain)
}

/// The committed entries of both families.
type Rows = [BTreeMap<Vec<u8>, Vec<u8>>; 2];

/// A database, and a map of what it should contain.
struct Both<'a, B: Kind> {
    db: &'a DoorDb<B>,
    rows: Rows,
    numbers: Numbers,
}

impl<B: Kind> Both<'_, B> {
    fn key(&mut self) -> Vec<u8> {
        let mixed = Numbers(self.numbers.below(4000)).next();
        format!("user{:04}time{:04}", mixed % 300, mixed % 9973).into_bytes()
    }

    /// Runs a transaction with some writes, which ends in one way or another.
    fn transact(&mut self) {
        let mut rows = self.rows.clone();
        let transaction = B::begin(self.db);
        let mut saved = None;
        for _ in 0..=self.numbers.below(12) {
            let (place, key) = (self.numbers.below(2) as usize, self.key());
            let family = self.db.cf_handle(FAMILIES[place]).expect("it was opened");
            match self.numbers.below(10) {
                0..5 => {
                    transaction.put_cf(&family, &key, b"put").expect("written");
                    rows[place].insert(key.clone(), b"put".to_vec());
                }
                5 => {
                    transaction.merge_cf(&family, &key, b"+").expect("written");
                    rows[place].entry(key.clone()).or_default().extend(b"+");
                }
                6 => {
                    transaction.delete_cf(&family, &key).expect("written");
                    rows[place].remove(&key);
                }
                7 => {
                    transaction.set_savepoint();
                    saved = Some(rows.clone());
                }
                8 => {
                    if let Some(before) = saved.take() {
                        transaction.rollback_to_savepoint().expect("it was saved");
                        rows = before;
                    }
                }
                _ => {
                    let found = transaction.get_for_update_cf(&family, &key, true);
                    assert_eq!(found.expect("read").as_ref(), rows[place].get(&key));
                }
            }
            let found = transaction.get_cf(&family, &key).expect("read");
            assert_eq!(found.as_ref(), rows[place].get(&key), "its own writes");
        }
        match self.numbers.below(8) {
            0 => transaction.rollback().expect("rolled back"),
            1 => drop(transaction),
            _ => {
                transaction.commit().expect("nobody else writes");
                self.rows = rows;
            }
        }
    }

    /// A transaction and another writer write the same key: one of them fails.
    fn conflict(&mut self) {
        let key = self.key();
        let transaction = B::begin(self.db);
        transaction.put(&key, b"transaction").expect("written");
        let other = self.db.put(&key, b"other");
        let committed = transaction.commit();
        assert!(other.is_ok() != committed.is_ok(), "{other:?} {committed:?}");
        other.as_ref().err().into_iter().for_each(|error| assert!(is_conflict(error)));
        committed.as_ref().err().into_iter().for_each(|error| assert!(is_conflict(error)));
        let value = if other.is_ok() { &b"other"[..] } else { b"transaction" };
        self.rows[0].insert(key, value.to_vec());
    }

    fn write_without(&mut self) {
        let (first, second) = (self.key(), self.key());
        match self.numbers.below(3) {
            0 => {
                let mut batch = WriteBatchWithTransaction::<true>::default();
                batch.put(&first, b"batch");
                batch.delete(&second);
                self.db.write(batch).expect("written");
                self.rows[0].insert(first, b"batch".to_vec());
                self.rows[0].remove(&second);
            }
            1 => {
                self.db.put(&first, b"alone").expect("written");
                self.rows[0].insert(first, b"alone".to_vec());
            }
            _ => {
                self.db.delete(&first).expect("written");
                self.rows[0].remove(&first);
            }
        }
    }

    fn read(&mut self) {
        let place = self.numbers.below(2) as usize;
        let mut key = self.key();
        if self.numbers.below(2) == 0 {
            key.push(b'x');
        }
        let family = self.db.cf_handle(FAMILIES[place]).expect("it was opened");
        let found = self.db.get_cf(&family, &key).expect("read");
        assert_eq!(found.as_ref(), self.rows[place].get(&key), "{key:?}");
        if place == 0 {
            let end = [&key[..key.len() - 1], b"~"].concat();
            let expected = self.rows[0].range(key.clone()..end.clone()).count();
            assert_eq!(count(self.db, &key, &end), expected, "{key:?}");
        }
    }
}

fn same_as_a_map<B: Kind>() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut rows, mut numbers) = (Rows::default(), Numbers(7));
    for opening in 0..4 {
        let db = B::open_in(folder.path());
        let mut both = Both { db: &db, rows, numbers };
        for step in 0..1500 {
            match step % 10 {
                0..6 => both.transact(),
                6 => both.conflict(),
                _ => both.write_without(),
            }
            (0..6).for_each(|_| both.read());
            if step % 500 == 250 {
                db.flush().expect("flushed");
                db.shared().doors().iter().for_each(|door| door.want_scan());
            }
            if step % 500 == 400 {
                wait(&db);
            }
        }
        (rows, numbers) = (both.rows, both.numbers);
        let state = db.door_state();
        assert!(state.denied > 1000, "{state:?}");
        assert!(state.scans > 0, "opening {opening}");
    }
}

#[test]
fn optimistic_transactions_are_seen_as_in_a_map() {
    same_as_a_map::<RocksOptimisticDb>();
}

#[test]
fn locking_transactions_are_seen_as_in_a_map() {
    same_as_a_map::<RocksTransactionDb>();
}

/// A key is found as soon as `commit` has returned, and is not denied before.
fn committed_is_not_denied<B: Kind>() {
    let folder = tempfile::tempdir().expect("a folder");
    let db = std::sync::Arc::new(B::open_in(folder.path()));
    (0..1000).for_each(|at| db.put(format!("key {at:04}"), b"old").expect("written"));
    wait(&*db);
    let key = b"key 0500 and more";
    let transaction = B::begin(&db);
    transaction.put(key, b"new").expect("written");
    assert_eq!(db.get(key).expect("read"), None, "it is not committed yet");
    let other = std::sync::Arc::clone(&db);
    pause::then(Point::Noted, move || {
        assert!(
            !other
                .shared()
                .doors()
                .iter()
                .any(|door| { door.name == "default" && door.denies_key(key, None) })
        );
    });
    transaction.commit().expect("committed");
    assert!(db.get(key).expect("read").is_some());
    assert_eq!(count(&*db, key, &[&key[..], b"\0"].concat()), 1);
}

#[test]
fn what_is_committed_is_not_denied_from_before() {
    committed_is_not_denied::<RocksOptimisticDb>();
    committed_is_not_denied::<RocksTransactionDb>();
}

#[test]
fn what_was_prepared_before_the_database_closed_is_found_once_it_is_committed() {
    let folder = tempfile::tempdir().expect("a folder");
    let key = |at: u64| format!("key {at:04}").into_bytes();
    {
        let db = RocksTransactionDb::open_in(folder.path());
        (0..1000).for_each(|at| db.put(key(at), b"old").expect("written"));
        wait(&db);
        for (name, at) in [(b"one", 2000), (b"two", 3000)] {
            let transaction = db.transaction();
            transaction.set_name(name).expect("named");
            (at..at + 10).for_each(|at| transaction.put(key(at), b"new").expect("written"));
            transaction.prepare().expect("prepared");
            std::mem::forget(transaction);
        }
    }
    let db = RocksTransactionDb::open_in(folder.path());
    wait(&db);
    let prepared = db.prepared_transactions();
    assert_eq!(prepared.len(), 2);
    for transaction in prepared {
        let is_first = transaction.get_name().as_deref() == Some(b"one");
        let at = if is_first { 2000 } else { 3000 };
        assert_eq!(db.get(key(at)).expect("read"), None, "it is not committed yet");
        if is_first {
            transaction.commit().expect("committed");
        } else {
            transaction.rollback().expect("rolled back");
        }
        (at..at + 10).for_each(|at| {
            assert_eq!(db.get(key(at)).expect("read").is_some(), is_first, "{at}");
        });
    }
    let transaction = db.transaction();
    transaction.set_name(b"three").expect("named");
    transaction.put(key(4000), b"new").expect("written");
    transaction.prepare().expect("prepared");
    transaction.commit().expect("committed");
    assert!(db.get(key(4000)).expect("read").is_some());
    let state = db.door_state();
    assert!(state.is_open && state.denied > 0, "commits are noted, not scanned for: {state:?}");
}

/// Writers whose transactions collide, beside readers.
fn threads<B: Kind>() {
    const WRITERS: u64 = 3;
    let folder = tempfile::tempdir().expect("a folder");
    let db = B::open_in(folder.path());
    wait(&db);
    let key = |writer: u64, at: u64| Numbers(at * WRITERS + writer).next().to_be_bytes();
    let committed: [AtomicU64; WRITERS as usize] = Default::default();
    let (is_over, checked) = (AtomicBool::new(false), AtomicU64::new(0));
    let write = |writer: u64| {
        let mut at = 0_u64;
        while !is_over.load(Ordering::Relaxed) {
            let transaction = B::begin(&db);
            let wrote = transaction.put(b"shared", at.to_le_bytes()).and_then(|()| {
                (at..at + 3).try_for_each(|at| transaction.put(key(writer, at), b"value"))
            });
            match wrote.and_then(|()| transaction.commit()) {
                Ok(()) => at += 3,
                Err(error) => assert!(is_conflict(&error), "{error}"),
            }
            committed[writer as usize].store(at, Ordering::Release);
        }
    };
    let read = |reader: u64| {
        let mut numbers = Numbers(reader);
        while !is_over.load(Ordering::Relaxed) {
            let writer = numbers.below(WRITERS);
            let written = committed[writer as usize].load(Ordering::Acquire);
            if written == 0 {
                continue;
            }
            let newest = numbers.below(4).min(written - 1);
            let at = [written - 1 - newest, numbers.below(written)][numbers.below(2) as usize];
            let key = key(writer, at);
            assert!(db.get(key).expect("read").is_some(), "{at} of {written}");
            assert_eq!(count(&db, &key, &[&key[..], b"\0"].concat()), 1);
            assert_eq!(db.get([&key[..], b"x"].concat()).expect("read"), None);
            checked.fetch_add(1, Ordering::Relaxed);
        }
    };
    let is_enough = || {
        let state = db.door_state();
        checked.load(Ordering::Relaxed) > 1000 && state.scans > 3 && state.denied > 100
    };
    std::thread::scope(|scope| {
        let start = std::time::Instant::now();
        let writers: Vec<_> = (0..WRITERS).map(|it| scope.spawn(move || write(it))).collect();
        let readers: Vec<_> = (0..2).map(|it| scope.spawn(move || read(it))).collect();
        let is_dead = || writers.iter().chain(&readers).any(|thread| thread.is_finished());
        while !is_enough() && start.elapsed() < 4 * LONG && !is_dead() {
            std::thread::sleep(std::time::Duration::from_millis(5));
            db.shared().doors().iter().for_each(|door| door.want_scan());
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert!(is_enough(), "{:?}", db.door_state());
}

#[test]
fn transactions_that_collide_are_found_once_they_are_committed() {
    threads::<RocksOptimisticDb>();
    threads::<RocksTransactionDb>();
}

/// A commit that lost a conflict leaves nothing in the log, so the next opening need not scan.
#[test]
fn a_conflict_costs_no_filter() {
    let folder = tempfile::tempdir().expect("a folder");
    {
        let db = RocksOptimisticDb::open_in(folder.path());
        (0..1000).for_each(|at| db.put(format!("key {at:04}"), b"old").expect("written"));
        let transaction = db.transaction();
        transaction.put(b"key 0500", b"late").expect("written");
        db.put(b"key 0500", b"first").expect("written");
        let refused = transaction.commit();
        assert!(refused.is_err_and(|error| is_conflict(&error)));
        wait(&db);
    }
    let db = RocksOptimisticDb::open_in(folder.path());
    let state = db.door_state();
    assert!(state.is_open && state.scans == 0, "{state:?}");
    assert_eq!(db.get(b"key 0500").expect("read").as_deref(), Some(&b"first"[..]));
    assert_eq!(db.get(b"key 0500 and more").expect("read"), None);
}
