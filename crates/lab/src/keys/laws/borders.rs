//! Lines on a map as Morton codes: the stand-in for vertices of borders and coasts.
//! ```text
//! a line    a centre, a size over orders of magnitude, a share that grows more slowly
//! a point   of it: size x (noise of one period + 2^-H of two + 2^-2H of four + ...), on each axis
//! ```
//! With H = 0.9, lines are somewhat less rough than coasts (dimension 1.1). The statistic that
//! matters: keys are dense along lines. So gaps differ by orders of magnitude, and a miss lies
//! where keys are dense. Among 30,000 real keys of `osm`, nine gaps in ten are above 2^28 and one
//! in ten above 2^42; here 2^29 and 2^44. For `coast` they are 2^39 and 2^49; here 2^38 and 2^47.

use super::traits::{trait_of, unit_of};
use super::weights::Weights;
use crate::keys::natural_earth::morton;
use crate::keys::rng::Rng;

/// The law of points on lines.
#[derive(Clone, Debug)]
pub(crate) struct Borders {
    kind: u64,
    /// The size of each line, as a share of the map.
    sizes: Vec<f64>,
    shares: Weights,
}

/// Octaves of noise of a line; the last one is as fine as the map's numbers.
const OCTAVES: u32 = 20;
const ROUGHNESS: f64 = 0.9;
/// Bits of the map in each direction.
const MAP_BITS: u32 = 30;

impl Borders {
    /// Returns lines of which short ones have nearly as many points as long ones.
    pub(super) fn of_countries() -> Self {
        Self::new(11, 1000, [-5.0, -1.0], 0.4)
    }

    /// Returns more and longer lines, of which the long ones have most points.
    pub(super) fn of_coasts() -> Self {
        Self::new(12, 3000, [-5.0, -0.5], 0.7)
    }

    /// `least`, `most`: the sizes of the smallest and the largest line, as powers of ten. A line's
    /// share grows with its size to the power `growth`.
    fn new(kind: u64, lines: u64, [least, most]: [f64; 2], growth: f64) -> Self {
        let mut borders = Borders { kind, sizes: vec![], shares: Weights::default() };
        for line in 0..lines {
            let exponent = least + (most - least) * unit_of(trait_of(kind, line));
            let size = 10f64.powf(exponent);
            borders.sizes.push(size);
            borders.shares.push(size.powf(growth));
        }
        borders
    }

    pub(super) fn draw(&self, rng: &mut Rng) -> u64 {
        let line = self.shares.draw(rng);
        let along = rng.unit();
        let [longitude, latitude] = [0, 1].map(|axis| {
            let seed = trait_of(self.kind + 100 * (axis + 1), line as u64);
            let place = unit_of(seed) + self.sizes[line] * noise(seed, along);
            (place.rem_euclid(1.0) * f64::from(1u32 << MAP_BITS)) as u32
        });
        morton(longitude, latitude)
    }
}

/// Returns the height of a rough curve at `along`, from 0 to 1. Curves are about as high as wide.
fn noise(seed: u64, along: f64) -> f64 {
    let (mut sum, mut height, mut periods) = (0.0, 1.0, 1.0);
    for octave in 0..OCTAVES {
        let at = along * periods;
        let (left, share) = (at.floor(), at - at.floor());
        let knot = |place: f64| unit_of(trait_of(seed ^ u64::from(octave), place as u64)) - 0.5;
        sum += height * (knot(left) + share * (knot(left + 1.0) - knot(left)));
        (height, periods) = (height * (-ROUGHNESS).exp2(), periods * 2.0);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_crowd_along_lines() {
        for (borders, ratio) in [(Borders::of_countries(), 3000), (Borders::of_coasts(), 300)] {
            let mut rng = Rng::new(1);
            let mut drawn: Vec<u64> = (0..100_000).map(|_| borders.draw(&mut rng)).collect();
            drawn.sort_unstable();
            let mut gaps: Vec<u64> = drawn.windows(2).map(|pair| pair[1] - pair[0]).collect();
            gaps.sort_unstable();
            let (low, high) = (gaps[gaps.len() / 10].max(1), gaps[gaps.len() * 9 / 10]);
            assert!(high / low > ratio, "gaps from {low} to {high}: orders of magnitude");
            assert!(drawn[99_999] < 1 << (2 * MAP_BITS));
        }
    }

    #[test]
    fn a_line_is_rough_and_has_no_gaps() {
        let step = |distance: f64| {
            let moves = (0..1000u32).map(|place| f64::from(place) / 1001.0);
            let moves = moves.map(|at| (noise(5, at + distance) - noise(5, at)).abs());
            moves.sum::<f64>() / 1000.0
        };
        // At half the distance along the line, points are 2^-H times as far apart.
        let ratio = step(1.0 / 1024.0) / step(1.0 / 2048.0);
        assert!((1.6..2.0).contains(&ratio), "{ratio}");
        assert!(step(1e-5) < 0.01);
    }
}
