//! Prints what reads and writes cost with the door and without:
//!
//!     cargo run --release --example front [--part all|prepare|fill|reads] [--keys 2000000]
//!         [--questions 50000] [--kind all|random|text] [--folder FOLDER]
//!
//! Both sides are the same RocksDB with Bloom filters of 10 bits, over the same tables (linked, not
//! copied). Two shapes: 21 runs (one has half of the keys, six 6 %, seven 1.5 %, seven 0.4 %; no
//! compaction) and RocksDB's default. Two kinds of keys: 16 random bytes, and text as
//! `user01234567time01234567`, some twenty rows of each user. Values have 100 bytes.
//!
//! `cached`: all blocks in the cache, nanoseconds of the asking thread's own time. `direct`: direct
//! I/O and a cache of a tenth of the data, nanoseconds that pass. Each figure is the least of some
//! rounds, in which both sides take turns. The same questions come to both, and all answers are
//! compared. From 10,000 questions on, the blocks that they are about do not fit into the tenth.
//! With `--folder`, a part finds what `prepare` has left.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rocksdb::checkpoint::Checkpoint;
use rocksdb::{
    BlockBasedOptions, BottommostLevelCompaction, Cache, CompactOptions, DB, Direction,
    IteratorMode, Options, WaitForCompactOptions,
};
use rustix::time::{ClockId, clock_gettime};
use trommel_rocksdb::{Db, DbIterator, ReadOptions};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const VALUE_BYTES: usize = 100;
const ROUNDS: usize = 4;
/// The part of each run among all keys, in thousandths, oldest first.
const RUNS: [u64; 21] =
    [507, 60, 60, 60, 60, 60, 60, 15, 15, 15, 15, 15, 15, 15, 4, 4, 4, 4, 4, 4, 4];
const ROWS_OF_USER: u64 = 20;
/// Rows that a scan reads.
const SCAN_ROWS: usize = 100;
/// While it is filled, somebody asks once in so many puts: else the door sleeps.
const PUTS_PER_QUESTION: u64 = 2048;
/// More ranges come once in so many: often enough for the door to answer them amid writes.
const PUTS_PER_RANGE: u64 = 64;
/// Puts into one database before the next one's turn.
const TURN: usize = 20_000;
/// The door's thread.
const WORKER: &str = "trommel-door";
/// How long the worker has for what is left, when a fill has ended.
const SETTLES: Duration = Duration::from_millis(1500);

struct Arguments {
    part: String,
    kind: String,
    keys: u64,
    questions: usize,
    folder: Option<PathBuf>,
}

impl Arguments {
    fn read() -> Result<Arguments> {
        let mut read = Arguments {
            part: "all".into(),
            kind: "all".into(),
            keys: 2_000_000,
            questions: 50_000,
            folder: None,
        };
        let mut given = std::env::args().skip(1);
        while let Some(name) = given.next() {
            let value = given.next().ok_or(format!("{name} needs a value"))?;
            match name.as_str() {
                "--part" => read.part = value,
                "--kind" => read.kind = value,
                "--keys" => read.keys = value.parse()?,
                "--questions" => read.questions = value.parse()?,
                "--folder" => read.folder = Some(value.into()),
                _ => return Err(format!("{name}: unknown").into()),
            }
        }
        if !["all", "prepare", "fill", "reads"].contains(&&read.part[..]) {
            return Err("--part: all, prepare, fill or reads".into());
        }
        if !["all", "random", "text"].contains(&&read.kind[..]) {
            return Err("--kind: all, random or text".into());
        }
        Ok(read)
    }

    fn has(&self, part: &str) -> bool {
        self.part == "all" || self.part == part
    }
}

/// The finalizer of SplitMix64: numbers that look random, each once.
fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Random,
    Text,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Random => "random",
            Kind::Text => "text",
        }
    }

    /// The key with a number, of a database with so many keys.
    fn key(self, number: u64, keys: u64) -> Vec<u8> {
        match self {
            Kind::Random => [mix(number).to_be_bytes(), mix(!number).to_be_bytes()].concat(),
            Kind::Text => text(mix(number) % (keys / ROWS_OF_USER).max(1), mix(!number)),
        }
    }
}

