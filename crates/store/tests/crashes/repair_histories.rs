//! Repairs of stores with a past: random histories that end in a crash, then random damage.
//! ```text
//! seed -> writes, flushes, merge steps, scans held open -> crash -> damage -> repair
//!     -> what is there, against the model
//! ```
//! Invariant: what was not damaged is not lost; a value that is found was written; what is amiss is
//! told.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use trommel::Environment;
use trommel::storage::{Memory, Storage};
use trommel::tools::{RepairReport, repair_with};
use trommel::{Background, Db, Error, GuardKind, Options, SyncPolicy};

const DIR: &str = "db";
const KEYS: u64 = 60;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}

/// All values that each key ever had, None where it was deleted; the last one counts.
type Model = BTreeMap<String, Vec<Option<String>>>;

fn environment(disk: &Memory) -> Environment {
    Environment::new().storage(Arc::new(disk.clone()))
}

fn open(disk: &Memory, guard: GuardKind, seed: u64) -> trommel::Result<Db> {
    let options = Options::new()
        .guard(guard)
        .size_ratio(2 + (seed % 3) as u32)
        .write_buffer_bytes(1024)
        .block_bytes(256)
        .table_bytes(4096)
        .sync(SyncPolicy::Always)
        .background(Background::Stepped);
    Db::open_with(Path::new(DIR), options, environment(disk))
}

/// A disk after a crash, and what was acknowledged before it.
fn history(seed: u64) -> (Memory, Model) {
    let mut random = Random(seed);
    let mut disk = Memory::new();
    let mut model = Model::new();
    for session in 0..1 + random.below(3) {
        let db = open(&disk, GuardKind::Grf, seed).expect("opens");
        let mut held = Vec::new();
        for step in 0..30 + random.below(150) {
            let key = format!("key {:02}", random.below(KEYS));
            match random.below(20) {
                0 => db.flush().expect("flushes"),
                1 if step % 3 == 0 => db.compact().expect("compacts"),
                2 | 3 => {
                    db.step().expect("steps");
                }
                4 if held.len() < 2 => {
                    let mut scan = db.range(..);
                    scan.next();
                    held.push(scan);
                }
                5 => held.clear(),
                6..9 => {
                    db.delete(&key).expect("deletes");
                    model.entry(key).or_default().push(None);
                }
                _ => {
                    let value = format!("{seed} {session} {step:05}{:30}", "");
                    db.put(&key, &value).expect("puts");
                    model.entry(key).or_default().push(Some(value));
                }
            }
        }
        disk = if random.below(2) == 0 { disk.crash(seed) } else { disk.crash_hard() };
    }
    (disk, model)
}

fn files(disk: &Memory) -> Vec<PathBuf> {
    let names = disk.list(Path::new(DIR)).expect("lists").into_iter();
    let names = names.filter(|name| name != "LOCK" && name != "lost");
    names.map(|name| Path::new(DIR).join(name)).collect()
}

/// Damages a file; says what it has done.
fn damage(disk: &Memory, path: &Path, random: &mut Random) -> String {
    let name = path.display();
    let len = disk.file(path).expect("is there").len() as u64;
    match random.below(6) {
        0 => {
            disk.remove(path).expect("removes");
            format!("{name} removed")
        }
        1 if len > 0 => {
            let len = random.below(len);
            disk.truncate(path, len);
            format!("{name} cut to {len}")
        }
        _ if len > 0 => {
            let byte = random.below(len);
            disk.flip_bit(path, byte, random.below(8) as u32);
            format!("byte {byte} of {name} flipped")
        }
        _ => format!("{name} is empty"),
    }
}

fn contents(db: &Db) -> BTreeMap<String, String> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
    let entries = db.range(..).map(|entry| entry.expect("reads"));
    entries.map(|(key, value)| (text(&key), text(&value))).collect()
}

