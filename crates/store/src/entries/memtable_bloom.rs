//! The Bloom filter of a memtable, which answers most misses without a search of the skip list.
//! ```text
//! first    the lines that the expected size needs, up to a limit
//! later    [ several times all before ][ ...         each made when those before it are full
//! ```
//! A write buffer of gigabytes may never fill. So its filter is not allocated at once for every
//! memtable and log. Where there are many memtables, nothing is allocated before the first key, and
//! little with it.
//!
//! Invariant: a key's bits are set in the newest part before its entry is linked. Parts are never
//! removed.

use std::sync::OnceLock;

use trommel_filters::{HashUse, hash_key, prefetch_at};

use crate::sync::{AtomicU64, AtomicUsize, Ordering};

/// One cache line of bits.
#[repr(align(64))]
#[derive(Default)]
struct Line([AtomicU64; 8]);

const BITS_PER_ENTRY: usize = 10;
/// Estimated size of an entry in bytes, from which the number of entries is estimated.
pub(crate) const ENTRY_BYTES: usize = 64;
/// Bytes of entries for each byte of the filter, at least.
const SHARE: usize = 16;
/// Each probe takes nine bits of the hash. Six probes fit beside the bits that select the line.
const PROBES: u32 = 6;
/// How a filter grows with its memtable.
#[derive(Clone, Copy)]
pub(crate) struct Growth {
    /// Maximum bytes of the first part.
    pub(crate) first_bytes_max: usize,
    /// Each new part multiplies the filter's size by this factor. A miss probes all parts.
    factor: usize,
}

impl Growth {
    /// For few memtables. Few filters outgrow the first part.
    pub(crate) const OF_ONE: Growth = Growth { first_bytes_max: 16 << 20, factor: 2 };
    /// For many stores with a memtable each, most of which never fill.
    pub(crate) const OF_MANY: Growth = Growth { first_bytes_max: 1 << 10, factor: 16 };
}

/// A blocked Bloom filter: a key's bits lie in one cache line of each part. Bits are set while
/// others read.
pub(crate) struct Bloom {
    /// Allocated with the first key.
    parts: OnceLock<Parts>,
    /// Lines of the first part.
    line_count: usize,
    /// Maximum lines of all parts.
    line_count_max: usize,
    factor: usize,
    size_bytes: AtomicUsize,
    /// Number of later parts that exist. Only the writer uses this and the next two fields.
    made: AtomicUsize,
    /// Number of keys, counted only if there may be later parts.
    keys: AtomicU64,
    /// Number of keys that the existing parts have room for.
    room: AtomicU64,
}

struct Parts {
    first: Part,
    /// Further parts for a large memtable, allocated in turn as it fills.
    later: Box<[OnceLock<Part>]>,
}

struct Part(Box<[Line]>);

impl Bloom {
    /// Creates the filter of a memtable that expects about `expected_bytes` bytes.
    pub(crate) fn new(expected_bytes: usize, growth: Growth) -> Self {
        let entry_count = expected_bytes / ENTRY_BYTES;
        let bytes = (entry_count * BITS_PER_ENTRY / 8).min(expected_bytes / SHARE);
        let line_count_max = bytes.div_ceil(size_of::<Line>()).max(1);
        Bloom {
            parts: OnceLock::new(),
            line_count: line_count_max.min(growth.first_bytes_max / size_of::<Line>()),
            line_count_max,
            factor: growth.factor,
            size_bytes: AtomicUsize::new(0),
            made: AtomicUsize::new(0),
            keys: AtomicU64::new(0),
            room: AtomicU64::new(0),
        }
    }

    /// Allocates the first part now.
    pub(crate) fn made(self) -> Self {
        self.parts();
        self
    }

    fn parts(&self) -> &Parts {
        self.parts.get_or_init(|| {
            let (mut lines, mut later) = (self.line_count, Vec::new());
            while lines < self.line_count_max {
                lines = lines.saturating_mul(self.factor);
                later.push(OnceLock::new());
            }
            self.note_made(self.line_count, self.line_count);
            Parts { first: Part::new(self.line_count), later: later.into() }
        })
    }

    /// Records that `lines` lines were allocated, which makes `all` in total.
    fn note_made(&self, lines: usize, all: usize) {
        self.size_bytes.fetch_add(lines * size_of::<Line>(), Ordering::Relaxed);
        let room = match all < self.line_count_max {
            true => (all * size_of::<Line>() * 8 / BITS_PER_ENTRY) as u64,
            false => u64::MAX,
        };
        self.room.store(room, Ordering::Relaxed);
    }

    /// Adds a key. Requires: no other thread adds at the same time.
    pub(crate) fn add(&self, key: &[u8]) {
        let hash = hash_key(key, HashUse::Memtable);
        let parts = self.parts();
        let newest = if parts.later.is_empty() { &parts.first } else { self.part_with_room(parts) };
        newest.add(hash);
    }

    #[inline]
    pub(crate) fn may_contain(&self, key: &[u8]) -> bool {
        let Some(parts) = self.parts.get() else { return false };
        let hash = hash_key(key, HashUse::Memtable);
        parts.first.may_contain(hash) || parts.made_later().any(|part| part.may_contain(hash))
    }

    /// Prefetches the line of the first part for a key.
    #[inline]
    pub(crate) fn prefetch(&self, key: &[u8]) {
        if let Some(parts) = self.parts.get() {
            parts.first.prefetch(hash_key(key, HashUse::Memtable));
        }
    }

    /// Prefetches the line that a key will be added to.
    #[inline]
    pub(crate) fn prefetch_insert(&self, key: &[u8]) {
        if let Some(parts) = self.parts.get() {
            self.newest(parts).prefetch(hash_key(key, HashUse::Memtable));
        }
    }

