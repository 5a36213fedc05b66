//! The words that all filters share: questions, answers, hashes, bytes.
//! ```text
//! query    a key or a range              filter  the traits of a filter, and traces of reads
//! shape    the runs of a version; codes  hash    a key as 64 bits
//! rank     counts, known between bounds  wire    bytes from disk, written and checked
//! monkey   a budget divided among runs       kind    what a store has to know of a filter; tuning
//! any_filter, sub_filters  filters as objects, whole or in parts; key_list, what they take
//! filter_builder  what hosts build filters with
//! real     functions of real numbers, the same in every build
//! ```
//! Invariant: nothing here knows of any one filter.

pub(crate) mod any_filter;
pub(crate) mod filter;
pub(crate) mod filter_builder;
pub mod hash;
pub(crate) mod key_list;
pub(crate) mod kind;
pub(crate) mod monkey;
pub(crate) mod query;
pub(crate) mod rank;
pub(crate) mod real;
pub(crate) mod shape;
pub(crate) mod sub_filters;
pub(crate) mod tuning;
pub(crate) mod tuning_option;
pub(crate) mod wire;
