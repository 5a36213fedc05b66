//! The cursors of one direction of a scan, merged by a heap.
//! ```text
//! sources   memtable, run, run, ...         in the order in which they were positioned
//! heap      numbers of sources              of those that have an entry, the next one on top
//! ```
//! Invariant: only the top cursor moves, and the heap is restored before its next use.

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

/// Tells which range tombstones are newer than the entries of a source.
#[derive(Clone, Copy)]
pub(crate) struct Age {
    /// For a memtable: its number, the newest first. None: the source is a run, or a view of all
    /// runs.
    pub(crate) memtable: Option<usize>,
    /// The greatest sequence number of its entries.
    pub(crate) greatest: Sequence,
}

/// A cursor over the entries of a memtable, of a run, or of all runs.
pub(crate) struct Source {
    pub(crate) cursor: ScanCursor,
    /// None: the source is a memtable, or a view of all runs.
    pub(crate) run: Option<Arc<Run>>,
    /// Whether it is a view of all runs, which has only one entry of each key.
    pub(crate) is_view: bool,
    pub(crate) age: Age,
    /// Whether the scan has used an entry of it.
    pub(crate) useful: bool,
}

/// The sources of one direction.
pub(crate) struct Sources {
    list: Vec<Source>,
    /// The numbers of sources, in the order in which these were added.
    heap: CursorHeap<usize>,
}

impl Sources {
    /// Returns an empty set. `most`: about how many sources there will be.
    pub(crate) fn new(direction: Direction, most: usize) -> Self {
        let next = match direction {
            Direction::Forward => Ordering::Less,
            Direction::Backward => Ordering::Greater,
        };
        Sources { list: Vec::with_capacity(most), heap: CursorHeap::with_capacity(next, most) }
    }

    /// Adds a source. Requires: its cursor is positioned.
    pub(crate) fn add(&mut self, source: Source) {
        let (number, head) = (self.list.len(), head(&source.cursor));
        self.list.push(source);
        if let Some(head) = head {
            self.heap.push(head, number, ties(&self.list));
        }
    }

    /// Iterates over all sources, whether they have an entry left or not.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Source> {
        self.list.iter_mut()
    }

    /// Returns the next entry in the scan's direction.
    #[inline]
    pub(crate) fn entry(&self) -> Option<Entry<'_>> {
        self.list[*self.heap.top()?].cursor.entry()
    }

    /// Returns a handle on the value of the next entry; an empty value if there is none.
    #[inline(always)]
    pub(crate) fn value(&self) -> Value {
        match self.heap.top() {
            Some(top) => self.list[*top].cursor.value(),
            None => Value::empty(),
        }
    }

    /// Returns the source of the next entry.
    #[inline]
    pub(crate) fn top(&mut self) -> Option<&mut Source> {
        Some(&mut self.list[*self.heap.top()?])
    }

    /// Returns the number of that source, in the order in which sources were added.
    #[inline]
    pub(crate) fn top_number(&self) -> Option<usize> {
        self.heap.top().copied()
    }

    /// Whether the next entry belongs to `key`.
    #[inline]
    pub(crate) fn is_at(&self, key: &[u8]) -> bool {
        self.heap.top_head() == Some(key_head(key))
            && self.entry().is_some_and(|entry| entry.key == key)
    }

    /// Whether the next entry is the last one of `key` in its block, and no other source is at
    /// `key`. Requires: the next entry belongs to `key`.
    pub(crate) fn ends_key_and_block(&self, key: &[u8]) -> bool {
        let cursor = |number: &usize| &self.list[*number].cursor;
        let mut others = self.heap.after_top().map(cursor);
        self.heap.top().is_some_and(|top| cursor(top).ends_key_and_block())
            && !others.any(|other| other.entry().is_some_and(|entry| entry.key == key))
    }

    /// Returns the error for a key that does not come after the one before it. Scans seek past
    /// deleted ranges, so keys out of order could make them loop forever.
    #[cold]
    pub(crate) fn disorder(&self, before: &[u8], version: &Version) -> Error {
        let key = self.entry().map(|entry| entry.key).unwrap_or_default();
        let run = self.heap.top().and_then(|top| self.list[*top].run.as_deref());
        // Memtables are always in order. For a view of all runs the error names the first run.
        let run = run.or_else(|| Some(&*version.runs.first()?.run));
        let path = run.map_or_else(PathBuf::new, |run| {
            run.find(key).map_or(run.path(), |found| found.table.path()).to_path_buf()
        });
        let (key, before) = (key.escape_ascii(), before.escape_ascii());
        Error::corrupt(path, 0, format!("keys that are out of order: {key} beside {before}"))
    }

    /// Restores the heap after the top source's cursor has moved.
    #[inline]
    pub(crate) fn settle_top(&mut self) {
        let head = self.heap.top().and_then(|top| head(&self.list[*top].cursor));
        self.heap.settle_top(head, ties(&self.list));
    }
}

/// Compares the entries of two sources.
fn ties(list: &[Source]) -> impl Fn(&usize, &usize) -> Ordering + '_ {
    |one, other| order(&list[*one].cursor, &list[*other].cursor)
}
