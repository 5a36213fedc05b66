//! The quotients of packed entries, in unary.
//! ```text
//! 0 0 1 0 1 1 0 0 1 ...     a one per entry, and a zero after the entries of each quotient
//!     2   3 3     5         entry n, of quotient q, is bit n + q
//! ```
//! Quotients are counted across all slots (Elias-Fano coding of ascending numbers). So a slot's
//! bits begin at the number of entries plus the number of quotients before it.
//!
//! Invariant: there are as many ones as entries.

use alloc::vec::Vec;

use crate::bits::search::partition_point;
use crate::bits::select::{little_word, select_zero};
use crate::grf::overlay::packed_layout::SAMPLE_BYTES;
use core::ops::Range;

/// Bits between samples.
pub(crate) const SAMPLED_BITS: usize = 512;

/// Returns the first entry after the last sample before `entry`, and the bit of that sample.
pub(crate) fn last_sample(samples: &[[u8; SAMPLE_BYTES]], entry: usize) -> (usize, usize) {
    let entries_before = |sample: usize| u32::from_le_bytes(samples[sample]) as usize;
    let sample = partition_point(1..samples.len(), |sample| entries_before(sample) <= entry) - 1;
    (entries_before(sample), sample * SAMPLED_BITS)
}

/// A view of quotients: bits from `at` on, least significant first.
#[derive(Clone, Copy)]
pub(crate) struct Quotients<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) at: usize,
}

impl<'a> Quotients<'a> {
    /// Returns the entries of a quotient, relative to the slot's first quotient. `entry` is the
    /// slot's first entry, and its quotients begin at `bit`.
    #[inline(always)]
    pub(crate) fn entries(self, (entry, bit): (usize, usize), quotient: usize) -> Range<usize> {
        if quotient == 0 {
            return entry..entry + self.ones(bit);
        }
        let (byte, skipped) = (self.at + bit / 8, bit % 8);
        // Zeros of the previous slot.
        let before = !u32::from(self.bytes[byte]) & ((1 << skipped) - 1);
        let rank = quotient as u32 - 1 + before.count_ones();
        let from = select_zero::<2>(self.bytes, byte, rank) + 1;
        let entry = entry + from - skipped - quotient;
        entry..entry + self.ones(bit - skipped + from)
    }

    /// Same as [`Quotients::entries`], by samples, for a quotient counted across all slots.
    /// Requires: all of its entries are below `end`.
    #[cold]
    #[inline(never)]
    pub(crate) fn sampled_entries(
        self,
        samples: &[[u8; SAMPLE_BYTES]],
        quotient: usize,
        end: usize,
    ) -> Range<usize> {
        let first = |quotient| self.first_of(samples, quotient, end);
        first(quotient)..first(quotient + 1)
    }

    /// Returns the first entry whose quotient is at least `quotient`.
    fn first_of(self, samples: &[[u8; SAMPLE_BYTES]], quotient: usize, end: usize) -> usize {
        let Some(zeros) = quotient.checked_sub(1) else { return 0 };
        let entries_before = |sample: usize| u32::from_le_bytes(samples[sample]) as usize;
        let zeros_before = |sample: usize| sample * SAMPLED_BITS - entries_before(sample);
        // The sample lies between a bound from the number of zeros and one from the number of
        // entries.
        let (from, to) = (zeros / SAMPLED_BITS, (end + quotient) / SAMPLED_BITS);
        let places = from + 1..samples.len().min(to + 1).max(from + 1);
        let sample = partition_point(places, |sample| zeros_before(sample) <= zeros) - 1;
        let bit = sample * SAMPLED_BITS;
        let rank = (zeros - zeros_before(sample)) as u32;
        let zero = bit + select_zero::<8>(self.bytes, self.at + bit / 8, rank);
        zero - zeros
    }

    /// Returns the number of consecutive ones from a bit on.
    #[inline(always)]
    fn ones(self, bit: usize) -> usize {
        const SURE: usize = u64::BITS as usize - 7;
        let word = little_word(self.bytes, self.at + bit / 8) >> (bit % 8);
        let ones = (!word).trailing_zeros() as usize;
        if ones < SURE { ones } else { self.many_ones(bit) }
    }

    #[cold]
    fn many_ones(self, bit: usize) -> usize {
        let mut end = bit / 8 * 8 + 8;
        let first = !self.bytes[self.at + bit / 8] >> (bit % 8);
        if first != 0 {
            return first.trailing_zeros() as usize;
        }
        // Past the end of the bytes there are zeros.
        loop {
            let ones = little_word(self.bytes, self.at + end / 8).trailing_ones() as usize;
            end += ones;
            if ones < u64::BITS as usize {
                return end - bit;
            }
        }
    }

