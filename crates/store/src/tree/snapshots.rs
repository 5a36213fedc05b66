//! The sequence numbers that readers use. Merges must keep what these readers see.
//! ```text
//! snapshot, scan   register(): take the visible number and record it  } one lock
//! merge            copy(): the recorded numbers and the visible one   }
//! transaction      register_to_commit(): the commit will ask for newer entries. Replaced parts of
//!                  filters that tell so are kept until all transactions that began before the
//!                  replacement have ended.
//! ```
//! Invariant (ordering rule 2): a number is recorded in the same step in which it is taken. So a
//! merge either sees the recorded number, or uses a visible number that is not larger.

use std::collections::BTreeMap;

use trommel_filters::Part;

use crate::entries::entry::Sequence;
use crate::storage::life::Life;
use crate::sync::{Arc, AtomicU64, Mutex, Ordering, lock};

/// The registered sequence numbers, and the newest visible one.
pub(crate) struct Snapshots {
    visible: AtomicU64,
    noted: Mutex<Noted>,
    life: Arc<Life>,
}

#[derive(Default)]
struct Noted {
    /// Each number with its count.
    registered: BTreeMap<Sequence, usize>,
    /// The numbers of transactions among these.
    committing: BTreeMap<Sequence, usize>,
    /// Replaced parts, each with the number that was visible at the replacement.
    kept: Vec<(Sequence, Arc<Part>)>,
}

impl Noted {
    fn note(&mut self, sequence: Sequence, commits: bool) {
        *self.registered.entry(sequence).or_default() += 1;
        if commits {
            *self.committing.entry(sequence).or_default() += 1;
        }
    }

    /// Removes a number. Returns the parts that nobody needs any more.
    fn forget(&mut self, sequence: Sequence, commits: bool) -> Vec<(Sequence, Arc<Part>)> {
        let forget = |numbers: &mut BTreeMap<Sequence, usize>| {
            let Some(count) = numbers.get_mut(&sequence) else { return };
            *count -= 1;
            if *count == 0 {
                numbers.remove(&sequence);
            }
        };
        forget(&mut self.registered);
        if !commits {
            return Vec::new();
        }
        forget(&mut self.committing);
        let oldest = self.committing.keys().next().copied();
        // The parts are in the order in which they were replaced.
        let needed = |(at, _): &(Sequence, Arc<Part>)| oldest.is_some_and(|oldest| oldest < *at);
        let free = self.kept.iter().position(needed).unwrap_or(self.kept.len());
        self.kept.drain(..free).collect()
    }
}

impl Snapshots {
    pub(crate) fn new(visible: Sequence, life: Arc<Life>) -> Self {
        Snapshots { visible: AtomicU64::new(visible.0), noted: Mutex::default(), life }
    }

    /// The newest sequence number that reads may see.
    pub(crate) fn visible(&self) -> Sequence {
        Sequence(self.visible.load(Ordering::Acquire))
    }

    /// Makes all writes up to `sequence` visible. Requires: they are all in a memtable.
    pub(crate) fn publish(&self, sequence: Sequence) {
        self.visible.store(sequence.0, Ordering::Release);
    }

    /// Takes the visible number and records it until the value is dropped. In a store that is not
    /// open it is not recorded, since no reader can use it.
    pub(crate) fn register(self: &Arc<Self>) -> Registered {
        self.register_as(false)
    }

    /// Like [`register`](Snapshots::register), for a transaction, which will ask for newer entries.
    pub(crate) fn register_to_commit(self: &Arc<Self>) -> Registered {
        self.register_as(true)
    }

    fn register_as(self: &Arc<Self>, commits: bool) -> Registered {
        if self.life.check().is_err() {
            return Registered { snapshots: None, sequence: self.visible(), commits };
        }
        let mut noted = lock(&self.noted);
        let sequence = self.visible();
        noted.note(sequence, commits);
        Registered { snapshots: Some(Arc::clone(self)), sequence, commits }
    }

    /// Returns the numbers of transactions, ascending.
    pub(crate) fn committing(&self) -> Vec<Sequence> {
        lock(&self.noted).committing.keys().copied().collect()
    }

    /// Keeps a filter part that is being replaced while a transaction that began before is open.
    /// False: no transaction needs it, or kept parts would exceed `most` bytes. Requires: the part
    /// has everything that was published.
    pub(crate) fn keep_for_commits(&self, part: &Arc<Part>, most: u64) -> bool {
        let mut noted = lock(&self.noted);
        let now = self.visible();
        let is_asked = noted.committing.keys().next().is_some_and(|oldest| *oldest < now);
        let bytes = bytes_of(&noted.kept) + part_bytes(part);
        let keeps = is_asked && bytes <= most;
        if keeps {
            noted.kept.push((now, Arc::clone(part)));
        }
        keeps
    }

    /// Returns the bytes of all kept parts.
    pub(crate) fn kept_bytes(&self) -> u64 {
        bytes_of(&lock(&self.noted).kept)
    }

    /// Returns every number that a merge must respect, ascending. The visible number is the last.
    pub(crate) fn copy(&self) -> Vec<Sequence> {
        let noted = lock(&self.noted);
        let mut all: Vec<_> = noted.registered.keys().copied().collect();
        let visible = self.visible();
        if all.last() != Some(&visible) {
            all.push(visible);
        }
        all
    }

    /// Returns the oldest recorded number, if there is one.
    pub(crate) fn oldest(&self) -> Option<Sequence> {
        lock(&self.noted).registered.keys().next().copied()
    }
}

/// A sequence number that merges respect while this value lives.
pub(crate) struct Registered {
    /// None: the number was taken while the store was not open, or by a follower.
    snapshots: Option<Arc<Snapshots>>,
    sequence: Sequence,
    commits: bool,
}

impl Registered {
    /// Returns a number in a store that another process writes. This process drops nothing that its
    /// reader needs.
    pub(crate) fn alone(sequence: Sequence) -> Self {
        Registered { snapshots: None, sequence, commits: false }
    }

    pub(crate) fn sequence(&self) -> Sequence {
        self.sequence
    }
}

impl Clone for Registered {
    fn clone(&self) -> Self {
        let snapshots = self.snapshots.as_ref().filter(|snapshots| !snapshots.life.is_forked());
        if let Some(snapshots) = snapshots {
            lock(&snapshots.noted).note(self.sequence, self.commits);
        }
        let (sequence, commits) = (self.sequence, self.commits);
        Registered { snapshots: snapshots.cloned(), sequence, commits }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        let Some(snapshots) = &self.snapshots else { return };
        // In a forked child, the lock may be held for ever.
        if snapshots.life.is_forked() {
            return;
        }
        let free = lock(&snapshots.noted).forget(self.sequence, self.commits);
        // Outside of the lock.
        drop(free);
    }
}

fn part_bytes(part: &Part) -> u64 {
    let size = part.size();
    size.base_bytes + size.overlay_bytes
}

fn bytes_of(kept: &[(Sequence, Arc<Part>)]) -> u64 {
    kept.iter().map(|(_, part)| part_bytes(part)).sum()
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
