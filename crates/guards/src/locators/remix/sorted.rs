//! Remix as published: a selector for every entry of all runs, in key order.
//! ```text
//! keys       ant | bat  bee  bee' cat | cot  cow ...  bee' is an older version of bee
//! selectors   3  |  1    0   +3    3  |  1    3       each entry's run; +: an older version
//! cursors        |  0, 0, 0, 1        |  1, 1, 0, 3   entries of each run before the segment
//! ```
//! Whoever has the runs can search a segment by reading the keys that [`SortedView::place`] names.
//! Walking over all runs with [`SortedView::walk`] compares no keys. The price: the place of a new
//! key's selector can be found only by reading the segment's keys. So a flush rebuilds the view
//! from the merged stream of old and new keys (GRF paper, section 3.2). Moves that are noted in the
//! meantime are kept as in the semi-sorted form: as bits next to the selectors.
//!
//! Invariant: an entry's selector has the same index in its segment as the entry; a cursor counts
//! the selectors before the segment.

use std::ops::Range;
use std::sync::Arc;

use trommel_filters::bits::packed::{packed, read};
use trommel_filters::bits::search::partition_point;
use trommel_filters::{
    Query, RunLocator, RunLocatorBuilder, RunLocatorSize, RunSlot, Selected, SlotSet, SortedView,
    SortedWalk, Trace, TreePlan,
};

use super::anchors::{ANCHOR_BYTES, Anchors, AnchorsBuilder};
use super::ranks::{Ranks, RanksBuilder, rank_bits};
use super::sets::Sets;
use super::walk::RemixWalk;

/// The useful range of entries per segment.
const SEGMENT_KEYS: std::ops::RangeInclusive<f64> = 4.0..=256.0;

/// What is fixed until the view is rebuilt.
pub(super) struct View {
    anchors: Anchors,
    pub(super) ranks: Ranks,
    selectors: Box<[u8]>,
    /// Bits of a slot; a selector has one more.
    slot_bits: usize,
    pub(super) slots: usize,
    room: u64,
}

/// The sorted view.
#[derive(Clone)]
pub struct SortedRemix {
    view: Arc<View>,
    /// Slots whose selectors are no longer valid.
    vacated: SlotSet,
    /// The moves noted since the view was built.
    noted: Option<Sets>,
    entries: u64,
}

impl SortedRemix {
    /// The number of segments. The first and the last, below and above all keys, have no entries.
    pub fn segments(&self) -> usize {
        self.view.anchors.segments()
    }

    /// Returns a key at or below all keys of a segment and above all keys of earlier segments. For
    /// the last segment, it is above all keys but the last.
    pub fn anchor(&self, segment: usize) -> Vec<u8> {
        self.view.anchors.start(segment)
    }

    /// Whether the view has no entries.
    pub fn is_empty(&self) -> bool {
        self.view.len() == 0
    }

    /// The number of a run's entries before a segment.
    pub fn cursor(&self, segment: usize, slot: RunSlot) -> u64 {
        self.view.ranks.of(segment, usize::from(slot.0))
    }

    /// Returns the selectors of a segment: the run of each entry, and whether it is an older
    /// version of the previous one.
    pub fn selectors(&self, segment: usize) -> impl Iterator<Item = (RunSlot, bool)> + '_ {
        self.view.entries(segment).map(|at| self.view.selector(at))
    }

    /// Whether selectors may name a slot.
    fn is_selected(&self, slot: RunSlot) -> bool {
        usize::from(slot.0) < self.view.slots && !self.vacated.contains(slot)
    }

    /// Returns all entries from the nth of a segment on, in key order.
    pub fn scan(&self, segment: usize, nth: usize) -> impl Iterator<Item = Selected> + '_ {
        let mut walk = RemixWalk::new(&self.view, segment, nth);
        std::iter::from_fn(move || walk.forward())
    }
}

impl View {
    /// The number of entries.
    pub(super) fn len(&self) -> u64 {
        self.ranks.total(self.anchors.segments())
    }

    /// Returns the index range of a segment's entries among all entries.
    pub(super) fn entries(&self, segment: usize) -> Range<u64> {
        self.ranks.total(segment)..self.ranks.total(segment + 1)
    }

    #[inline(always)]
    pub(super) fn selector(&self, at: u64) -> (RunSlot, bool) {
        let bits = self.slot_bits + 1;
        let selector = read(&self.selectors, at as usize * bits, bits);
        (RunSlot((selector >> 1) as u8), selector & 1 != 0)
    }

