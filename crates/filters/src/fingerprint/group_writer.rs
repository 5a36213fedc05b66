//! Writes one group of the base: chooses its kind of fingerprint and lays out its blocks.
//! ```text
//! bits granted - overhead of a kind
//!     = what it can spend on resolution -> its error rate
//! ```
//! Invariant: whatever the choice, every key lies in its fingerprint.

use alloc::vec::Vec;

use super::Fingerprints;
use super::alignment::droppable;
use super::cell::SPARE_MAX;
use super::chapter::Chapter;
use super::choose_kind::{OwnRates, cell_rate_by_keys, layout, rate_in_cells, uneven_gap_bits};
use super::coded::{self, CodedCost, Shared, encode_coded, unit_of};
use super::encode::{BlockPlan, encode_block};
use super::gap::{encode_gaps, number};
use super::group::{
    BLOCKS_MAX, First, GROUP_ALIGN, Kind, Lead, OFFSETS_END, set_classes_at, write_header,
};
use super::hashes::{hash_bit_string, hash_position, write_point_bits};
use super::keys::KeyBuffer;
use super::settle::{KEYS_MAX, Numbers};
use super::spline::{LAYOUT_BYTES, Layout, MODEL_BYTES, Model, encode_positions};
use crate::base::real::exp2;
use core::ops::Range;

/// The minimum length of the cell of a block's only key: a single key can afford it.
const LONE_BITS_MIN: usize = 16;
/// The keys of so small a group would pay for header and directory entry alone. It may exceed its
/// budget by `BITS_OF_FEW`, up to `SPARE_OF_FEW` spare bits.
const KEYS_FEW: usize = 64;
const BITS_OF_FEW: f64 = 512.0;
const SPARE_OF_FEW: f64 = 8.0;
/// Overhead of a group in bits: its header and rounding.
const GROUP_BITS: usize = 8 * 5 + 4 + 28;
/// Overhead of a block of cells or gaps in bits: its offset, header, a nibble, and rounding.
const BLOCK_BITS: usize = 11 + 16 + 4 + 4;
/// Overhead of a spline block in bits: its offset, its count, and rounding.
const SPLINE_BLOCK_BITS: usize = 11 + 16 + 4 + 4;
/// Overhead of a coded block in bits: its offset and rounding.
const CODED_BLOCK_BITS: usize = 11 + 4;
/// The approximate error rate of cells without spare bits.
const CELL_RATE: f64 = 1.2;
/// Gap and coded cells may exceed their budget by this many bits per key: other groups pay it back.
const SPARE_LEAST: f64 = -1.0;
/// Above this estimated rate, cells are placed exactly to measure what they cover.
const PLACED_ABOVE: f64 = 0.1;
/// Reading a line takes less time than coded cells, so these must lower the rate to this share.
const CLEARLY: f64 = 0.85;

/// The keys of a group, and its budget.
#[derive(Clone, Copy)]
pub struct GroupPlan<'a> {
    pub(crate) keys: &'a KeyBuffer,
    /// The end of each block, if blocks are cut by keys.
    pub cuts: &'a [usize],
    /// The common prefix of all keys, in bits.
    pub prefix_bits: usize,
    /// The length of all keys in bits, if they are words or truncated codes.
    pub key_bits: Option<usize>,
    /// The bits that tell the first keys of blocks from the keys before them: 1 to
    /// [`HEAD_BITS_MAX`](super::group::HEAD_BITS_MAX).
    pub head_bits: usize,
    /// The separator's view: at most the first key's.
    pub low: u64,
    pub(crate) fingerprints: Fingerprints,
    /// Hash bits per key next to the fingerprints.
    pub point_bits: usize,
    /// If keys have equal numbers: the error rate above which hashes, which serve points only, are
    /// chosen.
    pub hash_above: f64,
    /// Whether to consider hashes even without equal numbers.
    pub is_text: bool,
    /// The number of blocks if keys lie on a line.
    pub line_blocks: usize,
    /// The group's budget in bits.
    pub bits: f64,
    /// The same number of bits per key as in other groups: the budget for hashes.
    pub even_bits: f64,
    /// The spare bits of coded cells, if the group may have them. What they take then replaces the
    /// budget.
    pub spare: Option<f64>,
}

