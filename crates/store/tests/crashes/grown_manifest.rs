//! The edit with which a grown manifest begins anew: a fault, and a power cut, at every operation
//! of the disk.
//! ```text
//! puts, then steps     of a store with long keys: some edits come when the manifest has its bound
//! such a one      x EIO, ENOSPC x once, until mended -> read -> crash -> mend, go on -> open again
//! ```
//! Invariant: whatever the edit tells of (a log, a flush, a merge), and wherever the disk stops,
//! all that was acknowledged is there.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use trommel::Environment;
use trommel::storage::Memory;
use trommel::testing::Fault;
use trommel::{Background, Db, GuardKind, Options, SyncPolicy};

/// Above the bound of a manifest, which is twice what these tables take in it, and beyond what one
/// edit adds.
const LONGEST: usize = 160 << 10;

/// What an edit tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Edit {
    Log,
    Flush,
    Merge,
}

/// Names of keys; those that gave an error may be there when the store is opened again.
#[derive(Clone, Default)]
struct Model {
    acknowledged: BTreeMap<Vec<u8>, u32>,
    doubtful: BTreeMap<Vec<u8>, u32>,
}

/// Long, so that a few edits fill a manifest; of several lengths, so that any act may come when it
/// is full.
fn key(number: u32) -> Vec<u8> {
    let mut key = number.wrapping_mul(2_654_435_761).to_be_bytes().to_vec();
    key.resize(1000 + number as usize * 37 % 1500, b'.');
    key
}

fn open(disk: &Memory) -> Db {
    let options = Options::new()
        .guard(GuardKind::Open)
        .size_ratio(2)
        .write_buffer_bytes(8 << 10)
        .block_bytes(256)
        .sync(SyncPolicy::Always)
        .background(Background::Stepped);
    let environment = Environment::new().storage(Arc::new(disk.clone()));
    Db::open_with("db", options, environment).expect("opens")
}

fn manifest_bytes(disk: &Memory) -> usize {
    disk.file(Path::new("db").join("MANIFEST")).expect("is there").len()
}

impl Model {
    fn put(&mut self, db: &Db, number: u32) -> trommel::Result<()> {
        let (key, put) = (key(number), db.put(key(number), number.to_be_bytes()));
        match put {
            Ok(()) => self.acknowledged.insert(key, number),
            Err(_) => self.doubtful.insert(key, number),
        };
        put
    }

    /// Some puts, which fill memtables; then as many steps, which flush and merge.
    fn act(&mut self, db: &Db, at: usize) -> trommel::Result<()> {
        match at % 40 < 20 {
            true => self.put(db, at as u32),
            false => db.step().map(drop),
        }
    }

    /// Fails if something that was acknowledged is missing, or something is there that may not be.
    fn check(&self, db: &Db, is_reopened: bool) -> trommel::Result<()> {
        let mut found = BTreeMap::new();
        for entry in db.range(..) {
            let (key, value) = entry?;
            found.insert(key, u32::from_be_bytes(value[..].try_into().expect("a number")));
        }
        found.retain(|key, number| !(is_reopened && self.doubtful.get(key) == Some(number)));
        assert!(found == self.acknowledged, "{} of {}", found.len(), self.acknowledged.len());
        Ok(())
    }
}

/// Does so many acts; the store, what it holds, and in which of them the manifest began anew.
fn history(disk: &Memory, acts: usize) -> (Db, Model, Vec<(Edit, usize)>) {
    let (db, mut model, mut anew) = (open(disk), Model::default(), Vec::new());
    let counts = || {
        let stats = db.stats().expect("open");
        (stats.flushes, stats.merges)
    };
    for at in 0..acts {
        let before = (manifest_bytes(disk), counts());
        model.act(&db, at).expect("nothing fails");
        let edit = match counts() {
            (flushes, _) if flushes > before.1.0 => Edit::Flush,
            (_, merges) if merges > before.1.1 => Edit::Merge,
            _ => Edit::Log,
        };
        if manifest_bytes(disk) < before.0 {
            anew.push((edit, at));
        }
        assert!(manifest_bytes(disk) < LONGEST, "it has no bound");
    }
    (db, model, anew)
}

/// One fault, in the act with this number.
#[derive(Clone, Copy, Debug)]
struct Case {
    at: usize,
    kind: Fault,
    lasts: bool,
    n: u64,
}

impl Case {
    /// False: the act has no more than `n` operations.
    fn run(self) -> bool {
        let Case { at, kind, lasts, n } = self;
        let disk = Memory::new();
        let (db, mut model, _) = history(&disk, at);
        let grown = manifest_bytes(&disk);
        let before = disk.operations();
        match lasts {
            true => disk.fail_from(n, kind),
            false => disk.fail_at(n, kind),
        }
        let done = model.act(&db, at);
        if disk.operations() - before <= n {
            assert!(done.is_ok() && manifest_bytes(&disk) < grown, "{self:?}: it has begun anew");
            return false;
        }
        match model.check(&db, false) {
            Ok(()) => {}
            Err(error) => assert!(lasts && kind == Fault::Io, "{self:?}: a read fails: {error}"),
        }
        let cuts = (0..4).map(|seed| disk.crash(seed)).chain([disk.crash_hard(), disk.kill()]);
        for cut in cuts {
            let again = open(&cut);
            model.check(&again, true).expect("reads");
            assert_eq!(again.verify().expect("verifies").damage, [""; 0], "{self:?}");
        }
        disk.mend();
        self.go_on(&disk, db, model);
        true
    }

    /// The same store goes on, its manifest too; so does one that is opened again.
    fn go_on(self, disk: &Memory, db: Db, mut model: Model) {
        for number in 5000..5030 {
            model.put(&db, number).expect("writing goes on");
            db.flush().expect("flushing goes on");
        }
        db.compact().expect("merging goes on");
        assert_eq!(db.stats().expect("open").failure, None);
        assert!(manifest_bytes(disk) < LONGEST, "{self:?}: {}", manifest_bytes(disk));
        model.check(&db, false).expect("reads");
        db.close().expect("closes");
        let again = open(&disk.crash_hard());
        model.check(&again, true).expect("reads");
        again.compact().expect("merges");
        assert_eq!(again.verify().expect("verifies").damage, [""; 0], "{self:?}");
    }
}

#[test]
fn a_fault_wherever_a_grown_manifest_begins_anew_loses_nothing() {
    let (_, _, anew) = history(&Memory::new(), 3000);
    let mut cases = 0;
    for edit in [Edit::Log, Edit::Flush, Edit::Merge] {
        let at = anew.iter().find(|anew| anew.0 == edit).map(|anew| anew.1);
        let at = at.unwrap_or_else(|| panic!("{edit:?}: it begins anew in {anew:?}"));
        for (kind, lasts) in
            [Fault::Io, Fault::NoSpace].map(|kind| [(kind, false), (kind, true)]).concat()
        {
            let faults = (0..).take_while(|&n| Case { at, kind, lasts, n }.run()).count();
            assert!(faults > 5, "{edit:?}: {faults} operations");
            cases += faults;
        }
    }
    println!("{cases} faults");
}
