//! Numbers of `bits` bits, the first few of them one bit longer, found by their place.
//! ```text
//! place   0      1            wide - 1  wide            count - 1
//!         bits+1 bits+1  ...  bits+1  | bits  bits ...  bits     |  at least 8 bytes of something else
//! ```
//! So many numbers can have any average length, and are still found with a multiplication. Low bits first.
//!
//! Invariant: the bytes of the cells are followed by others ([`READ_BYTES`]), so that a reader loads eight at once.

use crate::filter::Trace;

/// Bytes that follow the cells, at least.
pub(crate) const READ_BYTES: usize = 8;

/// The most bits of a cell.
pub(crate) const BITS_MAX: u32 = 32;

/// How cells lie in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cells {
    count: usize,
    bits: u32,
    wide: usize,
}

impl Cells {
    /// None: there are no such cells. (They fit into memory whose size is a u64.)
    pub(crate) fn new(count: usize, bits: u32, wide: usize) -> Option<Self> {
        let longest = bits + u32::from(wide > 0);
        let fits = longest <= BITS_MAX && wide <= count && count as u64 <= u64::MAX >> 8;
        fits.then_some(Cells { count, bits, wide })
    }

    /// So many cells of so many bits each on average, as near below as cells can come to it.
    pub(crate) fn of_average(count: usize, average: f64) -> Self {
        let average = average.clamp(0.0, f64::from(BITS_MAX));
        let wide = (average.fract() * count as f64) as usize;
        Cells { count, bits: average as u32, wide }
    }

    pub(crate) fn bits(&self) -> u32 {
        self.bits
    }

    pub(crate) fn wide(&self) -> usize {
        self.wide
    }

    pub(crate) fn size_bytes(&self) -> u64 {
        let bits = self.count as u64 * u64::from(self.bits) + self.wide as u64;
        bits.div_ceil(8)
    }

    /// The bits that the cell at `place` has, and so all cells before it.
    #[inline(always)]
    pub(crate) fn mask(&self, place: usize) -> u64 {
        (1 << (self.bits + u32::from(place < self.wide))) - 1
    }

    #[inline(always)]
    fn bit_of(&self, place: usize) -> usize {
        place * self.bits as usize + place.min(self.wide)
    }

    /// The cell at `place` in the low bits; what is above belongs to others. Requires: there is such a cell.
    #[inline(always)]
    pub(crate) fn read(&self, bytes: &[u8], place: usize) -> u64 {
        let bit = self.bit_of(place);
        let chunk = &bytes[bit / 8..bit / 8 + READ_BYTES];
        u64::from_le_bytes(chunk.try_into().expect("a slice of eight")) >> (bit % 8)
    }

    /// Tells the memory of the cell at `place`.
    #[inline(always)]
    pub(crate) fn trace<T: Trace>(&self, bytes: &[u8], place: usize, trace: &mut T) {
        let (bit, bits) = (self.bit_of(place), self.mask(place).count_ones() as usize);
        let end = (bit + bits).div_ceil(8).max(bit / 8);
        trace.touch(bytes.as_ptr() as usize + bit / 8, end - bit / 8);
    }

    /// Sets bits in the cell at `place`. Requires: there is such a cell, and it has these bits.
    #[inline(always)]
    pub(crate) fn set(&self, bytes: &mut [u8], place: usize, value: u64) {
        let bit = self.bit_of(place);
        let chunk = &mut bytes[bit / 8..bit / 8 + READ_BYTES];
        let chunk: &mut [u8; READ_BYTES] = chunk.try_into().expect("a slice of eight");
        *chunk = (u64::from_le_bytes(*chunk) | value << (bit % 8)).to_le_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_is_read() {
        for (count, average) in [(1, 32.0), (7, 0.5), (100, 8.0), (100, 9.37), (33, 31.9), (5, 0.0)]
        {
            let cells = Cells::of_average(count, average);
            assert_eq!(Cells::new(count, cells.bits(), cells.wide()), Some(cells));
            let size = cells.size_bytes();
            assert!((size as f64) <= (count as f64 * average / 8.0).ceil(), "{cells:?}");
            let mut bytes = vec![0; size as usize + READ_BYTES];
            let value = |place: usize| 0x9e37_79b9u64.wrapping_mul(place as u64 + 1);
            for place in 0..count {
                cells.set(&mut bytes, place, value(place) & cells.mask(place));
            }
            for place in 0..count {
                let mask = cells.mask(place);
                assert_eq!(cells.read(&bytes, place) & mask, value(place) & mask, "{cells:?}");
            }
            assert_eq!(bytes[size as usize..], [0; READ_BYTES]);
        }
    }

    #[test]
    fn impossible_cells_are_none() {
        assert_eq!(Cells::new(10, 33, 0), None);
        assert_eq!(Cells::new(10, 32, 1), None);
        assert_eq!(Cells::new(10, 8, 11), None);
        assert_eq!(Cells::of_average(10, 1e9), Cells::of_average(10, 32.0));
    }
}
