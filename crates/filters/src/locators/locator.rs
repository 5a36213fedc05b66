//! The family of filters that know in which run each key is now: one of them, by its kind.
//! ```text
//! kind + plan -> AnyLocatedBuilder -- oldest run's keys --> AnyLocated -- moves --> AnyLocated
//! ```

use crate::base::filter::Trace;
use crate::base::query::Query;
use crate::locators::chucky::{Chucky, ChuckyBuilder, ChuckyPlain, ChuckyPlainBuilder};
use crate::locators::located::{Located, LocatedBuilder, LocatedSize, RunSlot, SlotSet, TreePlan};
use crate::locators::remix::{Remix, RemixBuilder, SortedRemix, SortedRemixBuilder};

/// Which of the filters that know in which run each key is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LocatedKind {
    /// `chucky`: a cuckoo filter with a short code for the runs of each bucket's keys; points
    /// alone.
    Chucky,
    /// `chucky-plain`: the same with numbers of runs as they are.
    ChuckyPlain,
    /// `remix`: segments of the key space, each with the set of runs that have keys there.
    Remix,
    /// `remix-sorted`: the same with the run of each entry, in key order.
    RemixSorted,
}

impl LocatedKind {
    /// Every kind there is.
    pub const ALL: [LocatedKind; 4] = [
        LocatedKind::Chucky,
        LocatedKind::ChuckyPlain,
        LocatedKind::Remix,
        LocatedKind::RemixSorted,
    ];

    /// The name that people write.
    pub fn name(self) -> &'static str {
        match self {
            LocatedKind::Chucky => "chucky",
            LocatedKind::ChuckyPlain => "chucky-plain",
            LocatedKind::Remix => "remix",
            LocatedKind::RemixSorted => "remix-sorted",
        }
    }

    /// Whether it can answer for ranges of keys.
    pub fn knows_ranges(self) -> bool {
        match self {
            LocatedKind::Chucky | LocatedKind::ChuckyPlain => false,
            LocatedKind::Remix | LocatedKind::RemixSorted => true,
        }
    }

    /// The hash from which alone it can be told of a key; None: it needs the key itself.
    pub fn key_hash(self) -> Option<fn(&[u8]) -> u64> {
        match self {
            LocatedKind::Chucky => Some(Chucky::key_hash),
            LocatedKind::ChuckyPlain => Some(ChuckyPlain::key_hash),
            LocatedKind::Remix | LocatedKind::RemixSorted => None,
        }
    }
}

macro_rules! of_any {
    ($any:ident, $it:expr, $filter:ident => $does:expr) => {
        match $it {
            $any::Chucky($filter) => $does,
            $any::ChuckyPlain($filter) => $does,
            $any::Remix($filter) => $does,
            $any::RemixSorted($filter) => $does,
        }
    };
}

/// A filter of any of these kinds.
#[derive(Clone)]
pub enum AnyLocated {
    /// See [`LocatedKind::Chucky`].
    Chucky(Chucky),
    /// See [`LocatedKind::ChuckyPlain`].
    ChuckyPlain(ChuckyPlain),
    /// See [`LocatedKind::Remix`].
    Remix(Remix),
    /// See [`LocatedKind::RemixSorted`].
    RemixSorted(SortedRemix),
}

impl AnyLocated {
    /// Which kind it is.
    pub fn kind(&self) -> LocatedKind {
        match self {
            AnyLocated::Chucky(_) => LocatedKind::Chucky,
            AnyLocated::ChuckyPlain(_) => LocatedKind::ChuckyPlain,
            AnyLocated::Remix(_) => LocatedKind::Remix,
            AnyLocated::RemixSorted(_) => LocatedKind::RemixSorted,
        }
    }

    /// The view of all entries in key order, of the kind that has one.
    pub fn sorted_view(&self) -> Option<&SortedRemix> {
        match self {
            AnyLocated::RemixSorted(view) => Some(view),
            AnyLocated::Chucky(_) | AnyLocated::ChuckyPlain(_) | AnyLocated::Remix(_) => None,
        }
    }

