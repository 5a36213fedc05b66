//! Ten thousand key spaces in one store: what each costs, however many others there are.
//! ```text
//! empty           no table, no buffer, no filter: 4 KiB of memory with its handle, none without
//! one entry       a small buffer
//! manifest        an edit is of its own key space; the file begins anew seldom enough
//! ```
//! Invariant: nothing is timed. Bytes of the heap and of files are counted.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use allocation_counter::measure;
use trommel::storage::Memory;
use trommel::{Background, Db, Environment, GuardKind, Keyspace, KeyspaceOptions, Options};
use trommel::{Batch, SyncPolicy};

const MANY: u64 = 10_000;
/// Of an empty key space whose handle is open.
const EMPTY_BYTES_MAX: i64 = 4 << 10;

fn open(disk: &Memory, background: Background) -> Db {
    let environment = Environment::new().storage(Arc::new(disk.clone()));
    let options = Options::new().background(background).sync(SyncPolicy::Never);
    Db::open_with("db", options, environment).expect("opens")
}

fn stepped(disk: &Memory) -> Db {
    open(disk, Background::Stepped)
}

fn name(n: u64) -> String {
    format!("Schlüsselraum № {n}")
}

fn keyspaces(db: &Db, count: u64, options: &KeyspaceOptions) -> Vec<Keyspace> {
    let named = |n| db.keyspace(name(n), options.clone()).expect("makes or opens it");
    (0..count).map(named).collect()
}

/// What this thread has on the heap after some work, and had not before, for each of so many.
fn heap_of_each<T>(count: u64, work: impl FnOnce() -> T) -> (T, i64) {
    let (mut done, mut work) = (None, Some(work));
    let taken = measure(|| done = work.take().map(|work| work()));
    (done.expect("it was called"), taken.bytes_current / count as i64)
}

#[test]
fn ten_thousand_key_spaces_work() {
    let disk = Memory::new();
    let db = stepped(&disk);
    let mut batch = Batch::new();
    for (n, space) in (0..).zip(keyspaces(&db, MANY, &KeyspaceOptions::new())) {
        batch.to(&space).put("number", n.to_string());
        if n % 100 == 7 {
            space.put("flushed", "yes").expect("puts");
            space.flush().expect("flushes");
        }
    }
    db.write(batch).expect("writes");
    db.sync().expect("syncs");
    let after = disk.crash_hard();
    drop(db);
    let db = stepped(&after);
    assert_eq!(db.keyspaces().expect("open").len() as u64, MANY + 1);
    let check = |db: &Db| {
        for n in (0..MANY).step_by(71).chain([7, MANY - 1]) {
            let space = db.open_keyspace(name(n)).expect("is there");
            let number = space.get("number").expect("reads").expect("is there");
            assert_eq!(number, n.to_string().as_bytes());
            assert_eq!(space.get("flushed").expect("reads").is_some(), n % 100 == 7, "{n}");
        }
    };
    check(&db);
    for n in (0..MANY).filter(|n| n % 3 == 1 && n % 71 != 0 && *n != 7) {
        db.drop_keyspace(name(n)).expect("drops");
    }
    db.close().expect("closes");
    let db = stepped(&after);
    let left = (0..MANY).filter(|n| n % 3 != 1 || n % 71 == 0 || *n == 7).count();
    assert_eq!(db.keyspaces().expect("open").len(), left + 1);
    check(&db);
}

