//! Recent entries of some neighbouring lists: those of the newest flushes, as words.
//! ```text
//! origin: two words | keys that are one entry with another key
//!     | first entry of each list, and the number of entries: u16
//! entries, one word each, sorted within a list:
//!     bucket 4 bits, fraction 22 bits, flush number less the origin 6 bits
//! ```
//! Newer entries have longer fractions, as in the paper (section 4.3.2): the base knows least of
//! them. Few entries are recent, and each flush rewrites them all: so they are not packed.
//! Invariant: an entry has its flush's own number.

use crate::base::filter::{Trace, ask_for_lines};
use crate::base::shape::{FlushNumber, Span};
use crate::bits::search::first_not;
use crate::grf::base::place::{BUCKETS, FRACTION_BITS, LISTS_MAX, PLACE_BITS, place_about};
use crate::grf::sizes::LINE_BYTES;
use std::ops::Range;
use std::sync::Arc;

const CODE_BITS: usize = u32::BITS as usize - PLACE_BITS;
/// Flush numbers that recent entries of one chunk can have.
pub(crate) const RECENT_FLUSHES: u64 = 1 << CODE_BITS;
/// Entries that can be recent.
pub(crate) const RECENT_MAX: usize = u16::MAX as usize;

/// Steps of the search in a list: most have fewer than sixteen.
const LIST_STEPS: u32 = 4;

const MERGED_AT: usize = 2;
const FIRSTS_AT: usize = 3;
const ENTRIES_AT: usize = FIRSTS_AT + (LISTS_MAX + 1).div_ceil(2);

/// Recent entries to be read.
#[derive(Clone, Copy)]
pub(crate) struct Recent<'a> {
    words: &'a [u32],
}

impl<'a> Recent<'a> {
    #[inline(always)]
    pub(crate) fn new(words: &'a [u32]) -> Self {
        Recent { words }
    }

    /// Whether words can be the recent entries of so many lists.
    pub(crate) fn is_one(words: &[u32], lists: usize) -> bool {
        words.len() > ENTRIES_AT && {
            let recent = Recent::new(words);
            (0..LISTS_MAX).all(|list| recent.first(list) <= recent.first(list + 1))
                && ENTRIES_AT + recent.len() == words.len()
                && recent.first(lists) == recent.len()
                && recent.origin().checked_add(RECENT_FLUSHES).is_some()
                && (0..lists).all(|list| recent.words(recent.list(list)).is_sorted())
        }
    }

    /// No entry's flush is below this.
    #[inline(always)]
    pub(crate) fn origin(&self) -> u64 {
        u64::from(self.words[0]) | u64::from(self.words[1]) << 32
    }

    /// The keys that are one entry with another key of their flush: their places are equal.
    pub(crate) fn merged(&self) -> u64 {
        u64::from(self.words[MERGED_AT])
    }

    #[inline(always)]
    fn first(&self, list: usize) -> usize {
        (self.words[FIRSTS_AT + list / 2] >> (16 * (list % 2)) & 0xffff) as usize
    }

    /// The first entry of each list, and the number of entries.
    #[inline(always)]
    fn firsts(&self) -> [usize; LISTS_MAX + 1] {
        std::array::from_fn(|list| self.first(list))
    }

    /// The number of entries.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.first(LISTS_MAX)
    }

    /// The entries of a list.
    #[inline(always)]
    pub(crate) fn list(&self, list: usize) -> Range<usize> {
        self.first(list)..self.first(list + 1)
    }

    #[inline(always)]
    pub(crate) fn words(&self, range: Range<usize>) -> &'a [u32] {
        &self.words[ENTRIES_AT + range.start..ENTRIES_AT + range.end]
    }

    /// Prefetches the tables, and the likely place of the entries of keys that lie so far across a
    /// list. Entries are taken as evenly spread over all lists.
    #[inline(always)]
    pub(crate) fn load_about<T: Trace>(words: &[u32], list: usize, across: usize, trace: &mut T) {
        ask_for_lines(words, 0, 1, trace);
        ask_for_lines(words, ENTRIES_AT, 1, trace);
        let entries = words.len().saturating_sub(ENTRIES_AT);
        let at = place_about(entries, list, across);
        let line = LINE_BYTES / size_of::<u32>();
        ask_for_lines(words, (ENTRIES_AT + at).wrapping_sub(line), 2, trace);
    }

    /// Of a list, or of a stretch of it, the entries from one place to another, both included.
    #[inline(always)]
    pub(crate) fn between(&self, list: Range<usize>, (low, high): (u32, u32)) -> Range<usize> {
        let from = self.first_from(list.clone(), low);
        from..self.first_from(from..list.end, high + 1)
    }

    /// Of a stretch of a list, the first entry that is not below a place.
    #[inline(always)]
    fn first_from(&self, entries: Range<usize>, place: u32) -> usize {
        let is_below = |entry: usize| Self::place_of(self.words[ENTRIES_AT + entry]) < place;
        first_not::<LIST_STEPS>(entries.start, entries.end, is_below)
    }

    /// Whether an entry's flush, less the origin, is a bit of `ages`.
    pub(crate) fn has_any(&self, ages: u64) -> bool {
        ages != 0
            && self.words(0..self.len()).iter().any(|&word| ages >> Self::age_of(word) & 1 == 1)
    }

    /// Adds the entries of each bucket, counted over all lists.
    pub(crate) fn count_buckets(&self, counts: &mut [u32]) {
        for (list, counts) in counts.chunks_mut(BUCKETS).enumerate() {
            for &word in self.words(self.list(list)) {
                counts[(Self::place_of(word) >> FRACTION_BITS) as usize] += 1;
            }
        }
    }

    /// The place of an entry.
    #[inline(always)]
    pub(crate) fn place_of(word: u32) -> u32 {
        word >> CODE_BITS
    }

    /// An entry's flush number, less the origin.
    #[inline(always)]
    pub(crate) fn age_of(word: u32) -> u32 {
        word & ((1 << CODE_BITS) - 1)
    }

    #[inline(always)]
    pub(crate) fn code_of(&self, word: u32) -> Span {
        Span::of_flush(FlushNumber(self.origin() + u64::from(Self::age_of(word))))
    }

    /// The code of a list's entries from one place to another, both included, until
    /// `visit` has enough.
    #[inline(always)]
    pub(crate) fn visit<T: Trace>(
        &self,
        list: usize,
        (low, high): (u32, u32),
        trace: &mut T,
        mut visit: impl FnMut(Span) -> bool,
    ) {
        let start = self.words.as_ptr() as usize;
        trace.touch(start, 4 * FIRSTS_AT);
        trace.touch(start + 4 * FIRSTS_AT + 2 * list, 4);
        let list = self.list(list);
        let from = self.first_from(list.clone(), low);
        trace.touch(start + 4 * (ENTRIES_AT + from), 4);
        for &word in self.words(from..list.end) {
            if Self::place_of(word) > high || !visit(self.code_of(word)) {
                return;
            }
        }
    }
}

