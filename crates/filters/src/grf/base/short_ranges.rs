//! Queries short ranges key by key, if all keys of the base have the same length.
//! ```text
//! range 0007 .. 000a     order: "maybe"     hashes of 0007, 0008, 0009, 000a: none
//! ```
//! A hash says nothing of a range, but something of each key in it. Between two keys of the base's
//! length lie only the keys that are enumerated, and keys of other lengths. Only the overlay can
//! have the latter, and it is queried for the range itself.
//!
//! Invariant: "no" still proves that the base has no key in the range.

use crate::base::filter::Trace;
use crate::base::query::KeyRange;
use crate::grf::base::{Base, Role};

/// The maximum number of keys in such a range: each is another chance of a false positive.
const KEYS_MAX: u64 = 8;
/// The number of last bytes that are enumerated.
const NUMBER_BYTES: usize = 8;

impl Base {
    /// Ranges of longer keys are not queried this way.
    pub(crate) const ONE_LENGTH_MAX: usize = 64;

    /// Whether the base may hold a key of a range to which the fingerprints say "maybe". False: it
    /// holds none.
    #[inline(always)]
    pub(crate) fn may_hold_in<T: Trace>(&self, range: &KeyRange<'_>, trace: &mut T) -> bool {
        self.one_length == 0 || self.may_hold_one_of(range, trace)
    }

    #[inline(never)]
    fn may_hold_one_of<T: Trace>(&self, range: &KeyRange<'_>, trace: &mut T) -> bool {
        let Some((first, last)) = self.few_keys(range) else { return true };
        let mut key = first;
        let key = &mut key[..self.one_length];
        let counted = self.one_length.min(NUMBER_BYTES);
        let low = number(key);
        (low..=last).any(|number| {
            let at = key.len() - counted;
            key[at..].copy_from_slice(&number.to_be_bytes()[NUMBER_BYTES - counted..]);
            let key = &*key;
            let spot = self.place(&self.locate(key, trace), Role::Point, trace);
            self.may_hold(key, &spot)
        })
    }

    /// Returns the first key of a range and the number of its last one. None: it is not queried key
    /// by key.
    fn few_keys(&self, range: &KeyRange<'_>) -> Option<([u8; Self::ONE_LENGTH_MAX], u64)> {
        let (lower, upper) = (range.lower(), range.upper()?);
        // Keys of this length begin at the lower bound padded with zeros, and end at the truncated
        // upper bound.
        let last = upper.get(..self.one_length)?;
        let mut first = [0; Self::ONE_LENGTH_MAX];
        first[..self.one_length].get_mut(..lower.len())?.copy_from_slice(lower);
        let head = self.one_length.saturating_sub(NUMBER_BYTES);
        let (low, high) = (number(&first[..self.one_length]), number(last));
        let is_short = first[..head] == last[..head] && high.checked_sub(low)? < KEYS_MAX;
        is_short.then_some((first, high))
    }
}

/// Returns the last bytes of a key as a number.
fn number(key: &[u8]) -> u64 {
    let tail = &key[key.len().saturating_sub(NUMBER_BYTES)..];
    tail.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}
