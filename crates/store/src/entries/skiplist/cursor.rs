//! A cursor over the skip list, and values that keep the list alive.
//! ```text
//! seek, prev                a descent
//! next                      one link
//! next_newer, prev_newer    a descent by the numbers beside the links
//! ```
//! Invariant: whatever holds a pointer into a list also holds the list.

use std::ptr;

use super::{HEIGHT_MAX, Node, SkipList, prefetch};
use crate::cost;
use crate::entries::cursor::{Cursor, Reads};
use crate::entries::entry::{Entry, Sequence};
use crate::entries::value::Value;
use crate::error::Result;
use crate::sync::{Arc, Ordering as Memory};

/// Number of levels whose next nodes are prefetched.
const LEVELS_AHEAD: usize = if cfg!(any(loom, shuttle)) { 0 } else { 3 };

/// A value in a list, which it keeps alive.
#[derive(Clone)]
pub(crate) struct HeldBytes {
    /// Held only to keep the memory alive.
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

/// A position in a list, which it keeps alive: at an entry, or past either end.
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
    /// Creates a cursor past the end.
    pub(crate) fn new(list: Arc<SkipList>) -> Self {
        ListCursor { list, node: ptr::null_mut() }
    }
}

/// Sees what is added to the list later.
impl Cursor for ListCursor {
    fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.seek_version(key, Sequence::MAX)
    }

    fn seek_version(&mut self, key: &[u8], at: Sequence) -> Result<()> {
        (_, self.node) = self.list.around(key, at, 0, |_, _| {});
        Ok(())
    }

    fn seek_first(&mut self) -> Result<()> {
        self.node = self.list.link(ptr::null_mut(), 0).load(Memory::Acquire);
        Ok(())
    }

    fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        (self.node, _) = self.list.around(key, Sequence::MAX, 0, |_, _| {});
        Ok(())
    }

    fn seek_last(&mut self) -> Result<()> {
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
        Ok(())
    }

    fn next(&mut self) -> Result<()> {
        cost::step();
        if !self.node.is_null() {
            self.node = self.list.link(self.node, 0).load(Memory::Acquire);
            // A long walk waits for few nodes, because earlier steps prefetched them.
            let height = if self.node.is_null() { 0 } else { self.list.height_of(self.node) };
            for level in 0..height.min(LEVELS_AHEAD) {
                prefetch(self.list.link(self.node, level).load(Memory::Relaxed));
            }
        }
        Ok(())
    }

    fn prev(&mut self) -> Result<()> {
        if let Some(Entry { key, sequence, .. }) = self.list.entry_at(self.node) {
            (self.node, _) = self.list.around(key, sequence, 0, |_, _| {});
        }
        Ok(())
    }

    /// Also requires: no unmarked entry newer than `than` lies behind an entry that is not newer.
    fn next_newer(&mut self, than: Sequence) -> Result<()> {
        if !self.node.is_null() {
            self.node = self.list.newer_behind(self.node, than);
        }
        Ok(())
    }

    fn prev_newer(&mut self, than: Sequence) -> Result<()> {
        if !self.node.is_null() {
            self.node = self.list.newer_before(self.node, than);
        }
        Ok(())
    }

    fn entry(&self) -> Option<Entry<'_>> {
        self.list.entry_at(self.node)
    }

    fn value(&self) -> Value {
        let held = self.entry().map(|entry| HeldBytes::of(&self.list, entry.value));
        held.map(Value::in_memtable).unwrap_or_default()
    }

    fn reads(&mut self) -> Reads {
        Reads::default()
    }
}
