//! The parts of a global filter. Each answers for the keys of one partition of the last level.
//! ```text
//! parts     [ "" .. d )    [ d .. p )    [ p .. )        a query across several is one probe
//! flush     new root                     new root         only where the flush has keys
//! merge                    rebuilt      a key range of the last level, perhaps cut into several
//! ```
//! Invariants: the first part begins at the first key, and each part ends where the next one
//! begins. These bounds are the layout's cuts. A part has no key outside of its range, and never
//! changes. A change of the list names the part that the new one replaces, so a change prepared for
//! one version can be checked against another.

use std::ops::Range;

use trommel_filters::{
    Codes, Cursor as PartCursor, FlushNumber, GrfOptions, KeyList, KeyRange, Part, PartSize, Query,
    Span, Trace, Untraced,
};

use crate::entries::key_bounds::KeyBounds;
use crate::entries::keys::first_not;
use crate::error::Result;
use crate::files::distinct_keys::Keys;
use crate::files::run::Run;
use crate::guard::base_ages::BaseAges;
use crate::sync::Arc;

/// The number of keys that are asked for together.
const GROUP: usize = 16;

/// A part and its lower bound.
#[derive(Clone)]
struct PlacedPart {
    lower: Arc<[u8]>,
    part: Arc<Part>,
}

/// The parts, in key order.
#[derive(Clone)]
pub(crate) struct Parts {
    places: Arc<[PlacedPart]>,
    /// The ages that entries of their bases may have.
    pub(crate) ages: BaseAges,
}

/// A new part, and the part that it replaces.
pub(crate) struct PartChange {
    lower: Arc<[u8]>,
    old: Arc<Part>,
    new: Arc<Part>,
}

impl Parts {
    /// Makes empty parts that begin at the first key and at each of `cuts`.
    pub(crate) fn empty(options: &GrfOptions, cuts: &[Vec<u8>]) -> Self {
        let part = Arc::new(Part::empty(options));
        let place = |lower: &[u8]| PlacedPart { lower: lower.into(), part: Arc::clone(&part) };
        let lowers = std::iter::once(&[][..]).chain(cuts.iter().map(Vec::as_slice));
        let ages = BaseAges::known_from(FlushNumber(0));
        Parts { places: lowers.map(place).collect(), ages }
    }

    /// Makes parts that contain exactly the flushes below `next`. Requires: the first part begins
    /// at the first key, and the lower bounds ascend.
    pub(crate) fn of(parts: Vec<(Vec<u8>, Part)>, next: FlushNumber) -> Self {
        assert!(
            parts.first().is_some_and(|(lower, _)| lower.is_empty()),
            "a part for the first key"
        );
        let places = parts.into_iter().map(PlacedPart::of).collect();
        Parts { places, ages: BaseAges::known_from(next) }
    }

    /// Returns the options of all parts. Only the bits may differ, if parts share a memory budget.
    pub(crate) fn options(&self) -> &GrfOptions {
        self.places[0].part.options()
    }

    /// Returns the lower bound of each part, and the part, in key order.
    pub(crate) fn each(&self) -> impl ExactSizeIterator<Item = (&[u8], &Part)> {
        self.places.iter().map(|place| (&*place.lower, &*place.part))
    }

    /// Returns the least and the most bits per key that any part was built with.
    pub(crate) fn least_and_most_bits(&self) -> (f64, f64) {
        let bits = self.each().map(|(_, part)| part.options().bits_per_key);
        bits.fold((f64::MAX, 0.0), |(least, most), bits| (least.min(bits), most.max(bits)))
    }

    /// Returns the size of the part that covers a key.
    pub(crate) fn size_at(&self, key: &[u8]) -> PartSize {
        self.places[self.place_of(key)].part.size()
    }

