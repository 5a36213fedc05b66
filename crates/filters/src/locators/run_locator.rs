//! Run locators: filters that know for each key which run it is in *now*, such as Chucky, its plain
//! form and Remix.
//! ```text
//! flush      key: nowhere -> slot of the new run
//! merge      key: slot of an input -> slot of the output, or nowhere if a newer entry replaced it;
//!            then each input's slot is vacated
//! query      key or range -> slots of the runs that may hold it
//! ```
//! A slot is a number that the tree gives to a run, and reuses when the run is merged away. Numbers
//! ascend from the newest level to the oldest. The caller maps slots to runs.
//!
//! Such a filter describes a single version of the tree, and a merge updates it before its result
//! becomes visible. So it is a value: a clone shares pages with the original until either changes
//! them. Each version keeps its own filter, and a merge works on a private clone. Answers stay
//! right for readers of older versions.
//!
//! Invariant: a slot is left out only if no key of the query was moved there and not away since.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::base::filter::Trace;
use crate::base::key_list::KeyList;
use crate::base::query::Query;

/// A run of the tree, by its slot. Newer levels have smaller slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunSlot(pub u8);

/// A set of slots of a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotSet([u64; 4]);

impl SlotSet {
    /// Adds a slot.
    #[inline]
    pub fn insert(&mut self, slot: RunSlot) {
        self.0[usize::from(slot.0 >> 6)] |= 1 << (slot.0 & 63);
    }

    /// Whether the set contains a slot.
    #[inline]
    pub fn contains(&self, slot: RunSlot) -> bool {
        self.0[usize::from(slot.0 >> 6)] >> (slot.0 & 63) & 1 != 0
    }

    /// Removes a slot.
    #[inline]
    pub fn remove(&mut self, slot: RunSlot) {
        self.0[usize::from(slot.0 >> 6)] &= !(1 << (slot.0 & 63));
    }

    /// Adds all slots of `other`.
    #[inline]
    pub fn insert_all(&mut self, other: SlotSet) {
        self.0.iter_mut().zip(other.0).for_each(|(word, more)| *word |= more);
    }

    /// Adds the slots whose bits are set, least significant bit first. Requires: at most 32 bytes.
    #[inline(always)]
    pub fn insert_bits(&mut self, bytes: &[u8]) {
        for (word, bytes) in self.0.iter_mut().zip(bytes.chunks(8)) {
            let more = match bytes.first_chunk() {
                Some(bytes) => u64::from_le_bytes(*bytes),
                None => bytes.iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte)),
            };
            *word |= more;
        }
    }

    /// Whether the set is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0 == [0; 4]
    }

    /// The number of slots.
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Returns the slots in ascending order: from the newest level to the oldest.
    pub fn iter(&self) -> impl Iterator<Item = RunSlot> + '_ {
        (0..=u8::MAX).map(RunSlot).filter(|&slot| self.contains(slot))
    }
}

/// The tree that a filter describes until it is rebuilt.
#[derive(Clone, Debug, PartialEq)]
pub struct TreePlan {
    /// The maximum number of runs of each level, newest level first. Slots are numbered in this
    /// order. At most 256 together, and at least one per level.
    pub runs_of_levels: Vec<u8>,
    /// How many of the newest level's runs (its last ones) exist only while merges lag behind.
    pub waiting_runs: u8,
    /// The size ratio T: each level holds this many times more than the one before.
    pub size_ratio: u32,
    /// Entries of the tree when it is full.
    pub entries: u64,
    /// Memory per entry in bits, metadata included.
    pub bits_per_key: f64,
}

impl TreePlan {
    /// The number of slots.
    pub fn slots(&self) -> usize {
        self.runs_of_levels.iter().map(|&runs| usize::from(runs)).sum()
    }

