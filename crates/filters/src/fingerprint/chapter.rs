//! A chapter: the keys of some dozen groups, whose coded cells share their classes.
//! ```text
//! arena   group | group, classes | group | group ...     classes follow the first coded group;
//!           spline   coded <-------- coded   coded        later ones refer to them
//! ```
//! Invariant: each coded group refers to existing classes.

use alloc::vec::Vec;

use super::Fingerprints;
use super::alignment::{Alignment, droppable};
use super::coded::classes::Classes;
use super::coded::{CodedCost, SPARE_MAX, Shared, gap_symbols, unit_of};
use super::gap::number;
use super::group::{BLOCKS_MAX, GROUP_ALIGN};
use super::keys::KeyBuffer;
use super::settle::Numbers;
use core::ops::Range;

/// Blocks per chapter.
const BLOCKS: usize = 64 * BLOCKS_MAX;
/// Fewer keys do not pay for classes, or are too few to tell blocks apart.
const KEYS_MIN: usize = 16 << 10;
/// Classes are learned from about this many blocks of a chapter.
const BLOCKS_LEARNT: usize = 256;
/// A chapter (or a group, without chapters) ends early at this many bytes of keys.
const BYTES_MAX: usize = 4 << 20;
const GROUP_BYTES_MAX: usize = 1 << 20;

/// The bits per key that exact cells of aligned keys leave for newer keys.
const BITS_OF_NEWER: f64 = 1.0;

/// What the groups of a chapter share.
#[derive(Default)]
pub struct Chapter {
    /// The classes; empty if no group is coded.
    pub classes: Classes,
    /// The cost of sampled blocks as coded cells, and the number of their keys.
    cost: CodedCost,
    keys: usize,
    /// Parameters of aligned keys. None: keys are not aligned.
    pub aligned: Option<Aligned>,
    at: Option<u32>,
}

/// What groups of aligned keys share.
#[derive(Clone, Copy)]
pub struct Aligned {
    /// The length of all keys in bits, if it is the same.
    pub key_bits: Option<usize>,
    /// The maximum number of last bits that a block drops besides those that a prefix leaves empty.
    pub own_most: u32,
}

/// Blocks to learn classes from.
struct Learnt {
    /// All keys of these blocks, as numbers.
    numbers: Vec<u64>,
    blocks: Vec<LearntBlock>,
}

struct LearntBlock {
    /// The block's range in `numbers`.
    places: Range<usize>,
    prefix_bits: usize,
}

impl Learnt {
    fn new(keys: &KeyBuffer, cuts: &[usize]) -> Learnt {
        let starts = core::iter::once(0).chain(cuts.iter().copied());
        let (mut numbers, mut blocks) = (Vec::new(), Vec::new());
        for (start, &end) in starts.zip(cuts).step_by(cuts.len().div_ceil(BLOCKS_LEARNT)) {
            let commons = &keys.commons()[start + 1..end];
            let prefix_bits = commons.iter().copied().min().unwrap_or(0) as usize;
            let first = numbers.len();
            numbers.extend((start..end).map(|place| number(keys.view(place, prefix_bits))));
            blocks.push(LearntBlock { places: first..numbers.len(), prefix_bits });
        }
        Learnt { numbers, blocks }
    }

    /// Whether keys of this length are aligned.
    fn are_aligned(&self, key_bits: Option<usize>) -> bool {
        let mut alignment = Alignment::default();
        for block in &self.blocks {
            let unit = unit_of(key_bits, block.prefix_bits);
            alignment.add(&self.numbers[block.places.clone()], unit);
        }
        alignment.is_found()
    }

    /// Returns the most last bits that any block of such keys can drop.
    fn most_droppable(&self, key_bits: Option<usize>) -> u32 {
        let own = self.blocks.iter().map(|block| {
            let unit = unit_of(key_bits, block.prefix_bits);
            droppable(&self.numbers[block.places.clone()], unit)
        });
        own.max().unwrap_or(0)
    }

