//! Percentiles of the times of single writes.
//! ```text
//! a time for each write -> sorted -> ranks
//! ```
//! Invariant: percentiles are exact, over all writes.

use serde::Serialize;

/// Exact percentiles of the time of one write, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PutNs {
    /// The median.
    pub p50: u64,
    /// The 99th percentile.
    pub p99: u64,
    /// The 99.9th percentile.
    pub p999: u64,
    /// The maximum.
    pub max: u64,
}

impl PutNs {
    /// Sorts the times and picks the percentiles; zeros if there are no times.
    pub(crate) fn of(mut times: Vec<u64>) -> PutNs {
        times.sort_unstable();
        let share = |share: f64| {
            let rank = (times.len() as f64 * share).ceil() as usize;
            times.get(rank.saturating_sub(1)).copied().unwrap_or(0)
        };
        PutNs { p50: share(0.5), p99: share(0.99), p999: share(0.999), max: share(1.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_exact() {
        let put_ns = PutNs::of((1..=2000).rev().collect());
        assert_eq!(put_ns, PutNs { p50: 1000, p99: 1980, p999: 1998, max: 2000 });
        assert_eq!(PutNs::of(vec![5]), PutNs { p50: 5, p99: 5, p999: 5, max: 5 });
        assert_eq!(PutNs::of(vec![]), PutNs::default());
    }
}
