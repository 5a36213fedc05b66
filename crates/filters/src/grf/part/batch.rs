//! Answers many queries at once.
//! ```text
//! batch of 16 keys --> lists ~~~~~~~~~~~~~~~~~~~> sites, slots ~~> places --> codes of each key
//! or 8 ranges' ends      groups, tables; blocks     blocks, entries            or of each pair
//!                        and entries, estimated     if the estimate was wrong
//! ~~> prefetched, for all keys
//! ```
//! A single probe waits for memory once or twice, as each address depends on the previous read.
//! Here the whole batch takes each step before any key takes the next, and the next reads are
//! prefetched. A core's reorder window spans some hundred instructions, less than two keys' work.
//! Keys of different parts can share a batch.
//!
//! Invariant: the codes are those of single probes.

use crate::base::filter::Untraced;
use crate::base::query::KeyRange;
use crate::base::shape::Codes;
use crate::bits::simd::fastest;
use crate::grf::base::{FoundList, Role, Site, Spot};
use crate::grf::overlay::list::ListEntries;
use crate::grf::part::Part;
use crate::grf::sizes::Slots;
use crate::text::code::KeyCode;

/// Keys per batch: their reads are about as many as a core can have in flight.
const BATCH: usize = 16;
/// Ranges per batch: each has two ends.
const RANGES: usize = BATCH / 2;

/// A key, and the part that covers it.
type PartKey<'a> = (&'a Part, &'a [u8]);

impl Part {
    /// Calls `visit` with the index and the codes of each key, in order. The codes are those of
    /// [`Part::candidates`], at a lower cost per key. Without codes, no run holds anything for the
    /// key.
    pub fn candidates_many(&self, keys: &[&[u8]], mut visit: impl FnMut(usize, &Codes)) {
        let mut together = [(self, &[][..]); BATCH];
        for (batch, keys) in keys.chunks(BATCH).enumerate() {
            together.iter_mut().zip(keys).for_each(|((_, slot), key)| *slot = key);
            let mut visit = |place: usize, codes: &Codes| visit(batch * BATCH + place, codes);
            answer_keys(&together[..keys.len()], &mut visit);
        }
    }

    /// Same as [`Part::candidates_many`], with a part for each key.
    pub fn candidates_of_parts(keys: &[(&Part, &[u8])], mut visit: impl FnMut(usize, &Codes)) {
        for (batch, keys) in keys.chunks(BATCH).enumerate() {
            let mut visit = |place: usize, codes: &Codes| visit(batch * BATCH + place, codes);
            answer_keys(keys, &mut visit);
        }
    }

    /// Same as [`Part::candidates_of_parts`], for ranges.
    pub fn candidates_of_ranges(
        ranges: &[(&Part, KeyRange<'_>)],
        mut visit: impl FnMut(usize, &Codes),
    ) {
        for (batch, ranges) in ranges.chunks(RANGES).enumerate() {
            let mut visit = |place: usize, codes: &Codes| visit(batch * RANGES + place, codes);
            answer_ranges(ranges, &mut visit);
        }
    }
}

fn answer_keys(keys: &[PartKey<'_>], visit: &mut dyn FnMut(usize, &Codes)) {
    with_names(keys, &mut |names| {
        fastest(
            #[inline(always)]
            || answer_keys_now(names, &mut Codes::new(), visit),
        );
    });
}

/// Answers at most [`BATCH`] keys by their names in their parts: codes, where there is a model of
/// text.
#[inline(always)]
fn with_names(keys: &[PartKey<'_>], answer: &mut dyn FnMut(&[PartKey<'_>])) {
    if keys.iter().all(|(part, _)| part.base.text.is_none()) {
        return answer(keys);
    }
    let Some(&(first, _)) = keys.first() else { return };
    let mut codes: [KeyCode; BATCH] = core::array::from_fn(|_| KeyCode::new());
    let mut names = [(first, &[][..]); BATCH];
    for ((name, code), (part, key)) in names.iter_mut().zip(&mut codes).zip(keys) {
        *name = (part, part.base.name(key, code));
    }
    answer(&names[..keys.len()]);
}

/// What is known of a key before its block is read.
struct LocatedKey<'a> {
    site: Site<'a>,
    entries: ListEntries<'a>,
    slots: Slots,
}

/// Locates at most [`BATCH`] keys.
#[inline(always)]
fn locate_all<'a>(keys: &[PartKey<'a>]) -> [Option<LocatedKey<'a>>; BATCH] {
    let mut lists = [FoundList::default(); BATCH];
    let mut located = [const { None }; BATCH];
    find_lists(keys, &mut lists[..keys.len()]);
    locate(keys, &lists, &mut located);
    located
}

