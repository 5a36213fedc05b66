//! Adds the keys of one flush to a part.
//! ```text
//! keys --batch by batch--> prefetch their groups --> prefetch their blocks --> places
//! places --chunk by chunk--> overlay
//! ```
//! Neighbouring keys of a flush lie in distant groups. Each batch prefetches its memory, so that
//! cache misses overlap.
//!
//! Invariant: places come out in key order.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::base::filter::Untraced;
use crate::base::key_list::KeyList;
use crate::base::shape::{FlushNumber, Shape};
use crate::bits::simd::{fastest, prefetch};
use crate::fingerprint::group::{GROUP_ALIGN, Kind};
use crate::fingerprint::line::Line;
use crate::fingerprint::read_cells::ReadCells;
use crate::grf::base::place::{FRACTION_BITS, place};
use crate::grf::base::{Base, FoundList, Site};
use crate::grf::overlay::OverlayInserter;
use crate::grf::part::Part;
use crate::grf::sizes::LINE_BYTES;
use crate::text::code::KeyCode;
use crate::text::model::TextModel;

impl Part {
    /// Returns an inserter for the keys of one flush, for a version with the runs of `shape`. The
    /// flush counts as a run of its own unless one of these contains it. This part stays as it is.
    /// Touched lists widen each code as far as such a version allows; a shape without runs keeps
    /// codes as they are.
    ///
    /// Requires: only that version and later ones query the new part.
    pub fn inserter(&self, flush: FlushNumber, shape: &Shape) -> Inserter {
        let overlay = OverlayInserter::new();
        let (last, batch) = (None, KeyList::default());
        let (codes, cells) = (KeyList::default(), Box::<ReadCells>::default());
        let places = Places { part: self.clone(), overlay, last, list: 0, codes, cells };
        Inserter { places, flush, shape: shape.clone(), batch }
    }
}

/// No list has this number.
const NO_LIST: usize = usize::MAX;
/// Keys per batch.
const BATCH: usize = 128;

/// Adds the keys of one flush to a part.
pub struct Inserter {
    places: Places,
    flush: FlushNumber,
    shape: Shape,
    /// Keys whose places are not determined yet.
    batch: KeyList,
}

/// Determines the places of keys in a part.
struct Places {
    part: Part,
    overlay: OverlayInserter,
    /// The last key of the previous batch, if any.
    last: Option<Vec<u8>>,
    /// The list of that key.
    list: usize,
    /// The codes of a batch's keys, if there is a model of text.
    codes: KeyList,
    /// The cells of a block that holds several keys.
    cells: Box<ReadCells>,
}

impl Inserter {
    /// Adds the next key.
    ///
    /// # Panics
    /// `key` is not above all previous keys. Keys are checked in batches.
    #[inline]
    pub fn push(&mut self, key: &[u8]) {
        self.batch.push(key);
        if self.batch.len() == BATCH {
            self.place_batch();
        }
    }

    /// Same as [`Inserter::push`] for each of `words`. Faster for hundreds of keys.
    pub fn push_words(&mut self, words: &[[u8; 8]]) {
        let (batches, rest) = words.as_chunks::<BATCH>();
        if !batches.is_empty() {
            self.place_batch();
            batches.iter().for_each(|words| self.places.add(words));
        }
        rest.iter().for_each(|word| self.push(word));
    }

    fn place_batch(&mut self) {
        let keys = batch_of(&self.batch);
        self.places.add(&keys[..self.batch.len()]);
        self.batch.clear();
    }

    /// Returns the part with the pushed keys. It shares what the flush did not touch with the old
    /// part.
    pub fn finish(mut self) -> Part {
        self.place_batch();
        let Places { part, overlay, .. } = self.places;
        let Part { base, overlay: old, options } = &part;
        let overlay = overlay.finish(old, base, self.flush, (options, &self.shape));
        Part { overlay, ..part }
    }

    /// Returns the part and the places of the pushed keys.
    pub(crate) fn into_places(mut self) -> (Part, OverlayInserter) {
        self.place_batch();
        (self.places.part, self.places.overlay)
    }
}

impl Places {
    /// Passes the places of at most a batch of keys to the overlay.
    #[inline(always)]
    fn add<K: AsRef<[u8]>>(&mut self, keys: &[K]) {
        let Some(end) = keys.last() else { return };
        assert_ascent(self.last.as_deref(), keys);
        let (base, list) = (&*self.part.base, &mut self.list);
        let (overlay, cells) = (&mut self.overlay, &mut *self.cells);
        match &base.text {
            None => fastest(
                #[inline(always)]
                move || place_batch(base, keys, list, (overlay, cells)),
            ),
            Some(text) => {
                encode_all(text, keys, &mut self.codes);
                let codes = &batch_of(&self.codes)[..keys.len()];
                fastest(
                    #[inline(always)]
                    move || place_batch(base, codes, list, (overlay, cells)),
                );
            }
        }
        end.as_ref().clone_into(self.last.get_or_insert_default());
    }
}

/// Returns the keys of a list as an array, padded with empty keys. Requires: at most a batch.
fn batch_of(list: &KeyList) -> [&[u8]; BATCH] {
    let mut keys: [&[u8]; BATCH] = [&[]; BATCH];
    keys.iter_mut().zip(list.iter()).for_each(|(place, key)| *place = key);
    keys
}

