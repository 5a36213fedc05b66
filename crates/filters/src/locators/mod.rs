//! Filters of a whole tree that know in which run each key is now; every merge must tell them.
//! ```text
//! located   the question, the answer, and the tree that a filter is made for
//! chucky    a cuckoo filter whose entries name runs
//! remix     a sorted view: all runs' keys in one order
//! locator   any of these, chosen at run time
//! ```
//! Invariant: neither `chucky` nor `remix` knows the other one.

pub(crate) mod chucky;
pub(crate) mod located;
pub(crate) mod locator;
pub(crate) mod remix;
