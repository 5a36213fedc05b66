//! Moments of one year, in nanoseconds since 1970. Events follow the time of day and come in
//! bursts.
//! ```text
//! half      any day as likely; the hour by 1 + 0.8 cos, most at 14 h, fewest at 2 h
//! half      in a burst: its start as above, the event so long after it as an exponential law says
//! bursts    100,000; the n-th has a share of n^-0.8, lasts 2^24 to 2^40 ns (17 ms to 18 min)
//! ```

use super::traits::{trait_of, unit_of};
use crate::keys::rng::Rng;
use crate::keys::skew::Zipf;

/// The law of moments.
#[derive(Clone, Debug)]
pub(crate) struct Bursts {
    ranks: Zipf,
}

const COUNT: u64 = 100_000;
const EXPONENT: f64 = 0.8;
/// The share of events in bursts.
const SHARE: f64 = 0.5;
/// The shortest and the longest burst, as powers of two of nanoseconds.
const LENGTH_BITS: [f64; 2] = [24.0, 40.0];
/// 2024-01-01, 00:00 UTC.
const YEAR_BEGIN: u64 = 1_704_067_200 * SECOND;
const DAYS: u64 = 366;
const DAY: u64 = 86_400 * SECOND;
const SECOND: u64 = 1_000_000_000;
/// The excess of the busiest hour over the mean.
const SWING: f64 = 0.8;
/// The busiest hour, as a share of a day.
const BUSIEST: f64 = 14.0 / 24.0;

impl Bursts {
    pub(super) fn new() -> Self {
        Bursts { ranks: Zipf::new(EXPONENT, COUNT) }
    }

    pub(super) fn draw(&self, rng: &mut Rng) -> u64 {
        if rng.unit() >= SHARE {
            return moment(rng);
        }
        let burst = trait_of(1, self.ranks.draw(rng));
        let bits = LENGTH_BITS[0] + (LENGTH_BITS[1] - LENGTH_BITS[0]) * unit_of(burst);
        let start = moment(&mut Rng::new(burst));
        start + (-(1.0 - rng.unit()).ln() * bits.exp2()) as u64
    }
}

/// Draws a moment: all days are equally likely, hours follow their load.
fn moment(rng: &mut Rng) -> u64 {
    loop {
        let time = rng.unit();
        let busy = 1.0 + SWING * (std::f64::consts::TAU * (time - BUSIEST)).cos();
        if rng.unit() * (1.0 + SWING) < busy {
            return YEAR_BEGIN + rng.below(DAYS) * DAY + (time * DAY as f64) as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_day_and_in_bursts() {
        let (bursts, mut rng) = (Bursts::new(), Rng::new(1));
        let mut drawn: Vec<u64> = (0..100_000).map(|_| bursts.draw(&mut rng)).collect();
        let hour = |moment: &u64| moment % DAY / (3600 * SECOND);
        let between = |from, to| drawn.iter().filter(|one| (from..to).contains(&hour(one))).count();
        let (noon, night) = (between(12, 16), between(0, 4));
        assert!(noon > 5 * night && night > 0, "{noon} by day, {night} by night");
        drawn.sort_unstable();
        assert!(drawn[0] >= YEAR_BEGIN && drawn[99_999] < YEAR_BEGIN + (DAYS + 1) * DAY);
        let mut gaps: Vec<u64> = drawn.windows(2).map(|pair| pair[1] - pair[0]).collect();
        gaps.sort_unstable();
        let (low, high) = (gaps[gaps.len() / 10].max(1), gaps[gaps.len() * 9 / 10]);
        assert!(high / low > 1000, "gaps from {low} to {high}: orders of magnitude");
    }
}
