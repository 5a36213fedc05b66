//! This store's transactions, behind the interface of peers.
//! ```text
//! Space(0)   the default key space        Space(1), ...   named ones
//! ```
//! Invariant: transactions are serializable: the ranges that scans cover count as read, too.

use std::path::Path;

use trommel::{Db, Keyspace, Transaction};

use crate::compare::peer::{Peer, PeerCounts, PeerSettings};
use crate::compare::transactional::{
    Attempt, OpenTransaction, Space, TransactionWork, TransactionalStore,
};
use crate::compare::trommel::{OpenStore, counts_of};
use crate::error::{LabError, Result};

struct OpenSpaces {
    store: OpenStore,
    spaces: Vec<Keyspace>,
}

/// Opens the store and its key spaces, the first of which is the default one.
pub(crate) fn open(
    folder: &Path,
    filter: &str,
    settings: &PeerSettings,
    spaces: &[&str],
) -> Result<Box<dyn TransactionalStore>> {
    let store = OpenStore::open(folder, filter, settings)?;
    let others = spaces.iter().skip(1);
    let named = others.map(|name| store.db.keyspace(name, store.options.clone().into()));
    let first = Keyspace::clone(&store.db);
    let spaces = std::iter::once(Ok(first)).chain(named).collect::<trommel::Result<_>>()?;
    Ok(Box::new(OpenSpaces { store, spaces }))
}

impl OpenSpaces {
    fn db(&self) -> &Db {
        &self.store.db
    }
}

struct Open<'a> {
    transaction: &'a Transaction,
    spaces: &'a [Keyspace],
}

impl OpenTransaction for Open<'_> {
    fn get(&self, space: Space, key: &[u8], seen: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let value = self.transaction.of(&self.spaces[space.0]).get(key)?;
        if let Some(value) = &value {
            seen(value);
        }
        Ok(value.is_some())
    }

    fn scan(
        &self,
        space: Space,
        (from, before): (&[u8], Option<&[u8]>),
        limit: usize,
        seen: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<usize> {
        let part = self.transaction.of(&self.spaces[space.0]);
        let mut scan = match before {
            Some(before) if before <= from => return Ok(0),
            Some(before) => part.range(from..before),
            None => part.range(from..),
        };
        let mut count = 0;
        while count < limit {
            let Some(entry) = scan.next_lent() else { break };
            let (key, value) = entry?;
            seen(key, &value);
            count += 1;
        }
        Ok(count)
    }

    fn put(&self, space: Space, key: &[u8], value: &[u8]) -> Result<()> {
        Ok(self.transaction.of(&self.spaces[space.0]).put(key, value)?)
    }
}

impl TransactionalStore for OpenSpaces {
    fn settings(&self) -> String {
        let spaces = self.spaces.len();
        format!("{}; key spaces: {spaces}; serializable, ranges too", self.store.settings())
    }

    fn put(&self, space: Space, key: &[u8], value: &[u8]) -> Result<()> {
        Ok(self.spaces[space.0].put(key, value)?)
    }

    fn put_if_absent(&self, space: Space, key: &[u8], value: &[u8]) -> Result<bool> {
        Ok(self.spaces[space.0].put_if_absent(key, value)?.is_none())
    }

    fn attempt(&self, work: &mut TransactionWork<'_>) -> Result<Attempt> {
        let transaction = self.db().transaction();
        let done = match work(&Open { transaction: &transaction, spaces: &self.spaces }) {
            Ok(false) => return Ok(Attempt::RolledBack),
            Ok(true) => transaction.commit().map(drop).map_err(LabError::from),
            Err(error) => Err(error),
        };
        match done {
            Ok(()) => Ok(Attempt::Committed),
            Err(LabError::Store(trommel::Error::Conflict { .. })) => Ok(Attempt::Conflict),
            Err(error) => Err(error),
        }
    }

    fn flush(&self) -> Result<()> {
        Ok(self.db().flush()?)
    }

    fn settle(&self) -> Result<()> {
        Ok(self.db().settle()?)
    }

    /// Sums the counts of all key spaces.
    fn counts(&self) -> Option<PeerCounts> {
        let mut sum = PeerCounts::default();
        for space in &self.spaces {
            sum.add(&counts_of(&space.stats().ok()?));
        }
        Some(sum)
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(self.store.db.close()?)
    }
}
