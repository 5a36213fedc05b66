//! Operands against a twin that keeps every write of every key: whatever was flushed and merged,
//! each reader sees what the operator makes of the writes that it sees.
//! ```text
//! twin    k: 3 put a | 5 merge b | 8 deleted | 9 merge c | 12 merge d
//! at 11   from 9 back to 8: nothing, [c]          at 6: a, [b]
//! store   the same writes, with flushes, merges, snapshots, crashes, an operator that fails
//! ```

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use trommel::merge_operators::{Concat, MergeError, MergeOperator};
use trommel::options::Granularity;
use trommel::research::Research as _;
use trommel::storage::{Clock, Memory};
use trommel::testing::ManualClock;
use trommel::{
    Answer, Background, Batch, Db, Environment, IndexedBatch, Options, Scan, Snapshot, SyncPolicy,
    Update,
};

const KEYS: u8 = 9;

#[derive(Clone, Debug)]
enum Write {
    Put(u8, u8),
    PutTtl(u8, u8, u8),
    Delete(u8),
    DeleteRange(u8, u8),
    Merge(u8, u8),
}

#[derive(Clone, Debug)]
enum Op {
    /// In one batch: plain, indexed, or of a transaction.
    Write(Vec<Write>, u8),
    /// One key, many times.
    Repeat(u8, u8),
    Update(u8, u8),
    Ingest(Vec<(u8, u8)>),
    Flush,
    Steps(Vec<u8>),
    /// The operator fails, or panics, meanwhile.
    StepsThatFail(Vec<u8>, bool),
    Compact,
    TakeSnapshot,
    DropSnapshot(u8),
    OpenScan,
    MoveScans(bool),
    Tick,
    /// With another guard.
    Reopen(u8),
    /// Without the operator, and with it again.
    Leave(Vec<u8>),
    Crash,
    Check,
}

