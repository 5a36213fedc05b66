//! Files that grow, are cut and are rewritten in place while a store reads them.
//! ```text
//! at every look of a call        open, verify_files, dump, repair      (deeds.rs)
//! between the steps of a store   tables, log, manifest; then the right bytes are put back
//! by a thread beside             all of it at once, so many times
//! ```
//! Invariant: an answer is right, or an error that names the file. No call hangs, panics, or takes
//! memory by what a file claims.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};

use allocation_counter::measure;
use trommel::Environment;
use trommel::options::{DirectIo, Overlap};
use trommel::storage::{Disk, Storage};
use trommel::tools::{
    DumpItem, RepairReport, TreePeek, dump, peek, repair_with, verify_files_with,
};
use trommel::{Db, Error, KeyValue, Options, Value};

use crate::MEMORY_MAX;
use crate::deeds::{DEEDS, Deed, Meddled, rewrite};
use crate::ground::{
    CallResult, ROWS, TestFolders, in_time, names, names_it, newest, options, value,
};

/// Whether an error names the file, or one that the manifest names and another one would not.
fn tells_of(error: &Error, name: &str) -> bool {
    let others = [".table", ".wal", ".filter"];
    names_it(error, name) || (name == "MANIFEST" && others.iter().any(|end| names_it(error, end)))
}

/// Whether an answer for a row is right. False: it is an error that names the file.
fn is_right(row: u32, found: trommel::Result<Option<Value>>, name: &str) -> bool {
    match found {
        Ok(found) => assert_eq!(found.as_deref(), Some(&*value(row)), "row {row}"),
        Err(error) => {
            assert!(tells_of(&error, name), "row {row}: {error}");
            return false;
        }
    }
    true
}

/// Whether rows come in order, each of them, up to the end or an error that names the file. False:
/// there was one.
fn are_rows(
    mut rows: impl Iterator<Item = u32>,
    found: impl Iterator<Item = trommel::Result<(Vec<u8>, Value)>>,
    name: &str,
) -> bool {
    for entry in found {
        match entry {
            // Behind all rows.
            Ok((key, _)) if key.starts_with(b"late") => {}
            Ok((key, found)) => {
                let row = rows.next().expect("no more rows than there are");
                assert_eq!(key, row.to_be_bytes());
                assert_eq!(*found, *value(row), "row {row}");
            }
            Err(error) => {
                assert!(tells_of(&error, name), "{error}");
                return false;
            }
        }
    }
    assert_eq!(rows.next(), None, "a row is not there");
    true
}

fn owned(entry: trommel::Result<KeyValue>) -> trommel::Result<(Vec<u8>, Value)> {
    entry.map(|(key, value)| (key.to_vec(), value))
}

/// Reads all rows in every way. How many answers were errors.
fn read_all(db: &Db, name: &str) -> usize {
    let all = || 0..ROWS;
    let mut errors = all().filter(|row| !is_right(*row, db.get(row.to_be_bytes()), name)).count();
    let keys: Vec<_> = all().map(u32::to_be_bytes).collect();
    let found = db.multi_get(&keys).into_iter().zip(all());
    errors += found.filter_map(|(found, row)| (!is_right(row, found, name)).then_some(())).count();
    errors += usize::from(!are_rows(all(), db.range(..).map(owned), name));
    errors += usize::from(!are_rows(all().rev(), db.range(..).rev().map(owned), name));
    errors
}

fn environment(storage: impl Storage + 'static) -> Environment {
    Environment::new().storage(Arc::new(storage))
}

/// An error that names the file is an answer.
fn ok_or_named<T>(done: trommel::Result<T>, name: &str) -> Option<T> {
    done.inspect_err(|error| assert!(tells_of(error, name), "{error}")).ok()
}

fn live(storage: &Meddled, dir: &Path, name: &str) -> CallResult {
    let Some(db) = ok_or_named(Db::open_with(dir, options(), environment(storage.clone())), name)
    else {
        return Ok("no store".into());
    };
    let errors = read_all(&db, name);
    for done in [db.put("late", "value"), db.flush(), db.compact()] {
        ok_or_named(done, name);
    }
    let errors = errors + read_all(&db, name);
    ok_or_named(db.verify(), name);
    ok_or_named(db.close(), name);
    Ok(format!("{errors} errors"))
}

fn verify_all(storage: &Meddled, dir: &Path, name: &str) -> CallResult {
    let Some(report) = ok_or_named(verify_files_with(dir, &environment(storage.clone())), name)
    else {
        return Ok("no report".into());
    };
    let tells = |damage: &&String| damage.contains(name) || name == "MANIFEST";
    assert_eq!(report.damage.iter().filter(tells).count(), report.damage.len(), "{report:?}");
    Ok(format!("{} damaged", report.damage.len()))
}