/// Writes recent entries; keeps its buffer.
#[derive(Default)]
pub(crate) struct RecentWriter {
    words: Vec<u32>,
}

impl RecentWriter {
    /// The recent entries with one of `flush` at each of `places` (list and place, sorted).
    /// Requires: a flush of less than [`RECENT_FLUSHES`] above the origin, and no more than
    /// [`RECENT_MAX`] entries.
    pub(crate) fn add(
        &mut self,
        old: Option<&Recent<'_>>,
        places: &[u32],
        flush: FlushNumber,
    ) -> Arc<[u32]> {
        let origin = old.map_or(flush.0, Recent::origin);
        let age = (flush.0 - origin) as u32;
        let (known, merged) = old.map_or((0, 0), |old| (old.len(), old.merged()));
        let old_words = old.map_or(&[][..], |old| old.words(0..known));
        let old_firsts = old.map_or([0; LISTS_MAX + 1], Recent::firsts);
        self.words.resize(ENTRIES_AT + known + places.len(), 0);
        let out = &mut self.words[ENTRIES_AT..];
        let mut firsts = [0; LISTS_MAX + 1];
        let (mut list, mut at, mut len) = (0, 0, 0);
        for &place in places {
            let own = (place >> PLACE_BITS) as usize;
            if list < own {
                // The rest of its list, and lists without a new entry.
                let (end, more) = (old_firsts[own], len - at);
                out[len..end + more].copy_from_slice(&old_words[at..end]);
                (list + 1..=own).for_each(|list| firsts[list] = old_firsts[list] + more);
                (list, at, len) = (own, end, end + more);
            }
            // What is above the place falls out.
            let word = place << CODE_BITS | age;
            let rest = &old_words[at..old_firsts[own + 1]];
            let mut below = 0;
            for (target, &old) in out[len..].iter_mut().zip(rest) {
                if old >= word {
                    break;
                }
                *target = old;
                below += 1;
            }
            (at, len) = (at + below, len + below);
            // What is in a list twice is taken once.
            let is_last = len > firsts[own] && out[len - 1] == word;
            if !is_last && rest.get(below) != Some(&word) {
                out[len] = word;
                len += 1;
            }
        }
        let more = len - at;
        out[len..known + more].copy_from_slice(&old_words[at..]);
        (list + 1..=LISTS_MAX).for_each(|list| firsts[list] = old_firsts[list] + more);
        self.words.truncate(ENTRIES_AT + known + more);
        self.seal(origin, merged + (places.len() - more) as u64, &firsts)
    }

    /// Of some recent entries those whose bit in `ages` is set. None: there are none.
    pub(crate) fn keep(&mut self, old: &Recent<'_>, ages: u64, merged: u64) -> Option<Arc<[u32]>> {
        let least = ages.trailing_zeros();
        self.words.clear();
        self.words.resize(ENTRIES_AT, 0);
        let mut firsts = [0; LISTS_MAX + 1];
        for list in 0..LISTS_MAX {
            let words = old.words(old.list(list)).iter();
            let kept = words.filter(|&&word| ages >> Recent::age_of(word) & 1 == 1);
            self.words.extend(kept.map(|word| word - least));
            firsts[list + 1] = self.words.len() - ENTRIES_AT;
        }
        let is_any = self.words.len() > ENTRIES_AT;
        is_any.then(|| self.seal(old.origin() + u64::from(least), merged, &firsts))
    }

    fn seal(&mut self, origin: u64, merged: u64, firsts: &[usize; LISTS_MAX + 1]) -> Arc<[u32]> {
        (self.words[0], self.words[1]) = (origin as u32, (origin >> 32) as u32);
        self.words[MERGED_AT] = u32::try_from(merged).unwrap_or(u32::MAX);
        let words = &mut self.words[FIRSTS_AT..ENTRIES_AT];
        for (word, pair) in words.iter_mut().zip(firsts.chunks(2)) {
            *word = (pair[0] | pair.get(1).map_or(0, |second| second << 16)) as u32;
        }
        Arc::from(self.words.as_slice())
    }
}
