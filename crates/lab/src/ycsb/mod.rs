//! `bench ycsb`: YCSB's core workloads over this store and others, the same operations, rounds that
//! take turns.
//! ```text
//! fill each store, by all clients (timed) -> for each workload: rounds -> scan everything, compare
//!
//! round 1   [a: clients 0 1 2] settle   [b: clients 0 1 2] settle
//! round 2   b, a      round 3   a, b  ...
//! ```
//! A round is a share of the operations, or of the seconds. Every store has its turn in every
//! round, and then completes its background work, which is timed apart. So a noisy machine is noisy
//! to all, and no merge disturbs another store. Workloads follow each other on the same stores.
//! Invariant: the same seed gives every store the same operations.

mod client;
mod latency;
mod peer_task;
mod records;
mod report;
mod request;
mod stamps;
mod workload;

pub use latency::LatencyReport;
pub use peer_task::PeerTask;
pub use report::{CostReport, TimesReport, YcsbReport};
pub use request::Distribution;
pub use workload::{Operation, Workload};

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::bench::folder_size;
use crate::bench::pace::Pace;
use crate::compare::{
    Contender, Engine, OwnTree, Peer, PeerCounts, PeerSettings, PeerShape, find_all, open_new,
};
use crate::error::{LabError, Result};
use crate::progress::Progress;
use crate::ycsb::client::{Client, Target, Until};
use crate::ycsb::latency::Latencies;
use crate::ycsb::records::{Records, set_stamp};
use crate::ycsb::request::Chooser;
use crate::ycsb::stamps::Stamps;

/// How long a workload is run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunLength {
    /// So many operations, of all clients together.
    Operations(u64),
    /// So many seconds.
    Seconds(f64),
}

/// What to measure. The field names are an interface: a process that has other engines is given
/// this as JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct YcsbPlan {
    /// The stores.
    pub contenders: Vec<Contender>,
    /// The workloads, in the order in which they are run.
    pub workloads: Vec<Workload>,
    /// How requests are spread over the keys; None: as the workload says.
    pub distribution: Option<Distribution>,
    /// How many keys a store is filled with.
    pub keys: u64,
    /// Bytes of a value.
    pub value_bytes: usize,
    /// Clients, each a thread.
    pub threads: usize,
    /// How long each workload is run.
    pub length: RunLength,
    /// Operations per second, of all clients together. An operation that is late because earlier
    /// ones took long is timed from when it was due. If time ends the workload, operations that are
    /// due and not begun are left out: `ops_per_s` is then below the rate. None: each client does
    /// one after the other, as fast as they go.
    pub rate: Option<f64>,
    /// How many rounds a workload is cut into.
    pub rounds: usize,
    /// Memory of filters.
    pub bits_per_key: f64,
    /// Memory for blocks.
    pub block_cache_bytes: usize,
    /// Memory for new entries.
    pub write_buffer_bytes: usize,
    /// Threads that merge.
    pub merge_threads: usize,
    /// Whether data goes past the operating system's cache.
    pub direct: bool,
    /// How this store keeps its tree.
    pub tree: OwnTree,
    /// Seed of keys and operations.
    pub seed: u64,
    /// Where the stores are made: a folder for each of them in it.
    pub folder: PathBuf,
}

/// A store, what is known of it, and how it was filled.
struct FilledStore {
    contender: Contender,
    folder: PathBuf,
    peer: Box<dyn Peer>,
    records: Records,
    fill_seconds: f64,
    fill_settle_seconds: f64,
}

/// What the rounds of one workload told of one store.
struct Rounds {
    clients: Vec<Client>,
    /// Of each round.
    turns: Vec<Turn>,
    before: Option<PeerCounts>,
}

/// What happened in one turn.
#[derive(Clone, Copy, Default)]
struct Turn {
    ops: u64,
    seconds: f64,
    settle_seconds: f64,
}

/// Measures. The stores stay in `plan.folder`. A report for each store under each workload, in the
/// order of the workloads.
pub fn bench_ycsb(
    plan: &YcsbPlan,
    engines: &[Box<dyn Engine>],
    progress: &mut dyn Progress,
) -> Result<Vec<YcsbReport>> {
    let (openers, contenders) = find_all(&plan.contenders, engines)?;
    check(plan)?;
    let mut sides = Vec::new();
    for (engine, contender) in openers.into_iter().zip(contenders) {
        sides.push(fill(engine, contender, plan, progress)?);
    }
    let mut reports = Vec::new();
    for workload in &plan.workloads {
        reports.extend(run_workload(&sides, *workload, plan, progress)?);
    }
    let last = reports.len() - sides.len();
    progress.stage("checking", sides.len() as u64);
    for (side, report) in sides.into_iter().zip(&mut reports[last..]) {
        report.wrong_answers += side.records.count_wrong(side.peer.as_ref())?;
        side.peer.close()?;
        progress.advance(1);
    }
    Ok(reports)
}

