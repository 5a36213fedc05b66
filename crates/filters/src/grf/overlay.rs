//! The overlay of a part: what was flushed since its base was built, as places in the base and codes.
//! ```text
//! lists     below | group 0, group 1, ... group 15 | group 16 ...          | above
//! chunks    [   ]   [                            ]   [             ] [     ]  [   ]
//! root      two pointers per chunk; a flush makes a new root, which shares the chunks it does not touch
//! ```
//! Invariant: an overlay never changes; places of the ends of ranges are monotone in keys (see `base.rs`), so that the
//! entries of all keys in a range lie between the places of its ends.

use super::base::{Base, EDGE_BITS, FRACTION_BITS, Spot};
use super::chunk::{Chunk, ChunkEntries, ChunkWriter, Fractions, NewEntries, is_stale};
use super::runs::Runs;
use super::tier::{Code, Entry, LISTS_MAX, Sought, Tier};
use crate::bits::simd::{Work, fastest};
use crate::filter::{Trace, Untraced};
use crate::shape::{Codes, Shape, Span};
use std::ops::Range;
use std::sync::Arc;

/// Entries that one answer looks at before it says "all".
const ENTRIES_ASKED_MAX: usize = 256;
/// Chunks that one answer looks at before it says "all".
const CHUNKS_ASKED_MAX: usize = 8;

/// The chunks of all lists.
#[derive(Clone)]
pub(super) struct Overlay {
    pub(super) root: Arc<[Chunk]>,
}

/// The chunk of a list, and its place there.
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

/// The lists of a chunk.
fn lists_of(chunk: usize, list_count: usize) -> Range<usize> {
    let last = list_count - 1;
    if chunk == 0 {
        return 0..1;
    }
    let first = 1 + (chunk - 1) * LISTS_MAX;
    if first >= last { last..last + 1 } else { first..(first + LISTS_MAX).min(last) }
}

/// The entries of a place's slots: settled ones, then young ones.
pub(super) type Slots = [(u32, u32); 2];

#[inline(always)]
fn range((start, end): (u32, u32)) -> Range<usize> {
    start as usize..end as usize
}

impl Overlay {
    /// Without entries.
    pub(super) fn empty(base: &Base) -> Self {
        let (last, _) = chunk_of(base.list_count() - 1, base.list_count());
        Overlay { root: vec![Chunk::default(); last + 1].into() }
    }

    /// The sizes of all allocations, and the number of entries.
    pub(super) fn measure(&self, mut allocation: impl FnMut(usize)) -> u64 {
        allocation(ARC_BYTES + size_of_val(&*self.root));
        let tiers = self.root.iter().flat_map(|chunk| [&chunk.settled, &chunk.young]);
        tiers.flatten().for_each(|tier| allocation(ARC_BYTES + tier.len()));
        self.root.iter().map(|chunk| chunk.entries().kept).sum()
    }

    pub(super) fn chunk_count(&self) -> usize {
        self.root.len()
    }

    /// The entries of a chunk.
    pub(super) fn chunk_entries(&self, index: usize) -> ChunkEntries {
        self.root[index].entries()
    }

    /// The chunk of a place, how many of its entries lie before the place, and how many before it or there; where order is
    /// not known, its whole slots count as there.
    pub(super) fn ranks(&self, base: &Base, spot: &Spot) -> (usize, u64, u64) {
        let (index, _) = chunk_of(spot.list, base.list_count());
        let (mut before, mut through) = (0, 0);
        for (tier, &slot) in self.root[index].tiers().iter().zip(&spot.slots) {
            let Some(tier) = tier else { continue };
            let same = if base.is_hashed(spot.list) {
                range(slot)
            } else {
                tier.stretch(range(slot), &sought(base, spot, spot), &mut Untraced)
            };
            (before, through) = (before + same.start as u64, through + same.end as u64);
        }
        (index, before, through)
    }

