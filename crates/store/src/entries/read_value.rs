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

    /// The memory it takes.
    pub(crate) fn size_bytes(&self) -> usize {
        size_of::<ReadValue>() + self.bytes.capacity()
    }
}
