//! The store against a `BTreeMap`: the same history under every guard gives the same answers, with
//! snapshots and scans held open over many flushes, merges, rounds and reopenings.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use trommel::research::Research as _;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use trommel::Environment;
use trommel::options::Granularity;
use trommel::stats::FilterRecovery;
use trommel::storage::{Clock, Memory};
use trommel::testing::ManualClock;
use trommel::{Background, Batch, Db, GuardKind, Options, Policy, Scan, Snapshot, SyncPolicy};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

#[derive(Clone, Debug)]
enum Op {
    Put(Vec<u8>, u8),
    Delete(Vec<u8>),
    Batch(Vec<(Vec<u8>, Option<u8>)>),
    Get(Vec<u8>),
    Range(Vec<u8>, Vec<u8>, bool),
    TakeSnapshot,
    ReadSnapshot(Vec<u8>),
    DropSnapshot,
    OpenScan(Vec<u8>, Option<Vec<u8>>),
    MoveScan(bool),
    DropScan,
    Flush,
    /// Of what is due or open, if several merges may be.
    Steps(Vec<u8>),
    Settle,
    Compact,
    /// With other options.
    Reopen(usize),
    /// With the same ones: images of filters can be used.
    Close,
    Crash,
    /// One key, many times: its versions fill several blocks, and snapshots hold some of them.
    Repeat(Vec<u8>, u8),
    DeleteAll,
    DeleteRange(Vec<u8>, Vec<u8>),
    /// Sorted first.
    Ingest(Vec<(Vec<u8>, u8)>),
    /// For so many seconds.
    PutTtl(Vec<u8>, u8),
    /// A second passes.
    Tick,
}

/// Keys that are prefixes of each other, with zeros and ones at their ends, and eight-byte numbers.
fn key() -> impl Strategy<Value = Vec<u8>> {
    let alphabet = prop_oneof![Just(0u8), Just(1), Just(b'a'), Just(b'b'), Just(0xff)];
    let number = (0u64..40).prop_map(|n| (n * n * n * 0x0101_0101).to_be_bytes().to_vec());
    prop_oneof![vec(alphabet, 0..4), number]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        12 => (key(), any::<u8>()).prop_map(|(key, value)| Op::Put(key, value)),
        4 => key().prop_map(Op::Delete),
        2 => vec((key(), any::<Option<u8>>()), 1..8).prop_map(Op::Batch),
        6 => key().prop_map(Op::Get),
        4 => (key(), key(), any::<bool>()).prop_map(|(from, to, back)| Op::Range(from, to, back)),
        1 => Just(Op::TakeSnapshot),
        2 => key().prop_map(Op::ReadSnapshot),
        1 => Just(Op::DropSnapshot),
        1 => (key(), any::<bool>(), key())
            .prop_map(|(from, bounded, to)| Op::OpenScan(from, bounded.then_some(to))),
        4 => any::<bool>().prop_map(Op::MoveScan),
        1 => Just(Op::DropScan),
        5 => Just(Op::Flush),
        4 => vec(any::<u8>(), 1..6).prop_map(Op::Steps),
        2 => Just(Op::Settle),
        1 => Just(Op::Compact),
        1 => (0..trommel_guards::all_guards().len()).prop_map(Op::Reopen),
        2 => Just(Op::Close),
        1 => Just(Op::Crash),
        1 => (key(), 1u8..80).prop_map(|(key, times)| Op::Repeat(key, times)),
        1 => Just(Op::DeleteAll),
        3 => (key(), key()).prop_map(|(from, to)| Op::DeleteRange(from, to)),
        3 => (key(), 0u8..4).prop_map(|(key, ttl)| Op::PutTtl(key, ttl)),
        1 => Just(Op::Tick),
        1 => vec((key(), any::<u8>()), 0..12).prop_map(Op::Ingest),
    ]
}

/// A scan and what it must still give.
struct HeldScan {
    scan: Scan,
    expected: std::collections::VecDeque<(Vec<u8>, Vec<u8>)>,
}

