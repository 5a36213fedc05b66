//! The cost of copying a store depends on what is new: for a follower that catches up, and for
//! backups.
//! ```text
//! catch_up   ends of manifest and log -> the new part, read twice -> memtables, new tables
//! back_up    ends of all files -> the new ones: read, stored, synced -> a record
//! ```
//! Invariant: an old file is recognized by its name and its end, and is not read again.

use std::io::{Read as _, repeat};

use super::counted::{Counted, Used};
use super::files::file_bytes;
use super::{Cost, Law, ROWS, VALUE, World, key};
use crate::backup::{Backups, FolderObjects, Generation};
use crate::{Background, Db, FollowOptions, Follower, GuardKind, Options, SyncPolicy};
use trommel_guards::kinds;

const MIB: u64 = 1 << 20;
/// The cost of a look that finds nothing: the manifest's marks, and the log's last group.
const READS_OF_A_LOOK: u64 = 8;
const BYTES_OF_A_LOOK: u64 = 4096;

/// Makes a store with this many rows in tables, and a follower of it.
fn followed(rows: u64) -> (World, Counted, Follower) {
    followed_with(GuardKind::Grf, rows)
}

fn followed_with(guard: GuardKind, rows: u64) -> (World, Counted, Follower) {
    let world = World::new(|options| options.guard(guard));
    (0..rows).for_each(|n| world.put(b'm', n));
    world.db().compact().expect("merges");
    let disk = Counted::of(&world.disk);
    let follower = Db::follow_with("db", FollowOptions::new(), disk.environment());
    (world, disk, follower.expect("follows"))
}

/// Returns the cost of catching up, and what is read for it.
fn caught_up(world: &mut World, disk: &Counted, follower: &Follower) -> (Cost, Used) {
    disk.used(|| world.cost(|_| assert!(follower.catch_up().expect("catches up"))))
}

#[test]
fn a_look_in_vain_costs_the_same_whatever_there_is() {
    let costs = [1000, 10_000].map(|rows| {
        let (mut world, disk, follower) = followed(rows);
        (0..rows).for_each(|n| world.put(b'n', n));
        caught_up(&mut world, &disk, &follower);
        let look = |_: &mut World| assert!(!follower.catch_up().expect("looks"));
        let (cost, used) = disk.used(|| world.cost(look));
        assert!(used.reads <= READS_OF_A_LOOK, "{rows}: {used:?}");
        assert!(used.read_bytes <= BYTES_OF_A_LOOK, "{rows}: {used:?}");
        cost
    });
    assert_eq!(costs[0].breaks(costs[1], Law::Log), None);
}

/// Each group is checked, and then read.
#[test]
fn a_follower_reads_new_entries_twice_and_old_ones_not_at_all() {
    const NEW: u64 = 100;
    let costs = [1000, 10_000].map(|rows| {
        let (mut world, disk, follower) = followed(rows);
        (0..rows).for_each(|n| world.put(b'n', n));
        caught_up(&mut world, &disk, &follower);
        let of_row = |row: u64| {
            let before = file_bytes(&world, ".wal");
            (0..NEW).for_each(|n| world.put(b'o', row * NEW + n));
            let new = file_bytes(&world, ".wal") - before;
            let (cost, used) = caught_up(&mut world, &disk, &follower);
            assert!(used.read_bytes <= 2 * new + BYTES_OF_A_LOOK, "{new} bytes: {used:?}");
            cost
        };
        (0..ROWS as u64).map(of_row).reduce(Cost::least).expect("a row")
    });
    assert_eq!(costs[0].breaks(costs[1], Law::Log), None);
}

#[test]
fn a_follower_pays_for_each_new_entry() {
    let costs = [1000, 10_000].map(|new| {
        let (mut world, disk, follower) = followed(1000);
        (0..new).for_each(|n| world.put(b'o', n));
        caught_up(&mut world, &disk, &follower)
    });
    let [(small, used), (large, used_by_large)] = costs;
    assert_eq!(small.breaks(large, Law::Linear), None);
    assert_eq!(used.breaks(used_by_large, Law::Linear), None);
}

/// Makes this many rows, and then a table of 100. Returns what it costs a follower.
fn caught_up_with_a_table(guard: GuardKind, rows: u64) -> Cost {
    let (mut world, disk, follower) = followed_with(guard, rows);
    let before = file_bytes(&world, ".table");
    (0..100).for_each(|n| world.put(b'o', n));
    caught_up(&mut world, &disk, &follower);
    world.db().flush().expect("flushes");
    let new = file_bytes(&world, ".table") - before;
    let (cost, used) = caught_up(&mut world, &disk, &follower);
    assert!(used.read_bytes <= 3 * new + 2 * BYTES_OF_A_LOOK, "{guard:?}, {new} bytes: {used:?}");
    cost
}

/// The guard, too, reads only the new tables' keys.
#[test]
fn a_follower_reads_new_tables_and_old_ones_not_at_all() {
    let costs = [1000, 10_000].map(|rows| caught_up_with_a_table(GuardKind::Grf, rows));
    assert_eq!(costs[0].breaks(costs[1], Law::Linear), None);
}

#[test] // A filter that knows each key's run was made anew from all tables at each flush and merge.
fn a_follower_keeps_a_filter_of_runs_and_reads_new_tables_alone() {
    for kind in [kinds::CHUCKY, kinds::CHUCKY_PLAIN, kinds::REMIX] {
        let costs =
            [1000, 10_000].map(|rows| caught_up_with_a_table(GuardKind::Locator(kind), rows));
        assert_eq!(costs[0].breaks(costs[1], Law::Linear), None, "{kind:?}");
    }
}

