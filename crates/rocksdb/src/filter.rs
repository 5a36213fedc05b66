//! The filter of all keys of a family, as of its scan or its last added keys.
//! ```text
//! part       trommel-filters' global range filter: base of a scan, overlay of recent keys
//! marks      some keys of the base, evenly spread
//! positions  where a key lies among the marks: recent keys are noted by it
//! hashes     of all keys, if they are text: hashing a key is quicker than finding its position
//! since      the sequence number of the state that was scanned
//! ```
//! A filter is immutable: adding keys makes another one, which shares the hashes.
//!
//! Invariant: a key of the state `since`, and any added key, is not denied.

use std::sync::Arc;

use trommel_filters::{
    Codes, FlushNumber, GrfOptions, KeyPositions, KeyRange, KeySample, Part, PartBuilder, Query,
    Shape,
};

use crate::hashes::{Hashes, TOGETHER};
use crate::keys::SortedKeys;
use crate::view::hash_of;

/// The flush number of all entries, since their sources do not matter here.
const ROUND: FlushNumber = FlushNumber(1);
/// The overlay is planned for this share of all keys. `door.rs` rebuilds the base later than that.
const OVERLAY_SHARE: f64 = 0.5;
/// Marks: keys that are kept evenly among all.
const MARKS: usize = 1023;
/// Bits of hashes for each scanned key. Keys that are added later share them.
const HASH_BITS: u64 = 12;
/// The least number of keys for which hashes have bits.
const KEYS_LEAST: u64 = 1024;

/// A filter of all keys.
#[derive(Clone)]
pub(crate) struct Filter {
    part: Part,
    marks: Arc<SortedKeys>,
    /// Shared with the filters that this one is made of: additional hashes only deny less.
    hashes: Option<Arc<Hashes>>,
    pub(crate) positions: Arc<KeyPositions>,
    pub(crate) since: u64,
    /// Keys of the base, and added keys. Some of these are counted twice.
    pub(crate) scanned: u64,
    pub(crate) added: u64,
}

impl Filter {
    /// Builds the filter of all keys of the state with sequence number `since`.
    pub(crate) fn of(keys: &SortedKeys, bits_per_key: f64, since: u64) -> Filter {
        let sample = KeySample::evenly(keys.len(), |place| keys.get(place));
        let mut building = Building::new(&sample, keys.len() as u64, bits_per_key);
        keys.iter().for_each(|key| building.push(key));
        building.finish(since)
    }

    /// Sets the hashes of all its keys.
    pub(crate) fn with_hashes(self, hashes: Option<Hashes>) -> Filter {
        Filter { hashes: hashes.map(Arc::new), ..self }
    }

    pub(crate) fn hashes(&self) -> Option<&Hashes> {
        self.hashes.as_deref()
    }

    /// Makes a filter of the parts in a file: the part, its marks, the numbers of scanned and added
    /// keys.
    pub(crate) fn of_parts(
        part: Part,
        marks: SortedKeys,
        (scanned, added): (u64, u64),
        since: u64,
    ) -> Filter {
        let positions = Arc::new(positions(&marks, scanned));
        let marks = Arc::new(marks);
        Filter { part, marks, hashes: None, positions, since, scanned, added }
    }

    /// Whether most scanned keys are text.
    pub(crate) fn is_of_text(&self) -> bool {
        self.hashes.is_some()
    }

    pub(crate) fn part(&self) -> &Part {
        &self.part
    }

    pub(crate) fn marks(&self) -> &SortedKeys {
        &self.marks
    }

    /// The approximate number of keys.
    pub(crate) fn keys(&self) -> u64 {
        self.scanned + self.added
    }

