//! The place of a key: two buckets, and the fingerprint that tells it from other keys.
//! ```text
//! hash ─┬─ times partitions: high half ──> partition
//!       ├─                   low half ───> first bucket in it      second = first xor offset
//!       └─ remixed ────────> fingerprint, 32 bits ── first five ─────────────────> offset
//! ```
//! Each partition has a power of two of buckets, and there are some thirty to sixty partitions. So
//! memory grows in small steps, as in vacuum filters. Small partitions get unequal shares of the
//! keys, and spare room for that.
//!
//! Invariant: the other bucket of the second bucket is the first one, for fingerprints of any
//! length.

use trommel_filters::hash::{remix, scattered};

use super::bucket::{BUCKET_SLOTS, FINGERPRINT_BITS_MIN};
use super::symbol::FINGERPRINT_BITS;

/// The load factor of a filter that is full as planned.
pub(super) const LOAD: f64 = 0.95;

/// Plans are limited to this many entries. Any more become unplaced entries.
const ENTRIES_MAX: u64 = 1 << 31;
const PARTITIONS_MIN: usize = 32;
/// The binary logarithm of the minimum buckets per partition, if there are several.
const SHIFT_MIN: u32 = 7;
/// Up to this share above the load, entries find places; room is made for what is expected beyond.
const LOAD_MARGIN: f64 = 0.015;
const FINGERPRINT_SEED: u64 = 0xbb67_ae85_84ca_a73b;
const OFFSETS: usize = 1 << FINGERPRINT_BITS_MIN;

/// The two buckets of a key, and its fingerprint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct BucketPair {
    pub(super) first: u32,
    pub(super) second: u32,
    pub(super) fingerprint: u32,
}

/// Assigns buckets to keys.
#[derive(Clone, Debug)]
pub(super) struct Geometry {
    partitions: usize,
    /// The binary logarithm of the buckets per partition.
    shift: u32,
    /// The offsets between a key's buckets, by the first bits of its fingerprint.
    offsets: [u32; OFFSETS],
    /// The number of entries it is planned for.
    room: u64,
    /// The bits truncated from fingerprints in the last slot, where the rest must not be zero.
    last_cut: u32,
}

impl Geometry {
    /// The geometry for `entries` entries, with fingerprints of full length.
    pub(super) fn new(entries: u64) -> Geometry {
        let slots = entries.min(ENTRIES_MAX) as f64 / LOAD;
        let buckets = (slots / BUCKET_SLOTS as f64).ceil().max(1.0) as usize;
        let shift = (buckets / PARTITIONS_MIN).checked_ilog2().unwrap_or(0).max(SHIFT_MIN);
        let (partitions, shift) = if buckets <= 1 << shift {
            (1, buckets.next_power_of_two().ilog2())
        } else {
            let spared = buckets as f64 * (1.0 + spare(shift));
            ((spared / (1u64 << shift) as f64).ceil() as usize, shift)
        };
        let slots = ((partitions * BUCKET_SLOTS) << shift) as f64;
        let room = slots * LOAD / if partitions > 1 { 1.0 + spare(shift) } else { 1.0 };
        Geometry { partitions, shift, offsets: offsets(shift), room: room as u64, last_cut: 0 }
    }

    /// Sets the length of the longest fingerprints, those of the last slot.
    pub(super) fn with_last_bits(self, last_fingerprint_bits: u32) -> Geometry {
        Geometry { last_cut: FINGERPRINT_BITS - last_fingerprint_bits, ..self }
    }

    /// The number of buckets.
    pub(super) fn buckets(&self) -> usize {
        self.partitions << self.shift
    }

    /// The binary logarithm of the buckets per partition.
    pub(super) fn shift(&self) -> u32 {
        self.shift
    }

    /// The number of lanes in all buckets.
    pub(super) fn slots(&self) -> u64 {
        (self.buckets() * BUCKET_SLOTS) as u64
    }

    /// The number of entries that almost certainly find a place.
    pub(super) fn room(&self) -> u64 {
        self.room
    }

