//! Encodes a key by arithmetic coding, which preserves order.
//! ```text
//! low, width   an interval of [0, 1), which each byte narrows to its share:
//!              low += width x sum before the byte;   width x= share of the byte
//! code         low, after the last byte: the interval of "end of key" begins there
//! ```
//! The width has 47 bits; whenever it loses leading bits, the code gains as many. Both ends of a
//! byte's share are rounded alike, so the intervals of neighbours touch and never overlap.
//!
//! Invariant: a < b gives code(a) <= code(b), and a strict order if neither was truncated.

use super::code::KeyCode;
use super::model::{TextModel, TextTables};
use crate::base::query::KeyRange;
use crate::bits::simd::fastest;

/// Bits of the width.
const WIDTH_BITS: u32 = 47;
/// Bits of a share.
const SHARE_BITS: u32 = 16;
/// Bits of the code that are not written yet, for carries.
const HELD_BITS: u32 = u128::BITS;
/// While a code has fewer bits, one more byte fits without writing any of them.
const WHOLE_BITS: u32 = HELD_BITS - WIDTH_BITS - (SHARE_BITS + 1);
/// Bits per word of the code.
const WORD_BITS: u32 = u64::BITS;
/// The width, of 2^47, for all keys below the prefix, and again for all keys above.
const BESIDE_PREFIX: u64 = 1 << (WIDTH_BITS - SHARE_BITS);

/// A key's position relative to the common prefix, and the bytes to encode.
pub(super) enum Lead<'k> {
    Below(&'k [u8]),
    /// The key has the prefix; these are its remaining bytes.
    Within(&'k [u8]),
    Above(&'k [u8]),
}

/// The interval of the bytes encoded so far.
#[derive(Clone)]
pub(super) struct Interval {
    /// The start of the interval, without the words that are written already.
    low: u128,
    /// The bit of `low` at which the width begins.
    at: u32,
    width: u64,
}

impl Interval {
    /// Narrows the interval to the part from `from` to `to` of its width.
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
        // Written as late as possible: most codes end before.
        if self.at > HELD_BITS - WIDTH_BITS {
            code.push((self.low >> WORD_BITS) as u64);
            (self.low, self.at) = (self.low << WORD_BITS, self.at - WORD_BITS);
        }
    }
}

impl Interval {
    /// Writes the pending words, up to `bits` bits in all.
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
    /// Encodes a key into `code`.
    #[inline]
    pub(crate) fn encode<'c>(&self, key: &[u8], code: &'c mut KeyCode) -> &'c [u8] {
        self.tables().encode(key, code)
    }

    /// Returns the range of codes of all keys in a range.
    pub(crate) fn range<'c>(
        &self,
        range: &KeyRange<'_>,
        codes: (&'c mut KeyCode, &'c mut KeyCode),
    ) -> KeyRange<'c> {
        self.tables().range(range, codes)
    }
}

impl TextTables<'_> {
    /// Encodes a key into `code`: a bit string, followed by zeros. The order of codes is the order
    /// of keys; codes may be equal. Takes time linear in the key's length, up to that of the
    /// longest code.
    #[inline]
    pub fn encode<'c>(&self, key: &[u8], code: &'c mut KeyCode) -> &'c [u8] {
        fastest(
            #[inline(always)]
            || self.encode_now(key, code),
        );
        code.as_bytes()
    }

    /// Returns the range of codes of all keys in a range.
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
            // At least one byte has been encoded, so this check comes after each.
            if self.is_whole(&interval, code) {
                break;
            }
            row = self.narrow(&mut interval, row, byte, code);
        }
        interval.finish(self.code_bits, code);
    }

    /// Returns the interval of all keys with a lead, and the row for what follows it.
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

    /// Narrows an interval by at least one byte, and by more while none of the code is written.
    /// Until then nothing carries, and `low` grows at its end. Returns the interval, the row for
    /// what follows, and the remaining bytes.
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
            // Below 32, which the compiler cannot know.
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

    /// Narrows the interval to keys that continue with `byte`. Returns the row for what follows it.
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

    /// Returns a row's sums of shares before and after a byte, and the row for what follows it.
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

    /// Whether the code has its maximum length.
    #[inline(always)]
    pub(super) fn is_whole(&self, interval: &Interval, code: &KeyCode) -> bool {
        code.len() + interval.at >= self.code_bits
    }

    /// Divides a slot's share equally among its bytes.
    #[cold]
    fn within_slot(&self, byte: u8, slot: usize, (from, to): (u64, u64)) -> (u64, u64) {
        let (len, place) = (u64::from(self.slot_len(slot)), u64::from(byte - self.firsts[slot]));
        let at = |place: u64| from + (to - from) * place / len;
        (at(place), at(place + 1))
    }

    #[inline(always)]
    pub(super) fn lead<'k>(&self, key: &'k [u8]) -> Lead<'k> {
        // Comparing with an empty prefix would wait for memory that does not exist.
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
