//! Keys as filters take them: cut, sorted, in one allocation.
//! ```text
//! bytes  as they came
//! order  (first 8 bytes as a number, place in the arena), sorted
//! ```
//! Invariant: cutting keeps order, so what lies between two keys lies between the two cut ones.

use trommel_filters::KeyList;

use crate::arena::{Arena, ReadKey};

/// What a filter sees of a key: the bytes behind tell it nothing.
pub(crate) const KEY_BYTES_MAX: usize = 512;

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
    /// Of the first words of an arena, which have `count` keys. Waits for writers that have a place
    /// and have not written to it yet, which takes them some nanoseconds.
    pub(crate) fn of(arena: &Arena, words: usize, count: usize) -> SortedKeys {
        let (mut bytes, mut order) = (Vec::new(), Vec::with_capacity(count));
        bytes.reserve_exact(Arena::bytes_of(words));
        let (mut at, mut read) = (0, ReadKey::new());
        while at < words {
            let Some(next) = arena.read(at, &mut read) else {
                std::thread::yield_now();
                continue;
            };
            let start = bytes.len();
            bytes.extend_from_slice(read.bytes());
            let mut head = [0; 8];
            let head_len = read.bytes().len().min(head.len());
            head[..head_len].copy_from_slice(&read.bytes()[..head_len]);
            let head = u64::from_be_bytes(head);
            order.push((head, start as u32, read.bytes().len() as u32));
            at = next;
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
