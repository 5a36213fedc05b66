//! Transactions: the anomalies by name, and histories that are replayed in the order of commits.
//! ```text
//! open transactions   t1: get a, scan [b, m)    t2: get c, put a    others: put, flush, merge ...
//! commit of t1        fine  ->  run again now, alone, it reads the same
//!                     no    ->  somebody has written what it read
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use trommel::storage::Memory;
use trommel::{
    Background, Batch, Db, Environment, Error, GuardKind, Isolation, Keyspace, KeyspaceOptions,
    Options, Policy, SyncPolicy, Transaction,
};

fn options() -> Options {
    Options::new().sync(SyncPolicy::Never).background(Background::Stepped)
}

fn open(options: Options) -> Db {
    let environment = Environment::new().storage(Arc::new(Memory::new()));
    Db::open_with("db", options, environment).expect("opens")
}

/// A store with 1: 10 and 2: 20, as Hermitage has them.
fn two_rows() -> Db {
    let db = open(options());
    db.put("1", "10").expect("puts");
    db.put("2", "20").expect("puts");
    db
}

fn text(value: Option<trommel::Value>) -> Option<String> {
    value.map(|value| String::from_utf8(value.to_vec()).expect("text"))
}

fn get(transaction: &Transaction, key: &str) -> Option<String> {
    text(transaction.get(key).expect("reads"))
}

fn value(db: &Db, key: &str) -> Option<String> {
    text(db.get(key).expect("reads"))
}

fn rows(transaction: &Transaction) -> Vec<String> {
    let values = transaction.range(..).map(|entry| entry.expect("reads").1);
    values.map(|value| String::from_utf8(value.to_vec()).expect("text")).collect()
}

fn put(transaction: &Transaction, key: &str, value: &str) {
    transaction.put(key, value).expect("puts");
}

fn is_conflict(committed: trommel::Result<u64>) -> bool {
    match committed {
        Ok(_) => false,
        Err(Error::Conflict { .. }) => true,
        Err(other) => panic!("{other}"),
    }
}

const BOTH: [Isolation; 2] = [Isolation::Serializable, Isolation::Snapshot];

#[test]
fn g0_no_write_cycles() {
    for isolation in BOTH {
        let db = two_rows();
        let (t1, t2) = (db.transaction_with(isolation), db.transaction_with(isolation));
        put(&t1, "1", "11");
        put(&t2, "1", "12");
        put(&t1, "2", "21");
        t1.commit().expect("commits");
        put(&t2, "2", "22");
        let second = is_conflict(t2.commit());
        let values = [value(&db, "1"), value(&db, "2")].map(Option::unwrap);
        // Blind writes are no reads: one after the other is fine, but not half of each.
        match (isolation, second) {
            (Isolation::Snapshot, conflict) => assert!(conflict && values == ["11", "21"]),
            (_, conflict) => assert!(!conflict && values == ["12", "22"]),
        }
    }
}

#[test]
fn g1a_no_aborted_reads_and_g1b_no_intermediate_ones() {
    for isolation in BOTH {
        let db = two_rows();
        let (t1, t2) = (db.transaction_with(isolation), db.transaction_with(isolation));
        put(&t1, "1", "101");
        assert_eq!(rows(&t2), ["10", "20"]);
        drop(t1);
        assert_eq!(rows(&t2), ["10", "20"]);
        t2.commit().expect("has written nothing");
        let (t1, t2) = (db.transaction_with(isolation), db.transaction_with(isolation));
        put(&t1, "1", "101");
        assert_eq!(rows(&t2), ["10", "20"]);
        put(&t1, "1", "11");
        t1.commit().expect("commits");
        assert_eq!(rows(&t2), ["10", "20"], "its moment is before");
        assert_eq!(value(&db, "1").unwrap(), "11");
    }
}

