//! Questions: drawn from keys, asked of a store, with answers that are checked.
//! ```text
//! keyset ──> question_draw ──> queries ──> a list for each reader thread ──> right, or wrong
//! ```
//! Invariant: the same seed gives the same questions.

pub(crate) mod closed_seeks;
pub(crate) mod deletions;
pub(crate) mod queries;
pub(crate) mod question_draw;
pub(crate) mod read_workload;
pub(crate) mod reader_threads;
pub(crate) mod shift;
pub(crate) mod unanswered;
