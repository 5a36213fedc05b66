//! What a bucket holds, and the seam between the filter and the way its buckets are written.
//! ```text
//! lanes     slot   0    3    20   20      ascending
//!           print  1011 0110 1001 0       a print of zero in the last slot: nothing is there
//! codec     lanes <-> bucket_bits bits
//! ```
//! Invariant: no key's print is zero in the last slot, so that nothing is never taken for a key.

use std::fmt::Debug;

use trommel_filters::{SlotSet, Trace, TreePlan};

pub(super) use super::combinations::BUCKET_SLOTS;
use super::symbol::BucketBits;

/// The shortest fingerprint, in bits. As many of the first bits of every fingerprint choose the
/// other bucket.
pub(super) const PRINT_BITS_MIN: u32 = 5;

/// What a plan gives its filter, in bits.
pub(super) fn budget_bits(plan: &TreePlan) -> f64 {
    plan.entries as f64 * plan.bits_per_key.max(0.0) // of NaN: zero
}

/// A fingerprint: the first bits of a key's print, as a number, and the slot of the run that has
/// the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    pub(super) slot: u8,
    pub(super) print: u32,
}

/// The entries of a bucket, and places where none is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lanes {
    pub(super) slots: [u8; BUCKET_SLOTS],
    pub(super) prints: [u32; BUCKET_SLOTS],
}

impl Lanes {
    /// Nothing is in any lane.
    #[cfg(test)]
    pub(super) fn empty(last_slot: u8) -> Self {
        Lanes { slots: [last_slot; BUCKET_SLOTS], prints: [0; BUCKET_SLOTS] }
    }

    pub(super) fn get(&self, lane: usize) -> Entry {
        Entry { slot: self.slots[lane], print: self.prints[lane] }
    }

    pub(super) fn set(&mut self, lane: usize, entry: Entry) {
        (self.slots[lane], self.prints[lane]) = (entry.slot, entry.print);
    }

    /// Takes an entry away.
    pub(super) fn clear(&mut self, lane: usize, last_slot: u8) {
        self.set(lane, Entry { slot: last_slot, print: 0 });
    }

    /// The first lane that holds this.
    pub(super) fn position(&self, entry: Entry) -> Option<usize> {
        (0..BUCKET_SLOTS).find(|&lane| self.get(lane) == entry)
    }

    /// A lane that holds nothing.
    pub(super) fn vacancy(&self, last_slot: u8) -> Option<usize> {
        self.position(Entry { slot: last_slot, print: 0 })
    }

    /// The same entries, slots ascending: a sorting network, without branches that guess wrong.
    #[inline(always)]
    pub(super) fn sorted(&self) -> Self {
        const NETWORK: [(usize, usize); 5] = [(0, 1), (2, 3), (0, 2), (1, 3), (1, 2)];
        let joined = |lane| u64::from(self.slots[lane]) << u32::BITS | u64::from(self.prints[lane]);
        let mut joined: [u64; BUCKET_SLOTS] = std::array::from_fn(joined);
        for (low, high) in NETWORK {
            let (one, other) = (joined[low], joined[high]);
            (joined[low], joined[high]) = (one.min(other), one.max(other));
        }
        Lanes {
            slots: joined.map(|both| (both >> u32::BITS) as u8),
            prints: joined.map(|both| both as u32),
        }
    }
}

/// What the bits of a bucket say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoded {
    /// All of it.
    Whole(Lanes),
    /// The fingerprints are in the overflow table. The slots, if they have a code; else they are
    /// there, too.
    Overflowed(Option<[u8; BUCKET_SLOTS]>),
}

/// The bits of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoded {
    pub(super) value: u128,
    /// Whether the fingerprints did not fit, and belong into the overflow table.
    pub(super) overflowed: bool,
}

/// How buckets are written. The bits of an empty bucket are all zero.
pub trait BucketCodec: Clone + Debug + Send + Sync {
    /// A codec for a plan whose filter has so many buckets: with its tables they take the memory
    /// that the plan gives.
    fn new(plan: &TreePlan, buckets: usize) -> Self;

    /// Bits of a bucket: at most [`super::pages::BUCKET_BITS_MAX`].
    fn bucket_bits(&self) -> u32;

    /// Bits of a fingerprint in this slot: from [`PRINT_BITS_MIN`] to 32, in no slot more than in
    /// the last one.
    fn print_bits(&self, slot: u8) -> u32;

    /// The slot of the oldest run.
    fn last_slot(&self) -> u8;

    /// What the bits say. Requires: bits that `encode` made.
    fn decode(&self, value: u128) -> Decoded;

    /// The bits that say this. Requires: slots ascend.
    fn encode(&self, lanes: &Lanes) -> Encoded;

    /// Where the fingerprints of each lane are in the bits of a bucket whose entries are all in the
    /// last slot. It never overflows, no other bit of it is one, and a lane of zeros holds nothing.
    fn oldest_shifts(&self) -> [u8; BUCKET_SLOTS];

    /// Adds the slots of all fingerprints that are the beginning of `print`. False: the bucket has
    /// overflowed, and nothing was added.
    fn matches<T: Trace>(
        &self,
        value: impl BucketBits,
        print: u32,
        slots: &mut SlotSet,
        trace: &mut T,
    ) -> bool;

    /// Memory of its tables.
    fn size_bytes(&self) -> usize;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_are_sorted_by_slot() {
        let lanes = Lanes { slots: [3, 0, 3, 1], prints: [7, 8, 9, 10] };
        let sorted = lanes.sorted();
        assert_eq!((sorted.slots, sorted.prints), ([0, 1, 3, 3], [8, 10, 7, 9]));
        assert_eq!(sorted.position(Entry { slot: 3, print: 9 }), Some(3));
        assert_eq!(sorted.vacancy(3), None);
        assert_eq!(Lanes::empty(3).vacancy(3), Some(0));
    }
}
