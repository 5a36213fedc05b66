//! Registers the kinds of this crate with the store by their names.
//!
//! Invariant: a registration lasts, and repeating it changes nothing.

use trommel::filters::{register_filter, register_run_locator};
use trommel::{GuardKind, Result};

use crate::kinds;

/// Registers every kind of this crate for the whole process. Repeated calls change nothing.
///
/// # Errors
/// Another crate has registered one of the names.
pub fn register() -> Result<()> {
    kinds::FURTHER.into_iter().try_for_each(register_filter)?;
    kinds::RUN_LOCATORS.into_iter().try_for_each(register_run_locator)
}

/// Registers this crate's kinds and returns all known guards. The order: `none`, table filters as
/// in [`kinds::TABLE_FILTERS`], filters of the whole tree, and those that others have registered.
///
/// # Panics
/// Another crate has registered one of the names.
pub fn all_guards() -> Vec<GuardKind> {
    register().expect("nobody else has these names");
    let first = [GuardKind::Open].into_iter().chain(kinds::TABLE_FILTERS.map(GuardKind::Table));
    let first: Vec<GuardKind> = first.collect();
    let others: Vec<GuardKind> =
        GuardKind::all().into_iter().filter(|guard| !first.contains(guard)).collect();
    [first, others].concat()
}
