//! Table filters that answer for single keys.
//! ```text
//! fuse           three cells per key, whose exclusive or is its fingerprint
//! ```

pub(crate) mod fuse;
