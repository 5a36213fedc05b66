//! Where a key's fingerprints may be: two buckets, and the bits that tell it from others.
//! ```text
//! hash ─┬─ times partitions: high half ──> partition
//!       ├─                   low half ───> first bucket in it      second = first xor offset
//!       └─ remixed ────────> print, 32 bits ── first five ───────────────────────> offset
//! ```
//! Each partition has a power of two of buckets, and there are some thirty to sixty partitions.
//! Memory thus grows smoothly, as in vacuum filters. Small ones get unequal shares of the keys, and
//! room for that.
//!
//! Invariant: the second bucket of the second bucket is the first, for all fingerprints of a key,
//! however long.

use trommel_filters::hash::{remix, scattered};

use super::bucket::{BUCKET_SLOTS, PRINT_BITS_MIN};
use super::symbol::PRINT_BITS;

/// How full the slots are when the filter is.
pub(super) const LOAD: f64 = 0.95;

/// More entries than these are not planned for: beyond, they go to the table of those without a
/// place.
const ENTRIES_MAX: u64 = 1 << 31;
const PARTITIONS_MIN: usize = 32;
/// Binary logarithm of the least buckets of a partition that is not alone.
const SHIFT_MIN: u32 = 7;
/// Buckets are found up to this share over the load; what is expected beyond is made room for.
const LOAD_MARGIN: f64 = 0.015;
const PRINT_SEED: u64 = 0xbb67_ae85_84ca_a73b;
const OFFSETS: usize = 1 << PRINT_BITS_MIN;

/// The two buckets of a key, and its print.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct BucketPair {
    pub(super) first: u32,
    pub(super) second: u32,
    pub(super) print: u32,
}

/// How buckets are dealt to keys.
#[derive(Clone, Debug)]
pub(super) struct Geometry {
    partitions: usize,
    /// Binary logarithm of a partition's buckets.
    shift: u32,
    /// From a bucket to the other one, by the first bits of a fingerprint.
    offsets: [u32; OFFSETS],
    /// How many entries it is for.
    room: u64,
    /// What is cut off prints in the last slot: they are not zero there.
    last_cut: u32,
}

impl Geometry {
    /// For so many entries, with fingerprints as long as prints.
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

    /// The longest fingerprint, that of the last slot, has so many bits.
    pub(super) fn with_last_bits(self, last_print_bits: u32) -> Geometry {
        Geometry { last_cut: PRINT_BITS - last_print_bits, ..self }
    }

    /// How many buckets there are.
    pub(super) fn buckets(&self) -> usize {
        self.partitions << self.shift
    }

    /// Binary logarithm of a partition's buckets.
    pub(super) fn shift(&self) -> u32 {
        self.shift
    }

    /// How many slots there are.
    pub(super) fn slots(&self) -> u64 {
        (self.buckets() * BUCKET_SLOTS) as u64
    }

    /// How many entries find a place, as good as surely.
    pub(super) fn room(&self) -> u64 {
        self.room
    }

    /// Where a key with this hash may be.
    #[inline(always)]
    pub(super) fn place(&self, hash: u64) -> BucketPair {
        let product = u128::from(hash) * self.partitions as u128;
        let partition = (product >> 64) as u32;
        let local = (u128::from(product as u64) << self.shift >> 64) as u32;
        let print = (remix(hash, PRINT_SEED) >> 32) as u32;
        // A print of zero in the last slot means that nothing is there.
        let print = if print >> self.last_cut == 0 { 1 << self.last_cut } else { print };
        let first = partition << self.shift | local;
        let second = first ^ self.offsets[(print >> (PRINT_BITS - PRINT_BITS_MIN)) as usize];
        BucketPair { first, second, print }
    }

    /// The other bucket of a fingerprint of so many bits.
    pub(super) fn other(&self, bucket: u32, print: u32, print_bits: u32) -> u32 {
        bucket ^ self.offsets[(print >> (print_bits - PRINT_BITS_MIN)) as usize]
    }
}

/// By what share a partition may get more keys than its part: so many get fewer that entries find a
/// place in all.
fn spare(shift: u32) -> f64 {
    const DEVIATIONS: f64 = 2.5;
    let slots = ((BUCKET_SLOTS as u64) << shift) as f64;
    (DEVIATIONS / slots.sqrt() - LOAD_MARGIN).max(0.0)
}

/// Offsets without pattern; none is zero, and all differ, where partitions are large enough.
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
            for last_print_bits in [5, 9, 12] {
                let geometry = Geometry::new(entries).with_last_bits(last_print_bits);
                for nth in 0..2000 {
                    let BucketPair { first, second, print } = geometry.place(scattered(nth));
                    assert!((first.max(second) as usize) < geometry.buckets());
                    assert_ne!(print >> (32 - last_print_bits), 0);
                    for bits in 5..=last_print_bits {
                        let prefix = print >> (32 - bits);
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
