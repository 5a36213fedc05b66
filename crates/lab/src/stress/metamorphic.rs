//! The metamorphic law: the same operations give the same answers, whatever the options.
//! ```text
//! history -> store with options A -> transcript  =  store with options B -> transcript  =  ...
//! ```
//! Invariant: a transcript has every byte that readers received, and no estimates.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use trommel::research::Research as _;

use trommel::Environment;
use trommel::options::{Granularity, Overlap};
use trommel::storage::{Disk, Memory, Storage};
use trommel::{Background, Batch, Db, KeyValue, Options, Scan, Snapshot, SyncPolicy};

use super::draw::{History, history_of};
use super::keys::KeyIndex;
use super::model::{expiry_of, value_of};
use super::operation::{StressOperation, StressStep, Write, tell};
use super::setup::{compression, elastic, filter, policy};
use super::values::ValueDrawer;
use super::writer::expiry_at;
use crate::keys::rng::Rng;

const STEPS: u32 = 1200;
/// Final questions of each kind.
const QUESTIONS: usize = 100;

/// The bytes that readers received, by the number of the step.
type Transcript = Vec<(u32, Vec<u8>)>;

/// A store that runs a history, and its transcript.
struct AskedStore<'h> {
    history: &'h History,
    /// The options of the first opening, the second, and so on; they repeat.
    options: &'h [Options],
    storage: Arc<dyn Storage>,
    dir: &'h Path,
    openings: usize,
    db: Option<Db>,
    snapshots: Vec<Snapshot>,
    scans: Vec<Scan>,
    transcript: Transcript,
}

/// Returns the transcript of a store with these options.
fn answers(
    history: &History,
    options: &[Options],
    storage: Arc<dyn Storage>,
    dir: &Path,
) -> Transcript {
    let (snapshots, scans, transcript) = Default::default();
    let mut reader = AskedStore {
        history,
        options,
        storage,
        dir,
        openings: 0,
        db: None,
        snapshots,
        scans,
        transcript,
    };
    reader.open();
    for step in &history.steps {
        let answer = reader.apply(step);
        reader.transcript.push((step.number, answer));
    }
    reader.ask_at_the_end();
    reader.transcript
}

fn bytes_of(entry: Option<trommel::Result<KeyValue>>) -> Vec<u8> {
    let Some(entry) = entry else { return b"end".to_vec() };
    let (key, value) = entry.expect("nothing fails here");
    [&key[..], b" = ", &value[..], b"\n"].concat()
}

fn all_of(scan: Scan, back: bool) -> Vec<u8> {
    if back {
        scan.rev().flat_map(|entry| bytes_of(Some(entry))).collect()
    } else {
        scan.flat_map(|entry| bytes_of(Some(entry))).collect()
    }
}

