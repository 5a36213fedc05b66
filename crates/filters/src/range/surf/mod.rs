//! SuRF, the succinct range filter: a trie of the keys' shortest distinguishing prefixes, at ten
//! bits per edge.
//! ```text
//! keys      fa.. far.. fas.. s.. toy.. try..   prefixes that no other key has
//! dense     upper levels: bitmaps      (dense.rs)       few nodes, many visits
//! sparse    lower levels: labels, bits (sparse.rs)      most nodes, few visits
//! suffixes  some bits of each key, or of its hash, after its prefix (suffix.rs)
//! ```
//! `builder.rs` and `encode.rs` build it, `layout.rs` locates its sections, `trie.rs` navigates
//! between nodes. `lookup.rs`, `range.rs`, `cursor.rs`, `bounds.rs` and `count.rs` answer queries.
//!
//! Invariant: a key's path leads to its leaf. A lookup of a present key reaches the leaf, and a
//! range query finds the leaf of any key in the range.

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
mod map;
mod range;
mod sparse;
mod suffix;
mod trie;

use crate::base::filter::{HashedKey, LowerBound, TableFilter, Trace, Untraced, UpperBound};
use crate::base::kind::FilterKind;
use crate::base::query::KeyRange;
use crate::base::rank::CountBounds;
use crate::base::wire::Corrupt;
use crate::bits::simd::fastest;

pub use builder::{SurfBuilder, SurfOptions};
pub use cursor::SurfCursor;
pub use kind::{SURF_BASE, SURF_HASH, SURF_MIXED, SURF_REAL};
use layout::Layout;
pub use map::{FstCursor, FstKeys, FstMap, FstMapBuilder};
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
    /// Checks the structure of bytes that [`SurfBuilder`] made. It does not check the sections'
    /// contents: the owner of the bytes keeps a checksum.
    ///
    /// # Errors
    /// The trailer is damaged or belongs to another kind, or the length is wrong.
    pub fn read(bytes: B) -> Result<Self, Corrupt> {
        let layout = Layout::decode(bytes.as_ref())?;
        Ok(Surf { bytes, layout })
    }

    #[inline(always)]
    fn trie<T: Trace, const EFFORT: u8>(&self, trace: T) -> Trie<'_, T, EFFORT> {
        Trie::new(self.bytes.as_ref(), &self.layout, trace)
    }

    /// The number of keys.
    pub fn keys(&self) -> u64 {
        self.layout.counts.keys
    }

    /// The number of edges in the trie, including the marks of keys that end at inner nodes.
    pub fn edges(&self) -> u64 {
        let counts = &self.layout.counts;
        // Each key has a leaf; every node but the root has an edge that leads to it.
        let nodes = u64::from(counts.dense_nodes) + u64::from(counts.sparse_nodes);
        if counts.height == 0 { 0 } else { counts.keys + nodes - 1 }
    }

    /// The number of levels, and how many of these are LOUDS-Dense.
    pub fn levels(&self) -> (u32, u32) {
        (self.layout.counts.height, self.layout.counts.dense_levels)
    }

    /// The number of hash bits and of key bits that are stored after a key's prefix.
    pub fn suffix_bits(&self) -> (u32, u32) {
        (self.layout.suffix.hash, self.layout.suffix.real)
    }

    /// Whether nothing is known of the keys, because there were too many edges to count.
    fn is_open(&self) -> bool {
        self.layout.counts.height == 0 && self.layout.counts.keys > 1
    }

    /// Same as `may_contain`, with fewer optimizations. The answer is the same.
    pub fn may_contain_with(&self, key: &[u8], effort: SurfEffort) -> bool {
        let key = &HashedKey::new(key);
        match effort {
            SurfEffort::Plain => self.look_up::<_, 0>(key, Untraced),
            SurfEffort::Rank => self.look_up::<_, 1>(key, Untraced),
            SurfEffort::Select => self.look_up::<_, 2>(key, Untraced),
            SurfEffort::Simd => self.look_up::<_, 3>(key, Untraced),
            SurfEffort::Prefetch => self.look_up::<_, FULL>(key, Untraced),
        }
    }

    #[inline]
    fn look_up<T: Trace, const EFFORT: u8>(&self, key: &HashedKey<'_>, trace: T) -> bool {
        let mut trie = self.trie::<_, EFFORT>(trace);
        fastest(
            #[inline(always)]
            move || trie.may_contain(key),
        )
    }

    /// Returns a cursor that is not at a key yet.
    pub fn cursor(&self) -> SurfCursor<'_> {
        SurfCursor::new(self.trie(Untraced))
    }
}

impl<B: AsRef<[u8]>> TableFilter for Surf<B> {
    fn kind(&self) -> &'static dyn FilterKind {
        self.layout.kind.filter_kind()
    }

    fn bytes(&self) -> &[u8] {
        self.bytes.as_ref()
    }

    #[inline]
    fn may_contain_traced<T: Trace>(&self, key: &HashedKey<'_>, trace: &mut T) -> bool {
        self.look_up::<_, FULL>(key, trace)
    }

    #[inline]
    fn may_overlap_traced<T: Trace>(&self, range: &KeyRange<'_>, trace: &mut T) -> bool {
        if range.upper() == Some(range.lower()) {
            return self.may_contain_traced(&HashedKey::new(range.lower()), trace);
        }
        let mut trie = self.trie(trace);
        fastest(
            #[inline(always)]
            move || trie.may_overlap(range.lower(), range.upper()),
        )
    }

    fn lower_bound(&self, key: &[u8]) -> Option<LowerBound> {
        if self.is_open() {
            return None;
        }
        let mut cursor = self.cursor();
        let unsure = cursor.seek(key);
        let bound = cursor.key().map(|found| LowerBound::From {
            // If the bytes were damaged after the check, the key found may be anywhere.
            key: if unsure { key.to_vec() } else { found.max(key.to_vec()) },
            unsure,
        });
        Some(bound.unwrap_or(LowerBound::End))
    }

    fn upper_bound(&self, key: &[u8]) -> Option<UpperBound> {
        (!self.is_open()).then(|| self.cursor().upper_bound(key))
    }

    fn count(&self, range: &KeyRange<'_>) -> Option<CountBounds> {
        let (trie, lower, upper) = (self.trie(Untraced), range.lower(), range.upper());
        (!self.is_open()).then(|| {
            fastest(
                #[inline(always)]
                move || trie.count(lower, upper),
            )
        })
    }
}
