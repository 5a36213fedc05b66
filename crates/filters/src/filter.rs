//! What a filter promises, whoever builds it.
//! ```text
//! PointFilter    one run, one key      -> may it hold the key?
//! RangeFilter    one run, a range      -> may it hold a key of the range?
//! GlobalFilter   all runs, a query     -> codes of the entries that match
//! ```
//! Invariant: every answer errs one way only. "No" is proof of absence, "maybe" proves nothing.

use crate::query::{KeyRange, Query};
use crate::shape::Codes;

/// A filter of one run that answers for single keys.
pub trait PointFilter {
    /// False: the run has no entry of `key`. True: it may have one.
    fn may_contain(&self, key: &[u8]) -> bool;
}

/// A filter of one run that answers for ranges.
pub trait RangeFilter {
    /// False: the run has no key in `range`. True: it may have one.
    fn may_overlap(&self, range: &KeyRange<'_>) -> bool;
}

/// A filter of all runs of a tree at once.
pub trait GlobalFilter {
    /// Adds the codes of all entries that match. Nothing added: no run holds anything for `query`.
    fn candidates(&self, query: &Query<'_>, codes: &mut Codes);
}

/// Watches which filter memory a probe reads. [`Untraced`] compiles to nothing.
pub trait Trace {
    /// `len` bytes from `address` on were read.
    fn touch(&mut self, address: usize, len: usize);

    /// The memory of `bytes` was read.
    fn touch_bytes(&mut self, bytes: &[u8]) {
        self.touch(bytes.as_ptr() as usize, bytes.len());
    }
}

/// No one watches.
#[derive(Clone, Copy, Debug, Default)]
pub struct Untraced;

impl Trace for Untraced {
    #[inline(always)]
    fn touch(&mut self, _address: usize, _len: usize) {}
}

/// Counts the distinct cache lines that are touched.
#[derive(Clone, Debug, Default)]
pub struct LineCounter {
    lines: Vec<usize>,
}

impl LineCounter {
    const LINE_BYTES: usize = 64;

    /// How many distinct lines were touched since the last call of `take`.
    pub fn take(&mut self) -> usize {
        self.lines.sort_unstable();
        self.lines.dedup();
        let count = self.lines.len();
        self.lines.clear();
        count
    }
}

impl Trace for LineCounter {
    fn touch(&mut self, address: usize, len: usize) {
        if len > 0 {
            let last = (address + len - 1) / Self::LINE_BYTES;
            self.lines.extend(address / Self::LINE_BYTES..=last);
        }
    }
}

/// The filters whose bytes are stored, by tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterKind {
    /// A Bloom filter whose bits for a key lie in one cache line.
    BlockedBloom,
}

impl FilterKind {
    /// Every kind there is.
    pub const ALL: [FilterKind; 1] = [FilterKind::BlockedBloom];

    /// The number that names the kind in files; never reused.
    pub fn tag(self) -> u16 {
        match self {
            FilterKind::BlockedBloom => 1,
        }
    }

    /// The name that people write.
    pub fn name(self) -> &'static str {
        match self {
            FilterKind::BlockedBloom => "blocked-bloom",
        }
    }

    /// None: no kind has this tag.
    pub fn from_tag(tag: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.tag() == tag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_once() {
        let mut counter = LineCounter::default();
        counter.touch(0, 64);
        counter.touch(60, 8);
        counter.touch(640, 0);
        assert_eq!(counter.take(), 2);
        assert_eq!(counter.take(), 0);
    }
}
