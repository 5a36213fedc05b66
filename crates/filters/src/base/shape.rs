//! Flush numbers, spans, and the shape of a version: its runs as plain data.
//! ```text
//! age      newest                                          oldest
//! level 0  [8,9) [7,8) [6,7)
//! level 1                    [3,6)
//! level 2                            [0,3)
//! code of an entry flushed as number 4: [4,5)  -> meets [3,6) alone
//! code of an entry of the last level:   [0,3)  -> meets [0,3) alone
//! ```
//! Invariant (docs/architecture.md, "The rule"): every table and every filter entry has a span that
//! contains the flush numbers of its entries. A table may hold a key only if its span meets the
//! code of a matching entry. Merges widen the spans of tables and never change codes.

use alloc::vec::Vec;

/// A flush number: counts flushes. A later flush has a larger number; numbers are never reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlushNumber(pub u64);

impl FlushNumber {
    /// Returns the number after this one.
    #[must_use]
    pub fn next(self) -> Self {
        FlushNumber(self.0 + 1)
    }
}

/// A half-open interval [lo, hi) of flush numbers. Never empty.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    lo: FlushNumber,
    hi: FlushNumber,
}

impl core::fmt::Debug for Span {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "[{}, {})", self.lo.0, self.hi.0)
    }
}

impl Span {
    /// The span [lo, hi). None if it would be empty.
    pub fn new(lo: FlushNumber, hi: FlushNumber) -> Option<Self> {
        (lo < hi).then_some(Span { lo, hi })
    }

    /// The span of a single flush.
    pub fn of_flush(flush: FlushNumber) -> Self {
        Span { lo: flush, hi: flush.next() }
    }

    /// The smallest flush number in the span.
    pub fn lo(self) -> FlushNumber {
        self.lo
    }

    /// The smallest flush number above the span.
    pub fn hi(self) -> FlushNumber {
        self.hi
    }

    /// Whether the two spans share a flush number. False: no entry belongs to both.
    pub fn meets(self, other: Span) -> bool {
        self.lo < other.hi && other.lo < self.hi
    }

    /// Splits the span at each of `borders` inside it. `borders` ascend; the parts come newest
    /// first.
    fn divided_at(self, borders: &[FlushNumber]) -> impl Iterator<Item = Span> {
        let within = borders.iter().rev().filter(move |border| self.lo < **border);
        let mut hi = self.hi;
        let los = within.copied().chain([self.lo]);
        los.filter_map(move |lo| {
            let part = Span::new(lo, hi);
            hi = hi.min(lo);
            part
        })
    }

    /// Returns the smallest span that covers both.
    #[must_use]
    pub fn hull(self, other: Span) -> Span {
        Span { lo: self.lo.min(other.lo), hi: self.hi.max(other.hi) }
    }
}

/// An answer lists at most this many codes; beyond that it becomes "all".
const CODES_MAX: usize = 24;
/// An answer keeps this many codes inline and allocates for more. Nearly all answers have fewer.
const CODES_FEW: usize = 4;

/// A filter's answer: the codes of the entries that match a query. If it is empty, no run holds
/// anything for the query. If there are too many codes to list, the answer is "all": every run is a
/// candidate.
#[derive(Clone, Debug)]
pub struct Codes {
    all: bool,
    len: usize,
    few: [Span; CODES_FEW],
    /// All listed codes, if there are more than `few` has room for.
    many: Vec<Span>,
}

impl Default for Codes {
    fn default() -> Self {
        let unused = Span::of_flush(FlushNumber(0));
        Codes { all: false, len: 0, few: [unused; CODES_FEW], many: Vec::new() }
    }
}

impl Codes {
    /// An answer without codes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Removes all codes, so that the value can take another answer.
    pub fn clear(&mut self) {
        (self.all, self.len) = (false, 0);
        self.many.clear();
    }

    /// Adds the code of a matching entry. Repeated codes are listed once.
    #[inline]
    pub fn push(&mut self, code: Span) {
        if self.all || self.as_slice().contains(&code) {
            return;
        }
        match self.few.get_mut(self.len) {
            Some(place) => *place = code,
            None => return self.push_to_many(code),
        }
        self.len += 1;
    }

    #[cold]
    fn push_to_many(&mut self, code: Span) {
        if self.len == CODES_MAX {
            return self.push_all();
        }
        if self.many.is_empty() {
            self.many.reserve(CODES_MAX);
            self.many.extend(self.few);
        }
        self.many.push(code);
        self.len += 1;
    }

    /// Makes the answer "all": every run is a candidate.
    pub fn push_all(&mut self) {
        self.clear();
        self.all = true;
    }

    /// Whether no entry matches. True: no run holds anything for the query.
    pub fn is_empty(&self) -> bool {
        self.len == 0 && !self.all
    }

    /// Whether the answer is "all": every run may hold something.
    pub fn is_all(&self) -> bool {
        self.all
    }

    /// The listed codes; empty if the answer is "all".
    pub fn as_slice(&self) -> &[Span] {
        if self.len <= CODES_FEW { &self.few[..self.len] } else { &self.many }
    }

    /// Whether a table with this span may hold an entry for the query. False: it surely holds none.
    pub fn may_meet(&self, table: Span) -> bool {
        self.all || self.as_slice().iter().any(|code| code.meets(table))
    }
}

