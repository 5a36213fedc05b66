//! An array of cells of `bits` bits each, the first `wide` of them one bit longer.
//! ```text
//! low eight bits  | place 0 | place 1 | ... | place count - 1 |   a byte each; none if cells
//!                                                         have fewer bits
//! other bits      place   0      1            wide - 1  wide         count - 1
//!                         rest+1 rest+1  ...  rest+1  | rest  rest ...  rest   |
//!                                                         then at least 8 other bytes
//! ```
//! Cells can have any average length, and are still located by a multiplication. A cell's byte
//! alone refutes most absent keys and is read without shifts. Probes of packed cells only took
//! twice as many instructions.
//!
//! Invariant: at least [`READ_BYTES`] bytes follow the cells, so a reader may load eight at once.

use trommel_filters::Trace;

/// The minimum number of bytes after the cells.
pub(crate) const READ_BYTES: usize = 8;

/// The maximum number of bits per cell.
pub(crate) const BITS_MAX: u32 = 32;

/// The layout of cells in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cells {
    count: usize,
    /// Whether the low eight bits of each cell are stored as a byte.
    in_bytes: bool,
    /// The number of packed bits per cell.
    rest: u32,
    wide: usize,
}

impl Cells {
    /// None: no such layout is valid. (A valid one has a size that fits into a u64.)
    pub(crate) fn new(count: usize, bits: u32, wide: usize) -> Option<Self> {
        let longest = bits + u32::from(wide > 0);
        let fits = longest <= BITS_MAX && wide <= count && count as u64 <= u64::MAX >> 8;
        let in_bytes = bits >= u8::BITS;
        let rest = if in_bytes { bits - u8::BITS } else { bits };
        fits.then_some(Cells { count, in_bytes, rest, wide })
    }

    /// The layout of `count` cells whose average length is `average`, rounded down as little as
    /// possible.
    pub(crate) fn of_average(count: usize, average: f64) -> Self {
        let average = average.clamp(0.0, f64::from(BITS_MAX));
        let wide = (average.fract() * count as f64) as usize;
        Self::new(count, average as u32, wide).expect("no more than the most bits")
    }

    pub(crate) fn bits(&self) -> u32 {
        self.rest + if self.in_bytes { u8::BITS } else { 0 }
    }

    pub(crate) fn wide(&self) -> usize {
        self.wide
    }

    pub(crate) fn size_bytes(&self) -> u64 {
        let bits = self.count as u64 * u64::from(self.rest) + self.wide as u64;
        self.in_bytes_size() as u64 + bits.div_ceil(8)
    }

    #[inline(always)]
    fn in_bytes_size(&self) -> usize {
        if self.in_bytes { self.count } else { 0 }
    }

    /// A mask of the packed bits in the cell at `place`, and thus in all cells before it.
    #[inline(always)]
    fn rest_mask(&self, place: usize) -> u64 {
        (1 << (self.rest + u32::from(place < self.wide))) - 1
    }

    /// Returns the position of a cell's packed bits: a byte, and a bit in it.
    #[inline(always)]
    fn rest_at(&self, place: usize) -> (usize, usize) {
        let bit = place * self.rest as usize + place.min(self.wide);
        (self.in_bytes_size() + bit / 8, bit % 8)
    }

    /// Returns the packed bits of the cell at `place`, in the low bits; higher bits belong to other
    /// cells. Requires: the cell exists.
    #[inline(always)]
    fn rest(&self, bytes: &[u8], place: usize) -> u64 {
        let (at, bit) = self.rest_at(place);
        let chunk = bytes[at..].first_chunk::<READ_BYTES>().expect("cells are followed by bytes");
        u64::from_le_bytes(*chunk) >> bit
    }

    #[inline(always)]
    fn sum_of_rests(&self, bytes: &[u8], [a, b, c]: [usize; 3]) -> u64 {
        self.rest(bytes, a) ^ self.rest(bytes, b) ^ self.rest(bytes, c)
    }

