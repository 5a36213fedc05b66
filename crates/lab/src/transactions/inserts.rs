//! Inserts of unique keys: whoever inserts a key first owns it.
//! ```text
//! ticket   0  1  2  3  4  5  6  7 | 8 ...
//! place    0  1  2  3  4  5  6  k |          k: one of the seven before it, drawn
//! ```
//! Invariant: of eight consecutive tickets, seven have new keys, whichever client is faster. So the
//! number of refused inserts is known. Each key's value says who owns it.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::compare::{Space, TransactionalStore};
use crate::error::Result;
use crate::keys::rng::{scattered_key, scramble};
use crate::transactions::work::{
    Client, Done, Totals, Work, each_entry, number_of, set_number, unequal,
};

/// The way to insert a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// `put_if_absent`.
    Single,
    /// A transaction: get, put, commit.
    Transaction,
}

/// A workload of inserts into a store with `keys` keys.
pub(crate) struct Inserts {
    way: Way,
    keys: u64,
    value_bytes: usize,
    seed: u64,
    /// The next ticket.
    tickets: AtomicU64,
}

const SPACE: Space = Space(0);
/// One ticket in this many repeats the key of an earlier ticket.
const GROUP: u64 = 8;

impl Inserts {
    pub(crate) fn new(way: Way, keys: u64, value_bytes: usize, seed: u64) -> Self {
        Inserts { way, keys, value_bytes, seed, tickets: AtomicU64::new(0) }
    }

    /// Returns the place of a ticket's key.
    fn place(&self, ticket: u64) -> u64 {
        let back = match ticket % GROUP {
            nth if nth + 1 == GROUP => 1 + scramble(ticket ^ self.seed) % (GROUP - 1),
            _ => 0,
        };
        self.keys + ticket - back
    }

    fn key(&self, place: u64) -> [u8; 8] {
        scattered_key(self.seed, place)
    }
}

impl Work for Inserts {
    fn spaces(&self) -> &'static [&'static str] {
        &["keys"]
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["insert"]
    }

    fn load(&self, store: &dyn TransactionalStore) -> Result<()> {
        let mut value = Vec::new();
        set_number(&mut value, -1, self.value_bytes);
        (0..self.keys).try_for_each(|place| store.put(SPACE, &self.key(place), &value))
    }

    fn perform(&self, store: &dyn TransactionalStore, client: &mut Client) -> Result<Done> {
        let ticket = self.tickets.fetch_add(1, Ordering::Relaxed);
        let key = self.key(self.place(ticket));
        let mut value = std::mem::take(&mut client.value);
        set_number(&mut value, ticket as i64, self.value_bytes);
        let is_new = match self.way {
            Way::Single => store.put_if_absent(SPACE, &key, &value)?,
            Way::Transaction => client.commit(store, |open| {
                if open.get(SPACE, &key, &mut |_| {})? {
                    return Ok(false);
                }
                open.put(SPACE, &key, &value).map(|()| true)
            })?,
        };
        client.value = value;
        Ok(Done::one(0).refused(!is_new))
    }

    fn check(&self, store: &dyn TransactionalStore, totals: &Totals) -> Result<Vec<String>> {
        let tickets = self.tickets.load(Ordering::Relaxed);
        let (mut count, mut loaded, mut foreign) = (0i128, 0i128, 0i128);
        each_entry(store, SPACE, |key, value| {
            count += 1;
            match number_of(value) {
                Some(-1) => loaded += 1,
                Some(ticket) => {
                    let ticket = ticket.unsigned_abs();
                    let is_right = ticket < tickets && self.key(self.place(ticket)) == key;
                    foreign += i128::from(!is_right);
                }
                None => foreign += 1,
            }
        })?;
        let refused = i128::from(tickets / GROUP);
        let inserted = i128::from(tickets) - refused;
        let problems = [
            unequal("operations", totals.ops().into(), tickets.into()),
            unequal("refused inserts", totals.refused().into(), refused),
            unequal("keys of the filling", loaded, self.keys.into()),
            unequal("keys", count, i128::from(self.keys) + inserted),
            unequal("values of another key", foreign, 0),
        ];
        Ok(problems.into_iter().flatten().collect())
    }
}
