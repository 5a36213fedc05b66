//! The times of operations: a histogram for each kind.
//! ```text
//! nanoseconds -> buckets, each at most a thousandth wide -> mean, ranks
//! ```
//! Invariant: the sum of the histograms of several clients and rounds is the histogram of all their
//! operations.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::ycsb::report::TimesReport;
use crate::ycsb::workload::Operation;

/// Times of single operations, in nanoseconds to three digits. With a rate, they run from when the
/// operation was due.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LatencyReport {
    /// The number of operations.
    pub ops: u64,
    /// The mean.
    pub mean_ns: f64,
    /// The median.
    pub p50_ns: u64,
    /// The 90th percentile.
    pub p90_ns: u64,
    /// The 99th percentile.
    pub p99_ns: u64,
    /// The 99.9th percentile.
    pub p999_ns: u64,
    /// The maximum.
    pub max_ns: u64,
    /// The mean of each round.
    pub mean_ns_rounds: Vec<f64>,
    /// The 99th percentile of each round.
    pub p99_ns_rounds: Vec<u64>,
}

/// The times of each kind of operation.
#[derive(Clone, Default)]
pub(crate) struct Latencies {
    of_kind: [Option<Histogram<u64>>; Operation::ALL.len()],
}

/// The longest time that is distinguished: an hour.
const LONGEST_NS: u64 = 3_600_000_000_000;
const DIGITS: u8 = 3;

/// Returns an empty histogram of nanoseconds.
pub(crate) fn empty_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST_NS, DIGITS).expect("the bounds are in order")
}

impl Latencies {
    pub(crate) fn record(&mut self, operation: Operation, time: Duration) {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let histogram = self.of_kind[operation as usize].get_or_insert_with(empty_histogram);
        histogram.saturating_record(nanoseconds);
    }

    pub(crate) fn add(&mut self, other: &Latencies) {
        for (own, other) in self.of_kind.iter_mut().zip(&other.of_kind) {
            if let Some(other) = other {
                let own = own.get_or_insert_with(empty_histogram);
                own.add(other).expect("all histograms here have the same bounds");
            }
        }
    }

    /// Returns the number of operations of the kinds that `counts` accepts.
    pub(crate) fn count(&self, counts: impl Fn(Operation) -> bool) -> u64 {
        let kinds = Operation::ALL.into_iter().zip(&self.of_kind);
        kinds
            .filter(|(kind, _)| counts(*kind))
            .flat_map(|(_, times)| times)
            .map(Histogram::len)
            .sum()
    }

    /// Returns the histogram of all kinds together.
    fn all(&self) -> Histogram<u64> {
        let mut all = empty_histogram();
        for histogram in self.of_kind.iter().flatten() {
            all.add(histogram).expect("all histograms here have the same bounds");
        }
        all
    }
}

/// Returns the times of all rounds together, and of each round.
pub(crate) fn report(rounds: &[Latencies]) -> TimesReport {
    let mut sum = Latencies::default();
    rounds.iter().for_each(|round| sum.add(round));
    let of_kind = |kind: Operation| {
        let of = |times: &Latencies| times.of_kind[kind as usize].clone();
        of(&sum).map(|all| times_report(&all, rounds.iter().map(of)))
    };
    TimesReport {
        all: times_report(&sum.all(), rounds.iter().map(|round| Some(round.all()))),
        read: of_kind(Operation::Read),
        update: of_kind(Operation::Update),
        insert: of_kind(Operation::Insert),
        scan: of_kind(Operation::Scan),
        read_modify_write: of_kind(Operation::ReadModifyWrite),
    }
}

/// Summarizes times, in all and for each round. Rounds without such operations are left out.
pub(crate) fn times_report(
    times: &Histogram<u64>,
    rounds: impl Iterator<Item = Option<Histogram<u64>>>,
) -> LatencyReport {
    let summary = |round: Histogram<u64>| (round.mean(), round.value_at_quantile(0.99));
    let rounds = rounds.flatten().filter(|round| !round.is_empty()).map(summary);
    let (mean_ns_rounds, p99_ns_rounds) = rounds.unzip();
    LatencyReport {
        ops: times.len(),
        mean_ns: times.mean(),
        p50_ns: times.value_at_quantile(0.5),
        p90_ns: times.value_at_quantile(0.9),
        p99_ns: times.value_at_quantile(0.99),
        p999_ns: times.value_at_quantile(0.999),
        max_ns: times.max(),
        mean_ns_rounds,
        p99_ns_rounds,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, expected: f64) {
        assert!((found / expected - 1.0).abs() < 0.002, "{found}, not {expected}");
    }

    #[test]
    fn ranks_are_right_to_three_digits_whoever_recorded() {
        let mut clients = [Latencies::default(), Latencies::default()];
        for micros in 1..=10_000u64 {
            clients[micros as usize % 2].record(Operation::Read, Duration::from_micros(micros));
        }
        clients[1].record(Operation::Scan, Duration::from_secs(2));
        let mut all = Latencies::default();
        clients.iter().for_each(|client| all.add(client));
        let report = super::report(&clients);
        assert_eq!(report.all.p99_ns_rounds.len(), 2);
        near(report.all.mean_ns_rounds[0], 5_001_000.0);
        let read = report.read.expect("there were some");
        assert_eq!(read.ops, 10_000);
        near(read.mean_ns, 5_000_500.0);
        for (found, micros) in [
            (read.p50_ns, 5000.0),
            (read.p90_ns, 9000.0),
            (read.p99_ns, 9900.0),
            (read.p999_ns, 9990.0),
            (read.max_ns, 10_000.0),
        ] {
            near(found as f64, micros * 1e3);
        }
        near(report.all.max_ns as f64, 2e9);
        assert_eq!((report.all.ops, all.count(Operation::reads)), (10_001, 10_001));
        assert_eq!(all.count(|kind| kind == Operation::Scan), 1);
        assert!(report.update.is_none() && report.scan.is_some_and(|scan| scan.ops == 1));
    }

    #[test]
    fn what_takes_no_time_or_too_long_counts_too() {
        let mut latencies = Latencies::default();
        latencies.record(Operation::Insert, Duration::ZERO);
        latencies.record(Operation::Insert, Duration::MAX);
        let report = super::report(&[latencies]).insert.expect("there were some");
        assert_eq!(report.ops, 2);
        near(report.max_ns as f64, LONGEST_NS as f64);
    }
}
