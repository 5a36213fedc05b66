//! The mix of queries, which determines how bits are divided between order and hashes.

use crate::base::real::{exp2, round};

/// The mix of queries that a filter gets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueryMix {
    /// The share of point queries, 0 to 1; the rest are range queries.
    pub points: f64,
}

impl Default for QueryMix {
    /// The assumed mix before any query is known.
    fn default() -> Self {
        QueryMix { points: 0.6 }
    }
}

impl QueryMix {
    /// An image stores shares in this many steps.
    const STEPS: f64 = 255.0;

    /// Encodes the share for an image.
    pub(crate) fn to_byte(self) -> u8 {
        round(self.points.clamp(0.0, 1.0) * Self::STEPS) as u8
    }

    /// Decodes the share of an image.
    pub(crate) fn of_byte(byte: u8) -> QueryMix {
        QueryMix { points: f64::from(byte) / Self::STEPS }
    }

    /// The share of queries with a wrong answer, if cells err at `rate` and points are also
    /// compared by `point_bits` hash bits.
    pub(crate) fn cost(self, rate: f64, point_bits: usize) -> f64 {
        rate * (self.points * exp2(-(point_bits as f64)) + 1.0 - self.points)
    }

    /// The share of wrong answers if only hashes are stored, which say "maybe" to every range.
    pub(crate) fn cost_of_hashes(self) -> f64 {
        1.0 - self.points
    }

    /// The error rate of cells above which hashes alone cost less.
    pub(crate) fn hash_above(self, point_bits: usize) -> f64 {
        self.cost_of_hashes() / self.cost(1.0, point_bits).max(f64::MIN_POSITIVE)
    }
}
