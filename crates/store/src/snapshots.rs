//! Sequence numbers that someone still reads at. Merges must keep what they see.
//! ```text
//! snapshot, scan   register(): take the visible number and note it   } one lock
//! merge            copy(): the noted numbers and the visible one     }
//! ```
//! Invariant (ordering rule 2): a number is noted in the step in which it is taken, so a merge
//! either sees it noted, or counts a visible number that is not larger.

use std::collections::BTreeMap;

use crate::entry::Sequence;
use crate::sync::{Arc, AtomicU64, Mutex, Ordering, lock};

/// The registered sequence numbers, and the newest visible one.
#[derive(Default)]
pub(crate) struct Snapshots {
    visible: AtomicU64,
    registered: Mutex<BTreeMap<Sequence, usize>>,
}

impl Snapshots {
    pub(crate) fn new(visible: Sequence) -> Self {
        Snapshots { visible: AtomicU64::new(visible.0), registered: Mutex::default() }
    }

    /// The newest sequence number that reads may see.
    pub(crate) fn visible(&self) -> Sequence {
        Sequence(self.visible.load(Ordering::Acquire))
    }

    /// Makes all writes up to `sequence` visible. Requires: they are all in a memtable.
    pub(crate) fn publish(&self, sequence: Sequence) {
        self.visible.store(sequence.0, Ordering::Release);
    }

    /// Takes the visible number and notes it until the value is dropped.
    pub(crate) fn register(self: &Arc<Self>) -> Registered {
        let mut registered = lock(&self.registered);
        let sequence = self.visible();
        *registered.entry(sequence).or_default() += 1;
        Registered { snapshots: Arc::clone(self), sequence }
    }

    /// Every number that a merge must respect, ascending; the visible one is the last.
    pub(crate) fn copy(&self) -> Vec<Sequence> {
        let registered = lock(&self.registered);
        let mut all: Vec<_> = registered.keys().copied().collect();
        let visible = self.visible();
        if all.last() != Some(&visible) {
            all.push(visible);
        }
        all
    }

    /// The oldest registered number, if there is one.
    pub(crate) fn oldest(&self) -> Option<Sequence> {
        lock(&self.registered).keys().next().copied()
    }
}

/// A sequence number that merges respect while this value lives.
pub(crate) struct Registered {
    snapshots: Arc<Snapshots>,
    sequence: Sequence,
}

impl Registered {
    pub(crate) fn sequence(&self) -> Sequence {
        self.sequence
    }
}

impl Clone for Registered {
    fn clone(&self) -> Self {
        *lock(&self.snapshots.registered).entry(self.sequence).or_default() += 1;
        Registered { snapshots: Arc::clone(&self.snapshots), sequence: self.sequence }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        let mut registered = lock(&self.snapshots.registered);
        if let Some(count) = registered.get_mut(&self.sequence) {
            *count -= 1;
            if *count == 0 {
                registered.remove(&self.sequence);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registered_number_is_copied_until_it_is_dropped() {
        let snapshots = Arc::new(Snapshots::new(Sequence(5)));
        let old = snapshots.register();
        let twin = old.clone();
        snapshots.publish(Sequence(9));
        drop(old);
        assert_eq!(snapshots.copy(), [Sequence(5), Sequence(9)]);
        assert_eq!(snapshots.oldest(), Some(Sequence(5)));
        drop(twin);
        assert_eq!(snapshots.copy(), [Sequence(9)]);
    }
}
