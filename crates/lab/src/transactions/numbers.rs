//! Numbers that transactions change: counters, accounts, and one of many that were scanned.
//! ```text
//! counter       get one, put it one higher                        sum = commits
//! transfer      get ten, take from one, give to another           sum = 0
//! long scan     scan many, put one of them one higher             sum = commits
//! ```
//! Invariant: the sum over all keys follows from the number of commits. A lost write, or one that
//! is made of an old read, changes it.

use crate::compare::{OpenTransaction, Space, TransactionalStore};
use crate::error::{LabError, Result};
use crate::keys::rng::scattered_key;
use crate::transactions::work::{
    Client, Done, Totals, Work, each_entry, number_of, set_number, unequal,
};

/// What a transaction does with the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// One of so many counters.
    Count {
        /// The first ones of all keys.
        counters: u64,
    },
    /// From one of ten accounts to another.
    Transfer,
    /// One of the numbers that a scan of so many entries shows.
    Scan {
        /// How many.
        entries: usize,
    },
}

/// Numbers, one for each key.
pub(crate) struct Numbers {
    pub(crate) change: Change,
    pub(crate) keys: u64,
    pub(crate) value_bytes: usize,
    pub(crate) seed: u64,
}

const SPACE: Space = Space(0);
/// Accounts that a transfer reads.
const READS: usize = 10;

/// A number that the workload has written. An error if there is none: nothing deletes it.
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
            // How much depends on all that was read.
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
            // Where fewer are left than the chosen one's place, it is the last one.
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
