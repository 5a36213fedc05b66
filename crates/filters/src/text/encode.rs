//! From a key to its code: arithmetic coding, which keeps order.
//! ```text
//! low, width   an interval of [0, 1); a byte takes its share of it:
//!              low += width x sum before it;   width x= its share
//! code         low, when the key is at its end: what the end of a key takes lies there
//! ```
//! The width has 47 bits; whenever it loses some, the next bits of the code begin. Both ends of a
//! byte's share are rounded alike, so neighbours meet and never overlap. Invariant: a < b gives
//! code(a) <= code(b), and less if neither was cut.

use alloc::vec::Vec;

use super::code::KeyCode;
use super::model::{TextModel, TextTables};
use crate::base::query::KeyRange;
use crate::bits::simd::fastest;

/// Bits of a width.
const WIDTH_BITS: u32 = 47;
/// Bits of a share.
const SHARE_BITS: u32 = 16;
/// Bits of the code that are held back, for carries.
const HELD_BITS: u32 = u128::BITS;
/// A code of fewer bits has room for a byte more before any of it is written.
const WHOLE_BITS: u32 = HELD_BITS - WIDTH_BITS - (SHARE_BITS + 1);
/// Bits of a word of the code.
const WORD_BITS: u32 = u64::BITS;
/// What lies below all keys with the prefix, and above, has so many of 2^47.
const BESIDE_PREFIX: u64 = 1 << (WIDTH_BITS - SHARE_BITS);

/// Where a key lies beside the prefix of all, and what of it is coded.
pub(super) enum Lead<'k> {
    Below(&'k [u8]),
    /// It has the prefix; the rest.
    Within(&'k [u8]),
    Above(&'k [u8]),
}

/// The interval of what was coded so far.
#[derive(Clone)]
pub(super) struct Interval {
    /// Its beginning, behind the words that are written.
    low: u128,
    /// Where the width begins, in the bits of `low`.
    at: u32,
    width: u64,
}

impl Interval {
    /// Narrows it to a part of its width.
    #[inline(always)]
    fn narrow(&mut self, from: u64, to: u64, code: &mut KeyCode) {
        let (low, over) =
            self.low.overflowing_add(u128::from(from) << (HELD_BITS - WIDTH_BITS - self.at));
        if over {
            code.carry();
        }
        let width = to - from;
        let lost = width.leading_zeros() - (WORD_BITS - WIDTH_BITS);
        (self.low, self.width, self.at) = (low, width << lost, self.at + lost);
        // As late as there is room: most codes end before.
        if self.at > HELD_BITS - WIDTH_BITS {
            code.push((self.low >> WORD_BITS) as u64);
            (self.low, self.at) = (self.low << WORD_BITS, self.at - WORD_BITS);
        }
    }
}

impl Interval {
    /// Writes the words that are held back, up to so many bits in all.
    #[inline(always)]
    pub(super) fn finish(self, bits: u32, code: &mut KeyCode) {
        for word in [(self.low >> WORD_BITS) as u64, self.low as u64] {
            if code.len() < bits {
                code.push(word);
            }
        }
        code.cut(bits);
    }
}

impl TextModel {
    /// Appends a key's code to `out`: a bit string, continued with zeros. Lesser keys have no
    /// greater codes. Takes time for each byte of the key, up to the end of the longest code.
    pub fn append_code(&self, key: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(self.encode(key, &mut KeyCode::new()));
    }

    /// The code of a key, in `code`.
    #[inline]
    pub(crate) fn encode<'c>(&self, key: &[u8], code: &'c mut KeyCode) -> &'c [u8] {
        self.tables().encode(key, code)
    }

    /// The range of codes of all keys of a range.
    pub(crate) fn range<'c>(
        &self,
        range: &KeyRange<'_>,
        codes: (&'c mut KeyCode, &'c mut KeyCode),
    ) -> KeyRange<'c> {
        self.tables().range(range, codes)
    }
}

