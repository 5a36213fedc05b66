//! A place in a block, and the way forward and back.
//! ```text
//! restart      entry  entry  entry  entry      restart
//! prev:  <- from the restart before, forward to the entry whose end is here
//! ```
//! Invariant: `key` is the whole key of the entry at `at`; at the block's end there is no entry.

use std::ops::Range;

use trommel_filters::prefetch_lines;

use crate::entries::block::{Block, EntryOffsets, Parsed, Sought};
use crate::entries::entry::{Entry, Sequence};
use crate::entries::value::Value;

/// A place in a block: at an entry, or past either end.
pub(crate) struct BlockCursor {
    block: Block,
    key: KeyInHand,
    at: EntryOffsets,
    parsed: Option<Parsed>,
}

/// Cache lines of values that are asked for where a seek ends.
const VALUE_LINES: usize = 2;

/// The key of the entry in hand, which changes from some byte on.
#[derive(Default)]
struct KeyInHand {
    /// More than the key, so that its end may be written in pieces of a fixed size.
    memory: Vec<u8>,
    len: usize,
}

/// Most ends of keys that differ from the key before are no longer.
const PIECE: usize = 16;
/// Memory is asked for with room for more: most keys of a block then need no other.
const KEY_BYTES: usize = 48;

impl KeyInHand {
    #[inline]
    fn as_slice(&self) -> &[u8] {
        &self.memory[..self.len]
    }

    /// Keeps the first `shared` bytes and goes on with bytes of a block. Requires: it has so many.
    #[inline]
    fn go_on(&mut self, shared: usize, block: &[u8], end: Range<usize>) {
        let piece = block.get(end.start..).and_then(<[u8]>::first_chunk::<PIECE>);
        let room = self.memory.get_mut(shared..).and_then(<[u8]>::first_chunk_mut::<PIECE>);
        match (piece, room) {
            // What follows the end is copied with it: for a known length no loop is needed.
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
    /// Past the end of `block`.
    pub(crate) fn new(block: Block) -> Self {
        BlockCursor { at: block.end(), block, key: KeyInHand::default(), parsed: None }
    }

    /// Moves to another block, past its end, keeping the memory.
    pub(crate) fn reset(&mut self, block: Block) {
        (self.at, self.parsed) = (block.end(), None);
        self.block = block;
    }

    /// To the first entry whose key is at or after `key`.
    pub(crate) fn seek(&mut self, key: &[u8]) {
        self.seek_version(key, Sequence::MAX);
    }

    /// To the first entry at or after (key, at) in the order of entries.
    pub(crate) fn seek_version(&mut self, key: &[u8], at: Sequence) {
        let found = self.block.seek(key, at);
        self.at = found.map_or(self.block.end(), |found| found.place);
        self.parsed = found.map(|found| found.entry);
        if let Some(Sought { entry, .. }) = found {
            self.key.go_on_far(0, &key[..entry.shared]);
            self.key.go_on(entry.shared, self.block.raw(), entry.key_at..entry.next.head);
            // Most scans give it out, after entries of other blocks.
            prefetch_lines(self.block.raw(), entry.value_at, VALUE_LINES);
        }
    }

    /// To the last entry whose key is before `key`.
    pub(crate) fn seek_before(&mut self, key: &[u8]) {
        self.seek(key);
        self.prev();
    }

    pub(crate) fn seek_first(&mut self) {
        self.jump(self.block.first());
    }

    /// To the entry that so many come before. There is none: past the end.
    pub(crate) fn seek_nth(&mut self, nth: u64) {
        self.seek_first();
        (0..nth.min(self.block.entry_count() as u64)).for_each(|_| self.next());
    }

    pub(crate) fn seek_last(&mut self) {
        (self.at, self.parsed) = (self.block.end(), None);
        self.prev();
    }

    /// To the entry after. At the last one: past the end.
    #[inline]
    pub(crate) fn next(&mut self) {
        if let Some(parsed) = self.parsed {
            self.step_to(parsed.next);
        }
    }

    /// To the entry before, from an entry or from past the end. At the first one: past the start.
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

    /// The entry. None: past either end.
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

    /// Whether no entry of the block comes before the place.
    pub(crate) fn is_first(&self) -> bool {
        self.at == self.block.first()
    }

    /// A handle on the entry's value. Past either end: an empty one.
    #[inline(always)]
    pub(crate) fn value(&self) -> Value {
        let Some(Parsed { value_at, next, .. }) = self.parsed else { return Value::empty() };
        Value::in_block(self.block.clone(), value_at..next.value)
    }

    /// How many entries of the block come before the place.
    pub(crate) fn nth(&self) -> u64 {
        let next = |place: &EntryOffsets| Some(self.block.entry_at(*place)?.next);
        let places = std::iter::successors(Some(self.block.first()), next);
        places.take_while(|place| *place != self.at).count() as u64
    }

    /// Requires: a restart is at `restart`. It shares nothing with the key before.
    fn jump(&mut self, restart: EntryOffsets) {
        self.step_to(restart);
    }

    /// Requires: `at` is where the present entry ends, or a restart.
    #[inline]
    fn step_to(&mut self, at: EntryOffsets) {
        self.at = at;
        self.parsed = self.block.entry_at(at);
        if let Some(Parsed { shared, key_at, next, .. }) = self.parsed {
            self.key.go_on(shared, self.block.raw(), key_at..next.head);
        }
    }
}
