//! Stores that have lost writes, and go on: what they lost is not mixed with what they write anew.
//! ```text
//! lost     41 [42 ....... 57]           generation-1, changes-41-57
//! anew     41    [.. ......... ..]      generation-2, changes behind it: these alone lead on
//! ```

use trommel::tools::repair_with;
use trommel::{FollowOptions, Follower};

use super::*;

fn restored(world: &World, backups: &Backups, until: Until, dir: &str) -> (u64, Contents) {
    let last = backups.restore_until(until, dir, options()).expect("restores");
    (last, contents(&world.open(dir)))
}

#[test] // Numbers were given twice, so old changes led on from the new generation.
fn what_a_repaired_store_lost_is_not_mixed_with_what_it_writes() {
    let world = World::new();
    let (db, backups) = (world.open("db"), world.backups());
    write(&db, 0);
    backups.back_up(&db).expect("backs up");
    (0..16u8).for_each(|key| db.put([key], "lost").expect("puts"));
    let before = (backups.ship(&db).expect("ships").to, contents(&db));
    drop(db);
    let mut logs = world.names("db");
    logs.retain(|name| name.ends_with(".wal"));
    let newest = logs.iter().max().expect("there is a log");
    world.disk.remove(&Path::new("db").join(newest)).expect("removes");
    let report = repair_with("db", &world.environment()).expect("repairs");
    assert_eq!(report.lost.len(), 1, "{report:?}");
    let db = world.open("db");
    (0..3u8).for_each(|key| db.put([key], "new").expect("puts"));
    // Nobody has what its changes come after.
    assert!(matches!(backups.ship(&db), Err(Error::Gone { .. })));
    backups.back_up(&db).expect("backs up");
    (0..40u8).for_each(|key| db.put([key], "newer").expect("puts"));
    let after = (backups.ship(&db).expect("ships").to, contents(&db));
    for (place, (number, expected)) in [before, after].into_iter().enumerate() {
        let (until, dir) = (Until::Sequence(number), format!("as of {place}"));
        assert_eq!(restored(&world, &backups, until, &dir), (number, expected));
    }
}

/// A store after a power cut, and backups with a generation of what the cut has taken.
fn followed_and_cut() -> (World, Db, Backups) {
    let world = World::new();
    let open = |world: &World| {
        let with = options().sync(SyncPolicy::Never);
        Db::open_with("db", with, world.environment()).expect("opens")
    };
    let db = open(&world);
    (0..90u8).for_each(|key| db.put([key], "kept").expect("puts"));
    db.sync().expect("syncs");
    (0..10u8).for_each(|key| db.put([key], "lost").expect("puts"));
    let follower: Follower =
        Db::follow_with("db", FollowOptions::default(), world.environment()).expect("follows");
    let backups = world.backups();
    assert!(backups.back_up_followed(&follower).expect("backs up").sequence > 95);
    drop((backups, follower));
    let world = World { disk: world.disk.crash_hard(), clock: Arc::clone(&world.clock) };
    let (db, backups) = (open(&world), world.backups());
    assert_eq!(db.snapshot().sequence(), 90);
    (world, db, backups)
}

#[test] // `ship` and restores began behind the generation with the greatest number of a write.
fn a_new_generation_replaces_those_with_writes_that_a_power_cut_has_taken() {
    let (world, db, backups) = followed_and_cut();
    world.clock.advance(Duration::from_secs(60));
    (10..15u8).for_each(|key| db.put([key], "new").expect("puts"));
    let second = backups.back_up(&db).expect("backs up");
    assert_eq!(second.sequence, 95);
    let mut moments = Vec::new();
    for (turn, count) in [3u8, 12, 20].into_iter().enumerate() {
        (20..20 + count).for_each(|key| db.put([key], [turn as u8]).expect("puts"));
        world.clock.advance(Duration::from_secs(59));
        let shipped = backups.ship(&db).expect("ships");
        assert_eq!(shipped.to - shipped.from, u64::from(count));
        moments.push((shipped.to, world.clock.since_epoch(), contents(&db)));
        world.clock.advance(Duration::from_secs(1));
    }
    for (number, time, expected) in moments {
        for (until, dir) in [(Until::Sequence(number), "number"), (Until::Time(time), "time")] {
            let dir = format!("{dir} {number}");
            assert_eq!(restored(&world, &backups, until, &dir), (number, expected.clone()));
        }
    }
    // Its changes are also verified, beyond the number of the one that it replaces.
    let files = |number| backups.verify(number).expect("verifies").files;
    let own = |number| backups.generations().expect("reads")[number as usize - 1].files.len();
    assert_eq!((files(1), files(2)), (own(1) as u64, own(2) as u64 + 3));
    // The one that was replaced is still there.
    let lost = world.restored(&backups, 1, "lost");
    assert_eq!(lost[&("default".into(), vec![5])], b"lost");
}
