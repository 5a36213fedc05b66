//! Watching a tree while it lives: a snapshot, then a picture of it, again and again.

pub(crate) mod tree_snapshot;
pub(crate) mod view;
pub(crate) mod watcher;
