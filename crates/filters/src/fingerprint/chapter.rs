//! The keys of some dozen groups, whose coded cells share their classes.
//! ```text
//! arena   group | group, classes | group | group ...     classes behind the first group that is
//!           spline   coded <-------- coded   coded        coded, which the others name
//! ```
//! Invariant: each group names classes that are there.

use alloc::vec::Vec;

use super::Fingerprints;
use super::alignment::Alignment;
use super::coded::classes::Classes;
use super::coded::{CodedCost, SPARE_MAX, Shared, gap_symbols, unit_of};
use super::gap::number;
use super::group::{BLOCKS_MAX, GROUP_ALIGN};
use super::keys::KeyBuffer;
use super::settle::Numbers;
use core::ops::Range;

/// Blocks of a chapter.
const BLOCKS: usize = 64 * BLOCKS_MAX;
/// Fewer keys do not pay for classes, or these are too few to tell blocks apart.
const KEYS_MIN: usize = 16 << 10;
/// Blocks of a chapter from which classes are learnt.
const BLOCKS_LEARNT: usize = 256;
/// A chapter, or a group if there are no chapters, ends early when it has so many bytes of keys.
const BYTES_MAX: usize = 4 << 20;
const GROUP_BYTES_MAX: usize = 1 << 20;

/// What exact cells of aligned keys shall leave for newer ones, in bits for each key.
const BITS_OF_NEWER: f64 = 1.0;

/// What the groups of a chapter share.
#[derive(Default)]
pub struct Chapter {
    /// None where no group is coded.
    pub classes: Classes,
    /// What some blocks take, if they are coded, and how many keys they have.
    cost: CodedCost,
    keys: usize,
    /// The most of their last bits that a block's keys do without, if keys are aligned.
    pub dropped: Option<u32>,
    at: Option<u32>,
}

/// Blocks from which is learnt.
struct Learnt {
    /// The keys of all, as numbers.
    numbers: Vec<u64>,
    blocks: Vec<LearntBlock>,
    key_bits: Option<usize>,
}

struct LearntBlock {
    /// Where its numbers are.
    places: Range<usize>,
    prefix_bits: usize,
    alignment: Alignment,
}

impl Learnt {
    fn new(keys: &KeyBuffer, cuts: &[usize], key_bits: Option<usize>) -> Learnt {
        let starts = core::iter::once(0).chain(cuts.iter().copied());
        let (mut numbers, mut blocks) = (Vec::new(), Vec::new());
        for (start, &end) in starts.zip(cuts).step_by(cuts.len().div_ceil(BLOCKS_LEARNT)) {
            let commons = &keys.commons()[start + 1..end];
            let prefix_bits = commons.iter().copied().min().unwrap_or(0) as usize;
            let first = numbers.len();
            numbers.extend((start..end).map(|place| number(keys.view(place, prefix_bits))));
            let alignment = Alignment::of(&numbers[first..], unit_of(key_bits, prefix_bits));
            blocks.push(LearntBlock { places: first..numbers.len(), prefix_bits, alignment });
        }
        Learnt { numbers, blocks, key_bits }
    }

    /// Whether keys are aligned.
    fn are_aligned(&self) -> bool {
        let all = self.blocks.iter().map(|block| block.alignment);
        all.reduce(Alignment::and).is_some_and(|all| all.is_found())
    }

    /// The chapter of so many keys that learns from these blocks.
    fn chapter(&self, count: usize, dropped: Option<u32>) -> Chapter {
        let mut numbers = self.numbers.clone();
        let (mut symbols, mut ends) = (Vec::new(), vec![0]);
        for block in &self.blocks {
            let (group, numbers) =
                (block.group(self.key_bits, dropped), &mut numbers[block.places.clone()]);
            let own = dropped.map_or(0, |most| block.alignment.droppable().min(most));
            numbers.iter_mut().for_each(|number| *number >>= group.dropped(own));
            gap_symbols(numbers, None, group.turn, &mut symbols);
            ends.push(symbols.len());
        }
        let blocks: Vec<&[u8]> = ends.windows(2).map(|ends| &symbols[ends[0]..ends[1]]).collect();
        let classes = Classes::learn(&blocks, count);
        let mut cost = CodedCost::default();
        for block in &self.blocks {
            let (group, numbers) =
                (block.group(self.key_bits, dropped), &numbers[block.places.clone()]);
            let unit = if group.is_aligned { 0 } else { group.unit };
            let block = Numbers { numbers, anchor: numbers[0], next: None, spare: 0, unit };
            cost.add(&block, group, &classes);
        }
        Chapter { classes, cost, keys: numbers.len(), dropped, at: None }
    }

    /// As above, of aligned keys, without as few of their last bits as leave room for exact cells
    /// and for newer keys.
    fn aligned_chapter(&self, count: usize, bits_per_key: f64) -> Chapter {
        let is_exact = |dropped: u32| {
            let spare = self.chapter(count, Some(dropped)).spare(bits_per_key - BITS_OF_NEWER);
            spare == Some(SPARE_MAX as f64)
        };
        let (mut least, mut most) = (0, Alignment::DROPPED_MAX);
        while least < most {
            let middle = (least + most) / 2;
            if is_exact(middle) { most = middle } else { least = middle + 1 }
        }
        self.chapter(count, Some(least))
    }
}

impl LearntBlock {
    fn group(&self, key_bits: Option<usize>, dropped: Option<u32>) -> Shared {
        let unit = unit_of(key_bits, self.prefix_bits);
        Shared::of_prefix(self.prefix_bits, unit, dropped.is_some())
    }
}

impl Chapter {
    /// The blocks and the bytes of keys that begin to be written together.
    pub fn sizes(fingerprints: Fingerprints) -> (usize, usize) {
        if is_coded(fingerprints) { (BLOCKS, BYTES_MAX) } else { (BLOCKS_MAX, GROUP_BYTES_MAX) }
    }

    /// The chapter of keys whose blocks end at `cuts`.
    /// `key_bits`: of all keys, if they have one length. `aligned_bits`: if aligned keys may do
    /// without last bits, those that their cells may take, for each key.
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
        let learnt = Learnt::new(keys, cuts, key_bits);
        match aligned_bits {
            Some(bits) if learnt.are_aligned() => learnt.aligned_chapter(count, bits),
            _ => learnt.chapter(count, None),
        }
    }

    /// The spare bits with which its cells take so many bits for each key, about. None: no group is
    /// coded.
    pub fn spare(&self, bits_per_key: f64) -> Option<f64> {
        (self.keys > 0).then(|| self.cost.spare(bits_per_key * self.keys as f64))
    }

    /// Where its classes are in the arena, in units of [`GROUP_ALIGN`] bytes; behind `out`, if they
    /// are not there yet.
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
