//! The names of a store's files.
//! ```text
//! MANIFEST  LOCK  000007.wal  000008.table  000009.filter  000010.value    000011.sort
//! (the manifest's own names are in manifest.rs)
//! ```
//! Invariant: a number belongs to one file, whatever its kind.

use crate::entries::entry::NUMBER_MAX;
use crate::plan::store_layout::StoreLayout;

/// Locked while the store is open.
pub(crate) const LOCK_NAME: &str = "LOCK";

/// Returns the name of a table's file.
pub(crate) fn table_name(file: u64) -> String {
    format!("{file:06}.table")
}

/// Returns the name of the log with this file number.
pub(crate) fn wal_name(number: u64) -> String {
    format!("{number:06}.wal")
}

/// Returns the name of an image's file.
pub(crate) fn image_name(file: u64) -> String {
    format!("{file:06}.filter")
}

/// Returns the name of a value file.
pub(crate) fn value_name(file: u64) -> String {
    format!("{file:06}.value")
}

/// Returns the name of a file that a sort spills rows into.
pub(crate) fn spill_name(number: u64) -> String {
    format!("{number:06}{SPILL_END}")
}

/// Whether a file belongs to a sort. Such a file is not part of the store: nothing refers to it.
pub(crate) fn is_spill(name: &str) -> bool {
    let number = name.strip_suffix(SPILL_END);
    number.is_some_and(|number| number.parse::<u64>().is_ok_and(|it| spill_name(it) == name))
}

/// The suffix of these names.
const SPILL_END: &str = ".sort";

/// Returns a number above those of all named files and of the layout. A stray file with a huge
/// number, which no store reaches, is ignored.
pub(crate) fn free_number(names: &[String], layout: Option<&StoreLayout>) -> u64 {
    let named = names.iter().filter_map(|name| file_number(name));
    let greatest = named.filter(|&number| number < NUMBER_MAX / 2).max().unwrap_or(0);
    layout.map_or(0, StoreLayout::next_file).max(greatest + 1)
}

/// Returns the number in the name of a table, log, image or value file.
pub(crate) fn file_number(name: &str) -> Option<u64> {
    let (number, kind) = name.split_once('.')?;
    matches!(kind, "table" | "wal" | "wal.new" | "filter" | "value" | "value.new").then_some(())?;
    number.parse().ok().filter(|&number| number <= NUMBER_MAX)
}

/// Returns the numbers of all files of one kind, ascending.
pub(crate) fn numbers_of(names: &[String], name_of: fn(u64) -> String) -> Vec<u64> {
    let number = |name: &String| file_number(name).filter(|&number| *name == name_of(number));
    let mut numbers: Vec<u64> = names.iter().filter_map(number).collect();
    numbers.sort_unstable();
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_files_are_small() {
        assert_eq!(file_number("000012.table"), Some(12));
        assert_eq!(file_number("000012.wal.new"), Some(12));
        assert_eq!(file_number(&format!("{}.table", u64::MAX)), None);
        assert_eq!(file_number("12.txt"), None);
        assert_eq!(file_number(&spill_name(12)), None);
        assert!(is_spill(&spill_name(12)) && is_spill("1234567.sort"));
        assert!(!["12.sort", "+00012.sort", "a.sort", ".sort"].into_iter().any(is_spill));
    }
}