struct World {
    disk: Memory,
    clock: Arc<ManualClock>,
    options: Options,
    db: Option<Db>,
    model: Model,
    /// How often each key was written, deletions included.
    writes: BTreeMap<Vec<u8>, u64>,
    snapshots: Vec<(Snapshot, Model)>,
    scans: Vec<HeldScan>,
    images_used: u32,
}

fn value_of(byte: u8) -> Vec<u8> {
    vec![byte; usize::from(byte % 32)]
}

/// The value of an entry that expires tells when.
fn expiring(seconds: u64) -> Vec<u8> {
    [b"until ", &seconds.to_be_bytes()[..]].concat()
}

fn has_expired(value: &[u8], now: u64) -> bool {
    let seconds =
        value.strip_prefix(b"until ").map(|end| u64::from_be_bytes(end.try_into().unwrap()));
    seconds.is_some_and(|seconds| seconds <= now)
}

fn open(disk: &Memory, clock: &Arc<ManualClock>, options: &Options) -> Db {
    let (storage, clock) = (Arc::new(disk.clone()), Arc::clone(clock) as _);
    let environment = Environment::new().storage(storage).clock(clock);
    Db::open_with(Path::new("db"), options.clone(), environment).expect("opens")
}

fn in_order(from: Vec<u8>, to: Vec<u8>) -> (Vec<u8>, Vec<u8>) {
    if from <= to { (from, to) } else { (to, from) }
}

impl World {
    fn new(guard: GuardKind, size_ratio: u32) -> Self {
        let disk = Memory::new();
        let options = Options::new()
            .guard(guard)
            .size_ratio(size_ratio)
            .write_buffer_bytes(1 << 16)
            .block_bytes(256)
            .table_bytes(4096)
            // Trees of a few hundred entries have several partitions.
            .partition_bytes(1024)
            .merge_piece_bytes(1024)
            .block_cache_bytes(1 << 14)
            .sync(SyncPolicy::Always)
            .background(Background::Stepped);
        let clock = Arc::new(ManualClock::default());
        let db = Some(open(&disk, &clock, &options));
        let (model, writes, snapshots, scans, images_used) = Default::default();
        World { disk, clock, options, db, model, writes, snapshots, scans, images_used }
    }

    fn db(&self) -> &Db {
        self.db.as_ref().expect("open between operations")
    }

    fn reopen(&mut self) {
        self.snapshots.clear();
        self.scans.clear();
        self.db = None;
        let db = open(&self.disk, &self.clock, &self.options);
        let recovery = db.stats().expect("open").filter_recovery;
        self.images_used += u32::from(matches!(recovery, FilterRecovery::Image { .. }));
        self.db = Some(db);
    }

