//! The report of one store under one workload.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::compare::PeerCounts;
use crate::error::Result;
use crate::median::median;
use crate::transactions::absent::{PUT, PUT_IF_ABSENT};
use crate::transactions::work::{Client, Totals};
use crate::transactions::workload::TransactionWorkload;
use crate::transactions::{Side, TransactionsPlan, Turn};
use crate::ycsb::{LatencyReport, empty_histogram, times_report};

/// What `bench transactions` measured. Field names are an interface.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TransactionsReport {
    /// The engine.
    pub engine: String,
    /// Its filter.
    pub guard: String,
    /// The workload.
    pub workload: TransactionWorkload,
    /// The number of clients.
    pub threads: u64,
    /// Transactions or operations of all clients that wrote something, or only read.
    pub commits: u64,
    /// Operations that wrote nothing, as expected: the key was there, or the client rolled back.
    pub refused: u64,
    /// Attempts that failed because of others, and were retried. Attempts within `put_if_absent` do
    /// not count.
    pub conflicts: u64,
    /// Conflicts per commit.
    pub conflicts_per_commit: f64,
    /// Seconds of the turns of all rounds, without the background work after them.
    pub seconds: f64,
    /// Seconds of the background work after the turns.
    pub settle_seconds: f64,
    /// Commits per second.
    pub commits_per_s: f64,
    /// Commits per second of each round.
    pub commits_per_s_of_rounds: Vec<f64>,
    /// Times of all operations, from the first attempt to the commit.
    pub all: LatencyReport,
    /// Times of each kind of operation of the workload.
    pub kinds: Vec<KindTimes>,
    /// For `put-if-absent`: its mean time as a multiple of a plain put's, the median of the rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times_a_put: Option<f64>,
    /// Filter probes of reads per commit; for `put-if-absent`, per such operation. None: the engine
    /// does not count them.
    pub guard_probes_per_commit: Option<f64>,
    /// Blocks that reads asked for, cached or not, per the same.
    pub blocks_read_per_commit: Option<f64>,
    /// Blocks among these that came from the disk.
    pub disk_reads_per_commit: Option<f64>,
    /// Flushes. None: the engine does not count them.
    pub flushes: Option<u64>,
    /// Differences from the right contents of the store, in words. Must be empty.
    pub broken: Vec<String>,
    /// Keys, or items, that the store was filled with.
    pub keys: u64,
    /// Bytes of a value.
    pub value_bytes: u64,
    /// The number of rounds.
    pub rounds: u64,
    /// Seconds of filling, until everything was settled.
    pub fill_seconds: f64,
    /// The seed.
    pub seed: u64,
    /// All settings, and the engine's version.
    pub settings: String,
}

/// The times of one kind of operation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KindTimes {
    /// The kind.
    pub kind: String,
    /// How many there were, including refused ones.
    pub done: u64,
    /// The times. For `put-if-absent`, each is the mean of a row of operations.
    #[serde(flatten)]
    pub times: LatencyReport,
}

