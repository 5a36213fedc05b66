//! Changes to a store: writes, flushes and merges. Nothing here uses `read`.

pub(crate) mod background_work;
pub(crate) mod closing;
pub(crate) mod commit;
pub(crate) mod conflicts;
pub(crate) mod engine;
pub(crate) mod flush;
pub(crate) mod ingest;
pub(crate) mod key_locks;
pub(crate) mod keyspaces;
pub(crate) mod locator_merge;
pub(crate) mod merge_inputs;
pub(crate) mod merge_install;
pub(crate) mod merge_plan;
pub(crate) mod merge_scheduler;
pub(crate) mod older_runs;
pub(crate) mod open_merges;
pub(crate) mod parts_builder;
pub(crate) mod refit;
pub(crate) mod refit_scheduler;
pub(crate) mod split_merge;
pub(crate) mod submerge;
pub(crate) mod work;
pub(crate) mod workers;
