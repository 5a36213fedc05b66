//! The directory finds the group of a key: the last one whose separator is not above the key.
//! ```text
//! prefix      the common prefix of all keys of the base, in bytes
//! separators  per group, 8 bytes of its first key after the prefix, as numbers
//! tails       per group, further bytes of the separator, where 8 bytes do not tell it from the
//!             previous group's (separator_tails.rs)
//! radix       high bits of a separator -> the first group from there on
//! ```
//! Invariant: as a bit string, a separator is above the last key of the previous group, and at or
//! below its own group's first key. It is at least as long as its group's common prefix.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::base::filter::{Trace, Untraced, prefetch_lines_traced};
use crate::bits::key_bits::{bits_at, compare, word_at};
use crate::bits::row::Row;
use crate::bits::search::{first_not, partition_point};
use crate::fingerprint::group::GROUP_ALIGN;
use crate::fingerprint::separator_tails::{
    SeparatorTail, SeparatorTails, SeparatorTailsBuilder, SeparatorTailsCost,
};
use core::cmp::Ordering;
use core::ops::Deref;

/// Steps of a search within a radix slot: where groups are evenly spread, it holds fewer than four.
const SLOT_STEPS: u32 = 2;

/// Groups to check linearly before a search, which costs as much.
const STEPS: usize = 6;

/// Bits of a key's relative position between its group's separator and the next one's.
pub const ACROSS_BITS: u32 = 16;

/// An estimate of where a key's block lies.
#[derive(Clone, Copy, Default)]
pub struct PlaceEstimate {
    /// The offset of the group, which is exact.
    pub group_at: usize,
    /// The estimated offset of the block.
    pub at: usize,
    /// The key's relative position from its group's separator to the next one's, in
    /// 2^-[`ACROSS_BITS`].
    pub across: usize,
}

/// A key's place among the groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Among {
    /// Below the first separator.
    Below,
    /// At or above this group's separator, and below the next one's.
    Group(usize),
    /// Above the last key.
    Above,
}

/// The separators of all groups, as 64-bit words, 32-bit numbers and byte strings. They own their
/// memory or lie in place in an image.
#[derive(Default)]
pub struct Directory<W = Box<[u64]>, N = Box<[u32]>, B = Box<[u8]>> {
    /// The common prefix of all keys.
    pub prefix: Prefix<B>,
    /// The first eight bytes of each group's separator after the prefix.
    pub separators: W,
    /// The offset of each group in the arena, in units of 8 bytes.
    pub offsets: N,
    /// The further bytes of separators that have more than eight.
    pub tails: Option<SeparatorTails<N, B>>,
    /// For each slot, that is each value of a separator's high bits, the first group at or after
    /// it.
    pub radix: N,
    /// The right shift that turns a separator into its slot.
    pub radix_shift: u32,
    /// An upper bound of all keys.
    pub last: B,
}

/// The common prefix of all keys.
#[derive(Default)]
pub struct Prefix<B> {
    bytes: B,
    /// The first eight bytes.
    head: u64,
}

impl<B: Deref<Target = [u8]>> Prefix<B> {
    /// A prefix of these bytes.
    pub fn new(bytes: B) -> Self {
        let head = word_at(&bytes, 0);
        Prefix { bytes, head }
    }

    /// Same as [`Prefix::new`], given the first eight bytes.
    #[inline(always)]
    pub fn with_head(bytes: B, head: u64) -> Self {
        Prefix { bytes, head }
    }

    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    #[inline(always)]
    fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether `key` begins with the prefix. Makes no call if the prefix is short.
    #[inline(always)]
    fn begins(&self, key: &[u8]) -> bool {
        let len = self.len();
        match key.first_chunk::<8>() {
            _ if len == 0 => true,
            Some(first) => {
                let other = u64::from_be_bytes(*first) ^ self.head;
                other >> (64 - 8 * len.min(8)) == 0
                    && (len <= 8 || key[8..].starts_with(&self.bytes[8..]))
            }
            None => key.starts_with(&self.bytes),
        }
    }
}

/// Builds a [`Directory`].
#[derive(Default)]
pub struct DirectoryBuilder {
    separators: Vec<u8>,
    ends: Vec<usize>,
    offsets: Vec<u32>,
    prefix_bits_min: usize,
    tails_cost: SeparatorTailsCost,
}

impl DirectoryBuilder {
    /// Adds a group with a common prefix of `prefix_bits` bits, at `offset` in units of 8 bytes.
    /// Returns the approximate size of its separator's tail in bytes.
    pub fn push(&mut self, separator: &[u8], prefix_bits: usize, offset: u32) -> usize {
        let first = self.ends.is_empty();
        self.prefix_bits_min =
            if first { prefix_bits } else { self.prefix_bits_min.min(prefix_bits) };
        self.separators.extend_from_slice(separator);
        self.ends.push(self.separators.len());
        self.offsets.push(offset);
        self.tails_cost.push(separator)
    }

