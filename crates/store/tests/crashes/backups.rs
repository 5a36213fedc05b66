//! Backups: what was backed up comes back, whatever happens in between.
//! ```text
//! db --> back_up, ship --> objects --> restore, restore_until --> another store, as it was then
//! ```
//! Invariant: an object that has a name is whole, and nobody else's files are touched.

mod interrupted;
mod key_spaces;
mod long_values;
mod lost_writes;
mod shipped;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use trommel::backup::{Backups, FolderObjects, Generation, Unlogged, Until};
use trommel::merge_operators::Concat;
use trommel::storage::{Clock, Memory, Storage};
use trommel::testing::{Fault, ManualClock};
use trommel::tools::Progress;
use trommel::{Background, Batch, Db, Environment, Error, KeyspaceOptions, Options, SyncPolicy};

type Contents = BTreeMap<(String, Vec<u8>), Vec<u8>>;

struct World {
    disk: Memory,
    clock: Arc<ManualClock>,
}

impl World {
    fn new() -> World {
        World { disk: Memory::new(), clock: Arc::new(ManualClock::default()) }
    }

    fn environment(&self) -> Environment {
        Environment::default().storage(Arc::new(self.disk.clone())).clock(self.clock.clone())
    }

    fn open(&self, dir: &str) -> Db {
        Db::open_with(dir, options(), self.environment()).expect("opens")
    }

    fn backups(&self) -> Backups {
        self.try_backups().expect("opens")
    }

    fn try_backups(&self) -> trommel::Result<Backups> {
        let objects = FolderObjects::open_with("backups", &self.environment())?;
        Ok(Backups::with(objects, self.environment()))
    }

    fn names(&self, dir: &str) -> Vec<String> {
        Storage::list(&self.disk, Path::new(dir)).expect("lists")
    }

    fn restored(&self, backups: &Backups, number: u64, dir: &str) -> Contents {
        backups.restore(number, dir).expect("restores");
        contents(&self.open(dir))
    }
}

fn options() -> Options {
    Options::new()
        .value_threshold(1 << 10)
        .value_file_bytes(16 << 10)
        .write_buffer_bytes(16 << 10)
        .kept_log_bytes(1 << 20)
        .merge_operator(Concat::new("+"))
        .background(Background::Stepped)
        .sync(SyncPolicy::Always)
}

fn contents(db: &Db) -> Contents {
    let mut all = Contents::new();
    for name in db.keyspaces().expect("lists") {
        let keyspace = db.open_keyspace(&name).expect("is there");
        for entry in keyspace.iter() {
            let (key, value) = entry.expect("reads");
            all.insert((name.clone(), key), value.to_vec());
        }
    }
    all
}

#[test]
fn no_power_cut_takes_from_the_store_what_a_generation_has() {
    let mut refused = 0;
    for after in 0.. {
        let world = World::new();
        let with = options().sync(SyncPolicy::Never);
        let db = Db::open_with("db", with, world.environment()).expect("opens");
        (0..50u8).for_each(|key| db.put([key], [key; 9]).expect("puts"));
        let backups = world.backups();
        world.disk.fail_at(after, Fault::Io);
        let made = backups.back_up(&db);
        let has_struck = !world.disk.may_fail();
        world.disk.mend();
        refused += u32::from(made.is_err());
        if let Ok(generation) = made {
            let world = World { disk: world.disk.crash_hard(), ..World::new() };
            let left = world.open("db").snapshot().sequence();
            assert!(left >= generation.sequence, "after {after}: {left} of {generation:?}");
        }
        if !has_struck {
            break;
        }
    }
    assert!(refused > 5, "{refused}");
}

