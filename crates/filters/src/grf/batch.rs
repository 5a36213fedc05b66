//! Answers many keys at once.
//! ```text
//! batch of 16 keys --> lists ~~> sites, slots ~~> places --> codes      ~~> what is needed next is asked for, for all
//!                        groups, tables     blocks, entries
//! ```
//! One probe waits for memory several times, each time for what the read before has told. Here a whole batch takes each
//! step before any takes the next. Reads that may wait stand together in short loops, apart from the work between them: a
//! core looks only some hundred instructions ahead, which is less than two keys' work. Invariant: a key's codes are those
//! of a lone probe.

use super::Part;
use super::base::{Base, Found, LINE_BYTES, Role, Site};
use super::overlay::Slot;
use crate::bits::simd::{Work, fastest};
use crate::filter::Untraced;
use crate::fingerprint::group::GROUP_ALIGN;
use crate::shape::Codes;
use std::hint::black_box;

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
    slot: Slot,
}

/// What is read once a key is located: from some place on, or all of it.
#[derive(Clone, Copy, Default)]
struct Needed<'a> {
    block: &'a [u8],
    entry: &'a [u8],
    young: &'a [u32],
}

impl Needed<'_> {
    /// Asks for it, without waiting.
    #[inline(always)]
    fn load(&self) {
        // A block of fingerprints is about a line, and seldom begins with one.
        black_box(self.block.first().copied());
        black_box(self.block.get(LINE_BYTES).copied());
        black_box(self.entry.first().copied());
        black_box(self.young.get(self.young.len() / 2).copied());
    }
}

impl Work for AnswerBatch<'_> {
    type Output = ();

    #[inline(always)]
    fn run(mut self) {
        let mut lists = [Found::default(); BATCH];
        let mut located = [const { None }; BATCH];
        let lists = &mut lists[..self.keys.len()];
        self.find_lists(lists);
        self.load_lists(lists);
        self.locate(lists, &mut located);
        self.collect(&located);
    }
}

impl<'a> AnswerBatch<'a> {
    #[inline(always)]
    fn find_lists(&self, lists: &mut [Found]) {
        let base = &self.part.base;
        self.keys.iter().for_each(|key| base.load_radix(key));
        for (list, key) in lists.iter_mut().zip(self.keys) {
            *list = base.list_of(key, &mut Untraced);
        }
    }

    /// Asks for the groups' headers and the overlay's tables.
    #[inline(always)]
    fn load_lists(&self, lists: &[Found]) {
        let Part { base, overlay, .. } = self.part;
        lists.iter().for_each(|found| base.load_header(found.list));
        lists.iter().for_each(|found| overlay.load_tables(found.list, base));
    }

    /// Finds blocks and slots, and asks for them.
    #[inline(always)]
    fn locate(&self, lists: &[Found], located: &mut [Option<Located<'a>>; BATCH]) {
        let Part { base, overlay, .. } = self.part;
        let mut needed: [Needed<'_>; BATCH] = [Needed::default(); BATCH];
        let asked = self.keys.iter().zip(lists).zip(located.iter_mut().zip(&mut needed));
        for ((key, &found), (located, needed)) in asked {
            let site = base.locate_in(found, key, &mut Untraced);
            let (slot, entry) = overlay.slot_and_entry(site.bucket_key(), base);
            *needed =
                Needed { block: site.block(), entry, young: overlay.young_words(site.list, base) };
            *located = Some(Located { site, slot });
        }
        needed[..lists.len()].iter().for_each(Needed::load);
    }

    #[inline(always)]
    fn collect(&mut self, located: &[Option<Located<'a>>; BATCH]) {
        let part = self.part;
        let located = located.iter().flatten().zip(self.keys);
        for (place, (Located { site, slot }, key)) in located.enumerate() {
            let mut spot = part.base.place(site, Role::Point, &mut Untraced);
            spot.slot = *slot;
            self.codes.clear();
            if part.base.may_hold(key, &spot) {
                part.base_code().into_iter().for_each(|code| self.codes.push(code));
            }
            part.overlay.collect_at(&part.base, &spot, self.codes);
            (self.visit)(place, self.codes);
        }
    }
}

impl Base {
    /// Asks for the memory where the search for a key's list begins, without waiting for it.
    #[inline(always)]
    pub(super) fn load_radix(&self, key: &[u8]) {
        self.directory.load_radix(key);
    }

    /// Asks for the memory of a list's group, without waiting for it: its header may lie on two lines.
    #[inline(always)]
    pub(super) fn load_header(&self, list: usize) {
        if !self.is_edge(list) {
            let at = self.directory.offset(list - 1) * GROUP_ALIGN;
            black_box(self.arena[at]);
            black_box(self.arena.get(at + LINE_BYTES).copied());
        }
    }
}
