//! Huffman-coded numbers of codes: frequent codes take fewer bits.
//! ```text
//! section  longest u8 | codes of 1 bit, of 2, ... of the longest: u16 each
//!          | start of each list, in bits: u32 each | bits
//! ```
//! Numbers are in the order of frequency, so the number of codes of each length defines all
//! (canonical codes). A section must be followed by at least eight bytes, which may be read with
//! its last ones. A single code takes no bits. Only the first number of each list has a known
//! position; the others are found by decoding from there.
//!
//! Invariant: a section that was checked yields no number beyond the codes.

use alloc::vec::Vec;

use crate::bits::huffman::{canonical_codes, depths};
use crate::bits::packed::{BitWriter, load};

/// The maximum number of bits per number.
const LENGTH_MAX: usize = 24;

/// Returns the length of each code, most frequent first. Requires: `counts` descend and are not 0.
fn lengths(counts: &[u64]) -> Vec<u32> {
    let mut counts: Vec<u64> = counts.iter().rev().copied().collect();
    loop {
        let mut lengths = depths(&counts);
        lengths.sort_unstable();
        if lengths.last().is_none_or(|&longest| longest as usize <= LENGTH_MAX) {
            return lengths;
        }
        // More even counts give more even lengths.
        counts.iter_mut().for_each(|count| *count = *count / 2 + 1);
    }
}

/// Counts the codes of each length.
fn counts_of_lengths(lengths: &[u32]) -> Vec<u16> {
    let mut counts = vec![0; lengths.last().copied().unwrap_or(0) as usize];
    let coded = lengths.iter().filter(|&&length| length > 0);
    coded.for_each(|&length| counts[length as usize - 1] += 1);
    counts
}

/// Writes the section for the numbers of some lists. Requires: number n is the nth most frequent,
/// and each occurs.
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

/// A view of a section.
#[derive(Clone, Copy)]
pub(crate) struct Section<'a> {
    /// The section and the bytes that follow it.
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

    /// The number of codes of a length.
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

    /// Returns the numbers from the first one of a list on.
    pub(crate) fn numbers_from(&self, list: usize) -> Numbers<'a> {
        let at = self.starts_at() + size_of::<u32>() * list;
        let start = self.bytes[at..].first_chunk().expect("each list has a start");
        Numbers { section: *self, at: 8 * self.bits_at() + u32::from_le_bytes(*start) as usize }
    }

    /// Whether this can be the section of `codes` codes in `len` bytes, for lists with these
    /// numbers of entries.
    pub(crate) fn is_valid(&self, entries: &[usize], codes: usize, len: usize) -> bool {
        if len == 0 || self.longest() > LENGTH_MAX || self.bits_at() > len {
            return false;
        }
        let longest = self.longest();
        let all = (1..=longest).map(|length| self.codes_of(length)).sum::<u64>();
        // The codes are complete: any bits decode to a number.
        let words = (1..=longest).map(|length| self.codes_of(length) << (longest - length));
        let is_whole = longest == 0 || words.sum::<u64>() == 1 << longest;
        if is_whole && all.max(1) == codes as u64 {
            return self.lists_follow(entries, len);
        }
        false
    }

    /// Whether each list begins where the previous one ends, and the last one ends within `len`
    /// bytes.
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

/// Iterates over numbers.
pub(crate) struct Numbers<'a> {
    section: Section<'a>,
    /// The position in bits.
    at: usize,
}

impl Numbers<'_> {
    /// Returns the next number. Requires: there is one.
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
        // Each count equals the sum of all rarer ones, so lengths would grow linearly without the
        // limit.
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
            assert!(section.is_valid(&entries, codes, len));
            assert!(!section.is_valid(&entries, codes + 1, len));
            entries[2] += 1;
            assert!(codes == 1 || !section.is_valid(&entries, codes, len), "{codes} codes");
        }
    }
}