    /// Returns the slot of the nth run of a level. None: there is no such slot.
    pub fn slot(&self, level: usize, nth: usize) -> Option<RunSlot> {
        let own = usize::from(*self.runs_of_levels.get(level)?);
        let before: usize =
            self.runs_of_levels[..level].iter().map(|&runs| usize::from(runs)).sum();
        (nth < own).then(|| u8::try_from(before + nth).ok().map(RunSlot)).flatten()
    }

    /// Returns the level of a slot. Requires: a slot of this plan.
    pub fn level(&self, slot: RunSlot) -> usize {
        let mut end = 0;
        let holds = |&runs: &u8| {
            end += usize::from(runs);
            usize::from(slot.0) < end
        };
        self.runs_of_levels.iter().position(holds).expect("a slot of the plan")
    }
}

/// A key's move from one slot to another. None: from or to no slot.
pub type Move = (Option<RunSlot>, Option<RunSlot>);

/// The size of a run locator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunLocatorSize {
    /// Memory in bytes, all tables included.
    pub bytes: usize,
    /// The part of `bytes` that holds entries which did not fit into their places.
    pub overflow_bytes: usize,
    /// Entries in the filter: a key counts once per slot.
    pub entries: u64,
    /// The number of entries it has room for.
    pub room: u64,
}

/// A filter that knows each key's current run.
pub trait RunLocator: Clone + Send + Sync {
    /// Records that a key moved. `from` is None if it is new; `to` is None if it was dropped or
    /// replaced by a newer entry. `from` is None, too, for a run without a slot.
    ///
    /// Requires: slots of the plan; and that the key was noted in `from`, and not away since. Two
    /// keys may have equal fingerprints, so removing an absent key may remove another one. Keys may
    /// come in any order; for some filters ascending order is cheaper.
    fn note(&mut self, key: &[u8], from: Option<RunSlot>, to: Option<RunSlot>);

    /// Same as `note` for all of `keys`, equal ones in their order. `of(n)` is the move of the nth
    /// key.
    fn note_all(&mut self, keys: &KeyList, of: &dyn Fn(usize) -> Move) {
        for (nth, key) in keys.iter().enumerate() {
            let (from, to) = of(nth);
            self.note(key, from, to);
        }
    }

    /// Same as `note`, for the key with this hash for [`HashUse::Chucky`](crate::HashUse).
    /// Requires: the kind takes hashes.
    fn note_hash(&mut self, hash: u64, from: Option<RunSlot>, to: Option<RunSlot>) {
        let _ = (hash, from, to);
        unreachable!("a filter that knows keys alone");
    }

    /// Records that a slot's run is gone, so no key is in it any more. Call it after a merge has
    /// noted all its keys, for the slot of each input except the output's own. (A filter that
    /// stores sets of runs cannot tell from single moves that a run has left a set.)
    fn vacate(&mut self, slot: RunSlot) {
        let _ = slot;
    }

    /// Adds the slots of all runs that may hold a key of the query.
    fn candidates<T: Trace>(&self, query: &Query<'_>, slots: &mut SlotSet, trace: &mut T);

    /// Returns a lower bound of the run's first key at or after `from`, or `from` if nothing better
    /// is known. None: the run has no such key.
    fn lower_bound(&self, slot: RunSlot, from: &[u8]) -> Option<Vec<u8>>;

    /// Returns an exclusive upper bound of the run's keys below `before`, or `before` if nothing
    /// better is known. None: the run has no such key.
    fn upper_bound(&self, slot: RunSlot, before: &[u8]) -> Option<Vec<u8>>;

    /// Returns the filter's size.
    fn size(&self) -> RunLocatorSize;

    /// Returns a view of all entries of all runs in key order. None: this filter has no such view.
    fn sorted_view(&self) -> Option<Arc<dyn SortedView>> {
        None
    }
}

/// Builds a run locator from the keys of the oldest run, in ascending order.
pub trait RunLocatorBuilder: Send {
    /// The filter that it builds.
    type Filter: RunLocator;

    /// An empty builder. Requires: a plan of at most 256 slots. The pushed keys are in its last
    /// slot.
    fn new(plan: &TreePlan) -> Self;

