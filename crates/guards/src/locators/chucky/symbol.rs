//! A frequent combination: the positions of its slots' fingerprints in a bucket.
//! ```text
//! bucket   | code | fingerprint 0 | fingerprint 1 | fingerprint 2 | fingerprint 3 |
//! shift                        27              18               9               0   of each lane
//! cut      32 - its bits: truncated from a key's 32-bit fingerprint
//! ```
//! Invariant: lanes do not overlap, and the code lies above them.

use std::fmt::LowerHex;
use std::ops::{BitAnd, BitOr, BitXor, Not, Shl, Shr};

use trommel_filters::{RunSlot, SlotSet};

use super::bucket::{BUCKET_SLOTS, Lanes};
use super::combinations::Combination;

/// Bits of a key's whole fingerprint.
pub(super) const FINGERPRINT_BITS: u32 = u32::BITS;

/// The bits of a bucket: a word if they fit into one.
pub trait BucketBits:
    Copy
    + LowerHex
    + PartialEq
    + Not<Output = Self>
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + BitXor<Output = Self>
    + Shl<u32, Output = Self>
    + Shr<u32, Output = Self>
{
    /// Bits of the number.
    const BITS: u32;

    /// Returns the low bits of a number.
    fn low_of(value: u128) -> Self;

    /// Returns the low 32 bits.
    fn low(self) -> u32;

    /// Reads the number at the start of `bytes`. Requires: enough bytes.
    fn read(bytes: &[u8]) -> Self;

    /// Applies `change` to the number at the start of `bytes`.
    fn change(bytes: &mut [u8], change: impl FnOnce(Self) -> Self);

    /// Returns the first 32 bits of a bucket, padded with zeros.
    #[inline(always)]
    fn head(self, bucket_bits: u32) -> u32 {
        (self << (Self::BITS - bucket_bits) >> (Self::BITS - u32::BITS)).low()
    }
}

impl BucketBits for u64 {
    const BITS: u32 = u64::BITS;

    #[inline(always)]
    fn low_of(value: u128) -> u64 {
        value as u64
    }

    #[inline(always)]
    fn low(self) -> u32 {
        self as u32
    }

    #[inline(always)]
    fn read(bytes: &[u8]) -> u64 {
        u64::from_le_bytes(*bytes.first_chunk().expect("pages are padded"))
    }

    #[inline(always)]
    fn change(bytes: &mut [u8], change: impl FnOnce(u64) -> u64) {
        let chunk = bytes.first_chunk_mut().expect("pages are padded");
        *chunk = change(u64::from_le_bytes(*chunk)).to_le_bytes();
    }
}

impl BucketBits for u128 {
    const BITS: u32 = u128::BITS;

    #[inline(always)]
    fn low_of(value: u128) -> u128 {
        value
    }

    #[inline(always)]
    fn low(self) -> u32 {
        self as u32
    }

    #[inline(always)]
    fn read(bytes: &[u8]) -> u128 {
        u128::from_le_bytes(*bytes.first_chunk().expect("pages are padded"))
    }

    #[inline(always)]
    fn change(bytes: &mut [u8], change: impl FnOnce(u128) -> u128) {
        let chunk = bytes.first_chunk_mut().expect("pages are padded");
        *chunk = change(u128::from_le_bytes(*chunk)).to_le_bytes();
    }
}

/// Slots, and positions of their fingerprints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Symbol {
    slots: Combination,
    shifts: [u8; BUCKET_SLOTS],
    cuts: [u8; BUCKET_SLOTS],
}

impl Symbol {
    /// The positions of a combination. `fingerprint_bits`: those of each slot.
    pub(super) fn new(slots: Combination, fingerprint_bits: &[u8]) -> Symbol {
        let lengths = slots.map(|slot| fingerprint_bits[usize::from(slot)]);
        let mut shifts = [0; BUCKET_SLOTS];
        for lane in (0..BUCKET_SLOTS - 1).rev() {
            shifts[lane] = shifts[lane + 1] + lengths[lane + 1];
        }
        Symbol { slots, shifts, cuts: lengths.map(|length| FINGERPRINT_BITS as u8 - length) }
    }

