//! A value as it was read from a file of values: its bytes, among others that lay beside them.

use std::ops::Range;

/// A value that was read.
#[derive(Debug)]
pub(crate) struct ReadValue {
    /// Its bytes are a part of these.
    pub(crate) bytes: Vec<u8>,
    pub(crate) range: Range<usize>,
}

impl ReadValue {
    /// Its bytes.
    #[inline]
    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes[self.range.clone()]
    }

    /// The same, alone in its memory if what lies beside it is more than an eighth of it.
    pub(crate) fn trimmed(self) -> ReadValue {
        let len = self.range.len();
        if self.bytes.capacity() - len <= len / 8 {
            return self;
        }
        ReadValue { bytes: self.as_slice().to_vec(), range: 0..len }
    }

    /// The memory it takes.
    pub(crate) fn size_bytes(&self) -> usize {
        size_of::<ReadValue>() + self.bytes.capacity()
    }
}
