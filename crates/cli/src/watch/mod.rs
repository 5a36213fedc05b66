//! Watches a tree while it changes: takes a snapshot and draws it, again and again.

pub(crate) mod tree_snapshot;
pub(crate) mod view;
pub(crate) mod watcher;
