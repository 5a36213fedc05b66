//! The order in which clients take turns: those with a task of one kind that a thread may take.
//! ```text
//! ready   2  5  9        called, or their time came        next: from the turn on, cyclically
//! timed   (10:00, 3) (10:07, 5)                            their time is still to come
//! ```
//! Invariant: a client in neither list is not looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use crate::cost::step;

/// The clients that may have a turn, by number.
#[derive(Default)]
pub(super) struct Turns {
    ready: BTreeSet<u64>,
    timed: BTreeSet<(Instant, u64)>,
    /// The times of the clients in `timed`.
    times: BTreeMap<u64, Instant>,
    /// The number from which on the next turn is given.
    turn: u64,
}

impl Turns {
    /// Returns the first ready client from the turn on, cyclically. The turn moves to the client
    /// after it.
    pub(super) fn next(&mut self, now: Instant) -> Option<u64> {
        while let Some(&(due, id)) = self.timed.first().filter(|(due, _)| *due <= now) {
            step();
            self.timed.remove(&(due, id));
            self.times.remove(&id);
            self.ready.insert(id);
        }
        step();
        let id = *self.ready.range(self.turn..).next().or(self.ready.first())?;
        self.turn = id + 1;
        Some(id)
    }

    /// Returns the time when the first client in `timed` becomes ready.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.timed.first().map(|(due, _)| *due)
    }

    /// Sets whether a client is ready, and when it will be. (A ready client needs no time.)
    pub(super) fn set(&mut self, id: u64, (is_ready, due): (bool, Option<Instant>)) {
        let due = due.filter(|_| !is_ready);
        let before = match due {
            Some(due) => self.times.insert(id, due),
            None => self.times.remove(&id),
        };
        if before != due {
            before.map(|before| self.timed.remove(&(before, id)));
            due.map(|due| self.timed.insert((due, id)));
        }
        if is_ready {
            self.ready.insert(id);
        } else {
            self.ready.remove(&id);
        }
    }
}
