//! Lists of recent keys, which the filter lacks: many threads write to them at once, all read them.
//! ```text
//! cursor   closed? | keys | words of the arena that are taken     one number: taken in one step
//! arena    | length | bytes | length | bytes | 0 ...              what the filter gets later
//! index    what readers query: hashes and a line. Writers add hashes, for some keys together; the
//!          worker puts keys on the line; readers add what is left
//! flight   counts writes in flight whose keys are here
//! ```
//! Invariant: a noted key is not denied. Once the list is closed, no key is noted. Once its writers
//! are done, the arena has all of its keys.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use trommel_filters::KeyPositions;

use crate::arena::Arena;
use crate::index::{Ends, Index};
use crate::keys::SortedKeys;

/// Fields of the cursor.
const CLOSED: u64 = 1 << 63;
const KEYS_AT: u32 = 40;
const ONE_KEY: u64 = 1 << KEYS_AT;
const WORDS: u64 = ONE_KEY - 1;

/// Keys that writers collect before one of them adds their hashes, so that the cache misses
/// overlap. Readers add the rest.
const LEFT_MAX: usize = 128;
/// Words of the arena, for some hundred keys, after which the worker is called to put keys on the
/// line. A reader puts at most as many on it: with more, the worker is late.
const LINE_WORDS: usize = 2048;

/// A list of recent keys.
pub(crate) struct Recent {
    /// Orders the lists: later ones have larger numbers.
    pub(crate) age: u64,
    cursor: AtomicU64,
    flight: Arc<Flight>,
    keys_max: usize,
    arena: Arena,
    index: Index,
    /// Words of the arena whose keys have their hashes in the index, and words whose keys are on
    /// the line.
    hashed: AtomicU64,
    lined: AtomicU64,
}

/// Counts writes in flight.
#[derive(Default)]
pub(crate) struct Flight(AtomicU64);

/// How many keys a list can hold, and their expected length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Room {
    pub(crate) keys: usize,
    pub(crate) key_bytes: usize,
}

/// The result of noting a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Noted {
    Yes,
    /// Noted, and enough keys have gathered for the worker to put them on the line.
    Many,
    /// Not noted: the list is full or closed, and a later one must take the key.
    Full,
}

impl Flight {
    /// Whether no write is in flight.
    pub(crate) fn has_landed(&self) -> bool {
        self.0.load(Ordering::SeqCst) == 0
    }
}

impl Recent {
    /// Creates an empty list. It can deny ranges only with positions.
    pub(crate) fn new(age: u64, room: Room, positions: Option<Arc<KeyPositions>>) -> Recent {
        let words = room.keys * Arena::words_of(room.key_bytes);
        Recent {
            age,
            cursor: AtomicU64::new(0),
            flight: Arc::default(),
            keys_max: room.keys,
            arena: Arena::new(words),
            index: Index::new(room.keys, positions),
            hashed: AtomicU64::new(0),
            lined: AtomicU64::new(0),
        }
    }

    /// Creates a list that counts writes and notes nothing.
    pub(crate) fn asleep(age: u64) -> Recent {
        Recent::new(age, Room { keys: 0, key_bytes: 0 }, None)
    }

    /// Begins a write, which notes its keys after this.
    pub(crate) fn enter(&self) {
        self.flight.0.fetch_add(1, Ordering::SeqCst);
    }

    /// Ends a write, which all later readers see.
    pub(crate) fn leave(&self) {
        self.flight.0.fetch_sub(1, Ordering::SeqCst);
    }

    /// Whether it can deny ranges.
    pub(crate) fn has_line(&self) -> bool {
        self.index.has_line()
    }

    pub(crate) fn flight(&self) -> &Arc<Flight> {
        &self.flight
    }

    /// Notes a key. Requires: the write has entered, and has not gone to RocksDB yet.
    pub(crate) fn note(&self, key: &[u8]) -> Noted {
        if self.keys_max == 0 {
            return if self.is_closed() { Noted::Full } else { Noted::Yes };
        }
        let words = Arena::words_of(key.len());
        let Some((at, before)) = self.take_place(words) else { return Noted::Full };
        self.arena.write(at, key);
        if (before + 1).is_multiple_of(LEFT_MAX) {
            self.add_hashes();
        }
        let is_many = (at + words) / LINE_WORDS > at / LINE_WORDS;
        if is_many && self.has_line() { Noted::Many } else { Noted::Yes }
    }

