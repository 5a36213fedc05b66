//! A store in small steps and a map beside it: whatever the tree looks like, both give the same
//! answers.
//! ```text
//! loads, deletions, expiry, bulk loads -> store on a simulated disk, stepped     -> every answer
//!                                      -> map (of now; and one for each snapshot)  against the map
//! ```
//! Invariant: blocks, tables and partitions are so small that a few hundred entries make a tree
//! with merges of key ranges.

use std::collections::{BTreeMap, VecDeque};
use std::ops::{Bound, Range};
use std::path::Path;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use trommel::Environment;
use trommel::options::Granularity;
use trommel::storage::{Clock, Memory};
use trommel::testing::{ManualClock, PausePoint, Pauses};
use trommel::tools::repair_with;
use trommel::{Background, Db, GuardKind, Options, Policy, Scan, Snapshot, SyncPolicy};
use trommel_guards::kinds;

pub(crate) type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Numbers of keys.
pub(crate) const KEYS: u16 = 600;

/// Ascending with the number. Two of three end in zeros, so that some keys follow each other with
/// none between.
pub(crate) fn key(number: u16) -> Vec<u8> {
    let mut key = (number / 3).to_be_bytes().to_vec();
    key.resize(2 + usize::from(number % 3), 0);
    key
}

/// Values of several lengths, each another one.
fn value(count: u64) -> Vec<u8> {
    let mut value = count.to_be_bytes().to_vec();
    value.resize(8 + (count % 29) as usize, b'.');
    value
}

/// Every `step`-th key from `from` on, `count` of them; around the end they go on at the beginning.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keys {
    pub(crate) from: u16,
    pub(crate) step: u16,
    pub(crate) count: u16,
}

impl Keys {
    fn numbers(self) -> impl Iterator<Item = u16> {
        (0..self.count).map(move |nth| {
            let number = u32::from(self.from) + u32::from(nth) * u32::from(self.step);
            (number % u32::from(KEYS)) as u16
        })
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Op {
    Put(Keys),
    Delete(Keys),
    DeleteRange(Range<u16>),
    /// They expire after so many seconds.
    PutTtl(Keys, u8),
    /// A second passes.
    Tick,
    Ingest(Keys),
    Flush,
    Steps(u8),
    /// Until a merge of key ranges is half done, or nothing is left to do.
    StepIntoRanges,
    /// Steps, until one comes to a gap. Another thread's work is done there: writes, and a flush of
    /// them; in the gap of a flush, merges.
    StepIntoGap(Gap, Keys),
    Settle,
    Compact,
    TakeSnapshot,
    DropSnapshot,
    OpenScan(Range<u16>),
    /// So many entries from the front (true) or the back, in turns.
    MoveScans(Vec<(bool, u8)>),
    DropScans,
    /// With options that this number stands for.
    Reopen(u32),
    Crash,
    /// Of a sound store: it is not touched.
    Repair,
    /// The store goes on as its checkpoint.
    Checkpoint,
    Read(Range<u16>),
    Check,
}

/// Gaps between two steps of the background's work.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Gap {
    MergeStarted,
    MergePrepared,
    FlushPrepared,
}

impl Gap {
    fn point(self) -> PausePoint {
        match self {
            Gap::MergeStarted => PausePoint::MergeStarted,
            Gap::MergePrepared => PausePoint::MergePrepared,
            Gap::FlushPrepared => PausePoint::FlushPrepared,
        }
    }
}

type Action = Box<dyn FnOnce(&Db) + Send>;

/// What is to be done in the next gap of a kind.
#[derive(Default)]
struct Script {
    db: Mutex<Weak<Db>>,
    armed: Mutex<Option<(PausePoint, Action)>>,
}

impl Script {
    fn come_to(&self, point: PausePoint) {
        let mut armed = self.armed.lock().expect("not poisoned");
        let Some((_, action)) = armed.take_if(|(wanted, _)| *wanted == point) else { return };
        drop(armed);
        let db = self.db.lock().expect("not poisoned").upgrade();
        action(&db.expect("the store is open"));
    }
}

struct HeldScan {
    scan: Scan,
    expected: VecDeque<(Vec<u8>, Vec<u8>)>,
}

pub(crate) struct World {
    pub(crate) disk: Memory,
    clock: Arc<ManualClock>,
    pub(crate) options: Options,
    pub(crate) dir: String,
    db: Option<Arc<Db>>,
    script: Arc<Script>,
    pub(crate) model: Model,
    /// How often each key was written, deletions included.
    written: BTreeMap<Vec<u8>, u64>,
    writes: u64,
    snapshots: Vec<(Snapshot, Model)>,
    scans: Vec<HeldScan>,
    /// Operations that found trimmed tables.
    pub(crate) trimmed: u64,
}

/// Guards of each sort.
pub(crate) fn guards() -> Vec<GuardKind> {
    let tables = [kinds::BLOCKED_BLOOM, kinds::SURF_REAL, kinds::CELL];
    let tables = tables.into_iter().map(GuardKind::Table);
    let locator = [kinds::CHUCKY, kinds::REMIX, kinds::REMIX_SORTED];
    let locator = locator.into_iter().map(GuardKind::Locator);
    let whole = [GuardKind::Grf, GuardKind::Open, GuardKind::GrfHuffman];
    whole.into_iter().chain(tables).chain(locator).collect()
}

/// The options that a number stands for: guard, policy and granularity among them.
pub(crate) fn options(number: u32) -> Options {
    let mut rest = number;
    let mut draw = |count: usize| {
        let drawn = rest as usize % count;
        rest /= count as u32;
        drawn
    };
    let policies = Policy::NAMES.map(|name| Policy::named(name).expect("a preset"));
    Options::new()
        .guard(guards()[draw(guards().len())])
        .granularity([Granularity::Partitioned, Granularity::Partial, Granularity::Full][draw(3)])
        .policy(policies[draw(policies.len())].clone())
        .size_ratio(2 + draw(3) as u32)
        .partition_bytes([1024, 4096][draw(2)])
        .table_bytes(4096)
        .block_bytes(256)
        .write_buffer_bytes(1 << 16)
        .block_cache_bytes(1 << 14)
        .sync(SyncPolicy::Always)
        .background(Background::Stepped)
}

fn bounds(numbers: &Range<u16>) -> Range<Vec<u8>> {
    key(numbers.start)..key(numbers.end)
}

pub(crate) fn owned(entry: trommel::Result<trommel::KeyValue>) -> (Vec<u8>, Vec<u8>) {
    let (key, value) = entry.expect("reads");
    (key, value.to_vec())
}

impl World {
    pub(crate) fn new(options: Options) -> Self {
        let (disk, clock) = (Memory::new(), Arc::new(ManualClock::default()));
        let mut world = World {
            disk,
            clock,
            options,
            dir: "db".into(),
            db: None,
            script: Arc::default(),
            model: Model::new(),
            written: BTreeMap::new(),
            writes: 0,
            snapshots: Vec::new(),
            scans: Vec::new(),
            trimmed: 0,
        };
        world.open();
        world
    }

