//! The guard `elastic`: sub-filters come to where gets are, within the memory that there is, and
//! whatever happens to them no answer is wrong.
//! ```text
//! gets for keys of one table ──> its needless reads fall, sub-filters of tables not asked go
//! ```
//! Invariant: after every step sub-filters and directories take no more than the guard's bits for
//! each entry.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::door::Door;
use trommel::Environment;
use trommel::options::FilterTuning;
use trommel::stats::ElasticStats;
use trommel::storage::{Memory, Storage};
use trommel::testing::Fault;
use trommel::{Background, Db, GuardKind, Options, SyncPolicy};
use trommel_guards::{ElasticOptions, kinds};

const DIR: &str = "db";
const KEYS: u32 = 4000;

/// Some fifty tables of some eighty keys; every get is counted.
fn options() -> Options {
    Options::new()
        .size_ratio(3)
        .guard(GuardKind::Table(kinds::ELASTIC))
        .bits_per_key(12.0)
        .block_bytes(256)
        .table_bytes(4096)
        .compression(false)
        .block_cache_bytes(0)
        .sync(SyncPolicy::Never)
        .background(Background::Stepped)
        .filter(FilterTuning::new().with(ElasticOptions {
            unit_bits_per_key: Some(std::f64::consts::LOG2_E),
            sample_gets: 1,
            ..ElasticOptions::default()
        }))
}

fn open_with(disk: &Memory, options: Options) -> Db {
    let environment = Environment::new().storage(Arc::new(disk.clone()));
    Db::open_with(Path::new(DIR), options, environment).expect("opens")
}

fn key(number: u32) -> String {
    format!("key {number:06}")
}

/// A key that is not stored, in the table of the one of this number.
fn miss(number: u32, nth: u32) -> String {
    format!("key {number:06} {nth}")
}

/// One run of many tables.
fn loaded(disk: &Memory) -> Db {
    let db = open_with(disk, options());
    for number in 0..KEYS {
        db.put(key(number), vec![b'.'; 30]).expect("puts");
    }
    db.compact().expect("compacts");
    db
}

fn elastic(db: &Db) -> ElasticStats {
    let stats = db.stats().expect("open");
    let allowed = stats.entries() as f64 * options().bits_per_key / 8.0;
    assert!(stats.guard.memory_bytes as f64 <= allowed, "{:?}", stats.guard);
    let elastic = stats.guard.elastic.expect("the guard is elastic");
    assert!(elastic.sub_filter_bytes <= elastic.budget_bytes, "{elastic:?}");
    elastic
}

/// Asks for keys that are not there, around one key. How many runs were searched for nothing.
fn ask_misses(db: &Db, number: u32, range: std::ops::Range<u32>) -> u64 {
    let before = db.stats().expect("open").point.false_positives;
    for nth in range {
        assert_eq!(db.get(miss(number + nth % 20, nth)).expect("gets"), None);
    }
    db.stats().expect("open").point.false_positives - before
}

fn all_is_there(db: &Db) {
    for number in 0..KEYS {
        let value = db.get(key(number)).expect("gets");
        assert_eq!(value.as_deref(), Some(&[b'.'; 30][..]), "{number}");
    }
}

#[test]
fn sub_filters_come_to_where_gets_are() {
    let disk = Memory::new();
    drop(loaded(&disk));
    let (db, copy) = (open_with(&disk, options()), disk.kill());
    let start = elastic(&db);
    let tables: u64 = db
        .stats()
        .expect("open")
        .levels
        .iter()
        .flat_map(|level| &level.runs)
        .map(|r| r.tables)
        .sum();
    assert!(tables > 30, "{tables} tables");
    assert_eq!(start.tables_by_sub_filters.iter().sum::<u64>(), tables);
    let sub_filters_at_first = start.tables_by_sub_filters.iter().rposition(|count| *count > 0);
    assert!(
        sub_filters_at_first.is_some_and(|sub_filters| (1..8).contains(&sub_filters)),
        "{start:?}"
    );
    ask_misses(&db, 2000, 0..1000);
    let hot = ask_misses(&db, 2000, 10_000..10_200);
    let fixed = options().tune(|elastic: &mut ElasticOptions| elastic.sample_gets = u32::MAX);
    let fixed = open_with(&copy, fixed);
    let cold = ask_misses(&fixed, 2000, 10_000..10_200);
    assert!(elastic(&fixed).loads <= 1, "the first get of all is counted, whatever the sample");
    assert!(cold > 30 && hot < cold / 10, "{hot} needless reads, {cold} if no sub-filter is moved");
    let warm = elastic(&db);
    assert!(warm.tables_by_sub_filters.len() == 9 && warm.tables_by_sub_filters[8] > 0, "{warm:?}");
    assert!(warm.loads > 0 && warm.expected_rate < 0.01, "{warm:?}");
    // Others are asked, and the first ones are forgotten: theirs are the only sub-filters to be
    // had.
    for number in (0..KEYS).step_by(40) {
        ask_misses(&db, number, 0..200);
        elastic(&db);
    }
    let moved = elastic(&db);
    assert!(moved.drops > 0, "{moved:?}");
    all_is_there(&db);
    assert_eq!(db.verify().expect("verifies").damage, [""; 0]);
}

