//! A bounded list of items that are held open.
//! ```text
//! push d    [a b c] -> [b c d]      the oldest gives way
//! place 4   [b c d] -> 1            a drawn number, counted round
//! ```
//! Invariant: it has at most `MAX` items.

use std::ops::{Deref, DerefMut};

/// At most `MAX` items, oldest first.
pub(crate) struct HeldList<T, const MAX: usize = 6>(Vec<T>);

impl<T, const MAX: usize> HeldList<T, MAX> {
    /// Adds an item. If the list is full, drops the oldest one.
    pub(crate) fn push(&mut self, item: T) {
        if self.0.len() == MAX {
            self.0.remove(0);
        }
        self.0.push(item);
    }

    /// Returns the place of a drawn number, modulo the length. None: the list is empty.
    pub(crate) fn place(&self, drawn: usize) -> Option<usize> {
        drawn.checked_rem(self.0.len())
    }

    /// Drops the item of a drawn number, if there is any.
    pub(crate) fn drop_one(&mut self, drawn: usize) {
        if let Some(place) = self.place(drawn) {
            self.0.remove(place);
        }
    }

    /// Takes an item out and puts the newest in its place.
    pub(crate) fn swap_remove(&mut self, place: usize) -> T {
        self.0.swap_remove(place)
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

impl<T, const MAX: usize> Default for HeldList<T, MAX> {
    fn default() -> Self {
        HeldList(Vec::new())
    }
}

impl<T, const MAX: usize> Deref for HeldList<T, MAX> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T, const MAX: usize> DerefMut for HeldList<T, MAX> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}
