//! Recognizes the names of a backup's objects. A folder of backups may have other files.

use super::generation;
use super::ship::ShippedName;
use super::values::ValueName;
use crate::files::manifest::MANIFEST_NAME;
use crate::files::names::file_number;

/// Whether an object of a backup has this name.
pub(super) fn is_object(name: &str) -> bool {
    let is_of_changes = ShippedName::of(name).is_some() || ValueName::of(name).is_some();
    is_file(name) || generation::number_of(name).is_some() || is_of_changes
}

/// Whether an object has this name because it holds a file of a store.
pub(super) fn is_file(object: &str) -> bool {
    if let Some((number, name)) = object.strip_prefix("own-").and_then(|it| it.split_once('-')) {
        let is_own = name == MANIFEST_NAME || file_number(name).is_some();
        return is_own && number.parse::<u64>().is_ok();
    }
    let Some((stem, kind)) = object.split_once('.') else { return false };
    let [number, len, end] = stem.split('-').collect::<Vec<_>>()[..] else { return false };
    let is_numbered = file_number(&format!("{number}.{kind}")).is_some();
    is_numbered && len.parse::<u64>().is_ok() && u32::from_str_radix(end, 16).is_ok()
}
