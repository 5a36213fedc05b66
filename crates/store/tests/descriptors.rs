//! A store has more tables than the process may have files open.
//! ```text
//! test -> sh: ulimit -n 64 -> this test again, which now finds the folder in its environment and
//!     does the work
//! ```
//! Invariant: whatever is done, nothing fails for want of a descriptor, and no more files of tables
//! are open than there may be.
#![cfg(unix)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use trommel::Environment;
use trommel::options::{DirectIo, Overlap};
use trommel::storage::Memory;
use trommel::{Answer, Background, Db, Options, Value};

/// The least that a table may have, so that there are many.
const TABLE_BYTES: u64 = 4096;
/// So many rows fill a table.
const ROWS_PER_TABLE: u64 = 4;

fn options() -> Options {
    Options::new().table_bytes(TABLE_BYTES).compression(false)
}

fn key(row: u64) -> [u8; 8] {
    row.to_be_bytes()
}

fn value(row: u64, round: u8) -> Vec<u8> {
    let mut value = vec![round; 1100];
    value[..8].copy_from_slice(&row.to_be_bytes());
    value
}

fn table_count(db: &Db) -> u64 {
    let levels = db.stats().expect("open").levels;
    levels.iter().flat_map(|level| &level.runs).map(|run| run.tables).sum()
}

/// Makes a store of many tables, the rows' values being of round 0.
fn load(dir: &Path, options: &Options, env: Environment, tables: u64) -> Db {
    let db = Db::open_with(dir, options.clone(), env).expect("makes a store");
    let rows = tables * ROWS_PER_TABLE;
    db.ingest((0..rows).map(|row| (key(row), value(row, 0)))).expect("ingests");
    assert!(table_count(&db) >= tables, "{} tables", table_count(&db));
    db
}

/// Everything that reads, over all tables; row by row the rounds are those that `round` says.
fn read_all(db: &Db, rows: u64, round: impl Fn(u64) -> u8) {
    let is_right = |row: u64, found: Option<Value>| {
        assert_eq!(found.as_deref(), Some(&value(row, round(row))[..]), "row {row}");
    };
    // One row of each table, the tables in no order.
    let step = 7 * ROWS_PER_TABLE + 1;
    let some = || (0..rows / ROWS_PER_TABLE).map(|nth| nth * step % rows);
    some().for_each(|row| is_right(row, db.get(key(row)).expect("reads")));
    for rows in some().collect::<Vec<_>>().chunks(300) {
        let found = db.multi_get(&rows.iter().map(|row| key(*row)).collect::<Vec<_>>());
        rows.iter().zip(found).for_each(|(row, found)| is_right(*row, found.expect("reads")));
    }
    let mut queue = db.queue(128);
    for row in some() {
        queue.submit_get(key(row), row);
        if queue.under_way() >= 500 {
            let answered = queue.wait().expect("some are under way");
            let Answer::Value(found) = answered.answer else { panic!("a get") };
            is_right(answered.tag, found.expect("reads"));
        }
    }
    while let Some(answered) = queue.wait() {
        let Answer::Value(found) = answered.answer else { panic!("a get") };
        is_right(answered.tag, found.expect("reads"));
    }
    let forward = db.range(..).map(|entry| entry.expect("reads").0);
    assert!(forward.eq((0..rows).map(|row| key(row).to_vec())));
    let backward = db.range(..).rev().map(|entry| entry.expect("reads").0);
    assert!(backward.eq((0..rows).rev().map(|row| key(row).to_vec())));
}

/// The whole life of a store of many tables.
fn live(dir: &Path, options: &Options, env: &Environment, tables: u64) {
    let rows = tables * ROWS_PER_TABLE;
    let db = load(dir, options, env.clone(), tables);
    read_all(&db, rows, |_| 0);
    db.close().expect("closes");

    let db = Db::open_with(dir, options.clone(), env.clone()).expect("opens");
    // A run of tables all over the keys above the other one, from both.
    let is_new = |row: u64| row.is_multiple_of(5);
    for row in (0..rows).filter(|row| is_new(*row)) {
        db.put(key(row), value(row, 1)).expect("writes");
    }
    db.flush().expect("flushes");
    read_all(&db, rows, |row| u8::from(is_new(row)));
    let report = db.verify().expect("is sound");
    assert!(report.tables >= tables && report.damage.is_empty(), "{report:?}");
    let copy = dir.with_extension("copy");
    db.checkpoint(&copy).expect("makes a checkpoint");
    // Two stores of many tables in one process.
    let second = Db::open_with(&copy, options.clone(), env.clone()).expect("opens the copy");
    db.compact().expect("merges thousands of tables");
    read_all(&db, rows, |row| u8::from(is_new(row)));
    read_all(&second, rows, |row| u8::from(is_new(row)));
    let files = db.stats().expect("open").files;
    assert!(files.open <= files.max && files.reopened > tables, "{files:?}");
    second.close().expect("closes the copy");
    db.close().expect("closes");
}

