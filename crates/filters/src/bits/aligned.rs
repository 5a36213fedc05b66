//! Bytes whose first byte begins a cache line.
//! ```text
//! address   64·n          64·n + 64     64·n + 128
//!           | line 0      | line 1      | line 2 : len ends here, zeros up to the line's end
//! ```
//! Invariant: the start is a multiple of the line size, and the lines are as few as hold `len`
//! bytes. So what lies at a multiple of the line size in the bytes lies on one cache line in
//! memory.

use std::fmt;
use std::ops::{Deref, DerefMut};

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

const LINE_BYTES: usize = 64;

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, align(64))]
struct Line([u8; LINE_BYTES]);

const _: () = assert!(size_of::<Line>() == LINE_BYTES && align_of::<Line>() == LINE_BYTES);

/// A byte string of fixed length that starts on a cache line.
#[derive(Clone, Default)]
pub struct AlignedBytes {
    lines: Vec<Line>,
    len: usize,
}

impl AlignedBytes {
    /// `len` bytes, all zero.
    pub fn zeroed(len: usize) -> Self {
        let lines = vec![Line([0; LINE_BYTES]); len.div_ceil(LINE_BYTES)];
        AlignedBytes { lines, len }
    }

    /// As [`zeroed`](Self::zeroed). None: there is no memory for them.
    pub fn try_zeroed(len: usize) -> Option<Self> {
        let mut lines = Vec::new();
        let count = len.div_ceil(LINE_BYTES);
        lines.try_reserve_exact(count).ok()?;
        lines.resize(count, Line([0; LINE_BYTES]));
        Some(AlignedBytes { lines, len })
    }

    /// A copy of `bytes`.
    pub fn from_slice(bytes: &[u8]) -> Self {
        let mut aligned = Self::zeroed(bytes.len());
        aligned.copy_from_slice(bytes);
        aligned
    }

    /// The memory it takes on the heap: whole lines.
    pub fn heap_bytes(&self) -> usize {
        self.lines.capacity() * LINE_BYTES
    }
}

impl Deref for AlignedBytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.lines.as_bytes()[..self.len]
    }
}

impl DerefMut for AlignedBytes {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.lines.as_mut_bytes()[..self.len]
    }
}

impl AsRef<[u8]> for AlignedBytes {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl AsMut<[u8]> for AlignedBytes {
    #[inline]
    fn as_mut(&mut self) -> &mut [u8] {
        self
    }
}

impl PartialEq for AlignedBytes {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for AlignedBytes {}

impl fmt::Debug for AlignedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AlignedBytes").field(&&**self).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_is_aligned_and_exact() {
        for len in [0usize, 1, 63, 64, 65, 127, 128, 1000] {
            let source: Vec<u8> = (0..len).map(|at| at as u8 | 1).collect();
            let aligned = AlignedBytes::from_slice(&source);
            assert_eq!(aligned.as_ptr() as usize % LINE_BYTES, 0, "length {len}");
            assert_eq!(*aligned, *source, "length {len}");
            assert_eq!(aligned.heap_bytes(), len.div_ceil(64) * 64);
            let zeroed = AlignedBytes::zeroed(len);
            assert_eq!(zeroed.len(), len);
            assert!(zeroed.iter().all(|&byte| byte == 0));
            assert_eq!(zeroed == aligned, len == 0, "length {len}");
        }
    }

    #[test]
    fn what_is_written_stays_and_is_copied_by_clone() {
        let mut aligned = AlignedBytes::zeroed(70);
        aligned[69] = 7;
        aligned.as_mut()[0] = 5;
        let copy = aligned.clone();
        aligned[0] = 0;
        assert_eq!((copy[0], copy[69], aligned[0]), (5, 7, 0));
        assert_eq!(copy.as_ptr() as usize % LINE_BYTES, 0);
        assert_eq!(format!("{:?}", AlignedBytes::from_slice(&[1])), "AlignedBytes([1])");
    }
}
