//! Remix: a view over all runs, split into segments. It knows for each segment which runs have keys
//! there.
//! ```text
//! keys of the oldest run   ant bee | cat cow dog | elk fox
//! newer runs' keys             bat      cot           eel
//! anchors                  a         c             e
//! bits, one per slot       110       101           110        (slot 0: the oldest run)
//! ```
//! The semi-sorted form (GRF paper, section 6.1) has these bits instead of a selector per key. The
//! place of a selector within its segment could be found only by reading the segment's keys. A
//! flush sets bits; a merge sets its output's bits and clears its inputs'. Segments stay until the
//! oldest run is rebuilt. [`SortedRemix`] has the selectors.
//!
//! Segments are as long as the memory budget requires. A new one begins as soon as the bits of the
//! keys so far pay for it.
//!
//! Invariant: a segment has the bit of every slot to which one of its keys was moved since that
//! slot was last vacated.

mod anchors;
mod ranks;
mod sets;
mod sorted;
mod walk;

use std::sync::Arc;

use anchors::{Anchors, AnchorsBuilder};
use sets::Sets;
use trommel_filters::{
    AnyRunLocatorBuilder, Query, RunLocator, RunLocatorBuilder, RunLocatorKind, RunLocatorSize,
    RunSlot, SlotSet, Trace, TreePlan,
};

pub use sorted::{SortedRemix, SortedRemixBuilder};

/// `remix`: segments of the key space, each with the set of runs that have keys there.
pub const REMIX: &dyn RunLocatorKind = &RemixKind;

/// `remix-sorted`: segments with the run of each entry, in key order.
pub const REMIX_SORTED: &dyn RunLocatorKind = &SortedKind;

struct RemixKind;

impl RunLocatorKind for RemixKind {
    fn name(&self) -> &'static str {
        "remix"
    }

    fn knows_ranges(&self) -> bool {
        true
    }

    fn builder(&self, plan: &TreePlan) -> Box<dyn AnyRunLocatorBuilder> {
        Box::new(RemixBuilder::new(plan))
    }
}

struct SortedKind;

impl RunLocatorKind for SortedKind {
    fn name(&self) -> &'static str {
        "remix-sorted"
    }

    fn knows_ranges(&self) -> bool {
        true
    }

    fn builder(&self, plan: &TreePlan) -> Box<dyn AnyRunLocatorBuilder> {
        Box::new(<SortedRemixBuilder as RunLocatorBuilder>::new(plan))
    }

    fn has_sorted_view(&self) -> bool {
        true
    }
}

/// The semi-sorted view.
#[derive(Clone)]
pub struct Remix {
    anchors: Arc<Anchors>,
    sets: Sets,
    slots: usize,
    entries: u64,
    room: u64,
}

impl Remix {
    /// The number of segments in the view, including those below and above all keys of the oldest
    /// run.
    pub fn segments(&self) -> usize {
        self.anchors.segments()
    }
}

impl RunLocator for Remix {
    fn note(&mut self, key: &[u8], from: Option<RunSlot>, to: Option<RunSlot>) {
        match (from, to) {
            (None, Some(_)) => self.entries += 1,
            (Some(_), None) => self.entries = self.entries.saturating_sub(1),
            _ => {}
        }
        // Other keys of the segment may stay in the slot that this one leaves, so `vacate` clears
        // bits.
        if let Some(to) = to {
            assert!(usize::from(to.0) < self.slots, "{to:?} of {} slots", self.slots);
            self.sets.insert(self.anchors.segment_of(key), to);
        }
    }

    fn vacate(&mut self, slot: RunSlot) {
        self.sets.remove(slot);
    }

    fn candidates<T: Trace>(&self, query: &Query<'_>, slots: &mut SlotSet, trace: &mut T) {
        match query {
            Query::Point(key) => self.sets.collect(self.anchors.find(key, trace), slots, trace),
            Query::Range(range) => {
                let first = self.anchors.find(range.lower(), trace);
                let last = match range.upper() {
                    Some(upper) => self.anchors.find(upper, trace),
                    None => self.segments() - 1,
                };
                self.sets.collect_range((first, last), slots, trace);
            }
        }
    }

    fn lower_bound(&self, slot: RunSlot, from: &[u8]) -> Option<Vec<u8>> {
        let segment = self.anchors.segment_of(from);
        let next = self.sets.first_with(slot, segment)?;
        let start = if next == segment { Vec::new() } else { self.anchors.start(next) };
        Some(start.max(from.to_vec()))
    }

    fn upper_bound(&self, slot: RunSlot, before: &[u8]) -> Option<Vec<u8>> {
        let segment = self.anchors.segment_of(before);
        let last = self.sets.last_with(slot, segment)?;
        Some(self.anchors.end_before(last, segment, before))
    }

    fn size(&self) -> RunLocatorSize {
        let anchors = self.anchors.allocations().into_iter();
        let bytes = size_of::<Anchors>() + anchors.chain(self.sets.allocations()).sum::<usize>();
        RunLocatorSize {
            bytes,
            overflow_bytes: 0,
            entries: self.entries,
            room: self.room.max(self.entries),
        }
    }
}

/// Splits the keys of the oldest run into segments.
pub struct RemixBuilder {
    anchors: AnchorsBuilder,
    plan: TreePlan,
    /// Bits per segment besides its anchor.
    segment_bits: f64,
    /// Bits that a key of the oldest run pays: it pays for the newer runs' keys, too.
    key_bits: f64,
    spent_bits: f64,
    keys: u64,
}

/// The share of a full tree that is in its oldest run.
fn oldest_share(plan: &TreePlan) -> f64 {
    let ratio = f64::from(plan.size_ratio.max(2));
    let (mut whole, mut level) = (0.0, 1.0);
    for _ in &plan.runs_of_levels {
        whole += level;
        level /= ratio;
    }
    let runs = plan.runs_of_levels.last().copied().unwrap_or(1).max(1);
    1.0 / whole.max(1.0) / f64::from(runs)
}

impl RunLocatorBuilder for RemixBuilder {
    type Filter = Remix;

    fn new(plan: &TreePlan) -> Self {
        assert!((1..=256).contains(&plan.slots()), "{} slots", plan.slots());
        RemixBuilder {
            anchors: AnchorsBuilder::default(),
            plan: plan.clone(),
            segment_bits: 8.0 * sets::segment_bytes(plan.slots()),
            key_bits: plan.bits_per_key / oldest_share(plan),
            spent_bits: 0.0,
            keys: 0,
        }
    }

    fn push(&mut self, key: &[u8]) {
        self.keys += 1;
        let (mut spent, earned) = (self.spent_bits, self.key_bits * self.keys as f64);
        let wants = |anchor_bytes: usize| {
            let after = spent + self.segment_bits + 8.0 * anchor_bytes as f64;
            let pays = after <= earned;
            spent = if pays { after } else { spent };
            pays
        };
        self.anchors.push(key, wants);
        self.spent_bits = spent;
    }

    fn finish(self) -> Remix {
        let anchors = self.anchors.finish();
        let (segments, slots) = (anchors.segments(), self.plan.slots());
        let mut sets = Sets::new(segments, slots);
        let oldest = RunSlot((slots - 1) as u8);
        (1..segments - 1).for_each(|segment| sets.insert(segment, oldest));
        Remix {
            anchors: Arc::new(anchors),
            sets,
            slots,
            entries: self.keys,
            room: self.plan.entries,
        }
    }
}