fn write() -> impl Strategy<Value = Write> {
    let key = || 0..KEYS;
    prop_oneof![
        3 => (key(), any::<u8>()).prop_map(|(key, byte)| Write::Put(key, byte)),
        1 => (key(), any::<u8>(), 0u8..4).prop_map(|(key, byte, ttl)| Write::PutTtl(key, byte, ttl)),
        2 => key().prop_map(Write::Delete),
        1 => (key(), 0..=KEYS).prop_map(|(from, to)| Write::DeleteRange(from.min(to), from.max(to))),
        9 => (key(), any::<u8>()).prop_map(|(key, byte)| Write::Merge(key, byte)),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let steps = || vec(any::<u8>(), 1..6);
    prop_oneof![
        12 => (vec(write(), 1..4), 0u8..3).prop_map(|(writes, way)| Op::Write(writes, way)),
        1 => (0..KEYS, 1u8..60).prop_map(|(key, times)| Op::Repeat(key, times)),
        1 => (0..KEYS, any::<u8>()).prop_map(|(key, byte)| Op::Update(key, byte)),
        1 => vec((0..KEYS, any::<u8>()), 0..6).prop_map(Op::Ingest),
        6 => Just(Op::Flush),
        4 => steps().prop_map(Op::Steps),
        2 => (steps(), any::<bool>()).prop_map(|(steps, panics)| Op::StepsThatFail(steps, panics)),
        2 => Just(Op::Compact),
        2 => Just(Op::TakeSnapshot),
        1 => any::<u8>().prop_map(Op::DropSnapshot),
        1 => Just(Op::OpenScan),
        2 => any::<bool>().prop_map(Op::MoveScans),
        1 => Just(Op::Tick),
        1 => any::<u8>().prop_map(Op::Reopen),
        1 => steps().prop_map(Op::Leave),
        1 => Just(Op::Crash),
        6 => Just(Op::Check),
    ]
}

/// Keeps the last bytes of all. It does not combine, and the order counts.
struct Tail;

const TAIL: usize = 5;

impl MergeOperator for Tail {
    fn name(&self) -> &str {
        "tail"
    }

    fn merge(
        &self,
        _key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Vec<u8>, MergeError> {
        let all: Vec<&[u8]> = existing.into_iter().chain(operands.iter().copied()).collect();
        let all = all.concat();
        Ok(all[all.len().saturating_sub(TAIL)..].to_vec())
    }
}

/// An operator that can be made to fail.
struct Flaky {
    inner: Box<dyn MergeOperator>,
    fails: AtomicBool,
    panics: AtomicBool,
}

impl Flaky {
    fn new(inner: impl MergeOperator + 'static) -> Arc<Flaky> {
        let (fails, panics) = Default::default();
        Arc::new(Flaky { inner: Box::new(inner), fails, panics })
    }

    fn check(&self) -> Result<(), MergeError> {
        assert!(!self.panics.load(Ordering::Relaxed), "it was made to panic");
        match self.fails.load(Ordering::Relaxed) {
            true => Err("it was made to fail".into()),
            false => Ok(()),
        }
    }
}

/// The store's handle of it.
struct Handle(Arc<Flaky>);

impl MergeOperator for Handle {
    fn name(&self) -> &str {
        self.0.inner.name()
    }

    fn merge(
        &self,
        key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Vec<u8>, MergeError> {
        self.0.check()?;
        self.0.inner.merge(key, existing, operands)
    }

    fn combine(&self, key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        self.0.check().ok()?;
        self.0.inner.combine(key, older, newer)
    }
}

#[derive(Clone, Debug)]
enum Written {
    Put(Vec<u8>),
    /// From this second on it is none.
    Until(u64, Vec<u8>),
    Nothing,
    Operand(Vec<u8>),
}

/// All writes of each key, in their order, with the numbers that the twin gives them.
#[derive(Clone, Default)]
struct Twin {
    writes: BTreeMap<u8, Vec<(u64, Written)>>,
    number: u64,
}

impl Twin {
    fn write(&mut self, key: u8, written: Written) {
        self.number += 1;
        self.writes.entry(key).or_default().push((self.number, written));
    }

    fn value(&self, key: u8, at: u64, now: u64, operator: &dyn MergeOperator) -> Option<Vec<u8>> {
        let (mut operands, mut existing) = (Vec::new(), None);
        let seen = self.writes.get(&key).into_iter().flatten().filter(|(number, _)| *number <= at);
        for (_, written) in seen.collect::<Vec<_>>().into_iter().rev() {
            match written {
                Written::Operand(operand) => {
                    operands.insert(0, &**operand);
                    continue;
                }
                Written::Put(value) => existing = Some(value),
                Written::Until(until, value) if *until > now => existing = Some(value),
                Written::Until(..) | Written::Nothing => {}
            }
            break;
        }
        match operands.is_empty() {
            true => existing.cloned(),
            false => {
                let existing = existing.map(|value| &**value);
                Some(operator.merge(&[key], existing, &operands).expect("it never fails"))
            }
        }
    }

    fn all(&self, at: u64, now: u64, operator: &dyn MergeOperator) -> Vec<(Vec<u8>, Vec<u8>)> {
        let value = |key| Some((vec![b'k', key], self.value(key, at, now, operator)?));
        (0..KEYS).filter_map(value).collect()
    }
}

struct World {
    disk: Memory,
    clock: Arc<ManualClock>,
    options: Options,
    operator: Arc<Flaky>,
    db: Option<Db>,
    twin: Twin,
    snapshots: Vec<(Snapshot, u64)>,
    /// Each with its number, and the keys that it has not given.
    scans: Vec<(Scan, u64, u8, u8)>,
}

fn bytes(byte: u8) -> Vec<u8> {
    vec![b'a' + byte % 26; usize::from(byte % 3)]
}

fn key(number: u8) -> [u8; 2] {
    [b'k', number]
}

type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

fn pairs(scan: impl Iterator<Item = trommel::Result<trommel::KeyValue>>) -> Pairs {
    let pair = |entry: trommel::Result<trommel::KeyValue>| {
        let (key, value) = entry.expect("reads");
        (key, value.to_vec())
    };
    scan.map(pair).collect()
}

impl World {
    fn new(operator: Arc<Flaky>, options: Options) -> World {
        let (disk, clock) = (Memory::new(), Arc::new(ManualClock::default()));
        let (twin, snapshots, scans) = Default::default();
        let mut world = World { disk, clock, options, operator, db: None, twin, snapshots, scans };
        world.open(true);
        world
    }

    fn open(&mut self, with_operator: bool) {
        (self.snapshots, self.scans) = Default::default();
        self.db = None;
        let clock = Arc::clone(&self.clock) as _;
        let environment = Environment::new().storage(Arc::new(self.disk.clone())).clock(clock);
        let mut options = self.options.clone();
        if with_operator {
            options = options.merge_operator(Handle(Arc::clone(&self.operator)));
        }
        self.db = Some(Db::open_with(Path::new("db"), options, environment).expect("opens"));
    }

    fn db(&self) -> &Db {
        self.db.as_ref().expect("open between operations")
    }

    fn now(&self) -> u64 {
        self.clock.now().as_secs()
    }

    fn apply(&mut self, op: Op) {
        match op {
            Op::Write(writes, way) => self.write(&writes, way),
            Op::Repeat(number, times) => {
                for byte in 0..times {
                    self.write(&[Write::Merge(number, byte)], 0);
                    if byte % 16 == 7 && self.snapshots.len() < 8 {
                        self.snapshots.push((self.db().snapshot(), self.twin.number));
                    }
                }
            }
            Op::Update(number, byte) => {
                let expected = self.value(number, self.twin.number);
                let longer = |old: Option<&[u8]>| {
                    Update::Put([old.unwrap_or_default(), &bytes(byte)].concat())
                };
                let before = self.db().update(key(number), longer).expect("updates");
                assert_eq!(before.as_deref(), expected.as_deref());
                let new = [expected.unwrap_or_default(), bytes(byte)].concat();
                self.twin.write(number, Written::Put(new));
            }
            Op::Ingest(entries) => {
                let sorted: BTreeMap<u8, u8> = entries.into_iter().collect();
                let entries = sorted.iter().map(|(number, byte)| (key(*number), bytes(*byte)));
                self.db().ingest(entries).expect("ingests");
                for (number, byte) in sorted {
                    self.twin.write(number, Written::Put(bytes(byte)));
                }
            }
            Op::Flush => self.db().flush().expect("flushes"),
            Op::Steps(steps) => self.steps(&steps),
            Op::StepsThatFail(steps, panics) => {
                let switch = if panics { &self.operator.panics } else { &self.operator.fails };
                switch.store(true, Ordering::Relaxed);
                self.db().flush().expect("a failing operator ends no flush");
                self.steps(&steps);
                self.db().compact().expect("a failing operator ends no merge");
                switch.store(false, Ordering::Relaxed);
            }
            Op::Compact => self.db().compact().expect("compacts"),
            Op::TakeSnapshot => self.snapshots.push((self.db().snapshot(), self.twin.number)),
            Op::DropSnapshot(nth) if !self.snapshots.is_empty() => {
                self.snapshots.remove(usize::from(nth) % self.snapshots.len());
            }
            Op::DropSnapshot(_) => {}
            Op::OpenScan => self.scans.push((self.db().range(..), self.twin.number, 0, KEYS)),
            Op::MoveScans(back) => self.move_scans(back),
            Op::Tick => self.clock.advance(Duration::from_secs(1)),
            Op::Reopen(guard) => {
                let guards = trommel_guards::all_guards();
                let guard = guards[usize::from(guard) % guards.len()];
                self.options = self.options.clone().guard(guard);
                self.open(true);
            }
            Op::Leave(steps) => {
                self.open(false);
                self.steps(&steps);
                self.db().compact().expect("compacts");
                self.open(true);
            }
            Op::Crash => {
                self.disk = self.disk.crash_hard();
                self.open(true);
            }
            Op::Check => self.check(),
        }
    }

    fn steps(&self, steps: &[u8]) {
        for &choice in steps {
            self.db().step_any(choice.into()).expect("steps");
        }
    }

    fn value(&self, number: u8, at: u64) -> Option<Vec<u8>> {
        self.twin.value(number, at, self.now(), &*self.operator.inner)
    }

    fn write(&mut self, writes: &[Write], way: u8) {
        let now = self.now();
        let (mut batch, mut indexed) = (Batch::new(), IndexedBatch::new());
        for write in writes {
            match *write {
                Write::Put(number, byte) => {
                    batch.put(key(number), bytes(byte));
                    indexed.put(key(number), bytes(byte));
                    self.twin.write(number, Written::Put(bytes(byte)));
                }
                Write::PutTtl(number, byte, ttl) => {
                    let (ttl, until) = (Duration::from_secs(ttl.into()), now + u64::from(ttl));
                    batch.put_ttl(key(number), bytes(byte), ttl);
                    indexed.put_ttl(key(number), bytes(byte), ttl);
                    self.twin.write(number, Written::Until(until, bytes(byte)));
                }
                Write::Delete(number) => {
                    batch.delete(key(number));
                    indexed.delete(key(number));
                    self.twin.write(number, Written::Nothing);
                }
                Write::DeleteRange(from, to) => {
                    batch.delete_range(key(from), key(to));
                    indexed.delete_range(key(from), key(to));
                    (from..to).for_each(|number| self.twin.write(number, Written::Nothing));
                }
                Write::Merge(number, byte) => {
                    batch.merge(key(number), bytes(byte));
                    indexed.merge(key(number), bytes(byte));
                    self.twin.write(number, Written::Operand(bytes(byte)));
                }
            }
        }
        match way {
            0 => self.db().write(batch).expect("writes"),
            // What is put for no time at all has its value in the batch.
            _ if writes.iter().any(|write| matches!(write, Write::PutTtl(_, _, 0))) => {
                self.db().write(indexed).expect("writes");
            }
            1 => {
                self.check_indexed(&indexed);
                self.db().write(indexed).expect("writes");
            }
            _ => self.commit(writes),
        }
    }

    /// The twin has the writes already.
    fn check_indexed(&self, indexed: &IndexedBatch) {
        let expected = self.twin.all(self.twin.number, self.now(), &*self.operator.inner);
        assert_eq!(pairs(indexed.range(self.db(), ..)), expected);
        let mut back = pairs(indexed.range(self.db(), ..).rev());
        back.reverse();
        assert_eq!(back, expected);
        for number in 0..KEYS {
            let found = indexed.get(self.db(), key(number)).expect("reads");
            assert_eq!(found.as_deref(), self.value(number, self.twin.number).as_deref());
        }
    }

    fn commit(&self, writes: &[Write]) {
        let transaction = self.db().transaction();
        for write in writes {
            match *write {
                Write::Put(number, byte) => transaction.put(key(number), bytes(byte)),
                Write::PutTtl(number, byte, ttl) => {
                    let ttl = Duration::from_secs(ttl.into());
                    transaction.put_ttl(key(number), bytes(byte), ttl)
                }
                Write::Delete(number) => transaction.delete(key(number)),
                Write::DeleteRange(from, to) => transaction.delete_range(key(from), key(to)),
                Write::Merge(number, byte) => transaction.merge(key(number), bytes(byte)),
            }
            .expect("writes");
        }
        for number in 0..KEYS {
            let found = transaction.get(key(number)).expect("reads");
            assert_eq!(found.as_deref(), self.value(number, self.twin.number).as_deref());
        }
        let expected = self.twin.all(self.twin.number, self.now(), &*self.operator.inner);
        assert_eq!(pairs(transaction.range(..)), expected);
        transaction.commit().expect("nobody else writes");
    }

    /// Each gives its next key.
    fn move_scans(&mut self, back: bool) {
        let (now, twin) = (self.clock.now().as_secs(), &self.twin);
        for (scan, at, from, to) in &mut self.scans {
            let left = |number: &u8| (*from..*to).contains(number);
            let value = |number| twin.value(number, *at, now, &*self.operator.inner);
            let mut all = (0..KEYS).filter(left).filter_map(|it| Some((it, value(it)?)));
            let (expected, found) = match back {
                false => (all.next(), scan.next()),
                true => (all.next_back(), scan.next_back()),
            };
            let found = found.map(|entry| entry.expect("reads"));
            let found = found.map(|(key, value)| (key[1], value.to_vec()));
            assert_eq!(found, expected, "a scan at {at}, backward: {back}");
            match expected {
                Some((number, _)) if back => *to = number,
                Some((number, _)) => *from = number + 1,
                None => (*from, *to) = (0, 0),
            }
        }
    }

    fn check(&self) {
        let (now, at) = (self.now(), self.twin.number);
        let expected = self.twin.all(at, now, &*self.operator.inner);
        assert_eq!(pairs(self.db().range(..)), expected, "forward");
        let mut back = pairs(self.db().range(..).rev());
        back.reverse();
        assert_eq!(back, expected, "backward");
        let keys: Vec<[u8; 2]> = (0..KEYS).map(key).collect();
        let mut queue = self.db().queue(4);
        for (number, found) in (0..).zip(self.db().multi_get(&keys)) {
            let expected = self.value(number, at);
            assert_eq!(found.expect("reads").as_deref(), expected.as_deref(), "many, {number}");
            let found = self.db().get(key(number)).expect("reads");
            assert_eq!(found.as_deref(), expected.as_deref(), "get, {number}");
            assert_eq!(self.db().contains_key(key(number)).expect("reads"), expected.is_some());
            queue.submit_get(key(number), number.into());
        }
        queue.submit_range(.., usize::MAX, KEYS.into());
        while let Some(answered) = queue.wait() {
            match answered.answer {
                Answer::Value(value) => {
                    let expected = self.value(answered.tag as u8, at);
                    assert_eq!(value.expect("reads").as_deref(), expected.as_deref(), "queue");
                }
                Answer::Entries(entries) => {
                    let entries = entries.expect("reads").into_iter().map(Ok);
                    assert_eq!(pairs(entries), expected, "queue");
                }
            }
        }
        for (snapshot, at) in &self.snapshots {
            let expected = self.twin.all(*at, now, &*self.operator.inner);
            assert_eq!(pairs(snapshot.range(..)), expected, "a snapshot at {at}");
            for number in 0..KEYS {
                let found = snapshot.get(key(number)).expect("reads");
                assert_eq!(found.as_deref(), self.value(number, *at).as_deref());
            }
        }
        let report = self.db().verify().expect("verifies");
        assert_eq!(report.damage, [""; 0]);
    }
}

fn options(policy: &str, guard: usize) -> Options {
    let guards = trommel_guards::all_guards();
    Options::new()
        .guard(guards[guard % guards.len()])
        .policy(policy.parse().expect("a policy"))
        .size_ratio(2)
        .write_buffer_bytes(1 << 12)
        .block_bytes(256)
        .table_bytes(4096)
        .partition_bytes(1024)
        .merge_piece_bytes(1024)
        .granularity([Granularity::Full, Granularity::Partitioned, Granularity::Partial][guard % 3])
        .eager_tombstones(guard.is_multiple_of(2))
        .merges_at_once(if guard.is_multiple_of(2) { Some(3) } else { None })
        .sync(SyncPolicy::Always)
        .background(Background::Stepped)
}

fn check(operator: fn() -> Arc<Flaky>, policies: [&'static str; 3]) {
    let config = ProptestConfig { cases: 256, failure_persistence: None, ..Default::default() };
    let histories = (vec(op(), 1..60), any::<u8>());
    let hook = std::panic::take_hook();
    // A panic of the operator is part of the test, and says nothing new.
    std::panic::set_hook(Box::new(move |info| {
        let said = info.payload().downcast_ref::<&str>().copied().unwrap_or_default();
        if said != "it was made to panic" {
            hook(info);
        }
    }));
    TestRunner::new(config)
        .run(&histories, |(ops, guard)| {
            let policy = policies[usize::from(guard) % policies.len()];
            let mut world = World::new(operator(), options(policy, guard.into()));
            for op in ops {
                world.apply(op);
            }
            world.check();
            Ok(())
        })
        .unwrap_or_else(|failed| panic!("{failed}"));
}

#[test]
fn an_operator_that_combines_is_applied_as_it_is_to_all_writes() {
    check(|| Flaky::new(Concat::new(",")), ["leveling", "lazy-leveling", "tiering"]);
}

#[test]
fn an_operator_that_does_not_combine_is_applied_as_it_is_to_all_writes() {
    check(|| Flaky::new(Tail), ["tiering", "leveling", "rocksdb"]);
}
