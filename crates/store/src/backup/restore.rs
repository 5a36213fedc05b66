//! Restores a store from a generation and the changes that were shipped after it.
//! ```text
//! objects -> files, synced ----------------------------------> MANIFEST, last of all: a store
//!                          -> changes up to a moment, applied
//!                             (staged: meanwhile its manifest has another name)
//! ```
//! Invariants: a folder without MANIFEST is refused as no store. So a killed process leaves no
//! store of an earlier moment. After an error nothing is left in the folder.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::apply::{Changes, Restored, Unlogged};
use super::generation::{Generation, StoredFile};
use super::object_store::ObjectStore;
use super::ship::{Covered, ShippedName};
use super::staged::{Staged, publish};
use super::values::ValueName;
use super::{generation, ship, stored, values};
use crate::db::Db;
use crate::entries::entry::Sequence;
use crate::error::{Error, Result};
use crate::files::manifest::{MANIFEST_NAME, MANIFEST_NEW_NAME, leave_out};
use crate::files::names::{LOCK_NAME, file_number};
use crate::files::store_folder::lock_folder;
use crate::plan::options::Options;
use crate::plan::store_layout::GoneNumbers;
use crate::shared::environment::Environment;
use crate::storage::open_folder::OpenFolder;
use crate::storage::traits::{Append, Storage};
use crate::sync::Arc;
use crate::tools::checkpoint::{Made, Target, take_new_folder};
use crate::tools::own_numbers;
use crate::tools::progress::Steps;

/// A moment in the life of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// After the write with this number, if a batch ends there. Otherwise after the last batch
    /// before it.
    Sequence(u64),
    /// A time since the start of 1970. Not single writes have a time, but each second with writes,
    /// while the store [keeps logs](crate::options::OptionValues::kept_log_bytes). So this means
    /// all writes up to the last such second that ended by then, or up to a later generation or
    /// call of `ship`. Writes from before an opening, unless they were shipped, have its time.
    Time(Duration),
}

/// Restores the store of a generation. Requires: `steps` has begun.
pub(super) fn restore(
    objects: &dyn ObjectStore,
    generation: &Generation,
    (environment, dir): (&Environment, &Path),
    steps: &mut Steps<'_, '_>,
) -> Result<()> {
    let (folder, _lock) = take_new_folder(&*environment.storage, dir)?;
    let mut made = Made::in_folder(folder);
    let left_out = left_out(generation, environment, dir);
    let filled = fill(objects, generation, left_out, &mut made, steps);
    if filled.is_err() {
        made.remove();
    }
    filled
}

/// Returns the numbers that the restored store leaves out, so that it has its own.
fn left_out(generation: &Generation, environment: &Environment, dir: &Path) -> GoneNumbers {
    let files = generation.files.iter().filter_map(|file| file_number(&file.name));
    let used = files.chain([generation.sequence]).max().expect("one is there");
    let begin = own_numbers::begin((environment, dir), used);
    GoneNumbers { next_file: begin, last_sequence: Sequence(begin) }
}

fn fill(
    objects: &dyn ObjectStore,
    generation: &Generation,
    left_out: GoneNumbers,
    made: &mut Made,
    steps: &mut Steps<'_, '_>,
) -> Result<()> {
    let is_manifest = |file: &&StoredFile| file.name == MANIFEST_NAME;
    let Some(manifest) = generation.files.iter().find(is_manifest) else {
        let path = stored::path_of(objects, &generation::name(generation.number));
        return Err(Error::corrupt(path, 0, "a generation without a manifest"));
    };
    for file in generation.files.iter().filter(|file| !is_manifest(file)) {
        let (mut out, path) = write(objects, file, &file.name, made, steps)?;
        out.sync().map_err(Error::io(&path))?;
    }
    made.folder().sync()?;
    let (out, path) = write(objects, manifest, MANIFEST_NEW_NAME, made, steps)?;
    leave_out(left_out, (out, path, manifest.bytes))?;
    made.begin(MANIFEST_NAME.into());
    made.folder().rename(MANIFEST_NEW_NAME, MANIFEST_NAME)?;
    made.folder().sync()
}

/// Writes the bytes of an object to a file. Returns the file, which is not durable yet, and its
/// path.
fn write(
    objects: &dyn ObjectStore,
    file: &StoredFile,
    name: &str,
    made: &mut Made,
    steps: &mut Steps<'_, '_>,
) -> Result<(Box<dyn Append>, PathBuf)> {
    let (mut out, path) = (made.folder().create(name)?, made.folder().path_of(name));
    made.begin(name.into());
    let expected = (file.bytes, file.checksum);
    stored::read(objects, &file.object, expected, |piece| {
        out.append(piece).map_err(Error::io(&path))?;
        steps.advance(piece.len() as u64)
    })?;
    Ok((out, path))
}

/// Returns the last write that was made by a time, as far as changes tell that lead on from write
/// `from`. All changes of a shipment were made by the time in its name.
fn reached(
    objects: &dyn ObjectStore,
    all: &[ShippedName],
    from: u64,
    time: Duration,
) -> Result<u64> {
    let (mut at, mut end) = (from, from);
    for it in all.iter().filter(|it| it.to > from) {
        if it.from > end {
            break;
        }
        end = end.max(it.to);
        let last = match u128::from(it.milliseconds) <= time.as_millis() {
            true => Some(it.to),
            false => Changes::read(objects, it)?.last_by(time),
        };
        // An object with marks has one of its last write, so later objects have only later writes.
        let Some(last) = last else { break };
        at = at.max(last);
    }
    Ok(at)
}

