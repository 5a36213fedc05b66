//! The index of recent keys: bits that many threads set and read at once.
//! ```text
//! hashes   a Bloom filter with four bits in one word for each key     "may it have this key?"
//! line     a bitmap: one bit for each stretch of positions      "may it have a key of this range?"
//! ```
//! Invariant: an added key is denied neither by the hashes nor by the line.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use trommel_filters::KeyPositions;
use trommel_filters::hash::scaled;

use crate::arena::{Arena, ReadKey, zeros};
use crate::hashes::{Hashes, Place, TOGETHER};
use crate::view::hash_of;

/// Bits of the hashes for each key: four keys share a word.
const HASH_BITS: usize = 16;
/// Bits of the line for each key: a short range meets a bit of a full list one time in thirty. More
/// bits would take more of the processor's caches.
const LINE_BITS: usize = 32;
/// Words of the line that one query reads at most. A longer range has a key, most likely.
const LINE_WORDS_MAX: usize = 4096;

/// Both ends of a queried range. Most lists use the same positions, so the ends' positions are
/// found once.
pub(crate) struct Ends<'k> {
    keys: [&'k [u8]; 2],
    found: Option<(&'k KeyPositions, [u64; 2])>,
}

/// Hashes and positions of keys.
pub(crate) struct Index {
    hashes: Hashes,
    line: Option<Line>,
}

struct Line {
    positions: Arc<KeyPositions>,
    bits: Box<[AtomicU64]>,
}

impl<'k> Ends<'k> {
    /// The range from `lower` to `upper`, both included.
    pub(crate) fn new(lower: &'k [u8], upper: &'k [u8]) -> Ends<'k> {
        Ends { keys: [lower, upper], found: None }
    }

    fn on(&mut self, positions: &'k KeyPositions) -> [u64; 2] {
        let found = self.found.filter(|(of, _)| std::ptr::eq(*of, positions));
        let on = found.map_or_else(|| self.keys.map(|key| positions.position(key)), |(_, on)| on);
        self.found = Some((positions, on));
        on
    }
}

impl Index {
    /// Creates an index for this many keys. Without positions, it has no line and denies no range.
    pub(crate) fn new(keys: usize, positions: Option<Arc<KeyPositions>>) -> Index {
        let line = |positions| Line { positions, bits: zeros(keys * LINE_BITS / 64) };
        Index { hashes: Hashes::new(keys * HASH_BITS), line: positions.map(line) }
    }

    /// Adds the hashes of the keys in a piece of an arena, up to the first one that is not written
    /// yet. Returns the word of that key, or the first word behind the piece.
    pub(crate) fn add_hashes(&self, arena: &Arena, words: Range<usize>) -> usize {
        add_all(arena, words, |key| self.hashes.place(hash_of(key)))
    }

    /// Like [`Index::add_hashes`], for the line.
    pub(crate) fn add_to_line(&self, arena: &Arena, words: Range<usize>) -> usize {
        let Some(line) = &self.line else { return words.end };
        add_all(arena, words, |key| line.place(key))
    }

    /// False proves that no key with this hash was added. Requires: there is room for keys.
    pub(crate) fn may_have(&self, hash: u64) -> bool {
        self.hashes.may_have(hash)
    }

    /// Whether it can deny ranges.
    pub(crate) fn has_line(&self) -> bool {
        self.line.is_some()
    }

    /// False proves that no key of the range was added.
    pub(crate) fn may_overlap<'k>(&'k self, ends: &mut Ends<'k>) -> bool {
        self.line.as_ref().is_none_or(|line| line.may_overlap(ends.on(&line.positions)))
    }

    /// Memory in bytes.
    pub(crate) fn size_bytes(&self) -> usize {
        let line = self.line.as_ref().map_or(0, |line| size_of_val(&*line.bits));
        self.hashes.size_bytes() + line
    }
}

/// Sets the places of keys. Words of the index are rarely cached, so several are loaded before the
/// first one is set.
#[inline]
fn add_all<'w>(arena: &Arena, words: Range<usize>, place_of: impl Fn(&[u8]) -> Place<'w>) -> usize {
    let (mut at, mut is_written, mut read) = (words.start, true, ReadKey::new());
    while is_written && at < words.end {
        let places: [_; TOGETHER] = std::array::from_fn(|_| {
            is_written = is_written && at < words.end;
            let next = is_written.then(|| arena.read(at, &mut read)).flatten();
            is_written = next.is_some();
            at = next?;
            Some(place_of(read.bytes()))
        });
        places.iter().flatten().for_each(Place::set);
    }
    at
}

impl Line {
    fn bit(&self, position: u64) -> usize {
        scaled(position, self.bits.len() * 64)
    }

    fn place(&self, key: &[u8]) -> Place<'_> {
        let bit = self.bit(self.positions.position(key));
        Place::of(&self.bits[bit / 64], 1 << (bit % 64))
    }

    fn may_overlap(&self, ends: [u64; 2]) -> bool {
        let [first, last] = ends.map(|position| self.bit(position));
        let (from, to) = (first / 64, last / 64);
        if to - from > LINE_WORDS_MAX {
            return true;
        }
        let word = |at: usize| self.bits[at].load(Ordering::Relaxed);
        let (head, tail) = (u64::MAX << (first % 64), u64::MAX >> (63 - last % 64));
        if from == to {
            return word(from) & head & tail != 0;
        }
        word(from) & head != 0 || word(to) & tail != 0 || (from + 1..to).any(|at| word(at) != 0)
    }
}
