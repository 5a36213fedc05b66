//! Reads everything and checks it: checksums, order, bounds, the filter's image, and every key against the guard.

use trommel_filters::Query;

use crate::core::Core;
use crate::error::{Error, Result};
use crate::image;
use crate::run::RunTable;
use crate::user_keys::for_each_key;
use crate::version::Version;

/// What was checked, and what is wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifyReport {
    /// Tables read.
    pub tables: u64,
    /// Entries in them.
    pub entries: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// What is damaged, each with file and place. Empty: all is well.
    pub damage: Vec<String>,
}

impl VerifyReport {
    /// What is known already is not told twice.
    fn add(&mut self, damage: String) {
        if !self.damage.contains(&damage) {
            self.damage.push(damage);
        }
    }
}

pub(crate) fn verify(core: &Core) -> Result<VerifyReport> {
    let version = core.current.hold();
    let mut report = VerifyReport { damage: core.damaged_filters.clone(), ..Default::default() };
    for placed in &version.runs {
        for table in placed.run.tables() {
            report.tables += 1;
            report.entries += table.table.entry_count();
            report.bytes += table.table.bytes();
            match check_table(&version, table) {
                Ok(()) => {}
                Err(error @ Error::Corrupt { .. }) => report.add(error.to_string()),
                Err(other) => return Err(other),
            }
        }
    }
    match check_image(core, &version) {
        Ok(()) => Ok(report),
        Err(error @ Error::Corrupt { .. }) => {
            report.add(error.to_string());
            Ok(report)
        }
        Err(other) => Err(other),
    }
}

/// Whether the bytes of the filter's image are those that were written.
fn check_image(core: &Core, version: &Version) -> Result<()> {
    let Some(record) = &version.layout.image else { return Ok(()) };
    let read = image::read(&*core.shelf.storage, &core.shelf.dir, record);
    // A newer one may have taken its place meanwhile.
    let is_named = core.current.pin().layout.image.as_ref() == Some(record);
    if is_named { read.map(|_| ()) } else { Ok(()) }
}

fn check_table(version: &Version, table: &RunTable) -> Result<()> {
    table.table.verify()?;
    let mut denied: Option<Vec<u8>> = None;
    for_each_key(&mut table.table.cursor().fill_cache(false), |key| {
        let answer = version.guard.ask(&Query::Point(key));
        if denied.is_none() && !answer.may_hold(table) {
            denied = Some(key.to_vec());
        }
    })?;
    match denied {
        None => Ok(()),
        Some(key) => {
            let what = format!("the guard denies its key {}", key.escape_ascii());
            Err(Error::corrupt(table.table.path(), 0, what))
        }
    }
}