    /// Returns a filter with these keys added.
    pub(crate) fn with(&self, keys: &SortedKeys) -> Filter {
        if keys.len() == 0 {
            return self.clone();
        }
        if self.keys() == 0 {
            return Filter::of(keys, self.part.options().bits_per_key, self.since);
        }
        let mut inserter = self.part.inserter(ROUND, &Shape::of_round(ROUND, ROUND, 10));
        keys.iter().for_each(|key| inserter.push(key));
        if let Some(hashes) = &self.hashes {
            hashes.add_all(keys.iter().map(hash_of));
        }
        let added = self.added + keys.len() as u64;
        Filter { part: inserter.finish(), added, ..self.clone() }
    }

    /// False proves that the key is absent. Requires: the key is cut, and `hash` is its hash.
    pub(crate) fn may_contain(&self, key: &[u8], hash: u64) -> bool {
        self.hashes.as_ref().is_none_or(|hashes| hashes.may_have(hash))
            && self.may_match(&Query::Point(key))
    }

    /// False proves that no key lies in the range. Requires: both ends are cut.
    pub(crate) fn may_overlap(&self, range: KeyRange<'_>) -> bool {
        self.may_match(&Query::Range(range))
    }

    fn may_match(&self, query: &Query<'_>) -> bool {
        let mut codes = Codes::new();
        self.part.candidates(query, &mut codes);
        !codes.is_empty()
    }

    /// Memory in bytes.
    pub(crate) fn size_bytes(&self) -> usize {
        let size = self.part.size();
        let hashes = self.hashes.as_ref().map_or(0, |hashes| hashes.size_bytes());
        (size.base_bytes + size.overlay_bytes) as usize + self.positions.size_bytes() + hashes
    }
}

/// A filter that is being built from keys in ascending order.
pub(crate) struct Building {
    builder: PartBuilder,
    expected: u64,
    pushed: u64,
    marks: SortedKeys,
    hashes: Option<Hashes>,
    /// Hashes that are added together later.
    waiting: Vec<u64>,
    last: Option<Vec<u8>>,
}

impl Building {
    /// Begins a filter of about this many keys, which resemble those of the sample.
    pub(crate) fn new(sample: &KeySample, keys: u64, bits_per_key: f64) -> Building {
        let options = GrfOptions { bits_per_key, ..GrfOptions::default() };
        let builder = PartBuilder::with_overlay_shares(&options, OVERLAY_SHARE, OVERLAY_SHARE);
        let bits = (keys.max(KEYS_LEAST) * HASH_BITS) as usize;
        let is_text = !sample.is_empty() && sample.is_text();
        Building {
            hashes: is_text.then(|| Hashes::new(bits)),
            builder: builder.with_sample(sample, keys),
            expected: keys,
            pushed: 0,
            marks: SortedKeys::default(),
            waiting: Vec::with_capacity(TOGETHER),
            last: None,
        }
    }

    /// Adds the next key, unless it equals the last one. Requires: it is cut, and not below the
    /// last one.
    pub(crate) fn push(&mut self, key: &[u8]) {
        if self.last.as_deref() == Some(key) {
            return;
        }
        self.builder.push(key);
        if self.pushed.is_multiple_of((self.expected / MARKS as u64).max(1)) {
            self.marks.push(key);
        }
        if self.hashes.is_some() {
            self.waiting.push(hash_of(key));
            if self.waiting.len() == TOGETHER {
                self.add_waiting();
            }
        }
        self.pushed += 1;
        let last = self.last.get_or_insert_default();
        last.clear();
        last.extend_from_slice(key);
    }

    fn add_waiting(&mut self) {
        let waiting = self.waiting.drain(..);
        self.hashes.iter().for_each(|hashes| hashes.add_all(waiting.as_slice().iter().copied()));
    }

    /// Builds the filter of all pushed keys.
    pub(crate) fn finish(mut self, since: u64) -> Filter {
        self.add_waiting();
        let part = self.builder.finish(ROUND);
        Filter::of_parts(part, self.marks, (self.pushed, 0), since).with_hashes(self.hashes)
    }
}

fn positions(marks: &SortedKeys, keys: u64) -> KeyPositions {
    let sample = KeySample::evenly(marks.len(), |place| marks.get(place));
    KeyPositions::of(&sample, keys.max(1), marks.iter())
}
