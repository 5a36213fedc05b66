//! Kinds of run locators: filters that know each key's current run. Also such filters as trait
//! objects.
//! ```text
//! kind + plan -> AnyRunLocatorBuilder -- keys of the oldest run
//!     --> AnyRunLocator -- moves --> AnyRunLocator
//! ```
//! Anyone may add a kind, as with [`FilterKind`](crate::FilterKind).
//!
//! Invariants: two kinds are equal if their names are. The object gives the filter's answers.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;
use core::fmt;
use core::hash::{Hash, Hasher};

use crate::base::filter::Trace;
use crate::base::key_list::KeyList;
use crate::base::query::Query;
use crate::locators::run_locator::{
    Move, RunLocator, RunLocatorBuilder, RunLocatorSize, RunSlot, SlotSet, SortedView, TreePlan,
};

/// A kind of filter that knows each key's current run.
pub trait RunLocatorKind: Any + Send + Sync {
    /// The name in options.
    fn name(&self) -> &'static str;

    /// Whether the filter can answer ranges.
    fn knows_ranges(&self) -> bool;

    /// Returns an empty builder for a tree with this plan.
    fn builder(&self, plan: &TreePlan) -> Box<dyn AnyRunLocatorBuilder>;

    /// Whether the filter needs only the hash of each key for [`HashUse::Chucky`](crate::HashUse).
    /// Tables then keep these hashes, and building the filter reads no data block.
    fn takes_hashes(&self) -> bool {
        false
    }

    /// Whether its filters have a [`SortedView`]. Such a filter is built from all entries of all
    /// runs.
    fn has_sorted_view(&self) -> bool {
        false
    }
}

impl PartialEq for dyn RunLocatorKind {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for dyn RunLocatorKind {}

impl Hash for dyn RunLocatorKind {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl fmt::Debug for dyn RunLocatorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A filter of any kind that knows each key's current run. Every [`RunLocator`] implements it.
pub trait AnyRunLocator: Send + Sync {
    /// Returns a clone, which shares most of its memory with this filter.
    fn boxed_clone(&self) -> Box<dyn AnyRunLocator>;
    /// See [`RunLocator::note`].
    fn note(&mut self, key: &[u8], from: Option<RunSlot>, to: Option<RunSlot>);
    /// See [`RunLocator::note_all`].
    fn note_all(&mut self, keys: &KeyList, of: &dyn Fn(usize) -> Move);
    /// See [`RunLocator::note_hash`].
    fn note_hash(&mut self, hash: u64, from: Option<RunSlot>, to: Option<RunSlot>);
    /// See [`RunLocator::vacate`].
    fn vacate(&mut self, slot: RunSlot);
    /// See [`RunLocator::candidates`].
    fn candidates(&self, query: &Query<'_>, slots: &mut SlotSet);
    /// See [`RunLocator::candidates`].
    fn candidates_traced(&self, query: &Query<'_>, slots: &mut SlotSet, trace: &mut dyn Trace);
    /// See [`RunLocator::lower_bound`].
    fn lower_bound(&self, slot: RunSlot, from: &[u8]) -> Option<Vec<u8>>;
    /// See [`RunLocator::upper_bound`].
    fn upper_bound(&self, slot: RunSlot, before: &[u8]) -> Option<Vec<u8>>;
    /// See [`RunLocator::size`].
    fn size(&self) -> RunLocatorSize;
    /// See [`RunLocator::sorted_view`].
    fn sorted_view(&self) -> Option<Arc<dyn SortedView>>;
}

impl<F: RunLocator + 'static> AnyRunLocator for F {
    fn boxed_clone(&self) -> Box<dyn AnyRunLocator> {
        Box::new(self.clone())
    }

    fn note(&mut self, key: &[u8], from: Option<RunSlot>, to: Option<RunSlot>) {
        RunLocator::note(self, key, from, to);
    }

    fn note_all(&mut self, keys: &KeyList, of: &dyn Fn(usize) -> Move) {
        RunLocator::note_all(self, keys, of);
    }

    fn note_hash(&mut self, hash: u64, from: Option<RunSlot>, to: Option<RunSlot>) {
        RunLocator::note_hash(self, hash, from, to);
    }

    fn vacate(&mut self, slot: RunSlot) {
        RunLocator::vacate(self, slot);
    }

    fn candidates(&self, query: &Query<'_>, slots: &mut SlotSet) {
        RunLocator::candidates(self, query, slots, &mut crate::base::filter::Untraced);
    }

    fn candidates_traced(&self, query: &Query<'_>, slots: &mut SlotSet, mut trace: &mut dyn Trace) {
        RunLocator::candidates(self, query, slots, &mut trace);
    }

    fn lower_bound(&self, slot: RunSlot, from: &[u8]) -> Option<Vec<u8>> {
        RunLocator::lower_bound(self, slot, from)
    }

    fn upper_bound(&self, slot: RunSlot, before: &[u8]) -> Option<Vec<u8>> {
        RunLocator::upper_bound(self, slot, before)
    }

    fn size(&self) -> RunLocatorSize {
        RunLocator::size(self)
    }

    fn sorted_view(&self) -> Option<Arc<dyn SortedView>> {
        RunLocator::sorted_view(self)
    }
}

impl Clone for Box<dyn AnyRunLocator> {
    fn clone(&self) -> Self {
        (**self).boxed_clone()
    }
}

/// A builder of any kind. Every [`RunLocatorBuilder`] implements it.
pub trait AnyRunLocatorBuilder: Send {
    /// See [`RunLocatorBuilder::push`].
    fn push(&mut self, key: &[u8]);
    /// See [`RunLocatorBuilder::push_hash`].
    fn push_hash(&mut self, hash: u64);
    /// See [`RunLocatorBuilder::push_entry`].
    fn push_entry(&mut self, key: &[u8], slot: RunSlot);
    /// See [`RunLocatorBuilder::finish`].
    fn finish(self: Box<Self>) -> Box<dyn AnyRunLocator>;
}

impl<B: RunLocatorBuilder<Filter: 'static>> AnyRunLocatorBuilder for B {
    fn push(&mut self, key: &[u8]) {
        RunLocatorBuilder::push(self, key);
    }

    fn push_hash(&mut self, hash: u64) {
        RunLocatorBuilder::push_hash(self, hash);
    }

    fn push_entry(&mut self, key: &[u8], slot: RunSlot) {
        RunLocatorBuilder::push_entry(self, key, slot);
    }

    fn finish(self: Box<Self>) -> Box<dyn AnyRunLocator> {
        Box::new(RunLocatorBuilder::finish(*self))
    }
}
