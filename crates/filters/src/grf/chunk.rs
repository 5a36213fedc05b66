//! A chunk of the overlay: the entries of some neighbouring lists, in one allocation that never changes.
//! ```text
//! origin u64 | code bits u8 | bytes of an end u8 | lists u8 | 0 | keys that are one entry with another u32
//! first entry of each list, and the number of entries: u32 each
//! per list 16 buckets: where each ends, counted from its list's first entry: 1, 2 or 4 bytes each
//! entries: (fraction, code) packed, sorted within their bucket, each once                      [padding]
//! ```
//! A code is a flush number less the origin; the greatest one stands for all numbers from there on. Invariant: an
//! entry's code, read as a span, contains its flush number. A flush copies the entries of a chunk it touches, bit by
//! bit, and puts its own between them.

use super::group::BLOCKS_MAX;
use crate::bits::packed::{BitWriter, read};
use crate::filter::Trace;
use crate::shape::{FlushNumber, Span};
use std::ops::Range;
use std::sync::Arc;

/// Lists that a chunk can have.
pub(super) const CHUNK_LISTS: usize = 16;
/// Buckets for which each list has an end, whether it has them or not.
const BUCKETS: usize = BLOCKS_MAX;

/// The most bits of a code; with an edge's fraction an entry is still read at once.
const CODE_BITS_MAX: usize = 24;
const CODE_MAX: u64 = (1 << CODE_BITS_MAX) - 1;
/// Bytes after the entries, for whole words to be read and copied.
const PADDING: usize = 9;
const ORIGIN_AT: usize = 0;
const CODE_BITS_AT: usize = 8;
const END_BYTES_AT: usize = 9;
const LISTS_AT: usize = 10;
const MERGED_AT: usize = 12;
const FIRSTS_AT: usize = 16;

/// Where an entry belongs within a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) list: u8,
    pub(super) bucket: u8,
    pub(super) fraction: u64,
}

/// How many entries a chunk has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ChunkEntries {
    pub(super) kept: u64,
    /// Keys that are one entry with another key: their places and codes are equal.
    pub(super) merged: u64,
}

/// A chunk to be read.
#[derive(Clone, Copy)]
pub(super) struct Chunk<'a> {
    bytes: &'a [u8],
    origin: u64,
    code_bits: usize,
    fraction_bits: usize,
    end_bytes: usize,
    lists: usize,
}

impl<'a> Chunk<'a> {
    #[inline(always)]
    pub(super) fn new(bytes: &'a [u8], fraction_bits: usize) -> Self {
        let origin = bytes[ORIGIN_AT..].first_chunk::<8>().expect("a chunk has a header");
        Chunk {
            bytes,
            origin: u64::from_le_bytes(*origin),
            code_bits: usize::from(bytes[CODE_BITS_AT]),
            fraction_bits,
            end_bytes: usize::from(bytes[END_BYTES_AT]),
            lists: usize::from(bytes[LISTS_AT]),
        }
    }

    #[inline(always)]
    fn number(&self, at: usize, len: usize) -> usize {
        match len {
            1 => usize::from(self.bytes[at]),
            2 => usize::from(u16::from_le_bytes([self.bytes[at], self.bytes[at + 1]])),
            _ => {
                let word = self.bytes[at..].first_chunk::<4>().expect("a chunk holds its tables");
                u32::from_le_bytes(*word) as usize
            }
        }
    }

    #[inline(always)]
    fn first_entry(&self, list: usize) -> usize {
        self.number(FIRSTS_AT + 4 * list, 4)
    }