    /// Adds the next key. Requires: it is above the one before.
    fn push(&mut self, key: &[u8]);

    /// Same as `push`, for the key with this hash for [`HashUse::Chucky`](crate::HashUse), in any
    /// order. Requires: the kind takes hashes.
    fn push_hash(&mut self, hash: u64) {
        let _ = hash;
        unreachable!("a filter that knows keys alone");
    }

    /// Adds the next entry of all runs. Keys ascend; the entries of one key come newest first.
    /// Requires: the kind has a sorted view, and `push` is not called.
    fn push_entry(&mut self, key: &[u8], slot: RunSlot) {
        let _ = (key, slot);
        unreachable!("a filter without a sorted view");
    }

    /// Returns the filter.
    fn finish(self) -> Self::Filter;
}

/// An entry of a sorted view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selected {
    /// The entry's run.
    pub slot: RunSlot,
    /// The number of entries of that run before this one.
    pub rank: u64,
    /// Whether the entry before it has the same key. Then this one is older.
    pub is_older: bool,
}

/// All entries of all runs in key order, in segments. It stores the run of each entry, not its key.
pub trait SortedView: Send + Sync {
    /// Returns the segment that contains `key`, if any does.
    fn seek(&self, key: &[u8]) -> usize;
    /// The number of entries in a segment.
    fn segment_len(&self, segment: usize) -> usize;
    /// Returns the nth entry of a segment. None: it has fewer.
    fn place(&self, segment: usize, nth: usize) -> Option<Selected>;
    /// Returns a walk positioned before the nth entry of a segment.
    fn walk(&self, segment: usize, nth: usize) -> Box<dyn SortedWalk>;
    /// Returns a walk positioned after the last entry.
    fn walk_from_end(&self) -> Box<dyn SortedWalk>;
}

/// A position between two entries of a sorted view.
pub trait SortedWalk: Send {
    /// Returns the next entry and moves past it. None: there is none.
    fn forward(&mut self) -> Option<Selected>;
    /// Returns the previous entry and moves before it. None: there is none.
    fn back(&mut self) -> Option<Selected>;
    /// Whether the next entry and the previous one have the same key.
    fn is_within_key(&self) -> bool;
    /// Whether there is no next entry.
    fn is_at_end(&self) -> bool;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_numbered_from_the_newest_level_on() {
        let plan = TreePlan {
            runs_of_levels: vec![4, 3, 1],
            waiting_runs: 0,
            size_ratio: 4,
            entries: 1000,
            bits_per_key: 10.0,
        };
        assert_eq!(plan.slots(), 8);
        assert_eq!(plan.slot(0, 3), Some(RunSlot(3)));
        assert_eq!(plan.slot(0, 4), None);
        assert_eq!(plan.slot(2, 0), Some(RunSlot(7)));
        assert_eq!(plan.slot(3, 0), None);
        assert_eq!(
            (plan.level(RunSlot(3)), plan.level(RunSlot(4)), plan.level(RunSlot(7))),
            (0, 1, 2)
        );
    }

    #[test]
    fn a_set_has_what_was_put_into_it() {
        let mut set = SlotSet::default();
        assert!(set.is_empty());
        for slot in [0, 63, 64, 255] {
            set.insert(RunSlot(slot));
        }
        assert_eq!(set.len(), 4);
        assert_eq!(set.iter().map(|slot| slot.0).collect::<Vec<_>>(), [0, 63, 64, 255]);
        assert!(!set.contains(RunSlot(1)));
        set.remove(RunSlot(63));
        let mut other = SlotSet::default();
        other.insert_bits(&[2, 0, 0, 0, 0, 0, 0, 0, 0x80, 1]);
        set.insert_all(other);
        assert_eq!(set.iter().map(|slot| slot.0).collect::<Vec<_>>(), [0, 1, 64, 71, 72, 255]);
    }
}
