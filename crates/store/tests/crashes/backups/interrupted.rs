//! Calls that are interrupted at each of their operations.
//! ```text
//! two generations --> back_up | ship | prune | restore: operation n fails --> mended, a power cut
//!                 --> both are whole, a restored folder has no store or all of it, the next call
//!                     goes on
//! ```

use std::sync::Arc;

use trommel::backup::{Backups, Until};
use trommel::testing::Fault;
use trommel::{Db, Error, SyncPolicy};

use super::{Contents, World, contents, options, write};

/// A call that is interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    BackUp,
    Ship,
    Prune,
    Restore,
    RestoreUntil,
}

/// Files of a small store, and an append for each batch that is applied: each operation can fail.
const OPERATIONS_MAX: u64 = 2000;

/// Two generations, and writes since, which are shipped if a call needs them.
struct Backed {
    world: World,
    db: Db,
    backups: Backups,
    /// What the store was at each generation, and is now.
    states: [Contents; 3],
    last: u64,
}

fn restore_until(backups: &Backups, last: u64, dir: &str) -> trommel::Result<()> {
    let options = options().sync(SyncPolicy::Never);
    backups.restore_until(Until::Sequence(last), dir, options).map(drop)
}

impl Backed {
    fn new(call: Call) -> Backed {
        let world = World::new();
        let (db, backups) = (world.open("db"), world.backups());
        let generation = |turn| {
            write(&db, turn);
            backups.back_up(&db).expect("backs up");
            contents(&db)
        };
        let (first, second) = (generation(0), generation(1));
        write(&db, 2);
        db.flush().expect("flushes");
        if call == Call::RestoreUntil {
            backups.ship(&db).expect("ships");
        }
        let (states, last) = ([first, second, contents(&db)], db.snapshot().sequence());
        Backed { world, db, backups, states, last }
    }

    fn call(&self, call: Call) -> trommel::Result<()> {
        match call {
            Call::BackUp => self.backups.back_up(&self.db).map(drop),
            Call::Ship => self.backups.ship(&self.db).map(drop),
            Call::Prune => self.backups.prune(1).map(drop),
            Call::Restore => self.backups.restore(2, "half"),
            Call::RestoreUntil => restore_until(&self.backups, self.last, "half"),
        }
    }

    /// What a call is to restore.
    fn wanted(&self, call: Call) -> Option<&Contents> {
        match call {
            Call::Restore => Some(&self.states[1]),
            Call::RestoreUntil => Some(&self.states[2]),
            _ => None,
        }
    }

    /// Who looks at the folder of a restore finds no store, or all of it: after its process was
    /// killed, and after a power cut.
    fn has_all_or_nothing(&self, call: Call, (is_done, seed): (bool, u64), what: &str) {
        let Some(wanted) = self.wanted(call) else { return };
        let disk = &self.world.disk;
        for disk in [disk.kill(), disk.crash(seed), disk.crash_hard()] {
            let environment = self.world.environment().storage(Arc::new(disk));
            match Db::open_with("half", options().create_if_missing(false), environment) {
                Ok(db) => assert_eq!(contents(&db), *wanted, "{what}"),
                Err(
                    Error::FileMissing { .. } | Error::NotAStore { .. } | Error::Missing { .. },
                ) => assert!(!is_done, "{what}: it is gone"),
                Err(error) => panic!("{what}: {error}"),
            }
        }
    }

    /// A restore that has failed has left nothing that is in its way.
    fn restores_into_the_same_folder(&self, call: Call, what: &str) {
        let Some(wanted) = self.wanted(call) else { return };
        self.call(call).unwrap_or_else(|error| panic!("{what}, again: {error}"));
        assert_eq!(contents(&self.world.open("half")), *wanted, "{what}, again");
    }

    /// What was there before is as it was, and the next call goes on.
    fn goes_on(self, call: Call, seed: u64, what: &str) {
        let Backed { world, db, backups, states, last } = self;
        drop((backups, db));
        let world = World { disk: world.disk.crash(seed), clock: world.clock };
        let backups = world.backups();
        let found = backups.generations().expect("reads");
        assert!(found.first().expect("one at least").number <= 2, "{what}");
        for generation in &found {
            let report = backups.verify(generation.number).expect("verifies");
            assert!(report.damage.is_empty(), "{what}: {:?}", report.damage);
        }
        if call != Call::Prune {
            assert_eq!(world.restored(&backups, 1, "first"), states[0], "{what}");
        }
        assert_eq!(world.restored(&backups, 2, "second"), states[1], "{what}");
        if call == Call::RestoreUntil {
            restore_until(&backups, last, "third").expect("restores");
            assert_eq!(contents(&world.open("third")), states[2], "{what}");
        }
        let db = world.open("db");
        let last = backups.back_up(&db).expect("backs up").number;
        backups.prune(1).expect("prunes");
        assert_eq!(world.restored(&backups, last, "last"), contents(&db), "{what}");
    }
}

/// Lets a call fail at each of its operations.
fn interrupt(call: Call) {
    for (fault, lasts) in [(Fault::Io, true), (Fault::NoSpace, true), (Fault::Io, false)] {
        let mut failed = 0;
        for at in 0..=OPERATIONS_MAX {
            let what = format!("{call:?}, {fault:?}, lasts: {lasts}, operation {at}");
            assert!(at < OPERATIONS_MAX, "{what}: so many were not expected");
            let backed = Backed::new(call);
            let disk = &backed.world.disk;
            let begun = disk.operations();
            match lasts {
                true => disk.fail_from(at, fault),
                false => disk.fail_at(at, fault),
            }
            let done = backed.call(call);
            let is_over = at >= disk.operations() - begun;
            disk.mend();
            assert!(!is_over || done.is_ok(), "{what}: {done:?}, and nothing has failed");
            failed += u32::from(done.is_err());
            backed.has_all_or_nothing(call, (done.is_ok(), at), &what);
            if done.is_err() && !lasts {
                backed.restores_into_the_same_folder(call, &what);
            }
            backed.goes_on(call, at, &what);
            if is_over {
                break;
            }
        }
        assert!(failed > 0 || fault == Fault::NoSpace, "{call:?}: nothing has failed");
    }
}

#[test]
fn a_backup_that_is_interrupted_harms_no_generation() {
    interrupt(Call::BackUp);
}

#[test]
fn a_shipment_that_is_interrupted_harms_no_generation() {
    interrupt(Call::Ship);
}

#[test]
fn pruning_that_is_interrupted_harms_no_generation_that_stays() {
    interrupt(Call::Prune);
}

#[test]
fn a_restore_that_is_interrupted_leaves_no_store_or_all_of_it() {
    interrupt(Call::Restore);
}

#[test]
fn a_restore_of_a_moment_that_is_interrupted_leaves_no_store_or_all_of_it() {
    interrupt(Call::RestoreUntil);
}
