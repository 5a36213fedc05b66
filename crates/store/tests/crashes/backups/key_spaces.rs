//! Key spaces that change between shipments: their logs, and their names.
//! ```text
//! "index" (1)   put a    dropped                    2 takes its name, but 1 may be written to
//! "next" (2)       put b    renamed: "index"        in the same batch, and until it was dropped
//! ```
//! Invariant: what no change tells is told of, and what was dropped is there until it was.

use super::*;

/// Opens the key space `cache` anew.
fn cache(db: &Db, log: bool) -> trommel::Keyspace {
    db.keyspace("cache", KeyspaceOptions::new().log(log)).expect("opens")
}

/// Ships one more write, and restores to that.
fn shipped(world: &World, db: &Db, backups: &Backups, dir: &str) -> trommel::Result<()> {
    db.put(dir, "1").expect("puts");
    let until = Until::Sequence(backups.ship(db)?.to);
    backups.restore_until(until, dir, options())?;
    assert_eq!(contents(&world.open(dir)), contents(db), "{dir}");
    Ok(())
}

#[test] // They were left out in silence, also of feeds that had begun before.
fn writes_from_before_a_key_space_got_a_log_are_not_left_out_in_silence() {
    for is_used in [false, true] {
        let world = World::new();
        let (db, backups) = (world.open("db"), world.backups());
        let first = cache(&db, false);
        first.put("a", "1").expect("puts");
        backups.back_up(&db).expect("backs up");
        let mut feed = db.changes_since(db.snapshot().sequence()).expect("begins");
        first.put("a", "2").expect("puts");
        let mut holder = Some(first).filter(|_| is_used);
        let second = cache(&db, true);
        // A key space in use gets its log at the next opening.
        second.put("b", "3").expect("puts");
        let refused = shipped(&world, &db, &backups, "open").expect_err("not all of it is shipped");
        let is_told = matches!(refused, Error::Gone { .. } | Error::FileMissing { .. });
        assert!(is_told, "{is_used}: {refused}");
        if !is_used {
            assert!(matches!(feed.next_batch(), Err(Error::Gone { .. })));
        }
        holder.take();
        drop((second, feed));
        db.close().expect("closes");
        let db = world.open("db");
        let refused = shipped(&world, &db, &backups, "anew").expect_err("not all of it is shipped");
        let is_told = matches!(refused, Error::Gone { .. } | Error::FileMissing { .. });
        assert!(is_told, "{is_used}: {refused}");
        backups.back_up(&db).expect("backs up");
        cache(&db, true).put("a", "4").expect("puts");
        shipped(&world, &db, &backups, "with it").expect("all of it is shipped");
    }
}

#[test]
fn writes_from_before_the_default_key_space_got_a_log_are_not_left_out_in_silence() {
    let with = |world: &World, options: Options| {
        Db::open_with("db", options, world.environment()).expect("opens")
    };
    let for_now = options().log(false).for_now("log");
    for first in [options().log(false), for_now] {
        let world = World::new();
        let backups = world.backups();
        let db = with(&world, options());
        db.put("a", "1").expect("puts");
        backups.back_up(&db).expect("backs up");
        db.close().expect("closes");
        let db = with(&world, first);
        db.put("a", "2").expect("puts");
        db.close().expect("closes");
        let db = with(&world, options().log(true));
        let refused = shipped(&world, &db, &backups, "before").expect_err("it is not shipped");
        assert!(matches!(refused, Error::Gone { .. }), "{refused}");
        backups.back_up(&db).expect("backs up");
        shipped(&world, &db, &backups, "behind").expect("the generation has all of it");
    }
}

#[test] // The old one was dropped amid a batch with writes into it: nothing behind it came back.
fn a_key_space_that_another_replaces_is_there_until_it_was_dropped() {
    let world = World::new();
    let (db, backups) = (world.open("db"), world.backups());
    let make = |name: &str| db.keyspace(name, KeyspaceOptions::new()).expect("made");
    let value = |db: &Db, name: &str, key: &str| {
        let keyspace = db.open_keyspace(name).expect("is there");
        let value = keyspace.get(key).expect("reads")?;
        Some(String::from_utf8(value.to_vec()).expect("text"))
    };
    let index = make("index");
    index.put("a", "old").expect("puts");
    backups.back_up(&db).expect("backs up");
    let next = make("next");
    next.put("a", "new").expect("puts");
    let first = db.snapshot().sequence();
    let mut batch = Batch::new();
    batch.to(&index).put("b", "old").to(&next).put("b", "new").to(&index).put("c", "old");
    db.write(batch).expect("writes");
    let second = db.snapshot().sequence();
    index.put("d", "old").expect("puts");
    let third = db.snapshot().sequence();
    drop(index);
    db.drop_keyspace("index").expect("drops");
    db.rename_keyspace("next", "index").expect("renames");
    next.put("e", "new").expect("puts");
    let last = backups.ship(&db).expect("ships").to;
    for (until, count) in [(first, 1), (second, 3), (third, 4)] {
        let dir = format!("as of {until}");
        backups.restore_until(Until::Sequence(until), &dir, options()).expect("restores");
        let restored = world.open(&dir);
        let names = restored.keyspaces().expect("lists");
        let old = names.iter().find(|name| name.starts_with("renamed-")).expect("is there");
        assert_eq!(value(&restored, "index", "a").as_deref(), Some("new"));
        assert_eq!(value(&restored, old, "a").as_deref(), Some("old"));
        let old = restored.open_keyspace(old).expect("is there");
        assert_eq!(old.iter().count(), count, "{until}");
    }
    backups.restore_until(Until::Sequence(last), "end", options()).expect("restores");
    assert_eq!(contents(&world.open("end")), contents(&db));
}
