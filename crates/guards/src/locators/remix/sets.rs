//! For each segment, the slots of the runs that have keys there, as bits.
//! ```text
//! chunk     bits of all its segments together | bits of segment 0 | of segment 1 | ... 255
//! table     a pointer per chunk; a clone shares table and chunks, and copies those that it changes
//! ```
//! Invariant: the first bits of a chunk are the union over its segments, and `all` is the union
//! over all chunks.

use std::ops::Range;
use std::sync::Arc;

use trommel_filters::{RunSlot, SlotSet, Trace};

/// Segments per chunk. More: fewer pointers to cache, more bytes to copy for a flush's first key in
/// the chunk.
const CHUNK_SEGMENTS: usize = 256;
/// Bytes per chunk besides its bits: pointer, counts and length, and the allocator's overhead.
const CHUNK_EXTRA_BYTES: usize = 16 + 16 + 8;

/// The sets of all segments.
#[derive(Clone)]
pub(super) struct Sets {
    chunks: Arc<Vec<Arc<[u8]>>>,
    segments: usize,
    row_bytes: usize,
    all: SlotSet,
}

/// The bytes of one segment's bits.
pub(super) fn row_bytes(slots: usize) -> usize {
    slots.div_ceil(8)
}

/// The size of one segment in a large tree, in bytes.
pub(super) fn segment_bytes(slots: usize) -> f64 {
    let chunk = (CHUNK_SEGMENTS + 1) * row_bytes(slots) + CHUNK_EXTRA_BYTES;
    chunk as f64 / CHUNK_SEGMENTS as f64
}

impl Sets {
    /// Empty sets.
    pub(super) fn new(segments: usize, slots: usize) -> Sets {
        let row_bytes = row_bytes(slots);
        let chunk = |first: usize| {
            let rows = 1 + CHUNK_SEGMENTS.min(segments - first);
            Arc::from(vec![0; rows * row_bytes])
        };
        let chunks = (0..segments).step_by(CHUNK_SEGMENTS).map(chunk).collect();
        Sets { chunks: Arc::new(chunks), segments, row_bytes, all: SlotSet::default() }
    }

    /// Returns the bits of a chunk's row. Row 0 is the union over the chunk.
    #[inline(always)]
    fn row(&self, chunk: usize, row: usize) -> &[u8] {
        &self.chunks[chunk][row * self.row_bytes..][..self.row_bytes]
    }

    /// Adds the slots of a segment.
    #[inline(always)]
    pub(super) fn collect<T: Trace>(&self, segment: usize, slots: &mut SlotSet, trace: &mut T) {
        let chunk = segment / CHUNK_SEGMENTS;
        trace.touch(&raw const self.chunks[chunk] as usize, size_of::<Arc<[u8]>>());
        let row = self.row(chunk, 1 + segment % CHUNK_SEGMENTS);
        trace.touch_bytes(row);
        slots.insert_bits(row);
    }

    /// Adds the slots of the segments from `first` to `last`, both included.
    pub(super) fn collect_range<T: Trace>(
        &self,
        (first, last): (usize, usize),
        slots: &mut SlotSet,
        trace: &mut T,
    ) {
        let (mut segment, mut found) = (first, SlotSet::default());
        while segment <= last && found != self.all {
            let chunk = segment / CHUNK_SEGMENTS;
            let whole = segment.is_multiple_of(CHUNK_SEGMENTS)
                && last + 1 >= self.segments.min(segment + CHUNK_SEGMENTS);
            if whole {
                let row = self.row(chunk, 0);
                trace.touch_bytes(row);
                found.insert_bits(row);
                segment += CHUNK_SEGMENTS;
            } else {
                self.collect(segment, &mut found, trace);
                segment += 1;
            }
        }
        slots.insert_all(found);
    }

    /// Whether a row contains a slot.
    fn has(&self, chunk: usize, row: usize, slot: RunSlot) -> bool {
        self.row(chunk, row)[usize::from(slot.0 / 8)] >> (slot.0 % 8) & 1 != 0
    }

    /// Returns the first segment at or after `from` that has a slot.
    pub(super) fn first_with(&self, slot: RunSlot, from: usize) -> Option<usize> {
        self.segments_with(slot, from..self.segments).next()
    }

    /// Returns the last segment at or before `to` that has a slot.
    pub(super) fn last_with(&self, slot: RunSlot, to: usize) -> Option<usize> {
        self.segments_with(slot, 0..to + 1).next_back()
    }

    /// Returns the segments in a range that have a slot. Chunks without it are skipped.
    fn segments_with(
        &self,
        slot: RunSlot,
        among: Range<usize>,
    ) -> impl DoubleEndedIterator<Item = usize> {
        let among = if self.all.contains(slot) { among } else { 0..0 };
        let chunks = among.start / CHUNK_SEGMENTS..among.end.div_ceil(CHUNK_SEGMENTS);
        chunks.filter(move |&chunk| self.has(chunk, 0, slot)).flat_map(move |chunk| {
            let first = chunk * CHUNK_SEGMENTS;
            let segments = first.max(among.start)..among.end.min(first + CHUNK_SEGMENTS);
            segments.filter(move |&segment| self.has(chunk, 1 + segment - first, slot))
        })
    }

    /// Adds a slot to a segment.
    pub(super) fn insert(&mut self, segment: usize, slot: RunSlot) {
        let (chunk, row) = (segment / CHUNK_SEGMENTS, 1 + segment % CHUNK_SEGMENTS);
        // A chunk that has it already stays shared.
        if self.has(chunk, row, slot) {
            return;
        }
        self.all.insert(slot);
        let (byte, bit) = (usize::from(slot.0 / 8), 1 << (slot.0 % 8));
        let row_at = row * self.row_bytes;
        let bytes = Arc::make_mut(&mut Arc::make_mut(&mut self.chunks)[chunk]);
        bytes[byte] |= bit;
        bytes[row_at + byte] |= bit;
    }

    /// Removes a slot from every set.
    pub(super) fn remove(&mut self, slot: RunSlot) {
        if !self.all.contains(slot) {
            return;
        }
        self.all.remove(slot);
        let (byte, bit) = (usize::from(slot.0 / 8), 1u8 << (slot.0 % 8));
        for chunk in Arc::make_mut(&mut self.chunks) {
            if chunk[byte] & bit != 0 {
                let bytes = Arc::make_mut(chunk);
                bytes[byte..].iter_mut().step_by(self.row_bytes).for_each(|byte| *byte &= !bit);
            }
        }
    }

    /// Returns the size of each allocation, in bytes.
    pub(super) fn allocations(&self) -> impl Iterator<Item = usize> + '_ {
        let counts = 2 * size_of::<usize>();
        let table = [counts + size_of::<Vec<()>>(), self.chunks.len() * size_of::<Arc<[u8]>>()];
        table.into_iter().chain(self.chunks.iter().map(move |chunk| counts + chunk.len()))
    }
}
