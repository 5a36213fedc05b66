//! A heap of cursors that are merged. The cursor with the next entry is on top.
//! ```text
//! heap      (head of its key, cursor)       the next one on top
//! ties      equal heads: the cursors' entries are compared
//! ```
//! A key's head is its first eight bytes as a number. It tells most keys apart without a look at
//! the cursors. Invariant: every cursor here is at an entry, and lies beside the head of that
//! entry's key. Only the top cursor moves, and `settle_top` restores the order before the heap is
//! used again.

use std::cmp::Ordering;

use crate::cost;
use crate::entries::cursor::Cursor;
use crate::entries::keys::key_head;

/// A cursor of any type.
pub(crate) type AnyCursor = Box<dyn Cursor + Send>;

/// A heap of items that have a cursor.
pub(crate) struct CursorHeap<T> {
    /// `Less`: the least entry is on top. `Greater`: the greatest one.
    next: Ordering,
    /// XOR mask of heads, which makes the top head the least one: 0, or all bits.
    flip: u64,
    heap: Vec<(u64, T)>,
}

/// Compares the entries that two cursors are at.
pub(crate) fn order<C: Cursor + ?Sized>(one: &C, other: &C) -> Ordering {
    match (one.entry(), other.entry()) {
        (Some(one), Some(other)) => one.order(&other),
        _ => Ordering::Equal,
    }
}

/// Returns the head of the key that a cursor is at. `None`: it is past an end.
#[inline]
pub(crate) fn head<C: Cursor + ?Sized>(cursor: &C) -> Option<u64> {
    cursor.entry().map(|entry| key_head(entry.key))
}

impl<T> CursorHeap<T> {
    pub(crate) fn new(next: Ordering) -> Self {
        Self::with_capacity(next, 0)
    }

    /// Creates a heap with room for `most` items.
    pub(crate) fn with_capacity(next: Ordering, most: usize) -> Self {
        let flip = if next == Ordering::Less { 0 } else { u64::MAX };
        CursorHeap { next, flip, heap: Vec::with_capacity(most) }
    }

    /// Adds an item whose key has this head. `ties` compares entries by their order, here and
    /// below.
    pub(crate) fn push(&mut self, head: u64, item: T, ties: impl Fn(&T, &T) -> Ordering) {
        let mut place = self.heap.len();
        self.heap.push((head ^ self.flip, item));
        while place > 0 && self.is_before(place, (place - 1) / 2, &ties) {
            self.heap.swap(place, (place - 1) / 2);
            place = (place - 1) / 2;
        }
    }

    /// The item with the next entry.
    #[inline]
    pub(crate) fn top(&self) -> Option<&T> {
        self.heap.first().map(|(_, item)| item)
    }

    /// The head of the top item's key.
    #[inline]
    pub(crate) fn top_head(&self) -> Option<u64> {
        self.heap.first().map(|(head, _)| head ^ self.flip)
    }

    #[inline]
    pub(crate) fn top_mut(&mut self) -> Option<&mut T> {
        self.heap.first_mut().map(|(_, item)| item)
    }

    /// The children of the top item. One of them has the entry that follows the top one's.
    pub(crate) fn after_top(&self) -> impl Iterator<Item = &T> {
        self.heap.iter().skip(1).take(2).map(|(_, item)| item)
    }

    /// Restores the order after the top item has moved to a key with this head. If `head` is
    /// `None`, the item is past its end: it is removed and returned. Requires: the heap is not
    /// empty.
    #[inline]
    pub(crate) fn settle_top(
        &mut self,
        head: Option<u64>,
        ties: impl Fn(&T, &T) -> Ordering,
    ) -> Option<T> {
        let ended = match head {
            Some(head) => {
                self.heap[0].0 = head ^ self.flip;
                None
            }
            None => Some(self.heap.swap_remove(0).1),
        };
        let (mut place, mut child) = (0, 1);
        while child < self.heap.len() {
            let has_sibling = child + 1 < self.heap.len();
            // An addition, not a branch: which child comes next is unpredictable.
            child += usize::from(has_sibling && self.is_before(child + 1, child, &ties));
            if !self.is_before(child, place, &ties) {
                break;
            }
            self.heap.swap(place, child);
            (place, child) = (child, 2 * child + 1);
        }
        ended
    }

    #[inline]
    fn is_before(&self, one: usize, other: usize, ties: impl Fn(&T, &T) -> Ordering) -> bool {
        cost::step();
        let ((one_head, one), (other_head, other)) = (&self.heap[one], &self.heap[other]);
        if one_head == other_head {
            return ties(one, other) == self.next;
        }
        one_head < other_head
    }
}