/// Encodes keys into `codes`.
fn encode_all<K: AsRef<[u8]>>(text: &TextModel, keys: &[K], codes: &mut KeyList) {
    let mut code = KeyCode::new();
    codes.clear();
    keys.iter().for_each(|key| codes.push(text.encode(key.as_ref(), &mut code)));
}

/// Panics unless keys ascend, beginning above the key before the batch.
#[inline(always)]
fn assert_ascent<K: AsRef<[u8]>>(last: Option<&[u8]>, keys: &[K]) {
    let mut before = last;
    for key in keys {
        let key = key.as_ref();
        let ascends = before.is_none_or(|before| is_above(key, before));
        assert!(ascends, "keys out of order: {before:?}, {key:?}");
        before = Some(key);
    }
}

/// Passes the places of a batch of names to the overlay. `list`: that of the previous key, or the
/// first one.
#[inline(always)]
fn place_batch<K: AsRef<[u8]>>(
    base: &Base,
    keys: &[K],
    list: &mut usize,
    (overlay, cells): (&mut OverlayInserter, &mut ReadCells),
) {
    // Accesses that may miss the cache are grouped into short loops (see `batch.rs`).
    let mut found = [FoundList::default(); BATCH];
    let found = &mut found[..keys.len()];
    for (found, key) in found.iter_mut().zip(keys) {
        *found = base.list_from(*list, key.as_ref());
        *list = found.list;
    }
    found.iter().for_each(|found| base.load_header(found.list));
    let mut places = [0; BATCH];
    // The keys that lie on no line: none where keys are smooth.
    let mut sites: Vec<(usize, Site<'_>)> = Vec::new();
    let (mut list, mut line) = (NO_LIST, None);
    for (place, (key, &found)) in keys.iter().zip(&*found).enumerate() {
        let key = key.as_ref();
        if found.list != list {
            (list, line) = (found.list, base.group_line(found.list));
        }
        if let Some(line) = &line
            && let Some(known) = GroupLine::place(line, found.word, base.tail(key))
        {
            places[place] = known;
        } else {
            sites.push((place, base.locate_in(found, key, &mut Untraced)));
        }
    }
    sites.iter().for_each(|(_, site)| site.load_block());
    for together in sites.chunk_by(|(_, a), (_, b)| a.bucket_key() == b.bucket_key()) {
        base.places_in_bucket(together, cells, |at, place| places[at] = place);
    }
    for (found, place) in found.iter().zip(places) {
        overlay.push(base, found.list, place);
    }
}

/// Whether a key is above another one.
#[inline(always)]
fn is_above(key: &[u8], before: &[u8]) -> bool {
    match (key.first_chunk::<8>(), before.first_chunk::<8>()) {
        (Some(a), Some(b)) if a != b => u64::from_be_bytes(*a) > u64::from_be_bytes(*b),
        _ => key > before,
    }
}

impl Base {
    /// Returns the list of a key that is not below the keys of `list`. Steps forward instead of
    /// searching, which suits sorted keys.
    #[inline(always)]
    fn list_from(&self, list: usize, key: &[u8]) -> FoundList {
        if self.is_edge(list) {
            return self.list_of(key, &mut Untraced);
        }
        let (among, word) = match self.directory.word(key) {
            Ok(word) => (self.directory.find_from(list - 1, key, word), word),
            Err(beyond) => (beyond, 0),
        };
        FoundList { list: self.list_at(among), word }
    }

    /// Prefetches the header of a list's group, which may lie on two cache lines.
    #[inline(always)]
    fn load_header(&self, list: usize) {
        if !self.is_edge(list) {
            let at = self.directory.offset(list - 1) * GROUP_ALIGN;
            prefetch(&self.arena, at);
            prefetch(&self.arena, at + LINE_BYTES / 2);
        }
    }

    /// Returns the line of a list's group. None: it has none, or its keys share more than a word.
    #[inline(always)]
    fn group_line(&self, list: usize) -> Option<GroupLine> {
        if self.is_edge(list) {
            return None;
        }
        let (index, group) = (list - 1, self.group(list - 1));
        let shared = self.directory.shared_bits(group.prefix_bits);
        (group.kind == Kind::Spline && shared < 64).then(|| GroupLine {
            separator: self.directory.separators[index],
            shared,
            line: self.line(index, &group, 0),
        })
    }

    /// Returns the eight bytes after a key's word.
    #[inline(always)]
    fn tail(&self, key: &[u8]) -> u64 {
        self.directory.tail(key)
    }
}

/// A group with a line: the places of its keys do not depend on its blocks.
struct GroupLine {
    /// The separator's word, and how many of its leading bits the group's keys share.
    separator: u64,
    shared: usize,
    line: Line,
}

impl GroupLine {
    /// Returns the place of a key of the group, given its word and the eight bytes after it. None:
    /// the key lies beyond the line.
    #[inline(always)]
    fn place(&self, word: u64, tail: u64) -> Option<u32> {
        if (self.separator ^ word) >> 1 >> (63 - self.shared) != 0 {
            return None;
        }
        let view = word << self.shared | tail >> 1 >> (63 - self.shared);
        let fine = self.line.fine_position(view)?;
        let line = Line { block: self.line.block_of(fine), ..self.line };
        Some(place(line.block, line.fraction(fine, FRACTION_BITS)))
    }
}
