//! Merges sorted rows of many sources.
//! ```text
//! spill 0   a=1      c=1              oldest
//! spill 1       b=2  c=2
//! rows               c=3  d=3         newest     ->   a=1 b=2 c=3 d=3
//! ```
//! Invariant: sources are in the order of the input. So of rows with the same key, the newest
//! source has the last one. That row is returned, and the others are skipped.

use std::cmp::Ordering;

use super::rows::SortedRows;
use super::spill::SpillCursor;
use crate::entries::cursor_heap::CursorHeap;
use crate::entries::keys::key_head;
use crate::error::Result;

/// A source of sorted rows.
pub(super) enum Source {
    Spill(SpillCursor),
    Rows(SortedRows),
}

impl Source {
    fn next_row(&mut self) -> Result<bool> {
        match self {
            Source::Spill(spill) => spill.next_row(),
            Source::Rows(rows) => Ok(rows.next_row()),
        }
    }

    #[inline]
    fn row(&self) -> (&[u8], &[u8]) {
        match self {
            Source::Spill(spill) => spill.row(),
            Source::Rows(rows) => rows.row(),
        }
    }
}

struct Input {
    source: Source,
    /// Greater for later input.
    age: usize,
}

impl Input {
    fn order(one: &Input, other: &Input) -> Ordering {
        let keys = one.source.row().0.cmp(other.source.row().0);
        keys.then_with(|| other.age.cmp(&one.age))
    }

    /// Advances, and returns the head of the next key behind its first `prefix` bytes. `None`: the
    /// source is exhausted.
    fn move_on(&mut self, prefix: usize) -> Result<Option<u64>> {
        Ok(self.source.next_row()?.then(|| key_head(&self.source.row().0[prefix..])))
    }
}

/// The rows of all sources in key order, each key once.
pub(super) struct Merge {
    heap: CursorHeap<Box<Input>>,
    prefix: usize,
    /// Whether the top row was returned.
    was_given: bool,
    given_key: Vec<u8>,
    /// Rows that were returned or skipped.
    passed: u64,
}

impl Merge {
    /// Creates a merge of sources in the order of the input. Requires: all keys share their first
    /// `prefix` bytes.
    pub(super) fn new(sources: Vec<Source>, prefix: usize) -> Result<Merge> {
        let mut heap = CursorHeap::new(Ordering::Less);
        for (age, source) in sources.into_iter().enumerate() {
            let mut input = Box::new(Input { source, age });
            if let Some(head) = input.move_on(prefix)? {
                heap.push(head, input, |one, other| Input::order(one, other));
            }
        }
        Ok(Merge { heap, prefix, was_given: false, given_key: Vec::new(), passed: 0 })
    }

    /// Returns the next row. `None`: there are no more. After an error the merge is unusable.
    pub(super) fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        if std::mem::replace(&mut self.was_given, true) {
            self.pass_given()?;
        }
        Ok(self.heap.top().map(|input| input.source.row()))
    }

    /// The number of rows that were returned or skipped so far.
    pub(super) fn passed(&self) -> u64 {
        self.passed
    }

    /// Skips all rows with the key that was returned.
    fn pass_given(&mut self) -> Result<()> {
        let given_head = self.heap.top_head();
        let Some(input) = self.heap.top() else { return Ok(()) };
        input.source.row().0.clone_into(&mut self.given_key);
        self.pass_top()?;
        while let Some(input) = self.heap.top()
            && self.heap.top_head() == given_head
            && input.source.row().0 == self.given_key
        {
            self.pass_top()?;
        }
        Ok(())
    }

    /// Requires: the heap is not empty.
    fn pass_top(&mut self) -> Result<()> {
        let prefix = self.prefix;
        let head = self.heap.top_mut().expect("it is there").move_on(prefix)?;
        self.heap.settle_top(head, |one, other| Input::order(one, other));
        self.passed += 1;
        Ok(())
    }
}
