//! Opening after every prefix of a log and of a manifest, and after every damaged byte of a small
//! store: on the simulated disk, and in a short form on the real one.
//! ```text
//! writes      w1   w2   w3          files and model are kept after each
//! log         |----|----|----|      cut anywhere: the state of the writes that are whole
//! manifest    |------|----|     cut anywhere: all that was written, or a refusal that names a file
//! ```
//! Invariant: every expected answer is exact. With `SyncPolicy::Always` nothing acknowledged may be
//! missing, unless its own bytes are.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use trommel::Environment;
use trommel::storage::{Disk, Memory, Storage};
use trommel::{Background, Batch, Db, GuardKind, Options, SyncPolicy};
use trommel_guards::kinds;

/// The folder of every store on a simulated disk.
const DIR: &str = "db";
const GUARDS: [GuardKind; 3] =
    [GuardKind::Open, GuardKind::Table(kinds::BLOCKED_BLOOM), GuardKind::Grf];

type Contents = BTreeMap<String, String>;
type Files = BTreeMap<String, Vec<u8>>;

fn options(guard: GuardKind, write_buffer_bytes: usize) -> Options {
    Options::new()
        .guard(guard)
        .size_ratio(3)
        .write_buffer_bytes(write_buffer_bytes)
        .block_bytes(256)
        .block_cache_bytes(0)
        .sync(SyncPolicy::Always)
        .background(Background::Stepped)
}

/// A disk, and the store's folder on it.
struct Place {
    storage: Arc<dyn Storage>,
    dir: PathBuf,
    /// Keeps the real folder alive.
    _folder: Option<tempfile::TempDir>,
}

impl Place {
    fn simulated(files: &Files) -> Place {
        let disk = Memory::new();
        disk.create_dir(Path::new(DIR)).expect("makes the folder");
        files.iter().for_each(|(name, bytes)| disk.put_file(Path::new(DIR).join(name), &bytes[..]));
        Place { storage: Arc::new(disk), dir: DIR.into(), _folder: None }
    }

    fn real(files: &Files) -> Place {
        let folder = tempfile::tempdir().expect("makes a folder");
        for (name, bytes) in files {
            std::fs::write(folder.path().join(name), bytes).expect("writes");
        }
        let dir = folder.path().to_path_buf();
        Place { storage: Arc::new(Disk), dir, _folder: Some(folder) }
    }

    fn open(&self, guard: GuardKind) -> trommel::Result<Db> {
        let storage = Arc::clone(&self.storage);
        let environment = Environment::new().storage(storage);
        Db::open_with(&self.dir, options(guard, 4096), environment)
    }

    /// What the store holds; or why it is refused, which names one of its files.
    fn contents(&self, guard: GuardKind) -> Result<Contents, String> {
        let db = self.open(guard).map_err(|error| self.named(&error))?;
        let mut contents = Contents::new();
        for entry in db.range(..) {
            let (key, value) = entry.map_err(|error| self.named(&error))?;
            contents.insert(text(&key), text(&value));
        }
        for (key, value) in &contents {
            let found = db.get(key).map_err(|error| self.named(&error))?;
            assert_eq!(found.as_deref(), Some(value.as_bytes()), "get and scan differ: {key}");
        }
        Ok(contents)
    }

    fn named(&self, error: &trommel::Error) -> String {
        let message = error.to_string();
        let files = ["MANIFEST", ".wal", ".table", ".filter"];
        let is_named = message.contains(&self.dir.display().to_string())
            && files.iter().any(|file| message.contains(file));
        assert!(is_named, "no file is named: {message}");
        message
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("keys and values are text here")
}

fn files_of(disk: &Memory) -> Files {
    let names = disk.list(Path::new(DIR)).expect("lists").into_iter();
    let names = names.filter(|name| name != "LOCK");
    names
        .map(|name| (name.clone(), disk.file(Path::new(DIR).join(name)).expect("is there")))
        .collect()
}

/// A store as it was at one moment, and what it holds then.
#[derive(Clone)]
struct StoreState {
    files: Files,
    contents: Contents,
}

/// Writes that are kept moment by moment.
struct History {
    disk: Memory,
    db: Db,
    contents: Contents,
    moments: Vec<StoreState>,
}

impl History {
    fn begin(guard: GuardKind, write_buffer_bytes: usize) -> History {
        let disk = Memory::new();
        let environment = Environment::new().storage(Arc::new(disk.clone()));
        let options = options(guard, write_buffer_bytes);
        let db = Db::open_with(Path::new(DIR), options, environment).expect("opens");
        History { disk, db, contents: Contents::new(), moments: Vec::new() }
    }