    /// Adds the runs of a segment's entries.
    fn collect<T: Trace>(&self, segment: usize, slots: &mut SlotSet, trace: &mut T) {
        let entries = self.entries(segment);
        self.ranks.touch_total(segment, trace);
        let bits = self.slot_bits + 1;
        let bytes = entries.start as usize * bits / 8..(entries.end as usize * bits).div_ceil(8);
        trace.touch_bytes(&self.selectors[bytes]);
        entries.for_each(|at| slots.insert(self.selector(at).0));
    }

    /// Adds the runs that have entries in the segments from `first` to `last`, both included.
    fn collect_range<T: Trace>(
        &self,
        first: usize,
        last: usize,
        slots: &mut SlotSet,
        trace: &mut T,
    ) {
        self.ranks.touch(first, trace);
        self.ranks.touch(last + 1, trace);
        for slot in 0..self.slots {
            if self.ranks.of(first, slot) < self.ranks.of(last + 1, slot) {
                slots.insert(RunSlot(slot as u8));
            }
        }
    }

    /// Returns the first segment at or after `from` with an entry of a run.
    fn first_with(&self, slot: RunSlot, from: usize) -> Option<usize> {
        let (slot, segments) = (usize::from(slot.0), self.anchors.segments());
        let before = self.ranks.of(from, slot);
        let has_none = |segment| self.ranks.of(segment + 1, slot) == before;
        let first = partition_point(from..segments, has_none);
        (first < segments).then_some(first)
    }

    /// Returns the last segment at or before `to` with an entry of a run.
    fn last_with(&self, slot: RunSlot, to: usize) -> Option<usize> {
        let slot = usize::from(slot.0);
        let all = self.ranks.of(to + 1, slot);
        if all == 0 {
            return None;
        }
        Some(partition_point(0..to, |segment| self.ranks.of(segment + 1, slot) < all))
    }
}

impl RunLocator for SortedRemix {
    fn note(&mut self, key: &[u8], from: Option<RunSlot>, to: Option<RunSlot>) {
        match (from, to) {
            (None, Some(_)) => self.entries += 1,
            (Some(_), None) => self.entries = self.entries.saturating_sub(1),
            _ => {}
        }
        if let Some(to) = to {
            assert!(usize::from(to.0) < self.view.slots, "{to:?} of {} slots", self.view.slots);
            let (segment, segments) = (self.seek(key), self.segments());
            let noted = self.noted.get_or_insert_with(|| Sets::new(segments, self.view.slots));
            noted.insert(segment, to);
        }
    }

    fn vacate(&mut self, slot: RunSlot) {
        self.vacated.insert(slot);
        self.noted.iter_mut().for_each(|noted| noted.remove(slot));
    }

    fn candidates<T: Trace>(&self, query: &Query<'_>, slots: &mut SlotSet, trace: &mut T) {
        let range = query.range();
        let first = self.view.anchors.find(range.lower(), trace);
        let last = match range.upper() {
            Some(upper) if upper == range.lower() => first,
            Some(upper) => self.view.anchors.find(upper, trace),
            None => self.segments() - 1,
        };
        let mut selected = SlotSet::default();
        if first == last {
            self.view.collect(first, &mut selected, trace);
        } else {
            self.view.collect_range(first, last, &mut selected, trace);
        }
        self.vacated.iter().for_each(|slot| selected.remove(slot));
        slots.insert_all(selected);
        if let Some(noted) = &self.noted {
            noted.collect_range((first, last), slots, trace);
        }
    }

    fn lower_bound(&self, slot: RunSlot, from: &[u8]) -> Option<Vec<u8>> {
        let segment = self.view.anchors.segment_of(from);
        let noted = self.noted.as_ref().and_then(|noted| noted.first_with(slot, segment));
        let selected = self.is_selected(slot).then(|| self.view.first_with(slot, segment));
        let next = noted.into_iter().chain(selected.flatten()).min()?;
        let start = if next == segment { Vec::new() } else { self.anchor(next) };
        Some(start.max(from.to_vec()))
    }

    fn upper_bound(&self, slot: RunSlot, before: &[u8]) -> Option<Vec<u8>> {
        let segment = self.view.anchors.segment_of(before);
        let noted = self.noted.as_ref().and_then(|noted| noted.last_with(slot, segment));
        let selected = self.is_selected(slot).then(|| self.view.last_with(slot, segment));
        let last = noted.into_iter().chain(selected.flatten()).max()?;
        Some(self.view.anchors.end_before(last, segment, before))
    }

    fn size(&self) -> RunLocatorSize {
        let view = &self.view;
        let anchors = view.anchors.allocations().into_iter();
        let noted = self.noted.iter().flat_map(Sets::allocations);
        let heap: usize = anchors.chain(view.ranks.allocations()).chain(noted).sum();
        let bytes = size_of::<View>() + heap + view.selectors.len();
        let room = view.room.max(self.entries);
        RunLocatorSize { bytes, overflow_bytes: 0, entries: self.entries, room }
    }

