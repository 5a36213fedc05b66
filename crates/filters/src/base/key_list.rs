//! A list of keys in one allocation, which a filter builder takes in one call.
//! ```text
//! bytes   |apple|pear|quince|
//! ends          5    9      15
//! ```
//! Invariant: the ends ascend, and the last one is the length of the bytes.

use alloc::vec::Vec;
use core::ops::Range;

/// The most common key length, in bytes.
const WORD_BYTES: usize = 8;

/// A list of keys for a filter builder.
#[derive(Clone, Debug, Default)]
pub struct KeyList {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl KeyList {
    /// Appends a key.
    #[inline]
    pub fn push(&mut self, key: &[u8]) {
        match key.first_chunk::<WORD_BYTES>() {
            // The common length compiles to a move instead of a call.
            Some(word) if key.len() == WORD_BYTES => self.bytes.extend_from_slice(word),
            _ => self.bytes.extend_from_slice(key),
        }
        self.ends.push(self.bytes.len());
    }

    /// Appends a key unless it equals the last one.
    pub fn push_if_new(&mut self, key: &[u8]) {
        if self.last() != Some(key) {
            self.push(key);
        }
    }

    /// Removes all keys and keeps the memory.
    #[inline]
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// The number of keys.
    #[inline]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether the list is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the key at index `place`. Requires: `place` is below [`len`](Self::len).
    #[inline(always)]
    pub fn get(&self, place: usize) -> &[u8] {
        &self.bytes[self.start(place)..self.ends[place]]
    }

    /// Returns the last key; None if the list is empty.
    pub fn last(&self) -> Option<&[u8]> {
        self.len().checked_sub(1).map(|place| self.get(place))
    }

    /// Returns the keys in insertion order.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| &self.bytes[core::mem::replace(&mut start, end)..end])
    }

    /// Returns the keys at `places` as words if each has eight bytes, else None. Takes time linear
    /// in their number.
    pub fn words(&self, places: Range<usize>) -> Option<&[[u8; WORD_BYTES]]> {
        let start = self.start(places.start);
        let ends = &self.ends[places];
        let is_word = |(nth, &end): (usize, &usize)| end == start + (nth + 1) * WORD_BYTES;
        let end = ends.last().copied().unwrap_or(start);
        ends.iter().enumerate().all(is_word).then(|| self.bytes[start..end].as_chunks().0)
    }

    /// Releases unused capacity.
    pub(crate) fn shrink_to_fit(&mut self) {
        self.bytes.shrink_to_fit();
        self.ends.shrink_to_fit();
    }

    /// Returns the size of each allocation, in bytes.
    pub(crate) fn allocations(&self) -> [usize; 2] {
        [self.bytes.capacity(), self.ends.capacity() * size_of::<usize>()]
    }

    #[inline(always)]
    fn start(&self, place: usize) -> usize {
        place.checked_sub(1).map_or(0, |before| self.ends[before])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_back_as_they_were_added() {
        let keys: [&[u8]; 6] = [b"", b"a", b"twelve bytes", b"12345678", b"23456789", b"z"];
        let mut list = KeyList::default();
        for _ in 0..2 {
            list.clear();
            assert_eq!((list.len(), list.is_empty(), list.last()), (0, true, None));
            for key in keys {
                list.push(key);
                list.push_if_new(key);
                assert_eq!(list.last(), Some(key));
            }
            assert_eq!(list.iter().collect::<Vec<_>>(), keys);
            assert_eq!((0..list.len()).map(|place| list.get(place)).collect::<Vec<_>>(), keys);
        }
    }

    #[test]
    fn words_are_keys_of_eight_bytes_alone() {
        let mut list = KeyList::default();
        [&b"a"[..], b"12345678", b"23456789", b"123456789", b"1234567", b"34567890"]
            .into_iter()
            .for_each(|key| list.push(key));
        for (from, to) in (0..=6).flat_map(|to| (0..=to).map(move |from| (from, to))) {
            let keys: Vec<&[u8]> = (from..to).map(|place| list.get(place)).collect();
            let expected = keys.iter().all(|key| key.len() == 8);
            let words = list.words(from..to);
            assert_eq!(words.is_some(), expected, "{from}..{to}");
            assert!(words.is_none_or(|words| words.iter().eq(keys)), "{from}..{to}");
        }
    }
}
