//! The parts of a stream, and its errors.

use trommel::Expiry;

use crate::transfer::tally::StreamEnd;

/// The form of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamForm {
    /// Blocks with checksums: small, fast, and checked while they are read.
    Native,
    /// One JSON object per line.
    JsonLines,
    /// Tab-separated columns with escapes: key, value and, if there is one, expiry.
    Tsv,
}

/// An entry of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamEntry {
    /// The key.
    pub key: Vec<u8>,
    /// Its value.
    pub value: Vec<u8>,
    /// The time of expiry, if there is one.
    pub expiry: Option<Expiry>,
}

/// The next part of a stream.
pub(crate) enum StreamItem {
    Entry(StreamEntry),
    End(StreamEnd),
}

/// An error in a stream, and its place.
#[derive(Debug, PartialEq, Eq)]
pub struct BadStream {
    /// "line 3", or "byte 812".
    pub place: String,
    /// What is wrong.
    pub problem: String,
}
