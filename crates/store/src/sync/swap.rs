//! The switch and the slots of an ordinary build, made of arc-swap.
//! ```text
//! pin() -> Guard    a debt noted in the thread's own memory: no shared count
//! hold() -> Arc     the count goes up
//! ```
//! Invariant: neither takes a lock.

use std::mem::ManuallyDrop;

use arc_swap::{ArcSwap, ArcSwapAny, Guard};
use trommel_filters::prefetch_at;

use super::{Arc, Shared};

/// A place for one shared piece of memory. It takes the room of a pointer. Requires: it is empty
/// when it goes, or its memory is not given back. Thousands of slots go with a table, and arc-swap
/// takes half a microsecond to see that one has no readers.
pub(crate) struct Slot<H>(ManuallyDrop<ArcSwapAny<Option<Shared<H>>>>);

const _: () = assert!(size_of::<Slot<u64>>() == size_of::<usize>());

impl<H> Slot<H> {
    pub(crate) fn empty() -> Self {
        Slot(ManuallyDrop::new(ArcSwapAny::new(None)))
    }

    /// What is in it, to keep. Takes no lock.
    #[inline]
    pub(crate) fn hold(&self) -> Option<Shared<H>> {
        self.0.load_full()
    }

    /// Asks for some cache lines of what is in it, from the first on, without waiting for them.
    #[inline]
    pub(crate) fn ask_for(&self, lines: usize) {
        if let Some(shared) = &*self.0.load() {
            prefetch_at(shared.heap_ptr().cast(), lines);
        }
    }

    /// Whether nothing is in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.load().is_none()
    }

    /// Puts something else in it. What was there lives on with its holders.
    pub(crate) fn replace(&self, new: Option<Shared<H>>) -> Option<Shared<H>> {
        self.0.swap(new)
    }
}

/// One shared value that is replaced as a whole.
pub(crate) struct Switch<T>(ArcSwap<T>);

/// A pinned value.
pub(crate) type Pinned<T> = Guard<Arc<T>>;

impl<T> Switch<T> {
    pub(crate) fn new(value: Arc<T>) -> Self {
        Switch(ArcSwap::new(value))
    }

    /// The present value, for a short look.
    pub(crate) fn pin(&self) -> Pinned<T> {
        self.0.load()
    }

    /// The present value, to keep.
    pub(crate) fn hold(&self) -> Arc<T> {
        self.0.load_full()
    }

    /// Puts a new value in place.
    pub(crate) fn store(&self, value: Arc<T>) {
        self.0.store(value);
    }
}

/// Stands for plain memory in a model; here it is nothing.
pub(crate) struct Witness;

impl Witness {
    #[inline(always)]
    pub(crate) fn new() -> Self {
        Witness
    }

    /// The memory was written.
    #[inline(always)]
    pub(crate) fn written(&self) {}

    /// The memory is read.
    #[inline(always)]
    pub(crate) fn read(&self) {}
}
