//! `bench ycsb`: YCSB's core workloads over this store and other engines, with the same operations,
//! in rounds that take turns.
//! ```text
//! fill each store, by all clients (timed) -> for each workload: rounds -> scan everything, compare
//! planned trees (fill.rs): for each workload   copies of the stores -> rounds -> scan, compare
//!
//! round 1   [a: clients 0 1 2] settle   [b: clients 0 1 2] settle
//! round 2   b, a      round 3   a, b  ...
//! ```
//! A round is a share of the operations, or of the seconds. In every round, each store has a turn
//! and then finishes its background work, which is timed separately. So a noisy machine is noisy to
//! all stores, and no merge disturbs another store. Workloads follow each other on the same stores.
//! With planned trees, each workload begins with a tree of its own.
//! Invariant: a seed gives every store the same operations.

mod client;
mod fill;
mod latency;
mod records;
mod report;
mod request;
mod stamps;
mod workload;

pub use fill::YcsbTree;
pub use latency::LatencyReport;
pub(crate) use latency::{empty_histogram, times_report};
pub use report::{CostReport, TimesReport, YcsbReport};
pub use request::Distribution;
pub use workload::{Operation, Workload};

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::bench::folder_size;
use crate::bench::pace::Pace;
use crate::compare::{
    Contender, Engine, OwnTree, PeerCounts, PeerSettings, PeerShape, StoresPlan, find_all, remove,
};
use crate::error::{LabError, Result};
use crate::progress::Progress;
pub(crate) use crate::ycsb::client::Until;
use crate::ycsb::client::{Client, Target};
use crate::ycsb::fill::{FilledStore, PlannedTrees};
use crate::ycsb::latency::Latencies;
use crate::ycsb::records::Records;
use crate::ycsb::request::Chooser;

/// The length of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunLength {
    /// This many operations of all clients together.
    Operations(u64),
    /// This many seconds.
    Seconds(f64),
}

/// What to measure. Field names are an interface: the process with other engines receives this as
/// JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct YcsbPlan {
    /// The stores, and the settings that they share.
    #[serde(flatten)]
    pub stores: StoresPlan,
    /// The workloads, in order.
    pub workloads: Vec<Workload>,
    /// The distribution of keys; None: the workload's own.
    pub distribution: Option<Distribution>,
    /// The keys that a store is filled with.
    pub keys: u64,
    /// Bytes of a value.
    pub value_bytes: usize,
    /// Numbers of clients, each client a thread. Every workload runs with each number; the first
    /// number fills.
    pub threads: Vec<usize>,
    /// The length of each workload.
    pub length: RunLength,
    /// Operations per second of all clients together. An operation that earlier ones delayed is
    /// timed from when it was due. If time ends the workload, operations that are due but not begun
    /// are left out, and `ops_per_s` is below the rate. None: no limit.
    pub rate: Option<f64>,
    /// The rounds of each workload.
    pub rounds: usize,
    /// Gets of all clients before the first round, with the workload's distribution.
    pub warm_up: u64,
    /// The planned tree of each workload. None: filling makes the tree, and workloads follow each
    /// other on it.
    pub begin: Option<YcsbTree>,
    /// Whether to search for the setting with which filters take the planned memory; only with
    /// planned trees.
    pub fit_bits: bool,
    /// Whether data bypasses the operating system's cache.
    pub direct: bool,
    /// The settings of this store's tree.
    pub tree: OwnTree,
}

/// The results of one store's rounds of one workload.
struct Rounds {
    clients: Vec<Client>,
    /// One for each round.
    turns: Vec<Turn>,
    before: Option<PeerCounts>,
    runs_before: [Option<u64>; 2],
    filter_bits_before: Option<f64>,
}

/// The results of one turn.
struct Turn {
    latencies: Latencies,
    ops: u64,
    seconds: f64,
    settle_seconds: f64,
}

/// Runs the benchmark. The stores stay in the plan's folder. Returns a report for each workload and
/// store, in the order of the workloads.
pub fn bench_ycsb(
    plan: &YcsbPlan,
    engines: &[Box<dyn Engine>],
    progress: &mut dyn Progress,
) -> Result<Vec<YcsbReport>> {
    let (openers, contenders) = find_all(&plan.stores.contenders, engines)?;
    check(plan)?;
    let stores: Vec<_> = openers.into_iter().zip(contenders).collect();
    match plan.begin {
        None => bench_in_a_row(&stores, plan, progress),
        Some(tree) => bench_apart(&stores, &PlannedTrees::new(plan, tree)?, plan, progress),
    }
}