impl AskedStore<'_> {
    fn db(&self) -> &Db {
        self.db.as_ref().expect("open between operations")
    }

    fn open(&mut self) {
        self.snapshots.clear();
        self.scans.clear();
        if let Some(db) = self.db.take() {
            db.close().expect("closes");
        }
        let options = self.options[self.openings % self.options.len()].clone();
        self.openings += 1;
        let storage = Arc::clone(&self.storage);
        let environment = Environment::new().storage(storage);
        self.db = Some(Db::open_with(self.dir, options, environment).expect("opens"));
    }

    fn apply(&mut self, step: &StressStep) -> Vec<u8> {
        match &step.operation {
            StressOperation::Write { writes, synced } => self.write(writes, *synced),
            StressOperation::DeleteRange(deletion) => {
                self.write(&deletion.before, false);
                self.db().delete_range(&deletion.from, &deletion.to).expect("deletes");
                self.write(&deletion.after, deletion.synced);
            }
            StressOperation::Ingest(writes) => {
                let key = |write: &Write| self.history.keys.get(write.place);
                let entries = writes.iter().map(|write| (key(write), value_of(write.number)));
                self.db().ingest(entries).expect("ingests");
            }
            StressOperation::Get(place) => return self.get(*place),
            StressOperation::Scan { edges, back } => {
                return all_of(self.db().range(edges.clone()), *back);
            }
            StressOperation::TakeSnapshot => {
                self.snapshots.truncate(5);
                self.snapshots.push(self.db().snapshot());
            }
            StressOperation::ReadSnapshot { which, edges, back, .. }
                if !self.snapshots.is_empty() =>
            {
                let snapshot = &self.snapshots[which % self.snapshots.len()];
                return all_of(snapshot.range(edges.clone()), *back);
            }
            StressOperation::OpenScan { edges, .. } => {
                self.scans.truncate(5);
                self.scans.push(self.db().range(edges.clone()));
            }
            StressOperation::MoveScan { which, back, times } if !self.scans.is_empty() => {
                let which = which % self.scans.len();
                let scan = &mut self.scans[which];
                let step = |_| bytes_of(if *back { scan.next_back() } else { scan.next() });
                return (0..*times).flat_map(step).collect();
            }
            StressOperation::DropSnapshot(which) if !self.snapshots.is_empty() => {
                self.snapshots.remove(which % self.snapshots.len());
            }
            StressOperation::DropScan(which) if !self.scans.is_empty() => {
                self.scans.remove(which % self.scans.len());
            }
            StressOperation::CutStream(_) | StressOperation::ReadOn { .. } => {}
            StressOperation::OpenReader(place) => {
                let reader = self.db().get_reader(self.history.keys.get(*place)).expect("gets");
                let Some(mut reader) = reader else { return b"none".to_vec() };
                let mut all = Vec::new();
                std::io::Read::read_to_end(&mut reader, &mut all).expect("reads");
                return all;
            }
            StressOperation::Flush => self.db().flush().expect("flushes"),
            StressOperation::Step(count) => (0..*count).for_each(|nth| {
                self.db().step_any(step.choice(nth)).expect("steps");
            }),
            StressOperation::Settle => self.db().settle().expect("settles"),
            StressOperation::Compact => self.db().compact().expect("compacts"),
            StressOperation::Sync => self.db().sync().expect("syncs"),
            // Crashes and faults are left out: their effects depend on the options.
            StressOperation::Reopen(_) => self.open(),
            _ => {}
        }
        Vec::new()
    }

    fn write(&self, writes: &[Write], synced: bool) {
        let mut batch = Batch::new();
        for write in writes {
            let key = self.history.keys.get(write.place);
            match write.number {
                0 => batch.delete(key),
                // The value has expired: the clock is that of the machine.
                number if expiry_of(number).is_some() => {
                    batch.put_with_expiry(key, value_of(number), expiry_at(number % 4))
                }
                number => batch.put(key, value_of(number)),
            };
        }
        let written = if synced { self.db().write_synced(batch) } else { self.db().write(batch) };
        written.expect("writes");
    }

    fn get(&self, place: KeyIndex) -> Vec<u8> {
        let found = self.db().get(self.history.keys.get(place)).expect("gets");
        found.map_or(b"none".to_vec(), |value| [b"= ", &value[..]].concat())
    }

    /// Asks a list of questions that is the same for all stores.
    fn ask_at_the_end(&mut self) {
        let mut rng = Rng::new(STEPS.into());
        for _ in 0..QUESTIONS {
            let edges = self.history.keys.draw_edges(&mut rng);
            let mut answer = self.get(self.history.keys.draw(&mut rng));
            answer.extend(all_of(self.db().range(edges.clone()), false));
            answer.extend(all_of(self.db().range(edges), true));
            self.transcript.push((STEPS + 1, answer));
        }
        let all = all_of(self.db().range(..), false);
        self.transcript.push((STEPS + 2, all));
        let damage = self.db().verify().expect("verifies").damage;
        assert!(damage.is_empty(), "{damage:?}");
    }
}

/// Returns four variants of the options for every guard, with all other options drawn.
fn variants() -> Vec<Options> {
    (0..4 * trommel_guards::all_guards().len()).map(variant).collect()
}

