//! Merge operators: what a read, a write in one step, a transaction and a reopening make of
//! operands, and what is told where that cannot be.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use trommel::merge_operators::{Add, Concat, MergeError, MergeOperator};
use trommel::storage::Memory;
use trommel::testing::ManualClock;
use trommel::tools::{DumpItem, dump};
use trommel::{
    Background, Batch, Db, Environment, Error, GuardKind, IndexedBatch, Isolation, KeyspaceOptions,
    Options, Swap, SyncPolicy, Update,
};

fn options() -> Options {
    Options::new().sync(SyncPolicy::Always).background(Background::Stepped).size_ratio(4)
}

fn comma() -> Options {
    options().merge_operator(Concat::new(","))
}

fn open_at(disk: &Memory, path: &str, options: Options) -> trommel::Result<Db> {
    let environment = Environment::new().storage(Arc::new(disk.clone()));
    Db::open_with(Path::new(path), options, environment)
}

fn open(disk: &Memory, options: Options) -> trommel::Result<Db> {
    open_at(disk, "db", options)
}

fn text(value: Option<trommel::Value>) -> Option<String> {
    value.map(|value| String::from_utf8(value.to_vec()).expect("text"))
}

fn get(db: &trommel::Keyspace, key: &str) -> Option<String> {
    text(db.get(key).expect("reads"))
}

fn merge(db: &trommel::Keyspace, key: &str, operands: &[&str]) {
    operands.iter().for_each(|operand| db.merge(key, operand).expect("merges"));
}

#[test]
fn operands_are_applied_in_their_order_wherever_they_lie() {
    for guard in trommel_guards::all_guards() {
        let db = open(&Memory::new(), comma().guard(guard)).expect("opens");
        db.put("k", "0").expect("puts");
        for number in 1..8 {
            let before = db.snapshot();
            merge(&db, "k", &[&number.to_string()]);
            if number % 2 == 0 {
                db.flush().expect("flushes");
            }
            if number == 5 {
                db.compact().expect("compacts");
            }
            let all = |number| (0..=number).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
            assert_eq!(get(&db, "k"), Some(all(number)), "{guard}");
            assert_eq!(text(before.get("k").expect("reads")), Some(all(number - 1)), "{guard}");
        }
        assert_eq!(get(&db, "other"), None);
    }
}

#[test]
fn a_merge_leaves_one_value_and_a_flush_one_operand() {
    let db = open(&Memory::new(), comma()).expect("opens");
    merge(&db, "k", &["a", "b", "c"]);
    db.flush().expect("flushes");
    assert_eq!(db.verify().expect("verifies").entries, 1);
    merge(&db, "k", &["d"]);
    let before = db.snapshot();
    merge(&db, "k", &["e"]);
    db.compact().expect("compacts");
    assert_eq!(db.verify().expect("verifies").entries, 2, "one for the snapshot");
    drop(before);
    db.compact().expect("compacts");
    assert_eq!(db.verify().expect("verifies").entries, 1);
    assert_eq!(get(&db, "k").as_deref(), Some("a,b,c,d,e"));
}

#[test]
fn a_deleted_range_hides_operands_that_are_older_alone() {
    let db = open(&Memory::new(), comma()).expect("opens");
    for flushes in [0, 1, 2, 3] {
        let flush = |bit: i32| {
            if flushes & bit != 0 {
                db.flush().expect("flushes")
            }
        };
        merge(&db, "k", &["a", "b"]);
        flush(1);
        db.delete_range("a", "z").expect("deletes");
        assert_eq!(get(&db, "k"), None);
        flush(2);
        merge(&db, "k", &["c"]);
        assert_eq!(get(&db, "k").as_deref(), Some("c"), "{flushes}");
        merge(&db, "k", &["d"]);
        assert_eq!(
            text(db.range("a"..).next_back().map(|it| it.expect("reads").1)).as_deref(),
            Some("c,d")
        );
        db.compact().expect("compacts");
        assert_eq!(get(&db, "k").as_deref(), Some("c,d"), "{flushes}");
    }
}

