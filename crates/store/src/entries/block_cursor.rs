//! A cursor over the entries of a block, forward and backward.
//! ```text
//! restart      entry  entry  entry  entry      restart
//! prev:  <- from the last restart before, forward to the entry that ends here
//! ```
//! Invariant: `key` is the whole key of the entry at `at`. At the block's end there is no entry.

use std::ops::Range;

use trommel_filters::prefetch_lines;

use crate::entries::block::{Block, EntryOffsets, Parsed, Sought};
use crate::entries::entry::{Entry, Sequence};
use crate::entries::value::Value;

/// A cursor over a block: at an entry, or past either end.
pub(crate) struct BlockCursor {
    block: Block,
    key: KeyInHand,
    at: EntryOffsets,
    parsed: Option<Parsed>,
}

/// Cache lines of the value that a seek prefetches.
const VALUE_LINES: usize = 2;

/// The key of the current entry, of which a step replaces the end.
#[derive(Default)]
struct KeyInHand {
    /// Longer than the key, so that a step can copy a piece of fixed size.
    memory: Vec<u8>,
    len: usize,
}

/// Most key suffixes are no longer than this many bytes.
const PIECE: usize = 16;
/// Spare bytes of an allocation, so that most keys of a block need no other.
const KEY_BYTES: usize = 48;

impl KeyInHand {
    #[inline]
    fn as_slice(&self) -> &[u8] {
        &self.memory[..self.len]
    }

    /// Keeps the first `shared` bytes and appends bytes of the block. Requires: the key has that
    /// many.
    #[inline]
    fn go_on(&mut self, shared: usize, block: &[u8], end: Range<usize>) {
        let piece = block.get(end.start..).and_then(<[u8]>::first_chunk::<PIECE>);
        let room = self.memory.get_mut(shared..).and_then(<[u8]>::first_chunk_mut::<PIECE>);
        match (piece, room) {
            // Copies beyond the suffix too: a copy of constant length needs no loop.
            (Some(piece), Some(room)) if end.len() <= PIECE => *room = *piece,
            _ => return self.go_on_far(shared, &block[end]),
        }
        self.len = shared + end.len();
    }

    #[inline(never)]
    fn go_on_far(&mut self, shared: usize, end: &[u8]) {
        self.memory.truncate(shared);
        self.memory.reserve(end.len() + KEY_BYTES);
        self.memory.extend_from_slice(end);
        self.len = self.memory.len();
        self.memory.resize(self.len + PIECE, 0);
    }
}

impl BlockCursor {
    /// Creates a cursor past the end of `block`.
    pub(crate) fn new(block: Block) -> Self {
        BlockCursor { at: block.end(), block, key: KeyInHand::default(), parsed: None }
    }

    /// Moves to another block, past its end. Keeps the memory of the key.
    pub(crate) fn reset(&mut self, block: Block) {
        (self.at, self.parsed) = (block.end(), None);
        self.block = block;
    }

    /// Moves to the first entry whose key is at or after `key`.
    pub(crate) fn seek(&mut self, key: &[u8]) {
        self.seek_version(key, Sequence::MAX);
    }

    /// Moves to the first entry at or after (key, at) in the order of entries.
    pub(crate) fn seek_version(&mut self, key: &[u8], at: Sequence) {
        let found = self.block.seek(key, at);
        self.at = found.map_or(self.block.end(), |found| found.place);
        self.parsed = found.map(|found| found.entry);
        if let Some(Sought { entry, .. }) = found {
            self.key.go_on_far(0, &key[..entry.shared]);
            self.key.go_on(entry.shared, self.block.raw(), entry.key_at..entry.next.head);
            // Most scans return the value, but only after entries of other blocks.
            prefetch_lines(self.block.raw(), entry.value_at, VALUE_LINES);
        }
    }

    /// Moves to the last entry whose key is before `key`.
    pub(crate) fn seek_before(&mut self, key: &[u8]) {
        self.seek(key);
        self.prev();
    }

    pub(crate) fn seek_first(&mut self) {
        self.jump(self.block.first());
    }

    /// Moves to the entry with index `nth`, from 0. If there is none, moves past the end.
    pub(crate) fn seek_nth(&mut self, nth: u64) {
        self.seek_first();
        (0..nth.min(self.block.entry_count() as u64)).for_each(|_| self.next());
    }

    pub(crate) fn seek_last(&mut self) {
        (self.at, self.parsed) = (self.block.end(), None);
        self.prev();
    }

    /// Moves to the next entry, or from the last one past the end.
    #[inline]
    pub(crate) fn next(&mut self) {
        if let Some(parsed) = self.parsed {
            self.step_to(parsed.next);
        }
    }

    /// Moves to the previous entry, also from past the end. From the first one, moves past the
    /// start.
    pub(crate) fn prev(&mut self) {
        let here = self.at;
        if self.is_first() {
            self.parsed = None;
            return;
        }
        self.jump(self.block.restart_before_place(here));
        while self.parsed.is_some_and(|parsed| parsed.next.head < here.head) {
            self.next();
        }
    }

    /// The current entry. `None`: past either end.
    #[inline]
    pub(crate) fn entry(&self) -> Option<Entry<'_>> {
        let Parsed { sequence, kind, value_at, next, .. } = self.parsed?;
        let value = self.block.bytes(value_at..next.value);
        Some(Entry { key: self.key.as_slice(), sequence, kind, value })
    }

    /// False: past either end.
    #[inline]
    pub(crate) fn is_at_entry(&self) -> bool {
        self.parsed.is_some()
    }

    /// Whether no entry of the block precedes this place.
    pub(crate) fn is_first(&self) -> bool {
        self.at == self.block.first()
    }

    /// Returns a handle on the value of the current entry, or an empty one past either end.
    #[inline(always)]
    pub(crate) fn value(&self) -> Value {
        let Some(Parsed { value_at, next, .. }) = self.parsed else { return Value::empty() };
        Value::in_block(self.block.clone(), value_at..next.value)
    }

    /// The number of entries before this place. Takes time linear in that number.
    pub(crate) fn nth(&self) -> u64 {
        let next = |place: &EntryOffsets| Some(self.block.entry_at(*place)?.next);
        let places = std::iter::successors(Some(self.block.first()), next);
        places.take_while(|place| *place != self.at).count() as u64
    }

    /// Moves to a restart, whose key shares nothing with the previous one. Requires: `restart` is
    /// one.
    fn jump(&mut self, restart: EntryOffsets) {
        self.step_to(restart);
    }

    /// Requires: `at` is the end of the current entry, or a restart.
    #[inline]
    fn step_to(&mut self, at: EntryOffsets) {
        self.at = at;
        self.parsed = self.block.entry_at(at);
        if let Some(Parsed { shared, key_at, next, .. }) = self.parsed {
            self.key.go_on(shared, self.block.raw(), key_at..next.head);
        }
    }
}
