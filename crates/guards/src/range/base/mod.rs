//! What several range filters are made of.
//! ```text
//! number        keys as numbers, behind the prefix that they share
//! dyadic        a range of numbers, searched for in a binary tree of prefixes
//! hashed        bits that a hash chooses
//! prefix_rule   what the prefix of a key is
//! tail          the end of an image: what its bytes mean
//! ```
//! Invariant: nothing here knows of any one filter.

pub(crate) mod dyadic;
pub(crate) mod hashed;
pub(crate) mod number;
pub(crate) mod prefix_rule;
pub(crate) mod tail;