    /// The heap memory in use, in bytes.
    pub fn heap_bytes(&self) -> usize {
        self.separators.capacity() + 8 * self.ends.capacity() + 4 * self.offsets.capacity()
    }

    /// Returns the directory of all groups. `first` and `last` are the first and the last key.
    pub fn finish(self, first: &[u8], last: &[u8]) -> Directory {
        let shared = first.iter().zip(last).take_while(|(a, b)| a == b).count();
        let skip = shared.min(self.prefix_bits_min / 8);
        let (mut words, mut tails) = (Vec::new(), SeparatorTailsBuilder::default());
        let mut start = 0;
        for &end in &self.ends {
            let separator = &self.separators[start..end];
            words.push(word_at(separator, skip));
            tails.push(separator.get(skip + 8..).unwrap_or(&[]));
            start = end;
        }
        let (radix, radix_shift) = radix_table(&words);
        Directory {
            prefix: Prefix::new(first[..skip].into()),
            separators: words.into_boxed_slice(),
            offsets: self.offsets.into_boxed_slice(),
            tails: tails.finish(),
            radix,
            radix_shift,
            last: last.into(),
        }
    }
}

/// The maximum number of radix slots per group.
const SLOTS_PER_GROUP: usize = 2;

/// Returns the radix table and its shift. The table has, for each slot, the first group with a
/// separator in it or after it; then the number of groups.
pub fn radix_table(separators: &[u64]) -> (Box<[u32]>, u32) {
    let (Some(least), Some(most)) = (separators.first(), separators.last()) else {
        return (Box::default(), 0);
    };
    let slots_wanted = (SLOTS_PER_GROUP * separators.len()) as u64;
    let width = most - least;
    let shift = (0..64).find(|shift| width >> shift < slots_wanted).unwrap_or(63);
    let slots = (width >> shift) as usize + 1;
    let mut radix = Vec::with_capacity(slots + 1);
    for (group, separator) in separators.iter().enumerate() {
        let slot = ((separator - least) >> shift) as usize;
        while radix.len() <= slot {
            radix.push(group as u32);
        }
    }
    radix.push(separators.len() as u32);
    (radix.into_boxed_slice(), shift as u32)
}

/// Operations that only in-memory directories need.
impl Directory {
    /// Returns the size of each allocation, in bytes.
    pub fn allocations(&self) -> [usize; 7] {
        let (rest_ends, rest_bytes) =
            self.tails.as_ref().map_or((0, 0), |tails| (4 * tails.ends.len(), tails.bytes.len()));
        let words = 8 * self.separators.len();
        let (offsets, radix) = (4 * self.offsets.len(), 4 * self.radix.len());
        [self.prefix.len(), words, offsets, rest_ends, rest_bytes, radix, self.last.len()]
    }

    /// Same as [`Directory::find`], for a key that is not below any key of `group`: searches from
    /// there first.
    #[inline(always)]
    pub fn find_from(&self, group: usize, key: &[u8], word: u64) -> Among {
        // The last group is left to the search, as its end is not a separator.
        let after = self.separators[group..].first_chunk::<{ STEPS + 1 }>();
        if let Some(after) = after.filter(|after| self.tails.is_none() && word >= after[0]) {
            // Counted without an early exit, as the distance to the next key cannot be predicted.
            let steps = after[1..].iter().map(|&next| usize::from(next <= word)).sum::<usize>();
            if steps < STEPS {
                return Among::Group(group + steps);
            }
        }
        self.find(key, word, &mut Untraced)
    }

    /// Prefetches where the search for `key` begins, and where it ends if groups are evenly spread.
    #[inline(always)]
    pub fn load_about<T: Trace>(&self, key: &[u8], trace: &mut T) {
        let least = self.separators.first().copied().unwrap_or(0);
        let slot = self.radix_slot(word_at(key, self.prefix.len()).saturating_sub(least));
        // A slot is as wide as a power of two, so there are one to two slots per group.
        let group = slot * self.len() / self.radix.len().max(1);
        prefetch_lines_traced(&self.radix, slot, 1, trace);
        prefetch_lines_traced(&self.separators, group, 1, trace);
        prefetch_lines_traced(&self.offsets, group, 1, trace);
    }

