//! Copies of the store: checkpoints made during a history, and copies that are damaged and
//! repaired.
//! ```text
//! checkpoint (a fault on the way)  -> the disk as it is, or after a power cut -> open: whole,
//!                                     or refused
//! disk of a store that has ended   -> copy -> damage -> repair -> open, verify, read:
//!                                     nothing invented; what is missing is reported
//! ```
//! Invariant: the store itself stays untouched, and is checked as before.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use trommel::Environment;
use trommel::storage::{Memory, Storage};
use trommel::tools::repair_with;
use trommel::{Db, Error};

use super::check::full_state;
use super::model::State;
use super::operation::{Failure, key_text};
use super::setup;
use super::world::{Checked, DIR, World};
use crate::keys::rng::Rng;

/// Makes a checkpoint, and checks it on a copy of the disk. `number` is part of the folder's name.
pub(crate) fn checkpoint(
    world: &mut World<'_>,
    failure: Option<&Failure>,
    seed: u64,
    number: u32,
) -> Checked<()> {
    let folder = PathBuf::from(format!("copy-{number}"));
    // One armed failure is enough.
    let failure = failure.filter(|_| !world.could_fail());
    failure.iter().for_each(|failure| failure.arm(&world.disk));
    let could_fail = world.could_fail();
    let made = world.db().checkpoint(&folder);
    let is_whole = world.done.allowed("checkpoint", could_fail, made)?.is_some();
    if failure.is_some() {
        // A checkpoint only reads the store, so its failure does not allow the store to lose
        // anything.
        world.disk.mend();
    }
    world.done.checkpoints += u64::from(is_whole);
    let mut rng = Rng::new(seed);
    let disk = match rng.below(3) {
        0 => world.disk.kill(),
        1 => world.disk.crash_hard(),
        _ => world.disk.crash(rng.next_u64()),
    };
    check_checkpoint(world, &disk, &folder, is_whole, &mut rng)
        .map_err(|wrong| format!("{}: {wrong}", folder.display()))?;
    let before = world.copy.replace(KeptCopy::of(&world.disk, folder));
    before.map_or(Ok(()), |copy| copy.check_and_remove(&world.disk))
}

/// A checkpoint that stays while the store changes; the store's writes must not change its files.
pub(crate) struct KeptCopy {
    folder: PathBuf,
    /// Its files with their lengths.
    sizes: Vec<(PathBuf, usize)>,
}

impl KeptCopy {
    fn of(disk: &Memory, folder: PathBuf) -> Self {
        let names = disk.list(&folder).unwrap_or_default().into_iter();
        let paths = names.map(|name| folder.join(name));
        let sizes = paths.filter_map(|path| disk.file(&path).map(|bytes| (path, bytes.len())));
        KeptCopy { sizes: sizes.collect(), folder }
    }

    /// Checks the files and removes them. Files that cannot be removed stay: no other checkpoint
    /// has this name.
    pub(crate) fn check_and_remove(self, disk: &Memory) -> Checked<()> {
        for (path, size) in &self.sizes {
            let now = disk.file(path).map(|bytes| bytes.len());
            if now != Some(*size) {
                let path = path.display();
                return Err(format!("{path} had {size} bytes, and now it has {now:?}"));
            }
        }
        for name in disk.list(&self.folder).unwrap_or_default() {
            let _ = disk.remove(&self.folder.join(name));
        }
        Ok(())
    }
}

fn check_checkpoint(
    world: &World<'_>,
    disk: &Memory,
    folder: &Path,
    is_whole: bool,
    rng: &mut Rng,
) -> Checked<()> {
    match open(world, disk, folder, rng) {
        Ok(db) => check_contents(world, &db, world.model.seen()),
        Err(Error::FileMissing { .. } | Error::NotAStore { .. } | Error::Missing { .. })
            if !is_whole =>
        {
            Ok(())
        }
        Err(error) => Err(format!("it does not open: {error}")),
    }
}

