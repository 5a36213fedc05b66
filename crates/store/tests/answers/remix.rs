//! Scans through Remix in a store: by a sorted view of all runs where there is one, with the same
//! answers where there is none.
//! ```text
//! flush, merge   view of every entry
//!                -> a scan reads the runs that the view names, one entry after the other
//! meanwhile      view, and newer keys beside  -> a scan merges the runs, as under any other guard
//! ```
//! Invariant: scans give what a map gives, whatever the view knows.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, Weak};

use trommel::Environment;
use trommel::stats::QueryStats;
use trommel::storage::{Memory, Storage};
use trommel::testing::{PausePoint, Pauses};
use trommel::{Background, Db, GuardKind, Options, SyncPolicy};
use trommel_guards::kinds;

type Map = BTreeMap<[u8; 8], u8>;

const SORTED: GuardKind = GuardKind::Locator(kinds::REMIX_SORTED);
const SEMI_SORTED: GuardKind = GuardKind::Locator(kinds::REMIX);

type Armed = (PausePoint, fn(&Db));

/// What is done once, when a thread comes to a place.
#[derive(Default)]
struct Gap {
    db: Mutex<Weak<Db>>,
    armed: Mutex<Option<Armed>>,
}

impl Gap {
    fn come_to(&self, point: PausePoint) {
        let mut armed = self.armed.lock().expect("not poisoned");
        let action = armed.take_if(|(wanted, _)| *wanted == point);
        drop(armed);
        if let Some((_, action)) = action {
            action(&self.db.lock().expect("not poisoned").upgrade().expect("the store is open"));
        }
    }
}

fn open(disk: &Memory, guard: GuardKind, size_ratio: u32) -> (Arc<Db>, Arc<Gap>) {
    let options = Options::new()
        .guard(guard)
        .size_ratio(size_ratio)
        .bits_per_key(20.0)
        .block_bytes(256)
        .table_bytes(1 << 16)
        .compression(false)
        .block_cache_bytes(0)
        .sync(SyncPolicy::Never)
        .background(Background::Stepped);
    let gap = Arc::new(Gap::default());
    let at_gap = Arc::clone(&gap);
    let environment = Environment::new()
        .storage(Arc::new(disk.clone()))
        .pauses(Pauses::new(move |point| at_gap.come_to(point)));
    let db = Arc::new(Db::open_with(Path::new("db"), options, environment).expect("opens"));
    *gap.db.lock().expect("not poisoned") = Arc::downgrade(&db);
    (db, gap)
}

