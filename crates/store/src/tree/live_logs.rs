//! The logs with entries that are in no table yet.
//! ```text
//! log 7       log 8       log 9, the newest
//! [a a a b a  a a a       b b c]       entries of the trees a, b, c
//!  ^     ^                    ^
//!  first of a's memtable, of b's, of c's      a is flushed: b needs 7 and what follows
//! ```
//! Invariants: a memtable needs the log that has its first entry, and all later ones. The newest
//! log is needed, whatever it has.

use std::collections::BTreeMap;

use crate::sync::{AtomicU64, Mutex, Ordering, lock};

/// Which memtables need which logs.
#[derive(Default)]
pub(crate) struct LiveLogs {
    state: Mutex<State>,
    /// Bytes of the newest log that count.
    newest_bytes: AtomicU64,
}

#[derive(Default)]
struct State {
    newest: u64,
    /// Bytes of those before it.
    older: BTreeMap<u64, u64>,
    /// How many memtables begin in a log.
    memtables: BTreeMap<u64, usize>,
}

impl LiveLogs {
    /// A log was made, and takes what is written from now on. Logs are made in the order of their
    /// numbers.
    pub(crate) fn begin_log(&self, number: u64, bytes: u64) {
        let mut state = lock(&self.state);
        let before = self.newest_bytes.swap(bytes, Ordering::Relaxed);
        let older = std::mem::replace(&mut state.newest, number);
        if older > 0 && older != number {
            state.older.insert(older, before);
        }
    }

    /// The log that takes what is written.
    pub(crate) fn newest(&self) -> u64 {
        lock(&self.state).newest
    }

    /// The newest log has so many bytes.
    #[inline]
    pub(crate) fn note_bytes(&self, bytes: u64) {
        self.newest_bytes.store(bytes, Ordering::Relaxed);
    }

    /// A memtable has its first entry in this log.
    pub(crate) fn add_memtable(&self, first: u64) {
        *lock(&self.state).memtables.entry(first).or_default() += 1;
    }

    /// A memtable gets its first entry, which the newest log has: its number.
    pub(crate) fn begin_memtable(&self) -> u64 {
        let mut state = lock(&self.state);
        let newest = state.newest;
        *state.memtables.entry(newest).or_default() += 1;
        newest
    }

    /// A memtable that began in this log needs none any more.
    pub(crate) fn end_memtable(&self, first: u64) {
        let mut state = lock(&self.state);
        if let Some(count) = state.memtables.get_mut(&first) {
            *count -= 1;
            if *count == 0 {
                state.memtables.remove(&first);
            }
        }
    }

    /// The oldest log that is needed, when a memtable that began in `first` is in tables.
    pub(crate) fn live_without(&self, first: Option<u64>) -> u64 {
        let state = lock(&self.state);
        let needed = |(log, count): (&u64, &usize)| {
            (*count > usize::from(Some(*log) == first)).then_some(*log)
        };
        state.memtables.iter().find_map(needed).unwrap_or(state.newest)
    }

    /// Logs below this one are gone, or will be.
    pub(crate) fn forget_below(&self, live: u64) {
        let mut state = lock(&self.state);
        state.older = state.older.split_off(&live);
    }

    /// How many logs there are, and their bytes.
    pub(crate) fn sizes(&self) -> (u64, u64) {
        let state = lock(&self.state);
        let newest = self.newest_bytes.load(Ordering::Relaxed);
        let all = || state.older.values().copied().chain([newest]).filter(|&bytes| bytes > 0);
        (all().count() as u64, all().sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_needed_as_long_as_a_memtable_begins_in_it() {
        let logs = LiveLogs::default();
        logs.begin_log(7, 100);
        let (one, other) = (logs.begin_memtable(), logs.begin_memtable());
        logs.begin_log(9, 10);
        let third = logs.begin_memtable();
        assert_eq!((one, other, third), (7, 7, 9));
        assert_eq!(logs.live_without(Some(7)), 7, "there are two");
        logs.end_memtable(7);
        assert_eq!((logs.live_without(None), logs.live_without(Some(7))), (7, 9));
        logs.end_memtable(7);
        logs.begin_log(12, 20);
        assert_eq!((logs.live_without(None), logs.live_without(Some(9))), (9, 12));
        logs.note_bytes(50);
        assert_eq!(logs.sizes(), (3, 160));
        logs.forget_below(9);
        assert_eq!(logs.sizes(), (2, 60));
    }
}
