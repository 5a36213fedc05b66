//! Whether keys have been written since they were read.
//! ```text
//! read of a key, at number 70       since: an entry, or a deletion of a range around it, above 70
//! memtables   the newest of the key
//! runs        those with numbers above 70, as the guard says which: mostly none, and no block read
//! batches     that the same group writes before
//! ```
//! Invariant: of entries that are newer than a number, a flush or merge drops none of which that
//! would hide that there were any, while the number is registered. (The newest one of a key stays.)
//! So who asks later has registered it, or does not mind that a key was written and deleted.

use trommel_filters::Query;

use crate::entries::batch::Batch;
use crate::entries::cursor::Reads;
use crate::entries::entry::{Kind, Sequence};
use crate::entries::expiry::Expiry;
use crate::entries::keyspace_id::KeyspaceId;
use crate::error::{Error, Result};
use crate::tree::open_tree::OpenTree;
use crate::tree::version::Version;

/// What must be so when a batch is written: the key has no entry that is newer than the one that
/// was read.
#[derive(Clone, Debug)]
pub(crate) struct Condition {
    pub(crate) keyspace: KeyspaceId,
    pub(crate) key: Vec<u8>,
    /// The number that it was read at.
    pub(crate) at: Sequence,
    /// When what was read expires.
    pub(crate) expiry: Option<Expiry>,
}

impl Condition {
    /// What is told if it does not hold.
    pub(crate) fn conflict(&self) -> Error {
        Error::Conflict { keyspace: self.keyspace.0, key: self.key.clone() }
    }

    /// Whether a batch that was accepted before writes the key.
    pub(crate) fn is_touched_by(&self, batch: &Batch) -> bool {
        batch.logged().any(|(keyspace, kind, key, value)| {
            let hits = match kind {
                Kind::DeleteRange => *key <= *self.key && *self.key < *value,
                _ => key == self.key,
            };
            keyspace == self.keyspace && hits
        })
    }

    /// Whether it holds in a tree as it is. Requires: the tree is that of its key space.
    pub(crate) fn holds(&self, tree: &OpenTree) -> Result<bool> {
        let alive = self.expiry.is_none_or(|expiry| !expiry.has_come(tree.env.clock.since_epoch()));
        Ok(alive && !is_newer(&tree.current.hold(), &self.key, self.at)?)
    }
}

/// Whether a version has an entry of the key, or a deletion of a range around it, that is newer
/// than `at`.
pub(crate) fn is_newer(version: &Version, key: &[u8], at: Sequence) -> Result<bool> {
    let sealed = version.sealed.iter().map(|sealed| &sealed.memtable);
    for memtable in std::iter::once(&version.active.memtable).chain(sealed) {
        if memtable.get(key, Sequence::MAX).is_some_and(|found| found.sequence > at) {
            return Ok(true);
        }
    }
    if version.covering_tombstone(key, Sequence::MAX).is_some_and(|deleted| deleted > at) {
        return Ok(true);
    }
    let mut runs = version.runs.iter().filter(|placed| placed.run.greatest() > at).peekable();
    if runs.peek().is_none() {
        return Ok(false);
    }
    let answer = version.guard.ask(&Query::Point(key));
    for placed in runs.filter(|placed| answer.may_be_in(placed.span())) {
        let Some(table) = placed.run.find(key).filter(|table| answer.may_hold(table)) else {
            continue;
        };
        let newest = table.table.get(key, Sequence::MAX, &mut Reads::default())?;
        if newest.is_some_and(|newest| newest.sequence > at) {
            return Ok(true);
        }
    }
    Ok(false)
}
