//! Filters of a whole tree that know in which run each key is now; every merge must tell them.
//! ```text
//! run_locator  the question, the answer, and the tree that a filter is made for
//! kind      any of these, chosen at run time
//! ```
//! Invariant: nothing here knows of any one filter.

pub(crate) mod kind;
pub(crate) mod run_locator;
