//! Long values are shipped as objects of their own.
//! ```text
//! value-41  value-43  changes-40-43     value-44  changes-43-44
//! ```
//! Invariants: an object of a value is there before changes name it. What was shipped is not
//! shipped again.

use std::io::{self, Read};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use trommel::backup::{Backups, FolderObjects, ObjectStore, Until};
use trommel::testing::Fault;
use trommel::{Batch, Db, KeyspaceOptions};

use super::{Contents, World, contents, options};

/// Bytes that do not repeat soon.
pub(super) fn noise(seed: u8, len: usize) -> Vec<u8> {
    (0..len as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8 ^ seed).collect()
}

/// A store as it was after some write.
type Shipped = (u64, Contents);

/// Backs a store up, and ships changes with long values twice: six of them. Gives moments between.
fn ship_long_values(db: &Db, backups: &Backups) -> Vec<Shipped> {
    let events = db.keyspace("events", KeyspaceOptions::new()).expect("made");
    backups.back_up(db).expect("backs up");
    let moment = || (db.snapshot().sequence(), contents(db));
    let mut moments = vec![moment()];
    // The longest of the second turn come back as streams, the others whole.
    for (turn, len) in [(1u8, 1usize << 20), (2, 2 << 20)] {
        db.put("short", [turn; 2000]).expect("puts");
        moments.push(moment());
        db.put("long", noise(turn, len)).expect("puts");
        moments.push(moment());
        let (late, never) = (noise(turn + 10, 2 * len + 7), Duration::from_secs(1 << 40));
        let mut batch = Batch::new();
        batch.put("beside", [turn]).to(&events).put_ttl("long", &late, never).delete("none");
        db.write(batch).expect("writes");
        moments.push(moment());
        let stream = noise(turn + 20, 2 * len);
        db.put_reader("stream", stream.len() as u64, &stream[..]).expect("puts");
        moments.push(moment());
        db.step().expect("goes on");
        let shipped = backups.ship(db).expect("ships");
        assert!(shipped.bytes > 4 * len as u64, "{shipped:?}");
    }
    moments
}

/// The objects of long values, in the order of their writes.
fn long_objects(world: &World) -> Vec<String> {
    let mut names = world.names("backups");
    names.retain(|name| name.starts_with("value-"));
    names.sort_unstable();
    names
}

#[test]
fn long_values_are_shipped_as_objects_and_lead_to_any_moment() {
    let world = World::new();
    let (db, backups) = (world.open("db"), world.backups());
    let moments = ship_long_values(&db, &backups);
    assert_eq!(long_objects(&world).len(), 6);
    assert!(backups.verify(1).expect("verifies").damage.is_empty());
    for (place, (sequence, expected)) in moments.iter().enumerate() {
        let (dir, until) = (format!("as of {place}"), Until::Sequence(*sequence));
        assert_eq!(backups.restore_until(until, &dir, options()).expect("restores"), *sequence);
        assert!(contents(&world.open(&dir)) == *expected, "moment {place}");
    }
    let (end, expected) = moments.last().expect("there are some");
    let expiry = |db: &Db| {
        let events = db.open_keyspace("events").expect("is there");
        events.get_reader("long").expect("reads").expect("is there").expiry()
    };
    let last = world.open(&format!("as of {}", moments.len() - 1));
    assert!(expiry(&db).is_some() && expiry(&last) == expiry(&db));
    // Where no value is apart.
    let whole = options().value_threshold(0);
    backups.restore_until(Until::Sequence(*end), "whole", whole).expect("restores");
    assert!(contents(&world.open("whole")) == *expected);
}

#[test]
fn damaged_long_values_are_found_and_not_restored() {
    let world = World::new();
    let (db, backups) = (world.open("db"), world.backups());
    let moments = ship_long_values(&db, &backups);
    let (end, expected) = moments.last().expect("there are some");
    let objects = long_objects(&world);
    let restored = || backups.restore_until(Until::Sequence(*end), "restored", options());
    // One that comes back whole, and one as a stream.
    for object in [&objects[0], &objects[5]] {
        let path = Path::new("backups").join(object);
        let sound = world.disk.file(&path).expect("is there");
        let is_found = |what: &str| {
            let damage = backups.verify(1).expect("verifies").damage;
            assert_eq!(damage.len(), 1, "{what}: {damage:?}");
            assert!(damage[0].path.ends_with(object), "{what}: {damage:?}");
            let wrong = restored().expect_err("it is damaged");
            assert!(wrong.tells_of_damage(), "{what}: {wrong}");
            assert_eq!(world.names("restored"), ["LOCK"], "{what}");
        };
        world.disk.flip_bit(&path, sound.len() as u64 - 1, 3);
        is_found("another bit");
        world.disk.put_file(&path, &sound[1..]);
        is_found("a byte less");
        world.disk.put_file(&path, [&sound[..], b"1"].concat());
        is_found("a byte more");
        world.disk.remove(&path).expect("removes");
        is_found("nothing");
        world.disk.put_file(&path, sound);
    }
    restored().expect("restores");
    assert!(contents(&world.open("restored")) == *expected);
}

