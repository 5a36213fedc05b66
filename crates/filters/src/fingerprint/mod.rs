//! How a sorted run of keys becomes short, ordered fingerprints. A leaf that knows no filter.

pub(crate) mod cell;
pub(crate) mod encode;
pub(crate) mod gap;
pub(crate) mod keys;
mod scan;
pub(crate) mod spline;
