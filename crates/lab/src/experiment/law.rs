//! Power laws: how the curves of a figure grow with x.
//! ```text
//! y = factor * (x / unit)^exponent      a straight line, where both axes are by powers of ten
//! ```
//! The line is the least-squares fit of the logarithms. Invariant: a law states how far its points
//! are from it.

use crate::experiment::number::{readable, tick};

/// The fewest points of a law, since a line goes through any two.
const POINTS_LEAST: usize = 3;

/// A power law fitted to the points of a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Law {
    /// y at x = `unit`.
    factor: f64,
    exponent: f64,
    /// The unit of x: the power of ten at or below the least x.
    unit: f64,
    /// The largest distance of a point from the law, relative to the law.
    error: f64,
}

impl Law {
    /// Fits a law. None: there are too few points, they have one x, or not all are above zero.
    pub(crate) fn of(points: &[(f64, f64)]) -> Option<Law> {
        let is_above_zero = points.iter().all(|(x, y)| *x > 0.0 && *y > 0.0);
        if points.len() < POINTS_LEAST || !is_above_zero {
            return None;
        }
        let least = points.iter().map(|point| point.0).fold(f64::INFINITY, f64::min);
        let unit = 10_f64.powf(least.log10().floor());
        let logs: Vec<(f64, f64)> = points.iter().map(|(x, y)| ((x / unit).ln(), y.ln())).collect();
        let count = logs.len() as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| logs.iter().map(of).sum::<f64>() / count;
        let (x, y) = (mean(|log| log.0), mean(|log| log.1));
        let spread: f64 = logs.iter().map(|log| (log.0 - x).powi(2)).sum();
        let along: f64 = logs.iter().map(|log| (log.0 - x) * (log.1 - y)).sum();
        if spread == 0.0 {
            return None;
        }
        let exponent = along / spread;
        let law = Law { factor: (y - exponent * x).exp(), exponent, unit, error: 0.0 };
        let errors = points.iter().map(|(x, y)| (y / law.at(*x) - 1.0).abs());
        Some(Law { error: errors.fold(0.0, f64::max), ..law })
    }

    /// Returns the law's y for an x.
    fn at(&self, x: f64) -> f64 {
        self.factor * (x / self.unit).powf(self.exponent)
    }

    /// Returns the unit of x, for readers.
    pub(crate) fn unit(&self) -> String {
        tick(self.unit)
    }

    /// Formats the law in few characters. `n` is x in units.
    pub(crate) fn short(&self) -> String {
        let [factor, error] = [readable(self.factor), format!("{:.0}", self.error * 100.0)];
        format!("{factor} n^{:.2} ±{error} %", self.exponent)
    }

    /// Formats the law for readers. `x` is the name of x.
    pub(crate) fn describe(&self, x: &str) -> String {
        format!(
            "{} × ({x} / {})^{:.2}, within {:.0} %",
            readable(self.factor),
            tick(self.unit),
            self.exponent,
            self.error * 100.0
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_of_a_power_law_give_it_and_no_error() {
        let points: Vec<(f64, f64)> =
            [2e6, 3e6, 1e7, 5e8].iter().map(|x: &f64| (*x, 3.0 * (x / 1e6).powf(0.25))).collect();
        let law = Law::of(&points).expect("there are enough");
        assert!((law.factor - 3.0).abs() < 1e-9 && (law.exponent - 0.25).abs() < 1e-9, "{law:?}");
        assert!(law.unit == 1e6 && law.error < 1e-9, "{law:?}");
        assert_eq!(law.describe("keys"), "3 × (keys / 1M)^0.25, within 0 %");
        assert_eq!((law.short(), law.unit()), ("3 n^0.25 ±0 %".into(), "1M".into()));
    }

    #[test]
    fn a_law_tells_how_far_its_farthest_point_is() {
        let law = Law::of(&[(1.0, 10.0), (10.0, 10.0), (100.0, 20.0)]).expect("there are enough");
        // The line's slope is log10(2) / 2; the middle point lies below the line.
        assert!((law.exponent - 0.150_515).abs() < 1e-5, "{law:?}");
        let middle = 1.0 - 10.0 / law.at(10.0);
        assert!((law.error - middle).abs() < 1e-9 && middle > 0.2, "{law:?} {middle}");
    }

    #[test]
    fn what_gives_no_line_has_no_law() {
        assert_eq!(Law::of(&[(1.0, 1.0), (2.0, 2.0)]), None);
        assert_eq!(Law::of(&[(1.0, 1.0), (2.0, 0.0), (3.0, 1.0)]), None);
        assert_eq!(Law::of(&[(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)]), None);
    }
}
