//! Filters of one table that answer for keys and ranges.
//! ```text
//! fingerprint_filter  ordered fingerprints
//! surf                a succinct trie
//! rosetta             Bloom filters of the levels of a binary tree
//! rencoder            the same levels, eight of them in a cache line
//! prefix              a Bloom filter of keys and their prefixes
//! arf                 a binary tree, trained
//! base                keys as numbers, hashed bits, the end of an image: for several of these
//! ```
//! Invariant: no filter here knows another one.

pub(crate) mod arf;
mod base;
pub(crate) mod fingerprint_filter;
pub(crate) mod prefix;
pub(crate) mod rencoder;
pub(crate) mod rosetta;
pub(crate) mod surf;
