//! The contract of a filter, whatever builds it.
//! ```text
//! TableFilter   one table, a key    -> may it hold the key?
//!               one table, a range  -> may it hold a key of the range? what comes next? how many?
//! GlobalFilter  all runs, a query   -> codes of the entries that match
//! ```
//! Invariant: every answer errs one way only. "No" is proof of absence, "maybe" proves nothing.

use alloc::vec::Vec;

use crate::base::hash::{HashUse, hash_key};
use crate::base::kind::FilterKind;
use crate::base::query::{KeyRange, Query};
use crate::base::rank::CountBounds;
use crate::base::shape::Codes;
use crate::bits::simd::{prefetch, prefetch_lines};

/// A key that filters are asked for, with its hash, which is made once for all of them.
#[derive(Clone, Copy, Debug)]
pub struct HashedKey<'a> {
    key: &'a [u8],
    hash: u64,
}

impl<'a> HashedKey<'a> {
    /// Hashes a key.
    #[inline]
    pub fn new(key: &'a [u8]) -> Self {
        HashedKey { key, hash: hash_key(key, HashUse::Table) }
    }

    /// The key.
    #[inline]
    pub fn key(&self) -> &'a [u8] {
        self.key
    }

    /// Its hash for [`HashUse::Table`].
    #[inline]
    pub fn hash(&self) -> u64 {
        self.hash
    }
}

/// Where the keys of a table go on, as far as its filter knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LowerBound {
    /// The table has no key at or after the one that was asked for.
    End,
    /// Every key of the table at or after the one that was asked for is at or after this one.
    From {
        /// Never less than the key that was asked for.
        key: Vec<u8>,
        /// Whether the entry behind this bound may lie on either side of the key asked for. The
        /// bound is then that key itself. (SuRF's false-positive flag.)
        unsure: bool,
    },
}

/// Where the keys of a table go on towards the first one, as far as its filter knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpperBound {
    /// The table has no key at or before the one that was asked for.
    Start,
    /// Every key of the table at or before the one that was asked for is before this one.
    Before {
        /// At most the key after the one that was asked for: that one and a zero.
        end: Vec<u8>,
        /// Whether the entry behind this bound may lie on either side of the key asked for. The
        /// bound is then the key after that key.
        unsure: bool,
    },
}

/// The filter of one table, over checked bytes.
pub trait TableFilter {
    /// Which filter it is.
    fn kind(&self) -> &'static dyn FilterKind;

    /// What it was read from: what a builder made, or a copy of it.
    fn bytes(&self) -> &[u8];

    /// The size of the filter's bytes, everything included.
    fn size_bytes(&self) -> usize {
        self.bytes().len()
    }

    /// False: the table has no entry of the key. True: it may have one. `trace` sees the memory
    /// that is read.
    fn may_contain_traced<T: Trace>(&self, key: &HashedKey<'_>, trace: &mut T) -> bool;

    /// False: the table has no key in `range`. True: it may have one. A filter that knows no ranges
    /// is asked for the key of a range that holds one key alone, and says "maybe" to others.
    fn may_overlap_traced<T: Trace>(&self, range: &KeyRange<'_>, trace: &mut T) -> bool {
        range.upper() != Some(range.lower())
            || self.may_contain_traced(&HashedKey::new(range.lower()), trace)
    }

    /// Where the table's keys go on from `key`. None: the filter does not know.
    fn lower_bound(&self, key: &[u8]) -> Option<LowerBound> {
        let _ = key;
        None
    }

    /// Where the table's keys go on from `key` towards the first one. None: the filter does not
    /// know.
    fn upper_bound(&self, key: &[u8]) -> Option<UpperBound> {
        let _ = key;
        None
    }

    /// How many keys the table has in `range`. None: the filter does not know.
    fn count(&self, range: &KeyRange<'_>) -> Option<CountBounds> {
        let _ = range;
        None
    }

    /// As `may_contain_traced`, untraced. Filters that have no use for a hash make none.
    #[inline]
    fn may_contain(&self, key: &[u8]) -> bool {
        self.may_contain_traced(&HashedKey::new(key), &mut Untraced)
    }

    /// As `may_contain`, for a key whose hash is known: one hash serves many tables.
    #[inline]
    fn may_contain_hashed(&self, key: &HashedKey<'_>) -> bool {
        self.may_contain_traced(key, &mut Untraced)
    }

    /// As `may_overlap_traced`, untraced.
    #[inline]
    fn may_overlap(&self, range: &KeyRange<'_>) -> bool {
        self.may_overlap_traced(range, &mut Untraced)
    }
}

/// Makes the filter of one table.
pub trait TableFilterBuilder {
    /// Adds the next key. Keys come in ascending order; of equal keys that follow each other, one
    /// counts.
    fn add(&mut self, key: &[u8]) -> Result<(), OutOfOrder>;