#[test]
fn g1c_no_circular_flow_of_information() {
    for isolation in BOTH {
        let db = two_rows();
        let (t1, t2) = (db.transaction_with(isolation), db.transaction_with(isolation));
        put(&t1, "1", "11");
        put(&t2, "2", "22");
        assert_eq!((get(&t1, "2").unwrap(), get(&t2, "1").unwrap()), ("20".into(), "10".into()));
        t1.commit().expect("commits");
        let second = is_conflict(t2.commit());
        assert_eq!(second, isolation == Isolation::Serializable, "it has read what t1 has written");
    }
}

#[test]
fn otv_no_observed_transaction_vanishes() {
    for isolation in BOTH {
        let db = two_rows();
        let [t1, t2, t3] = [(); 3].map(|()| db.transaction_with(isolation));
        put(&t1, "1", "11");
        put(&t1, "2", "19");
        put(&t2, "1", "12");
        t1.commit().expect("commits");
        assert_eq!(get(&t3, "1").unwrap(), "10");
        put(&t2, "2", "18");
        assert_eq!(get(&t3, "2").unwrap(), "20");
        let _ = t2.commit();
        assert_eq!((get(&t3, "2").unwrap(), get(&t3, "1").unwrap()), ("20".into(), "10".into()));
    }
}

#[test]
fn pmp_no_phantoms_in_what_a_predicate_has_read() {
    for isolation in BOTH {
        let db = two_rows();
        let (t1, t2) = (db.transaction_with(isolation), db.transaction_with(isolation));
        assert_eq!(t1.range("3"..).count(), 0);
        put(&t2, "3", "30");
        t2.commit().expect("commits");
        assert_eq!(t1.range("3"..).count(), 0, "its moment is before");
        put(&t1, "none above 2", "yes");
        assert_eq!(is_conflict(t1.commit()), isolation == Isolation::Serializable);
    }
}

#[test]
fn p4_no_lost_update() {
    for isolation in BOTH {
        let db = two_rows();
        let (t1, t2) = (db.transaction_with(isolation), db.transaction_with(isolation));
        assert_eq!((get(&t1, "1").unwrap(), get(&t2, "1").unwrap()), ("10".into(), "10".into()));
        put(&t1, "1", "11");
        put(&t2, "1", "11");
        t1.commit().expect("commits");
        assert!(is_conflict(t2.commit()), "{isolation:?}");
    }
}

#[test]
fn g_single_no_read_skew() {
    for isolation in BOTH {
        let db = two_rows();
        let (t1, t2) = (db.transaction_with(isolation), db.transaction_with(isolation));
        assert_eq!(get(&t1, "1").unwrap(), "10");
        put(&t2, "1", "12");
        put(&t2, "2", "18");
        t2.commit().expect("commits");
        assert_eq!(get(&t1, "2").unwrap(), "20", "one moment for all that it reads");
        put(&t1, "2", "0");
        assert!(is_conflict(t1.commit()), "{isolation:?}");
    }
}

#[test]
fn g2_item_write_skew_is_what_tells_the_two_apart() {
    for isolation in BOTH {
        let db = two_rows();
        let (t1, t2) = (db.transaction_with(isolation), db.transaction_with(isolation));
        for transaction in [&t1, &t2] {
            assert!(get(transaction, "1").is_some() && get(transaction, "2").is_some());
        }
        put(&t1, "1", "11");
        put(&t2, "2", "21");
        t1.commit().expect("commits");
        assert_eq!(is_conflict(t2.commit()), isolation == Isolation::Serializable);
    }
}

#[test]
fn g2_nor_do_two_that_count_and_insert_both_commit() {
    for isolation in BOTH {
        let db = two_rows();
        let (t1, t2) = (db.transaction_with(isolation), db.transaction_with(isolation));
        assert_eq!((rows(&t1).len(), rows(&t2).len()), (2, 2));
        put(&t1, "3", "30");
        put(&t2, "4", "42");
        t1.commit().expect("commits");
        assert_eq!(is_conflict(t2.commit()), isolation == Isolation::Serializable);
    }
}

