//! The cursors of a scan as one closed enum. So calls are dispatched statically and can be inlined.
//! ```text
//! memtable    the cursor of the skip list
//! run         the cursor over the tables of a run
//! view        a cursor over all runs
//! ```
//! Invariant: it behaves as the cursor inside it.

use crate::entries::cursor::{Cursor, Reads, RunsRead};
use crate::entries::entry::{Entry, Sequence};
use crate::entries::skiplist::ListCursor;
use crate::entries::value::Value;
use crate::error::Result;
use crate::files::run::RunCursor;
use crate::guard::view_cursor::ViewCursor;

/// A cursor of a scan. Large cursors are boxed, since a scan moves them when it adds sources.
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

    // Inlined: a value that a call writes is read back in pieces of another size, which stalls the
    // processor.
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