    /// The filter's bytes.
    fn finish(self) -> Vec<u8>;
}

/// The bits that the filter of so many keys has for all but its trailer. In a small one the trailer
/// takes an eighth at most: then the filter is larger than was asked for, rather than good for
/// nothing.
pub fn payload_bits(keys: usize, bits_per_key: f64, trailer_bytes: usize) -> f64 {
    assert!(!bits_per_key.is_nan(), "bits per key is not a number");
    let bits = keys as f64 * bits_per_key.max(0.0);
    (bits - trailer_bytes as f64 * 8.0).max(bits * 0.875)
}

/// A key that comes before the one that was added last. The builder is as it was before.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("key {} comes after key {}: a filter's keys are added in ascending order", key.escape_ascii(), last.escape_ascii())]
pub struct OutOfOrder {
    /// What was added last.
    pub last: Vec<u8>,
    /// What was refused.
    pub key: Vec<u8>,
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

    /// The cache line of `address` was asked for, as it is likely to be read soon.
    #[inline(always)]
    fn ask(&mut self, _address: usize) {}

    /// The memory of `bytes` was read.
    fn touch_bytes(&mut self, bytes: &[u8]) {
        self.touch(bytes.as_ptr() as usize, bytes.len());
    }
}

/// Asks for the cache line of an item, if there is one, without waiting for it.
#[inline(always)]
pub fn ask_for<T, R: Trace>(items: &[T], at: usize, trace: &mut R) {
    prefetch(items, at);
    if let Some(item) = items.get(at) {
        trace.ask(core::ptr::from_ref(item) as usize);
    }
}

/// Asks for some cache lines from that of an item on, which need not be there, without waiting for
/// them.
#[inline(always)]
pub fn ask_for_lines<T, R: Trace>(items: &[T], at: usize, lines: usize, trace: &mut R) {
    const LINE_BYTES: usize = 64;
    prefetch_lines(items, at, lines);
    let address = items.as_ptr().wrapping_add(at) as usize;
    (0..lines).for_each(|line| trace.ask(address.wrapping_add(line * LINE_BYTES)));
}

impl<T: Trace + ?Sized> Trace for &mut T {
    fn touch(&mut self, address: usize, len: usize) {
        (**self).touch(address, len);
    }

    fn ask(&mut self, address: usize) {
        (**self).ask(address);
    }
}

/// A trace that records nothing.
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
    asked: Vec<usize>,
    unasked: usize,
}

impl LineCounter {
    const LINE_BYTES: usize = 64;
    const LINES_OF_PAGE: usize = 4096 / Self::LINE_BYTES;

    /// How many distinct lines were touched since the last call of `take`.
    pub fn take(&mut self) -> usize {
        let count = self.lines.len();
        *self = LineCounter::default();
        count
    }

    /// On how many pages of 4 KiB they are: a processor that reads many lines at once looks up an
    /// address for each page.
    pub fn pages(&self) -> usize {
        let mut pages: Vec<usize> =
            self.lines.iter().map(|line| line / Self::LINES_OF_PAGE).collect();
        pages.sort_unstable();
        pages.dedup();
        pages.len()
    }

    /// How many of them were touched without a prefetch before.
    pub fn unasked(&self) -> usize {
        self.unasked
    }
}

impl Trace for LineCounter {
    fn touch(&mut self, address: usize, len: usize) {
        if len > 0 {
            let last = (address + len - 1) / Self::LINE_BYTES;
            for line in address / Self::LINE_BYTES..=last {
                if !self.lines.contains(&line) {
                    self.lines.push(line);
                    self.unasked += usize::from(!self.asked.contains(&line));
                }
            }
        }
    }

    fn ask(&mut self, address: usize) {
        self.asked.push(address / Self::LINE_BYTES);
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
        assert_eq!(counter.pages(), 1);
        counter.touch(4095, 2);
        counter.touch(8192, 1);
        assert_eq!(counter.pages(), 3, "lines of three pages");
        assert_eq!(counter.take(), 5);
        assert_eq!(counter.take(), 0);
    }
}
