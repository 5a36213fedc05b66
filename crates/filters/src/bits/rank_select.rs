//! Rank and select on long bit vectors, with sparse precomputed answers.
//! ```text
//! bits      1011 0010 | 1101 0000 | 0110 ...      little-endian words, lowest bit first
//! ranks     0           4           7             u32 per block: the ones before it
//! samples   positions of ones 0, 64, 128, ...      u32 each
//! ```
//! Invariant: these views may lie over any bytes. Their answers may then be wrong, but nothing is
//! read out of bounds.

use crate::bits::simd::select_one;

/// Bits per word.
const WORD_BITS: usize = 64;
/// Words per block of [`Ranked::rank_in_block`].
const BLOCK_WORDS: usize = 8;
/// Bits per block: one cache line.
pub const BLOCK_BITS: usize = WORD_BITS * BLOCK_WORDS;
/// The position of every 64th one is sampled.
pub const SAMPLE_ONES: usize = 64;

/// A bit vector in little-endian words of eight bytes. Past the last word all bits are zeros.
#[derive(Clone, Copy)]
pub struct Bits<'a> {
    words: &'a [[u8; 8]],
}

impl<'a> Bits<'a> {
    /// A view of the whole words of `bytes`; trailing bytes are ignored.
    #[inline(always)]
    pub fn new(bytes: &'a [u8]) -> Self {
        Bits { words: bytes.as_chunks().0 }
    }

    /// Returns a word; 0 past the end.
    #[inline(always)]
    pub fn word(self, index: usize) -> u64 {
        self.words.get(index).map_or(0, |word| u64::from_le_bytes(*word))
    }

    /// Returns one bit.
    #[inline(always)]
    pub fn get(self, at: usize) -> bool {
        self.word(at / WORD_BITS) >> (at % WORD_BITS) & 1 == 1
    }

    /// Returns the position of the first one in `from..end`; `end` if there is none.
    #[inline(always)]
    pub fn next_one(self, from: usize, end: usize) -> usize {
        if from >= end {
            return end;
        }
        let mut index = from / WORD_BITS;
        let mut word = self.word(index) >> (from % WORD_BITS) << (from % WORD_BITS);
        while word == 0 {
            index += 1;
            if index * WORD_BITS >= end {
                return end;
            }
            word = self.word(index);
        }
        (index * WORD_BITS + word.trailing_zeros() as usize).min(end)
    }

    /// Returns the position of the last one in `start..end`.
    #[inline(always)]
    pub fn last_one(self, start: usize, end: usize) -> Option<usize> {
        if start >= end {
            return None;
        }
        let mut index = (end - 1) / WORD_BITS;
        let mut word = self.word(index) & low_ones((end - 1) % WORD_BITS + 1);
        while word == 0 {
            if index * WORD_BITS <= start {
                return None;
            }
            index -= 1;
            word = self.word(index);
        }
        let place = index * WORD_BITS + word.ilog2() as usize;
        (place >= start).then_some(place)
    }
}

/// Returns a word whose `count` lowest bits are ones. Requires: `count` <= 64.
#[inline(always)]
fn low_ones(count: usize) -> u64 {
    if count == WORD_BITS { u64::MAX } else { (1 << count) - 1 }
}

/// A bit vector with the number of ones before each word, or before each block of eight words.
#[derive(Clone, Copy)]
pub struct Ranked<'a> {
    bytes: &'a [u8],
    ranks: &'a [[u8; 4]],
}

impl<'a> Ranked<'a> {
    /// A view of bits and the ranks that [`write_ranks`] made of them.
    #[inline(always)]
    pub fn new(bytes: &'a [u8], ranks: &'a [u8]) -> Self {
        Ranked { bytes, ranks: ranks.as_chunks().0 }
    }

    #[inline(always)]
    fn kept_rank(self, index: usize) -> usize {
        self.ranks.get(index).map_or(0, |rank| u32::from_le_bytes(*rank) as usize)
    }

    /// Returns the number of ones before bit `at`. Requires: ranks per word.
    #[inline(always)]
    pub fn rank_in_word(self, at: usize) -> usize {
        let index = at / WORD_BITS;
        let word = Bits::new(self.bytes).word(index) & low_ones(at % WORD_BITS);
        self.kept_rank(index).wrapping_add(word.count_ones() as usize)
    }

    /// Same as [`Ranked::rank_in_word`], but uses only every eighth rank. It measures what finer
    /// ranks save.
    #[inline(always)]
    pub fn rank_from_eighth_word(self, at: usize) -> usize {
        let first = at / BLOCK_BITS * BLOCK_WORDS;
        self.kept_rank(first).wrapping_add(self.ones_of_block(at))
    }

    /// Returns the number of ones before bit `at`. Requires: ranks per block.
    #[inline(always)]
    pub fn rank_in_block(self, at: usize) -> usize {
        self.kept_rank(at / BLOCK_BITS).wrapping_add(self.ones_of_block(at))
    }

