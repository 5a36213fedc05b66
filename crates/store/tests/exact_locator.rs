//! A filter that knows exactly in which run each key is, and that checks what it is told.
//! ```text
//! puts, deletes, range deletes, snapshots, merges --> note(key, from, to)
//!     from    the key was noted there, and not away since      to    a slot of the plan
//! ```
//! Invariants: answers are those of a `BTreeMap` with the same writes. A key moves at most once for
//! each level that it goes down, however greedy merges are (Chucky, section 4.1, Table 2).

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use trommel::Environment;
use trommel::filters::register_run_locator;
use trommel::options::Granularity;
use trommel::storage::Memory;
use trommel::{Background, Db, FollowOptions, GuardKind, Options, Policy, Snapshot, SyncPolicy};
use trommel_filters::hash::{HashUse, hash_key};
use trommel_filters::{
    AnyRunLocatorBuilder, Query, RunLocator, RunLocatorBuilder, RunLocatorKind, RunLocatorSize,
    RunSlot, SlotSet, Trace, TreePlan,
};

/// Keys that moved from one slot to another, and filters that were made of a run's, of all tests.
static MOVED: AtomicU64 = AtomicU64::new(0);
static MADE: AtomicU64 = AtomicU64::new(0);
/// The tests take turns: they count together.
static TURN: Mutex<()> = Mutex::new(());

struct ExactKind;

const EXACT: &dyn RunLocatorKind = &ExactKind;

impl RunLocatorKind for ExactKind {
    fn name(&self) -> &'static str {
        "exact"
    }

    fn knows_ranges(&self) -> bool {
        false
    }

    fn builder(&self, plan: &TreePlan) -> Box<dyn AnyRunLocatorBuilder> {
        Box::new(<Exact as RunLocatorBuilder>::new(plan))
    }

    fn takes_hashes(&self) -> bool {
        true
    }
}

/// How often each key, by its hash, is in each slot.
#[derive(Clone)]
struct Exact {
    plan: TreePlan,
    counts: HashMap<(u64, RunSlot), u32>,
}

impl RunLocator for Exact {
    fn note(&mut self, key: &[u8], from: Option<RunSlot>, to: Option<RunSlot>) {
        self.note_hash(hash_key(key, HashUse::Chucky), from, to);
    }

    fn note_hash(&mut self, hash: u64, from: Option<RunSlot>, to: Option<RunSlot>) {
        if let Some(from) = from {
            let count = self.counts.get_mut(&(hash, from)).expect("the key was noted there");
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&(hash, from));
            }
            MOVED.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(to) = to {
            assert!(usize::from(to.0) < self.plan.slots());
            *self.counts.entry((hash, to)).or_default() += 1;
        }
    }

    fn candidates<T: Trace>(&self, query: &Query<'_>, slots: &mut SlotSet, _trace: &mut T) {
        let range = query.range();
        let hash = hash_key(range.lower(), HashUse::Chucky);
        for slot in (0..=u8::MAX).take(self.plan.slots()).map(RunSlot) {
            let is_point = range.upper() == Some(range.lower());
            if !is_point || self.counts.contains_key(&(hash, slot)) {
                slots.insert(slot);
            }
        }
    }

    fn lower_bound(&self, _slot: RunSlot, from: &[u8]) -> Option<Vec<u8>> {
        Some(from.to_vec())
    }

    fn upper_bound(&self, _slot: RunSlot, before: &[u8]) -> Option<Vec<u8>> {
        Some(before.to_vec())
    }

    fn size(&self) -> RunLocatorSize {
        let entries = self.counts.values().map(|&count| u64::from(count)).sum();
        RunLocatorSize { entries, room: self.plan.entries, ..RunLocatorSize::default() }
    }
}

impl RunLocatorBuilder for Exact {
    type Filter = Exact;

    fn new(plan: &TreePlan) -> Self {
        Exact { plan: plan.clone(), counts: HashMap::new() }
    }

    fn push(&mut self, key: &[u8]) {
        RunLocatorBuilder::push_hash(self, hash_key(key, HashUse::Chucky));
    }

    fn push_hash(&mut self, hash: u64) {
        let last = RunSlot((self.plan.slots() - 1) as u8);
        *self.counts.entry((hash, last)).or_default() += 1;
    }

    fn finish(self) -> Exact {
        MADE.fetch_add(u64::from(!self.counts.is_empty()), Ordering::Relaxed);
        self
    }
}

fn turn() -> MutexGuard<'static, ()> {
    register_run_locator(EXACT).expect("its name is free");
    TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn options(policy: Policy, size_ratio: u32) -> Options {
    Options::new()
        .size_ratio(size_ratio)
        .policy(policy)
        .guard(GuardKind::Locator(EXACT))
        .sync(SyncPolicy::Never)
        .background(Background::Stepped)
}

fn open(disk: &Memory, options: &Options) -> Db {
    let environment = Environment::new().storage(Arc::new(disk.clone()));
    Db::open_with(Path::new("db"), options.clone(), environment).expect("opens")
}

