//! Everything that a reader may ask of a store, and what must hold whatever its files are.
//! ```text
//! files -> open -> verify, scans, gets, ranges, counts, stats     sound (verify finds nothing):
//!     close -> follow -> scans, gets                                all answers agree
//!                  writes, flush, merge, close, open again                  else:
//!     errors, or any answer, and an end
//! ```
//! Invariant: an error names the store's folder. Nothing panics, and no scan goes on for ever.

use std::collections::BTreeMap;
use std::io::Read;
use std::ops::Bound::{Excluded, Included};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use trommel::Environment;
use trommel::storage::{Memory, Storage};
use trommel::testing::ManualClock;
use trommel::tools::{DumpItem, VerifyReport, dump};
use trommel::{Background, Db, Error, FollowOptions, GuardKind, Options, SyncPolicy};

/// The folder of every store here.
pub(crate) const DIR: &str = "db";
/// More entries than any input of a fuzzer makes.
const ENTRIES_MAX: usize = 1 << 20;
/// Keys of a store that are asked for one by one.
const GETS_MAX: usize = 24;

/// Keys and their values.
pub(crate) type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

/// Options of small stores: everything happens early, and in steps.
pub(crate) fn options(guard: GuardKind) -> Options {
    Options::new()
        .guard(guard)
        .size_ratio(3)
        .write_buffer_bytes(4096)
        .block_bytes(256)
        .block_cache_bytes(4096)
        .table_bytes(4096)
        .value_threshold(256)
        .value_file_bytes(4096)
        .sync(SyncPolicy::Never)
        .background(Background::Stepped)
}

/// Opens the store on a disk.
pub(crate) fn open(disk: &Memory, guard: GuardKind) -> trommel::Result<Db> {
    Db::open_with(Path::new(DIR), options(guard), environment(disk))
}

/// The surroundings of a store on this disk.
pub(crate) fn environment(disk: &Memory) -> Environment {
    // It stands at 0, the same in every run.
    let clock = Arc::new(ManualClock::default());
    Environment::new().storage(Arc::new(disk.clone())).clock(clock)
}

/// A disk with these files in the store's folder.
pub(crate) fn disk_of(files: &[(String, Vec<u8>)]) -> Memory {
    let disk = Memory::new();
    disk.create_dir(Path::new(DIR)).expect("a new disk takes a folder");
    for (name, bytes) in files {
        disk.put_file(path(name), bytes.as_slice());
    }
    disk
}

/// The path of a file of the store.
pub(crate) fn path(name: &str) -> PathBuf {
    Path::new(DIR).join(name)
}

/// Requires of every error: it says where.
pub(crate) fn check_error(error: &Error) {
    let text = error.to_string();
    assert!(text.contains(DIR), "an error that names no place: {text}");
}

/// What a store has answered.
pub(crate) struct ReadBack {
    /// The keys of a scan, and their values.
    pub(crate) contents: Contents,
    /// `verify` found nothing.
    pub(crate) is_sound: bool,
}

/// Opens a store and asks everything. None: it does not open.
pub(crate) fn ask(disk: &Memory, guard: GuardKind) -> Option<ReadBack> {
    let db = open(disk, guard).inspect_err(check_error).ok()?;
    let is_sound = verify(&db).is_some_and(|report| report.damage.is_empty());
    let forward = collect(db.range(..), is_sound);
    let mut backward = collect(db.range(..).rev(), is_sound);
    let contents: Contents = forward.iter().cloned().collect();
    if is_sound {
        backward.reverse();
        assert_eq!(forward, backward, "backward is not forward");
        let ascending = forward.windows(2).all(|pair| pair[0].0 < pair[1].0);
        assert!(ascending, "a scan that does not ascend");
    }
    ask_keys(&db, &contents, is_sound);
    ask_ranges(&db, &contents, is_sound);
    ask_streams(&db, &contents, is_sound);
    let stats = db.stats().expect("open");
    assert!(!stats.prometheus().is_empty() && stats.memory_bytes() > 0);
    // What a killed writer wrote last counts from then on.
    let is_closed = db.sync().and_then(|()| db.close()).inspect_err(check_error).is_ok();
    follow(disk, &contents, is_sound && is_closed);
    Some(ReadBack { contents, is_sound })
}

