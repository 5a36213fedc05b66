//! `bench transactions`: the same transactions over this store and other engines, in rounds that
//! take turns.
//! ```text
//! for each workload, for each number of clients
//!   new stores -> fill -> round 1 [a: clients 0 1 2] settle [b: clients 0 1 2] settle
//!                         round 2 b, a ...   -> check everything -> reports
//! ```
//! A transaction that fails because of others is retried with the same draws until it commits. Its
//! time runs from the first attempt.
//! Invariant: each workload knows the right contents of the store after a number of commits.
//! Differences are in the report.

mod absent;
mod inserts;
mod numbers;
mod report;
mod tpcc;
mod work;
mod workload;

pub use report::{KindTimes, TransactionsReport};
pub use workload::TransactionWorkload;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::bench::rounds::turns;
use crate::compare::{
    Contender, Engine, PeerCounts, StoresPlan, TransactionalStore, find_all, make_empty, remove,
};
use crate::error::{LabError, Result};
use crate::progress::Progress;
use crate::transactions::work::{Client, Totals, Work};
use crate::ycsb::{RunLength, Until, empty_histogram};

/// What to measure. Field names are an interface: the process with other engines receives this as
/// JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TransactionsPlan {
    /// The stores, and the settings that they share.
    #[serde(flatten)]
    pub stores: StoresPlan,
    /// The workloads, in order; each has its own stores.
    pub workloads: Vec<TransactionWorkload>,
    /// How many keys fill a store; for `tpcc`, how many items.
    pub keys: u64,
    /// Bytes of a value; `tpcc` uses the standard's sizes.
    pub value_bytes: usize,
    /// Numbers of clients, each client a thread. Every workload runs with each number.
    pub threads: Vec<usize>,
    /// The length of each workload.
    pub length: RunLength,
    /// The rounds of each workload.
    pub rounds: usize,
    /// Counters of `counter-hot`.
    pub hot: u64,
    /// Entries that a transaction of `long-scan` reads.
    pub scan_entries: usize,
    /// Warehouses of `tpcc`.
    pub warehouses: u32,
}

/// A filled store, and its results so far.
struct Side {
    contender: Contender,
    folder: PathBuf,
    store: Box<dyn TransactionalStore>,
    work: Box<dyn Work>,
    clients: Vec<Client>,
    fill_seconds: f64,
    before: Option<PeerCounts>,
    turns: Vec<Turn>,
}

/// The results of one turn.
struct Turn {
    /// The times of each kind of operation.
    times: Vec<Histogram<u64>>,
    totals: Totals,
    conflicts: u64,
    seconds: f64,
    settle_seconds: f64,
}

/// The results of one client in a turn.
struct ClientTurn {
    times: Vec<Histogram<u64>>,
    totals: Totals,
    last: Instant,
}

/// Runs the benchmark. Returns a report for each workload, number of clients and store, in this
/// order.
pub fn bench_transactions(
    plan: &TransactionsPlan,
    engines: &[Box<dyn Engine>],
    progress: &mut dyn Progress,
) -> Result<Vec<TransactionsReport>> {
    let (openers, contenders) = find_all(&plan.stores.contenders, engines)?;
    check(plan)?;
    let stores: Vec<_> = openers.into_iter().zip(contenders).collect();
    let mut reports = Vec::new();
    for workload in &plan.workloads {
        for threads in &plan.threads {
            reports.extend(run_cell(&stores, *workload, *threads, plan, progress)?);
        }
    }
    Ok(reports)
}

fn check(plan: &TransactionsPlan) -> Result<()> {
    let rules = [
        ((100..=1 << 32).contains(&plan.keys), "100 to 4294967296 keys"),
        ((8..=1 << 20).contains(&plan.value_bytes), "a value has 8 bytes to 1 MiB"),
        (!plan.threads.is_empty(), "one number of threads at least"),
        (plan.threads.iter().all(|count| (1..=256).contains(count)), "1 to 256 threads"),
        (plan.length.is_sensible(), "one operation at least, or some seconds"),
        ((1..=1000).contains(&plan.rounds), "1 to 1000 rounds"),
        (!plan.workloads.is_empty(), "one workload at least"),
        (plan.hot > 0, "one hot counter at least"),
        (plan.scan_entries > 0, "a scan of one entry at least"),
        ((1..=1000).contains(&plan.warehouses), "1 to 1000 warehouses"),
        (plan.stores.merge_threads > 0, "one thread at least that merges"),
    ];
    match rules.into_iter().find(|(holds, _)| !holds) {
        Some((_, problem)) => Err(LabError::Plan(problem.into())),
        None => Ok(()),
    }
}

