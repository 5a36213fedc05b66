//! The three cells of each key.
//! ```text
//! binary fuse  segments  | 0 | 1 | 2 | 3 | 4 | ... | n+1 |  a key: one cell in each of three
//!                                a   b   c                   consecutive segments
//! xor          thirds    |    0    |    1    |    2    |    a key: one cell in each third
//!                             a      b           c
//! ```
//! (Binary fuse filters: Graf and Lemire 2022; xor filters: Graf and Lemire 2020.) At both ends of
//! a binary fuse filter, cells have fewer keys. Peeling begins there, so the filter needs fewer
//! cells.
//!
//! Invariant: places ascend and are below `cell_count`. No cells: no keys.

use std::ops::Range;

use trommel_filters::FilterKind;
use trommel_filters::hash::scaled;

use super::cells::{BITS_MAX, Cells};
use super::{BINARY_FUSE, XOR};

/// How a filter assigns three cells to each key.
pub trait Graph: Copy {
    /// The kind of filter with this graph.
    const KIND: &'static dyn FilterKind;
    /// The number that identifies the kind in files.
    const TAG: u16;
    /// Cells per key in large filters.
    const CELLS_PER_KEY: f64;

    /// The graph for `keys` keys. It has somewhat more cells after several failed tries.
    fn for_keys(keys: usize, tries: u8) -> Self;

    /// The number of cells.
    fn cell_count(&self) -> usize;

    /// Whether there are no cells.
    fn is_empty(&self) -> bool;

    /// Returns the three cells of a key. Requires: there are cells.
    fn places(&self, mix: u64) -> [usize; 3];

    /// Encodes the graph as two numbers.
    fn encode(&self) -> (u32, u8);

    /// Decodes a graph. None: these numbers are invalid.
    fn decode(size: u32, shape: u8) -> Option<Self>;

    /// Returns the layout of `count` cells with `payload_bits` bits in all.
    fn cells(count: usize, payload_bits: f64) -> Cells;

    /// Returns the minimum bits of a small table's filter, which may exceed its budget. Each cell
    /// has at least half the bits per key, however many cells there are.
    fn least_bits(&self, keys: usize, payload_bits: f64) -> f64 {
        if keys == 0 { 0.0 } else { payload_bits / 2.0 / keys as f64 * self.cell_count() as f64 }
    }
}

/// The growth factor of cells after failed tries.
fn growth(tries: u8) -> f64 {
    1.0 + f64::from(tries / 8) / 20.0
}

/// The segments of a binary fuse filter.
#[derive(Clone, Copy, Debug)]
pub struct Fuse {
    /// The number of places for a key's first cell: all but two segments.
    starts: usize,
    /// The length of a segment, as a power of two.
    segment_bits: u32,
}

/// Cells of such average length are rounded up to bytes, for less than one percent more memory:
/// probing packed cells takes twice the time.
const NEARLY_BYTES: Range<f64> = 7.93..8.0;

/// The maximum number of hash bits that choose a place in a segment.
const SEGMENT_BITS_MAX: u32 = 18;

impl Graph for Fuse {
    const KIND: &'static dyn FilterKind = BINARY_FUSE;
    const TAG: u16 = 4;
    const CELLS_PER_KEY: f64 = 1.125;

    /// Uses the sizes that the paper found by experiments.
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
        if segment_bits > SEGMENT_BITS_MAX {
            return None;
        }
        let starts = usize::try_from(u64::from(size) << segment_bits).ok()?;
        starts.checked_add(2 << segment_bits)?;
        Some(Fuse { starts, segment_bits })
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
        let third = size as usize;
        (shape == 0 && third.checked_mul(3).is_some()).then_some(Xored { third })
    }

    /// All cells have the same length, at least one bit: few keys would have three long cells if
    /// only some cells were long.
    fn cells(count: usize, payload_bits: f64) -> Cells {
        let average = payload_bits / count.max(1) as f64;
        Cells::of_average(count, average.floor().clamp(1.0, f64::from(BITS_MAX)))
    }
}