    fn keep(&mut self) {
        let (files, contents) = (files_of(&self.disk), self.contents.clone());
        self.moments.push(StoreState { files, contents });
    }

    fn put(&mut self, key: &str, value: &str) {
        self.db.put(key, value).expect("puts");
        self.contents.insert(key.into(), value.into());
        self.keep();
    }

    fn delete(&mut self, key: &str) {
        self.db.delete(key).expect("deletes");
        self.contents.remove(key);
        self.keep();
    }

    /// Puts and deletions that land together.
    fn batch(&mut self, puts: &[(&str, &str)], deletes: &[&str]) {
        let mut batch = Batch::new();
        for (key, value) in puts {
            batch.put(key, value);
            self.contents.insert((*key).into(), (*value).into());
        }
        for key in deletes {
            batch.delete(key);
            self.contents.remove(*key);
        }
        self.db.write(batch).expect("writes");
        self.keep();
    }

    fn work(&mut self, work: impl FnOnce(&Db) -> trommel::Result<()>) {
        work(&self.db).expect("works");
        self.keep();
    }

    fn close(self) -> Vec<StoreState> {
        let History { disk, db, contents, mut moments } = self;
        db.close().expect("closes");
        moments.push(StoreState { files: files_of(&disk), contents });
        moments
    }
}

/// Writes of every kind, over some that are in tables already.
fn write_all_kinds(history: &mut History) {
    history.put("a", "first");
    history.put("b", "");
    history.put("a", "second");
    history.delete("b");
    history.delete("never there");
    history.batch(&[("b", "in a batch"), ("c", "in a batch"), ("", "the empty key")], &["a"]);
    history.batch(&[], &["in a table"]);
    history.put("long", &"x".repeat(300));
}

fn logs(files: &Files) -> Vec<String> {
    files.keys().filter(|name| name.ends_with(".wal")).cloned().collect()
}

fn cut(files: &Files, name: &str, len: usize) -> Files {
    let mut files = files.clone();
    files.get_mut(name).expect("is there").truncate(len);
    files
}

/// What a log that is cut at `len` must give: the last moment at which it was no longer than that.
fn state_at<'m>(moments: &'m [StoreState], log: &str, len: usize) -> &'m Contents {
    let is_whole =
        |moment: &&StoreState| moment.files.get(log).is_some_and(|bytes| bytes.len() <= len);
    let last = moments.iter().rev().find(is_whole);
    &last.unwrap_or(&moments[0]).contents
}

/// The moments of a store with a table and a log; at the first of them the log is empty.
fn one_log(guard: GuardKind) -> Vec<StoreState> {
    let mut history = History::begin(guard, 4096);
    history.put("in a table", "flushed");
    history.work(Db::flush);
    history.moments = vec![history.moments.pop().expect("was kept")];
    write_all_kinds(&mut history);
    history.moments
}

/// A log's header and its first record: `docs/format.md`.
fn beginning_bytes(log: &[u8]) -> usize {
    let payload = log[16..20].try_into().expect("four bytes");
    28 + u32::from_le_bytes(payload) as usize
}

/// A log that the manifest tells of is durable as far as its first record: no crash has cut it
/// there.
#[track_caller]
fn is_no_crash(found: Result<Contents, String>, case: &str) {
    let error = found.expect_err(case);
    assert!(error.contains("first record is missing"), "{case}: {error}");
}

