//! The contract of a filter, whatever builds it.
//! ```text
//! TableFilter   one table, a key    -> may it hold the key?
//!               one table, a range  -> may it hold a key of the range? what comes next? how many?
//! GlobalFilter  all runs, a query   -> codes of the entries that match
//! ```
//! Invariant: every answer errs one way only. "No" is proof of absence, "maybe" proves nothing.

use crate::base::hash::{HashUse, hash_key};
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
    fn kind(&self) -> FilterKind;

    /// The size of the filter's bytes, everything included.
    fn size_bytes(&self) -> usize;

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
pub(crate) fn payload_bits(keys: usize, bits_per_key: f64, trailer_bytes: usize) -> f64 {
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
pub(crate) fn ask_for<T, R: Trace>(items: &[T], at: usize, trace: &mut R) {
    prefetch(items, at);
    if let Some(item) = items.get(at) {
        trace.ask(std::ptr::from_ref(item) as usize);
    }
}

/// Asks for some cache lines from that of an item on, which need not be there, without waiting for
/// them.
#[inline(always)]
pub(crate) fn ask_for_lines<T, R: Trace>(items: &[T], at: usize, lines: usize, trace: &mut R) {
    const LINE_BYTES: usize = 64;
    prefetch_lines(items, at, lines);
    let address = items.as_ptr().wrapping_add(at) as usize;
    (0..lines).for_each(|line| trace.ask(address.wrapping_add(line * LINE_BYTES)));
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

/// The filters of one table, by tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FilterKind {
    /// A Bloom filter whose bits for a key lie in one cache line.
    BlockedBloom,
    /// Positions of keys on a line through their neighbours.
    Snarf,
    /// Prefixes that tell keys from their neighbours.
    Cell,
    /// Numbers as fine as the gaps beside a key.
    Gap,
    /// A Bloom filter.
    Bloom,
    /// A homogeneous ribbon filter.
    Ribbon,
    /// A binary fuse filter of three cells a key.
    BinaryFuse,
    /// An xor filter of three cells a key.
    Xor,
    /// Bloom filters of the last levels of a binary tree over the keys.
    Rosetta,
    /// The same levels, eight of them in one cache line.
    Rencoder,
    /// A Bloom filter of whole keys and of their prefixes.
    PrefixBloom,
    /// A binary tree with empty leaves, trained with questions.
    Arf,
    /// ElasticBF: several small Bloom filters, of which the store keeps as many in memory as are
    /// worth it.
    Elastic,
    /// A succinct trie of the keys' shortest distinguishing prefixes.
    SurfBase,
    /// The same, with some bits of each key's hash.
    SurfHash,
    /// The same, with some more bits of each key.
    SurfReal,
    /// The same, with some of both.
    SurfMixed,
}

impl FilterKind {
    /// Every kind there is.
    pub const ALL: [FilterKind; 17] = [
        FilterKind::BlockedBloom,
        FilterKind::Bloom,
        FilterKind::Ribbon,
        FilterKind::BinaryFuse,
        FilterKind::Xor,
        FilterKind::SurfBase,
        FilterKind::SurfHash,
        FilterKind::SurfReal,
        FilterKind::SurfMixed,
        FilterKind::Snarf,
        FilterKind::Cell,
        FilterKind::Gap,
        FilterKind::Rosetta,
        FilterKind::Rencoder,
        FilterKind::PrefixBloom,
        FilterKind::Arf,
        FilterKind::Elastic,
    ];

    /// The number that names the kind in files; never reused.
    pub const fn tag(self) -> u16 {
        match self {
            FilterKind::BlockedBloom => 1,
            FilterKind::Snarf => 10,
            FilterKind::Cell => 11,
            FilterKind::Gap => 12,
            FilterKind::Bloom => 2,
            FilterKind::Ribbon => 3,
            FilterKind::BinaryFuse => 4,
            FilterKind::Xor => 5,
            FilterKind::Rosetta => 13,
            FilterKind::Rencoder => 14,
            FilterKind::PrefixBloom => 15,
            FilterKind::Arf => 16,
            FilterKind::Elastic => 17,
            FilterKind::SurfBase => 6,
            FilterKind::SurfHash => 7,
            FilterKind::SurfReal => 8,
            FilterKind::SurfMixed => 9,
        }
    }

    /// The name that people write.
    pub const fn name(self) -> &'static str {
        match self {
            FilterKind::BlockedBloom => "blocked-bloom",
            FilterKind::Snarf => "snarf",
            FilterKind::Cell => "cell",
            FilterKind::Gap => "gap",
            FilterKind::Bloom => "bloom",
            FilterKind::Ribbon => "ribbon",
            FilterKind::BinaryFuse => "binary-fuse",
            FilterKind::Xor => "xor",
            FilterKind::Rosetta => "rosetta",
            FilterKind::Rencoder => "rencoder",
            FilterKind::PrefixBloom => "prefix-bloom",
            FilterKind::Arf => "arf",
            FilterKind::Elastic => "elastic",
            FilterKind::SurfBase => "surf-base",
            FilterKind::SurfHash => "surf-hash",
            FilterKind::SurfReal => "surf-real",
            FilterKind::SurfMixed => "surf-mixed",
        }
    }

    /// Whether it can answer for ranges; else it says "maybe" to every range of more than one key.
    pub const fn knows_ranges(self) -> bool {
        match self {
            FilterKind::BlockedBloom | FilterKind::Elastic => false,
            FilterKind::Snarf | FilterKind::Cell | FilterKind::Gap => true,
            FilterKind::Bloom => false,
            FilterKind::Ribbon => false,
            FilterKind::BinaryFuse => false,
            FilterKind::Xor => false,
            FilterKind::Rosetta => true,
            FilterKind::Rencoder => true,
            FilterKind::PrefixBloom => true,
            FilterKind::Arf => true,
            FilterKind::SurfBase
            | FilterKind::SurfHash
            | FilterKind::SurfReal
            | FilterKind::SurfMixed => true,
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
        assert_eq!(counter.pages(), 1);
        counter.touch(4095, 2);
        counter.touch(8192, 1);
        assert_eq!(counter.pages(), 3, "lines of three pages");
        assert_eq!(counter.take(), 5);
        assert_eq!(counter.take(), 0);
    }

    #[test]
    fn tags_and_names_are_nobody_elses() {
        for (place, kind) in FilterKind::ALL.into_iter().enumerate() {
            assert_eq!(FilterKind::from_tag(kind.tag()), Some(kind));
            let others = FilterKind::ALL[..place].iter();
            assert!(others.clone().all(|other| other.name() != kind.name()), "{}", kind.name());
        }
        assert_eq!(FilterKind::from_tag(0), None);
    }
}
