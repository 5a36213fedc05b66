//! The entries of one key, as a direction of a scan comes to them: which of them counts, and how
//! the others are passed.
//! ```text
//! forward    k 90  k 80  k 70  k 60 ~~~~~~~~~~~~> k 20  k 10 ~~~~> the next key
//! backward   the key before <~~~~ k 90  k 80 <~~~~~~ k 20  k 10
//! deleted    a 3  b 5  c 4  d 8 ~~~~~~~~~~~~~~~~> x 99    newer than the deletion
//! at 25: after some steps, a seek by (key, at), and one past the key
//! ```
//! Most keys have few entries, to which steps lead faster than seeks. Invariant: of the entries
//! that the scan sees, none that counts is passed; each move leads on, whatever a damaged table
//! says.

use super::{Direction, Side};
use crate::entries::cursor::Cursor;
use crate::entries::entry::{Entry, Kind, Sequence};
use crate::entries::value::Value;
use crate::error::Result;

/// So many entries of one key that a source has are passed by steps.
const STEPS_MAX: u32 = 4;

/// The newest entry so far: number, kind, value.
type Newest = Option<(Sequence, Kind, Value)>;

/// How many entries of the key in hand one source has had.
#[derive(Default)]
struct Passed {
    source: Option<usize>,
    entries: u32,
}

impl Passed {
    /// Whether this source is to step past one entry more.
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
    /// Whether the next entry, which is the first of the key in hand and has this sequence number,
    /// is what the key has. Forward, newer entries of a key come first: the others need not be
    /// looked at for this one.
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

    /// The newest entry of the key in hand that the scan sees, unless it is in a range that was
    /// deleted later. Passes all entries of the key. Requires: the next entry is of this key.
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
            // Backward, what comes next is in another block.
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

    /// Goes past the entries of the key in hand, if that was left for later.
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

    /// Most keys have one entry.
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

    /// Moves the top source on, which is at an entry of the key in hand with this number. It goes
    /// to its next entry. After many of the key, it goes to the next one that counts, and may note
    /// the newest on the way.
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

    /// What is newer than an entry that cannot be seen cannot be seen either.
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

    /// Has the top source, a memtable, go past entries that are older than the deletion around the
    /// key in hand.
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
            // Beyond the deleted keys older ones count too.
            return self.leave_deleted();
        }
        self.sources.settle_top();
        Ok(())
    }

    /// Has the top source, of which nothing more is seen among the keys that are deleted as the one
    /// in hand is, go past those.
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

    /// An error if the top source has not left the key in hand behind.
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

/// Keeps an entry if it is seen, and none that is newer was.
fn note(newest: &mut Newest, entry: Entry<'_>, at: Sequence, value: impl FnOnce() -> Value) {
    let is_newer = newest.as_ref().is_none_or(|(sequence, ..)| entry.sequence > *sequence);
    if entry.sequence <= at && is_newer {
        *newest = Some((entry.sequence, entry.kind, value()));
    }
}