/// Runs all workloads one after the other on the same stores.
fn bench_in_a_row(
    stores: &[(&dyn Engine, Contender)],
    plan: &YcsbPlan,
    progress: &mut dyn Progress,
) -> Result<Vec<YcsbReport>> {
    let mut sides = Vec::new();
    for (engine, contender) in stores {
        sides.push(fill::fill(*engine, contender, plan, progress)?);
    }
    let mut reports = Vec::new();
    for (workload, threads) in plan.cells() {
        reports.extend(run_workload(&sides, workload, threads, plan, progress)?);
    }
    let last = reports.len() - sides.len();
    check_all(sides, &mut reports[last..], progress)?;
    Ok(reports)
}

/// Runs each workload on its own stores with planned trees.
fn bench_apart(
    stores: &[(&dyn Engine, Contender)],
    trees: &PlannedTrees<'_>,
    plan: &YcsbPlan,
    progress: &mut dyn Progress,
) -> Result<Vec<YcsbReport>> {
    let mut fillings = Vec::new();
    for (engine, contender) in stores {
        fillings.push(trees.fill(*engine, contender, progress)?);
    }
    let mut reports = Vec::new();
    for (workload, threads) in plan.cells() {
        let mut sides = Vec::new();
        for ((engine, contender), filling) in stores.iter().zip(&fillings) {
            let folder = trees.folder(contender, workload, threads);
            let settings = plan.settings(filling.bits_setting);
            let (keys, contender) = (trees.keys_before(workload), contender.clone());
            sides.push(FilledStore {
                peer: engine.open(&folder, &contender.filter, &settings)?,
                records: Records::new(keys, plan.value_bytes, plan.stores.seed),
                contender,
                folder,
                keys,
                filling: *filling,
            });
        }
        let mut of_cell = run_workload(&sides, workload, threads, plan, progress)?;
        let folders: Vec<PathBuf> = sides.iter().map(|side| side.folder.clone()).collect();
        check_all(sides, &mut of_cell, progress)?;
        folders.iter().try_for_each(|folder| remove(folder))?;
        reports.extend(of_cell);
    }
    Ok(reports)
}

/// Compares every entry of the stores, and closes them.
fn check_all(
    sides: Vec<FilledStore>,
    reports: &mut [YcsbReport],
    progress: &mut dyn Progress,
) -> Result<()> {
    progress.stage("checking", sides.len() as u64);
    for (side, report) in sides.into_iter().zip(reports) {
        report.wrong_answers += side.records.count_wrong(side.peer.as_ref())?;
        side.peer.close()?;
        progress.advance(1);
    }
    Ok(())
}

fn check(plan: &YcsbPlan) -> Result<()> {
    let sensible_rate = |rate: f64| rate.is_finite() && (1e-3..=1e9).contains(&rate);
    let least = Records::VALUE_BYTES_LEAST;
    let rules = [
        ((1..=1 << 32).contains(&plan.keys), "1 to 4294967296 keys"),
        ((least..=1 << 30).contains(&plan.value_bytes), "a value has 24 bytes to 1 GiB"),
        (!plan.threads.is_empty(), "one number of threads at least"),
        (plan.threads.iter().all(|count| (1..=256).contains(count)), "1 to 256 threads"),
        (plan.length.is_sensible(), "one operation at least, or some seconds"),
        (plan.rate.is_none_or(sensible_rate), "a rate from one in a thousand seconds to 10^9"),
        ((1..=1000).contains(&plan.rounds), "1 to 1000 rounds"),
        (!plan.workloads.is_empty(), "one workload at least"),
        (plan.stores.merge_threads > 0, "one thread at least that merges"),
        (
            plan.begin.is_none() || matches!(plan.length, RunLength::Operations(_)),
            "operations by number, not by time, for a planned tree",
        ),
    ];
    match rules.into_iter().find(|(holds, _)| !holds) {
        Some((_, problem)) => Err(LabError::Plan(problem.into())),
        None => Ok(()),
    }
}

impl YcsbPlan {
    fn settings(&self, bits_setting: f64) -> PeerSettings {
        PeerSettings {
            bits_per_key: bits_setting,
            direct: self.direct,
            shape: PeerShape::Default(self.tree.clone()),
            ..self.stores.settings()
        }
    }

