//! The bytes of a code, written front to back; later bits may carry into earlier ones.

/// The length of the longest code, in words.
pub(super) const WORDS_MAX: usize = 8;
const WORD_BYTES: usize = size_of::<u64>();

/// A key's code: a bit string, followed by zeros without end.
#[derive(Clone, Debug)]
pub struct KeyCode {
    bytes: [[u8; WORD_BYTES]; WORDS_MAX],
    words: usize,
}

impl KeyCode {
    /// An empty code.
    #[inline(always)]
    #[expect(clippy::new_without_default, reason = "a code is nothing by itself")]
    pub fn new() -> KeyCode {
        KeyCode { bytes: [[0; WORD_BYTES]; WORDS_MAX], words: 0 }
    }

    /// Removes all bits.
    #[inline(always)]
    pub(super) fn clear(&mut self) {
        self.words = 0;
    }

    /// The number of bits so far.
    #[inline(always)]
    pub(super) fn len(&self) -> u32 {
        self.words as u32 * u64::BITS
    }

    /// Appends 64 bits. Requires: the code has room.
    #[inline(always)]
    pub(super) fn push(&mut self, word: u64) {
        self.bytes[self.words] = word.to_be_bytes();
        self.words += 1;
    }

    /// Truncates the code to `bits` bits.
    #[inline(always)]
    pub(super) fn cut(&mut self, bits: u32) {
        if let Some(over) = self.len().checked_sub(bits).filter(|over| *over > 0) {
            self.words = bits.div_ceil(u64::BITS) as usize;
            if let Some(last) = self.words.checked_sub(1) {
                let word = u64::from_be_bytes(self.bytes[last]);
                let over = over % u64::BITS;
                self.bytes[last] = (word >> over << over).to_be_bytes();
            }
        }
    }

    /// Adds one at the last bit. Requires: not all bits are ones.
    #[cold]
    pub(super) fn carry(&mut self) {
        for bytes in self.bytes[..self.words].iter_mut().rev() {
            let (sum, over) = u64::from_be_bytes(*bytes).overflowing_add(1);
            *bytes = sum.to_be_bytes();
            if !over {
                return;
            }
        }
    }

    /// Returns the code's bytes.
    #[inline(always)]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes[..self.words].as_flattened()
    }
}
