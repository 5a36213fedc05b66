//! An open that fails leaves nothing behind: neither threads nor the lock.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use trommel::{Background, Db, Error, Options};

/// Beyond what the process has now: enough for some threads' stacks, not for all of them.
const ROOM_BYTES: u64 = 256 << 20;
const THREADS: usize = 1000;

fn own_status(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells");
    let line = status.lines().find(|line| line.starts_with(name)).expect("a known line");
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number")
}

#[test] // The next open said "open elsewhere" for the life of the process. (The limit is the whole process's: one test here.)
fn an_open_whose_threads_are_refused_can_be_repeated() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let options = Options { background: Background::Threads(THREADS), ..Options::default() };
    let threads = own_status("Threads:");
    let before = getrlimit(Resource::As);
    let limit = own_status("VmSize:") * 1024 + ROOM_BYTES;
    setrlimit(Resource::As, Rlimit { current: Some(limit), ..before }).expect("a lower limit");
    let refused = Db::open(dir.path(), options.clone());
    setrlimit(Resource::As, before).expect("the limit before");
    assert!(matches!(refused, Err(Error::Io { .. })), "{refused:?}");
    assert_eq!(own_status("Threads:"), threads, "threads of a store that was not opened");
    for _ in 0..3 {
        let options = Options { background: Background::Threads(2), ..options.clone() };
        let db = Db::open(dir.path(), options).expect("opens");
        db.put("drum", "turns").expect("writes");
    }
}
