//! Keys as filters take them: cut, sorted, in one allocation.
//! ```text
//! arena  | length | bytes | length | bytes |      as they came
//! order  (first 8 bytes as a number, place in the arena), sorted
//! ```
//! Invariant: cutting keeps order, so what lies between two keys lies between the two cut ones.

use std::sync::atomic::{AtomicU64, Ordering};

use trommel_filters::KeyList;

/// What a filter sees of a key: the bytes behind tell it nothing.
pub(crate) const KEY_BYTES_MAX: usize = 512;
const WORD_BYTES: usize = size_of::<u64>();

/// What a filter sees of a key.
pub(crate) fn cut(key: &[u8]) -> &[u8] {
    &key[..key.len().min(KEY_BYTES_MAX)]
}

/// Keys in ascending order, each once.
#[derive(Default)]
pub(crate) struct SortedKeys {
    keys: KeyList,
    bytes: usize,
}

impl SortedKeys {
    /// Of an arena with `count` keys.
    pub(crate) fn of(arena: &[AtomicU64], count: usize) -> SortedKeys {
        let (mut bytes, mut order) = (Vec::new(), Vec::with_capacity(count));
        bytes.reserve_exact(size_of_val(arena));
        let mut at = 0;
        while at < arena.len() {
            let len = arena[at].load(Ordering::Relaxed) as usize;
            let words = len.div_ceil(WORD_BYTES);
            let start = bytes.len();
            for word in &arena[at + 1..at + 1 + words] {
                bytes.extend_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
            }
            let head = bytes[start..].first_chunk().map_or(0, |head| u64::from_be_bytes(*head));
            order.push((head, start as u32, len as u32));
            at += 1 + words;
        }
        let key = |(_, start, len): &(u64, u32, u32)| {
            let start = *start as usize;
            &bytes[start..start + *len as usize]
        };
        order.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| key(a).cmp(key(b))));
        let mut keys = KeyList::default();
        order.iter().for_each(|place| keys.push_if_new(key(place)));
        SortedKeys { keys, bytes: bytes.len() }
    }

    /// Adds the next key, cut, unless it is the last one. Requires: none before it.
    pub(crate) fn push(&mut self, key: &[u8]) {
        let key = cut(key);
        self.keys.push_if_new(key);
        self.bytes += key.len();
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Bytes that they take, about.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes + self.len() * size_of::<usize>()
    }

    /// That at a place.
    pub(crate) fn get(&self, place: usize) -> &[u8] {
        self.keys.get(place)
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> + Clone {
        (0..self.len()).map(|place| self.get(place))
    }
}