/// Keeps its buffers from group to group, and the rounding error of spare bits.
#[derive(Default)]
pub struct GroupWriter {
    blocks: Vec<u8>,
    offsets: Vec<u32>,
    /// The keys' views after the group's prefix, and the same as numbers.
    views: Vec<u64>,
    numbers: Vec<u64>,
    positions: Vec<u32>,
    /// The hash bits of the last block written.
    hashes: Vec<u8>,
    rounded: f64,
}

/// A plan of coded cells for a group.
struct CodedPlan {
    cost: CodedCost,
    /// Without spare bits.
    shared: Shared,
}

/// A buffer for a block's numbers without their dropped last bits.
struct Kept([u64; KEYS_MAX]);

impl Default for Kept {
    fn default() -> Self {
        Kept([0; KEYS_MAX])
    }
}

impl Kept {
    /// Returns a block's numbers as coded cells store them, and how many last bits they drop
    /// besides those that a prefix leaves empty.
    #[inline(always)]
    fn numbers<'n>(
        &'n mut self,
        block: Numbers<'n>,
        shared: Shared,
        chapter: &Chapter,
    ) -> (Numbers<'n>, u32) {
        let Some(aligned) = chapter.aligned else {
            return (Numbers { unit: shared.unit, ..block }, 0);
        };
        let own = droppable(block.numbers, shared.unit).min(aligned.own_most);
        let dropped = shared.dropped(own);
        let kept = &mut self.0[..block.numbers.len()];
        kept.iter_mut().zip(block.numbers).for_each(|(kept, number)| *kept = number >> dropped);
        let last = kept[kept.len() - 1];
        // The next block's first key may lie in the last cell.
        let next = block.next.map(|next| next >> dropped).filter(|next| *next > last);
        let anchor = block.anchor >> dropped;
        (Numbers { numbers: kept, anchor, next, ..block }, own)
    }
}

/// The chosen kind and its parameters.
enum Choice {
    Cells { spare: f64 },
    Gaps { spare: f64 },
    Coded { spare: f64, shared: Shared },
    Spline(Layout),
    Hashes(Layout),
}

/// The spare bits of all blocks in a coded group; some blocks have one more.
fn coded_floor(spare: f64) -> usize {
    spare.clamp(0.0, coded::SPARE_MAX as f64) as usize
}

impl GroupWriter {
    pub(crate) fn heap_bytes(&self) -> usize {
        let words = self.views.capacity() + self.numbers.capacity();
        let halves = self.offsets.capacity() + self.positions.capacity();
        self.blocks.capacity() + self.hashes.capacity() + 8 * words + 4 * halves
    }

    /// Loads the views of a group's keys.
    #[inline(always)]
    fn take_views(&mut self, group: &GroupPlan<'_>) {
        let keys = group.key_count();
        group.keys.take_views(keys, group.prefix_bits, &mut self.views);
    }

    /// Loads the numbers of the keys whose views are loaded.
    fn take_numbers(&mut self) {
        self.numbers.clear();
        self.numbers.extend(self.views.iter().map(|&view| number(view)));
    }

    /// Begins a block, after the hashes of the previous one.
    fn begin_block(&mut self) {
        self.blocks.append(&mut self.hashes);
        self.offsets.push(self.blocks.len() as u32);
    }

    /// Pads `out` so that the group ends with its last block's hashes, and the next group is
    /// aligned.
    pub fn finish_last_block(&mut self, out: &mut Vec<u8>) {
        let len = (out.len() + self.hashes.len()).next_multiple_of(GROUP_ALIGN);
        out.resize(len - self.hashes.len(), 0);
        out.append(&mut self.hashes);
    }

