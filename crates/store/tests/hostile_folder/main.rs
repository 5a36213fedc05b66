//! A folder whose files somebody has replaced: by links, pipes, devices, folders, and files of a
//! terabyte with nothing in them.
//! ```text
//! MANIFEST, LOCK, *.wal, *.table, *.filter, left-overs    x
//!     link, pipe, socket, device, folder, sparse file
//! open, follow, peek, dump, repair, verify, checkpoint    ->
//!     an error that names the file, or an answer; outside all is as it was
//! ```
//! Invariant: no call waits for ever, takes memory by what a file claims, panics, or follows a link
//! out of the folder.
#![cfg(target_os = "linux")]

mod deeds;
mod ground;
mod owners;
mod rewritten;
mod rights;
mod sparse;

use std::fs;
use std::path::Path;

use allocation_counter::measure;
use trommel::Db;
use trommel::options::{DirectIo, Overlap};
use trommel::tools::repair;

use ground::{
    CALLS, ROWS, THINGS, TestFolders, Thing, contents, in_time, names, names_it, newest, options,
    value,
};

/// More than a store of a few small files takes in memory.
pub(crate) const MEMORY_MAX: u64 = 256 << 20;
const TERABYTE: u64 = 1 << 40;

#[test]
fn what_is_no_file_is_an_error_that_names_it_and_is_not_followed() {
    let mut folders = TestFolders::new();
    let sound = folders.sound();
    let (table, log) = (newest(&sound, ".table"), newest(&sound, ".wal"));
    let needed = ["MANIFEST", &table, &log].map(String::from);
    for thing in THINGS {
        for name in &needed {
            for (call, f) in CALLS {
                let (copy, outside) = (folders.copy(), folders.outside());
                let case = format!("{thing:?} in place of {name}, {call}");
                if !thing.put(&copy.join(name), &outside) {
                    continue;
                }
                let before = contents(&outside);
                let path = copy.clone();
                let outcome = in_time(&case, move || f(&path));
                assert!(contents(&outside) == before, "{case}: what lies outside was changed");
                match outcome {
                    // It reads the manifest alone.
                    Ok(_) if call == "peek" && name != "MANIFEST" => {}
                    Ok(text) => panic!("{case}: {text}"),
                    Err(error) => {
                        assert!(names_it(&error, name), "{case}: {error}");
                        assert!(error.to_string().contains(thing.word()), "{case}: {error}");
                    }
                }
                fs::remove_dir_all(copy).expect("removes");
            }
        }
    }
}

#[test]
fn what_is_no_file_and_is_not_needed_is_passed_over() {
    let mut folders = TestFolders::new();
    let sound = folders.sound();
    let image = newest(&sound, ".filter");
    let others =
        ["LOCK", "MANIFEST.new", "000900.table", "000900.filter", "notes.txt", "lost", "a b"];
    for thing in THINGS {
        for name in others.iter().copied().chain([&*image]) {
            for (call, f) in CALLS {
                let (copy, outside) = (folders.copy(), folders.outside());
                let case = format!("{thing:?} in place of {name}, {call}");
                if !thing.put(&copy.join(name), &outside) {
                    continue;
                }
                let before = contents(&outside);
                let path = copy.clone();
                let outcome = in_time(&case, move || f(&path));
                assert!(contents(&outside) == before, "{case}: what lies outside was changed");
                if let Err(error) = &outcome {
                    assert!(names_it(error, name), "{case}: {error}");
                    assert!(!["notes.txt", "a b"].contains(&name), "{case}: {error}");
                } else {
                    assert!(name != "LOCK" || !["open", "repair"].contains(&call), "{case}");
                }
                fs::remove_dir_all(copy).expect("removes");
            }
        }
    }
}

#[test]
fn an_open_store_whose_files_are_replaced_tells_so_and_takes_nothing_along() {
    let mut folders = TestFolders::new();
    for thing in THINGS {
        let (copy, outside) = (folders.copy(), folders.outside());
        let db = Db::open(&copy, options()).expect("opens");
        let table = newest(&copy, ".table");
        let case = format!("{thing:?} in place of {table}");
        if !thing.put(&copy.join(&table), &outside) {
            continue;
        }
        let before = contents(&outside);
        let target = folders.root.path().join(format!("checkpoint of {thing:?}"));
        in_time(&case, move || {
            let error = db.checkpoint(&target).expect_err("a table is gone");
            assert!(names_it(&error, &table), "{error}");
            assert!(error.to_string().contains(thing.word()), "{error}");
            assert!(!target.join("MANIFEST").exists(), "half a checkpoint is no store");
            // Files that are open go on.
            assert_eq!(db.get(300u32.to_be_bytes()).expect("gets").as_deref(), Some(&*value(300)));
            db.put("late", "value").expect("puts");
            db.flush().expect("flushes");
            db.compact().expect("merges");
        });
        assert!(contents(&outside) == before, "{case}: what lies outside was changed");
    }
}