    /// Returns the buckets and the fingerprint of a key with this hash.
    #[inline(always)]
    pub(super) fn place(&self, hash: u64) -> BucketPair {
        let product = u128::from(hash) * self.partitions as u128;
        let partition = (product >> 64) as u32;
        let local = (u128::from(product as u64) << self.shift >> 64) as u32;
        let fingerprint = (remix(hash, FINGERPRINT_SEED) >> 32) as u32;
        // A zero fingerprint in the last slot means an empty lane.
        let fingerprint =
            if fingerprint >> self.last_cut == 0 { 1 << self.last_cut } else { fingerprint };
        let first = partition << self.shift | local;
        let second = first
            ^ self.offsets[(fingerprint >> (FINGERPRINT_BITS - FINGERPRINT_BITS_MIN)) as usize];
        BucketPair { first, second, fingerprint }
    }

    /// Returns the other bucket of a fingerprint of `fingerprint_bits` bits.
    pub(super) fn other(&self, bucket: u32, fingerprint: u32, fingerprint_bits: u32) -> u32 {
        bucket ^ self.offsets[(fingerprint >> (fingerprint_bits - FINGERPRINT_BITS_MIN)) as usize]
    }
}

/// The spare room of a partition, as a share: enough that in total entries find a place, although
/// partitions get unequal numbers of keys.
fn spare(shift: u32) -> f64 {
    const DEVIATIONS: f64 = 2.5;
    let slots = ((BUCKET_SLOTS as u64) << shift) as f64;
    (DEVIATIONS / slots.sqrt() - LOAD_MARGIN).max(0.0)
}

/// Returns pseudorandom offsets: not zero and distinct, if partitions are large enough.
fn offsets(shift: u32) -> [u32; OFFSETS] {
    let mask = ((1u64 << shift) - 1) as u32;
    let mut offsets = [0; OFFSETS];
    for nth in 0..OFFSETS {
        let tries = (0..64).map(|turn| scattered((nth as u64) << 8 | turn) as u32 & mask);
        let fresh = |offset: &u32| *offset != 0 && !offsets[..nth].contains(offset);
        let fallback = 1 + (nth as u32) % mask.max(1);
        offsets[nth] = tries.into_iter().find(fresh).unwrap_or(fallback) & mask;
    }
    offsets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_grows_smoothly() {
        let mut entries = 1_000.0f64;
        while entries < 4e8 {
            let geometry = Geometry::new(entries as u64).with_last_bits(9);
            assert!(geometry.room() >= entries as u64, "{entries}: {}", geometry.room());
            let share = geometry.slots() as f64 / entries;
            let most = if entries < 1e4 { 1.8 } else { 1.25 };
            assert!((1.05..most).contains(&share), "{entries}: {share}");
            if entries >= 1e6 {
                assert!(share < 1.0527 * 1.035 && (32..=65).contains(&geometry.partitions));
            }
            entries *= 1.07;
        }
    }

    #[test]
    fn absurd_counts_are_clamped() {
        for entries in [0, 1, 2, 20] {
            let geometry = Geometry::new(entries).with_last_bits(9);
            assert!(geometry.room() >= entries && geometry.buckets() <= 8, "{entries}");
        }
        let most = Geometry::new(u64::MAX).with_last_bits(9);
        assert_eq!(most.buckets(), Geometry::new(ENTRIES_MAX).with_last_bits(9).buckets());
        assert!(u32::try_from(most.buckets()).is_ok());
    }

    #[test]
    fn fingerprints_of_all_lengths_share_two_buckets() {
        for entries in [1, 30, 1000, 100_000] {
            for last_fingerprint_bits in [5, 9, 12] {
                let geometry = Geometry::new(entries).with_last_bits(last_fingerprint_bits);
                for nth in 0..2000 {
                    let BucketPair { first, second, fingerprint } = geometry.place(scattered(nth));
                    assert!((first.max(second) as usize) < geometry.buckets());
                    assert_ne!(fingerprint >> (32 - last_fingerprint_bits), 0);
                    for bits in 5..=last_fingerprint_bits {
                        let prefix = fingerprint >> (32 - bits);
                        assert_eq!(geometry.other(first, prefix, bits), second);
                        assert_eq!(geometry.other(second, prefix, bits), first);
                    }
                }
            }
        }
    }

    #[test]
    fn offsets_lead_elsewhere() {
        for shift in 6..20 {
            let mut offsets = offsets(shift).to_vec();
            assert!(!offsets.contains(&0));
            offsets.sort_unstable();
            offsets.dedup();
            assert_eq!(offsets.len(), OFFSETS, "{shift}");
        }
    }
}
