//! What was measured of one store under one workload.

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

/// What `bench transactions` measured. The field names are an interface.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TransactionsReport {
    /// The engine.
    pub engine: String,
    /// Its filter.
    pub guard: String,
    /// The workload.
    pub workload: TransactionWorkload,
    /// How many clients.
    pub threads: u64,
    /// Transactions, or operations, that have written something or only read, of all clients.
    pub commits: u64,
    /// Those that wrote nothing, as they should: the key was there, or the client rolled back.
    pub refused: u64,
    /// Attempts that others made fail, and that were tried again; but those within `put_if_absent`.
    pub conflicts: u64,
    /// Of these, for each commit.
    pub conflicts_per_commit: f64,
    /// How long the turns of all rounds took, without what was left to be done in the background.
    pub seconds: f64,
    /// How long the background work took, after the turns.
    pub settle_seconds: f64,
    /// Commits per second.
    pub commits_per_s: f64,
    /// Commits per second of each round.
    pub commits_per_s_of_rounds: Vec<f64>,
    /// Times of all operations, from the first attempt to the commit.
    pub all: LatencyReport,
    /// Of each kind that the workload has.
    pub kinds: Vec<KindTimes>,
    /// Of `put-if-absent`: the mean time of one as a multiple of a plain put's, the median of the
    /// rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times_a_put: Option<f64>,
    /// Filter probes of reads, for each commit. Of `put-if-absent`: for each of these. None: the
    /// engine does not tell.
    pub guard_probes_per_commit: Option<f64>,
    /// Blocks that reads asked for, cached or not, in the same way.
    pub blocks_read_per_commit: Option<f64>,
    /// Of these, blocks that came from the disk.
    pub disk_reads_per_commit: Option<f64>,
    /// Memtables that became runs. None: the engine does not tell.
    pub flushes: Option<u64>,
    /// What the store should hold after so many commits, and does not, in words. Must be empty.
    pub broken: Vec<String>,
    /// Keys that the store was filled with, or items.
    pub keys: u64,
    /// Bytes of a value.
    pub value_bytes: u64,
    /// How many rounds the operations were cut into.
    pub rounds: u64,
    /// How long filling took, until all was settled.
    pub fill_seconds: f64,
    /// The seed.
    pub seed: u64,
    /// Everything that was set, and the engine's version.
    pub settings: String,
}

/// Times of operations of one kind.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KindTimes {
    /// The kind.
    pub kind: String,
    /// How many there were, refused ones too.
    pub done: u64,
    /// Their times. Of `put-if-absent`, each is the mean of a row of them.
    #[serde(flatten)]
    pub times: LatencyReport,
}

/// Checks a store, closes it, and tells what was measured.
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

/// What the check found, and answers that were wrong while clients ran.
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

/// What the times of some operations tell, together and in each round.
fn times(turns: &[Turn], of: impl Fn(&Turn) -> Histogram<u64>) -> LatencyReport {
    let rounds: Vec<Histogram<u64>> = turns.iter().map(of).collect();
    let mut sum = empty_histogram();
    rounds.iter().for_each(|round| sum.add(round).expect("the bounds are the same"));
    times_report(&sum, rounds.into_iter().map(Some))
}

/// Where no round has both kinds, of all rounds together. None: there was one kind alone.
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
