//! The skew of gets: all stored keys are equally popular, or some are far more popular than others.
//! ```text
//! none             every key as often as any other
//! zipf:S           the n-th key from a third of the keys on has a share of n^-S: hot keys
//!                  are neighbours, as tables are hot
//! scattered-zipf:S the same shares, hot keys anywhere
//! ```
//! Invariant: a seed always gives the same draws.

use std::fmt;
use std::str::FromStr;

use crate::error::LabError;
use crate::keys::rng::{Rng, scramble};

/// How gets are distributed over the keys.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Skew {
    /// Uniformly.
    #[default]
    None,
    /// By Zipf's law with this exponent, in key order. The hottest key is not at the end of the
    /// order, where few runs have tables.
    Zipf(f64),
    /// By Zipf's law with this exponent, with hot keys scattered.
    ScatteredZipf(f64),
}

impl Skew {
    /// YCSB's law.
    pub(crate) const YCSB: Skew = Skew::ScatteredZipf(0.99);
}

impl fmt::Display for Skew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Skew::None => f.write_str("none"),
            Skew::Zipf(exponent) => write!(f, "zipf:{exponent}"),
            Skew::ScatteredZipf(exponent) => write!(f, "scattered-zipf:{exponent}"),
        }
    }
}

impl FromStr for Skew {
    type Err = LabError;

    fn from_str(name: &str) -> Result<Self, LabError> {
        let (law, exponent) = name.split_once(':').unwrap_or((name, ""));
        let exponent = exponent.parse().ok().filter(|exponent| (0.0..=10.0).contains(exponent));
        match (law, exponent) {
            ("none", _) if law == name => Ok(Skew::None),
            ("zipf", Some(exponent)) => Ok(Skew::Zipf(exponent)),
            ("scattered-zipf", Some(exponent)) => Ok(Skew::ScatteredZipf(exponent)),
            _ => Err(LabError::Plan(format!(
                "there is no skew '{name}'; there are: none, zipf:S, scattered-zipf:S (S from 0 to 10)"
            ))),
        }
    }
}

/// Draws places in a list of keys.
pub(crate) struct Places {
    len: usize,
    skew: Skew,
    zipf: Zipf,
}

impl Places {
    /// Requires: at least one key.
    pub(crate) fn new(skew: Skew, len: usize) -> Self {
        let exponent = match skew {
            Skew::None => 0.0,
            Skew::Zipf(exponent) | Skew::ScatteredZipf(exponent) => exponent,
        };
        Places { len, skew, zipf: Zipf::new(exponent, len as u64) }
    }

    pub(crate) fn draw(&self, rng: &mut Rng) -> usize {
        match self.skew {
            Skew::None => rng.place(self.len),
            Skew::Zipf(_) => (self.zipf.draw(rng) as usize - 1 + self.len / 3) % self.len,
            Skew::ScatteredZipf(_) => (scramble(self.zipf.draw(rng)) % self.len as u64) as usize,
        }
    }
}

/// Zipf's law by rejection-inversion (Hörmann and Derflinger, 1996). It needs no table, and one or
/// two draws per number.
#[derive(Clone, Debug)]
pub(crate) struct Zipf {
    exponent: f64,
    count: f64,
    /// The integral up to the last number, and its start below the first number.
    end: f64,
    start: f64,
}

impl Zipf {
    pub(crate) fn new(exponent: f64, count: u64) -> Self {
        let mut zipf = Zipf { exponent, count: 0.0, end: 0.0, start: 0.0 };
        zipf.start = zipf.integral(1.5) - 1.0;
        zipf.set_count(count);
        zipf
    }

    /// Changes the largest number of further draws.
    pub(crate) fn set_count(&mut self, count: u64) {
        if self.count != count as f64 {
            self.count = count as f64;
            self.end = self.integral(self.count + 0.5);
        }
    }

    /// Returns the integral of x^-S from 1 to `x`.
    fn integral(&self, x: f64) -> f64 {
        let left = 1.0 - self.exponent;
        if left.abs() < 1e-9 { x.ln() } else { (x.powf(left) - 1.0) / left }
    }

    fn integral_inverse(&self, area: f64) -> f64 {
        let left = 1.0 - self.exponent;
        if left.abs() < 1e-9 { area.exp() } else { (1.0 + area * left).max(0.0).powf(1.0 / left) }
    }

    /// Draws a number from 1 to the count.
    pub(crate) fn draw(&self, rng: &mut Rng) -> u64 {
        loop {
            let area = self.end + rng.unit() * (self.start - self.end);
            let number = self.integral_inverse(area).round().clamp(1.0, self.count);
            // Accepts the part of the strip around the number that is as wide as the number's
            // share.
            if area >= self.integral(number + 0.5) - number.powf(-self.exponent) {
                return number as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_unknown_ones_list_the_known() {
        for name in ["none", "zipf:0.99", "scattered-zipf:1"] {
            assert_eq!(name.parse::<Skew>().expect("known").to_string(), name);
        }
        for unknown in ["zipf", "zipf:", "zipf:x", "zipf:-1", "zipf:NaN", "none:1", ""] {
            let message = unknown.parse::<Skew>().expect_err("unknown").to_string();
            assert!(message.contains("none, zipf:S"), "{message}");
        }
    }

    #[test]
    fn shares_are_those_of_the_law() {
        const DRAWS: usize = 200_000;
        for exponent in [0.0, 0.5, 0.99, 1.0, 2.0] {
            let places = Places::new(Skew::Zipf(exponent), 100);
            let mut rng = Rng::new(7);
            let mut counts = [0usize; 100];
            (0..DRAWS).for_each(|_| counts[places.draw(&mut rng)] += 1);
            let sum: f64 = (1..=100).map(|number| f64::from(number).powf(-exponent)).sum();
            counts.rotate_left(33);
            for (place, count) in counts.into_iter().enumerate() {
                let expected = DRAWS as f64 * ((place + 1) as f64).powf(-exponent) / sum;
                let noise = 5.0 * expected.sqrt() + 1.0;
                assert!((count as f64 - expected).abs() < noise, "{exponent}, {place}: {count}");
            }
        }
    }

    #[test]
    fn scattered_places_are_hot_anywhere() {
        let (near, far) =
            (Places::new(Skew::Zipf(0.99), 10_000), Places::new(Skew::ScatteredZipf(0.99), 10_000));
        let mut rng = Rng::new(7);
        let mut low = |places: &Places| {
            (0..10_000).filter(|_| (3333..4333).contains(&places.draw(&mut rng))).count()
        };
        assert!(low(&near) > 7000, "the tenth behind a third of the keys is hot");
        assert!(low(&far) < 4000, "no tenth of them is");
    }
}
