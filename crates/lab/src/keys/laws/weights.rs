//! Weighted draws.
//! ```text
//! weights   3    1    2
//! sums      3    4    6        a draw in [0, 6): the first thing whose sum is above it
//! ```
//! Invariant: sums ascend.

use crate::keys::rng::Rng;

/// Draws one of several things in proportion to their weights.
#[derive(Clone, Debug, Default)]
pub(super) struct Weights {
    /// The sum of the weights up to and including each thing.
    sums: Vec<f64>,
}

impl Weights {
    pub(super) fn push(&mut self, weight: f64) {
        self.sums.push(self.sums.last().unwrap_or(&0.0) + weight);
    }

    /// Draws the index of a thing.
    /// Requires: at least one thing.
    pub(super) fn draw(&self, rng: &mut Rng) -> usize {
        let last = self.sums.len() - 1;
        let share = rng.unit() * self.sums[last];
        self.sums.partition_point(|sum| *sum <= share).min(last)
    }
}