    /// Whether the exclusive or of three cells is `wanted`, in as many low bits as the last cell
    /// has. Requires: the cells exist, and places ascend.
    #[inline(always)]
    pub(crate) fn sum_to<T: Trace>(
        &self,
        bytes: &[u8],
        places: [usize; 3],
        mut wanted: u64,
        trace: &mut T,
    ) -> bool {
        let [a, b, c] = places;
        if self.in_bytes {
            places.iter().for_each(|&place| trace.touch_bytes(&bytes[place..=place]));
            if bytes[a] ^ bytes[b] ^ bytes[c] != wanted as u8 {
                return false;
            }
            wanted >>= u8::BITS;
        }
        self.rest_mask(c) == 0 || self.rests_sum_to(bytes, places, wanted, trace)
    }

    /// Same as `sum_to`, for the packed bits. Not inlined: bytes refute most keys, in few inlined
    /// instructions.
    #[inline(never)]
    fn rests_sum_to<T: Trace>(
        &self,
        bytes: &[u8],
        places: [usize; 3],
        wanted: u64,
        trace: &mut T,
    ) -> bool {
        for (at, bit) in places.map(|place| self.rest_at(place)) {
            let bits = bit + self.rest as usize + usize::from(self.wide > 0);
            trace.touch(bytes.as_ptr() as usize + at, bits.div_ceil(8));
        }
        (self.sum_of_rests(bytes, places) ^ wanted) & self.rest_mask(places[2]) == 0
    }

    /// Sets the cell at `own`, one of three, so that their exclusive or is `wanted`, in as many low
    /// bits as it has. Requires: as for `sum_to`; the cell is zero.
    #[inline(always)]
    pub(crate) fn complete(
        &self,
        bytes: &mut [u8],
        places: [usize; 3],
        own: usize,
        mut wanted: u64,
    ) {
        let [a, b, c] = places;
        if self.in_bytes {
            bytes[own] = bytes[a] ^ bytes[b] ^ bytes[c] ^ wanted as u8;
            wanted >>= u8::BITS;
        }
        let mask = self.rest_mask(own);
        if mask == 0 {
            return;
        }
        let value = (self.sum_of_rests(bytes, places) ^ wanted) & mask;
        let (at, bit) = self.rest_at(own);
        let chunk = &mut bytes[at..at + READ_BYTES];
        let chunk: &mut [u8; READ_BYTES] = chunk.try_into().expect("a slice of eight");
        *chunk = (u64::from_le_bytes(*chunk) | value << bit).to_le_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trommel_filters::Untraced;

    /// The number of bits of the cell at `place`.
    fn bits_at(cells: &Cells, place: usize) -> u32 {
        cells.bits() + u32::from(place < cells.wide())
    }

    #[test]
    fn what_is_completed_sums_up() {
        let averages = [32.0, 0.5, 1.0, 7.9, 8.0, 8.5, 9.37, 24.0, 31.9, 0.0];
        for (count, average) in [3usize, 7, 100].into_iter().flat_map(|n| averages.map(|a| (n, a)))
        {
            let cells = Cells::of_average(count, average);
            assert_eq!(Cells::new(count, cells.bits(), cells.wide()), Some(cells));
            let size = cells.size_bytes();
            assert!((size as f64) <= (count as f64 * average / 8.0).ceil(), "{cells:?}");
            let mut bytes = vec![0; size as usize + READ_BYTES];
            let wanted = |place: usize| 0x9e37_79b9_7f4a_7c15u64.wrapping_mul(place as u64 + 1);
            // Each cell is the last of three, and earlier cells stay as they are.
            let places = |place: usize| [place - 2, place - 1, place];
            for place in 2..count {
                cells.complete(&mut bytes, places(place), place, wanted(place));
            }
            for place in 2..count {
                let sums = |wanted| cells.sum_to(&bytes, places(place), wanted, &mut Untraced);
                assert!(sums(wanted(place)), "{cells:?}, {place}");
                for bit in 0..64 {
                    let is_stored = bit < bits_at(&cells, place);
                    assert_eq!(sums(wanted(place) ^ 1 << bit), !is_stored, "{cells:?}, bit {bit}");
                }
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