/// Users have even numbers: odd ones are absent.
fn text(user: u64, time: u64) -> Vec<u8> {
    format!("user{:08}time{:08}", 2 * user, time % 100_000_000).into_bytes()
}

#[derive(Clone, Copy, PartialEq)]
enum Shape {
    Runs,
    Default,
}

impl Shape {
    fn name(self) -> &'static str {
        match self {
            Shape::Runs => "21 runs",
            Shape::Default => "default",
        }
    }
}

fn options(shape: Shape, cache: Option<usize>) -> Options {
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_compression_type(rocksdb::DBCompressionType::None);
    options.set_max_background_jobs(2);
    let mut tables = BlockBasedOptions::default();
    tables.set_bloom_filter(10.0, false);
    let blocks = Cache::new_hyper_clock_cache(cache.unwrap_or(2 << 30), 0);
    tables.set_block_cache(&blocks);
    options.set_block_based_table_factory(&tables);
    options.set_use_direct_reads(cache.is_some());
    if shape == Shape::Runs {
        options.set_disable_auto_compactions(true);
        options.set_write_buffer_size(2 << 30);
        options.set_level_zero_slowdown_writes_trigger(100);
        options.set_level_zero_stop_writes_trigger(100);
    }
    options
}

/// Fills a folder, unless it is filled.
fn prepare(folder: &Path, (kind, shape): (Kind, Shape), keys: u64) -> Result<()> {
    let done = folder.with_extension("done");
    if done.exists() {
        return Ok(());
    }
    let db = DB::open(&options(shape, None), folder)?;
    let value = [7; VALUE_BYTES];
    let ends = RUNS.iter().scan(0, |sum, part| {
        *sum += part;
        Some(*sum * keys / 1000)
    });
    let ends: Vec<u64> = if shape == Shape::Runs { ends.collect() } else { vec![keys] };
    let mut number = 0;
    for (run, end) in ends.into_iter().enumerate() {
        while number < end {
            db.put(kind.key(number, keys), value)?;
            number += 1;
        }
        db.flush()?;
        if shape == Shape::Runs && run == 0 {
            let mut all = CompactOptions::default();
            all.set_bottommost_level_compaction(BottommostLevelCompaction::Force);
            db.compact_range_opt(None::<&[u8]>, None::<&[u8]>, &all);
        }
    }
    db.wait_for_compact(&WaitForCompactOptions::default())?;
    let other = folder.with_extension("door");
    Checkpoint::new(&db)?.create_checkpoint(other)?;
    std::fs::write(done, [])?;
    Ok(())
}

enum Question {
    Get(Vec<u8>),
    /// From a key to the one before the other.
    Range(Vec<u8>, Vec<u8>),
    /// So many rows from a key on.
    Scan(Vec<u8>),
}

/// One of the two sides.
trait Side {
    /// Rows that it finds.
    fn ask(&self, question: &Question) -> Result<usize>;
}

impl Side for DB {
    fn ask(&self, question: &Question) -> Result<usize> {
        let mut options = rocksdb::ReadOptions::default();
        match question {
            Question::Get(key) => Ok(self.get_pinned(key)?.is_some().into()),
            Question::Range(from, end) => {
                options.set_iterate_upper_bound(&end[..]);
                let from = IteratorMode::From(from, Direction::Forward);
                Ok(self.iterator_opt(from, options).count())
            }
            Question::Scan(from) => {
                let from = IteratorMode::From(from, Direction::Forward);
                Ok(self.iterator_opt(from, options).take(SCAN_ROWS).count())
            }
        }
    }
}

impl Side for Db {
    fn ask(&self, question: &Question) -> Result<usize> {
        let mut options = ReadOptions::default();
        match question {
            Question::Get(key) => Ok(self.get_pinned(key)?.is_some().into()),
            Question::Range(from, end) => {
                options.set_iterate_upper_bound(&end[..]);
                let from = IteratorMode::From(from, Direction::Forward);
                Ok(self.iterator_opt(from, options).count())
            }
            Question::Scan(from) => {
                let from = IteratorMode::From(from, Direction::Forward);
                let rows: DbIterator<'_> = self.iterator_opt(from, options);
                Ok(rows.take(SCAN_ROWS).count())
            }
        }
    }
}

