//! A byte string that begins on a cache line.
//! ```text
//! address       64·n          64·n + 64     64·n + 128
//! allocation  ..| line 0      | line 1      | line 2 : it ends where the bytes do
//! ```
//! The allocator does not align to cache lines, so up to 63 bytes at the start are skipped. This
//! needs no `unsafe`.
//!
//! Invariant: the start is a multiple of the line size. So a block at a multiple of the line size
//! in the bytes lies on one cache line.

use alloc::vec::Vec;
use core::fmt;
use core::ops::{Deref, DerefMut};

const LINE_BYTES: usize = 64;

/// A byte string of fixed length that starts on a cache line.
#[derive(Default)]
pub struct AlignedBytes {
    /// Never reallocated; it ends with the bytes.
    allocation: Vec<u8>,
    start: usize,
}

impl AlignedBytes {
    /// Returns `len` zero bytes.
    pub fn zeroed(len: usize) -> Self {
        Self::starting_on_a_line(vec![0; len + LINE_BYTES - 1], len)
    }

    /// Same as [`zeroed`](Self::zeroed). None: the allocation failed.
    pub fn try_zeroed(len: usize) -> Option<Self> {
        let mut allocation = Vec::new();
        let with_skipped = len.checked_add(LINE_BYTES - 1)?;
        allocation.try_reserve_exact(with_skipped).ok()?;
        allocation.resize(with_skipped, 0);
        Some(Self::starting_on_a_line(allocation, len))
    }

    fn starting_on_a_line(mut allocation: Vec<u8>, len: usize) -> Self {
        let start = allocation.as_ptr().addr().wrapping_neg() % LINE_BYTES;
        allocation.truncate(start + len);
        AlignedBytes { allocation, start }
    }

    /// Returns a copy of `bytes`.
    pub fn from_slice(bytes: &[u8]) -> Self {
        let mut aligned = Self::zeroed(bytes.len());
        aligned.copy_from_slice(bytes);
        aligned
    }

    /// The heap memory of the bytes, including those skipped for alignment.
    pub fn heap_bytes(&self) -> usize {
        self.allocation.capacity()
    }
}

impl Clone for AlignedBytes {
    fn clone(&self) -> Self {
        Self::from_slice(self)
    }
}

impl Deref for AlignedBytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.allocation[self.start..]
    }
}

impl DerefMut for AlignedBytes {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.allocation[self.start..]
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
            assert_eq!(aligned.heap_bytes(), len + 63);
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
