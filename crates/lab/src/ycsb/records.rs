//! The contents of a store: keys in random order, and values that encode their key and their write.
//! ```text
//! place 0 1 2 ... loaded ... inserted     key: place, scattered   value: place|stamp|filler|stamp
//!       <------------- there ------->  <- under way, in any order
//! ```
//! Invariant: every place below `there` is in the store, and stays there.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::compare::Peer;
use crate::error::Result;
use crate::keys::rng::scattered_key;
use crate::keys::values::fill_value;
use crate::ycsb::stamps::Stamps;

const WORD: usize = size_of::<u64>();

/// The keys and values of one store.
pub(crate) struct Records {
    seed: u64,
    value_bytes: usize,
    inserts: Inserts,
    pub(crate) stamps: Stamps,
}

impl Records {
    /// The least size of a value: its three words.
    pub(crate) const VALUE_BYTES_LEAST: usize = 3 * WORD;

    /// Creates the records of a store that holds the first `keys` places, or will after loading.
    pub(crate) fn new(keys: u64, value_bytes: usize, seed: u64) -> Self {
        Records { seed, value_bytes, inserts: Inserts::new(keys), stamps: Stamps::new(keys) }
    }

    /// Returns how many places, from the first on, are surely in the store.
    pub(crate) fn there(&self) -> u64 {
        self.inserts.there.load(Ordering::Acquire)
    }

    /// Returns the next place that is not in the store. The caller must insert it, and call
    /// `inserted`.
    pub(crate) fn next_place(&self) -> u64 {
        self.inserts.next.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn inserted(&self, place: u64) {
        self.inserts.done(place);
    }

    pub(crate) fn key(&self, place: u64) -> [u8; WORD] {
        scattered_key(self.seed, place)
    }

    /// Fills in the value of a place, without its stamp.
    pub(crate) fn fill(&self, value: &mut Vec<u8>, place: u64) {
        fill_value(value, &self.key(place), self.value_bytes);
        value[..WORD].copy_from_slice(&place.to_le_bytes());
    }

    /// Returns the place and stamp of a value, by its words alone. None: the value is torn, of
    /// another key, or of no write that has begun.
    pub(crate) fn look(&self, key: &[u8], value: &[u8]) -> Option<(u64, u64)> {
        let word = |at: usize| {
            let bytes = value.get(at..at + WORD)?;
            Some(u64::from_le_bytes(bytes.try_into().expect("eight bytes")))
        };
        let (place, stamp) = (word(0)?, word(WORD)?);
        let is_whole = value.len() == self.value_bytes && word(value.len() - WORD)? == stamp;
        let is_right = is_whole && self.key(place) == key && self.stamps.is_given(stamp);
        is_right.then_some((place, stamp))
    }

    /// Scans the store, and counts the entries that are missing, old, or not byte by byte as
    /// written.
    /// Requires: no write is under way.
    pub(crate) fn count_wrong(&self, peer: &dyn Peer) -> Result<u64> {
        let (mut right, mut last, mut expected) = (0, None::<Vec<u8>>, Vec::new());
        let mut see = |key: &[u8], value: &[u8]| {
            let ascends = last.as_deref().is_none_or(|last| last < key);
            last = Some(key.to_vec());
            if let Some((place, stamp)) = self.look(key, value) {
                self.fill(&mut expected, place);
                set_stamp(&mut expected, stamp);
                let is_new = place < self.there() && stamp >= self.stamps.floor(place);
                right += u64::from(ascends && is_new && expected == value);
            }
        };
        let count = peer.scan(&[], None, usize::MAX, &mut see)? as u64;
        // The missing ones, and those that are there but wrong.
        Ok(self.there().saturating_sub(right) + count.saturating_sub(right))
    }

    /// Returns the numbers of the first `count` keys, ascending.
    pub(crate) fn sorted(&self, count: u64) -> Vec<u64> {
        let mut numbers: Vec<u64> = (0..count).map(|place| number(&self.key(place))).collect();
        numbers.sort_unstable();
        numbers
    }
}

/// Returns a key as a number; all keys here have eight bytes.
pub(crate) fn number(key: &[u8]) -> u64 {
    <[u8; WORD]>::try_from(key).map_or(0, u64::from_be_bytes)
}

/// Sets the stamp of a value, which identifies its write.
pub(crate) fn set_stamp(value: &mut [u8], stamp: u64) {
    let len = value.len();
    for at in [WORD, len - WORD] {
        value[at..at + WORD].copy_from_slice(&stamp.to_le_bytes());
    }
}

/// Inserts, under way and completed.
struct Inserts {
    next: AtomicU64,
    there: AtomicU64,
    /// Completed inserts behind one that is still under way.
    early: Mutex<BinaryHeap<Reverse<u64>>>,
}

impl Inserts {
    fn new(there: u64) -> Self {
        let early = Mutex::new(BinaryHeap::new());
        Inserts { next: AtomicU64::new(there), there: AtomicU64::new(there), early }
    }

    fn done(&self, place: u64) {
        // No code here panics in the middle of a change.
        let mut early = self.early.lock().unwrap_or_else(PoisonError::into_inner);
        early.push(Reverse(place));
        let mut there = self.there.load(Ordering::Relaxed);
        while early.peek() == Some(&Reverse(there)) {
            early.pop();
            there += 1;
        }
        self.there.store(there, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(records: &Records, place: u64, stamp: u64) -> Vec<u8> {
        let mut value = Vec::new();
        records.fill(&mut value, place);
        set_stamp(&mut value, stamp);
        value
    }

    #[test]
    fn inserts_count_when_all_before_them_are_over() {
        let records = Records::new(10, 100, 1);
        let places = [0; 4].map(|_| records.next_place());
        assert_eq!(places, [10, 11, 12, 13]);
        for (place, there) in [(11, 10), (13, 10), (10, 12), (12, 14)] {
            records.inserted(place);
            assert_eq!(records.there(), there);
        }
    }

    #[test]
    fn a_value_tells_whose_it_is() {
        for bytes in [Records::VALUE_BYTES_LEAST, 25, 100, 1000] {
            let records = Records::new(10, bytes, 1);
            let value = value(&records, 3, 0);
            let key = records.key(3);
            assert_eq!((value.len(), records.look(&key, &value)), (bytes, Some((3, 0))));
            assert_eq!(records.look(&records.key(4), &value), None, "another key's");
            assert_eq!(records.look(&key, &value[1..]), None, "cut");
            let future = self::value(&records, 3, 1);
            assert_eq!(records.look(&key, &future), None, "nobody has written it");
            let torn = [&value[..bytes - WORD], &future[bytes - WORD..]].concat();
            assert_eq!(records.look(&key, &torn), None, "torn");
            assert_eq!(records.look(&key, &[]), None);
        }
    }
}