    pub(crate) fn db(&self) -> &Db {
        self.db.as_ref().expect("open between operations")
    }

    pub(crate) fn environment(&self) -> Environment {
        let (storage, clock) = (Arc::new(self.disk.clone()), Arc::clone(&self.clock) as _);
        let script = Arc::clone(&self.script);
        let pauses = Pauses::new(move |point| script.come_to(point));
        Environment::new().storage(storage).clock(clock).pauses(pauses)
    }

    fn close(&mut self) {
        self.snapshots.clear();
        self.scans.clear();
        self.db = None;
    }

    fn open(&mut self) {
        let options = self.options.clone();
        let db = Db::open_with(Path::new(&self.dir), options, self.environment());
        let db = Arc::new(db.expect("opens"));
        *self.script.db.lock().expect("not poisoned") = Arc::downgrade(&db);
        self.db = Some(db);
    }

    pub(crate) fn apply(&mut self, op: &Op) {
        self.trimmed += u64::from(self.db().stats().expect("open").trimmed_tables > 0);
        match op {
            Op::Put(keys) => keys.numbers().for_each(|number| self.put(number, None)),
            Op::PutTtl(keys, ttl) => keys.numbers().for_each(|n| self.put(n, Some(*ttl))),
            Op::Delete(keys) => keys.numbers().for_each(|number| self.delete(number)),
            Op::DeleteRange(range) => self.delete_range(range),
            Op::Ingest(keys) => self.ingest(*keys),
            Op::Tick => self.tick(),
            Op::StepIntoGap(gap, keys) => self.step_into_gap(*gap, *keys),
            Op::TakeSnapshot => {
                let snapshot = self.db().snapshot();
                self.snapshots.push((snapshot, self.model.clone()));
            }
            Op::DropSnapshot => drop(self.snapshots.pop()),
            Op::OpenScan(range) => {
                let expected = self.model.range(bounds(range));
                let expected = expected.map(|(k, v)| (k.clone(), v.clone())).collect();
                let scan = self.db().range(bounds(range));
                self.scans.push(HeldScan { scan, expected });
            }
            Op::MoveScans(moves) => self.scans.iter_mut().for_each(|held| held.follow(moves)),
            Op::DropScans => self.scans.clear(),
            Op::Read(range) => self.read(range),
            Op::Check => self.check(),
            other => self.change_tree(other),
        }
    }

