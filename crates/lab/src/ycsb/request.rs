//! The distribution of requests over keys.
//! ```text
//! uniform     every key that was there when the workload began
//! zipfian:S   the n-th of ten thousand million items with a share of n^-S, then scrambled:
//!             hot keys are anywhere, and stay hot while keys are inserted
//! latest:S    the key inserted n-th last with a share of n^-S
//! ```
//! Invariant: a key is asked for only after it was inserted. As in YCSB, scrambled items fall on
//! the places of all keys, plus twice the expected inserts. A place without a key is drawn again.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::keys::rng::{Rng, scramble};
use crate::keys::skew::Zipf;

/// The distribution of requests over keys.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Distribution {
    /// Uniform over the keys that were there when the workload began.
    Uniform,
    /// Zipf's law with this exponent; hot keys are scattered.
    Zipfian(f64),
    /// Zipf's law with this exponent; newer keys are hotter.
    Latest(f64),
}

impl Distribution {
    /// YCSB's exponent.
    pub const EXPONENT: f64 = 0.99;
    /// The number of items of YCSB's scrambled Zipf's law, regardless of the number of keys.
    const ITEMS: u64 = 10_000_000_000;
    const EXPONENT_MAX: f64 = 10.0;
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Distribution::Uniform => f.write_str("uniform"),
            Distribution::Zipfian(exponent) => write!(f, "zipfian:{exponent}"),
            Distribution::Latest(exponent) => write!(f, "latest:{exponent}"),
        }
    }
}

impl FromStr for Distribution {
    type Err = LabError;

    fn from_str(name: &str) -> Result<Self, LabError> {
        let (law, exponent) = match name.split_once(':') {
            Some((law, exponent)) => (law, exponent.parse().unwrap_or(f64::NAN)),
            None => (name, Self::EXPONENT),
        };
        let is_sensible = (0.0..=Self::EXPONENT_MAX).contains(&exponent);
        match law {
            "uniform" if law == name => Ok(Distribution::Uniform),
            "zipfian" if is_sensible => Ok(Distribution::Zipfian(exponent)),
            "latest" if is_sensible => Ok(Distribution::Latest(exponent)),
            _ => Err(LabError::Plan(format!(
                "there is no distribution '{name}'; there are: uniform, zipfian:S, latest:S (S from 0 to {}; \
                 without it {})",
                Self::EXPONENT_MAX,
                Self::EXPONENT,
            ))),
        }
    }
}

impl TryFrom<String> for Distribution {
    type Error = LabError;

    fn try_from(name: String) -> Result<Self, LabError> {
        name.parse()
    }
}

impl From<Distribution> for String {
    fn from(distribution: Distribution) -> String {
        distribution.to_string()
    }
}

/// Draws places in the list of keys.
#[derive(Clone, Debug)]
pub(crate) struct Chooser {
    distribution: Distribution,
    /// Keys that were there when the workload began.
    first: u64,
    /// The places that scrambled items fall on.
    places: u64,
    zipf: Zipf,
}

impl Chooser {
    /// Requires: `first`, the number of keys now, is at least 1. `inserts`: about how many more
    /// there will be.
    pub(crate) fn new(distribution: Distribution, first: u64, inserts: u64) -> Self {
        let (exponent, count) = match distribution {
            Distribution::Uniform => (0.0, 1),
            Distribution::Zipfian(exponent) => (exponent, Distribution::ITEMS),
            Distribution::Latest(exponent) => (exponent, first),
        };
        let places = first + 2 * inserts;
        Chooser { distribution, first, places, zipf: Zipf::new(exponent, count) }
    }

