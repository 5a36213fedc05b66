//! Keys: their sources, their order, and their values.
//! ```text
//! dist ──> laws, files, real sets ──> key list ──> keyset: stored keys, and others like them
//! ```
//! Invariant: a seed gives the same keys on every machine.

pub(crate) mod dist;
pub(crate) mod key_files;
pub(crate) mod key_list;
pub(crate) mod keyset;
pub(crate) mod laws;
pub(crate) mod natural_earth;
pub(crate) mod parts;
pub(crate) mod real_sets;
pub(crate) mod rng;
pub(crate) mod skew;
pub(crate) mod spread;
pub(crate) mod text;
pub(crate) mod values;
