//! The switch and the slots of an ordinary build, made with arc-swap.
//! ```text
//! pin() -> Guard    a debt in the thread's own memory: no shared counter
//! hold() -> Arc     the reference count goes up
//! ```
//! Invariant: neither takes a lock.

use std::mem::ManuallyDrop;

use arc_swap::{ArcSwap, ArcSwapAny, Guard};
use trommel_filters::prefetch_at;

use super::{Arc, Shared};

/// A slot for one shared allocation, as large as a pointer. Requires: it is empty when dropped, or
/// its memory is leaked. A table drops thousands of slots, and arc-swap needs half a microsecond to
/// see that a slot has no readers.
pub(crate) struct Slot<H>(ManuallyDrop<ArcSwapAny<Option<Shared<H>>>>);

const _: () = assert!(size_of::<Slot<u64>>() == size_of::<usize>());

impl<H> Slot<H> {
    pub(crate) fn empty() -> Self {
        Slot(ManuallyDrop::new(ArcSwapAny::new(None)))
    }

    /// Returns a handle of its content. Takes no lock.
    #[inline]
    pub(crate) fn hold(&self) -> Option<Shared<H>> {
        self.0.load_full()
    }

    /// Prefetches cache lines of the content, from the first on, without waiting for them.
    #[inline]
    pub(crate) fn prefetch(&self, lines: usize) {
        if let Some(shared) = &*self.0.load() {
            prefetch_at(shared.heap_ptr().cast(), lines);
        }
    }

    /// Whether the slot is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.load().is_none()
    }

    /// Replaces the content. Holders keep the old content alive.
    pub(crate) fn replace(&self, new: Option<Shared<H>>) -> Option<Shared<H>> {
        self.0.swap(new)
    }
}

/// A shared value that is replaced as a whole.
pub(crate) struct Switch<T>(ArcSwap<T>);

/// A pinned value.
pub(crate) type Pinned<T> = Guard<Arc<T>>;

impl<T> Switch<T> {
    pub(crate) fn new(value: Arc<T>) -> Self {
        Switch(ArcSwap::new(value))
    }

    /// Returns the present value, for a short look.
    pub(crate) fn pin(&self) -> Pinned<T> {
        self.0.load()
    }

    /// Returns a handle of the present value.
    pub(crate) fn hold(&self) -> Arc<T> {
        self.0.load_full()
    }

    /// Replaces the value.
    pub(crate) fn store(&self, value: Arc<T>) {
        self.0.store(value);
    }
}

/// Stands for plain memory in a model. Here it is nothing.
pub(crate) struct Witness;

impl Witness {
    #[inline(always)]
    pub(crate) fn new() -> Self {
        Witness
    }

    /// Marks a write of the memory.
    #[inline(always)]
    pub(crate) fn written(&self) {}

    /// Marks a read of the memory.
    #[inline(always)]
    pub(crate) fn read(&self) {}
}