#[test]
fn what_is_read_for_update_conflicts_in_both() {
    for isolation in BOTH {
        let db = two_rows();
        let transaction = db.transaction_with(isolation);
        transaction.get_for_update("1").expect("reads");
        // Others' writes are held up; only a bulk load is not.
        assert!(matches!(db.put("1", "other"), Err(Error::LockTimeout { .. })));
        db.ingest([("1", "other")]).expect("loads");
        put(&transaction, "9", "x");
        assert!(is_conflict(transaction.commit()));
    }
}

#[test]
fn a_savepoint_forgets_what_came_after_it() {
    let db = two_rows();
    let transaction = db.transaction();
    put(&transaction, "a", "1");
    let savepoint = transaction.savepoint();
    put(&transaction, "a", "2");
    transaction.delete_range("1", "3").expect("deletes");
    assert_eq!(rows(&transaction), ["2"]);
    transaction.roll_back_to(&savepoint);
    assert_eq!(rows(&transaction), ["10", "20", "1"]);
    transaction.commit().expect("commits");
    assert_eq!(value(&db, "a").unwrap(), "1");
    assert_eq!(value(&db, "1").unwrap(), "10");
}

#[test]
fn a_key_space_that_was_read_and_dropped_is_a_conflict() {
    let db = two_rows();
    let events = db.keyspace("events", KeyspaceOptions::default()).expect("makes it");
    events.put("a", "1").expect("puts");
    let transaction = db.transaction();
    assert!(transaction.of(&events).get("a").expect("reads").is_some());
    db.drop_keyspace("events").expect("drops");
    put(&transaction, "1", "x");
    assert!(transaction.commit().is_err());
    assert_eq!(value(&db, "1").unwrap(), "10");
}

/// What a transaction has done, with what it has read.
#[derive(Clone, Debug)]
enum Step {
    Get(usize, u8, Option<u8>),
    /// Of a range, so many from the front, and whether that was all.
    Scan(usize, (u8, u8), Vec<(u8, u8)>, usize),
    Put(usize, u8, u8),
    Delete(usize, u8),
    DeleteRange(usize, u8, u8),
}

type Model = [BTreeMap<u8, u8>; 2];

/// A write of anybody: the key space and the keys [from, to).
type Written = (usize, u8, u8);

struct Open<'d> {
    transaction: Transaction,
    steps: Vec<Step>,
    /// How many writes there were when it began.
    begun: usize,
    _db: &'d Db,
}

fn apply(model: &mut Model, step: &Step) -> Option<Written> {
    match *step {
        Step::Put(space, key, value) => {
            model[space].insert(key, value);
            Some((space, key, key + 1))
        }
        Step::Delete(space, key) => {
            model[space].remove(&key);
            Some((space, key, key + 1))
        }
        Step::DeleteRange(space, from, to) => {
            model[space].retain(|key, _| !(from..to).contains(key));
            Some((space, from, to))
        }
        Step::Get(..) | Step::Scan(..) => None,
    }
}

/// Runs the steps alone: whether they read the same.
fn reads_the_same(model: &Model, steps: &[Step]) -> bool {
    let mut model = model.clone();
    steps.iter().all(|step| match step {
        Step::Get(space, key, value) => model[*space].get(key) == value.as_ref(),
        Step::Scan(space, (from, to), seen, limit) => {
            let all = model[*space].range(*from..*to).map(|(key, value)| (*key, *value));
            all.take(*limit).collect::<Vec<_>>() == *seen
        }
        step => {
            apply(&mut model, step);
            true
        }
    })
}

/// The keys that a step has gone over.
fn gone_over(step: &Step) -> Option<Written> {
    match step {
        Step::Get(space, key, _) => Some((*space, *key, *key + 1)),
        Step::Scan(space, (from, to), seen, limit) => {
            let all = seen.len() < *limit;
            let to = if all { *to } else { seen.last().map_or(*from, |(key, _)| key + 1) };
            Some((*space, *from, to))
        }
        _ => None,
    }
}

