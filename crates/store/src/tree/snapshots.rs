//! Sequence numbers that are still read at. Merges must keep what they see.
//! ```text
//! snapshot, scan   register(): take the visible number and note it   } one lock
//! merge            copy(): the noted numbers and the visible one     }
//! ```
//! Invariant (ordering rule 2): a number is noted in the step in which it is taken. So a merge
//! either sees it noted, or counts a visible number that is not larger.

use std::collections::BTreeMap;

use crate::entries::entry::Sequence;
use crate::storage::life::Life;
use crate::sync::{Arc, AtomicU64, Mutex, Ordering, lock};

/// The registered sequence numbers, and the newest visible one.
pub(crate) struct Snapshots {
    visible: AtomicU64,
    registered: Mutex<BTreeMap<Sequence, usize>>,
    life: Arc<Life>,
}

impl Snapshots {
    pub(crate) fn new(visible: Sequence, life: Arc<Life>) -> Self {
        Snapshots { visible: AtomicU64::new(visible.0), registered: Mutex::default(), life }
    }

    /// The newest sequence number that reads may see.
    pub(crate) fn visible(&self) -> Sequence {
        Sequence(self.visible.load(Ordering::Acquire))
    }

    /// Makes all writes up to `sequence` visible. Requires: they are all in a memtable.
    pub(crate) fn publish(&self, sequence: Sequence) {
        self.visible.store(sequence.0, Ordering::Release);
    }

    /// Takes the visible number and notes it until the value is dropped. In a store that is not
    /// open it is not noted: no reader can use it.
    pub(crate) fn register(self: &Arc<Self>) -> Registered {
        if self.life.check().is_err() {
            return Registered { snapshots: None, sequence: self.visible() };
        }
        let mut registered = lock(&self.registered);
        let sequence = self.visible();
        *registered.entry(sequence).or_default() += 1;
        Registered { snapshots: Some(Arc::clone(self)), sequence }
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
    /// None: it was taken when the store was not open.
    snapshots: Option<Arc<Snapshots>>,
    sequence: Sequence,
}

impl Registered {
    pub(crate) fn sequence(&self) -> Sequence {
        self.sequence
    }
}

impl Clone for Registered {
    fn clone(&self) -> Self {
        let snapshots = self.snapshots.as_ref().filter(|snapshots| !snapshots.life.is_forked());
        if let Some(snapshots) = snapshots {
            *lock(&snapshots.registered).entry(self.sequence).or_default() += 1;
        }
        Registered { snapshots: snapshots.cloned(), sequence: self.sequence }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        let Some(snapshots) = &self.snapshots else { return };
        // In a child the lock may be held for ever.
        if snapshots.life.is_forked() {
            return;
        }
        let mut registered = lock(&snapshots.registered);
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
        let snapshots =
            Arc::new(Snapshots::new(Sequence(5), Arc::new(Life::new("store".as_ref()))));
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
