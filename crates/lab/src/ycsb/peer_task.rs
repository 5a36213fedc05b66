//! What a process that has other engines is asked to do.
//! ```text
//! {"task": "compare", ...}  or  {"task": "ycsb", ...}  --> standard input
//!                               standard output        --> an array of reports
//! ```
//! Invariant: a task is a plan, whole: nothing else is told to that process.

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
