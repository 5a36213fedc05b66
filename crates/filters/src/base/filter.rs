//! The contract of every filter.
//! ```text
//! TableFilter   one table, a key    -> may it hold the key?
//!               one table, a range  -> may it hold a key of the range? next key? number of keys?
//! GlobalFilter  all runs, a query   -> codes of the entries that match
//! ```
//! Invariant: errors are one-sided. "No" proves absence; "maybe" proves nothing.

use alloc::vec::Vec;

use crate::base::hash::{HashUse, hash_key};
use crate::base::kind::FilterKind;
use crate::base::query::{KeyRange, Query};
use crate::base::rank::CountBounds;
use crate::base::shape::Codes;
use crate::bits::simd::{prefetch, prefetch_lines};

/// A key to look up, with its hash. The hash is computed once for all filters.
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

    /// The key's hash for [`HashUse::Table`].
    #[inline]
    pub fn hash(&self) -> u64 {
        self.hash
    }
}

/// What a filter knows of a table's first key at or after the query key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LowerBound {
    /// The table has no key at or after the query key.
    End,
    /// No key of the table lies at or after the query key and below this one.
    From {
        /// At least the query key.
        key: Vec<u8>,
        /// Whether the entry behind this bound may lie on either side of the query key. The bound
        /// is then the query key itself. (SuRF's false-positive flag.)
        unsure: bool,
    },
}

/// What a filter knows of a table's last key at or before the query key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpperBound {
    /// The table has no key at or before the query key.
    Start,
    /// Every key of the table at or before the query key is below this one.
    Before {
        /// At most the successor of the query key: that key followed by a zero byte.
        end: Vec<u8>,
        /// Whether the entry behind this bound may lie on either side of the query key. The bound
        /// is then the successor of the query key.
        unsure: bool,
    },
}

/// The filter of one table, read from checked bytes.
pub trait TableFilter {
    /// The kind of this filter.
    fn kind(&self) -> &'static dyn FilterKind;

    /// The bytes that it was read from, as its builder wrote them.
    fn bytes(&self) -> &[u8];

    /// The size of the filter in bytes, metadata included.
    fn size_bytes(&self) -> usize {
        self.bytes().len()
    }

    /// False: the table has no entry of the key. True: it may have one. Reports to `trace` which
    /// memory it reads.
    fn may_contain_traced<T: Trace>(&self, key: &HashedKey<'_>, trace: &mut T) -> bool;

    /// False: the table has no key in `range`. True: it may have one. The default suits filters
    /// that know no ranges: it looks up the key of a one-key range and says "maybe" to any other.
    fn may_overlap_traced<T: Trace>(&self, range: &KeyRange<'_>, trace: &mut T) -> bool {
        range.upper() != Some(range.lower())
            || self.may_contain_traced(&HashedKey::new(range.lower()), trace)
    }

    /// Returns a lower bound of the table's first key at or after `key`. None: the filter does not
    /// know.
    fn lower_bound(&self, key: &[u8]) -> Option<LowerBound> {
        let _ = key;
        None
    }

    /// Returns an upper bound of the table's last key at or before `key`. None: the filter does not
    /// know.
    fn upper_bound(&self, key: &[u8]) -> Option<UpperBound> {
        let _ = key;
        None
    }

    /// Bounds the number of the table's keys in `range`. None: the filter does not know.
    fn count(&self, range: &KeyRange<'_>) -> Option<CountBounds> {
        let _ = range;
        None
    }

    /// Same as `may_contain_traced`, untraced. Filters without hashing override it and compute no
    /// hash.
    #[inline]
    fn may_contain(&self, key: &[u8]) -> bool {
        self.may_contain_traced(&HashedKey::new(key), &mut Untraced)
    }

    /// Same as `may_contain`, for a key that is hashed already: one hash serves many tables.
    #[inline]
    fn may_contain_hashed(&self, key: &HashedKey<'_>) -> bool {
        self.may_contain_traced(key, &mut Untraced)
    }

    /// Same as `may_overlap_traced`, untraced.
    #[inline]
    fn may_overlap(&self, range: &KeyRange<'_>) -> bool {
        self.may_overlap_traced(range, &mut Untraced)
    }
}

/// Builds the filter of one table.
pub trait TableFilterBuilder {
    /// Adds the next key. Keys come in ascending order. Equal keys in a row count once.
    ///
    /// # Errors
    /// `key` is below the last one; the builder stays as it was.
    fn add(&mut self, key: &[u8]) -> Result<(), OutOfOrder>;

