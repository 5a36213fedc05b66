//! What filters are asked for, by which bits are divided between order and hashes.

use crate::base::real::{exp2, round};

/// What a filter is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Asked {
    /// The share of single keys, 0 to 1; the rest are ranges.
    pub points: f64,
}

impl Default for Asked {
    /// As long as nobody has asked.
    fn default() -> Self {
        Asked { points: 0.6 }
    }
}

impl Asked {
    /// Parts of 1 that an image tells apart.
    const STEPS: f64 = 255.0;

    /// As an image keeps it.
    pub(crate) fn to_byte(self) -> u8 {
        round(self.points.clamp(0.0, 1.0) * Self::STEPS) as u8
    }

    /// What an image has kept.
    pub(crate) fn of_byte(byte: u8) -> Asked {
        Asked { points: f64::from(byte) / Self::STEPS }
    }

    /// The share of questions to which the answer is wrong, where so many of cells are and points
    /// are compared with so many hash bits, too.
    pub(crate) fn cost(self, rate: f64, point_bits: usize) -> f64 {
        rate * (self.points * exp2(-(point_bits as f64)) + 1.0 - self.points)
    }

    /// The same where only points are told apart.
    pub(crate) fn cost_of_hashes(self) -> f64 {
        1.0 - self.points
    }

    /// The rate of cells above which hashes cost less.
    pub(crate) fn hash_above(self, point_bits: usize) -> f64 {
        self.cost_of_hashes() / self.cost(1.0, point_bits).max(f64::MIN_POSITIVE)
    }
}