#[test]
fn the_same_questions_move_the_same_sub_filters() {
    let histories = [(), ()].map(|()| {
        let disk = Memory::new();
        let db = loaded(&disk);
        let mut history = Vec::new();
        for step in 0..60u32 {
            ask_misses(&db, step * step * 7 % 3900, 0..40);
            db.put(key(step * 61 % KEYS), vec![b'.'; 30]).expect("puts");
            if step % 10 == 9 {
                db.flush().expect("flushes");
            }
            db.step().expect("steps");
            history.push(elastic(&db));
        }
        (history, disk.operations())
    });
    let [one, other] = &histories;
    assert_eq!(one, other);
    assert!(one.0.last().is_some_and(|last| last.loads > 0));
}

#[test]
fn what_leaves_the_tree_gives_its_sub_filters_back() {
    let db = loaded(&Memory::new());
    ask_misses(&db, 100, 0..500);
    let before = elastic(&db);
    (0..KEYS / 2).for_each(|number| db.delete(key(number)).expect("deletes"));
    db.compact().expect("compacts");
    let after = elastic(&db);
    let sum = |stats: &ElasticStats| stats.tables_by_sub_filters.iter().sum::<u64>();
    assert!(sum(&after) < sum(&before) * 2 / 3, "{after:?}, before {before:?}");
    assert!(after.budget_bytes < before.budget_bytes * 2 / 3);
    (KEYS / 2..KEYS).for_each(|number| assert!(db.get(key(number)).expect("gets").is_some()));
}

#[test]
fn a_damaged_sub_filter_is_named_and_left_out() {
    let disk = Memory::new();
    drop(loaded(&disk));
    let names = disk.list(Path::new(DIR)).expect("lists");
    let name = names.iter().find(|name| name.ends_with(".table")).expect("there are tables");
    let path = Path::new(DIR).join(name);
    let len = disk.file(&path).expect("is there").len() as u64;
    let mut named = HashMap::new();
    for byte in (len / 2..len).step_by(11) {
        disk.flip_bit(&path, byte, 3);
        let environment = Environment::new().storage(Arc::new(disk.clone()));
        // Other parts of the table are other tests' matter.
        if let Ok(db) = Db::open_with(Path::new(DIR), options(), environment) {
            ask_misses(&db, 0, 0..60);
            let damaged = db.stats().expect("open").guard.damaged;
            assert!(damaged.len() < 2, "told once: {damaged:?}");
            if let Some(text) = damaged.first().filter(|text| text.contains("of sub-filter ")) {
                assert!(text.contains(name), "{text}");
                let (_, rest) = text.split_once("of sub-filter ").expect("it names the sub-filter");
                *named.entry(rest[..1].to_string()).or_insert(0) += 1;
                all_is_there(&db);
                assert_eq!(db.verify().expect("verifies").damage.len(), 1);
                let most = elastic(&db).tables_by_sub_filters.len() - 1;
                assert!(most == 7, "the other sub-filters of the hot table are in memory: {most}");
            }
        }
        disk.flip_bit(&path, byte, 3);
    }
    let mut sub_filters: Vec<&String> = named.keys().collect();
    sub_filters.sort();
    assert_eq!(sub_filters, ["0", "1", "2", "3", "4", "5", "6", "7"]);
}

#[test]
fn a_disk_that_refuses_sub_filters_stops_no_get() {
    let disk = Memory::new();
    drop(loaded(&disk));
    let db = open_with(&disk, options().block_cache_bytes(1 << 22));
    // Every block is in the cache, but few sub-filters were asked for.
    assert_eq!(db.range(..).filter(|entry| entry.is_ok()).count(), KEYS as usize);
    let before = elastic(&db);
    disk.fail_from(0, Fault::Io);
    ask_misses(&db, 300, 0..100);
    assert_eq!(elastic(&db).loads, before.loads);
    disk.mend();
    ask_misses(&db, 300, 0..100);
    assert!(elastic(&db).loads > before.loads);
    assert_eq!(db.stats().expect("open").guard.damaged, [""; 0]);
}

