//! Eight cells of a block of gap fingerprints at once.
//! ```text
//! nibbles -> exponents -> widths, lengths -> places of the bits (sums) -> multiples -> starts (sums)
//! ```
//! Invariant: as if the cells were read one by one.

use super::{GapBlock, READ_MAX, Walk};

/// Cells that are read at once, where each has one key and all exponents but the first are among the nibbles.
pub(super) const STRIDE: usize = 8;

/// Some cells in a row. What one needs does not wait for the one before it, but for the last sum: several are read in the
/// time of one, and in wide registers.
pub(super) struct Stride {
    pub(super) starts: [u64; STRIDE],
    pub(super) widths: [u32; STRIDE],
    /// Where each cell's bits end.
    pub(super) ends: [usize; STRIDE],
    /// The exponent of the cell after.
    pub(super) exponent: u32,
}

impl Stride {
    /// The cells from that on which comes next in the walk. None: some of them are to be read one by one.
    #[inline(always)]
    pub(super) fn read(block: &GapBlock<'_>, start: u64, walk: Walk) -> Option<Stride> {
        const HIGHEST: u64 = 1 << 63;
        if walk.place + STRIDE > block.count + 1 {
            return None;
        }
        let nibbles = block.nibbles(walk.place);
        if has_zero(nibbles) || has_zero(!nibbles) {
            return None;
        }
        let mut exponents = [walk.exponent; STRIDE + 1];
        for (lane, exponent) in exponents[1..].iter_mut().enumerate() {
            *exponent = block.base + (nibbles >> (4 * lane) & 15) - 1;
        }
        let (mut widths, mut lens) = ([0; STRIDE], [0; STRIDE]);
        for lane in 0..STRIDE {
            let width = exponents[lane].min(exponents[lane + 1]).saturating_sub(block.spare);
            (widths[lane], lens[lane]) = (width, exponents[lane] - width);
        }
        if lens.iter().any(|&len| len as usize > READ_MAX) {
            return None;
        }
        let (mut ats, mut ends, mut at) = ([0; STRIDE], [0; STRIDE], walk.at);
        for lane in 0..STRIDE {
            ats[lane] = at;
            at += lens[lane] as usize;
            ends[lane] = at;
        }
        let mut starts = [0; STRIDE];
        for lane in 0..STRIDE {
            let bits = u64::from_be_bytes(block.eight(ats[lane] / 8)) << (ats[lane] % 8);
            starts[lane] = (bits >> 1 | HIGHEST) >> (63 - lens[lane]) << (widths[lane] & 63);
        }
        let mut sum = start;
        for start in &mut starts {
            sum = sum.wrapping_add(*start);
            *start = sum;
        }
        Some(Stride { starts, widths, ends, exponent: exponents[STRIDE] })
    }

    /// How many of the cells begin at or before the number.
    #[inline(always)]
    pub(super) fn begun(&self, number: u64) -> usize {
        self.starts.iter().map(|&start| usize::from(start <= number)).sum()
    }
}

/// Whether one of the eight nibbles is zero.
#[inline(always)]
fn has_zero(nibbles: u32) -> bool {
    nibbles.wrapping_sub(0x1111_1111) & !nibbles & 0x8888_8888 != 0
}
