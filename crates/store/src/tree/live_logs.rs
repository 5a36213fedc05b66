//! The logs that have entries which are in no table yet.
//! ```text
//! log 7       log 8       log 9, the newest
//! [a a a b a  a a a       b b c]       entries of the trees a, b, c
//!  ^     ^                    ^
//!  first of a's memtable, of b's, of c's      after a's flush, b still needs 7 and all later logs
//! ```
//! Logs that no memtable needs are kept for change feeds, up to as many bytes as the options allow.
//! The value files that only logs hold count as well: of the logs that memtables need, too. If they
//! are too many, kept logs go, and then values of needed ones.
//!
//! Invariants: a memtable needs the log with its first entry, and all later logs. The newest log is
//! always needed. Every question here looks only at memtables with entries, not at all key spaces.

use std::collections::{BTreeMap, BTreeSet};

use crate::cost::step;
use crate::entries::entry::Sequence;
use crate::entries::keyspace_id::KeyspaceId;
use crate::files::held_values::HeldValues;
use crate::files::unsynced::DurableBytes;
use crate::files::value_file::ValueFile;
use crate::files::wal::Predecessor;
use crate::sync::{Arc, AtomicU64, Mutex, Ordering, lock};
use crate::tree::log_chain::LogChain;
use crate::tree::log_values::{LogValues, bytes_held_alone};
use crate::tree::write_times::WriteTimes;

/// The least bytes that a kept log takes on disk.
const KEPT_BYTES_MIN: u64 = 4096;

/// Which memtables need which logs.
#[derive(Default)]
pub(crate) struct LiveLogs {
    state: Mutex<State>,
    /// Valid bytes of the newest log.
    newest_bytes: AtomicU64,
    /// When the writes in kept logs were made.
    pub(crate) times: WriteTimes,
}

#[derive(Default)]
struct State {
    newest: u64,
    /// The older logs, and the bytes of each.
    older: BTreeMap<u64, u64>,
    /// How many memtables begin in each log.
    memtables: BTreeMap<u64, usize>,
    /// The active memtables among these: the log where each begins, and its key space.
    active: BTreeSet<(u64, KeyspaceId)>,
    /// Logs that are kept for change feeds.
    kept: KeptLogs,
    /// The values that change feeds can read.
    values: LogValues,
    /// Logs that change feeds can read.
    chain: LogChain,
}

/// Logs that only change feeds can need, and the bytes of each.
#[derive(Default)]
pub(crate) struct KeptLogs {
    logs: BTreeMap<u64, u64>,
    /// The sum of the bytes. Files may claim any length, so 64 bits may be too few.
    bytes: u128,
}

impl KeptLogs {
    /// Adds a log of this many bytes, if the sum stays within `most`. False: it does not.
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

    /// Returns the numbers of the logs, ascending.
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

    /// Lets go of the oldest logs that are kept, and of the values of the oldest logs, until the
    /// others stay within `most` bytes. Returns the files of these values.
    fn let_go_beyond(&mut self, most: u64) -> Vec<Arc<ValueFile>> {
        let State { kept, values, chain, .. } = self;
        let (mut alone, mut gone) = (bytes_held_alone(values.files()), Vec::new());
        while let Some(oldest) = kept.oldest().or_else(|| values.oldest()) {
            let is_kept = kept.oldest().is_some();
            let fits = kept.bytes + u128::from(alone) <= u128::from(most);
            if fits && !(is_kept && chain.is_useless(oldest)) {
                break;
            }
            if is_kept {
                kept.drop_oldest();
                chain.let_go_below(oldest + 1);
            }
            let of_log = values.let_go_through(oldest);
            alone = alone.saturating_sub(bytes_held_alone(of_log.iter()));
            gone.extend(of_log);
        }
        gone
    }
}

impl LiveLogs {
    /// Begins a log, which takes all writes from now on. Logs are made in the order of their
    /// numbers.
    pub(crate) fn begin_log(&self, number: u64, bytes: u64) {
        self.begin_in(&mut lock(&self.state), number, bytes);
    }

    /// Like `begin_log`, and in the same step makes the log readable for change feeds. `before`
    /// describes the previous log, `durable` counts the durable bytes of this one.
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

    /// Returns the log that takes writes.
    pub(crate) fn newest(&self) -> u64 {
        lock(&self.state).newest
    }

