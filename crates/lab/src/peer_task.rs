//! A task for the process that is linked with other engines (`crates/peers`).
//! ```text
//! {"task": "compare", ...}, "ycsb", "transactions", ...  --> standard input
//!                           standard output         --> an array of reports
//! {"task": "export", ...}   standard output         --> a native stream of entries
//! ```
//! Invariant: a task is a complete plan; the process needs no other input.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::compare::{ComparePlan, CompressionPlan, ValuesPlan};
use crate::transactions::TransactionsPlan;
use crate::ycsb::YcsbPlan;

/// The plan of a command that needs another engine.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "task", rename_all = "lowercase")]
pub enum PeerTask {
    /// `bench compare`.
    Compare(ComparePlan),
    /// `bench ycsb`.
    Ycsb(Box<YcsbPlan>),
    /// `bench transactions`.
    Transactions(TransactionsPlan),
    /// `bench compression`.
    Compression(CompressionPlan),
    /// `bench values`.
    Values(ValuesPlan),
    /// `import`: exports the entries of a RocksDB or LevelDB folder.
    Export {
        /// The folder.
        folder: PathBuf,
        /// The column family to read.
        column_family: String,
    },
}
