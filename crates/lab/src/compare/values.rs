//! `bench values`: large values, written, overwritten and read by this store and other engines.
//! ```text
//! each round, each store:  load -> settle -> overwrite -> settle -> check all
//!                          -> get -> get cached -> get from the disk -> scan -> scan keys -> gone
//! ```
//! Only one store exists at a time, and it settles before its turn ends. So all bytes that the
//! process writes during a turn are of that store.
//!
//! Invariant: each answer's key, length and first bytes are checked while it is timed; before that,
//! all bytes of all values. The report has the number of wrong answers.

use std::path::Path;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::bench::folder_size;
use crate::bench::forget::forget_files;
use crate::bench::rounds::turns;
use crate::compare::folders::{make_empty, remove};
use crate::compare::large_value::LargeValues;
use crate::compare::peer::{Contender, Engine, Peer, PeerSettings, find_all};
use crate::compare::peer_packing::PeerPacking;
use crate::compare::stores_plan::StoresPlan;
use crate::error::{LabError, Result};
use crate::keys::rng::{Rng, random_order, scattered_key};
use crate::median::median;
use crate::progress::Progress;

/// What to measure. Field names are an interface: the process with other engines receives this as
/// JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ValuesPlan {
    /// The stores, and the settings that they share.
    #[serde(flatten)]
    pub stores: StoresPlan,
    /// Bytes of a value.
    pub value_bytes: Vec<usize>,
    /// Whether values compress to half.
    pub compressible: bool,
    /// The packings of blocks.
    pub packings: Vec<PeerPacking>,
    /// The size in bytes from which values are stored apart from their keys. None: each engine's
    /// default.
    pub apart_from: Option<usize>,
    /// The share of garbage at which files of values are rewritten, regardless of their age. None:
    /// each engine's default, and space use is then not comparable.
    pub garbage_share: Option<f64>,
    /// Bytes of all values of a store.
    pub data_bytes: usize,
    /// How often each value is overwritten, on average.
    pub overwrites: f64,
    /// Bytes of values that each kind of gets reads in a round.
    pub get_bytes: usize,
    /// How many rounds there are.
    pub rounds: usize,
}

/// What was measured of one store, with values of one length and one packing.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ValuesReport {
    /// The engine's name.
    pub engine: String,
    /// Its filter.
    pub guard: String,
    /// All its settings, as text.
    pub settings: String,
    /// Bytes of a value.
    pub value_bytes: u64,
    /// Whether values compress to half.
    pub compressible: bool,
    /// The packing of blocks.
    pub packing: PeerPacking,
    /// How many keys there are.
    pub keys: u64,
    /// How many rounds there were.
    pub rounds: u64,
    /// The steps, in order.
    pub steps: Vec<ValuesStep>,
    /// Bytes that the process wrote to files per byte put, as the system counts pages: the median
    /// of the rounds. None: the system does not report it.
    pub written_per_byte: Option<f64>,
    /// Bytes of the folder after all writes and merges, per byte of keys and values: the median.
    pub space_per_byte: f64,
    /// Values and keys that were wrong or missing.
    pub wrong: u64,
}

/// The times of one step in all rounds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ValuesStep {
    /// Its name.
    pub name: String,
    /// Operations of a round. Of a scan: entries.
    pub operations: u64,
    /// Operations per second, from the median time.
    pub per_s: f64,
    /// Bytes of values per second. Of a scan of keys: bytes of keys.
    pub bytes_per_s: f64,
    /// The time of each round.
    pub seconds: Vec<f64>,
}

/// Measures values of each length and each packing, in each store.
///
/// # Errors
/// `Plan` if the plan makes no sense; others as the stores and the disk fail.
pub fn bench_values(
    plan: &ValuesPlan,
    engines: &[Box<dyn Engine>],
    progress: &mut dyn Progress,
) -> Result<Vec<ValuesReport>> {
    check(plan)?;
    let (found, named) = find_all(&plan.stores.contenders, engines)?;
    let stores: Vec<(&dyn Engine, Contender)> = found.into_iter().zip(named).collect();
    let mut reports = Vec::new();
    for &value_bytes in &plan.value_bytes {
        for packing in &plan.packings {
            reports.extend(measure(plan, &stores, (value_bytes, packing), progress)?);
        }
    }
    Ok(reports)
}

