//! Columns that all rows meet evenly.
//! ```text
//! rows, by start    1 0 1 1 . . .          eliminate: each slot keeps one row that begins there;
//!                     1 1 0 1 . .          a row whose slot is taken is added to the row there,
//!                         1 0 0 1 .        and goes on where the sum begins, or is nothing
//! slots, from the last to the first: a slot without a row is anything;
//!     a slot with a row is what makes the row even
//! ```
//! Invariant: the rows in the slots have all sums that the rows of the keys have.

use alloc::vec::Vec;

use super::{COLUMNS_MAX, Columns, Row, WIDTH, is_even};
use crate::base::hash::scattered;

/// The bytes of the columns for keys with these hashes.
#[inline(always)]
pub(super) fn solve(hashes: Vec<u64>, columns: &Columns) -> Vec<u8> {
    let rows = eliminated(&hashes, columns.blocks);
    drop(hashes);
    solved(&rows, columns)
}

/// For each slot the row that begins there, or nothing. A row's first bit is that of its slot.
#[inline(always)]
fn eliminated(hashes: &[u64], blocks: usize) -> Vec<u128> {
    let mut rows = vec![0u128; blocks * WIDTH];
    for &hash in hashes {
        let Row { start: mut slot, mut bits } = Row::of(hash, blocks);
        loop {
            let taken = rows[slot];
            if taken == 0 {
                rows[slot] = bits;
                break;
            }
            bits ^= taken;
            if bits == 0 {
                break; // the sum of rows that are there already
            }
            let ahead = bits.trailing_zeros();
            bits >>= ahead;
            slot += ahead as usize;
        }
    }
    rows
}

/// The columns of all blocks, one after the other. Whatever is free is scattered by its place.
#[inline(always)]
fn solved(rows: &[u128], columns: &Columns) -> Vec<u8> {
    let size = columns.size_bytes().expect("rows of as many slots are in memory");
    let mut bytes = vec![0; size];
    // Of each column the slots behind the one that is looked at, the nearest in the lowest bit.
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
