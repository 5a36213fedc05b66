//! The interface of a workload: key spaces, the first filling, transactions that clients draw, and
//! a final check of everything.
//! ```text
//! client  draws -> attempt -> Conflict -> pause, the same again -> Committed
//!                                             counted               counted, timed from the first
//! ```
//! Invariant: the draws of a client depend on seed, workload and client alone, not on conflicts.

use std::time::Duration;

use crate::compare::{Attempt, OpenTransaction, Space, TransactionalStore};
use crate::error::Result;
use crate::keys::rng::{Rng, scramble};

/// Attempts before the first pause, and the longest pause: both as in `Db::run`.
const HURRIED_ATTEMPTS: u64 = 3;
const PAUSE_MAX: Duration = Duration::from_millis(20);

/// The state of one client.
pub(crate) struct Client {
    pub(crate) nth: usize,
    pub(crate) rng: Rng,
    /// Operations that it has begun.
    pub(crate) begun: u64,
    /// Attempts that failed because of other transactions.
    pub(crate) conflicts: u64,
    /// Answers that were right at no moment.
    pub(crate) wrong: u64,
    pub(crate) value: Vec<u8>,
}

/// The effect of one call of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Done {
    /// The kind of operation, by index.
    pub(crate) kind: usize,
    /// How many operations the measured time covers.
    pub(crate) ops: u64,
    /// Operations among these that wrote nothing, as expected.
    pub(crate) refused: u64,
}

/// The totals of all clients and rounds: operations of each kind, and refused ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) of_kind: Vec<(u64, u64)>,
}

/// A workload on one store, with the state that its clients share.
pub(crate) trait Work: Sync {
    /// Returns the names of its key spaces, at least one.
    fn spaces(&self) -> &'static [&'static str];
    /// Returns the names of its kinds of operations.
    fn kinds(&self) -> &'static [&'static str];
    /// Fills an empty store.
    fn load(&self, store: &dyn TransactionalStore) -> Result<()>;
    /// Does the operation that the client draws, until it commits or rolls back on purpose.
    fn perform(&self, store: &dyn TransactionalStore, client: &mut Client) -> Result<Done>;
    /// Checks the contents of the store. Returns what is wrong, in words.
    fn check(&self, store: &dyn TransactionalStore, totals: &Totals) -> Result<Vec<String>>;
}

impl Done {
    pub(crate) fn one(kind: usize) -> Done {
        Done { kind, ops: 1, refused: 0 }
    }

    pub(crate) fn refused(self, refused: bool) -> Done {
        Done { refused: u64::from(refused), ..self }
    }
}

impl Totals {
    pub(crate) fn of_kinds(count: usize) -> Self {
        Totals { of_kind: vec![(0, 0); count] }
    }

    pub(crate) fn note(&mut self, done: Done) {
        let (ops, refused) = &mut self.of_kind[done.kind];
        *ops += done.ops;
        *refused += done.refused;
    }

    pub(crate) fn add(&mut self, other: &Totals) {
        for (own, other) in self.of_kind.iter_mut().zip(&other.of_kind) {
            own.0 += other.0;
            own.1 += other.1;
        }
    }

    /// Returns how many operations of a kind wrote something.
    pub(crate) fn written(&self, kind: usize) -> u64 {
        let (ops, refused) = self.of_kind[kind];
        ops - refused
    }

    pub(crate) fn ops(&self) -> u64 {
        self.of_kind.iter().map(|(ops, _)| ops).sum()
    }

    pub(crate) fn refused(&self) -> u64 {
        self.of_kind.iter().map(|(_, refused)| refused).sum()
    }
}

impl Client {
    pub(crate) fn new(seed: u64, workload: u64, nth: usize) -> Self {
        let seed = scramble(seed ^ scramble(nth as u64)) ^ scramble(workload);
        Client { nth, rng: Rng::new(seed), begun: 0, conflicts: 0, wrong: 0, value: Vec::new() }
    }

    /// Runs a transaction until it commits. False: it rolled back on purpose.
    pub(crate) fn commit(
        &mut self,
        store: &dyn TransactionalStore,
        mut work: impl FnMut(&dyn OpenTransaction) -> Result<bool>,
    ) -> Result<bool> {
        for attempts in 0u64.. {
            match store.attempt(&mut work)? {
                Attempt::Committed => return Ok(true),
                Attempt::RolledBack => return Ok(false),
                Attempt::Conflict => self.conflicts += 1,
            }
            if let Some(late) = attempts.checked_sub(HURRIED_ATTEMPTS) {
                let pause = Duration::from_micros(50 << late.min(10));
                std::thread::sleep(pause.min(PAUSE_MAX));
            }
        }
        unreachable!("it runs until it is done")
    }
}

/// Runs a read-only transaction once.
pub(crate) fn read_only(
    store: &dyn TransactionalStore,
    mut work: impl FnMut(&dyn OpenTransaction) -> Result<()>,
) -> Result<()> {
    store.attempt(&mut |open| work(open).map(|()| true)).map(drop)
}

/// Lends every entry of a key space to `seen`.
pub(crate) fn each_entry(
    store: &dyn TransactionalStore,
    space: Space,
    mut seen: impl FnMut(&[u8], &[u8]),
) -> Result<()> {
    read_only(store, |open| open.scan(space, (&[], None), usize::MAX, &mut seen).map(drop))
}

/// Fills `value` with a number, padded with zeros.
pub(crate) fn set_number(value: &mut Vec<u8>, number: i64, value_bytes: usize) {
    value.clear();
    value.extend_from_slice(&number.to_le_bytes());
    value.resize(value_bytes, 0);
}

/// Returns the number of a value. None: the value is too short.
pub(crate) fn number_of(value: &[u8]) -> Option<i64> {
    value.first_chunk().map(|bytes| i64::from_le_bytes(*bytes))
}

/// Returns a message if a sum is wrong.
pub(crate) fn unequal(what: &str, found: i128, expected: i128) -> Option<String> {
    (found != expected).then(|| format!("{what}: {found}, not {expected}"))
}