fn variant(number: usize) -> Options {
    fn one_of<T: Copy>(values: &[T], rng: &mut Rng) -> T {
        values[rng.place(values.len())]
    }
    let rng = &mut Rng::new(number as u64);
    let short = Duration::from_millis(1);
    let syncs = [SyncPolicy::Never, SyncPolicy::Always, SyncPolicy::Interval(short)];
    let backgrounds = [Background::Stepped, Background::Threads(1), Background::Threads(3)];
    let options = Options::new()
        .guard(trommel_guards::all_guards()[number % trommel_guards::all_guards().len()])
        .size_ratio(one_of(&[2, 3, 5, 10], rng))
        .write_buffer_bytes(one_of(&[1 << 10, 1 << 12, 1 << 20], rng))
        .bits_per_key(one_of(&[2.0, 8.0, 12.0, 20.0, 5.5], rng))
        .point_bits(one_of(&[0, 0, 1, 3, 4], rng))
        .block_bytes(one_of(&[256, 4096, 1000], rng))
        .compression(one_of(&[false, true], rng))
        .block_cache_bytes(one_of(&[0, 1 << 12, 1 << 20], rng))
        .overlap(Overlap::OneByOne)
        .table_bytes(one_of(&[4096, 1 << 20], rng))
        .sync(one_of(&syncs, rng))
        .background(one_of(&backgrounds, rng));
    let elastic = elastic(rng);
    let options = options
        .filter(filter(rng).with(elastic))
        .granularity(one_of(&Granularity::ALL, rng))
        .partition_bytes(one_of(&[1 << 10, 1 << 12, 1 << 20], rng));
    let monkey = options.guard.rate_law().is_some() && one_of(&[false, true], rng);
    options
        .monkey(monkey)
        .policy(policy(rng))
        .merges_at_once(one_of(&[None, Some(2), Some(4)], rng))
        .merge_piece_bytes(one_of(&[1 << 10, 1 << 13], rng))
        .max_open_files(one_of(&[None, Some(1), Some(4)], rng))
        .eager_tombstones(one_of(&[false, true], rng))
        .compression(compression(rng))
        .last_level_compression(Some(compression(rng)))
        .dictionary_bytes(one_of(&[0, 256, 1 << 14], rng))
        .value_threshold(one_of(&[0, 256, 1024], rng))
        .value_garbage_share(one_of(&[0.05, 0.3, 0.9], rng))
        .value_move_oldest(one_of(&[0.0, 0.3, 1.0], rng))
        .value_file_bytes(one_of(&[4 << 10, 64 << 10], rng))
}

fn assert_same(history: &History, seed: u64, plain: &Transcript, other: &Transcript, case: &str) {
    assert_eq!(plain.len(), other.len());
    let Some(place) = (0..plain.len()).find(|&place| plain[place] != other[place]) else { return };
    let number = plain[place].0;
    let step = history.steps.iter().find(|step| step.number == number);
    let step = step.map_or("a question at the end".into(), |step| tell(step, &history.keys));
    let [plain, other] = [plain, other].map(|answers| answers[place].1.escape_ascii());
    panic!("seed {seed}, {case}: at\n{step}\nthe first answers\n{plain}\nand this one\n{other}");
}

fn assert_same_whatever_the_options(seeds: Range<u64>) {
    let (variants, dir) = (variants(), Path::new("db"));
    let memory = || Arc::new(Memory::new()) as Arc<dyn Storage>;
    let mut bytes = 0;
    for seed in seeds {
        let history = history_of(seed, STEPS, ValueDrawer::few(seed));
        let plain = answers(&history, &variants[..1], memory(), dir);
        bytes += plain.iter().map(|(_, answer)| answer.len()).sum::<usize>();
        for (number, options) in variants.iter().enumerate().skip(1) {
            let other = answers(&history, std::slice::from_ref(options), memory(), dir);
            assert_same(&history, seed, &plain, &other, &format!("variant {number}"));
        }
        let turns = answers(&history, &variants, memory(), dir);
        assert_same(&history, seed, &plain, &turns, "other options at each opening");
        let folder = tempfile::tempdir().expect("a folder");
        // Each history uses other variants.
        let on_disk: Vec<_> = variants.iter().skip(seed as usize * 2).take(2).cloned().collect();
        let real = answers(&history, &on_disk, Arc::new(Disk), &folder.path().join("db"));
        assert_same(&history, seed, &plain, &real, "the real disk");
    }
    assert!(bytes > 1 << 20, "{bytes} bytes of answers: too few to tell stores apart");
}

// Two tests, for two threads.
#[test]
fn the_same_operations_give_the_same_answers_whatever_the_options() {
    assert_same_whatever_the_options(0..3);
}

#[test]
fn other_operations_give_the_same_answers_whatever_the_options() {
    assert_same_whatever_the_options(3..6);
}