/// Spread over all numbers; no two alike.
fn key(number: u64) -> [u8; 8] {
    (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

#[test] // Chucky's table 2: O(L) with leveling. Each key of the resident run was told of at each merge.
fn a_key_moves_once_a_level_under_leveling() {
    const FLUSH_KEYS: u64 = 20;
    const RATIO: u32 = 6;
    let _turn = turn();
    for (policy, made_max) in [(Policy::leveling(), 40), (Policy::lazy_leveling(), 40)] {
        let db = open(&Memory::new(), &options(policy, RATIO));
        let (moved, made) = (MOVED.load(Ordering::Relaxed), MADE.load(Ordering::Relaxed));
        let flushes = u64::from(RATIO).pow(3) - 1;
        for flush in 0..flushes {
            let keys = (flush * FLUSH_KEYS..(flush + 1) * FLUSH_KEYS).map(key);
            keys.for_each(|key| db.put(key, key).expect("puts"));
            db.flush().expect("flushes");
            db.settle().expect("merges");
        }
        let levels = db.stats().expect("open").levels.len() as u64;
        let moved = MOVED.load(Ordering::Relaxed) - moved;
        assert!(levels >= 3 && moved <= levels * flushes * FLUSH_KEYS, "{levels}: {moved} moves");
        let made = MADE.load(Ordering::Relaxed) - made;
        assert!(made <= made_max, "{made} filters for {flushes} flushes");
    }
}

/// A sequence of numbers that look random.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
        (self.0 >> 33) % end
    }
}

type Model = BTreeMap<u64, u64>;

fn gives_what_the_model_has(db: &Db, model: &Model, held: &Option<(Snapshot, Model)>, at: &str) {
    for number in 0..KEYS {
        let found = db.get(number.to_be_bytes()).expect("gets");
        let found = found.map(|value| u64::from_be_bytes(value[..].try_into().expect("a number")));
        assert_eq!(found, model.get(&number).copied(), "{at}: key {number}");
        let Some((snapshot, model)) = held else { continue };
        let found = snapshot.get(number.to_be_bytes()).expect("gets").is_some();
        assert_eq!(found, model.contains_key(&number), "{at}: key {number} of a snapshot");
    }
}

const KEYS: u64 = 300;

/// Writes, flushes, merges: one of them.
fn do_something(db: &Db, model: &mut Model, numbers: &mut Numbers, step: u64) {
    let number = numbers.below(KEYS);
    match numbers.below(100) {
        0..60 => {
            db.put(number.to_be_bytes(), step.to_be_bytes()).expect("puts");
            model.insert(number, step);
        }
        60..75 => {
            db.delete(number.to_be_bytes()).expect("deletes");
            model.remove(&number);
        }
        75..77 => {
            let end = number + 1 + numbers.below(KEYS / 3);
            db.delete_range(number.to_be_bytes(), end.to_be_bytes()).expect("deletes");
            model.retain(|key, _| !(number..end).contains(key));
        }
        77..84 => db.flush().expect("flushes"),
        84..99 => _ = db.step().expect("merges"),
        _ => db.settle().expect("merges"),
    }
}

#[test]
fn merges_note_what_they_do_under_every_policy() {
    let _turn = turn();
    for (nth, name) in Policy::NAMES.into_iter().enumerate() {
        for size_ratio in [2, 3, 5] {
            let policy = Policy::named(name).expect("a preset");
            let (disk, options) = (Memory::new(), options(policy, size_ratio));
            let mut numbers = Numbers(nth as u64 * 100 + u64::from(size_ratio));
            let (mut model, mut db, mut held) = (Model::new(), open(&disk, &options), None);
            for step in 0..4_000u64 {
                match numbers.below(100) {
                    0 => held = Some((db.snapshot(), model.clone())),
                    1 => held = None,
                    2 if numbers.below(4) == 0 => {
                        held = None;
                        drop(db);
                        db = open(&disk, &options);
                    }
                    _ => do_something(&db, &mut model, &mut numbers, step),
                }
                if step % 200 == 0 {
                    gives_what_the_model_has(&db, &model, &held, &format!("{name}, {step}"));
                }
            }
            db.settle().expect("merges");
            gives_what_the_model_has(&db, &model, &held, name);
        }
    }
}

/// Splits runs into many tables, and merges a key range at a time.
fn in_parts(options: Options) -> Options {
    options.granularity(Granularity::Partitioned).table_bytes(4096).partition_bytes(1024)
}

#[test] // A follower's filter was made anew from all tables at each flush and merge.
fn a_follower_notes_what_merges_did_under_every_policy() {
    let _turn = turn();
    for (nth, name) in Policy::NAMES.into_iter().enumerate() {
        for (size_ratio, tune) in [(2, in_parts as fn(Options) -> Options), (5, |options| options)]
        {
            let policy = Policy::named(name).expect("a preset");
            let (disk, options) = (Memory::new(), tune(options(policy, size_ratio)));
            let db = open(&disk, &options);
            let environment = Environment::new().storage(Arc::new(disk.clone()));
            let follower = Db::follow_with("db", FollowOptions::new(), environment);
            let follower = follower.expect("follows");
            let (mut model, mut numbers) = (Model::new(), Numbers(nth as u64 + 1000));
            let (mut changes, mut made, mut levels) = (0, 0, String::new());
            for step in 0..4_000u64 {
                do_something(&db, &mut model, &mut numbers, step);
                // What is behind it is one edit, or many.
                if numbers.below(1 + step / 100 % 20) > 0 {
                    continue;
                }
                // The log's last group counts for a follower when another one is behind it.
                db.put("last", "").expect("puts");
                let before = MADE.load(Ordering::Relaxed);
                follower.catch_up().expect("catches up");
                made += MADE.load(Ordering::Relaxed) - before;
                let now = format!("{:?}", follower.stats().expect("open").levels);
                changes += u64::from(std::mem::replace(&mut levels, now) != levels);
                for number in 0..KEYS {
                    let found = follower.get(number.to_be_bytes()).expect("gets");
                    let found =
                        found.map(|value| u64::from_be_bytes(value[..].try_into().unwrap()));
                    let expected = model.get(&number).copied();
                    assert_eq!(found, expected, "{name}, {size_ratio}, {step}: key {number}");
                }
            }
            // Now and then all runs become one.
            assert!(made * 3 < changes, "{name}, {size_ratio}: {made} filters, {changes} changes");
        }
    }
}