fn check(plan: &ValuesPlan) -> Result<()> {
    let is_built_in = plan.packings.iter().all(|packing| packing.compression.is_built_in());
    let (least, most) = (LargeValues::BYTES_MIN, plan.data_bytes);
    let rules = [
        (!plan.value_bytes.is_empty(), "one length of values at least"),
        (plan.value_bytes.iter().all(|len| *len >= least), "values of 16 bytes at least"),
        (plan.value_bytes.iter().all(|len| *len <= most), "as much data as one value at least"),
        (!plan.packings.is_empty(), "one way to pack at least"),
        (is_built_in, "zstd is for programs that were built with the feature `zstd`"),
        (
            plan.garbage_share.is_none_or(|share| (0.05..=0.95).contains(&share)),
            "a share of garbage from 0.05 to 0.95",
        ),
        ((0.0..=1000.0).contains(&plan.overwrites), "0 to 1000 overwrites of a value"),
        ((1..=1000).contains(&plan.rounds), "1 to 1000 rounds"),
        (plan.stores.merge_threads > 0, "one thread at least that merges"),
    ];
    match rules.into_iter().find(|(holds, _)| !holds) {
        Some((_, problem)) => Err(LabError::Plan(problem.into())),
        None => Ok(()),
    }
}

/// The reads and writes of one cell of the plan, the same for all stores.
struct Work<'p> {
    plan: &'p ValuesPlan,
    values: LargeValues,
    value_bytes: usize,
    packing: &'p PeerPacking,
    keys: Vec<[u8; 8]>,
    /// The numbers of keys, in key order.
    ordered: Vec<u32>,
}

/// The results of one store over all rounds.
#[derive(Default)]
struct SideResults {
    settings: String,
    steps: Vec<ValuesStep>,
    written: Vec<f64>,
    space: Vec<f64>,
    wrong: u64,
}

impl SideResults {
    fn step(&mut self, name: &str, operations: usize, time: Duration) {
        let seconds = time.as_secs_f64();
        match self.steps.iter_mut().find(|step| step.name == name) {
            Some(step) => step.seconds.push(seconds),
            None => self.steps.push(ValuesStep {
                name: name.into(),
                operations: operations as u64,
                per_s: 0.0,
                bytes_per_s: 0.0,
                seconds: vec![seconds],
            }),
        }
    }
}

fn measure(
    plan: &ValuesPlan,
    stores: &[(&dyn Engine, Contender)],
    (value_bytes, packing): (usize, &PeerPacking),
    progress: &mut dyn Progress,
) -> Result<Vec<ValuesReport>> {
    let work = Work::new(plan, value_bytes, packing);
    let mut results: Vec<SideResults> = stores.iter().map(|_| SideResults::default()).collect();
    progress.stage(
        &format!("values of {value_bytes} bytes, {packing}"),
        (plan.rounds * stores.len()) as u64,
    );
    for (round, side) in turns(stores.len(), plan.rounds) {
        let (engine, contender) = &stores[side];
        take_turn(&mut results[side], &work, (*engine, contender), round)?;
        progress.advance(1);
    }
    let sides = stores.iter().zip(results);
    Ok(sides.map(|((_, contender), results)| work.report(contender, results)).collect())
}

impl<'p> Work<'p> {
    fn new(plan: &'p ValuesPlan, value_bytes: usize, packing: &'p PeerPacking) -> Self {
        let count = (plan.data_bytes / value_bytes).max(1);
        let keys: Vec<_> =
            (0..count).map(|key| scattered_key(plan.stores.seed, key as u64)).collect();
        let mut ordered: Vec<u32> = (0..count as u32).collect();
        ordered.sort_unstable_by_key(|number| keys[*number as usize]);
        let values = LargeValues::new(value_bytes, plan.compressible, plan.stores.seed);
        Work { plan, values, value_bytes, packing, keys, ordered }
    }

    fn settings(&self) -> PeerSettings {
        PeerSettings {
            packing: self.packing.clone(),
            values_apart_from: self.plan.apart_from,
            value_garbage_share: self.plan.garbage_share,
            ..self.plan.stores.settings()
        }
    }

    /// Returns the bytes of keys and values of `entries` entries.
    fn bytes(&self, entries: usize) -> f64 {
        (entries * (self.keys[0].len() + self.value_bytes)) as f64
    }

    /// Returns how many gets read the planned number of bytes.
    fn gets(&self) -> usize {
        (self.plan.get_bytes / self.value_bytes).max(1)
    }

