//! Tools that inspect a store, copy it or repair it. Nothing but `db` uses them.

pub(crate) mod checkpoint;
pub(crate) mod collect_stats;
pub(crate) mod dump;
pub(crate) mod progress;
pub(crate) mod repair;
pub(crate) mod repair_layout;
pub(crate) mod repair_logs;
pub(crate) mod repair_manifest;
pub(crate) mod repair_report;
pub(crate) mod repair_tables;
pub(crate) mod repair_untangle;
pub(crate) mod verify;
pub(crate) mod verify_files;
