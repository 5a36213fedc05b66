//! Short ranges, asked key by key where all keys of the base have one length.
//! ```text
//! range 0007 .. 000a     order: "maybe"     hashes of 0007, 0008, 0009, 000a: none
//! ```
//! Hashes know no order, so they tell nothing of a range but of each key in it. Invariant: between
//! two keys of the base's length lie only those that are counted up; other lengths are in the
//! overlay at most, which is asked for the range itself.

use crate::base::filter::Trace;
use crate::base::query::KeyRange;
use crate::grf::base::{Base, Role};

/// The keys of a range that is asked key by key, at most: each is another chance to err.
const KEYS_MAX: u64 = 8;
/// Bytes that are counted.
const NUMBER_BYTES: usize = 8;

impl Base {
    /// The longest keys whose ranges are asked so.
    pub(crate) const ONE_LENGTH_MAX: usize = 64;

    /// Whether the base may hold a key of a range in which order says that it does. False: it holds
    /// none.
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

    /// The first key of a range, and the number of the last one. None: it is not asked key by key.
    fn few_keys(&self, range: &KeyRange<'_>) -> Option<([u8; Self::ONE_LENGTH_MAX], u64)> {
        let (lower, upper) = (range.lower(), range.upper()?);
        // Keys of the length begin at a shorter bound, continued with zeros, and end at a longer
        // one, cut.
        let last = upper.get(..self.one_length)?;
        let mut first = [0; Self::ONE_LENGTH_MAX];
        first[..self.one_length].get_mut(..lower.len())?.copy_from_slice(lower);
        let head = self.one_length.saturating_sub(NUMBER_BYTES);
        let (low, high) = (number(&first[..self.one_length]), number(last));
        let is_short = first[..head] == last[..head] && high.checked_sub(low)? < KEYS_MAX;
        is_short.then_some((first, high))
    }
}

/// The last bytes of a key as a number.
fn number(key: &[u8]) -> u64 {
    let tail = &key[key.len().saturating_sub(NUMBER_BYTES)..];
    tail.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}