    /// The number of entries.
    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.first_entry(self.lists)
    }

    pub(super) fn entries(&self) -> ChunkEntries {
        ChunkEntries { kept: self.len() as u64, merged: self.number(MERGED_AT, 4) as u64 }
    }

    #[inline(always)]
    fn ends_at(&self) -> usize {
        FIRSTS_AT + 4 * (self.lists + 1)
    }

    #[inline(always)]
    fn entry_bits(&self) -> usize {
        self.fraction_bits + self.code_bits
    }

    /// The first bit of the entries.
    #[inline(always)]
    fn entries_at(&self) -> usize {
        8 * (self.ends_at() + self.lists * BUCKETS * self.end_bytes)
    }

    /// The entries of a bucket.
    #[inline(always)]
    pub(super) fn bucket(&self, list: usize, bucket: usize) -> Range<usize> {
        let first = self.first_entry(list);
        let at = self.ends_at() + (list * BUCKETS + bucket) * self.end_bytes;
        let start = if bucket == 0 { 0 } else { self.number(at - self.end_bytes, self.end_bytes) };
        first + start..first + self.number(at, self.end_bytes)
    }

    /// Asks for the memory of a list's tables, without waiting for it.
    #[inline(always)]
    pub(super) fn load_tables(bytes: &[u8], list: usize) {
        // As if ends had one byte each: they mostly have.
        let at = (FIRSTS_AT + 4 * (CHUNK_LISTS + 1) + list * BUCKETS).min(bytes.len() - 1);
        std::hint::black_box(bytes[0] ^ bytes[at]);
    }

    /// Asks for the memory of an entry, without waiting for it.
    #[inline(always)]
    pub(super) fn load_entry(&self, place: usize) {
        let at = (self.entries_at() + place * self.entry_bits()) / 8;
        std::hint::black_box(self.bytes[at]);
    }

    #[inline(always)]
    fn entry(&self, entries_at: usize, place: usize) -> u64 {
        let bits = self.entry_bits();
        read(self.bytes, entries_at + place * bits, bits)
    }

    /// The first entry of a bucket that is not before the fraction; after it, if `after`.
    #[inline(always)]
    pub(super) fn rank<T: Trace>(
        &self,
        bucket: Range<usize>,
        fraction: u64,
        after: bool,
        trace: &mut T,
    ) -> usize {
        let (mut from, mut len) = (bucket.start, bucket.len());
        let least = (fraction + u64::from(after)) << self.code_bits;
        let entries_at = self.entries_at();
        while len > 0 {
            let half = len / 2;
            self.touch_entry(entries_at, from + half, trace);
            let before = self.entry(entries_at, from + half) < least;
            from = if before { from + half + 1 } else { from };
            len = if before { len - half - 1 } else { half };
        }
        from
    }

    /// Tells `trace` what [`Chunk::bucket`] reads.
    pub(super) fn touch_tables<T: Trace>(&self, list: usize, bucket: usize, trace: &mut T) {
        let start = self.bytes.as_ptr() as usize;
        trace.touch(start, FIRSTS_AT);
        trace.touch(start + FIRSTS_AT + 4 * list, 8);
        trace.touch(start + self.ends_at() + (list * BUCKETS + bucket) * self.end_bytes, 2);
    }

    #[inline(always)]
    fn touch_entry<T: Trace>(&self, entries_at: usize, place: usize, trace: &mut T) {
        trace.touch(self.bytes.as_ptr() as usize + (entries_at + place * self.entry_bits()) / 8, 8);
    }

    /// The code's span of the entries of a bucket from one fraction to another, until `visit` has enough.
    #[inline(always)]
    pub(super) fn visit_between<T: Trace>(
        &self,
        bucket: Range<usize>,
        (low, high): (u64, u64),
        trace: &mut T,
        mut visit: impl FnMut(Span) -> bool,
    ) {
        let end = bucket.end;
        let mut place = self.rank(bucket, low, false, trace);
        let entries_at = self.entries_at();
        while place < end {
            self.touch_entry(entries_at, place, trace);
            let entry = self.entry(entries_at, place);
            let code = entry & ((1 << self.code_bits) - 1);
            if entry >> self.code_bits > high || !visit(self.span(code)) {
                return;
            }
            place += 1;
        }
    }

    /// The fraction and the code's span of the entries in `range`.
    #[inline(always)]
    pub(super) fn visit<T: Trace>(
        &self,
        range: Range<usize>,
        trace: &mut T,
        mut visit: impl FnMut(u64, Span),
    ) {
        let entries_at = self.entries_at();
        for place in range {
            self.touch_entry(entries_at, place, trace);
            let entry = self.entry(entries_at, place);
            let code = entry & ((1 << self.code_bits) - 1);
            visit(entry >> self.code_bits, self.span(code));
        }
    }

    #[inline(always)]
    fn span(&self, code: u64) -> Span {
        let flush = FlushNumber(self.origin + code);
        if code == CODE_MAX {
            return Span::new(flush, FlushNumber(u64::MAX)).unwrap_or(Span::of_flush(flush));
        }
        Span::of_flush(flush)
    }
}

/// Merges the entries of one flush into chunks; keeps its buffers.
#[derive(Default)]
pub(super) struct Merger {
    entries: Vec<u8>,
    ends: Vec<u32>,
    bytes: Vec<u8>,
}

/// How a merged chunk writes its codes, and how it reads those of the old one.
struct Coding {
    origin: u64,
    code_bits: usize,
    /// The difference of the origins.
    moved: u64,
    /// The old chunk's entries can be copied.
    same: bool,
    code: u64,
}

impl Coding {
    fn new(old: Option<&Chunk<'_>>, flush: FlushNumber) -> Coding {
        let Some(old) = old else {
            return Coding { origin: flush.0, code_bits: 0, moved: 0, same: true, code: 0 };
        };
        let origin = old.origin.min(flush.0);
        let (moved, code) = (old.origin - origin, (flush.0 - origin).min(CODE_MAX));
        let old_most = (1u64 << old.code_bits) - 1;
        let most = old_most.saturating_add(moved).min(CODE_MAX).max(code);
        let code_bits = (64 - most.leading_zeros()) as usize;
        Coding { origin, code_bits, moved, same: moved == 0 && code_bits == old.code_bits, code }
    }

    /// An old entry as the merged chunk writes it.
    fn recode(&self, old: &Chunk<'_>, entry: u64) -> u64 {
        let (fraction, code) = (entry >> old.code_bits, entry & ((1 << old.code_bits) - 1));
        fraction << self.code_bits | code.saturating_add(self.moved).min(CODE_MAX)
    }
}

