//! The filter of all keys of a family, as they were when it was built or added to.
//! ```text
//! part       trommel-filters' global range filter: base of a scan, overlay of recent keys
//! marks      some keys of the base, evenly spread
//! positions  where a key lies among them: recent keys are noted by it
//! hashes     of all keys, where these are text: a key's place takes longer to find than its hash
//! since      the sequence number of the state that was scanned
//! ```
//! It is a value: adding keys makes another one. Invariant: a key that the state `since` has, or
//! that was added, is not denied.

use std::sync::Arc;

use trommel_filters::{
    Codes, FlushNumber, GrfOptions, KeyPositions, KeyRange, KeySample, Part, PartBuilder, Query,
    Shape,
};

use crate::hashes::{Hashes, TOGETHER};
use crate::keys::SortedKeys;
use crate::view::hash_of;

/// Where entries come from is of no use here: all have this number.
const ROUND: FlushNumber = FlushNumber(1);
/// Keys of the overlay among all, just before the base is built anew.
const OVERLAY_SHARE: f64 = 0.5;
/// Keys whose places are kept evenly among all.
const MARKS: usize = 1023;
/// Bits of hashes for each key that is scanned. Those that are added later share them.
const HASH_BITS: u64 = 12;
/// Of so many keys at least.
const KEYS_LEAST: u64 = 1024;

/// A filter of all keys.
#[derive(Clone)]
pub(crate) struct Filter {
    part: Part,
    marks: Arc<SortedKeys>,
    /// Shared with the filters that this one is made of: what it has too much, it does not deny.
    hashes: Option<Arc<Hashes>>,
    pub(crate) positions: Arc<KeyPositions>,
    pub(crate) since: u64,
    /// Keys of the base, and keys that were added, some of them twice.
    pub(crate) scanned: u64,
    pub(crate) added: u64,
}

impl Filter {
    /// Of all keys of the state with that sequence number.
    pub(crate) fn of(keys: &SortedKeys, bits_per_key: f64, since: u64) -> Filter {
        let sample = KeySample::evenly(keys.len(), |place| keys.get(place));
        let mut building = Building::new(&sample, keys.len() as u64, bits_per_key);
        keys.iter().for_each(|key| building.push(key));
        building.finish(since)
    }

    /// With these hashes of all its keys.
    pub(crate) fn with_hashes(self, hashes: Option<Hashes>) -> Filter {
        Filter { hashes: hashes.map(Arc::new), ..self }
    }

    pub(crate) fn hashes(&self) -> Option<&Hashes> {
        self.hashes.as_deref()
    }

    /// Of what a file has kept: the part, its marks, and the keys scanned and added.
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

    /// Whether most of the keys that were scanned are text.
    pub(crate) fn is_of_text(&self) -> bool {
        self.hashes.is_some()
    }

    pub(crate) fn part(&self) -> &Part {
        &self.part
    }

    pub(crate) fn marks(&self) -> &SortedKeys {
        &self.marks
    }

    /// How many keys it has, about.
    pub(crate) fn keys(&self) -> u64 {
        self.scanned + self.added
    }

    /// With these keys, too.
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

    /// False: it has no such key. Requires: the key is cut, and that is its hash.
    pub(crate) fn may_contain(&self, key: &[u8], hash: u64) -> bool {
        self.hashes.as_ref().is_none_or(|hashes| hashes.may_have(hash))
            && self.may_match(&Query::Point(key))
    }

    /// False: it has no such key. Requires: both ends are cut.
    pub(crate) fn may_overlap(&self, range: KeyRange<'_>) -> bool {
        self.may_match(&Query::Range(range))
    }

    fn may_match(&self, query: &Query<'_>) -> bool {
        let mut codes = Codes::new();
        self.part.candidates(query, &mut codes);
        !codes.is_empty()
    }

    /// The bytes that it takes.
    pub(crate) fn size_bytes(&self) -> usize {
        let size = self.part.size();
        let hashes = self.hashes.as_ref().map_or(0, |hashes| hashes.size_bytes());
        (size.base_bytes + size.overlay_bytes) as usize + self.positions.size_bytes() + hashes
    }
}

/// A filter on the way, of keys that come in ascending order.
pub(crate) struct Building {
    builder: PartBuilder,
    expected: u64,
    pushed: u64,
    marks: SortedKeys,
    hashes: Option<Hashes>,
    /// Hashes that wait to be added.
    waiting: Vec<u64>,
    last: Option<Vec<u8>>,
}

impl Building {
    /// Of about so many keys, like those of the sample.
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

    /// Adds the next key, unless it is the last one. Requires: it is cut, and none before it.
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

    /// The filter of the keys that were pushed.
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
