//! Readers never wait for the disk to write: gets, scans, snapshots, counts and `stats` answer
//! while one writing operation is held, each kind in turn. Closing waits for it.
//! ```text
//! disk     append 000007.wal | sync ... <- held        until the gate opens
//! reads    get, scan, snapshot, count, may_contain_range, stats: all answer meanwhile
//! ```
//! Invariant: the gate opens only after the readers are done. A reader that waits for the disk
//! waits for ever, so the patience of the test decides only how soon it fails.

use std::io;
use std::path::Path;
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use trommel::Environment;
use trommel::storage::{Access, Append, Folder, FolderWrapper, Memory, Storage, StorageWrapper};
use trommel::{Background, Db, GuardKind, Options};
use trommel_guards::kinds;

const PATIENCE: Duration = Duration::from_secs(60);
const KEYS: u32 = 60;

/// What is held: an operation on a file whose path contains `name`.
#[derive(Clone, Copy, Debug)]
struct Held {
    operation: &'static str,
    name: &'static str,
}

#[derive(Default)]
struct State {
    held: Option<Held>,
    waiting: usize,
}

/// Holds operations until it is opened.
#[derive(Default)]
struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

impl Gate {
    fn pass(&self, operation: &str, path: &Path) {
        let is_held = |state: &State| {
            let path = path.to_string_lossy();
            let meets = |held: Held| held.operation == operation && path.contains(held.name);
            state.held.is_some_and(meets)
        };
        let mut state = self.state.lock().expect("no panic");
        if !is_held(&state) {
            return;
        }
        state.waiting += 1;
        self.changed.notify_all();
        while is_held(&state) {
            state = self.changed.wait(state).expect("no panic");
        }
        state.waiting -= 1;
    }

    fn close(&self, held: Held) {
        self.state.lock().expect("no panic").held = Some(held);
    }

    fn open(&self) {
        self.state.lock().expect("no panic").held = None;
        self.changed.notify_all();
    }

    /// Returns when something is held.
    fn wait(&self, what: Held) {
        let state = self.state.lock().expect("no panic");
        let nobody = |state: &mut State| state.waiting == 0;
        let (state, _) = self.changed.wait_timeout_while(state, PATIENCE, nobody).expect("waits");
        assert!(state.waiting > 0, "nobody has come to {what:?}");
    }
}

/// A disk with a gate before everything that writes.
#[derive(Clone)]
struct Gated {
    disk: Memory,
    gate: Arc<Gate>,
}

struct GatedFile {
    file: Box<dyn Append>,
    path: std::path::PathBuf,
    gate: Arc<Gate>,
}

impl Append for GatedFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.gate.pass("append", &self.path);
        self.file.append(bytes)
    }
    fn sync(&mut self) -> io::Result<()> {
        self.gate.pass("sync", &self.path);
        self.file.sync()
    }
}

struct GatedFolder {
    folder: Arc<dyn Folder>,
    path: std::path::PathBuf,
    gate: Arc<Gate>,
}

impl StorageWrapper for Gated {
    fn inner(&self) -> &dyn Storage {
        &self.disk
    }

    fn open_folder(&self, dir: &Path) -> io::Result<Arc<dyn Folder>> {
        let (folder, gate) = (self.disk.open_folder(dir)?, Arc::clone(&self.gate));
        Ok(Arc::new(GatedFolder { folder, path: dir.to_path_buf(), gate }))
    }
}

impl FolderWrapper for GatedFolder {
    fn inner(&self) -> &dyn Folder {
        &*self.folder
    }

    fn create_with(&self, name: &str, access: Access) -> io::Result<Box<dyn Append>> {
        let path = self.path.join(name);
        self.gate.pass("create", &path);
        let (file, gate) = (self.folder.create_with(name, access)?, Arc::clone(&self.gate));
        Ok(Box::new(GatedFile { file, path, gate }))
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        self.gate.pass("remove", &self.path.join(name));
        self.folder.remove(name)
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.gate.pass("rename", &self.path.join(to));
        self.folder.rename(from, to)
    }
    fn link(&self, from: &str, into: &dyn Folder, to: &str) -> io::Result<()> {
        self.gate.pass("link", Path::new(to));
        self.folder.link(from, into, to)
    }
    fn sync(&self) -> io::Result<()> {
        self.gate.pass("sync_dir", &self.path);
        self.folder.sync()
    }
}

fn key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

/// A store with runs, keys in memory, and a gate that is open.
fn store(guard: GuardKind) -> (Arc<Db>, Arc<Gate>) {
    let gated = Gated { disk: Memory::new(), gate: Arc::default() };
    let gate = Arc::clone(&gated.gate);
    let environment = Environment::new().storage(Arc::new(gated));
    let options = Options::new()
        .guard(guard)
        .size_ratio(3)
        .write_buffer_bytes(1 << 20)
        .block_bytes(256)
        .block_cache_bytes(4096)
        .sync(trommel::SyncPolicy::Never)
        .background(Background::Threads(1));
    let db = Arc::new(Db::open_with("db", options, environment).expect("opens"));
    for number in 0..KEYS {
        db.put(key(number), vec![7; 40]).expect("puts");
        if number % 20 == 19 {
            db.flush().expect("flushes");
        }
    }
    db.settle().expect("settles");
    db.put(key(KEYS), "in memory").expect("puts");
    (db, gate)
}