    /// Returns each workload with each number of clients.
    fn cells(&self) -> impl Iterator<Item = (Workload, usize)> + '_ {
        let of = |workload: &Workload| {
            let workload = *workload;
            self.threads.iter().map(move |threads| (workload, *threads))
        };
        self.workloads.iter().flat_map(of)
    }

    /// Returns the operations of a workload. 0: time ends it.
    fn operations(&self) -> u64 {
        match self.length {
            RunLength::Operations(count) => count,
            RunLength::Seconds(_) => 0,
        }
    }

    /// Estimates the keys that a workload inserts. If time ends it, the estimate is half of the
    /// keys before it.
    fn expected_inserts(&self, workload: Workload, there: u64) -> u64 {
        match (workload.share(Operation::Insert), self.length) {
            (0, _) => 0,
            (share, RunLength::Operations(count)) => count * share / 100,
            (_, RunLength::Seconds(_)) => there / 2,
        }
    }
}

impl RunLength {
    /// Returns when a client stops in a round that begins now.
    pub(crate) fn until(
        self,
        (round, rounds): (usize, usize),
        (client, clients): (usize, usize),
    ) -> Until {
        match self {
            RunLength::Operations(count) => {
                let parts = (rounds * clients) as u64;
                let part = (round * clients + client) as u64;
                Until::Operations(share(count, part + 1, parts) - share(count, part, parts))
            }
            RunLength::Seconds(seconds) => {
                let share = Duration::from_secs_f64(seconds / rounds as f64);
                Until::Moment(Instant::now() + share)
            }
        }
    }

    /// Whether there is something to do, and an end.
    pub(crate) fn is_sensible(self) -> bool {
        match self {
            RunLength::Operations(count) => count > 0,
            RunLength::Seconds(seconds) => seconds > 0.0 && seconds <= 1e7,
        }
    }
}

/// Returns the count of the first `part` of `parts` equal parts.
fn share(count: u64, part: u64, parts: u64) -> u64 {
    (u128::from(count) * u128::from(part) / u128::from(parts)) as u64
}

fn run_workload(
    sides: &[FilledStore],
    workload: Workload,
    threads: usize,
    plan: &YcsbPlan,
    progress: &mut dyn Progress,
) -> Result<Vec<YcsbReport>> {
    let distribution = plan.distribution.unwrap_or(workload.distribution());
    progress.stage(&format!("workload {workload}"), (plan.rounds * sides.len()) as u64);
    let mut all = Vec::with_capacity(sides.len());
    for side in sides {
        all.push(begin(side, workload, distribution, threads, plan)?);
    }
    // Every store was filled with the same keys.
    let scans = workload.share(Operation::Scan) > 0;
    let sorted = if scans { sides[0].records.sorted(sides[0].keys) } else { Vec::new() };
    for round in 0..plan.rounds {
        for turn in 0..sides.len() {
            let place = (round + turn) % sides.len();
            let (peer, records) = (sides[place].peer.as_ref(), &sides[place].records);
            let target = Target { peer, records, sorted: &sorted };
            let done = take_turn(&mut all[place].clients, target, plan, round)?;
            all[place].turns.push(done);
            progress.advance(1);
        }
    }
    sides
        .iter()
        .zip(all)
        .map(|(side, rounds)| report(side, rounds, workload, distribution, plan))
        .collect()
}

/// Creates the clients of a workload, warms up the store, and notes its state.
fn begin(
    side: &FilledStore,
    workload: Workload,
    distribution: Distribution,
    threads: usize,
    plan: &YcsbPlan,
) -> Result<Rounds> {
    /// Warming up draws other keys than the workload.
    const WARM_UP_SEED: u64 = 0x7761_726d;
    let (peer, there) = (side.peer.as_ref(), side.records.there());
    let chooser = Chooser::new(distribution, there, plan.expected_inserts(workload, there));
    let mut warming = Client::new(Workload::C, chooser.clone(), plan.stores.seed ^ WARM_UP_SEED, 0);
    let target = Target { peer, records: &side.records, sorted: &[] };
    warming.run(target, Pace::new(None), Until::Operations(plan.warm_up))?;
    let client = |nth| Client::new(workload, chooser.clone(), plan.stores.seed, nth);
    let mut clients: Vec<Client> = (0..threads).map(client).collect();
    clients[0].wrong += warming.wrong;
    let bits = |bytes: u64| bytes as f64 * 8.0 / there as f64;
    Ok(Rounds {
        clients,
        turns: Vec::new(),
        before: peer.counts(),
        runs_before: [peer.runs()?, peer.smallest_run()?],
        filter_bits_before: peer.filter_bytes()?.map(bits),
    })
}