/// Finds the lists. Prefetches their groups and tables, and the estimated positions of blocks and
/// entries.
#[inline(always)]
fn find_lists(keys: &[PartKey<'_>], lists: &mut [FoundList]) {
    keys.iter().for_each(|(part, key)| part.base.directory.load_about(key, &mut Untraced));
    for (list, (part, key)) in lists.iter_mut().zip(keys) {
        let Part { base, overlay, .. } = part;
        *list = base.list_of(key, &mut Untraced);
        let across = base.load_about(*list, &mut Untraced);
        overlay.list(list.list, base).load_about(across, &mut Untraced);
    }
}

/// Finds blocks and slots. Prefetches them, in case the estimates were wrong.
#[inline(always)]
fn locate<'a>(
    keys: &[PartKey<'a>],
    lists: &[FoundList; BATCH],
    located: &mut [Option<LocatedKey<'a>>; BATCH],
) {
    for ((&(part, key), &found), located) in keys.iter().zip(lists).zip(located) {
        let Part { base, overlay, .. } = part;
        let site = base.locate_in(found, key, &mut Untraced);
        site.load_block();
        let entries = overlay.list(site.list, base);
        let slots = entries.slots(site.bucket);
        *located = Some(LocatedKey { site, entries, slots });
    }
}

/// Finds the codes of at most [`BATCH`] keys.
#[inline(always)]
fn answer_keys_now(keys: &[PartKey<'_>], codes: &mut Codes, visit: &mut dyn FnMut(usize, &Codes)) {
    let located = locate_all(keys);
    let located = located.iter().flatten().zip(keys);
    for (place, (LocatedKey { site, entries, slots }, (part, key))) in located.enumerate() {
        let spot = part.base.place(site, Role::Point, &mut Untraced);
        codes.clear();
        if part.base.may_hold(key, &spot) {
            part.base_code().into_iter().for_each(|code| codes.push(code));
        }
        let places = (spot.place(), spot.place());
        entries.collect((spot.bucket, slots), places, codes, &mut Untraced);
        visit(place, codes);
    }
}

/// Finds the codes of at most [`RANGES`] ranges.
fn answer_ranges(ranges: &[(&Part, KeyRange<'_>)], visit: &mut dyn FnMut(usize, &Codes)) {
    let Some((first, _)) = ranges.first() else { return };
    // First the lower ends, then the upper ones of ranges that are bounded.
    let mut ends = [(*first, &[][..]); BATCH];
    let mut count = 0;
    let lowers = ranges.iter().map(|(part, range)| (*part, range.lower()));
    let uppers = ranges.iter().filter_map(|(part, range)| Some((*part, range.upper()?)));
    for (end, key) in ends.iter_mut().zip(lowers.chain(uppers)) {
        *end = key;
        count += 1;
    }
    with_names(&ends[..count], &mut |ends| {
        fastest(
            #[inline(always)]
            || answer_between(ranges, ends, &mut Codes::new(), visit),
        );
    });
}

/// Same as [`answer_ranges`], given the names of all ends.
#[inline(always)]
fn answer_between(
    ranges: &[(&Part, KeyRange<'_>)],
    ends: &[PartKey<'_>],
    codes: &mut Codes,
    visit: &mut dyn FnMut(usize, &Codes),
) {
    let located = locate_all(ends);
    let mut located = located.iter().flatten();
    let mut uppers = located.clone().skip(ranges.len());
    for (place, (part, range)) in ranges.iter().enumerate() {
        codes.clear();
        if let Some(low) = located.next() {
            let high = range.upper().and_then(|_| uppers.next());
            part.collect_between(range, low, high, codes);
        }
        visit(place, codes);
    }
}

impl Part {
    /// Adds the codes of all entries between two ends, or from the first one on.
    #[inline(always)]
    fn collect_between(
        &self,
        range: &KeyRange<'_>,
        low: &LocatedKey<'_>,
        high: Option<&LocatedKey<'_>>,
        codes: &mut Codes,
    ) {
        let spot = |end: &LocatedKey<'_>, role: Role<'_>| {
            let mut spot: Spot = self.base.place(&end.site, role, &mut Untraced);
            spot.slots = end.slots;
            spot
        };
        let low = spot(low, Role::Low);
        let high = high.map(|high| spot(high, Role::High(&low)));
        if self.base.may_overlap(&low, high.as_ref()) && self.base.may_hold_in(range, &mut Untraced)
        {
            self.base_code().into_iter().for_each(|code| codes.push(code));
        }
        self.overlay.collect(&self.base, &low, high.as_ref(), codes, &mut Untraced);
    }
}