    /// As [`Located::note`], for a key by the hash that [`LocatedKind::key_hash`] makes of it.
    /// Requires: the kind has one.
    pub fn note_hash(&mut self, hash: u64, from: Option<RunSlot>, to: Option<RunSlot>) {
        match self {
            AnyLocated::Chucky(filter) => filter.note_hash(hash, from, to),
            AnyLocated::ChuckyPlain(filter) => filter.note_hash(hash, from, to),
            AnyLocated::Remix(_) | AnyLocated::RemixSorted(_) => {
                unreachable!("a filter that knows keys alone")
            }
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

    #[inline]
    fn candidates<T: Trace>(&self, query: &Query<'_>, slots: &mut SlotSet, trace: &mut T) {
        of_any!(AnyLocated, self, filter => filter.candidates(query, slots, trace));
    }

    fn lower_bound(&self, slot: RunSlot, from: &[u8]) -> Option<Vec<u8>> {
        of_any!(AnyLocated, self, filter => filter.lower_bound(slot, from))
    }

    fn upper_bound(&self, slot: RunSlot, before: &[u8]) -> Option<Vec<u8>> {
        of_any!(AnyLocated, self, filter => filter.upper_bound(slot, before))
    }

    fn size(&self) -> LocatedSize {
        of_any!(AnyLocated, self, filter => filter.size())
    }
}

/// A builder of any of these kinds.
pub enum AnyLocatedBuilder {
    /// See [`LocatedKind::Chucky`].
    Chucky(ChuckyBuilder),
    /// See [`LocatedKind::ChuckyPlain`].
    ChuckyPlain(ChuckyPlainBuilder),
    /// See [`LocatedKind::Remix`].
    Remix(RemixBuilder),
    /// See [`LocatedKind::RemixSorted`].
    RemixSorted(SortedRemixBuilder),
}

impl AnyLocatedBuilder {
    /// Requires: a plan of at most 256 slots. The keys go to its last slot.
    pub fn new(kind: LocatedKind, plan: &TreePlan) -> Self {
        match kind {
            LocatedKind::Chucky => AnyLocatedBuilder::Chucky(LocatedBuilder::new(plan)),
            LocatedKind::ChuckyPlain => AnyLocatedBuilder::ChuckyPlain(LocatedBuilder::new(plan)),
            LocatedKind::Remix => AnyLocatedBuilder::Remix(LocatedBuilder::new(plan)),
            LocatedKind::RemixSorted => AnyLocatedBuilder::RemixSorted(LocatedBuilder::new(plan)),
        }
    }

    /// The next key. Requires: it is greater than the one before.
    pub fn push(&mut self, key: &[u8]) {
        of_any!(AnyLocatedBuilder, self, builder => LocatedBuilder::push(builder, key));
    }

    /// As `push`, by the hash that [`LocatedKind::key_hash`] makes of a key; in any order.
    /// Requires: the kind has one.
    pub fn push_hash(&mut self, hash: u64) {
        match self {
            AnyLocatedBuilder::Chucky(builder) => builder.push_hash(hash),
            AnyLocatedBuilder::ChuckyPlain(builder) => builder.push_hash(hash),
            AnyLocatedBuilder::Remix(_) | AnyLocatedBuilder::RemixSorted(_) => {
                unreachable!("a filter that knows keys alone")
            }
        }
    }

    /// The filter.
    pub fn finish(self) -> AnyLocated {
        match self {
            AnyLocatedBuilder::Chucky(it) => AnyLocated::Chucky(it.finish()),
            AnyLocatedBuilder::ChuckyPlain(it) => AnyLocated::ChuckyPlain(it.finish()),
            AnyLocatedBuilder::Remix(it) => AnyLocated::Remix(LocatedBuilder::finish(it)),
            AnyLocatedBuilder::RemixSorted(it) => {
                AnyLocated::RemixSorted(LocatedBuilder::finish(it))
            }
        }
    }
}