#[test]
fn long_values_go_with_the_changes_that_name_them() {
    let world = World::new();
    let (db, backups) = (world.open("db"), world.backups());
    let moments = ship_long_values(&db, &backups);
    // What a call has left that was interrupted before its changes were there.
    let left = format!("backups/value-{:020}-3-00000000", db.snapshot().sequence() + 1);
    world.disk.put_file(&left, *b"abc");
    let pruned = backups.prune(1).expect("prunes");
    assert_eq!((pruned.objects, pruned.bytes, long_objects(&world).len()), (1, 3, 6));
    let (end, expected) = moments.last().expect("there are some");
    backups.restore_until(Until::Sequence(*end), "restored", options()).expect("restores");
    assert!(contents(&world.open("restored")) == *expected);
    backups.back_up(&db).expect("backs up");
    backups.prune(1).expect("prunes");
    assert_eq!(long_objects(&world), [""; 0]);
}

/// Whatever is interrupted, the next call stores the same objects.
#[test]
fn shipping_long_values_goes_on_after_any_fault() {
    for at in 0.. {
        let world = World::new();
        let (db, backups) = (world.open("db"), world.backups());
        backups.back_up(&db).expect("backs up");
        db.put("long", noise(1, 1 << 20)).expect("puts");
        db.put("longer", noise(2, (1 << 20) + 1)).expect("puts");
        world.disk.fail_from(at, Fault::NoSpace);
        let done = backups.ship(&db);
        world.disk.mend();
        drop((backups, db));
        let world = World { disk: world.disk.kill(), clock: world.clock };
        let (db, backups) = (world.open("db"), world.backups());
        backups.ship(&db).expect("ships");
        assert_eq!(long_objects(&world).len(), 2, "operation {at}");
        assert_eq!(backups.prune(1).expect("prunes").objects, 0, "operation {at}");
        let end = Until::Sequence(db.snapshot().sequence());
        backups.restore_until(end, "restored", options()).expect("restores");
        assert!(contents(&world.open("restored")) == contents(&db), "operation {at}");
        if done.is_ok() {
            assert!(at > 3, "nothing has failed");
            break;
        }
    }
}

/// What was put, and which put is refused.
#[derive(Default)]
struct Puts {
    names: Vec<String>,
    refused: Option<usize>,
}

/// Objects in a folder, which tell what is put.
struct Noted {
    objects: FolderObjects,
    puts: Arc<Mutex<Puts>>,
}

impl ObjectStore for Noted {
    fn place(&self) -> String {
        self.objects.place()
    }

    fn put(&self, name: &str, bytes: u64, source: &mut dyn Read) -> io::Result<()> {
        let mut puts = self.puts.lock().expect("no panic");
        if puts.refused == Some(puts.names.len()) {
            return Err(io::Error::other("refused"));
        }
        self.objects.put(name, bytes, source)?;
        puts.names.push(name.to_string());
        Ok(())
    }

    fn get(&self, name: &str) -> io::Result<Box<dyn Read + '_>> {
        self.objects.get(name)
    }

    fn list(&self, prefix: &str) -> io::Result<Vec<(String, u64)>> {
        self.objects.list(prefix)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.objects.remove(name)
    }
}

// All changes became one object, behind all values: who failed before it began from the start.
#[test]
fn a_shipment_that_has_failed_goes_on_behind_what_was_shipped() {
    // Two values are long enough for an object of changes.
    const PART: usize = 3;
    const ALL: usize = 5 + 3;
    for refused in 0..ALL {
        let world = World::new();
        let objects = FolderObjects::open_with("backups", &world.environment()).expect("opens");
        let puts = Arc::<Mutex<Puts>>::default();
        let noted = Noted { objects, puts: Arc::clone(&puts) };
        let (db, backups) = (world.open("db"), Backups::with(noted, world.environment()));
        backups.back_up(&db).expect("backs up");
        (0..5u8).for_each(|key| db.put([key], noise(key, 4 << 20)).expect("puts"));
        let ship = |refused| {
            *puts.lock().expect("no panic") = Puts { names: Vec::new(), refused };
            let shipped = backups.ship(&db);
            (shipped.is_ok(), std::mem::take(&mut puts.lock().expect("no panic").names))
        };
        let (first, second) = (ship(Some(refused)), ship(None));
        assert_eq!((first.0, second.0), (false, true), "put {refused}");
        let (first, second, whole) = (first.1, second.1, refused / PART * PART);
        assert_eq!((first.len(), second.len()), (refused, ALL - whole), "put {refused}");
        let again = second.iter().filter(|name| first.contains(name)).count();
        assert_eq!(again, refused - whole, "put {refused}: the values of one object of changes");
        let end = Until::Sequence(db.snapshot().sequence());
        backups.restore_until(end, "restored", options()).expect("restores");
        assert!(contents(&world.open("restored")) == contents(&db), "put {refused}");
    }
}
