//! Merges into the last level that go from partition to partition: what they rewrite, how much disk
//! they need, and that every answer is right while one is half done.

use std::path::Path;
use std::sync::Arc;

use trommel::Environment;
use trommel::options::Granularity;
use trommel::stats::{FilterRecovery, Stats};
use trommel::storage::{Memory, Storage};
use trommel::{Background, Db, GuardKind, Options, SyncPolicy};
use trommel_guards::kinds;

const KEYS: u64 = 6000;
const FLUSH_KEYS: u64 = 100;

fn options(guard: GuardKind) -> Options {
    Options::new()
        .guard(guard)
        .size_ratio(4)
        .bits_per_key(20.0)
        .write_buffer_bytes(1 << 20)
        .block_bytes(512)
        .table_bytes(8192)
        .compression(false)
        .granularity(Granularity::Partitioned)
        .partition_bytes(16 << 10)
        .sync(SyncPolicy::Never)
        .background(Background::Stepped)
}

fn open(disk: &Memory, options: &Options) -> Db {
    let environment = Environment::new().storage(Arc::new(disk.clone()));
    Db::open_with("db", options.clone(), environment).expect("opens")
}

/// Each number once, in no order.
fn key(number: u64) -> [u8; 8] {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

fn value(number: u64) -> [u8; 24] {
    std::array::from_fn(|place| number.to_be_bytes()[place % 8])
}

fn write(db: &Db, numbers: std::ops::Range<u64>) {
    numbers.for_each(|number| db.put(key(number), value(number)).expect("writes"));
    db.flush().expect("flushes");
}

/// Steps until a merge is half done. False: none came to be.
fn step_into_a_merge(db: &Db) -> bool {
    while db.step().expect("steps") {
        if db.stats().expect("open").under_way.is_some() {
            return true;
        }
    }
    false
}

fn load(db: &Db, keys: u64) {
    for first in (0..keys).step_by(FLUSH_KEYS as usize) {
        write(db, first..(first + FLUSH_KEYS).min(keys));
        db.settle().expect("settles");
    }
}

fn disk_bytes(disk: &Memory) -> u64 {
    let dir = Path::new("db");
    let names = disk.list(dir).expect("lists");
    let tables = names.iter().filter(|name| name.ends_with(".table"));
    tables.map(|name| disk.file(dir.join(name)).expect("is there").len() as u64).sum()
}

fn live_bytes(stats: &Stats) -> u64 {
    stats.levels.iter().flat_map(|level| &level.runs).map(|run| run.bytes).sum()
}

fn runs(stats: &Stats) -> usize {
    stats.levels.iter().map(|level| level.runs.len()).sum()
}

/// Every key is there, by get and by scans from both ends; others are not; nothing is damaged.
fn check(db: &Db, keys: u64) {
    let mut sorted: Vec<u64> = (0..keys).collect();
    sorted.sort_unstable_by_key(|&number| key(number));
    for &number in &sorted {
        let found = db.get(key(number)).expect("reads").expect("is there");
        assert_eq!(&found[..], value(number));
    }
    assert!((keys..keys + 500).all(|number| db.get(key(number)).expect("reads").is_none()));
    let scanned = db.range(..).map(|found| found.expect("reads").0);
    assert!(scanned.eq(sorted.iter().map(|&number| key(number).to_vec())), "forward");
    let scanned = db.range(..).rev().map(|found| found.expect("reads").0);
    assert!(scanned.eq(sorted.iter().rev().map(|&number| key(number).to_vec())), "backward");
    // Ranges that lie across the borders of partitions.
    let partitions = db.stats().expect("open").partitions;
    for partition in &partitions[1..] {
        let at = sorted.partition_point(|&number| key(number)[..] < partition.from[..]);
        let (low, high) = (at.saturating_sub(3), (at + 3).min(sorted.len() - 1));
        let expected: Vec<_> = sorted[low..high].iter().map(|&n| key(n).to_vec()).collect();
        let range = || db.range(key(sorted[low])..key(sorted[high]));
        assert!(range().map(|found| found.expect("reads").0).eq(expected.iter().cloned()));
        assert!(range().rev().map(|found| found.expect("reads").0).eq(expected.into_iter().rev()));
        let count = db.approximate_count(key(sorted[low])..key(sorted[high])).expect("counts");
        assert!(count.least <= (high - low) as u64 && (high - low) as u64 <= count.most);
    }
    let report = db.verify().expect("verifies");
    assert!(report.damage.is_empty(), "{:?}", report.damage);
}

/// A guard of each sort that goes with partitions: by table, and of the whole tree.
fn guards() -> [GuardKind; 6] {
    [
        GuardKind::Open,
        GuardKind::Table(kinds::BLOCKED_BLOOM),
        GuardKind::Table(kinds::SURF_REAL),
        GuardKind::Grf,
        GuardKind::GrfHuffman,
        GuardKind::Table(kinds::ELASTIC),
    ]
}

#[test]
fn guards_that_merges_tell_of_every_key_are_made_anew_by_whole_merges() {
    for kind in [kinds::CHUCKY, kinds::REMIX, kinds::REMIX_SORTED] {
        let disk = Memory::new();
        // What other guards have begun by partitions, these end.
        let db = open(&disk, &options(GuardKind::Grf));
        load(&db, KEYS);
        let mut keys = KEYS;
        loop {
            write(&db, keys..keys + FLUSH_KEYS);
            keys += FLUSH_KEYS;
            if step_into_a_merge(&db) {
                break;
            }
        }
        db.close().expect("closes");
        let db = open(&disk, &options(GuardKind::Locator(kind)));
        check(&db, keys);
        load(&db, KEYS);
        check(&db, keys);
        db.compact().expect("compacts");
        check(&db, keys);
        assert_eq!(db.stats().expect("open").partitions.len(), 1, "{kind:?}");
        let locator = db.stats().expect("open").guard.locator.expect("a guard of all keys");
        assert!(locator.room >= keys, "{kind:?}: room for {} of {keys} keys", locator.room);
    }
}

#[test]
fn every_answer_is_right_while_a_merge_is_half_done() {
    for guard in guards() {
        let disk = Memory::new();
        let db = open(&disk, &options(guard));
        load(&db, KEYS);
        let mut half_done = 0;
        let mut keys = KEYS;
        while half_done < 3 {
            write(&db, keys..keys + FLUSH_KEYS);
            keys += FLUSH_KEYS;
            if step_into_a_merge(&db) {
                half_done += 1;
                // Flushes and merges of newer runs go on.
                write(&db, keys..keys + FLUSH_KEYS);
                keys += FLUSH_KEYS;
                check(&db, keys);
                let _ = (0..3).filter(|_| db.step().expect("steps")).count();
                check(&db, keys);
            }
        }
        db.settle().expect("settles");
        check(&db, keys);
        let stats = db.stats().expect("open");
        assert!(stats.partitions.len() > 4, "{guard}: {:?}", stats.partitions.len());
        assert_eq!((stats.under_way, stats.trimmed_tables), (None, 0), "{guard}");
        assert!(runs(&db.stats().expect("open")) < 12, "{guard}");
    }
}

#[test]
fn a_merge_that_is_half_done_goes_on_after_a_crash_and_with_any_granularity() {
    for guard in guards() {
        for granularity in Granularity::ALL {
            let disk = Memory::new();
            let db = open(&disk, &options(guard));
            load(&db, KEYS);
            let mut keys = KEYS;
            loop {
                write(&db, keys..keys + FLUSH_KEYS);
                keys += FLUSH_KEYS;
                if step_into_a_merge(&db) {
                    break;
                }
            }
            let done_to = db.stats().expect("open").under_way.expect("half done").done_to;
            let disk = disk.crash_hard();
            drop(db);
            let db = open(&disk, &options(guard).granularity(granularity));
            let under_way = db.stats().expect("open").under_way.expect("it is on record");
            assert_eq!(under_way.done_to, done_to, "{guard}");
            check(&db, keys);
            db.settle().expect("settles");
            assert_eq!(db.stats().expect("open").under_way, None);
            check(&db, keys);
            db.compact().expect("compacts");
            db.settle().expect("settles");
            check(&db, keys);
            assert_eq!(runs(&db.stats().expect("open")), 1, "{guard}");
            db.close().expect("closes");
            let db = open(&disk, &options(guard).granularity(granularity));
            if guard == GuardKind::Grf {
                let recovery = db.stats().expect("open").filter_recovery;
                assert_eq!(recovery, FilterRecovery::Image { replayed_tables: 0 });
            }
            check(&db, keys);
        }
    }
}

#[test] // Spooky: no merge needs more than a few partitions of disk.
fn a_partitioned_tree_needs_little_more_disk_than_it_has_data() {
    // Of all moments at which the tree has twenty partitions or more, the one with the most for its
    // data: beside a partition or two, these are inner runs whose tables go when the last of their
    // keys is merged, a tenth of all.
    let peak = |granularity| {
        let disk = Memory::new();
        let size_ratio = 10;
        let options = options(GuardKind::Grf).granularity(granularity).size_ratio(size_ratio);
        let db = open(&disk, &options);
        let mut worst: f64 = 0.0;
        for first in (0..20_000).step_by(FLUSH_KEYS as usize) {
            write(&db, first..first + FLUSH_KEYS);
            let mut most = disk_bytes(&disk);
            while db.step().expect("steps") {
                most = most.max(disk_bytes(&disk));
            }
            // Nothing is overwritten: all that is left is data.
            let live = live_bytes(&db.stats().expect("open"));
            if live > 20 * options.partition_bytes {
                worst = worst.max(most as f64 / live as f64);
            }
        }
        worst
    };
    let (full, partitioned) = (peak(Granularity::Full), peak(Granularity::Partitioned));
    assert!(partitioned <= 1.3, "peak {partitioned} of the data");
    assert!(full > 1.7, "peak {full} of the data");
}

// GRF paper, section 5, generalization 2: one probe, and one run for each entry that matches.
#[test]
fn a_partitioned_tree_has_one_candidate_for_each_entry() {
    let disk = Memory::new();
    let db = open(&disk, &options(GuardKind::Grf));
    load(&db, KEYS);
    let mut keys = KEYS;
    let mut half_done = 0;
    while half_done < 2 {
        write(&db, keys..keys + FLUSH_KEYS);
        keys += FLUSH_KEYS;
        if !step_into_a_merge(&db) {
            continue;
        }
        half_done += 1;
        let before = db.stats().expect("open").point;
        for number in 0..keys {
            assert!(db.get(key(number)).expect("reads").is_some());
        }
        let after = db.stats().expect("open").point;
        assert_eq!(after.guard_probes - before.guard_probes, keys, "one probe for each get");
        let needless = after.false_positives - before.false_positives;
        assert!(needless * 100 <= keys, "{needless} needless runs for {keys} gets");
    }
}

#[test]
fn partitions_without_new_keys_are_not_rewritten() {
    let disk = Memory::new();
    let db = open(&disk, &options(GuardKind::Grf));
    let mut rewritten = 0;
    for first in (0..KEYS).step_by(FLUSH_KEYS as usize) {
        for number in first..first + FLUSH_KEYS {
            db.put(number.to_be_bytes(), value(number)).expect("writes");
        }
        db.flush().expect("flushes");
        let before = db.stats().expect("open").bytes_merged;
        db.settle().expect("settles");
        rewritten = rewritten.max(db.stats().expect("open").bytes_merged - before);
    }
    assert!(db.stats().expect("open").partitions.len() > 8);
    let live = live_bytes(&db.stats().expect("open"));
    assert!(rewritten < live / 2, "{rewritten} of {live} bytes were rewritten at once");
    assert!((0..KEYS).all(|number| db.get(number.to_be_bytes()).expect("reads").is_some()));
}

// Its last range went on to the end of all keys: a write to the first partition rewrote the whole
// last level.
#[test]
fn a_merge_ends_behind_the_last_key_of_its_inputs() {
    for guard in [GuardKind::Grf, GuardKind::Open] {
        let disk = Memory::new();
        let db = open(&disk, &options(guard));
        load(&db, KEYS);
        db.compact().expect("compacts");
        let mut sorted: Vec<u64> = (0..KEYS).collect();
        sorted.sort_unstable_by_key(|&number| key(number));
        let (merged, live) =
            (db.stats().expect("open").bytes_merged, live_bytes(&db.stats().expect("open")));
        for _ in 0..8 {
            let few = sorted[..20].iter();
            few.for_each(|&number| db.put(key(number), value(number)).expect("writes"));
            db.flush().expect("flushes");
            db.settle().expect("settles");
        }
        db.compact().expect("compacts");
        let rewritten = db.stats().expect("open").bytes_merged - merged;
        assert!(rewritten < live, "{guard}: {rewritten} of {live} bytes were rewritten");
        check(&db, KEYS);
        assert_eq!(
            (db.stats().expect("open").under_way, db.stats().expect("open").trimmed_tables),
            (None, 0),
            "{guard}"
        );
        assert_eq!(runs(&db.stats().expect("open")), 1, "{guard}");
    }
}

#[test]
fn partitions_that_shrink_are_put_together() {
    for guard in [GuardKind::Grf, GuardKind::Open] {
        let disk = Memory::new();
        let db = open(&disk, &options(guard));
        load(&db, KEYS);
        let before = db.stats().expect("open").partitions.len();
        for number in (0..KEYS).filter(|number| number % 8 != 0) {
            db.delete(key(number)).expect("deletes");
            if number % FLUSH_KEYS == 1 {
                db.flush().expect("flushes");
                db.settle().expect("settles");
            }
        }
        // The first time partitions lose their entries; then those that became small go together.
        (0..2).for_each(|_| db.compact().expect("compacts"));
        let after = db.stats().expect("open").partitions.len();
        assert!(after * 2 < before, "{guard}: {before} partitions, then {after}");
        for number in 0..KEYS {
            assert_eq!(db.get(key(number)).expect("reads").is_some(), number % 8 == 0, "{guard}");
        }
        for number in 0..KEYS {
            db.delete(key(number)).expect("deletes");
        }
        db.compact().expect("compacts");
        assert_eq!(db.range(..).count(), 0);
        assert_eq!(runs(&db.stats().expect("open")), 0, "{guard}");
        load(&db, KEYS);
        check(&db, KEYS);
    }
}

#[test]
fn snapshots_and_scans_see_their_moment_across_a_merge_of_ranges() {
    let disk = Memory::new();
    let db = open(&disk, &options(GuardKind::Grf));
    load(&db, KEYS);
    let snapshot = db.snapshot();
    let mut forward = snapshot.range(..);
    let mut backward = snapshot.range(..).rev();
    let (mut given, mut given_back) = (Vec::new(), Vec::new());
    for number in 0..KEYS {
        db.put(key(number), b"overwritten").expect("writes");
        if number % FLUSH_KEYS == 0 {
            db.flush().expect("flushes");
        }
        db.step().expect("steps");
        given.extend(forward.next().map(|found| found.expect("reads")));
        given_back.extend(backward.next().map(|found| found.expect("reads")));
    }
    assert_eq!((given.len(), given_back.len()), (KEYS as usize, KEYS as usize));
    given_back.reverse();
    assert!(given == given_back);
    for (found, old) in given {
        let number = (0..KEYS).find(|&number| key(number)[..] == found[..]).expect("a key");
        assert_eq!(&old[..], value(number));
    }
    assert!(db.verify().expect("verifies").damage.is_empty());
}

#[test]
fn deleted_ranges_are_cut_where_merges_of_ranges_are() {
    for guard in [GuardKind::Grf, GuardKind::Open] {
        let mut disk = Memory::new();
        let mut db = open(&disk, &options(guard));
        load(&db, KEYS);
        let mut sorted: Vec<u64> = (0..KEYS).collect();
        sorted.sort_unstable_by_key(|&number| key(number));
        // Over many partitions, with a key written again in each of them.
        let (low, high) = (KEYS as usize / 8, KEYS as usize * 7 / 8);
        db.delete_range(key(sorted[low]), key(sorted[high])).expect("deletes");
        let again: Vec<usize> = (low..high).step_by(37).collect();
        for &place in &again {
            db.put(key(sorted[place]), b"again").expect("writes");
        }
        db.flush().expect("flushes");
        let is_left = |place: usize| !(low..high).contains(&place) || again.contains(&place);
        let left: Vec<_> = (0..KEYS as usize).filter(|&place| is_left(place)).collect();
        let left: Vec<Vec<u8>> = left.iter().map(|&place| key(sorted[place]).to_vec()).collect();
        let check = |db: &Db| {
            let scanned = db.range(..).map(|found| found.expect("reads").0);
            assert!(scanned.eq(left.iter().cloned()), "{guard}, forward");
            let scanned = db.range(..).rev().map(|found| found.expect("reads").0);
            assert!(scanned.eq(left.iter().rev().cloned()), "{guard}, backward");
            for (place, &number) in sorted.iter().enumerate() {
                let found = db.get(key(number)).expect("reads").is_some();
                assert_eq!(found, is_left(place), "{guard}: {place}");
            }
            let report = db.verify().expect("verifies");
            assert!(report.damage.is_empty(), "{guard}: {:?}", report.damage);
        };
        check(&db);
        let mut trimmed = 0;
        // Nothing else is written: `compact` would not stop in the middle.
        let mut more = KEYS;
        while trimmed == 0 {
            db.put(key(sorted[0]), value(sorted[0])).expect("writes");
            db.flush().expect("flushes");
            more += 1;
            assert!(more < KEYS + 1000, "no merge comes");
            if step_into_a_merge(&db) {
                trimmed = db.stats().expect("open").trimmed_tables;
                check(&db);
                disk = disk.crash_hard();
                db = open(&disk, &options(guard));
                check(&db);
            }
        }
        while db.step().expect("steps") {
            if db.stats().expect("open").under_way.is_some() {
                assert_eq!(db.range(..).count(), left.len(), "{guard}");
            }
        }
        check(&db);
        db.compact().expect("compacts");
        check(&db);
    }
}
