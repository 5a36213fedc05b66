//! Filters of a whole tree that know in which run each key is now.
//! ```text
//! chucky    a cuckoo filter whose entries name runs
//! remix     a sorted view: all runs' keys in one order
//! ```
//! Invariant: neither knows the other one.

pub(crate) mod chucky;
pub(crate) mod remix;
