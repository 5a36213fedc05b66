//! A sample of keys, from which a model is learnt.

use alloc::vec::Vec;

use crate::base::key_list::KeyList;
use core::ops::Range;

/// Some stretches of the keys that a filter will have: within a stretch, no key is left out.
#[derive(Clone, Debug, Default)]
pub struct KeySample {
    keys: KeyList,
    /// Where each stretch ends, but for the last one.
    ends: Vec<usize>,
}

/// Bytes of a key that are kept: codes end before, and a sample of huge keys stays small.
const BYTES_OF_KEY: usize = 512;
/// Stretches of a sample that is evenly spread, and the keys of each: as many as a group has.
const STRETCHES: usize = 64;
const STRETCH_KEYS: usize = 720;

impl KeySample {
    /// Of `count` keys, stretches that are spread evenly; all, if they are few. `key`: that at a
    /// place.
    pub fn evenly<'k>(count: usize, key: impl Fn(usize) -> &'k [u8]) -> KeySample {
        let mut sample = KeySample::default();
        let apart = (count / STRETCHES).max(STRETCH_KEYS);
        for first in (0..count).step_by(apart) {
            (first..(first + STRETCH_KEYS).min(count)).for_each(|place| sample.push(key(place)));
            if apart > STRETCH_KEYS {
                sample.end_stretch();
            }
        }
        sample
    }

    /// Adds the next key of a stretch. Requires: above the one before.
    pub fn push(&mut self, key: &[u8]) {
        self.keys.push(&key[..key.len().min(BYTES_OF_KEY)]);
    }

    /// The next key begins another stretch, wherever it lies.
    pub fn end_stretch(&mut self) {
        self.ends.push(self.keys.len());
    }

    /// The keys of all stretches.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether it has no key.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The first keys of stretches of the whole run that have about as many keys each.
    pub(crate) fn firsts(&self) -> Vec<Vec<u8>> {
        let key = |place: usize| self.keys.get(place).to_vec();
        if self.ends.is_empty() {
            return (0..self.len()).step_by(STRETCH_KEYS).map(key).collect();
        }
        let stretches = self.stretches().filter(|stretch| !stretch.is_empty());
        stretches.map(|stretch| key(stretch.start)).collect()
    }

    pub(super) fn keys(&self) -> &KeyList {
        &self.keys
    }

    /// The places of the keys of each stretch.
    pub(super) fn stretches(&self) -> impl Iterator<Item = Range<usize>> {
        let ends = self.ends.iter().copied().chain([self.keys.len()]);
        ends.scan(0, |start, end| Some(core::mem::replace(start, end)..end))
    }
}
