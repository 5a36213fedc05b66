//! Ranges that are deleted one over the other among few keys, against a map.
//! ```text
//! write -> memtable -> flush, step -> merged       between:
//!     snapshots, scans that turn, bulk loads, expiry, reopening
//! ```
//! Invariant: all answers are those of the map at that moment, whatever the options.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use trommel::research::Research as _;

use trommel::Environment;
use trommel::options::Granularity;
use trommel::storage::{Clock, Memory};
use trommel::testing::ManualClock;
use trommel::{
    Answer, Background, Batch, Db, GuardKind, Options, Policy, Scan, Snapshot, SyncPolicy,
};
use trommel_guards::kinds;

/// Histories, and what each does.
const SEEDS: u64 = 60;
const STEPS: u64 = 600;

type Key = Vec<u8>;
type Model = BTreeMap<Key, Vec<u8>>;

/// xorshift64*.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % sides
    }
}

struct Held {
    scan: Scan,
    left: VecDeque<(Key, Vec<u8>)>,
}

struct World {
    dice: Dice,
    disk: Memory,
    clock: Arc<ManualClock>,
    options: Options,
    db: Option<Db>,
    model: Model,
    snapshots: Vec<(Snapshot, Model)>,
    scans: Vec<Held>,
    keys: u64,
    style: u64,
    counter: u64,
    seed: u64,
}

fn open(disk: &Memory, clock: &Arc<ManualClock>, options: &Options) -> Db {
    let (storage, clock) = (Arc::new(disk.clone()), Arc::clone(clock) as _);
    let environment = Environment::new().storage(storage).clock(clock);
    Db::open_with(Path::new("db"), options.clone(), environment).expect("opens")
}

fn policies() -> Vec<Policy> {
    let between = Policy::leveling().last_runs(2).ratios(vec![3]);
    let delayed = Policy::leveling().delay_merges(true);
    let presets = Policy::NAMES.iter().filter_map(|name| Policy::named(name));
    presets.chain([between, delayed]).collect()
}

impl World {
    fn new(seed: u64) -> Self {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        (0..8).for_each(|_| {
            dice.roll(2);
        });
        let disk = Memory::new();
        let keys = 5 + dice.roll(26);
        let style = dice.roll(3);
        let options = Options::new()
            .block_cache_bytes(1 << 14)
            .sync(SyncPolicy::Always)
            .background(Background::Stepped);
        let options = Self::draw_options(&mut dice, options);
        let clock = Arc::new(ManualClock::default());
        let db = Some(open(&disk, &clock, &options));
        World {
            dice,
            disk,
            clock,
            options,
            db,
            keys,
            style,
            seed,
            model: Model::new(),
            snapshots: Vec::new(),
            scans: Vec::new(),
            counter: 0,
        }
    }

    fn draw_options(dice: &mut Dice, options: Options) -> Options {
        let guards = trommel_guards::all_guards();
        let drawn = guards[dice.roll(guards.len() as u64) as usize];
        let sorted = dice.roll(4) == 0;
        options
            .guard(if sorted { GuardKind::Locator(kinds::REMIX_SORTED) } else { drawn })
            .size_ratio(2 + dice.roll(4) as u32)
            .write_buffer_bytes([1 << 10, 1 << 11, 1 << 12, 1 << 16][dice.roll(4) as usize])
            .block_bytes(256)
            .table_bytes([4096, 1 << 20][dice.roll(2) as usize])
            .partition_bytes(1024)
            .merge_piece_bytes(1024)
            .policy(policies()[dice.roll(policies().len() as u64) as usize].clone())
            .granularity(Granularity::ALL[dice.roll(Granularity::ALL.len() as u64) as usize])
            .merges_at_once([None, Some(2), Some(4)][dice.roll(3) as usize])
            .max_open_files([None, Some(1), Some(3)][dice.roll(3) as usize])
    }

    fn db(&self) -> &Db {
        self.db.as_ref().unwrap()
    }

