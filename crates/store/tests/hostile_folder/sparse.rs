//! Files of a terabyte with nothing in them, and how much memory a process has at most that reads
//! them.
//! ```text
//! test -> this test again, in a process of its own, for each file and call -> VmHWM before, after
//! ```
//! Invariant: it grows by what `Stats` tells of, and by `BESIDE_BYTES`, whatever lengths files
//! have. Code that takes a file into memory as a whole takes `HOLES_BYTES` of holes with it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use trommel::Db;
use trommel::tools::verify_files;

use crate::deeds::Deed;
use crate::ground::{
    ROWS, TestFolders, dump_all, names_it, newest, open_and_read, options, peek_at, repair_it,
};

/// Beside what `Stats` tells of: a window of a log, what was read of tables at once, the pages of
/// the program that were used.
const BESIDE_BYTES: u64 = 24 << 20;
/// What is given of holes, as zeros.
const HOLES_BYTES: u64 = 64 << 20;

const FOLDER: &str = "TROMMEL_SPARSE_FOLDER";
const CALL: &str = "TROMMEL_SPARSE_CALL";

/// The most memory that this process ever had.
fn peak_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux tells");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("a known line");
    let kib: u64 = line.split_whitespace().nth(1).expect("a number").parse().expect("a number");
    kib << 10
}

/// Reads all that an open store can be asked for. What `Stats` says of memory at the end.
fn get_and_verify(path: &Path) -> Result<u64, trommel::Error> {
    let db = Db::open(path, options())?;
    let found = (0..ROWS).try_for_each(|row| db.get(row.to_be_bytes()).map(drop));
    let scanned = db.range(..).try_for_each(|entry| entry.map(drop));
    let verified = db.verify().map(drop);
    let bytes = db.stats()?.memory_bytes();
    found.and(scanned).and(verified).map(|()| bytes)
}

/// The file of a folder that is called by it.
fn file_of(folder: &Path) -> String {
    folder.extension().expect("it is called by the file").to_string_lossy().replace('-', ".")
}

/// As above, of a store whose file grows when it is open.
fn grow_in_use(path: &Path) -> Result<u64, trommel::Error> {
    let db = Db::open(path, options())?;
    Deed::GrowByAHole.apply(&path.join(file_of(path)));
    let found = (0..ROWS).try_for_each(|row| db.get(row.to_be_bytes()).map(drop));
    let verified = db.verify().map(drop);
    let copied = db.checkpoint(path.with_extension("copy"));
    let merged = db.put("late", "value").and_then(|()| db.compact());
    let bytes = db.stats()?.memory_bytes();
    found.and(verified).and(copied).and(merged).map(|()| bytes)
}

const IN_USE: &str = "grown in use";

/// What is done, by its name, and what of holes it may take. What `Stats` says of memory, where
/// there is somebody to say it.
type Work = (&'static str, u64, fn(&Path) -> Result<u64, trommel::Error>);

const WORKS: [Work; 7] = [
    (IN_USE, 0, grow_in_use),
    ("get and verify", 0, get_and_verify),
    ("open, write and close", 0, |path| open_and_read(path).map(|_| 0)),
    ("peek", 0, |path| peek_at(path).map(|_| 0)),
    ("verify_files", HOLES_BYTES, |path| verify_files(path).map(|_| 0)),
    ("dump", HOLES_BYTES, |path| dump_all(path).map(|_| 0)),
    ("repair", HOLES_BYTES, |path| repair_it(path).map(|_| 0)),
];

/// The work of a process of its own.
fn work(folder: &Path, call: &str) {
    let (_, of_holes, f) = WORKS.iter().find(|(name, ..)| *name == call).expect("a known call");
    let before = peak_bytes();
    let outcome = f(folder);
    let (grown, known) = (peak_bytes() - before, *outcome.as_ref().unwrap_or(&0));
    let most = known + of_holes + BESIDE_BYTES;
    assert!(grown <= most, "{grown} bytes, of which {known} are known: {outcome:?}");
    if let Err(error) = outcome {
        assert!(names_it(&error, &file_of(folder)), "{error}");
    }
    println!("it grew by {} MiB", grown >> 20);
}

/// Adds values in a file of their own: one that a table refers to, and one that the log does. While
/// the store stays open, copies are as after a kill: the last value may not be durable.
fn add_values_apart(store: &Path) -> Db {
    let db = Db::open(store, options()).expect("opens");
    db.put("flushed", [7; 20 << 10]).and_then(|()| db.flush()).expect("flushes");
    db.put("logged", [8; 20 << 10]).expect("puts");
    db
}

fn in_own_process(call: &str, folder: &Path) {
    let test = "sparse::a_sparse_terabyte_leaves_the_peak_of_memory_low";
    let mut again = Command::new(std::env::current_exe().expect("this program"));
    again.args(["--exact", test, "--nocapture", "--test-threads=1"]);
    let done = again.env(FOLDER, folder).env(CALL, call).output().expect("starts");
    let [stdout, errors] =
        [done.stdout, done.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    let is_done =
        done.status.success() && stdout.contains("1 passed") && stdout.contains("it grew by");
    assert!(is_done, "{call}, {}: {stdout}\n{errors}", folder.display());
}

#[test]
fn a_sparse_terabyte_leaves_the_peak_of_memory_low() {
    if let (Some(folder), Ok(call)) = (std::env::var_os(FOLDER), std::env::var(CALL)) {
        return work(&PathBuf::from(folder), &call);
    }
    let mut folders = TestFolders::new();
    let sound = folders.sound();
    let _open = add_values_apart(&sound);
    let kinds = [".table", ".filter", ".wal", ".value"].map(|kind| newest(&sound, kind));
    for name in std::iter::once("MANIFEST".to_string()).chain(kinds) {
        for is_emptied in [false, true] {
            for (call, ..) in WORKS {
                let copy = folders.copy();
                let folder = copy.with_extension(name.replace('.', "-"));
                fs::rename(copy, &folder).expect("renames");
                if is_emptied && call != IN_USE {
                    Deed::Empty.apply(&folder.join(&name));
                }
                if call != IN_USE {
                    Deed::GrowByAHole.apply(&folder.join(&name));
                }
                in_own_process(call, &folder);
                fs::remove_dir_all(folder).expect("removes");
            }
        }
    }
}
