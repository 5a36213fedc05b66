//! The bytes of separators after their first eight, prefix-compressed.
//! ```text
//! stretch  group 0           group 1          ...   group 7      group 8           group 9
//! bytes    "share/doc/rust"  11, "n"                14, "/core"  "share/doc/zlib"  10, "z/x"
//!          whole             shared with group 0, own            whole             (numbers: u16)
//! ```
//! Invariant: damaged bytes give arbitrary tails, but nothing is read out of bounds.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::ops::Deref;

use crate::bits::key_bits::{bits_at, common_bits, compare};
use crate::bits::row::Row;

/// Groups per stretch; the first one's tail is stored whole.
const STRETCH: usize = 8;
/// The maximum number of shared bytes: longer keys are truncated.
const SHARED_MAX: usize = u16::MAX as usize;

/// The tails of all separators: 32-bit numbers and byte strings. They own their memory or lie in
/// place in an image.
pub struct SeparatorTails<N = Box<[u32]>, B = Box<[u8]>> {
    /// The end of each tail in `bytes`.
    pub ends: N,
    /// The bytes of all tails.
    pub bytes: B,
}

/// The bytes of one separator after its first eight.
#[derive(Clone, Copy, Default)]
pub struct SeparatorTail<'a> {
    shared: &'a [u8],
    own: &'a [u8],
}

impl<N: Row<u32>, B: Deref<Target = [u8]>> SeparatorTails<N, B> {
    /// Returns the tail of a group's separator.
    pub fn get(&self, group: usize) -> SeparatorTail<'_> {
        let kept = self.kept(group);
        let Some(first) = (group % STRETCH).checked_sub(1).map(|before| group - before - 1) else {
            return SeparatorTail { shared: &[], own: kept };
        };
        let Some((&shared, own)) = kept.split_first_chunk() else {
            return SeparatorTail::default();
        };
        let (whole, shared) = (self.kept(first), usize::from(u16::from_le_bytes(shared)));
        SeparatorTail { shared: &whole[..whole.len().min(shared)], own }
    }

    fn kept(&self, group: usize) -> &[u8] {
        let start = if group == 0 { 0 } else { self.ends.at(group - 1) };
        self.bytes.get(start as usize..self.ends.at(group) as usize).unwrap_or(&[])
    }
}

impl<'a> SeparatorTail<'a> {
    /// Compares the tail with the bytes of a key, as bit strings.
    pub fn compare(&self, key: &[u8]) -> Ordering {
        let cut = self.shared.len().min(key.len());
        self.shared[..cut]
            .cmp(&key[..cut])
            .then_with(|| compare(&self.shared[cut..], &[]))
            .then_with(|| compare(self.own, &key[cut..]))
    }

    /// Whether the first `bits` bits equal those of `key`.
    pub fn begins_as(&self, key: &[u8], bits: usize) -> bool {
        let in_shared = 8 * self.shared.len();
        let behind = key.get(self.shared.len()..).unwrap_or(&[]);
        same_bits(self.shared, key, bits.min(in_shared))
            && (bits <= in_shared || same_bits(self.own, behind, bits - in_shared))
    }

    /// Whether the first `bits` bits equal those of another tail.
    pub fn begins_like(&self, other: &SeparatorTail<'_>, bits: usize) -> bool {
        let in_shared = 8 * other.shared.len();
        self.begins_as(other.shared, bits.min(in_shared))
            && (bits <= in_shared
                || self.skip(other.shared.len()).begins_as(other.own, bits - in_shared))
    }

    /// Returns 64 bits from bit `at` on, the first one as the most significant.
    pub fn bits_at(&self, at: usize) -> u64 {
        let (byte, in_shared) = (at / 8, self.shared.len());
        if byte >= in_shared {
            return bits_at(self.own, at - 8 * in_shared);
        }
        // Nine bytes, as 64 bits need not begin at a byte.
        let mut around = [0; size_of::<u64>() + 1];
        let behind = self.shared[byte..].iter().chain(self.own);
        around.iter_mut().zip(behind).for_each(|(byte, from)| *byte = *from);
        bits_at(&around, at % 8)
    }