    /// Returns the quotients of entries from a slot on. `entry` is the slot's first entry, and its
    /// quotients begin at `bit`.
    #[inline(always)]
    pub(crate) fn from(self, (entry, bit): (usize, usize)) -> QuotientsOf<'a> {
        let skipped = bit % 8;
        let byte = self.at + bit / 8;
        let word = little_word(self.bytes, byte) >> skipped << skipped;
        QuotientsOf { bytes: self.bytes, byte, word, from: bit - skipped, entry }
    }

    /// Returns the samples: the number of ones before every [`SAMPLED_BITS`] bits.
    pub(crate) fn samples(self, samples: usize) -> Vec<[u8; SAMPLE_BYTES]> {
        let mut ones = 0;
        let sample = |place: usize| {
            let before = ones as u32;
            ones += self.ones_within(place * SAMPLED_BITS..(place + 1) * SAMPLED_BITS);
            before.to_le_bytes()
        };
        (0..samples).map(sample).collect()
    }

    /// Returns the number of ones in the first `bits` bits.
    pub(crate) fn count(self, bits: usize) -> usize {
        self.ones_within(0..bits)
    }

    /// Returns the number of ones in a range of bits that begins at a byte.
    fn ones_within(self, bits: Range<usize>) -> usize {
        let ones = |from: usize| {
            let word = little_word(self.bytes, self.at + from / 8);
            let left = bits.end - from;
            if left < 64 { word & ((1 << left) - 1) } else { word }.count_ones() as usize
        };
        bits.clone().step_by(64).map(ones).sum()
    }
}

/// Iterates over the quotients of entries.
pub(crate) struct QuotientsOf<'a> {
    bytes: &'a [u8],
    /// The position of the current word, its remaining bits, and the index of its first bit.
    byte: usize,
    word: u64,
    from: usize,
    entry: usize,
}

impl QuotientsOf<'_> {
    /// Returns the next entry's quotient, counted across all slots; after the last entry, an
    /// arbitrary number.
    #[inline(always)]
    pub(crate) fn take(&mut self) -> usize {
        while self.word == 0 {
            self.byte += 8;
            self.from += 64;
            if self.byte >= self.bytes.len() {
                return 0;
            }
            self.word = little_word(self.bytes, self.byte);
        }
        let quotient = self.from + self.word.trailing_zeros() as usize - self.entry;
        self.word &= self.word - 1;
        self.entry += 1;
        quotient
    }

    /// Skips entries.
    pub(crate) fn skip(&mut self, mut entries: usize) {
        while entries > 0 {
            let ones = self.word.count_ones() as usize;
            if ones >= entries || self.byte + 8 >= self.bytes.len() {
                (0..entries).for_each(|_| {
                    self.take();
                });
                return;
            }
            (self.word, self.entry, entries) = (0, self.entry + ones, entries - ones);
            self.byte += 8;
            self.from += 64;
            self.word = little_word(self.bytes, self.byte);
        }
    }
}

/// Writes ascending quotients into zeroed bytes.
pub(crate) struct QuotientsWriter<'a> {
    bytes: &'a mut [u8],
    entry: usize,
}

impl<'a> QuotientsWriter<'a> {
    pub(crate) fn new(bytes: &'a mut [u8]) -> Self {
        QuotientsWriter { bytes, entry: 0 }
    }

    /// Adds the quotient of the next entry.
    #[inline(always)]
    pub(crate) fn push(&mut self, quotient: usize) {
        let bit = self.entry + quotient;
        self.bytes[bit / 8] |= 1 << (bit % 8);
        self.entry += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_found() {
        // Three slots of eight quotients each: one has many entries, one has none.
        let mut quotients = vec![0usize, 0, 3, 3, 3, 7];
        quotients.extend([8 + 5; 130]);
        quotients.extend([8 + 7]);
        quotients.extend([24, 26, 31]);
        let mut bytes = vec![0; (quotients.len() + 32).div_ceil(8)];
        let mut writer = QuotientsWriter::new(&mut bytes);
        quotients.iter().for_each(|&quotient| writer.push(quotient));
        bytes.splice(0..0, [0xff; 3]);
        bytes.extend([0xff; 40]);
        let written = Quotients { bytes: &bytes, at: 3 };
        assert_eq!(written.count(quotients.len() + 32), quotients.len());
        for slot in 0..4 {
            let entry = quotients.partition_point(|&quotient| quotient < 8 * slot);
            let start = (entry, entry + 8 * slot);
            for quotient in 0..8 {
                let (low, high) = (8 * slot + quotient, 8 * slot + quotient + 1);
                let below = |end: usize| quotients.partition_point(|&other| other < end);
                assert_eq!(written.entries(start, quotient), below(low)..below(high), "{low}");
            }
            for skipped in 0..quotients.len() - entry {
                let mut rest = written.from(start);
                rest.skip(skipped);
                let read: Vec<usize> =
                    (entry + skipped..quotients.len()).map(|_| rest.take()).collect();
                assert_eq!(read, quotients[entry + skipped..], "{skipped}");
            }
        }
    }

    #[test]
    fn samples_lead_to_the_same_entries() {
        for crowded in [0usize, 1, 700, 5000] {
            let mut quotients: Vec<usize> = (0..3000).map(|n| n * n % 1999).collect();
            quotients.extend(vec![1234; crowded]);
            quotients.sort_unstable();
            let bits = quotients.len() + 2000;
            let mut bytes = vec![0; bits.div_ceil(8)];
            let mut writer = QuotientsWriter::new(&mut bytes);
            quotients.iter().for_each(|&quotient| writer.push(quotient));
            bytes.extend([0; 8]);
            let written = Quotients { bytes: &bytes, at: 0 };
            let samples = written.samples(bits.div_ceil(SAMPLED_BITS));
            for quotient in 0..1999 {
                let range = quotients.partition_point(|&other| other < quotient)
                    ..quotients.partition_point(|&other| other <= quotient);
                for end in [range.end, quotients.len()] {
                    assert_eq!(written.sampled_entries(&samples, quotient, end), range);
                }
                assert_eq!(written.entries((0, 0), quotient), range);
            }
        }
    }
}
