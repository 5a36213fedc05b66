//! Builds a SuRF in one pass over sorted keys.
//! ```text
//! last key    s i g m o d        shares 3 bytes with the previous key, 4 with the next one
//! stored      s i g m o          one byte more than it shares with either neighbour
//! new edges         m o          those that the previous key did not create
//! ```
//! A key is placed once the next one is known.
//!
//! Invariant: each key has a leaf of its own, at the shortest prefix that no other key has. A key
//! that is a prefix of the next one has a mark at the node where it ends.

use alloc::vec::Vec;

use crate::base::filter::{OutOfOrder, TableFilterBuilder};
use crate::base::hash::{HashUse, hash_key};
use crate::base::real::ceil;
use crate::range::surf::encode::{Shape, encode};
use crate::range::surf::levels::{Edge, Level};
use crate::range::surf::suffix::{SUFFIX_BITS_MAX, SuffixBits, SurfKind, SurfSuffix};

/// Options of a SuRF besides its kind and size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SurfOptions {
    /// The lengths of its suffixes.
    pub suffix: SurfSuffix,
    /// The upper levels are LOUDS-Dense as long as they are this many times smaller than the
    /// LOUDS-Sparse levels below. More: fewer dense levels, smaller, slower. `u32::MAX`: almost
    /// none.
    pub size_ratio: u32,
}

impl Default for SurfOptions {
    fn default() -> Self {
        SurfOptions { suffix: SurfSuffix::Fitted, size_ratio: 64 }
    }
}

/// The least bits per key that a trie takes, which are not available for suffixes.
const TRIE_BITS_MIN: f64 = 3.0;
/// Edges are counted in 32 bits. A trie with more of them is dropped: the filter says "maybe" to
/// all.
const EDGES_MAX: u64 = u32::MAX as u64 - 1;

/// Builds a [`Surf`](crate::Surf).
pub struct SurfBuilder {
    shape: Shape,
    levels: Vec<Level>,
    edges: u64,
    edges_max: u64,
    /// The key to be placed when the next one comes, and its common prefix with the previous one in
    /// bytes.
    last: Vec<u8>,
    shared: usize,
    leaves: Leaves,
}

/// The positions of a trie's leaves, and what is stored with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaves {
    /// At the shortest distinguishing prefixes, with suffixes.
    Suffixes,
    /// In a map: at the shortest distinguishing prefixes, or at the ends of keys, with a word
    /// instead of a suffix. `last` is the word of the last key.
    Words { whole: bool, last: u64 },
}

impl SurfBuilder {
    /// An empty builder of a SuRF of about `bits_per_key` bits per key, if its suffixes are fitted.
    ///
    /// # Panics
    /// `bits_per_key` is not a number.
    pub fn new(kind: SurfKind, bits_per_key: f64, options: &SurfOptions) -> Self {
        assert!(!bits_per_key.is_nan(), "bits per key is not a number");
        let (kept, fitted) = match options.suffix {
            SurfSuffix::Bits { hash, real } => (SuffixBits::explicit(kind, hash, real), None),
            SurfSuffix::Fitted => {
                let most = ceil(bits_per_key - TRIE_BITS_MIN).max(0.0);
                let most = most.min(f64::from(SUFFIX_BITS_MAX)) as u32;
                (SuffixBits::of_kind(kind, most), Some(bits_per_key))
            }
        };
        SurfBuilder {
            shape: Shape { kind, keys: 0, kept, fitted, size_ratio: options.size_ratio },
            levels: Vec::new(),
            edges: 0,
            edges_max: EDGES_MAX,
            last: Vec::new(),
            shared: 0,
            leaves: Leaves::Suffixes,
        }
    }

    /// A builder of a map's trie. `whole`: leaves are at the ends of keys.
    pub(super) fn of_map(whole: bool, size_ratio: u32) -> Self {
        let suffix = SurfSuffix::Bits { hash: u64::BITS, real: 0 };
        let mut builder = Self::new(SurfKind::Hash, 0.0, &SurfOptions { suffix, size_ratio });
        builder.leaves = Leaves::Words { whole, last: 0 };
        builder
    }

