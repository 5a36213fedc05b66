//! Keys in the form that filters take: cut, sorted, in one allocation.
//! ```text
//! bytes  in the order of arrival
//! order  (8 bytes behind the shared prefix as a number, place in the bytes), sorted
//! ```
//! Invariant: cutting keeps the order: what lies between two keys lies between the two cut ones.

use trommel_filters::KeyList;

use crate::arena::{Arena, ReadKey};

/// The bytes of a key that a filter sees. It ignores the rest.
pub(crate) const KEY_BYTES_MAX: usize = 512;

/// Returns the part of a key that a filter sees.
pub(crate) fn cut(key: &[u8]) -> &[u8] {
    &key[..key.len().min(KEY_BYTES_MAX)]
}

/// Returns the length of the prefix that all keys share.
fn shared_by_all<'k>(mut keys: impl Iterator<Item = &'k [u8]>) -> usize {
    let first = keys.next().unwrap_or_default();
    keys.fold(first.len(), |shared, key| {
        first[..shared].iter().zip(key).take_while(|(a, b)| a == b).count()
    })
}

/// The first eight bytes as a number. A shorter key is padded with zeros.
fn head_of(key: &[u8]) -> u64 {
    let mut head = [0; 8];
    let len = key.len().min(head.len());
    head[..len].copy_from_slice(&key[..len]);
    u64::from_be_bytes(head)
}

/// Distinct keys in ascending order.
#[derive(Default)]
pub(crate) struct SortedKeys {
    keys: KeyList,
    bytes: usize,
}

impl SortedKeys {
    /// Collects the keys in the first words of some arenas, `count` keys in all. Waits for writers
    /// that have taken a place but not written yet, which takes nanoseconds.
    pub(crate) fn of<'a>(
        arenas: impl Iterator<Item = (&'a Arena, usize)> + Clone,
        count: usize,
    ) -> SortedKeys {
        let (mut bytes, mut order) = (Vec::new(), Vec::with_capacity(count));
        bytes.reserve_exact(arenas.clone().map(|(_, words)| Arena::bytes_of(words)).sum());
        for (arena, words) in arenas {
            let (mut at, mut read) = (0, ReadKey::new());
            while at < words {
                let Some(next) = arena.read(at, &mut read) else {
                    std::thread::yield_now();
                    continue;
                };
                order.push((0, bytes.len() as u32, read.bytes().len() as u32));
                bytes.extend_from_slice(read.bytes());
                at = next;
            }
        }
        let key = |(_, start, len): &(u64, u32, u32)| &bytes[*start as usize..][..*len as usize];
        let shared = shared_by_all(order.iter().map(key));
        order.iter_mut().for_each(|place| place.0 = head_of(&key(place)[shared..]));
        // Comparing numbers takes no branch. Keys are compared only where numbers tie.
        order.sort_unstable_by_key(|place| place.0);
        let ties = order.chunk_by_mut(|one, next| one.0 == next.0);
        ties.for_each(|ties| ties.sort_unstable_by(|one, next| key(one).cmp(key(next))));
        let mut keys = KeyList::default();
        order.iter().for_each(|place| keys.push_if_new(key(place)));
        SortedKeys { keys, bytes: bytes.len() }
    }

    /// Adds the next key, cut, unless it equals the last one. Requires: it is not below the last
    /// one.
    pub(crate) fn push(&mut self, key: &[u8]) {
        let key = cut(key);
        self.keys.push_if_new(key);
        self.bytes += key.len();
    }

    /// The number of keys.
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Approximate memory in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes + self.len() * size_of::<usize>()
    }

    /// Returns the key at an index.
    pub(crate) fn get(&self, place: usize) -> &[u8] {
        self.keys.get(place)
    }

    /// Iterates over all keys.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> + Clone {
        (0..self.len()).map(|place| self.get(place))
    }
}
