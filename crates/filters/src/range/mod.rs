//! Filters of one table that answer for keys and ranges.
//! ```text
//! surf   a succinct trie
//! ```
//! Invariant: no filter here knows another one.

pub(crate) mod surf;
