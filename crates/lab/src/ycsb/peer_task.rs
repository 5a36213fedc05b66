//! The task of a process that has other engines.
//! ```text
//! {"task": "compare", ...}  or  {"task": "ycsb", ...}  --> standard input
//!                               standard output        --> an array of reports
//! ```
//! Invariant: a task is a whole plan: the process needs nothing else.

use serde::{Deserialize, Serialize};

use crate::compare::ComparePlan;
use crate::ycsb::YcsbPlan;

/// A plan of one of the commands that measure stores beside each other.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "task", rename_all = "lowercase")]
pub enum PeerTask {
    /// `bench compare`.
    Compare(ComparePlan),
    /// `bench ycsb`.
    Ycsb(Box<YcsbPlan>),
}