    /// Applies the operation; what it answered, for comparison between guards.
    fn apply(&mut self, op: &Op) -> Vec<u8> {
        let mut answer = Vec::new();
        match op.clone() {
            Op::Put(key, byte) => {
                self.db().put(&key, value_of(byte)).expect("puts");
                self.note_write(&key);
                self.model.insert(key, value_of(byte));
            }
            Op::Delete(key) => {
                self.db().delete(&key).expect("deletes");
                self.note_write(&key);
                self.model.remove(&key);
            }
            Op::Batch(writes) => self.write_batch(writes),
            Op::Repeat(key, times) => {
                for byte in 0..times {
                    self.write_batch(vec![(key.clone(), Some(byte))]);
                    if byte % 16 == 7 && self.snapshots.len() < 12 {
                        self.snapshots.push((self.db().snapshot(), self.model.clone()));
                    }
                }
            }
            Op::DeleteAll => {
                let keys = self.model.keys().map(|key| (key.clone(), None));
                self.write_batch(keys.collect());
            }
            Op::PutTtl(key, ttl) => self.put_ttl(key, ttl.into()),
            Op::Tick => self.tick(),
            Op::Ingest(entries) => self.ingest(entries),
            Op::DeleteRange(from, to) => {
                let (from, to) = in_order(from, to);
                self.db().delete_range(&from, &to).expect("deletes");
                self.model.retain(|key, _| *key < from || *key >= to);
            }
            Op::Get(key) => {
                let found = self.db().get(&key).expect("gets").map(|value| value.to_vec());
                assert_eq!(found, self.model.get(&key).cloned(), "get {key:?}");
                self.check_together(&key);
                answer.extend(found.unwrap_or_default());
            }
            Op::Range(from, to, back) => answer.extend(self.check_range(from, to, back)),
            Op::TakeSnapshot => {
                let snapshot = self.db().snapshot();
                self.snapshots.push((snapshot, self.model.clone()));
            }
            Op::ReadSnapshot(key) => self.read_snapshots(&key),
            Op::DropSnapshot => drop(self.snapshots.pop()),
            Op::OpenScan(from, to) => self.open_scan(from, to),
            Op::MoveScan(back) => self.scans.iter_mut().for_each(|held| held.step(back)),
            Op::DropScan => drop((!self.scans.is_empty()).then(|| self.scans.remove(0))),
            Op::Flush => self.db().flush().expect("flushes"),
            Op::Steps(choices) => choices.into_iter().for_each(|choice| self.step(choice)),
            Op::Settle => self.db().settle().expect("settles"),
            Op::Compact => self.db().compact().expect("compacts"),
            Op::Reopen(_) | Op::Close => self.reopen(),
            Op::Crash => {
                // Every write was synced: nothing may be missing.
                self.disk = self.disk.crash_hard();
                self.reopen();
            }
        }
        answer
    }

    fn step(&self, choice: u8) {
        let stepped = match self.options.merges_at_once {
            None => self.db().step(),
            Some(_) => self.db().step_any(choice.into()),
        };
        stepped.expect("steps");
    }

    fn ingest(&mut self, entries: Vec<(Vec<u8>, u8)>) {
        let sorted: BTreeMap<Vec<u8>, u8> = entries.into_iter().collect();
        let entries = sorted.iter().map(|(key, byte)| (key, value_of(*byte)));
        assert_eq!(self.db().ingest(entries).expect("ingests"), sorted.len() as u64);
        for (key, byte) in sorted {
            self.note_write(&key);
            self.model.insert(key, value_of(byte));
        }
    }

    fn put_ttl(&mut self, key: Vec<u8>, ttl: u64) {
        let until = self.clock.now().as_secs() + ttl;
        self.db().put_ttl(&key, expiring(until), Duration::from_secs(ttl)).expect("puts");
        self.note_write(&key);
        match ttl {
            0 => self.model.remove(&key),
            _ => self.model.insert(key, expiring(until)),
        };
    }

    /// What expires is gone for every reader.
    fn tick(&mut self) {
        self.clock.advance(Duration::from_secs(1));
        let now = self.clock.now().as_secs();
        let models = self.snapshots.iter_mut().map(|(_, model)| model);
        for model in models.chain([&mut self.model]) {
            model.retain(|_, value| !has_expired(value, now));
        }
        for held in &mut self.scans {
            held.expected.retain(|(_, value)| !has_expired(value, now));
        }
    }

    fn note_write(&mut self, key: &[u8]) {
        *self.writes.entry(key.to_vec()).or_default() += 1;
    }

    fn write_batch(&mut self, writes: Vec<(Vec<u8>, Option<u8>)>) {
        let mut batch = Batch::new();
        for (key, byte) in writes {
            self.note_write(&key);
            match byte {
                Some(byte) => {
                    batch.put(&key, value_of(byte));
                    self.model.insert(key, value_of(byte));
                }
                None => {
                    batch.delete(&key);
                    self.model.remove(&key);
                }
            }
        }
        self.db().write(batch).expect("writes");
    }

    /// All keys in one batch, and one of them twice.
    fn check_together(&self, key: &Vec<u8>) {
        let keys: Vec<&Vec<u8>> = [key, key].into_iter().chain(self.model.keys()).collect();
        for (key, found) in keys.iter().zip(self.db().multi_get(&keys)) {
            let found = found.expect("gets").map(|value| value.to_vec());
            assert_eq!(found, self.model.get(*key).cloned(), "multi_get {key:?}");
        }
    }

