//! Counts are as close as promised, and ranges without keys are known to be empty, under every
//! guard.

use std::path::Path;
use std::sync::Arc;

use trommel::Environment;
use trommel::filters::FilterKind;
use trommel::storage::Memory;
use trommel::{Background, Db, GuardKind, Options, SyncPolicy};
use trommel_guards::kinds;

const KEYS: u64 = 20_000;
const BLOCK_KEYS_MAX: u64 = 256 / 8;

/// The keys in order: gaps of very different widths.
fn key(place: u64) -> [u8; 8] {
    let mixed = (place ^ place >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((place << 40) + (mixed >> 24)).to_be_bytes()
}

/// Each key once, in an order without pattern: some runs, some levels, some of it in memory.
fn store(guard: GuardKind) -> Db {
    let options = Options::new()
        .guard(guard)
        .size_ratio(4)
        .block_bytes(256)
        .table_bytes(1 << 14)
        .sync(SyncPolicy::Never)
        .background(Background::Stepped);
    let environment = Environment::new().storage(Arc::new(Memory::new()));
    let db = Db::open_with(Path::new("db"), options, environment).expect("opens");
    for number in 0..KEYS {
        db.put(key(number * 7919 % KEYS), b"").expect("puts");
        if number % 850 == 849 {
            db.flush().expect("flushes");
            db.settle().expect("settles");
        }
    }
    db
}

/// How far apart bounds may be.
fn slack(db: &Db, guard: GuardKind) -> u64 {
    let runs: usize = db.stats().expect("open").levels.iter().map(|level| level.runs.len()).sum();
    assert!(runs > 3, "{runs} runs");
    match guard {
        GuardKind::Open | GuardKind::Table(_) | GuardKind::Locator(_) => {
            runs as u64 * 2 * BLOCK_KEYS_MAX
        }
        // A global filter tells keys apart where blocks cannot.
        _ => 12,
    }
}

#[test]
fn counts_are_as_close_as_promised() {
    for guard in trommel_guards::all_guards() {
        let db = store(guard);
        let slack = slack(&db, guard);
        let mut wrong = 0;
        for from in (0..KEYS - 1000).step_by(190) {
            let bounds = db.approximate_count(key(from)..=key(from + 999)).expect("counts");
            assert!(bounds.least <= 1000 && 1000 <= bounds.most, "{guard:?}: {bounds:?}");
            assert!(bounds.most - bounds.least <= slack, "{guard:?}: {bounds:?}");
            wrong += bounds.estimate.abs_diff(1000);
        }
        assert!(wrong <= slack * 100 / 4, "{guard:?}: {wrong} in a hundred ranges");
        let all = db.approximate_count(..).expect("counts");
        // Keys of one run whose places are equal are one entry.
        assert!(all.least <= KEYS && KEYS <= all.most, "{guard:?}: {all:?}");
        assert!(all.most - all.least <= slack && all.estimate.abs_diff(KEYS) <= slack / 4);
        assert_eq!(db.estimate_count(key(9)..key(9)).expect("counts"), 0);
    }
}

#[test]
fn a_key_counts_once_in_the_last_level_and_once_for_each_flush_since() {
    let db = store(GuardKind::Grf);
    db.compact().expect("compacts");
    let count = |db: &Db| db.estimate_count(..).expect("counts");
    assert_eq!(count(&db), KEYS);
    db.put(key(5), b"new").expect("puts");
    db.delete(key(6)).expect("deletes");
    assert_eq!(count(&db), KEYS + 2);
    db.flush().expect("flushes");
    assert_eq!(count(&db), KEYS + 2);
    db.compact().expect("compacts");
    assert_eq!(count(&db), KEYS - 1);
}

/// Filters of tables that are as fine as the gaps between keys.
const FINE: [&'static dyn FilterKind; 4] = [kinds::SNARF, kinds::CELL, kinds::GAP, kinds::CODED];

#[test]
fn ranges_without_keys_are_known_to_be_empty() {
    for guard in trommel_guards::all_guards() {
        let db = store(guard);
        db.flush().expect("flushes");
        let may = |from: [u8; 8], to: [u8; 8]| db.may_contain_range(from..=to).expect("asks");
        let number = |place| u64::from_be_bytes(key(place));
        let beyond = (number(KEYS - 1) + 1).to_be_bytes();
        let maybe = (1..KEYS).filter(|&place| {
            let middle = number(place - 1).midpoint(number(place));
            assert!(middle > number(place - 1) && middle + 1000 < number(place));
            may(middle.to_be_bytes(), (middle + 1000).to_be_bytes())
        });
        let maybe = maybe.count() as u64;
        let expected = match guard {
            _ if !guard.knows_ranges() => KEYS / 2..KEYS,
            // Segments are coarser than gaps.
            GuardKind::Locator(_) => 0..KEYS,
            // Whole bytes, prefixes and levels may be too coarse for these gaps.
            GuardKind::Table(kind) if !FINE.contains(&kind) => 0..KEYS,
            _ => 0..KEYS / 10,
        };
        assert!(expected.contains(&maybe), "{guard:?}: {maybe} ranges may have keys");
        assert!((0..KEYS).all(|place| may(key(place), key(place))), "{guard:?}: lost a key");
        assert!(!may(beyond, [0xff; 8]), "{guard:?}: no table reaches so far");
        assert!(!db.may_contain_range(key(9)..key(9)).expect("asks"));
        db.put([0xff; 8], b"").expect("puts");
        assert!(may(beyond, [0xff; 8]), "{guard:?}: a key in memory");
    }
}
