//! The keeper thread. It flushes, merges, verifies and copies the store while others write, and
//! advances the clock.
//! ```text
//! flush, compact, settle, sync, verify, tick, sleep
//! checkpoint -> opened with other options -> each lane as after whole groups, during the call
//! back up    -> verified, restored, opened: likewise; the next generation shares its objects
//! ship       -> restored as of its last write, opened: likewise
//! ```
//! Invariant: everything that it asks for succeeds.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use trommel::backup::{Backups, FolderObjects, Until};
use trommel::stats::Stats;
use trommel::{Db, Environment, Error};

use super::posts::{Doing, Post};
use super::reader::number_in;
use super::rest::files;
use super::setup::{Theme, options};
use super::shared::Shared;
use crate::keys::rng::Rng;
use crate::stress::operation::key_text;
use crate::stress::world::Checked;

/// Too many bytes count only if this many looks in a row find them, since files may be removed
/// during a look.
const LOOKS: u32 = 50;
/// The time between two looks.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// Bytes of tables that `check_space` cannot account for: bulk loads, and properties of many small
/// tables.
const SPARE_BYTES: u64 = 4 << 20;
/// With more runs than this, everything is merged, since each run has a file.
const RUNS_MAX: usize = 150;
/// The most space during a full merge, as a multiple of the tree. New blocks may compress less
/// well.
const MERGED_MAX: u64 = 3;
/// The documented most memory of memtables, in write buffers. `BATCH_BYTES_MAX` is added for one
/// batch.
const BUFFERS_MAX: u64 = 5;
const BATCH_BYTES_MAX: u64 = 32 << 20;

/// Generations of backups that are kept.
const GENERATIONS: usize = 2;

/// Works until the round is over.
pub(super) fn keep(
    db: &Db,
    shared: &Shared,
    theme: Theme,
    mut rng: Rng,
    post: &Post,
) -> Checked<()> {
    let mut copies = 0;
    let backups = shared.plan.folder.join("backups");
    let recovered = stats(db)?.memtable_bytes;
    while !shared.is_over() {
        let does = |words| post.set(Doing::Said(words));
        check_memory(db, shared, recovered)?;
        check_space(db, shared)?;
        if theme.flushes() && stats(db)?.run_count() > RUNS_MAX {
            does("compacts many runs");
            db.compact().map_err(|error| format!("compact: {error}"))?;
        }
        let choice = rng.below(if theme.flushes() { 32 } else { 12 });
        let done = match choice {
            0..4 => {
                shared.clock.try_tick();
                Ok(())
            }
            4 => {
                does("syncs");
                db.sync()
            }
            12..15 => {
                does("flushes");
                db.flush()
            }
            15 => {
                does("compacts");
                db.compact()
            }
            16..18 => {
                does("settles");
                db.settle()
            }
            18 | 19 => {
                does("verifies");
                Ok(verify(db, shared)?)
            }
            20..24 => {
                does("makes a checkpoint, opens it and compares");
                copies += 1;
                let folder = shared.plan.folder.join(format!("copy-{copies}"));
                checkpoint(db, shared, &folder, &mut rng).map(Ok)?
            }
            24 => {
                does("backs up, restores it, opens it and compares");
                Ok(back_up(db, shared, &backups, &mut rng)?)
            }
            25 => {
                does("ships, restores up to its end, opens it and compares");
                let shipped = ship(db, shared, &backups, &mut rng);
                Ok(shipped.map_err(|wrong| format!("ship: {wrong}"))?)
            }
            _ => {
                std::thread::sleep(Duration::from_micros(rng.below(20_000)));
                Ok(())
            }
        };
        done.map_err(|error| format!("the keeper: {error}"))?;
    }
    remove_backups(&backups)?;
    post.set(Doing::Rest);
    Ok(())
}

fn stats(db: &Db) -> Checked<Stats> {
    db.stats().map_err(|error| format!("stats: {error}"))
}

