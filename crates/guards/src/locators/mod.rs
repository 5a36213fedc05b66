//! Filters of a whole tree that know each key's current run.
//! ```text
//! chucky    a cuckoo filter whose entries name runs
//! remix     a sorted view: the keys of all runs in one order
//! ```
//! Invariant: neither depends on the other.

pub(crate) mod chucky;
pub(crate) mod remix;
