//! What every workload has: key spaces, a first filling, transactions that clients draw, and a
//! check of everything at the end.
//! ```text
//! client  draws -> attempt -> Conflict -> pause, the same again -> Committed
//!                                             counted               counted, timed from the first
//! ```
//! Invariant: what a client draws depends on seed, workload and client alone, not on conflicts.

use std::time::Duration;

use crate::compare::{Attempt, OpenTransaction, Space, TransactionalStore};
use crate::error::Result;
use crate::keys::rng::{Rng, scramble};

/// Attempts before one that waits, and how long it waits at most: those of `Db::run`.
const HURRIED_ATTEMPTS: u64 = 3;
const PAUSE_MAX: Duration = Duration::from_millis(20);

/// A client's own state.
pub(crate) struct Client {
    pub(crate) nth: usize,
    pub(crate) rng: Rng,
    /// Operations that it has begun.
    pub(crate) begun: u64,
    /// Attempts that others made fail.
    pub(crate) conflicts: u64,
    /// Answers that no moment has had.
    pub(crate) wrong: u64,
    pub(crate) value: Vec<u8>,
}

/// What one call of a workload did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Done {
    /// Which of the workload's kinds it was.
    pub(crate) kind: usize,
    /// How many operations; the time is theirs together.
    pub(crate) ops: u64,
    /// Of these, those that wrote nothing, as they should.
    pub(crate) refused: u64,
}

/// What all clients did in all rounds: operations and refused ones of each kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) of_kind: Vec<(u64, u64)>,
}

/// A workload, with what its clients share on one store.
pub(crate) trait Work: Sync {
    /// The names of its key spaces, one at least.
    fn spaces(&self) -> &'static [&'static str];
    /// The names of its kinds of operations.
    fn kinds(&self) -> &'static [&'static str];
    /// Fills an empty store.
    fn load(&self, store: &dyn TransactionalStore) -> Result<()>;
    /// Does what the client draws, until it is committed, or rolled back as it wants.
    fn perform(&self, store: &dyn TransactionalStore, client: &mut Client) -> Result<Done>;
    /// What is in the store and should not be, or is not, in words.
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

    /// Operations of a kind that wrote something.
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

    /// Runs a transaction until it commits; false: until it is rolled back.
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

/// Runs a transaction that only reads, once.
pub(crate) fn read_only(
    store: &dyn TransactionalStore,
    mut work: impl FnMut(&dyn OpenTransaction) -> Result<()>,
) -> Result<()> {
    store.attempt(&mut |open| work(open).map(|()| true)).map(drop)
}

/// Shows every entry of a key space.
pub(crate) fn each_entry(
    store: &dyn TransactionalStore,
    space: Space,
    mut seen: impl FnMut(&[u8], &[u8]),
) -> Result<()> {
    read_only(store, |open| open.scan(space, (&[], None), usize::MAX, &mut seen).map(drop))
}

/// A number and, behind it, zeros.
pub(crate) fn set_number(value: &mut Vec<u8>, number: i64, value_bytes: usize) {
    value.clear();
    value.extend_from_slice(&number.to_le_bytes());
    value.resize(value_bytes, 0);
}

/// The number of such a value. None: it is too short to have one.
pub(crate) fn number_of(value: &[u8]) -> Option<i64> {
    value.first_chunk().map(|bytes| i64::from_le_bytes(*bytes))
}

/// What is told if a sum is not what it should be.
pub(crate) fn unequal(what: &str, found: i128, expected: i128) -> Option<String> {
    (found != expected).then(|| format!("{what}: {found}, not {expected}"))
}
