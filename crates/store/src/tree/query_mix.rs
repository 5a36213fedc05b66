//! Counts the empty queries of a store by kind, so that its filter can divide its bits accordingly.
//! ```text
//! round (from one merge into all of the last level to the next)
//!    before | last one | this one
//!           '-----------------'--- the queries that count, besides what a part was built for
//! weight of a query: the runs without an entry for it; a run with one needs no filter bits
//! ```
//! Invariant: few queries change little, and no kind of query is forgotten.

use trommel_filters::QueryMix;

use crate::sync::{Mutex, lock};
use crate::tree::stats::{Counters, QueryKind};

/// The share that a part was built for counts as much as this many answers.
const KNOWN: f64 = 65_536.0;
/// The least share of points, and of ranges. A client that asks for one kind alone, however often,
/// must not decide about the other.
const SHARE_LEAST: f64 = 0.1;

/// The number of answers "nothing is there", for points and for ranges.
#[derive(Clone, Copy, Default)]
struct Empty {
    points: u64,
    ranges: u64,
}

impl Empty {
    fn of(counters: &Counters) -> Empty {
        let of = |kind| {
            let stats = counters.query_stats(kind);
            stats.true_negatives + stats.false_positives
        };
        let ranges = of(QueryKind::OpenSeek) + of(QueryKind::ClosedSeek);
        Empty { points: of(QueryKind::Point), ranges }
    }
}

/// The numbers of answers when the last two rounds began.
#[derive(Default)]
pub(crate) struct QueryMixRounds {
    began: Mutex<[Empty; 2]>,
}

impl QueryMixRounds {
    /// Returns the mix of queries for a part that replaces one built for `before`. `begins`: a
    /// round begins with this part.
    pub(crate) fn mix(&self, counters: &Counters, before: QueryMix, begins: bool) -> QueryMix {
        let now = Empty::of(counters);
        let mut began = lock(&self.began);
        if begins {
            *began = [began[1], now];
        }
        let [since, _] = *began;
        let points = (now.points - since.points) as f64;
        let ranges = (now.ranges - since.ranges) as f64;
        let share = (points + KNOWN * before.points) / (points + ranges + KNOWN);
        QueryMix { points: share.clamp(SHARE_LEAST, 1.0 - SHARE_LEAST) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::stats::QueryStats;

    fn ask(counters: &Counters, kind: QueryKind, runs: u64) {
        counters.queried(kind, &QueryStats { true_negatives: runs, ..QueryStats::default() });
    }

    #[test]
    fn a_part_is_built_for_what_was_asked_lately() {
        let (rounds, counters) = (QueryMixRounds::default(), Counters::default());
        let guess = QueryMix::default();
        let unqueried = rounds.mix(&counters, guess, true).points;
        assert!((unqueried - guess.points).abs() < 1e-9, "nobody has asked: {unqueried}");
        ask(&counters, QueryKind::Point, 1000);
        let little = rounds.mix(&counters, guess, false).points;
        assert!((0.6..0.61).contains(&little), "{little}");
        ask(&counters, QueryKind::Point, 10_000_000);
        let points = rounds.mix(&counters, guess, true);
        assert_eq!(points.points, 1.0 - SHARE_LEAST);
        ask(&counters, QueryKind::ClosedSeek, 10_000_000);
        let mixed = rounds.mix(&counters, points, false).points;
        assert!((0.45..0.55).contains(&mixed), "both rounds count: {mixed}");
        ask(&counters, QueryKind::OpenSeek, 10_000_000);
        let ranges = rounds.mix(&counters, QueryMix { points: mixed }, true).points;
        assert_eq!(ranges, SHARE_LEAST, "the points were before");
    }
}