fn check_log_prefixes(guard: GuardKind, step: usize, place: fn(&Files) -> Place) {
    let moments = one_log(guard);
    let whole = &moments.last().expect("not empty").files;
    let names = logs(whole);
    assert_eq!(names.len(), 1, "{names:?}");
    for len in (0..=whole[&names[0]].len()).step_by(step) {
        let case = format!("{guard}, {} cut at {len}", names[0]);
        let place = place(&cut(whole, &names[0], len));
        if len < beginning_bytes(&whole[&names[0]]) {
            is_no_crash(place.contents(guard), &case);
            continue;
        }
        let expected = state_at(&moments, &names[0], len);
        assert_eq!(place.contents(guard).as_ref(), Ok(expected), "{case}");
        // It goes on from there, and no later write brings back what is lost.
        let db = place.open(guard).expect("opens");
        db.put("later", "write").expect("puts");
        drop(db);
        let mut expected = expected.clone();
        expected.insert("later".into(), "write".into());
        assert_eq!(place.contents(guard), Ok(expected), "{case}, then written");
    }
}

#[test]
fn a_log_that_is_cut_anywhere_gives_the_writes_that_are_whole() {
    GUARDS.into_iter().for_each(|guard| check_log_prefixes(guard, 1, Place::simulated));
}

#[test]
fn a_log_that_is_cut_gives_the_writes_that_are_whole_on_the_real_disk() {
    check_log_prefixes(GuardKind::Grf, 23, Place::real);
}

/// The moments of a store whose full memtable waits with its log while the next log is written.
fn two_logs() -> Vec<StoreState> {
    let mut history = History::begin(GuardKind::Grf, 1024);
    history.put("in a table", "flushed");
    history.work(Db::flush);
    history.moments = vec![history.moments.pop().expect("was kept")];
    write_all_kinds(&mut history);
    for number in 0..40 {
        history.put(&format!("key {}", number % 7), &number.to_string().repeat(9));
        if logs(&files_of(&history.disk)).len() == 2 {
            break;
        }
    }
    history.batch(&[("in the second", "log"), ("a", "again")], &["c", "key 1"]);
    history.delete("key 2");
    history.moments
}

fn check_two_logs(step: usize, place: fn(&Files) -> Place) {
    let moments = two_logs();
    let whole = &moments.last().expect("not empty").files;
    let [first, second] = &logs(whole)[..] else { panic!("not two logs: {:?}", logs(whole)) };
    let contents = |files: &Files| place(files).contents(GuardKind::Grf);
    let with_second = moments.iter().position(|moment| moment.files.contains_key(second));
    let with_second = with_second.expect("the second log was begun");
    for len in (0..=whole[second].len()).step_by(step) {
        // Cut before its first group it adds nothing to the first log.
        let states = &moments[with_second - 1..];
        let expected = state_at(states, second, len);
        let found = contents(&cut(whole, second, len));
        if len < beginning_bytes(&whole[second]) {
            is_no_crash(found, &format!("the second log cut at {len}"));
            continue;
        }
        assert_eq!(found.as_ref(), Ok(expected), "the second log cut at {len}");
    }
    for len in (0..whole[first].len()).step_by(step) {
        let refused = contents(&cut(whole, first, len));
        let refused = refused.expect_err("the next log says how long it is");
        assert!(refused.contains(".wal"), "the first log cut at {len}: {refused}");
    }
}

#[test]
fn of_two_logs_the_second_may_be_cut_and_the_first_may_not() {
    check_two_logs(1, Place::simulated);
}

#[test]
fn of_two_logs_the_second_may_be_cut_and_the_first_may_not_on_the_real_disk() {
    check_two_logs(29, Place::real);
}