/// Questions of each sort, with its name.
fn questions(kind: Kind, keys: u64, count: usize) -> Vec<(&'static str, Vec<Question>)> {
    let mut all: Vec<Vec<u8>> = (0..keys).map(|number| kind.key(number, keys)).collect();
    all.sort_unstable();
    let is_empty = |from: &[u8], end: &[u8]| {
        let next = all.partition_point(|key| &key[..] < from);
        all.get(next).is_none_or(|key| &key[..] >= end)
    };
    let others = || (1 << 40..).map(|number| (kind.key(number, keys), mix(number ^ 7)));
    let known: HashSet<&[u8]> = all.iter().map(|key| &key[..]).collect();
    let absent = others().map(|(key, _)| key).filter(|key| !known.contains(&key[..]));
    let hit = |at: u64| all[(mix(at) % all.len() as u64) as usize].clone();
    let ranges = others().filter_map(|(from, noise)| {
        let end = match kind {
            Kind::Random => {
                // About a quarter of what lies between two keys.
                let word = u64::from_be_bytes(*from.first_chunk().expect("16 bytes"));
                word.saturating_add(u64::MAX / keys / 4 + noise % 8).to_be_bytes().to_vec()
            }
            // Some hours of a user.
            Kind::Text => {
                let time = 100_000_000.min(noise % 100_000 + time_of(&from));
                [&from[..16], format!("{time:08}").as_bytes()].concat()
            }
        };
        (from < end && is_empty(&from, &end)).then_some(Question::Range(from, end))
    });
    let mut sorts = vec![
        ("miss", absent.take(count).map(Question::Get).collect()),
        ("empty range", ranges.take(count).collect()),
    ];
    if kind == Kind::Text {
        let absent_user = |at: u64| {
            let user = 2 * (mix(at) % (keys / ROWS_OF_USER).max(1)) + 1;
            let [from, end] = ["time", "timf"].map(|end| format!("user{user:08}{end}"));
            Question::Range(from.into(), end.into())
        };
        sorts.push(("absent user", (0..count as u64).map(absent_user).collect()));
    }
    sorts.push(("hit", (0..count as u64).map(|at| Question::Get(hit(at))).collect()));
    let scans = (count / 20).max(1) as u64;
    sorts.push(("scan of 100", (0..scans).map(|at| Question::Scan(hit(at))).collect()));
    sorts
}

fn time_of(key: &[u8]) -> u64 {
    std::str::from_utf8(&key[16..]).ok().and_then(|time| time.parse().ok()).unwrap_or(0)
}