fn byte(value: &[u8]) -> u8 {
    value[0]
}

struct Random(u64);

impl Random {
    fn below(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) % below
    }

    fn key(&mut self) -> u8 {
        self.below(40) as u8
    }

    fn range(&mut self) -> (u8, u8) {
        let (one, other) = (self.key(), self.key());
        (one.min(other), one.max(other) + 1)
    }
}

/// One step of a transaction, noted with what it has read.
fn step(open: &mut Open<'_>, spaces: &[Keyspace; 2], random: &mut Random) {
    let space = random.below(2) as usize;
    let part = open.transaction.of(&spaces[space]);
    let done = match random.below(10) {
        0..=3 => {
            let key = random.key();
            let value = part.get([key]).expect("reads");
            Step::Get(space, key, value.map(|value| byte(&value)))
        }
        4..=5 => {
            let (from, to) = random.range();
            let limit =
                if random.below(2) == 0 { usize::MAX } else { 1 + random.below(4) as usize };
            let (low, high) = (vec![from], vec![to]);
            let entries = part.range(low..high).take(limit).map(|entry| entry.expect("reads"));
            let seen = entries.map(|(key, value)| (byte(&key), byte(&value))).collect();
            Step::Scan(space, (from, to), seen, limit)
        }
        6..=7 => {
            let (key, value) = (random.key(), random.below(256) as u8);
            part.put([key], [value]).expect("puts");
            Step::Put(space, key, value)
        }
        8 => {
            let key = random.key();
            part.delete([key]).expect("deletes");
            Step::Delete(space, key)
        }
        _ => {
            let (from, to) = random.range();
            part.delete_range([from], [to]).expect("deletes");
            Step::DeleteRange(space, from, to)
        }
    };
    open.steps.push(done);
}

/// A write past all transactions.
fn write_outside(
    db: &Db,
    spaces: &[Keyspace; 2],
    model: &mut Model,
    random: &mut Random,
) -> Vec<Written> {
    let space = random.below(2) as usize;
    let keyspace = &spaces[space];
    let (key, value) = (random.key(), random.below(256) as u8);
    let steps = match random.below(6) {
        0 => {
            keyspace.delete([key]).expect("deletes");
            vec![Step::Delete(space, key)]
        }
        1 => {
            let (from, to) = random.range();
            keyspace.delete_range([from], [to]).expect("deletes");
            vec![Step::DeleteRange(space, from, to)]
        }
        2 => {
            keyspace.ingest([([key], [value]), ([key + 1], [value])]).expect("loads");
            vec![Step::Put(space, key, value), Step::Put(space, key + 1, value)]
        }
        3 => {
            let mut batch = Batch::new();
            for keyspace in spaces {
                batch.to(keyspace).put([key], [value]);
            }
            db.write(batch).expect("writes");
            vec![Step::Put(0, key, value), Step::Put(1, key, value)]
        }
        _ => {
            keyspace.put([key], [value]).expect("puts");
            vec![Step::Put(space, key, value)]
        }
    };
    steps.iter().filter_map(|step| apply(model, step)).collect()
}