    fn sorted_view(&self) -> Option<Arc<dyn SortedView>> {
        Some(Arc::new(self.clone()))
    }
}

impl SortedView for SortedRemix {
    fn seek(&self, key: &[u8]) -> usize {
        self.view.anchors.segment_of(key)
    }

    fn segment_len(&self, segment: usize) -> usize {
        let entries = self.view.entries(segment);
        (entries.end - entries.start) as usize
    }

    fn place(&self, segment: usize, nth: usize) -> Option<Selected> {
        let (slot, is_older) = self.selectors(segment).nth(nth)?;
        let before = self.selectors(segment).take(nth).filter(|(other, _)| *other == slot).count();
        Some(Selected { slot, rank: self.cursor(segment, slot) + before as u64, is_older })
    }

    fn walk(&self, segment: usize, nth: usize) -> Box<dyn SortedWalk> {
        Box::new(RemixWalk::new(&self.view, segment, nth))
    }

    fn walk_from_end(&self) -> Box<dyn SortedWalk> {
        self.walk(self.segments(), 0)
    }
}

/// Builds the sorted view from one merged stream of all runs' entries.
pub struct SortedRemixBuilder {
    anchors: AnchorsBuilder,
    ranks: RanksBuilder,
    /// The slot of each entry, and whether it is an older version.
    selectors: Vec<(RunSlot, bool)>,
    slots: usize,
    segment_keys: usize,
    /// The number of entries in the last segment.
    len: usize,
    room: u64,
}

/// Bits of a slot number.
fn slot_bits(slots: usize) -> usize {
    (usize::BITS - (slots - 1).leading_zeros()) as usize
}

/// The number of entries per segment that uses up the plan's memory.
fn segment_keys(plan: &TreePlan) -> usize {
    let slots = plan.slots();
    let left = plan.bits_per_key - (slot_bits(slots) + 1) as f64;
    let segment_bits = (8 * ANCHOR_BYTES) as f64 + rank_bits(slots);
    let keys = if left > 0.0 { (segment_bits / left).ceil() } else { f64::INFINITY };
    keys.clamp(*SEGMENT_KEYS.start(), *SEGMENT_KEYS.end()) as usize
}

impl SortedRemixBuilder {
    /// A builder of segments with `segment_keys` entries. A segment has more only if a single key,
    /// or bit string, has more. Requires: a plan of at most 256 slots.
    pub fn with_segment_keys(plan: &TreePlan, segment_keys: usize) -> Self {
        let slots = plan.slots();
        assert!((1..=256).contains(&slots), "{slots} slots");
        SortedRemixBuilder {
            anchors: AnchorsBuilder::default(),
            ranks: RanksBuilder::new(slots),
            selectors: Vec::new(),
            slots,
            segment_keys: segment_keys.max(1),
            len: 0,
            room: plan.entries,
        }
    }

    /// Adds the next entry. Requires: its key is at or above the previous one; entries of one key
    /// come newest first.
    pub fn add(&mut self, key: &[u8], slot: RunSlot) {
        assert!(usize::from(slot.0) < self.slots, "{slot:?} of {} slots", self.slots);
        let is_older = self.anchors.last() == Some(key);
        let is_full = self.len >= self.segment_keys;
        if self.anchors.push(key, |_| is_full) {
            self.ranks.begin_segment();
            self.len = 0;
        }
        self.len += 1;
        self.ranks.count(usize::from(slot.0));
        self.selectors.push((slot, is_older));
    }
}

impl RunLocatorBuilder for SortedRemixBuilder {
    type Filter = SortedRemix;

    fn new(plan: &TreePlan) -> Self {
        Self::with_segment_keys(plan, segment_keys(plan))
    }

    fn push(&mut self, key: &[u8]) {
        self.add(key, RunSlot((self.slots - 1) as u8));
    }

    fn push_entry(&mut self, key: &[u8], slot: RunSlot) {
        self.add(key, slot);
    }

    fn finish(self) -> SortedRemix {
        let slot_bits = slot_bits(self.slots);
        let selector =
            |(slot, is_older): &(RunSlot, bool)| u64::from(slot.0) << 1 | u64::from(*is_older);
        let view = View {
            anchors: self.anchors.finish(),
            ranks: self.ranks.finish(),
            selectors: packed(self.selectors.iter().map(selector), slot_bits + 1),
            slot_bits,
            slots: self.slots,
            room: self.room,
        };
        SortedRemix {
            view: Arc::new(view),
            vacated: SlotSet::default(),
            noted: None,
            entries: self.selectors.len() as u64,
        }
    }
}