#[test]
fn what_a_value_was_laid_on_expires_and_operands_do_not() {
    for compacts in [false, true] {
        let clock = Arc::new(ManualClock::default());
        let environment = Environment::new().storage(Arc::new(Memory::new()));
        let environment = environment.clock(Arc::clone(&clock) as _);
        let db = Db::open_with("db", comma(), environment).expect("opens");
        db.put_ttl("k", "v", Duration::from_secs(2)).expect("puts");
        merge(&db, "k", &["a", "b"]);
        if compacts {
            db.compact().expect("compacts");
        }
        let value = db.get("k").expect("reads").expect("it has one");
        assert_eq!((&*value, value.expiry().is_some()), (&b"v,a,b"[..], true));
        let transaction = db.transaction();
        assert_eq!(text(transaction.get("k").expect("reads")).as_deref(), Some("v,a,b"));
        transaction.put("other", "1").expect("puts");
        clock.advance(Duration::from_secs(2));
        assert!(
            matches!(transaction.commit(), Err(Error::Conflict { .. })),
            "it reads another value"
        );
        assert_eq!(get(&db, "k").as_deref(), Some("a,b"));
        db.compact().expect("compacts");
        let value = db.get("k").expect("reads").expect("it has one");
        assert_eq!((&*value, value.expiry()), (&b"a,b"[..], None));
    }
}

/// The third entry, once what was read ahead has expired.
fn third_later(
    mut scan: impl Iterator<Item = trommel::Result<trommel::KeyValue>>,
    clock: &ManualClock,
) -> Option<(String, Option<String>)> {
    (0..2).for_each(|_| drop(scan.next().expect("is there").expect("reads")));
    clock.advance(Duration::from_secs(2));
    let (key, value) = scan.next()?.expect("reads");
    Some((String::from_utf8(key.to_vec()).expect("text"), text(Some(value))))
}

// A scan that finds entries ahead left out such a key.
#[test]
fn operands_whose_value_expires_while_a_scan_is_ahead_of_them_are_given() {
    for (flushes, backward) in [(false, false), (false, true), (true, false), (true, true)] {
        let clock = Arc::new(ManualClock::default());
        let environment = Environment::new().storage(Arc::new(Memory::new()));
        let environment = environment.clock(Arc::clone(&clock) as _);
        let db = Db::open_with("db", comma().value_threshold(256), environment).expect("opens");
        for key in ["k1", "k2", "k5", "k6"] {
            db.put(key, [7; 300]).expect("puts");
        }
        db.put_ttl("k3", "v", Duration::from_secs(2)).expect("puts");
        merge(&db, "k3", &["a"]);
        db.put_ttl("k4", "v", Duration::from_secs(2)).expect("puts");
        if flushes {
            db.flush().expect("flushes");
        }
        let third = match backward {
            false => third_later(db.iter(), &clock),
            true => third_later(db.iter().rev(), &clock),
        };
        let expected = ("k3".to_string(), Some("a".to_string()));
        assert_eq!(third, Some(expected), "flushed: {flushes}, backward: {backward}");
        assert_eq!(get(&db, "k3").as_deref(), Some("a"));
    }
}

#[test]
fn writes_in_one_step_see_the_value() {
    let db = open(&Memory::new(), options().merge_operator(Add::LITTLE_ENDIAN)).expect("opens");
    db.merge("n", 5i64.to_le_bytes()).expect("merges");
    assert_eq!(db.fetch_add("n", 2).expect("adds"), 5);
    db.merge("n", (-1i64).to_le_bytes()).expect("merges");
    let six = 6i64.to_le_bytes();
    assert_eq!(db.put_if_absent("n", "x").expect("looks").as_deref(), Some(&six[..]));
    let swapped = db.compare_and_swap("n", Some(&six), Some(&1i64.to_le_bytes())).expect("swaps");
    assert!(matches!(swapped, Swap::Done));
    db.merge("n", six).expect("merges");
    let seven = 7i64.to_le_bytes();
    assert_eq!(db.update("n", |_| Update::Keep).expect("reads").as_deref(), Some(&seven[..]));
    let mut batch = Batch::new();
    batch.only_if("n", Some(&seven)).merge("n", six);
    db.write(&mut batch).expect("it has it");
    batch.only_if("n", Some(&seven)).merge("n", six);
    assert!(matches!(db.write(&mut batch), Err(Error::Conflict { .. })));
    assert_eq!(db.fetch_add("n", 0).expect("reads"), 13);
}

#[test]
fn a_merge_between_is_a_conflict_for_who_has_read_the_key() {
    for flushes in [false, true] {
        let db = open(&Memory::new(), comma()).expect("opens");
        let transaction = db.transaction();
        assert_eq!(transaction.get("k").expect("reads"), None::<trommel::Value>);
        merge(&db, "k", &["a", "b"]);
        if flushes {
            db.compact().expect("compacts");
        }
        transaction.put("other", "1").expect("puts");
        assert!(matches!(transaction.commit(), Err(Error::Conflict { .. })));
    }
}

