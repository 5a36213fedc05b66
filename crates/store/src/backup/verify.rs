//! Reads a generation, and the changes after it, without restoring them.
//! ```text
//! generation-3   its files          changes after it      long values that these name
//! generation-4   ...                                      each is read to its end, and checked
//! ```
//! Invariant: damage is noted, and everything else is read nevertheless.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::apply::Changes;
use super::generation::Generation;
use super::object_store::ObjectStore;
use super::ship::{self, ShippedName};
use super::stored;
use crate::error::{Error, Result};

/// The state of a generation's objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupReport {
    /// The number of objects that were read: files, changes and long values.
    pub files: u64,
    /// The bytes of undamaged objects.
    pub bytes: u64,
    /// The damaged objects.
    pub damage: Vec<BackupDamage>,
}

/// An object that differs from what was stored.
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
        let expected = (file.bytes, file.checksum);
        let read = stored::read(objects, &file.object, expected, |_| Ok(()));
        report.note(objects, &file.object, read.map(|()| file.bytes))?;
    }
    for name in ship::behind(objects, generation)? {
        verify_changes(objects, &name, &mut report)?;
    }
    Ok(report)
}

fn verify_changes(
    objects: &dyn ObjectStore,
    name: &ShippedName,
    report: &mut BackupReport,
) -> Result<()> {
    let read = Changes::read(objects, name).and_then(|it| Ok((it.bytes(), it.long_values()?)));
    let (bytes, values) = match read {
        Ok((bytes, values)) => (Ok(bytes), values),
        Err(error) => (Err(error), Vec::new()),
    };
    report.note(objects, &name.name(), bytes)?;
    for value in values {
        report.note(objects, &value.name.name(), value.check(objects))?;
    }
    Ok(())
}

impl BackupReport {
    /// Notes an object that was read: its bytes, or what is wrong with it.
    fn note(&mut self, objects: &dyn ObjectStore, object: &str, read: Result<u64>) -> Result<()> {
        self.files += 1;
        match read {
            Ok(bytes) => self.bytes += bytes,
            // This program cannot restore an object of another version.
            Err(error) if error.tells_of_damage() || matches!(error, Error::Version { .. }) => {
                let path = stored::path_of(objects, object);
                self.damage.push(BackupDamage { path, what: error.to_string() });
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }
}
