//! How a rate grows during a round, by the model of section 4.3.1 of the GRF paper.
//! ```text
//! rate |        /|  round: the mean from start to end, by the rate at its start
//!      |     /   |
//!      |  p      |  life: the mean of all rounds, by the rate at the start of the last one
//!      +---------+
//!   since 0      1   the next merge into the last level
//! ```
//! In the paper every round starts with the rate p = 2^-(bits - 5), whatever the last level holds.
//! The mean over the filter's life is then 1 + ln(T - 1) / (2 (T - 1)) times p.
//! Invariant: a round has a mean only if its start and its end were measured.

use crate::report::{FprFilter, FprGrowth, FprRate};

/// Returns the paper's rate at the start of a round (section 4.4).
pub(crate) fn rate_of_paper(bits_per_key: f64) -> f64 {
    (5.0 - bits_per_key).exp2()
}

/// A mean of rates, and the variance due to counting.
#[derive(Clone, Copy)]
struct Mean {
    rate: f64,
    variance: f64,
}

impl Mean {
    fn of(rate: &FprRate) -> Option<Mean> {
        let share = rate.false_positive_rate?;
        Some(Mean { rate: share, variance: share / rate.queries as f64 })
    }

    /// Returns the weighted sum of means.
    fn sum(parts: &[(f64, Mean)]) -> Mean {
        let rate = parts.iter().map(|(weight, mean)| weight * mean.rate).sum();
        let variance = parts.iter().map(|(weight, mean)| weight * weight * mean.variance).sum();
        Mean { rate, variance }
    }

    /// Returns this mean as a multiple of the rate at the start. None: that rate is zero.
    fn growth(self, start: Mean) -> Option<FprGrowth> {
        /// A normal distribution has 95 % within this many standard deviations on both sides.
        const DEVIATIONS: f64 = 1.96;
        if start.rate <= 0.0 {
            return None;
        }
        let relative = |mean: Mean| mean.variance / (mean.rate * mean.rate);
        let reach = (DEVIATIONS * (relative(self) + relative(start)).sqrt()).exp();
        let times_start = self.rate / start.rate;
        let times_start_interval = [times_start / reach, times_start * reach];
        Some(FprGrowth { rate: self.rate, times_start, times_start_interval })
    }
}

/// Adds the growth of the rate to filters at the start of a round, for that round and, in the
/// fullest tree, for all rounds. Adds to every filter its memory in the fullest tree.
pub(crate) fn add_growth(filters: &mut [FprFilter]) {
    let known = filters.to_vec();
    let fullest = known.iter().map(|filter| filter.fill).max();
    for filter in filters {
        let alike: Vec<&FprFilter> = known.iter().filter(|one| are_alike(one, filter)).collect();
        let is_full = |one: &&&FprFilter| Some(one.fill) == fullest && one.since == 1.0;
        filter.guard_bits_per_key_filled =
            alike.iter().find(is_full).map(|full| full.guard_bits_per_key);
        if filter.since > 0.0 {
            continue;
        }
        for (width, rate) in filter.rates.iter_mut().enumerate() {
            let Some(start) = Mean::of(rate) else { continue };
            let round = |fill| round_mean(&alike, fill, width);
            rate.round = round(filter.fill).and_then(|mean| mean.growth(start));
            if Some(filter.fill) == fullest {
                rate.life = life_mean(filter.fill, round).and_then(|mean| mean.growth(start));
            }
        }
    }
}

/// Whether two filters differ only in how full their trees are.
fn are_alike(one: &FprFilter, other: &FprFilter) -> bool {
    let of = |filter: &FprFilter| {
        (filter.fingerprints, filter.policy, filter.bits_per_key, filter.levels, filter.owed)
    };
    of(one) == of(other)
}

