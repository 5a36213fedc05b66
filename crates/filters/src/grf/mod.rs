//! The Global Range Filter: one filter for all runs of a part of the tree.
//! ```text
//! key --locate--> (group, block)
//!     --place---> fingerprint, fraction --+--> base: keys of the last level  -> [0, base end)
//!                                         '--> overlay: places and codes     -> [n, n + 1), ...
//! ```
//! A part is a value: an insertion returns a new part, which shares what did not change.
//!
//! Invariant: for every pushed key, the answer to a query that covers it has a code which contains
//! the key's flush number.

mod base;
mod options;
mod overlay;
mod part;
mod sizes;

pub use options::{GrfOptions, RunCodes};
pub use part::builder::PartBuilder;
pub use part::cursor::{Cursor, CursorBack};
pub use part::inserter::Inserter;
pub use part::recoder::Recoder;
pub use part::{Part, PartSize};