    /// Takes a place in the arena. Returns its word, and the number of keys before. None: full or
    /// closed.
    fn take_place(&self, words: usize) -> Option<(usize, usize)> {
        let mut cursor = self.cursor.load(Ordering::Relaxed);
        loop {
            let (keys, at) = (keys_of(cursor), (cursor & WORDS) as usize);
            if cursor & CLOSED != 0 || keys == self.keys_max || at + words > self.arena.len() {
                return None;
            }
            let next = cursor + ONE_KEY + words as u64;
            let order = (Ordering::SeqCst, Ordering::Relaxed);
            match self.cursor.compare_exchange_weak(cursor, next, order.0, order.1) {
                Ok(_) => return Some((at, keys)),
                Err(other) => cursor = other,
            }
        }
    }

    /// Closes the list: it takes no more keys.
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

    /// The number of noted keys.
    pub(crate) fn len(&self) -> usize {
        keys_of(self.cursor.load(Ordering::Relaxed))
    }

    /// The number of keys that it can hold.
    pub(crate) fn room(&self) -> usize {
        self.keys_max
    }

    /// The mean length of its keys, rounded up to words. Without keys: `otherwise`.
    pub(crate) fn key_bytes(&self, otherwise: usize) -> usize {
        let (keys, words) = (self.len(), (self.cursor.load(Ordering::Relaxed) & WORDS) as usize);
        words.checked_div(keys).map_or(otherwise, Arena::bytes_of)
    }

    /// False proves that no key with this hash was noted.
    pub(crate) fn may_contain(&self, hash: u64) -> bool {
        if self.len() == 0 {
            return self.is_asleep();
        }
        !self.add_hashes() || self.index.may_have(hash)
    }

    /// False proves that no key of the range was noted.
    pub(crate) fn may_overlap<'k>(&'k self, ends: &mut Ends<'k>) -> bool {
        if self.len() == 0 {
            return self.is_asleep();
        }
        !self.put_on_line(LINE_WORDS) || self.index.may_overlap(ends)
    }

    /// Adds the hashes of all keys. False: some are missing, because a writer has taken a place and
    /// not written yet.
    #[inline]
    fn add_hashes(&self) -> bool {
        self.catch_up(&self.hashed, usize::MAX, |words| self.index.add_hashes(&self.arena, words))
    }

    /// Puts the keys of at most this many words on the line. False: some are missing.
    #[inline]
    pub(crate) fn put_on_line(&self, words: usize) -> bool {
        self.catch_up(&self.lined, words, |words| self.index.add_to_line(&self.arena, words))
    }

    /// Continues behind the words that are done. False: some are left. Several threads may do so at
    /// once, since adding a key twice does no harm.
    #[inline]
    fn catch_up(
        &self,
        done: &AtomicU64,
        at_most: usize,
        add: impl Fn(Range<usize>) -> usize,
    ) -> bool {
        let taken = (self.cursor.load(Ordering::Acquire) & WORDS) as usize;
        let start = done.load(Ordering::Acquire) as usize;
        if start >= taken {
            return true;
        }
        let end = add(start..taken.min(start.saturating_add(at_most)));
        done.fetch_max(end as u64, Ordering::Release);
        end >= taken
    }

    /// Returns the keys of some lists, sorted and distinct. Requires: the lists are closed. Waits
    /// for writers that have taken a place and not written yet, which takes nanoseconds.
    pub(crate) fn sorted(lists: &[Arc<Recent>]) -> SortedKeys {
        debug_assert!(lists.iter().all(|list| list.is_closed()), "keys may still come");
        let words = |list: &Recent| (list.cursor.load(Ordering::SeqCst) & WORDS) as usize;
        let arenas = lists.iter().map(|list| (&list.arena, words(list)));
        SortedKeys::of(arenas, lists.iter().map(|list| list.len()).sum())
    }

    /// Memory in bytes.
    pub(crate) fn size_bytes(&self) -> usize {
        self.arena.size_bytes() + self.index.size_bytes()
    }
}

