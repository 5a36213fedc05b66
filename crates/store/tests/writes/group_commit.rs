//! Group commit: writers that wait for the disk share its next sync.
//! ```text
//! 4 writers, each put synced     a sync takes 8 ms     syncs per put: at most 1 / 2.5
//! ```
//! Invariant: what is counted is syncs, not time, so that a busy machine changes nothing.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use trommel::Environment;
use trommel::storage::{Access, Append, Folder, FolderWrapper, Memory, Storage, StorageWrapper};
use trommel::{Db, Error, Options, SyncPolicy};

/// How long a sync takes.
const SYNC: Duration = Duration::from_millis(8);

/// A disk whose syncs take their time, and are counted.
#[derive(Clone)]
struct Slow {
    disk: Memory,
    sync: Duration,
    syncs: Arc<AtomicU64>,
}

struct SlowFile {
    file: Box<dyn Append>,
    sync: Duration,
    syncs: Arc<AtomicU64>,
}

impl Append for SlowFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.append(bytes)
    }
    fn sync(&mut self) -> io::Result<()> {
        std::thread::sleep(self.sync);
        self.syncs.fetch_add(1, Ordering::Relaxed);
        self.file.sync()
    }
}

struct SlowFolder {
    folder: Arc<dyn Folder>,
    sync: Duration,
    syncs: Arc<AtomicU64>,
}

impl StorageWrapper for Slow {
    fn inner(&self) -> &dyn Storage {
        &self.disk
    }

    fn open_folder(&self, dir: &Path) -> io::Result<Arc<dyn Folder>> {
        let (folder, syncs) = (self.disk.open_folder(dir)?, Arc::clone(&self.syncs));
        Ok(Arc::new(SlowFolder { folder, sync: self.sync, syncs }))
    }
}

impl FolderWrapper for SlowFolder {
    fn inner(&self) -> &dyn Folder {
        &*self.folder
    }

    fn create_with(&self, name: &str, access: Access) -> io::Result<Box<dyn Append>> {
        let (file, syncs) = (self.folder.create_with(name, access)?, Arc::clone(&self.syncs));
        Ok(Box::new(SlowFile { file, sync: self.sync, syncs }))
    }
}

/// How many puts, each of them synced, share a sync.
fn puts_per_sync(threads: u64, puts: u64) -> f64 {
    let slow = Slow { disk: Memory::new(), sync: SYNC, syncs: Arc::default() };
    let environment = Environment::new().storage(Arc::new(slow.clone()));
    let options = Options::new().sync(SyncPolicy::Always);
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
    assert_eq!(db.range(..).count() as u64, puts);
    puts as f64 / syncs as f64
}

#[test]
fn four_writers_share_syncs() {
    let (alone, together) = (puts_per_sync(1, 20), puts_per_sync(4, 400));
    assert!(alone <= 1.0, "a lone writer's put was not synced: {alone}");
    assert!(together >= 2.5, "{together} puts per sync");
}

#[test]
fn writers_that_give_up_leave_the_queue_and_the_others_are_written() {
    static ASKED: AtomicU64 = AtomicU64::new(0);
    let sync = Duration::from_millis(25);
    let slow = Slow { disk: Memory::new(), sync, syncs: Arc::default() };
    let environment = Environment::new().storage(Arc::new(slow));
    let options = Options::new().sync(SyncPolicy::Always);
    let db = Db::open_with("db", options, environment).expect("opens");
    let give_up_now_and_then = || ASKED.fetch_add(1, Ordering::Relaxed).is_multiple_of(2);
    std::thread::scope(|scope| {
        for thread in 0..6u64 {
            let db = &db;
            scope.spawn(move || {
                for number in 0..20 {
                    let key = [thread, number].map(u64::to_be_bytes).concat();
                    let put = || db.put(&key, "value");
                    let is_put = match trommel::giving_up(give_up_now_and_then, put) {
                        Ok(()) => true,
                        Err(Error::Cancelled) => false,
                        Err(error) => panic!("{error}"),
                    };
                    assert_eq!(db.get(&key).expect("reads").is_some(), is_put);
                }
            });
        }
    });
    assert!(ASKED.load(Ordering::Relaxed) > 1, "none had to wait for long");
}

/// An interval without end is one that never ends, not a number that overflows.
#[test]
fn an_interval_without_end_is_never_over() {
    let options = Options::new().sync(SyncPolicy::Interval(Duration::MAX));
    let environment = Environment::new().storage(Arc::new(Memory::new()));
    let db = Db::open_with(Path::new("db"), options, environment).expect("opens");
    for number in 0..3u32 {
        db.put(number.to_be_bytes(), "value").expect("puts");
        db.sync().expect("syncs");
    }
    assert_eq!(db.range(..).count(), 3);
}