    /// Returns all bytes.
    pub fn to_vec(self) -> Vec<u8> {
        [self.shared, self.own].concat()
    }

    /// Returns the tail without its first `count` bytes.
    fn skip(&self, count: usize) -> SeparatorTail<'a> {
        let in_shared = count.min(self.shared.len());
        let shared = &self.shared[in_shared..];
        SeparatorTail { shared, own: self.own.get(count - in_shared..).unwrap_or(&[]) }
    }
}

/// Whether the first `bits` bits of two bit strings are equal.
fn same_bits(a: &[u8], b: &[u8], bits: usize) -> bool {
    common_bits(a, b).is_none_or(|common| common >= bits)
}

/// Builds the tails of consecutive separators.
#[derive(Default)]
pub struct SeparatorTailsBuilder {
    ends: Vec<u32>,
    bytes: Vec<u8>,
    /// The range of the stretch's first tail.
    whole: core::ops::Range<usize>,
}

impl SeparatorTailsBuilder {
    /// Appends the next tail.
    pub fn push(&mut self, rest: &[u8]) {
        let start = self.bytes.len();
        if self.ends.len().is_multiple_of(STRETCH) {
            self.bytes.extend_from_slice(rest);
            self.whole = start..self.bytes.len();
        } else {
            let shared = shared_bytes(&self.bytes[self.whole.clone()], rest);
            self.bytes.extend_from_slice(&(shared as u16).to_le_bytes());
            self.bytes.extend_from_slice(&rest[shared..]);
        }
        self.ends.push(u32::try_from(self.bytes.len()).expect("separators of less than 4 GiB"));
    }

    /// Returns the tails. None: no separator is longer than eight bytes.
    pub fn finish(self) -> Option<SeparatorTails> {
        let is_any = self.bytes.iter().any(|&byte| byte != 0);
        is_any.then(|| SeparatorTails { ends: self.ends.into(), bytes: self.bytes.into() })
    }
}

/// The length of the common prefix, at most `SHARED_MAX`.
fn shared_bytes(whole: &[u8], rest: &[u8]) -> usize {
    let same = whole.iter().zip(rest).take_while(|(a, b)| a == b).count();
    same.min(SHARED_MAX)
}

/// Estimates the size of tails from consecutive separators. Assumes that later separators share as
/// much with the first one as those so far.
#[derive(Default)]
pub struct SeparatorTailsCost {
    groups: usize,
    first: Vec<u8>,
    /// The length of the common prefix of all separators so far.
    prefix_bytes: usize,
    /// The first separator of the stretch.
    whole: Vec<u8>,
}

