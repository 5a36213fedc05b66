//! Values apart past the system's cache: queues read them before they are asked for.
//! ```text
//! given       1  2  3 ...
//! asked for      4  8 ...     at most so many before they are given      dropped: forgotten
//! ```

use std::collections::VecDeque;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use trommel::storage::{
    Access, Completed, Folder, FolderWrapper, Memory, ReadAt, ReadAtWrapper, ReadBuffer, ReadQueue,
    Storage, StorageWrapper,
};
use trommel::{Background, Db, Environment, KeyValue, Options};

const COUNT: u64 = 40;
/// Values that are read ahead at once.
const AHEAD_MAX: usize = 16;

/// What became of value files.
#[derive(Default)]
struct Log {
    /// Places and lengths of what was read ahead, and of what was read when it was needed.
    ahead: Vec<(u64, usize)>,
    now: Vec<(u64, usize)>,
    /// Queues of reads ahead that there are, and the most that there were at once.
    queues: usize,
    queues_most: usize,
    fails_ahead: bool,
    fails_now: bool,
}

type SharedLog = Arc<Mutex<Log>>;

fn lock(log: &SharedLog) -> MutexGuard<'_, Log> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

fn failed<T>() -> io::Result<T> {
    Err(io::Error::other("a read that fails, as it should in this test"))
}

/// A disk whose value files the system does not cache.
#[derive(Clone, Default)]
struct Uncached {
    disk: Memory,
    log: SharedLog,
}

struct UncachedFolder {
    folder: Arc<dyn Folder>,
    log: SharedLog,
}

struct UncachedFile {
    file: Arc<dyn ReadAt>,
    log: SharedLog,
}

/// Reads at once what it is asked for.
struct AheadQueue {
    file: Arc<dyn ReadAt>,
    log: SharedLog,
    done: VecDeque<Completed>,
}

impl StorageWrapper for Uncached {
    fn inner(&self) -> &dyn Storage {
        &self.disk
    }

    fn open_folder(&self, dir: &Path) -> io::Result<Arc<dyn Folder>> {
        let folder = self.disk.open_folder(dir)?;
        Ok(Arc::new(UncachedFolder { folder, log: Arc::clone(&self.log) }))
    }
}

impl FolderWrapper for UncachedFolder {
    fn inner(&self) -> &dyn Folder {
        &*self.folder
    }

    fn open_with(&self, name: &str, access: Access) -> io::Result<Arc<dyn ReadAt>> {
        let file = self.folder.open_with(name, access)?;
        if !name.ends_with(".value") {
            return Ok(file);
        }
        Ok(Arc::new(UncachedFile { file, log: Arc::clone(&self.log) }))
    }
}

impl ReadAtWrapper for UncachedFile {
    fn inner(&self) -> &dyn ReadAt {
        &*self.file
    }

    fn read(&self, offset: u64, len: usize) -> io::Result<ReadBuffer> {
        let mut log = lock(&self.log);
        log.now.push((offset, len));
        if log.fails_now { failed() } else { self.file.read(offset, len) }
    }

    fn reads_ahead(&self) -> Box<dyn ReadQueue> {
        let mut log = lock(&self.log);
        log.queues += 1;
        log.queues_most = log.queues_most.max(log.queues);
        let (file, log) = (Arc::clone(&self.file), Arc::clone(&self.log));
        Box::new(AheadQueue { file, log, done: VecDeque::new() })
    }

    fn bypasses_cache(&self) -> bool {
        true
    }
}

impl ReadQueue for AheadQueue {
    fn submit(&mut self, tag: u64, _file: Arc<dyn ReadAt>, offset: u64, len: usize) {
        let mut log = lock(&self.log);
        log.ahead.push((offset, len));
        let bytes = if log.fails_ahead { failed() } else { self.file.read(offset, len) };
        self.done.push_back(Completed { tag, bytes });
    }

    fn collect(&mut self, _wait: bool) -> Option<Completed> {
        self.done.pop_front()
    }
}

impl Drop for AheadQueue {
    fn drop(&mut self) {
        lock(&self.log).queues -= 1;
    }
}

/// A value of so many bytes that no other number has.
fn value_of(number: u64, len: usize) -> Vec<u8> {
    (0..len as u64).map(|at| (at.wrapping_mul(number * 2 + 1) >> 3) as u8).collect()
}

fn value(number: u64) -> Vec<u8> {
    value_of(number, 2000 + number as usize)
}

/// A store with values apart in a table, in the order of their keys, and nothing in its log.
fn filled(disk: &Uncached) -> Db {
    let options = Options::new()
        .value_threshold(1 << 10)
        .value_file_bytes(64 << 20)
        .compression(false)
        .block_cache_bytes(0)
        .background(Background::Stepped);
    let environment = Environment::default().storage(Arc::new(disk.clone()));
    let db = Db::open_with("db", options, environment).expect("opens");
    for number in 0..COUNT {
        db.put(number.to_be_bytes(), value(number)).expect("puts");
    }
    db.flush().expect("flushes");
    *lock(&disk.log) = Log::default();
    db
}

fn check(number: u64, entry: Option<trommel::Result<KeyValue>>) {
    let (key, found) = entry.expect("there are more").expect("reads");
    assert_eq!(key, number.to_be_bytes());
    assert!(*found == *value(number), "another value than that of {number}");
}

