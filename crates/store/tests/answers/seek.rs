//! Seeks: they give what a map gives, from every key on, and read no block of a run that goes on
//! elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use trommel::Environment;
use trommel::stats::QueryStats;
use trommel::storage::Memory;
use trommel::{Background, Db, GuardKind, Options, Snapshot, SyncPolicy};
use trommel_guards::kinds;

type Key = Vec<u8>;
type Map = BTreeMap<Key, Vec<u8>>;

/// Runs are not merged unless a test asks for it.
fn open(guard: GuardKind, table_bytes: u64) -> (Memory, Db) {
    let disk = Memory::new();
    let db = reopen(&disk, guard, table_bytes);
    (disk, db)
}

fn reopen(disk: &Memory, guard: GuardKind, table_bytes: u64) -> Db {
    let options = Options::new()
        .guard(guard)
        .size_ratio(20)
        .bits_per_key(32.0)
        .block_bytes(256)
        .table_bytes(table_bytes)
        .compression(false)
        .block_cache_bytes(0)
        .sync(SyncPolicy::Never)
        .background(Background::Stepped);
    let environment = Environment::new().storage(Arc::new(disk.clone()));
    Db::open_with(Path::new("db"), options, environment).expect("opens")
}

/// SplitMix64: the same in every run.
fn spread(n: u64) -> u64 {
    let mixed = (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Every key of up to four of three letters: prefixes and neighbours of each other.
fn crowded_keys() -> Vec<Key> {
    let mut keys: Vec<Key> = vec![vec![]];
    let mut longest = keys.clone();
    for _ in 0..4 {
        let letters = |key: &Key| [0, b'a', 0xff].map(|letter| [&key[..], &[letter]].concat());
        longest = longest.iter().flat_map(letters).collect();
        keys.extend(longest.clone());
    }
    keys.sort();
    keys
}

/// Writes and deletes a part of the keys, some of them twice, and flushes.
fn write_round(db: &Db, keys: &[Key], round: u64, map: &mut Map) {
    for number in 0..keys.len() as u64 / 2 {
        let drawn = spread(round * 1000 + number);
        let key = &keys[drawn as usize % keys.len()];
        if drawn >> 32 & 3 == 0 {
            db.delete(key).expect("deletes");
            map.remove(key);
        } else {
            let value = vec![round as u8; 100];
            db.put(key, &value).expect("puts");
            map.insert(key.clone(), value);
        }
    }
    db.flush().expect("flushes");
}

/// A store of several runs, one of them of several tables, and a snapshot of what it was half-way.
fn crowded_store(guard: GuardKind, keys: &[Key]) -> (Memory, Db, Map, Snapshot, Map) {
    let (disk, db) = open(guard, 4096);
    let mut map = Map::new();
    (0..5).for_each(|round| write_round(&db, keys, round, &mut map));
    db.compact().expect("compacts");
    (5..7).for_each(|round| write_round(&db, keys, round, &mut map));
    let (snapshot, then) = (db.snapshot(), map.clone());
    (7..11).for_each(|round| write_round(&db, keys, round, &mut map));
    let runs: Vec<_> =
        db.stats().expect("open").levels.into_iter().flat_map(|level| level.runs).collect();
    assert!(runs.len() == 7 && runs[6].tables > 2, "{runs:?}");
    (disk, db, map, snapshot, then)
}

type KeyBounds<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

/// Bounds from every key on, and up to some others.
fn all_bounds(keys: &[Key]) -> impl Iterator<Item = KeyBounds<'_>> {
    keys.iter().enumerate().flat_map(|(place, lower)| {
        let uppers = [1, 2, 9, 40].map(|step| keys.get(place + step).map(|upper| &upper[..]));
        let lower = &lower[..];
        let closed = uppers.into_iter().flatten().flat_map(move |upper| {
            [
                (Bound::Included(lower), Bound::Included(upper)),
                (Bound::Excluded(lower), Bound::Excluded(upper)),
            ]
        });
        let open = [
            (Bound::Included(lower), Bound::Unbounded),
            (Bound::Unbounded, Bound::Included(lower)),
            (Bound::Unbounded, Bound::Excluded(lower)),
        ];
        closed.chain(open)
    })
}

/// Both ways to the end, and from both ends in turns.
fn check_scans(scan: impl Fn() -> trommel::Scan, expected: &[(&Key, &Vec<u8>)], case: &str) {
    let read = |entry: trommel::Result<trommel::KeyValue>| entry.expect("reads");
    let is_next = |found: &trommel::KeyValue, expected: &(&Key, &Vec<u8>)| {
        found.0 == *expected.0 && found.1[..] == expected.1[..]
    };
    let found: Vec<_> = scan().map(read).collect();
    assert_eq!(found.len(), expected.len(), "{case}");
    assert!(found.iter().zip(expected).all(|(found, next)| is_next(found, next)), "{case}");
    let found: Vec<_> = scan().rev().map(read).collect();
    assert_eq!(found.len(), expected.len(), "{case}, backward");
    let backward = expected.iter().rev();
    assert!(found.iter().zip(backward).all(|(found, next)| is_next(found, next)), "{case}");
    let (mut both, mut left) = (scan(), expected.iter());
    for turn in 0.. {
        let (found, next) = if turn % 3 == 0 {
            (both.next_back().map(read), left.next_back())
        } else {
            (both.next().map(read), left.next())
        };
        let Some((found, next)) = found.as_ref().zip(next) else {
            assert!(found.is_none() && next.is_none(), "{case}, from both ends");
            break;
        };
        assert!(is_next(found, next), "{case}, from both ends");
    }
}

fn check_all(db: &Db, map: &Map, keys: &[Key], guard: GuardKind) {
    for bounds in all_bounds(keys).step_by(3) {
        let expected: Vec<_> = map.range::<[u8], _>(bounds).collect();
        check_scans(|| db.range(bounds), &expected, &format!("{guard}: {bounds:?}"));
    }
}

#[test]
fn scans_equal_a_map_from_every_key_on_under_every_guard() {
    let keys = crowded_keys();
    for guard in trommel_guards::all_guards() {
        let (_, db, map, snapshot, then) = crowded_store(guard, &keys);
        check_all(&db, &map, &keys, guard);
        for bounds in all_bounds(&keys).step_by(17) {
            let expected: Vec<_> = then.range::<[u8], _>(bounds).collect();
            check_scans(
                || snapshot.range(bounds),
                &expected,
                &format!("{guard}, then: {bounds:?}"),
            );
        }
    }
}

#[test]
fn tables_without_the_filter_that_is_asked_for_may_hold_anything() {
    let keys = crowded_keys();
    for (place, wrote) in trommel_guards::all_guards().into_iter().enumerate() {
        let reads =
            trommel_guards::all_guards()[(place * 7 + 1) % trommel_guards::all_guards().len()];
        let (disk, db, mut map, ..) = crowded_store(wrote, &keys);
        drop(db);
        let db = reopen(&disk, reads, 4096);
        write_round(&db, &keys, 20, &mut map);
        for bounds in all_bounds(&keys).step_by(13) {
            let expected: Vec<_> = map.range::<[u8], _>(bounds).collect();
            check_scans(|| db.range(bounds), &expected, &format!("{wrote}, {reads}: {bounds:?}"));
        }
        assert_eq!(db.verify().expect("verifies").damage, [""; 0]);
    }
}

/// What the seeks of one kind cost.
fn costs(db: &Db, of: fn(&Db) -> QueryStats, seeks: impl FnOnce()) -> QueryStats {
    let before = of(db);
    seeks();
    of(db).since(&before)
}

const OPEN: fn(&Db) -> QueryStats = |db| db.stats().expect("open").open_seek;
const CLOSED: fn(&Db) -> QueryStats = |db| db.stats().expect("open").closed_seek;

fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

fn first(scan: trommel::Scan) -> Option<u64> {
    let (key, _) = { scan }.next()?.expect("reads");
    Some(u64::from_be_bytes(key.try_into().expect("eight bytes")))
}

fn last(mut scan: trommel::Scan) -> Option<u64> {
    let (key, _) = scan.next_back()?.expect("reads");
    Some(u64::from_be_bytes(key.try_into().expect("eight bytes")))
}

/// Ten runs side by side, of a hundred keys each.
fn store_of_neighbours(guard: GuardKind) -> Db {
    let (_, db) = open(guard, 4096);
    for run in 0..10u64 {
        (0..100).for_each(|place| db.put(key(run * 1000 + place * 5), [7; 20]).expect("puts"));
        db.flush().expect("flushes");
    }
    assert_eq!(db.stats().expect("open").run_count(), 10);
    db
}

#[test]
fn a_run_that_begins_behind_the_first_key_is_not_read() {
    for guard in trommel_guards::all_guards() {
        let db = store_of_neighbours(guard);
        let asked = costs(&db, OPEN, || {
            for run in 0..10 {
                assert_eq!(first(db.range(key(run * 1000)..)), Some(run * 1000));
                assert_eq!(last(db.range(..=key(run * 1000 + 600))), Some(run * 1000 + 495));
            }
        });
        assert_eq!((asked.true_positives, asked.false_positives), (20, 0), "{guard}");
        // The entry before or behind the one that is given may be in another block.
        assert!((20..40).contains(&asked.blocks_read), "{guard}: {asked:?}");
        let asked = costs(&db, OPEN, || {
            let scan = db.range(key(3000)..).take(150);
            assert_eq!(scan.flatten().count(), 150);
        });
        assert_eq!((asked.true_positives, asked.false_positives), (2, 0), "{guard}");
    }
}

#[test]
fn ranges_between_tables_are_empty_without_a_read() {
    for guard in trommel_guards::all_guards() {
        let db = store_of_neighbours(guard);
        db.put(key(20_000), b"in memory").expect("puts");
        let asked = costs(&db, CLOSED, || {
            for run in 0..10 {
                let between = || db.range(key(run * 1000 + 500)..key(run * 1000 + 1000));
                assert_eq!((first(between()), last(between())), (None, None));
            }
        });
        assert_eq!((asked.queries, asked.blocks_read), (20, 0), "{guard}");
        assert_eq!(asked.true_negatives, 200, "{guard}");
    }
}

/// Runs wait while keys of others are given and deleted, and are found when their turn comes.
#[test]
fn a_waiting_run_is_read_behind_deleted_keys() {
    for guard in trommel_guards::all_guards() {
        let (_, db) = open(guard, 4096);
        db.put(key(1000), b"first").expect("puts");
        db.put(key(3000), b"last").expect("puts");
        db.flush().expect("flushes");
        (0..50).for_each(|place| db.put(key(2000 + place), b"middle").expect("puts"));
        db.flush().expect("flushes");
        (0..50).for_each(|place| db.delete(key(2000 + place)).expect("deletes"));
        db.flush().expect("flushes");
        let keys = |scan: trommel::Scan, back: bool| -> Vec<u64> {
            let of = |entry: trommel::Result<trommel::KeyValue>| {
                u64::from_be_bytes(entry.expect("reads").0.try_into().expect("eight bytes"))
            };
            if back { scan.rev().map(of).collect() } else { scan.map(of).collect() }
        };
        assert_eq!(keys(db.range(key(1500)..), false), [3000], "{guard}");
        assert_eq!(keys(db.range(..key(2500)), true), [1000], "{guard}");
        assert_eq!(keys(db.range(key(1000)..=key(3000)), false), [1000, 3000], "{guard}");
        assert_eq!(keys(db.range(key(1001)..key(3000)), true), [0; 0], "{guard}");
    }
}

/// Guards that know where a table goes on, near any key. (`surf-base` and `surf-hash` know too
/// little of keys that are alone in their corner.)
fn guards_with_bounds() -> impl Iterator<Item = GuardKind> {
    let names = ["surf-real", "surf-mixed", "snarf", "cell", "gap", "coded", "grf"];
    trommel_guards::all_guards().into_iter().filter(move |guard| names.contains(&guard.name()))
}

/// Runs that overlap everywhere: a large one and six small ones, of numbers without pattern.
fn store_of_layers(guard: GuardKind) -> (Db, BTreeSet<u64>) {
    let (_, db) = open(guard, 1 << 20);
    let mut numbers = BTreeSet::new();
    for run in 0..7u64 {
        for place in 0..if run == 0 { 3000 } else { 500 } {
            let number = spread(run << 32 | place);
            db.put(key(number), [run as u8; 20]).expect("puts");
            numbers.insert(number);
        }
        db.flush().expect("flushes");
        if run == 0 {
            db.compact().expect("compacts");
        }
    }
    assert_eq!(db.stats().expect("open").run_count(), 7);
    (db, numbers)
}

#[test]
fn an_open_seek_reads_about_one_block_and_an_empty_closed_one_none() {
    const SEEKS: u64 = 500;
    for guard in guards_with_bounds() {
        let (db, numbers) = store_of_layers(guard);
        let asked = costs(&db, OPEN, || {
            for seek in 0..SEEKS {
                let from = spread(seek << 50);
                let next = numbers.range(from..).next().copied();
                assert_eq!(first(db.range(key(from)..)), next, "{guard}");
            }
        });
        assert!(asked.blocks_read <= SEEKS * 21 / 20, "{guard}: {asked:?}");
        assert!(asked.true_positives <= SEEKS, "{guard}: {asked:?}");
        let pairs = numbers.iter().zip(numbers.iter().skip(1)).step_by(10);
        let gaps: Vec<_> = pairs.filter(|(low, high)| **high - **low > 1 << 40).collect();
        let asked = costs(&db, CLOSED, || {
            for (low, high) in &gaps {
                let from = *low + (*high - *low) / 3;
                let gap = || db.range(key(from)..=key(from + (1 << 36)));
                assert_eq!((first(gap()), last(gap())), (None, None), "{guard}");
            }
        });
        assert_eq!(asked.queries, 2 * gaps.len() as u64);
        assert!(
            asked.queries > 500 && asked.blocks_read * 20 < asked.queries,
            "{guard}: {asked:?}"
        );
    }
}

#[test]
fn a_backward_open_seek_reads_about_one_block() {
    const SEEKS: u64 = 500;
    for guard in guards_with_bounds() {
        let (db, numbers) = store_of_layers(guard);
        for included in [true, false] {
            let asked = costs(&db, OPEN, || {
                for seek in 1..=SEEKS {
                    let to = spread(seek << 50);
                    let next = numbers.range(..=to).next_back().copied();
                    let scan = if included { db.range(..=key(to)) } else { db.range(..key(to)) };
                    assert_eq!(last(scan), next, "{guard}");
                }
            });
            // One of eight keys lies between two blocks: separators are near the keys before them.
            // Where the key found is the first of its block, fences know that the block before does
            // not go on with it.
            assert!(asked.blocks_read < SEEKS * 6 / 5, "{guard}: {asked:?}");
            assert!(asked.true_positives <= SEEKS, "{guard}: {asked:?}");
        }
        // From keys that are there: their runs are read, and a run that ends close before, now and
        // then.
        for to in numbers.iter().step_by(20) {
            assert_eq!(last(db.range(..=key(*to))), Some(*to), "{guard}");
            let before = numbers.range(..*to).next_back().copied();
            assert_eq!(last(db.range(..key(*to))), before, "{guard}");
        }
    }
}

/// A filter is asked once for each run, if it knows ranges or the range is one key.
#[test]
fn probes_of_ranges_are_counted_by_tables_that_are_asked() {
    for guard in
        trommel_guards::all_guards().into_iter().filter(|guard| guard.table_filter().is_some())
    {
        let (db, numbers) = store_of_layers(guard);
        let middle = *numbers.iter().nth(numbers.len() / 2).expect("there are some");
        let asked = costs(&db, OPEN, || assert!(first(db.range(key(middle)..)).is_some()));
        assert_eq!(asked.guard_probes, if guard.knows_ranges() { 7 } else { 0 }, "{guard}");
        let one = || first(db.range(key(middle)..=key(middle)));
        let asked = costs(&db, CLOSED, || assert_eq!(one(), Some(middle)));
        if guard == GuardKind::Table(kinds::ELASTIC) {
            continue; // its sub-filters are for gets
        }
        assert_eq!(asked.guard_probes, 7, "{guard}");
        assert!(asked.false_positives < 3, "{guard}: {asked:?}");
    }
}

/// What a scan goes on to read, it reads once: about as many blocks as hold the keys it gives, and
/// one of each run.
#[test]
fn a_scan_that_goes_on_reads_each_run_as_it_comes_to_it() {
    for guard in trommel_guards::all_guards() {
        let (db, numbers) = store_of_layers(guard);
        for from in (0..20).map(|seek| spread(seek << 40)) {
            let expected: Vec<u64> = numbers.range(from..).take(60).copied().collect();
            let number = |entry: trommel::Result<trommel::KeyValue>| {
                u64::from_be_bytes(entry.expect("reads").0.try_into().expect("eight bytes"))
            };
            let asked = costs(&db, OPEN, || {
                let found: Vec<u64> = db.range(key(from)..).take(60).map(number).collect();
                assert_eq!(found, expected, "{guard}");
            });
            assert!(asked.blocks_read <= 60 / 3 + 2 * 7, "{guard}: {asked:?}");
            let expected: Vec<u64> = numbers.range(..from).rev().take(60).copied().collect();
            let found: Vec<u64> = db.range(..key(from)).rev().take(60).map(number).collect();
            assert_eq!(found, expected, "{guard}, backward");
        }
    }
}
