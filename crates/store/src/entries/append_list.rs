//! An append-only list that readers access without a lock while it grows. Items never move.
//! ```text
//! octave 0   | 16 | 16 | ... eight chunks
//! octave 1   | 32 | 32 | ... eight chunks
//! octave 2   | 64 | ...
//! ```
//! An item's index determines its chunk. Invariant: a chunk is allocated once, and its items start
//! empty or zero. A writer fills an item before it publishes the index (Release). A reader that
//! learns the index (Acquire) sees the content.

use crate::sync::OnceLock;

/// Base-2 logarithm of the items in a chunk of the first octave.
const FIRST_BITS: u32 = 4;
/// Base-2 logarithm of the chunks in an octave. Memory allocated ahead is at most one part in this
/// many of what is in use.
const PER_OCTAVE_BITS: u32 = 3;
const OCTAVES: usize = 40;

type Chunk<T> = OnceLock<Box<[T]>>;
type Octave<T> = OnceLock<Box<[Chunk<T>]>>;

/// A list whose items are filled in through shared references. An empty list takes almost no
/// memory.
pub(crate) struct AppendList<T> {
    octaves: OnceLock<Box<[Octave<T>; OCTAVES]>>,
}

/// The position of an item.
struct ItemIndex {
    octave: usize,
    chunk: usize,
    chunk_len: usize,
    at: usize,
}

impl ItemIndex {
    #[inline]
    fn of(index: usize) -> ItemIndex {
        let number = index + (1 << (FIRST_BITS + PER_OCTAVE_BITS));
        let chunk_bits = number.ilog2() - PER_OCTAVE_BITS;
        ItemIndex {
            octave: (chunk_bits - FIRST_BITS) as usize,
            chunk: (number >> chunk_bits) & ((1 << PER_OCTAVE_BITS) - 1),
            chunk_len: 1 << chunk_bits,
            at: number & ((1 << chunk_bits) - 1),
        }
    }
}

impl<T: Default> AppendList<T> {
    pub(crate) fn new() -> Self {
        AppendList { octaves: OnceLock::new() }
    }

    /// Returns the item at `index`, and allocates its chunk if needed. Requires: at most one thread
    /// calls `make` at a time.
    pub(crate) fn make(&self, index: usize) -> &T {
        let ItemIndex { octave, chunk, chunk_len, at } = ItemIndex::of(index);
        let empty = || (0..1 << PER_OCTAVE_BITS).map(|_| Chunk::new()).collect();
        let octaves = || Box::new(std::array::from_fn(|_| Octave::new()));
        let chunks = self.octaves.get_or_init(octaves)[octave].get_or_init(empty);
        &chunks[chunk].get_or_init(|| (0..chunk_len).map(|_| T::default()).collect())[at]
    }
}

impl<T> AppendList<T> {
    /// Returns an item. Requires: `make` was called for its index.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> &T {
        let ItemIndex { octave, chunk, at, .. } = ItemIndex::of(index);
        let chunks = self.octaves.get().and_then(|octaves| octaves[octave].get());
        let made = chunks.and_then(|chunks| chunks[chunk].get());
        &made.expect("an item that was made")[at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::{AtomicUsize, Ordering};

    #[test]
    fn every_place_is_its_own_and_chunks_are_filled_in_order() {
        let count = if cfg!(miri) { 1_000 } else { 100_000 };
        let list: AppendList<AtomicUsize> = AppendList::new();
        for index in 0..count {
            assert_eq!(list.make(index).swap(index + 1, Ordering::Relaxed), 0, "{index}");
        }
        assert!((0..count).all(|index| list.get(index).load(Ordering::Relaxed) == index + 1));
        assert!(ItemIndex::of(1 << 40.min(usize::BITS - 1)).octave < OCTAVES);
    }

    #[test]
    fn little_is_made_ahead() {
        for count in [1usize, 100, 10_000, 1_000_000] {
            let last = ItemIndex::of(count - 1);
            assert!(last.chunk_len <= 16.max(count / 8 + 1), "{} for {count}", last.chunk_len);
        }
    }
}
