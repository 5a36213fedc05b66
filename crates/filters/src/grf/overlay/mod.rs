//! The overlay of a part: the keys flushed since its base was built, as places in the base with
//! codes.
//! ```text
//! lists   below | group 0, group 1, ... group 15 | group 16 ...          | above
//! chunks  [   ]   [                            ]   [             ] [     ]  [   ]
//! root    two pointers per chunk; a flush makes a new root, which shares untouched chunks
//! ```
//! Invariant: an overlay never changes. The places of range ends are monotone in keys (see
//! `base/`). So the entries of all keys in a range lie between the places of its ends.

pub(super) mod bucket_entries;
pub(super) mod chunk;
pub(super) mod entry_budget;
mod huffman;
pub(super) mod list;
pub(super) mod packed;
mod packed_layout;
mod packed_numbers;
mod packed_search;
mod packed_writer;
mod quotients;
mod runs;

use alloc::vec::Vec;

use crate::base::filter::{Trace, Untraced};
use crate::base::real::fract;
use crate::base::shape::{Codes, FlushNumber, Shape, Span};
use crate::bits::simd::fastest;
use crate::grf::base::place::{FRACTION_BITS, LISTS_MAX, PLACE_BITS};
use crate::grf::base::{Base, Spot};
use crate::grf::options::GrfOptions;
use crate::grf::options::RunCodes;
use crate::grf::overlay::chunk::{Chunk, ChunkEntries, ChunkWriter, Move, NewEntries};
use crate::grf::overlay::entry_budget::{EntryBudget, Lists};
use crate::grf::overlay::list::{ENTRIES_VISITED_MAX, ListEntries};
use crate::grf::overlay::packed::Packed;
use crate::grf::overlay::runs::Runs;
use crate::grf::sizes::{ARC_BYTES, Slot, TIERS};
use alloc::sync::Arc;
use core::ops::Range;

/// A chunk is prefetched this many chunks before it is rewritten.
const CHUNKS_AHEAD: usize = 2;
/// An answer reads at most this many chunks before it becomes "all".
const CHUNKS_VISITED_MAX: usize = 8;

/// The chunks of all lists.
#[derive(Clone)]
pub(crate) struct Overlay {
    pub(crate) root: Arc<[Chunk]>,
    /// The number of inserted keys.
    pub(crate) keys: u64,
}

/// Returns the chunk of a list, and the list's index in it.
#[inline(always)]
fn chunk_of(list: usize, list_count: usize) -> (usize, usize) {
    let last = list_count - 1;
    if list == 0 {
        (0, 0)
    } else if list < last {
        (1 + (list - 1) / LISTS_MAX, (list - 1) % LISTS_MAX)
    } else {
        (1 + (last - 1).div_ceil(LISTS_MAX), 0)
    }
}

/// Returns what is known of a chunk's lists. Edges keep whole fractions, as no blocks tell their
/// keys apart.
pub(crate) fn lists_of(chunk: usize, base: &Base) -> Lists {
    let edge = base.list_count() - 1;
    let first = 1 + chunk.saturating_sub(1) * LISTS_MAX;
    if chunk == 0 || first >= edge {
        let packed_bits = FRACTION_BITS as f64;
        return Lists { count: 1, expected: 0, packed_bits, dither: 0.0 };
    }
    let end = edge.min(first + LISTS_MAX);
    let keys = base.keys_of_lists(first..end) as usize;
    let share = base.overlay_keys as f64 / base.entries.max(1) as f64;
    let expected = (keys as f64 * share) as usize;
    // Multiples of the golden ratio are evenly distributed modulo 1.
    const GOLDEN: f64 = 0.618_033_988_749_894_9;
    let dither = fract(chunk as f64 * GOLDEN);
    Lists { count: end - first, expected, packed_bits: base.packed_bits(), dither }
}

/// Returns a writer that rewrites chunks for a version with the runs of `shape`.
#[inline(always)]
fn chunk_writer(options: &GrfOptions, shape: &Shape, budget: EntryBudget) -> ChunkWriter {
    match options.run_codes {
        RunCodes::Shape => ChunkWriter::new(Runs::new(shape), budget),
        RunCodes::Huffman => ChunkWriter::of_runs(budget),
    }
}

impl Overlay {
    /// An overlay without entries.
    pub(crate) fn empty(base: &Base) -> Self {
        let (last, _) = chunk_of(base.list_count() - 1, base.list_count());
        Overlay { root: vec![Chunk::default(); last + 1].into(), keys: 0 }
    }