fn check(plan: &YcsbPlan) -> Result<()> {
    let sensible_rate = |rate: f64| rate.is_finite() && (1e-3..=1e9).contains(&rate);
    let sensible_length = match plan.length {
        RunLength::Operations(count) => count > 0,
        RunLength::Seconds(seconds) => seconds > 0.0 && seconds <= 1e7,
    };
    let least = Records::VALUE_BYTES_LEAST;
    let rules = [
        ((1..=1 << 32).contains(&plan.keys), "1 to 4294967296 keys"),
        ((least..=1 << 30).contains(&plan.value_bytes), "a value has 24 bytes to 1 GiB"),
        ((1..=256).contains(&plan.threads), "1 to 256 threads"),
        (sensible_length, "one operation at least, or some seconds"),
        (plan.rate.is_none_or(sensible_rate), "a rate from one in a thousand seconds to 10^9"),
        ((1..=1000).contains(&plan.rounds), "1 to 1000 rounds"),
        (!plan.workloads.is_empty(), "one workload at least"),
        (plan.merge_threads > 0, "one thread at least that merges"),
    ];
    match rules.into_iter().find(|(holds, _)| !holds) {
        Some((_, problem)) => Err(LabError::Plan(problem.into())),
        None => Ok(()),
    }
}

impl YcsbPlan {
    fn settings(&self) -> PeerSettings {
        PeerSettings {
            bits_per_key: self.bits_per_key,
            block_cache_bytes: self.block_cache_bytes,
            write_buffer_bytes: self.write_buffer_bytes,
            merge_threads: self.merge_threads,
            direct: self.direct,
            shape: PeerShape::Default(self.tree.clone()),
        }
    }

    /// Operations per second of one client.
    fn rate_of_client(&self) -> Option<f64> {
        self.rate.map(|rate| rate / self.threads as f64)
    }

    /// When a client stops in a round that begins now.
    fn until(&self, round: usize, client: usize) -> Until {
        match self.length {
            RunLength::Operations(count) => {
                let parts = (self.rounds * self.threads) as u64;
                let part = (round * self.threads + client) as u64;
                Until::Operations(share(count, part + 1, parts) - share(count, part, parts))
            }
            RunLength::Seconds(seconds) => Until::Moment(
                Instant::now() + Duration::from_secs_f64(seconds / self.rounds as f64),
            ),
        }
    }

    /// About how many keys a workload inserts. If time ends it, the guess is half of the keys that
    /// were there.
    fn expected_inserts(&self, workload: Workload, there: u64) -> u64 {
        match (workload.share(Operation::Insert), self.length) {
            (0, _) => 0,
            (share, RunLength::Operations(count)) => count * share / 100,
            (_, RunLength::Seconds(_)) => there / 2,
        }
    }
}

/// The first `part` of so many parts of a count.
fn share(count: u64, part: u64, parts: u64) -> u64 {
    (u128::from(count) * u128::from(part) / u128::from(parts)) as u64
}

/// Opens a store and writes every key once, in no order, by all clients.
fn fill(
    engine: &dyn Engine,
    contender: Contender,
    plan: &YcsbPlan,
    progress: &mut dyn Progress,
) -> Result<FilledStore> {
    let folder = plan.folder.join(contender.folder_name());
    progress.stage(&format!("filling {contender}"), 1);
    let peer = open_new(engine, &folder, &contender.filter, &plan.settings())?;
    let records = Records::new(plan.keys, plan.value_bytes, plan.seed);
    let start = Instant::now();
    std::thread::scope(|scope| {
        let (peer, records) = (peer.as_ref(), &records);
        let fill = |client| scope.spawn(move || fill_share(peer, records, plan, client));
        let clients: Vec<_> = (0..plan.threads).map(fill).collect();
        clients.into_iter().try_for_each(|client| client.join().expect("no client panics"))
    })?;
    let put = start.elapsed().as_secs_f64();
    peer.flush()?;
    peer.settle()?;
    let fill_seconds = start.elapsed().as_secs_f64();
    progress.advance(1);
    let fill_settle_seconds = fill_seconds - put;
    Ok(FilledStore { contender, folder, peer, records, fill_seconds, fill_settle_seconds })
}

