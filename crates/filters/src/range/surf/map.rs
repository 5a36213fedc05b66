//! FST, the fast succinct trie as an immutable ordered map from keys to words. (SuRF, sections 2
//! and 4.1.)
//! ```text
//! keys    fas  fast  top  toy                    values 1 2 3 4
//! whole   f ─ a ─ s ─ $: 1                       the leaf is where the key ends
//!                     t: 2
//!         t ─ o ─ p: 3
//!                 y: 4
//! prefixes the same trie without bytes that do not tell keys apart
//! ```
//! Its bytes are those of a SuRF, with a key's word instead of suffix bits. Invariant: with whole
//! keys, a key that is found was added. With prefixes, only that key of the map can be the query
//! key.

use core::fmt;

use crate::base::filter::{OutOfOrder, TableFilter, TableFilterBuilder, Untraced};
use crate::bits::AlignedBytes;
use crate::bits::simd::fastest;
use crate::range::surf::lookup::End;
use crate::range::surf::trie::FULL;
use crate::range::surf::{Surf, SurfBuilder, SurfCursor, SurfEffort, SurfOptions};

/// How much of each key an [`FstMap`] stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FstKeys {
    /// The whole key.
    Whole,
    /// The shortest prefix that no other key has: fewer levels, less memory. The caller must
    /// compare the key with what its value refers to.
    Prefixes,
}

/// An immutable map from sorted keys to words, in a succinct trie.
///
/// ```
/// use trommel_filters::{FstKeys, FstMapBuilder};
///
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let mut builder = FstMapBuilder::new(FstKeys::Whole);
/// builder.add(b"bern", 1191)?;
/// builder.add(b"zug", 1242)?;
/// let map = builder.finish().expect("few keys");
/// assert_eq!((map.get(b"zug"), map.get(b"zurich")), (Some(1242), None));
/// let mut cursor = map.cursor();
/// cursor.seek(b"c");
/// assert_eq!((cursor.key(), cursor.value()), (Some(&b"zug"[..]), Some(1242)));
/// # Ok(())
/// # }
/// ```
pub struct FstMap {
    trie: Surf<AlignedBytes>,
    keys: FstKeys,
    /// The value of the empty key if it is the only key; then there is no trie.
    alone: Option<u64>,
}

impl FstMap {
    /// The number of keys.
    pub fn len(&self) -> u64 {
        self.trie.keys()
    }

    /// Whether the map is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The size of the map in bytes, including eight per value.
    pub fn size_bytes(&self) -> usize {
        self.trie.size_bytes()
    }

    /// The number of levels of the trie, and how many of these are LOUDS-Dense.
    pub fn levels(&self) -> (u32, u32) {
        self.trie.levels()
    }

    /// Returns the value of a key. With prefixes, it may be that of another key with the same
    /// prefix.
    #[inline]
    pub fn get(&self, key: &[u8]) -> Option<u64> {
        self.look_up::<FULL>(key)
    }

    /// As `get`, with less done to be fast: the same answer.
    pub fn get_with(&self, key: &[u8], effort: SurfEffort) -> Option<u64> {
        match effort {
            SurfEffort::Plain => self.look_up::<0>(key),
            SurfEffort::Rank => self.look_up::<1>(key),
            SurfEffort::Select => self.look_up::<2>(key),
            SurfEffort::Simd => self.look_up::<3>(key),
            SurfEffort::Prefetch => self.look_up::<FULL>(key),
        }
    }

    #[inline]
    fn look_up<const EFFORT: u8>(&self, key: &[u8]) -> Option<u64> {
        if self.levels().0 == 0 {
            return self.alone.filter(|_| key.is_empty());
        }
        let whole = self.keys == FstKeys::Whole;
        let mut trie = self.trie.trie::<_, EFFORT>(Untraced);
        fastest(
            #[inline(always)]
            move || {
                let leaf = match trie.walk(key) {
                    End::Mark { is_dense, slot } => trie.leaf_at(is_dense, slot),
                    End::Leaf { is_dense, slot, used } if !whole || used == key.len() => {
                        trie.leaf_at(is_dense, slot)
                    }
                    End::Leaf { .. } | End::Nowhere => return None,
                };
                Some(trie.suffix_of(leaf))
            },
        )
    }

    /// Returns a cursor that is not at a key yet.
    pub fn cursor(&self) -> FstCursor<'_> {
        FstCursor { cursor: self.trie.cursor(), keys: self.keys, alone: self.alone }
    }
}

