//! Backups on the store's own disk: made, extended by changes, pruned, and restored on a copy of
//! the disk.
//! ```text
//! generation 1   changes   generation 2   changes        the model is remembered at each end
//!     41          -> 57         60         -> 80         and at snapshots between them
//! the disk -> a copy, after a power cut or without one -> restored, opened, compared
//! ```
//! Invariant: what a call reported as backed up survives any power cut.

use std::path::Path;

use trommel::backup::{Backups, FolderObjects, Until};
use trommel::storage::Memory;
use trommel::{Db, Error};

use super::backup_book::KnownMoment;
use super::copies::{check_contents, environment};
use super::operation::{BackupOperation, Failure};
use super::setup;
use super::world::{Checked, World};
use crate::keys::rng::Rng;

/// The most generations that are kept, since copies of the disk include all of them.
const GENERATIONS_MAX: usize = 4;
/// The folder of restored stores.
const RESTORED: &str = "restored";

impl World<'_> {
    /// Applies an operation with backups.
    pub(crate) fn backup(&mut self, operation: &BackupOperation) -> Checked<()> {
        match operation {
            BackupOperation::BackUp(failure) => back_up(self, failure.as_ref()),
            BackupOperation::Ship(failure) => ship(self, failure.as_ref()),
            BackupOperation::Restore(seed) => restore(self, *seed),
            BackupOperation::Prune(keep) => prune(self, *keep),
        }
    }
}

/// Opens the backups on a disk. Each call opens them anew, like a command.
fn open(world: &World<'_>, disk: &Memory) -> trommel::Result<Backups> {
    let environment = environment(world, disk);
    let objects = FolderObjects::open_with(world.backups.folder(), &environment)?;
    Ok(Backups::with(objects, environment))
}

/// Calls the backups, with a failure unless one is armed already. Returns whether the call could
/// fail, and its result.
fn call<T>(
    world: &mut World<'_>,
    failure: Option<&Failure>,
    work: impl FnOnce(&Backups, &Db) -> trommel::Result<T>,
) -> (bool, trommel::Result<T>) {
    let failure = failure.filter(|_| !world.could_fail());
    if let Some(failure) = failure {
        world.arm(failure);
    }
    let could_fail = world.could_fail();
    let done = open(world, &world.disk).and_then(|backups| work(&backups, world.db()));
    if failure.is_some() {
        world.disk.mend();
    }
    (could_fail, done)
}

fn back_up(world: &mut World<'_>, failure: Option<&Failure>) -> Checked<()> {
    if world.backups.generations.len() >= GENERATIONS_MAX {
        prune(world, GENERATIONS_MAX / 2)?;
    }
    let (could_fail, made) = call(world, failure, Backups::back_up);
    // The backup has flushed the memtables, unless the disk failed meanwhile.
    match could_fail {
        true => world.backups.is_ahead = true,
        false => world.saved(),
    }
    let Some(generation) = world.done.allowed("back up", could_fail, made)? else {
        return Ok(());
    };
    let (sequence, visible) = (generation.sequence, world.db().snapshot().sequence());
    if sequence != visible {
        return Err(format!("back up: a generation of {sequence}, and the store is at {visible}"));
    }
    world.done.backups += 1;
    let moment = KnownMoment { sequence, state: world.model.seen().clone() };
    world.backups.generations.insert(generation.number, moment);
    Ok(())
}

/// Ships changes, or makes a generation if changes cannot follow.
fn ship(world: &mut World<'_>, failure: Option<&Failure>) -> Checked<()> {
    let (could_fail, shipped) = call(world, failure, Backups::ship);
    match &shipped {
        // The store's logs are gone, or a bulk load has come.
        Err(Error::Gone { .. }) => {
            world.done.gone += 1;
            return back_up(world, None);
        }
        Err(Error::FileMissing { .. }) if world.backups.generations.is_empty() => {
            return back_up(world, None);
        }
        _ => {}
    }
    let Some(shipped) = world.done.allowed("ship", could_fail, shipped)? else { return Ok(()) };
    world.saved();
    let Some(state) = world.journal.state_at(shipped.to, &world.model) else { return Ok(()) };
    if !could_fail && &state != world.model.seen() {
        let (to, visible) = (shipped.to, world.db().snapshot().sequence());
        return Err(format!("ship: changes up to {to}, and the store is at {visible}"));
    }
    if shipped.bytes > 0 {
        world.done.shipped += 1;
        let end = KnownMoment { sequence: shipped.to, state };
        world.backups.lead_to(shipped.from, end);
    }
    Ok(())
}

