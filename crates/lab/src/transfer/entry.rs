//! What a stream is made of, and what can be wrong with it.

use trommel::Expiry;

use crate::transfer::tally::StreamEnd;

/// How a stream is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamForm {
    /// Blocks with checksums: small, fast, and checked while it is read.
    Native,
    /// One JSON object in a line.
    JsonLines,
    /// Key, value and, if there is one, expiry, with tabs between them and escapes in them.
    Tsv,
}

/// What is at a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamEntry {
    /// The key.
    pub key: Vec<u8>,
    /// Its value.
    pub value: Vec<u8>,
    /// When it expires.
    pub expiry: Option<Expiry>,
}

/// What comes next in a stream.
pub(crate) enum Next {
    Entry(StreamEntry),
    End(StreamEnd),
}

/// What is wrong with a stream, and where.
#[derive(Debug, PartialEq, Eq)]
pub struct BadStream {
    /// "line 3", or "byte 812".
    pub place: String,
    /// What is wrong.
    pub problem: String,
}