fn time(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Nanoseconds of each question, and the rows that all of them found.
fn timed(side: &dyn Side, questions: &[Question], clock: ClockId) -> Result<(f64, usize)> {
    let (start, mut rows) = (time(clock), 0);
    for question in questions {
        rows += side.ask(question)?;
    }
    let passed = time(clock) - start;
    Ok((passed.as_nanos() as f64 / questions.len() as f64, rows))
}

/// Bytes of filters: RocksDB's, and those of the door, whose keys are counted.
struct Memory {
    theirs: u64,
    ours: usize,
    keys: u64,
}

fn memory(plain: &DB, door: &Db) -> Result<Memory> {
    let text = plain.property_value("rocksdb.aggregated-table-properties")?.unwrap_or_default();
    let size = text.split("filter block size=").nth(1).and_then(|rest| rest.split(';').next());
    let state = door.door_state();
    let theirs = size.unwrap_or("0").parse()?;
    Ok(Memory { theirs, ours: state.bytes, keys: state.keys })
}

/// Asks both sides in turns, which change places: so nothing depends on where a database lies.
fn reads(folder: &Path, (kind, shape): (Kind, Shape), arguments: &Arguments) -> Result<()> {
    let sorts = questions(kind, arguments.keys, arguments.questions);
    let data = arguments.keys as usize * (VALUE_BYTES + 20);
    let (one, other) = (folder.to_path_buf(), folder.with_extension("door"));
    for (medium, cache) in [("cached", None), ("direct", Some(data / 10))] {
        let is_cached = cache.is_none();
        let clock = if is_cached { ClockId::ThreadCPUTime } else { ClockId::Monotonic };
        let mut least = vec![[f64::INFINITY; 2]; sorts.len()];
        let mut of_filters = None;
        for (theirs, ours) in [(&one, &other), (&other, &one)] {
            let plain = DB::open(&options(shape, cache), theirs)?;
            let door = Db::open(&options(shape, cache), ours)?;
            if !door.wait_for_doors(Duration::from_secs(300)) {
                return Err("no scan ended".into());
            }
            for ((sort, questions), least) in sorts.iter().zip(&mut least) {
                // The first round warms caches.
                for round in 0..=ROUNDS {
                    let mut answers = [(0.0, 0); 2];
                    // Who comes second finds processor and disk warm: each is it as often.
                    for side in [round % 2, (round + 1) % 2] {
                        let asked: &dyn Side = if side == 0 { &plain } else { &door };
                        answers[side] = timed(asked, questions, clock)?;
                    }
                    let [(theirs, expected), (ours, rows)] = answers;
                    assert_eq!(rows, expected, "{sort}: both find the same");
                    if round > 0 {
                        *least = [least[0].min(theirs), least[1].min(ours)];
                    }
                }
            }
            of_filters = Some(memory(&plain, &door)?);
        }
        for ((sort, _), [theirs, ours]) in sorts.iter().zip(least) {
            let place = format!("{} | {} | {medium} | {sort}", kind.name(), shape.name());
            println!("| {place} | {theirs:.0} | {ours:.0} | {:.2} |", theirs / ours);
        }
        if let Some(Memory { theirs, ours, keys }) = of_filters.filter(|_| is_cached) {
            let place = format!("{} | {} | memory | bytes of filters", kind.name(), shape.name());
            let each = ours as f64 * 8.0 / keys as f64;
            println!("| {place} | {theirs} | {ours} | {each:.1} bits per key |");
        }
    }
    Ok(())
}

/// What somebody asks for while a database is filled.
#[derive(Clone, Copy, PartialEq)]
enum Asked {
    Nothing,
    Keys,
    Ranges,
    MoreRanges,
}

/// A database that is filled.
enum Filled {
    Plain(DB),
    Door(Db, Asked),
}

impl Filled {
    fn open(folder: &Path, asked: Option<Asked>) -> Result<Filled> {
        let options = options(Shape::Default, None);
        let Some(asked) = asked else {
            return Ok(Filled::Plain(DB::open(&options, folder)?));
        };
        let db = Db::open(&options, folder)?;
        db.wait_for_doors(Duration::from_secs(10));
        Ok(Filled::Door(db, asked))
    }

    fn put(&self, number: u64, (kind, keys): (Kind, u64)) -> Result<()> {
        let value = [7; VALUE_BYTES];
        match self {
            Filled::Plain(db) => db.put(kind.key(number, keys), value)?,
            Filled::Door(db, asked) => {
                let is_more = matches!(asked, Asked::MoreRanges);
                let puts = if is_more { PUTS_PER_RANGE } else { PUTS_PER_QUESTION };
                if number.is_multiple_of(puts) {
                    let absent = kind.key(!number, keys);
                    match asked {
                        Asked::Nothing => {}
                        Asked::Keys => drop(db.get(absent)?),
                        Asked::Ranges | Asked::MoreRanges => {
                            let end = [&absent, &[0xff][..]].concat();
                            db.ask(&Question::Range(absent, end))?;
                        }
                    }
                }
                db.put(kind.key(number, keys), value)?;
            }
        }
        Ok(())
    }

    fn settle(&self) -> Result<()> {
        let compacted = WaitForCompactOptions::default();
        match self {
            Filled::Plain(db) => db.wait_for_compact(&compacted)?,
            Filled::Door(db, _) => db.wait_for_compact(&compacted)?,
        }
        Ok(())
    }
}

/// The time that each thread of a name has run.
fn ran(name: &str) -> Result<BTreeMap<u64, Duration>> {
    let mut ran = BTreeMap::new();
    for task in std::fs::read_dir("/proc/self/task")? {
        let task = task?.path();
        if std::fs::read_to_string(task.join("comm"))?.trim_end() != name {
            continue;
        }
        let number = task.file_name().and_then(|name| name.to_str()?.parse().ok());
        let stat = std::fs::read_to_string(task.join("schedstat"))?;
        let nanos = stat.split(' ').next().and_then(|nanos| nanos.parse().ok());
        let (number, nanos) = number.zip(nanos).ok_or("a thread's time")?;
        ran.insert(number, Duration::from_nanos(nanos));
    }
    Ok(ran)
}

/// Fills a database for each, some puts of each in turn: so all of them see the same noise. What
/// RocksDB does in the background is the same for each; what a door does, its own thread has.
fn fill(folder: &Path, kind: Kind, keys: u64) -> Result<()> {
    let sides = [
        ("RocksDB", None),
        ("somebody asks for keys", Some(Asked::Keys)),
        ("somebody asks for ranges", Some(Asked::Ranges)),
        ("somebody asks for more ranges", Some(Asked::MoreRanges)),
        ("nobody asks", Some(Asked::Nothing)),
    ];
    let (mut filled, mut workers) = (Vec::new(), Vec::new());
    for (side, (_, asked)) in sides.iter().enumerate() {
        let folder = folder.join(format!("fill-{side}"));
        drop(std::fs::remove_dir_all(&folder));
        filled.push(Filled::open(&folder, *asked)?);
        workers.push(ran(WORKER)?.into_keys().find(|thread| !workers.contains(&Some(*thread))));
    }
    let all = time(ClockId::ProcessCPUTime);
    let mut writers = vec![Duration::ZERO; sides.len()];
    for first in (0..keys).step_by(TURN) {
        for turn in 0..sides.len() {
            let side = (turn + first as usize / TURN) % sides.len();
            let start = time(ClockId::ThreadCPUTime);
            for number in first..keys.min(first + TURN as u64) {
                filled[side].put(number, (kind, keys))?;
            }
            writers[side] += time(ClockId::ThreadCPUTime) - start;
        }
    }
    filled.iter().try_for_each(Filled::settle)?;
    // What is due, the worker does by now.
    std::thread::sleep(SETTLES);
    let all = time(ClockId::ProcessCPUTime) - all;
    let ran = ran(WORKER)?;
    let of_workers = workers
        .iter()
        .map(|thread| thread.and_then(|thread| ran.get(&thread).copied()).unwrap_or_default());
    let of_workers: Vec<Duration> = of_workers.collect();
    let ours = writers.iter().chain(&of_workers).sum::<Duration>();
    let background = (all - ours) / sides.len() as u32;
    let each = |time: Duration| time.as_nanos() as f64 / keys as f64;
    for side in 1..sides.len() {
        let place = format!("{} | default | fill, {}", kind.name(), sides[side].0);
        let all = |side: usize| writers[side] + of_workers[side] + background;
        for (what, theirs, ours) in [
            ("the writer's own time", writers[0], writers[side]),
            ("all threads", all(0), all(side)),
        ] {
            let more = (each(ours) / each(theirs) - 1.0) * 100.0;
            println!(
                "| {place} | {what} | {:.0} | {:.0} | {more:+.1} % |",
                each(theirs),
                each(ours)
            );
        }
        if let Filled::Door(db, _) = &filled[side] {
            println!("({}: {:?})", sides[side].0, db.door_state());
        }
    }
    drop(filled);
    for side in 0..sides.len() {
        std::fs::remove_dir_all(folder.join(format!("fill-{side}")))?;
    }
    Ok(())
}

fn main() -> Result<()> {
    let arguments = Arguments::read()?;
    let own = tempfile::tempdir()?;
    let folder = arguments.folder.as_deref().unwrap_or(own.path());
    std::fs::create_dir_all(folder)?;
    println!("| keys | shape | where | question | RocksDB, ns | with the door, ns | |");
    println!("|---|---|---|---|---|---|---|");
    let kinds = [Kind::Random, Kind::Text].into_iter();
    for kind in kinds.filter(|kind| ["all", kind.name()].contains(&&arguments.kind[..])) {
        for shape in [Shape::Runs, Shape::Default] {
            let of_shape =
                folder.join(format!("{}-{}", kind.name(), shape.name().replace(' ', "")));
            if arguments.has("prepare") || arguments.has("reads") {
                prepare(&of_shape, (kind, shape), arguments.keys)?;
            }
            if arguments.has("reads") {
                reads(&of_shape, (kind, shape), &arguments)?;
            }
        }
        if arguments.has("fill") {
            fill(folder, kind, arguments.keys)?;
        }
    }
    Ok(())
}
