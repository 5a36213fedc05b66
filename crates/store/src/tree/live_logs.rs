//! The logs with entries that are in no table yet.
//! ```text
//! log 7       log 8       log 9, the newest
//! [a a a b a  a a a       b b c]       entries of the trees a, b, c
//!  ^     ^                    ^
//!  first of a's memtable, of b's, of c's      a is flushed: b needs 7 and what follows
//! ```
//! Logs that no memtable needs are kept for change feeds, as many bytes as the options say.
//!
//! Invariants: a memtable needs the log that has its first entry, and all later ones. The newest
//! log is needed, whatever it has. Who asks looks at memtables with entries alone, and not at all
//! key spaces.

use std::collections::{BTreeMap, BTreeSet};

use crate::cost::step;
use crate::entries::keyspace_id::KeyspaceId;
use crate::files::unsynced::DurableBytes;
use crate::files::wal::Predecessor;
use crate::sync::{AtomicU64, Mutex, Ordering, lock};
use crate::tree::log_chain::LogChain;

/// What a kept log takes on disk at least.
const KEPT_BYTES_MIN: u64 = 4096;

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
    /// Those of them that take writes: where they begin, and of which key space they are.
    active: BTreeSet<(u64, KeyspaceId)>,
    /// Those that are kept for change feeds.
    kept: KeptLogs,
    /// Those that change feeds can read.
    chain: LogChain,
}

/// Logs that nothing but change feeds can need: bytes of each.
#[derive(Default)]
pub(crate) struct KeptLogs {
    logs: BTreeMap<u64, u64>,
    /// In all. Files may claim any length: sixty-four bits may be too few for their sum.
    bytes: u128,
}

impl KeptLogs {
    /// Adds a log of so many bytes, if all are within `most` then. False: they are not.
    pub(crate) fn add_within(&mut self, number: u64, bytes: u64, most: u64) -> bool {
        let bytes = bytes.max(KEPT_BYTES_MIN);
        let fits = self.bytes + u128::from(bytes) <= u128::from(most);
        if fits {
            self.add(number, bytes);
        }
        fits
    }

    fn add(&mut self, number: u64, bytes: u64) {
        let bytes = bytes.max(KEPT_BYTES_MIN);
        let before = self.logs.insert(number, bytes).unwrap_or(0);
        self.bytes = self.bytes + u128::from(bytes) - u128::from(before);
    }

    fn oldest(&self) -> Option<u64> {
        self.logs.first_key_value().map(|(number, _)| *number)
    }

    fn drop_oldest(&mut self) {
        let bytes = self.logs.pop_first().map_or(0, |(_, bytes)| bytes);
        self.bytes -= u128::from(bytes);
    }

    /// Their numbers, ascending.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u64> + '_ {
        self.logs.keys().copied()
    }
}

impl State {
    fn add(&mut self, first: u64) {
        *self.memtables.entry(first).or_default() += 1;
    }

    fn end(&mut self, first: u64) {
        if let Some(count) = self.memtables.get_mut(&first) {
            *count -= 1;
            if *count == 0 {
                self.memtables.remove(&first);
            }
        }
    }
}

impl LiveLogs {
    /// A log was made, and takes what is written from now on. Logs are made in the order of their
    /// numbers.
    pub(crate) fn begin_log(&self, number: u64, bytes: u64) {
        self.begin_in(&mut lock(&self.state), number, bytes);
    }

    /// As `begin_log`; change feeds can read it, too, from the same moment on: what is known of the
    /// log before it, and how much of this one is durable.
    pub(crate) fn follow_log(
        &self,
        number: u64,
        bytes: u64,
        (before, durable): (Predecessor, DurableBytes),
    ) {
        let mut state = lock(&self.state);
        self.begin_in(&mut state, number, bytes);
        state.chain.follow(number, before, durable);
    }

