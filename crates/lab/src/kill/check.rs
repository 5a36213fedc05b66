//! Checks the files that a killed process has left.
//! ```text
//! folder/before   the store as it was left, kept until the next kill: evidence if it is wrong
//! folder/store    opened with other options -> every key both ways, some by themselves, verify
//! folder/copy-N   checkpoints: whole, as of some moment while they were made; or refused
//! ```
//! Invariant: everything in the store was written, and every acknowledged write is in the store.

use std::path::Path;

use trommel::{Background, Db, Error};

use super::child::{STORE, copy_folder, options};
use super::history::{LANES, SLOTS, place_of, value_of, value_text};
use super::lane_models::{LaneModels, Slots};
use super::session::SessionLog;
use super::spaces::{Spaces, space_of};
use crate::keys::rng::Rng;

/// The folder of the store as the killed process left it.
pub(super) const BEFORE: &str = "before";
/// Keys that are read by single gets.
const GETS: usize = 100;

/// Opens the store, compares it with the model, and closes it. Returns how many unacknowledged
/// writes are there.
pub(super) fn check_store(
    folder: &Path,
    lanes: &mut LaneModels,
    rng: &mut Rng,
) -> Result<u64, String> {
    let in_steps = rng.below(3) == 0;
    let mut options = options(rng);
    if in_steps {
        options = options.background(Background::Stepped);
    }
    let opened = Db::open(folder.join(STORE), options);
    let db = opened.map_err(|error| format!("the store does not open: {error}"))?;
    let opened = Spaces::open(db, rng, lanes.has_unlogged());
    let spaces = opened.map_err(|error| format!("the key spaces do not open: {error}"))?;
    let found = contents(&spaces, rng)?;
    let there = lanes.settle(found)?;
    spaces.db.close().map_err(|error| format!("the store does not close: {error}"))?;
    Ok(there)
}

/// Copies the store's files as they are now.
pub(super) fn keep_copy(folder: &Path) -> std::io::Result<()> {
    let (store, before) = (folder.join(STORE), folder.join(BEFORE));
    if before.exists() {
        std::fs::remove_dir_all(&before)?;
    }
    std::fs::create_dir_all(&before)?;
    if !store.exists() {
        return Ok(());
    }
    for file in std::fs::read_dir(store)? {
        let file = file?;
        std::fs::copy(file.path(), before.join(file.file_name()))?;
    }
    Ok(())
}

/// Returns the whole contents of a store, read in several ways.
fn contents(spaces: &Spaces, rng: &mut Rng) -> Result<Vec<Slots>, String> {
    let failed = |what: &str| {
        let what = what.to_string();
        move |error: Error| format!("{what}: {error}")
    };
    let mut found = vec![Slots::default(); LANES];
    for (number, space) in spaces.all().iter().enumerate() {
        let mut keys = Vec::new();
        for entry in space.range(..) {
            let (key, bytes) = entry.map_err(failed("scan"))?;
            let place = place_of(&key).filter(|(_, slot)| space_of(*slot) == number);
            let (lane, slot) = place.ok_or("a key that nobody wrote there")?;
            let value = value_of(&bytes);
            let value =
                value.ok_or_else(|| format!("slot {slot} of lane {lane}: nobody's value"))?;
            found[lane].0[slot] = value;
            keys.push(key.to_vec());
        }
        let back = space.range(..).rev().map(|entry| entry.map(|(key, _)| key.to_vec()));
        let back: Vec<_> = back.collect::<trommel::Result<_>>().map_err(failed("scan backward"))?;
        if !back.iter().rev().eq(&keys) {
            return Err("a scan backward has other keys than forward".into());
        }
    }
    for _ in 0..GETS {
        let (lane, slot) = (rng.place(LANES), rng.place(SLOTS));
        let value = found[lane].0[slot];
        if !spaces.has(lane, slot, value).map_err(failed("get"))? {
            let value = value_text(value);
            return Err(format!("slot {slot} of lane {lane}: a get does not find {value}"));
        }
    }
    let damage = spaces.db.verify().map_err(failed("verify"))?.damage;
    if damage.is_empty() { Ok(found) } else { Err(format!("verify: {}", damage.join("; "))) }
}

/// Checks the checkpoints of a session, and removes them. `before`: the writes of each lane before
/// the session. Returns how many are whole, and how many are incomplete.
pub(super) fn check_copies(
    folder: &Path,
    lanes: &LaneModels,
    before: &[usize; LANES],
    heard: &SessionLog,
    rng: &mut Rng,
) -> Result<(u64, u64), String> {
    let (mut whole, mut refused) = (0, 0);
    for copy in &heard.copies {
        let path = copy_folder(folder, copy.number);
        let problem = |wrong: String| format!("checkpoint {}: {wrong}", copy.number);
        let options = options(rng).create_if_missing(false);
        let most = copy.most.unwrap_or(heard.done);
        match Db::open(&path, options) {
            Ok(db) => {
                let opened = Spaces::open(db, rng, lanes.has_unlogged());
                let opened = opened.map_err(|error| problem(error.to_string()))?;
                let found = contents(&opened, rng).map_err(problem)?;
                let at = |done: &[u32; LANES], more: usize| {
                    std::array::from_fn(|lane| before[lane] + done[lane] as usize + more)
                };
                // One more write may be there that was not reported yet.
                lanes.find(&found, &at(&copy.least, 0), &at(&most, 1)).map_err(problem)?;
                whole += 1;
            }
            Err(Error::FileMissing { .. } | Error::NotAStore { .. } | Error::Missing { .. })
                if copy.most.is_none() =>
            {
                refused += 1;
            }
            Err(error) => return Err(problem(format!("does not open: {error}"))),
        }
        if path.exists() {
            std::fs::remove_dir_all(&path).map_err(|error| problem(error.to_string()))?;
        }
    }
    Ok((whole, refused))
}