#[test]
fn a_scan_asks_for_values_before_those_before_them_are_given() {
    for back in [false, true] {
        let disk = Uncached::default();
        let db = filled(&disk);
        let mut scan = db.iter();
        for given in 1..=COUNT {
            let number = if back { COUNT - given } else { given - 1 };
            check(number, if back { scan.next_back() } else { scan.next() });
            let log = lock(&disk.log);
            let (asked, given) = (log.ahead.len() + log.now.len(), given as usize);
            let is_ahead = asked > given || asked == COUNT as usize || given == 1;
            assert!(is_ahead && asked <= given + AHEAD_MAX, "{asked} at {given}, {back}");
        }
        let end = if back { scan.next_back() } else { scan.next() };
        assert!(end.is_none());
        let log = lock(&disk.log);
        assert_eq!((log.now.len(), log.ahead.len()), (2, COUNT as usize - 2));
        let mut all = [&log.now[..], &log.ahead[..]].concat();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), COUNT as usize, "each once");
        assert_eq!(log.queues, 0);
        assert!((AHEAD_MAX / 2..=AHEAD_MAX + 1).contains(&log.queues_most), "{}", log.queues_most);
    }
}

#[test]
fn a_scan_that_is_dropped_or_jumps_leaves_nothing_under_way() {
    let disk = Uncached::default();
    let db = filled(&disk);
    let mut scan = db.iter();
    (0..10).for_each(|number| check(number, scan.next()));
    assert!(lock(&disk.log).queues > 0);
    scan.seek(20u64.to_be_bytes());
    assert_eq!(lock(&disk.log).queues, 0);
    (20..30).for_each(|number| check(number, scan.next()));
    assert!(lock(&disk.log).queues > 0);
    // A merge has the scan begin anew behind what it gave.
    db.compact().expect("merges");
    (30..35).for_each(|number| check(number, scan.next()));
    drop(scan);
    assert_eq!(lock(&disk.log).queues, 0);
}

#[test]
fn what_fails_ahead_is_read_again_and_no_error() {
    let disk = Uncached::default();
    let db = filled(&disk);
    lock(&disk.log).fails_ahead = true;
    let mut scan = db.iter();
    (0..COUNT).for_each(|number| check(number, scan.next()));
    assert!(scan.next().is_none());
    assert_eq!(lock(&disk.log).now.len(), COUNT as usize);
    let mut scan = db.iter();
    (0..5).for_each(|number| check(number, scan.next()));
    lock(&disk.log).fails_now = true;
    let wrong = scan.find_map(Result::err).expect("both reads fail").to_string();
    assert!(wrong.contains("as it should"), "{wrong}");
}

#[test]
fn a_value_that_would_take_much_memory_is_read_when_it_is_given() {
    let disk = Uncached::default();
    let db = filled(&disk);
    let (number, long) = (5u64, value_of(5, 3 << 20));
    db.put(number.to_be_bytes(), &long).expect("puts");
    let mut scan = db.iter();
    for at in 0..COUNT {
        match scan.next() {
            Some(entry) if at == number => assert!(*entry.expect("reads").1 == *long),
            entry => check(at, entry),
        }
    }
    let log = lock(&disk.log);
    assert!(log.ahead.iter().all(|(_, len)| *len < 2 << 20));
    assert_eq!((log.now.len(), log.ahead.len()), (3, COUNT as usize - 3));
}

#[test]
fn many_keys_at_once_have_their_values_read_ahead() {
    for fails_ahead in [false, true] {
        let disk = Uncached::default();
        let db = filled(&disk);
        lock(&disk.log).fails_ahead = fails_ahead;
        let numbers: Vec<u64> = (0..COUNT).map(|number| number * 7 % COUNT).collect();
        let keys: Vec<_> = numbers.iter().map(|number| number.to_be_bytes()).collect();
        for (number, found) in numbers.iter().zip(db.multi_get(&keys)) {
            let found = found.expect("reads").expect("it was put");
            assert!(*found == *value(*number), "another value than that of {number}");
        }
        let log = lock(&disk.log);
        let again = if fails_ahead { COUNT as usize - 1 } else { 0 };
        assert_eq!((log.now.len(), log.ahead.len()), (1 + again, COUNT as usize - 1));
        assert!(log.ahead.is_sorted(), "in the order of their places");
        assert_eq!(log.queues, 0);
        assert!((2..=AHEAD_MAX + 1).contains(&log.queues_most), "{}", log.queues_most);
    }
}

#[test]
fn who_reads_a_value_in_order_has_its_next_piece_read_ahead() {
    let disk = Uncached::default();
    let db = filled(&disk);
    // Six pieces.
    let long = value_of(7, 3 << 20);
    db.put("long", &long).expect("puts");
    for fails_ahead in [false, true] {
        *lock(&disk.log) = Log { fails_ahead, ..Log::default() };
        let mut reader = db.get_reader("long").expect("reads").expect("is there");
        let mut begin = [0; 100];
        reader.read_exact(&mut begin).expect("reads");
        assert!(lock(&disk.log).ahead.is_empty(), "perhaps that is all");
        let mut rest = Vec::new();
        reader.read_to_end(&mut rest).expect("reads");
        assert!(begin == long[..100] && rest == long[100..]);
        let log = lock(&disk.log);
        assert_eq!((log.now.len(), log.ahead.len()), (if fails_ahead { 6 } else { 2 }, 4));
        assert_eq!(log.queues, 0);
        assert!(log.queues_most <= 2);
    }
}