    fn begin_in(&self, state: &mut State, number: u64, bytes: u64) {
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

    /// A sealed memtable has its first entry in this log.
    pub(crate) fn add_sealed(&self, first: u64) {
        lock(&self.state).add(first);
    }

    /// The active memtable of a key space has its first entry in this log.
    pub(crate) fn add_active(&self, keyspace: KeyspaceId, first: u64) {
        let mut state = lock(&self.state);
        state.add(first);
        state.active.insert((first, keyspace));
    }

    /// The active memtable of a key space gets its first entry, which the newest log has: its
    /// number.
    pub(crate) fn begin_memtable(&self, keyspace: KeyspaceId) -> u64 {
        let mut state = lock(&self.state);
        let newest = state.newest;
        state.add(newest);
        state.active.insert((newest, keyspace));
        newest
    }

    /// The newest log has all that is in the active memtable of a key space, which began in
    /// `first`: the number of the newest.
    pub(crate) fn move_to_newest(&self, keyspace: KeyspaceId, first: u64) -> u64 {
        let newest = self.begin_memtable(keyspace);
        let mut state = lock(&self.state);
        if first != newest {
            state.active.remove(&(first, keyspace));
        }
        state.end(first);
        newest
    }

    /// The active memtable of a key space, which began in this log, is sealed.
    pub(crate) fn seal_memtable(&self, keyspace: KeyspaceId, first: u64) {
        lock(&self.state).active.remove(&(first, keyspace));
    }

    /// A sealed memtable that began in this log needs none any more.
    pub(crate) fn end_memtable(&self, first: u64) {
        lock(&self.state).end(first);
    }

    /// The key spaces whose active memtables have entries.
    pub(crate) fn active(&self) -> Vec<KeyspaceId> {
        let state = lock(&self.state);
        state.active.iter().inspect(|_| step()).map(|(_, keyspace)| *keyspace).collect()
    }

    /// Those of them that begin in this log.
    pub(crate) fn active_in(&self, log: u64) -> Vec<KeyspaceId> {
        let state = lock(&self.state);
        let of_log = state.active.range((log, KeyspaceId(0))..=(log, KeyspaceId(u32::MAX)));
        of_log.inspect(|_| step()).map(|(_, keyspace)| *keyspace).collect()
    }

    /// Whether there are any.
    pub(crate) fn has_active(&self) -> bool {
        !lock(&self.state).active.is_empty()
    }

    /// Whether the active memtable of another key space has entries.
    pub(crate) fn is_active_beside(&self, keyspace: KeyspaceId) -> bool {
        let state = lock(&self.state);
        state.active.iter().inspect(|_| step()).any(|(_, active)| *active != keyspace)
    }

    /// The oldest log that is needed, when a memtable that began in `first` is in tables.
    pub(crate) fn live_without(&self, first: Option<u64>) -> u64 {
        let state = lock(&self.state);
        let needed = |(log, count): (&u64, &usize)| {
            (*count > usize::from(Some(*log) == first)).then_some(*log)
        };
        state.memtables.iter().find_map(needed).unwrap_or(state.newest)
    }

    /// No memtable needs logs below this one. Keeps the newest of them, up to so many bytes, for
    /// change feeds. Gives the number below which all are to go.
    pub(crate) fn let_go_below(&self, live: u64, kept_bytes: u64) -> u64 {
        let mut state = lock(&self.state);
        let State { older, kept, chain, .. } = &mut *state;
        let needed = older.split_off(&live);
        std::mem::replace(older, needed).into_iter().for_each(|(log, bytes)| kept.add(log, bytes));
        while let Some(oldest) = kept.oldest() {
            if kept.bytes <= u128::from(kept_bytes) && !chain.is_useless(oldest) {
                break;
            }
            kept.drop_oldest();
            chain.let_go_below(oldest + 1);
        }
        let gone = kept.oldest().unwrap_or(live);
        chain.let_go_below(gone);
        gone
    }

    /// What change feeds can read, of a store that was opened.
    pub(crate) fn begin_chain(&self, chain: LogChain, kept: KeptLogs) {
        let mut state = lock(&self.state);
        (state.chain, state.kept) = (chain, kept);
    }

    /// Looks at what change feeds can read, or changes it, in one step.
    pub(crate) fn chain<T>(&self, look: impl FnOnce(&mut LogChain) -> T) -> T {
        look(&mut lock(&self.state).chain)
    }

    /// How many logs are kept for change feeds, and their bytes.
    pub(crate) fn kept(&self) -> (u64, u64) {
        let state = lock(&self.state);
        (state.kept.logs.len() as u64, u64::try_from(state.kept.bytes).unwrap_or(u64::MAX))
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

    const A: KeyspaceId = KeyspaceId(0);
    const B: KeyspaceId = KeyspaceId(7);

    #[test]
    fn a_log_is_needed_as_long_as_a_memtable_begins_in_it() {
        let logs = LiveLogs::default();
        logs.begin_log(7, 100);
        let (one, other) = (logs.begin_memtable(A), logs.begin_memtable(B));
        logs.begin_log(9, 10);
        logs.seal_memtable(A, 7);
        let third = logs.begin_memtable(A);
        assert_eq!((one, other, third), (7, 7, 9));
        assert_eq!(logs.live_without(Some(7)), 7, "there are two");
        logs.end_memtable(7);
        assert_eq!((logs.live_without(None), logs.live_without(Some(7))), (7, 9));
        logs.end_memtable(7);
        logs.begin_log(12, 20);
        assert_eq!((logs.live_without(None), logs.live_without(Some(9))), (9, 12));
        logs.note_bytes(50);
        assert_eq!(logs.sizes(), (3, 160));
        assert_eq!(logs.let_go_below(9, 0), 9);
        assert_eq!((logs.sizes(), logs.kept()), ((2, 60), (0, 0)));
    }
    #[test]
    fn memtables_that_take_writes_are_known_by_their_logs() {
        let logs = LiveLogs::default();
        logs.begin_log(7, 100);
        logs.add_active(B, 5);
        assert_eq!((logs.begin_memtable(A), logs.active()), (7, vec![B, A]));
        assert_eq!((logs.active_in(5), logs.active_in(7)), (vec![B], vec![A]));
        assert!(logs.is_active_beside(A) && logs.is_active_beside(B));
        assert_eq!((logs.move_to_newest(B, 5), logs.live_without(None)), (7, 7));
        assert_eq!((logs.move_to_newest(B, 7), logs.active_in(7)), (7, vec![A, B]));
        logs.seal_memtable(B, 7);
        assert!(!logs.is_active_beside(A) && logs.is_active_beside(B));
        logs.begin_log(9, 10);
        assert_eq!(logs.move_to_newest(A, 7), 9);
        assert_eq!(logs.live_without(None), 7, "what is sealed is in no table yet");
        logs.end_memtable(7);
        assert_eq!((logs.live_without(None), logs.active()), (9, vec![A]));
    }
}