    /// What changes no answer.
    fn change_tree(&mut self, op: &Op) {
        match op {
            Op::Flush => self.db().flush().expect("flushes"),
            Op::Steps(count) => (0..*count).for_each(|_| _ = self.db().step().expect("steps")),
            Op::StepIntoRanges => {
                while self.db().step().expect("steps")
                    && self.db().stats().expect("open").under_way.is_none()
                {}
            }
            Op::Settle => self.db().settle().expect("settles"),
            Op::Compact => self.db().compact().expect("compacts"),
            Op::Reopen(number) => {
                self.close();
                self.options = options(*number);
                self.open();
            }
            Op::Crash => {
                // Every write was synced: nothing may be missing.
                self.close();
                self.disk = self.disk.crash_hard();
                self.open();
            }
            Op::Repair => {
                self.close();
                let report = repair_with(&self.dir, &self.environment()).expect("repairs");
                assert!(!report.changed, "a sound store was mended: {report:?}");
                self.open();
            }
            Op::Checkpoint => {
                let dir = format!("{}'", self.dir);
                self.db().checkpoint(&dir).expect("makes another store");
                self.close();
                self.dir = dir;
                self.open();
            }
            other => unreachable!("{other:?} changes answers"),
        }
    }

    fn note_write(&mut self, key: &[u8]) -> u64 {
        self.writes += 1;
        *self.written.entry(key.to_vec()).or_default() += 1;
        self.writes
    }

    fn put(&mut self, number: u16, ttl: Option<u8>) {
        let key = key(number);
        let mut value = value(self.note_write(&key));
        let Some(ttl) = ttl.map(u64::from) else {
            self.db().put(&key, &value).expect("puts");
            self.model.insert(key, value);
            return;
        };
        // The value tells when it goes.
        let until = self.clock.now().as_secs() + ttl;
        value.splice(8.., [b"until ", &until.to_be_bytes()[..]].concat());
        self.db().put_ttl(&key, &value, Duration::from_secs(ttl)).expect("puts");
        match ttl {
            0 => self.model.remove(&key),
            _ => self.model.insert(key, value),
        };
    }

    fn delete(&mut self, number: u16) {
        let key = key(number);
        self.note_write(&key);
        self.db().delete(&key).expect("deletes");
        self.model.remove(&key);
    }

    fn delete_range(&mut self, range: &Range<u16>) {
        let Range { start, end } = bounds(range);
        self.db().delete_range(&start, &end).expect("deletes");
        self.model.retain(|key, _| *key < start || *key >= end);
    }

    fn ingest(&mut self, keys: Keys) {
        let numbers: std::collections::BTreeSet<u16> = keys.numbers().collect();
        let entries: Vec<_> =
            numbers.iter().map(|&n| (key(n), value(self.note_write(&key(n))))).collect();
        let loaded = self.db().ingest(entries.iter().map(|(k, v)| (k, v))).expect("ingests");
        assert_eq!(loaded, entries.len() as u64);
        self.model.extend(entries);
    }

    fn step_into_gap(&mut self, gap: Gap, keys: Keys) {
        let entries: Model =
            keys.numbers().map(|n| (key(n), value(self.note_write(&key(n))))).collect();
        let written = entries.clone();
        let action = move |db: &Db| {
            written.iter().for_each(|(key, value)| db.put(key, value).expect("puts"));
            match gap {
                Gap::MergeStarted | Gap::MergePrepared => db.flush().expect("flushes"),
                Gap::FlushPrepared => while db.step().expect("steps") {},
            }
        };
        let armed = || self.script.armed.lock().expect("not poisoned");
        *armed() = Some((gap.point(), Box::new(action)));
        while armed().is_some() && self.db().step().expect("steps") {}
        if armed().take().is_none() {
            self.model.extend(entries);
        }
    }

