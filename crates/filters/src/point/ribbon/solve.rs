//! Solves for columns that all rows meet evenly, with as many slots as that takes.
//! ```text
//! rows, by start    1 0 1 1 . . .          eliminate: each slot keeps one row that begins there;
//!                     1 1 0 1 . .          a row whose slot is taken is XORed with the row there,
//!                         1 0 0 1 .        and moves to where the sum begins, or vanishes
//! back substitution, from the last slot to the first: a slot without a row is random;
//!     a slot with a row gets the bit that makes the row even
//! ```
//! Where more rows begin than there are slots, any other row there is a linear combination of them
//! and passes all columns. By chance one filter in two hundred has such a stretch. It is rebuilt
//! with more slots.
//!
//! Invariant: the rows in the slots span the same space as the rows of the keys.

use alloc::vec::Vec;

use super::{COLUMNS_MAX, Columns, Row, WIDTH, is_even};
use crate::base::hash::scattered;

/// The most rebuilds with more slots.
const TRIALS_MAX: u32 = 4;
/// The tolerated share of other rows that are linear combinations, relative to those that pass by
/// chance.
const CROWDED_MAX: f64 = 0.25;
/// Bounds the sample of other rows: so large that this many pass by chance, between the two sizes
/// below.
const SAMPLED_PASSES: f64 = 16.0;
const SAMPLES: [u64; 2] = [4096, 1 << 16];

/// Returns the layout and the bytes of columns for these hashes. The size is about that of
/// `columns`.
#[inline(always)]
pub(super) fn solve(hashes: Vec<u64>, mut columns: Columns) -> (Columns, Vec<u8>) {
    let mut best = Trial::new(&hashes, columns);
    for _ in 0..TRIALS_MAX {
        if best.crowded <= best.columns.rate() * CROWDED_MAX {
            break;
        }
        columns = columns.with_more_slots();
        let next = Trial::new(&hashes, columns);
        if next.lets_through() < best.lets_through() {
            best = next;
        }
    }
    drop(hashes);
    (best.columns, solved(&best.rows, &best.columns))
}

/// The eliminated rows of all keys, with a given number of slots.
struct Trial {
    columns: Columns,
    /// The row that begins at each slot, or 0. Its lowest bit is that slot's.
    rows: Vec<u128>,
    /// The share of other rows that are linear combinations of these.
    crowded: f64,
}

impl Trial {
    #[inline(always)]
    fn new(hashes: &[u64], columns: Columns) -> Trial {
        let mut rows = vec![0u128; columns.blocks * WIDTH];
        let mut sums = 0;
        for &hash in hashes {
            match rest_of(Row::of(hash, columns.blocks), &rows) {
                Some(Row { start, bits }) => rows[start] = bits,
                None => sums += 1,
            }
        }
        // Duplicate keys count as sums, too, and only cost time.
        let crowded = if sums == 0 { 0.0 } else { crowded(&rows, &columns) };
        Trial { columns, rows, crowded }
    }

    /// The share of other rows that pass all columns.
    fn lets_through(&self) -> f64 {
        self.columns.rate() + self.crowded
    }
}

/// Estimates the share of other rows that are linear combinations of those in the slots.
fn crowded(rows: &[u128], columns: &Columns) -> f64 {
    let [least, most] = SAMPLES;
    let samples = ((SAMPLED_PASSES / columns.rate()) as u64).clamp(least, most);
    // Complemented, as tests take hashes from the start of this sequence.
    let is_sum = |nth: &u64| rest_of(Row::of(scattered(!*nth), columns.blocks), rows).is_none();
    (0..samples).filter(is_sum).count() as f64 / samples as f64
}

/// Reduces a row by those in the slots, until it begins at a free slot. None: it is a linear
/// combination of them.
#[inline(always)]
fn rest_of(row: Row, rows: &[u128]) -> Option<Row> {
    let Row { mut start, mut bits } = row;
    while rows[start] != 0 {
        bits ^= rows[start];
        if bits == 0 {
            return None;
        }
        let ahead = bits.trailing_zeros();
        bits >>= ahead;
        start += ahead as usize;
    }
    Some(Row { start, bits })
}

/// Computes the columns of all blocks by back substitution. Free slots get pseudorandom bits.
#[inline(always)]
fn solved(rows: &[u128], columns: &Columns) -> Vec<u8> {
    let size = columns.size_bytes().expect("rows of as many slots are in memory");
    let mut bytes = vec![0; size];
    // The slots of each column behind the current one, the nearest in the lowest bit.
    let mut behind = [0u128; COLUMNS_MAX];
    for (block, rows) in rows.as_chunks::<WIDTH>().0.iter().enumerate().rev() {
        let count = columns.of_block(block);
        let behind = &mut behind[..count];
        for (place, &row) in rows.iter().enumerate().rev() {
            let free = if row == 0 { scattered((block * WIDTH + place) as u64) } else { 0 };
            for (nth, column) in behind.iter_mut().enumerate() {
                *column <<= 1;
                let bit = free >> nth & 1 | u64::from(!is_even(*column & row));
                *column |= u128::from(bit);
            }
        }
        let at = columns.at(block);
        let (words, _) = bytes[at..].as_chunks_mut::<{ WIDTH / 8 }>();
        for (word, column) in words.iter_mut().zip(behind) {
            *word = column.to_le_bytes();
        }
    }
    bytes
}