/// A store, and the place of its backups.
struct Kept {
    disk: Counted,
    db: Db,
    objects: Counted,
    backups: Backups,
}

impl Kept {
    fn new() -> Kept {
        let (disk, objects) = (Counted::new(), Counted::new());
        let options = Options::new()
            .block_bytes(512)
            .table_bytes(16 << 10)
            .compression(false)
            .sync(SyncPolicy::Never)
            .background(Background::Stepped);
        let db = Db::open_with("db", options, disk.environment()).expect("opens");
        let folder = FolderObjects::open_with("backups", &objects.environment()).expect("opens");
        let backups = Backups::with(folder, objects.environment());
        Kept { disk, db, objects, backups }
    }

    /// Makes a store with this many rows in tables.
    fn with_rows(rows: u64) -> Kept {
        let kept = Kept::new();
        kept.write(b'm', rows);
        kept
    }

    fn write(&self, area: u8, rows: u64) {
        (0..rows).for_each(|n| self.db.put(key(area, n), VALUE).expect("puts"));
        self.db.flush().expect("flushes");
    }

    /// Makes a generation. Returns it with the use of the backups' place and of the store's folder.
    fn back_up(&self) -> (Generation, Used, Used) {
        let work = || self.backups.back_up(&self.db).expect("backs up");
        let ((generation, of_objects), of_store) = self.disk.used(|| self.objects.used(work));
        (generation, of_objects, of_store)
    }
}

/// The most bytes that a generation has for itself: a manifest and a record, which name each file.
fn own_bytes_max(generation: &Generation) -> u64 {
    512 * generation.files.len() as u64 + 4096
}

#[test]
fn a_backup_of_what_is_there_stores_a_record_and_reads_the_ends_of_files() {
    let used = [1000, 10_000].map(|rows| {
        let kept = Kept::with_rows(rows);
        kept.back_up();
        let (generation, of_objects, of_store) = kept.back_up();
        let files = generation.files.len() as u64;
        let own = own_bytes_max(&generation);
        assert!(of_objects.appended_bytes <= own, "{files} files: {of_objects:?}");
        assert!(of_store.reads <= 2 * files + READS_OF_A_LOOK, "{files} files: {of_store:?}");
        (of_objects, of_store)
    });
    let [(small, from_small), (large, from_large)] = used;
    assert_eq!((small.appends, small.syncs), (large.appends, large.syncs));
    assert_eq!(small.breaks(large, Law::Linear), None);
    assert_eq!(from_small.breaks(from_large, Law::Linear), None);
}

#[test]
fn a_backup_stores_new_tables_alone() {
    for (rows, new_rows) in [(1000, 1000), (10_000, 1000), (1000, 10_000)] {
        let kept = Kept::with_rows(rows);
        let (first, ..) = kept.back_up();
        let (_, before, _) = kept.back_up();
        kept.write(b'n', new_rows);
        let (generation, used, of_store) = kept.back_up();
        let is_known = |object: &str| first.files.iter().any(|file| file.object == object);
        let new = generation
            .files
            .iter()
            .filter(|file| !is_known(&file.object) && file.object.ends_with(".table"));
        let (count, bytes) =
            new.fold((0, 0), |(count, bytes), file| (count + 1, bytes + file.bytes));
        let what = format!("{rows} rows, {count} new tables of {bytes} bytes: {used:?}");
        assert!(count > 0 && bytes > 20 * new_rows, "{what}");
        let own = own_bytes_max(&generation);
        assert!((bytes..=bytes + own).contains(&used.appended_bytes), "{what}");
        // For each short table: one append, one sync of the table and one of its name.
        assert_eq!(used.appends, before.appends + count, "{what}");
        assert_eq!(used.syncs, before.syncs + 2 * count, "{what}");
        // The ends of all files, and new files whole.
        assert!(of_store.read_bytes <= generation.bytes() + bytes + own, "{what}: {of_store:?}");
    }
}

/// The backup copies the value file, which may be as long as the value, piece by piece.
#[test]
fn a_backup_of_a_long_value_takes_the_memory_of_a_piece() {
    let used = [4, 40].map(|mebibytes| {
        let (kept, length) = (Kept::new(), mebibytes * MIB);
        kept.db.put_reader("long", length, repeat(7).take(length)).expect("puts");
        kept.db.flush().expect("flushes");
        let (_, used, of_store) = kept.back_up();
        assert!(used.appends <= mebibytes + 10, "{used:?}");
        assert!(of_store.reads <= mebibytes + 10, "{of_store:?}");
        assert!(used.peak_bytes <= 2 * MIB, "{used:?}");
        used
    });
    assert_eq!(used[0].breaks(used[1], Law::Linear), None);
    assert!(used[1].peak_bytes <= used[0].peak_bytes + (64 << 10), "{used:?}");
}

/// The record of each generation is read, since it says which files exist.
#[test]
fn a_backup_pays_for_each_generation_before_it() {
    let used = [3, 30].map(|generations| {
        let kept = Kept::with_rows(100);
        (0..generations).for_each(|_| drop(kept.back_up()));
        let (_, used, _) = kept.back_up();
        used
    });
    assert_eq!(used[0].breaks(used[1], Law::Linear), None);
}