    /// Same as `add`, with the value of the key. Requires: a map's trie.
    pub(super) fn add_word(&mut self, key: &[u8], word: u64) -> Result<(), OutOfOrder> {
        if self.shape.keys > 0 && self.last == key {
            return Err(OutOfOrder { last: self.last.clone(), key: key.to_vec() });
        }
        self.add(key)?;
        let Leaves::Words { last, .. } = &mut self.leaves else {
            unreachable!("a filter has no words");
        };
        *last = word;
        Ok(())
    }

    /// The word of the last key. None: this is no map.
    pub(super) fn last_word(&self) -> Option<u64> {
        match self.leaves {
            Leaves::Suffixes => None,
            Leaves::Words { last, .. } => Some(last),
        }
    }

    /// The current heap memory of the trie and of its suffixes, in bytes. [`SurfBuilder::finish`]
    /// drops suffix bits that exceed the size.
    pub fn heap_bytes(&self) -> (usize, usize) {
        let levels = self.levels.capacity() * size_of::<Level>() + self.last.capacity();
        self.levels
            .iter()
            .map(Level::heap_bytes)
            .fold((levels, 0), |sum, level| (sum.0 + level.0, sum.1 + level.1))
    }

    fn edge(&mut self, depth: usize, edge: Edge) {
        if depth == self.levels.len() {
            self.levels.push(Level::default());
        }
        self.levels[depth].push(edge);
    }

    /// Places the last key, given its common prefix with the next key in bytes.
    fn place_last(&mut self, shared_next: usize) {
        let leaf = match self.leaves {
            Leaves::Words { whole: true, .. } => self.last.len().saturating_sub(1).max(shared_next),
            _ => self.shared.max(shared_next),
        };
        self.edges += (leaf - self.shared) as u64 + 1;
        if self.edges > self.edges_max {
            self.levels = Vec::new();
            return;
        }
        let first_new = if self.shape.keys == 1 { 0 } else { self.shared + 1 };
        for depth in self.shared..leaf {
            self.edge(depth, Edge::new(self.last[depth], true, depth >= first_new));
        }
        let Some(&label) = self.last.get(leaf) else {
            self.edge(leaf, Edge::mark());
            self.push_suffix(leaf, self.last_word().unwrap_or(0));
            return;
        };
        self.edge(leaf, Edge::new(label, false, leaf >= first_new));
        let kept = self.shape.kept;
        if let Some(word) = self.last_word() {
            self.push_suffix(leaf, word);
        } else if kept.total() > 0 {
            let hash = if kept.hash > 0 { hash_key(&self.last, HashUse::Table) } else { 0 };
            self.push_suffix(leaf, kept.of(&self.last[leaf + 1..], hash));
        }
    }

    /// Returns the levels of the trie. There are none for the empty key alone, or if there are too
    /// many edges to count.
    pub(super) fn into_levels(mut self) -> (Shape, Vec<Level>) {
        let alone = self.shape.keys == 1 && self.last.is_empty();
        if self.shape.keys > 0 && !alone {
            self.place_last(0);
        }
        (self.shape, self.levels)
    }

    fn push_suffix(&mut self, depth: usize, suffix: u64) {
        let words = self.shape.kept.total().div_ceil(u32::BITS);
        for word in 0..words {
            self.levels[depth].suffixes.push((suffix >> (word * u32::BITS)) as u32);
        }
    }
}

