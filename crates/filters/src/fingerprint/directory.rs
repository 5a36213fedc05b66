//! Finds the group of a key: the last one whose separator is not above the key.
//! ```text
//! prefix      bytes that all keys of the base share
//! separators  per group, the 8 bytes after them of its first key, as numbers
//! tails       per group, further bytes of the separator, where 8 bytes do not tell it from
//!             that of the group before (separator_tails.rs)
//! radix       number of the view's high bits -> first group from there on
//! ```
//! Invariant: as a bit string, a separator is above the last key of the group before, and not above
//! its own group's first key. It is at least as long as the prefix that its group's keys share.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::base::filter::{Trace, Untraced, ask_for_lines};
use crate::bits::key_bits::{bits_at, compare, word_at};
use crate::bits::row::Row;
use crate::bits::search::{first_not, partition_point};
use crate::fingerprint::group::GROUP_ALIGN;
use crate::fingerprint::separator_tails::{
    SeparatorTail, SeparatorTails, SeparatorTailsBuilder, SeparatorTailsCost,
};
use core::cmp::Ordering;
use core::ops::Deref;

/// Steps of the search in a slot of the radix table: where groups are spread evenly, it has fewer
/// than four.
const SLOT_STEPS: u32 = 2;

/// Groups that are worth being looked at one by one: a search costs as much.
const STEPS: usize = 6;

/// Bits of how far a key lies from its group's separator to the next one's.
pub const ACROSS_BITS: u32 = 16;

/// Where a key's block is, guessed.
#[derive(Clone, Copy, Default)]
pub struct PlaceEstimate {
    /// Where the group begins, which is known.
    pub group_at: usize,
    /// Where the block is about, in the same bytes.
    pub at: usize,
    /// How far the key lies from the group's separator to the next one's, of 2^[`ACROSS_BITS`].
    pub across: usize,
}

/// Where a key lies among the groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Among {
    /// Before the first separator.
    Below,
    /// At or after this group's separator, before the next one's.
    Group(usize),
    /// After the last key.
    Above,
}

/// The separators of all groups: words of eight bytes, numbers of four, and byte strings. They lie
/// in memory of their own, or in place in an image.
#[derive(Default)]
pub struct Directory<W = Box<[u64]>, N = Box<[u32]>, B = Box<[u8]>> {
    /// What all keys share.
    pub prefix: Prefix<B>,
    /// The first eight bytes of each group's separator, behind the prefix.
    pub separators: W,
    /// Where each group begins.
    pub offsets: N,
    /// Of separators that have more than eight bytes, the others.
    pub tails: Option<SeparatorTails<N, B>>,
    /// For each value of a separator's upper bits, the first group that has it.
    pub radix: N,
    /// How far a separator is shifted to be one of these values.
    pub radix_shift: u32,
    /// No key is above it.
    pub last: B,
}

/// The bytes that all keys share.
#[derive(Default)]
pub struct Prefix<B> {
    bytes: B,
    /// The first eight of them.
    head: u64,
}

impl<B: Deref<Target = [u8]>> Prefix<B> {
    /// Of these bytes.
    pub fn new(bytes: B) -> Self {
        let head = word_at(&bytes, 0);
        Prefix { bytes, head }
    }

