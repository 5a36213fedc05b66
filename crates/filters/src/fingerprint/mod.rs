//! Encodes a sorted run of keys as short, ordered fingerprints. Depends on no filter.
//! ```text
//! keys --keys--> buffer --builder--> blocks of neighbours ---> groups of blocks ---> arena
//!                                    cell, gap, coded, spline  |
//!                                group_writer writes a group; directory finds it by its separator
//! chapter: what some dozen groups share
//! ```
//! The view of a key is its first 64 bits after a prefix. A key's number is its view without the
//! last bit.
//!
//! Invariant: a key lies in its fingerprint, and fingerprints are in key order.

mod alignment;
pub mod builder;
pub mod cell;
pub(crate) mod chapter;
pub(crate) mod choose_kind;
pub mod coded;
pub(crate) mod demand;
pub mod directory;
pub mod empty_queries;
pub mod encode;
pub mod gap;
pub mod group;
pub mod group_writer;
pub mod hashes;
pub mod keys;
pub mod line;
pub mod query_mix;
pub mod read_cells;
pub mod separator_tails;
pub mod settle;
#[cfg(test)]
mod settle_laws;
pub mod spline;
pub mod starts;
mod trie;

/// How keys become fingerprints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fingerprints {
    /// For each group of some hundred keys, the kind with the lowest expected error rate for its
    /// bits.
    #[default]
    Auto,
    /// Positions on a line, as in the GRF paper: best for smoothly distributed keys.
    Spline,
    /// Numbers with a resolution that follows the gaps between keys: good for any distribution.
    Gap,
    /// The prefixes that tell a key from its neighbours: simple, and the test oracle of the others.
    Cell,
    /// Same as `Gap`, in fewer bits: exponents are coded by frequency.
    Coded,
}

impl Fingerprints {
    /// All kinds.
    pub const ALL: [Fingerprints; 5] = [
        Fingerprints::Auto,
        Fingerprints::Spline,
        Fingerprints::Gap,
        Fingerprints::Cell,
        Fingerprints::Coded,
    ];
}
