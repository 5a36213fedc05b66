//! The entries of one key in a scan: finds the one that is visible, and skips the others.
//! ```text
//! forward    k 90  k 80  k 70  k 60 ~~~~~~~~~~~~> k 20  k 10 ~~~~> the next key
//! backward   the key before <~~~~ k 90  k 80 <~~~~~~ k 20  k 10
//! deleted    a 3  b 5  c 4  d 8 ~~~~~~~~~~~~~~~~> x 99    newer than the deletion
//! a scan at 25: after some steps, a seek to (key, 25), and one past the key
//! ```
//! Most keys have few entries, for which steps are faster than seeks. Invariant: no entry is
//! skipped that is visible and counts. Every move makes progress, even in a damaged table.

use super::{Direction, Side};
use crate::entries::cursor::Cursor;
use crate::entries::entry::{Entry, Kind, Sequence};
use crate::entries::value::Value;
use crate::error::Result;

/// Entries of one key in one source that are passed by steps, before a seek is used.
const STEPS_MAX: u32 = 4;

/// The newest visible entry so far: sequence number, kind, value.
type Newest = Option<(Sequence, Kind, Value)>;

/// The number of entries of the current key that were passed in one source.
#[derive(Default)]
struct Passed {
    source: Option<usize>,
    entries: u32,
}

impl Passed {
    /// Counts an entry of `source`. Returns whether to pass it by a step.
    #[inline]
    fn goes_by_steps(&mut self, source: Option<usize>) -> bool {
        if self.source != source {
            *self = Passed { source, entries: 0 };
        }
        self.entries += 1;
        self.entries <= STEPS_MAX
    }
}

impl Side {
    /// Whether the next entry is the visible one of the current key. It is the key's first entry,
    /// and has the sequence number `first`. Forward, newer entries of a key come first, so no
    /// others need be examined.
    #[inline]
    pub(super) fn sees_first_entry(&mut self, first: Sequence) -> bool {
        if self.direction != Direction::Forward || first > self.at {
            return false;
        }
        let deleted = self.deleted.covering_tombstone(&self.key);
        let is_hidden = deleted.is_some_and(|deleted| first < deleted);
        match self.sources.top() {
            Some(source) if !source.is_view && !is_hidden => {
                (source.useful, self.holds_key) = (true, true);
                true
            }
            _ => false,
        }
    }

    /// Returns the newest visible entry of the current key, unless a newer range tombstone covers
    /// it. Passes all entries of the key. Requires: the next entry belongs to this key.
    pub(super) fn newest_visible(&mut self) -> Result<Option<(Kind, Value)>> {
        let deleted = self.deleted.covering_tombstone(&self.key);
        let is_hidden = |sequence: Sequence| deleted.is_some_and(|deleted| sequence < deleted);
        let (mut newest, mut passed): (Newest, _) = (None, Passed::default());
        let mut view_passed = false;
        while let Some(source) = self.sources.top() {
            if source.is_view && std::mem::replace(&mut view_passed, true) {
                break;
            }
            let Some(entry) = source.cursor.entry().filter(|entry| entry.key == self.key) else {
                break;
            };
            source.useful = true;
            let in_memtable = source.age.memtable.is_some();
            let leaves = match deleted {
                Some(deleted) if source.is_view => self.deleted.hides_all_runs(deleted),
                _ => !in_memtable && is_hidden(source.age.greatest),
            };
            if leaves {
                self.leave_deleted()?;
                continue;
            }
            let sequence = entry.sequence;
            if let Some(deleted) = deleted.filter(|deleted| in_memtable && sequence < *deleted) {
                self.pass_hidden(deleted)?;
                continue;
            }
            note(&mut newest, entry, self.at, || source.cursor.value());
            // Backward, the next entry is in another block.
            self.holds_key =
                self.direction == Direction::Backward && self.sources.ends_key_and_block(&self.key);
            if self.holds_key {
                break;
            }
            self.pass_entry(sequence, &mut passed, &mut newest)?;
        }
        let newest = newest.filter(|(sequence, ..)| !is_hidden(*sequence));
        Ok(newest.map(|(_, kind, value)| (kind, value)))
    }

