//! Keys of writes that the filter does not have yet: written by many threads at once, read by all.
//! ```text
//! cursor   closed? | keys | words of the arena that are taken     one number: a place is one step
//! arena    | length | bytes | length | bytes | ...                what the filter is given later
//! hashes   a word of 64 bits for each key: four of its bits       "may it have this key?"
//! line     a bit for each stretch of the line of positions    "may it have a key of this range?"
//! flight   writes whose keys are here and that are not done
//! ```
//! Invariant: a key that was noted is denied by neither hashes nor line. Once it is closed, no key
//! is noted; once it is settled, the arena has all keys.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use trommel_filters::KeyPositions;
use trommel_filters::hash::scaled;

use crate::hashes::{Hashes, Place};
use crate::keys::SortedKeys;

/// Of the cursor.
const CLOSED: u64 = 1 << 63;
const KEYS_AT: u32 = 40;
const ONE_KEY: u64 = 1 << KEYS_AT;
const WORDS: u64 = ONE_KEY - 1;
const WORD_BYTES: usize = size_of::<u64>();

/// Bits of the hashes for each key: four keys come to a word.
const HASH_BITS: usize = 16;
/// Bits of the line for each key: when all are noted, a short range meets one in thirty. More would
/// have writers wait longer for memory.
const LINE_BITS: usize = 32;
/// Words of the line that one question looks through. A longer range has a key, most likely.
const LINE_WORDS_MAX: usize = 4096;

/// Keys that were noted since the one before.
pub(crate) struct Recent {
    /// Counts them: later ones have larger numbers.
    pub(crate) age: u64,
    cursor: AtomicU64,
    /// Words of the arena that are written.
    written: AtomicU64,
    flight: Arc<Flight>,
    keys_max: usize,
    arena: Box<[AtomicU64]>,
    hashes: Hashes,
    line: Option<Line>,
}

/// Counts writes that began and are not done.
#[derive(Default)]
pub(crate) struct Flight(AtomicU64);

struct Line {
    positions: Arc<KeyPositions>,
    bits: Box<[AtomicU64]>,
}

/// How many keys may be noted, and how long they are expected to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Room {
    pub(crate) keys: usize,
    pub(crate) key_bytes: usize,
}

/// What became of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Noted {
    Yes,
    /// There is no room, or it is closed: a later one is the place.
    Full,
}

impl Flight {
    /// Whether none is on its way.
    pub(crate) fn has_landed(&self) -> bool {
        self.0.load(Ordering::SeqCst) == 0
    }
}

impl Recent {
    /// Without a key. Ranges are answered if there is a line to put keys on.
    pub(crate) fn new(age: u64, room: Room, positions: Option<Arc<KeyPositions>>) -> Recent {
        let words_of_key = 1 + room.key_bytes.div_ceil(WORD_BYTES);
        let line = |positions| Line { positions, bits: zeros(room.keys * LINE_BITS / 64) };
        Recent {
            age,
            cursor: AtomicU64::new(0),
            written: AtomicU64::new(0),
            flight: Arc::default(),
            keys_max: room.keys,
            arena: zeros(room.keys * words_of_key),
            hashes: Hashes::new(room.keys * HASH_BITS),
            line: positions.map(line),
        }
    }

    /// One that counts writes and notes nothing.
    pub(crate) fn asleep(age: u64) -> Recent {
        Recent::new(age, Room { keys: 0, key_bytes: 0 }, None)
    }

    /// A write begins. Its keys are noted behind this.
    pub(crate) fn enter(&self) {
        self.flight.0.fetch_add(1, Ordering::SeqCst);
    }

    /// A write is done: what it wrote is seen by all who read from now on.
    pub(crate) fn leave(&self) {
        self.flight.0.fetch_sub(1, Ordering::SeqCst);
    }

    pub(crate) fn flight(&self) -> &Arc<Flight> {
        &self.flight
    }

