//! Group commit: writers that wait for the disk share its next sync.
//! ```text
//! 4 writers, each put synced     a sync takes 8 ms     syncs per put: at most 1 / 2.5
//! ```
//! Invariant: what is counted is syncs, not time, so that a busy machine changes nothing.

use std::any::Any;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use trommel::{Append, Db, Environment, Folder, Memory, Options, ReadAt, Storage, Sync};

/// A disk whose syncs take their time, and are counted.
#[derive(Clone)]
struct Slow {
    disk: Memory,
    syncs: Arc<AtomicU64>,
}

struct SlowFile {
    file: Box<dyn Append>,
    syncs: Arc<AtomicU64>,
}

impl Append for SlowFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.append(bytes)
    }
    fn sync(&mut self) -> io::Result<()> {
        std::thread::sleep(Duration::from_millis(8));
        self.syncs.fetch_add(1, Ordering::Relaxed);
        self.file.sync()
    }
}

struct SlowFolder {
    folder: Arc<dyn Folder>,
    syncs: Arc<AtomicU64>,
}

impl Storage for Slow {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        self.disk.create_dir(dir)
    }
    fn dir_exists(&self, dir: &Path) -> bool {
        self.disk.dir_exists(dir)
    }
    fn open_folder(&self, dir: &Path) -> io::Result<Arc<dyn Folder>> {
        let (folder, syncs) = (self.disk.open_folder(dir)?, Arc::clone(&self.syncs));
        Ok(Arc::new(SlowFolder { folder, syncs }))
    }
}

impl Folder for SlowFolder {
    fn list(&self) -> io::Result<Vec<String>> {
        self.folder.list()
    }
    fn create(&self, name: &str) -> io::Result<Box<dyn Append>> {
        let (file, syncs) = (self.folder.create(name)?, Arc::clone(&self.syncs));
        Ok(Box::new(SlowFile { file, syncs }))
    }
    fn open(&self, name: &str) -> io::Result<Arc<dyn ReadAt>> {
        self.folder.open(name)
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        self.folder.remove(name)
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.folder.rename(from, to)
    }
    fn link(&self, from: &str, into: &dyn Folder, to: &str) -> io::Result<()> {
        self.folder.link(from, into, to)
    }
    fn make_folder(&self, name: &str) -> io::Result<Arc<dyn Folder>> {
        self.folder.make_folder(name)
    }
    fn sync(&self) -> io::Result<()> {
        self.folder.sync()
    }
    fn lock(&self, name: &str) -> io::Result<Box<dyn Send + std::marker::Sync>> {
        self.folder.lock(name)
    }
    fn free_space(&self) -> io::Result<u64> {
        self.folder.free_space()
    }
    fn as_any(&self) -> &dyn Any {
        self.folder.as_any()
    }
}

/// How many puts, each of them synced, share a sync.
fn puts_per_sync(threads: u64, puts: u64) -> f64 {
    let slow = Slow { disk: Memory::new(), syncs: Arc::default() };
    let environment = Environment { storage: Arc::new(slow.clone()), ..Environment::default() };
    let options = Options { sync: Sync::Always, ..Options::default() };
    let db = Db::open_with("db", options, environment).expect("opens");
    let before = slow.syncs.load(Ordering::Relaxed);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let db = &db;
            scope.spawn(move || {
                for number in (thread..puts).step_by(threads as usize) {
                    db.put(number.to_be_bytes(), "value").expect("puts");
                }
            });
        }
    });
    let syncs = slow.syncs.load(Ordering::Relaxed) - before;
    assert_eq!(db.range::<&[u8]>(..).count() as u64, puts);
    puts as f64 / syncs as f64
}

#[test]
fn four_writers_share_syncs() {
    let (alone, together) = (puts_per_sync(1, 20), puts_per_sync(4, 400));
    assert!(alone <= 1.0, "a lone writer's put was not synced: {alone}");
    assert!(together >= 2.5, "{together} puts per sync");
}

/// An interval without end is one that never ends, not a number that overflows.
#[test]
fn an_interval_without_end_is_never_over() {
    let options = Options { sync: Sync::Interval(Duration::MAX), ..Options::default() };
    let environment = Environment { storage: Arc::new(Memory::new()), ..Environment::default() };
    let db = Db::open_with(Path::new("db"), options, environment).expect("opens");
    for number in 0..3u32 {
        db.put(number.to_be_bytes(), "value").expect("puts");
        db.sync().expect("syncs");
    }
    assert_eq!(db.range::<&[u8]>(..).count(), 3);
}
