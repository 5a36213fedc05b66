//! Bounds on the neighbours of a place that lies in no cell, in both directions.
//! ```text
//! cells        [....]         [..]                [...]
//! place                                 ^
//! neighbours        before the end of this one     from the start of this one
//! ```
//! Invariant: a key in a cell has a view between the cell's smallest and largest one, and every
//! cell has a key. So no key at or after the place is below the next cell's start. No key at or
//! before the place is above the previous cell's end. (These are codes, if there is a model of
//! text.)

use trommel_filters::bits::key_bits::after_all_with;
use trommel_filters::fingerprint::cell::Block;
use trommel_filters::fingerprint::gap::{first_view, last_view};
use trommel_filters::fingerprint::group::Group;
use trommel_filters::fingerprint::keys::KEY_BYTES_MAX;
use trommel_filters::fingerprint::line::Line;
use trommel_filters::fingerprint::spline::SplineBlock;

use super::encoding::Encoding;
use super::place::{CellPosition, View, with_coded, with_gaps};

impl View<'_> {
    /// Returns a lower bound of the first key at or after a place that lies in no cell. None: there
    /// is no such key.
    pub(super) fn first_from(&self, place: &CellPosition) -> Option<Vec<u8>> {
        let (mut block, mut skipped) = (place.block, place.before);
        for list in place.list..self.above() {
            if let Some(index) = list.checked_sub(1) {
                let group = self.group(index);
                for block in block..group.blocks {
                    let cell = self.cell_views(index, &group, block, skipped);
                    if let Some((start, _)) = cell {
                        return Some(self.string(index, group.prefix_bits, start));
                    }
                    skipped = 0;
                }
            }
            (block, skipped) = (0, 0);
        }
        None
    }

    /// Returns a string above the last key at or before a place that lies in no cell; Some(None) if
    /// none is known. None: there is no such key.
    pub(super) fn end_before(&self, place: &CellPosition) -> Option<Option<Vec<u8>>> {
        for list in (1..self.above()).rev().skip_while(|&list| list > place.list) {
            let (index, group) = (list - 1, self.group(list - 1));
            let is_here = list == place.list;
            let last_block = if is_here { place.block } else { group.blocks - 1 };
            for block in (0..=last_block).rev() {
                let here = is_here && block == place.block;
                let cells = if here { place.before } else { self.block_count(&group, block) };
                let Some(last) = cells.checked_sub(1) else { continue };
                if let Some((_, last)) = self.cell_views(index, &group, block, last) {
                    return Some(self.end_of_view(index, group.prefix_bits, last));
                }
            }
        }
        None
    }

    /// Returns the smallest and the largest view of keys in a cell of a block. None: there is no
    /// such cell.
    fn cell_views(
        &self,
        index: usize,
        group: &Group<'_>,
        block: usize,
        cell: usize,
    ) -> Option<(u64, u64)> {
        let (bytes, mut seen, mut found) = (group.block(block), 0, None);
        let mut see = |low, high| {
            found = if seen == cell { Some((low, high)) } else { found };
            seen += 1;
        };
        match self.frame.encoding {
            Encoding::Cell => Block::new(bytes).for_each_bounds(see),
            Encoding::Gap => {
                let anchor = self.anchor(index, group, block);
                with_gaps(bytes, |gaps| {
                    gaps.for_each_bounds(anchor, |low, high| see(first_view(low), last_view(high)));
                });
            }
            Encoding::Coded => {
                let anchor = self.anchor(index, group, block);
                with_coded(&self.coded_at(group, block), |coded| {
                    coded.for_each_bounds(anchor, |low, high| {
                        see(first_view(low), last_view(high));
                    });
                });
            }
            Encoding::Snarf => {
                let line = Line { block, ..self.line(index, group) };
                SplineBlock::new(bytes, line.model.layout).for_each_position(|position| {
                    let (low, high) = line.position_views(position);
                    see(low, high);
                });
            }
        }
        found
    }

    /// Concatenates the first `prefix_bits` bits of a group's separator and a view. Trailing zeros
    /// are removed, as keys may lack them.
    fn string(&self, index: usize, prefix_bits: usize, view: u64) -> Vec<u8> {
        let mut string = self.whole_string(index, prefix_bits, view);
        let zeros = string.iter().rev().take_while(|&&byte| byte == 0).count();
        string.truncate(string.len() - zeros);
        string
    }

    /// Returns the smallest string above all keys of a group with this view. None: there is none.
    fn end_of_view(&self, index: usize, prefix_bits: usize, view: u64) -> Option<Vec<u8>> {
        let mut string = self.whole_string(index, prefix_bits, view);
        if let Some(last) = string.last_mut() {
            *last |= u8::MAX >> (prefix_bits % 8); // the bits after the view are unknown
        }
        // The bytes beyond what fingerprints use are unknown.
        string.truncate(KEY_BYTES_MAX);
        after_all_with(string)
    }

    /// Concatenates the first `prefix_bits` bits of a group's separator, a view, and zeros up to a
    /// whole byte.
    fn whole_string(&self, index: usize, prefix_bits: usize, view: u64) -> Vec<u8> {
        let (at, shift) = (prefix_bits / 8, prefix_bits % 8);
        let separator = self.directory.separators[index];
        let word = u64::from_le_bytes(separator).to_be_bytes();
        let mut string =
            [self.directory.prefix.bytes(), &word, &self.directory.separator_tail(index).to_vec()]
                .concat();
        string.resize(at + 1, 0);
        string[at] &= !(u8::MAX >> shift);
        let bits = (u128::from(view) << (8 - shift)).to_be_bytes();
        let (_, bits) = bits.split_at(bits.len() - size_of::<u64>() - 1);
        string[at] |= bits[0];
        string.extend_from_slice(&bits[1..]);
        string
    }
}
