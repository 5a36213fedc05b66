//! For each segment the slots of the runs that have keys there, as bits.
//! ```text
//! chunk     all of its segments' bits | bits of segment 0 | of segment 1 | ... 255
//! table     a pointer per chunk; a clone shares table and chunks, and copies those that it changes
//! ```
//! Invariant: what a chunk says of all its segments is what they have together, `all` what all
//! chunks have.

use std::ops::Range;
use std::sync::Arc;

use trommel_filters::{RunSlot, SlotSet, Trace};

/// Segments of a chunk. More: fewer pointers to be kept in the cache, more bytes copied for a
/// flush's first key there.
const CHUNK_SEGMENTS: usize = 256;
/// What a chunk takes beside its bits: pointer, counts and length, and what the allocator adds.
const CHUNK_EXTRA_BYTES: usize = 16 + 16 + 8;

/// The sets of all segments.
#[derive(Clone)]
pub(super) struct Sets {
    chunks: Arc<Vec<Arc<[u8]>>>,
    segments: usize,
    row_bytes: usize,
    all: SlotSet,
}

/// The bytes of one segment's bits, for so many slots.
pub(super) fn row_bytes(slots: usize) -> usize {
    slots.div_ceil(8)
}

/// What one segment takes in a large tree.
pub(super) fn segment_bytes(slots: usize) -> f64 {
    let chunk = (CHUNK_SEGMENTS + 1) * row_bytes(slots) + CHUNK_EXTRA_BYTES;
    chunk as f64 / CHUNK_SEGMENTS as f64
}

impl Sets {
    /// Empty ones.
    pub(super) fn new(segments: usize, slots: usize) -> Sets {
        let row_bytes = row_bytes(slots);
        let chunk = |first: usize| {
            let rows = 1 + CHUNK_SEGMENTS.min(segments - first);
            Arc::from(vec![0; rows * row_bytes])
        };
        let chunks = (0..segments).step_by(CHUNK_SEGMENTS).map(chunk).collect();
        Sets { chunks: Arc::new(chunks), segments, row_bytes, all: SlotSet::default() }
    }

    /// The bits of a chunk's row. Row 0 is what all have.
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

    /// Adds the slots of the segments from one to another, both included.
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

    /// Whether a slot is in the row's bits.
    fn has(&self, chunk: usize, row: usize, slot: RunSlot) -> bool {
        self.row(chunk, row)[usize::from(slot.0 / 8)] >> (slot.0 % 8) & 1 != 0
    }

    /// The first segment from `from` on that has a slot.
    pub(super) fn first_with(&self, slot: RunSlot, from: usize) -> Option<usize> {
        self.segments_with(slot, from..self.segments).next()
    }

    /// The last segment up to `to` that has a slot.
    pub(super) fn last_with(&self, slot: RunSlot, to: usize) -> Option<usize> {
        self.segments_with(slot, 0..to + 1).next_back()
    }

    /// Of some segments those that have a slot. Chunks without it are passed at once.
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

    /// Takes a slot out of every set.
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

    /// The sizes of all allocations.
    pub(super) fn allocations(&self) -> impl Iterator<Item = usize> + '_ {
        let counts = 2 * size_of::<usize>();
        let table = [counts + size_of::<Vec<()>>(), self.chunks.len() * size_of::<Arc<[u8]>>()];
        table.into_iter().chain(self.chunks.iter().map(move |chunk| counts + chunk.len()))
    }
}