/// Writes of all kinds, different for each turn.
fn write(db: &Db, turn: u64) {
    let events = db.keyspace("events", KeyspaceOptions::new()).expect("made");
    for number in 0..60u64 {
        let key = (turn * 37 + number * 13) % 150;
        let value =
            vec![(turn * 7 + number) as u8; if number.is_multiple_of(9) { 3000 } else { 40 }];
        match number % 7 {
            0 => events.delete(key.to_be_bytes()),
            1 => db.merge(key.to_be_bytes(), &value[..8]),
            2 => {
                let mut batch = Batch::new();
                batch.put(key.to_be_bytes(), &value).to(&events).put(key.to_be_bytes(), &value);
                db.write(batch)
            }
            3 => db.delete_range(key.to_be_bytes(), (key + 3).to_be_bytes()),
            4 => db.put_ttl(key.to_be_bytes(), &value, Duration::from_secs(1 << 40)),
            5 => events.put(key.to_be_bytes(), &value),
            _ => db.put(key.to_be_bytes(), &value),
        }
        .expect("writes");
    }
    db.step().expect("goes on");
}

#[test]
fn each_generation_comes_back_as_it_was() {
    let world = World::new();
    let (db, backups) = (world.open("db"), world.backups());
    let mut expected = Vec::new();
    let mut stored = Vec::new();
    for turn in 0..5 {
        write(&db, turn);
        let generation = backups.back_up(&db).expect("backs up");
        assert_eq!(generation.number, turn + 1);
        assert_eq!(generation.sequence, db.snapshot().sequence());
        expected.push(contents(&db));
        stored.push(world.names("backups").len());
    }
    // Nothing was written: the log and the manifest alone are new.
    backups.back_up(&db).expect("backs up");
    expected.push(contents(&db));
    let new = world.names("backups").len() - stored[4];
    assert!(new <= 3, "{new} objects for nothing new");
    for (number, expected) in (1..).zip(&expected) {
        assert!(backups.verify(number).expect("verifies").damage.is_empty());
        assert_eq!(world.restored(&backups, number, &format!("restored-{number}")), *expected);
    }
    // The generations that stay have all that they need.
    let pruned = backups.prune(2).expect("prunes");
    assert_eq!(pruned.generations, [1, 2, 3, 4]);
    assert!(pruned.objects > 0 && pruned.bytes > 0);
    assert_eq!(backups.prune(2).expect("prunes").objects, 0);
    for number in [5, 6] {
        assert!(backups.verify(number).expect("verifies").damage.is_empty());
        let found = world.restored(&backups, number, &format!("again-{number}"));
        assert_eq!(found, expected[number as usize - 1]);
    }
    assert!(matches!(backups.restore(1, "none"), Err(Error::FileMissing { .. })));
    assert!(matches!(backups.restore(5, "again-5"), Err(Error::NotEmpty { .. })));
    backups.prune(0).expect("prunes");
    assert_eq!(world.names("backups"), ["LOCK"]);
}

/// Somebody may name a folder that has other files.
#[test]
fn files_of_others_are_not_removed() {
    let world = World::new();
    let (db, backups) = (world.open("db"), world.backups());
    let others =
        ["notes.txt", "000012.table", "own-words", "changes-of-plan", "value-1-2-3", "a-b-c.table"];
    others.iter().for_each(|name| world.disk.put_file(Path::new("backups").join(name), *b"mine"));
    write(&db, 0);
    backups.back_up(&db).expect("backs up");
    backups.ship(&db).expect("ships");
    backups.prune(0).expect("prunes");
    let mut left = world.names("backups");
    left.sort_unstable();
    let mut expected = [&["LOCK"][..], &others].concat();
    expected.sort_unstable();
    assert_eq!(left, expected);
}

/// A store, its backups, and another store that was restored from the first of them.
fn restored_beside(world: &World) -> (Db, Backups, Db) {
    let (db, backups) = (world.open("db"), world.backups());
    write(&db, 0);
    let first = backups.back_up(&db).expect("backs up");
    backups.restore(first.number, "other").expect("restores");
    (db, backups, world.open("other"))
}

