//! The words that all filters share: questions, answers, hashes, bytes.
//! ```text
//! query    a key or a range              filter  the traits of a filter, and traces of reads
//! shape    the runs of a version; codes  hash    a key as 64 bits
//! rank     counts, known between bounds  wire    bytes from disk, written and checked
//! monkey   a budget divided among runs
//! ```
//! Invariant: nothing here knows of any one filter.

pub(crate) mod filter;
pub(crate) mod hash;
pub(crate) mod monkey;
pub(crate) mod query;
pub(crate) mod rank;
pub(crate) mod shape;
pub(crate) mod wire;
