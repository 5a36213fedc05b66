//! Backups: what was backed up comes back, whatever happens in between.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use trommel::backup::{Backups, FolderObjects, Generation, Unlogged, Until};
use trommel::merge_operators::{Concat, MergeError, MergeOperator};
use trommel::storage::{Memory, Storage};
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
fn a_generation_leads_on_where_the_value_of_a_change_is_gone() {
    let world = World::new();
    let (db, backups) = (world.open("db"), world.backups());
    db.put("a", [1; 5000]).expect("puts");
    backups.back_up(&db).expect("backs up");
    (2..5u8).for_each(|number| db.put("a", [number; 5000]).expect("puts"));
    db.compact().expect("merges");
    (0..9u8).for_each(|number| db.put([number], [number; 5000]).expect("puts"));
    db.compact().expect("merges");
    let error = backups.ship(&db).expect_err("an overwritten value is gone");
    assert!(matches!(error, Error::Gone { .. }), "{error}");
    let second = backups.back_up(&db).expect("backs up");
    db.put("b", "1").expect("puts");
    let shipped = backups.ship(&db).expect("goes on");
    assert!(shipped.from >= second.sequence && shipped.to > second.sequence, "{shipped:?}");
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

/// The key spaces that a store has, each with one key that tells it.
fn told(db: &Db) -> Vec<(String, String)> {
    let all = db.keyspaces().expect("lists").into_iter();
    let value = |name: &String| {
        let value = db.open_keyspace(name).expect("is there").get("told").expect("reads");
        value.map_or_else(String::new, |it| String::from_utf8(it.to_vec()).expect("text"))
    };
    let mut told: Vec<_> = all.map(|name| (value(&name), name)).collect();
    told.sort_unstable();
    told.into_iter().map(|(value, name)| (name, value)).collect()
}

/// The same, as text: `name=value`.
fn pairs(text: &str) -> Vec<(String, String)> {
    let pair = |text: &str| text.split_once('=').map(|(name, value)| (name.into(), value.into()));
    let mut all: Vec<_> = text.split(' ').filter_map(pair).chain(pair("default=")).collect();
    all.sort_unstable_by(|one, other| (&one.1, &one.0).cmp(&(&other.1, &other.0)));
    all
}

/// Feeds tell of writes alone, by the numbers of key spaces.
#[test]
fn key_spaces_that_were_made_renamed_and_dropped_come_back_so() {
    let world = World::new();
    let (db, backups) = (world.open("db"), world.backups());
    let make = |name: &str, value: &str| {
        let options = KeyspaceOptions::new().merge_operator(Concat::new("/"));
        let keyspace = db.keyspace(name, options).expect("made");
        keyspace.put("told", value).expect("puts");
        keyspace
    };
    let first = ["one", "two", "three", "four"].map(|name| make(name, name));
    backups.back_up(&db).expect("backs up");
    let mut moments = Vec::new();
    let mut note = |expected: &str| moments.push((db.snapshot().sequence(), pairs(expected)));
    // Written to by its old handle, under a new name; another one has the old name.
    db.rename_keyspace("one", "first").expect("renames");
    first[0].merge("told", "renamed").expect("merges");
    let other = make("one", "other");
    note("first=one/renamed one=other two=two three=three four=four");
    db.drop_keyspace("two").expect("drops");
    make("two", "another");
    note("first=one/renamed one=other two=another three=three four=four");
    // These change names.
    for (from, to) in [("three", "between"), ("four", "three"), ("between", "four")] {
        db.rename_keyspace(from, to).expect("renames");
    }
    other.merge("told", "on").expect("merges");
    db.keyspace("empty", KeyspaceOptions::new().log(false)).expect("made");
    note("first=one/renamed one=other/on two=another four=three three=four empty=");
    backups.ship(&db).expect("ships");
    make("late", "late");
    note("first=one/renamed one=other/on two=another four=three three=four empty= late=late");
    db.drop_keyspace("first").expect("drops");
    backups.ship(&db).expect("ships");
    for (place, (sequence, expected)) in moments.iter().enumerate().take(3) {
        let dir = format!("as of {place}");
        backups.restore_until(Until::Sequence(*sequence), &dir, options()).expect("restores");
        let restored = world.open(&dir);
        assert_eq!(told(&restored), *expected, "moment {place}");
        // It has its options.
        let keyspace = restored.open_keyspace("one").expect("is there");
        keyspace.merge("told", "more").expect("its operator is known");
    }
    let end = Until::Sequence(db.snapshot().sequence());
    backups.restore_until(end, "end", options()).expect("restores");
    let restored = world.open("end");
    assert_eq!(told(&restored), told(&db));
    let empty = restored.open_keyspace("empty").expect("is there").stats().expect("open");
    assert!(empty.durable_through.is_some(), "it has no log");
}

/// Who restores need not know what merges operands.
#[test]
fn operands_come_back_without_their_operator() {
    struct Longest;
    impl MergeOperator for Longest {
        fn name(&self) -> &str {
            "longest"
        }
        fn merge(
            &self,
            _key: &[u8],
            existing: Option<&[u8]>,
            operands: &[&[u8]],
        ) -> Result<Vec<u8>, MergeError> {
            let all = existing.into_iter().chain(operands.iter().copied());
            Ok(all.max_by_key(|it| it.len()).unwrap_or_default().to_vec())
        }
    }
    let world = World::new();
    let (db, backups) = (world.open("db"), world.backups());
    backups.back_up(&db).expect("backs up");
    let words = |db: &Db| {
        db.keyspace("words", KeyspaceOptions::new().merge_operator(Longest)).expect("is there")
    };
    for word in ["a", "word", "of"] {
        words(&db).merge("longest", word).expect("merges");
    }
    backups.ship(&db).expect("ships");
    let until = Until::Sequence(db.snapshot().sequence());
    let plain = Options::new().background(Background::Stepped);
    backups.restore_until(until, "restored", plain).expect("restores");
    let restored = words(&world.open("restored"));
    assert_eq!(restored.get("longest").expect("reads").as_deref(), Some(&b"word"[..]));
}

#[test]
fn a_key_space_that_was_made_and_dropped_between_shipments_is_left_out_or_told_of() {
    let world = World::new();
    let (db, backups) = (world.open("db"), world.backups());
    backups.back_up(&db).expect("backs up");
    db.put("a", "1").expect("puts");
    let before = db.snapshot().sequence();
    db.keyspace("short", KeyspaceOptions::new()).expect("made").put("a", "2").expect("puts");
    let amid = db.snapshot().sequence();
    db.drop_keyspace("short").expect("drops");
    db.put("a", "3").expect("puts");
    backups.ship(&db).expect("ships");
    let restored = |until, dir: &str| backups.restore_until(Until::Sequence(until), dir, options());
    let wrong = restored(amid, "amid").expect_err("its name is not known").to_string();
    assert!(wrong.contains(&format!("write {amid} is into a key space")), "{wrong}");
    // Nothing is left in that folder.
    restored(before, "amid").expect("restores");
    assert_eq!(world.open("amid").get("a").expect("reads").as_deref(), Some(&b"1"[..]));
    restored(db.snapshot().sequence(), "end").expect("restores");
    assert_eq!(contents(&world.open("end")), contents(&db));
}

#[test]
fn what_no_log_has_is_not_restored_in_silence() {
    let world = World::new();
    let (db, backups) = (world.open("db"), world.backups());
    let cache = db.keyspace("cache", KeyspaceOptions::new().log(false)).expect("made");
    cache.put("a", "1").expect("puts");
    db.put("a", "1").expect("puts");
    let first = backups.back_up(&db).expect("backs up");
    let shipped = |key: &str| {
        db.put(key, "2").expect("puts");
        backups.ship(&db).expect("ships").to
    };
    let restored = |until, dir: &str| backups.restore_until(Until::Sequence(until), dir, options());
    // Nothing was written to it.
    restored(shipped("b"), "b").expect("restores");
    assert_eq!(contents(&world.open("b")), contents(&db));
    for is_flushed in [false, true] {
        cache.put("a", "2").expect("puts");
        if is_flushed {
            cache.flush().expect("flushes");
        }
        let until = shipped("c");
        let wrong = restored(until, "c").expect_err("it is not shipped").to_string();
        assert!(wrong.contains("cache has no log") && wrong.contains("generation 1"), "{wrong}");
        assert!(wrong.contains(&format!("behind write {}", first.sequence)), "{wrong}");
        let (dir, known) = (format!("c {is_flushed}"), Unlogged::AsOfGeneration);
        let moment = Until::Sequence(until);
        let go_on = &mut |_| ControlFlow::Continue(());
        backups
            .restore_until_with_progress(moment, (&dir, options()), known, go_on)
            .expect("restores");
        let restored = world.open(&dir);
        let mut expected = contents(&db);
        expected.insert(("cache".into(), b"a".to_vec()), b"1".to_vec());
        assert_eq!(contents(&restored), expected);
    }
    backups.back_up(&db).expect("backs up");
    restored(shipped("d"), "d").expect("the generation has all of it");
    assert_eq!(contents(&world.open("d")), contents(&db));
}

#[test]
fn a_bulk_load_needs_a_generation_behind_it() {
    let world = World::new();
    let (db, backups) = (world.open("db"), world.backups());
    backups.back_up(&db).expect("backs up");
    db.put("a", "1").expect("puts");
    let before = backups.ship(&db).expect("ships").to;
    let expected = contents(&db);
    db.ingest([("b", "loaded")]).expect("loads");
    db.put("c", "1").expect("puts");
    assert!(matches!(backups.ship(&db), Err(Error::Gone { .. })));
    let restored = |until, dir: &str| backups.restore_until(Until::Sequence(until), dir, options());
    let wrong = restored(db.snapshot().sequence(), "new").expect_err("not shipped").to_string();
    assert!(wrong.contains(&format!("behind write {before} were not shipped")), "{wrong}");
    backups.back_up(&db).expect("backs up");
    db.put("d", "1").expect("puts");
    let after = backups.ship(&db).expect("ships").to;
    restored(after, "after").expect("restores");
    assert_eq!(contents(&world.open("after")), contents(&db));
    restored(before, "before").expect("restores");
    assert_eq!(contents(&world.open("before")), expected);
}

#[test]
fn changes_that_are_damaged_leave_no_store() {
    let world = World::new();
    let (db, backups) = (world.open("db"), world.backups());
    backups.back_up(&db).expect("backs up");
    for turn in 0..2 {
        write(&db, turn);
        backups.ship(&db).expect("ships");
    }
    let mut changes = world.names("backups");
    changes.retain(|name| name.starts_with("changes-"));
    changes.sort_unstable();
    let (path, until) =
        (Path::new("backups").join(&changes[0]), Until::Sequence(db.snapshot().sequence()));
    world.disk.flip_bit(&path, 100, 3);
    let wrong = backups.restore_until(until, "restored", options()).expect_err("damaged");
    assert!(wrong.tells_of_damage(), "{wrong}");
    assert_eq!(world.names("restored"), ["LOCK"]);
    world.disk.flip_bit(&path, 100, 3);
    backups.restore_until(until, "restored", options()).expect("restores");
    assert_eq!(contents(&world.open("restored")), contents(&db));
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

/// Bytes that do not repeat soon.
fn noise(seed: u8, len: usize) -> Vec<u8> {
    (0..len as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8 ^ seed).collect()
}

/// A store as it was after some write.
type Moment = (u64, Contents);

/// Backs a store up, and ships changes with long values twice: six of them. Gives moments between.
fn ship_long_values(db: &Db, backups: &Backups) -> Vec<Moment> {
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