#[test]
fn a_read_of_a_sub_filter_that_panics_stops_no_later_one() {
    let disk = Memory::new();
    drop(loaded(&disk));
    let panics = Arc::new(AtomicBool::new(false));
    let is_on = Arc::clone(&panics);
    let door = Door::new(&disk, move |operation, _| {
        if operation == "read" && is_on.load(Ordering::SeqCst) {
            resume_unwind(Box::new("on purpose"));
        }
    });
    let environment = Environment::new().storage(Arc::new(door));
    let options = options().block_cache_bytes(1 << 22);
    let db = Db::open_with(DIR, options, environment).expect("opens");
    // Every block is in the cache, so that gets read nothing but sub-filters.
    assert_eq!(db.range(..).filter(|entry| entry.is_ok()).count(), KEYS as usize);
    let before = elastic(&db);
    panics.store(true, Ordering::SeqCst);
    let asked =
        (0..100).map(|nth| catch_unwind(AssertUnwindSafe(|| ask_misses(&db, 300, nth..nth + 1))));
    assert!(asked.filter(Result::is_err).count() > 0, "no sub-filter was read");
    panics.store(false, Ordering::SeqCst);
    ask_misses(&db, 300, 0..100);
    assert!(elastic(&db).loads > before.loads);
}

#[test]
fn tables_of_other_guards_have_no_sub_filters_and_no_wrong_answers() {
    let disk = Memory::new();
    drop(loaded(&disk));
    let bloom = options().guard(GuardKind::Table(kinds::BLOCKED_BLOOM));
    let db = open_with(&disk, bloom.clone());
    assert_eq!(db.stats().expect("open").guard.elastic, None);
    assert_eq!(
        db.stats().expect("open").guard.memory_bytes,
        0,
        "sub-filters are no blocked Bloom filters"
    );
    (0..500).for_each(|number| db.put(key(number), vec![b'.'; 30]).expect("puts"));
    db.flush().expect("flushes");
    all_is_there(&db);
    drop(db);
    let db = open_with(&disk, options());
    let tables = db
        .stats()
        .expect("open")
        .levels
        .iter()
        .flat_map(|level| &level.runs)
        .map(|r| r.tables)
        .sum::<u64>();
    let with_sub_filters = elastic(&db).tables_by_sub_filters.iter().sum::<u64>();
    assert!(0 < with_sub_filters && with_sub_filters < tables, "{with_sub_filters} of {tables}");
    ask_misses(&db, 100, 0..300);
    all_is_there(&db);
    // What merges write has sub-filters again.
    db.compact().expect("compacts");
    ask_misses(&db, 100, 0..300);
    all_is_there(&db);
    assert_eq!(db.verify().expect("verifies").damage, [""; 0]);
}

#[test]
fn sub_filters_survive_a_crash_as_the_tables_do() {
    let disk = Memory::new();
    let db = loaded(&disk);
    ask_misses(&db, 100, 0..300);
    for crash in [disk.crash(1), disk.kill()] {
        let db = open_with(&crash, options());
        ask_misses(&db, 100, 0..300);
        assert!(elastic(&db).loads > 0);
        all_is_there(&db);
    }
}

#[test]
fn sub_filters_move_beside_writes_and_merges() {
    let disk = Memory::new();
    let options = options()
        .background(Background::Threads(1))
        .write_buffer_bytes(1 << 14)
        .block_cache_bytes(1 << 16);
    let db = open_with(&disk, options);
    (0..KEYS).for_each(|number| db.put(key(number), vec![b'.'; 30]).expect("puts"));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in (0..KEYS).chain(0..KEYS / 2) {
                db.put(key(number), vec![b'.'; 30]).expect("puts");
            }
        });
        for reader in 0..3 {
            let db = &db;
            scope.spawn(move || {
                for nth in 0..3000u32 {
                    assert_eq!(db.get(miss(reader * 900 + nth % 30, nth)).expect("gets"), None);
                    assert!(db.get(key(nth * 7 % KEYS)).expect("gets").is_some(), "{nth}");
                }
            });
        }
    });
    db.compact().expect("compacts");
    ask_misses(&db, 100, 0..300);
    assert!(elastic(&db).loads > 0);
    all_is_there(&db);
}
