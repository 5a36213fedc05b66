//! Walks through a range prefix by prefix.
//! ```text
//! user7time1298 to user7time1311, levels 5+11:
//! user7time1 ─┬─ 2   is "user7time12" present?
//!             └─ 3   is "user7time13" present?
//! ```
//! Invariant: every key of the range that the filter has is reached, or the answer is "maybe".

use super::alphabet::PLACES_MAX;
use super::levels::PrefixLevel;
use super::{KeptLevel, Parameters};

/// A range with more prefixes and keys to probe is "maybe": one of so many would pass by chance.
const PREFIXES_MAX: u32 = 64;
/// So is a range with more beginnings of prefixes to visit.
const STEPS_MAX: u32 = 512;

/// The ends of the range that a prefix touches: keys with the prefix may lie beyond such an end.
#[derive(Clone, Copy)]
struct Ends {
    lower: bool,
    upper: bool,
}

/// A range query.
pub(super) struct Walk<'a, F> {
    parameters: &'a Parameters,
    lower: &'a [u8],
    upper: Option<&'a [u8]>,
    /// Whether a level may have a prefix.
    may_have: F,
    /// Begins with the current prefix.
    prefix: [u8; PLACES_MAX],
    prefixes_left: u32,
    steps_left: u32,
}

impl<'a, F: FnMut(&KeptLevel, &[u8]) -> bool> Walk<'a, F> {
    pub(super) fn new(
        parameters: &'a Parameters,
        lower: &'a [u8],
        upper: Option<&'a [u8]>,
        may_have: F,
    ) -> Self {
        Walk {
            parameters,
            lower,
            upper,
            may_have,
            prefix: [0; PLACES_MAX],
            prefixes_left: PREFIXES_MAX,
            steps_left: STEPS_MAX,
        }
    }

    /// Whether the range may have keys beyond its common prefix of `shared` bytes. Requires:
    /// `shared` is below `PLACES_MAX`, and levels that are not longer were probed.
    pub(super) fn may_go_on(mut self, shared: usize) -> bool {
        self.prefix[..shared].copy_from_slice(&self.lower[..shared]);
        self.may_hold(shared, Ends { lower: true, upper: self.upper.is_some() })
    }

    /// Whether keys of the range may begin with the first `len` bytes of the prefix. Requires: all
    /// levels that end there have it.
    fn may_hold(&mut self, len: usize, on: Ends) -> bool {
        let is_all_asked = !self.longer_levels(len);
        let Some(alphabet) = self.parameters.alphabets.at(len).filter(|_| len < PLACES_MAX) else {
            return true;
        };
        let is_above_lower = !on.lower || len >= self.lower.len();
        if is_above_lower && alphabet.ends && self.may_have_whole(len) {
            return true;
        }
        let upper = self.upper.filter(|_| on.upper);
        if upper.is_some_and(|upper| upper.len() == len) {
            return false;
        }
        if is_all_asked {
            return true;
        }
        let first = if is_above_lower { 0 } else { self.lower[len] };
        let last = upper.map_or(u8::MAX, |upper| upper[len]);
        let mut next = alphabet.next(first);
        while let Some(byte) = next.filter(|&byte| byte <= last) {
            self.prefix[len] = byte;
            let ends = Ends {
                lower: !is_above_lower && byte == first,
                upper: upper.is_some() && byte == last,
            };
            if self.may_begin(len + 1, ends) {
                return true;
            }
            next = byte.checked_add(1).and_then(|byte| alphabet.next(byte));
        }
        false
    }

    /// Same as `may_hold`, for a prefix that its levels were not probed for.
    fn may_begin(&mut self, len: usize, on: Ends) -> bool {
        // Of the keys that begin with the end of the range, only the end itself is in the range.
        let is_last_key = on.upper && self.upper.is_some_and(|upper| upper.len() == len);
        if is_last_key && !self.parameters.alphabets.may_end(len) {
            return false;
        }
        let Some(steps) = self.steps_left.checked_sub(1) else { return true };
        self.steps_left = steps;
        let parameters = self.parameters;
        let mut levels = parameters.levels.iter();
        levels.all(|kept| self.may_have_prefix(kept, len)) && self.may_hold(len, on)
    }

    /// Whether a level may have the prefix, if the prefix belongs to that level.
    fn may_have_prefix(&mut self, kept: &KeptLevel, len: usize) -> bool {
        !kept.level.is_prefix(&self.prefix[..len]) || self.asked(kept, len)
    }

    /// Probes a level for the first `len` bytes of the prefix, within the limit of probes.
    fn asked(&mut self, kept: &KeptLevel, len: usize) -> bool {
        if kept.filter.is_none() {
            return true;
        }
        let Some(prefixes) = self.prefixes_left.checked_sub(1) else { return true };
        self.prefixes_left = prefixes;
        (self.may_have)(kept, &self.prefix[..len])
    }

    fn longer_levels(&self, len: usize) -> bool {
        let kept = self.parameters.levels.iter().filter(|kept| kept.filter.is_some());
        kept.into_iter().any(|kept| kept.level.goes_beyond(&self.prefix[..len]))
    }

    /// Whether the prefix itself may be a key.
    fn may_have_whole(&mut self, len: usize) -> bool {
        let parameters = self.parameters;
        let mut levels = parameters.levels.iter();
        levels.all(|kept| kept.level != PrefixLevel::WholeKey || self.asked(kept, len))
    }
}
