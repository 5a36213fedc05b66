//! Cursors that are merged: which of them is at the next entry.
//! ```text
//! heap      (head of its key, cursor)       the next one on top
//! ties      heads are alike: the cursors' entries are compared
//! ```
//! A key's head, its first eight bytes as a number, tells most keys apart without looking at the
//! cursors. Invariant: every cursor here is at an entry, and beside the head of that entry's key.
//! Only the top one moves, and it is put in order before the heap is used again.

use std::cmp::Ordering;

use crate::cost;
use crate::entries::cursor::Cursor;
use crate::entries::keys::key_head;

/// A cursor over anything.
pub(crate) type AnyCursor = Box<dyn Cursor + Send>;

/// A heap of what has a cursor.
pub(crate) struct CursorHeap<T> {
    /// Less: the least entry is on top. Greater: the greatest one.
    next: Ordering,
    heap: Vec<(u64, T)>,
}

/// The order of the entries that two cursors are at.
pub(crate) fn order(one: &AnyCursor, other: &AnyCursor) -> Ordering {
    match (one.entry(), other.entry()) {
        (Some(one), Some(other)) => one.order(&other),
        _ => Ordering::Equal,
    }
}

/// The head of the key that a cursor is at.
#[inline]
pub(crate) fn head(cursor: &AnyCursor) -> Option<u64> {
    cursor.entry().map(|entry| key_head(entry.key))
}

impl<T> CursorHeap<T> {
    pub(crate) fn new(next: Ordering) -> Self {
        CursorHeap { next, heap: Vec::new() }
    }

    /// Adds what is at a key with this head. `ties`, here and below: the order of entries.
    pub(crate) fn push(&mut self, head: u64, item: T, ties: impl Fn(&T, &T) -> Ordering) {
        let mut place = self.heap.len();
        self.heap.push((head, item));
        while place > 0 && self.is_before(place, (place - 1) / 2, &ties) {
            self.heap.swap(place, (place - 1) / 2);
            place = (place - 1) / 2;
        }
    }

    /// What is at the next entry, and the head of its key.
    #[inline]
    pub(crate) fn top(&self) -> Option<&(u64, T)> {
        self.heap.first()
    }

    #[inline]
    pub(crate) fn top_mut(&mut self) -> Option<&mut T> {
        self.heap.first_mut().map(|(_, item)| item)
    }

    /// Those of which one has the entry after the top one's.
    pub(crate) fn after_top(&self) -> impl Iterator<Item = &T> {
        self.heap.iter().skip(1).take(2).map(|(_, item)| item)
    }

    /// Puts the top one in order, which has moved to a key with this head; None: to its end, and it
    /// is given back. Requires: there is one.
    #[inline]
    pub(crate) fn settle_top(
        &mut self,
        head: Option<u64>,
        ties: impl Fn(&T, &T) -> Ordering,
    ) -> Option<T> {
        let ended = match head {
            Some(head) => {
                self.heap[0].0 = head;
                None
            }
            None => Some(self.heap.swap_remove(0).1),
        };
        let mut place = 0;
        loop {
            let children = 2 * place + 1..self.heap.len().min(2 * place + 3);
            let next = children.reduce(|a, b| if self.is_before(b, a, &ties) { b } else { a });
            let Some(next) = next.filter(|next| self.is_before(*next, place, &ties)) else {
                return ended;
            };
            self.heap.swap(place, next);
            place = next;
        }
    }

    #[inline]
    fn is_before(&self, one: usize, other: usize, ties: impl Fn(&T, &T) -> Ordering) -> bool {
        cost::step();
        let ((one_head, one), (other_head, other)) = (&self.heap[one], &self.heap[other]);
        one_head.cmp(other_head).then_with(|| ties(one, other)) == self.next
    }
}
