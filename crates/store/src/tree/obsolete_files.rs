//! Files that the tree no longer needs, until they are removed.
//! ```text
//! install   tables, logs, images that the newest version does not name -> obsolete
//! sweep     those without a reader -> removed; a failed removal is tried again
//! reader    the last reader of a table wakes a thread, which sweeps
//! ```
//! A table's file goes with the last version that has it. A scan holds the version in which it last
//! moved, until it moves again or ends. Pinned trees hold versions; every other read, merge and
//! checkpoint does so for a moment. A snapshot holds no file: merges keep entries for it.
//!
//! Invariant: a file is removed only when no version names it and no reader has it open.

use std::collections::{BTreeSet, HashSet};

use crate::files::drop_notice::DropListener;
use crate::files::names::{image_name, table_name, wal_name};
use crate::files::table::Table;
use crate::sync::{Arc, Mutex, Weak, lock};
use crate::tree::stats::ObsoleteStats;
use crate::tree::version::{Holder, Holders, Version};

/// A file that is to be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Obsolete {
    Table(u64),
    /// All of its entries are in tables.
    Log(u64),
    /// The manifest no longer names it.
    Image(u64),
}

impl Obsolete {
    pub(crate) fn name(self) -> String {
        match self {
            Obsolete::Table(number) => table_name(number),
            Obsolete::Log(number) => wal_name(number),
            Obsolete::Image(number) => image_name(number),
        }
    }
}

struct ObsoleteTable {
    file: u64,
    bytes: u64,
    table: Weak<Table>,
}

/// The files that are to be removed.
#[derive(Default)]
pub(crate) struct ObsoleteFiles(Mutex<Files>);

#[derive(Default)]
struct Files {
    /// Logs that are still needed, and numbers that may never become logs. Tables and images have
    /// the numbers in between.
    logs: BTreeSet<u64>,
    tables: Vec<ObsoleteTable>,
    others: Vec<Obsolete>,
    /// The holders of the trees that these tables were in.
    trees: Vec<Weak<Holders>>,
}

impl ObsoleteFiles {
    /// Makes the list of a store with these logs.
    pub(crate) fn expecting(logs: impl IntoIterator<Item = u64>) -> ObsoleteFiles {
        let obsolete = ObsoleteFiles::default();
        obsolete.expect_logs(logs);
        obsolete
    }

    /// Notes logs that exist, or may soon exist.
    pub(crate) fn expect_logs(&self, numbers: impl IntoIterator<Item = u64>) {
        lock(&self.0).logs.extend(numbers);
    }

    /// Marks the logs below this one for removal.
    pub(crate) fn add_logs_before(&self, live: u64) {
        let mut files = lock(&self.0);
        let needed = files.logs.split_off(&live);
        let gone = std::mem::replace(&mut files.logs, needed);
        files.others.extend(gone.into_iter().map(Obsolete::Log));
    }

    /// Marks tables that leave the tree of `version`, the last version with its holders. The last
    /// reader of a table notifies `listener`.
    pub(crate) fn add_tables<'t>(
        &self,
        version: &Version,
        tables: impl Iterator<Item = &'t Arc<Table>>,
        listener: Arc<dyn DropListener>,
    ) {
        let mut files = lock(&self.0);
        files.tables.extend(tables.map(|table| {
            table.leave(Arc::clone(&listener));
            let (file, bytes) = (table.file(), table.bytes());
            ObsoleteTable { file, bytes, table: Arc::downgrade(table) }
        }));
        files.trees.retain(|tree| tree.strong_count() > 0);
        files.trees.push(Arc::downgrade(&version.holders));
    }

    pub(crate) fn add(&self, others: impl IntoIterator<Item = Obsolete>) {
        lock(&self.0).others.extend(others);
    }

    /// Returns the files without a reader.
    pub(crate) fn free(&self) -> Vec<Obsolete> {
        let files = lock(&self.0);
        let tables = files.tables.iter().filter(|obsolete| obsolete.table.strong_count() == 0);
        files.others.iter().copied().chain(tables.map(|it| Obsolete::Table(it.file))).collect()
    }

    pub(crate) fn forget(&self, gone: &HashSet<Obsolete>) {
        let mut files = lock(&self.0);
        files.others.retain(|other| !gone.contains(other));
        files.tables.retain(|obsolete| !gone.contains(&Obsolete::Table(obsolete.file)));
    }

    /// Returns how much is still there, and what holds it.
    pub(crate) fn stats(&self, newest: &Version) -> ObsoleteStats {
        let files = lock(&self.0);
        let trees = files.trees.iter().filter_map(Weak::upgrade);
        let trees: Vec<_> =
            trees.filter(|holders| !Arc::ptr_eq(holders, &newest.holders)).collect();
        let trees = if files.tables.is_empty() { &[] } else { &trees[..] };
        let held_by = |kind: Holder| trees.iter().map(|holders| holders.count(kind)).sum();
        ObsoleteStats {
            tables: files.tables.len() as u64,
            bytes: files.tables.iter().map(|obsolete| obsolete.bytes).sum(),
            scans: held_by(Holder::Scan),
            pinned_trees: held_by(Holder::PinnedTree),
            followed_trees: held_by(Holder::Follower),
        }
    }
}
