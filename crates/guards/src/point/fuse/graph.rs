//! Which three cells a key has.
//! ```text
//! binary fuse  segments  | 0 | 1 | 2 | 3 | 4 | ... | n+1 |  a key: a cell in three neighbours
//!                                a   b   c
//! xor          thirds    |    0    |    1    |    2    |    a key: one cell in each
//!                             a      b           c
//! ```
//! (Binary fuse filters: Graf and Lemire 2022; xor filters: Graf and Lemire 2020.) At either end of
//! a binary fuse filter each cell has fewer keys. Peeling begins there, and so the filter needs
//! fewer cells for all keys.
//!
//! Invariant: places ascend, and lie below `cell_count`. No cells: no keys.

use std::ops::Range;

use trommel_filters::FilterKind;
use trommel_filters::hash::scaled;

use super::cells::{BITS_MAX, Cells};
use super::{BINARY_FUSE, XOR};

/// How the cells of keys are chosen.
pub trait Graph: Copy {
    /// Whose graph it is.
    const KIND: &'static dyn FilterKind;
    /// What names it in files.
    const TAG: u16;
    /// In large filters.
    const CELLS_PER_KEY: f64;

    /// With cells for so many keys: a few more after every few tries that failed.
    fn for_keys(keys: usize, tries: u8) -> Self;

    /// How many cells there are.
    fn cell_count(&self) -> usize;

    /// Whether there are no cells.
    fn is_empty(&self) -> bool;

    /// The three cells of a key. Requires: there are cells.
    fn places(&self, mix: u64) -> [usize; 3];

    /// Two numbers that tell it.
    fn encode(&self) -> (u32, u8);

    /// None: no graph is told so.
    fn decode(size: u32, shape: u8) -> Option<Self>;

    /// Cells of so many bits together.
    fn cells(count: usize, payload_bits: f64) -> Cells;

    /// The least bits of a small table's filter, which may exceed the budget. Each cell has at
    /// least half the bits per key, however many cells there are.
    fn least_bits(&self, keys: usize, payload_bits: f64) -> f64 {
        if keys == 0 { 0.0 } else { payload_bits / 2.0 / keys as f64 * self.cell_count() as f64 }
    }
}

/// More cells, the more tries have failed.
fn growth(tries: u8) -> f64 {
    1.0 + f64::from(tries / 8) / 20.0
}

/// The segments of a binary fuse filter.
#[derive(Clone, Copy, Debug)]
pub struct Fuse {
    /// The places where a key's first cell may be: all but two segments.
    starts: usize,
    /// The length of a segment is a power of two.
    segment_bits: u32,
}

/// Cells of so many bits on average become bytes, for less than a hundredth more memory: packed
/// ones take twice the time to ask.
const NEARLY_BYTES: Range<f64> = 7.93..8.0;

/// A place in a segment is chosen by so many bits of a hash at most.
const SEGMENT_BITS_MAX: u32 = 18;

impl Graph for Fuse {
    const KIND: &'static dyn FilterKind = BINARY_FUSE;
    const TAG: u16 = 4;
    const CELLS_PER_KEY: f64 = 1.125;

    /// The sizes that the paper found by experiments.
    fn for_keys(keys: usize, tries: u8) -> Self {
        if keys == 0 {
            return Fuse { starts: 0, segment_bits: 0 };
        }
        let log = (keys.max(2) as f64).ln();
        let segment_bits = ((log / 3.33f64.ln() + 2.25) as u32).min(SEGMENT_BITS_MAX);
        let per_key = (0.875 + 0.25 * 1e6f64.ln() / log).max(Self::CELLS_PER_KEY);
        let cells = keys as f64 * per_key * growth(tries);
        let segments = (cells / f64::from(1 << segment_bits)).ceil() as usize;
        Fuse { starts: segments.saturating_sub(2).max(1) << segment_bits, segment_bits }
    }

    #[inline(always)]
    fn cell_count(&self) -> usize {
        if self.starts == 0 { 0 } else { self.starts + (2 << self.segment_bits) }
    }

    #[inline(always)]
    fn is_empty(&self) -> bool {
        self.starts == 0
    }

    #[inline(always)]
    fn places(&self, mix: u64) -> [usize; 3] {
        let length = 1 << self.segment_bits;
        let a = scaled(mix, self.starts);
        let b = (a + length) ^ ((mix >> SEGMENT_BITS_MAX) as usize & (length - 1));
        let c = (a + 2 * length) ^ (mix as usize & (length - 1));
        [a, b, c]
    }

    fn encode(&self) -> (u32, u8) {
        let segments = u32::try_from(self.starts >> self.segment_bits);
        (segments.expect("as many as fit into memory"), self.segment_bits as u8)
    }

    fn decode(size: u32, shape: u8) -> Option<Self> {
        let segment_bits = u32::from(shape);
        let fits = segment_bits <= SEGMENT_BITS_MAX;
        fits.then(|| Fuse { starts: (size as usize) << segment_bits, segment_bits })
    }

    fn cells(count: usize, payload_bits: f64) -> Cells {
        let average = payload_bits / count.max(1) as f64;
        Cells::of_average(count, if NEARLY_BYTES.contains(&average) { 8.0 } else { average })
    }
}

/// The thirds of an xor filter.
#[derive(Clone, Copy, Debug)]
pub struct Xored {
    third: usize,
}

impl Graph for Xored {
    const KIND: &'static dyn FilterKind = XOR;
    const TAG: u16 = 5;
    const CELLS_PER_KEY: f64 = 1.23;

    fn for_keys(keys: usize, tries: u8) -> Self {
        if keys == 0 {
            return Xored { third: 0 };
        }
        let cells = keys as f64 * Self::CELLS_PER_KEY * growth(tries) + 32.0f64.min(keys as f64);
        Xored { third: (cells / 3.0).ceil() as usize }
    }

    #[inline(always)]
    fn cell_count(&self) -> usize {
        self.third * 3
    }

    #[inline(always)]
    fn is_empty(&self) -> bool {
        self.third == 0
    }

    #[inline(always)]
    fn places(&self, mix: u64) -> [usize; 3] {
        [
            scaled(mix, self.third),
            self.third + scaled(mix.rotate_left(21), self.third),
            2 * self.third + scaled(mix.rotate_left(42), self.third),
        ]
    }

    fn encode(&self) -> (u32, u8) {
        (u32::try_from(self.third).expect("as many as fit into memory"), 0)
    }

    fn decode(size: u32, shape: u8) -> Option<Self> {
        (shape == 0).then_some(Xored { third: size as usize })
    }

    /// All of one length, and one bit at least: hardly any key has three long cells where only some
    /// are.
    fn cells(count: usize, payload_bits: f64) -> Cells {
        let average = payload_bits / count.max(1) as f64;
        Cells::of_average(count, average.floor().clamp(1.0, f64::from(BITS_MAX)))
    }
}