fn keys_of(cursor: u64) -> usize {
    ((cursor & !CLOSED) >> KEYS_AT) as usize
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use trommel_filters::KeySample;

    use super::*;
    use crate::view::hash_of;

    const ROOM: Room = Room { keys: 1 << 14, key_bytes: 8 };

    fn recent() -> Recent {
        let keys: Vec<[u8; 8]> = (0..1000).map(|at| spread(at * 16)).collect();
        let mut sorted: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
        sorted.sort_unstable();
        let sample = KeySample::evenly(sorted.len(), |at| sorted[at]);
        let positions = KeyPositions::of(&sample, 1000, sorted.iter().copied());
        Recent::new(0, ROOM, Some(Arc::new(positions)))
    }

    fn spread(at: u64) -> [u8; 8] {
        at.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
    }

    fn may_have(recent: &Recent, key: &[u8]) -> [bool; 2] {
        [recent.may_contain(hash_of(key)), recent.may_overlap(&mut Ends::new(key, key))]
    }

    #[test]
    fn noted_keys_of_all_lengths_are_not_denied_and_others_are() {
        let recent = recent();
        let keys: Vec<Vec<u8>> =
            (0..600).map(|at| spread(at as u64).repeat(64)[..at % 512].to_vec()).collect();
        for (at, key) in keys.iter().enumerate() {
            assert_ne!(recent.note(key), Noted::Full);
            if at % 7 == 0 {
                assert_eq!(may_have(&recent, key), [true; 2], "{at}");
            }
        }
        for (at, key) in keys.iter().enumerate() {
            assert_eq!(may_have(&recent, key), [true; 2], "{at}");
        }
        let others = (1000..2000).map(|at| may_have(&recent, &spread(at)));
        let [keys, ranges] = others.fold([0; 2], |sum, may| [0, 1].map(|i| sum[i] + may[i] as u32));
        assert!(keys < 50 && ranges < 200, "{keys} {ranges}");
    }

    #[test]
    fn nothing_is_denied_while_a_writer_has_a_place_and_has_not_written_to_it() {
        let recent = recent();
        recent.note(b"before");
        assert!(!may_have(&recent, b"absent")[0]);
        let (at, _) = recent.take_place(2).expect("there is room");
        recent.note(b"behind");
        for key in [&b"before"[..], b"behind", b"absent"] {
            assert_eq!(may_have(&recent, key), [true; 2]);
        }
        recent.arena.write(at, b"there");
        for key in [&b"before"[..], b"there", b"behind"] {
            assert_eq!(may_have(&recent, key), [true; 2]);
        }
        assert!(!may_have(&recent, b"absent")[0]);
    }

    #[test]
    fn keys_are_not_denied_once_they_are_noted_whoever_writes_and_reads_beside() {
        let recent = recent();
        let is_done = AtomicBool::new(false);
        let noted: Vec<AtomicU64> = (0..4).map(|_| AtomicU64::new(0)).collect();
        let key = |thread: u64, at: u64| spread(thread << 32 | at);
        std::thread::scope(|scope| {
            let writers: Vec<_> = (0..4_u64)
                .map(|thread| {
                    let (recent, noted) = (&recent, &noted[thread as usize]);
                    scope.spawn(move || {
                        for at in 0..ROOM.keys as u64 / 4 {
                            assert_ne!(recent.note(&key(thread, at)), Noted::Full);
                            noted.store(at + 1, Ordering::Release);
                        }
                    })
                })
                .collect();
            for reader in 0..2 {
                let (recent, noted, is_done) = (&recent, &noted, &is_done);
                scope.spawn(move || {
                    let mut asked = reader;
                    while !is_done.load(Ordering::Relaxed) {
                        asked += 1;
                        let thread = asked % 4;
                        let count = noted[thread as usize].load(Ordering::Acquire);
                        if count > 0 {
                            // The newest one, or any.
                            let at = if asked & 4 == 0 { count - 1 } else { asked % count };
                            assert_eq!(may_have(recent, &key(thread, at)), [true; 2]);
                        }
                    }
                });
            }
            let written: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
            is_done.store(true, Ordering::Relaxed);
            assert!(written.iter().all(Result::is_ok));
        });
        recent.close();
        assert_eq!(Recent::sorted(&[Arc::new(recent)]).len(), ROOM.keys);
    }
}
