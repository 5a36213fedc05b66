//! Adds the keys of one flush to a part.
//! ```text
//! keys --batch of 16--> their groups asked for --> their blocks asked for --> places --chunk by chunk--> overlay
//! ```
//! Neighbouring keys of a flush lie in groups far apart: memory is asked for a batch at a time, so that the waits
//! overlap. Invariant: places come out in the order of keys.

use super::Part;
use super::base::{Base, Found, Role, Site};
use super::overlay::OverlayInserter;
use super::place::{FRACTION_BITS, place};
use crate::bits::simd::{Work, fastest};
use crate::filter::Untraced;
use crate::fingerprint::group::Kind;
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
    /// The last key of the batch before, if any.
    last: Option<Vec<u8>>,
    /// Its list.
    list: usize,
}

/// Keys that wait for their places.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Batch {
    #[inline(always)]
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
            last: None,
            list: 0,
        }
    }

    /// Adds the next key. Requires: above all keys before.
    #[inline]
    pub fn push(&mut self, key: &[u8]) {
        match key.first_chunk::<8>() {
            // The usual length: a move, not a call.
            Some(word) if key.len() == 8 => self.batch.bytes.extend_from_slice(word),
            _ => self.batch.bytes.extend_from_slice(key),
        }
        self.batch.ends.push(self.batch.bytes.len());
        if self.batch.ends.len() == BATCH {
            self.place_batch();
        }
    }

    fn place_batch(&mut self) {
        let base = &*self.part.base;
        let Some(end) = self.batch.ends.len().checked_sub(1) else { return };
        let (batch, last) = (&self.batch, self.last.as_deref());
        let (list, overlay) = (&mut self.list, &mut self.overlay);
        fastest(PlaceBatch { base, batch, last, list, overlay });
        let last = self.last.get_or_insert_default();
        last.clear();
        last.extend_from_slice(self.batch.key(end));
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

/// Finds the places of a batch's keys, and gives them to the overlay.
struct PlaceBatch<'a> {
    base: &'a Base,
    batch: &'a Batch,
    /// The key before the batch, if there is one.
    last: Option<&'a [u8]>,
    /// Its list.
    list: &'a mut usize,
    overlay: &'a mut OverlayInserter,
}

impl Work for PlaceBatch<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let PlaceBatch { base, batch, last, list, overlay } = self;
        let mut keys: [&[u8]; BATCH] = [&[]; BATCH];
        let keys = &mut keys[..batch.ends.len()];
        let mut before = last;
        for (place, key) in keys.iter_mut().enumerate() {
            *key = batch.key(place);
            let ascends = before.is_none_or(|before| is_above(key, before));
            assert!(ascends, "keys out of order: {before:?}, {key:?}");
            before = Some(key);
        }
        // What may wait stands together in short loops (see `batch.rs`).
        let mut found = [Found::default(); BATCH];
        let found = &mut found[..keys.len()];
        for (found, key) in found.iter_mut().zip(&*keys) {
            *found = base.list_from(*list, key);
            *list = found.list;
        }
        found.iter().for_each(|found| base.load_header(found.list));
        let mut places = [0; BATCH];
        let mut sites: [Option<Site<'_>>; BATCH] = [const { None }; BATCH];
        for (place, key) in keys.iter().enumerate() {
            match base.place_on_line(found[place], key) {
                Some(known) => places[place] = known,
                None => sites[place] = Some(base.locate_in(found[place], key, &mut Untraced)),
            }
        }
        sites.iter().flatten().for_each(Site::load_block);
        for (place, site) in places.iter_mut().zip(&sites) {
            if let Some(site) = site {
                *place = base.place(site, Role::Point, &mut Untraced).place();
            }
        }
        for (found, place) in found.iter().zip(places) {
            overlay.push(base, found.list, place);
        }
    }
}

/// Whether a key may follow another one.
#[inline(always)]
fn is_above(key: &[u8], before: &[u8]) -> bool {
    match (key.first_chunk::<8>(), before.first_chunk::<8>()) {
        (Some(a), Some(b)) if a != b => u64::from_be_bytes(*a) > u64::from_be_bytes(*b),
        _ => key > before,
    }
}

impl Base {
    /// The list of a key that is not below the keys of `list`: sorted keys find theirs by going on, not by searching.
    #[inline(always)]
    fn list_from(&self, list: usize, key: &[u8]) -> Found {
        if self.is_edge(list) {
            return self.list_of(key, &mut Untraced);
        }
        let (among, word) = match self.directory.word(key) {
            Ok(word) => (self.directory.find_from(list - 1, key, word), word),
            Err(beyond) => (beyond, 0),
        };
        Found { list: self.list_at(among), word }
    }

    /// The place of a key on its group's line: it does not depend on the block. None: its group has no line, or the
    /// line ends before the key.
    #[inline(always)]
    fn place_on_line(&self, Found { list, word }: Found, key: &[u8]) -> Option<u32> {
        if self.is_edge(list) {
            return None;
        }
        let (index, group) = (list - 1, self.group(list - 1));
        let bits = group.prefix_bits;
        if group.kind != Kind::Spline || !self.directory.shares_prefix(index, (key, word), bits) {
            return None;
        }
        let mut line = self.line(index, &group, 0);
        let fine = line.fine_position(self.directory.view((key, word), bits))?;
        line.block = line.block_of(fine);
        Some(place(line.block, line.fraction(fine, FRACTION_BITS)))
    }
}