/// Everything that reads.
fn read_all(db: &Db, held: &trommel::Snapshot) {
    for number in 0..=KEYS {
        assert!(db.get(key(number)).expect("reads").is_some(), "key {number}");
        assert!(held.get(key(number)).expect("reads").is_some(), "key {number}");
    }
    assert!(db.get(key(u32::MAX)).expect("reads").is_none());
    let snapshot = db.snapshot();
    assert_eq!(snapshot.range(..).count() as u32, KEYS + 1);
    assert_eq!(held.range(key(3)..key(30)).rev().count(), 27);
    assert!(db.may_contain_range(key(3)..key(5)).expect("answers"));
    assert!(db.approximate_count(key(0)..=key(KEYS)).expect("counts").most > u64::from(KEYS));
    let stats = db.stats().expect("open");
    assert_eq!(stats.failure, None);
    assert_eq!(stats.prometheus().lines().filter(|line| line.contains("stopped 0")).count(), 1);
}

/// Reads all while `work` is held at an operation; then lets it go on.
fn reads_pass(held: Held, guard: GuardKind, work: fn(&Db)) {
    let (db, gate) = store(guard);
    let snapshot = db.snapshot();
    gate.close(held);
    let worker = {
        let db = Arc::clone(&db);
        std::thread::spawn(move || work(&db))
    };
    gate.wait(held);
    let (done, all_read) = channel();
    let reader = {
        let db = Arc::clone(&db);
        std::thread::spawn(move || {
            read_all(&db, &snapshot);
            done.send(()).expect("the test waits");
        })
    };
    let answered = all_read.recv_timeout(PATIENCE);
    gate.open();
    reader.join().expect("a reader has failed");
    assert!(answered.is_ok(), "reads wait for {held:?}");
    worker.join().expect("the work goes on");
    assert_eq!(db.verify().expect("verifies").damage, [""; 0]);
}

fn put_synced(db: &Db) {
    let mut batch = trommel::Batch::new();
    batch.put(key(1), "again");
    db.write_synced(batch).expect("writes");
}

#[test]
fn reads_pass_while_a_log_is_written_or_synced() {
    for operation in ["append", "sync"] {
        reads_pass(Held { operation, name: ".wal" }, GuardKind::Grf, put_synced);
    }
}

#[test]
fn reads_pass_while_a_log_is_begun() {
    let flush = |db: &Db| db.flush().expect("flushes");
    for (operation, name) in [("create", ".wal"), ("sync_dir", "db")] {
        reads_pass(Held { operation, name }, GuardKind::Grf, flush);
    }
}

#[test]
fn reads_pass_while_a_flush_writes_and_installs() {
    let flush = |db: &Db| db.flush().expect("flushes");
    for (operation, name) in [
        ("create", ".table"),
        ("append", ".table"),
        ("sync", ".table"),
        ("append", "MANIFEST"),
        ("sync", "MANIFEST"),
        ("remove", ".wal"),
    ] {
        reads_pass(Held { operation, name }, GuardKind::Grf, flush);
    }
}

#[test]
fn reads_pass_while_a_merge_writes_and_installs() {
    fn merge(db: &Db) {
        db.compact().expect("merges");
    }
    for guard in [GuardKind::Grf, GuardKind::Table(kinds::BLOCKED_BLOOM), GuardKind::Open] {
        for (operation, name) in
            [("append", ".table"), ("sync", ".table"), ("sync", "MANIFEST"), ("remove", ".table")]
        {
            reads_pass(Held { operation, name }, guard, merge);
        }
    }
    for operation in ["create", "append", "sync", "remove"] {
        reads_pass(Held { operation, name: ".filter" }, GuardKind::Grf, merge);
    }
}

#[test]
fn reads_pass_while_a_checkpoint_is_made() {
    let checkpoint = |db: &Db| db.checkpoint("copy").expect("a checkpoint");
    for (operation, name) in [
        ("link", ".table"),
        ("create", "copy"),
        ("append", "copy"),
        ("sync", "copy"),
        ("rename", "copy"),
        ("sync_dir", "copy"),
    ] {
        reads_pass(Held { operation, name }, GuardKind::Grf, checkpoint);
    }
}

// A value was appended to a folder that another process might have opened by then.
#[test]
fn closing_waits_for_a_value_that_is_being_written() {
    let (db, gate) = store(GuardKind::Grf);
    let held = Held { operation: "append", name: ".value" };
    gate.close(held);
    let writer = {
        let db = Arc::clone(&db);
        std::thread::spawn(move || db.put(key(1), vec![7; 20_000]))
    };
    gate.wait(held);
    let (done, closed) = channel();
    let closer = {
        let db = Arc::clone(&db);
        std::thread::spawn(move || done.send(db.close()).expect("the test waits"))
    };
    while db.get(key(2)).is_ok() {
        std::thread::yield_now();
    }
    let early = closed.recv_timeout(Duration::from_millis(300));
    gate.open();
    assert!(early.is_err(), "the folder was free while a file was written");
    closed.recv_timeout(PATIENCE).expect("it closes").expect("all is durable");
    closer.join().expect("no panic");
    // It may be in the log before the writer is ended.
    let put = writer.join().expect("no panic");
    assert!(matches!(put, Ok(()) | Err(trommel::Error::Closed { .. })), "{put:?}");
}
