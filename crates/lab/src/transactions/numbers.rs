//! Numbers that transactions change: counters, accounts, and one of many scanned numbers.
//! ```text
//! counter       get one, put it one higher                        sum = commits
//! transfer      get ten, take from one, give to another           sum = 0
//! long scan     scan many, put one of them one higher             sum = commits
//! ```
//! Invariant: the sum over all keys follows from the number of commits. A lost write, or a write
//! based on a stale read, changes it.

use crate::compare::{OpenTransaction, Space, TransactionalStore};
use crate::error::{LabError, Result};
use crate::keys::rng::scattered_key;
use crate::transactions::work::{
    Client, Done, Totals, Work, each_entry, number_of, set_number, unequal,
};

/// The change that a transaction makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Increments a counter.
    Count {
        /// How many keys, from the first on, are counters.
        counters: u64,
    },
    /// Moves an amount from one of ten accounts to another.
    Transfer,
    /// Increments one of the numbers that a scan returns.
    Scan {
        /// The entries of the scan.
        entries: usize,
    },
}

/// A workload over numbers, one for each key.
pub(crate) struct Numbers {
    pub(crate) change: Change,
    pub(crate) keys: u64,
    pub(crate) value_bytes: usize,
    pub(crate) seed: u64,
}

const SPACE: Space = Space(0);
/// Accounts that a transfer reads.
const READS: usize = 10;

/// Returns the number of a key. An error if the key is gone, since nothing deletes it.
fn get(open: &dyn OpenTransaction, key: &[u8]) -> Result<i64> {
    let mut found = None;
    open.get(SPACE, key, &mut |value| found = number_of(value))?;
    found.ok_or_else(|| LabError::Peer(format!("the number of key {key:02x?} is gone")))
}

impl Numbers {
    fn key(&self, place: u64) -> [u8; 8] {
        scattered_key(self.seed, place)
    }

    fn count(&self, store: &dyn TransactionalStore, client: &mut Client, of: u64) -> Result<()> {
        let key = self.key(client.rng.below(of));
        let mut value = std::mem::take(&mut client.value);
        client.commit(store, |open| {
            set_number(&mut value, get(open, &key)? + 1, self.value_bytes);
            open.put(SPACE, &key, &value).map(|()| true)
        })?;
        client.value = value;
        Ok(())
    }

    fn transfer(&self, store: &dyn TransactionalStore, client: &mut Client) -> Result<()> {
        let mut places = Vec::with_capacity(READS);
        while places.len() < READS {
            let place = client.rng.below(self.keys);
            if !places.contains(&place) {
                places.push(place);
            }
        }
        let mut value = std::mem::take(&mut client.value);
        client.commit(store, |open| {
            let mut balances = [0; READS];
            for (place, balance) in places.iter().zip(&mut balances) {
                *balance = get(open, &self.key(*place))?;
            }
            // The amount depends on everything that was read.
            let amount = 1 + balances.iter().sum::<i64>().rem_euclid(10);
            for (nth, new) in [(0, balances[0] - amount), (1, balances[1] + amount)] {
                set_number(&mut value, new, self.value_bytes);
                open.put(SPACE, &self.key(places[nth]), &value)?;
            }
            Ok(true)
        })?;
        client.value = value;
        Ok(())
    }

    fn scan(&self, store: &dyn TransactionalStore, client: &mut Client, of: usize) -> Result<()> {
        let from = self.key(client.rng.below(self.keys));
        let chosen = client.rng.place(of);
        let mut value = std::mem::take(&mut client.value);
        client.commit(store, |open| {
            // If the scan returns too few entries, the last one is chosen.
            let (mut nth, mut found) = (0, None);
            open.scan(SPACE, (&from, None), of, &mut |key, value| {
                if nth <= chosen {
                    found = Some((key.to_vec(), number_of(value)));
                }
                nth += 1;
            })?;
            let Some((key, Some(number))) = found else {
                return Err(LabError::Peer(format!("no numbers from key {from:02x?} on")));
            };
            set_number(&mut value, number + 1, self.value_bytes);
            open.put(SPACE, &key, &value).map(|()| true)
        })?;
        client.value = value;
        Ok(())
    }
}

impl Work for Numbers {
    fn spaces(&self) -> &'static [&'static str] {
        &["numbers"]
    }

    fn kinds(&self) -> &'static [&'static str] {
        match self.change {
            Change::Count { .. } => &["increment"],
            Change::Transfer => &["transfer"],
            Change::Scan { .. } => &["scan"],
        }
    }

    fn load(&self, store: &dyn TransactionalStore) -> Result<()> {
        let mut value = Vec::new();
        set_number(&mut value, 0, self.value_bytes);
        (0..self.keys).try_for_each(|place| store.put(SPACE, &self.key(place), &value))
    }

    fn perform(&self, store: &dyn TransactionalStore, client: &mut Client) -> Result<Done> {
        match self.change {
            Change::Count { counters } => self.count(store, client, counters.min(self.keys))?,
            Change::Transfer => self.transfer(store, client)?,
            Change::Scan { entries } => self.scan(store, client, entries)?,
        }
        Ok(Done::one(0))
    }

    fn check(&self, store: &dyn TransactionalStore, totals: &Totals) -> Result<Vec<String>> {
        let (mut sum, mut count, mut broken) = (0i128, 0i128, 0i128);
        each_entry(store, SPACE, |_, value| {
            count += 1;
            match number_of(value) {
                Some(number) if value.len() == self.value_bytes => sum += i128::from(number),
                _ => broken += 1,
            }
        })?;
        let expected = match self.change {
            Change::Transfer => 0,
            Change::Count { .. } | Change::Scan { .. } => i128::from(totals.ops()),
        };
        let problems = [
            unequal("the sum of all numbers", sum, expected),
            unequal("keys", count, i128::from(self.keys)),
            unequal("values that are no number", broken, 0),
        ];
        Ok(problems.into_iter().flatten().collect())
    }
}