    /// Reports the size of each allocation, and returns the number of entries.
    pub(crate) fn measure(&self, mut allocation: impl FnMut(usize)) -> u64 {
        allocation(ARC_BYTES + size_of_val(&*self.root));
        let tiers = self.root.iter().flat_map(|chunk| chunk.tiers.iter().flatten());
        tiers.for_each(|bytes| allocation(ARC_BYTES + bytes.len()));
        self.root.iter().map(|chunk| chunk.entries().kept).sum()
    }

    pub(crate) fn chunk_count(&self) -> usize {
        self.root.len()
    }

    /// Returns the number of entries in a chunk.
    pub(crate) fn chunk_entries(&self, index: usize) -> ChunkEntries {
        self.root[index].entries()
    }

    /// Returns the chunk of a place, the number of its entries below the place, and the number at
    /// or below it. If the order is unknown, all of a slot's entries count as at the place.
    pub(crate) fn ranks(&self, base: &Base, spot: &Spot) -> (usize, u64, u64) {
        let (index, _) = chunk_of(spot.list, base.list_count());
        let (hashed, chunk) = (base.is_hashed(spot.list), &self.root[index]);
        let places = (spot.place(), spot.place());
        let (mut before, mut through) = (0, 0);
        for (tier, slot) in spot.slots.iter().enumerate() {
            let same = match chunk.tier(tier) {
                None => continue,
                Some(_) if hashed => slot.range(),
                Some(packed) => packed.between(slot, places, &mut Untraced),
            };
            (before, through) = (before + same.start as u64, through + same.end as u64);
        }
        (index, before, through)
    }

    /// Adds the codes of all entries between two places, or from `low` on.
    pub(crate) fn collect<T: Trace>(
        &self,
        base: &Base,
        low: &Spot,
        high: Option<&Spot>,
        codes: &mut Codes,
        trace: &mut T,
    ) {
        let collect = Collect { overlay: self, base, low, high, codes, trace };
        fastest(
            #[inline(always)]
            move || collect.run(),
        );
    }

    /// Returns the entries of a list.
    #[inline(always)]
    pub(crate) fn list(&self, list: usize, base: &Base) -> ListEntries<'_> {
        let (index, list) = chunk_of(list, base.list_count());
        ListEntries { chunk: &self.root[index], list }
    }

    #[inline(always)]
    fn touch_root<T: Trace>(&self, index: usize, trace: &mut T) {
        trace.touch(&raw const self.root[index] as usize, size_of::<Chunk>());
    }

    /// Returns the overlay with codes as wide as the runs of `shape` allow.
    pub(crate) fn collect_garbage(
        &self,
        base: &Base,
        options: &GrfOptions,
        shape: &Shape,
    ) -> Overlay {
        let mut writer = chunk_writer(options, shape, options.entry_budget(base, self.keys));
        let collect = |(index, chunk): (usize, &Chunk)| {
            let lists = lists_of(index, base);
            writer.collect_garbage(chunk, lists).unwrap_or_else(|| chunk.clone())
        };
        Overlay { root: self.root.iter().enumerate().map(collect).collect(), keys: self.keys }
    }
}

/// Adds the codes of all entries between two places.
struct Collect<'a, T> {
    overlay: &'a Overlay,
    base: &'a Base,
    low: &'a Spot,
    high: Option<&'a Spot>,
    codes: &'a mut Codes,
    trace: &'a mut T,
}

impl<T: Trace> Collect<'_, T> {
    #[inline(always)]
    fn run(mut self) {
        match self.high {
            // The most frequent case.
            Some(high) if high.bucket_key() == self.low.bucket_key() => {
                let Collect { overlay, base, low, codes, trace, .. } = self;
                let places = (low.place(), high.place());
                overlay.list(low.list, base).collect(
                    (low.bucket, &low.slots),
                    places,
                    codes,
                    trace,
                );
            }
            _ => self.over_buckets(),
        }
    }

    fn over_buckets(&mut self) {
        let (low, lists) = (self.low, self.base.list_count());
        let (first, first_list) = chunk_of(low.list, lists);
        let high = self.high.map(|high| (high, chunk_of(high.list, lists)));
        let last = high.map_or(self.overlay.root.len() - 1, |(_, (last, _))| last);
        let mut visited = 0;
        for index in first..=last {
            if index - first > CHUNKS_VISITED_MAX {
                self.codes.push_all();
            }
            if self.codes.is_all() {
                return;
            }
            self.overlay.touch_root(index, self.trace);
            let low = (index == first).then_some((low, first_list));
            let high = high.filter(|_| index == last).map(|(high, (_, list))| (high, list));
            for tier in 0..TIERS {
                let Some(packed) = self.overlay.root[index].tier(tier) else { continue };
                let (slot, entries) = self.between(tier, &packed, low, high);
                visited += entries.len();
                if visited > ENTRIES_VISITED_MAX {
                    self.codes.push_all();
                    return;
                }
                packed.visit(&slot, entries, self.trace, |span| self.codes.push(span));
            }
        }
    }

    /// Returns the entries of a tier between two places, and a slot that begins at or before them.
    fn between(
        &mut self,
        tier: usize,
        packed: &Packed<'_>,
        low: End<'_>,
        high: End<'_>,
    ) -> (Slot, Range<usize>) {
        let slot = low.map_or(Slot::default(), |(low, _)| low.slots[tier]);
        let start = low.map_or(0, |(low, list)| {
            packed.touch_table(list, low.bucket, self.trace);
            packed.from(&slot, low.place(), self.trace)
        });
        let end = high.map_or(packed.len(), |(high, list)| {
            packed.touch_table(list, high.bucket, self.trace);
            let places = (high.place(), high.place());
            packed.between(&high.slots[tier], places, self.trace).end
        });
        (slot, start..end.max(start))
    }
}