    /// A symbol for codes that belong to no combination.
    pub(super) fn none(last_slot: u8) -> Symbol {
        let nothing = [0; BUCKET_SLOTS];
        Symbol { slots: [last_slot; BUCKET_SLOTS], shifts: nothing, cuts: nothing }
    }

    /// Returns the positions of the lanes' fingerprints.
    pub(super) fn shifts(&self) -> [u8; BUCKET_SLOTS] {
        self.shifts
    }

    #[inline(always)]
    fn fingerprint(&self, value: impl BucketBits, lane: usize) -> u32 {
        (value >> u32::from(self.shifts[lane])).low() & u32::MAX >> self.cuts[lane]
    }

    /// Adds the slots of the lanes whose fingerprints are a prefix of `fingerprint`. One branch for
    /// all four: most buckets have none.
    #[inline(always)]
    pub(super) fn matches(&self, value: impl BucketBits, fingerprint: u32, slots: &mut SlotSet) {
        let same = |lane: usize| {
            // The bits above the lane are shifted out on both sides.
            let other =
                (value >> u32::from(self.shifts[lane])).low() ^ fingerprint >> self.cuts[lane];
            u32::from(other << self.cuts[lane] == 0) << lane
        };
        let mut lanes = same(0) | same(1) | same(2) | same(3);
        while lanes != 0 {
            slots.insert(RunSlot(self.slots[lanes.trailing_zeros() as usize]));
            lanes &= lanes - 1;
        }
    }

    /// Decodes the lanes of a bucket with this symbol's code.
    #[inline(always)]
    pub(super) fn read(&self, value: impl BucketBits) -> Lanes {
        let fingerprints = std::array::from_fn(|lane| self.fingerprint(value, lane));
        Lanes { slots: self.slots, fingerprints }
    }

    /// Encodes the fingerprints. Requires: the bucket has at most 64 bits.
    #[inline(always)]
    pub(super) fn write_word(&self, fingerprints: &[u32; BUCKET_SLOTS]) -> u64 {
        let shifted = fingerprints
            .iter()
            .zip(self.shifts)
            .map(|(&fingerprint, by)| u64::from(fingerprint) << by);
        shifted.fold(0, |all, fingerprint| all | fingerprint)
    }

    /// Encodes the fingerprints.
    pub(super) fn write(&self, fingerprints: &[u32; BUCKET_SLOTS]) -> u128 {
        let shifted = fingerprints
            .iter()
            .zip(self.shifts)
            .map(|(&fingerprint, by)| u128::from(fingerprint) << by);
        shifted.fold(0, |all, fingerprint| all | fingerprint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trommel_filters::hash::scattered;

    #[test]
    fn what_is_written_is_read_and_matched() {
        let fingerprint_bits = [5, 7, 9];
        for slots in [[0, 0, 1, 2], [2, 2, 2, 2], [0, 1, 1, 1], [0, 0, 0, 0]] {
            let symbol = Symbol::new(slots, &fingerprint_bits);
            for seed in 0..50 {
                let fingerprints = [0, 1, 2, 3].map(|lane| scattered(seed * 4 + lane) as u32);
                let lengths = slots.map(|slot| u32::from(fingerprint_bits[usize::from(slot)]));
                let cut = |lane: usize| fingerprints[lane] >> (32 - lengths[lane]);
                let held = std::array::from_fn(cut);
                let value = symbol.write(&held);
                assert_eq!(u128::from(symbol.write_word(&held)), value);
                assert_eq!(symbol.read(value), Lanes { slots, fingerprints: held });
                for (lane, &fingerprint) in fingerprints.iter().enumerate() {
                    let mut found = SlotSet::default();
                    symbol.matches(value, fingerprint, &mut found);
                    assert!(found.contains(RunSlot(slots[lane])), "{slots:?}, {seed}");
                }
            }
        }
    }
}
