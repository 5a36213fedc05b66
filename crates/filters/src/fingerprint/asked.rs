//! What filters are asked for, by which bits are divided between order and hashes.

/// What a filter is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// The share of single keys; the rest are ranges.
    pub points: f64,
}

impl Default for Asked {
    fn default() -> Self {
        Asked { points: 0.6 }
    }
}

impl Asked {
    /// The share of questions to which the answer is wrong, where so many of cells are and points
    /// are compared with so many hash bits, too.
    pub(crate) fn cost(self, rate: f64, point_bits: usize) -> f64 {
        rate * (self.points * (-(point_bits as f64)).exp2() + 1.0 - self.points)
    }

    /// The same where only points are told apart.
    pub(crate) fn cost_of_hashes(self) -> f64 {
        1.0 - self.points
    }
}
