//! Rot and left-overs: what a closed store leaves on its disk, and what a store makes of it when one bit
//! of it has flipped.
//! ```text
//! closed store -> copy -> flip a bit of a file -> open, read everything: an error, or the right answer
//! ```
//! Invariant: the store itself is never touched; its copy alone rots.

use std::path::{Path, PathBuf};

use trommel::{Db, Error, Memory, Storage};

use super::check::GETS_MAX;
use super::model::{State, value_of};
use super::operation::key_text;
use super::world::{Checked, DIR, World};
use crate::rng::Rng;

/// Tries to read a copy of the closed store with a bit flipped. Requires: it was closed in peace.
pub(crate) fn check_rotten_copy(world: &World<'_>, disk: &Memory, seed: u64) -> Checked<()> {
    let copy = disk.kill();
    let Some((path, byte, bit)) = draw_bit(&copy, &mut Rng::new(seed)) else { return Ok(()) };
    copy.flip_bit(&path, byte, bit);
    let place = format!("with bit {bit} of byte {byte} of {} flipped", path.display());
    let checked = match world.open_on(&copy) {
        // A bit makes no disk fail.
        Err(Error::Io { source, .. }) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("open: {source}"))
        }
        Err(_) => Ok(()),
        Ok(db) => check_answers(&db, world, world.model.seen()),
    };
    checked.map_err(|wrong| format!("{place}: {wrong}"))
}

/// A bit of a file that is not empty. None: there is none.
fn draw_bit(disk: &Memory, rng: &mut Rng) -> Option<(PathBuf, u64, u32)> {
    let names = disk.list(Path::new(DIR)).ok()?;
    let path = Path::new(DIR).join(&names[rng.place(names.len())]);
    let len = disk.file(&path)?.len() as u64;
    (len > 0).then(|| (path, rng.below(len), rng.below(8) as u32))
}

/// Every answer is right or an error; verifying finds what reading does.
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
    for entry in db.range::<&[u8]>(..) {
        match entry {
            Err(_) => unreadable = true,
            Ok((key, _)) => match world.keys.place_of(&key).map(usize::from) {
                Some(place) if state.0[place] != 0 => scanned += 1,
                _ => return Err(format!("a scan finds {}, which is not there", key_text(&key))),
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

/// A store that was opened and closed in peace has no files but those it needs.
pub(crate) fn check_left_overs(disk: &Memory, tables: u64) -> Checked<()> {
    let names = disk.list(Path::new(DIR)).map_err(|error| format!("list: {error}"))?;
    let count = |end: &str| names.iter().filter(|name| name.ends_with(end)).count() as u64;
    let right = count(".table") == tables
        && count(".wal") <= 1
        && count(".filter") <= 1
        && count(".new") == 0;
    if right { Ok(()) } else { Err(format!("{tables} tables in use, and these files: {names:?}")) }
}
