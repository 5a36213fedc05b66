//! Stamps bound the values that a read may find. Writes of a key are numbered, and a completed
//! write raises the key's floor.
//! ```text
//! writes of a key   |--3--|        |---5---|             floor: 3, then still 3, since two overlap
//!                              |---4---|      |--6--|    and which came last is unknown; then 6
//! read                                            |...|  began before 6 was over: at least 3
//! ```
//! Invariant: a read that begins when the floor is s finds s or a later stamp, in whatever order
//! the store applied overlapping writes. A write without overlap has a larger stamp than all values
//! before it, and it replaces them.

use std::sync::atomic::{AtomicU64, Ordering};

/// The stamps of writes, and a word for each key: the floor, whether writes overlap, and how many
/// are under way.
pub(crate) struct Stamps {
    next: AtomicU64,
    words: Vec<AtomicU64>,
}

const WRITER: u64 = 1;
const OVERLAP: u64 = 1 << 15;
const WRITERS: u64 = OVERLAP - 1;
const FLOOR_AT: u32 = 16;

impl Stamps {
    /// The stamp of everything written before.
    pub(crate) const LOADED: u64 = 0;

    /// Tracks the first `keys` places; nothing is known of others.
    pub(crate) fn new(keys: u64) -> Self {
        let words = (0..keys).map(|_| AtomicU64::new(Self::LOADED << FLOOR_AT)).collect();
        Stamps { next: AtomicU64::new(Self::LOADED + 1), words }
    }

    fn word(&self, place: u64) -> Option<&AtomicU64> {
        self.words.get(usize::try_from(place).ok()?)
    }

    /// Begins a write of a key. Returns its stamp.
    pub(crate) fn begin(&self, place: u64) -> u64 {
        if let Some(word) = self.word(place) {
            change(word, |word| {
                let overlaps = word & WRITERS > 0;
                (word + WRITER) | if overlaps { OVERLAP } else { 0 }
            });
        }
        self.next.fetch_add(1, Ordering::AcqRel)
    }

    /// Ends the write with this stamp.
    pub(crate) fn end(&self, place: u64, stamp: u64) {
        let Some(word) = self.word(place) else { return };
        change(word, |word| {
            let left = word - WRITER;
            match (word & OVERLAP > 0, left & WRITERS) {
                (false, _) => stamp << FLOOR_AT,
                (true, 0) => left & !OVERLAP,
                (true, _) => left,
            }
        });
    }

    /// Returns the least stamp that a read beginning now may find.
    pub(crate) fn floor(&self, place: u64) -> u64 {
        self.word(place).map_or(Self::LOADED, |word| word.load(Ordering::Acquire) >> FLOOR_AT)
    }

    /// Whether a write with this stamp has begun.
    pub(crate) fn is_given(&self, stamp: u64) -> bool {
        stamp < self.next.load(Ordering::Acquire)
    }
}

fn change(word: &AtomicU64, to: impl Fn(u64) -> u64) {
    let changed = word.fetch_update(Ordering::AcqRel, Ordering::Acquire, |word| Some(to(word)));
    changed.expect("there is always a next word");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_that_is_over_and_was_alone_is_the_floor() {
        let stamps = Stamps::new(2);
        for expected in 1..4 {
            let stamp = stamps.begin(1);
            assert_eq!((stamp, stamps.floor(1)), (expected, expected - 1));
            stamps.end(1, stamp);
            assert_eq!(stamps.floor(1), stamp);
        }
        assert_eq!(stamps.floor(0), Stamps::LOADED, "another key");
        assert!(stamps.is_given(3) && !stamps.is_given(4));
    }

    #[test]
    fn writes_that_overlap_raise_nothing_until_one_is_alone() {
        let stamps = Stamps::new(1);
        let three = [0; 3].map(|_| stamps.begin(0));
        stamps.end(0, three[1]);
        let late = stamps.begin(0);
        for stamp in [three[0], late, three[2]] {
            stamps.end(0, stamp);
            assert_eq!(stamps.floor(0), Stamps::LOADED);
        }
        let alone = stamps.begin(0);
        stamps.end(0, alone);
        assert_eq!(stamps.floor(0), alone);
    }

    #[test]
    fn of_a_key_behind_the_last_nothing_is_known() {
        let stamps = Stamps::new(1);
        let stamp = stamps.begin(5);
        stamps.end(5, stamp);
        assert_eq!((stamp, stamps.floor(5)), (1, Stamps::LOADED));
    }

    #[test]
    fn a_register_never_falls_below_the_floor() {
        // The simplest store: a word that writers overwrite.
        let (stamps, register) = (Stamps::new(1), AtomicU64::new(Stamps::LOADED));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..20_000 {
                        let floor = stamps.floor(0);
                        assert!(register.load(Ordering::Acquire) >= floor);
                        let stamp = stamps.begin(0);
                        register.store(stamp, Ordering::Release);
                        stamps.end(0, stamp);
                    }
                });
            }
        });
        assert!(register.load(Ordering::Acquire) >= stamps.floor(0));
        assert_eq!(stamps.words[0].load(Ordering::Acquire) & (WRITERS | OVERLAP), 0);
    }
}
