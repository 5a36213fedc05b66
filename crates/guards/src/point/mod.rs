//! Filters of one table that answer for single keys.
//! ```text
//! fuse           three cells of a key, which add up to its fingerprint
//! ```

pub(crate) mod fuse;
