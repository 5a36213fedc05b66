//! The writer process: writes until it is killed or told to end.

use std::sync::Arc;

use trommel::merge_operators::Concat;
use trommel::{Batch, Db, Environment, GuardKind, Keyspace, KeyspaceOptions, Options};

use super::FollowRole;
use super::attempt::{APART_BYTES, Act, LAST, Space, acts};
use super::faulty::{Failure, Faults, FaultyDisk};
use super::ledger::{Appender, Done, END, LAST_OF_ALL, Ledger};
use crate::error::{LabError, Result};
use crate::keys::rng::{Rng, scramble};
use crate::kill::options_of_a_life;

/// The folder of the store.
pub(super) const STORE: &str = "store";

pub(super) fn run(role: &FollowRole) -> Result<()> {
    let failed = |error: std::io::Error| LabError::Victim(format!("the ledger: {error}"));
    let mut rng = Rng::new(role.seed ^ scramble(1 + u64::from(role.number)));
    let faults = Faults::new(rng.next_u64());
    let environment = Environment::new().storage(Arc::new(FaultyDisk(Arc::clone(&faults))));
    let db = Db::open_with(role.folder.join(STORE), options(&mut rng), environment)?;
    let mut ledger = Appender::open(&role.folder).map_err(failed)?;
    let known = Ledger::open(&role.folder).all().last().map_or(0, |done| done.attempt);
    let last = db.get(LAST)?;
    let last: u64 = last.and_then(|it| std::str::from_utf8(&it).ok()?.parse().ok()).unwrap_or(0);
    if last < known {
        return Err(LabError::Victim(format!("attempt {known} is lost: the last one is {last}")));
    }
    if last > known {
        let done = Done { sequence: db.snapshot().sequence(), attempt: last };
        ledger.add(done).map_err(failed)?;
    }
    let mut attempt = last;
    while !role.folder.join(END).exists() {
        for _ in 0..64 {
            attempt += 1;
            if write(&db, role.seed, attempt).is_ok() {
                let done = Done { sequence: db.snapshot().sequence(), attempt };
                ledger.add(done).map_err(failed)?;
            }
        }
        keep_busy(&db, &mut rng, attempt);
        if rng.below(4) == 0 {
            let failures = [Failure::Append, Failure::Sync, Failure::Full];
            faults.arm(failures[rng.place(failures.len())]);
        }
    }
    // Followers see the last write of a killed process only after a later one, or after this.
    db.sync()?;
    db.close()?;
    let done = Done { sequence: u64::MAX, attempt: LAST_OF_ALL };
    ledger.add(done).map_err(failed)
}

/// Returns random options: any guard, policy, granularity and packing. Large values are always
/// stored apart.
fn options(rng: &mut Rng) -> Options {
    options_of_a_life(rng)
        .value_threshold([256, APART_BYTES][rng.place(2)])
        .merge_operator(Concat::new(""))
}

/// Opens a key space. Successive passing ones use the guards in turn.
fn keyspace(db: &Db, space: Space) -> trommel::Result<Keyspace> {
    let guards = trommel_guards::all_guards();
    let guard = match space {
        Space::Passing(number) => guards[number as usize % guards.len()],
        Space::Default | Space::Other => GuardKind::Grf,
    };
    let options = KeyspaceOptions::new().write_buffer_bytes(32 << 10).guard(guard);
    db.keyspace(space.name(), options.value_threshold(256).merge_operator(Concat::new("")))
}

/// Writes an attempt as one batch. An error means that it was refused.
fn write(db: &Db, seed: u64, attempt: u64) -> trommel::Result<()> {
    let mut batch = Batch::new();
    for (space, act) in acts(seed, attempt) {
        match space {
            Space::Default => batch.to(db),
            other => batch.to(&keyspace(db, other)?),
        };
        match act {
            Act::Put(key, value) => batch.put(key, value),
            Act::Delete(key) => batch.delete(key),
            Act::Merge(key, operand) => batch.merge(key, operand),
            Act::DeleteRange(from, to) => batch.delete_range(from, to),
        };
    }
    db.write(batch)
}

/// Flushes, merges and syncs at random, and drops old key spaces. Failures do not matter: later
/// calls try again.
fn keep_busy(db: &Db, rng: &mut Rng, attempt: u64) {
    match rng.below(60) {
        0 => drop(db.compact()),
        1..=3 => drop(db.flush()),
        4..=5 => drop(db.sync()),
        _ => {}
    }
    let Space::Passing(now) = Space::passing(attempt) else { return };
    let old = |name: &String| {
        let number = name.strip_prefix("passing-").and_then(|number| number.parse::<u64>().ok());
        number.is_some_and(|number| number + 1 < now)
    };
    let names = db.keyspaces().unwrap_or_default();
    names.iter().filter(|name| old(name)).for_each(|name| drop(db.drop_keyspace(name)));
}
