//! Many cursors as one, forward: for merges.
//! ```text
//! newer run   b9      d8
//! older run   a3  b4  d2      ->   a3  b9  b4  d8  d2
//! ```
//! Invariant: entries come in the order of entries; no two cursors have the same entry.

use std::cmp::Ordering;

use crate::cursor::Cursor;
use crate::entry::Entry;
use crate::error::Result;

/// The entries of several cursors in one order.
pub(crate) struct MergeCursor {
    cursors: Vec<Box<dyn Cursor + Send>>,
    /// Places in `cursors` of those that are at an entry, as a binary heap: the least on top.
    heap: Vec<usize>,
}

impl MergeCursor {
    pub(crate) fn new(cursors: Vec<Box<dyn Cursor + Send>>) -> Self {
        MergeCursor { cursors, heap: Vec::new() }
    }

    /// To the first entry of all.
    pub(crate) fn seek_first(&mut self) -> Result<()> {
        self.heap.clear();
        for place in 0..self.cursors.len() {
            self.cursors[place].seek_first()?;
            if self.cursors[place].entry().is_some() {
                self.heap.push(place);
            }
        }
        (0..self.heap.len() / 2).rev().for_each(|place| self.sift_down(place));
        Ok(())
    }

    /// To the next entry. Requires: at an entry.
    pub(crate) fn next(&mut self) -> Result<()> {
        let top = self.heap[0];
        self.cursors[top].next()?;
        if self.cursors[top].entry().is_none() {
            self.heap.swap_remove(0);
        }
        self.sift_down(0);
        Ok(())
    }

    /// The entry. None: past the end.
    pub(crate) fn entry(&self) -> Option<Entry<'_>> {
        self.cursors[*self.heap.first()?].entry()
    }

    fn before(&self, one: usize, other: usize) -> bool {
        let entry = |place: usize| {
            self.cursors[self.heap[place]].entry().expect("cursors in the heap are at an entry")
        };
        entry(one).order(&entry(other)) == Ordering::Less
    }

    fn sift_down(&mut self, mut place: usize) {
        loop {
            let (left, right) = (2 * place + 1, 2 * place + 2);
            if left >= self.heap.len() {
                return;
            }
            let least =
                if right < self.heap.len() && self.before(right, left) { right } else { left };
            if !self.before(least, place) {
                return;
            }
            self.heap.swap(place, least);
            place = least;
        }
    }
}
