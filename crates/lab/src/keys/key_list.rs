//! Lists of keys in one piece of memory.
//! ```text
//! bytes  a a a b b c c c c
//! ends         3   5       9        (not kept while every key has eight bytes)
//! ```
//! Invariant: `SortedKeys` is strictly ascending. It is the ground truth that answers are checked
//! against.

/// Keys in the order in which they were pushed.
#[derive(Clone, Debug, Default)]
pub struct KeyList {
    bytes: Vec<u8>,
    /// The end of each key. None: every key so far has eight bytes.
    ends: Option<Vec<usize>>,
}

const FIXED_BYTES: usize = 8;

impl KeyList {
    /// Returns an empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a key.
    pub fn push(&mut self, key: &[u8]) {
        if self.ends.is_none() && key.len() != FIXED_BYTES {
            self.ends = Some((1..=self.len()).map(|count| count * FIXED_BYTES).collect());
        }
        self.bytes.extend_from_slice(key);
        if let Some(ends) = &mut self.ends {
            ends.push(self.bytes.len());
        }
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.ends.as_ref().map_or(self.bytes.len() / FIXED_BYTES, Vec::len)
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes of all keys together.
    pub fn size_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the length of the longest key; 0 for an empty list.
    pub(crate) fn longest(&self) -> usize {
        match &self.ends {
            None if self.is_empty() => 0,
            None => FIXED_BYTES,
            Some(_) => self.iter().map(<[u8]>::len).max().unwrap_or(0),
        }
    }

    /// Returns the key at a place. Requires: `place` is below `len`.
    #[inline]
    pub fn get(&self, place: usize) -> &[u8] {
        match &self.ends {
            None => &self.bytes[place * FIXED_BYTES..(place + 1) * FIXED_BYTES],
            Some(ends) => {
                let start = if place == 0 { 0 } else { ends[place - 1] };
                &self.bytes[start..ends[place]]
            }
        }
    }

    /// Returns the keys in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> + '_ {
        (0..self.len()).map(|place| self.get(place))
    }
}

impl<'a> FromIterator<&'a [u8]> for KeyList {
    fn from_iter<I: IntoIterator<Item = &'a [u8]>>(keys: I) -> Self {
        let mut list = KeyList::new();
        keys.into_iter().for_each(|key| list.push(key));
        list
    }
}

/// Distinct keys in ascending order.
#[derive(Clone, Debug, Default)]
pub struct SortedKeys {
    list: KeyList,
}

impl SortedKeys {
    /// Sorts the keys of a list and removes duplicates.
    pub fn from_list(list: &KeyList) -> Self {
        let mut places: Vec<u32> = (0..list.len() as u32).collect();
        places.sort_unstable_by(|&a, &b| list.get(a as usize).cmp(list.get(b as usize)));
        places.dedup_by(|a, b| list.get(*a as usize) == list.get(*b as usize));
        SortedKeys { list: places.into_iter().map(|place| list.get(place as usize)).collect() }
    }

    /// Converts numbers to keys of eight bytes, big-endian, which keep the order of the numbers.
    pub fn from_integers(mut numbers: Vec<u64>) -> Self {
        numbers.sort_unstable();
        numbers.dedup();
        let bytes = numbers.iter().flat_map(|number| number.to_be_bytes()).collect();
        SortedKeys { list: KeyList { bytes, ends: None } }
    }

    /// Splits the keys by place: the second set gets the places for which `to_second` returns true.
    pub fn split(&self, mut to_second: impl FnMut(usize) -> bool) -> (SortedKeys, SortedKeys) {
        let mut sets = (SortedKeys::default(), SortedKeys::default());
        for (place, key) in self.iter().enumerate() {
            let set = if to_second(place) { &mut sets.1 } else { &mut sets.0 };
            set.list.push(key);
        }
        sets
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns the bytes of all keys together.
    pub fn size_bytes(&self) -> usize {
        self.list.size_bytes()
    }

    /// Returns the length of the longest key; 0 if there is none.
    pub(crate) fn longest(&self) -> usize {
        self.list.longest()
    }

    /// Returns the key at a place. Requires: `place` is below `len`.
    #[inline]
    pub fn get(&self, place: usize) -> &[u8] {
        self.list.get(place)
    }

    /// Returns the keys in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> + '_ {
        self.list.iter()
    }

