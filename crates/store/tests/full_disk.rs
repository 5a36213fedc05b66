//! A file system that is really full, and then has room again.
//! ```text
//! [ ballast | store .......... | plug ]   every call that writes is refused
//! [         | store ..                ]   the same open store goes on, then it is opened again
//! ```
//! Invariant: nothing that was acknowledged is lost, reads are right all the time, and nothing is
//! left over.

mod mounts;

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mounts::{fill, free, on_file_system};
use trommel::options::Granularity;
use trommel::{Background, Db, Error, GuardKind, Options, SyncPolicy};

const FILE_SYSTEM_BYTES: u64 = 8 << 20;
/// The store has the rest, less than this: so there is room for a merge of everything when it is
/// gone.
const BALLAST_BYTES: u64 = 5 << 20;
/// Far more than there is room for.
const ROWS: u64 = 40_000;
/// From so many bytes on values are apart: all of them are, or none is.
const APART: usize = 256;
const WITHIN: usize = 16 << 10;
/// So often a test looks for room that a thread is to make.
const LOOKS: u32 = 2000;
const PAUSE: Duration = Duration::from_millis(10);

type Mode = (SyncPolicy, Granularity, Background, usize);

fn options((sync, granularity, background, threshold): Mode) -> Options {
    // One with an image beside the tables, and one within them.
    let guard = match granularity {
        Granularity::Full => GuardKind::Grf,
        _ => "blocked-bloom".parse().expect("known"),
    };
    Options::new()
        .guard(guard)
        .size_ratio(3)
        .write_buffer_bytes(64 << 10)
        .block_bytes(1024)
        .block_cache_bytes(0)
        .table_bytes(128 << 10)
        .partition_bytes(256 << 10)
        .merge_piece_bytes(128 << 10)
        .value_threshold(threshold)
        .sync(sync)
        .granularity(granularity)
        .background(background)
}

/// What does not compress.
fn value(row: u64) -> Vec<u8> {
    let mut state = row.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let words = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    words.take(60).flatten().collect()
}

