//! A worker thread: runs transactions one after the other, and records each with what it read.

use std::sync::atomic::Ordering;

use trommel::{Error, Isolation, Transaction};

use super::Shared;
use super::record::{ACCOUNTS, COUNTERS, KEYS, Record, SPACES, Step};
use super::record::{number, number_of, number_of_key, value};
use crate::keys::rng::Rng;
use crate::keys::spread::spread_key as key;
use crate::stress::operands::{operand, operand_of};
use crate::stress::world::Checked;

/// The most steps of a transaction.
const STEPS_MAX: usize = 8;

pub(super) struct Worker<'s> {
    shared: &'s Shared,
    rng: Rng,
    done: Done,
}

/// The results of a worker.
#[derive(Default)]
pub(super) struct Done {
    pub(super) records: Vec<Record>,
    pub(super) conflicts: u64,
    /// The sum of its additions to each counter.
    pub(super) adds: [u64; COUNTERS],
}

impl<'s> Worker<'s> {
    pub(super) fn new(shared: &'s Shared, rng: Rng) -> Self {
        Worker { shared, rng, done: Done::default() }
    }

    pub(super) fn into_done(self) -> Done {
        self.done
    }

    /// Works until the round is over, or `most` transactions have committed.
    pub(super) fn work(&mut self, most: usize) -> Checked<()> {
        while !self.shared.is_over.load(Ordering::SeqCst) && self.done.records.len() < most {
            let done = match self.rng.below(8) {
                0 => self.transfer(),
                1 => self.count(),
                _ => self.transaction(),
            };
            done.map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    fn transfer(&mut self) -> trommel::Result<()> {
        let (from, to) = (self.rng.place(ACCOUNTS), self.rng.place(ACCOUNTS));
        let amount = self.rng.below(50) as i64;
        let bank = &self.shared.bank;
        self.shared.db.run(|tx| {
            let tx = tx.of(bank);
            // Half of the transfers lock what they read, in any order, so that deadlocks occur.
            let balance = |account| -> trommel::Result<i64> {
                let found = match amount % 2 {
                    0 => tx.get(key(account))?,
                    _ => tx.get_for_update(key(account))?,
                };
                Ok(found.map_or(i64::MIN, |bytes| number(&bytes)))
            };
            tx.put(key(from), (balance(from)? - amount).to_le_bytes())?;
            tx.put(key(to), (balance(to)? + amount).to_le_bytes())
        })
    }

    fn count(&mut self) -> trommel::Result<()> {
        let (counter, add) = (self.rng.place(COUNTERS), 1 + self.rng.below(9));
        self.shared.counters.fetch_add(key(counter), add as i64)?;
        self.done.adds[counter] += add;
        Ok(())
    }

    fn transaction(&mut self) -> trommel::Result<()> {
        let is_serializable = self.rng.below(4) != 0;
        let isolation = if is_serializable { Isolation::Serializable } else { Isolation::Snapshot };
        let transaction = self.shared.db.transaction_with(isolation);
        match self.steps_and_commit(transaction) {
            Ok((begun, committed, steps)) => {
                self.shared.commits.fetch_add(1, Ordering::Relaxed);
                self.done.records.push(Record { begun, committed, is_serializable, steps });
            }
            Err(Error::Conflict { .. } | Error::Deadlock { .. }) => self.done.conflicts += 1,
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Runs the steps and commits. Returns the number at which it read, that of its commit, and the
    /// steps.
    fn steps_and_commit(
        &mut self,
        transaction: Transaction,
    ) -> trommel::Result<(u64, u64, Vec<Step>)> {
        let steps = 1 + self.rng.place(STEPS_MAX);
        let steps = (0..steps).map(|_| self.step(&transaction));
        let steps = steps.collect::<trommel::Result<Vec<Step>>>()?;
        // A read for update may have advanced it.
        let begun = transaction.sequence();
        Ok((begun, transaction.commit()?, steps))
    }

    fn step(&mut self, transaction: &Transaction) -> trommel::Result<Step> {
        let space = self.rng.place(SPACES);
        let part = transaction.of(&self.shared.spaces[space]);
        let place = self.rng.place(KEYS);
        Ok(match self.rng.below(12) {
            0..=4 => {
                let found = match self.rng.below(3) {
                    0 => part.get_for_update(key(place))?,
                    _ => part.get(key(place))?,
                };
                Step::Get { space, key: place, found: found.map_or(0, |found| number_of(&found)) }
            }
            5 | 6 => {
                let (keys, back) = (self.stretch(), self.rng.below(2) == 0);
                let limit = [1, 4, KEYS][self.rng.place(3)];
                let scan = part.range(key(keys.0)..key(keys.1));
                let found: trommel::Result<Vec<_>> = match back {
                    true => scan.rev().take(limit).collect(),
                    false => scan.take(limit).collect(),
                };
                let found = found?.into_iter().map(|(key, value)| {
                    (number_of_key(&key).unwrap_or(usize::MAX), number_of(&value))
                });
                Step::Scan { space, keys, back, limit, found: found.collect() }
            }
            7 => {
                let operand = operand(self.rng.below(1 << 20) as u32);
                let bytes = operand_of(operand).expect("it is one");
                part.merge(key(place), bytes)?;
                Step::Merge { space, key: place, operand }
            }
            8 | 9 => {
                let number = 1 + self.rng.below(u64::from(u32::MAX));
                part.put(key(place), value(number))?;
                Step::Put { space, key: place, number }
            }
            10 => {
                part.delete(key(place))?;
                Step::Delete { space, key: place }
            }
            _ => {
                let keys = self.stretch();
                part.delete_range(key(keys.0), key(keys.1))?;
                Step::DeleteRange { space, keys }
            }
        })
    }

    /// Returns a range of neighbouring keys, mostly a short one.
    fn stretch(&mut self) -> (usize, usize) {
        let from = self.rng.place(KEYS);
        let most = if self.rng.below(4) == 0 { KEYS } else { 6 };
        (from, (from + 1 + self.rng.place(most)).min(KEYS))
    }
}
