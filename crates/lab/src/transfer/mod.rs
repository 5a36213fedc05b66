//! Entries on their way from one store to another, as a stream of bytes.
//! ```text
//! store --> StreamWriter --> file, pipe --> StreamReader --> store
//!           native, JSON lines, TSV         the same forms
//! ```
//! Invariants: keys, values and expiries arrive byte by byte. A whole stream ends with counts and a
//! checksum of its entries, which are the same in every form. The native form is read for ever: a
//! change of it is a version more, and none less.

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