/// Runs one workload with one number of clients, on new stores.
fn run_cell(
    stores: &[(&dyn Engine, Contender)],
    workload: TransactionWorkload,
    threads: usize,
    plan: &TransactionsPlan,
    progress: &mut dyn Progress,
) -> Result<Vec<TransactionsReport>> {
    let mut sides = Vec::with_capacity(stores.len());
    for (engine, contender) in stores {
        progress.stage(&format!("{workload}: filling {contender}"), 1);
        sides.push(fill(*engine, contender, workload, threads, plan)?);
        progress.advance(1);
    }
    let steps = (plan.rounds * sides.len()) as u64;
    progress.stage(&format!("{workload}, clients: {threads}"), steps);
    for (round, side) in turns(sides.len(), plan.rounds) {
        take_turn(&mut sides[side], plan, round)?;
        progress.advance(1);
    }
    progress.stage(&format!("{workload}: checking"), sides.len() as u64);
    let mut reports = Vec::with_capacity(sides.len());
    for side in sides {
        let folder = side.folder.clone();
        reports.push(report::report(side, workload, plan)?);
        remove(&folder)?;
        progress.advance(1);
    }
    Ok(reports)
}

fn fill(
    engine: &dyn Engine,
    contender: &Contender,
    workload: TransactionWorkload,
    threads: usize,
    plan: &TransactionsPlan,
) -> Result<Side> {
    let folder =
        plan.stores.folder.join(format!("{}-{workload}-{threads}", contender.folder_name()));
    make_empty(&folder)?;
    let work = workload.work(plan);
    let (filter, settings) = (&contender.filter, plan.stores.settings());
    let opened = engine.open_transactional(&folder, filter, &settings, work.spaces())?;
    let store = opened
        .ok_or_else(|| LabError::Plan(format!("{} has no transactions here", contender.engine)))?;
    let start = Instant::now();
    work.load(store.as_ref())?;
    store.flush()?;
    store.settle()?;
    let client = |nth| Client::new(plan.stores.seed, workload as u64, nth);
    Ok(Side {
        contender: contender.clone(),
        folder,
        clients: (0..threads).map(client).collect(),
        fill_seconds: start.elapsed().as_secs_f64(),
        before: store.counts(),
        store,
        work,
        turns: Vec::new(),
    })
}

/// Lets all clients do their share of a round, and then lets the store finish its background work.
fn take_turn(side: &mut Side, plan: &TransactionsPlan, round: usize) -> Result<()> {
    let (store, work) = (side.store.as_ref(), side.work.as_ref());
    let clients = side.clients.len();
    let conflicts = |all: &[Client]| all.iter().map(|client| client.conflicts).sum::<u64>();
    let before = conflicts(&side.clients);
    let start = Instant::now();
    let done = std::thread::scope(|scope| {
        let run = |(nth, client): (usize, &mut Client)| {
            let until = plan.length.until((round, plan.rounds), (nth, clients));
            run_client(store, work, client, until)
        };
        let all = side.clients.iter_mut().enumerate();
        let spawned: Vec<_> = all.map(|one| scope.spawn(move || run(one))).collect();
        let joined = spawned.into_iter().map(|client| client.join().expect("no client panics"));
        joined.collect::<Result<Vec<ClientTurn>>>()
    })?;
    let last = done.iter().map(|one| one.last).max().unwrap_or(start);
    let settling = Instant::now();
    store.settle()?;
    let kinds = work.kinds().len();
    let mut turn = Turn {
        times: vec![empty_histogram(); kinds],
        totals: Totals::of_kinds(kinds),
        conflicts: conflicts(&side.clients) - before,
        seconds: last.duration_since(start).as_secs_f64(),
        settle_seconds: settling.elapsed().as_secs_f64(),
    };
    for one in &done {
        turn.totals.add(&one.totals);
        for (own, other) in turn.times.iter_mut().zip(&one.times) {
            own.add(other).expect("all histograms have the same bounds");
        }
    }
    side.turns.push(turn);
    Ok(())
}

/// Does operations until the turn is over.
fn run_client(
    store: &dyn TransactionalStore,
    work: &dyn Work,
    client: &mut Client,
    until: Until,
) -> Result<ClientTurn> {
    let kinds = work.kinds().len();
    let mut turn = ClientTurn {
        times: vec![empty_histogram(); kinds],
        totals: Totals::of_kinds(kinds),
        last: Instant::now(),
    };
    loop {
        let is_over = match until {
            Until::Operations(count) => turn.totals.ops() >= count,
            Until::Moment(end) => turn.last >= end,
        };
        if is_over {
            return Ok(turn);
        }
        let start = Instant::now();
        let done = work.perform(store, client)?;
        turn.last = Instant::now();
        let each = per_operation(turn.last.duration_since(start), done.ops);
        turn.times[done.kind].saturating_record(each);
        turn.totals.note(done);
    }
}

/// Returns the nanoseconds of one of several operations that were timed together.
fn per_operation(time: Duration, ops: u64) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX) / ops.max(1)
}

#[cfg(test)]
mod tests;
