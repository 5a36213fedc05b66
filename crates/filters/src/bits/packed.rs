//! Bit-packed numbers, most significant bit first.
//! ```text
//! push(5, 3) push(1, 2) push(255, 8)   ->   101 01 111|11111 000   (bytes)
//! ```
//! Invariant: a number written at a bit position is read back from there. Readers load eight bytes
//! at once, so packed bytes must be followed by `PADDING` bytes, whose values do not matter.

use alloc::boxed::Box;
use alloc::vec::Vec;

/// Bytes that must follow packed bits: the most that any reader loads at once.
#[cfg(test)]
pub const PADDING: usize = 32;

/// The most bits that one call can push or read.
pub const LEN_MAX: usize = 57;

/// Loads eight bytes at `at`, big-endian. Requires: they exist.
#[inline(always)]
pub fn word(bytes: &[u8], at: usize) -> u64 {
    let chunk = bytes[at..].first_chunk::<8>().expect("packed bytes are padded");
    u64::from_be_bytes(*chunk)
}

/// Same as [`word`], but 0 past the end, where damaged bytes may lead.
#[inline(always)]
pub fn word_or_zero(bytes: &[u8], at: usize) -> u64 {
    let chunk = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>());
    chunk.map_or(0, |chunk| u64::from_be_bytes(*chunk))
}

/// Loads at least [`LEN_MAX`] bits from bit `at` on, the first one as the most significant.
#[inline(always)]
pub fn load(bytes: &[u8], at: usize) -> u64 {
    word(bytes, at / 8) << (at % 8)
}

/// Same as [`load`], but 0 past the end.
#[inline(always)]
pub fn load_or_zero(bytes: &[u8], at: usize) -> u64 {
    word_or_zero(bytes, at / 8) << (at % 8)
}

/// Returns the top `len` bits of `word` as a number. Requires: `len` <= 64.
#[inline(always)]
pub fn top(word: u64, len: usize) -> u64 {
    if len == 0 { 0 } else { word >> (64 - len) }
}

/// Reads the number of `len` bits at bit `at`. Requires: `len` <= [`LEN_MAX`].
#[inline(always)]
pub fn read(bytes: &[u8], at: usize, len: usize) -> u64 {
    debug_assert!(len <= LEN_MAX, "{len} bits");
    top(load(bytes, at), len)
}

/// The most bits per number in [`write_packed`].
pub const PACKED_BITS_MAX: usize = 32;

/// Appends numbers of `len` bits each and pads the last byte with zeros. Faster than [`BitWriter`],
/// with the same result. Requires: `len` <= [`PACKED_BITS_MAX`].
#[inline(always)]
pub fn write_packed(numbers: impl Iterator<Item = u32>, len: usize, out: &mut Vec<u8>) {
    let (mut word, mut used) = (0u64, 0);
    for number in numbers {
        word = word << len | u64::from(number);
        used += len;
        // The word cannot overflow: fewer than 32 bits were left, and at most 32 more come.
        if used >= 32 {
            used -= 32;
            out.extend_from_slice(&((word >> used) as u32).to_be_bytes());
        }
    }
    let rest = ((word << (32 - used)) as u32).to_be_bytes();
    out.extend_from_slice(&rest[..used.div_ceil(8)]);
}

/// Reads consecutive numbers of equal length.
pub struct PackedReader<'a> {
    bytes: &'a [u8],
    at: usize,
    len: usize,
}

impl<'a> PackedReader<'a> {
    /// A reader at bit `at`. Requires: `len` <= [`LEN_MAX`].
    #[inline(always)]
    pub fn new(bytes: &'a [u8], at: usize, len: usize) -> Self {
        PackedReader { bytes, at, len }
    }

    /// Reads the next number.
    #[inline(always)]
    pub fn take(&mut self) -> u64 {
        let number = read(self.bytes, self.at, self.len);
        self.at += self.len;
        number
    }
}

/// Writes consecutive numbers of equal length into existing bytes.
pub struct PackedWriter<'a> {
    bytes: &'a mut [u8],
    at: usize,
    len: usize,
    word: u64,
    used: usize,
}

impl<'a> PackedWriter<'a> {
    /// A writer at the first byte. Requires: `len` <= [`PACKED_BITS_MAX`], and room for the numbers
    /// and four more bytes.
    #[inline(always)]
    pub fn new(bytes: &'a mut [u8], len: usize) -> Self {
        debug_assert!(len <= PACKED_BITS_MAX, "{len} bits");
        PackedWriter { bytes, at: 0, len, word: 0, used: 0 }
    }

