//! A place in the skip list, and values that keep it alive.
//! ```text
//! seek, prev                a descent
//! next                      one link
//! next_newer, prev_newer    a descent by the numbers beside the links
//! ```
//! Invariant: whoever has a pointer into a list holds the list.

use std::ptr;

use super::{HEIGHT_MAX, Node, SkipList};
use crate::cost;
use crate::entries::entry::{Entry, Sequence};
use crate::sync::{Arc, Ordering as Memory};

/// A value in a list, which it keeps alive.
#[derive(Clone)]
pub(crate) struct HeldBytes {
    /// Held for its memory alone.
    _list: Arc<SkipList>,
    start: *const u8,
    len: usize,
}

// SAFETY: the bytes never change, and the list that owns them may be shared and sent.
unsafe impl Send for HeldBytes {}
// SAFETY: as above.
unsafe impl Sync for HeldBytes {}

impl HeldBytes {
    /// Requires: the value is one of the list's.
    pub(super) fn of(list: &Arc<SkipList>, value: &[u8]) -> Self {
        HeldBytes { _list: Arc::clone(list), start: value.as_ptr(), len: value.len() }
    }

    #[inline]
    pub(crate) fn as_slice(&self) -> &[u8] {
        // SAFETY: made from a value of a node of `list`, which is held and never changes.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }
}

/// A place in a list, which it keeps alive: at an entry, or past either end.
pub(crate) struct ListCursor {
    list: Arc<SkipList>,
    /// Null: past either end; else a node of `list`.
    node: *mut Node,
}

// SAFETY: the cursor only reads the list, which may be shared and sent.
unsafe impl Send for ListCursor {}
// SAFETY: as above.
unsafe impl Sync for ListCursor {}

impl ListCursor {
    /// Past the end.
    pub(crate) fn new(list: Arc<SkipList>) -> Self {
        ListCursor { list, node: ptr::null_mut() }
    }

    /// To the first entry at or after (key, at) in the order of entries.
    pub(crate) fn seek(&mut self, key: &[u8], at: Sequence) {
        (_, self.node) = self.list.around(key, at, |_, _| {});
    }

    /// To the last entry before (key, at) in the order of entries.
    pub(crate) fn seek_before(&mut self, key: &[u8], at: Sequence) {
        (self.node, _) = self.list.around(key, at, |_, _| {});
    }

    pub(crate) fn seek_first(&mut self) {
        self.node = self.list.link(ptr::null_mut(), 0).load(Memory::Acquire);
    }

    pub(crate) fn seek_last(&mut self) {
        let mut last = ptr::null_mut();
        for level in (0..HEIGHT_MAX).rev() {
            loop {
                let next = self.list.link(last, level).load(Memory::Acquire);
                if next.is_null() {
                    break;
                }
                last = next;
            }
        }
        self.node = last;
    }

    /// To the entry after. Past an end it stays.
    pub(crate) fn next(&mut self) {
        cost::step();
        if !self.node.is_null() {
            self.node = self.list.link(self.node, 0).load(Memory::Acquire);
        }
    }

    /// To the entry before. Past an end it stays.
    pub(crate) fn prev(&mut self) {
        if let Some(Entry { key, sequence, .. }) = self.list.entry_at(self.node) {
            (self.node, _) = self.list.around(key, sequence, |_, _| {});
        }
    }

    /// To the next entry that is newer than `than`. Requires: those that are and were not marked
    /// are behind no entry that is not.
    pub(crate) fn next_newer(&mut self, than: Sequence) {
        if !self.node.is_null() {
            self.node = self.list.newer_behind(self.node, than);
        }
    }

    /// To the last entry before this one that is newer than `than`. Requires: as above.
    pub(crate) fn prev_newer(&mut self, than: Sequence) {
        if !self.node.is_null() {
            self.node = self.list.newer_before(self.node, than);
        }
    }

    pub(crate) fn entry(&self) -> Option<Entry<'_>> {
        self.list.entry_at(self.node)
    }

    /// The entry's value. None: past either end.
    pub(crate) fn value(&self) -> Option<HeldBytes> {
        Some(HeldBytes::of(&self.list, self.entry()?.value))
    }
}