impl TextTables<'_> {
    /// The code of a key, in `code`.
    #[inline]
    pub fn encode<'c>(&self, key: &[u8], code: &'c mut KeyCode) -> &'c [u8] {
        fastest(
            #[inline(always)]
            || self.encode_now(key, code),
        );
        code.as_bytes()
    }

    /// The range of codes of all keys of a range.
    pub fn range<'c>(
        &self,
        range: &KeyRange<'_>,
        (low, high): (&'c mut KeyCode, &'c mut KeyCode),
    ) -> KeyRange<'c> {
        let lower = self.encode(range.lower(), low);
        let upper = range.upper().map(|upper| self.encode(upper, high));
        KeyRange::new(lower, upper).expect("codes ascend as keys do")
    }

    #[inline(always)]
    fn encode_now(&self, key: &[u8], code: &mut KeyCode) {
        let lead = self.lead(key);
        let (interval, row) = self.begin(&lead, code);
        let (Lead::Below(rest) | Lead::Within(rest) | Lead::Above(rest)) = lead;
        let (mut interval, mut row, rest) = self.narrow_first(interval, row, rest);
        for &byte in rest {
            // One byte at least has been taken, so that is asked behind each.
            if self.is_whole(&interval, code) {
                break;
            }
            row = self.narrow(&mut interval, row, byte, code);
        }
        interval.finish(self.code_bits, code);
    }

    /// The interval of all keys with a lead, and the row of what follows it.
    #[inline(always)]
    pub(super) fn begin(&self, lead: &Lead<'_>, code: &mut KeyCode) -> (Interval, usize) {
        code.clear();
        let mut interval = Interval { low: 0, at: 0, width: (1 << WIDTH_BITS) - 1 };
        let all = interval.width;
        match lead {
            Lead::Within(_) => interval.narrow(BESIDE_PREFIX, all - BESIDE_PREFIX, code),
            Lead::Below(_) => interval.narrow(0, BESIDE_PREFIX, code),
            Lead::Above(_) => interval.narrow(all - BESIDE_PREFIX, all, code),
        }
        (interval, usize::from(self.first_row))
    }

    /// Narrows an interval by a byte, and by more as long as none of the code is written: there
    /// nothing carries, and `low` grows at its end. The interval, the row of what follows, the
    /// bytes that are left.
    #[inline(always)]
    fn narrow_first<'k>(
        &self,
        Interval { low, at, width }: Interval,
        mut row: usize,
        rest: &'k [u8],
    ) -> (Interval, usize, &'k [u8]) {
        let (mut low, mut at, mut width) = (low >> (HELD_BITS - WIDTH_BITS - at), at, width);
        let (end, mut bytes) = (self.code_bits.min(WHOLE_BITS), rest.iter());
        for &byte in bytes.by_ref() {
            let (from, to, next) = self.share(row, byte);
            let from = (width * from) >> SHARE_BITS;
            let narrower = ((width * to) >> SHARE_BITS) - from;
            // Fewer than 32, which the compiler would not know.
            let lost = (narrower.leading_zeros() - (WORD_BITS - WIDTH_BITS)) & 31;
            low = (low + u128::from(from)) << lost;
            (width, at, row) = (narrower << lost, at + lost, next);
            if at >= end {
                break;
            }
        }
        let low = low << (HELD_BITS - WIDTH_BITS - at);
        (Interval { low, at, width }, row, bytes.as_slice())
    }

    /// Narrows the interval to that of keys that go on with a byte; the row of what follows it.
    #[inline(always)]
    pub(super) fn narrow(
        &self,
        interval: &mut Interval,
        row: usize,
        byte: u8,
        code: &mut KeyCode,
    ) -> usize {
        let (from, to, next) = self.share(row, byte);
        let width = interval.width;
        interval.narrow((width * from) >> SHARE_BITS, (width * to) >> SHARE_BITS, code);
        next
    }

    /// The sums of shares in a row before a byte and behind it, and the row of what follows it.
    #[inline(always)]
    fn share(&self, row: usize, byte: u8) -> (u64, u64, usize) {
        let slot = usize::from(self.slots[usize::from(byte)]);
        let sums = &self.sums[row * self.row_len() + slot..][..2];
        let [mut from, mut to] = [sums[0], sums[1]].map(|sum| u64::from(u16::from_le_bytes(sum)));
        if self.slot_len(slot) > 1 {
            (from, to) = self.within_slot(byte, slot, (from, to));
        }
        (from, to, usize::from(self.row_of[slot]))
    }

    /// Whether the code has all bits that it may have.
    #[inline(always)]
    pub(super) fn is_whole(&self, interval: &Interval, code: &KeyCode) -> bool {
        code.len() + interval.at >= self.code_bits
    }

    /// How a byte lies that shares a slot with others: each has as much of it.
    #[cold]
    fn within_slot(&self, byte: u8, slot: usize, (from, to): (u64, u64)) -> (u64, u64) {
        let (len, place) = (u64::from(self.slot_len(slot)), u64::from(byte - self.firsts[slot]));
        let at = |place: u64| from + (to - from) * place / len;
        (at(place), at(place + 1))
    }

    #[inline(always)]
    pub(super) fn lead<'k>(&self, key: &'k [u8]) -> Lead<'k> {
        // A comparison with nothing would wait for memory that is not there.
        if self.prefix.is_empty() {
            return Lead::Within(key);
        }
        match key.strip_prefix(self.prefix) {
            Some(rest) => Lead::Within(rest),
            None if *key < *self.prefix => Lead::Below(key),
            None => Lead::Above(key),
        }
    }
}