/// A store that was restored, and the one that went on, keep apart in the same place.
#[test]
fn what_two_stores_of_one_origin_make_is_not_mixed() {
    let world = World::new();
    let (db, backups, other) = restored_beside(&world);
    assert_eq!(contents(&other), contents(&db));
    // Nobody has yet what its changes come after.
    other.put("a", "b").expect("puts");
    assert!(matches!(backups.ship(&other), Err(Error::Gone { .. })));
    backups.back_up(&other).expect("backs up");
    let mut moments = Vec::new();
    for turn in 1..4 {
        for (store, salt) in [(&db, 0), (&other, 100)] {
            write(store, turn + salt);
            backups.ship(store).expect("ships");
            moments.push((store.snapshot().sequence(), contents(store)));
            if turn == 2 {
                backups.back_up(store).expect("backs up");
            }
            store.compact().expect("merges");
        }
    }
    for (place, (sequence, expected)) in moments.iter().enumerate() {
        let dir = format!("as of {place}");
        let last = backups.restore_until(Until::Sequence(*sequence), &dir, options());
        assert_eq!(last.expect("restores"), *sequence);
        assert_eq!(contents(&world.open(&dir)), *expected, "moment {place}");
    }
}

/// Two stores of one generation: neither continues where the other one has shipped.
#[test]
fn what_two_restored_stores_make_is_not_mixed() {
    let world = World::new();
    let (db, backups) = (world.open("db"), world.backups());
    write(&db, 0);
    let first = backups.back_up(&db).expect("backs up");
    let [one, two] = ["one", "two"].map(|dir| {
        backups.restore(first.number, dir).expect("restores");
        world.open(dir)
    });
    one.put("a", "1").expect("puts");
    backups.back_up(&one).expect("backs up");
    (0..100u8).for_each(|key| one.put([key], "one").expect("puts"));
    backups.ship(&one).expect("ships");
    (0..50u8).for_each(|key| two.put([key], "two").expect("puts"));
    assert!(matches!(backups.ship(&two), Err(Error::Gone { .. })));
    backups.back_up(&two).expect("backs up");
    let now = Until::Time(world.clock.since_epoch());
    backups.restore_until(now, "again", options()).expect("restores");
    assert_eq!(contents(&world.open("again")), contents(&two));
}

/// A store that was restored has greater numbers of writes, and an older generation.
#[test]
fn pruning_keeps_the_changes_of_a_newer_generation_with_smaller_numbers() {
    let world = World::new();
    let (db, backups, other) = restored_beside(&world);
    write(&other, 1);
    backups.back_up(&other).expect("backs up");
    write(&db, 2);
    backups.back_up(&db).expect("backs up");
    write(&db, 3);
    let shipped = backups.ship(&db).expect("ships");
    assert_eq!(backups.prune(2).expect("prunes").generations, [1]);
    let last = backups.restore_until(Until::Sequence(shipped.to), "again", options());
    assert_eq!(last.expect("the changes are there"), shipped.to);
    assert_eq!(contents(&world.open("again")), contents(&db));
}

/// Every prune failed once it had removed the records of generations.
#[test]
fn a_folder_of_backups_may_have_subfolders() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let backups = Backups::in_folder(dir.path().join("backups")).expect("opens");
    std::fs::create_dir(dir.path().join("backups/lost+found")).expect("makes it");
    let db = Db::open(dir.path().join("db"), options()).expect("opens");
    for _ in 0..2 {
        db.put("a", "b").expect("puts");
        backups.back_up(&db).expect("backs up");
        backups.ship(&db).expect("ships");
    }
    let pruned = backups.prune(1).expect("prunes");
    assert_eq!(pruned.generations, [1]);
    assert!(pruned.objects > 0);
    assert!(dir.path().join("backups/lost+found").is_dir());
}

#[test]
fn damage_is_found_and_nothing_damaged_is_restored() {
    let world = World::new();
    let (db, backups) = (world.open("db"), world.backups());
    write(&db, 0);
    let generation = backups.back_up(&db).expect("backs up");
    for (place, file) in generation.files.iter().enumerate() {
        let path = Path::new("backups").join(&file.object);
        world.disk.flip_bit(&path, file.bytes / 2, 3);
        let report = backups.verify(1).expect("verifies");
        assert_eq!(report.damage.len(), 1, "{}", file.object);
        assert!(report.damage[0].path.ends_with(&file.object));
        let dir = format!("damaged-{place}");
        let error = backups.restore(1, &dir).expect_err("it is damaged");
        assert!(error.tells_of_damage(), "{error}");
        assert!(
            Db::open_with(&dir, options().create_if_missing(false), world.environment()).is_err()
        );
        world.disk.flip_bit(&path, file.bytes / 2, 3);
    }
    assert!(backups.verify(1).expect("verifies").damage.is_empty());
    world.disk.remove(&Path::new("backups").join(&generation.files[0].object)).expect("removes");
    assert_eq!(backups.verify(1).expect("verifies").damage.len(), 1);
    world.disk.put_file("backups/generation-000001", b"TRMLBACK".as_slice());
    assert!(backups.generations().is_err_and(|error| error.tells_of_damage()));
}