/// Another process reads along what was closed: it has all of it.
fn follow(disk: &Memory, contents: &Contents, is_sound: bool) {
    let follower = match Db::follow_with(DIR, FollowOptions::new(), environment(disk)) {
        Ok(follower) => follower,
        Err(error) => {
            check_error(&error);
            assert!(!is_sound, "a sound store that cannot be followed: {error}");
            return;
        }
    };
    for again in [false, true] {
        let caught_up = follower.catch_up().inspect_err(check_error);
        assert!(caught_up.is_ok() || !is_sound, "again: {again}");
        match follower.range(..) {
            Ok(scan) => {
                let pairs = collect(scan, is_sound);
                assert!(!is_sound || pairs.iter().cloned().eq(contents.clone()), "it lags behind");
            }
            Err(error) => check_error(&error),
        }
    }
    for key in probes(contents) {
        match follower.get(&key) {
            Ok(value) => {
                assert!(!is_sound || value.as_deref() == contents.get(&key).map(|it| &**it))
            }
            Err(error) => check_error(&error),
        }
    }
}

/// None: the disk would not be read.
fn verify(db: &Db) -> Option<VerifyReport> {
    let report = db.verify().inspect_err(check_error).ok()?;
    assert!(report.damage.iter().all(|text| text.contains(DIR)), "{:?}", report.damage);
    Some(report)
}

type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

fn collect(
    scan: impl Iterator<Item = trommel::Result<trommel::KeyValue>>,
    is_sound: bool,
) -> Pairs {
    let mut pairs = Pairs::new();
    for entry in scan {
        match entry {
            Ok((key, value)) => pairs.push((key.to_vec(), value.to_vec())),
            Err(error) => {
                check_error(&error);
                assert!(!is_sound, "verify finds nothing, a scan does: {error}");
            }
        }
        assert!(pairs.len() < ENTRIES_MAX, "a scan without an end");
    }
    pairs
}

/// Keys of the store, and others beside them.
fn probes(contents: &Contents) -> Vec<Vec<u8>> {
    let step = contents.len().div_ceil(GETS_MAX).max(1);
    let mut keys = vec![vec![], vec![0], vec![0xff; 9]];
    for key in contents.keys().step_by(step) {
        keys.push(key.clone());
        keys.push([&key[..], &[0]].concat());
        keys.push(key[..key.len() / 2].to_vec());
    }
    keys
}

fn ask_keys(db: &Db, contents: &Contents, is_sound: bool) {
    for key in probes(contents) {
        match db.get(&key) {
            Ok(found) if is_sound => {
                let expected = contents.get(&key).map(|value| &value[..]);
                assert_eq!(found.as_deref(), expected, "get and scan differ: {key:?}");
            }
            Ok(_) => {}
            Err(error) => {
                check_error(&error);
                assert!(!is_sound, "verify finds nothing, get does: {error}");
            }
        }
    }
}

/// Values as streams, and a scan of keys alone.
fn ask_streams(db: &Db, contents: &Contents, is_sound: bool) {
    for key in probes(contents) {
        let mut found = Vec::new();
        let read = db.get_reader(&key).inspect_err(check_error).map(|reader| {
            reader.map(|mut reader| {
                let len = reader.len();
                reader.read_to_end(&mut found).map(|read| assert_eq!(read as u64, len))
            })
        });
        if is_sound {
            let read = read.expect("verify finds nothing").transpose().expect("no damage");
            let expected = contents.get(&key);
            assert_eq!(read.map(|()| &found), expected, "a stream differs: {key:?}");
        }
    }
    let alone = collect(db.range(..).keys_only(), is_sound);
    if is_sound {
        assert!(alone.iter().map(|(key, _)| key).eq(contents.keys()), "keys alone differ");
    }
}

