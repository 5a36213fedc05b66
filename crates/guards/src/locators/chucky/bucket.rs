//! The contents of a bucket, and the interface between the filter and its bucket encodings.
//! ```text
//! lanes        slot   0    3    20   20      ascending
//! fingerprint       1011 0110 1001 0         zero in the last slot: the lane is empty
//! codec        lanes <-> bucket_bits bits
//! ```
//! Invariant: no key has a zero fingerprint in the last slot, so an empty lane never matches a key.

use std::fmt::Debug;

use trommel_filters::{SlotSet, Trace, TreePlan};

pub(super) use super::combinations::BUCKET_SLOTS;
use super::symbol::BucketBits;

/// The minimum length of a fingerprint, in bits. This many leading bits of every fingerprint
/// determine the other bucket.
pub(super) const FINGERPRINT_BITS_MIN: u32 = 5;

/// The memory that a plan gives its filter, in bits.
pub(super) fn budget_bits(plan: &TreePlan) -> f64 {
    plan.entries as f64 * plan.bits_per_key.max(0.0) // of NaN: zero
}

/// A prefix of the key's 32-bit fingerprint, as a number, and the slot of the key's run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    pub(super) slot: u8,
    pub(super) fingerprint: u32,
}

/// The entries of a bucket, and empty lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lanes {
    pub(super) slots: [u8; BUCKET_SLOTS],
    pub(super) fingerprints: [u32; BUCKET_SLOTS],
}

impl Lanes {
    /// A bucket without entries.
    #[cfg(test)]
    pub(super) fn empty(last_slot: u8) -> Self {
        Lanes { slots: [last_slot; BUCKET_SLOTS], fingerprints: [0; BUCKET_SLOTS] }
    }

    pub(super) fn get(&self, lane: usize) -> Entry {
        Entry { slot: self.slots[lane], fingerprint: self.fingerprints[lane] }
    }

    pub(super) fn set(&mut self, lane: usize, entry: Entry) {
        (self.slots[lane], self.fingerprints[lane]) = (entry.slot, entry.fingerprint);
    }

    /// Removes an entry.
    pub(super) fn clear(&mut self, lane: usize, last_slot: u8) {
        self.set(lane, Entry { slot: last_slot, fingerprint: 0 });
    }

    /// Returns the first lane with this entry.
    pub(super) fn position(&self, entry: Entry) -> Option<usize> {
        (0..BUCKET_SLOTS).find(|&lane| self.get(lane) == entry)
    }

    /// Returns an empty lane. None: the bucket is full.
    pub(super) fn vacancy(&self, last_slot: u8) -> Option<usize> {
        self.position(Entry { slot: last_slot, fingerprint: 0 })
    }

    /// Returns the entries sorted by slot. Uses a sorting network, without unpredictable branches.
    #[inline(always)]
    pub(super) fn sorted(&self) -> Self {
        const NETWORK: [(usize, usize); 5] = [(0, 1), (2, 3), (0, 2), (1, 3), (1, 2)];
        let joined =
            |lane| u64::from(self.slots[lane]) << u32::BITS | u64::from(self.fingerprints[lane]);
        let mut joined: [u64; BUCKET_SLOTS] = std::array::from_fn(joined);
        for (low, high) in NETWORK {
            let (one, other) = (joined[low], joined[high]);
            (joined[low], joined[high]) = (one.min(other), one.max(other));
        }
        Lanes {
            slots: joined.map(|both| (both >> u32::BITS) as u8),
            fingerprints: joined.map(|both| both as u32),
        }
    }
}

/// The decoded bits of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoded {
    /// All entries.
    Whole(Lanes),
    /// The fingerprints are in the overflow table. Contains the slots if they have a code;
    /// otherwise these are in that table, too.
    Overflowed(Option<[u8; BUCKET_SLOTS]>),
}

/// The encoded bits of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoded {
    pub(super) value: u128,
    /// Whether the fingerprints did not fit and must go to the overflow table.
    pub(super) overflowed: bool,
}

/// An encoding of buckets. The bits of an empty bucket are all zero.
pub trait BucketCodec: Clone + Debug + Send + Sync {
    /// Returns an encoding for a filter of `buckets` buckets. Buckets and tables together take the
    /// plan's memory.
    fn new(plan: &TreePlan, buckets: usize) -> Self;

    /// Bits per bucket: at most [`super::pages::BUCKET_BITS_MAX`].
    fn bucket_bits(&self) -> u32;

    /// Bits of a fingerprint in this slot: [`FINGERPRINT_BITS_MIN`] to 32, and in no slot more than
    /// in the last one.
    fn fingerprint_bits(&self, slot: u8) -> u32;

    /// The slot of the oldest run.
    fn last_slot(&self) -> u8;

    /// Decodes a bucket. Requires: bits that `encode` made.
    fn decode(&self, value: u128) -> Decoded;

    /// Encodes a bucket. Requires: slots ascend.
    fn encode(&self, lanes: &Lanes) -> Encoded;

    /// Returns the bit positions of each lane's fingerprint in a bucket whose entries are all in
    /// the last slot. Such a bucket never overflows, its other bits are zero, and an empty lane is
    /// all zeros.
    fn oldest_shifts(&self) -> [u8; BUCKET_SLOTS];

    /// Adds the slots of all fingerprints that are a prefix of `fingerprint`. False: the bucket has
    /// overflowed, and nothing was added.
    fn matches<T: Trace>(
        &self,
        value: impl BucketBits,
        fingerprint: u32,
        slots: &mut SlotSet,
        trace: &mut T,
    ) -> bool;

    /// Memory of its tables, in bytes.
    fn size_bytes(&self) -> usize;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_are_sorted_by_slot() {
        let lanes = Lanes { slots: [3, 0, 3, 1], fingerprints: [7, 8, 9, 10] };
        let sorted = lanes.sorted();
        assert_eq!((sorted.slots, sorted.fingerprints), ([0, 1, 3, 3], [8, 10, 7, 9]));
        assert_eq!(sorted.position(Entry { slot: 3, fingerprint: 9 }), Some(3));
        assert_eq!(sorted.vacancy(3), None);
        assert_eq!(Lanes::empty(3).vacancy(3), Some(0));
    }
}