    fn report(&self, contender: &Contender, mut results: SideResults) -> ValuesReport {
        for step in &mut results.steps {
            step.per_s = step.operations as f64 / median(&mut step.seconds.clone());
            let bytes = if step.name == SCAN_KEYS { self.keys[0].len() } else { self.value_bytes };
            step.bytes_per_s = step.per_s * bytes as f64;
        }
        let written = (!results.written.is_empty()).then(|| median(&mut results.written));
        ValuesReport {
            engine: contender.engine.clone(),
            guard: contender.filter.clone(),
            settings: results.settings,
            value_bytes: self.value_bytes as u64,
            compressible: self.plan.compressible,
            packing: self.packing.clone(),
            keys: self.keys.len() as u64,
            rounds: self.plan.rounds as u64,
            steps: results.steps,
            written_per_byte: written,
            space_per_byte: median(&mut results.space),
            wrong: results.wrong,
        }
    }
}

const SCAN_KEYS: &str = "scan of keys";

/// Creates a store, measures it, and removes it.
fn take_turn(
    results: &mut SideResults,
    work: &Work<'_>,
    (engine, contender): (&dyn Engine, &Contender),
    round: usize,
) -> Result<()> {
    let folder = work.plan.stores.folder.join(contender.folder_name().replace(':', "-"));
    make_empty(&folder)?;
    let peer = engine.open(&folder, &contender.filter, &work.settings())?;
    results.settings = peer.settings();
    let mut rng = Rng::new(work.plan.stores.seed ^ (round as u64 + 1) << 32);
    let versions = write(results, work, (peer.as_ref(), &folder), &mut rng)?;
    results.wrong += count_wrong(work, peer.as_ref(), &versions)?;
    read(results, work, (peer.as_ref(), &folder), (&versions, &mut rng))?;
    peer.close()?;
    remove(&folder)
}

/// Loads and overwrites. Returns the version of each value.
fn write(
    results: &mut SideResults,
    work: &Work<'_>,
    (peer, folder): (&dyn Peer, &Path),
    rng: &mut Rng,
) -> Result<Vec<u64>> {
    let (count, before) = (work.keys.len(), written_bytes());
    let mut versions = vec![0; count];
    let order = random_order(count, work.plan.stores.seed);
    let loaded = put_all(work, peer, &mut versions, order.iter().map(|key| *key as usize))?;
    results.step("load", count, loaded);
    results.step("load, settled", count, loaded + settle(peer)?);
    let overwrites = (count as f64 * work.plan.overwrites) as usize;
    let drawn = (0..overwrites).map(|_| rng.place(count));
    let put = put_all(work, peer, &mut versions, drawn)?;
    if overwrites > 0 {
        results.step("overwrite", overwrites, put);
        results.step("overwrite, settled", overwrites, put + settle(peer)?);
    }
    if let (Some(before), Some(after)) = (before, written_bytes()) {
        results.written.push((after - before) as f64 / work.bytes(count + overwrites));
    }
    results.space.push(bytes_at_rest(folder) as f64 / work.bytes(count));
    Ok(versions)
}

/// Puts the next version of each of these keys. Returns the time spent in the store.
fn put_all(
    work: &Work<'_>,
    peer: &dyn Peer,
    versions: &mut [u64],
    numbers: impl Iterator<Item = usize>,
) -> Result<Duration> {
    let (mut value, mut time) = (Vec::new(), Duration::ZERO);
    for number in numbers {
        versions[number] += 1;
        work.values.fill(&mut value, number as u64, versions[number]);
        let start = Instant::now();
        peer.put(&work.keys[number], &value)?;
        time += start.elapsed();
    }
    Ok(time)
}

fn settle(peer: &dyn Peer) -> Result<Duration> {
    let start = Instant::now();
    peer.flush()?;
    peer.settle()?;
    Ok(start.elapsed())
}

/// Returns the bytes of a folder once they stop changing: obsolete files vanish a moment after the
/// last merge.
fn bytes_at_rest(folder: &Path) -> u64 {
    let (mut last, mut same) = (folder_size::bytes(folder), 0);
    for _ in 0..LOOKS_MAX {
        std::thread::sleep(LOOK);
        let now = folder_size::bytes(folder);
        same = if now == last { same + 1 } else { 0 };
        last = now;
        if same == LOOKS_SAME {
            break;
        }
    }
    last
}