    /// Sets the bytes of the newest log.
    #[inline]
    pub(crate) fn note_bytes(&self, bytes: u64) {
        self.newest_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Notes a sealed memtable whose first entry is in this log.
    pub(crate) fn add_sealed(&self, first: u64) {
        lock(&self.state).add(first);
    }

    /// Notes an active memtable whose first entry is in this log.
    pub(crate) fn add_active(&self, keyspace: KeyspaceId, first: u64) {
        let mut state = lock(&self.state);
        state.add(first);
        state.active.insert((first, keyspace));
    }

    /// Notes that the active memtable of a key space gets its first entry, in the newest log.
    /// Returns the log's number.
    pub(crate) fn begin_memtable(&self, keyspace: KeyspaceId) -> u64 {
        let mut state = lock(&self.state);
        let newest = state.newest;
        state.add(newest);
        state.active.insert((newest, keyspace));
        newest
    }

    /// Notes that the newest log now has all entries of an active memtable, which began in `first`.
    /// Returns the newest log's number.
    pub(crate) fn move_to_newest(&self, keyspace: KeyspaceId, first: u64) -> u64 {
        let newest = self.begin_memtable(keyspace);
        let mut state = lock(&self.state);
        if first != newest {
            state.active.remove(&(first, keyspace));
        }
        state.end(first);
        newest
    }

    /// Notes that the active memtable of a key space, which began in this log, is sealed.
    pub(crate) fn seal_memtable(&self, keyspace: KeyspaceId, first: u64) {
        lock(&self.state).active.remove(&(first, keyspace));
    }

    /// Notes that a sealed memtable, which began in this log, needs no log any more.
    pub(crate) fn end_memtable(&self, first: u64) {
        lock(&self.state).end(first);
    }

    /// Returns the key spaces whose active memtables have entries.
    pub(crate) fn active(&self) -> Vec<KeyspaceId> {
        let state = lock(&self.state);
        state.active.iter().inspect(|_| step()).map(|(_, keyspace)| *keyspace).collect()
    }

    /// Returns the key spaces whose active memtables begin in this log.
    pub(crate) fn active_in(&self, log: u64) -> Vec<KeyspaceId> {
        let state = lock(&self.state);
        let of_log = state.active.range((log, KeyspaceId(0))..=(log, KeyspaceId(u32::MAX)));
        of_log.inspect(|_| step()).map(|(_, keyspace)| *keyspace).collect()
    }

    /// Whether any active memtable has entries.
    pub(crate) fn has_active(&self) -> bool {
        !lock(&self.state).active.is_empty()
    }

    /// Whether the active memtable of any other key space has entries.
    pub(crate) fn is_active_beside(&self, keyspace: KeyspaceId) -> bool {
        let state = lock(&self.state);
        state.active.iter().inspect(|_| step()).any(|(_, active)| *active != keyspace)
    }

    /// Returns the oldest log that is needed once a memtable that began in `first` is in tables.
    pub(crate) fn live_without(&self, first: Option<u64>) -> u64 {
        let state = lock(&self.state);
        let needed = |(log, count): (&u64, &usize)| {
            (*count > usize::from(Some(*log) == first)).then_some(*log)
        };
        state.memtables.iter().find_map(needed).unwrap_or(state.newest)
    }

    /// Notes that no memtable needs logs below `live`. The newest of these are kept for change
    /// feeds, up to `kept_bytes`. Returns the number below which all logs can go.
    pub(crate) fn let_go_below(&self, live: u64, kept_bytes: u64) -> u64 {
        let mut state = lock(&self.state);
        let State { older, kept, .. } = &mut *state;
        let needed = older.split_off(&live);
        std::mem::replace(older, needed).into_iter().for_each(|(log, bytes)| kept.add(log, bytes));
        let values = state.let_go_beyond(kept_bytes);
        let gone = state.kept.oldest().unwrap_or(live);
        state.chain.let_go_below(gone);
        self.times.forget_through(state.chain.begin());
        drop(state);
        drop(values);
        gone
    }

    /// Lets go of what is kept for change feeds beyond this many bytes. Returns the number below
    /// which all logs can go, if some can.
    pub(crate) fn let_go_beyond(&self, kept_bytes: u64) -> Option<u64> {
        let mut state = lock(&self.state);
        let newest = state.kept.logs.last_key_value().map(|(number, _)| *number);
        let values = state.let_go_beyond(kept_bytes);
        let oldest = state.kept.oldest();
        drop(state);
        drop(values);
        newest.map(|newest| oldest.unwrap_or(newest + 1))
    }

    /// Holds the value files of a memtable for change feeds. `last`: its last entry, which is in a
    /// log.
    pub(crate) fn hold_values(&self, values: &HeldValues, last: Sequence) {
        let mut state = lock(&self.state);
        let Some(log) = state.chain.log_with(last) else { return };
        values.all().into_iter().for_each(|(file, _)| state.values.hold(log, file));
    }

    /// Returns the value files that are held for change feeds.
    pub(crate) fn held_values(&self) -> Vec<Arc<ValueFile>> {
        lock(&self.state).values.files().cloned().collect()
    }

    /// Holds no value files any more. Requires: the store is being closed, and removes none.
    pub(crate) fn release_values(&self) {
        let values = std::mem::take(&mut lock(&self.state).values);
        drop(values);
    }

    /// Sets what change feeds can read, after an opening.
    pub(crate) fn begin_chain(&self, chain: LogChain, kept: KeptLogs, values: LogValues) {
        let mut state = lock(&self.state);
        (state.chain, state.kept, state.values) = (chain, kept, values);
    }

    /// Gives access to the logs that change feeds can read, under the lock.
    pub(crate) fn chain<T>(&self, look: impl FnOnce(&mut LogChain) -> T) -> T {
        look(&mut lock(&self.state).chain)
    }

    /// Returns how many logs are kept for change feeds, and their bytes.
    pub(crate) fn kept(&self) -> (u64, u64) {
        let state = lock(&self.state);
        (state.kept.logs.len() as u64, u64::try_from(state.kept.bytes).unwrap_or(u64::MAX))
    }

    /// Returns how many logs are needed, and their bytes.
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