fn history(seed: u64, options: Options) -> (usize, usize) {
    let mut random = Random(seed);
    let db = open(options);
    let other = db.keyspace("other", KeyspaceOptions::new().size_ratio(2)).expect("makes it");
    let spaces = [Keyspace::clone(&db), other];
    let (mut model, mut written): (Model, Vec<Written>) = Default::default();
    let (mut open, mut committed, mut refused): (Vec<Open<'_>>, usize, usize) = (vec![], 0, 0);
    for _ in 0..600 {
        match random.below(20) {
            0..=2 if open.len() < 6 => open.push(Open {
                transaction: db.transaction(),
                steps: Vec::new(),
                begun: written.len(),
                _db: &db,
            }),
            3..=12 if !open.is_empty() => {
                let place = random.below(open.len() as u64) as usize;
                step(&mut open[place], &spaces, &mut random);
            }
            13..=15 if !open.is_empty() => {
                let place = random.below(open.len() as u64) as usize;
                let Open { transaction, steps, begun, .. } = open.swap_remove(place);
                let writes = steps.iter().any(|step| gone_over(step).is_none());
                let fine = reads_the_same(&model, &steps);
                if is_conflict(transaction.commit()) {
                    refused += 1;
                    let over: Vec<Written> = steps.iter().filter_map(gone_over).collect();
                    let hits = |one: &Written| {
                        over.iter().any(|it| it.0 == one.0 && it.1 < one.2 && one.1 < it.2)
                    };
                    assert!(written[begun..].iter().any(hits), "seed {seed}: nobody wrote that");
                } else {
                    committed += 1;
                    assert!(
                        fine || !writes,
                        "seed {seed}: {steps:?} after {:?}",
                        &written[begun..]
                    );
                    written.extend(steps.iter().filter_map(|step| apply(&mut model, step)));
                }
            }
            16 => {
                spaces[random.below(2) as usize].flush().expect("flushes");
            }
            17 if random.below(4) == 0 => {
                spaces[random.below(2) as usize].compact().expect("merges")
            }
            18 => drop(db.step().expect("steps")),
            _ => written.extend(write_outside(&db, &spaces, &mut model, &mut random)),
        }
    }
    for (keyspace, model) in spaces.iter().zip(&model) {
        let entries = keyspace.iter().map(|entry| entry.expect("reads"));
        let entries = entries.map(|(key, value)| (byte(&key), byte(&value)));
        assert!(entries.eq(model.iter().map(|(key, value)| (*key, *value))), "seed {seed}");
    }
    (committed, refused)
}

#[test]
fn committed_transactions_are_as_if_they_ran_alone_and_none_is_refused_for_nothing() {
    let (mut committed, mut refused) = (0, 0);
    for seed in 0..120 {
        let (some, others) = history(seed, options().size_ratio(2 + (seed % 3) as u32));
        (committed, refused) = (committed + some, refused + others);
    }
    assert!(committed > 3_000 && refused > 500, "{committed} committed, {refused} refused");
}

#[test]
fn transfers_by_many_threads_keep_the_sum() {
    let db = open(options().background(Background::Threads(1)).write_buffer_bytes(16 << 10));
    let accounts = 20u64;
    for account in 0..accounts {
        db.put(account.to_be_bytes(), 100i64.to_le_bytes()).expect("puts");
    }
    let number = |value: &[u8]| i64::from_le_bytes(value.try_into().expect("8 bytes"));
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let db = &db;
            scope.spawn(move || {
                let mut random = Random(thread);
                for _ in 0..400 {
                    let (from, to) = (random.below(accounts), random.below(accounts));
                    db.run(|tx| {
                        let balance = |account: u64| -> trommel::Result<i64> {
                            let value = tx.get(account.to_be_bytes())?.expect("is there");
                            Ok(number(&value))
                        };
                        tx.put(from.to_be_bytes(), (balance(from)? - 7).to_le_bytes())?;
                        tx.put(to.to_be_bytes(), (balance(to)? + 7).to_le_bytes())
                    })
                    .expect("transfers");
                }
            });
        }
        for _ in 0..50 {
            let snapshot = db.snapshot();
            let sum: i64 = snapshot.iter().map(|entry| number(&entry.expect("reads").1)).sum();
            assert_eq!(sum, 100 * accounts as i64);
        }
    });
    let sum: i64 = db.iter().map(|entry| number(&entry.expect("reads").1)).sum();
    assert_eq!(sum, 100 * accounts as i64);
}