/// SplitMix64: the same in every run.
fn spread(n: u64) -> u64 {
    let mixed = (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Numbers without pattern, of which later rounds write some again and delete some.
fn write(db: &Db, map: &mut Map, round: u64, count: u64) {
    for place in 0..count {
        let drawn = spread(round << 32 | place);
        let key = (spread(drawn % 4000)).to_be_bytes();
        if drawn >> 40 & 7 == 0 {
            db.delete(key).expect("deletes");
            map.remove(&key);
        } else {
            db.put(key, [round as u8; 20]).expect("puts");
            map.insert(key, round as u8);
        }
    }
}

/// A large run and six small ones that overlap everywhere.
fn layers(guard: GuardKind) -> (Memory, Arc<Db>, Arc<Gap>, Map) {
    let disk = Memory::new();
    let (db, gap) = open(&disk, guard, 20);
    let mut map = Map::new();
    for round in 0..7 {
        write(&db, &mut map, round, if round == 0 { 4000 } else { 500 });
        db.flush().expect("flushes");
        if round == 0 {
            db.compact().expect("compacts");
        }
    }
    assert_eq!(db.stats().expect("open").run_count(), 7);
    (disk, db, gap, map)
}

fn costs(db: &Db, seeks: impl FnOnce()) -> QueryStats {
    let before = db.stats().expect("open").open_seek;
    seeks();
    db.stats().expect("open").open_seek.since(&before)
}

/// Seeks and scans of some steps, both ways.
fn scans_are_right(db: &Db, map: &Map) {
    let found = |entry: trommel::Result<trommel::KeyValue>| {
        let (key, value) = entry.expect("reads");
        (<[u8; 8]>::try_from(key).expect("eight bytes"), value[0])
    };
    let of = |(key, round): (&[u8; 8], &u8)| (*key, *round);
    for seek in 0..60u64 {
        let from = spread(seek << 40).to_be_bytes();
        let len = [1, 7, 50, 5000][seek as usize % 4];
        let forward: Vec<_> = db.range(from..).take(len).map(found).collect();
        assert_eq!(forward, map.range(from..).take(len).map(of).collect::<Vec<_>>());
        let back: Vec<_> = db.range(..from).rev().take(len).map(found).collect();
        assert_eq!(back, map.range(..from).rev().take(len).map(of).collect::<Vec<_>>());
        let to = (u64::from_be_bytes(from).saturating_add(1 << 54)).to_be_bytes();
        let within: Vec<_> = db.range(from..to).map(found).collect();
        assert_eq!(within, map.range(from..to).map(of).collect::<Vec<_>>());
        let within: Vec<_> = db.range(from..to).rev().map(found).collect();
        assert_eq!(within, map.range(from..to).rev().map(of).collect::<Vec<_>>());
    }
}

/// Blocks of open seeks, forward and back.
fn blocks_of_seeks(db: &Db) -> [u64; 2] {
    let seeks = |back: bool| {
        costs(db, || {
            for seek in 0..200u64 {
                let from = spread(seek << 40).to_be_bytes();
                let found =
                    if back { db.range(..from).next_back() } else { db.range(from..).next() };
                found.expect("there is a key").expect("reads");
            }
        })
    };
    [seeks(false).blocks_read, seeks(true).blocks_read]
}

#[test]
fn an_open_seek_through_the_view_reads_few_blocks_of_all_runs() {
    let (disk, db, _, map) = layers(SORTED);
    scans_are_right(&db, &map);
    let sorted = blocks_of_seeks(&db);
    let [merging, semi_sorted] = [GuardKind::Open, SEMI_SORTED].map(|guard| {
        let (_, db, ..) = layers(guard);
        blocks_of_seeks(&db)
    });
    // 200 seeks each, some of them over deleted keys; merging reads a block of nearly each of seven
    // runs.
    assert!(merging.iter().all(|&blocks| blocks >= 13 * 200 / 2), "{merging:?}");
    assert!(sorted.iter().all(|&blocks| blocks < 9 * 200 / 2), "{sorted:?}");
    assert!(semi_sorted.iter().all(|&blocks| blocks < 13 * 200 / 2), "{semi_sorted:?}");
    drop(db);
    // The view is made anew at open.
    let (db, _) = open(&disk, SORTED, 20);
    assert_eq!(blocks_of_seeks(&db), sorted);
    scans_are_right(&db, &map);
}

/// What is merged meanwhile, and what is only in memory, makes no difference.
#[test]
fn scans_are_right_while_the_tree_grows() {
    for guard in [SORTED, SEMI_SORTED] {
        let disk = Memory::new();
        let (db, _) = open(&disk, guard, 3);
        let mut map = Map::new();
        for round in 0..16 {
            write(&db, &mut map, round, 300);
            if round % 4 < 3 {
                db.flush().expect("flushes");
                db.settle().expect("merges");
            }
            let snapshot = db.snapshot();
            let then = map.clone();
            write(&db, &mut map, round + 100, 40);
            let seen: Vec<_> = snapshot.range(..).map(|entry| entry.expect("reads").0).collect();
            assert!(seen.iter().eq(then.keys()), "{guard}, round {round}");
            scans_are_right(&db, &map);
        }
        assert!(db.stats().expect("open").merges > 3);
        assert_eq!(db.verify().expect("verifies").damage, [""; 0]);
    }
}

/// A flush that is installed beside a merge: the merge's view does not know it, and is not used.
#[test]
fn a_view_without_the_newest_flush_is_not_gone_through() {
    let (disk, db, _, mut map) = layers(SORTED);
    let whole = blocks_of_seeks(&db);
    drop(db);
    // Six flushes are more than a level has room for now.
    let (db, gap) = open(&disk, SORTED, 4);
    *gap.armed.lock().expect("not poisoned") = Some((PausePoint::MergePrepared, |db| {
        db.put([0; 8], [77; 20]).expect("puts");
        db.put([0xff; 8], [77; 20]).expect("puts");
        db.flush().expect("flushes");
    }));
    db.settle().expect("merges");
    assert!(gap.armed.lock().expect("not poisoned").is_none(), "the gap was not come to");
    map.extend([([0; 8], 77), ([0xff; 8], 77)]);
    assert_eq!(db.stats().expect("open").run_count(), 2);
    scans_are_right(&db, &map);
    // The next flush makes a view of all runs.
    write(&db, &mut map, 50, 300);
    db.flush().expect("flushes");
    scans_are_right(&db, &map);
    let again = blocks_of_seeks(&db);
    assert!(again[0] <= whole[0] && again[1] <= whole[1], "{again:?} {whole:?}");
}

/// A block that cannot be read stops the scans that come to it, and nothing else: flushes and
/// merges of others go on.
#[test]
fn a_damaged_block_stops_no_flush() {
    let (disk, db, _, mut map) = layers(SORTED);
    let names = disk.list(Path::new("db")).expect("lists");
    let tables = names.iter().filter(|name| name.ends_with(".table"));
    let paths = tables.map(|name| Path::new("db").join(name));
    let len = |path: &std::path::PathBuf| disk.file(path).map_or(0, |bytes| bytes.len());
    let largest = paths.max_by_key(len).expect("there are tables");
    disk.flip_bit(&largest, 300, 1);
    write(&db, &mut map, 60, 300);
    db.flush().expect("a flush reads no block to be right");
    let last = *map.last_key_value().expect("there are keys").0;
    let (key, _) = db.range(last..).next().expect("a key").expect("reads");
    assert_eq!(key, last);
    assert!(db.range(..).any(|entry| entry.is_err()), "the damage is told");
}