    /// Writes the next number. Requires: it fits into `len` bits.
    #[inline(always)]
    pub fn push(&mut self, number: u64) {
        self.word = self.word << self.len | number;
        self.used += self.len;
        // The word cannot overflow, as in `write_packed`.
        if self.used >= 32 {
            self.used -= 32;
            self.store((self.word >> self.used) as u32);
        }
    }

    #[inline(always)]
    fn store(&mut self, half: u32) {
        self.bytes[self.at..self.at + 4].copy_from_slice(&half.to_be_bytes());
        self.at += 4;
    }

    /// Pads the last byte with zeros and returns the number of bytes written.
    #[inline(always)]
    pub fn finish(mut self) -> usize {
        let rest = self.used.div_ceil(8);
        self.store((self.word << (32 - self.used)) as u32);
        self.at - 4 + rest
    }
}

/// Packs numbers of `len` bits each. Appends the padding that reading the last one needs.
pub fn packed(numbers: impl ExactSizeIterator<Item = u64>, len: usize) -> Box<[u8]> {
    const BEHIND: usize = size_of::<u64>();
    let mut bytes = Vec::with_capacity(numbers.len() * len / 8 + 2 * BEHIND);
    let mut writer = BitWriter::new(&mut bytes);
    numbers.for_each(|number| writer.push(number, len));
    writer.finish();
    bytes.resize(bytes.len() + BEHIND, 0);
    bytes.into_boxed_slice()
}

/// Appends bit-packed numbers to bytes.
pub struct BitWriter<'a> {
    out: &'a mut Vec<u8>,
    word: u64,
    used: usize,
}

impl<'a> BitWriter<'a> {
    /// A writer at the end of `out`.
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        BitWriter { out, word: 0, used: 0 }
    }

    /// Appends the `len` low bits of `value`. Requires: `len` <= 64, and the other bits are zero.
    #[inline(always)]
    pub fn push(&mut self, value: u64, len: usize) {
        debug_assert!(len <= 64 && (len == 64 || value >> len == 0), "{value} in {len} bits");
        let free = 64 - self.used;
        if len < free {
            if len == 0 {
                return; // a shift by a whole word
            }
            self.word |= value << (free - len);
            self.used += len;
            return;
        }
        let over = len - free;
        self.word |= value >> over;
        self.out.extend_from_slice(&self.word.to_be_bytes());
        self.word = if over == 0 { 0 } else { value << (64 - over) };
        self.used = over;
    }

    /// Pads the last byte with zeros.
    pub fn finish(self) {
        let len = self.used.div_ceil(8);
        self.out.extend_from_slice(&self.word.to_be_bytes()[..len]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_one_length_are_written_alike() {
        for len in 0..=32 {
            for count in [0, 1, 3, 31, 32, 33, 100] {
                let number = |i: u64| top(0x9e37_79b9_7f4a_7c15u64.wrapping_mul(i + 1), len) as u32;
                let (mut one, mut other) = (vec![7], vec![7]);
                let mut bits = BitWriter::new(&mut one);
                (0..count).for_each(|i| bits.push(u64::from(number(i)), len));
                bits.finish();
                write_packed((0..count).map(number), len, &mut other);
                assert_eq!(one, other, "{count} numbers of {len} bits");
                let mut bytes = vec![0xff; len * count as usize / 8 + 5];
                let mut out = PackedWriter::new(&mut bytes, len);
                (0..count).for_each(|i| out.push(u64::from(number(i))));
                let written = out.finish();
                assert_eq!(bytes[..written], one[1..], "{count} numbers of {len} bits");
                one.extend([0; PADDING]);
                let mut bits = PackedReader::new(&one, 8, len);
                (0..count).for_each(|i| assert_eq!(bits.take(), u64::from(number(i))));
            }
        }
    }

    #[test]
    fn what_is_pushed_is_read() {
        let lens = [0, 1, 7, 57, 3, 56, 12, 0, 33, 57, 57, 8];
        let value = |i: usize| top(0x9e37_79b9_7f4a_7c15u64.wrapping_mul(i as u64 + 1), lens[i]);
        let mut bytes = vec![0xab];
        let mut out = BitWriter::new(&mut bytes);
        (0..lens.len()).for_each(|i| out.push(value(i), lens[i]));
        out.finish();
        assert_eq!(bytes.len(), 1 + lens.iter().sum::<usize>().div_ceil(8));
        bytes.extend([0; PADDING]);
        let mut at = 8;
        for (i, len) in lens.into_iter().enumerate() {
            assert_eq!(read(&bytes, at, len), value(i));
            at += len;
        }
    }
}
