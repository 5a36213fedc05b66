//! Parts that several range filters share.
//! ```text
//! number        keys as numbers, after their common prefix
//! dyadic        range search in a binary tree of prefixes
//! hashed        bits chosen by a hash
//! prefix_rule   the rule that defines a key's prefix
//! tail          the end of an image, which describes its payload
//! ```
//! Invariant: nothing here depends on any one filter.

pub(crate) mod dyadic;
pub(crate) mod hashed;
pub(crate) mod number;
pub(crate) mod prefix_rule;
pub(crate) mod tail;