    /// Estimates the number of ones before bit `at` by linear interpolation between blocks, without
    /// reading the bits. Requires: ranks per block. Damaged ranks give arbitrary results.
    #[inline(always)]
    pub fn estimate_rank(self, at: usize) -> usize {
        let (block, within) = (at / BLOCK_BITS, at % BLOCK_BITS);
        let (before, after) = (self.kept_rank(block), self.kept_rank(block + 1));
        let more = after.saturating_sub(before).min(BLOCK_BITS) * within / BLOCK_BITS;
        before.wrapping_add(more)
    }

    /// Returns the number of ones before bit `at` in its block. No branch depends on `at`, as it
    /// would be mispredicted all the time.
    #[inline(always)]
    fn ones_of_block(self, at: usize) -> usize {
        const BLOCK_BYTES: usize = BLOCK_BITS / 8;
        let (blocks, rest) = self.bytes.as_chunks::<BLOCK_BYTES>();
        let Some(block) = blocks.get(at / BLOCK_BITS) else {
            return ones_before(rest.as_chunks().0, at % BLOCK_BITS);
        };
        ones_before(block.as_chunks().0, at % BLOCK_BITS)
    }
}

/// Returns the number of ones before bit `at` of a few words.
#[inline(always)]
fn ones_before(words: &[[u8; 8]], at: usize) -> usize {
    let mut ones = 0;
    // A plain loop: an iterator's call might be compiled without this processor's instructions.
    for (index, word) in words.iter().enumerate() {
        let len = at.saturating_sub(index * WORD_BITS).min(WORD_BITS);
        ones += (u64::from_le_bytes(*word) & low_ones(len)).count_ones() as usize;
    }
    ones
}

/// A bit vector with the positions of sampled ones.
#[derive(Clone, Copy)]
pub struct Selected<'a> {
    bits: Bits<'a>,
    samples: &'a [[u8; 4]],
}

impl<'a> Selected<'a> {
    /// A view of bits and the samples that [`write_samples`] made of them.
    #[inline(always)]
    pub fn new(bits: Bits<'a>, samples: &'a [u8]) -> Self {
        Selected { bits, samples: samples.as_chunks().0 }
    }

    /// Estimates the position of the one that has `rank` ones below it, and the distance to the
    /// next one. Interpolates between two samples without reading the bits. Damaged samples give
    /// arbitrary results.
    #[inline(always)]
    pub fn estimate_select(self, rank: usize) -> Option<(usize, usize)> {
        let sample = |index: usize| {
            self.samples.get(index).map(|sample| u64::from(u32::from_le_bytes(*sample)))
        };
        let (from, to) = (sample(rank / SAMPLE_ONES)?, sample(rank / SAMPLE_ONES + 1)?);
        let width = to.saturating_sub(from);
        let before = width * (rank % SAMPLE_ONES) as u64 / SAMPLE_ONES as u64;
        Some(((from + before) as usize, (width / SAMPLE_ONES as u64) as usize))
    }

    /// Returns the position of the one that has `rank` ones below it. None: the search from the
    /// nearest sample below did not find it within `words_max` words. Uses only every `SKIP`-th
    /// sample: 1 is fastest.
    #[inline(always)]
    pub fn select<const SKIP: usize>(self, rank: usize, words_max: usize) -> Option<usize> {
        let sampled = rank / (SAMPLE_ONES * SKIP);
        let from = u32::from_le_bytes(*self.samples.get(sampled * SKIP)?) as usize;
        let mut left = (rank - sampled * SAMPLE_ONES * SKIP) as u32;
        let first = from / WORD_BITS;
        let words = self.bits.words.get(first..)?;
        let (head, words) = words[..words.len().min(words_max * SKIP)].split_first()?;
        let head = u64::from_le_bytes(*head) >> (from % WORD_BITS) << (from % WORD_BITS);
        if left < head.count_ones() {
            return Some(first * WORD_BITS + select_one(head, left) as usize);
        }
        left -= head.count_ones();
        // Four words at a time, until they hold the one: where nodes are wide, a search passes many
        // words.
        let mut passed = 0;
        for four in words.as_chunks::<4>().0 {
            let ones = four.iter().map(|word| u64::from_le_bytes(*word).count_ones()).sum::<u32>();
            if left < ones {
                break;
            }
            left -= ones;
            passed += 4;
        }
        for (index, word) in words.iter().enumerate().skip(passed) {
            let word = u64::from_le_bytes(*word);
            if left < word.count_ones() {
                return Some((first + 1 + index) * WORD_BITS + select_one(word, left) as usize);
            }
            left -= word.count_ones();
        }
        None
    }
}

/// The number of ranks that [`write_ranks`] writes for `bits` bits, including one for the end.
pub fn ranks_len(bits: usize, block_bits: usize) -> usize {
    bits / block_bits + 1
}

/// Writes the number of ones before each block of bits. Requires: `ranks` has [`ranks_len`] times
/// four bytes.
pub fn write_ranks(bits: &[u8], block_bits: usize, ranks: &mut [u8]) {
    let mut blocks = bits.chunks(block_bits / 8);
    let mut ones = 0u32;
    for rank in ranks.as_chunks_mut::<4>().0 {
        *rank = ones.to_le_bytes();
        let words = blocks.next().unwrap_or(&[]).as_chunks::<8>().0;
        ones += words.iter().map(|word| u64::from_le_bytes(*word).count_ones()).sum::<u32>();
    }
}

