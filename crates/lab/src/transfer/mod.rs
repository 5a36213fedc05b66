//! Streams of entries from one store to another.
//! ```text
//! store --> StreamWriter --> file, pipe --> StreamReader --> store
//!           native, JSON lines, TSV         the same forms
//! ```
//! Invariants: keys, values and expiries arrive unchanged. A complete stream ends with counts and a
//! checksum of its entries, which are the same in every form. All versions of the native form stay
//! readable; a change adds a version and removes none.

mod entry;
mod escapes;
mod json_lines;
mod native;
mod reader;
mod tally;
#[cfg(test)]
mod tests;
mod tsv;
mod writer;

pub use entry::{BadStream, StreamEntry, StreamForm};
pub use escapes::{escaped, unescaped};
pub use json_lines::json_bytes;
pub use reader::StreamReader;
pub use tally::StreamEnd;
pub use writer::StreamWriter;
