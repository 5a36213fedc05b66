//! Filters of one table that answer for single keys.
//! ```text
//! bloom          k bits of a key anywhere
//! blocked_bloom  k bits of a key in one cache line
//! ribbon         rows of a linear system, solved at build time
//! fuse           three cells of a key, which add up to its fingerprint
//! ```
//! Invariant: no filter here knows another one.

pub(crate) mod blocked_bloom;
pub(crate) mod bloom;
pub(crate) mod fuse;
pub(crate) mod ribbon;
