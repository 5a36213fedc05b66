//! Adds the keys of one flush to a part.
//! ```text
//! keys --batch of 16--> their groups asked for --> their blocks asked for --> places --chunk by chunk--> overlay
//! ```
//! Neighbouring keys of a flush lie in groups far apart: memory is asked for a batch at a time, so that the waits
//! overlap. Invariant: places come out in the order of keys.

use super::Part;
use super::base::{Base, Site, Spot};
use super::overlay::OverlayInserter;
use crate::bits::simd::{Work, fastest};
use crate::filter::Untraced;
use crate::shape::{FlushNumber, Shape};

/// Keys of a batch.
const BATCH: usize = 16;

/// Adds the keys of one flush to a part.
pub struct Inserter {
    part: Part,
    overlay: OverlayInserter,
    flush: FlushNumber,
    shape: Shape,
    batch: Batch,
    spots: Vec<Spot>,
    last: Vec<u8>,
    empty: bool,
}

/// Keys that wait for their places.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// The list of each key.
    lists: Vec<usize>,
}

impl Batch {
    fn key(&self, place: usize) -> &[u8] {
        let start = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[place]]
    }
}

impl Inserter {
    pub(super) fn new(part: &Part, flush: FlushNumber, shape: &Shape) -> Inserter {
        Inserter {
            overlay: OverlayInserter::new(),
            flush,
            shape: shape.clone(),
            part: part.clone(),
            batch: Batch::default(),
            spots: Vec::with_capacity(BATCH),
            last: Vec::new(),
            empty: true,
        }
    }

    /// Adds the next key. Requires: above all keys before.
    pub fn push(&mut self, key: &[u8]) {
        assert!(self.empty || *self.last < *key, "keys out of order: {:?}, {key:?}", self.last);
        self.empty = false;
        self.last.clear();
        self.last.extend_from_slice(key);
        self.batch.bytes.extend_from_slice(key);
        self.batch.ends.push(self.batch.bytes.len());
        if self.batch.ends.len() == BATCH {
            self.place_batch();
        }
    }

    fn place_batch(&mut self) {
        let base = &*self.part.base;
        self.spots.clear();
        fastest(PlaceBatch { base, batch: &mut self.batch, spots: &mut self.spots });
        self.spots.iter().for_each(|spot| self.overlay.push(base, spot));
        self.batch.bytes.clear();
        self.batch.ends.clear();
    }

    /// The part with the keys pushed. What the flush did not touch is shared with the old part.
    pub fn finish(mut self) -> Part {
        self.place_batch();
        let Part { base, overlay, .. } = &self.part;
        let overlay = self.overlay.finish(overlay, base, self.flush, &self.shape);
        Part { overlay, ..self.part }
    }
}

/// Finds the places of a batch's keys.
struct PlaceBatch<'a> {
    base: &'a Base,
    batch: &'a mut Batch,
    spots: &'a mut Vec<Spot>,
}

impl Work for PlaceBatch<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let PlaceBatch { base, batch, spots } = self;
        let keys = batch.ends.len();
        batch.lists.clear();
        // What may wait stands together in short loops (see `batch.rs`).
        (0..keys).for_each(|place| base.load_radix(batch.key(place)));
        for place in 0..keys {
            batch.lists.push(base.list_of(batch.key(place), &mut Untraced));
        }
        batch.lists.iter().for_each(|&list| base.load_header(list));
        let mut sites: [Option<Site<'_>>; BATCH] = [const { None }; BATCH];
        for (place, (site, &list)) in sites.iter_mut().zip(&batch.lists).enumerate() {
            *site = Some(base.locate_in(list, batch.key(place), &mut Untraced));
        }
        sites.iter().flatten().for_each(Site::load_for_overlay);
        spots.extend(sites.iter().flatten().map(|site| base.place_for_overlay(site)));
    }
}