/// Lets all clients do their share of a round, and then lets the store finish its background work.
fn take_turn(
    clients: &mut [Client],
    target: Target<'_>,
    plan: &YcsbPlan,
    round: usize,
) -> Result<Turn> {
    let threads = clients.len();
    let start = Instant::now();
    let ended = std::thread::scope(|scope| {
        let run = |(nth, client): (usize, &mut Client)| {
            let later = plan.rate.map_or(Duration::ZERO, |rate| {
                // Clients are due in turns, not all at once.
                Duration::from_secs_f64(nth as f64 / rate)
            });
            let until = plan.length.until((round, plan.rounds), (nth, threads));
            let rate = plan.rate.map(|rate| rate / threads as f64);
            client.run(target, Pace::new(rate).after(later), until)
        };
        let spawned: Vec<_> =
            clients.iter_mut().enumerate().map(|one| scope.spawn(move || run(one))).collect();
        let joined = spawned.into_iter().map(|client| client.join().expect("no client panics"));
        joined.collect::<Result<Vec<Instant>>>()
    })?;
    let last = ended.into_iter().max().unwrap_or(start);
    let settling = Instant::now();
    target.peer.settle()?;
    let mut latencies = Latencies::default();
    clients.iter_mut().for_each(|client| latencies.add(&std::mem::take(&mut client.latencies)));
    Ok(Turn {
        ops: latencies.count(|_| true),
        latencies,
        seconds: last.duration_since(start).as_secs_f64(),
        settle_seconds: settling.elapsed().as_secs_f64(),
    })
}

fn report(
    side: &FilledStore,
    rounds: Rounds,
    workload: Workload,
    distribution: Distribution,
    plan: &YcsbPlan,
) -> Result<YcsbReport> {
    let Rounds { clients, turns, before, runs_before, filter_bits_before } = rounds;
    let sum = |field: fn(&Turn) -> f64| turns.iter().map(field).sum::<f64>();
    let ops = turns.iter().map(|turn| turn.ops).sum::<u64>();
    let reads = turns.iter().map(|turn| turn.latencies.count(Operation::reads)).sum();
    let ops_per_s_of_rounds = turns.iter().map(|turn| turn.ops as f64 / turn.seconds).collect();
    let (seconds, settle_seconds) = (sum(|turn| turn.seconds), sum(|turn| turn.settle_seconds));
    let latencies: Vec<Latencies> = turns.into_iter().map(|turn| turn.latencies).collect();
    let (keys, peer, filling) = (side.records.there(), side.peer.as_ref(), side.filling);
    let (filter_bytes, counts) = (peer.filter_bytes()?, before.zip(peer.counts()));
    Ok(YcsbReport {
        engine: side.contender.engine.clone(),
        guard: side.contender.filter.clone(),
        workload,
        distribution,
        threads: clients.len() as u64,
        rate: plan.rate,
        ops,
        seconds,
        settle_seconds,
        ops_per_s: ops as f64 / seconds,
        ops_per_s_of_rounds,
        rounds: plan.rounds as u64,
        warm_up: plan.warm_up,
        times: latency::report(&latencies),
        costs: CostReport::of(reads, counts),
        wrong_answers: clients.iter().map(|client| client.wrong).sum(),
        keys,
        keys_filled: side.keys,
        value_bytes: plan.value_bytes as u64,
        fill_seconds: filling.seconds,
        fill_settle_seconds: filling.settle_seconds,
        fill_ops_per_s: filling.ops_per_s,
        disk_bytes: folder_size::bytes(&side.folder),
        runs_filled: runs_before[0],
        runs: peer.runs()?,
        smallest_run_keys: runs_before[1].into_iter().chain(peer.smallest_run()?).min(),
        flushes: counts.map(|(before, after)| after.flushes - before.flushes),
        guard_bits_per_key_filled: filter_bits_before,
        guard_bits_per_key: filter_bytes.map(|bytes| bytes as f64 * 8.0 / keys as f64),
        bits_per_key: plan.stores.bits_per_key,
        bits_setting: filling.bits_setting,
        unfit: filling.unfit,
        block_cache_bytes: plan.stores.block_cache_bytes as u64,
        direct: plan.direct,
        policy: plan.tree.policy.name().into(),
        seed: plan.stores.seed,
        settings: peer.settings(),
    })
}

#[cfg(test)]
mod tests;