impl SeparatorTailsCost {
    /// Adds a separator and returns the bytes that its tail takes.
    pub fn push(&mut self, separator: &[u8]) -> usize {
        const END_BYTES: usize = size_of::<u32>();
        if self.groups == 0 {
            separator.clone_into(&mut self.first);
            self.prefix_bytes = separator.len();
        }
        self.prefix_bytes = self.prefix_bytes.min(shared_bytes(&self.first, separator));
        let before = self.prefix_bytes + size_of::<u64>();
        let length = separator.len().saturating_sub(before);
        let begins = self.groups.is_multiple_of(STRETCH);
        self.groups += 1;
        let kept = match begins {
            true => length,
            false => {
                let shared = shared_bytes(&self.whole, separator).saturating_sub(before);
                size_of::<u16>() + length - shared.min(length)
            }
        };
        if begins {
            separator.clone_into(&mut self.whole);
        }
        if length > 0 { kept + END_BYTES } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Strings that share much, little or nothing; some end in zeros.
    fn strings() -> Vec<Vec<u8>> {
        let mut strings: Vec<Vec<u8>> = vec![vec![], vec![0], vec![0, 0, 1], vec![7; 300]];
        for turn in 0..60usize {
            let stem = b"share/doc/rust/html/core/arch/x86_64/index";
            let mut string = stem[..turn * 7 % stem.len()].to_vec();
            string.extend((0..turn % 11).map(|at| (at * 37 + turn) as u8));
            string.extend(core::iter::repeat_n(0, turn % 3));
            strings.push(string);
            strings.push([&[7; 300][..], &[turn as u8; 3][..turn % 4]].concat());
        }
        strings
    }

    fn tails(strings: &[Vec<u8>]) -> SeparatorTails {
        let mut builder = SeparatorTailsBuilder::default();
        strings.iter().for_each(|string| builder.push(string));
        builder.finish().expect("there are some")
    }

    #[test]
    fn each_is_what_was_put_in() {
        for sorted in [false, true] {
            let mut strings = strings();
            if sorted {
                strings.sort();
            }
            let tails = tails(&strings);
            for (group, string) in strings.iter().enumerate() {
                assert_eq!(tails.get(group).to_vec(), *string, "{group}");
            }
            let whole: usize = strings.iter().map(Vec::len).sum();
            assert!(!sorted || tails.bytes.len() * 2 < whole, "{} of {whole}", tails.bytes.len());
        }
    }

    #[test]
    fn a_rest_is_asked_as_one_piece() {
        let strings = strings();
        let tails = tails(&strings);
        for (group, string) in strings.iter().enumerate() {
            let rest = tails.get(group);
            for at in (0..8 * string.len() + 70).step_by(5) {
                assert_eq!(rest.bits_at(at), bits_at(string, at), "{group} from bit {at}");
            }
            for (place, other) in strings.iter().enumerate() {
                assert_eq!(rest.compare(other), compare(string, other), "{group} and {place}");
                let common = common_bits(string, other).unwrap_or(usize::MAX);
                for bits in [0, 1, 9, 64, common.min(3000), common.min(3000) + 1] {
                    let (key, like) = (rest.begins_as(other, bits), tails.get(place));
                    assert_eq!(key, common >= bits, "{bits} bits of {group} and {place}");
                    assert_eq!(
                        rest.begins_like(&like, bits),
                        key,
                        "{bits} bits of {group} and {place}"
                    );
                }
            }
        }
    }

    #[test]
    fn words_alone_need_no_rests() {
        let mut builder = SeparatorTailsBuilder::default();
        (0..20).for_each(|_| builder.push(&[]));
        assert!(builder.finish().is_none());
    }

    #[test]
    fn damaged_bytes_are_no_panic() {
        let strings = strings();
        let sound = tails(&strings);
        for place in 0..sound.bytes.len() {
            let mut bytes = sound.bytes.clone();
            bytes[place] ^= 0xff;
            let damaged = SeparatorTails { ends: sound.ends.clone(), bytes };
            for group in 0..strings.len() {
                let rest = damaged.get(group);
                let _ = (rest.compare(b"share"), rest.bits_at(77), rest.begins_as(b"share", 60));
            }
        }
        let ends = sound.ends.iter().map(|end| end * 3).collect();
        let beyond: SeparatorTails = SeparatorTails { ends, bytes: sound.bytes };
        (0..strings.len()).for_each(|group| assert!(beyond.get(group).to_vec().len() <= 9000));
    }

    #[test]
    fn what_all_separators_share_costs_nothing() {
        for prefix_bytes in [0, 8, 300, 3000] {
            let prefix = vec![b'x'; prefix_bytes];
            let mut separators = strings();
            separators.sort();
            separators.iter_mut().for_each(|string| *string = [&prefix[..], string].concat());
            separators.insert(0, prefix);
            let (mut cost, mut builder) =
                (SeparatorTailsCost::default(), SeparatorTailsBuilder::default());
            let estimated: usize = separators.iter().map(|separator| cost.push(separator)).sum();
            let tails = separators.iter().map(|it| it.get(prefix_bytes + 8..).unwrap_or(&[]));
            tails.for_each(|rest| builder.push(rest));
            let taken = builder.bytes.len() + 4 * separators.len();
            let near = taken * 8 / 10..taken * 11 / 10;
            assert!(
                near.contains(&estimated),
                "{estimated} of {taken}, {prefix_bytes} bytes shared"
            );
        }
    }
}
