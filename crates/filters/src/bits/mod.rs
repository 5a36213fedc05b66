//! Bits and bytes as the filters lay them out.
//! ```text
//! aligned    bytes that begin on a cache line
//! ```
//! Invariant: nothing here knows of keys or filters.

mod aligned;

pub use aligned::AlignedBytes;
