//! What the tree is and what it should become: data and pure functions, without I/O.

pub(crate) mod background;
pub(crate) mod flush_size;
pub(crate) mod guard_kind;
pub(crate) mod layout;
pub(crate) mod merge_job;
pub(crate) mod options;
pub(crate) mod partitions;
pub(crate) mod pick;
pub(crate) mod pick_runs;
pub(crate) mod pick_tables;
pub(crate) mod policy;
mod policy_text;
pub(crate) mod registry;
pub(crate) mod run_limits;
pub(crate) mod simulate;
pub(crate) mod store_layout;
pub(crate) mod sync_policy;
