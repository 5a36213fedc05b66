//! The benchmarks of this store and its filters, one per file, and what they share.
//! ```text
//! plan ──> load: a tree of known shape ──> rounds that take turns ──> report
//! ```
//! Invariant: an answer is checked before it is timed.

pub(crate) mod amplification;
pub(crate) mod by_level;
pub(crate) mod caches;
pub(crate) mod chucky_codes;
pub(crate) mod counts;
pub(crate) mod fill;
pub(crate) mod fit_bits;
pub(crate) mod folder_size;
pub(crate) mod forget;
pub(crate) mod fpr;
pub(crate) mod fpr_round;
pub(crate) mod fpr_tree;
pub(crate) mod full_scan;
pub(crate) mod load;
pub(crate) mod many;
pub(crate) mod map;
pub(crate) mod open;
pub(crate) mod ordered_maps;
pub(crate) mod pace;
pub(crate) mod partial_writes;
pub(crate) mod pipelined;
pub(crate) mod probe;
pub(crate) mod probe_filters;
pub(crate) mod probe_plan;
pub(crate) mod probe_questions;
pub(crate) mod probe_threads;
pub(crate) mod put_ns;
pub(crate) mod read;
pub(crate) mod readers;
pub(crate) mod rounds;
pub(crate) mod surf_steps;
pub(crate) mod unsynced;
pub(crate) mod wilson;
pub(crate) mod write;