/// The position of a run within one shape, newest first. It means nothing in another shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunIndex(pub u16);

/// The runs of a version as plain data: the spans of each level's runs, newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// `levels[l]` has the spans of level l's runs, newest first.
    pub levels: Vec<Vec<Span>>,
}

impl Shape {
    /// The shape of a lazily levelled tree with all merges done. Its last level has the flushes
    /// below `base_end`; the levels above have the rest, up to `next`, exclusive. A merge is a
    /// carry (GRF paper, section 4.2). So in base `size_ratio`, the l-th digit of the number of
    /// newer flushes is the number of runs in level l.
    pub fn of_round(base_end: FlushNumber, next: FlushNumber, size_ratio: u32) -> Shape {
        let ratio = u64::from(size_ratio.max(2));
        let (mut levels, mut end, mut worth) = (Vec::new(), next.0, 1);
        let mut above = next.0.saturating_sub(base_end.0);
        while above > 0 {
            let runs = (0..above % ratio).map(|place| {
                let hi = end - place * worth;
                Span { lo: FlushNumber(hi - worth), hi: FlushNumber(hi) }
            });
            levels.push(runs.collect());
            end -= above % ratio * worth;
            (above, worth) = (above / ratio, worth.saturating_mul(ratio));
        }
        levels.extend(Span::new(FlushNumber(0), base_end).map(|last| vec![last]));
        Shape { levels }
    }

    /// Returns the spans of all runs, newest first across all levels.
    pub fn runs(&self) -> impl Iterator<Item = Span> + '_ {
        self.levels.iter().flatten().copied()
    }

    /// Returns the number of runs in each level. The GRF paper (section 4.2) writes a shape so:
    /// "1211".
    pub fn digits(&self) -> Vec<usize> {
        self.levels.iter().map(Vec::len).collect()
    }

    /// Returns this shape with every run's span split at `borders`, which ascend. Codes are then
    /// not widened across a border.
    #[must_use]
    pub fn divided_at(mut self, borders: &[FlushNumber]) -> Shape {
        if borders.is_empty() {
            return self;
        }
        for runs in &mut self.levels {
            let divided = runs.iter().flat_map(|run| run.divided_at(borders));
            *runs = divided.collect();
        }
        self
    }

    /// Returns the runs that may hold an entry with one of `codes`, newest first.
    pub fn resolve<'a>(&'a self, codes: &'a Codes) -> impl Iterator<Item = RunIndex> + 'a {
        let numbered = self.runs().enumerate();
        numbered.filter(|(_, span)| codes.may_meet(*span)).map(|(place, _)| RunIndex(place as u16))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(lo: u64, hi: u64) -> Span {
        Span::new(FlushNumber(lo), FlushNumber(hi)).expect("not empty")
    }

    #[test]
    fn spans_meet_when_they_share_a_flush() {
        assert!(span(0, 3).meets(span(2, 5)) && span(2, 5).meets(span(0, 3)));
        assert!(!span(0, 3).meets(span(3, 5)));
        assert_eq!(span(0, 1).hull(span(4, 5)), span(0, 5));
        assert_eq!(Span::new(FlushNumber(3), FlushNumber(3)), None);
    }

    #[test]
    fn a_merge_is_a_carry() {
        let shape = Shape::of_round(FlushNumber(64), FlushNumber(64 + 0o123), 8);
        assert_eq!(shape.digits(), [3, 2, 1, 1]);
        let ends: Vec<_> = shape.runs().map(|run| (run.lo().0, run.hi().0)).collect();
        let newest = [(146, 147), (145, 146), (144, 145), (136, 144), (128, 136)];
        assert_eq!(ends, [&newest[..], &[(64, 128), (0, 64)]].concat());
        assert_eq!(Shape::of_round(FlushNumber(5), FlushNumber(5), 8).digits(), [1]);
        assert_eq!(Shape::of_round(FlushNumber(0), FlushNumber(2), 8).digits(), [2]);
    }

    #[test]
    fn a_shape_is_divided_where_it_is_asked_to() {
        let levels = vec![vec![span(20, 21)], vec![span(10, 20)], vec![span(0, 10)]];
        let shape = Shape { levels };
        assert_eq!(shape.clone().divided_at(&[]), shape);
        let borders = [0, 3, 10, 13, 13, 19, 21, 30].map(FlushNumber);
        let divided = shape.divided_at(&borders);
        let upper = vec![span(19, 20), span(13, 19), span(10, 13)];
        let last = vec![span(3, 10), span(0, 3)];
        assert_eq!(divided.levels, [vec![span(20, 21)], upper, last]);
    }

    #[test]
    fn codes_that_do_not_fit_become_all() {
        let mut codes = Codes::new();
        assert!(codes.is_empty());
        for flush in 0..CODES_MAX as u64 {
            codes.push(Span::of_flush(FlushNumber(flush)));
            codes.push(Span::of_flush(FlushNumber(flush)));
        }
        assert!(!codes.is_all());
        assert!(!codes.may_meet(span(1000, 1001)));
        codes.push(Span::of_flush(FlushNumber(1000)));
        assert!(codes.is_all() && codes.may_meet(span(5000, 5001)));
    }
}