impl Merger {
    /// The chunk `old`, or an empty one of so many lists, with an entry of `flush` at each of `places` (sorted).
    pub(super) fn merge(
        &mut self,
        old: Option<&Chunk<'_>>,
        lists: usize,
        fraction_bits: usize,
        places: &[Place],
        flush: FlushNumber,
    ) -> Arc<[u8]> {
        let coding = Coding::new(old, flush);
        self.start(old, lists * BUCKETS);
        self.entries.clear();
        let mut out = BitWriter::new(&mut self.entries);
        let (mut done, mut last) = (0, None);
        for &place in places {
            let entry = place.fraction << coding.code_bits | coding.code;
            let (until, known) =
                old.map_or((0, false), |old| insert_at(old, &coding, place, entry));
            if known || last == Some(place) {
                continue;
            }
            if let Some(old) = old {
                copy_entries(old, &coding, done..until, &mut out);
            }
            out.push(entry, fraction_bits + coding.code_bits);
            let list = usize::from(place.list) * BUCKETS;
            let buckets = list + usize::from(place.bucket)..list + BUCKETS;
            self.ends[buckets].iter_mut().for_each(|end| *end += 1);
            (done, last) = (until, Some(place));
        }
        if let Some(old) = old {
            copy_entries(old, &coding, done..old.len(), &mut out);
        }
        out.finish();
        let before = old.map_or(ChunkEntries::default(), Chunk::entries);
        let pushed = before.kept + before.merged + places.len() as u64;
        self.assemble(&coding, lists, pushed)
    }

    /// Starts with the old ends of all buckets.
    fn start(&mut self, old: Option<&Chunk<'_>>, buckets: usize) {
        self.ends.clear();
        let Some(old) = old else { return self.ends.resize(buckets, 0) };
        let ends = &old.bytes[old.ends_at()..][..buckets * old.end_bytes];
        match old.end_bytes {
            1 => self.ends.extend(ends.iter().map(|&end| u32::from(end))),
            2 => self.ends.extend(
                ends.chunks_exact(2).map(|end| u32::from(u16::from_le_bytes([end[0], end[1]]))),
            ),
            _ => {
                let words = ends.chunks_exact(4);
                self.ends
                    .extend(words.map(|end| u32::from_le_bytes([end[0], end[1], end[2], end[3]])));
            }
        }
    }

    /// Puts the tables before the entries, for which so many keys were pushed.
    fn assemble(&mut self, coding: &Coding, lists: usize, pushed: u64) -> Arc<[u8]> {
        let out = &mut self.bytes;
        out.clear();
        out.extend_from_slice(&coding.origin.to_le_bytes());
        out.extend_from_slice(&[coding.code_bits as u8, 0, lists as u8, 0]);
        out.extend_from_slice(&[0; FIRSTS_AT - MERGED_AT]);
        let (mut first, mut most) = (0u32, 0u32);
        for ends in self.ends.chunks_exact(BUCKETS) {
            out.extend_from_slice(&first.to_le_bytes());
            let count = ends[BUCKETS - 1];
            (first, most) = (first + count, most.max(count));
        }
        out.extend_from_slice(&first.to_le_bytes());
        let merged = u32::try_from(pushed - u64::from(first)).unwrap_or(u32::MAX);
        out[MERGED_AT..FIRSTS_AT].copy_from_slice(&merged.to_le_bytes());
        let (ends, end_bytes) = (self.ends.iter(), end_bytes(most));
        out[END_BYTES_AT] = end_bytes;
        match end_bytes {
            1 => out.extend(ends.map(|&end| end as u8)),
            2 => out.extend(ends.flat_map(|&end| (end as u16).to_le_bytes())),
            _ => out.extend(ends.flat_map(|&end| end.to_le_bytes())),
        }
        out.extend_from_slice(&self.entries);
        out.extend_from_slice(&[0; PADDING]);
        Arc::from(out.as_slice())
    }
}

/// Bytes that hold every end up to `most`.
fn end_bytes(most: u32) -> u8 {
    match most {
        0..0x100 => 1,
        0x100..0x1_0000 => 2,
        _ => 4,
    }
}

/// Before which old entry a new one goes, and whether it is there already.
fn insert_at(old: &Chunk<'_>, coding: &Coding, place: Place, entry: u64) -> (usize, bool) {
    let bucket = old.bucket(usize::from(place.list), usize::from(place.bucket));
    let end = bucket.end;
    let mut at = old.rank(bucket, place.fraction, false, &mut crate::filter::Untraced);
    let entries_at = old.entries_at();
    while at < end {
        let there = coding.recode(old, old.entry(entries_at, at));
        if there >= entry {
            return (at, there == entry);
        }
        at += 1;
    }
    (at, false)
}

fn copy_entries(old: &Chunk<'_>, coding: &Coding, range: Range<usize>, out: &mut BitWriter<'_>) {
    let (entries_at, bits) = (old.entries_at(), old.entry_bits());
    if coding.same {
        out.copy(old.bytes, entries_at + range.start * bits, range.len() * bits);
        return;
    }
    for place in range {
        out.push(
            coding.recode(old, old.entry(entries_at, place)),
            old.fraction_bits + coding.code_bits,
        );
    }
}