    fn check_range(&self, from: Vec<u8>, to: Vec<u8>, back: bool) -> Vec<u8> {
        let (from, to) = in_order(from, to);
        let scan = self.db().range(from.clone()..=to.clone());
        let entry = |entry: trommel::Result<trommel::KeyValue>| {
            let (key, value) = entry.expect("reads");
            (key, value.to_vec())
        };
        let mut found: Vec<_> =
            if back { scan.rev().map(entry).collect() } else { scan.map(entry).collect() };
        if back {
            found.reverse();
        }
        let expected = self.model.range(from.clone()..=to.clone());
        let expected: Vec<_> = expected.map(|(k, v)| (k.clone(), v.clone())).collect();
        assert_eq!(found, expected, "range {from:?} to {to:?}, backward: {back}");
        self.check_counts((Bound::Included(from.clone()), Bound::Included(to.clone())));
        self.check_counts((Bound::Excluded(from.clone()), Bound::Excluded(to.clone())));
        self.check_counts((Bound::Included(from), Bound::Unbounded));
        self.check_counts((Bound::Unbounded, Bound::Excluded(to)));
        found.concat_bytes()
    }

    /// A range is empty only if it has no key. Every key in it is an entry, and every entry was
    /// written.
    fn check_counts(&self, range: (Bound<Vec<u8>>, Bound<Vec<u8>>)) {
        if let (Bound::Excluded(from), Bound::Excluded(to)) = &range
            && from == to
        {
            return; // no range for a map
        }
        let keys = self.model.range(range.clone()).count() as u64;
        let written: u64 = self.writes.range(range.clone()).map(|(_, count)| count).sum();
        let maybe = self.db().may_contain_range(range.clone()).expect("asks");
        assert!(maybe || keys == 0, "{range:?} with {keys} keys is said to be empty");
        let together = self.db().multi_may_contain([range.clone(), range.clone()]);
        assert_eq!(together.expect("asks"), [maybe, maybe], "{range:?}");
        let bounds = self.db().approximate_count(range.clone()).expect("counts");
        let right = keys <= bounds.most && bounds.least <= written;
        assert!(right, "{bounds:?} for {keys} keys of {written} writes in {range:?}");
        let count = self.db().estimate_count(range).expect("counts");
        assert!(bounds.least <= count && count <= bounds.most, "{count} in {bounds:?}");
    }

    fn read_snapshots(&self, key: &[u8]) {
        for (snapshot, model) in &self.snapshots {
            let found = snapshot.get(key).expect("gets").map(|value| value.to_vec());
            assert_eq!(found, model.get(key).cloned(), "snapshot get {key:?}");
            let keys: Vec<&Vec<u8>> = model.keys().collect();
            for (key, found) in keys.iter().zip(snapshot.multi_get(&keys)) {
                let found = found.expect("gets").map(|value| value.to_vec());
                assert_eq!(found.as_ref(), model.get(*key), "snapshot multi_get {key:?}");
            }
            let all: Vec<_> = snapshot.range(..).map(|e| e.expect("reads").0).collect();
            assert_eq!(all, model.keys().cloned().collect::<Vec<_>>());
        }
    }

    fn open_scan(&mut self, from: Vec<u8>, to: Option<Vec<u8>>) {
        let (scan, expected): (_, Vec<_>) = match to {
            Some(to) => {
                let (from, to) = in_order(from, to);
                let expected = self.model.range(from.clone()..to.clone());
                (self.db().range(from.clone()..to.clone()), expected.collect())
            }
            None => (self.db().range(from.clone()..), self.model.range(from..).collect()),
        };
        let expected = expected.into_iter().map(|(k, v)| (k.clone(), v.clone())).collect();
        self.scans.push(HeldScan { scan, expected });
    }
}

impl HeldScan {
    fn step(&mut self, back: bool) {
        let (found, expected) = if back {
            (self.scan.next_back(), self.expected.pop_back())
        } else {
            (self.scan.next(), self.expected.pop_front())
        };
        let found = found.map(|entry| entry.expect("reads")).map(|(k, v)| (k, v.to_vec()));
        assert_eq!(found, expected, "a held scan, backward: {back}");
    }
}

