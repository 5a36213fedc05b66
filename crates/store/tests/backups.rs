//! Backups: what was backed up comes back, whatever happens in between.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use trommel::backup::{Backups, FolderObjects, Until};
use trommel::merge_operators::Concat;
use trommel::storage::{Memory, Storage};
use trommel::testing::{Fault, ManualClock};
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
    let others = ["notes.txt", "000012.table", "own-words", "changes-of-plan", "a-b-c.table"];
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

#[test]
fn changes_that_were_shipped_lead_to_any_moment() {
    let world = World::new();
    let (db, backups) = (world.open("db"), world.backups());
    assert!(matches!(backups.ship(&db), Err(Error::FileMissing { .. })));
    write(&db, 0);
    backups.back_up(&db).expect("backs up");
    let mut moments = vec![(db.snapshot().sequence(), Duration::ZERO, contents(&db))];
    for turn in 1..6 {
        for part in 0..3 {
            db.put(format!("{turn} {part}"), [part; 20]).expect("puts");
            moments.push((db.snapshot().sequence(), Duration::MAX, contents(&db)));
        }
        write(&db, turn);
        world.clock.advance(Duration::from_secs(60));
        let shipped = backups.ship(&db).expect("ships");
        assert_eq!(shipped.to, db.snapshot().sequence());
        let time = Duration::from_secs(60 * turn);
        moments.push((shipped.to, time, contents(&db)));
        if turn == 3 {
            backups.back_up(&db).expect("backs up");
        }
    }
    assert_eq!(backups.ship(&db).expect("ships").bytes, 0);
    for (place, (sequence, time, expected)) in moments.iter().enumerate() {
        let dir = format!("as of {place}");
        let until = Until::Sequence(*sequence);
        let last = backups.restore_until(until, &dir, options()).expect("restores");
        assert_eq!(last, *sequence);
        assert_eq!(contents(&world.open(&dir)), *expected, "moment {place}");
        if *time > Duration::ZERO && *time < Duration::MAX {
            let (dir, until) = (format!("then {place}"), Until::Time(*time));
            let last = backups.restore_until(until, &dir, options()).expect("restores");
            assert_eq!((last, contents(&world.open(&dir))), (*sequence, expected.clone()));
        }
    }
    let beyond = Until::Sequence(db.snapshot().sequence() + 1);
    let error = backups.restore_until(beyond, "beyond", options()).expect_err("not shipped");
    assert!(error.to_string().contains("not shipped"), "{error}");
    let before = Until::Sequence(moments[0].0 - 1);
    let error = backups.restore_until(before, "before", options()).expect_err("too old");
    assert!(error.to_string().contains("so old"), "{error}");
}

/// A store that was restored, and the one that went on, keep apart in the same place.
#[test]
fn what_two_stores_of_one_origin_make_is_not_mixed() {
    let world = World::new();
    let (db, backups) = (world.open("db"), world.backups());
    write(&db, 0);
    let first = backups.back_up(&db).expect("backs up");
    backups.restore(first.number, "other").expect("restores");
    let other = world.open("other");
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

/// Whatever is interrupted: what was there before stays as it was, and the next call goes on.
#[test]
fn faults_and_crashes_harm_no_generation() {
    // So many operations of the disk each has, about.
    for (what, step) in [("back up", 3), ("ship", 1), ("prune", 2), ("restore", 5)] {
        for fault in [Fault::Io, Fault::NoSpace] {
            let mut at = 0;
            loop {
                let world = World::new();
                let db = world.open("db");
                write(&db, 0);
                let backups = world.backups();
                backups.back_up(&db).expect("backs up");
                let before = contents(&db);
                write(&db, 1);
                let second = backups.back_up(&db).expect("backs up");
                let then = contents(&db);
                write(&db, 2);
                db.flush().expect("flushes");
                let begun = world.disk.operations();
                world.disk.fail_from(at, fault);
                let done = match what {
                    "back up" => backups.back_up(&db).map(drop),
                    "ship" => backups.ship(&db).map(drop),
                    "prune" => backups.prune(1).map(drop),
                    _ => backups.restore(second.number, "half"),
                };
                let is_over = at >= world.disk.operations() - begun;
                world.disk.mend();
                if done.is_err() && what == "restore" {
                    let opened = Db::open_with(
                        "half",
                        options().create_if_missing(false),
                        world.environment(),
                    );
                    assert!(opened.is_err(), "{what}, operation {at}: half a store opens");
                }
                drop((backups, db));
                let world = World { disk: world.disk.crash(at), clock: world.clock };
                let backups = world.backups();
                let found = backups.generations().expect("reads");
                let oldest = found.first().expect("one at least").number;
                if what != "prune" {
                    assert_eq!(world.restored(&backups, 1, "first"), before, "{what}, {at}");
                }
                assert!(oldest <= second.number);
                for generation in &found {
                    let report = backups.verify(generation.number).expect("verifies");
                    assert!(report.damage.is_empty(), "{what}, {at}: {:?}", report.damage);
                }
                assert_eq!(world.restored(&backups, 2, "second"), then, "{what}, {at}");
                let db = world.open("db");
                let last = backups.back_up(&db).expect("backs up").number;
                backups.prune(1).expect("prunes");
                assert_eq!(world.restored(&backups, last, "last"), contents(&db), "{what}, {at}");
                if is_over {
                    break;
                }
                at += step;
            }
            assert!(at > 0, "{what}: nothing has failed");
        }
    }
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