    /// How far `key` lies above the last key. Both are 64-bit numbers from a byte shortly before
    /// the keys' common prefix ends.
    pub fn distance_above(&self, key: &[u8]) -> u64 {
        let at = self.edge_at();
        match compare(&key[..key.len().min(at)], &self.prefix.bytes[..at]) {
            Ordering::Greater => u64::MAX,
            _ => word_at(key, at).saturating_sub(word_at(&self.last, at)),
        }
    }

    /// How far `key` lies below the first separator, in the same numbers.
    pub fn distance_below(&self, key: &[u8]) -> u64 {
        let at = self.edge_at();
        match compare(&key[..key.len().min(at)], &self.prefix.bytes[..at]) {
            Ordering::Less => u64::MAX,
            _ => self.first_word(at).saturating_sub(word_at(key, at)),
        }
    }

    /// Such numbers begin some bytes before the common prefix ends, so that ever larger keys remain
    /// distinct.
    fn edge_at(&self) -> usize {
        const BYTES_BEFORE: usize = 3;
        self.prefix.len().saturating_sub(BYTES_BEFORE)
    }

    /// Returns the word of the first separator from byte `at` of the prefix on.
    fn first_word(&self, at: usize) -> u64 {
        let skipped = 8 * (self.prefix.len() - at);
        let first = self.separators.first().copied().unwrap_or(0);
        word_at(&self.prefix.bytes, at) | first >> skipped
    }
}

impl<W: Row<u64>, N: Row<u32>, B: Deref<Target = [u8]>> Directory<W, N, B> {
    /// The number of groups.
    pub fn len(&self) -> usize {
        self.separators.len()
    }

    /// Whether there are no groups.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the offset of a group in the arena, in units of 8 bytes.
    #[inline(always)]
    pub fn offset(&self, group: usize) -> usize {
        self.offsets.at(group) as usize
    }

    /// Estimates where the block of a key with this word lies in its group. It assumes evenly
    /// spread keys, which is close for most groups. The estimate needs no read of the group, so its
    /// block can be fetched together with its header. Damaged bytes give arbitrary results.
    #[inline(always)]
    pub fn estimate_place(&self, group: usize, word: u64) -> PlaceEstimate {
        let (start, next) = (self.offset(group), group + 1);
        if next >= self.len() {
            return PlaceEstimate {
                group_at: start * GROUP_ALIGN,
                at: start * GROUP_ALIGN,
                across: 0,
            };
        }
        let low = self.separators.at(group);
        // Not zero, as the next separator may be the same word.
        let width = self.separators.at(next).saturating_sub(low) | 1;
        // These bits suffice, and a word below the next separator stays below it.
        let scale = width.leading_zeros();
        let high = |word: u64| (word << scale >> (64 - ACROSS_BITS)) as u32;
        let across = (high(word.saturating_sub(low)) << ACROSS_BITS) / high(width);
        let bytes = self.offset(next).saturating_sub(start) * GROUP_ALIGN;
        let after = bytes.wrapping_mul(across as usize) >> ACROSS_BITS;
        let group_at = start * GROUP_ALIGN;
        PlaceEstimate { group_at, at: group_at.wrapping_add(after), across: across as usize }
    }

    /// Returns eight bytes of `key` after the prefix. Error: the key lacks the prefix; its place.
    #[inline(always)]
    pub fn word(&self, key: &[u8]) -> Result<u64, Among> {
        if !self.prefix.begins(key) {
            match compare(&key[..key.len().min(self.prefix.len())], &self.prefix.bytes) {
                Ordering::Less => return Err(Among::Below),
                Ordering::Greater => return Err(Among::Above),
                Ordering::Equal => {} // it lacks only zero bytes at the prefix's end
            }
        }
        Ok(word_at(key, self.prefix.len()))
    }

    /// Finds the place of `key`, whose word is `word`. Without groups every key is above.
    #[inline(always)]
    pub fn find<T: Trace>(&self, key: &[u8], word: u64, trace: &mut T) -> Among {
        if self.is_empty() {
            return Among::Above;
        }
        let Some(group) = self.last_at_most(key, word, trace) else { return Among::Below };
        let above = group + 1 == self.len() && compare(key, &self.last) == Ordering::Greater;
        if above { Among::Above } else { Among::Group(group) }
    }

    /// Returns the last group whose separator is at or below `key`, whose word is `view`.
    #[inline(always)]
    fn last_at_most<T: Trace>(&self, key: &[u8], view: u64, trace: &mut T) -> Option<usize> {
        let least = self.separators.at(0);
        if view < least {
            return None;
        }
        let slot = self.radix_slot(view - least);
        let (from, end) = if slot + 1 < self.radix.len() {
            (self.radix.at(slot) as usize, self.radix.at(slot + 1) as usize)
        } else {
            (self.len(), self.len())
        };
        trace.touch(self.radix.address() + 4 * slot.min(self.radix.len() - 1), 8);
        let after = first_not::<SLOT_STEPS>(from, end, |group| {
            trace.touch(self.separators.address() + 8 * group, 8);
            self.separators.at(group) <= view
        });
        match &self.tails {
            None => after.checked_sub(1),
            Some(tails) => self.among_ties(tails, key, view, after),
        }
    }