/// Repairs, and panics if the store does not open and verify then. None: it was of another version,
/// as it seemed.
fn repaired(
    disk: &Memory,
    seed: u64,
    case: &str,
) -> Option<(RepairReport, BTreeMap<String, String>)> {
    let report = match repair_with(DIR, &environment(disk)) {
        Ok(report) => report,
        Err(Error::Version { .. }) => return None,
        Err(error) => panic!("{case}: {error}"),
    };
    let mut found = Vec::new();
    for guard in [GuardKind::Open, GuardKind::Grf] {
        let db = open(disk, guard, seed).unwrap_or_else(|error| panic!("{case}: {error}"));
        let damage = db.verify().expect("verifies").damage;
        assert!(damage.is_empty(), "{case}: {damage:?} after {report:?}");
        found.push(contents(&db));
        if guard == GuardKind::Grf {
            db.compact().expect("compacts");
            assert_eq!(contents(&db), found[0], "{case}: after a merge");
        }
    }
    assert_eq!(found[0], found[1], "{case}: guards differ");
    found.pop().map(|found| (report, found))
}

fn check(model: &Model, report: &RepairReport, found: &BTreeMap<String, String>, case: &str) {
    for (key, value) in found {
        let was_written =
            model.get(key).is_some_and(|values| values.contains(&Some(value.clone())));
        assert!(was_written, "{case}: {key} never was {value}");
    }
    let is_torn = report.notes.iter().any(|note| note.contains("as a crash leaves them"));
    let doubts = |words: &str| report.doubts.iter().any(|doubt| doubt.what.contains(words));
    let may_be_incomplete = !report.lost.is_empty()
        || is_torn
        || doubts("it was merged into another")
        || doubts("follows it")
        // A manifest that is damaged as well may have named it.
        || (!report.doubts.is_empty() && case.contains(".table"))
        // Its torn end looks as after a crash.
        || case.contains(".wal");
    let may_bring_back = may_be_incomplete || doubts("left over from a merge");
    for (key, values) in model {
        match values.last().expect("a key of the model has values") {
            Some(value) => {
                let is_there = found.get(key) == Some(value);
                assert!(is_there || may_be_incomplete, "{case}: {key} is lost: {report:?}");
            }
            None => {
                let is_gone = !found.contains_key(key);
                assert!(is_gone || may_bring_back, "{case}: {key} is back: {report:?}");
            }
        }
    }
}

#[test]
fn a_store_that_has_crashed_needs_no_repair() {
    for seed in 0..60 {
        let (disk, model) = history(seed);
        let case = format!("seed {seed}");
        let (report, found) = repaired(&disk, seed, &case).expect("is of this version");
        assert!(!report.changed && report.doubts.is_empty(), "{case}: {report:?}");
        check(&model, &report, &found, &case);
    }
}

#[test]
fn a_damaged_manifest_loses_nothing() {
    for seed in 0..250 {
        let (disk, model) = history(seed);
        let mut random = Random(!seed);
        let what = damage(&disk, &Path::new(DIR).join("MANIFEST"), &mut random);
        let case = format!("seed {seed}: {what}");
        let Some((report, found)) = repaired(&disk, seed, &case) else { continue };
        assert_eq!(report.lost, [], "{case}");
        assert_eq!(!report.doubts.is_empty(), report.manifest_rebuilt, "{case}: {report:?}");
        check(&model, &report, &found, &case);
        for (key, values) in &model {
            if let Some(value) = values.last().expect("a key of the model has values") {
                assert_eq!(found.get(key), Some(value), "{case}: {key}: {report:?}");
            }
        }
    }
}

#[test]
fn whatever_is_damaged_is_told() {
    let mut lossy = 0;
    for seed in 1000..1400 {
        let (disk, model) = history(seed);
        let mut random = Random(!seed);
        let mut case = format!("seed {seed}");
        for _ in 0..1 + random.below(2) {
            let files = files(&disk);
            let path = &files[random.below(files.len() as u64) as usize];
            case = format!("{case}, {}", damage(&disk, path, &mut random));
        }
        let Some((report, found)) = repaired(&disk, seed, &case) else { continue };
        lossy += u32::from(!report.lost.is_empty());
        check(&model, &report, &found, &case);
    }
    assert!(lossy > 50, "only {lossy} histories lost something");
}
