//! The cursors of one direction of a scan as one.
//! ```text
//! sources   memtable, run, run, ...         in the order in which they were positioned
//! heap      (head of its key, source)       of those that have an entry: the next one on top
//! ```
//! A key's head, its first eight bytes as a number, tells most keys apart without looking at the
//! cursors. Invariant: heads are those of the keys that the sources are at; only the top one's
//! cursor moves, and it is put in order before anything else is asked.

use std::cmp::Ordering;
use std::path::PathBuf;

use crate::cost;
use crate::entries::cursor::Cursor;
use crate::entries::entry::{Entry, Sequence};
use crate::entries::keys::key_head;
use crate::error::Error;
use crate::files::run::Run;
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
    pub(crate) cursor: Box<dyn Cursor + Send>,
    /// None: a memtable's, or one of all runs.
    pub(crate) run: Option<Arc<Run>>,
    /// Whether it is one of all runs, which has but one entry of each key.
    pub(crate) is_view: bool,
    pub(crate) age: Age,
    /// Whether an entry of it was looked at.
    pub(crate) useful: bool,
}

/// A source that has an entry.
#[derive(Clone, Copy)]
struct Place {
    head: u64,
    source: usize,
}

/// The sources of one direction.
pub(crate) struct Sources {
    list: Vec<Source>,
    heap: Vec<Place>,
    direction: Direction,
}

impl Sources {
    pub(crate) fn new(direction: Direction) -> Self {
        Sources { list: Vec::new(), heap: Vec::new(), direction }
    }

    /// Adds a source whose cursor is positioned.
    pub(crate) fn add(&mut self, source: Source) {
        let head = source.cursor.entry().map(|entry| key_head(entry.key));
        self.list.push(source);
        if let Some(head) = head {
            self.heap.push(Place { head, source: self.list.len() - 1 });
            self.sift_up(self.heap.len() - 1);
        }
    }

    /// All that were added, whether they have an entry or not.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Source> {
        self.list.iter_mut()
    }

    /// The next entry in the scan's direction.
    #[inline]
    pub(crate) fn entry(&self) -> Option<Entry<'_>> {
        self.list[self.heap.first()?.source].cursor.entry()
    }

    /// The source that has it.
    #[inline]
    pub(crate) fn top(&mut self) -> Option<&mut Source> {
        Some(&mut self.list[self.heap.first()?.source])
    }

    /// Its number, in the order in which sources were added.
    pub(crate) fn top_number(&self) -> Option<usize> {
        Some(self.heap.first()?.source)
    }

    /// Whether the next entry is of `key`.
    #[inline]
    pub(crate) fn is_at(&self, key: &[u8]) -> bool {
        self.heap.first().is_some_and(|top| top.head == key_head(key))
            && self.entry().is_some_and(|entry| entry.key == key)
    }

    /// Whether the next entry is the last one of `key` in its block, and no other source is at one.
    /// Requires: there is a next entry, which is of `key`.
    pub(crate) fn ends_key_and_block(&self, key: &[u8]) -> bool {
        let cursor = |place: &Place| &self.list[place.source].cursor;
        let mut others = self.heap.iter().skip(1).take(2).map(cursor);
        self.heap.first().is_some_and(|top| cursor(top).ends_key_and_block())
            && !others.any(|other| other.entry().is_some_and(|entry| entry.key == key))
    }

    /// What is wrong if the next key does not come after the one before it. Past deleted ranges a
    /// scan seeks: it would come by such keys without end.
    #[cold]
    pub(crate) fn disorder(&self, before: &[u8], version: &Version) -> Error {
        let key = self.entry().map(|entry| entry.key).unwrap_or_default();
        let run = self.heap.first().and_then(|top| self.list[top.source].run.as_deref());
        // Memtables are in order; what goes through all runs is told by the first.
        let run = run.or_else(|| Some(&*version.runs.first()?.run));
        let path = run.map_or_else(PathBuf::new, |run| {
            run.find(key).map_or(run.path(), |found| found.table.path()).to_path_buf()
        });
        let (key, before) = (key.escape_ascii(), before.escape_ascii());
        Error::corrupt(path, 0, format!("keys that are out of order: {key} beside {before}"))
    }

    /// Puts the top source in order after its cursor has moved.
    pub(crate) fn settle_top(&mut self) {
        let source = self.heap[0].source;
        match self.list[source].cursor.entry() {
            Some(entry) => self.heap[0].head = key_head(entry.key),
            None => drop(self.heap.swap_remove(0)),
        }
        self.sift_down();
    }

    /// Whether the source at one place of the heap comes before the one at another.
    #[inline]
    fn before(&self, one: usize, other: usize) -> bool {
        cost::step();
        let (one, other) = (self.heap[one], self.heap[other]);
        let heads = one.head.cmp(&other.head);
        let order = if heads == Ordering::Equal { self.order(one, other) } else { heads };
        order
            == if self.direction == Direction::Forward { Ordering::Less } else { Ordering::Greater }
    }

    /// The order of the entries of two sources whose keys begin alike.
    fn order(&self, one: Place, other: Place) -> Ordering {
        let entry = |place: Place| self.list[place.source].cursor.entry();
        match (entry(one), entry(other)) {
            (Some(one), Some(other)) => one.order(&other),
            _ => Ordering::Equal,
        }
    }

    fn sift_up(&mut self, mut place: usize) {
        while place > 0 && self.before(place, (place - 1) / 2) {
            self.heap.swap(place, (place - 1) / 2);
            place = (place - 1) / 2;
        }
    }

    fn sift_down(&mut self) {
        let mut place = 0;
        loop {
            let children = (2 * place + 1..self.heap.len()).take(2);
            let least = children.reduce(|a, b| if self.before(b, a) { b } else { a });
            let Some(least) = least.filter(|&least| self.before(least, place)) else { return };
            self.heap.swap(place, least);
            place = least;
        }
    }
}
