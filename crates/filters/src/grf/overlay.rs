//! The overlay of a part: what was flushed since its base was built, as places in the base and flush numbers.
//! ```text
//! lists     below | group 0, group 1, ... group 15 | group 16 ...          | above
//! chunks    [   ]   [                            ]   [             ] [     ]  [   ]
//! root      one pointer per chunk; a flush makes a new root, which shares the chunks it does not touch
//! ```
//! Invariant: an overlay never changes; places of the ends of ranges are monotone in keys (see `base.rs`), so that the entries of all keys
//! in a range lie between the places of its ends.

use super::base::{Base, EDGE_BITS, Spot};
use super::chunk::{CHUNK_LISTS, Chunk, ChunkEntries, Merger, Place};
use crate::bits::simd::{Work, fastest};
use crate::filter::{Trace, Untraced};
use crate::shape::{Codes, FlushNumber, Span};
use std::ops::Range;
use std::sync::Arc;

/// Entries that one answer looks at before it says "all".
const ENTRIES_ASKED_MAX: usize = 256;
/// Chunks that one answer looks at before it says "all".
const CHUNKS_ASKED_MAX: usize = 8;

/// The chunks of all lists.
#[derive(Clone)]
pub(super) struct Overlay {
    pub(super) root: Arc<[Option<Arc<[u8]>>]>,
}

/// The chunk of a list, and its place there.
#[inline(always)]
fn chunk_of(list: usize, list_count: usize) -> (usize, usize) {
    let last = list_count - 1;
    if list == 0 {
        (0, 0)
    } else if list < last {
        (1 + (list - 1) / CHUNK_LISTS, (list - 1) % CHUNK_LISTS)
    } else {
        (1 + (last - 1).div_ceil(CHUNK_LISTS), 0)
    }
}

/// The lists of a chunk.
fn lists_of(chunk: usize, list_count: usize) -> Range<usize> {
    let last = list_count - 1;
    if chunk == 0 {
        return 0..1;
    }
    let first = 1 + (chunk - 1) * CHUNK_LISTS;
    if first >= last { last..last + 1 } else { first..(first + CHUNK_LISTS).min(last) }
}

impl Overlay {
    /// Without entries.
    pub(super) fn empty(base: &Base) -> Self {
        let (last, _) = chunk_of(base.list_count() - 1, base.list_count());
        Overlay { root: vec![None; last + 1].into() }
    }