    /// Returns the place of the first key at or after `key`; `len` if there is none. O(log n).
    pub fn place_from(&self, key: &[u8]) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.get(middle) < key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Returns the place of the first key after `key`; `len` if there is none. O(log n).
    pub fn place_after(&self, key: &[u8]) -> usize {
        self.place_from(key) + usize::from(self.holds(key))
    }

    /// Returns the first key at or after `key`.
    pub fn first_from(&self, key: &[u8]) -> Option<&[u8]> {
        let place = self.place_from(key);
        (place < self.len()).then(|| self.get(place))
    }

    /// Whether `key` is one of the keys; the answer is exact.
    pub fn holds(&self, key: &[u8]) -> bool {
        self.first_from(key) == Some(key)
    }

    /// Returns the first key in `lower..=upper`.
    pub fn first_in(&self, lower: &[u8], upper: &[u8]) -> Option<&[u8]> {
        self.first_from(lower).filter(|key| *key <= upper)
    }
}

/// Returns the key `distance` further on. The last bytes, at most eight, count as a number, which
/// saturates.
pub fn key_after(key: &[u8], distance: u64) -> Vec<u8> {
    shifted(key, |number, largest| number.saturating_add(distance).min(largest))
}

/// Returns the key `distance` further back; the number of the last bytes saturates at zero.
pub fn key_before(key: &[u8], distance: u64) -> Vec<u8> {
    shifted(key, |number, _| number.saturating_sub(distance))
}

fn shifted(key: &[u8], shift: impl FnOnce(u64, u64) -> u64) -> Vec<u8> {
    let tail_bytes = key.len().min(8);
    let (head, tail) = key.split_at(key.len() - tail_bytes);
    let number = tail.iter().fold(0u64, |number, byte| number << 8 | u64::from(*byte));
    let largest = if tail_bytes == 0 { 0 } else { u64::MAX >> (64 - 8 * tail_bytes) };
    let moved = shift(number, largest).to_be_bytes();
    [head, &moved[8 - tail_bytes..]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_keep_keys_of_any_length() {
        let keys: [&[u8]; 5] = [b"12345678", b"abcdefgh", b"", b"a", b"a longer one"];
        let list: KeyList = keys.into_iter().collect();
        assert!(list.iter().eq(keys));
        assert_eq!((list.len(), list.size_bytes()), (5, 29));
        let sorted = SortedKeys::from_list(&keys.into_iter().chain(keys).collect());
        assert!(sorted.iter().is_sorted() && sorted.len() == 5);
        assert_eq!(sorted.first_from(b"b"), None);
        assert_eq!(sorted.first_in(b"a0", b"b"), Some(&b"abcdefgh"[..]));
        assert!(sorted.holds(b"") && !sorted.holds(b"a longer"));
    }

    #[test]
    fn integers_sort_as_keys() {
        let sorted = SortedKeys::from_integers(vec![1 << 40, 3, 255, 256, 3]);
        assert!(sorted.iter().eq([3u64, 255, 256, 1 << 40].map(u64::to_be_bytes).iter()));
        let (first, second) = sorted.split(|place| place == 1);
        assert_eq!((first.len(), second.get(0)), (3, &255u64.to_be_bytes()[..]));
    }

    #[test]
    fn keys_move_and_stop_at_their_ends() {
        assert_eq!(key_after(&5u64.to_be_bytes(), 63), 68u64.to_be_bytes());
        assert_eq!(key_after(&[0xff; 8], 1), [0xff; 8]);
        assert_eq!(key_before(&5u64.to_be_bytes(), 6), [0; 8]);
        assert_eq!(key_after(b"", 9), b"");
        assert_eq!(key_after(b"a", 1), b"b");
        assert_eq!(key_after(&[7, 0xff], 0x1_0000), [0xff, 0xff]);
        assert_eq!(key_after(b"prefix-0000000a", 1), b"prefix-0000000b");
        assert_eq!(key_before(b"prefix-0000000b", 1), b"prefix-0000000a");
    }
}
