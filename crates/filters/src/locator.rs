//! The family of filters that know in which run each key is now: one of them, by name.

use std::collections::BTreeMap;

use crate::filter::Trace;
use crate::located::{Located, LocatedBuilder, LocatedSize, RunSlot, SlotSet, TreePlan};
use crate::query::Query;

#[derive(Clone, Default)]
pub struct Exact(std::sync::Arc<BTreeMap<Vec<u8>, SlotSet>>, usize);

impl Located for Exact {
    fn note(&mut self, key: &[u8], from: Option<RunSlot>, to: Option<RunSlot>) {
        let map = std::sync::Arc::make_mut(&mut self.0);
        let set = map.entry(key.to_vec()).or_default();
        let mut next = SlotSet::default();
        set.iter().filter(|&s| Some(s) != from).for_each(|s| next.insert(s));
        if let Some(to) = to {
            next.insert(to);
        }
        *set = next;
        if next.is_empty() {
            map.remove(key);
        }
    }
    fn candidates<T: Trace>(&self, query: &Query<'_>, slots: &mut SlotSet, _trace: &mut T) {
        let range = query.range();
        for (key, set) in self.0.range(range.lower().to_vec()..) {
            if !range.covers(key) {
                break;
            }
            set.iter().for_each(|s| slots.insert(s));
        }
    }
    fn lower_bound(&self, slot: RunSlot, from: &[u8]) -> Option<Vec<u8>> {
        self.0
            .range(from.to_vec()..)
            .find(|(_, set)| set.contains(slot))
            .map(|(key, _)| key.clone())
    }
    fn size(&self) -> LocatedSize {
        LocatedSize { bytes: self.0.keys().map(|k| k.len() + 40).sum(), ..Default::default() }
    }
}

pub struct ExactBuilder(Exact, RunSlot);
impl LocatedBuilder for ExactBuilder {
    type Filter = Exact;
    fn new(plan: &TreePlan) -> Self {
        ExactBuilder(Exact::default(), RunSlot(plan.slots() as u8 - 1))
    }
    fn push(&mut self, key: &[u8]) {
        self.0.note(key, None, Some(self.1));
    }
    fn finish(self) -> Exact {
        self.0
    }
}

/// Which of these filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LocatedKind {
    /// `remix`: anchors of segments, and the runs that have keys in each.
    Remix,
}

impl LocatedKind {
    /// Every kind there is.
    pub const ALL: [LocatedKind; 1] = [LocatedKind::Remix];

    /// The name that people write.
    pub fn name(self) -> &'static str {
        match self {
            LocatedKind::Remix => "remix",
        }
    }

    /// Whether it can answer for ranges of keys.
    pub fn knows_ranges(self) -> bool {
        match self {
            LocatedKind::Remix => true,
        }
    }
}

/// A filter of any of these kinds.
#[derive(Clone)]
pub enum AnyLocated {
    /// See [`LocatedKind::Remix`].
    Remix(Exact),
}

/// A builder of any of these kinds.
pub enum AnyLocatedBuilder {
    /// See [`LocatedKind::Remix`].
    Remix(ExactBuilder),
}

macro_rules! of_any {
    ($any:ident, $it:expr, $filter:ident => $does:expr) => {
        match $it {
            $any::Remix($filter) => $does,
        }
    };
}

impl AnyLocatedBuilder {
    /// Requires: a plan of at most 256 slots.
    pub fn new(kind: LocatedKind, plan: &TreePlan) -> Self {
        match kind {
            LocatedKind::Remix => AnyLocatedBuilder::Remix(LocatedBuilder::new(plan)),
        }
    }

    /// The next key of the oldest run. Requires: it is greater than the one before.
    pub fn push(&mut self, key: &[u8]) {
        of_any!(AnyLocatedBuilder, self, builder => builder.push(key));
    }

    /// The filter.
    pub fn finish(self) -> AnyLocated {
        match self {
            AnyLocatedBuilder::Remix(builder) => AnyLocated::Remix(builder.finish()),
        }
    }
}

impl AnyLocated {
    /// Which kind it is.
    pub fn kind(&self) -> LocatedKind {
        match self {
            AnyLocated::Remix(_) => LocatedKind::Remix,
        }
    }
}

impl Located for AnyLocated {
    fn note(&mut self, key: &[u8], from: Option<RunSlot>, to: Option<RunSlot>) {
        of_any!(AnyLocated, self, filter => filter.note(key, from, to));
    }

    fn vacate(&mut self, slot: RunSlot) {
        of_any!(AnyLocated, self, filter => filter.vacate(slot));
    }

    fn candidates<T: Trace>(&self, query: &Query<'_>, slots: &mut SlotSet, trace: &mut T) {
        of_any!(AnyLocated, self, filter => filter.candidates(query, slots, trace));
    }

    fn lower_bound(&self, slot: RunSlot, from: &[u8]) -> Option<Vec<u8>> {
        of_any!(AnyLocated, self, filter => filter.lower_bound(slot, from))
    }

    fn size(&self) -> LocatedSize {
        of_any!(AnyLocated, self, filter => filter.size())
    }
}