fn ask_ranges(db: &Db, contents: &Contents, is_sound: bool) {
    let mut bounds = probes(contents);
    bounds.sort_unstable();
    for pair in bounds.windows(2) {
        let (from, to) = (&pair[0][..], &pair[1][..]);
        let expected = contents.range::<[u8], _>((Included(from), Excluded(to)));
        let expected: Pairs = expected.map(|(key, value)| (key.clone(), value.clone())).collect();
        let found = collect(db.range(from..to), is_sound);
        let may = db.may_contain_range(from..to).inspect_err(check_error);
        let count = db.approximate_count(from..to).inspect_err(check_error);
        if is_sound {
            assert_eq!(found, expected, "a range differs from the scan of all: {pair:?}");
            assert!(may.is_ok_and(|may| may || expected.is_empty()), "a wrong no: {pair:?}");
            let (count, there) = (count.expect("nothing is damaged"), expected.len() as u64);
            // Old entries count: there may be fewer keys than entries.
            let is_right = count.least <= count.most && there <= count.most;
            assert!(is_right, "{count:?} of {there}: {pair:?}");
        }
    }
}

/// Writes, flushes, merges, closes and opens again with another guard. Requires: the store opens;
/// if `sound`, it holds these.
pub(crate) fn go_on(disk: &Memory, guards: (GuardKind, GuardKind), sound: Option<&Contents>) {
    let result = write_and_merge(disk, guards, sound);
    if let Err(error) = result {
        check_error(&error);
        assert!(sound.is_none(), "a sound store does not go on: {error}");
    }
}

fn write_and_merge(
    disk: &Memory,
    (guard, other): (GuardKind, GuardKind),
    sound: Option<&Contents>,
) -> trommel::Result<()> {
    let db = open(disk, guard)?;
    let mut expected = sound.cloned().unwrap_or_default();
    db.put("a new key", "a new value")?;
    expected.insert(b"a new key".to_vec(), b"a new value".to_vec());
    if let Some(key) = expected.keys().next_back().cloned() {
        db.delete(&key)?;
        expected.remove(&key);
    }
    delete_a_third(&db, &mut expected, sound.is_some())?;
    db.flush()?;
    db.put("later", "still in the log")?;
    expected.insert(b"later".to_vec(), b"still in the log".to_vec());
    db.settle()?;
    db.close()?;
    for merge in [false, true] {
        let db = open(disk, other)?;
        if merge {
            db.compact()?;
        }
        let found = collect(db.range(..), sound.is_some());
        if sound.is_some() {
            let found: Contents = found.into_iter().collect();
            assert_eq!(found, expected, "after writing, merged: {merge}");
            let report = verify(&db).expect("the disk can be read");
            assert_eq!(report.damage, [""; 0], "after writing, merged: {merge}");
        }
        db.close()?;
    }
    Ok(())
}

/// Deletes the range of the third of the keys in the middle, and looks from both ends at what is
/// left, before a flush.
fn delete_a_third(db: &Db, expected: &mut Contents, is_sound: bool) -> trommel::Result<()> {
    let all = |backward: bool| {
        let scan = db.range(..);
        if backward { collect(scan.rev(), is_sound) } else { collect(scan, is_sound) }
    };
    let mut keys: Vec<_> = all(false).into_iter().map(|(key, _)| key).collect();
    keys.sort_unstable();
    let third = |nth: usize| keys.get(nth * keys.len() / 3);
    let (Some(from), Some(to)) = (third(1), third(2)) else { return Ok(()) };
    db.delete_range(from, to)?;
    expected.retain(|key, _| key < from || key >= to);
    let (forward, mut backward) = (all(false), all(true));
    if is_sound {
        backward.reverse();
        assert_eq!(forward, backward, "backward is not forward beside a deleted range");
        let forward: Contents = forward.into_iter().collect();
        assert_eq!(forward, *expected, "beside a deleted range");
    }
    Ok(())
}

/// Dumps a file or a folder; gives how many places are named as damaged.
pub(crate) fn dump_all(disk: &Memory, path: &Path) -> usize {
    let (mut damaged, mut items) = (0, 0);
    let result = dump(disk, path, &mut |item| {
        damaged += usize::from(matches!(item, DumpItem::Damage { .. }));
        items += 1;
        assert!(items < ENTRIES_MAX, "a dump without an end");
        std::ops::ControlFlow::Continue(())
    });
    if let Err(error) = result {
        check_error(&error);
        damaged += 1;
    }
    damaged
}
