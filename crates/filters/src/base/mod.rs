//! What all filters share: queries, answers, hashes and bytes.
//! ```text
//! query    a key or a range              filter  traits of a filter; traces of memory reads
//! shape    the runs of a version; codes  hash    a key as 64 bits
//! rank     key counts with bounds        wire    reads and writes bytes; checks those from disk
//! monkey   divides a budget among runs   kind    what a store must know of a filter; tuning
//! any_filter, sub_filters  filters as trait objects, whole or in parts
//! key_list        keys for a builder
//! filter_builder  builder for hosts that keep it behind `&mut self`
//! real            functions of real numbers, the same in every build
//! ```
//! Invariant: nothing here depends on any one filter.

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