    /// Returns the slot of a word that is `above` more than the first separator; past all slots if
    /// it is above the last one's.
    #[inline(always)]
    fn radix_slot(&self, above: u64) -> usize {
        (above >> self.radix_shift).min(self.radix.len() as u64) as usize
    }

    /// Corrects `after`, the number of separators whose word is at most `view`, by comparing tails.
    fn among_ties(
        &self,
        tails: &SeparatorTails<N, B>,
        key: &[u8],
        view: u64,
        after: usize,
    ) -> Option<usize> {
        let ties_from = partition_point(0..after, |group| self.separators.at(group) < view);
        let rest = key.get(self.prefix.len() + 8..).unwrap_or(&[]);
        let is_at_most = |group| tails.get(group).compare(rest) != Ordering::Greater;
        partition_point(ties_from..after, is_at_most).checked_sub(1)
    }

    /// Returns the tail of a group's separator.
    pub fn separator_tail(&self, group: usize) -> SeparatorTail<'_> {
        self.tails.as_ref().map_or(SeparatorTail::default(), |tails| tails.get(group))
    }

    /// Whether `key`, which lies in `group`, begins with the first `prefix_bits` bits of its
    /// separator.
    #[inline(always)]
    pub fn shares_prefix(
        &self,
        group: usize,
        (key, word): (&[u8], u64),
        prefix_bits: usize,
    ) -> bool {
        let skip = self.prefix.len();
        same_bits(self.separators.at(group), word, prefix_bits - 8 * skip)
            && (prefix_bits <= 8 * skip + 64
                || self
                    .separator_tail(group)
                    .begins_as(key.get(skip + 8..).unwrap_or(&[]), prefix_bits - 8 * skip - 64))
    }

    /// Returns how many bits of a group's prefix lie in the words.
    #[inline(always)]
    pub fn shared_bits(&self, prefix_bits: usize) -> usize {
        prefix_bits - 8 * self.prefix.len()
    }

    /// Returns the eight bytes of `key` after its word.
    #[inline(always)]
    pub fn tail(&self, key: &[u8]) -> u64 {
        let at = self.prefix.len() + 8;
        if key.len() <= at { 0 } else { word_at(key, at) }
    }

    /// Returns 64 bits of `key`, whose word is `word`, from bit `prefix_bits` on.
    #[inline(always)]
    pub fn view(&self, (key, word): (&[u8], u64), prefix_bits: usize) -> u64 {
        let skip = self.prefix.len();
        let at = prefix_bits - 8 * skip;
        if at >= 64 {
            return bits_at(key, prefix_bits);
        }
        word << at | self.tail(key) >> 1 >> (63 - at)
    }

    /// Returns 64 bits of a group's separator from bit `prefix_bits` on.
    #[inline(always)]
    pub fn separator_view(&self, group: usize, prefix_bits: usize) -> u64 {
        let at = prefix_bits - 8 * self.prefix.len();
        if at >= 64 {
            return self.separator_tail(group).bits_at(at - 64);
        }
        let high = self.separators.at(group) << at;
        match (&self.tails, at) {
            (Some(tails), 1..) => high | tails.get(group).bits_at(0) >> (64 - at),
            _ => high,
        }
    }

    /// Returns the end of a group as 64 bits from bit `prefix_bits` on: no key of the group has a
    /// larger view.
    #[inline(always)]
    pub fn end_view(&self, group: usize, prefix_bits: usize) -> u64 {
        let skip = self.prefix.len();
        if group + 1 == self.len() {
            return bits_at(&self.last, prefix_bits);
        }
        let next = group + 1;
        let shares =
            same_bits(self.separators.at(group), self.separators.at(next), prefix_bits - 8 * skip)
                && (prefix_bits <= 8 * skip + 64
                    || self
                        .separator_tail(group)
                        .begins_like(&self.separator_tail(next), prefix_bits - 8 * skip - 64));
        if shares { self.separator_view(next, prefix_bits) } else { u64::MAX }
    }
}

/// Whether the first `bits` bits of two words are equal.
#[inline(always)]
fn same_bits(a: u64, b: u64, bits: usize) -> bool {
    let difference = a ^ b;
    difference == 0 || difference.leading_zeros() as usize >= bits
}
