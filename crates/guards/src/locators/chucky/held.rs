//! A bucket taken out of the filter to be changed.
//! ```text
//! Held         read: decoded     lanes of any slots           written: sorted, encoded
//! OldestHeld   read: raw bits    lanes at fixed shifts        written: raw bits
//! ```
//! While a filter is built from the oldest run only, all buckets have the same code, which is
//! zeros. So nothing needs to be decoded or encoded.
//!
//! Invariant: `OldestHeld` is used only for filters whose entries are all in the last slot.

use trommel_filters::Untraced;

use super::bucket::{BUCKET_SLOTS, BucketCodec, Entry, Lanes};
use super::cuckoo::Cuckoo;
use super::symbol::BucketBits;

/// A bucket during insertions and removals.
pub(super) trait Bucket<C>: Sized {
    fn take(filter: &Cuckoo<C>, bucket: u32) -> Self;

    /// Writes its contents back.
    fn put_back(&self, filter: &mut Cuckoo<C>, bucket: u32);

    fn get(&self, lane: usize) -> Entry;

    fn set(&mut self, lane: usize, entry: Entry);

    /// Returns an empty lane. None: the bucket is full.
    fn vacancy(&self, last_slot: u8) -> Option<usize>;
}

/// The contents of a bucket, and whether its fingerprints are in the overflow table.
pub(super) struct Held {
    pub(super) lanes: Lanes,
    pub(super) overflowed: bool,
}

impl<C: BucketCodec> Bucket<C> for Held {
    #[inline(always)]
    fn take(filter: &Cuckoo<C>, bucket: u32) -> Self {
        filter.held(bucket)
    }

    #[inline(always)]
    fn put_back(&self, filter: &mut Cuckoo<C>, bucket: u32) {
        filter.set_held(bucket, self);
    }

    #[inline(always)]
    fn get(&self, lane: usize) -> Entry {
        self.lanes.get(lane)
    }

    #[inline(always)]
    fn set(&mut self, lane: usize, entry: Entry) {
        self.lanes.set(lane, entry);
    }

    #[inline(always)]
    fn vacancy(&self, last_slot: u8) -> Option<usize> {
        self.lanes.vacancy(last_slot)
    }
}

/// The bits of a bucket whose entries are all in the last slot. Requires: for `u64`, buckets are
/// words (see [`super::pages::Pages::are_words`]).
pub(super) struct OldestHeld<B> {
    bits: B,
    shifts: [u8; BUCKET_SLOTS],
    fingerprint_mask: u32,
    last_slot: u8,
}

impl<C: BucketCodec, B: BucketBits> Bucket<C> for OldestHeld<B> {
    #[inline(always)]
    fn take(filter: &Cuckoo<C>, bucket: u32) -> Self {
        let codec = filter.codec();
        let last_slot = codec.last_slot();
        OldestHeld {
            bits: filter.pages.read_as(bucket, &mut Untraced),
            shifts: codec.oldest_shifts(),
            fingerprint_mask: u32::MAX >> (u32::BITS - codec.fingerprint_bits(last_slot)),
            last_slot,
        }
    }

    #[inline(always)]
    fn put_back(&self, filter: &mut Cuckoo<C>, bucket: u32) {
        filter.pages.write_as(bucket, self.bits);
    }

    #[inline(always)]
    fn get(&self, lane: usize) -> Entry {
        let fingerprint = (self.bits >> u32::from(self.shifts[lane])).low() & self.fingerprint_mask;
        Entry { slot: self.last_slot, fingerprint }
    }

    #[inline(always)]
    fn set(&mut self, lane: usize, entry: Entry) {
        debug_assert!(entry.slot == self.last_slot && entry.fingerprint != 0, "{entry:?}");
        let changed = Bucket::<C>::get(self, lane).fingerprint ^ entry.fingerprint;
        self.bits = self.bits ^ B::low_of(u128::from(changed)) << u32::from(self.shifts[lane]);
    }

    #[inline(always)]
    fn vacancy(&self, _: u8) -> Option<usize> {
        (0..BUCKET_SLOTS).find(|&lane| Bucket::<C>::get(self, lane).fingerprint == 0)
    }
}
