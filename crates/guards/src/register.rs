//! Makes the kinds of this crate known to the store by their names.
//!
//! Invariant: what was registered stays so, and registering again changes nothing.

use trommel::filters::{register_filter, register_run_locator};
use trommel::{GuardKind, Result};

use crate::kinds;

/// Makes every kind of this crate known, for the whole process. Once more is as good as once. An
/// error: a filter of another crate has one of the names.
pub fn register() -> Result<()> {
    kinds::FURTHER.into_iter().try_for_each(register_filter)?;
    kinds::RUN_LOCATORS.into_iter().try_for_each(register_run_locator)
}

/// Every guard that is known, those of this crate among them. The order: `none`, filters of one
/// table as in [`kinds::TABLE_FILTERS`], those of the whole tree, and what others have registered.
///
/// # Panics
/// If a filter of another crate has one of the names.
pub fn all_guards() -> Vec<GuardKind> {
    register().expect("nobody else has these names");
    let first = [GuardKind::Open].into_iter().chain(kinds::TABLE_FILTERS.map(GuardKind::Table));
    let first: Vec<GuardKind> = first.collect();
    let others: Vec<GuardKind> =
        GuardKind::all().into_iter().filter(|guard| !first.contains(guard)).collect();
    [first, others].concat()
}