/// The number of samples that [`write_samples`] writes for `ones` ones.
pub fn samples_len(ones: usize) -> usize {
    ones.div_ceil(SAMPLE_ONES)
}

/// Writes the position of every 64th one. Requires: `samples` has [`samples_len`] times four bytes.
pub fn write_samples(bits: &[u8], samples: &mut [u8]) {
    let mut samples = samples.as_chunks_mut::<4>().0.iter_mut();
    let mut ones = 0usize;
    for (index, word) in bits.as_chunks::<8>().0.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let wanted = ones.next_multiple_of(SAMPLE_ONES);
        ones += word.count_ones() as usize;
        if wanted < ones {
            let before = ones - word.count_ones() as usize;
            let place = index * WORD_BITS + select_one(word, (wanted - before) as u32) as usize;
            let sample = samples.next().expect("a sample for each 64th one");
            *sample = u32::try_from(place).expect("bits are counted in 32 bits").to_le_bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bits of varying density.
    fn some_bits(words: u64) -> Vec<u8> {
        let word = |n: u64| {
            let mixed = (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31);
            let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            match n % 16 {
                0..8 => mixed ^ mixed >> 32,
                8..12 => mixed & mixed << 9 & mixed >> 20,
                12 => u64::MAX,
                _ => 0,
            }
        };
        (0..words).flat_map(|n| word(n).to_le_bytes()).collect()
    }

    #[test]
    fn ranks_and_places_are_those_of_a_plain_count() {
        for words in [1, 7, 8, 9, 64, 333] {
            let bytes = some_bits(words);
            let bits = Bits::new(&bytes);
            let len = bytes.len() * 8;
            let mut fine = vec![0; 4 * ranks_len(len, 64)];
            let mut coarse = vec![0; 4 * ranks_len(len, BLOCK_BITS)];
            write_ranks(&bytes, 64, &mut fine);
            write_ranks(&bytes, BLOCK_BITS, &mut coarse);
            let places: Vec<usize> = (0..len).filter(|&at| bits.get(at)).collect();
            let mut samples = vec![0; 4 * samples_len(places.len())];
            write_samples(&bytes, &mut samples);
            for at in 0..=len {
                let truth = places.partition_point(|&place| place < at);
                assert_eq!(Ranked::new(&bytes, &fine).rank_in_word(at), truth);
                assert_eq!(Ranked::new(&bytes, &fine).rank_from_eighth_word(at), truth);
                let coarse = Ranked::new(&bytes, &coarse);
                assert_eq!(coarse.rank_in_block(at), truth);
                let block = at / BLOCK_BITS * BLOCK_BITS;
                let most = coarse.rank_in_block((block + BLOCK_BITS).min(len));
                let about = coarse.estimate_rank(at);
                assert!((coarse.rank_in_block(block)..=most).contains(&about), "{at}: {about}");
            }
            let selected = Selected::new(bits, &samples);
            for (rank, place) in places.iter().enumerate() {
                assert_eq!(selected.select::<1>(rank, 99), Some(*place));
                assert_eq!(selected.select::<8>(rank, 99), Some(*place));
            }
            assert_eq!(selected.select::<1>(places.len() + 64, 9), None);
            for (rank, _) in places.iter().enumerate() {
                let next = rank / SAMPLE_ONES * SAMPLE_ONES + SAMPLE_ONES;
                let about = selected.estimate_select(rank);
                assert_eq!(about.is_some(), next < places.len());
                let between = |at| places[next - SAMPLE_ONES] <= at && at < places[next];
                assert!(about.is_none_or(|(at, _)| between(at)), "{rank}: {about:?}");
            }
        }
    }

    #[test]
    fn neighbours_are_those_of_a_plain_search() {
        let bytes = some_bits(20);
        let bits = Bits::new(&bytes);
        let len = bytes.len() * 8;
        for from in (0..len).step_by(3) {
            for end in [from, from + 1, from + 63, from + 64, from + 200, len, len + 70] {
                let places = || (from..end.min(len)).filter(|&at| bits.get(at));
                assert_eq!(bits.next_one(from, end), places().next().unwrap_or(end));
                assert_eq!(bits.last_one(from, end), places().next_back());
            }
        }
    }

    #[test]
    fn beyond_the_end_nothing_is_read() {
        let bits = Bits::new(&[0xff; 12]);
        assert!(bits.get(63) && !bits.get(64) && !bits.get(usize::MAX));
        let ranked = Ranked::new(&[0xff; 12], &[1; 5]);
        assert_eq!(ranked.rank_in_word(640), 0);
        assert_eq!(ranked.rank_in_block(5120), 0);
        assert_eq!(Selected::new(bits, &[0xff; 4]).select::<1>(3, 4), None);
        assert_eq!(Selected::new(bits, &[]).select::<1>(0, 4), None);
    }
}