/// Compares the contents of a store that was just opened, and writes to it.
pub(crate) fn check_contents(world: &World<'_>, db: &Db, expected: &State) -> Checked<()> {
    if &full_state(db, world.keys)? != expected {
        return Err("it holds something else than the store".into());
    }
    let more = || db.put("more", "x").and_then(|()| db.compact());
    more().map_err(|error| format!("it does not go on: {error}"))?;
    no_damage(db)
}

/// Opens an existing store with drawn options.
fn open(world: &World<'_>, disk: &Memory, folder: &Path, rng: &mut Rng) -> trommel::Result<Db> {
    let options = setup::options(rng.next_u64()).create_if_missing(false);
    Db::open_with(folder, options, environment(world, disk))
}

pub(crate) fn environment(world: &World<'_>, disk: &Memory) -> Environment {
    let (storage, clock) = (Arc::new(disk.clone()), Arc::clone(&world.clock) as _);
    Environment::new().storage(storage).clock(clock)
}

fn no_damage(db: &Db) -> Checked<()> {
    let report = db.verify().map_err(|error| format!("verify: {error}"))?;
    let damage = report.damage.join("; ");
    if damage.is_empty() { Ok(()) } else { Err(format!("verify: {damage}")) }
}

/// Damages a copy of the store's disk, or leaves it as it is, and repairs it. Requires: `copy` is
/// the disk before the store was opened. `opened`: the state with which the store opened without
/// damage; None if failures were armed.
pub(crate) fn check_repair(
    world: &World<'_>,
    copy: &Memory,
    opened: Option<&State>,
    seed: u64,
) -> Checked<()> {
    let (mut rng, sound) = (Rng::new(seed), copy.kill());
    let mut damages: Vec<String> =
        (0..rng.below(3)).filter_map(|_| damage(copy, &mut rng)).collect();
    // If a file and its manifest entry are both lost, nothing can report the loss.
    if !damages.is_empty() && rng.below(3) == 0 {
        damages.extend(damage_file(copy, &Path::new(DIR).join("MANIFEST"), &mut rng));
    }
    let case = if damages.is_empty() { "no damage".into() } else { damages.join(", ") };
    let ends = with_damaged_ends(&sound, copy);
    let checked = repair_and_read(world, copy, &ends, opened, damages.is_empty(), &mut rng);
    checked.map_err(|wrong| format!("a copy with {case}, repaired: {wrong}"))
}

/// Damages a file; returns a description. None: there is nothing to damage.
fn damage(disk: &Memory, rng: &mut Rng) -> Option<String> {
    let files = files(disk);
    let (path, _) = files.iter().nth(rng.place(files.len().max(1)))?;
    damage_file(disk, path, rng)
}

/// Returns the sound disk, but with the logs and the manifest of the damaged one.
fn with_damaged_ends(sound: &Memory, damaged: &Memory) -> Memory {
    let ends = sound.kill();
    let has_end =
        |path: &PathBuf| path.extension().is_none_or(|kind| kind != "table" && kind != "filter");
    for path in files(&ends).into_keys().filter(has_end) {
        match damaged.file(&path) {
            Some(bytes) => ends.put_file(path, bytes),
            None => ends.remove(&path).expect("it is there"),
        }
    }
    ends
}

/// Removes a file, truncates it, or flips one of its bits; returns a description. None: there is
/// nothing to damage.
fn damage_file(disk: &Memory, path: &Path, rng: &mut Rng) -> Option<String> {
    let (name, len) = (path.display(), disk.file(path)?.len() as u64);
    match rng.below(6) {
        0 => disk.remove(path).ok().map(|()| format!("{name} removed")),
        _ if len == 0 => None,
        1 => {
            let len = rng.below(len);
            disk.truncate(path, len);
            Some(format!("{name} cut to {len} bytes"))
        }
        _ => {
            let byte = rng.below(len);
            disk.flip_bit(path, byte, rng.below(8) as u32);
            Some(format!("byte {byte} of {name} flipped"))
        }
    }
}

