//! Filters that know for each key in which run it is *now*: what Chucky, its plain form and Remix
//! are.
//! ```text
//! flush      key: nowhere -> slot of the new run
//! merge      key: slot of an input -> slot of the output, or nowhere if a newer entry replaced it;
//!            then each input's slot is vacated
//! query      key or range -> slots of the runs that may hold it
//! ```
//! A slot is a number that the tree gives to a run, and takes back when the run is merged away.
//! Numbers go from the newest level to the oldest. The caller keeps a table from slots to runs.
//!
//! Such a filter describes one version of the tree alone, and a merge changes it before the merge
//! can be seen. So it is a value: a clone shares pages with the original until either changes them.
//! Each version keeps its own, a merge works on a private clone, and answers are right for readers
//! of older versions too.
//!
//! Invariant: a slot is left out only if no key of the query was moved there (and not away again).

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::base::filter::Trace;
use crate::base::key_list::KeyList;
use crate::base::query::Query;

/// A run of the tree, by its slot: slots of a newer level are smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunSlot(pub u8);

/// Some slots of a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotSet([u64; 4]);

impl SlotSet {
    /// Adds a slot.
    #[inline]
    pub fn insert(&mut self, slot: RunSlot) {
        self.0[usize::from(slot.0 >> 6)] |= 1 << (slot.0 & 63);
    }

    /// Whether a slot is in it.
    #[inline]
    pub fn contains(&self, slot: RunSlot) -> bool {
        self.0[usize::from(slot.0 >> 6)] >> (slot.0 & 63) & 1 != 0
    }

    /// Takes a slot out.
    #[inline]
    pub fn remove(&mut self, slot: RunSlot) {
        self.0[usize::from(slot.0 >> 6)] &= !(1 << (slot.0 & 63));
    }

    /// Adds all slots of another set.
    #[inline]
    pub fn insert_all(&mut self, other: SlotSet) {
        self.0.iter_mut().zip(other.0).for_each(|(word, more)| *word |= more);
    }

    /// Adds the slots whose bits are set, the first in the low bit of the first byte. Requires: at
    /// most 32 bytes.
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

    /// Whether none is.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0 == [0; 4]
    }

    /// How many are.
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// All of them, ascending: from the newest level to the oldest.
    pub fn iter(&self) -> impl Iterator<Item = RunSlot> + '_ {
        (0..=u8::MAX).map(RunSlot).filter(|&slot| self.contains(slot))
    }
}

/// The tree that a filter is to describe until it is made anew.
#[derive(Clone, Debug, PartialEq)]
pub struct TreePlan {
    /// The most runs that each level has, newest level first: slots are numbered in this order. At
    /// most 256 together, and at least one each.
    pub runs_of_levels: Vec<u8>,
    /// How many of the newest level's runs, its last ones, are there only while merges are late.
    pub waiting_runs: u8,
    /// T: how many times more a level holds than the one before.
    pub size_ratio: u32,
    /// Entries of the tree when it is fullest.
    pub entries: u64,
    /// Memory for each of them, in bits, everything included.
    pub bits_per_key: f64,
}

impl TreePlan {
    /// How many slots there are.
    pub fn slots(&self) -> usize {
        self.runs_of_levels.iter().map(|&runs| usize::from(runs)).sum()
    }

    /// The slot of the nth run of a level. None: there is no such slot.
    pub fn slot(&self, level: usize, nth: usize) -> Option<RunSlot> {
        let own = usize::from(*self.runs_of_levels.get(level)?);
        let before: usize =
            self.runs_of_levels[..level].iter().map(|&runs| usize::from(runs)).sum();
        (nth < own).then(|| u8::try_from(before + nth).ok().map(RunSlot)).flatten()
    }

    /// The level of a slot. Requires: it is one of the plan's.
    pub fn level(&self, slot: RunSlot) -> usize {
        let mut end = 0;
        let holds = |&runs: &u8| {
            end += usize::from(runs);
            usize::from(slot.0) < end
        };
        self.runs_of_levels.iter().position(holds).expect("a slot of the plan")
    }
}

/// From where and to where a key moves. None: from, or to, no slot.
pub type Move = (Option<RunSlot>, Option<RunSlot>);

/// How large such a filter is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunLocatorSize {
    /// Bytes of memory, all tables included.
    pub bytes: usize,
    /// Of these, what holds what did not fit into its place.
    pub overflow_bytes: usize,
    /// Keys that it knows, each as often as in different slots.
    pub entries: u64,
    /// How many it has room for.
    pub room: u64,
}