/// Prunes generations. After an error, some of the old ones may be left.
fn prune(world: &mut World<'_>, keep: usize) -> Checked<()> {
    let could_fail = world.could_fail();
    let listed = open(world, &world.disk).and_then(|backups| {
        let listed = backups.generations()?;
        Ok((backups, listed))
    });
    let Some((backups, listed)) = world.done.allowed("generations", could_fail, listed)? else {
        return Ok(());
    };
    world.backups.check(&listed)?;
    world.backups.keep(&listed[listed.len().saturating_sub(keep)..]);
    let pruned = backups.prune(keep);
    world.done.allowed("prune", could_fail, pruned)?;
    Ok(())
}

/// Restores a generation, or what changes lead to, on a copy of the disk.
fn restore(world: &mut World<'_>, seed: u64) -> Checked<()> {
    if world.backups.generations.is_empty() {
        return Ok(());
    }
    let mut rng = Rng::new(seed);
    let disk = match rng.below(3) {
        0 => world.disk.kill(),
        1 => world.disk.crash_hard(),
        _ => world.disk.crash(rng.next_u64()),
    };
    restore_on(world, &disk, &mut rng)?;
    world.done.restored += 1;
    Ok(())
}

fn restore_on(world: &World<'_>, disk: &Memory, rng: &mut Rng) -> Checked<()> {
    let (book, failed) = (&world.backups, |error: Error| format!("restore: {error}"));
    let backups = open(world, disk).map_err(failed)?;
    book.check(&backups.generations().map_err(failed)?)?;
    let place = rng.place(book.generations.len());
    let (number, of_generation) = book.generations.iter().nth(place).expect("one of them");
    let damage = backups.verify(*number).map_err(failed)?.damage;
    if !damage.is_empty() {
        return Err(format!("generation {number} is damaged: {damage:?}"));
    }
    let moment = match book.shipped.get(rng.place(book.shipped.len() + 2)) {
        Some(moment) => {
            let (until, options) = (Until::Sequence(moment.sequence), drawn_options(rng));
            backups.restore_until(until, RESTORED, options).map_err(failed)?;
            moment
        }
        None => {
            backups.restore(*number, RESTORED).map_err(failed)?;
            of_generation
        }
    };
    let what = format!("restored as of {}", moment.sequence);
    let (dir, options) = (Path::new(RESTORED), drawn_options(rng).create_if_missing(false));
    let db = Db::open_with(dir, options, environment(world, disk))
        .map_err(|error| format!("{what}: {error}"))?;
    let mut expected = moment.state.clone();
    expected.expire(world.model.tick());
    check_contents(world, &db, &expected).map_err(|wrong| format!("{what}: {wrong}"))
}

fn drawn_options(rng: &mut Rng) -> trommel::Options {
    setup::options(rng.next_u64())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::keys::Keys;
    use super::super::model::value_of;
    use super::super::operation::Write;
    use super::*;

    #[test]
    fn a_generation_that_holds_something_else_is_found() {
        let keys = Keys::draw_from(&mut Rng::new(1));
        let mut world = World::new(&keys, 1, |disk| Arc::new(disk)).expect("is made");
        let put = |world: &World<'_>, number| {
            world.db().put(keys.get(0), value_of(number)).expect("puts");
        };
        put(&world, 7);
        world.model.wrote(&[Write { place: 0, number: 7 }], true);
        back_up(&mut world, None).expect("backs up");
        (0..9).for_each(|seed| restore(&mut world, seed).expect("holds what the store has"));
        // This write bypasses the model.
        put(&world, 8);
        back_up(&mut world, None).expect("backs up");
        prune(&mut world, 1).expect("prunes");
        for seed in 0..9 {
            let wrong = restore(&mut world, seed).expect_err("one more write is in it");
            assert!(wrong.contains("something else"), "{wrong}");
        }
    }
}
