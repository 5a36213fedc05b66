//! The commands of `bench`: each measures with `trommel-lab` and prints the results.

pub(crate) mod chucky_codes;
pub(crate) mod compare;
pub(crate) mod compression;
pub(crate) mod fpr;
pub(crate) mod map;
pub(crate) mod open;
pub(crate) mod probe;
pub(crate) mod read;
pub(crate) mod readers;
pub(crate) mod surf_steps;
pub(crate) mod transactions;
pub(crate) mod values;
pub(crate) mod write;
pub(crate) mod ycsb;