/// Checks that memtables and cache are within the options, plus what recovery brought.
fn check_memory(db: &Db, shared: &Shared, recovered: u64) -> Checked<()> {
    let (stats, options) = (stats(db)?, shared.options());
    let memtables = BUFFERS_MAX * options.write_buffer_bytes as u64 + BATCH_BYTES_MAX + recovered;
    let cache = options.block_cache_bytes as u64;
    if stats.memtable_bytes > memtables {
        let bytes = stats.memtable_bytes;
        return Err(format!("memtables take {bytes} bytes: no more than {memtables} may be"));
    }
    if stats.cache_bytes > cache {
        return Err(format!("cached blocks take {} bytes of {cache}", stats.cache_bytes));
    }
    match stats.failure {
        Some(failure) => Err(format!("the store says that it has failed: {failure}")),
        None => Ok(()),
    }
}

/// Checks the bytes of the tables' files. They are at most the sum of the tree, old tables that are
/// held, and the output of merges and flushes.
fn check_space(db: &Db, shared: &Shared) -> Checked<()> {
    let mut wrong = String::new();
    for _ in 0..LOOKS {
        let before = stats(db)?;
        let files = files(&shared.store)?;
        let after = stats(db)?;
        let of = |pick: fn(&Stats) -> u64| pick(&before).max(pick(&after));
        let tables = files.iter().filter(|(name, _)| name.ends_with(".table"));
        let bytes: u64 = tables.map(|(_, bytes)| bytes).sum();
        let tree = of(|stats| stats.table_file_bytes);
        let (left, memtables) =
            (of(|stats| stats.obsolete.bytes), of(|stats| stats.memtable_bytes));
        let large = if shared.has_large { BATCH_BYTES_MAX } else { 0 };
        let most = MERGED_MAX * tree + left + memtables + large + SPARE_BYTES;
        shared.counts.table_bytes.rise_to(bytes);
        if bytes <= most {
            return Ok(());
        }
        wrong = format!(
            "tables have {bytes} bytes, and {most} at most may be: {tree} are of the tree, {left} have left it ({:?}): {files:?}",
            after.obsolete
        );
        std::thread::sleep(LOOK_AGAIN);
    }
    Err(wrong)
}

pub(super) fn verify(db: &Db, shared: &Shared) -> Checked<()> {
    let report = db.verify().map_err(|error| format!("verify: {error}"))?;
    shared.counts.verified.add(1);
    let damage = report.damage.join("; ");
    if damage.is_empty() { Ok(()) } else { Err(format!("verify: {damage}")) }
}

fn checkpoint(db: &Db, shared: &Shared, folder: &Path, rng: &mut Rng) -> Checked<()> {
    let least = shared.ledger.done();
    db.checkpoint(folder).map_err(|error| format!("checkpoint: {error}"))?;
    let most = shared.ledger.begun();
    compare_copy(shared, folder, (&least, &most), rng)?;
    shared.counts.checkpoints.add(1);
    Ok(())
}

/// Makes a generation of backups, and checks it.
fn back_up(db: &Db, shared: &Shared, folder: &Path, rng: &mut Rng) -> Checked<()> {
    let failed = |error: Error| format!("back up: {error}");
    let backups = open(shared, folder).map_err(failed)?;
    let least = shared.ledger.done();
    let number = backups.back_up(db).map_err(failed)?.number;
    let most = shared.ledger.begun();
    let damage = backups.verify(number).map_err(failed)?.damage;
    if !damage.is_empty() {
        return Err(format!("back up: generation {number} is damaged: {damage:?}"));
    }
    let restored = shared.plan.folder.join("restored");
    backups.restore(number, &restored).map_err(failed)?;
    backups.prune(GENERATIONS).map_err(failed)?;
    compare_copy(shared, &restored, (&least, &most), rng)
        .map_err(|wrong| format!("back up, restored: {wrong}"))?;
    shared.counts.backups.add(1);
    Ok(())
}