/// The time between two looks at a folder.
const LOOK: Duration = Duration::from_millis(20);
/// This many equal looks in a row are enough, and so are `LOOKS_MAX` in all.
const LOOKS_SAME: usize = 10;
const LOOKS_MAX: usize = 250;

/// Returns the bytes that the process has written to files so far: pages dirtied in the page cache,
/// and direct writes. None: the system does not report it.
fn written_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/io").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("write_bytes:"))?;
    line.trim().parse().ok()
}

/// Counts wrong values, comparing all bytes: once with gets, once with a scan.
fn count_wrong(work: &Work<'_>, peer: &dyn Peer, versions: &[u64]) -> Result<u64> {
    let mut wrong = 0;
    for (number, key) in work.keys.iter().enumerate() {
        let mut is_right = false;
        peer.get(key, &mut |value| {
            is_right = work.values.is(value, number as u64, versions[number]);
        })?;
        wrong += u64::from(!is_right);
    }
    Ok(wrong
        + scan(work, peer, |values, value, place| values.is(value, place.0, place.1), versions)?)
}

type IsRight = fn(&LargeValues, &[u8], (u64, u64)) -> bool;

/// Scans everything. Returns how many entries were wrong, surplus or missing.
fn scan(work: &Work<'_>, peer: &dyn Peer, is_right: IsRight, versions: &[u64]) -> Result<u64> {
    let (mut wrong, mut at) = (0, 0);
    let shown = peer.scan(&[], None, usize::MAX, &mut |key, value| {
        let is_it = work.ordered.get(at).is_some_and(|&number| {
            let (number, place) = (number as usize, (u64::from(number), versions[number as usize]));
            work.keys[number] == key && is_right(&work.values, value, place)
        });
        wrong += u64::from(!is_it);
        at += 1;
    })?;
    Ok(wrong + shown.abs_diff(work.keys.len()) as u64)
}

fn read(
    results: &mut SideResults,
    work: &Work<'_>,
    (peer, folder): (&dyn Peer, &Path),
    (versions, rng): (&[u64], &mut Rng),
) -> Result<()> {
    let count = work.keys.len();
    let drawn: Vec<usize> = (0..work.gets()).map(|_| rng.place(count)).collect();
    results.wrong += get_all(results, "get", work, peer, (&drawn, versions))?;
    // A quarter of the cache's capacity, so that all of it fits.
    let hot = (work.plan.stores.block_cache_bytes / 4 / work.value_bytes).clamp(1, count);
    let drawn: Vec<usize> = (0..work.gets()).map(|_| rng.place(hot)).collect();
    results.wrong += get_all(&mut SideResults::default(), "", work, peer, (&drawn, versions))?;
    results.wrong += get_all(results, "get, cached", work, peer, (&drawn, versions))?;
    forget_files(folder)?;
    let drawn: Vec<usize> = (0..work.gets().div_ceil(4)).map(|_| rng.place(count)).collect();
    results.wrong += get_all(results, "get, from the disk", work, peer, (&drawn, versions))?;
    let seems: IsRight = |values, value, place| values.seems(value, place.0, place.1);
    // The first scan brings everything into the page cache.
    results.wrong += scan(work, peer, seems, versions)?;
    let start = Instant::now();
    results.wrong += scan(work, peer, seems, versions)?;
    results.step("scan", count, start.elapsed());
    let (start, mut at) = (Instant::now(), 0);
    let shown = peer.scan_keys(&mut |key| {
        let is_it = work.ordered.get(at).is_some_and(|number| work.keys[*number as usize] == key);
        results.wrong += u64::from(!is_it);
        at += 1;
    })?;
    results.step(SCAN_KEYS, count, start.elapsed());
    results.wrong += shown.abs_diff(count) as u64;
    Ok(())
}

/// Gets the keys and records the time as a step. Returns how many values were wrong.
fn get_all(
    results: &mut SideResults,
    name: &str,
    work: &Work<'_>,
    peer: &dyn Peer,
    (numbers, versions): (&[usize], &[u64]),
) -> Result<u64> {
    let (start, mut wrong) = (Instant::now(), 0);
    for &number in numbers {
        let mut is_right = false;
        peer.get(&work.keys[number], &mut |value| {
            is_right = work.values.seems(value, number as u64, versions[number]);
        })?;
        wrong += u64::from(!is_right);
    }
    results.step(name, numbers.len(), start.elapsed());
    Ok(wrong)
}

#[cfg(test)]
mod tests;