impl fmt::Debug for FstMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("FstMap");
        fields.field("keys", &self.len()).field("bytes", &self.size_bytes()).finish()
    }
}

/// A position among the keys of an [`FstMap`].
pub struct FstCursor<'a> {
    cursor: SurfCursor<'a>,
    keys: FstKeys,
    alone: Option<u64>,
}

impl FstCursor<'_> {
    /// Moves to the first key at or after `key`. With prefixes, it may be the key just before.
    pub fn seek(&mut self, key: &[u8]) {
        let goes_on = self.cursor.seek(key);
        if goes_on && self.keys == FstKeys::Whole {
            self.cursor.next();
        }
    }

    /// Moves to the first key.
    pub fn seek_first(&mut self) {
        self.cursor.seek_first();
    }

    /// Moves to the next key; from the start to the first key.
    pub fn next(&mut self) {
        self.cursor.next();
    }

    /// Moves to the previous key; from the end to the last key.
    pub fn prev(&mut self) {
        self.cursor.prev();
    }

    /// Returns the key, or its stored prefix. None: the cursor is at no key.
    pub fn key(&self) -> Option<&[u8]> {
        self.cursor.prefix()
    }

    /// Returns the key's value. None: the cursor is at no key.
    pub fn value(&self) -> Option<u64> {
        self.cursor.stored_suffix().or_else(|| self.alone.filter(|_| self.key().is_some()))
    }
}

/// Builds an [`FstMap`] in one pass over sorted keys.
pub struct FstMapBuilder {
    trie: SurfBuilder,
    keys: FstKeys,
}

impl FstMapBuilder {
    /// An empty builder.
    pub fn new(keys: FstKeys) -> Self {
        Self::with_size_ratio(keys, SurfOptions::default().size_ratio)
    }

    /// As `new`, with another [`SurfOptions::size_ratio`].
    pub fn with_size_ratio(keys: FstKeys, size_ratio: u32) -> Self {
        FstMapBuilder { trie: SurfBuilder::of_map(keys == FstKeys::Whole, size_ratio), keys }
    }

    /// Adds a key with its value.
    ///
    /// # Errors
    /// `key` is not above the last one; the builder stays as it was.
    pub fn add(&mut self, key: &[u8], value: u64) -> Result<(), OutOfOrder> {
        self.trie.add_word(key, value)
    }

