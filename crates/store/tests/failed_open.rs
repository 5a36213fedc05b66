//! An open that fails leaves nothing behind: neither threads nor the lock, nor files that are open.
//! ```text
//! test -> this test again, in a process of its own, which the limit is of -> RLIMIT_AS -> open
//! room for n stacks of threads, n = 0, 1, 2, ...   the next one is refused, until all have room
//! ```
//! Invariant: after each failure the next open has all that the first one had.
#![cfg(target_os = "linux")]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use trommel::{Background, Db, Error, Options};

/// Beyond what the process has now: enough for some threads' stacks, not for all of them.
const ROOM_BYTES: u64 = 256 << 20;
const THREADS: usize = 1000;
/// Of each thread that is started: far more than anything else that an open takes.
const STACK_BYTES: u64 = 64 << 20;
const FOLDER: &str = "TROMMEL_FAILED_OPEN";
const PATIENCE: Duration = Duration::from_secs(60);

fn own_status(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux tells");
    let line = status.lines().find(|line| line.starts_with(name)).expect("a known line");
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number")
}

/// Runs a test of this file again, in a process of its own. A folder: this is it.
fn in_own_process(test: &str) -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return Some(folder.into());
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut again = Command::new(std::env::current_exe().expect("this program"));
    again.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(FOLDER, folder.path());
    // Threads take their stacks, and no memory of their own to give out.
    again.env("RUST_MIN_STACK", STACK_BYTES.to_string()).env("MALLOC_ARENA_MAX", "1");
    let output = again.output().expect("starts");
    let [stdout, errors] =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success() && stdout.contains("1 passed"), "{stdout}\n{errors}");
    None
}

/// Does some work in so much more address space than the process has now.
fn with_room<T>(bytes: u64, work: impl FnOnce() -> T) -> T {
    let before = getrlimit(Resource::As);
    let limit = own_status("VmSize:") * 1024 + bytes;
    setrlimit(Resource::As, Rlimit { current: Some(limit), ..before }).expect("a lower limit");
    let done = work();
    setrlimit(Resource::As, before).expect("the limit before");
    done
}

/// The threads of this process, as the system names them. A store's have names of its own.
fn threads() -> Vec<String> {
    let tasks = fs::read_dir("/proc/self/task").expect("Linux tells");
    let name = |task: fs::DirEntry| fs::read_to_string(task.path().join("comm")).ok();
    tasks.filter_map(|task| name(task.ok()?)).collect()
}

/// What the process has open, beside what asks for it.
fn open_files() -> Vec<PathBuf> {
    let files = fs::read_dir("/proc/self/fd").expect("Linux tells");
    let files = files.map(|file| fs::read_link(file.expect("an entry").path()));
    let mut files: Vec<PathBuf> = files.flatten().collect();
    files.retain(|file| !file.starts_with("/proc"));
    files.sort();
    files
}

/// A thread that was joined may be seen for a moment longer.
fn wait_for_threads(count: usize) {
    let start = Instant::now();
    while threads().len() > count && start.elapsed() < PATIENCE {
        std::thread::yield_now();
    }
    assert_eq!(threads().len(), count, "threads of a store that was not opened: {:?}", threads());
}

/// Whether the folder of a store is not locked.
fn is_free(dir: &Path) -> bool {
    [dir.join("LOCK"), dir.to_path_buf()]
        .iter()
        .all(|path| File::open(path).expect("is there").try_lock().is_ok())
}

#[test] // The next open said "open elsewhere" for the life of the process.
fn an_open_whose_threads_are_refused_can_be_repeated() {
    let Some(dir) = in_own_process("an_open_whose_threads_are_refused_can_be_repeated") else {
        return;
    };
    let options = Options::new().background(Background::Threads(THREADS));
    let before = threads().len();
    let refused = with_room(ROOM_BYTES, || Db::open(&dir, options.clone()));
    assert!(matches!(refused, Err(Error::Io { .. })), "{refused:?}");
    wait_for_threads(before);
    for _ in 0..3 {
        let options = options.clone().background(Background::Threads(2));
        let db = Db::open(&dir, options).expect("opens");
        db.put("drum", "turns").expect("writes");
    }
}

#[test]
fn whichever_thread_is_refused_nothing_is_left() {
    let Some(folder) = in_own_process("whichever_thread_is_refused_nothing_is_left") else {
        return;
    };
    // One that flushes, one that syncs and tidies up, and those that merge.
    for (merging, all) in [(1, 3), (4, 6)] {
        let (dir, before) = (folder.join(merging.to_string()), threads().len());
        let background = Background::Threads(merging);
        // A small write buffer: what stacks have room for is not to be taken for a memtable.
        let options = Options::new().background(background).write_buffer_bytes(256 << 10);
        // There is something to open: a table and a log.
        let db = Db::open(&dir, options.clone()).expect("makes a store");
        db.put("drum", "turns").expect("writes");
        db.flush().expect("flushes");
        db.put("tuba", "plays").expect("writes");
        db.close().expect("closes");
        wait_for_threads(before);
        let files = open_files();
        let mut refused = 0;
        let db = loop {
            let room = refused * STACK_BYTES + STACK_BYTES / 2;
            match with_room(room, || Db::open(&dir, options.clone())) {
                Ok(db) => break db,
                Err(error) => assert!(matches!(error, Error::Io { .. }), "{refused}: {error}"),
            }
            wait_for_threads(before);
            assert_eq!(open_files(), files, "after thread {refused} was refused");
            assert!(is_free(&dir), "after thread {refused} was refused");
            refused += 1;
        };
        // Each of them once: with room for n stacks, n threads run, and the next is refused.
        assert_eq!(refused, all as u64);
        assert_eq!(threads().len(), before + all, "{:?}", threads());
        assert!(!is_free(&dir), "it is open");
        for (key, value) in [("drum", "turns"), ("tuba", "plays")] {
            assert_eq!(db.get(key).expect("reads").as_deref(), Some(value.as_bytes()));
        }
        db.put("late", "value").expect("writes");
        db.compact().expect("merges");
        assert_eq!(db.verify().expect("reads").damage, [""; 0]);
        db.close().expect("closes");
    }
}