    /// Notes a key. Requires: the write has entered, and is not issued yet.
    pub(crate) fn note(&self, key: &[u8], hash: u64) -> Noted {
        if self.keys_max == 0 {
            return if self.is_closed() { Noted::Full } else { Noted::Yes };
        }
        let words = 1 + key.len().div_ceil(WORD_BYTES);
        // Both words come from afar: they are asked for before either is waited for.
        let line = self.line.as_ref().map(|line| line.place(key));
        let of_hash = self.hashes.place(hash);
        let Some(at) = self.take_place(words) else { return Noted::Full };
        of_hash.set();
        line.iter().for_each(Place::set);
        let place = &self.arena[at..at + words];
        place[0].store(key.len() as u64, Ordering::Relaxed);
        let (whole, rest) = key.as_chunks::<WORD_BYTES>();
        for (place, word) in place[1..].iter().zip(whole) {
            place.store(u64::from_le_bytes(*word), Ordering::Relaxed);
        }
        if !rest.is_empty() {
            let mut word = [0; WORD_BYTES];
            word[..rest.len()].copy_from_slice(rest);
            place[words - 1].store(u64::from_le_bytes(word), Ordering::Relaxed);
        }
        self.written.fetch_add(words as u64, Ordering::Release);
        Noted::Yes
    }

    fn take_place(&self, words: usize) -> Option<usize> {
        let mut cursor = self.cursor.load(Ordering::Relaxed);
        loop {
            let (keys, at) = (keys_of(cursor), (cursor & WORDS) as usize);
            if cursor & CLOSED != 0 || keys == self.keys_max || at + words > self.arena.len() {
                return None;
            }
            let next = cursor + ONE_KEY + words as u64;
            let order = (Ordering::SeqCst, Ordering::Relaxed);
            match self.cursor.compare_exchange_weak(cursor, next, order.0, order.1) {
                Ok(_) => return Some(at),
                Err(other) => cursor = other,
            }
        }
    }

    /// Takes no key from now on.
    pub(crate) fn close(&self) {
        self.cursor.fetch_or(CLOSED, Ordering::SeqCst);
    }

    fn is_closed(&self) -> bool {
        self.cursor.load(Ordering::SeqCst) & CLOSED != 0
    }

    /// Whether it only counts writes.
    pub(crate) fn is_asleep(&self) -> bool {
        self.keys_max == 0
    }

    /// Keys that were noted.
    pub(crate) fn len(&self) -> usize {
        keys_of(self.cursor.load(Ordering::Relaxed))
    }

    /// The keys that it has room for.
    pub(crate) fn room(&self) -> usize {
        self.keys_max
    }

    /// The mean length of its keys, rounded up to words; none: `otherwise`.
    pub(crate) fn key_bytes(&self, otherwise: usize) -> usize {
        let (keys, words) = (self.len(), (self.cursor.load(Ordering::Relaxed) & WORDS) as usize);
        words.checked_div(keys).map_or(otherwise, |words| words * WORD_BYTES)
    }

    /// False: the key was not noted.
    pub(crate) fn may_contain(&self, hash: u64) -> bool {
        if self.len() == 0 {
            return self.is_asleep();
        }
        self.hashes.may_have(hash)
    }

    /// False: no key from `lower` to `upper` was noted. Both are included.
    pub(crate) fn may_overlap(&self, lower: &[u8], upper: &[u8]) -> bool {
        if self.len() == 0 {
            return self.is_asleep();
        }
        self.line.as_ref().is_none_or(|line| line.may_overlap(lower, upper))
    }

    /// All keys, sorted, each once. Requires: it is closed. Waits for writers that have a place and
    /// have not written to it yet, which takes them some nanoseconds.
    pub(crate) fn sorted(&self) -> SortedKeys {
        debug_assert!(self.is_closed(), "keys may still come");
        let all = self.cursor.load(Ordering::SeqCst) & WORDS;
        while self.written.load(Ordering::Acquire) < all {
            std::thread::yield_now();
        }
        SortedKeys::of(&self.arena[..all as usize], self.len())
    }

    /// The bytes that it takes.
    pub(crate) fn size_bytes(&self) -> usize {
        let line = self.line.as_ref().map_or(0, |line| size_of_val(&*line.bits));
        size_of_val(&*self.arena) + self.hashes.size_bytes() + line
    }
}

impl Line {
    fn bit(&self, key: &[u8]) -> usize {
        scaled(self.positions.position(key), self.bits.len() * 64)
    }

    fn place(&self, key: &[u8]) -> Place<'_> {
        let bit = self.bit(key);
        Place::of(&self.bits[bit / 64], 1 << (bit % 64))
    }

    fn may_overlap(&self, lower: &[u8], upper: &[u8]) -> bool {
        let (first, last) = (self.bit(lower), self.bit(upper));
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

fn keys_of(cursor: u64) -> usize {
    ((cursor & !CLOSED) >> KEYS_AT) as usize
}

pub(crate) fn zeros(count: usize) -> Box<[AtomicU64]> {
    (0..count).map(|_| AtomicU64::new(0)).collect()
}