    fn key_of(&self, n: u64) -> Key {
        match self.style {
            0 => vec![n as u8],
            1 => format!("k{n:03}").into_bytes(),
            // Prefixes of each other.
            _ => {
                std::iter::repeat_n(0u8, (n % 3) as usize).fold(vec![(n / 3) as u8], |mut k, z| {
                    k.push(z);
                    k
                })
            }
        }
    }

    fn key(&mut self) -> Key {
        let n = self.dice.roll(self.keys);
        self.key_of(n)
    }

    fn bounds(&mut self) -> (Key, Key) {
        let from = self.dice.roll(self.keys + 1);
        let len = match self.dice.roll(4) {
            0 => 1,
            1 => 1 + self.dice.roll(3),
            _ => 1 + self.dice.roll(self.keys),
        };
        (self.key_of(from), self.key_of((from + len).min(self.keys + 1)))
    }

    fn value(&mut self) -> Vec<u8> {
        self.counter += 1;
        let mut v = format!("v{}", self.counter).into_bytes();
        let pad = self.dice.roll(24) as usize;
        v.extend(std::iter::repeat_n(b'.', pad));
        v
    }

    fn model_delete(model: &mut Model, from: &Key, to: &Key) {
        model.retain(|key, _| key < from || key >= to);
    }

    fn step(&mut self) {
        match self.dice.roll(100) {
            0..=24 => {
                let (key, value) = (self.key(), self.value());
                self.db().put(&key, &value).expect("puts");
                self.model.insert(key, value);
            }
            25..=29 => {
                let key = self.key();
                self.db().delete(&key).expect("deletes");
                self.model.remove(&key);
            }
            30..=49 => {
                let (from, to) = self.bounds();
                self.db().delete_range(&from, &to).expect("deletes");
                Self::model_delete(&mut self.model, &from, &to);
            }
            50..=55 => self.batch(),
            56..=60 => {
                if self.snapshots.len() < 12 {
                    let snapshot = self.db().snapshot();
                    self.snapshots.push((snapshot, self.model.clone()));
                }
            }
            61..=62 => {
                if !self.snapshots.is_empty() {
                    let n = self.dice.roll(self.snapshots.len() as u64) as usize;
                    self.snapshots.swap_remove(n);
                }
            }
            63..=65 => self.open_scan(),
            66..=72 => self.move_scans(),
            73 => {
                if !self.scans.is_empty() {
                    let n = self.dice.roll(self.scans.len() as u64) as usize;
                    self.scans.swap_remove(n);
                }
            }
            74..=76 => self.db().flush().expect("flushes"),
            77..=79 => self.background(),
            80 => match self.dice.roll(3) {
                0 => self.db().settle().expect("settles"),
                1 => self.db().compact().expect("compacts"),
                _ => self.reopen(),
            },
            81 => self.ingest(),
            82..=83 => self.ttl(),
            84 => self.tick(),
            85..=96 => self.check_some(),
            _ => self.check_all(),
        }
    }

    fn background(&mut self) {
        for _ in 0..1 + self.dice.roll(4) {
            let choice = self.dice.roll(256) as usize;
            match self.options.merges_at_once {
                None => self.db().step().expect("steps"),
                Some(_) => self.db().step_any(choice).expect("steps"),
            };
        }
    }

    /// Time passes: what has expired is gone, in snapshots and open scans too.
    fn tick(&mut self) {
        self.clock.advance(Duration::from_secs(1));
        let now = self.clock.now().as_secs();
        let models = self.snapshots.iter_mut().map(|(_, model)| model);
        models.chain([&mut self.model]).for_each(|m| m.retain(|_, v| !expired(v, now)));
        for held in &mut self.scans {
            held.left.retain(|(_, v)| !expired(v, now));
        }
    }

