//! The cursors that a scan goes through, as one type of known kinds: a step of one is no call
//! through a table of functions, and what it does is known where it is taken.
//! ```text
//! memtable    the skip list's cursor
//! run         the cursor of its table, of the block in that
//! view        one over all runs
//! ```
//! Invariant: it answers as the cursor in it does.

use crate::entries::cursor::{Cursor, Reads, RunsRead};
use crate::entries::entry::{Entry, Sequence};
use crate::entries::skiplist::ListCursor;
use crate::entries::value::Value;
use crate::error::Result;
use crate::files::run::RunCursor;
use crate::guard::view_cursor::ViewCursor;

/// A cursor of a scan. Those that are large are in places of their own: a scan moves them as it
/// takes in more.
pub(crate) enum ScanCursor {
    Memtable(ListCursor),
    Run(Box<RunCursor>),
    View(Box<ViewCursor>),
}

macro_rules! of_each {
    ($self:ident, $cursor:ident => $answer:expr) => {
        match $self {
            ScanCursor::Memtable($cursor) => $answer,
            ScanCursor::Run($cursor) => $answer,
            ScanCursor::View($cursor) => $answer,
        }
    };
}

impl Cursor for ScanCursor {
    fn seek(&mut self, key: &[u8]) -> Result<()> {
        of_each!(self, cursor => cursor.seek(key))
    }

    fn seek_version(&mut self, key: &[u8], at: Sequence) -> Result<()> {
        of_each!(self, cursor => cursor.seek_version(key, at))
    }

    fn seek_first(&mut self) -> Result<()> {
        of_each!(self, cursor => cursor.seek_first())
    }

    fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        of_each!(self, cursor => cursor.seek_before(key))
    }

    fn seek_last(&mut self) -> Result<()> {
        of_each!(self, cursor => cursor.seek_last())
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        of_each!(self, cursor => cursor.next())
    }

    #[inline]
    fn prev(&mut self) -> Result<()> {
        of_each!(self, cursor => cursor.prev())
    }

    fn next_newer(&mut self, than: Sequence) -> Result<()> {
        of_each!(self, cursor => cursor.next_newer(than))
    }

    fn prev_newer(&mut self, than: Sequence) -> Result<()> {
        of_each!(self, cursor => cursor.prev_newer(than))
    }

    #[inline]
    fn entry(&self) -> Option<Entry<'_>> {
        of_each!(self, cursor => cursor.entry())
    }

    fn ends_key_and_block(&self) -> bool {
        of_each!(self, cursor => cursor.ends_key_and_block())
    }

    // A value that is written in a call is read in pieces of another size behind it, for which a
    // processor waits.
    #[inline(always)]
    fn value(&self) -> Value {
        of_each!(self, cursor => cursor.value())
    }

    fn reads(&mut self) -> Reads {
        of_each!(self, cursor => cursor.reads())
    }

    fn runs_read(&self) -> Option<RunsRead> {
        of_each!(self, cursor => cursor.runs_read())
    }
}