/// Edits of every kind: flushes, merges inside and into the last level, an image, tables that
/// leave; and a peaceful end.
fn many_edits(guard: GuardKind) -> Vec<StoreState> {
    let mut history = History::begin(guard, 4096);
    history.keep();
    for round in 0..4 {
        for number in 0..6 {
            history.put(&format!("key {}", 3 * number + round), &format!("round {round}"));
        }
        history.delete(&format!("key {}", 3 * round));
        history.work(Db::flush);
        history.work(Db::settle);
    }
    history.work(Db::compact);
    write_all_kinds(&mut history);
    history.work(Db::flush);
    history.put("last", "in the log");
    history.close()
}

/// Cuts the manifest of each moment anywhere behind the one before it, and once at every place.
/// Gives how many stores opened with a manifest that was cut, and how many were refused.
fn check_manifest_prefixes(
    guard: GuardKind,
    step: usize,
    place: fn(&Files) -> Place,
) -> (usize, usize) {
    const NAME: &str = "MANIFEST";
    let (mut opened, mut refused, mut before) = (0, 0, 0);
    let moments = many_edits(guard);
    let last = moments.len() - 1;
    for (at, moment) in moments.iter().enumerate() {
        let len = moment.files[NAME].len();
        assert_eq!(place(&moment.files).contents(guard).as_ref(), Ok(&moment.contents));
        let from = if at == last || len < before { 0 } else { before };
        for cut_at in (from..len).step_by(step) {
            match place(&cut(&moment.files, NAME, cut_at)).contents(guard) {
                Ok(found) => {
                    assert_eq!(found, moment.contents, "{guard}: moment {at}, cut at {cut_at}");
                    opened += 1;
                }
                Err(_) => refused += 1,
            }
        }
        before = len;
    }
    (opened, refused)
}

#[test]
fn a_manifest_that_is_cut_anywhere_loses_nothing_unnoticed() {
    for guard in GUARDS {
        let (opened, refused) = check_manifest_prefixes(guard, 1, Place::simulated);
        assert!(refused > 100, "{guard}: {opened} opened, {refused} refused");
        // Without its image alone, a global filter is made anew.
        assert!(opened > 0 || guard != GuardKind::Grf, "{guard}: {opened} opened");
    }
}

#[test]
fn a_manifest_that_is_cut_loses_nothing_unnoticed_on_the_real_disk() {
    let (_, refused) = check_manifest_prefixes(GuardKind::Grf, 31, Place::real);
    assert!(refused > 5, "{refused}");
}

/// Flips bits of every byte of every file of a store that was closed: then all was durable, and
/// shows it.
fn check_flips(guard: GuardKind, step: usize, place: fn(&Files) -> Place) {
    let mut history = History::begin(guard, 4096);
    (0..30).for_each(|number| history.put(&format!("key {number:02}"), "in the last level"));
    history.work(Db::compact);
    (10..16).for_each(|number| history.put(&format!("key {number:02}"), "newer"));
    history.work(Db::flush);
    write_all_kinds(&mut history);
    let Some(StoreState { files, contents }) = history.close().pop() else { panic!("no moment") };
    let kinds = ["MANIFEST", ".wal", ".table"];
    assert!(kinds.iter().all(|kind| files.keys().any(|name| name.contains(kind))), "a kind lacks");
    let is_global = guard == GuardKind::Grf;
    assert_eq!(files.keys().any(|name| name.ends_with(".filter")), is_global, "the image");
    for (name, bytes) in &files {
        for at in (0..bytes.len()).step_by(step) {
            for mask in [0x01, 0x80, 0xff] {
                let mut damaged = files.clone();
                damaged.get_mut(name).expect("is there")[at] ^= mask;
                if let Ok(found) = place(&damaged).contents(guard) {
                    assert_eq!(found, contents, "{guard}: byte {at} of {name}, mask {mask:02x}");
                }
            }
        }
    }
}

#[test]
fn every_damaged_byte_of_a_closed_store_is_refused_or_harmless() {
    GUARDS.into_iter().for_each(|guard| check_flips(guard, 1, Place::simulated));
}

#[test]
fn a_damaged_byte_of_a_closed_store_is_refused_or_harmless_on_the_real_disk() {
    check_flips(GuardKind::Grf, 41, Place::real);
}
