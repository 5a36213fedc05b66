//! The ordered maps that `bench map` compares. Each is built at once from sorted keys.
//! ```text
//! fst            the succinct trie, whole keys             fst-prefixes   what tells keys apart
//! art            adaptive radix tree (crate blart)         btree          the standard library's
//! sorted-array   keys side by side, binary search          automaton      minimal (crate fst)
//! ```
//! Invariant: a key's value is its place in key order. Memory is reported without the eight bytes
//! of each value.

use std::collections::BTreeMap;
use std::ops::Bound;

use blart::TreeMap;
use blart::visitor::TreeStatsCollector;
use fst::{IntoStreamer, Streamer};
use trommel_filters::{FstKeys, FstMap, FstMapBuilder};

use crate::error::{LabError, Result};
use crate::keys::key_list::SortedKeys;

const VALUE_BYTES: usize = size_of::<u64>();

/// A key that is looked up.
#[derive(Clone, Copy)]
pub(crate) struct LookupKey<'a> {
    pub(crate) key: &'a [u8],
    /// The same key with a zero byte appended, so that it is no prefix of another one.
    pub(crate) ended: &'a [u8],
}

/// A map from keys to their places in key order.
pub(crate) trait OrderedMap {
    fn get(&self, lookup: LookupKey<'_>) -> Option<u64>;

    /// Returns the sum of the first `count` values at or after a key, which forces the map to read
    /// them.
    fn scan(&self, lookup: LookupKey<'_>, count: usize) -> u64;

    /// Returns the memory of the map in bytes, without values.
    fn key_bytes(&self) -> usize;
}

/// Builds a map.
type Build = fn(&SortedKeys) -> Result<Box<dyn OrderedMap>>;

/// Returns all builders, by name. `is_numbers`: all keys have eight bytes.
pub(crate) fn builders(is_numbers: bool) -> [(&'static str, Build); 6] {
    let (art, btree, array): (Build, Build, Build) = match is_numbers {
        true => (
            |keys| art_of_numbers(keys),
            |keys| btree_of_numbers(keys),
            |keys| Ok(Box::new(Numbers(keys.iter().map(number).collect()))),
        ),
        false => (
            |keys| art_of_strings(keys),
            |keys| btree_of_strings(keys),
            |keys| Ok(Box::new(Strings(keys.clone()))),
        ),
    };
    [
        ("fst", |keys| fst_map(keys, FstKeys::Whole)),
        ("fst-prefixes", |keys| fst_map(keys, FstKeys::Prefixes)),
        ("art", art),
        ("btree", btree),
        ("sorted-array", array),
        ("automaton", automaton),
    ]
}

fn number(key: &[u8]) -> u64 {
    key.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

fn numbered(keys: &SortedKeys) -> impl Iterator<Item = (&[u8], u64)> {
    keys.iter().zip(0..)
}

/// Returns the key with a zero byte appended. If keys have no zero byte, no other key begins with
/// it.
pub(crate) fn ended(key: &[u8]) -> Box<[u8]> {
    [key, &[0]].concat().into()
}

fn fst_map(keys: &SortedKeys, what: FstKeys) -> Result<Box<dyn OrderedMap>> {
    let mut builder = FstMapBuilder::new(what);
    for (key, place) in numbered(keys) {
        builder.add(key, place).map_err(|error| LabError::Plan(error.to_string()))?;
    }
    let map = builder.finish().ok_or_else(|| LabError::Plan("too many keys for a trie".into()))?;
    Ok(Box::new(map))
}

impl OrderedMap for FstMap {
    fn get(&self, lookup: LookupKey<'_>) -> Option<u64> {
        FstMap::get(self, lookup.key)
    }

    fn scan(&self, lookup: LookupKey<'_>, count: usize) -> u64 {
        let mut cursor = self.cursor();
        cursor.seek(lookup.key);
        let mut sum = 0u64;
        for _ in 0..count {
            let Some(value) = cursor.value() else { break };
            sum += value;
            cursor.next();
        }
        sum
    }

    fn key_bytes(&self) -> usize {
        self.size_bytes() - self.len() as usize * VALUE_BYTES
    }
}

/// An adaptive radix tree. Only its inner nodes count as memory. A leaf of the paper is a pointer
/// to the record; a leaf of this crate also holds the whole key.
struct Art<K>(TreeMap<K, u64>);

fn art_of_numbers(keys: &SortedKeys) -> Result<Box<dyn OrderedMap>> {
    let mut tree: TreeMap<[u8; 8], u64> = TreeMap::new();
    for (key, place) in numbered(keys) {
        tree.insert(number(key).to_be_bytes(), place);
    }
    Ok(Box::new(Art(tree)))
}

fn art_of_strings(keys: &SortedKeys) -> Result<Box<dyn OrderedMap>> {
    let mut tree: TreeMap<Box<[u8]>, u64> = TreeMap::new();
    for (key, place) in numbered(keys) {
        tree.try_insert(ended(key), place)
            .map_err(|_| LabError::Plan("a key with a zero byte begins another one".into()))?;
    }
    Ok(Box::new(Art(tree)))
}

impl<K: blart::AsBytes + std::borrow::Borrow<[u8]>> OrderedMap for Art<K> {
    fn get(&self, lookup: LookupKey<'_>) -> Option<u64> {
        self.0.get(lookup.ended).copied()
    }

    fn scan(&self, lookup: LookupKey<'_>, count: usize) -> u64 {
        let from = (Bound::Included(lookup.ended), Bound::Unbounded);
        self.0.range::<[u8], _>(from).take(count).map(|(_, value)| *value).sum()
    }

    fn key_bytes(&self) -> usize {
        TreeStatsCollector::collect(&self.0).map_or(0, |stats| stats.tree.mem_usage)
    }
}

/// Estimates the memory of the standard library's B-tree, without values, after a bulk build. All
/// nodes are full: eleven entries each. One key in twelve is in an inner node, which has twelve
/// pointers, too.
fn btree_bytes(keys: usize, key_size: usize) -> usize {
    const ENTRIES: usize = 11;
    const HEADER_BYTES: usize = 16;
    let leaf = HEADER_BYTES + ENTRIES * (key_size + VALUE_BYTES);
    let mut nodes = keys.div_ceil(ENTRIES + 1);
    let mut bytes = nodes * leaf;
    while nodes > 1 {
        nodes = nodes.div_ceil(ENTRIES + 1);
        bytes += nodes * (leaf + (ENTRIES + 1) * size_of::<usize>());
    }
    bytes.saturating_sub(keys * VALUE_BYTES)
}

struct NumberTree(BTreeMap<u64, u64>);

struct StringTree {
    tree: BTreeMap<Box<[u8]>, u64>,
    heap_bytes: usize,
}

fn btree_of_numbers(keys: &SortedKeys) -> Result<Box<dyn OrderedMap>> {
    Ok(Box::new(NumberTree(numbered(keys).map(|(key, place)| (number(key), place)).collect())))
}

fn btree_of_strings(keys: &SortedKeys) -> Result<Box<dyn OrderedMap>> {
    let tree = numbered(keys).map(|(key, place)| (Box::from(key), place)).collect();
    Ok(Box::new(StringTree { tree, heap_bytes: keys.size_bytes() }))
}

impl OrderedMap for NumberTree {
    fn get(&self, lookup: LookupKey<'_>) -> Option<u64> {
        self.0.get(&number(lookup.key)).copied()
    }

    fn scan(&self, lookup: LookupKey<'_>, count: usize) -> u64 {
        self.0.range(number(lookup.key)..).take(count).map(|(_, value)| *value).sum()
    }

    fn key_bytes(&self) -> usize {
        btree_bytes(self.0.len(), size_of::<u64>())
    }
}

impl OrderedMap for StringTree {
    fn get(&self, lookup: LookupKey<'_>) -> Option<u64> {
        self.tree.get(lookup.key).copied()
    }

    fn scan(&self, lookup: LookupKey<'_>, count: usize) -> u64 {
        let from = (Bound::Included(lookup.key), Bound::Unbounded);
        self.tree.range::<[u8], _>(from).take(count).map(|(_, value)| *value).sum()
    }

    fn key_bytes(&self) -> usize {
        btree_bytes(self.tree.len(), size_of::<Box<[u8]>>()) + self.heap_bytes
    }
}

/// Sorted numbers; the value of a number is its place.
struct Numbers(Vec<u64>);

impl OrderedMap for Numbers {
    fn get(&self, lookup: LookupKey<'_>) -> Option<u64> {
        self.0.binary_search(&number(lookup.key)).ok().map(|place| place as u64)
    }

    fn scan(&self, lookup: LookupKey<'_>, count: usize) -> u64 {
        let from = self.0.partition_point(|other| *other < number(lookup.key));
        (from as u64..self.0.len() as u64).take(count).sum()
    }

    fn key_bytes(&self) -> usize {
        self.0.len() * size_of::<u64>()
    }
}

/// Sorted strings, stored side by side with their ends.
struct Strings(SortedKeys);

impl OrderedMap for Strings {
    fn get(&self, lookup: LookupKey<'_>) -> Option<u64> {
        let place = self.0.place_from(lookup.key);
        (place < self.0.len() && self.0.get(place) == lookup.key).then_some(place as u64)
    }

    fn scan(&self, lookup: LookupKey<'_>, count: usize) -> u64 {
        (self.0.place_from(lookup.key) as u64..self.0.len() as u64).take(count).sum()
    }

    fn key_bytes(&self) -> usize {
        self.0.size_bytes() + self.0.len() * size_of::<u32>()
    }
}

/// A minimal automaton: keys share common prefixes and common suffixes.
struct Automaton {
    map: fst::Map<Vec<u8>>,
    /// The size of an automaton of the same keys without values.
    key_bytes: usize,
}

fn automaton(keys: &SortedKeys) -> Result<Box<dyn OrderedMap>> {
    let problem = |error: fst::Error| LabError::Plan(error.to_string());
    let map = fst::Map::from_iter(numbered(keys)).map_err(problem)?;
    let key_bytes = fst::Set::from_iter(keys.iter()).map_err(problem)?.as_fst().size();
    Ok(Box::new(Automaton { map, key_bytes }))
}

impl OrderedMap for Automaton {
    fn get(&self, lookup: LookupKey<'_>) -> Option<u64> {
        self.map.get(lookup.key)
    }

    fn scan(&self, lookup: LookupKey<'_>, count: usize) -> u64 {
        let mut stream = self.map.range().ge(lookup.key).into_stream();
        let mut sum = 0;
        for _ in 0..count {
            let Some((_, value)) = stream.next() else { break };
            sum += value;
        }
        sum
    }

    fn key_bytes(&self) -> usize {
        self.key_bytes
    }
}