fn key(row: u64) -> [u8; 8] {
    row.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

/// What was written. False: it gave an error.
#[derive(Default)]
struct Model(BTreeMap<[u8; 8], (u64, bool)>, u64);

impl Model {
    /// Writes the next row.
    fn put(&mut self, db: &Db) -> Result<(), Error> {
        let row = self.1;
        self.1 += 1;
        let put = db.put(key(row), value(row));
        self.0.insert(key(row), (row, put.is_ok()));
        put
    }

    /// `reopened`: what gave an error may be there.
    fn check(&self, db: &Db, reopened: bool) {
        let mut found = BTreeMap::new();
        for entry in db.range(..) {
            let (key, value) = entry.expect("reads");
            found.insert(<[u8; 8]>::try_from(&key[..]).expect("a key"), value);
        }
        for (key, (row, is_acknowledged)) in &self.0 {
            match found.remove(key) {
                Some(found) => {
                    assert!(*is_acknowledged || reopened, "row {row} gave an error, and is seen");
                    assert_eq!(*found, *value(*row), "row {row}");
                }
                None => assert!(!is_acknowledged, "row {row} was acknowledged, and is gone"),
            }
        }
        assert!(found.is_empty(), "rows that nobody wrote");
        for (key, (row, _)) in self.0.iter().filter(|(_, (_, is_there))| *is_there).step_by(50) {
            assert_eq!(db.get(key).expect("reads").as_deref(), Some(&*value(*row)), "row {row}");
        }
    }
}

fn names_a_full_disk(error: &Error) {
    let message = error.to_string();
    assert!(message.contains("No space left") && message.contains("make room"), "{message}");
}

/// Fills all that is left until a write, and then a call, are refused. (Threads of the store free
/// what they cannot use.)
fn is_refused<T>(db: &Db, place: &Path, model: &mut Model, call: impl Fn() -> Result<T, Error>) {
    for _ in 0..ROWS {
        fill(&place.join("plug"), u64::MAX);
        if let Err(error) = model.put(db).and_then(|()| call().map(drop)) {
            return names_a_full_disk(&error);
        }
    }
    panic!("it is not refused");
}

/// A key that no row has.
const STREAMED: [u8; 8] = *b"streamed";

/// What does not compress, of any length.
fn noise(bytes: usize) -> Vec<u8> {
    (0..).flat_map(value).take(bytes).collect()
}

/// A value that is longer than all that is left fills the disk, is refused, and takes nothing.
fn a_stream_is_refused(db: &Db, model: &mut Model) {
    let long = noise((FILE_SYSTEM_BYTES - BALLAST_BYTES) as usize + (1 << 20));
    let refused = db.put_reader(STREAMED, long.len() as u64, &long[..]);
    names_a_full_disk(&refused.expect_err("there is no room for it"));
    assert!(db.get_reader(STREAMED).expect("reads").is_none());
    for _ in 0..LOOKS {
        // A thread may still be removing what was written of it.
        if model.put(db).is_ok() {
            return;
        }
        std::thread::sleep(PAUSE);
    }
    panic!("what was written of it stays");
}

/// One that has room is there, until it is deleted.
fn a_stream_is_taken(db: &Db) {
    let (long, mut found) = (noise(1 << 20), Vec::new());
    db.put_reader(STREAMED, long.len() as u64, &long[..]).expect("there is room for it");
    let mut reader = db.get_reader(STREAMED).expect("reads").expect("it is there");
    reader.read_to_end(&mut found).expect("reads");
    assert!(found == long, "another value");
    db.delete(STREAMED).expect("there is room");
}

fn is_apart(options: &Options) -> bool {
    options.value_threshold == APART
}

/// Writes until the disk is full, and every call that writes is refused.
fn write_until_full(db: &Db, place: &Path, model: &mut Model) {
    for _ in 0..ROWS {
        let written = model.put(db).and_then(|()| db.step().map(drop));
        if let Err(error) = written {
            names_a_full_disk(&error);
            break;
        }
    }
    let copy = place.join("copy");
    is_refused(db, place, model, || db.flush());
    is_refused(db, place, model, || db.sync());
    is_refused(db, place, model, || db.compact());
    is_refused(db, place, model, || {
        // One for which a thread had made room is whole: away with it, and try again.
        db.checkpoint(&copy).inspect(|()| fs::remove_dir_all(&copy).expect("removes"))
    });
    assert!(!copy.join("MANIFEST").exists(), "half a checkpoint is no store");
    let failure = db.stats().expect("open").failure.expect("writing has stopped");
    assert!(failure.contains("No space left"), "{failure}");
}

fn make_room(place: &Path) {
    for name in ["plug", "ballast"] {
        fs::remove_file(place.join(name)).expect("removes");
    }
    let _ = fs::remove_dir_all(place.join("copy"));
}

/// Names of files in a store's folder, each kind counted.
fn kinds(dir: &Path) -> BTreeMap<String, usize> {
    let mut kinds = BTreeMap::new();
    for entry in fs::read_dir(dir).expect("lists") {
        let name = entry.expect("an entry").file_name().to_string_lossy().into_owned();
        let kind = name.rsplit('.').next().expect("a name").to_string();
        *kinds.entry(kind).or_default() += 1;
    }
    kinds
}

/// A store that was closed in peace has its tables and files of values, and one of everything else.
fn nothing_is_left_over(dir: &Path, options: &Options, (tables, values): (u64, u64)) {
    let images = u64::from(options.guard == GuardKind::Grf);
    assert_eq!(values > 0, is_apart(options), "{values} files of values");
    let kinds = kinds(dir);
    let expected = [
        ("LOCK", 1),
        ("MANIFEST", 1),
        ("filter", images),
        ("table", tables),
        ("value", values),
        ("wal", 1),
    ];
    let expected = expected.into_iter().filter(|(_, count)| *count > 0);
    let expected = expected.map(|(kind, count)| (kind.to_string(), count as usize));
    assert_eq!(kinds, expected.collect::<BTreeMap<_, _>>());
}

fn table_count(db: &Db) -> u64 {
    let levels = db.stats().expect("open").levels;
    levels.iter().flat_map(|level| &level.runs).map(|run| run.tables).sum()
}

/// The store is opened again, is sound, and has no file too many when it was closed.
fn open_again(dir: &Path, options: &Options, model: &mut Model) {
    let db = Db::open(dir, options.clone()).expect("opens");
    model.check(&db, true);
    model.put(&db).expect("there is room");
    db.compact().expect("there is room");
    assert!(db.verify().expect("reads").damage.is_empty());
    let files = (table_count(&db), db.stats().expect("open").value_files);
    db.close().expect("closes");
    nothing_is_left_over(dir, options, files);
    let sound = trommel::tools::repair(dir).expect("looks at everything");
    assert!(!sound.changed && sound.lost.is_empty(), "{sound:?}");
}

fn fill_free_and_go_on(place: &Path, options: &Options) {
    let dir = place.join("db");
    fill(&place.join("ballast"), BALLAST_BYTES);
    let db = Db::open(&dir, options.clone()).expect("opens");
    let mut model = Model::default();
    if is_apart(options) {
        a_stream_is_refused(&db, &mut model);
    }
    write_until_full(&db, place, &mut model);
    model.check(&db, false);
    make_room(place);
    // The same open store goes on at once.
    model.put(&db).expect("there is room again");
    if is_apart(options) {
        a_stream_is_taken(&db);
    }
    for _ in 0..500 {
        model.put(&db).expect("there is room again");
    }
    db.flush().expect("there is room again");
    db.compact().expect("there is room again");
    model.check(&db, false);
    assert_eq!(db.stats().expect("open").failure, None);
    assert!(db.verify().expect("reads").damage.is_empty());
    let copy = place.join("copy");
    db.checkpoint(&copy).expect("there is room again");
    db.close().expect("closes");
    model.check(&Db::open(&copy, options.clone()).expect("opens the copy"), false);
    open_again(&dir, options, &mut model);
}

const INTERVAL: SyncPolicy = SyncPolicy::Interval(Duration::from_millis(5));

/// Every other one with values apart.
const MODES: [Mode; 6] = [
    (SyncPolicy::Always, Granularity::Full, Background::Threads(2), APART),
    (INTERVAL, Granularity::Partitioned, Background::Threads(2), WITHIN),
    (SyncPolicy::Never, Granularity::Partial, Background::Threads(1), APART),
    (SyncPolicy::Never, Granularity::Full, Background::Stepped, WITHIN),
    (INTERVAL, Granularity::Partial, Background::Stepped, APART),
    (SyncPolicy::Always, Granularity::Partitioned, Background::Stepped, WITHIN),
];

/// Does it on an empty file system, in every mode.
fn in_every_mode(test: &str, work: impl Fn(&Path, &Options)) {
    let Some(place) = on_file_system(test, FILE_SYSTEM_BYTES) else { return };
    for mode in MODES {
        eprintln!("{mode:?}");
        let own = place.join("own");
        fs::create_dir(&own).expect("makes a folder");
        work(&own, &options(mode));
        fs::remove_dir_all(own).expect("removes");
    }
}

#[test]
fn a_store_goes_on_when_its_full_disk_has_room_again() {
    in_every_mode("a_store_goes_on_when_its_full_disk_has_room_again", fill_free_and_go_on);
}

#[test]
fn a_store_that_is_closed_on_a_full_disk_has_all_that_was_acknowledged() {
    let test = "a_store_that_is_closed_on_a_full_disk_has_all_that_was_acknowledged";
    in_every_mode(test, |place, options| {
        let dir = place.join("db");
        fill(&place.join("ballast"), BALLAST_BYTES);
        let db = Db::open(&dir, options.clone()).expect("opens");
        let mut model = Model::default();
        write_until_full(&db, place, &mut model);
        fill(&place.join("plug"), u64::MAX);
        db.close().unwrap_or_else(|error| names_a_full_disk(&error));
        // As long as it is full, all can be read and nothing written.
        let db = Db::open(&dir, options.clone()).expect("opens on a full disk");
        model.check(&db, true);
        is_refused(&db, place, &mut model, || db.flush());
        model.check(&db, true);
        drop(db);
        make_room(place);
        open_again(&dir, options, &mut model);
    });
}

/// Fills all that is left, then lets a call have some pages more until it succeeds; tells which
/// files lacked room.
fn page_by_page<T>(
    plug: &Path,
    pages: u64,
    mut call: impl FnMut() -> Result<T, Error>,
) -> (T, Vec<PathBuf>) {
    fill(plug, u64::MAX);
    let mut lacking = Vec::new();
    loop {
        match call() {
            Ok(done) => return (done, lacking),
            Err(error) => {
                names_a_full_disk(&error);
                assert!(free(plug, pages), "no room is enough: {error}");
                if let Error::Io { path, .. } = error {
                    lacking.push(path);
                }
            }
        }
    }
}

#[test]
fn a_manifest_without_room_for_its_edit_costs_nothing() {
    let test = "a_manifest_without_room_for_its_edit_costs_nothing";
    let Some(place) = on_file_system(test, FILE_SYSTEM_BYTES / 4) else { return };
    for (sync, granularity, ..) in [MODES[0], MODES[1], MODES[2]] {
        let own = place.join("own");
        let (dir, plug) = (own.join("db"), own.join("plug"));
        fs::create_dir(&own).expect("makes a folder");
        // Its rows fill tables and logs.
        let options = options((sync, granularity, Background::Stepped, WITHIN));
        let db = Db::open(&dir, options.clone()).expect("opens");
        let (mut model, mut manifests, mut logs, mut tables) = (Model::default(), 0, 0, 0);
        for _ in 0..400 {
            for _ in 0..8 {
                model.put(&db).expect("there is room");
            }
            let ((), lacking) = page_by_page(&plug, 1, || db.flush());
            let of = |kind: &str| lacking.iter().filter(|path| path.ends_with(kind)).count();
            manifests += of("MANIFEST") + of("MANIFEST.new");
            let with = |kind| lacking.iter().filter(|path| path.extension() == Some(kind)).count();
            tables += with("table".as_ref());
            logs += with("wal".as_ref());
            model.check(&db, false);
            fs::remove_file(&plug).expect("removes");
            if manifests > 1 && tables > 1 && logs > 1 {
                break;
            }
        }
        assert!(manifests > 1 && tables > 1 && logs > 1, "{manifests} {tables} {logs}");
        let ((), _) = page_by_page(&plug, 8, || db.compact());
        model.check(&db, false);
        fs::remove_file(&plug).expect("removes");
        db.close().expect("closes");
        open_again(&dir, &options, &mut model);
        fs::remove_dir_all(own).expect("removes");
    }
}

#[test]
fn a_store_that_finds_no_room_to_be_made_can_be_made_later() {
    let test = "a_store_that_finds_no_room_to_be_made_can_be_made_later";
    let Some(place) = on_file_system(test, FILE_SYSTEM_BYTES) else { return };
    let (dir, plug) = (place.join("db"), place.join("plug"));
    let mode = (SyncPolicy::Always, Granularity::Full, Background::Threads(1), WITHIN);
    let options = options(mode);
    let (db, lacking) = page_by_page(&plug, 1, || Db::open(&dir, options.clone()));
    assert!(!lacking.is_empty(), "it takes room");
    assert!(lacking.iter().all(|path| path.starts_with(&dir)), "{lacking:?}");
    // It writes as soon as there is room for that too.
    let ((), lacking) = page_by_page(&plug, 1, || db.put("drum", "turns"));
    assert!(!lacking.is_empty(), "it takes room");
    db.close().expect("closes");
    let db = Db::open(&dir, options).expect("opens on a full disk");
    assert_eq!(db.get("drum").expect("reads").as_deref(), Some(&b"turns"[..]));
}