    /// Returns the part with this lower bound, and its range. None: no part begins there.
    pub(crate) fn at(&self, lower: &[u8]) -> Option<(KeyBounds, &Arc<Part>)> {
        let at = self.place_of(lower);
        let place = &self.places[at];
        (*place.lower == *lower).then(|| (self.bounds(at), &place.part))
    }

    /// Returns the parts whose ranges overlap these bounds, with their ranges.
    pub(crate) fn within<'a>(
        &'a self,
        bounds: &'a KeyBounds,
    ) -> impl Iterator<Item = (KeyBounds, &'a Arc<Part>)> {
        let after = self.places.partition_point(|place| bounds.ends_after(&place.lower));
        let first = self.place_of(&bounds.from);
        (first..after.max(first + 1)).map(|at| (self.bounds(at), &self.places[at].part))
    }

    /// Returns the parts that cover some key of the range.
    pub(crate) fn overlapping<'a>(
        &'a self,
        range: &'a KeyRange<'_>,
    ) -> impl Iterator<Item = &'a Part> {
        let places = self.places[self.place_of(range.lower())..].iter();
        let begins = |lower: &[u8]| range.upper().is_none_or(|upper| lower <= upper);
        places.take_while(move |place| begins(&place.lower)).map(|place| &*place.part)
    }

    pub(crate) fn collect<T: Trace>(&self, query: &Query<'_>, codes: &mut Codes, trace: &mut T) {
        if let [only] = &self.places[..] {
            return only.part.candidates_traced(query, codes, trace);
        }
        let range = query.range();
        self.overlapping(&range).for_each(|part| part.candidates_traced(query, codes, trace));
    }

    /// Visits the codes of each key, in order.
    pub(crate) fn collect_many(&self, keys: &[&[u8]], mut visit: impl FnMut(usize, &Codes)) {
        if let [only] = &self.places[..] {
            return only.part.candidates_many(keys, visit);
        }
        let mut queries = [(&*self.places[0].part, &[][..]); GROUP];
        for (group, keys) in keys.chunks(GROUP).enumerate() {
            for (query, key) in queries.iter_mut().zip(keys) {
                *query = (&*self.places[self.place_of(key)].part, *key);
            }
            Part::candidates_of_parts(&queries[..keys.len()], |place, codes| {
                visit(group * GROUP + place, codes);
            });
        }
    }

    /// Visits the codes of each range, in order.
    pub(crate) fn collect_many_ranges(
        &self,
        ranges: &[KeyRange<'_>],
        mut visit: impl FnMut(usize, &Codes),
    ) {
        // Consecutive ranges that each lie in one part are asked together.
        let queries: Vec<(Option<&Part>, KeyRange<'_>)> =
            ranges.iter().map(|range| (self.only_part_of(range), *range)).collect();
        let mut first = 0;
        for together in queries.chunk_by(|(one, _), (other, _)| one.is_some() && other.is_some()) {
            let within: Vec<_> =
                together.iter().filter_map(|(part, range)| Some(((*part)?, *range))).collect();
            Part::candidates_of_ranges(&within, |place, codes| visit(first + place, codes));
            if within.is_empty() {
                let mut codes = Codes::new();
                self.collect(&Query::Range(together[0].1), &mut codes, &mut Untraced);
                visit(first, &codes);
            }
            first += together.len();
        }
    }

    /// Returns the part that covers all keys of the range. None: several parts do.
    fn only_part_of(&self, range: &KeyRange<'_>) -> Option<&Part> {
        let at = self.place_of(range.lower());
        let ends_before =
            |next: &PlacedPart| range.upper().is_some_and(|upper| *upper < *next.lower);
        self.places.get(at + 1).is_none_or(ends_before).then(|| &*self.places[at].part)
    }

    /// Returns the total size of all parts.
    pub(crate) fn size(&self) -> PartSize {
        self.places.iter().map(|place| place.part.size()).fold(PartSize::default(), |sum, part| {
            PartSize {
                base_bytes: sum.base_bytes + part.base_bytes,
                overlay_bytes: sum.overlay_bytes + part.overlay_bytes,
                base_entries: sum.base_entries + part.base_entries,
                overlay_entries: sum.overlay_entries + part.overlay_entries,
            }
        })
    }

    /// Whether the parts begin at these cuts; the first part is left out.
    pub(crate) fn begin_at(&self, cuts: &[Vec<u8>]) -> bool {
        self.places[1..].iter().map(|place| &*place.lower).eq(cuts.iter().map(Vec::as_slice))
    }

    /// Changes the parts that have some of `keys`, which ascend. `change` gets a part with its
    /// range and its keys, and returns the new part.
    pub(crate) fn changes<'k>(
        &self,
        keys: &'k KeyList,
        mut change: impl FnMut(&KeyBounds, &Part, Keys<'k>) -> Part,
    ) -> Vec<PartChange> {
        let mut changes = Vec::new();
        let mut done = 0;
        while done < keys.len() {
            let at = self.place_of(keys.get(done));
            let bounds = self.bounds(at);
            let end = first_not(done..keys.len(), |place| bounds.ends_after(keys.get(place)));
            let new =
                change(&bounds, &self.places[at].part, Keys { list: keys, places: done..end });
            changes.push(self.change(at, new));
            done = end;
        }
        changes
    }

    /// Like `changes`, for the keys of a run. `change` gets the piece of the run within the part's
    /// range.
    pub(crate) fn changes_of_run(
        &self,
        run: &Arc<Run>,
        mut change: impl FnMut(&KeyBounds, &Part, &Arc<Run>) -> Result<Part>,
    ) -> Result<Vec<PartChange>> {
        let mut changes = Vec::new();
        for (at, place) in self.places.iter().enumerate() {
            let bounds = self.bounds(at);
            if let Some(within) = run.clip(&bounds)? {
                changes.push(self.change(at, change(&bounds, &place.part, &within)?));
            }
        }
        Ok(changes)
    }

    /// Changes the parts that have keys of the range.
    pub(crate) fn changes_within(
        &self,
        bounds: &KeyBounds,
        mut change: impl FnMut(&KeyBounds, &Part) -> Part,
    ) -> Vec<PartChange> {
        let after = self.places.partition_point(|place| bounds.ends_after(&place.lower));
        let places: Range<usize> = self.place_of(&bounds.from)..after;
        places.map(|at| self.change(at, change(&self.bounds(at), &self.places[at].part))).collect()
    }

    fn change(&self, at: usize, new: Part) -> PartChange {
        let PlacedPart { lower, part } = self.places[at].clone();
        PartChange { lower, old: part, new: Arc::new(new) }
    }

    /// Whether every changed part is still the one in place.
    pub(crate) fn all_fit(&self, changes: &[PartChange]) -> bool {
        changes.iter().all(|change| self.fits(change).is_some())
    }

    /// Returns these parts with those changes that still fit.
    #[must_use]
    pub(crate) fn with_fitting(&self, changes: &[PartChange]) -> Parts {
        let mut places = self.places.to_vec();
        for change in changes {
            if let Some(at) = self.fits(change) {
                places[at].part = Arc::clone(&change.new);
            }
        }
        Parts { places: places.into(), ages: self.ages.clone() }
    }

    fn fits(&self, change: &PartChange) -> Option<usize> {
        let at = self.places.binary_search_by(|place| (*place.lower).cmp(&change.lower)).ok()?;
        Arc::ptr_eq(&self.places[at].part, &change.old).then_some(at)
    }

    /// Replaces the parts in a range by `new`. The old parts contain all flushes below `until`.
    /// `keep` tells whether somebody keeps a part alive for its ages. Requires: parts begin at the
    /// range's ends, and the first of `new` at `from`.
    #[must_use]
    pub(crate) fn replaced(
        &self,
        bounds: &KeyBounds,
        new: Vec<(Vec<u8>, Part)>,
        until: FlushNumber,
        keep: impl Fn(&Arc<Part>) -> bool,
    ) -> Parts {
        let first = self.places.partition_point(|place| *place.lower < *bounds.from);
        let after = self.places.partition_point(|place| bounds.ends_after(&place.lower));
        let old = (first..after).map(|at| (self.bounds(at), Arc::clone(&self.places[at].part)));
        let ages = self.ages.replacing(old, until, keep);
        let mut places = self.places.to_vec();
        places.splice(first..after, new.into_iter().map(PlacedPart::of));
        Parts { places: places.into(), ages }
    }

    fn bounds(&self, at: usize) -> KeyBounds {
        let lower = |place: &PlacedPart| place.lower.to_vec();
        KeyBounds { from: lower(&self.places[at]), to: self.places.get(at + 1).map(lower) }
    }

    /// Returns the place of the part that covers a key.
    #[inline]
    pub(crate) fn place_of(&self, key: &[u8]) -> usize {
        self.places.partition_point(|place| *place.lower <= *key).saturating_sub(1)
    }
}

impl PlacedPart {
    fn of((lower, part): (Vec<u8>, Part)) -> PlacedPart {
        PlacedPart { lower: lower.into(), part: Arc::new(part) }
    }
}

/// A cursor over the entries of all parts that may have keys from some key on, in key order. With
/// `BACK`: up to some key, in reverse.
pub(crate) struct PartsCursor<const BACK: bool> {
    parts: Parts,
    at: usize,
    cursor: PartCursor<BACK>,
}

impl<const BACK: bool> PartsCursor<BACK> {
    /// `from` None: from the end where the walk starts.
    pub(crate) fn new(parts: &Parts, from: Option<&[u8]>) -> Self {
        let end = if BACK { parts.places.len() - 1 } else { 0 };
        let at = from.map_or(end, |from| parts.place_of(from));
        PartsCursor { parts: parts.clone(), at, cursor: parts.places[at].part.cursor_on(from) }
    }

    /// Returns the code of the next wanted entry, if one of its keys may be at `key` or before it
    /// on the way. `key` None: no bound.
    pub(crate) fn next_due(
        &mut self,
        key: Option<&[u8]>,
        wanted: impl Fn(Span) -> bool,
    ) -> Option<Span> {
        loop {
            if let Some(code) = self.cursor.next_due(key, &wanted) {
                return Some(code);
            }
            let at = if BACK { self.at.checked_sub(1)? } else { self.at + 1 };
            let next = self.parts.places.get(at)?;
            // This part has no more keys up to the next one; so go on only if `key` reaches that
            // part.
            let border = &self.parts.places[self.at.max(at)].lower;
            if key.is_some_and(|key| (*key < **border) != BACK) {
                return None;
            }
            self.cursor = next.part.cursor_on((!BACK).then_some(&next.lower));
            self.at = at;
        }
    }

    /// Suppresses a code for the rest of the current part.
    pub(crate) fn mute(&mut self, code: Span) {
        self.cursor.mute(code);
    }

    /// Returns the range of the part that the last code came from.
    pub(crate) fn bounds(&self) -> KeyBounds {
        self.parts.bounds(self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trommel_filters::PartBuilder;

    fn part(keys: &[&str], end: u64) -> Part {
        let mut builder = PartBuilder::new(&GrfOptions::default());
        keys.iter().for_each(|key| builder.push(key.as_bytes()));
        builder.finish(FlushNumber(end))
    }

    /// Makes three parts; the one in the middle has no key.
    fn parts() -> Parts {
        Parts::of(
            vec![
                (Vec::new(), part(&["a", "c"], 3)),
                (b"d".to_vec(), part(&[], 4)),
                (b"p".to_vec(), part(&["q", "z"], 5)),
            ],
            FlushNumber(5),
        )
    }

    fn keys(list: &[&str]) -> KeyList {
        let mut keys = KeyList::default();
        list.iter().for_each(|key| keys.push(key.as_bytes()));
        keys
    }

    fn codes(parts: &Parts, query: &Query<'_>) -> Vec<u64> {
        let mut codes = Codes::new();
        parts.collect(query, &mut codes, &mut trommel_filters::Untraced);
        codes.as_slice().iter().map(|code| code.hi().0).collect()
    }

    #[test]
    fn a_query_is_asked_where_its_keys_are() {
        let parts = parts();
        assert_eq!(codes(&parts, &Query::Point(b"a")), [3]);
        assert_eq!(codes(&parts, &Query::Point(b"e")), [0u64; 0]);
        let all = KeyRange::new(b"", None).expect("a range");
        assert_eq!(codes(&parts, &Query::Range(all)), [3, 5]);
        let low = KeyRange::new(b"b", Some(b"e")).expect("a range");
        assert_eq!(codes(&parts, &Query::Range(low)), [3]);
        assert_eq!(parts.size().base_entries, 4);
    }

    #[test]
    fn a_flush_changes_the_parts_that_it_has_keys_for() {
        let parts = parts();
        let shape = trommel_filters::Shape::default();
        let keys = keys(&["e", "r"]);
        let changes = parts.changes(&keys, |_, part, keys| {
            let mut inserter = part.inserter(FlushNumber(7), &shape);
            keys.give_to(&mut inserter);
            inserter.finish()
        });
        assert_eq!(changes.len(), 2);
        assert!(parts.all_fit(&changes));
        let after = parts.with_fitting(&changes);
        assert!(Arc::ptr_eq(&after.places[0].part, &parts.places[0].part));
        assert_eq!(codes(&after, &Query::Point(b"e")), [8]);
        assert!(!after.all_fit(&changes), "they were made for others");
        let bounds = KeyBounds { from: b"d".to_vec(), to: Some(b"p".to_vec()) };
        let cut = after.replaced(
            &bounds,
            vec![(b"d".to_vec(), part(&["e"], 8)), (b"h".to_vec(), part(&["i"], 9))],
            FlushNumber(9),
            |_| false,
        );
        assert!(cut.begin_at(&[b"d".to_vec(), b"h".to_vec(), b"p".to_vec()]));
        assert_eq!(codes(&cut, &Query::Point(b"i")), [9]);
        assert!(Arc::ptr_eq(&cut.places[3].part, &after.places[2].part));
    }

    #[test]
    fn cursors_go_from_part_to_part() {
        let parts = parts();
        let mut forward = PartsCursor::<false>::new(&parts, None);
        let mut ends = Vec::new();
        while let Some(code) = forward.next_due(Some(b"r"), |_| true) {
            ends.push((code.hi().0, forward.bounds().from));
        }
        ends.dedup();
        assert_eq!(ends, [(3, b"".to_vec()), (5, b"p".to_vec())]);
        assert_eq!(forward.next_due(None, |_| true).map(|code| code.hi().0), Some(5), "z is left");
        assert_eq!(forward.next_due(None, |_| true), None);
        let mut near = PartsCursor::<false>::new(&parts, Some(b""));
        assert_eq!(near.next_due(Some(b"b"), |_| true).map(|code| code.hi().0), Some(3));
        assert_eq!(near.next_due(Some(b"b"), |_| true), None, "c is behind");

        let mut backward = PartsCursor::<true>::new(&parts, None);
        let mut ends = Vec::new();
        while let Some(code) = backward.next_due(Some(b"b"), |_| true) {
            ends.push((code.hi().0, backward.bounds().from));
        }
        ends.dedup();
        assert_eq!(ends, [(5, b"p".to_vec()), (3, b"".to_vec())]);
        assert_eq!(
            PartsCursor::<true>::new(&parts, Some(b"o")).next_due(Some(b"d"), |_| true),
            None
        );
    }
}
