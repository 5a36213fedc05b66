//! `put_if_absent` compared with a plain put, both of absent keys.
//! ```text
//! client   [100 puts] [100 put_if_absent] [100 puts] ...      each row timed as a whole
//! ```
//! Invariant: both write the same number of new keys of the same kind, in the same store, in turns.

use crate::compare::{Space, TransactionalStore};
use crate::error::Result;
use crate::keys::rng::scattered_key;
use crate::transactions::work::{
    Client, Done, Totals, Work, each_entry, number_of, set_number, unequal,
};

/// A workload of new keys, in a store with `keys` keys.
pub(crate) struct Absent {
    pub(crate) keys: u64,
    pub(crate) value_bytes: usize,
    pub(crate) seed: u64,
}

const SPACE: Space = Space(0);
/// Operations that are timed together, since reading the clock costs a tenth of a put.
const ROW: u64 = 100;
/// Kinds of operations, by their index among the names.
pub(crate) const PUT: usize = 0;
pub(crate) const PUT_IF_ABSENT: usize = 1;

impl Absent {
    /// Returns a client's n-th key. Clients have different keys.
    fn key(&self, client: usize, nth: u64) -> [u8; 8] {
        scattered_key(self.seed, self.keys + (((client as u64) << 40) | nth))
    }
}

impl Work for Absent {
    fn spaces(&self) -> &'static [&'static str] {
        &["keys"]
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["put", "put_if_absent"]
    }

    fn load(&self, store: &dyn TransactionalStore) -> Result<()> {
        let mut value = Vec::new();
        set_number(&mut value, -1, self.value_bytes);
        let keys = (0..self.keys).map(|place| scattered_key(self.seed, place));
        keys.into_iter().try_for_each(|key| store.put(SPACE, &key, &value))
    }

    fn perform(&self, store: &dyn TransactionalStore, client: &mut Client) -> Result<Done> {
        let kind = [PUT, PUT_IF_ABSENT][(client.begun % 2) as usize];
        let mut refused = 0;
        for nth in 0..ROW {
            let key = self.key(client.nth, client.begun * ROW + nth);
            set_number(&mut client.value, kind as i64, self.value_bytes);
            match kind {
                PUT => store.put(SPACE, &key, &client.value)?,
                _ => refused += u64::from(!store.put_if_absent(SPACE, &key, &client.value)?),
            }
        }
        client.begun += 1;
        Ok(Done { kind, ops: ROW, refused })
    }

    fn check(&self, store: &dyn TransactionalStore, totals: &Totals) -> Result<Vec<String>> {
        let (mut of_kind, mut loaded) = ([0i128; 2], 0i128);
        each_entry(store, SPACE, |_, value| match number_of(value) {
            Some(number @ (0 | 1)) => of_kind[number as usize] += 1,
            _ => loaded += 1,
        })?;
        let problems = [
            unequal("keys of the filling", loaded, self.keys.into()),
            unequal("keys that were put", of_kind[PUT], totals.written(PUT).into()),
            unequal(
                "keys that were put if absent",
                of_kind[PUT_IF_ABSENT],
                totals.written(PUT_IF_ABSENT).into(),
            ),
            unequal("refused", totals.refused().into(), 0),
        ];
        Ok(problems.into_iter().flatten().collect())
    }
}