fn fill_share(peer: &dyn Peer, records: &Records, plan: &YcsbPlan, client: usize) -> Result<()> {
    let mut value = Vec::new();
    for place in (client as u64..plan.keys).step_by(plan.threads) {
        records.fill(&mut value, place);
        set_stamp(&mut value, Stamps::LOADED);
        peer.put(&records.key(place), &value)?;
    }
    Ok(())
}

fn run_workload(
    sides: &[FilledStore],
    workload: Workload,
    plan: &YcsbPlan,
    progress: &mut dyn Progress,
) -> Result<Vec<YcsbReport>> {
    let distribution = plan.distribution.unwrap_or(workload.distribution());
    progress.stage(&format!("workload {workload}"), (plan.rounds * sides.len()) as u64);
    let mut all: Vec<Rounds> = sides
        .iter()
        .map(|side| {
            let there = side.records.there();
            let chooser = Chooser::new(distribution, there, plan.expected_inserts(workload, there));
            let client = |nth| Client::new(workload, chooser.clone(), plan.seed, nth);
            let clients = (0..plan.threads).map(client).collect();
            Rounds { clients, turns: Vec::new(), before: side.peer.counts() }
        })
        .collect();
    // Every store was filled with the same keys.
    let scans = workload.share(Operation::Scan) > 0;
    let sorted = if scans { sides[0].records.sorted(plan.keys) } else { Vec::new() };
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

/// All clients do their share of a round; then the store completes its background work.
fn take_turn(
    clients: &mut [Client],
    target: Target<'_>,
    plan: &YcsbPlan,
    round: usize,
) -> Result<Turn> {
    let ops = |clients: &[Client]| -> u64 {
        clients.iter().map(|client| client.latencies.count(|_| true)).sum()
    };
    let before = ops(clients);
    let start = Instant::now();
    let ended = std::thread::scope(|scope| {
        let run = |(nth, client): (usize, &mut Client)| {
            let later = plan.rate.map_or(Duration::ZERO, |rate| {
                // Clients are due in turns, not all at once.
                Duration::from_secs_f64(nth as f64 / rate)
            });
            let until = plan.until(round, nth);
            let rate = plan.rate_of_client();
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
    Ok(Turn {
        ops: ops(clients) - before,
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
    let Rounds { clients, turns, before } = rounds;
    let mut latencies = Latencies::default();
    clients.iter().for_each(|client| latencies.add(&client.latencies));
    let reads = latencies.count(Operation::reads);
    let sum = |field: fn(&Turn) -> f64| turns.iter().map(field).sum::<f64>();
    let ops = turns.iter().map(|turn| turn.ops).sum::<u64>();
    let (seconds, keys) = (sum(|turn| turn.seconds), side.records.there());
    let filter_bytes = side.peer.filter_bytes()?;
    Ok(YcsbReport {
        engine: side.contender.engine.clone(),
        guard: side.contender.filter.clone(),
        workload,
        distribution,
        threads: plan.threads as u64,
        rate: plan.rate,
        ops,
        seconds,
        settle_seconds: sum(|turn| turn.settle_seconds),
        ops_per_s: ops as f64 / seconds,
        ops_per_s_of_rounds: turns.iter().map(|turn| turn.ops as f64 / turn.seconds).collect(),
        rounds: plan.rounds as u64,
        times: latencies.report(),
        costs: CostReport::of(reads, before.zip(side.peer.counts())),
        wrong_answers: clients.iter().map(|client| client.wrong).sum(),
        keys,
        keys_filled: plan.keys,
        value_bytes: plan.value_bytes as u64,
        fill_seconds: side.fill_seconds,
        fill_settle_seconds: side.fill_settle_seconds,
        fill_ops_per_s: plan.keys as f64 / (side.fill_seconds - side.fill_settle_seconds),
        disk_bytes: folder_size::bytes(&side.folder),
        runs: side.peer.runs()?,
        guard_bits_per_key: filter_bytes.map(|bytes| bytes as f64 * 8.0 / keys as f64),
        bits_per_key: plan.bits_per_key,
        block_cache_bytes: plan.block_cache_bytes as u64,
        direct: plan.direct,
        policy: plan.tree.policy.name().into(),
        seed: plan.seed,
        settings: side.peer.settings(),
    })
}

#[cfg(test)]
mod tests;