    /// Returns a chapter of `count` keys that learns from these blocks.
    fn chapter(&self, count: usize, key_bits: Option<usize>, aligned: Option<Aligned>) -> Chapter {
        let group = |block: &LearntBlock| {
            let key_bits = aligned.map_or(key_bits, |aligned| aligned.key_bits);
            let unit = unit_of(key_bits, block.prefix_bits);
            Shared::of_prefix(block.prefix_bits, unit, aligned.is_some())
        };
        let mut numbers = self.numbers.clone();
        let (mut symbols, mut ends) = (Vec::new(), vec![0]);
        for block in &self.blocks {
            let (group, numbers) = (group(block), &mut numbers[block.places.clone()]);
            let own =
                aligned.map_or(0, |aligned| droppable(numbers, group.unit).min(aligned.own_most));
            numbers.iter_mut().for_each(|number| *number >>= group.dropped(own));
            gap_symbols(numbers, None, group.turn, &mut symbols);
            ends.push(symbols.len());
        }
        let blocks: Vec<&[u8]> = ends.windows(2).map(|ends| &symbols[ends[0]..ends[1]]).collect();
        let classes = Classes::learn(&blocks, count);
        let mut cost = CodedCost::default();
        for block in &self.blocks {
            let (group, numbers) = (group(block), &numbers[block.places.clone()]);
            let unit = if group.is_aligned { 0 } else { group.unit };
            let block = Numbers { numbers, anchor: numbers[0], next: None, spare: 0, unit };
            cost.add(&block, group, &classes);
        }
        Chapter { classes, cost, keys: numbers.len(), aligned, at: None }
    }

    /// Same as [`chapter`](Self::chapter), for aligned keys. Blocks drop as few last bits as make
    /// cells exact and leave room for newer keys. If no number of bits achieves that, they drop the
    /// most possible.
    fn aligned_chapter(&self, count: usize, key_bits: Option<usize>, bits_per_key: f64) -> Chapter {
        let without =
            |own_most: u32| self.chapter(count, key_bits, Some(Aligned { key_bits, own_most }));
        let is_exact = |chapter: &Chapter| {
            chapter.spare(bits_per_key - BITS_OF_NEWER) == Some(SPARE_MAX as f64)
        };
        let (mut least, mut most) = (0, self.most_droppable(key_bits));
        while least < most {
            let middle = (least + most) / 2;
            if is_exact(&without(middle)) { most = middle } else { least = middle + 1 }
        }
        without(least)
    }
}

impl Chapter {
    /// The maximum number of blocks, and of bytes of keys, that are written together.
    pub fn sizes(fingerprints: Fingerprints) -> (usize, usize) {
        if is_coded(fingerprints) { (BLOCKS, BYTES_MAX) } else { (BLOCKS_MAX, GROUP_BYTES_MAX) }
    }

    /// The chapter of keys whose blocks end at `cuts`.
    ///
    /// `key_bits`: the length of all keys, if they are words or truncated codes. `aligned_bits`: if
    /// aligned keys may drop last bits, the bits per key that their cells may take.
    pub fn new(
        fingerprints: Fingerprints,
        keys: &KeyBuffer,
        cuts: &[usize],
        key_bits: Option<usize>,
        aligned_bits: Option<f64>,
    ) -> Chapter {
        let Some(&count) = cuts.last() else { return Chapter::default() };
        let is_short = count < KEYS_MIN && fingerprints == Fingerprints::Auto;
        if !is_coded(fingerprints) || is_short {
            return Chapter::default();
        }
        let learnt = Learnt::new(keys, cuts);
        if let Some(bits) = aligned_bits {
            let key_bits = key_bits.or_else(|| keys.length_bits());
            if learnt.are_aligned(key_bits) {
                return learnt.aligned_chapter(count, key_bits, bits);
            }
        }
        learnt.chapter(count, key_bits, None)
    }

    /// The approximate spare bits at which the cells take `bits_per_key`. None: no group is coded.
    pub fn spare(&self, bits_per_key: f64) -> Option<f64> {
        (self.keys > 0).then(|| self.cost.spare(bits_per_key * self.keys as f64))
    }

    /// Returns the offset of the classes in the arena, in units of [`GROUP_ALIGN`] bytes. Appends
    /// them to `out` on the first call.
    pub fn classes_at(&mut self, out: &mut Vec<u8>) -> u32 {
        *self.at.get_or_insert_with(|| {
            out.resize(out.len().next_multiple_of(GROUP_ALIGN), 0);
            let units = out.len() / GROUP_ALIGN;
            self.classes.write(out);
            u32::try_from(units).expect("an arena of less than 32 GiB")
        })
    }
}

/// Whether groups may be coded.
fn is_coded(fingerprints: Fingerprints) -> bool {
    matches!(fingerprints, Fingerprints::Coded | Fingerprints::Auto)
}