#[test]
fn what_repair_and_checkpoints_make_stays_in_their_folders() {
    let mut folders = TestFolders::new();
    for thing in THINGS {
        let (copy, outside) = (folders.copy(), folders.outside());
        // There is something to mend, and its place is taken.
        let table = copy.join(newest(&copy, ".table"));
        let mut bytes = fs::read(&table).expect("reads");
        bytes[20] ^= 1;
        fs::write(&table, bytes).expect("writes");
        let target = folders.root.path().join(format!("target of {thing:?}"));
        fs::create_dir(&target).expect("makes a folder");
        let case = format!("{thing:?}");
        if !thing.put(&copy.join("lost"), &outside) || !thing.put(&target.join("LOCK"), &outside) {
            continue;
        }
        let before = contents(&outside);
        let (path, of_checkpoint) = (copy.clone(), target.clone());
        let repaired = in_time(&case, move || repair(&path));
        match repaired {
            Ok(_) => assert_eq!(thing, Thing::Folder),
            Err(error) => assert!(names_it(&error, "lost"), "{case}: {error}"),
        }
        let db = Db::open(folders.sound(), options()).expect("opens");
        let made = in_time(&case, move || db.checkpoint(&of_checkpoint));
        let error = made.expect_err("its lock cannot be taken");
        assert!(names_it(&error, "LOCK"), "{case}: {error}");
        assert!(contents(&outside) == before, "{case}: what lies outside was changed");
        assert_eq!(names(&target), ["LOCK"], "{case}");
    }
}

/// Makes a file a terabyte long. Nothing is written.
fn stretch(path: &Path) {
    let file = fs::File::options().write(true).open(path).expect("opens");
    file.set_len(TERABYTE).expect("a file system with sparse files");
}

#[test]
fn a_sparse_terabyte_costs_no_memory_and_no_hours() {
    let mut folders = TestFolders::new();
    let sound = folders.sound();
    let kinds = [".table", ".filter", ".wal"].map(|kind| newest(&sound, kind));
    for name in std::iter::once("MANIFEST".to_string()).chain(kinds) {
        for is_emptied in [false, true] {
            for (call, f) in CALLS {
                let copy = folders.copy();
                let case = format!("{name}, emptied: {is_emptied}, {call}");
                if is_emptied {
                    fs::write(copy.join(&name), "").expect("empties");
                }
                stretch(&copy.join(&name));
                let path = copy.clone();
                let (outcome, memory) = in_time(&case, move || {
                    let mut outcome = None;
                    let memory = measure(|| outcome = Some(f(&path)));
                    (outcome.expect("it was called"), memory.bytes_max)
                });
                assert!(memory < MEMORY_MAX, "{case}: {memory} bytes of memory");
                if let Err(error) = &outcome {
                    assert!(names_it(error, &name), "{case}: {error}");
                }
                // Zeros behind what was written are what a crash leaves of a log or a manifest. In
                // other files they are damage.
                let is_needed = name == "MANIFEST" || name.ends_with(".table");
                if call == "open" && is_needed && (is_emptied || name.ends_with(".table")) {
                    assert!(outcome.is_err(), "{case}: {outcome:?}");
                }
                fs::remove_dir_all(copy).expect("removes");
            }
        }
    }
}

#[test]
fn a_file_that_shrinks_while_it_is_read_is_an_error() {
    let mut folders = TestFolders::new();
    for (direct, overlap) in [
        (DirectIo::default(), Overlap::OneByOne),
        (DirectIo::default(), Overlap::Pool),
        (DirectIo::ALL, Overlap::Ring),
    ] {
        for left in [0, 700] {
            let copy = folders.copy();
            let options = options().direct(direct).overlap(overlap);
            let db = Db::open(&copy, options).expect("opens");
            for name in names(&copy).iter().filter(|name| *name != "LOCK") {
                let file = fs::File::options().write(true).open(copy.join(name)).expect("opens");
                file.set_len(left.min(file.metadata().expect("has a length").len())).expect("cuts");
            }
            let case = format!("{direct:?}, {overlap:?}, {left} bytes left");
            in_time(&case, move || {
                let mut errors = 0;
                for row in 0..ROWS {
                    match db.get(row.to_be_bytes()) {
                        Ok(found) => assert_eq!(found.as_deref(), Some(&*value(row))),
                        Err(error) => {
                            assert!(names_it(&error, ".table"), "{error}");
                            errors += 1;
                        }
                    }
                }
                assert!(errors > 0, "nothing was read from the disk");
                let scanned: Result<Vec<_>, _> = db.range(..).collect();
                assert!(names_it(&scanned.expect_err("tables are cut"), ".table"));
                let verified = db.verify().map(|report| report.damage.len());
                assert!(verified.as_ref().map_or(true, |damage| *damage > 0), "{verified:?}");
            });
        }
    }
}
