//! Codes' numbers as bits: the commoner a code, the fewer of them.
//! ```text
//! section  longest u8 | codes of 1 bit, of 2, ... of the longest: u16 each
//!          | where each list begins, in bits: u32 each | bits
//! ```
//! Numbers are given in the order of commonness, so that how many codes there are of each length
//! says all (canonical codes). What follows a section has eight bytes at least, which may be read
//! with its last. One code alone takes no bits. Where a number's bits begin is known only of a
//! list's first: the others' are found by reading on from there. Invariant: a section that is
//! checked leads to no number beyond the codes.

use alloc::vec::Vec;

use crate::bits::huffman::{canonical_codes, depths};
use crate::bits::packed::{BitWriter, load};

/// The most bits that a number takes.
const LENGTH_MAX: usize = 24;

/// The bits of each code, the commonest first. Requires: as many as there are counts, which
/// descend, and are not 0.
fn lengths(counts: &[u64]) -> Vec<u32> {
    let mut counts: Vec<u64> = counts.iter().rev().copied().collect();
    loop {
        let mut lengths = depths(&counts);
        lengths.sort_unstable();
        if lengths.last().is_none_or(|&longest| longest as usize <= LENGTH_MAX) {
            return lengths;
        }
        // Counts that differ less make codes whose lengths differ less.
        counts.iter_mut().for_each(|count| *count = *count / 2 + 1);
    }
}

/// How many codes have so many bits.
fn counts_of_lengths(lengths: &[u32]) -> Vec<u16> {
    let mut counts = vec![0; lengths.last().copied().unwrap_or(0) as usize];
    let coded = lengths.iter().filter(|&&length| length > 0);
    coded.for_each(|&length| counts[length as usize - 1] += 1);
    counts
}

/// Writes the section of some lists' numbers. Requires: number n is the nth commonest, and each one
/// occurs.
pub(crate) fn write_section<'a>(
    lists: impl ExactSizeIterator<Item = &'a [usize]> + Clone,
    codes: usize,
    out: &mut Vec<u8>,
) {
    let mut counts = vec![0u64; codes];
    lists.clone().flatten().for_each(|&number| counts[number] += 1);
    let lengths = lengths(&counts);
    let of_lengths = counts_of_lengths(&lengths);
    out.push(of_lengths.len() as u8);
    of_lengths.iter().for_each(|count| out.extend_from_slice(&count.to_le_bytes()));
    let mut at = 0u32;
    for list in lists.clone() {
        out.extend_from_slice(&at.to_le_bytes());
        at += list.iter().map(|&number| lengths[number]).sum::<u32>();
    }
    let words = canonical_codes(&lengths);
    let mut bits = BitWriter::new(out);
    lists.flatten().for_each(|&number| bits.push(words[number], lengths[number] as usize));
    bits.finish();
}

/// A section to be read.
#[derive(Clone, Copy)]
pub(crate) struct Section<'a> {
    /// From the section on, with what follows it.
    bytes: &'a [u8],
    lists: usize,
}

impl<'a> Section<'a> {
    pub(crate) fn new(bytes: &'a [u8], lists: usize) -> Self {
        Section { bytes, lists }
    }

    fn longest(&self) -> usize {
        usize::from(self.bytes[0])
    }

    /// How many codes have a length.
    fn codes_of(&self, length: usize) -> u64 {
        let at = 2 * length - 1;
        u64::from(u16::from_le_bytes([self.bytes[at], self.bytes[at + 1]]))
    }

    fn starts_at(&self) -> usize {
        1 + 2 * self.longest()
    }

    fn bits_at(&self) -> usize {
        self.starts_at() + size_of::<u32>() * self.lists
    }