#[test]
fn a_folder_of_backups_has_one_owner() {
    let world = World::new();
    let backups = world.backups();
    assert!(matches!(world.try_backups(), Err(Error::Locked { .. })));
    drop(backups);
    world.backups();
}

/// Stops each call after each of its reports.
#[test]
fn calls_tell_how_far_they_are_and_stop_where_they_are_told() {
    let world = World::new();
    let (db, backups) = (world.open("db"), world.backups());
    write(&db, 0);
    db.put("large", vec![7; 100_000]).expect("puts");
    let first = backups.back_up(&db).expect("backs up");
    write(&db, 1);
    backups.ship(&db).expect("ships");
    let until = Until::Sequence(db.snapshot().sequence());
    let unlogged = Unlogged::Refuse;
    db.compact().expect("merges");
    for what in ["back up", "restore", "restore until"] {
        for reports in 1.. {
            let (mut heard, mut last) = (0, Progress::default());
            let mut listener = |now: Progress| {
                assert!(now.done <= now.total && (heard == 0 || now.done >= last.done), "{now:?}");
                (heard, last) = (heard + 1, now);
                if heard == reports { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            let done = match what {
                "back up" => backups.back_up_with_progress(&db, &mut listener).map(drop),
                "restore" => backups.restore_with_progress(1, "first", &mut listener),
                _ => backups
                    .restore_until_with_progress(
                        until,
                        ("until", options()),
                        unlogged,
                        &mut listener,
                    )
                    .map(drop),
            };
            if done.is_ok() {
                assert_eq!((last.done, heard < reports), (last.total, true), "{what}");
                assert!(reports > 3, "{what}: {reports}");
                break;
            }
            assert!(matches!(done, Err(Error::Cancelled)), "{what}, {reports}: {done:?}");
            assert_eq!(backups.generations().expect("reads"), std::slice::from_ref(&first));
            for dir in ["first", "until"] {
                let is_there = world.disk.list(Path::new(dir)).is_ok_and(|names| names.len() > 1);
                assert!(
                    !is_there || dir == "first" && what == "restore until",
                    "{what}, {reports}"
                );
            }
        }
        if what == "back up" {
            assert_eq!(world.restored(&backups, 2, "second"), contents(&db));
            backups.prune(2).expect("prunes");
            let two = |it: &Generation| it.number == 2;
            assert!(backups.generations().expect("reads").iter().any(two));
            world.disk.remove(Path::new("backups/generation-000002")).expect("removes");
        }
    }
    assert_eq!(contents(&world.open("until")), contents(&db));
}

#[test]
fn parts_that_a_crash_has_left_are_removed_and_those_of_others_stay() {
    let world = World::new();
    let (db, backups) = (world.open("db"), world.backups());
    backups.back_up(&db).expect("backs up");
    let own = world.names("backups");
    drop(backups);
    let left = [
        "000012-4096-9ab3c1d2.table.part",
        "own-000002-MANIFEST.part",
        "generation-000002.part",
        "changes-00000000000000000001-00000000000000000002-3.part",
        "value-00000000000000000001-1048576-9ab3c1d2.part",
    ];
    left.iter().for_each(|name| world.disk.put_file(Path::new("backups").join(name), *b"half"));
    world.disk.put_file("backups/film.part", *b"mine");
    let backups = world.backups();
    assert_eq!(backups.generations().expect("reads").len(), 1);
    let mut expected = [own, vec!["film.part".to_string()]].concat();
    expected.sort_unstable();
    let mut there = world.names("backups");
    there.sort_unstable();
    assert_eq!(there, expected);
}