    /// As [`Prefix::new`], where the first eight bytes are known.
    #[inline(always)]
    pub fn with_head(bytes: B, head: u64) -> Self {
        Prefix { bytes, head }
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    #[inline(always)]
    fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether `key` begins with it: without a call, where it is short.
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

/// Groups as they are built.
#[derive(Default)]
pub struct DirectoryBuilder {
    separators: Vec<u8>,
    ends: Vec<usize>,
    offsets: Vec<u32>,
    prefix_bits_min: usize,
    tails_cost: SeparatorTailsCost,
}

impl DirectoryBuilder {
    /// Adds a group whose keys share `prefix_bits` and whose block data start at `offset`, in units
    /// of 8 bytes. Gives the bytes that its separator takes beyond a word, about.
    pub fn push(&mut self, separator: &[u8], prefix_bits: usize, offset: u32) -> usize {
        let first = self.ends.is_empty();
        self.prefix_bits_min =
            if first { prefix_bits } else { self.prefix_bits_min.min(prefix_bits) };
        self.separators.extend_from_slice(separator);
        self.ends.push(self.separators.len());
        self.offsets.push(offset);
        self.tails_cost.push(separator)
    }

    /// Heap bytes in use.
    pub fn heap_bytes(&self) -> usize {
        self.separators.capacity() + 8 * self.ends.capacity() + 4 * self.offsets.capacity()
    }

    /// The directory of the groups pushed; `first` and `last` are the first and the last key of
    /// all.
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

/// Slots of the radix table for each group, at most.
const SLOTS_PER_GROUP: usize = 2;

/// The radix table: for each slot the first group whose separator is in the slot or after it, and
/// an end.
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

/// What only directories in memory of their own are asked.
impl Directory {
    /// The allocations' sizes.
    pub fn allocations(&self) -> [usize; 7] {
        let (rest_ends, rest_bytes) =
            self.tails.as_ref().map_or((0, 0), |tails| (4 * tails.ends.len(), tails.bytes.len()));
        let words = 8 * self.separators.len();
        let (offsets, radix) = (4 * self.offsets.len(), 4 * self.radix.len());
        [self.prefix.len(), words, offsets, rest_ends, rest_bytes, radix, self.last.len()]
    }

    /// As [`Directory::find`], for a key that is not below any key of `group`: from there on, if it
    /// is near.
    #[inline(always)]
    pub fn find_from(&self, group: usize, key: &[u8], word: u64) -> Among {
        // The last group is left to the search, as it has an end of its own.
        let after = self.separators[group..].first_chunk::<{ STEPS + 1 }>();
        if let Some(after) = after.filter(|after| self.tails.is_none() && word >= after[0]) {
            // Groups are counted, without an early exit: the distance of the next key cannot be
            // predicted.
            let steps = after[1..].iter().map(|&next| usize::from(next <= word)).sum::<usize>();
            if steps < STEPS {
                return Among::Group(group + steps);
            }
        }
        self.find(key, word, &mut Untraced)
    }

    /// Asks for the memory where the search for `key` begins, and where it ends if groups are
    /// spread evenly.
    #[inline(always)]
    pub fn load_about<T: Trace>(&self, key: &[u8], trace: &mut T) {
        let least = self.separators.first().copied().unwrap_or(0);
        let slot = self.radix_slot(word_at(key, self.prefix.len()).saturating_sub(least));
        // Slots are as wide as a power of two: of those for each group there are one to two.
        let group = slot * self.len() / self.radix.len().max(1);
        ask_for_lines(&self.radix, slot, 1, trace);
        ask_for_lines(&self.separators, group, 1, trace);
        ask_for_lines(&self.offsets, group, 1, trace);
    }

    /// How far `key` lies above the last key, as 64-bit numbers from a byte a little before the
    /// keys differ.
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

    /// Numbers at the edges begin some bytes before the shared prefix ends, so that growing keys
    /// stay distinct.
    fn edge_at(&self) -> usize {
        const BYTES_BEFORE: usize = 3;
        self.prefix.len().saturating_sub(BYTES_BEFORE)
    }

    /// The word of the first separator at byte `at` of the prefix.
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

    /// Whether it has no group.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where the group's data start, in units of 8 bytes.
    #[inline(always)]
    pub fn offset(&self, group: usize) -> usize {
        self.offsets.at(group) as usize
    }

    /// A guess of where the block of a key with this word lies in its group. It takes the group's
    /// keys as evenly spread, which is close for most groups of some hundred keys. Known before the
    /// group is read, so that its block comes along with its header instead of after it. Of damaged
    /// bytes, anything.
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
        // Not zero: the next separator may be the same word.
        let width = self.separators.at(next).saturating_sub(low) | 1;
        // A quarter of the bits is plenty, and a word below the next separator stays below it.
        let scale = width.leading_zeros();
        let high = |word: u64| (word << scale >> (64 - ACROSS_BITS)) as u32;
        let across = (high(word.saturating_sub(low)) << ACROSS_BITS) / high(width);
        let bytes = self.offset(next).saturating_sub(start) * GROUP_ALIGN;
        let after = bytes.wrapping_mul(across as usize) >> ACROSS_BITS;
        let group_at = start * GROUP_ALIGN;
        PlaceEstimate { group_at, at: group_at.wrapping_add(after), across: across as usize }
    }

    /// Eight bytes of `key` after the prefix. If it lacks the prefix: where it lies.
    #[inline(always)]
    pub fn word(&self, key: &[u8]) -> Result<u64, Among> {
        if !self.prefix.begins(key) {
            match compare(&key[..key.len().min(self.prefix.len())], &self.prefix.bytes) {
                Ordering::Less => return Err(Among::Below),
                Ordering::Greater => return Err(Among::Above),
                Ordering::Equal => {} // short of zero bytes that the prefix ends in
            }
        }
        Ok(word_at(key, self.prefix.len()))
    }

    /// Where `key`, which has this word, lies. A base without groups is all above.
    #[inline(always)]
    pub fn find<T: Trace>(&self, key: &[u8], word: u64, trace: &mut T) -> Among {
        if self.is_empty() {
            return Among::Above;
        }
        let Some(group) = self.last_at_most(key, word, trace) else { return Among::Below };
        let above = group + 1 == self.len() && compare(key, &self.last) == Ordering::Greater;
        if above { Among::Above } else { Among::Group(group) }
    }

    /// The last group whose separator is not above `key`, which has this word.
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

    /// The slot of a view so far above the first separator's; beyond all slots, if it is above the
    /// last one's.
    #[inline(always)]
    fn radix_slot(&self, above: u64) -> usize {
        (above >> self.radix_shift).min(self.radix.len() as u64) as usize
    }

    /// Corrects `after`, the number of separators whose word is at most `view`, by the bytes after
    /// the word.
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

    /// The bytes of a separator after its word.
    pub fn separator_tail(&self, group: usize) -> SeparatorTail<'_> {
        self.tails.as_ref().map_or(SeparatorTail::default(), |tails| tails.get(group))
    }

    /// Whether `key`, which lies in `group` and has this word, has the first `prefix_bits` bits of
    /// its separator.
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

    /// How many of a prefix's bits are in the words.
    #[inline(always)]
    pub fn shared_bits(&self, prefix_bits: usize) -> usize {
        prefix_bits - 8 * self.prefix.len()
    }

    /// The eight bytes of `key` after its word.
    #[inline(always)]
    pub fn tail(&self, key: &[u8]) -> u64 {
        let at = self.prefix.len() + 8;
        if key.len() <= at { 0 } else { word_at(key, at) }
    }

    /// 64 bits of `key`, which has this word, from bit `prefix_bits` on.
    #[inline(always)]
    pub fn view(&self, (key, word): (&[u8], u64), prefix_bits: usize) -> u64 {
        let skip = self.prefix.len();
        let at = prefix_bits - 8 * skip;
        if at >= 64 {
            return bits_at(key, prefix_bits);
        }
        word << at | self.tail(key) >> 1 >> (63 - at)
    }

    /// 64 bits of the group's separator from bit `prefix_bits` on.
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

    /// Where the group ends, as 64 bits from bit `prefix_bits` of its keys on: no key of it has a
    /// greater view.
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

/// Whether the first `bits` of two words are the same.
#[inline(always)]
fn same_bits(a: u64, b: u64, bits: usize) -> bool {
    let difference = a ^ b;
    difference == 0 || difference.leading_zeros() as usize >= bits
}
