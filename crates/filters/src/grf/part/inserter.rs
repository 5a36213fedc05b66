//! Adds the keys of one flush to a part.
//! ```text
//! keys --batch by batch--> their groups asked for --> their blocks asked for --> places
//! places --chunk by chunk--> overlay
//! ```
//! Neighbouring keys of a flush lie in groups far apart: memory is asked for a batch at a time, so
//! that the waits overlap. Invariant: places come out in the order of keys.

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
use crate::grf::base::{Base, Found, Site};
use crate::grf::overlay::OverlayInserter;
use crate::grf::part::Part;
use crate::grf::sizes::LINE_BYTES;
use crate::text::code::KeyCode;
use crate::text::model::TextModel;

impl Part {
    /// Starts to add the keys of one flush, for a version with the runs of `shape`. That flush
    /// counts as a run of its own, if none of these has it yet. This part stays as it is. Lists
    /// that are touched keep no more of any code than such a version needs; a shape without runs
    /// keeps all. Requires: the new part is asked by that version and later ones alone.
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
/// Keys of a batch.
const BATCH: usize = 128;

/// Adds the keys of one flush to a part.
pub struct Inserter {
    places: Places,
    flush: FlushNumber,
    shape: Shape,
    /// Keys that wait for their places.
    batch: KeyList,
}

/// Finds keys' places in a part.
struct Places {
    part: Part,
    overlay: OverlayInserter,
    /// The last key of the batch before, if any.
    last: Option<Vec<u8>>,
    /// Its list.
    list: usize,
    /// The codes of a batch's keys, if there is a model of text.
    codes: KeyList,
    /// The cells of a block in which several keys lie.
    cells: Box<ReadCells>,
}

impl Inserter {
    /// Adds the next key. Requires: above all keys before.
    #[inline]
    pub fn push(&mut self, key: &[u8]) {
        self.batch.push(key);
        if self.batch.len() == BATCH {
            self.place_batch();
        }
    }

    /// As [`Inserter::push`] of each of these keys of eight bytes: in less time, where they are
    /// hundreds.
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

    /// The part with the keys pushed. What the flush did not touch is shared with the old part.
    pub fn finish(mut self) -> Part {
        self.place_batch();
        let Places { part, overlay, .. } = self.places;
        let Part { base, overlay: old, options } = &part;
        let overlay = overlay.finish(old, base, self.flush, (options, &self.shape));
        Part { overlay, ..part }
    }

    /// The part, and the places of the keys pushed.
    pub(crate) fn into_places(mut self) -> (Part, OverlayInserter) {
        self.place_batch();
        (self.places.part, self.places.overlay)
    }
}

impl Places {
    /// Gives the places of some keys, at most a batch, to the overlay.
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

/// The keys of a list, at most a batch; behind them, empty ones.
fn batch_of(list: &KeyList) -> [&[u8]; BATCH] {
    let mut keys: [&[u8]; BATCH] = [&[]; BATCH];
    keys.iter_mut().zip(list.iter()).for_each(|(place, key)| *place = key);
    keys
}

/// The codes of keys, in `codes`.
fn encode_all<K: AsRef<[u8]>>(text: &TextModel, keys: &[K], codes: &mut KeyList) {
    let mut code = KeyCode::new();
    codes.clear();
    keys.iter().for_each(|key| codes.push(text.encode(key.as_ref(), &mut code)));
}

/// Requires: keys ascend, from the one before the batch on.
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

/// Finds the places of a batch's keys, or of their codes, and gives them to the overlay. `list`:
/// that of the key before the batch, or the first one.
#[inline(always)]
fn place_batch<K: AsRef<[u8]>>(
    base: &Base,
    keys: &[K],
    list: &mut usize,
    (overlay, cells): (&mut OverlayInserter, &mut ReadCells),
) {
    // What may wait stands together in short loops (see `batch.rs`).
    let mut found = [Found::default(); BATCH];
    let found = &mut found[..keys.len()];
    for (found, key) in found.iter_mut().zip(keys) {
        *found = base.list_from(*list, key.as_ref());
        *list = found.list;
    }
    found.iter().for_each(|found| base.load_header(found.list));
    let mut places = [0; BATCH];
    // Of those that lie on no line: where keys are smooth, none.
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

/// Whether a key may follow another one.
#[inline(always)]
fn is_above(key: &[u8], before: &[u8]) -> bool {
    match (key.first_chunk::<8>(), before.first_chunk::<8>()) {
        (Some(a), Some(b)) if a != b => u64::from_be_bytes(*a) > u64::from_be_bytes(*b),
        _ => key > before,
    }
}

impl Base {
    /// The list of a key that is not below the keys of `list`: sorted keys find theirs by going on,
    /// not by searching.
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

    /// Asks for the memory of a list's group, without waiting for it: its header may lie on two
    /// lines.
    #[inline(always)]
    fn load_header(&self, list: usize) {
        if !self.is_edge(list) {
            let at = self.directory.offset(list - 1) * GROUP_ALIGN;
            prefetch(&self.arena, at);
            prefetch(&self.arena, at + LINE_BYTES / 2);
        }
    }

    /// The line of a list's group, if it has one. None, too, if its keys share more than a word.
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

    /// The eight bytes after a key's word.
    #[inline(always)]
    fn tail(&self, key: &[u8]) -> u64 {
        self.directory.tail(key)
    }
}

/// A group with a line: there the places of keys do not depend on the blocks.
struct GroupLine {
    /// The separator's word, and how many of its bits all keys of the group share but those behind
    /// them.
    separator: u64,
    shared: usize,
    line: Line,
}

impl GroupLine {
    /// The place of a key of the group that has this word, and this one behind. None: it is behind
    /// the line.
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
