//! The tree at one moment, for inspection from outside, and for followers of its changes.
//! ```text
//! edit -> manifest -> version for readers -> follower: PinnedTree, under the installer's lock
//!                                            |
//!                                            +-> runs, codes of a key, runs that have it:
//!                                                of that version, whatever came since
//! ```
//! Invariants: a follower gets every change of the tree, in order. A pinned tree answers as its
//! version does, and does not count as a query.

use trommel_filters::{Codes, Query};

use crate::entries::cursor::Reads;
use crate::entries::entry::Sequence;
use crate::error::Result;
use crate::files::placed_run::PlacedRun;
use crate::guard::Answer;
use crate::storage::life::Life;
use crate::sync::Arc;
use crate::tree::open_tree::OpenTree;
use crate::tree::peek::{TreePeek, tree};
use crate::tree::version::{HeldVersion, Holder};

/// A function that is called after every change of the tree.
pub(crate) type Follower = Box<dyn FnMut(PinnedTree) + Send>;

/// The runs of an open store at one moment, with their guard. The files stay as long as this value
/// lives. Runs are named by their places, counted from the newest.
pub struct PinnedTree {
    version: HeldVersion,
    life: Arc<Life>,
}

impl PinnedTree {
    pub(crate) fn new(tree: &OpenTree, holder: Holder) -> Self {
        let version = HeldVersion::new(tree.current.hold(), holder);
        PinnedTree { version, life: Arc::clone(tree.life()) }
    }

    /// Returns the runs as plain data.
    pub fn peek(&self) -> TreePeek {
        tree(&self.version.layout)
    }

    /// Returns the codes that a global guard has for a query. A run may have an entry for it only
    /// if its span meets one of them. None: the store has another guard.
    pub fn guard_codes(&self, query: &Query<'_>) -> Option<Codes> {
        match self.version.guard.ask(query) {
            Answer::Codes(codes) => Some(codes),
            Answer::All | Answer::Point(_) | Answer::Range(_) => None,
        }
    }

    /// Returns the runs that may have an entry of a key, by guard and fence pointers. A get that
    /// never stops early would search these.
    pub fn candidates(&self, key: &[u8]) -> Vec<usize> {
        let answer = self.version.guard.ask(&Query::Point(key));
        let may_hold = |placed: &PlacedRun| {
            let table = placed.run.find(key).filter(|_| answer.may_be_in(placed.span()));
            table.is_some_and(|table| answer.may_hold(table))
        };
        let runs = self.version.runs.iter().enumerate();
        runs.filter(|(_, placed)| may_hold(placed)).map(|(place, _)| place).collect()
    }

    /// Returns the runs that have an entry of a key, deletions of it included; the first has the
    /// newest entry. Deleted ranges are not entries of keys. The guard is not asked: this reads
    /// blocks of all runs.
    ///
    /// # Errors
    /// The store is not open, or a block cannot be read.
    pub fn holders(&self, key: &[u8]) -> Result<Vec<usize>> {
        self.life.check()?;
        let mut holders = Vec::new();
        for (place, placed) in self.version.runs.iter().enumerate() {
            let Some(table) = placed.run.find(key) else { continue };
            if table.table.get(key, Sequence::MAX, &mut Reads::default())?.is_some() {
                holders.push(place);
            }
        }
        Ok(holders)
    }

    /// Returns the level of each table: runs from new to old, the tables of a run in key order.
    pub fn table_levels(&self) -> Vec<usize> {
        let of_run = |placed: &PlacedRun| {
            std::iter::repeat_n(placed.level, placed.run.tables().len()).collect::<Vec<_>>()
        };
        self.version.runs.iter().flat_map(of_run).collect()
    }

    /// Returns the tables that a get of a key would search without a guard, from new to old. Each
    /// run has one table around the key; the search ends at the first that has it. Tables are
    /// numbered as in [`table_levels`](Self::table_levels).
    ///
    /// # Errors
    /// The store is not open, or a block cannot be read.
    pub fn asked_tables(&self, key: &[u8]) -> Result<Vec<usize>> {
        self.life.check()?;
        let (mut asked, mut before) = (Vec::new(), 0);
        for placed in &self.version.runs {
            let tables = placed.run.tables();
            if let Some(table) = placed.run.find(key) {
                let place = tables.iter().position(|other| std::ptr::eq(other, table));
                asked.extend(place.map(|place| before + place));
                if table.table.get(key, Sequence::MAX, &mut Reads::default())?.is_some() {
                    break;
                }
            }
            before += tables.len();
        }
        Ok(asked)
    }

    /// Returns the memory of a global filter's base and of its overlay, in bytes. None: the store
    /// has another guard.
    pub fn filter_bytes(&self) -> Option<(u64, u64)> {
        let size = self.version.guard.parts()?.size();
        Some((size.base_bytes, size.overlay_bytes))
    }
}

impl std::fmt::Debug for PinnedTree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("PinnedTree").field(&self.peek()).finish()
    }
}

#[cfg(test)]
mod tests;
