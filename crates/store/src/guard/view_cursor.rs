//! A cursor over all runs of a version, in the order of a sorted view.
//! ```text
//! view    ... | 3  1  0 +3 | 3  1 ...
//!         the run of each entry; +: an older version of the key before
//! seek        ^ the segment of the key; a binary search in it,
//!             reading only entries in the block where their run may have the key
//! next           the next entry of the next run: keys of different runs are not compared
//! ```
//! For each key the cursor has one entry: the newest that a reader at `at` sees. Entries that the
//! view marks as older are passed unread. No run is touched for an entry of a table beyond the
//! bounds. A run's cursor is opened when the view first names the run. Invariant: the walk stands
//! just behind the current entry, after `passed` entries of its key.

use trommel_filters::{Selected, SortedView, SortedWalk};

use crate::entries::cursor::{Cursor, Reads, RunsRead};
use crate::entries::entry::{Entry, Sequence};
use crate::entries::key_bounds::KeyBounds;
use crate::entries::value::Value;
use crate::error::{Error, Result};
use crate::files::run::{Run, RunCursor};
use crate::sync::Arc;

/// A step of up to this many entries forward is done one by one; a farther entry is sought by rank.
const STEPS_MAX: u64 = 4;

/// A cursor over all runs.
pub(crate) struct ViewCursor {
    view: Arc<dyn SortedView>,
    walk: Box<dyn SortedWalk>,
    /// The number of entries of the current key that the walk has passed.
    passed: usize,
    runs: Runs,
    /// The slot of the current entry. None: past either end.
    current: Option<usize>,
    at: Sequence,
    bounds: KeyBounds,
}

/// The runs and their cursors, by slot.
struct Runs {
    runs: Vec<Option<Arc<Run>>>,
    places: Vec<Option<RunPlace>>,
}

/// A cursor in a run.
struct RunPlace {
    cursor: RunCursor,
    /// The rank of the cursor's entry. None: not positioned yet, or positioning failed.
    rank: Option<u64>,
    /// Whether the caller has seen an entry of the run.
    useful: bool,
}

impl ViewCursor {
    /// Makes a cursor past the end. It may show entries beyond the bounds, or stop before them.
    /// Requires: `runs` has each run of the view, by slot, with as many entries as the view has of
    /// it.
    pub(crate) fn new(
        view: Arc<dyn SortedView>,
        runs: Vec<Option<Arc<Run>>>,
        at: Sequence,
        bounds: KeyBounds,
    ) -> Self {
        let places = runs.iter().map(|_| None).collect();
        let (walk, runs) = (view.walk_from_end(), Runs { runs, places });
        ViewCursor { view, walk, passed: 0, runs, current: None, at, bounds }
    }

    /// Moves the walk to just before the first entry whose key is at least `key`.
    fn stand_before(&mut self, key: &[u8]) -> Result<()> {
        self.current = None;
        let segment = self.view.seek(key);
        let (mut low, mut high) = (0, self.view.segment_len(segment));
        let mut known = vec![None; self.runs.runs.len()];
        while low < high {
            let middle = low.midpoint(high);
            let selected = self.view.place(segment, middle).expect("below the segment's length");
            let known = &mut known[usize::from(selected.slot.0)];
            let bounds = *known.get_or_insert_with(|| self.runs.run(selected).rank_bounds(key));
            let is_before = match selected.rank {
                rank if rank < bounds.least => true,
                rank if rank >= bounds.most => false,
                _ => self.runs.entry(selected)?.key < key,
            };
            (low, high) = if is_before { (middle + 1, high) } else { (low, middle) };
        }
        (self.walk, self.passed) = (self.view.walk(segment, low), 0);
        Ok(())
    }

    /// Moves to the first key from the walk on with a visible entry. Requires: the walk stands
    /// before the first entry of a key.
    fn settle_forward(&mut self) -> Result<()> {
        while !self.walk.is_at_end() {
            if self.find_visible()? {
                break;
            }
        }
        Ok(())
    }

    /// Moves to the last key before the walk's key with a visible entry.
    fn settle_back(&mut self) -> Result<()> {
        loop {
            for _ in 0..std::mem::take(&mut self.passed) {
                self.walk.back();
            }
            // The newest entry of the key before comes first.
            loop {
                match self.walk.back() {
                    None => return Ok(()),
                    Some(selected) if selected.is_older => {}
                    Some(_) => break,
                }
            }
            if self.find_visible()? {
                return Ok(());
            }
        }
    }