    /// What expires is gone for every reader.
    fn tick(&mut self) {
        self.clock.advance(Duration::from_secs(1));
        let now = self.clock.now().as_secs();
        let is_there = |value: &[u8]| {
            let until = value.get(8..).and_then(|rest| rest.strip_prefix(b"until "));
            until.is_none_or(|until| u64::from_be_bytes(until.try_into().expect("eight")) > now)
        };
        let models = self.snapshots.iter_mut().map(|(_, model)| model).chain([&mut self.model]);
        models.for_each(|model| model.retain(|_, value| is_there(value)));
        let scans = self.scans.iter_mut();
        scans.for_each(|held| held.expected.retain(|(_, value)| is_there(value)));
    }

    /// The keys of a range, one by one and by scans.
    fn read(&self, range: &Range<u16>) {
        for number in range.clone() {
            let key = key(number);
            let found = self.db().get(&key).expect("gets").map(|value| value.to_vec());
            assert_eq!(found, self.model.get(&key).cloned(), "get {number}");
        }
        let Range { start, end } = bounds(range);
        let edges = [
            (Bound::Included(start.clone()), Bound::Excluded(end.clone())),
            (Bound::Excluded(start.clone()), Bound::Included(end.clone())),
            (Bound::Included(start), Bound::Unbounded),
            (Bound::Unbounded, Bound::Excluded(end)),
        ];
        edges.into_iter().filter(|_| !range.is_empty()).for_each(|edges| self.read_within(edges));
    }

    fn read_within(&self, edges: (Bound<Vec<u8>>, Bound<Vec<u8>>)) {
        follow(self.db().range(edges.clone()), self.model.range(edges.clone()), &edges);
        for (snapshot, model) in &self.snapshots {
            follow(snapshot.range(edges.clone()), model.range(edges.clone()), &edges);
        }
        let keys = self.model.range(edges.clone()).count() as u64;
        let written: u64 = self.written.range(edges.clone()).map(|(_, count)| count).sum();
        let maybe = self.db().may_contain_range(edges.clone()).expect("asks");
        assert!(maybe || keys == 0, "{edges:?} with {keys} keys is said to be empty");
        let counted = self.db().approximate_count(edges.clone()).expect("counts");
        let right = keys <= counted.most && counted.least <= written;
        assert!(right, "{counted:?} for {keys} keys of {written} writes in {edges:?}");
    }

    /// Everything, by every way.
    pub(crate) fn check(&self) {
        self.read(&(0..KEYS));
        for (snapshot, model) in &self.snapshots {
            for number in 0..KEYS {
                let found = snapshot.get(key(number)).expect("gets").map(|value| value.to_vec());
                assert_eq!(found, model.get(&key(number)).cloned(), "snapshot, get {number}");
            }
        }
        let report = self.db().verify().expect("verifies");
        assert_eq!(report.damage, [""; 0]);
    }
}

/// Forward, backward, and from both ends in turns.
fn follow<'m>(
    scan: Scan,
    expected: impl Iterator<Item = (&'m Vec<u8>, &'m Vec<u8>)>,
    edges: &(Bound<Vec<u8>>, Bound<Vec<u8>>),
) {
    let expected: Vec<_> = expected.map(|(key, value)| (key.clone(), value.clone())).collect();
    let mut scan = scan;
    let (mut front, mut back) = (Vec::new(), Vec::new());
    // The way turns after one step, two, three, ...
    for turn in 1.. {
        let found: Vec<_> = match turn % 2 {
            0 => scan.by_ref().rev().take(turn).map(owned).collect(),
            _ => scan.by_ref().take(turn).map(owned).collect(),
        };
        let ended = found.len() < turn;
        if turn % 2 == 0 {
            back.extend(found)
        } else {
            front.extend(found)
        }
        if ended {
            break;
        }
    }
    back.reverse();
    front.extend(back);
    assert!(front == expected, "{edges:?}, in turns: {front:?} instead of {expected:?}");
}

impl HeldScan {
    fn follow(&mut self, moves: &[(bool, u8)]) {
        for (forward, count) in moves {
            for _ in 0..*count {
                let (found, expected) = match forward {
                    true => (self.scan.next(), self.expected.pop_front()),
                    false => (self.scan.next_back(), self.expected.pop_back()),
                };
                assert_eq!(found.map(owned), expected, "a held scan, forward: {forward}");
            }
        }
    }
}
