//! Removes generations, and everything that the remaining ones do not need.
//! ```text
//! records of generations -> files, changes -> long values that no remaining changes name
//! ```
//! Invariant: an object is removed only after everything that names it, wherever a call is
//! interrupted.

use std::collections::BTreeSet;

use super::object_store::ObjectStore;
use super::ship::{self, Covered, ShippedName};
use super::stored::path_of;
use super::values::ValueName;
use super::{generation, names};
use crate::error::{Error, Result};

/// What was removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pruned {
    /// The numbers of the removed generations.
    pub generations: Vec<u64>,
    /// The number of removed objects, without the records of generations.
    pub objects: u64,
    /// The bytes of these objects.
    pub bytes: u64,
}

pub(super) fn prune(objects: &dyn ObjectStore, keep: usize) -> Result<Pruned> {
    let numbers = generation::numbers(objects)?;
    let (old, kept) = numbers.split_at(numbers.len().saturating_sub(keep));
    // The remaining records are read before anything is removed.
    let kept: Vec<_> =
        kept.iter().map(|it| generation::one(objects, *it)).collect::<Result<_>>()?;
    let remove = |name: &str| objects.remove(name).map_err(Error::io(path_of(objects, name)));
    for number in old {
        remove(&generation::name(*number))?;
    }
    let files = kept.iter().flat_map(|generation| &generation.files);
    let needed: BTreeSet<&str> = files.map(|file| file.object.as_str()).collect();
    // A store that was restored has greater numbers of writes than the later generations of the
    // first store.
    let oldest = kept.iter().map(|generation| generation.sequence).min();
    let leads_on = |shipped: &ShippedName| oldest.is_some_and(|oldest| shipped.to > oldest);
    let changes = ship::names(objects)?;
    let covered = Covered::of(changes.iter().filter(|it| leads_on(it)));
    let is_needed = |name: &str| match (ShippedName::of(name), ValueName::of(name)) {
        (Some(shipped), _) => leads_on(&shipped),
        (None, Some(value)) => covered.has(value.sequence),
        // Other files in the place do not belong to the backups.
        (None, None) => !names::is_file(name) || needed.contains(name),
    };
    let mut pruned = Pruned { generations: old.to_vec(), ..Pruned::default() };
    let mut all = objects.list("").map_err(Error::io(objects.place()))?;
    all.sort_by_key(|(name, _)| ValueName::of(name).is_some());
    for (name, bytes) in all {
        if !is_needed(&name) {
            remove(&name)?;
            pruned.objects += 1;
            pruned.bytes += bytes;
        }
    }
    Ok(pruned)
}
