//! The shape of a tree at a step, and codes as positions in it (GRF, section 4.2).
//!
//! Invariant: a code is written as positions only if the shape is an encoding of a flush number.

use trommel_filters::{Codes, FlushNumber, Shape, Span};

use crate::replay::recording::{ReplayCode, ReplayDigits, ReplayRun};

/// A version of the tree in the types of the filters' crate.
pub(crate) struct ReplayTree {
    pub(crate) shape: Shape,
    /// The end of the oldest run, where the round began.
    origin: FlushNumber,
    /// The number of the next flush.
    next: FlushNumber,
    size_ratio: u32,
    /// Whether positions have a meaning: all levels have many runs except the last, which has one.
    is_lazy: bool,
}

impl ReplayTree {
    /// `is_lazy`: whether the policy gives positions a meaning.
    pub(crate) fn new(levels: &[Vec<ReplayRun>], size_ratio: u32, is_lazy: bool) -> Self {
        let span = |run: &ReplayRun| Span::new(FlushNumber(run.span.0), FlushNumber(run.span.1));
        let spans = |runs: &Vec<ReplayRun>| runs.iter().filter_map(span).collect();
        let shape = Shape { levels: levels.iter().map(spans).collect() };
        let origin = shape.runs().last().map_or(FlushNumber(0), Span::hi);
        let next = shape.runs().next().map_or(FlushNumber(0), Span::hi);
        ReplayTree { shape, origin, next, size_ratio, is_lazy }
    }

    /// Returns the shape of this round after the flushes below `next`, with a position for each
    /// level of this tree.
    fn positions(&self, next: FlushNumber) -> Vec<usize> {
        let mut positions = Shape::of_round(self.origin, next, self.size_ratio).digits();
        let missing = self.shape.levels.len().saturating_sub(positions.len());
        let last = positions.len().saturating_sub(1);
        positions.splice(last..last, std::iter::repeat_n(0, missing));
        positions
    }

    /// Whether the shape is an encoding: no merge is due.
    pub(crate) fn is_encoding(&self) -> bool {
        self.is_lazy && self.origin.0 > 0 && self.positions(self.next) == self.shape.digits()
    }

    /// Returns the codes of an answer, with the runs that they name.
    pub(crate) fn codes(&self, codes: &Codes) -> Vec<ReplayCode> {
        codes.as_slice().iter().map(|&code| self.code(code)).collect()
    }

    fn code(&self, code: Span) -> ReplayCode {
        let mut alone = Codes::new();
        alone.push(code);
        let runs = self.shape.resolve(&alone).map(|run| usize::from(run.0)).collect();
        ReplayCode { span: (code.lo().0, code.hi().0), runs, digits: self.digits(code) }
    }

    /// Returns a code in the paper's form: a flush number without some of its low digits. None: the
    /// shape is no encoding.
    fn digits(&self, code: Span) -> Option<ReplayDigits> {
        if !self.is_encoding() {
            return None;
        }
        let levels = self.shape.levels.len();
        let version = self.shape.digits();
        let (positions, kept) = if code.hi() <= self.origin {
            // All keys of the last level have the same single indicator.
            (self.positions(self.origin), 1)
        } else {
            let (from, width) =
                (code.lo().0.checked_sub(self.origin.0)?, code.hi().0 - code.lo().0);
            let dropped = width.checked_ilog(u64::from(self.size_ratio))? as usize;
            let is_block = u64::from(self.size_ratio).pow(dropped as u32) == width
                && from.is_multiple_of(width)
                && dropped + 1 < levels;
            (is_block.then(|| self.positions(code.lo()))?, levels - dropped)
        };
        if positions.len() != levels {
            return None;
        }
        let pairs = positions.iter().rev().zip(version.iter().rev());
        let common_suffix = pairs.take_while(|(key, version)| key == version).count();
        let unary = "0".repeat(kept - 1) + "1";
        Some(ReplayDigits { positions, kept, unary, common_suffix: common_suffix.min(kept) })
    }
}