    /// Returns the spare bits of the next block, so that the mean over all blocks is `wanted`.
    fn round(&mut self, wanted: f64, most: usize) -> usize {
        let exact = wanted.clamp(0.0, most as f64) + self.rounded;
        let spare = (exact as usize).min(most);
        self.rounded = exact - spare as f64;
        spare
    }
}

impl GroupPlan<'_> {
    fn key_count(&self) -> usize {
        self.cuts[self.cuts.len() - 1]
    }

    /// Appends the group to `out`, followed by the chapter's classes if it is the first to need
    /// them. Returns how many cuts it covers: fewer than planned if keys are huge.
    #[inline(always)]
    pub fn write(
        &self,
        writer: &mut GroupWriter,
        chapter: &mut Chapter,
        out: &mut Vec<u8>,
    ) -> usize {
        writer.take_views(self);
        writer.blocks.clear();
        writer.offsets.clear();
        writer.hashes.clear();
        let may_be_coded = !chapter.classes.is_empty();
        let coded = may_be_coded.then(|| self.plan_coded(chapter, writer));
        let planned =
            coded.as_ref().zip(self.spare).map(|(coded, spare)| self.bits_with(&coded.cost, spare));
        let granted = GroupPlan { bits: planned.unwrap_or(self.bits), ..*self };
        granted.write_chosen(coded.as_ref(), writer, chapter, out)
    }

    #[inline(always)]
    fn write_chosen(
        &self,
        coded: Option<&CodedPlan>,
        writer: &mut GroupWriter,
        chapter: &mut Chapter,
        out: &mut Vec<u8>,
    ) -> usize {
        let (mut first, mut model) = (First::Nothing, None);
        let kind = match self.choose(coded, writer) {
            Choice::Cells { spare } => self.write_cells(spare, writer),
            Choice::Gaps { spare } => self.write_gaps(spare, writer),
            Choice::Coded { spare, shared } => {
                let shared = Shared { spare: coded_floor(spare) as u32, ..shared };
                first = First::Coded(shared);
                self.write_coded(spare, shared, chapter, writer)
            }
            Choice::Spline(layout) => {
                self.write_spline(*model.insert(self.model(layout, writer)), writer)
            }
            Choice::Hashes(layout) => {
                first = First::Layout(layout);
                self.write_hashes(layout, writer)
            }
        };
        let is_coded = kind == Kind::Coded;
        let blocks = writer.offsets.len() - usize::from(is_coded);
        let mut heads = [0; BLOCKS_MAX];
        for (head, &cut) in heads.iter_mut().zip(&self.cuts[..blocks - 1]) {
            *head = writer.views[cut];
        }
        let lead = match &model {
            Some(model) => Lead::Model(model),
            None => Lead::Heads { first, views: &heads[..blocks - 1], bits: self.head_bits },
        };
        let start = out.len();
        let has_hashes = self.point_bits > 0 && kind != Kind::Hash;
        write_header((kind, has_hashes), self.prefix_bits, &lead, &writer.offsets, out);
        out.append(&mut writer.blocks);
        if is_coded {
            let classes_at = chapter.classes_at(out);
            set_classes_at(&mut out[start..], classes_at);
        }
        if kind == Kind::Spline { self.cuts.len() } else { blocks }
    }

    #[inline(always)]
    fn choose(&self, coded: Option<&CodedPlan>, writer: &GroupWriter) -> Choice {
        match (self.fingerprints, coded) {
            (Fingerprints::Cell, _) => Choice::Cells { spare: self.cell_spare() },
            (Fingerprints::Spline, _) => Choice::Spline(self.line_layout()),
            (Fingerprints::Coded, Some(coded)) => {
                Choice::Coded { spare: self.coded_spare(&coded.cost), shared: coded.shared }
            }
            (Fingerprints::Gap | Fingerprints::Coded, _) => {
                Choice::Gaps { spare: self.gap_spare(&writer.views) }
            }
            (Fingerprints::Auto, _) => self.choose_best(coded, writer),
        }
    }

    /// Chooses the kind with the lowest estimated rate for the group's own keys.
    #[inline(always)]
    fn choose_best(&self, coded: Option<&CodedPlan>, writer: &GroupWriter) -> Choice {
        // Few keys do not pay for classes; gap fingerprints have the same cells.
        let (spare, unit) = match coded {
            Some(CodedPlan { cost, shared }) => (self.coded_spare(cost), shared.unit),
            None => (self.gap_spare(&writer.views), 0),
        };
        let rates = OwnRates::new(&writer.views, spare, unit);
        let near_rate = if spare < SPARE_LEAST { f64::INFINITY } else { rates.near(spare) };
        // Cells whose ends coincide with keys cover fewer keys than their widths suggest.
        let near_rate = if near_rate > PLACED_ABOVE && near_rate.is_finite() && spare >= 0.0 {
            near_rate.min(rate_in_cells(&writer.views, spare, unit))
        } else {
            near_rate
        };
        let line = self.line_layout();
        let positions = self.line_blocks as u64 * line.positions();
        let width = (writer.views[self.key_count() - 1] - self.low) as f64 / 2.0;
        let spline_rate = rates.spline(width / positions as f64);
        if rates.has_alike() || self.is_text {
            // Coded cells take the granted bits; plain cells of text would take many more.
            let cells = if coded.is_some() { f64::NEG_INFINITY } else { self.cell_spare() };
            let commons = &self.keys.commons()[..self.key_count()];
            let cell_rate = || (CELL_RATE * exp2(-cells)).max(cell_rate_by_keys(commons, cells));
            let cell_rate = if cells < 0.0 { f64::INFINITY } else { cell_rate() };
            let best = near_rate.min(spline_rate);
            if cell_rate.min(best) > self.hash_above {
                return Choice::Hashes(self.hash_layout());
            }
            if cell_rate < best {
                return Choice::Cells { spare: cells };
            }
        }
        // Where numbers do not fit, prefixes may.
        if near_rate.is_infinite() && !rates.has_alike() {
            let (cells, commons) = (self.cell_spare(), &self.keys.commons()[..self.key_count()]);
            let cell_rate = (CELL_RATE * exp2(-cells)).max(cell_rate_by_keys(commons, cells));
            if cells >= 0.0 && cell_rate < spline_rate {
                return Choice::Cells { spare: cells };
            }
        }
        let is_near = !rates.is_known() || near_rate < CLEARLY * spline_rate;
        match (is_near, coded) {
            (false, _) => Choice::Spline(line),
            (true, Some(coded)) => Choice::Coded { spare, shared: coded.shared },
            (true, None) => Choice::Gaps { spare },
        }
    }

    /// Returns the budget for fingerprints without their hash bits.
    fn order_bits(&self) -> f64 {
        self.bits - (self.key_count() * self.point_bits) as f64
    }

    fn line_layout(&self) -> Layout {
        let (keys, blocks) = (self.key_count(), self.line_blocks);
        let fixed = GROUP_BITS + 8 * MODEL_BYTES + blocks * SPLINE_BLOCK_BITS;
        layout(keys, blocks, (self.order_bits() - fixed as f64) / keys as f64)
    }

    fn cell_spare(&self) -> f64 {
        self.spare_beside(self.uneven_cell_bits())
    }

    fn gap_spare(&self, views: &[u64]) -> f64 {
        self.spare_beside(uneven_gap_bits(views))
    }

    /// Returns the spare bits of cells or gaps. `uneven`: the bits spent where neighbouring gaps
    /// differ.
    fn spare_beside(&self, uneven: usize) -> f64 {
        let (keys, blocks) = (self.key_count(), self.cuts.len());
        let heads = GROUP_BITS + blocks * (BLOCK_BITS + self.head_bits) + 4 * keys;
        self.per_key(self.order_bits() - (heads + uneven) as f64)
    }

    fn hash_layout(&self) -> Layout {
        let (keys, blocks) = (self.key_count(), self.cuts.len());
        let block_bits = SPLINE_BLOCK_BITS + self.head_bits;
        let fixed = GROUP_BITS + 8 * LAYOUT_BYTES + blocks * block_bits;
        layout(keys, blocks, self.per_key(self.even_bits - fixed as f64))
    }

    /// Divides bits among the keys; a group of few keys gets some more.
    #[inline(always)]
    fn per_key(&self, bits: f64) -> f64 {
        let keys = self.key_count() as f64;
        let share = bits / keys;
        if self.key_count() >= KEYS_FEW {
            return share;
        }
        share.max(((bits + BITS_OF_FEW) / keys).min(SPARE_OF_FEW))
    }

    /// Returns the bits that cells spend where a key shares more with the next one than with the
    /// previous one.
    fn uneven_cell_bits(&self) -> usize {
        let commons = &self.keys.commons()[..self.key_count()];
        let rises = commons.windows(2).skip(1).map(|pair| pair[1].saturating_sub(pair[0] + 1));
        rises.map(|bits| bits as usize).sum()
    }

    #[inline(always)]
    fn write_cells(&self, spare: f64, writer: &mut GroupWriter) -> Kind {
        let mut start = 0;
        for &end in self.cuts {
            if writer.blocks.len() >= OFFSETS_END {
                break;
            }
            writer.begin_block();
            let commons = self.keys.commons();
            let around = commons[start].max(commons.get(end).copied().unwrap_or(0)) as usize;
            let plan = BlockPlan {
                keys: self.keys,
                range: start..end,
                prefix_bits: self.prefix_bits,
                spare_bits: writer.round(spare, SPARE_MAX),
                lone_bits: (around + 1).saturating_sub(self.prefix_bits).max(LONE_BITS_MIN),
            };
            encode_block(&plan, &mut writer.blocks);
            self.write_hashes_of(start..end, writer);
            start = end;
        }
        Kind::Cell
    }

    fn write_gaps(&self, spare: f64, writer: &mut GroupWriter) -> Kind {
        writer.take_numbers();
        let mut start = 0;
        for &end in self.cuts {
            writer.begin_block();
            let spare = writer.round(spare, SPARE_MAX);
            let block = self.block(start..end, spare, &writer.views, &writer.numbers);
            encode_gaps(&block, &mut writer.blocks);
            self.write_hashes_of(start..end, writer);
            start = end;
        }
        Kind::Gap
    }

    /// Plans coded cells. Requires: views are loaded, and there are classes.
    #[inline(always)]
    fn plan_coded(&self, chapter: &Chapter, writer: &mut GroupWriter) -> CodedPlan {
        writer.take_numbers();
        let key_bits = chapter.aligned.map_or(self.key_bits, |aligned| aligned.key_bits);
        let unit = unit_of(key_bits, self.prefix_bits);
        let shared = Shared::of_prefix(self.prefix_bits, unit, chapter.aligned.is_some());
        let (mut cost, mut kept, mut start) = (CodedCost::default(), Kept::default(), 0);
        for &end in self.cuts {
            let block = self.block(start..end, 0, &writer.views, &writer.numbers);
            let (block, _) = kept.numbers(block, shared, chapter);
            cost.add(&block, shared, &chapter.classes);
            start = end;
        }
        CodedPlan { cost, shared }
    }

    /// Overhead of a coded group besides its cells, in bits.
    fn coded_heads(&self) -> f64 {
        (GROUP_BITS + self.cuts.len() * (CODED_BLOCK_BITS + self.head_bits)) as f64
    }

    /// Returns the size of a group with coded cells of this cost and `spare` spare bits, in bits.
    fn bits_with(&self, cost: &CodedCost, spare: f64) -> f64 {
        let hashes = (self.key_count() * self.point_bits) as f64;
        cost.bits(spare) + self.coded_heads() + hashes
    }

    /// Returns the spare bits of coded cells. Negative: they do not fit even without any.
    #[inline(always)]
    fn coded_spare(&self, cost: &CodedCost) -> f64 {
        let bits = self.order_bits() - self.coded_heads();
        let spare = cost.spare(bits);
        if self.key_count() >= KEYS_FEW {
            return spare;
        }
        spare.max(cost.spare(bits + BITS_OF_FEW).min(SPARE_OF_FEW))
    }

    #[inline(always)]
    fn write_coded(
        &self,
        spare: f64,
        shared: Shared,
        chapter: &Chapter,
        writer: &mut GroupWriter,
    ) -> Kind {
        let (mut kept, mut start) = (Kept::default(), 0);
        for &end in self.cuts {
            writer.begin_block();
            let spare = writer.round(spare, coded::SPARE_MAX);
            let block = self.block(start..end, spare, &writer.views, &writer.numbers);
            let (block, own) = kept.numbers(block, shared, chapter);
            encode_coded((&block, own), shared, &chapter.classes, &mut writer.blocks);
            self.write_hashes_of(start..end, writer);
            start = end;
        }
        // The reader takes mantissas from the end of a block.
        writer.offsets.push(writer.blocks.len() as u32);
        Kind::Coded
    }

    /// Returns a block's keys as numbers, given the views and numbers of all keys.
    #[inline(always)]
    fn block<'n>(
        &self,
        places: Range<usize>,
        spare: usize,
        views: &[u64],
        numbers: &'n [u64],
    ) -> Numbers<'n> {
        let start = places.start;
        let anchor = if start == 0 { self.low } else { self.head(views[start]) };
        let next = numbers.get(places.end).copied();
        Numbers { numbers: &numbers[places], anchor: number(anchor), next, spare, unit: 0 }
    }

    /// Truncates a view to a head.
    fn head(&self, view: u64) -> u64 {
        let shift = 64 - self.head_bits;
        view >> shift << shift
    }

    /// Returns the line from the separator to the last key.
    fn model(&self, layout: Layout, writer: &GroupWriter) -> Model {
        Model::new(writer.views[self.key_count() - 1] - self.low, self.line_blocks, layout)
    }

    #[inline(always)]
    fn write_spline(&self, model: Model, writer: &mut GroupWriter) -> Kind {
        let low = self.low;
        writer.positions.clear();
        let positions = writer.views.iter().map(|view| model.position(view - low) as u32);
        writer.positions.extend(positions);
        let (mut start, mut first) = (0, 0);
        for _ in 0..self.line_blocks {
            let next = first + model.block_positions() as u32;
            let rest = &writer.positions[start..];
            let end = start + rest.iter().position(|&it| it >= next).unwrap_or(rest.len());
            writer.begin_block();
            let positions = &writer.positions[start..end];
            encode_positions(&model.layout, first, positions, &mut writer.blocks);
            self.write_hashes_of(start..end, writer);
            (start, first) = (end, next);
        }
        assert_eq!(start, writer.positions.len(), "a position beyond all blocks");
        Kind::Spline
    }

    /// Writes the hash bits of a block's keys.
    fn write_hashes_of(&self, places: Range<usize>, writer: &mut GroupWriter) {
        let keys = places.map(|place| self.keys.get(place));
        write_point_bits(keys, self.point_bits, &mut writer.hashes);
    }

    fn write_hashes(&self, layout: Layout, writer: &mut GroupWriter) -> Kind {
        let mut start = 0;
        for &end in self.cuts {
            writer.begin_block();
            writer.positions.clear();
            for place in start..end {
                let hash = hash_bit_string(self.keys.get(place));
                writer.positions.push(hash_position(hash, &layout) as u32);
            }
            writer.positions.sort_unstable();
            encode_positions(&layout, 0, &writer.positions, &mut writer.blocks);
            start = end;
        }
        Kind::Hash
    }
}