    #[inline(always)]
    fn chunk(&self, index: usize, base: &Base) -> Option<Chunk<'_>> {
        let bytes = self.root[index].as_deref()?;
        Some(Chunk::new(bytes, self.fraction_bits(index, base)))
    }

    #[inline(always)]
    fn fraction_bits(&self, chunk: usize, base: &Base) -> usize {
        if chunk == 0 || chunk + 1 == self.root.len() { EDGE_BITS } else { base.fraction_bits }
    }

    /// The sizes of all allocations, and the number of entries.
    pub(super) fn measure(&self, base: &Base, mut allocation: impl FnMut(usize)) -> u64 {
        allocation(ARC_BYTES + size_of_val(&*self.root));
        let mut entries = 0;
        for index in 0..self.root.len() {
            if let Some(chunk) = self.chunk(index, base) {
                allocation(ARC_BYTES + self.root[index].as_deref().map_or(0, <[u8]>::len));
                entries += chunk.len() as u64;
            }
        }
        entries
    }

    pub(super) fn chunk_count(&self) -> usize {
        self.root.len()
    }

    /// The entries of a chunk.
    pub(super) fn chunk_entries(&self, base: &Base, index: usize) -> ChunkEntries {
        self.chunk(index, base).map_or(ChunkEntries::default(), |chunk| chunk.entries())
    }

    /// The chunk of a place, and which of its entries have that place; where order is not known, the bucket's.
    pub(super) fn same_place(&self, base: &Base, spot: &Spot) -> (usize, Range<usize>) {
        let (index, _) = chunk_of(spot.list, base.list_count());
        let Some(chunk) = self.chunk(index, base) else { return (index, 0..0) };
        if base.is_hashed(spot.list) {
            return (index, spot.entries());
        }
        let rank = |after| chunk.rank(spot.entries(), spot.fraction, after, &mut Untraced);
        (index, rank(false)..rank(true))
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
        if let Some(bytes) = self.root[index].as_deref() {
            Chunk::load_tables(bytes, list);
        }
    }

    /// The entries of a bucket within their chunk, whose memory is asked for without waiting for it.
    #[inline(always)]
    pub(super) fn bucket_entries(&self, (list, bucket): (usize, usize), base: &Base) -> Range<u32> {
        let (index, list) = chunk_of(list, base.list_count());
        match self.chunk(index, base) {
            Some(chunk) => {
                let entries = chunk.bucket(list, bucket);
                chunk.load_entry(entries.start);
                entries.start as u32..entries.end as u32
            }
            None => 0..0,
        }
    }

    #[inline(always)]
    fn touch_root<T: Trace>(&self, index: usize, trace: &mut T) {
        trace.touch(&raw const self.root[index] as usize, size_of::<Option<Arc<[u8]>>>());
    }

    /// The fraction and the code of the entries of a bucket, in order.
    pub(super) fn for_each(
        &self,
        base: &Base,
        (list, bucket): (usize, usize),
        mut visit: impl FnMut(u64, Span),
    ) {
        let (index, list) = chunk_of(list, base.list_count());
        if let Some(chunk) = self.chunk(index, base) {
            let entries = chunk.bucket(list, bucket);
            chunk.visit(entries, &mut Untraced, &mut visit);
        }
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
        let Some(chunk) = self.overlay.chunk(index, self.base) else { return };
        chunk.touch_tables(list, self.low.bucket, self.trace);
        let fractions = (self.low.fraction, high.fraction);
        let mut asked = 0;
        chunk.visit_between(self.low.entries(), fractions, self.trace, |span| {
            self.codes.push(span);
            asked += 1;
            asked <= ENTRIES_ASKED_MAX
        });
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
            let Some(chunk) = self.overlay.chunk(index, self.base) else { continue };
            let start = if index == first {
                chunk.touch_tables(first_list, low.bucket, self.trace);
                chunk.rank(low.entries(), low.fraction, false, self.trace)
            } else {
                0
            };
            let end = match high {
                Some(high) if index == last => {
                    chunk.touch_tables(last_list, high.bucket, self.trace);
                    chunk.rank(high.entries(), high.fraction, true, self.trace)
                }
                _ => chunk.len(),
            };
            asked += end.saturating_sub(start);
            if asked > ENTRIES_ASKED_MAX || index - first > CHUNKS_ASKED_MAX {
                self.codes.push_all();
            }
            if self.codes.is_all() {
                return;
            }
            chunk.visit(start..end, self.trace, |_, span| self.codes.push(span));
        }
    }
}

/// The two counts before what an `Arc` holds.
pub(super) const ARC_BYTES: usize = 2 * size_of::<usize>();

#[inline(always)]
fn place(spot: &Spot, list: usize) -> Place {
    Place { list: list as u8, bucket: spot.bucket as u8, fraction: spot.fraction }
}

/// Collects the places of one flush's keys, chunk by chunk.
pub(super) struct OverlayInserter {
    root: Vec<Option<Arc<[u8]>>>,
    chunk: usize,
    places: Vec<Place>,
    merger: Merger,
    flush: FlushNumber,
}

impl OverlayInserter {
    /// Starts with the entries of `overlay`.
    pub(super) fn new(overlay: &Overlay, flush: FlushNumber) -> Self {
        let root = overlay.root.to_vec();
        OverlayInserter { root, chunk: 0, places: Vec::new(), merger: Merger::default(), flush }
    }

    /// Adds an entry. Requires: not in a chunk before that of the entries added before.
    #[inline(always)]
    pub(super) fn push(&mut self, base: &Base, spot: &Spot) {
        let (chunk, list) = chunk_of(spot.list, base.list_count());
        if chunk != self.chunk {
            assert!(chunk > self.chunk, "chunk {chunk} after {}", self.chunk);
            self.merge(base);
            self.chunk = chunk;
        }
        let place = place(spot, list);
        self.places.push(place);
    }

    fn merge(&mut self, base: &Base) {
        if self.places.is_empty() {
            return;
        }
        // Hashed groups mix the order of keys.
        if !self.places.is_sorted() {
            self.places.sort_unstable();
        }
        let edge = self.chunk == 0 || self.chunk + 1 == self.root.len();
        let fraction_bits = if edge { EDGE_BITS } else { base.fraction_bits };
        let lists = lists_of(self.chunk, base.list_count()).len();
        let old = self.root[self.chunk].as_deref().map(|bytes| Chunk::new(bytes, fraction_bits));
        let merged =
            self.merger.merge(old.as_ref(), lists, fraction_bits, &self.places, self.flush);
        self.root[self.chunk] = Some(merged);
        self.places.clear();
    }

    /// The overlay with all entries.
    pub(super) fn finish(mut self, base: &Base) -> Overlay {
        self.merge(base);
        Overlay { root: self.root.into() }
    }
}