    /// Adds the codes of all entries from the place of `low` to that of `high`; no `high`: to the end.
    pub(super) fn collect<T: Trace>(
        &self,
        base: &Base,
        low: &Spot,
        high: Option<&Spot>,
        codes: &mut Codes,
        trace: &mut T,
    ) {
        fastest(Collect { overlay: self, base, low, high, codes, trace });
    }

    /// Asks for the memory of a list's tables, without waiting for it.
    #[inline(always)]
    pub(super) fn load_tables(&self, list: usize, base: &Base) {
        let (index, list) = chunk_of(list, base.list_count());
        let chunk = &self.root[index];
        for bytes in [&chunk.settled, &chunk.young].into_iter().flatten() {
            Tier::load_table(bytes, list);
        }
    }

    /// The slots of a bucket, whose memory is asked for without waiting for it.
    #[inline(always)]
    pub(super) fn slots(&self, (list, bucket): (usize, usize), base: &Base) -> Slots {
        let (index, list) = chunk_of(list, base.list_count());
        self.root[index].tiers().map(|tier| {
            tier.map_or((0, 0), |tier| {
                let slot = tier.slot(list, bucket);
                tier.load_entry(slot.start);
                (slot.start as u32, slot.end as u32)
            })
        })
    }

    #[inline(always)]
    fn touch_root<T: Trace>(&self, index: usize, trace: &mut T) {
        trace.touch(&raw const self.root[index] as usize, size_of::<Chunk>());
    }

    /// The fraction and the code of the entries of a bucket.
    pub(super) fn for_each(
        &self,
        base: &Base,
        (list, bucket): (usize, usize),
        mut visit: impl FnMut(u64, Code),
    ) {
        let (index, list) = chunk_of(list, base.list_count());
        for tier in self.root[index].tiers().into_iter().flatten() {
            tier.visit_bucket(list, bucket, &mut visit);
        }
    }

    /// The overlay with codes as wide as the runs of a version allow, and settled what can settle.
    pub(super) fn settle(&self, base: &Base, settled_bits: usize, shape: &Shape) -> Overlay {
        let (runs, mut writer) = (Runs::new(shape), ChunkWriter::default());
        let nothing = NewEntries { places: &[], code: Span::of_flush(base.end) };
        let rewrite = |(index, chunk): (usize, &Chunk)| {
            if !chunk.tiers().iter().any(|tier| is_stale(tier.as_ref(), &runs)) {
                return chunk.clone();
            }
            let fractions = self.fractions(index, base, settled_bits);
            writer.rewrite(chunk, &nothing, &runs, &fractions)
        };
        Overlay { root: self.root.iter().enumerate().map(rewrite).collect() }
    }

    fn fractions(&self, index: usize, base: &Base, settled_bits: usize) -> Fractions {
        fractions(index, self.root.len(), base, settled_bits)
    }
}

fn fractions(index: usize, chunks: usize, base: &Base, settled_bits: usize) -> Fractions {
    let lists = lists_of(index, base.list_count()).len();
    let is_edge = index == 0 || index + 1 == chunks;
    let long_bits = if is_edge { EDGE_BITS } else { FRACTION_BITS };
    Fractions { lists, long_bits, settled_bits: if is_edge { EDGE_BITS } else { settled_bits } }
}

/// What lies in the bucket of both places, from one to the other.
#[inline(always)]
fn sought(base: &Base, low: &Spot, high: &Spot) -> Sought {
    let long_bits = if base.is_edge(low.list) { EDGE_BITS } else { FRACTION_BITS };
    Sought { bucket: low.bucket, low: low.fraction, high: high.fraction, long_bits }
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

impl<T: Trace> Work for Collect<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(mut self) {
        match self.high {
            Some(high) if high.bucket_key() == self.low.bucket_key() => self.within_bucket(high),
            _ => self.over_buckets(),
        }
    }
}

