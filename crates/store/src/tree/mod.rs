//! The open tree: versions, their installer, and the state that all parts of a store share.

pub(crate) mod empty_query_sample;
pub(crate) mod found_chain;
pub(crate) mod guard_image;
pub(crate) mod latency;
pub(crate) mod live_logs;
pub(crate) mod log_chain;
pub(crate) mod metrics;
pub(crate) mod obsolete_files;
pub(crate) mod open_tree;
pub(crate) mod opening;
pub(crate) mod partition_stats;
pub(crate) mod peek;
pub(crate) mod query_mix;
pub(crate) mod recent_empty_queries;
pub(crate) mod run_writer;
pub(crate) mod snapshots;
pub(crate) mod stats;
pub(crate) mod table_files;
pub(crate) mod thread_place;
pub(crate) mod tree_stats;
pub(crate) mod tree_view;
pub(crate) mod value_garbage;
pub(crate) mod values_apart;
pub(crate) mod version;
pub(crate) mod write_stalls;
pub(crate) mod write_times;