    /// Returns the map. None: its trie has more edges than 32 bits can count.
    pub fn finish(self) -> Option<FstMap> {
        let (keys, last) = (self.keys, self.trie.last_word());
        let image = AlignedBytes::from_slice(&self.trie.finish());
        let trie = Surf::read(image).expect("what was built");
        let alone = last.filter(|_| trie.keys() == 1 && trie.levels().0 == 0);
        (!trie.is_open()).then_some(FstMap { trie, keys, alone })
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;

    use super::*;

    type Twin = BTreeMap<Vec<u8>, u64>;

    fn built(twin: &Twin, keys: FstKeys) -> FstMap {
        let mut builder = FstMapBuilder::new(keys);
        twin.iter().for_each(|(key, value)| builder.add(key, *value).expect("in order"));
        builder.finish().expect("few keys")
    }

    fn numbered(keys: impl IntoIterator<Item = Vec<u8>>) -> Twin {
        let value = |place: usize| (place as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        keys.into_iter().enumerate().map(|(place, key)| (key, value(place))).collect()
    }

    fn random(state: &mut u64) -> u64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (*state ^ (*state >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 7
    }

    /// Sets of keys: numbers, addresses, prefixes of each other, short random ones, few.
    fn sets() -> Vec<(&'static str, Twin)> {
        let mut state = 1;
        let mut drawn = |count: usize, make: &dyn Fn(&mut u64) -> Vec<u8>| {
            numbered((0..count).map(|_| make(&mut state)).collect::<Vec<_>>())
        };
        let words = ["a", "ann", "anna", "bo", "bob", "\u{ff}", "z"];
        let address = |state: &mut u64| {
            let word = |state: &mut u64| words[random(state) as usize % words.len()];
            format!("org.{}@{}{}", word(state), word(state), random(state) % 400).into_bytes()
        };
        let short = |state: &mut u64| {
            let len = random(state) as usize % 5;
            (0..len).map(|_| [0, 1, 0xfe, 0xff][random(state) as usize % 4]).collect()
        };
        vec![
            ("numbers", drawn(3000, &|state| random(state).to_be_bytes().to_vec())),
            ("dense numbers", numbered((0..3000u64).map(|n| n.to_be_bytes().to_vec()))),
            ("addresses", drawn(2000, &address)),
            ("prefixes", numbered((0..300).map(|len| vec![0xff; len]))),
            ("short", drawn(600, &short)),
            ("none", Twin::new()),
            ("the empty one", numbered([vec![]])),
            ("one", numbered([b"trommel".to_vec()])),
        ]
    }

    /// The keys, their neighbours, and their prefixes.
    fn probes(twin: &Twin) -> Vec<Vec<u8>> {
        let around = |key: &Vec<u8>| {
            let mut probes = vec![key.clone(), key[..key.len() / 2].to_vec()];
            probes.extend([0, 0x61, 0xff].map(|byte| [&key[..], &[byte]].concat()));
            probes.extend(
                key.split_last().map(|(last, head)| [head, &[last.wrapping_sub(1), 0xff]].concat()),
            );
            probes
        };
        twin.keys().flat_map(around).chain([vec![], vec![0xff; 400], b"m".to_vec()]).collect()
    }

    #[test]
    fn whole_keys_are_found_as_in_a_tree() {
        for (name, twin) in sets() {
            let map = built(&twin, FstKeys::Whole);
            assert_eq!((map.len(), map.is_empty()), (twin.len() as u64, twin.is_empty()), "{name}");
            for probe in probes(&twin) {
                assert_eq!(map.get(&probe), twin.get(&probe).copied(), "{name}: {probe:?}");
            }
        }
    }

    #[test]
    fn whatever_is_done_to_be_fast_the_answer_is_the_same() {
        for (name, twin) in sets() {
            for size_ratio in [SurfOptions::default().size_ratio, u32::MAX] {
                let mut builder = FstMapBuilder::with_size_ratio(FstKeys::Whole, size_ratio);
                twin.iter().for_each(|(key, value)| builder.add(key, *value).expect("in order"));
                let map = builder.finish().expect("few keys");
                for probe in probes(&twin) {
                    let answers = SurfEffort::ALL.map(|effort| map.get_with(&probe, effort));
                    assert_eq!(answers, [twin.get(&probe).copied(); 5], "{name}: {probe:?}");
                }
            }
        }
    }

    #[test]
    fn a_cursor_goes_as_through_a_tree() {
        for (name, twin) in sets() {
            let map = built(&twin, FstKeys::Whole);
            let mut cursor = map.cursor();
            for probe in probes(&twin) {
                cursor.seek(&probe);
                for (key, value) in twin.range(probe.clone()..).take(3) {
                    let found = (cursor.key(), cursor.value());
                    assert_eq!(found, (Some(&key[..]), Some(*value)), "{name}: {probe:?}");
                    cursor.next();
                }
            }
            cursor.seek_first();
            for (key, value) in &twin {
                assert_eq!(
                    (cursor.key(), cursor.value()),
                    (Some(&key[..]), Some(*value)),
                    "{name}"
                );
                cursor.next();
            }
            assert_eq!((cursor.key(), cursor.value()), (None, None), "{name}");
            for (key, value) in twin.iter().rev() {
                cursor.prev();
                assert_eq!(
                    (cursor.key(), cursor.value()),
                    (Some(&key[..]), Some(*value)),
                    "{name}"
                );
            }
        }
    }

    #[test]
    fn prefixes_find_every_key_and_take_less() {
        for (name, twin) in sets() {
            let (map, whole) = (built(&twin, FstKeys::Prefixes), built(&twin, FstKeys::Whole));
            assert!(map.size_bytes() <= whole.size_bytes(), "{name}");
            let mut cursor = map.cursor();
            for (key, value) in &twin {
                assert_eq!(map.get(key), Some(*value), "{name}: {key:?}");
                cursor.seek(key);
                assert_eq!(cursor.value(), Some(*value), "{name}: {key:?}");
                assert!(cursor.key().is_some_and(|prefix| key.starts_with(prefix)), "{name}");
            }
        }
    }

    #[test]
    fn keys_come_in_order_and_once() {
        let mut builder = FstMapBuilder::new(FstKeys::Whole);
        builder.add(b"b", 1).expect("the first");
        for refused in [&b"a"[..], b"b", b""] {
            assert_eq!(builder.add(refused, 2).expect_err("not behind it").key, refused);
        }
        builder.add(b"c", 3).expect("in order");
        let map = builder.finish().expect("few keys");
        assert_eq!((map.get(b"b"), map.get(b"c"), map.len()), (Some(1), Some(3), 2));
    }
}