impl<T: Trace> Collect<'_, T> {
    /// Both ends lie in one bucket: the usual case.
    #[inline(always)]
    fn within_bucket(&mut self, high: &Spot) {
        let (index, list) = chunk_of(self.low.list, self.base.list_count());
        self.overlay.touch_root(index, self.trace);
        let sought = sought(self.base, self.low, high);
        let mut asked = 0;
        for (tier, &slot) in self.overlay.root[index].tiers().iter().zip(&self.low.slots) {
            let Some(tier) = tier else { continue };
            tier.touch_table(list, self.low.bucket, self.trace);
            tier.visit_sought(range(slot), &sought, self.trace, |span| {
                self.codes.push(span);
                asked += 1;
                asked <= ENTRIES_ASKED_MAX
            });
        }
        if asked > ENTRIES_ASKED_MAX {
            self.codes.push_all();
        }
    }

    fn over_buckets(&mut self) {
        let (low, high, lists) = (self.low, self.high, self.base.list_count());
        let (first, first_list) = chunk_of(low.list, lists);
        let (last, last_list) =
            high.map_or((self.overlay.root.len() - 1, 0), |high| chunk_of(high.list, lists));
        let mut asked = 0;
        for index in first..=last {
            self.overlay.touch_root(index, self.trace);
            for (place, tier) in self.overlay.root[index].tiers().iter().enumerate() {
                let Some(tier) = tier else { continue };
                let start = if index == first {
                    tier.touch_table(first_list, low.bucket, self.trace);
                    let sought = sought(self.base, low, low);
                    tier.from(range(low.slots[place]), &sought, self.trace)
                } else {
                    0
                };
                let end = match high {
                    Some(high) if index == last => {
                        tier.touch_table(last_list, high.bucket, self.trace);
                        let sought = sought(self.base, high, high);
                        tier.stretch(range(high.slots[place]), &sought, self.trace).end
                    }
                    _ => tier.len(),
                };
                asked += end.saturating_sub(start);
                if asked > ENTRIES_ASKED_MAX || index - first > CHUNKS_ASKED_MAX {
                    self.codes.push_all();
                }
                if self.codes.is_all() {
                    return;
                }
                tier.visit(start..end, self.trace, |span| self.codes.push(span));
            }
        }
    }
}

/// The two counts before what an `Arc` holds.
pub(super) const ARC_BYTES: usize = 2 * size_of::<usize>();

/// Collects the places of one flush's keys, chunk by chunk.
pub(super) struct OverlayInserter {
    root: Vec<Chunk>,
    chunk: usize,
    places: Vec<Entry>,
    writer: ChunkWriter,
    code: Span,
    runs: Runs,
    settled_bits: usize,
}

impl OverlayInserter {
    /// Starts with the entries of `overlay`; new ones have the code `code`.
    pub(super) fn new(overlay: &Overlay, code: Span, shape: &Shape, settled_bits: usize) -> Self {
        OverlayInserter {
            root: overlay.root.to_vec(),
            chunk: 0,
            places: Vec::new(),
            writer: ChunkWriter::default(),
            code,
            runs: Runs::new(shape),
            settled_bits,
        }
    }

    /// Adds an entry. Requires: not in a chunk before that of the entries added before.
    #[inline(always)]
    pub(super) fn push(&mut self, base: &Base, spot: &Spot) {
        let (chunk, list) = chunk_of(spot.list, base.list_count());
        if chunk != self.chunk {
            assert!(chunk > self.chunk, "chunk {chunk} after {}", self.chunk);
            self.rewrite(base);
            self.chunk = chunk;
        }
        self.places.push(Entry::new(list, spot.bucket, spot.fraction, 0));
    }

    fn rewrite(&mut self, base: &Base) {
        if self.places.is_empty() {
            return;
        }
        // Hashed groups mix the order of keys.
        if !self.places.is_sorted() {
            self.places.sort_unstable();
        }
        let fractions = fractions(self.chunk, self.root.len(), base, self.settled_bits);
        let new = NewEntries { places: &self.places, code: self.code };
        let chunk = &mut self.root[self.chunk];
        *chunk = self.writer.rewrite(chunk, &new, &self.runs, &fractions);
        self.places.clear();
    }

    /// The overlay with all entries.
    pub(super) fn finish(mut self, base: &Base) -> Overlay {
        self.rewrite(base);
        Overlay { root: self.root.into() }
    }
}