/// Ships changes, and checks the moment to which they lead. If they cannot follow what is backed
/// up, begins a generation, and tries once more.
fn ship(db: &Db, shared: &Shared, folder: &Path, rng: &mut Rng) -> Checked<()> {
    let failed = |error: Error| error.to_string();
    let backups = open(shared, folder).map_err(failed)?;
    if backups.generations().map_err(failed)?.is_empty() {
        backups.back_up(db).map_err(failed)?;
    }
    for _ in 0..2 {
        let least = shared.ledger.done();
        match backups.ship(db) {
            Ok(shipped) => {
                let most = shared.ledger.begun();
                let restored = shared.plan.folder.join("restored");
                let until = Until::Sequence(shipped.to);
                backups.restore_until(until, &restored, options(rng)).map_err(failed)?;
                compare_copy(shared, &restored, (&least, &most), rng)?;
                shared.counts.shipments.add(1);
                return Ok(());
            }
            // The logs were not kept, values are gone, or a bulk load came.
            Err(Error::Gone { .. }) => {
                backups.back_up(db).map_err(failed)?;
                backups.prune(GENERATIONS).map_err(failed)?;
            }
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(())
}

/// Opens the backups. Stores that are restored have the clock of the history, so that the same
/// values expire.
fn open(shared: &Shared, folder: &Path) -> trommel::Result<Backups> {
    let objects = FolderObjects::open(folder)?;
    Ok(Backups::with(objects, environment_of_copies(shared)))
}

fn environment_of_copies(shared: &Shared) -> Environment {
    shared.share(Environment::new().clock(Arc::clone(&shared.clock) as _))
}

/// Opens a copy of the store, compares it, and removes it. The copy was made when each lane had
/// between `least` and `most` writes.
fn compare_copy(
    shared: &Shared,
    folder: &Path,
    (least, most): (&[u64], &[u64]),
    rng: &mut Rng,
) -> Checked<()> {
    let (_gate, tick) = shared.clock.hold();
    let options = options(rng).create_if_missing(false);
    let copy = Db::open_with(folder, options, environment_of_copies(shared))
        .map_err(|error| format!("it does not open: {error}"))?;
    for (lane, found) in contents(&copy, shared)?.iter().enumerate() {
        let mut followed = shared.ledger.follow(lane);
        let range = (least[lane], most[lane]);
        shared.ledger.check_moment(lane, &mut followed, found, range, tick)?;
    }
    verify(&copy, shared)?;
    copy.close().map_err(|error| format!("it does not close: {error}"))?;
    remove(folder)
}

/// Removes the backups, since the next history has another store.
fn remove_backups(folder: &Path) -> Checked<()> {
    if folder.exists() { remove(folder) } else { Ok(()) }
}

fn remove(folder: &Path) -> Checked<()> {
    let removed = std::fs::remove_dir_all(folder);
    removed.map_err(|error| format!("{} stays: {error}", folder.display()))
}

/// Returns the numbers of each lane's keys, read in both directions.
pub(super) fn contents(db: &Db, shared: &Shared) -> Checked<Vec<Vec<u32>>> {
    let failed = |error: trommel::Error| format!("scan: {error}");
    let snapshot = db.snapshot();
    let mut lanes: Vec<_> = shared.shares.lanes.iter().map(|keys| vec![0; keys.len()]).collect();
    let mut keys = Vec::new();
    for entry in snapshot.range(..) {
        let entry = entry.map_err(failed)?;
        let place = shared.shares.all.place_of(&entry.0);
        let place = place.ok_or_else(|| format!("{} was never written", key_text(&entry.0)))?;
        let spot = shared.shares.spots[usize::from(place)];
        lanes[usize::from(spot.lane)][usize::from(spot.place)] = number_in(&entry)?;
        keys.push(place);
    }
    for entry in snapshot.range(..).rev() {
        let (key, _) = entry.map_err(failed)?;
        if keys.pop() != shared.shares.all.place_of(&key) {
            return Err(format!("a scan backward has other keys than forward: {}", key_text(&key)));
        }
    }
    if keys.is_empty() { Ok(lanes) } else { Err("a scan backward ends too early".into()) }
}
