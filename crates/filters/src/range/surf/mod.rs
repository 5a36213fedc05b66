//! SuRF, the succinct range filter: a trie of the keys' shortest distinguishing prefixes, in ten
//! bits an edge.
//! ```text
//! keys      fa.. far.. fas.. s.. toy.. try..            what of them no other key has as a prefix
//! dense     levels above: bitmaps      (dense.rs)       few nodes, many visits
//! sparse    levels below: labels, bits (sparse.rs)      most nodes, few visits
//! suffixes  some bits of each key, or of its hash, behind its prefix (suffix.rs)
//! ```
//! `builder.rs` and `encode.rs` make it, `layout.rs` says where everything is, `trie.rs` goes from
//! node to node, `lookup.rs`, `range.rs`, `cursor.rs`, `bounds.rs` and `count.rs` answer.
//! Invariant: a key's path leads to its leaf. A lookup of a present key gets there, and a lookup of
//! a range finds the leaf of any key in it.

mod bounds;
mod builder;
mod count;
mod cursor;
mod dense;
mod encode;
#[cfg(test)]
mod figures;
#[cfg(test)]
mod hostile;
mod kind;
mod layout;
mod levels;
mod lookup;
mod range;
mod sparse;
mod suffix;
mod trie;

use crate::base::filter::{HashedKey, LowerBound, TableFilter, Trace, Untraced, UpperBound};
use crate::base::kind::FilterKind;
use crate::base::query::KeyRange;
use crate::base::rank::CountBounds;
use crate::base::wire::Corrupt;
use crate::bits::simd::{Work, fastest};

pub use builder::{SurfBuilder, SurfOptions};
pub use cursor::SurfCursor;
pub use kind::{SURF_BASE, SURF_HASH, SURF_MIXED, SURF_REAL};
use layout::Layout;
pub use suffix::{SurfKind, SurfSuffix};
pub use trie::SurfEffort;
use trie::{FULL, Trie};

/// A SuRF over checked bytes.
#[derive(Clone, Debug)]
pub struct Surf<B> {
    bytes: B,
    layout: Layout,
}

impl<B: AsRef<[u8]>> Surf<B> {
    /// Checks the structure of bytes that [`SurfBuilder`] made. What lies in the sections is not
    /// checked: the owner of the bytes keeps a checksum.
    pub fn read(bytes: B) -> Result<Self, Corrupt> {
        let layout = Layout::decode(bytes.as_ref())?;
        Ok(Surf { bytes, layout })
    }

    #[inline(always)]
    fn trie<T: Trace, const EFFORT: u8>(&self, trace: T) -> Trie<'_, T, EFFORT> {
        Trie::new(self.bytes.as_ref(), &self.layout, trace)
    }

    /// How many keys were added.
    pub fn keys(&self) -> u64 {
        self.layout.counts.keys
    }

    /// How many edges its trie has, the marks of keys that end at a node among them.
    pub fn edges(&self) -> u64 {
        let counts = &self.layout.counts;
        // Each key has a leaf; all nodes but the root have an edge that leads to them.
        let nodes = u64::from(counts.dense_nodes) + u64::from(counts.sparse_nodes);
        if counts.height == 0 { 0 } else { counts.keys + nodes - 1 }
    }

    /// How many levels it has, and how many of these are LOUDS-Dense.
    pub fn levels(&self) -> (u32, u32) {
        (self.layout.counts.height, self.layout.counts.dense_levels)
    }

    /// The bits of a key's hash, and of the key itself, that are kept behind its prefix.
    pub fn suffix_bits(&self) -> (u32, u32) {
        (self.layout.suffix.hash, self.layout.suffix.real)
    }

    /// Whether there are keys, but nothing is known of them: there were too many to count their
    /// edges.
    fn is_open(&self) -> bool {
        self.layout.counts.height == 0 && self.layout.counts.keys > 1
    }

    /// As `may_contain`, with less done to be fast: the same answer.
    pub fn may_contain_with(&self, key: &[u8], effort: SurfEffort) -> bool {
        let key = &HashedKey::new(key);
        match effort {
            SurfEffort::Plain => fastest(Lookup::<_, 0> { trie: self.trie(Untraced), key }),
            SurfEffort::Rank => fastest(Lookup::<_, 1> { trie: self.trie(Untraced), key }),
            SurfEffort::Select => fastest(Lookup::<_, 2> { trie: self.trie(Untraced), key }),
            SurfEffort::Simd => fastest(Lookup::<_, 3> { trie: self.trie(Untraced), key }),
            SurfEffort::Prefetch => fastest(Lookup::<_, FULL> { trie: self.trie(Untraced), key }),
        }
    }

    /// A cursor, not yet at a key.
    pub fn cursor(&self) -> SurfCursor<'_> {
        SurfCursor::new(self.trie(Untraced))
    }
}

struct Lookup<'a, T, const EFFORT: u8> {
    trie: Trie<'a, T, EFFORT>,
    key: &'a HashedKey<'a>,
}

impl<T: Trace, const EFFORT: u8> Work for Lookup<'_, T, EFFORT> {
    type Output = bool;

    #[inline(always)]
    fn run(mut self) -> bool {
        self.trie.may_contain(self.key)
    }
}

struct Overlap<'a, T> {
    trie: Trie<'a, T, FULL>,
    range: &'a KeyRange<'a>,
}

impl<T: Trace> Work for Overlap<'_, T> {
    type Output = bool;

    #[inline(always)]
    fn run(mut self) -> bool {
        self.trie.may_overlap(self.range.lower(), self.range.upper())
    }
}

struct Count<'a> {
    trie: Trie<'a, Untraced, FULL>,
    range: &'a KeyRange<'a>,
}

impl Work for Count<'_> {
    type Output = CountBounds;

    #[inline(always)]
    fn run(self) -> CountBounds {
        self.trie.count(self.range.lower(), self.range.upper())
    }
}

impl<B: AsRef<[u8]>> TableFilter for Surf<B> {
    fn kind(&self) -> &'static dyn FilterKind {
        self.layout.kind.filter_kind()
    }

    fn size_bytes(&self) -> usize {
        self.bytes.as_ref().len()
    }

    #[inline]
    fn may_contain_traced<T: Trace>(&self, key: &HashedKey<'_>, trace: &mut T) -> bool {
        fastest(Lookup::<_, FULL> { trie: self.trie(trace), key })
    }

    #[inline]
    fn may_overlap_traced<T: Trace>(&self, range: &KeyRange<'_>, trace: &mut T) -> bool {
        if range.upper() == Some(range.lower()) {
            return self.may_contain_traced(&HashedKey::new(range.lower()), trace);
        }
        fastest(Overlap { trie: self.trie(trace), range })
    }

    fn lower_bound(&self, key: &[u8]) -> Option<LowerBound> {
        if self.is_open() {
            return None;
        }
        let mut cursor = self.cursor();
        let unsure = cursor.seek(key);
        let bound = cursor.key().map(|found| LowerBound::From {
            // Of bytes that were damaged since they were checked, the key found may be anywhere.
            key: if unsure { key.to_vec() } else { found.max(key.to_vec()) },
            unsure,
        });
        Some(bound.unwrap_or(LowerBound::End))
    }

    fn upper_bound(&self, key: &[u8]) -> Option<UpperBound> {
        (!self.is_open()).then(|| self.cursor().upper_bound(key))
    }

    fn count(&self, range: &KeyRange<'_>) -> Option<CountBounds> {
        (!self.is_open()).then(|| fastest(Count { trie: self.trie(Untraced), range }))
    }
}
