//! Table filters that answer for keys and ranges.
//! ```text
//! fingerprint_filter  ordered fingerprints
//! rosetta             Bloom filters for the levels of a binary tree
//! rencoder            the same levels, eight of them in a cache line
//! prefix              a Bloom filter of keys and their prefixes
//! prefix_ribbon       ribbon filters of prefixes of several lengths
//! arf                 a trained binary tree
//! base                shared parts: keys as numbers, hashed bits, the end of an image
//! ```
//! Invariant: no filter here depends on another one.

pub(crate) mod arf;
pub(crate) mod base;
pub(crate) mod fingerprint_filter;
pub(crate) mod prefix;
pub(crate) mod prefix_ribbon;
pub(crate) mod rencoder;
pub(crate) mod rosetta;