/// An end of a range, and its list in the chunk. None: the end lies outside the chunk.
type End<'a> = Option<(&'a Spot, usize)>;

/// Collects the places of one flush's keys, and adds them to an overlay chunk by chunk.
pub(crate) struct OverlayInserter {
    /// The list and place of each key.
    spots: Vec<u32>,
    /// The chunks that get entries, and the index of each one's first spot.
    chunks: Vec<(usize, usize)>,
    /// The chunk of the last key.
    chunk: Option<usize>,
}

impl OverlayInserter {
    pub(crate) fn new() -> Self {
        OverlayInserter { spots: Vec::new(), chunks: Vec::new(), chunk: None }
    }

    /// Adds an entry. Requires: its chunk is not before that of earlier entries.
    #[inline(always)]
    pub(crate) fn push(&mut self, base: &Base, list: usize, place: u32) {
        let (chunk, list) = chunk_of(list, base.list_count());
        if self.chunk != Some(chunk) {
            assert!(self.chunk < Some(chunk), "chunk {chunk} after {:?}", self.chunk);
            self.chunk = Some(chunk);
            self.chunks.push((chunk, self.spots.len()));
        }
        self.spots.push((list << PLACE_BITS) as u32 | place);
    }

    /// Returns `overlay` with all entries, whose flush number is `flush`.
    pub(crate) fn finish(
        mut self,
        overlay: &Overlay,
        base: &Base,
        flush: FlushNumber,
        (options, shape): (&GrfOptions, &Shape),
    ) -> Overlay {
        let keys = overlay.keys + self.spots.len() as u64;
        let mut writer = chunk_writer(options, shape, options.entry_budget(base, keys));
        let root = self.rewrite_chunks(overlay, |index, chunk, spots| {
            Some(writer.add(chunk, &NewEntries { spots, flush }, lists_of(index, base)))
        });
        Overlay { root, keys }
    }

    /// Returns `overlay` with the entries at the pushed places moved from the spans `inputs` to
    /// `output`.
    pub(crate) fn recode(
        mut self,
        overlay: &Overlay,
        (options, base): (&GrfOptions, &Base),
        (inputs, output): (&[Span], Span),
    ) -> Overlay {
        let mut writer = ChunkWriter::of_runs(options.entry_budget(base, overlay.keys));
        let root = self.rewrite_chunks(overlay, |index, chunk, spots| {
            writer.recode(chunk, &Move { spots, inputs, output }, lists_of(index, base))
        });
        Overlay { root, keys: overlay.keys }
    }

    /// Calls `rewrite` with each chunk that has spots, and with these in order. A chunk for which
    /// it returns None stays.
    #[inline(always)]
    fn rewrite_chunks(
        &mut self,
        overlay: &Overlay,
        mut rewrite: impl FnMut(usize, &Chunk, &[u32]) -> Option<Chunk>,
    ) -> Arc<[Chunk]> {
        let old = &*overlay.root;
        let mut root = Vec::with_capacity(old.len());
        self.chunks.push((old.len(), self.spots.len()));
        for (place, pair) in self.chunks.windows(2).enumerate() {
            let [(index, start), (_, end)] = *pair else { unreachable!("pairs") };
            // Prefetches the next chunks, which lie anywhere in memory.
            let soon = self.chunks.get(place + CHUNKS_AHEAD);
            soon.and_then(|&(soon, _)| old.get(soon)).into_iter().for_each(Chunk::load);
            let spots = &mut self.spots[start..end];
            // In hashed groups, places are not in key order.
            if !spots.is_sorted() {
                spots.sort_unstable();
            }
            root.extend_from_slice(&old[root.len()..index]);
            root.push(rewrite(index, &old[index], spots).unwrap_or_else(|| old[index].clone()));
        }
        root.extend_from_slice(&old[root.len()..]);
        root.into()
    }
}
