//! The switch and the slots under a model checker: what arc-swap promises, and no more.
//! ```text
//! values   [v0] [v1] [v2]       number 2     store: push v3, number := 3 (Release)
//!           under loom all of them           pin:  number (Acquire) -> that value, a stale one too
//! ```
//! Invariant: a reader is ordered after the writer of the value that it was given, and after
//! nothing else. The list's own lock is an ordinary one. The checker runs one thread at a time, so
//! no thread waits for it and it orders nothing.

use std::collections::VecDeque;
use std::ops::Deref;

use super::{Arc, AtomicUsize, Ordering, Shared};

/// One value that is replaced as a whole.
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

    /// Requires: one thread at a time changes the value. So it is in the store: each change has its
    /// lock.
    fn swap(&self, value: V) -> V {
        let number = self.number.load(Ordering::Acquire);
        let mut values = self.values();
        values.list.push_back(value);
        let newest = values.oldest + values.list.len() - 1;
        assert_eq!(newest, number + 1, "two threads have changed one value at once");
        let old = values.list[number - values.oldest].clone();
        drop(values);
        self.number.store(newest, Ordering::Release);
        // Under shuttle no thread is given a stale number: what is old goes when its last reader
        // lets go.
        let mut values = self.values();
        let gone = if cfg!(loom) { 0 } else { newest - values.oldest };
        values.oldest += gone;
        let gone: Vec<V> = values.list.drain(..gone).collect();
        drop(values);
        drop(gone);
        old
    }
}

/// A place for one shared piece of memory.
pub(crate) struct Slot<H>(SwapModel<Option<Shared<H>>>);

impl<H> Slot<H> {
    pub(crate) fn empty() -> Self {
        Slot(SwapModel::new(None))
    }

    /// What is in it, to keep.
    pub(crate) fn hold(&self) -> Option<Shared<H>> {
        self.0.get()
    }

    /// Asking for memory changes nothing that a model could see.
    pub(crate) fn ask_for(&self, _lines: usize) {}

    /// Whether nothing is in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.get().is_none()
    }

    /// Puts something else in it. What was there lives on with its holders.
    pub(crate) fn replace(&self, new: Option<Shared<H>>) -> Option<Shared<H>> {
        self.0.swap(new)
    }
}

/// One shared value that is replaced as a whole.
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

    /// The present value, for a short look.
    pub(crate) fn pin(&self) -> Pinned<T> {
        Pinned(self.0.get())
    }

    /// The present value, to keep.
    pub(crate) fn hold(&self) -> Arc<T> {
        self.0.get()
    }

    /// Puts a new value in place.
    pub(crate) fn store(&self, value: Arc<T>) {
        self.0.swap(value);
    }
}

/// Stands for plain memory: loom fails if a read of it is not ordered after its writing.
#[derive(Default)]
pub(crate) struct Witness(#[cfg(loom)] loom::cell::UnsafeCell<()>);

impl Witness {
    pub(crate) fn new() -> Self {
        Witness::default()
    }

    /// The memory was written.
    pub(crate) fn written(&self) {
        #[cfg(loom)]
        self.0.with_mut(|_| ());
    }

    /// The memory is read.
    pub(crate) fn read(&self) {
        #[cfg(loom)]
        self.0.with(|_| ());
    }
}
