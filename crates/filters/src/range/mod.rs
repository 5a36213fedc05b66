//! Table filters that answer for keys and ranges.
//! ```text
//! surf   a succinct trie
//! ```
//! Invariant: no filter here depends on another one.

pub(crate) mod surf;
