//! The switch and the slots under a model checker: what arc-swap guarantees, and no more.
//! ```text
//! values   [v0] [v1] [v2]       number 2     store: push v3, number := 3 (Release)
//!           under loom: all of them          pin:  number (Acquire) -> that value, perhaps stale
//! ```
//! Invariant: a reader is ordered after the writer of the value that it gets, and after nothing
//! else. The list's own lock is an ordinary one. The checker runs one thread at a time, so no
//! thread waits for this lock, and it orders nothing.

use std::collections::VecDeque;
use std::ops::Deref;

use super::{Arc, AtomicUsize, Ordering, Shared};

/// A value that is replaced as a whole.
struct SwapModel<V> {
    number: AtomicUsize,
    /// The values from number `oldest` on.
    values: std::sync::Mutex<Values<V>>,
}

struct Values<V> {
    oldest: usize,
    list: VecDeque<V>,
}

impl<V: Clone> SwapModel<V> {
    fn new(value: V) -> Self {
        let values = Values { oldest: 0, list: VecDeque::from([value]) };
        SwapModel { number: AtomicUsize::new(0), values: std::sync::Mutex::new(values) }
    }

    fn values(&self) -> std::sync::MutexGuard<'_, Values<V>> {
        self.values.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn get(&self) -> V {
        let number = self.number.load(Ordering::Acquire);
        let values = self.values();
        values.list[number - values.oldest].clone()
    }

    /// Requires: only one thread at a time changes the value. The store ensures that: each change
    /// has its lock.
    fn swap(&self, value: V) -> V {
        let number = self.number.load(Ordering::Acquire);
        let mut values = self.values();
        values.list.push_back(value);
        let newest = values.oldest + values.list.len() - 1;
        assert_eq!(newest, number + 1, "two threads have changed one value at once");
        let old = values.list[number - values.oldest].clone();
        drop(values);
        self.number.store(newest, Ordering::Release);
        // Under shuttle no thread gets a stale number, so an old value goes with its last reader.
        let mut values = self.values();
        let gone = if cfg!(loom) { 0 } else { newest - values.oldest };
        values.oldest += gone;
        let gone: Vec<V> = values.list.drain(..gone).collect();
        drop(values);
        drop(gone);
        old
    }
}

/// A slot for one shared allocation.
pub(crate) struct Slot<H>(SwapModel<Option<Shared<H>>>);

impl<H> Slot<H> {
    pub(crate) fn empty() -> Self {
        Slot(SwapModel::new(None))
    }

    /// Returns a handle of its content.
    pub(crate) fn hold(&self) -> Option<Shared<H>> {
        self.0.get()
    }

    /// A prefetch changes nothing that a model could observe.
    pub(crate) fn prefetch(&self, _lines: usize) {}

    /// Whether the slot is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.get().is_none()
    }

    /// Replaces the content. Holders keep the old content alive.
    pub(crate) fn replace(&self, new: Option<Shared<H>>) -> Option<Shared<H>> {
        self.0.swap(new)
    }
}

/// A shared value that is replaced as a whole.
pub(crate) struct Switch<T>(SwapModel<Arc<T>>);

/// A pinned value.
pub(crate) struct Pinned<T>(Arc<T>);

impl<T> Deref for Pinned<T> {
    type Target = Arc<T>;

    fn deref(&self) -> &Arc<T> {
        &self.0
    }
}

impl<T> Switch<T> {
    pub(crate) fn new(value: Arc<T>) -> Self {
        Switch(SwapModel::new(value))
    }

    /// Returns the present value, for a short look.
    pub(crate) fn pin(&self) -> Pinned<T> {
        Pinned(self.0.get())
    }

    /// Returns a handle of the present value.
    pub(crate) fn hold(&self) -> Arc<T> {
        self.0.get()
    }

    /// Replaces the value.
    pub(crate) fn store(&self, value: Arc<T>) {
        self.0.swap(value);
    }
}

/// Stands for plain memory. Loom fails if a read of it is not ordered after its write.
#[derive(Default)]
pub(crate) struct Witness(#[cfg(loom)] loom::cell::UnsafeCell<()>);

impl Witness {
    pub(crate) fn new() -> Self {
        Witness::default()
    }

    /// Marks a write of the memory.
    pub(crate) fn written(&self) {
        #[cfg(loom)]
        self.0.with_mut(|_| ());
    }

    /// Marks a read of the memory.
    pub(crate) fn read(&self) {
        #[cfg(loom)]
        self.0.with(|_| ());
    }
}
