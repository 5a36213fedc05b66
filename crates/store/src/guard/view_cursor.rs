//! All runs of a version as one cursor, in the order that a sorted view has them.
//! ```text
//! view    ... | 3  1  0 +3 | 3  1 ...
//!         the run of each entry; +: an older version of the key before
//! seek        ^ the segment of the key; in it, by halves,
//!             reading such entries as are in their run's block of the key
//! next           the next run's next entry: no keys of different runs are compared
//! ```
//! Of each key it has one entry, the newest that a reader as of `at` sees. Others are passed
//! without being read where the view alone tells that they are older. A run is not touched for an
//! entry of a table beyond the bounds. Invariant: the walk stands behind the entry in hand,
//! `passed` entries of whose key are before it. A run's cursor is opened when the view first names
//! it.

use trommel_filters::{Selected, SortedView, SortedWalk};

use crate::entries::cursor::{Cursor, Reads, RunsRead};
use crate::entries::entry::{Entry, Sequence};
use crate::entries::key_bounds::KeyBounds;
use crate::entries::value::Value;
use crate::error::{Error, Result};
use crate::files::run::{Run, RunCursor};
use crate::sync::Arc;

/// So many entries forward are steps; further ones are sought by their rank.
const STEPS_MAX: u64 = 4;

/// A cursor over all runs.
pub(crate) struct ViewCursor {
    view: Arc<dyn SortedView>,
    walk: Box<dyn SortedWalk>,
    /// Entries of the walk's key that are before it.
    passed: usize,
    runs: Runs,
    /// The slot of the entry in hand. None: past either end.
    current: Option<usize>,
    at: Sequence,
    bounds: KeyBounds,
}

/// The runs, by slot.
struct Runs {
    runs: Vec<Option<Arc<Run>>>,
    places: Vec<Option<RunPlace>>,
}

/// A place in a run.
struct RunPlace {
    cursor: RunCursor,
    /// Of the cursor's entry. None: it was not positioned yet, or that failed.
    rank: Option<u64>,
    /// Whether an entry of it was given out.
    useful: bool,
}

impl ViewCursor {
    /// Past the end. Of entries beyond the bounds it may tell, or be past an end there. Requires:
    /// `runs` has each run of the view, by slot, with as many entries as the view has of it.
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

    /// To the place before the first entry whose key is not before `key`.
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

    /// To the first key from the walk on of which an entry can be seen. Requires: a key begins
    /// behind the walk.
    fn settle_forward(&mut self) -> Result<()> {
        while !self.walk.is_at_end() {
            if self.find_visible()? {
                break;
            }
        }
        Ok(())
    }

    /// To the last key before that of the walk of which an entry can be seen.
    fn settle_back(&mut self) -> Result<()> {
        loop {
            for _ in 0..std::mem::take(&mut self.passed) {
                self.walk.back();
            }
            // Of the key before, the newest entry comes first.
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

    /// To the newest entry that can be seen of the key behind the walk; past the end, if it is
    /// beyond the bounds. False: there is none, and the walk has passed the key.
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

    /// Lets go of the entry in hand. False: there was none.
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

    /// True: the run was not touched yet, and the entry is in a table beyond the bounds.
    fn is_beyond(&self, selected: Selected, bounds: &KeyBounds) -> bool {
        if self.places[usize::from(selected.slot.0)].is_some() {
            return false;
        }
        let table = self.run(selected).table_of_rank(selected.rank);
        let is_behind = bounds.to.as_deref().is_some_and(|end| table.first_key() >= end);
        is_behind || table.last_key() < bounds.from.as_slice()
    }

    /// The entry of that run and rank.
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