fn dump_all(storage: &Meddled, dir: &Path, name: &str) -> CallResult {
    let mut items = 0;
    let dumped = dump(storage, dir, &mut |item| {
        items += 1;
        if let DumpItem::Entry { kind: "put", key, value: shown, .. } = item {
            let row = key.try_into().map(u32::from_be_bytes).expect("a row's key");
            assert_eq!(shown, &*value(row), "row {row}");
        }
        if items < 20_000 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    ok_or_named(dumped, name);
    Ok(format!("{items} items"))
}

fn mend(storage: &Meddled, dir: &Path, name: &str) -> CallResult {
    let report = ok_or_named(repair_with(dir, &environment(storage.clone())), name);
    Ok(format!("{}", report.is_some_and(|report: RepairReport| report.changed)))
}

/// A call of a folder on a disk, of which a file is meddled with.
type Call = (&'static str, fn(&Meddled, &Path, &str) -> CallResult);

const CALLS: [Call; 4] = [
    ("open", live as fn(&Meddled, &Path, &str) -> CallResult),
    ("verify_files", verify_all),
    ("dump", dump_all),
    ("repair", mend),
];

/// At which looks something is done: all of the first, and fewer and fewer later ones.
fn moments() -> impl Iterator<Item = u64> {
    std::iter::successors(Some(0), |at| Some(at + 1 + at / 2))
}

/// The files of a store: the manifest, its log, the table that has all rows and a newer one, and
/// the filter's image.
fn files(dir: &Path) -> Vec<String> {
    let tables = names(dir).into_iter().filter(|name| name.ends_with(".table"));
    let others = ["MANIFEST".to_string(), newest(dir, ".wal"), newest(dir, ".filter")];
    others.into_iter().chain(tables).collect()
}

#[test]
fn a_file_that_changes_at_any_look_is_read_right_or_named() {
    let mut folders = TestFolders::new();
    for name in files(&folders.sound()) {
        for (call, f) in CALLS {
            for deed in DEEDS {
                for at in moments() {
                    let copy = folders.copy();
                    let case = format!("{deed:?} of {name} at look {at}, {call}");
                    let storage = Meddled::new(&copy.join(&name), deed, at);
                    let (path, meddled, of) = (copy.clone(), storage.clone(), name.clone());
                    let (outcome, memory) = in_time(&case, move || {
                        let mut outcome = None;
                        let memory = measure(|| outcome = Some(f(&meddled, &path, &of)));
                        (outcome.expect("it was called"), memory.bytes_max)
                    });
                    assert!(outcome.is_ok(), "{case}: {outcome:?}");
                    assert!(memory < MEMORY_MAX, "{case}: {memory} bytes of memory");
                    if call == "open" {
                        read_later(&case, &copy, &name);
                    }
                    fs::remove_dir_all(copy).expect("removes");
                    // The zeros of a terabyte take their time, whenever it is that they appear.
                    if !storage.is_done() || (deed == Deed::GrowByAHole && at > 4) {
                        break;
                    }
                }
            }
        }
    }
}

/// The next opening of the store finds all rows, or says why not.
fn read_later(case: &str, dir: &Path, name: &str) {
    let (dir, name) = (dir.to_path_buf(), name.to_string());
    in_time(&format!("{case}, and then opened"), move || {
        if let Some(db) = ok_or_named(Db::open(dir, options()), &name) {
            read_all(&db, &name);
        }
    });
}

/// The ways in which blocks of tables are read.
fn ways() -> impl Iterator<Item = Options> {
    let ways = [
        (DirectIo::default(), Overlap::OneByOne, 0),
        (DirectIo::default(), Overlap::OneByOne, 1 << 20),
        (DirectIo::default(), Overlap::Pool, 0),
        (DirectIo::ALL, Overlap::Ring, 0),
    ];
    ways.into_iter().map(|(direct, overlap, block_cache_bytes)| {
        options().direct(direct).overlap(overlap).block_cache_bytes(block_cache_bytes)
    })
}

/// Every file of a kind, with its bytes.
fn bytes_of(dir: &Path, kind: &str) -> Vec<(String, Vec<u8>)> {
    let ours = names(dir).into_iter().filter(|name| name.ends_with(kind));
    ours.map(|name| (name.clone(), fs::read(dir.join(&name)).expect("reads"))).collect()
}

#[test]
fn tables_that_change_between_reads_are_named_and_are_right_when_put_back() {
    let mut folders = TestFolders::new();
    for options in ways() {
        for deed in DEEDS {
            let (copy, target) = (folders.copy(), folders.copy().with_extension("checkpoint"));
            let case = format!("{deed:?}, {:?} {:?}", options.overlap, options.block_cache_bytes);
            let db = Db::open(&copy, options.clone()).expect("opens");
            (0..ROWS / 2).for_each(|row| assert!(is_right(row, db.get(row.to_be_bytes()), "none")));
            let (tables, options) = (bytes_of(&copy, ".table"), options.clone());
            tables.iter().for_each(|(name, _)| deed.apply(&copy.join(name)));
            in_time(&case.clone(), move || {
                let errors = read_all(&db, ".table");
                assert!(errors == 0 || !deed.keeps_bytes(), "{case}: {errors} errors");
                assert!(errors > 0 || !deed.spoils_all(), "{case}: nothing was read from the disk");
                let damaged = db.verify().map_or(1, |report| report.damage.len());
                assert!(damaged > 0, "{case}: it verifies");
                let copied = ok_or_named(db.checkpoint(&target), ".table");
                if copied.and_then(|()| ok_or_named(Db::open(&target, options), ".table")).is_some()
                {
                    assert!(!deed.spoils_all(), "{case}: a checkpoint of it opens");
                }
                ok_or_named(db.compact(), ".table");
                read_all(&db, ".table");
                for (name, bytes) in tables.iter().filter(|(name, _)| copy.join(name).exists()) {
                    rewrite(&copy.join(name), bytes);
                }
                assert_eq!(read_all(&db, "none"), 0, "{case}: what was damaged is remembered");
                db.put("late", "value").expect("puts");
                db.flush().expect("flushes");
                db.compact().expect("merges");
                assert_eq!(read_all(&db, "none"), 0, "{case}");
                assert_eq!(db.verify().expect("reads").damage, [""; 0], "{case}");
                db.close().expect("closes");
            });
        }
    }
}

/// Where each block of a table begins.
fn block_places(dir: &Path, table: &str) -> Vec<u64> {
    let mut places = Vec::new();
    let dumped = dump(&Disk, dir.join(table), &mut |item| {
        match item {
            DumpItem::Note { offset, text } if text.starts_with("data block") => {
                places.push(offset);
            }
            _ => {}
        }
        ControlFlow::Continue(())
    });
    dumped.expect("it is sound");
    places
}

#[test] // A get of a key found nothing: the block was sound, but another one.
fn blocks_that_change_places_are_named() {
    let mut folders = TestFolders::new();
    let dir = folders.copy().with_extension("blocks");
    for options in ways().map(|options| options.compression(false).block_cache_bytes(0)) {
        let db = Db::open(&dir, options).expect("opens");
        // Values, and so blocks, of one length.
        let rows = 1000..1000 + ROWS;
        rows.clone().for_each(|row| db.put(row.to_be_bytes(), value(row)).expect("puts"));
        db.compact().expect("merges");
        let table = newest(&dir, ".table");
        let bytes = fs::read(dir.join(&table)).expect("reads");
        let places: Vec<_> =
            block_places(&dir, &table).into_iter().map(|place| place as usize).collect();
        let mut swapped = 0;
        for place in places.windows(3) {
            let (one, other) = (place[0]..place[1], place[1]..place[2]);
            if one.len() != other.len() {
                continue;
            }
            swapped += 1;
            let changed = [&bytes[..one.start], &bytes[other.clone()], &bytes[one]].concat();
            rewrite(&dir.join(&table), &[&changed, &bytes[other.end..]].concat());
            let wrong = |row: &u32| !is_right(*row, db.get(row.to_be_bytes()), &table);
            assert!(rows.clone().filter(wrong).count() > 0, "the blocks are not read");
            assert!(!are_rows(rows.clone(), db.range(..).map(owned), &table));
            assert!(!are_rows(rows.clone().rev(), db.range(..).rev().map(owned), &table));
        }
        assert!(swapped > 2, "{places:?}");
        rewrite(&dir.join(&table), &bytes);
        db.close().expect("closes");
    }
}

/// What an open store knows of its log and its manifest it does not read again; but it adds to
/// them, or begins new ones.
#[test]
fn writes_are_not_lost_silently_when_a_file_that_they_go_to_changes() {
    let mut folders = TestFolders::new();
    for deed in DEEDS {
        for kind in [".wal", "MANIFEST"] {
            for flushes in [false, true] {
                let copy = folders.copy();
                let case = format!("{deed:?} of {kind}, flushes: {flushes}");
                let db = Db::open(&copy, options()).expect("opens");
                db.put("late 0", "value").expect("puts");
                db.flush().expect("flushes");
                db.put("late 1", "value").expect("puts");
                deed.apply(&copy.join(newest(&copy, kind)));
                let name = kind.to_string();
                in_time(&case.clone(), move || {
                    assert_eq!(read_all(&db, "none"), 0, "{case}");
                    db.put("late 2", "value").expect("puts");
                    if flushes {
                        db.flush().expect("flushes");
                    }
                    db.put("late 3", "value").expect("puts");
                    let damaged = db.verify().map_or(1, |report| report.damage.len());
                    assert!(damaged > 0 || flushes || !deed.spoils_all(), "{case}: it verifies");
                    db.close().expect("closes");
                    let Some(db) = ok_or_named(Db::open(&copy, options()), &name) else {
                        return assert!(!deed.keeps_bytes(), "{case}");
                    };
                    assert_eq!(read_all(&db, "none"), 0, "{case}");
                    for nth in 0..4 {
                        let found = db.get(format!("late {nth}")).expect("gets");
                        assert_eq!(found.as_deref(), Some(&b"value"[..]), "{case}: late {nth}");
                    }
                });
            }
        }
    }
}

/// Every tree that a manifest tells of when it is cut somewhere: it was the store's at some time.
fn trees_of(manifest: &Path) -> Vec<TreePeek> {
    let (dir, bytes) = (manifest.parent().expect("a folder"), fs::read(manifest).expect("reads"));
    let mut trees: Vec<TreePeek> = Vec::new();
    for end in 0..=bytes.len() {
        rewrite(manifest, &bytes[..end]);
        match peek(dir) {
            Ok(tree) if trees.contains(&tree) => {}
            Ok(tree) => trees.push(tree),
            Err(error) => assert!(names_it(&error, "MANIFEST"), "{error}"),
        }
    }
    trees
}

#[test]
fn a_look_at_a_manifest_that_changes_sees_a_tree_that_was_or_an_error() {
    let mut folders = TestFolders::new();
    let trees = trees_of(&folders.copy().join("MANIFEST"));
    for deed in DEEDS {
        let copy = folders.copy();
        let sound = peek(&copy).expect("it is sound");
        deed.apply(&copy.join("MANIFEST"));
        match in_time(&format!("{deed:?}"), move || peek(&copy)) {
            Ok(tree) if deed.keeps_bytes() => assert_eq!(tree, sound, "{deed:?}"),
            Ok(tree) => assert!(trees.contains(&tree) && !deed.spoils_all(), "{deed:?}: {tree:?}"),
            Err(error) => assert!(names_it(&error, "MANIFEST"), "{deed:?}: {error}"),
        }
    }
}

/// How often each file is changed by the thread beside, and put back. The reader reads until that
/// is done.
const CHANGES: usize = 300;

/// Changes files and puts their bytes back, again and again, while others read.
fn meddle_beside(dir: &Path, files: &[(String, Vec<u8>)], mut read: impl FnMut()) {
    let (start, is_done) = (Barrier::new(2), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            start.wait();
            for round in 0..CHANGES {
                for (nth, (name, bytes)) in files.iter().enumerate() {
                    DEEDS[(round + nth) % DEEDS.len()].apply(&dir.join(name));
                    // On one core, too, somebody is to see it.
                    std::thread::yield_now();
                    rewrite(&dir.join(name), bytes);
                }
            }
            is_done.store(true, Ordering::Release);
        });
        start.wait();
        while !is_done.load(Ordering::Acquire) {
            read();
        }
    });
}

