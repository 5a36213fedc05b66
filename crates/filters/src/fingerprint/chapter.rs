//! The keys of some dozen groups, whose coded cells share their classes.
//! ```text
//! arena   group | group, classes | group | group ...     classes behind the first group that is
//!           spline   coded <-------- coded   coded        coded, which the others name
//! ```
//! Invariant: each group names classes that are there.

use alloc::vec::Vec;

use super::Fingerprints;
use super::coded::classes::Classes;
use super::coded::{CodedCost, gap_symbols};
use super::gap::number;
use super::group::{BLOCKS_MAX, GROUP_ALIGN, turn_of, unit_of};
use super::keys::KeyBuffer;
use super::settle::Numbers;

/// Blocks of a chapter.
const BLOCKS: usize = 64 * BLOCKS_MAX;
/// Fewer keys do not pay for classes, or these are too few to tell blocks apart.
const KEYS_MIN: usize = 16 << 10;
/// Blocks of a chapter from which classes are learnt.
const BLOCKS_LEARNT: usize = 256;
/// A chapter, or a group if there are no chapters, ends early when it has so many bytes of keys.
const BYTES_MAX: usize = 4 << 20;
const GROUP_BYTES_MAX: usize = 1 << 20;

/// What the groups of a chapter share.
#[derive(Default)]
pub struct Chapter {
    /// None where no group is coded.
    pub classes: Classes,
    /// What some blocks take, if they are coded, and how many keys they have.
    cost: CodedCost,
    keys: usize,
    at: Option<u32>,
}

impl Chapter {
    /// The blocks and the bytes of keys that begin to be written together.
    pub fn sizes(fingerprints: Fingerprints) -> (usize, usize) {
        if is_coded(fingerprints) { (BLOCKS, BYTES_MAX) } else { (BLOCKS_MAX, GROUP_BYTES_MAX) }
    }

    /// The chapter of keys whose blocks end at `cuts`.
    /// `key_bits`: of all keys, if they have one length.
    pub fn new(
        fingerprints: Fingerprints,
        keys: &KeyBuffer,
        cuts: &[usize],
        key_bits: Option<usize>,
    ) -> Chapter {
        let Some(&count) = cuts.last() else { return Chapter::default() };
        let is_short = count < KEYS_MIN && fingerprints == Fingerprints::Auto;
        if !is_coded(fingerprints) || is_short {
            return Chapter::default();
        }
        let starts = core::iter::once(0).chain(cuts.iter().copied());
        let (mut symbols, mut ends) = (Vec::new(), vec![0]);
        let (mut all, mut learnt) = (Vec::new(), Vec::new());
        for (start, &end) in starts.zip(cuts).step_by(cuts.len().div_ceil(BLOCKS_LEARNT)) {
            let commons = &keys.commons()[start + 1..end];
            let prefix_bits = commons.iter().copied().min().unwrap_or(0) as usize;
            let (first, turn) = (all.len(), turn_of(prefix_bits));
            all.extend((start..end).map(|place| number(keys.view(place, prefix_bits))));
            learnt.push((first, all.len(), turn, unit_of(key_bits, prefix_bits)));
            gap_symbols(&all[first..], None, turn, &mut symbols);
            ends.push(symbols.len());
        }
        let blocks: Vec<&[u8]> = ends.windows(2).map(|ends| &symbols[ends[0]..ends[1]]).collect();
        let classes = Classes::learn(&blocks, count);
        let mut cost = CodedCost::default();
        for &(start, end, turn, unit) in &learnt {
            let block = &all[start..end];
            let block = Numbers { numbers: block, anchor: block[0], next: None, spare: 0, unit };
            cost.add(&block, turn, &classes);
        }
        Chapter { classes, cost, keys: all.len(), at: None }
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