impl TableFilterBuilder for SurfBuilder {
    fn add(&mut self, key: &[u8]) -> Result<(), OutOfOrder> {
        if self.shape.keys == 0 {
            self.shape.keys = 1;
            self.last.extend_from_slice(key);
            return Ok(());
        }
        let shared = shared_bytes(&self.last, key);
        match (self.last.get(shared), key.get(shared)) {
            (None, None) => return Ok(()),
            (Some(last), Some(next)) if last < next => {}
            (None, Some(_)) => {}
            _ => return Err(OutOfOrder { last: self.last.clone(), key: key.to_vec() }),
        }
        self.place_last(shared);
        self.shape.keys += 1;
        self.shared = shared;
        self.last.truncate(shared);
        self.last.extend_from_slice(&key[shared..]);
        Ok(())
    }

    fn finish(self) -> Vec<u8> {
        let (shape, levels) = self.into_levels();
        encode(&shape, levels)
    }
}

/// The length of the common prefix, in bytes.
#[inline(always)]
fn shared_bytes(a: &[u8], b: &[u8]) -> usize {
    let (words_a, words_b) = (a.as_chunks::<8>().0, b.as_chunks::<8>().0);
    let words = words_a.iter().zip(words_b).take_while(|(a, b)| a == b).count();
    let from = words * 8;
    from + a[from..].iter().zip(&b[from..]).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::filter::TableFilter;
    use crate::base::query::KeyRange;
    use crate::range::surf::Surf;

    fn builder(kind: SurfKind, bits_per_key: f64) -> SurfBuilder {
        SurfBuilder::new(kind, bits_per_key, &SurfOptions::default())
    }

    #[test]
    fn keys_out_of_order_are_refused_and_leave_no_trace() {
        let mut built = builder(SurfKind::Real, 20.0);
        let mut plain = builder(SurfKind::Real, 20.0);
        let keys: [&[u8]; 6] = [b"", b"a", b"ab", b"abc", b"b", b"b\xff"];
        for (place, key) in keys.iter().enumerate() {
            built.add(key).expect("in order");
            plain.add(key).expect("in order");
            for earlier in &keys[..place] {
                let refused = built.add(earlier).expect_err("out of order");
                assert_eq!((&refused.last[..], &refused.key[..]), (*key, *earlier));
            }
            built.add(key).expect("a key again");
        }
        assert_eq!(built.finish(), plain.finish());
    }

    #[test]
    fn a_trie_too_large_to_be_counted_says_maybe_to_everything() {
        let mut built = builder(SurfKind::Hash, 20.0);
        built.edges_max = 100;
        (0..200u64).for_each(|key| built.add(&key.to_be_bytes()).expect("in order"));
        let surf = Surf::read(built.finish()).expect("whole");
        assert!(surf.may_contain(b"nothing like a key"));
        assert!(surf.may_overlap(&KeyRange::new(b"x", Some(b"y")).expect("in order")));
        assert_eq!((surf.lower_bound(b"x"), surf.count(&KeyRange::all())), (None, None));
    }

    #[test]
    fn building_takes_at_most_three_times_the_result_and_the_suffixes_to_be_cut() {
        let spread = |n: u64| n * 3_000_000_019 / 7 * 13;
        for kind in SurfKind::ALL {
            let mut built = builder(kind, 16.0);
            (0..300_000).for_each(|n| built.add(&spread(n).to_be_bytes()).expect("in order"));
            let (trie, suffixes) = built.heap_bytes();
            let image = built.finish().len();
            // At the end of `finish` the image and the last levels are there: count as if all of
            // them were.
            let peak = trie + image;
            assert!(peak <= 3 * image, "{}: {trie} beside {image}", kind.name());
            assert!(suffixes <= 300_000 * 4 + 100_000, "{}: {suffixes}", kind.name());
        }
    }

    #[test]
    fn shared_bytes_are_counted_to_the_byte() {
        let text = b"a sieve that turns, one drum";
        for (len, at) in (0..text.len()).flat_map(|len| (0..len).map(move |at| (len, at))) {
            let mut other = text[..len].to_vec();
            assert_eq!(shared_bytes(text, &other), len);
            other[at] ^= 1;
            assert_eq!(shared_bytes(text, &other), at);
        }
    }
}