/// Checks a store, closes it, and returns its report.
pub(super) fn report(
    side: Side,
    workload: TransactionWorkload,
    plan: &TransactionsPlan,
) -> Result<TransactionsReport> {
    let Side { contender, store, work, clients, fill_seconds, before, turns, .. } = side;
    let counts = before.zip(store.counts());
    let mut totals = Totals::of_kinds(work.kinds().len());
    turns.iter().for_each(|turn| totals.add(&turn.totals));
    let broken = broken(work.check(store.as_ref(), &totals)?, &clients);
    let settings = store.settings();
    store.close()?;
    let sum = |of: fn(&Turn) -> f64| turns.iter().map(of).sum::<f64>();
    let committed = |totals: &Totals| totals.ops() - totals.refused();
    let (commits, seconds) = (committed(&totals), sum(|turn| turn.seconds));
    let conflicts = turns.iter().map(|turn| turn.conflicts).sum::<u64>();
    let is_beside_puts = workload == TransactionWorkload::PutIfAbsent;
    let readers = if is_beside_puts { totals.of_kind[PUT_IF_ABSENT].0 } else { commits };
    let per_reader = |of: fn(&PeerCounts) -> u64| {
        let (before, after) = counts?;
        Some((of(&after) - of(&before)) as f64 / readers.max(1) as f64)
    };
    Ok(TransactionsReport {
        engine: contender.engine,
        guard: contender.filter,
        workload,
        threads: clients.len() as u64,
        commits,
        refused: totals.refused(),
        conflicts,
        conflicts_per_commit: conflicts as f64 / commits.max(1) as f64,
        seconds,
        settle_seconds: sum(|turn| turn.settle_seconds),
        commits_per_s: commits as f64 / seconds,
        commits_per_s_of_rounds: turns
            .iter()
            .map(|turn| committed(&turn.totals) as f64 / turn.seconds)
            .collect(),
        all: times(&turns, all_kinds),
        kinds: kinds(work.kinds(), &turns, &totals),
        times_a_put: if is_beside_puts { times_a_put(&turns) } else { None },
        guard_probes_per_commit: per_reader(|counts| counts.guard_probes),
        blocks_read_per_commit: per_reader(|counts| counts.blocks_read),
        disk_reads_per_commit: per_reader(|counts| counts.disk_reads),
        flushes: counts.map(|(before, after)| after.flushes - before.flushes),
        broken,
        keys: plan.keys,
        value_bytes: plan.value_bytes as u64,
        rounds: plan.rounds as u64,
        fill_seconds,
        seed: plan.stores.seed,
        settings,
    })
}

/// Combines the findings of the check with the wrong answers that clients saw.
fn broken(mut problems: Vec<String>, clients: &[Client]) -> Vec<String> {
    let wrong: u64 = clients.iter().map(|client| client.wrong).sum();
    if wrong > 0 {
        problems.push(format!("answers that no moment has had: {wrong}"));
    }
    problems
}

fn kinds(names: &[&str], turns: &[Turn], totals: &Totals) -> Vec<KindTimes> {
    let of_kind = |(kind, name): (usize, &&str)| KindTimes {
        kind: (*name).into(),
        done: totals.of_kind[kind].0,
        times: times(turns, |turn| turn.times[kind].clone()),
    };
    names.iter().enumerate().map(of_kind).collect()
}

fn all_kinds(turn: &Turn) -> Histogram<u64> {
    let mut all = empty_histogram();
    for times in &turn.times {
        all.add(times).expect("all histograms have the same bounds");
    }
    all
}

/// Summarizes the times of some operations: all rounds together, and each round.
fn times(turns: &[Turn], of: impl Fn(&Turn) -> Histogram<u64>) -> LatencyReport {
    let rounds: Vec<Histogram<u64>> = turns.iter().map(of).collect();
    let mut sum = empty_histogram();
    rounds.iter().for_each(|round| sum.add(round).expect("the bounds are the same"));
    times_report(&sum, rounds.into_iter().map(Some))
}

/// Returns the median ratio of the rounds that have both kinds; if none has, the ratio over all
/// rounds. None: one kind is missing.
fn times_a_put(turns: &[Turn]) -> Option<f64> {
    let ratio = |times: &[Histogram<u64>]| {
        let has_both = times.iter().all(|times| !times.is_empty());
        has_both.then(|| times[PUT_IF_ABSENT].mean() / times[PUT].mean())
    };
    let mut ratios: Vec<f64> = turns.iter().filter_map(|turn| ratio(&turn.times)).collect();
    if !ratios.is_empty() {
        return Some(median(&mut ratios));
    }
    let mut sums = [empty_histogram(), empty_histogram()];
    for turn in turns {
        for (sum, times) in sums.iter_mut().zip(&turn.times) {
            sum.add(times).expect("the bounds are the same");
        }
    }
    ratio(&sums)
}
