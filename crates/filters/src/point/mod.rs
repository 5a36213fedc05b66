//! Table filters that answer for single keys.
//! ```text
//! bloom          k bits per key, anywhere
//! blocked_bloom  k bits per key, in one cache line
//! ribbon         rows of a linear system, solved at build time
//! ```
//! Invariant: no filter here depends on another one.

pub(crate) mod blocked_bloom;
pub(crate) mod bloom;
pub(crate) mod ribbon;
