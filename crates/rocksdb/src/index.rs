//! What readers ask about recent keys: bits that many threads set and read at once.
//! ```text
//! hashes   a word of 64 bits for each key: four of its bits       "may it have this key?"
//! line     a bit for each stretch of the line of positions    "may it have a key of this range?"
//! ```
//! Invariant: a key that was added is denied by neither hashes nor line.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use trommel_filters::KeyPositions;
use trommel_filters::hash::scaled;

use crate::arena::{Arena, ReadKey, zeros};
use crate::hashes::{Hashes, Place, TOGETHER};
use crate::view::hash_of;

/// Bits of the hashes for each key: four keys come to a word.
const HASH_BITS: usize = 16;
/// Bits of the line for each key: when all are noted, a short range meets one in thirty. More would
/// take more of the caches.
const LINE_BITS: usize = 32;
/// Words of the line that one question looks through. A longer range has a key, most likely.
const LINE_WORDS_MAX: usize = 4096;

/// Both ends of a range that is asked for. Lists have the same positions, mostly: where the ends
/// lie is found once.
pub(crate) struct Ends<'k> {
    keys: [&'k [u8]; 2],
    found: Option<(&'k KeyPositions, [u64; 2])>,
}

/// Hashes and places of keys.
pub(crate) struct Index {
    hashes: Hashes,
    line: Option<Line>,
}

struct Line {
    positions: Arc<KeyPositions>,
    bits: Box<[AtomicU64]>,
}

impl<'k> Ends<'k> {
    /// From `lower` to `upper`: both are included.
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
    /// For so many keys. Ranges are answered if there is a line to put keys on.
    pub(crate) fn new(keys: usize, positions: Option<Arc<KeyPositions>>) -> Index {
        let line = |positions| Line { positions, bits: zeros(keys * LINE_BITS / 64) };
        Index { hashes: Hashes::new(keys * HASH_BITS), line: positions.map(line) }
    }

    /// Adds the hashes of the keys of a piece of an arena, up to the first key that is not written
    /// yet: the place of that one, or of the first key behind the piece.
    pub(crate) fn add_hashes(&self, arena: &Arena, words: Range<usize>) -> usize {
        add_all(arena, words, |key| self.hashes.place(hash_of(key)))
    }

    /// The same for the line.
    pub(crate) fn add_to_line(&self, arena: &Arena, words: Range<usize>) -> usize {
        let Some(line) = &self.line else { return words.end };
        add_all(arena, words, |key| line.place(key))
    }

    /// False: the key with that hash was not added. Requires: there is room for keys.
    pub(crate) fn may_have(&self, hash: u64) -> bool {
        self.hashes.may_have(hash)
    }

    /// Whether ranges are answered.
    pub(crate) fn has_line(&self) -> bool {
        self.line.is_some()
    }

    /// False: no key of the range was added.
    pub(crate) fn may_overlap<'k>(&'k self, ends: &mut Ends<'k>) -> bool {
        self.line.as_ref().is_none_or(|line| line.may_overlap(ends.on(&line.positions)))
    }

    /// The bytes that it takes.
    pub(crate) fn size_bytes(&self) -> usize {
        let line = self.line.as_ref().map_or(0, |line| size_of_val(&*line.bits));
        self.hashes.size_bytes() + line
    }
}

/// Sets the places of keys. Words of the index come from afar: some are asked for before any is
/// waited for.
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
