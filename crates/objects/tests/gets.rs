//! Shipping and restoring while a service refuses one read.
//! ```text
//! turn    0             1             2             until all reads succeed
//! reads   x             . x           . . x         then the same call again: . . . . .
//! ```
//! Invariant: a refused read is an error that changes nothing, and the next call succeeds.

mod faulty;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use faulty::{Call, Faulty};
use tempfile::TempDir;
use trommel::backup::{Backups, Until};
use trommel::{Db, Options, Result};
use trommel_objects::CloudObjects;

/// Backups in a service, and a folder for stores.
struct World {
    folder: TempDir,
    backups: Backups,
    /// How many reads succeed before one is refused. Negative: it was refused.
    reads_left: Arc<AtomicI64>,
}

impl World {
    fn new() -> World {
        let reads_left = Arc::new(AtomicI64::new(i64::MAX));
        let left = Arc::clone(&reads_left);
        let store = Faulty::new(move |call| match call {
            Call::Get if left.fetch_sub(1, Ordering::Relaxed) == 0 => Err(call.refused("not now")),
            _ => Ok(()),
        });
        let objects = CloudObjects::new(Arc::new(store), "stores/words").expect("a prefix");
        let folder = tempfile::tempdir().expect("a folder");
        World { folder, backups: Backups::new(objects), reads_left }
    }

    fn dir(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Makes a call in each turn, of which one read is refused, and then again. Ends with the turn
    /// whose call has no more reads. Returns how many reads it has.
    fn refuse_each_read<T>(&self, mut call: impl FnMut(i64) -> Result<T>) -> i64 {
        for turn in 0.. {
            self.reads_left.store(turn, Ordering::Relaxed);
            let made = call(turn);
            if self.reads_left.swap(i64::MAX, Ordering::Relaxed) >= 0 {
                made.expect("nothing was refused");
                return turn;
            }
            let error = made.map(drop).expect_err("a read was refused");
            assert!(error.to_string().contains("not now"), "read {turn}: {error}");
            for generation in self.backups.generations().expect("lists") {
                let damage = self.backups.verify(generation.number).expect("verifies").damage;
                assert!(damage.is_empty(), "read {turn}: {damage:?}");
            }
            call(turn).unwrap_or_else(|error| panic!("read {turn}, again: {error}"));
        }
        unreachable!("a call with endless reads")
    }
}

fn options() -> Options {
    Options::new().kept_log_bytes(64 << 20).compression(false)
}

type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

fn contents(db: &Db) -> Contents {
    let entries = db.iter().map(|entry| entry.expect("reads"));
    entries.map(|(key, value)| (key, value.to_vec())).collect()
}

fn has(dir: &Path, expected: &Contents) {
    let found = contents(&Db::open(dir, options()).expect("opens"));
    assert!(found == *expected, "{}: other entries", dir.display());
}

/// After an error a folder has nothing but a lock, which is no store.
fn is_no_store(dir: &Path) {
    let files = fs::read_dir(dir).into_iter().flatten();
    let names: Vec<_> = files.map(|file| file.expect("an entry").file_name()).collect();
    assert!(names.iter().all(|name| name == "LOCK"), "{}: {names:?}", dir.display());
}

fn noise(seed: u8, bytes: u32) -> Vec<u8> {
    (0..bytes).map(|at: u32| (at.wrapping_mul(2_654_435_761) >> 13) as u8 ^ seed).collect()
}

#[test]
fn a_refused_read_of_a_shipment_or_a_restore_changes_nothing_and_the_next_one_succeeds() {
    let world = World::new();
    let (backups, db) = (&world.backups, Db::open(world.dir("db"), options()).expect("opens"));
    // An object of two reads, and one that changes name.
    db.put("in the generation", noise(1, 9 << 20)).expect("puts");
    let generation = backups.back_up(&db).expect("backs up");
    let at_first = contents(&db);
    db.put("shipped", noise(2, 1 << 20)).expect("puts");
    let mut shipped = generation.sequence;
    let reads = world.refuse_each_read(|turn| {
        db.put([turn as u8], "a word").expect("puts");
        let made = backups.ship(&db)?;
        assert_eq!((made.from, made.to), (shipped, db.snapshot().sequence()), "turn {turn}");
        shipped = made.to;
        Ok(())
    });
    assert!(reads > 0, "a shipment reads nothing");
    let at_last = contents(&db);
    let restored = |name: &str, expected: &Contents, restore: &dyn Fn(&Path) -> Result<()>| {
        let reads = world.refuse_each_read(|turn| {
            let dir = world.dir(&format!("{name}, {turn}"));
            restore(&dir).inspect_err(|_| is_no_store(&dir))?;
            has(&dir, expected);
            fs::remove_dir_all(&dir).expect("removes");
            Ok(())
        });
        assert!(reads > 5, "{name}: {reads} reads");
    };
    restored("of the generation", &at_first, &|dir| backups.restore(generation.number, dir));
    restored("of the last write", &at_last, &|dir| {
        backups.restore_until(Until::Sequence(shipped), dir, options()).map(drop)
    });
}