    /// Draws a place below `there`, the number of all keys inserted so far.
    pub(crate) fn choose(&mut self, there: u64, rng: &mut Rng) -> u64 {
        match self.distribution {
            Distribution::Uniform => rng.below(self.first),
            Distribution::Zipfian(_) => loop {
                let place = scramble(self.zipf.draw(rng)) % self.places;
                if place < there {
                    return place;
                }
            },
            Distribution::Latest(_) => {
                self.zipf.set_count(there);
                there - self.zipf.draw(rng)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: usize = 300_000;

    /// Counts how often each place is drawn.
    fn counts(distribution: Distribution, first: u64, inserts: u64, there: u64) -> Vec<f64> {
        let mut chooser = Chooser::new(distribution, first, inserts);
        let mut rng = Rng::new(11);
        let mut counts = vec![0.0; there as usize];
        (0..DRAWS).for_each(|_| counts[chooser.choose(there, &mut rng) as usize] += 1.0);
        counts
    }

    fn near(count: f64, expected: f64) -> bool {
        (count - expected).abs() < 5.0 * expected.sqrt()
    }

    #[test]
    fn uniform_requests_are_for_the_first_keys() {
        let counts = counts(Distribution::Uniform, 100, 50, 150);
        assert!(counts[..100].iter().all(|count| near(*count, DRAWS as f64 / 100.0)));
        assert!(counts[100..].iter().all(|count| *count == 0.0));
    }

    #[test]
    fn zipfian_requests_have_the_shares_of_ten_thousand_million_items() {
        // The sum of n^-0.99 up to 10^10, a constant in YCSB's sources.
        const ZETA: f64 = 26.469_028_201_783_02;
        const PLACES: u64 = 1_000_000;
        let counts = counts(Distribution::Zipfian(0.99), PLACES, 0, PLACES);
        for item in 1..=20u64 {
            let expected = DRAWS as f64 * (item as f64).powf(-0.99) / ZETA;
            let count = counts[(scramble(item) % PLACES) as usize];
            assert!(near(count, expected + 0.3), "item {item}: {count}, not {expected}");
        }
        let hot = counts.iter().filter(|count| **count > 100.0).count();
        let low = counts[..PLACES as usize / 2].iter().filter(|count| **count > 100.0).count();
        assert!((hot / 4..=3 * hot / 4).contains(&low), "hot keys are anywhere: {low} of {hot}");
    }

    #[test]
    fn what_is_hot_stays_hot_when_keys_are_inserted() {
        let distribution = Distribution::Zipfian(0.99);
        let (before, after) =
            (counts(distribution, 1000, 500, 1000), counts(distribution, 1000, 500, 1500));
        // A place without a key is drawn again. So all shares shrink alike when the other places
        // get keys.
        let shrunk = after[..1000].iter().sum::<f64>() / DRAWS as f64;
        for (place, (before, after)) in before.iter().zip(&after).enumerate() {
            let noise = 6.0 * before.sqrt() + 6.0;
            assert!((before * shrunk - after).abs() < noise, "{place}: {before} {after}");
        }
        assert!((0.4..0.95).contains(&shrunk), "{shrunk}");
    }

    #[test]
    fn latest_requests_are_for_the_newest_keys() {
        // The law covers all keys inserted meanwhile, not only the first ones.
        let counts = counts(Distribution::Latest(0.99), 100, 50, 300);
        let sum: f64 = (1..=300).map(|number| f64::from(number).powf(-0.99)).sum();
        for (age, count) in counts.iter().rev().enumerate() {
            let expected = DRAWS as f64 * ((age + 1) as f64).powf(-0.99) / sum;
            assert!(near(*count, expected), "{age}: {count}, not {expected}");
        }
    }

    #[test]
    fn names_are_read_back_and_unknown_ones_list_the_known() {
        for name in ["uniform", "zipfian:0.99", "latest:1.2"] {
            assert_eq!(name.parse::<Distribution>().expect("known").to_string(), name);
        }
        assert_eq!("latest".parse::<Distribution>().expect("known"), Distribution::Latest(0.99));
        for unknown in ["zipf", "zipfian:", "zipfian:-1", "latest:NaN", "uniform:1", ""] {
            let message = unknown.parse::<Distribution>().expect_err("unknown").to_string();
            assert!(message.contains("uniform, zipfian:S, latest:S"), "{message}");
        }
    }
}
