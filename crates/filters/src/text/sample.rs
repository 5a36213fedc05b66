//! A sample of keys to learn a model from.

use alloc::vec::Vec;

use crate::base::key_list::KeyList;
use core::ops::Range;

/// Stretches of consecutive keys, sampled from those that a filter will have.
#[derive(Clone, Debug, Default)]
pub struct KeySample {
    keys: KeyList,
    /// The end of each stretch except the last.
    ends: Vec<usize>,
}

/// Bytes of each key that are kept: codes use no more, and a sample of huge keys stays small.
const BYTES_OF_KEY: usize = 512;
/// The stretches of an evenly spread sample, and the keys of each, as many as a group has.
const STRETCHES: usize = 64;
const STRETCH_KEYS: usize = 720;

impl KeySample {
    /// Samples evenly spread stretches of `count` keys, or all keys if they are few. `key` returns
    /// the key at an index.
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

    /// Adds the next key of a stretch. Requires: it is above the one before.
    pub fn push(&mut self, key: &[u8]) {
        self.keys.push(&key[..key.len().min(BYTES_OF_KEY)]);
    }

    /// Ends the stretch: the next key begins another one, anywhere.
    pub fn end_stretch(&mut self) {
        self.ends.push(self.keys.len());
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether the sample has no keys.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Returns the first key of each stretch. These split the whole run into parts of about equal
    /// size.
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

    /// The index range of each stretch.
    pub(super) fn stretches(&self) -> impl Iterator<Item = Range<usize>> {
        let ends = self.ends.iter().copied().chain([self.keys.len()]);
        ends.scan(0, |start, end| Some(core::mem::replace(start, end)..end))
    }
}