/// A key far from its neighbours.
fn scattered(number: u64) -> [u8; 8] {
    (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

/// Reads many keys in a transaction, writes others in 40 flushes, with `after` after each, and
/// gives the calls of the disk that the commit makes for a hundred keys that were read.
fn calls_of_a_commit(options: Options, after: impl Fn(&Db, u64)) -> u64 {
    const READ: u64 = 5_000;
    let disk = Memory::new();
    let environment = Environment::new().storage(Arc::new(disk.clone()));
    let options = options
        .guard(GuardKind::Grf)
        .block_cache_bytes(0)
        .background(Background::Stepped)
        .stop_runs(Some(1000))
        .slow_down_runs(Some(900));
    let db = Db::open_with("db", options, environment).expect("opens");
    let put = |number| db.put(scattered(number), "old").expect("puts");
    (0..READ / 2).for_each(put);
    db.compact().expect("merges");
    // These have codes of their own, which merges may make wider.
    (READ / 2..READ).for_each(put);
    db.flush().expect("flushes");
    let transaction = db.transaction();
    for number in 0..READ {
        // Every second one is there.
        assert!(transaction.get(scattered(number)).expect("reads").is_some());
        transaction.get(scattered(number + 1_000_000)).expect("reads");
    }
    for flush in 0..40u64 {
        for number in 0..250 {
            db.put(scattered(2_000_000 + 250 * flush + number), "new").expect("puts");
        }
        db.flush().expect("flushes");
        after(&db, flush);
    }
    transaction.put("mine", "1").expect("puts");
    let before = disk.operations();
    transaction.commit().expect("nobody has written what it read");
    let calls = disk.operations() - before;
    assert_eq!(db.stats().expect("open").transaction_bytes, 0, "nobody asks any more");
    // The log has a few.
    calls.saturating_sub(10).div_ceil(2 * READ / 100)
}

#[test]
fn a_commit_asks_the_filter_and_reads_next_to_nothing() {
    let options = Options::new().policy(Policy::tiering()).size_ratio(100);
    let calls = calls_of_a_commit(options, |db, flush| {
        assert_eq!(db.stats().expect("open").run_count() as u64, flush + 3);
    });
    assert!(calls <= 1, "{calls} of a hundred");
}

// Its number is that of a key space here, which got the writes.
#[test]
#[should_panic(expected = "a transaction of one store, a key space of another")]
fn a_transaction_refuses_a_key_space_of_another_store() {
    let (db, other) = (two_rows(), two_rows());
    let transaction = db.transaction();
    let _ = transaction.of(&other).put("1", "11");
}

#[test]
fn merges_make_no_code_one_of_before_and_after_a_transaction() {
    let options = Options::new().size_ratio(3).write_buffer_bytes(1 << 10);
    let calls = calls_of_a_commit(options, |db, _| db.settle().expect("merges"));
    assert!(calls <= 1, "{calls} of a hundred");
}

#[test]
fn a_replaced_part_of_the_filter_tells_how_old_a_base_is() {
    let options = || Options::new().size_ratio(10);
    let compacts = |db: &Db, flush| {
        if flush % 15 == 5 {
            db.compact().expect("merges");
            assert!(db.stats().expect("open").transaction_bytes > 0);
        }
    };
    let calls = calls_of_a_commit(options(), compacts);
    assert!(calls <= 1, "{calls} of a hundred");
    let calls = calls_of_a_commit(options().partition_bytes(20_000), compacts);
    assert!(calls <= 1, "{calls} of a hundred, in partitions");
    // Without memory for it each is looked up.
    let calls = calls_of_a_commit(options().transaction_memory(0), |db, flush| {
        if flush == 20 {
            db.compact().expect("merges");
            assert_eq!(db.stats().expect("open").transaction_bytes, 0);
        }
    });
    assert!(calls >= 50, "{calls} of a hundred, of keys half of which are there");
}
