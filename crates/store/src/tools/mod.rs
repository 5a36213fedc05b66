//! Tools that inspect a store, copy it or repair it. Only `db`, `follow` and `backup` use them.

pub(crate) mod checkpoint;
pub(crate) mod collect_stats;
pub(crate) mod dump;
mod dump_values;
pub(crate) mod own_numbers;
pub(crate) mod progress;
pub(crate) mod repair;
pub(crate) mod repair_layout;
pub(crate) mod repair_logs;
pub(crate) mod repair_manifest;
pub(crate) mod repair_report;
pub(crate) mod repair_tables;
pub(crate) mod repair_untangle;
mod repair_values;
pub(crate) mod verify;
pub(crate) mod verify_files;

pub use crate::files::log_check::LogCounts;
pub use crate::files::manifest::{FORMAT_VERSION, READ_VERSIONS};
pub use crate::tree::peek::{RunPeek, TreePeek, peek, peek_keyspaces};
pub use dump::{DumpItem, FileKind, dump};
pub use progress::{OnProgress, Progress};
pub use repair::{repair, repair_with, repair_with_progress};
pub use repair_report::{Doubt, Loss, RepairReport};
pub use verify::VerifyReport;
pub use verify_files::{verify_files, verify_files_with, verify_files_with_progress};
