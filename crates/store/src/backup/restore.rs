//! Makes a store of a generation, and of the changes that were shipped since.
//! ```text
//! objects -> files, synced -> MANIFEST, last of all -> the store is there
//!                                                      changes up to a moment -> applied to it
//! ```
//! Invariant: a folder without MANIFEST is no store, and is refused.

use std::path::Path;
use std::time::Duration;

use super::generation::{Generation, StoredFile};
use super::object_store::ObjectStore;
use super::{generation, ship, stored};
use crate::db::Db;
use crate::error::{Error, Result};
use crate::files::manifest::{MANIFEST_NAME, MANIFEST_NEW_NAME};
use crate::plan::options::Options;
use crate::shared::environment::Environment;
use crate::storage::traits::Storage;
use crate::tools::checkpoint::{Made, Target, take_new_folder};

/// A moment of a store's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// After the write with this number, if a batch ends there; else after the last batch before.
    Sequence(u64),
    /// A time since the start of 1970. It is known of generations and of calls that shipped, not of
    /// single writes: it means the last one of these before.
    Time(Duration),
}

pub(super) fn restore(
    objects: &dyn ObjectStore,
    generation: &Generation,
    storage: &dyn Storage,
    dir: &Path,
) -> Result<()> {
    let (folder, _lock) = take_new_folder(storage, dir)?;
    let mut made = Made::in_folder(folder);
    let filled = fill(objects, generation, &mut made);
    if filled.is_err() {
        made.remove();
    }
    filled
}

fn fill(objects: &dyn ObjectStore, generation: &Generation, made: &mut Made) -> Result<()> {
    let is_manifest = |file: &&StoredFile| file.name == MANIFEST_NAME;
    let Some(manifest) = generation.files.iter().find(is_manifest) else {
        let path = stored::path_of(objects, &generation::name(generation.number));
        return Err(Error::corrupt(path, 0, "a generation without a manifest"));
    };
    for file in generation.files.iter().filter(|file| !is_manifest(file)) {
        write(objects, file, &file.name, made)?;
    }
    made.folder().sync()?;
    write(objects, manifest, MANIFEST_NEW_NAME, made)?;
    made.begin(MANIFEST_NAME.into());
    made.folder().rename(MANIFEST_NEW_NAME, MANIFEST_NAME)?;
    made.folder().sync()
}

fn write(objects: &dyn ObjectStore, file: &StoredFile, name: &str, made: &mut Made) -> Result<()> {
    let (mut out, path) = (made.folder().create(name)?, made.folder().path_of(name));
    made.begin(name.into());
    let told = (file.bytes, file.checksum);
    stored::read(objects, &file.object, told, |piece| out.append(piece).map_err(Error::io(&path)))?;
    out.sync().map_err(Error::io(&path))
}

pub(super) fn until(
    objects: &dyn ObjectStore,
    until: Until,
    dir: &Path,
    options: Options,
    environment: &Environment,
) -> Result<u64> {
    let shipped = ship::names(objects)?;
    let generations = generation::all(objects)?;
    let from = match until {
        // Of the store that had that write: one that was restored later has greater numbers.
        Until::Sequence(number) => {
            generations.iter().filter(|it| it.sequence <= number).max_by_key(|it| it.sequence)
        }
        Until::Time(time) => {
            generations.iter().rfind(|it| u128::from(it.milliseconds) <= time.as_millis())
        }
    };
    let Some(from) = from else {
        let (path, what) = (objects.place().into(), "no generation is so old".to_string());
        return Err(Error::FileMissing { path, what });
    };
    let to = match until {
        Until::Sequence(number) => number,
        Until::Time(time) => ship::reached(&shipped, from.sequence, time),
    };
    let chain = ship::chain(objects, &shipped, from.sequence, to)?;
    restore(objects, from, &*environment.storage, dir)?;
    if chain.is_empty() {
        return Ok(from.sequence);
    }
    let db = Db::open_with(dir, options, environment.clone())?;
    let mut last = from.sequence;
    for name in chain {
        last = ship::apply(objects, &name, &db, (last, to))?;
    }
    db.sync()?;
    db.close()?;
    Ok(last)
}