    fn batch(&mut self) {
        let mut batch = Batch::new();
        for _ in 0..1 + self.dice.roll(8) {
            match self.dice.roll(5) {
                0 | 1 => {
                    let (key, value) = (self.key(), self.value());
                    batch.put(&key, &value);
                    self.model.insert(key, value);
                }
                2 => {
                    let key = self.key();
                    batch.delete(&key);
                    self.model.remove(&key);
                }
                _ => {
                    let (from, to) = self.bounds();
                    batch.delete_range(&from, &to);
                    Self::model_delete(&mut self.model, &from, &to);
                }
            }
        }
        self.db().write(batch).expect("writes");
    }

    fn ttl(&mut self) {
        let (key, ttl) = (self.key(), self.dice.roll(4));
        let until = self.clock.now().as_secs() + ttl;
        let value = format!("until {until}").into_bytes();
        self.db().put_ttl(&key, &value, Duration::from_secs(ttl)).expect("puts");
        match ttl {
            0 => self.model.remove(&key),
            _ => self.model.insert(key, value),
        };
    }

    fn ingest(&mut self) {
        let mut entries = BTreeMap::new();
        for _ in 0..self.dice.roll(6) {
            let (key, value) = (self.key(), self.value());
            entries.insert(key, value);
        }
        self.db().ingest(&entries).expect("ingests");
        self.model.extend(entries);
    }

    fn reopen(&mut self) {
        self.snapshots.clear();
        self.scans.clear();
        self.db = None;
        if self.dice.roll(2) == 0 {
            self.disk = self.disk.crash_hard();
        }
        if self.dice.roll(2) == 0 {
            self.options = Self::draw_options(&mut self.dice, self.options.clone());
        }
        self.db = Some(open(&self.disk, &self.clock, &self.options));
    }

    fn any_range(&mut self) -> (Bound<Key>, Bound<Key>) {
        let (mut a, mut b) = (self.key(), self.key());
        if a > b {
            std::mem::swap(&mut a, &mut b);
        }
        let from = match self.dice.roll(3) {
            0 => Bound::Unbounded,
            1 => Bound::Included(a),
            _ => Bound::Excluded(a),
        };
        let to = match self.dice.roll(3) {
            0 => Bound::Unbounded,
            1 => Bound::Included(b),
            _ => Bound::Excluded(b),
        };
        (from, to)
    }

    fn expected(model: &Model, range: &(Bound<Key>, Bound<Key>)) -> VecDeque<(Key, Vec<u8>)> {
        use std::ops::RangeBounds;
        model
            .iter()
            .filter(|(k, _)| range.contains(*k))
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect()
    }

    fn open_scan(&mut self) {
        if self.scans.len() >= 6 {
            return;
        }
        let range = self.any_range();
        let of = self.dice.roll(self.snapshots.len() as u64 + 1) as usize;
        let (scan, left) = match self.snapshots.get(of) {
            Some((snapshot, model)) => {
                (snapshot.range(range.clone()), Self::expected(model, &range))
            }
            None => (self.db().range(range.clone()), Self::expected(&self.model, &range)),
        };
        self.scans.push(Held { scan, left });
    }

    fn move_scans(&mut self) {
        let mut scans = std::mem::take(&mut self.scans);
        for held in &mut scans {
            let back = self.dice.roll(2) == 0;
            self.move_scan(held, back);
        }
        self.scans = scans;
    }

    fn move_scan(&self, held: &mut Held, back: bool) {
        let (found, expected) = match back {
            true => (held.scan.next_back(), held.left.pop_back()),
            false => (held.scan.next(), held.left.pop_front()),
        };
        let found = found.map(|e| e.expect("reads")).map(|(k, v)| (k, v.to_vec()));
        assert_eq!(found, expected, "{} a held scan, back: {back}", self.name());
    }

    fn name(&self) -> String {
        format!("seed {} guard {} {:?}", self.seed, self.options.guard, self.options)
    }

