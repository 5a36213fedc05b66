//! Bit rot and left-over files: the store is opened with one flipped bit, and its folder is checked
//! after closing.
//! ```text
//! disk of a store that has ended -> copy -> flip a bit of a file
//!                                -> open, read everything: an error, or the right answer
//! ```
//! Invariant: the store itself is never touched; only its copy rots.

use std::path::{Path, PathBuf};

use trommel::storage::{Memory, Storage};
use trommel::{Db, Error};

use super::check::GETS_MAX;
use super::model::{State, value_of};
use super::operation::key_text;
use super::world::{Checked, DIR, World};
use crate::keys::rng::Rng;

/// Reads a copy of the store's disk with a flipped bit. Bits of logs are flipped only if
/// `logs_too`: a log's unsynced end may be lost in any case. False: there was no bit to flip.
/// Requires: `copy` is the disk before the store was opened.
pub(crate) fn check_rotten_copy(
    world: &World<'_>,
    copy: &Memory,
    logs_too: bool,
    seed: u64,
) -> Checked<bool> {
    let Some((path, byte, bit)) = draw_bit(copy, logs_too, &mut Rng::new(seed)) else {
        return Ok(false);
    };
    copy.flip_bit(&path, byte, bit);
    let place = format!("with bit {bit} of byte {byte} of {} flipped", path.display());
    let checked = match world.open_on(copy) {
        // A flipped bit does not make the disk fail.
        Err(Error::Io { source, .. }) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("open: {source}"))
        }
        Err(_) => Ok(()),
        Ok(db) => check_answers(&db, world, world.model.seen()),
    };
    checked.map(|()| true).map_err(|wrong| format!("{place}: {wrong}"))
}

/// Draws a bit of a file that is not empty. None: there is no such file.
fn draw_bit(disk: &Memory, logs_too: bool, rng: &mut Rng) -> Option<(PathBuf, u64, u32)> {
    let mut names = disk.list(Path::new(DIR)).ok()?;
    let len = |name: &String| disk.file(Path::new(DIR).join(name)).map_or(0, |file| file.len());
    // A log ends before a group that refers to a damaged value, as long as that group need not be
    // durable.
    let ends = |name: &String| name.contains(".wal") || name.contains(".value");
    names.retain(|name| len(name) > 0 && (logs_too || !ends(name)));
    if names.is_empty() {
        return None;
    }
    let name = &names[rng.place(names.len())];
    // Near the ends of files, damage is hardest to distinguish from a crash.
    let (near_end, len) = (rng.below(2) == 0, len(name) as u64);
    let back = rng.below(if near_end { len.min(100) } else { len });
    Some((Path::new(DIR).join(name), len - 1 - back, rng.below(8) as u32))
}

/// Checks that every answer is right or an error, and that verifying finds what reading finds.
fn check_answers(db: &Db, world: &World<'_>, state: &State) -> Checked<()> {
    let mut unreadable = false;
    let every = state.0.len() / GETS_MAX + 1;
    for (place, &number) in (0..).zip(&state.0).step_by(every) {
        let key = world.keys.get(place);
        match db.get(key) {
            Err(_) => unreadable = true,
            Ok(found) => {
                let right = match &found {
                    Some(value) => number != 0 && **value == value_of(number),
                    None => number == 0,
                };
                if !right {
                    return Err(format!("get {}: wrong, expected #{number}", key_text(key)));
                }
            }
        }
    }
    let mut scanned = 0;
    for entry in db.range(..) {
        match entry {
            Err(_) => unreadable = true,
            Ok((key, value)) => match world.keys.place_of(&key).map(usize::from) {
                Some(place) if state.0[place] != 0 && *value == value_of(state.0[place]) => {
                    scanned += 1;
                }
                _ => return Err(format!("a scan finds {}, wrongly", key_text(&key))),
            },
        }
    }
    let present = state.0.iter().filter(|&&number| number != 0).count();
    if !unreadable && scanned != present {
        return Err(format!("a scan finds {scanned} of {present} keys, and no error"));
    }
    let is_damaged = db.verify().map_or(true, |report| !report.damage.is_empty());
    if unreadable && !is_damaged {
        return Err("a block cannot be read, and verify finds nothing".into());
    }
    Ok(())
}

/// Checks that a store, opened and closed without faults, has only the files that it needs.
/// `tables` tables refer to `values` value files; up to `kept_logs` logs are kept beside the
/// current one, and with them up to `kept_values` value files.
pub(crate) fn check_left_overs(
    disk: &dyn Storage,
    (tables, values): (u64, u64),
    partitions: u64,
    (kept_logs, kept_values): (u64, u64),
) -> Checked<()> {
    let names = disk.list(Path::new(DIR)).map_err(|error| format!("list: {error}"))?;
    let count = |end: &str| names.iter().filter(|name| name.ends_with(end)).count() as u64;
    let right = count(".table") == tables
        && (values..=values + kept_values).contains(&count(".value"))
        && count(".wal") <= 1 + kept_logs
        && count(".filter") <= partitions
        && count(".new") == 0;
    if right {
        Ok(())
    } else {
        Err(format!(
            "{tables} tables in use, {values} value files, {partitions} partitions, {kept_logs} kept logs with {kept_values} value files, and these files: {names:?}"
        ))
    }
}
