//! A hundred stores that share resources are open at the price of a few. One test, since it counts
//! the threads of its process.
#![cfg(target_os = "linux")] // It reads /proc.

mod sharing;

use std::path::Path;
use std::time::{Duration, Instant};

use trommel::options::ResourceOptions;
use trommel::storage::Memory;
use trommel::{Db, Options};

use sharing::{in_memory, key, resources, shared, small};

const STORES: usize = 100;
/// Where this program, as another process, makes stores.
const STORES_TO_MAKE: &str = "TROMMEL_STORES_TO_MAKE";
/// One that flushes, one that merges, the keeper.
const THREADS_OF_ONE: usize = 3;
/// More than one store takes.
const THREADS_MAX: usize = 8;
const MEMORY_MAX: u64 = 20 << 20;
/// It decides only how soon a test fails.
const PATIENCE: Duration = Duration::from_secs(20);

fn status(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find(|line| line.starts_with(field)).expect("it is there");
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number")
}

/// The threads of stores. Those that wait for the disk are the process's own, and stay.
fn threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").expect("Linux has it");
    let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm")).ok();
    let names = tasks.flatten().filter_map(name);
    names.filter(|name| name.starts_with("trommel-") && !name.starts_with("trommel-disk")).count()
}

/// Waits until there are so many threads: one that begins has its name a moment later, and one that
/// was joined is counted for a moment longer.
fn wait_for_threads(count: usize) {
    let start = Instant::now();
    while threads() != count {
        assert!(start.elapsed() < PATIENCE, "{} threads, not {count}", threads());
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn what_stores_share() {
    if let Some(dir) = std::env::var_os(STORES_TO_MAKE) {
        return make_stores(Path::new(&dir));
    }
    a_hundred_stores_take_a_few_threads_and_little_memory();
    wait_for_threads(0);
    threads_end_with_the_last_store();
    threads_end_with_the_last_handle();
}

/// Each has a run on disk, with its filter in memory when it is open.
fn make_stores(dir: &Path) {
    for store in 0..STORES {
        let db = Db::open(dir.join(format!("{store}")), Options::new()).expect("opens");
        (0..1_000).for_each(|number| db.put(key(number), [7; 20]).expect("writes"));
        db.flush().expect("flushes");
    }
}

fn a_hundred_stores_take_a_few_threads_and_little_memory() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = |store: usize| dir.path().join(format!("{store}"));
    // By another process: memory that this one had let go of would be counted.
    let made = std::process::Command::new(std::env::current_exe().expect("it runs"))
        .env(STORES_TO_MAKE, dir.path())
        .status();
    assert!(made.expect("begins").success());
    let own = Db::open(path(0), Options::new()).expect("opens");
    wait_for_threads(THREADS_OF_ONE);
    let memory_of_one = status("VmRSS:") * 1024;
    let resources = resources(ResourceOptions::new());
    let open = |store| Db::open_with(path(store), Options::new(), shared(&resources));
    let stores: Vec<Db> = (1..STORES).map(|store| open(store).expect("opens")).collect();
    for db in &stores {
        db.put("open", "yes").expect("writes");
        assert!(db.get(key(500)).expect("reads").is_some());
        assert!(db.get("missing").expect("reads").is_none());
    }
    assert_eq!(resources.stats().stores, STORES - 1);
    let threads = resources.stats().threads;
    wait_for_threads(THREADS_OF_ONE + threads);
    assert!(threads <= THREADS_OF_ONE + THREADS_MAX, "{threads} threads");
    let memory = (status("VmRSS:") * 1024).saturating_sub(memory_of_one);
    println!("{threads} threads, {THREADS_OF_ONE} of one; {} KiB more", memory >> 10);
    assert!(memory <= MEMORY_MAX, "{memory} bytes for {STORES} stores");
    drop((own, stores));
    assert_eq!(resources.stats().stores, 0);
}

fn threads_end_with_the_last_store() {
    let (disk, resources) = (Memory::new(), resources(ResourceOptions::new().merge_threads(5)));
    let open = |name: &str| Db::open_with(name, small(), in_memory(&resources, &disk));
    let (one, other) = (open("one").expect("opens"), open("other").expect("opens"));
    assert_eq!(resources.stats().threads, 13, "5 merge, 3 flush, 5 keep");
    wait_for_threads(13);
    drop(resources);
    one.close().expect("closes");
    other.put("still", "open").expect("writes");
    other.flush().expect("flushes by threads that are still there");
    other.close().expect("closes");
    wait_for_threads(0);
}

fn threads_end_with_the_last_handle() {
    let (disk, resources) = (Memory::new(), resources(ResourceOptions::new()));
    let db = Db::open_with("db", small(), in_memory(&resources, &disk)).expect("opens");
    db.close().expect("closes");
    wait_for_threads(resources.stats().threads);
    drop(resources);
    wait_for_threads(0);
}
