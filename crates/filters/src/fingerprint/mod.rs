//! How a sorted run of keys becomes short, ordered fingerprints. A leaf that knows no filter.
//! ```text
//! keys --keys--> buffer --builder--> blocks of neighbours ---> groups of blocks ---> arena
//!                                    cell, gap, coded, spline  |
//!                                group_writer writes a group, directory has the groups' separators
//! chapter: what some dozen groups share
//! ```
//! Invariant: a key lies in its fingerprint, and fingerprints are in key order.

mod alignment;
pub mod asked;
pub mod builder;
pub mod cell;
pub(crate) mod chapter;
pub(crate) mod choose_kind;
pub mod coded;
pub(crate) mod demand;
pub mod directory;
pub mod encode;
pub mod gap;
pub mod group;
pub mod group_writer;
pub mod hashes;
pub mod keys;
pub mod line;
pub mod questions;
pub mod read_cells;
pub mod separator_tails;
pub mod settle;
#[cfg(test)]
mod settle_laws;
pub mod spline;
pub mod starts;
mod trie;

/// How a key becomes a fingerprint (DESIGN section 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fingerprints {
    /// Per group of some hundred keys, whichever promises the fewest needless reads for its bits.
    #[default]
    Auto,
    /// Positions on a line, as in the GRF paper: best where keys are spread smoothly.
    Spline,
    /// Numbers as fine as the gaps around them: good whatever the distribution.
    Gap,
    /// Prefixes that tell a key from its neighbours: plain, and the oracle of the others.
    Cell,
    /// As `Gap`, in fewer bits: exponents take as many as their frequency asks for.
    Coded,
}

impl Fingerprints {
    /// Every kind there is.
    pub const ALL: [Fingerprints; 5] = [
        Fingerprints::Auto,
        Fingerprints::Spline,
        Fingerprints::Gap,
        Fingerprints::Cell,
        Fingerprints::Coded,
    ];
}