/// The generation and the changes that make up a store as of a moment.
struct RestorePlan {
    from: Generation,
    changes: Vec<ShippedName>,
    /// The last write to apply, if a batch ends there.
    to: u64,
}

impl RestorePlan {
    fn new(objects: &dyn ObjectStore, until: Until) -> Result<RestorePlan> {
        let shipped = ship::names(objects)?;
        let generations = generation::all(objects)?;
        let from = match until {
            // The newest generation of the store with that write: a store that was restored later
            // has greater numbers.
            Until::Sequence(number) => {
                let leading_on = generation::leading_on(&generations);
                leading_on.filter(|it| it.sequence <= number).max_by_key(|it| it.sequence)
            }
            Until::Time(time) => {
                generations.iter().rfind(|it| u128::from(it.milliseconds) <= time.as_millis())
            }
        };
        let Some(from) = from.cloned() else {
            let (path, what) = (objects.place().into(), "no generation is so old".to_string());
            return Err(Error::FileMissing { path, what });
        };
        let to = match until {
            Until::Sequence(number) => number,
            Until::Time(time) => reached(objects, &shipped, from.sequence, time)?,
        };
        let changes = ship::chain(objects, &shipped, from.sequence, to)?;
        Ok(RestorePlan { from, changes, to })
    }

    /// Makes the store and returns its last write. The store is staged, since at first it is of an
    /// earlier moment.
    fn make(
        &self,
        objects: &dyn ObjectStore,
        (dir, options): (&Path, Options),
        unlogged: Unlogged,
        (environment, steps): (&Environment, &mut Steps<'_, '_>),
    ) -> Result<u64> {
        let storage = &environment.storage;
        let staged = environment.clone().storage(Arc::new(Staged(Arc::clone(storage))));
        restore(objects, &self.from, (&staged, dir), steps)?;
        let made = Db::open_with(dir, options.clone(), staged)
            .and_then(|db| self.apply(objects, (&db, &options), unlogged, steps))
            .and_then(|last| publish(&**storage, dir).map(|()| last));
        if made.is_err() {
            // A failed removal shows up in the next attempt.
            let _ = remove_store(&**storage, dir);
        }
        made
    }

    /// Returns the bytes of everything that is read, long values included.
    fn bytes(&self, objects: &dyn ObjectStore) -> Result<u64> {
        let list = |prefix: &str| objects.list(prefix).map_err(Error::io(objects.place()));
        let is_read = |name: &str| self.changes.iter().any(|it| it.name() == name);
        let (covered, from, to) = (Covered::of(&self.changes), self.from.sequence, self.to);
        let is_applied = |number: u64| number > from && number <= to && covered.has(number);
        let is_put = |name: &str| ValueName::of(name).is_some_and(|it| is_applied(it.sequence));
        let changes = list(ship::PREFIX)?.into_iter().filter(|(name, _)| is_read(name));
        let values = list(values::PREFIX)?.into_iter().filter(|(name, _)| is_put(name));
        let read = changes.chain(values).map(|(_, bytes)| bytes);
        Ok(read.fold(self.from.bytes(), u64::saturating_add))
    }

    /// Applies the changes to the generation's store. Returns the last write.
    fn apply(
        &self,
        objects: &dyn ObjectStore,
        (db, options): (&Db, &Options),
        unlogged: Unlogged,
        steps: &mut Steps<'_, '_>,
    ) -> Result<u64> {
        let (mut restored, mut last) = (Restored::new(db, options), self.from.sequence);
        for name in &self.changes {
            let changes = Changes::read(objects, name)?;
            if unlogged == Unlogged::Refuse {
                changes.check_unlogged(&self.from)?;
            }
            last = changes.apply(&mut restored, (last, self.to), steps)?;
            steps.advance(changes.bytes())?;
        }
        drop(restored);
        db.sync()?;
        db.close()?;
        Ok(last)
    }
}

pub(super) fn until(
    objects: &dyn ObjectStore,
    until: Until,
    (dir, options): (&Path, Options),
    unlogged: Unlogged,
    (environment, steps): (&Environment, &mut Steps<'_, '_>),
) -> Result<u64> {
    let plan = RestorePlan::new(objects, until)?;
    // The newest object knows most, so a refusal comes before anything is made.
    let newest = plan.changes.last().map(|name| Changes::read(objects, name)).transpose()?;
    if let Some(newest) = newest.filter(|_| unlogged == Unlogged::Refuse) {
        newest.check_unlogged(&plan.from)?;
    }
    steps.begin(plan.bytes(objects)?)?;
    if plan.changes.is_empty() {
        restore(objects, &plan.from, (environment, dir), steps)?;
        return Ok(plan.from.sequence);
    }
    plan.make(objects, (dir, options), unlogged, (environment, steps))
}

/// Removes a store that was made here. Requires: it is closed.
fn remove_store(storage: &dyn Storage, dir: &Path) -> Result<()> {
    let folder = OpenFolder::open(storage, dir)?;
    let _lock = lock_folder(&folder)?;
    let names = folder.list()?;
    let mut made = Made::in_folder(folder);
    names.into_iter().filter(|name| name != LOCK_NAME).for_each(|name| made.begin(name));
    made.remove();
    Ok(())
}
