//! The cursors of one direction of a scan as one.
//! ```text
//! sources   memtable, run, run, ...         in the order in which they were positioned
//! heap      numbers of sources              of those that have an entry: the next one on top
//! ```
//! Invariant: only the top one's cursor moves, and it is put in order before anything else is
//! asked.

use std::cmp::Ordering;
use std::path::PathBuf;

use crate::entries::cursor::Cursor;
use crate::entries::cursor_heap::{CursorHeap, head, order};
use crate::entries::entry::{Entry, Sequence};
use crate::entries::keys::key_head;
use crate::entries::value::Value;
use crate::error::Error;
use crate::files::run::Run;
use crate::read::scan_cursor::ScanCursor;
use crate::read::scan_direction::Direction;
use crate::sync::Arc;
use crate::tree::version::Version;

/// What tells which deletions are newer than the entries of a source.
#[derive(Clone, Copy)]
pub(crate) struct Age {
    /// The number of the memtable that has them, the newest first. None: a run's, or those of all
    /// runs.
    pub(crate) memtable: Option<usize>,
    /// No entry is newer.
    pub(crate) greatest: Sequence,
}

/// A cursor over what a memtable, a run or all runs have.
pub(crate) struct Source {
    pub(crate) cursor: ScanCursor,
    /// None: a memtable's, or one of all runs.
    pub(crate) run: Option<Arc<Run>>,
    /// Whether it is one of all runs, which has but one entry of each key.
    pub(crate) is_view: bool,
    pub(crate) age: Age,
    /// Whether an entry of it was looked at.
    pub(crate) useful: bool,
}

/// The sources of one direction.
pub(crate) struct Sources {
    list: Vec<Source>,
    /// By their numbers: the order in which they were added.
    heap: CursorHeap<usize>,
}

impl Sources {
    /// `most`: about how many there may be.
    pub(crate) fn new(direction: Direction, most: usize) -> Self {
        let next = match direction {
            Direction::Forward => Ordering::Less,
            Direction::Backward => Ordering::Greater,
        };
        Sources { list: Vec::with_capacity(most), heap: CursorHeap::with_capacity(next, most) }
    }

    /// Adds a source whose cursor is positioned.
    pub(crate) fn add(&mut self, source: Source) {
        let (number, head) = (self.list.len(), head(&source.cursor));
        self.list.push(source);
        if let Some(head) = head {
            self.heap.push(head, number, ties(&self.list));
        }
    }

    /// All that were added, whether they have an entry or not.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Source> {
        self.list.iter_mut()
    }

    /// The next entry in the scan's direction.
    #[inline]
    pub(crate) fn entry(&self) -> Option<Entry<'_>> {
        self.list[*self.heap.top()?].cursor.entry()
    }

    /// A handle on its value. None is next: an empty one.
    #[inline(always)]
    pub(crate) fn value(&self) -> Value {
        match self.heap.top() {
            Some(top) => self.list[*top].cursor.value(),
            None => Value::empty(),
        }
    }

    /// The source that has it.
    #[inline]
    pub(crate) fn top(&mut self) -> Option<&mut Source> {
        Some(&mut self.list[*self.heap.top()?])
    }

    /// Its number, in the order in which sources were added.
    #[inline]
    pub(crate) fn top_number(&self) -> Option<usize> {
        self.heap.top().copied()
    }

    /// Whether the next entry is of `key`.
    #[inline]
    pub(crate) fn is_at(&self, key: &[u8]) -> bool {
        self.heap.top_head() == Some(key_head(key))
            && self.entry().is_some_and(|entry| entry.key == key)
    }

    /// Whether the next entry is the last one of `key` in its block, and no other source is at one.
    /// Requires: there is a next entry, which is of `key`.
    pub(crate) fn ends_key_and_block(&self, key: &[u8]) -> bool {
        let cursor = |number: &usize| &self.list[*number].cursor;
        let mut others = self.heap.after_top().map(cursor);
        self.heap.top().is_some_and(|top| cursor(top).ends_key_and_block())
            && !others.any(|other| other.entry().is_some_and(|entry| entry.key == key))
    }

    /// What is wrong if the next key does not come after the one before it. Past deleted ranges a
    /// scan seeks: it would come by such keys without end.
    #[cold]
    pub(crate) fn disorder(&self, before: &[u8], version: &Version) -> Error {
        let key = self.entry().map(|entry| entry.key).unwrap_or_default();
        let run = self.heap.top().and_then(|top| self.list[*top].run.as_deref());
        // Memtables are in order; what goes through all runs is told by the first.
        let run = run.or_else(|| Some(&*version.runs.first()?.run));
        let path = run.map_or_else(PathBuf::new, |run| {
            run.find(key).map_or(run.path(), |found| found.table.path()).to_path_buf()
        });
        let (key, before) = (key.escape_ascii(), before.escape_ascii());
        Error::corrupt(path, 0, format!("keys that are out of order: {key} beside {before}"))
    }

    /// Puts the top source in order after its cursor has moved.
    #[inline]
    pub(crate) fn settle_top(&mut self) {
        let head = self.heap.top().and_then(|top| head(&self.list[*top].cursor));
        self.heap.settle_top(head, ties(&self.list));
    }
}

/// The order of the entries of two sources.
fn ties(list: &[Source]) -> impl Fn(&usize, &usize) -> Ordering + '_ {
    |one, other| order(&list[*one].cursor, &list[*other].cursor)
}
