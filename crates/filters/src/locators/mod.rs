//! Filters of a whole tree that know each key's current run. Every merge must update them.
//! ```text
//! run_locator  the filter's traits, queries and answers, and the plan of a tree
//! kind         any such filter, chosen at run time
//! ```
//! Invariant: nothing here depends on any one filter.

pub(crate) mod kind;
pub(crate) mod run_locator;