/// Returns the mean over a round, interpolated linearly between measurements. None: its start or
/// its end was not measured.
fn round_mean(alike: &[&FprFilter], fill: u64, width: usize) -> Option<Mean> {
    let of_round = alike.iter().filter(|filter| filter.fill == fill);
    let mut points: Vec<(f64, Mean)> = of_round
        .map(|filter| Some((filter.since, Mean::of(&filter.rates[width])?)))
        .collect::<Option<_>>()?;
    points.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (first, last) = (points.first()?.0, points.last()?.0);
    if first != 0.0 || last != 1.0 {
        return None;
    }
    let at = |place: usize| points[place].0;
    let weight = |place: usize| {
        let (before, behind) = (place.saturating_sub(1), (place + 1).min(points.len() - 1));
        (at(behind) - at(before)) / 2.0
    };
    let weighted = points.iter().enumerate().map(|(place, (_, mean))| (weight(place), *mean));
    Some(Mean::sum(&weighted.collect::<Vec<_>>()))
}

/// Returns the mean of all rounds up to the fullest. None: one of them has no mean.
fn life_mean(fullest: u64, round: impl Fn(u64) -> Option<Mean>) -> Option<Mean> {
    let share = 1.0 / fullest as f64;
    let rounds = (1..=fullest).map(|fill| Some((share, round(fill)?)));
    Some(Mean::sum(&rounds.collect::<Option<Vec<_>>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(fill: u64, since: f64, rate: f64) -> FprFilter {
        let rate = FprRate {
            question: "points",
            range_width: Some(1),
            queries: 1_000_000,
            queries_distinct: 1_000_000,
            false_positives: (rate * 1e6) as u64,
            false_positive_rate: Some(rate),
            interval_95: None,
            needless_runs_per_op: None,
            rate_of_paper: rate_of_paper(10.0),
            times_paper: None,
            times_paper_interval: None,
            round: None,
            life: None,
        };
        FprFilter {
            fingerprints: "auto",
            policy: "lazy-leveling",
            bits_per_key: 10.0,
            levels: 3,
            fill,
            since,
            owed: 0,
            base_keys: 0,
            overlay_keys: 0,
            guard_bits_per_key: fill as f64 + since,
            guard_bits_per_key_filled: None,
            base_bits_per_key: 0.0,
            overlay_bits_per_key: None,
            hits: 0,
            false_negatives: 0,
            rates: vec![rate],
        }
    }

    #[test] // A bitmap of N of M bits: p at the start of each round, (1 + 1/z) p at its end.
    fn the_papers_filter_grows_by_its_reckoning() {
        let p = rate_of_paper(10.0);
        assert_eq!(p, 0.03125);
        let of_round =
            |z: u64| [0.0, 0.5, 1.0].map(|since| filter(z, since, p * (1.0 + since / z as f64)));
        let mut filters: Vec<FprFilter> = (1..=9).flat_map(of_round).collect();
        add_growth(&mut filters);
        let round = |z: usize| filters[3 * (z - 1)].rates[0].round.clone().expect("is known");
        assert!((round(1).times_start - 1.5).abs() < 1e-9);
        assert!((round(9).times_start - (1.0 + 1.0 / 18.0)).abs() < 1e-9);
        let life = filters[24].rates[0].life.clone().expect("is known");
        // The sum of 1/z to 9 is 2.829, where the paper takes its logarithm.
        assert!((life.times_start - (1.0 + 2.829 / 18.0)).abs() < 1e-3, "{life:?}");
        let [low, high] = life.times_start_interval;
        assert!(1.13 < low && low < 1.157 && 1.158 < high && high < 1.19, "{life:?}");
        assert!(filters.iter().all(|filter| filter.guard_bits_per_key_filled == Some(10.0)));
        assert!(filters[0].rates[0].life.is_none() && filters[1].rates[0].round.is_none());
    }

    #[test]
    fn nothing_is_said_of_half_a_round() {
        let mut filters = vec![filter(1, 0.0, 0.1), filter(1, 0.5, 0.2), filter(2, 0.0, 0.0)];
        add_growth(&mut filters);
        assert!(filters.iter().all(|filter| filter.rates[0].round.is_none()));
        assert!(filters.iter().all(|filter| filter.guard_bits_per_key_filled.is_none()));
    }
}