/// A filter that knows for each key in which run it is now.
pub trait RunLocator: Clone + Send + Sync {
    /// Notes that a key has moved: `from` None: it is new; `to` None: it was replaced by a newer
    /// entry or dropped. Requires: slots of the plan; and that the key was noted in `from`, and not
    /// away since. Fingerprints of two keys may be equal, so removing a key that is not there may
    /// take another one. For a run without a slot, `from` is None. Keys may come in any order;
    /// ascending ones are cheaper for some.
    fn note(&mut self, key: &[u8], from: Option<RunSlot>, to: Option<RunSlot>);

    /// As `note` for all of these keys, equal ones in their order. `of`: how the nth moves.
    fn note_all(&mut self, keys: &KeyList, of: &dyn Fn(usize) -> Move) {
        for (nth, key) in keys.iter().enumerate() {
            let (from, to) = of(nth);
            self.note(key, from, to);
        }
    }

    /// As `note`, for a key by its hash for [`HashUse::Chucky`](crate::HashUse). Requires: the kind
    /// takes hashes.
    fn note_hash(&mut self, hash: u64, from: Option<RunSlot>, to: Option<RunSlot>) {
        let _ = (hash, from, to);
        unreachable!("a filter that knows keys alone");
    }

    /// Notes that a slot's run is gone: no key is in it any more. To be called when a merge has
    /// noted all of its keys, for each input's slot but the output's own. (A filter that keeps sets
    /// of runs cannot see from single moves that a run has left a set.)
    fn vacate(&mut self, slot: RunSlot) {
        let _ = slot;
    }

    /// Adds the slots of all runs that may hold a key of the query.
    fn candidates<T: Trace>(&self, query: &Query<'_>, slots: &mut SlotSet, trace: &mut T);

    /// A key such that the run of this slot has none from `from` up to it (it may have the key
    /// itself). None: the run has no key from `from` on. `from` itself, where nothing is known.
    fn lower_bound(&self, slot: RunSlot, from: &[u8]) -> Option<Vec<u8>>;

    /// A key such that the run of this slot has no key from it, inclusive, up to `before`. All keys
    /// of the run before `before` are below it. None: the run has no key before `before`. `before`
    /// itself, where nothing is known.
    fn upper_bound(&self, slot: RunSlot, before: &[u8]) -> Option<Vec<u8>>;

    /// How large it is.
    fn size(&self) -> RunLocatorSize;

    /// All entries of all runs in key order, if the filter has them.
    fn sorted_view(&self) -> Option<Arc<dyn SortedView>> {
        None
    }
}

/// Makes such a filter from the keys of the oldest run, in ascending order.
pub trait RunLocatorBuilder: Send {
    /// What it makes.
    type Filter: RunLocator;

    /// Requires: a plan of at most 256 slots. The keys go to its last slot.
    fn new(plan: &TreePlan) -> Self;

    /// The next key. Requires: it is greater than the one before.
    fn push(&mut self, key: &[u8]);

    /// As `push`, for a key by its hash for [`HashUse::Chucky`](crate::HashUse), in any order.
    /// Requires: the kind takes hashes.
    fn push_hash(&mut self, hash: u64) {
        let _ = hash;
        unreachable!("a filter that knows keys alone");
    }

    /// The next entry of all runs: keys ascend, and of one key the newest entry comes first.
    /// Requires: the kind has a sorted view, and `push` is not called.
    fn push_entry(&mut self, key: &[u8], slot: RunSlot) {
        let _ = (key, slot);
        unreachable!("a filter without a sorted view");
    }

    /// The filter.
    fn finish(self) -> Self::Filter;
}

/// An entry, as a sorted view has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selected {
    /// Its run.
    pub slot: RunSlot,
    /// How many entries of that run come before it.
    pub rank: u64,
    /// Whether its key is that of the entry before it: then it is older.
    pub is_older: bool,
}

/// All entries of all runs in key order, in segments: the run of each entry, not its key.
pub trait SortedView: Send + Sync {
    /// The segment in which a key is, if it is there.
    fn seek(&self, key: &[u8]) -> usize;
    /// How many entries a segment has.
    fn segment_len(&self, segment: usize) -> usize;
    /// The nth entry of a segment. None: it has fewer.
    fn place(&self, segment: usize, nth: usize) -> Option<Selected>;
    /// A walk that stands before the nth entry of a segment.
    fn walk(&self, segment: usize, nth: usize) -> Box<dyn SortedWalk>;
    /// A walk that stands behind the last entry.
    fn walk_from_end(&self) -> Box<dyn SortedWalk>;
}

/// A place between two entries of a sorted view.
pub trait SortedWalk: Send {
    /// The next entry, which is then passed. None: there is none.
    fn forward(&mut self) -> Option<Selected>;
    /// The entry before, which is then ahead. None: there is none.
    fn back(&mut self) -> Option<Selected>;
    /// Whether the next entry is of the same key as the one before.
    fn is_within_key(&self) -> bool;
    /// Whether no entry is ahead.
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