    /// Returns the filter's bytes.
    fn finish(self) -> Vec<u8>;
}

/// The bits that a filter of `keys` keys has besides its trailer. The trailer takes at most an
/// eighth of the budget. So a small filter exceeds its budget rather than become useless.
pub fn payload_bits(keys: usize, bits_per_key: f64, trailer_bytes: usize) -> f64 {
    assert!(!bits_per_key.is_nan(), "bits per key is not a number");
    let bits = keys as f64 * bits_per_key.max(0.0);
    (bits - trailer_bytes as f64 * 8.0).max(bits * 0.875)
}

/// A key is below the one that was added last. The builder stays as it was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("key {} comes after key {}: a filter's keys are added in ascending order", key.escape_ascii(), last.escape_ascii())]
pub struct OutOfOrder {
    /// The key that was added last.
    pub last: Vec<u8>,
    /// The key that was refused.
    pub key: Vec<u8>,
}

/// A filter of all runs of a tree at once.
pub trait GlobalFilter {
    /// Adds the codes of all matching entries. If it adds nothing, no run holds anything for
    /// `query`.
    fn candidates(&self, query: &Query<'_>, codes: &mut Codes);
}

/// Observes which filter memory a probe reads. [`Untraced`] compiles to nothing.
pub trait Trace {
    /// Records a read of `len` bytes at `address`.
    fn touch(&mut self, address: usize, len: usize);

    /// Records a prefetch of the cache line of `address`.
    #[inline(always)]
    fn ask(&mut self, _address: usize) {}

    /// Records a read of all of `bytes`.
    fn touch_bytes(&mut self, bytes: &[u8]) {
        self.touch(bytes.as_ptr() as usize, bytes.len());
    }
}

/// Prefetches the cache line of `items[at]`, if there is such an item.
#[inline(always)]
pub fn prefetch_traced<T, R: Trace>(items: &[T], at: usize, trace: &mut R) {
    prefetch(items, at);
    if let Some(item) = items.get(at) {
        trace.ask(core::ptr::from_ref(item) as usize);
    }
}

/// Prefetches `lines` cache lines, beginning with that of `items[at]`. They need not belong to
/// `items`.
#[inline(always)]
pub fn prefetch_lines_traced<T, R: Trace>(items: &[T], at: usize, lines: usize, trace: &mut R) {
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

/// A trace that ignores everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct Untraced;

impl Trace for Untraced {
    #[inline(always)]
    fn touch(&mut self, _address: usize, _len: usize) {}
}

/// Counts the distinct cache lines that are read.
#[derive(Clone, Debug, Default)]
pub struct LineCounter {
    lines: Vec<usize>,
    prefetched: Vec<usize>,
    not_prefetched: usize,
}

impl LineCounter {
    const LINE_BYTES: usize = 64;
    const LINES_OF_PAGE: usize = 4096 / Self::LINE_BYTES;

    /// Returns the number of distinct lines read since the last `take`, and resets the counter.
    pub fn take(&mut self) -> usize {
        let count = self.lines.len();
        *self = LineCounter::default();
        count
    }

    /// Returns the number of 4-KiB pages that hold these lines. The processor translates an address
    /// for each page.
    pub fn pages(&self) -> usize {
        let mut pages: Vec<usize> =
            self.lines.iter().map(|line| line / Self::LINES_OF_PAGE).collect();
        pages.sort_unstable();
        pages.dedup();
        pages.len()
    }

    /// Returns how many of the lines were read without an earlier prefetch.
    pub fn not_prefetched(&self) -> usize {
        self.not_prefetched
    }
}

impl Trace for LineCounter {
    fn touch(&mut self, address: usize, len: usize) {
        if len > 0 {
            let last = (address + len - 1) / Self::LINE_BYTES;
            for line in address / Self::LINE_BYTES..=last {
                if !self.lines.contains(&line) {
                    self.lines.push(line);
                    self.not_prefetched += usize::from(!self.prefetched.contains(&line));
                }
            }
        }
    }

    fn ask(&mut self, address: usize) {
        self.prefetched.push(address / Self::LINE_BYTES);
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