    /// The numbers from the first of a list on.
    pub(crate) fn numbers_from(&self, list: usize) -> Numbers<'a> {
        let at = self.starts_at() + size_of::<u32>() * list;
        let start = self.bytes[at..].first_chunk().expect("each list has a start");
        Numbers { section: *self, at: 8 * self.bits_at() + u32::from_le_bytes(*start) as usize }
    }

    /// Whether it can be the section of lists with so many entries, of so many codes, in so many
    /// bytes.
    pub(crate) fn is_one(&self, entries: &[usize], codes: usize, len: usize) -> bool {
        if len == 0 || self.longest() > LENGTH_MAX || self.bits_at() > len {
            return false;
        }
        let longest = self.longest();
        let all = (1..=longest).map(|length| self.codes_of(length)).sum::<u64>();
        // All words are taken: whatever bits there are, they lead to a code.
        let words = (1..=longest).map(|length| self.codes_of(length) << (longest - length));
        let is_whole = longest == 0 || words.sum::<u64>() == 1 << longest;
        if is_whole && all.max(1) == codes as u64 {
            return self.lists_follow(entries, len);
        }
        false
    }

    /// Whether each list begins where the one before ends, and the last one ends in time.
    fn lists_follow(&self, entries: &[usize], len: usize) -> bool {
        let mut end = 8 * self.bits_at();
        for (list, &count) in entries.iter().enumerate() {
            let mut numbers = self.numbers_from(list);
            if numbers.at != end {
                return false;
            }
            for _ in 0..count {
                if numbers.at >= 8 * len && self.longest() > 0 {
                    return false;
                }
                numbers.take();
            }
            end = numbers.at;
        }
        end <= 8 * len
    }
}

/// Numbers, one after the other.
pub(crate) struct Numbers<'a> {
    section: Section<'a>,
    /// In bits.
    at: usize,
}

impl Numbers<'_> {
    /// The next one. Requires: there is one.
    pub(crate) fn take(&mut self) -> usize {
        let longest = self.section.longest();
        if longest == 0 {
            return 0;
        }
        let bits = load(self.section.bytes, self.at);
        let (mut first_word, mut first_number) = (0, 0);
        for length in 1..=longest {
            let codes = self.section.codes_of(length);
            let nth = (bits >> (64 - length)).wrapping_sub(first_word);
            if nth < codes {
                self.at += length;
                return (first_number + nth) as usize;
            }
            first_number += codes;
            first_word = (first_word + codes) << 1;
        }
        unreachable!("all words of a checked section are taken");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commoner_codes_are_shorter_and_together_take_the_least() {
        assert_eq!(lengths(&[7]), [0]);
        assert_eq!(lengths(&[9, 1]), [1, 1]);
        assert_eq!(lengths(&[45, 16, 13, 12, 9, 5]), [1, 3, 3, 3, 4, 4]);
        assert_eq!(lengths(&[1; 8]), [3; 8]);
        // Each as much as all rarer ones: as long as they are many, were it not for the limit.
        let doubling: Vec<u64> = (0..60).rev().map(|n| 1 << n).collect();
        let limited = lengths(&doubling);
        assert!(limited.is_sorted() && limited[59] as usize <= LENGTH_MAX, "{limited:?}");
        let taken: f64 = limited.iter().map(|&length| 0.5f64.powi(length as i32)).sum();
        assert_eq!(taken, 1.0);
    }

    #[test]
    fn a_section_gives_back_its_numbers() {
        for codes in [1usize, 2, 3, 17, 250] {
            let lists: Vec<Vec<usize>> = (0..5)
                .map(|list| (0..list * 300).map(|n| (n * n + list) % codes * (n % 3) / 2).collect())
                .chain([(0..codes).collect()])
                .collect();
            let slices = || lists.iter().map(Vec::as_slice).collect::<Vec<_>>();
            let mut bytes = Vec::new();
            write_section(slices().into_iter(), codes, &mut bytes);
            let len = bytes.len();
            bytes.resize(len + 8, 0xff);
            let section = Section::new(&bytes, lists.len());
            for (number, list) in lists.iter().enumerate() {
                let mut numbers = section.numbers_from(number);
                assert!(list.iter().all(|&expected| numbers.take() == expected), "{codes} codes");
            }
            let mut entries: Vec<usize> = lists.iter().map(Vec::len).collect();
            assert!(section.is_one(&entries, codes, len));
            assert!(!section.is_one(&entries, codes + 1, len));
            entries[2] += 1;
            assert!(codes == 1 || !section.is_one(&entries, codes, len), "{codes} codes");
        }
    }
}