    pub(crate) fn size_bytes(&self) -> usize {
        self.size_bytes.load(Ordering::Relaxed)
    }

    /// Counts one more key, and returns the part that it is added to.
    #[inline]
    fn part_with_room<'p>(&self, parts: &'p Parts) -> &'p Part {
        let before = self.keys.load(Ordering::Relaxed);
        self.keys.store(before + 1, Ordering::Relaxed);
        if before >= self.room.load(Ordering::Relaxed) {
            self.make_next(parts);
        }
        self.newest(parts)
    }

    #[inline]
    fn newest<'p>(&self, parts: &'p Parts) -> &'p Part {
        match self.made.load(Ordering::Relaxed).checked_sub(1) {
            Some(newest) => parts.later[newest].get().expect("it was made"),
            None => &parts.first,
        }
    }

    #[cold]
    fn make_next(&self, parts: &Parts) {
        let before: usize =
            parts.first.0.len() + parts.made_later().map(|it| it.0.len()).sum::<usize>();
        let all = before.saturating_mul(self.factor).min(self.line_count_max);
        let place = self.made.fetch_add(1, Ordering::Relaxed);
        parts.later[place].get_or_init(|| Part::new(all - before));
        self.note_made(all - before, all);
    }
}

impl Parts {
    #[inline]
    fn made_later(&self) -> impl Iterator<Item = &Part> {
        self.later.iter().map_while(OnceLock::get)
    }
}

impl Part {
    fn new(line_count: usize) -> Self {
        Part((0..line_count).map(|_| Line::default()).collect())
    }

    #[inline]
    fn line(&self, hash: u64) -> &Line {
        let place = (u128::from(hash) * self.0.len() as u128) >> 64;
        &self.0[place as usize]
    }

    #[inline]
    fn prefetch(&self, hash: u64) {
        prefetch_at(std::ptr::from_ref(self.line(hash)).cast(), 1);
    }

    /// Returns the word and the bit of each probe.
    #[inline]
    fn probes(hash: u64) -> impl Iterator<Item = (usize, u64)> {
        (0..PROBES).map(move |probe| {
            let place = hash >> (9 * probe);
            ((place >> 6) as usize % 8, 1 << (place % 64))
        })
    }

    /// Requires: no other thread adds meanwhile. (Locked additions would cost ten times as much.)
    fn add(&self, hash: u64) {
        let line = self.line(hash);
        for (word, bit) in Self::probes(hash) {
            let bits = line.0[word].load(Ordering::Relaxed);
            line.0[word].store(bits | bit, Ordering::Relaxed);
        }
    }

    #[inline]
    fn may_contain(&self, hash: u64) -> bool {
        let line = self.line(hash);
        Self::probes(hash).all(|(word, bit)| line.0[word].load(Ordering::Relaxed) & bit != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test] // 64 GiB used to allocate 1.3 GiB for every memtable before anything was written.
    fn a_bloom_takes_memory_as_its_memtable_fills() {
        for (bytes, parts, all) in [(2u64 << 30, 2, 5 << 23), (64 << 30, 7, 5 << 28)] {
            // The second one is beyond 32 bits.
            let Ok(bytes) = usize::try_from(bytes) else { continue };
            let large = Bloom::new(bytes, Growth::OF_ONE);
            assert_eq!(large.size_bytes(), 0);
            let first = Growth::OF_ONE.first_bytes_max;
            assert_eq!((large.parts().later.len(), large.size_bytes()), (parts, first));
            assert_eq!(large.line_count_max, all / size_of::<Line>());
        }
        // With a first part of 4 KiB of 20.
        let growth = Growth { first_bytes_max: 4096, ..Growth::OF_ONE };
        let bloom = Bloom::new(1 << 20, growth);
        let (keys, mut sizes) = (16_384u64, Vec::new());
        for number in 0..keys {
            bloom.add(&number.to_be_bytes());
            sizes.push(bloom.size_bytes());
        }
        sizes.dedup();
        assert_eq!(sizes, [4096, 8192, 16384, 20480]);
        assert!((0..keys).all(|number| bloom.may_contain(&number.to_be_bytes())));
        let misses = keys..keys + 100_000;
        let maybes = misses.filter(|number| bloom.may_contain(&number.to_be_bytes())).count();
        assert!(maybes < 8_000, "{maybes} of 100,000 in four parts");
    }

    #[test]
    fn a_small_buffer_has_all_of_its_bloom_at_once() {
        for bytes in [0, 1 << 10, 1 << 20, 256 << 20] {
            let bloom = Bloom::new(bytes, Growth::OF_ONE).made();
            assert!(bloom.parts().later.is_empty(), "{bytes}");
            assert!(bloom.size_bytes() <= (bytes / SHARE).max(size_of::<Line>()), "{bytes}");
        }
    }

    #[test] // A miss used to probe eleven parts.
    fn of_many_blooms_each_has_few_parts() {
        let bloom = Bloom::new(64 << 20, Growth::OF_MANY);
        let (keys, mut sizes) = (300_000u64, Vec::new());
        for number in 0..keys {
            sizes.push(bloom.size_bytes());
            bloom.add(&number.to_be_bytes());
        }
        sizes.dedup();
        assert_eq!(sizes, [0, 1 << 10, 16 << 10, 256 << 10, 1310720]);
        assert_eq!(bloom.parts().later.len(), 3);
        assert!((0..keys).all(|number| bloom.may_contain(&number.to_be_bytes())));
        let misses = keys..keys + 100_000;
        let maybes = misses.filter(|number| bloom.may_contain(&number.to_be_bytes())).count();
        assert!(maybes < 8_000, "{maybes} of 100,000 in four parts");
    }
}