// It was 15 KiB: a memtable's filter, counters for sixteen threads, three histograms.
#[test]
fn an_empty_key_space_takes_four_kibibytes_at_most() {
    const COUNT: u64 = 1_000;
    let own = KeyspaceOptions::new().guard("surf-real".parse().expect("a guard")).bits_per_key(9.0);
    for background in [Background::Stepped, Background::Threads(2)] {
        for options in [KeyspaceOptions::new(), own.clone()] {
            let disk = Memory::new();
            let db = open(&disk, background);
            let (made, bytes) = heap_of_each(COUNT, || keyspaces(&db, COUNT, &options));
            assert!(bytes <= EMPTY_BYTES_MAX, "{bytes} bytes for one that was made");
            drop(made);
            db.close().expect("closes");
            drop(db);
            let (_other, of_store) = heap_of_each(1, || open(&Memory::new(), background));
            let (db, closed) = heap_of_each(1, || open(&disk, background));
            let closed = (closed - of_store) / COUNT as i64;
            assert!(closed <= 1536, "{closed} bytes for one that nobody has asked for");
            let (_all, opened) = heap_of_each(COUNT, || keyspaces(&db, COUNT, &options));
            let bytes = closed + opened;
            assert!(
                bytes <= EMPTY_BYTES_MAX,
                "{bytes} bytes for one, {closed} of them without handle"
            );
            println!("{background:?}: {bytes} bytes, {closed} without handle");
        }
    }
}

// A put took a mebibyte, and a get of what is not there 180 KiB.
#[test]
fn a_key_space_with_an_entry_takes_little() {
    const COUNT: u64 = 1_000;
    let disk = Memory::new();
    let db = stepped(&disk);
    let all = keyspaces(&db, COUNT, &KeyspaceOptions::new().guard(GuardKind::Grf));
    let (_, asked) = heap_of_each(COUNT, || {
        all.iter().for_each(|space| assert!(space.get("key").expect("reads").is_none()));
    });
    assert!(asked <= 2 << 10, "{asked} bytes more for one that was asked");
    let (_, written) = heap_of_each(COUNT, || {
        all.iter().for_each(|space| space.put("key", [7; 100]).expect("puts"));
    });
    assert!(written <= 8 << 10, "{written} bytes more for one with an entry");
    drop(all);
    db.close().expect("closes");
    drop(db);
    // Its log is read into a memtable that takes no more.
    let (db, opened) = heap_of_each(COUNT, || stepped(&disk));
    assert!(opened <= 14 << 10, "{opened} bytes for one with an entry in the log");
    let (_, flushed) = heap_of_each(COUNT, || db.flush().expect("flushes"));
    assert!(opened + flushed <= 14 << 10, "{opened} and {flushed} bytes with a table");
}

/// The bytes that are written to the manifest, told by its length before and after each edit.
struct Written<'d> {
    disk: &'d Memory,
    len: usize,
    all: usize,
    /// How often the file began anew.
    begun: usize,
}

impl Written<'_> {
    /// The bytes of an edit.
    fn edit(&mut self, work: impl FnOnce()) -> usize {
        work();
        let len = self.disk.file(Path::new("db/MANIFEST")).expect("is there").len();
        let written = len.checked_sub(self.len).unwrap_or(len);
        self.begun += usize::from(len < self.len);
        self.all += written;
        self.len = len;
        written
    }
}

#[test]
fn making_key_spaces_writes_as_much_for_each() {
    let disk = Memory::new();
    let db = stepped(&disk);
    let mut written = Written { disk: &disk, len: 0, all: 0, begun: 0 };
    let mut edits: BTreeMap<usize, u64> = BTreeMap::new();
    for n in 0..MANY {
        let made = || drop(db.keyspace(name(n), KeyspaceOptions::new()).expect("makes it"));
        *edits.entry(written.edit(made)).or_default() += 1;
    }
    let usual = edits.range(..100).map(|(_, count)| count).sum::<u64>();
    assert!(usual >= MANY - 30, "{usual} of {MANY} edits are short: {edits:?}");
    assert!(written.begun <= 30, "the manifest began anew {} times", written.begun);
    assert!(written.all as u64 <= 400 * MANY, "{} bytes in all", written.all);
    // One flush is one edit, however many key spaces there are.
    let space = db.open_keyspace(name(MANY / 2)).expect("is there");
    space.put("key", "value").expect("puts");
    let flushed = written.edit(|| space.flush().expect("flushes"));
    assert!(flushed <= 400, "{flushed} bytes for a flush");
}
