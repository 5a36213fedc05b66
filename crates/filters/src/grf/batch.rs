//! Answers many keys at once.
//! ```text
//! batch of 16 keys --> lists ~~~~~~~~~~~~~~~~~~~> sites, slots ~~> places --> codes
//!                        groups, tables; blocks     blocks, entries
//!                        and entries, guessed       where the guess was wrong      ~~> is asked for, for all keys
//! ```
//! One probe waits for memory once or twice, each time for what the read before has told. Here a whole batch takes each
//! step before any takes the next, and what is read next is asked for without waiting: a core looks only some hundred
//! instructions ahead, which is less than two keys' work. Invariant: a key's codes are those of a lone probe.

use super::Part;
use super::base::{Found, Role, Site};
use super::list::ListEntries;
use super::overlay::Slot;
use crate::bits::simd::{Work, fastest};
use crate::filter::Untraced;
use crate::shape::Codes;

/// Keys of a batch: their reads are about as many as a core has under way.
const BATCH: usize = 16;

impl Part {
    /// Calls `visit` with the place and the codes of each key, in order: those that [`Part::candidates`] gives for it
    /// alone, at less time a key. No codes: no run holds anything for the key.
    pub fn candidates_many(&self, keys: &[&[u8]], mut visit: impl FnMut(usize, &Codes)) {
        let mut codes = Codes::new();
        for (batch, keys) in keys.chunks(BATCH).enumerate() {
            let mut visit = |place: usize, codes: &Codes| visit(batch * BATCH + place, codes);
            fastest(AnswerBatch { part: self, keys, codes: &mut codes, visit: &mut visit });
        }
    }
}

/// Finds the codes of at most [`BATCH`] keys.
struct AnswerBatch<'a> {
    part: &'a Part,
    keys: &'a [&'a [u8]],
    codes: &'a mut Codes,
    visit: &'a mut dyn FnMut(usize, &Codes),
}

/// Where a key is, as far as is known before its block was read.
struct Located<'a> {
    site: Site<'a>,
    entries: ListEntries<'a>,
    slot: Slot,
}

impl Work for AnswerBatch<'_> {
    type Output = ();

    #[inline(always)]
    fn run(mut self) {
        let mut lists = [Found::default(); BATCH];
        let mut located = [const { None }; BATCH];
        let lists = &mut lists[..self.keys.len()];
        self.find_lists(lists);
        self.locate(lists, &mut located);
        self.collect(&located);
    }
}

impl<'a> AnswerBatch<'a> {
    /// Finds lists, and asks for their groups and tables, and for where blocks and entries are likely to be.
    #[inline(always)]
    fn find_lists(&self, lists: &mut [Found]) {
        let Part { base, overlay, .. } = self.part;
        self.keys.iter().for_each(|key| base.directory.load_about(key, &mut Untraced));
        for (list, key) in lists.iter_mut().zip(self.keys) {
            *list = base.list_of(key, &mut Untraced);
            let across = base.load_about(*list, &mut Untraced);
            overlay.list(list.list, base).load_about(across, &mut Untraced);
        }
    }

    /// Finds blocks and slots, and asks for them where they are elsewhere.
    #[inline(always)]
    fn locate(&self, lists: &[Found], located: &mut [Option<Located<'a>>; BATCH]) {
        let Part { base, overlay, .. } = self.part;
        for ((key, &found), located) in self.keys.iter().zip(lists).zip(located) {
            let site = base.locate_in(found, key, &mut Untraced);
            site.load_block();
            let entries = overlay.list(site.list, base);
            let slot = entries.slot(site.bucket);
            *located = Some(Located { site, entries, slot });
        }
    }

    #[inline(always)]
    fn collect(&mut self, located: &[Option<Located<'a>>; BATCH]) {
        let part = self.part;
        let located = located.iter().flatten().zip(self.keys);
        for (place, (Located { site, entries, slot }, key)) in located.enumerate() {
            let spot = part.base.place(site, Role::Point, &mut Untraced);
            self.codes.clear();
            if part.base.may_hold(key, &spot) {
                part.base_code().into_iter().for_each(|code| self.codes.push(code));
            }
            let places = (spot.place(), spot.place());
            entries.collect((spot.bucket, *slot), places, self.codes, &mut Untraced);
            (self.visit)(place, self.codes);
        }
    }
}