trait ConcatBytes {
    fn concat_bytes(&self) -> Vec<u8>;
}

impl ConcatBytes for Vec<(Vec<u8>, Vec<u8>)> {
    fn concat_bytes(&self) -> Vec<u8> {
        self.iter().flat_map(|(key, value)| key.iter().chain(value)).copied().collect()
    }
}

/// All presets, and trees between them.
fn policies() -> Vec<Policy> {
    let between = Policy::leveling().last_runs(2).ratios(vec![3]);
    let delayed = Policy::leveling().delay_merges(true);
    let presets = Policy::NAMES.iter().filter_map(|name| Policy::named(name));
    presets.chain([between, delayed]).collect()
}

/// Gives how often a filter came from its image.
fn run(ops: &[Op], size_ratio: u32) -> u32 {
    let guards = trommel_guards::all_guards();
    let mut worlds: Vec<World> =
        guards.iter().map(|guard| World::new(*guard, size_ratio)).collect();
    for (place, world) in worlds.iter_mut().enumerate() {
        let options = world.options.clone();
        world.options = options
            .policy(policies()[place % policies().len()].clone())
            .merges_at_once([Some(3), None, Some(2)][place % 3])
            .eager_tombstones(place % 2 == 0);
        world.reopen();
    }
    for op in ops {
        if let Op::Reopen(shift) = op {
            // The worlds trade guards: what one wrote the next must read.
            for (place, world) in worlds.iter_mut().enumerate() {
                let options = world.options.clone();
                let size_ratio = 2 + (options.size_ratio + *shift as u32) % 4;
                world.options = options
                    .guard(guards[(place + shift) % guards.len()])
                    .size_ratio(size_ratio)
                    .policy(policies()[(place + shift) % policies().len()].clone())
                    .write_buffer_bytes([1 << 10, 1 << 16, 1 << 12][*shift % 3])
                    .table_bytes([4096, 1 << 20, 8192][*shift % 3])
                    .merges_at_once([None, Some(2), Some(4)][(place + shift) % 3])
                    .eager_tombstones((place + shift) % 3 > 0)
                    .granularity(Granularity::ALL[*shift % Granularity::ALL.len()]);
            }
        }
        let answers: Vec<_> = worlds.iter_mut().map(|world| world.apply(op)).collect();
        assert!(answers.iter().all(|answer| *answer == answers[0]), "guards differ at {op:?}");
    }
    for world in &worlds {
        let report = world.db().verify().expect("verifies");
        assert_eq!(report.damage, [""; 0]);
    }
    worlds.iter().map(|world| world.images_used).sum()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, max_shrink_iters: 4000, ..Default::default() })]

    #[test]
    fn every_guard_answers_like_a_map(ops in vec(op(), 1..160), size_ratio in 2u32..5) {
        run(&ops, size_ratio);
    }
}

/// A long history in which rounds end many times: more flushes than proptest's short ones reach.
#[test]
fn many_rounds_with_scans_held_open() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for size_ratio in [2, 3] {
        let ops = vec(op(), 3000).new_tree(&mut runner).expect("generates").current();
        let calm = |op: &Op| !matches!(op, Op::Reopen(_) | Op::Crash);
        let ops: Vec<Op> = ops.into_iter().filter(calm).collect();
        run(&ops, size_ratio);
    }
}

/// Closed and crashed all the time, the filter comes from images, which know all or need newer
/// tables.
#[test]
fn images_of_filters_answer_like_a_map() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let reopened = prop_oneof![
        12 => op().prop_filter("the options stay", |op| !matches!(op, Op::Reopen(_))),
        1 => Just(Op::Close),
        1 => Just(Op::Crash),
        2 => Just(Op::Flush),
    ];
    let ops = vec(reopened, 1500).new_tree(&mut runner).expect("generates").current();
    let images_used = run(&ops, 3);
    assert!(images_used > 100, "{images_used} images used: too few for this test");
}