#[test]
fn tables_that_change_beside_reads_are_right_or_named() {
    let mut folders = TestFolders::new();
    for options in ways() {
        let copy = folders.copy();
        let db = Db::open(&copy, options.clone()).expect("opens");
        let tables = bytes_of(&copy, ".table");
        in_time(&format!("{:?}", options.overlap), move || {
            meddle_beside(&copy, &tables, || {
                read_all(&db, ".table");
                ok_or_named(db.verify(), ".table");
            });
            assert_eq!(read_all(&db, "none"), 0, "all was put back");
            assert_eq!(db.verify().expect("reads").damage, [""; 0]);
        });
    }
}

#[test]
fn files_that_change_beside_those_who_look_at_them_are_right_or_named() {
    let mut folders = TestFolders::new();
    let trees = trees_of(&folders.copy().join("MANIFEST"));
    let copy = folders.copy();
    let kinds = ["MANIFEST", ".wal", ".filter", ".table"];
    let all: Vec<_> = kinds.iter().flat_map(|kind| bytes_of(&copy, kind)).collect();
    in_time("all files", move || {
        // Each file changes, so that each may be named.
        let beside = Meddled::new(Path::new("nothing"), Deed::Zeros, 0);
        meddle_beside(&copy, &all, || {
            for f in [verify_all, dump_all] {
                f(&beside, &copy, "MANIFEST").expect("tells");
            }
            if let Some(tree) = ok_or_named(peek(&copy), "MANIFEST") {
                assert!(trees.contains(&tree), "{tree:?}");
            }
        });
        let db = Db::open(&copy, options()).expect("all was put back");
        assert_eq!(read_all(&db, "none"), 0);
        assert_eq!(db.verify().expect("reads").damage, [""; 0]);
    });
}
