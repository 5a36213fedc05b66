//! What makes up a store, as plain data: the trees of its key spaces, and their logs.
//! ```text
//! key space 0   layout        logs   [.. live) all in tables   [live ..= newest] needed
//! key space 3   layout
//! edit          of any number of trees, and of the logs: all of it, or nothing
//! ```
//! Invariants: the default key space is always there. A number of a file is given once, whichever
//! tree it is of. No I/O here.

use std::collections::{BTreeMap, HashSet};

use crate::entries::entry::NUMBER_MAX;
use crate::entries::keyspace_id::KeyspaceId;
use crate::plan::layout::{Edit, Layout};
use crate::sync::Arc;

/// Which logs are needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogNumbers {
    /// Logs below this one hold nothing that is not in tables.
    pub(crate) live: u64,
    /// The newest log that is on record: it is there, unless it is below `live`. 0: there was none.
    pub(crate) newest: u64,
}

impl LogNumbers {
    /// The newest log that must be there.
    pub(crate) fn needed(self) -> Option<u64> {
        Some(self.newest).filter(|&wal| wal > 0 && wal >= self.live)
    }
}

/// The store as plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoreLayout {
    pub(crate) trees: BTreeMap<KeyspaceId, Arc<Layout>>,
    pub(crate) logs: LogNumbers,
}

impl Default for StoreLayout {
    fn default() -> Self {
        StoreLayout::of(Layout::default(), LogNumbers::default())
    }
}

/// A change of the store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StoreEdit {
    pub(crate) trees: Vec<(KeyspaceId, Edit)>,
    /// Logs below this one hold nothing that is not in tables.
    pub(crate) live_wal: Option<u64>,
    /// This log was made, and is durable.
    pub(crate) newest_wal: Option<u64>,
}

impl StoreEdit {
    /// An edit of one tree.
    #[cfg(test)]
    pub(crate) fn of(keyspace: KeyspaceId, edit: Edit) -> Self {
        StoreEdit { trees: vec![(keyspace, edit)], ..StoreEdit::default() }
    }

    /// The tables that join a tree.
    pub(crate) fn added(&self) -> impl Iterator<Item = u64> + '_ {
        let added = self.trees.iter().flat_map(|(_, edit)| &edit.added);
        added.map(|table| table.file)
    }
}

impl StoreLayout {
    /// A store with the default key space alone.
    pub(crate) fn of(layout: Layout, logs: LogNumbers) -> Self {
        StoreLayout { trees: BTreeMap::from([(KeyspaceId::DEFAULT, Arc::new(layout))]), logs }
    }

    /// This one with another tree of the default key space.
    #[cfg(test)]
    pub(crate) fn with(&self, layout: Layout) -> Self {
        StoreLayout::of(layout, self.logs)
    }

    /// The tree of the default key space.
    pub(crate) fn default_tree(&self) -> &Arc<Layout> {
        &self.trees[&KeyspaceId::DEFAULT]
    }

    /// No file has this number or a larger one.
    pub(crate) fn next_file(&self) -> u64 {
        self.trees.values().map(|layout| layout.next_file).max().unwrap_or_default()
    }

    /// The layout after `edit`; an error that says what does not fit, with the layout unchanged.
    pub(crate) fn apply(&self, edit: &StoreEdit) -> Result<StoreLayout, &'static str> {
        let mut next = self.clone();
        for (keyspace, edit) in &edit.trees {
            let tree = next.trees.get_mut(keyspace).ok_or(NO_KEYSPACE)?;
            *tree = Arc::new(tree.apply(edit)?);
        }
        next.follow_logs(edit);
        Ok(next)
    }

    /// As above, but consumes the layout and does not check tables that the edit leaves alone, so
    /// that many edits are read fast. Requires: [`check`](Self::check) follows.
    pub(crate) fn followed_by(mut self, edit: &StoreEdit) -> Result<StoreLayout, &'static str> {
        for (keyspace, edit) in &edit.trees {
            let tree = self.trees.get_mut(keyspace).ok_or(NO_KEYSPACE)?;
            let layout = Arc::unwrap_or_clone(std::mem::take(tree));
            *tree = Arc::new(layout.followed_by(edit)?);
        }
        self.follow_logs(edit);
        Ok(self)
    }

    fn follow_logs(&mut self, edit: &StoreEdit) {
        self.logs.live = edit.live_wal.unwrap_or(self.logs.live);
        self.logs.newest = edit.newest_wal.unwrap_or(self.logs.newest);
    }

    /// An error if a number is greater than any that is believed.
    pub(crate) fn check_numbers(&self) -> Result<(), &'static str> {
        if self.logs.live > NUMBER_MAX {
            return Err("a log beyond all that a store makes");
        }
        self.trees.values().try_for_each(|layout| layout.check_numbers())
    }

    /// What a layout from disk must obey, or its store could not go on.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        self.check_numbers()?;
        let next_file = self.next_file();
        if self.logs.live > next_file || self.logs.newest > next_file.saturating_sub(1) {
            return Err("a log that was never made");
        }
        self.trees.values().try_for_each(|layout| layout.check())?;
        let mut known = HashSet::new();
        let files = |layout: &Layout| {
            let tables = layout.runs.iter().flat_map(|run| &run.tables).map(|table| table.file);
            let images = layout.images.iter().map(|image| image.file);
            tables.chain(images).collect::<HashSet<u64>>()
        };
        let mut is_shared = |layout: &Layout| files(layout).into_iter().any(|it| !known.insert(it));
        match self.trees.len() > 1 && self.trees.values().any(|layout| is_shared(layout)) {
            true => Err("a file of two key spaces"),
            false => Ok(()),
        }
    }

    /// The edit that makes this layout out of an empty one.
    pub(crate) fn as_edit(&self) -> StoreEdit {
        StoreEdit {
            trees: self.trees.iter().map(|(keyspace, tree)| (*keyspace, tree.as_edit())).collect(),
            live_wal: Some(self.logs.live),
            newest_wal: (self.logs.newest > 0).then_some(self.logs.newest),
        }
    }
}

/// What is wrong with an edit.
const NO_KEYSPACE: &str = "an edit of a key space that is not there";
