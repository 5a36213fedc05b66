//! The quotients of packed entries, in unary.
//! ```text
//! 0 0 1 0 1 1 0 0 1 ...     a one for each entry, a zero behind those of each quotient
//!     2   3 3     5         entry n, of quotient q, is bit n + q
//! ```
//! Quotients are counted over all slots (Elias and Fano's code of ascending numbers). So a slot's
//! bits begin at the number of entries before it, and of quotients before its first one.
//! Invariant: there are as many ones as entries.

use alloc::vec::Vec;

use crate::bits::search::partition_point;
use crate::bits::select::{little_word, select_zero};
use crate::grf::overlay::packed_layout::SAMPLE_BYTES;
use core::ops::Range;

/// Bits from one sample to the next.
pub(crate) const SAMPLED_BITS: usize = 512;

/// Of the last sample before an entry: the first entry behind it, and its bit.
pub(crate) fn last_sample(samples: &[[u8; SAMPLE_BYTES]], entry: usize) -> (usize, usize) {
    let entries_before = |sample: usize| u32::from_le_bytes(samples[sample]) as usize;
    let sample = partition_point(1..samples.len(), |sample| entries_before(sample) <= entry) - 1;
    (entries_before(sample), sample * SAMPLED_BITS)
}

/// Quotients to be read: bits from `at` on, lowest first.
#[derive(Clone, Copy)]
pub(crate) struct Quotients<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) at: usize,
}

impl<'a> Quotients<'a> {
    /// The entries of a quotient, counted from a slot's first one. `entry` is the slot's first
    /// entry, and its quotients begin at `bit`.
    #[inline(always)]
    pub(crate) fn entries(self, (entry, bit): (usize, usize), quotient: usize) -> Range<usize> {
        if quotient == 0 {
            return entry..entry + self.ones(bit);
        }
        let (byte, skipped) = (self.at + bit / 8, bit % 8);
        // Zeros of the slot before.
        let before = !u32::from(self.bytes[byte]) & ((1 << skipped) - 1);
        let rank = quotient as u32 - 1 + before.count_ones();
        let from = select_zero::<2>(self.bytes, byte, rank) + 1;
        let entry = entry + from - skipped - quotient;
        entry..entry + self.ones(bit - skipped + from)
    }

    /// As [`Quotients::entries`], where there are samples, of a quotient that is counted over all
    /// slots. No entry of it has this number or a greater one.
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

    /// The first entry that is not of a lesser quotient.
    fn first_of(self, samples: &[[u8; SAMPLE_BYTES]], quotient: usize, end: usize) -> usize {
        let Some(zeros) = quotient.checked_sub(1) else { return 0 };
        let entries_before = |sample: usize| u32::from_le_bytes(samples[sample]) as usize;
        let zeros_before = |sample: usize| sample * SAMPLED_BITS - entries_before(sample);
        // Not before as many bits as there are zeros, nor behind all entries up to the end.
        let (from, to) = (zeros / SAMPLED_BITS, (end + quotient) / SAMPLED_BITS);
        let places = from + 1..samples.len().min(to + 1).max(from + 1);
        let sample = partition_point(places, |sample| zeros_before(sample) <= zeros) - 1;
        let bit = sample * SAMPLED_BITS;
        let rank = (zeros - zeros_before(sample)) as u32;
        let zero = bit + select_zero::<8>(self.bytes, self.at + bit / 8, rank);
        zero - zeros
    }

    /// The ones from a bit on.
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
        // Behind the bytes there are zeros.
        loop {
            let ones = little_word(self.bytes, self.at + end / 8).trailing_ones() as usize;
            end += ones;
            if ones < u64::BITS as usize {
                return end - bit;
            }
        }
    }

    /// The quotients of a slot's entries, and of those behind. `entry` is the slot's first entry,
    /// and its quotients begin at `bit`.
    #[inline(always)]
    pub(crate) fn from(self, (entry, bit): (usize, usize)) -> QuotientsOf<'a> {
        let skipped = bit % 8;
        let byte = self.at + bit / 8;
        let word = little_word(self.bytes, byte) >> skipped << skipped;
        QuotientsOf { bytes: self.bytes, byte, word, from: bit - skipped, entry }
    }

    /// How many ones there are before so many bits, the first of which are none.
    pub(crate) fn samples(self, samples: usize) -> Vec<[u8; SAMPLE_BYTES]> {
        let mut ones = 0;
        let sample = |place: usize| {
            let before = ones as u32;
            ones += self.ones_within(place * SAMPLED_BITS..(place + 1) * SAMPLED_BITS);
            before.to_le_bytes()
        };
        (0..samples).map(sample).collect()
    }

    /// How many ones there are in the first `bits` bits.
    pub(crate) fn count(self, bits: usize) -> usize {
        self.ones_within(0..bits)
    }

    /// How many ones there are from a bit, which begins a byte, to another one.
    fn ones_within(self, bits: Range<usize>) -> usize {
        let ones = |from: usize| {
            let word = little_word(self.bytes, self.at + from / 8);
            let left = bits.end - from;
            if left < 64 { word & ((1 << left) - 1) } else { word }.count_ones() as usize
        };
        bits.clone().step_by(64).map(ones).sum()
    }
}

/// The quotients of entries, one after the other.
pub(crate) struct QuotientsOf<'a> {
    bytes: &'a [u8],
    /// Where the word is, what is left of it, and its first bit.
    byte: usize,
    word: u64,
    from: usize,
    entry: usize,
}

impl QuotientsOf<'_> {
    /// The next entry's, counted over all slots; behind the last entry, anything.
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

    /// Goes past some entries.
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

/// Sets the bits of ascending quotients in bytes that are 0.
pub(crate) struct QuotientsWriter<'a> {
    bytes: &'a mut [u8],
    entry: usize,
}

impl<'a> QuotientsWriter<'a> {
    pub(crate) fn new(bytes: &'a mut [u8]) -> Self {
        QuotientsWriter { bytes, entry: 0 }
    }

    /// Adds the next entry's.
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
        // Three slots of eight quotients each, of which one has many entries and one none.
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