#[test]
fn transactions_that_only_merge_do_not_conflict() {
    for isolation in [Isolation::Serializable, Isolation::Snapshot] {
        let db = open(&Memory::new(), comma()).expect("opens");
        db.put("k", "0").expect("puts");
        let [one, two] = [(); 2].map(|()| db.transaction_with(isolation));
        one.merge("k", "a").expect("merges");
        two.merge("k", "b").expect("merges");
        one.commit().expect("it has read nothing");
        two.commit().expect("it has read nothing");
        assert_eq!(get(&db, "k").as_deref(), Some("0,a,b"));
        let reads = db.transaction_with(isolation);
        reads.merge("k", "c").expect("merges");
        assert_eq!(text(reads.get_for_update("k").expect("reads")).as_deref(), Some("0,a,b,c"));
        assert!(matches!(db.merge("k", "d"), Err(Error::LockTimeout { .. })), "it is locked");
        reads.commit().expect("nobody has written the key");
        let reads = db.transaction_with(isolation);
        assert_eq!(text(reads.get("k").expect("reads")).as_deref(), Some("0,a,b,c"));
        reads.merge("k", "x").expect("merges");
        merge(&db, "k", &["d"]);
        let is_conflict = matches!(reads.commit(), Err(Error::Conflict { .. }));
        assert_eq!(is_conflict, isolation == Isolation::Serializable, "{isolation:?}");
        let puts = db.transaction_with(isolation);
        puts.put("k", "new").expect("puts");
        puts.merge("k", "e").expect("merges");
        assert_eq!(text(puts.get("k").expect("reads")).as_deref(), Some("new,e"));
        merge(&db, "k", &["f"]);
        let is_conflict = matches!(puts.commit(), Err(Error::Conflict { .. }));
        assert_eq!(is_conflict, isolation == Isolation::Snapshot, "{isolation:?}");
    }
}

#[test]
fn a_batch_is_read_with_its_operands_on_top() {
    let db = open(&Memory::new(), comma()).expect("opens");
    db.put("a", "1").and_then(|()| db.put("b", "1")).expect("puts");
    let mut batch = IndexedBatch::new();
    batch.merge("a", "2").merge("a", "3").delete_range("b", "c").merge("b", "2").merge("d", "2");
    assert_eq!(batch.len(), 6);
    let all = |scan: trommel::BatchScan<'_>| {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
        let entry = |it: trommel::Result<trommel::KeyValue>| it.expect("reads");
        scan.map(entry).map(|(key, value)| text(&key) + "=" + &text(&value)).collect::<Vec<_>>()
    };
    let expected = ["a=1,2,3", "b=2", "d=2"];
    assert_eq!(all(batch.range(&db, ..)), expected);
    assert_eq!(text(batch.get(&db.snapshot(), "a").expect("reads")).as_deref(), Some("1,2,3"));
    db.write(batch).expect("writes");
    assert_eq!(all(IndexedBatch::new().range(&db, ..)), expected);
}

#[test]
fn each_key_space_has_its_operator_and_gets_it_when_it_is_asked_for() {
    struct Own;
    impl MergeOperator for Own {
        fn name(&self) -> &str {
            "own"
        }
        fn merge(
            &self,
            _key: &[u8],
            existing: Option<&[u8]>,
            operands: &[&[u8]],
        ) -> Result<Vec<u8>, MergeError> {
            let all: Vec<&[u8]> = existing.into_iter().chain(operands.iter().copied()).collect();
            Ok(all.concat())
        }
    }
    let disk = Memory::new();
    let own = || KeyspaceOptions::new().merge_operator(Own);
    {
        let db = open(&disk, comma()).expect("opens");
        let events = db.keyspace("events", own()).expect("makes it");
        let mut batch = Batch::new();
        batch.merge("k", "a").merge("k", "b").to(&events).merge("k", "c").merge("k", "d");
        db.write(batch).expect("writes");
        assert_eq!((get(&db, "k"), get(&events, "k")), (Some("a,b".into()), Some("cd".into())));
    }
    // What comes with the store is known by the name that it has kept; others are not.
    let db = open(&disk, options()).expect("opens");
    assert_eq!(get(&db, "k").as_deref(), Some("a,b"));
    let events = db.open_keyspace("events").expect("it is there");
    let Err(Error::NoMergeOperator { key, .. }) = events.get("k") else { panic!("it is not here") };
    assert_eq!(key, b"k");
    assert!(matches!(events.iter().next(), Some(Err(Error::NoMergeOperator { .. }))));
    assert!(matches!(events.merge("k", "x"), Err(Error::NoMergeOperator { .. })));
    assert!(matches!(events.multi_get(&["k"])[0], Err(Error::NoMergeOperator { .. })));
    assert!(events.get("other").expect("it has no operands").is_none());
    events.compact().expect("operands stay");
    let damage = db.verify().expect("verifies").damage;
    let is_reported = |said: &String| said.contains("key space events: k has operands");
    assert!(damage.len() == 1 && damage.iter().all(is_reported), "{damage:?}");
    let other = KeyspaceOptions::new().merge_operator(Concat::new("-"));
    let wrong = db.keyspace("events", other).expect_err("it has another one").to_string();
    assert!(wrong.contains("merge operator own for ever"), "{wrong}");
    // It was opened, for what it has; it gets the operator now.
    db.keyspace("events", own()).expect("it has this one");
    assert_eq!(get(&events, "k").as_deref(), Some("cd"));
    merge(&events, "k", &["e"]);
    events.compact().expect("compacts");
    assert_eq!(get(&events, "k").as_deref(), Some("cde"));
    assert_eq!(db.verify().expect("verifies").damage, [""; 0]);
    // A newer value of a key does not need the operands below.
    drop((events, db));
    let db = open(&disk, options()).expect("opens");
    db.open_keyspace("events").and_then(|it| it.put("k", "new")).expect("puts");
    assert_eq!(db.verify().expect("verifies").damage, [""; 0]);
    drop(db);
    let wrong = open(&disk, options().merge_operator(Own)).expect_err("it has another one");
    assert!(matches!(wrong, Error::Option { .. }), "{wrong}");
}

