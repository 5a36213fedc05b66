//! A value that was read from a value file: its bytes, within the bytes that were read with it.

use std::ops::Range;

/// A value that was read from a value file.
#[derive(Debug)]
pub(crate) struct ReadValue {
    /// What was read; `range` is the value.
    pub(crate) bytes: Vec<u8>,
    pub(crate) range: Range<usize>,
}

impl ReadValue {
    /// The value's bytes.
    #[inline]
    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes[self.range.clone()]
    }

    /// Copies the value into memory of its own if the excess is more than an eighth of its length.
    pub(crate) fn trimmed(self) -> ReadValue {
        let len = self.range.len();
        if self.bytes.capacity() - len <= len / 8 {
            return self;
        }
        ReadValue { bytes: self.as_slice().to_vec(), range: 0..len }
    }

    /// The memory that the value takes, in bytes.
    pub(crate) fn size_bytes(&self) -> usize {
        size_of::<ReadValue>() + self.bytes.capacity()
    }
}