    /// Passes the entries of the current key, if that was postponed.
    #[inline]
    pub(super) fn pass_key(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.holds_key) {
            return Ok(());
        }
        let source = self.sources.top_number();
        self.advance_top()?;
        match self.sources.is_at(&self.key) {
            true => self.pass_others(Passed { source, entries: 1 }),
            false => Ok(()),
        }
    }

    /// Passes further entries of the current key. Cold, since most keys have one entry.
    #[cold]
    fn pass_others(&mut self, mut passed: Passed) -> Result<()> {
        let mut is_at_key = true;
        while is_at_key && let Some(source) = self.sources.top() {
            source.useful = true;
            let sequence = source.cursor.entry().map_or(Sequence(0), |entry| entry.sequence);
            self.pass_entry(sequence, &mut passed, &mut None)?;
            is_at_key = self.sources.is_at(&self.key);
        }
        Ok(())
    }

    /// Moves the top source, which is at an entry of the current key with this number, to its next
    /// entry. After many entries of the key, leaps to the next one that counts. A leap may record
    /// the newest visible entry on its way.
    #[inline]
    fn pass_entry(
        &mut self,
        sequence: Sequence,
        passed: &mut Passed,
        newest: &mut Newest,
    ) -> Result<()> {
        match passed.goes_by_steps(self.sources.top_number()) {
            true => self.advance_top(),
            false => self.leap(sequence, newest),
        }
    }

    #[cold]
    fn leap(&mut self, sequence: Sequence, newest: &mut Newest) -> Result<()> {
        match self.direction {
            Direction::Forward => self.leap_forward(sequence),
            Direction::Backward => self.leap_backward(sequence, newest),
        }
    }

    fn leap_forward(&mut self, sequence: Sequence) -> Result<()> {
        let target = if sequence > self.at { self.at } else { Sequence(0) };
        if sequence <= target {
            return self.advance_top();
        }
        let Some(source) = self.sources.top() else { return Ok(()) };
        source.cursor.seek_version(&self.key, target)?;
        let leads_on = source.cursor.entry().is_none_or(|landed| match *landed.key == *self.key {
            true => landed.sequence < sequence,
            false => landed.key > self.key.as_slice(),
        });
        if !leads_on {
            return Err(self.sources.disorder(&self.key, &self.version));
        }
        self.sources.settle_top();
        Ok(())
    }

    /// Entries newer than an invisible one are invisible too, so the leap passes the whole key.
    fn leap_backward(&mut self, sequence: Sequence, newest: &mut Newest) -> Result<()> {
        let Some(source) = self.sources.top() else { return Ok(()) };
        if sequence <= self.at {
            source.cursor.seek_version(&self.key, self.at)?;
            if let Some(entry) = source.cursor.entry().filter(|entry| entry.key == self.key) {
                note(newest, entry, self.at, || source.cursor.value());
            }
        }
        source.cursor.seek_before(&self.key)?;
        self.check_landed()?;
        self.sources.settle_top();
        Ok(())
    }

    /// Moves the top source, a memtable, past entries that the range tombstone over the current key
    /// hides.
    fn pass_hidden(&mut self, deleted: Sequence) -> Result<()> {
        let Some(source) = self.sources.top() else { return Ok(()) };
        if !self.deleted.hides_much(source.age) {
            return self.advance_top();
        }
        let Some(stretch) = self.deleted.shown(&self.key, source.age) else {
            return self.leave_deleted();
        };
        match self.direction {
            Direction::Forward => source.cursor.next_newer(deleted)?,
            Direction::Backward => source.cursor.prev_newer(deleted)?,
        }
        let landed = source.cursor.entry().is_some_and(|entry| stretch.contains(entry.key));
        if !landed {
            // Outside the deleted range, older entries count too.
            return self.leave_deleted();
        }
        self.sources.settle_top();
        Ok(())
    }

    /// Moves the top source out of the deleted range around the current key. Requires: none of its
    /// other entries there is visible.
    fn leave_deleted(&mut self) -> Result<()> {
        let Some(source) = self.sources.top() else { return Ok(()) };
        match self.direction {
            Direction::Forward => source.cursor.seek(self.deleted.until(&self.key, source.age))?,
            Direction::Backward => {
                source.cursor.seek_before(self.deleted.from(&self.key, source.age))?
            }
        }
        self.check_landed()?;
        self.sources.settle_top();
        Ok(())
    }

    /// Returns an error if the top source has not moved past the current key.
    fn check_landed(&mut self) -> Result<()> {
        let landed = self.sources.top().and_then(|source| source.cursor.entry());
        if landed.is_some_and(|entry| !self.direction.is_after(entry.key, &self.key)) {
            return Err(self.sources.disorder(&self.key, &self.version));
        }
        Ok(())
    }

    #[inline]
    fn advance_top(&mut self) -> Result<()> {
        let Some(source) = self.sources.top() else { return Ok(()) };
        match self.direction {
            Direction::Forward => source.cursor.next()?,
            Direction::Backward => source.cursor.prev()?,
        }
        self.sources.settle_top();
        Ok(())
    }
}

/// Records an entry if it is visible and newer than the recorded one.
fn note(newest: &mut Newest, entry: Entry<'_>, at: Sequence, value: impl FnOnce() -> Value) {
    let is_newer = newest.as_ref().is_none_or(|(sequence, ..)| entry.sequence > *sequence);
    if entry.sequence <= at && is_newer {
        *newest = Some((entry.sequence, entry.kind, value()));
    }
}