#[test]
fn an_operator_that_fails_is_told_by_reads_and_loses_nothing() {
    let db = open(&Memory::new(), options().merge_operator(Add::LITTLE_ENDIAN)).expect("opens");
    db.put("n", "no number").expect("puts");
    db.merge("n", 1i64.to_le_bytes()).expect("merges");
    db.merge("m", 1i64.to_le_bytes()).expect("merges");
    db.compact().expect("compacts");
    let Err(failed @ Error::MergeFailed { .. }) = db.get("n") else { panic!("no number") };
    assert_eq!(failed.code(), 30);
    assert!(failed.to_string().contains("merge operator add-le: "), "{failed}");
    assert_eq!(db.fetch_add("m", 0).expect("reads"), 1);
    db.delete("n").expect("deletes");
    db.merge("n", 7i64.to_le_bytes()).expect("merges");
    assert_eq!(db.fetch_add("n", 0).expect("reads"), 7);
}

#[test]
fn operands_are_in_checkpoints_logs_and_dumps() {
    let disk = Memory::new();
    let db = open(&disk, comma().guard(GuardKind::Grf)).expect("opens");
    merge(&db, "k", &["a"]);
    db.flush().expect("flushes");
    merge(&db, "k", &["b", "c"]);
    db.checkpoint("copy").expect("copies");
    for (path, disk) in [("copy", disk.clone()), ("db", disk.crash_hard())] {
        let copy = open_at(&disk, path, options()).expect("opens");
        assert_eq!(get(&copy, "k").as_deref(), Some("a,b,c"), "{path}");
    }
    let mut dumped = Vec::new();
    dump(&disk, "copy", &mut |item| {
        if let DumpItem::Entry { kind, value, .. } = item {
            dumped.push((kind, value.to_vec()));
        }
        std::ops::ControlFlow::Continue(())
    })
    .expect("dumps");
    dumped.sort();
    assert_eq!(dumped, [b"a", b"b", b"c"].map(|value| ("merge", value.to_vec())));
}

#[test]
fn many_operands_of_a_key_in_small_logs_are_each_counted_once() {
    let mut disk = Memory::new();
    let options = || options().max_log_bytes(1 << 16).write_buffer_bytes(1 << 14);
    let counters = || KeyspaceOptions::new().merge_operator(Add::BIG_ENDIAN);
    let mut db = open(&disk, options()).expect("opens");
    for round in 1..40u64 {
        let quiet = db.keyspace("quiet", counters()).expect("opens");
        quiet.merge("n", 1u64.to_be_bytes()).expect("merges");
        for number in 0..200u32 {
            db.put(number.to_be_bytes(), [7; 100]).expect("puts");
        }
        while db.step().expect("steps") {}
        let sum = quiet.get("n").expect("reads").expect("it has one");
        assert_eq!(sum, round.to_be_bytes());
        if round % 10 == 0 {
            drop((quiet, db));
            disk = disk.crash_hard();
            db = open(&disk, options()).expect("opens");
        }
    }
}
