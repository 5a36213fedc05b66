//! Arrays of numbers, in memory of their own or inside bytes.
//! ```text
//! Box<[u32]>      native numbers
//! &[[u8; 4]]      the same numbers in place: little-endian, of any alignment
//! ```
//! Invariant: both give the same numbers.

use alloc::boxed::Box;

/// An array of numbers.
pub trait Row<N> {
    /// The number of items.
    fn len(&self) -> usize;

    /// Whether the array is empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number at index `place`. Requires: `place` is below `len`.
    fn at(&self, place: usize) -> N;

    /// The address of the first number.
    fn address(&self) -> usize;
}

impl<N: Copy> Row<N> for Box<[N]> {
    #[inline(always)]
    fn len(&self) -> usize {
        <[N]>::len(self)
    }

    #[inline(always)]
    fn at(&self, place: usize) -> N {
        self[place]
    }

    #[inline(always)]
    fn address(&self) -> usize {
        self.as_ptr() as usize
    }
}

impl Row<u64> for &[[u8; 8]] {
    #[inline(always)]
    fn len(&self) -> usize {
        <[[u8; 8]]>::len(self)
    }

    #[inline(always)]
    fn at(&self, place: usize) -> u64 {
        u64::from_le_bytes(self[place])
    }

    #[inline(always)]
    fn address(&self) -> usize {
        self.as_ptr() as usize
    }
}

impl Row<u32> for &[[u8; 4]] {
    #[inline(always)]
    fn len(&self) -> usize {
        <[[u8; 4]]>::len(self)
    }

    #[inline(always)]
    fn at(&self, place: usize) -> u32 {
        u32::from_le_bytes(self[place])
    }

    #[inline(always)]
    fn address(&self) -> usize {
        self.as_ptr() as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_the_same_in_memory_and_in_bytes() {
        let numbers: Box<[u32]> = (0..50).map(|i| i * i * 0x1234).collect();
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        let (in_bytes, _) = bytes.as_chunks::<4>();
        assert_eq!(Row::len(&numbers), Row::len(&in_bytes));
        assert!((0..50).all(|place| numbers.at(place) == in_bytes.at(place)));
    }
}