/// Runs a test of this file again, with few descriptors. True: this is the process that was so
/// started, with its folder.
fn with_few_descriptors(test: &str, descriptors: u32) -> Option<PathBuf> {
    const FOLDER: &str = "TROMMEL_DESCRIPTORS_FOLDER";
    if let Some(folder) = std::env::var_os(FOLDER) {
        return Some(folder.into());
    }
    // Thousands of files are synced: in memory, if that can be had.
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    let folder = folder.expect("a temporary folder");
    let program = std::env::current_exe().expect("this program");
    let script = format!("ulimit -n {descriptors} && exec \"$@\"");
    let mut again = Command::new("sh");
    again.args(["-c", &script, "sh"]).arg(program).args(["--exact", test, "--nocapture"]);
    let output = again.env(FOLDER, folder.path()).output().expect("starts");
    let texts =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success(), "{}\n{}", texts[0], texts[1]);
    assert!(texts[0].contains("1 passed"), "{}", texts[0]);
    None
}

#[test]
fn a_store_of_5000_tables_works_under_64_descriptors() {
    let test = "a_store_of_5000_tables_works_under_64_descriptors";
    let Some(folder) = with_few_descriptors(test, 64) else { return };
    let background = Background::Threads(2);
    let options = options().background(background).block_cache_bytes(1 << 20);
    let dir = folder.join("db");
    live(&dir, &options, &Environment::default(), 5000);
    let report = trommel::tools::repair(&dir).expect("looks at every table");
    assert!(!report.changed && report.lost.is_empty(), "{report:?}");
}

#[test]
fn every_way_of_reading_works_under_40_descriptors() {
    let test = "every_way_of_reading_works_under_40_descriptors";
    let Some(folder) = with_few_descriptors(test, 40) else { return };
    for overlap in Overlap::ALL {
        for direct in [DirectIo::default(), DirectIo::ALL] {
            let options = options().overlap(overlap).direct(direct).block_cache_bytes(0);
            let name = format!("{}-{}", overlap.name(), direct.reads);
            live(&folder.join(name), &options, &Environment::default(), 150);
        }
    }
}

/// A store on a simulated disk, with its background work done by its callers.
fn simulated(disk: &Memory) -> Environment {
    Environment::new().storage(Arc::new(disk.clone()))
}

#[test]
fn no_more_files_of_tables_are_open_than_the_options_say() {
    trommel_guards::register().expect("no other filter has these names");
    let guards = ["grf", "blocked-bloom", "elastic", "remix", "none"];
    for (guard, max) in guards.into_iter().zip([1, 2, 3, 10, 40]) {
        let disk = Memory::new();
        let options = options()
            .guard(guard.parse().expect("known"))
            .max_open_files(Some(max))
            .background(Background::Stepped)
            .block_cache_bytes(0);
        live(Path::new("db"), &options, &simulated(&disk), 100);
        // Two stores, each with a log, a manifest and tables that are being written.
        let most = disk.handles().most;
        assert!((max..=2 * max + 8).contains(&most), "{guard}: {most} handles, {max} of tables");
        assert_eq!(disk.handles().open, 0, "{guard}");
    }
}

#[test]
fn where_the_process_may_open_no_more_idle_files_are_closed() {
    let disk = Memory::new();
    disk.limit_handles(Some(12));
    let options = options().max_open_files(Some(usize::MAX)).background(Background::Stepped);
    live(Path::new("db"), &options, &simulated(&disk), 100);
    assert_eq!(disk.handles().most, 12);
    // Nothing can be closed then, and the error says what would help.
    disk.limit_handles(Some(0));
    let refused = Db::open_with("db", options, simulated(&disk)).map(drop).expect_err("too few");
    assert!(refused.to_string().contains("ulimit -n"), "{refused}");
}

#[test]
fn what_left_the_tree_is_read_by_who_pins_it_with_one_handle() {
    let disk = Memory::new();
    let (background, max_open_files) = (Background::Stepped, Some(1));
    let options =
        options().background(background).max_open_files(max_open_files).block_cache_bytes(0);
    let db = load(Path::new("db"), &options, simulated(&disk), 50);
    let rows = 50 * ROWS_PER_TABLE;
    let snapshot = db.snapshot();
    let mut scan = snapshot.range(..);
    scan.next().expect("there is one").expect("reads");
    for round in 1..4 {
        (0..rows).for_each(|row| db.put(key(row), value(row, round)).expect("writes"));
        db.compact().expect("merges");
    }
    let left = scan.map(|entry| entry.map(|(key, value)| (key, value.to_vec())).expect("reads"));
    assert!(left.eq((1..rows).map(|row| (key(row).to_vec(), value(row, 0)))));
    read_all(&db, rows, |_| 3);
    assert!(db.stats().expect("open").leaving_tables > 0, "the snapshot's");
}
