//! Sorted keys in one buffer, and the bits that neighbours share.
//! ```text
//! keys      drum   drums  tin
//! commons   ?      36     1       common bits with the key before (the first: with the one before the buffer)
//! ```
//! Invariant: the keys' bit strings ascend strictly; a key that adds only zero bits to the one before is not kept.

use crate::bits::key_bits::common_bits;

/// The longest key that is taken.
pub(crate) const KEY_BYTES_MAX: usize = 1 << 16;

/// Sorted keys, waiting to be encoded.
#[derive(Default)]
pub(crate) struct KeyBuffer {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    commons: Vec<usize>,
}

impl KeyBuffer {
    /// Adds the next key and says whether it was kept. Requires: bytewise above the key before, and of a length
    /// that a store takes.
    #[inline]
    pub(crate) fn push(&mut self, key: &[u8]) -> bool {
        assert!(key.len() <= KEY_BYTES_MAX, "a key of {} bytes", key.len());
        let mut common = 0;
        if let Some(last) = self.last() {
            match shared_bits(last, key) {
                Some(bits) => common = bits,
                None => return false,
            }
        }
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
        self.commons.push(common);
        true
    }

    /// The number of keys.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The bytes of all keys.
    pub(crate) fn size_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Heap bytes in use.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.bytes.capacity() + 8 * (self.ends.capacity() + self.commons.capacity())
    }

    /// The key at a place.
    #[inline]
    pub(crate) fn get(&self, place: usize) -> &[u8] {
        let start = if place == 0 { 0 } else { self.ends[place - 1] };
        &self.bytes[start..self.ends[place]]
    }

    /// The last key.
    #[inline]
    pub(crate) fn last(&self) -> Option<&[u8]> {
        self.len().checked_sub(1).map(|place| self.get(place))
    }

    /// Per key, the bits it shares with the key before it.
    pub(crate) fn commons(&self) -> &[usize] {
        &self.commons
    }

    /// Forgets the first `count` keys.
    pub(crate) fn drop_front(&mut self, count: usize) {
        let start = if count == 0 { 0 } else { self.ends[count - 1] };
        self.bytes.drain(..start);
        self.ends.drain(..count);
        self.commons.drain(..count);
        self.ends.iter_mut().for_each(|end| *end -= start);
    }
}

/// The bits that two neighbours share; None if they are the same bit string. Requires: `last` < `key`.
#[inline]
fn shared_bits(last: &[u8], key: &[u8]) -> Option<usize> {
    if let (Ok(last), Ok(key)) = (<[u8; 8]>::try_from(last), <[u8; 8]>::try_from(key)) {
        let (last, key) = (u64::from_be_bytes(last), u64::from_be_bytes(key));
        assert!(last < key, "keys out of order: {last:#x}, {key:#x}");
        return Some((last ^ key).leading_zeros() as usize);
    }
    assert!(last < key, "keys out of order: {last:?}, {key:?}");
    common_bits(last, key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_know_what_they_share() {
        let mut keys = KeyBuffer::default();
        assert!(keys.push(b"drum") && keys.push(b"drums") && keys.push(b"tin"));
        assert!(!keys.push(b"tin\0"), "the same bit string");
        assert_eq!(keys.commons(), [0, 33, 3]);
        keys.drop_front(1);
        assert_eq!((keys.len(), keys.get(0), keys.last()), (2, &b"drums"[..], Some(&b"tin"[..])));
        assert_eq!(keys.commons(), [33, 3]);
    }

    #[test]
    #[should_panic(expected = "out of order")]
    fn keys_out_of_order_are_our_mistake() {
        let mut keys = KeyBuffer::default();
        keys.push(b"b");
        keys.push(b"a");
    }
}
