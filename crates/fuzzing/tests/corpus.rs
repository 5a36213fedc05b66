//! The corpus of the fuzzers, and mutations of it, on a stable toolchain.
//! ```text
//! fuzz/corpus/TARGET/*  -> body       each of them, mutated again and again -> body
//! ```
//! Invariant: the same files and seeds give the same inputs; a failure names the input, and leaves
//! it in the test's output.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use trommel::Environment;
use trommel::storage::{Memory, Storage};
use trommel::{Background, Db, Options, SyncPolicy};
use trommel_fuzzing::{Mutator, TARGETS, Target, run, seeds};

/// Mutations of a target's corpus, shared out among its files.
const MUTATIONS: usize = 6000;

fn corpus(target: &Target) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target.name);
    let entries = std::fs::read_dir(&folder).expect("every target has a corpus");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("a file").path()).collect();
    paths.sort();
    let read = |path: PathBuf| {
        let bytes = std::fs::read(&path).expect("a file of the corpus");
        (path, bytes)
    };
    paths.into_iter().map(read).collect()
}

fn check(target: &Target, bytes: &[u8], what: &str) {
    let result = catch_unwind(AssertUnwindSafe(|| (target.body)(bytes)));
    let shown = bytes.escape_ascii();
    assert!(result.is_ok(), "{}, {what}: the body panics at \"{shown}\"", target.name);
}

fn check_target(name: &str) {
    let target = TARGETS.iter().find(|target| target.name == name).expect("a target");
    let files = corpus(target);
    assert!(!files.is_empty(), "{name} has no corpus");
    for (place, (path, bytes)) in files.iter().enumerate() {
        let what = path.file_name().expect("a file has a name").to_string_lossy();
        check(target, bytes, &what);
        let mut mutator = Mutator::new(place as u64);
        for nth in 0..MUTATIONS.div_ceil(files.len()) {
            let mut mutated = bytes.clone();
            mutator.mutate(&mut mutated);
            check(target, &mutated, &format!("{what}, mutation {nth}"));
        }
    }
}

macro_rules! targets {
    ($($name:ident),*) => {
        $(#[test]
        fn $name() {
            check_target(stringify!($name));
        })*

        #[test]
        fn every_target_is_tested() {
            assert_eq!(TARGETS.map(|target| target.name), [$(stringify!($name)),*]);
        }
    };
}

targets!(block, table, log, manifest, image, filter, grown, store, text, packed, values, backup);

#[test]
fn a_body_takes_any_short_input() {
    for target in TARGETS {
        for len in 0..6 {
            for byte in [0, 1, 2, 0x7f, 0xff] {
                run(target.name, &vec![byte; len]);
            }
        }
    }
}

#[test]
fn seeds_are_as_they_should_be() {
    for (target, name, bytes) in seeds() {
        let target = TARGETS.iter().find(|other| other.name == target).expect("a target");
        check(target, &bytes, &name);
    }
}

/// Found by reading: a scan went past a deleted range by a seek, which led back to a greater key
/// before it, again and again.
#[test]
fn found_keys_out_of_order_around_a_deleted_range() {
    let options = Options::new().background(Background::Stepped).sync(SyncPolicy::Never);
    let disk = Memory::new();
    let environment = Environment::new().storage(Arc::new(disk.clone()));
    let db = Db::open_with("db", options, environment).expect("opens");
    ["key 1", "key 5", "key 7", "key 8"].iter().for_each(|key| db.put(key, "value").expect("puts"));
    db.flush().expect("flushes");
    drop(db);
    let names = disk.list(Path::new("db")).expect("lists");
    let name = names.iter().find(|name| name.ends_with(".table")).expect("a flush makes one");
    let mut table = disk.file(Path::new("db").join(name)).expect("is there");
    // 1 5 7 8 -> 1 6 2 8: what keys share is as it was, their heads lie before the values.
    for (from, to) in [(b'5', b'6'), (b'7', b'2')] {
        let place = table.iter().position(|byte| *byte == from).expect("a key ends so");
        table[place] = to;
    }
    for guard in 0..trommel_guards::all_guards().len() as u8 {
        let input = [&[guard, 1][..], &table].concat();
        check(&TARGETS[1], &input, "keys out of order");
    }
}
