//! Reads what a generation has, without restoring it.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::generation::Generation;
use super::object_store::ObjectStore;
use super::stored;
use crate::error::Result;

/// What a generation's objects are like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupReport {
    /// Files that were read.
    pub files: u64,
    /// Bytes of those that are as they were stored.
    pub bytes: u64,
    /// What is not as it was stored.
    pub damage: Vec<BackupDamage>,
}

/// An object that is not as it was stored.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupDamage {
    /// The object.
    pub path: PathBuf,
    /// What is wrong.
    pub what: String,
}

pub(super) fn verify(objects: &dyn ObjectStore, generation: &Generation) -> Result<BackupReport> {
    let (mut report, mut seen) = (BackupReport::default(), BTreeSet::new());
    for file in generation.files.iter().filter(|file| seen.insert(&file.object)) {
        report.files += 1;
        let told = (file.bytes, file.checksum);
        match stored::read(objects, &file.object, told, |_| Ok(())) {
            Ok(()) => report.bytes += file.bytes,
            Err(error) if error.tells_of_damage() => {
                let path = stored::path_of(objects, &file.object);
                report.damage.push(BackupDamage { path, what: error.to_string() });
            }
            Err(error) => return Err(error),
        }
    }
    Ok(report)
}