    /// Moves to the newest visible entry of the key after the walk, or past the end if that is
    /// beyond the bounds. False: no entry is visible, and the walk has passed the key.
    fn find_visible(&mut self) -> Result<bool> {
        self.passed = 0;
        while let Some(selected) = self.walk.forward() {
            self.passed += 1;
            if self.runs.is_beyond(selected, &self.bounds) {
                return Ok(true);
            }
            if self.runs.entry(selected)?.sequence <= self.at {
                self.current = Some(usize::from(selected.slot.0));
                return Ok(true);
            }
            if !self.walk.is_within_key() {
                break;
            }
        }
        Ok(false)
    }

    /// Leaves the current entry. False: there was none.
    fn pass(&mut self) -> bool {
        let place = self.current.take().and_then(|slot| self.runs.places[slot].as_mut());
        place.map(|place| place.useful = true).is_some()
    }

    fn current(&self) -> Option<&RunCursor> {
        self.runs.places[self.current?].as_ref().map(|place| &place.cursor)
    }
}

impl Runs {
    fn run(&self, selected: Selected) -> &Arc<Run> {
        let run = self.runs[usize::from(selected.slot.0)].as_ref();
        run.expect("each slot of the view has a run")
    }

    /// True: the run was not touched yet, and the entry's table lies beyond the bounds.
    fn is_beyond(&self, selected: Selected, bounds: &KeyBounds) -> bool {
        if self.places[usize::from(selected.slot.0)].is_some() {
            return false;
        }
        let table = self.run(selected).table_of_rank(selected.rank);
        let is_behind = bounds.to.as_deref().is_some_and(|end| table.first_key() >= end);
        is_behind || table.last_key() < bounds.from.as_slice()
    }

    /// Returns the entry of this run and rank.
    fn entry(&mut self, selected: Selected) -> Result<Entry<'_>> {
        let slot = usize::from(selected.slot.0);
        let run = Arc::clone(self.run(selected));
        let place = self.places[slot].get_or_insert_with(|| RunPlace {
            cursor: run.cursor(),
            rank: None,
            useful: false,
        });
        place.go_to(selected.rank)?;
        place.cursor.entry().ok_or_else(|| {
            let what = "it has fewer entries than its tables' indexes count";
            Error::corrupt(run.path(), 0, what)
        })
    }
}

impl RunPlace {
    fn go_to(&mut self, rank: u64) -> Result<()> {
        match self.rank.take() {
            Some(here) if rank == here => {}
            Some(here) if rank > here && rank - here <= STEPS_MAX => {
                (here..rank).try_for_each(|_| self.cursor.next())?;
            }
            Some(here) if rank + 1 == here => self.cursor.prev()?,
            _ => self.cursor.seek_rank(rank)?,
        }
        self.rank = Some(rank);
        Ok(())
    }
}

impl Cursor for ViewCursor {
    fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.stand_before(key)?;
        self.settle_forward()
    }

    fn seek_version(&mut self, key: &[u8], at: Sequence) -> Result<()> {
        self.seek(key)?;
        let is_before = |entry: &Entry<'_>| entry.key == key && entry.sequence > at;
        if self.entry().as_ref().is_some_and(is_before) { self.next() } else { Ok(()) }
    }

    fn seek_first(&mut self) -> Result<()> {
        (self.walk, self.current) = (self.view.walk(0, 0), None);
        self.settle_forward()
    }

    fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        self.stand_before(key)?;
        self.settle_back()
    }

    fn seek_last(&mut self) -> Result<()> {
        (self.walk, self.passed, self.current) = (self.view.walk_from_end(), 0, None);
        self.settle_back()
    }

    fn next(&mut self) -> Result<()> {
        if !self.pass() {
            return Ok(());
        }
        while self.walk.is_within_key() {
            self.walk.forward();
        }
        self.settle_forward()
    }

    fn prev(&mut self) -> Result<()> {
        if !self.pass() {
            return Ok(());
        }
        self.settle_back()
    }

    #[inline]
    fn entry(&self) -> Option<Entry<'_>> {
        self.current()?.entry()
    }

    fn value(&self) -> Value {
        self.current().map(Cursor::value).unwrap_or_default()
    }

    fn reads(&mut self) -> Reads {
        let mut reads = Reads::default();
        self.runs.places.iter_mut().flatten().for_each(|place| reads += place.cursor.reads());
        reads
    }

    fn runs_read(&self) -> Option<RunsRead> {
        let places = || self.runs.places.iter().flatten();
        let useful = places().filter(|place| place.useful).count() as u64;
        Some(RunsRead { positioned: places().count() as u64, useful })
    }
}

#[cfg(test)]
mod tests;