    /// A scan that turns at random, a get of each key and a count.
    fn check_some(&mut self) {
        let of = self.dice.roll(self.snapshots.len() as u64 + 2) as usize;
        let range = self.any_range();
        let (scan, left) = match self.snapshots.get(of) {
            Some((snapshot, model)) => {
                (snapshot.range(range.clone()), Self::expected(model, &range))
            }
            None => (self.db().range(range.clone()), Self::expected(&self.model, &range)),
        };
        let count = left.len();
        let mut held = Held { scan, left };
        let way = self.dice.roll(3);
        for _ in 0..=count {
            let back = match way {
                0 => false,
                1 => true,
                _ => self.dice.roll(2) == 0,
            };
            self.move_scan(&mut held, back);
        }
        if of >= self.snapshots.len() {
            let degenerate = matches!(&range, (Bound::Excluded(a), Bound::Excluded(b)) if a == b);
            if !degenerate {
                let may = self.db().may_contain_range(range.clone()).expect("asks");
                assert!(may || count == 0, "{} {range:?} has {count}", self.name());
            }
        }
    }

    fn check_all(&mut self) {
        let keys: Vec<Key> = (0..=self.keys + 1).map(|n| self.key_of(n)).collect();
        let found: Vec<_> = self.db().multi_get(&keys);
        for (key, together) in keys.iter().zip(found) {
            let expected = self.model.get(key).cloned();
            let found = self.db().get(key).expect("gets").map(|v| v.to_vec());
            assert_eq!(found, expected, "{} get {key:?}", self.name());
            let together = together.expect("gets").map(|v| v.to_vec());
            assert_eq!(together, expected, "{} multi_get {key:?}", self.name());
        }
        for (snapshot, model) in &self.snapshots {
            for (key, together) in keys.iter().zip(snapshot.multi_get(&keys)) {
                let expected = model.get(key).cloned();
                let found = snapshot.get(key).expect("gets").map(|v| v.to_vec());
                assert_eq!(
                    found,
                    expected,
                    "{} get {key:?} at {}",
                    self.name(),
                    snapshot.sequence()
                );
                let together = together.expect("gets").map(|v| v.to_vec());
                assert_eq!(
                    together,
                    expected,
                    "{} multi_get {key:?} at {}",
                    self.name(),
                    snapshot.sequence()
                );
            }
            let all: Model = snapshot
                .range(..)
                .map(|e| e.expect("reads"))
                .map(|(k, v)| (k, v.to_vec()))
                .collect();
            assert_eq!(all, *model, "{} all at {}", self.name(), snapshot.sequence());
            let all: Model = snapshot
                .range(..)
                .rev()
                .map(|e| e.expect("reads"))
                .map(|(k, v)| (k, v.to_vec()))
                .collect();
            assert_eq!(all, *model, "{} all at {}, from the end", self.name(), snapshot.sequence());
        }
        if self.dice.roll(3) == 0 {
            let mut queue = self.db().queue(4);
            for (n, key) in keys.iter().enumerate() {
                queue.submit_get(key, n as u64);
            }
            while let Some(answered) = queue.wait() {
                let key = &keys[answered.tag as usize];
                if let Answer::Value(value) = answered.answer {
                    let value = value.expect("gets").map(|v| v.to_vec());
                    assert_eq!(
                        value,
                        self.model.get(key).cloned(),
                        "{} queue {key:?}",
                        self.name()
                    );
                }
            }
        }
        let most = self.db().approximate_count(..).expect("counts").most;
        assert!(most >= self.model.len() as u64, "{} counts {most} at most", self.name());
    }
}

fn expired(value: &[u8], now: u64) -> bool {
    let until = value
        .strip_prefix(b"until ")
        .and_then(|end| std::str::from_utf8(end).ok()?.parse::<u64>().ok());
    until.is_some_and(|until| until <= now)
}

#[test]
fn ranges_over_each_other_answer_like_a_map() {
    for seed in 1..=SEEDS {
        let mut world = World::new(seed);
        (0..STEPS).for_each(|_| world.step());
        world.check_all();
        let report = world.db().verify().expect("verifies");
        assert_eq!(report.damage, [""; 0], "{}", world.name());
    }
}