/// Returns the files of the store, except its lock.
fn files(disk: &Memory) -> BTreeMap<PathBuf, Vec<u8>> {
    let names = disk.list(Path::new(DIR)).unwrap_or_default();
    let paths = names.iter().filter(|name| *name != "LOCK").map(|name| Path::new(DIR).join(name));
    paths.filter_map(|path| disk.file(&path).map(|bytes| (path, bytes))).collect()
}

fn repair_and_read(
    world: &World<'_>,
    copy: &Memory,
    ends: &Memory,
    opened: Option<&State>,
    is_sound: bool,
    rng: &mut Rng,
) -> Checked<()> {
    let before = files(copy);
    let report = match repair_with(DIR, &environment(world, copy)) {
        Ok(report) => report,
        // A flipped bit of a version makes another version, and a folder without files is no store.
        Err(Error::Version { .. } | Error::Missing { .. }) if !is_sound => return Ok(()),
        Err(error) => return Err(error.to_string()),
    };
    if is_sound && (report.changed || files(copy) != before || !report.doubts.is_empty()) {
        return Err(format!("a sound store was changed, or is in doubt: {report:?}"));
    }
    let db = open(world, copy, Path::new(DIR), rng).map_err(|error| format!("open: {error}"))?;
    no_damage(&db)?;
    let found = full_state(&db, world.keys)?;
    let is_whole = opened.is_none_or(|opened| &found == opened);
    if is_sound && !is_whole {
        return Err("it holds something else than the store".into());
    }
    let is_reported = !report.lost.is_empty() || !report.doubts.is_empty();
    if !is_whole && !is_reported && !opens_as(world, ends, &found, rng) {
        return Err(format!("it holds something else than the store, untold: {report:?}"));
    }
    for (place, &number) in (0..).zip(&found.0) {
        if number != 0 && !world.model.was_written(place, number) {
            let key = key_text(world.keys.get(place));
            return Err(format!("{key} never was #{number}"));
        }
    }
    db.compact().map_err(|error| format!("compact: {error}"))?;
    let merged = full_state(&db, world.keys)?;
    if merged == found { Ok(()) } else { Err("a merge changes what it holds".into()) }
}

/// Whether the store with sound tables opens without a repair and has this state. A log or a
/// manifest that lost its end looks like after a crash; neither an opening nor a repair can tell.
fn opens_as(world: &World<'_>, ends: &Memory, found: &State, rng: &mut Rng) -> bool {
    let db = open(world, ends, Path::new(DIR), rng);
    let state = db.ok().and_then(|db| full_state(&db, world.keys).ok());
    state.as_ref() == Some(found)
}

#[cfg(test)]
mod tests {
    use super::super::keys::Keys;
    use super::super::model::value_of;
    use super::super::operation::Write;
    use super::*;

    #[test]
    fn a_copy_that_holds_something_else_is_found() {
        let keys = Keys::draw_from(&mut Rng::new(1));
        let mut world = World::new(&keys, 1, |disk| Arc::new(disk)).expect("is made");
        let put = |world: &World<'_>, number| {
            world.db().put(keys.get(0), value_of(number)).expect("puts");
            world.db().flush().expect("flushes");
        };
        put(&world, 7);
        world.model.wrote(&[Write { place: 0, number: 7 }], true);
        for seed in 0..9 {
            checkpoint(&mut world, None, seed, seed as u32).expect("holds what the store holds");
            let copy = world.disk.kill();
            check_repair(&world, &copy, Some(world.model.seen()), seed).expect("loses nothing");
        }
        // This write bypasses the model.
        put(&world, 8);
        for seed in 0..9 {
            let wrong = checkpoint(&mut world, None, seed, 100 + seed as u32);
            let wrong = wrong.expect_err("one more write is in it");
            assert!(wrong.contains("something else"), "{wrong}");
        }
        let repaired = |seed| check_repair(&world, &world.disk.kill(), None, seed);
        let wrong = (0..9).filter_map(|seed| repaired(seed).err()).collect::<Vec<_>>();
        assert!(wrong.iter().any(|wrong| wrong.contains("never was #8")), "{wrong:?}");
    }
}
