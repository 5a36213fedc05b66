//! Stores that share resources: none is starved by another, and each is as right as alone.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::door::{Door, Gate, Opens, until};
use crate::sharing::{in_memory, key, resources, shared, small};
use trommel::options::ResourceOptions;
use trommel::storage::{Memory, Storage};
use trommel::{Background, Db, Environment, Options, Resources, SyncPolicy};

#[test]
fn stores_that_share_hold_what_was_written_to_each() {
    const WRITERS: usize = 4;
    let disk = Memory::new();
    let options = ResourceOptions::new().write_memory_bytes(256 << 10).merge_threads(2);
    let resources = resources(options.block_cache_bytes(64 << 10));
    let open = |store: usize| {
        let environment = in_memory(&resources, &disk);
        Db::open_with(format!("store {store}"), small(), environment).expect("opens")
    };
    let stores: Vec<Db> = (0..12).map(open).collect();
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let stores = &stores;
            scope.spawn(move || {
                for number in (writer..12_000).step_by(WRITERS) {
                    // Some are written often, and some hardly.
                    let store = (number % 79) % stores.len();
                    stores[store].put(key(number), key(number * 7)).expect("writes");
                }
            });
        }
    });
    for (store, db) in stores.iter().enumerate() {
        db.settle().expect("all goes well");
        assert!(db.verify().expect("reads").damage.is_empty());
        let numbers: Vec<usize> = (0..12_000).filter(|it| (it % 79) % 12 == store).collect();
        let found = db.iter().map(|entry| entry.expect("reads"));
        let found: Vec<_> = found.map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
        let written = numbers.iter().map(|&it| (key(it).to_vec(), key(it * 7).to_vec()));
        assert_eq!(found, written.collect::<Vec<_>>(), "store {store}");
    }
    let stats = resources.stats();
    let of_stores = stores.iter().map(|db| db.stats().expect("open").cache_bytes);
    assert_eq!(of_stores.sum::<u64>(), stats.cache_bytes, "each counts its own");
    assert!(stats.cache_bytes > 0 && stats.cache_bytes <= 64 << 10, "{stats:?}");
}

#[test]
fn the_largest_memtable_is_flushed_when_memory_is_short_whoever_writes() {
    let disk = Memory::new();
    let resources = resources(ResourceOptions::new().write_memory_bytes(256 << 10));
    let stepped = Options::new().background(Background::Stepped);
    let open = |name: &str| {
        let environment = in_memory(&resources, &disk);
        Db::open_with(name, stepped.clone(), environment).expect("opens")
    };
    let (idle, busy) = (open("idle"), open("busy"));
    let fill = |db: &Db, bytes: usize| {
        (0..bytes / 1_000).for_each(|number| db.put(key(number), [7; 1_000]).expect("writes"));
    };
    fill(&idle, 80_000);
    assert!(!idle.step().expect("steps"), "half of the memory is enough");
    fill(&busy, 50_000);
    assert!(!busy.step().expect("steps"), "the larger one is to go");
    while idle.step().expect("steps") {}
    let levels = idle.stats().expect("open").levels;
    assert_eq!(levels.iter().map(|level| level.runs.len()).sum::<usize>(), 1);
    let used = resources.stats().write_memory_bytes;
    assert!((50_000..80_000).contains(&used), "{used}");
    assert_eq!(idle.get(key(3)).expect("reads").as_deref(), Some(&[7; 1_000][..]));
    drop((idle, busy));
    assert_eq!(resources.stats().write_memory_bytes, 0);
}

#[test]
fn memory_that_logs_bring_back_counts() {
    let disk = Memory::new();
    let resources = resources(ResourceOptions::new());
    let open = || Db::open_with("db", small(), in_memory(&resources, &disk)).expect("opens");
    let db = open();
    (0..30).for_each(|number| db.put(key(number), [7; 1_000]).expect("writes"));
    let written = resources.stats().write_memory_bytes;
    db.close().expect("closes");
    assert_eq!(resources.stats().write_memory_bytes, 0);
    let db = open();
    let used = resources.stats().write_memory_bytes;
    assert!(used > 30_000 && used.abs_diff(written) < written / 4, "{used}, {written} before");
    db.flush().expect("flushes");
    assert!(resources.stats().write_memory_bytes < 1_000);
}

#[test]
fn a_store_whose_disk_fails_does_not_stop_the_others() {
    let (good_disk, bad_disk) = (Memory::new(), Memory::new());
    let resources = resources(ResourceOptions::new().merge_threads(1));
    let good = Db::open_with("good", small(), in_memory(&resources, &good_disk)).expect("opens");
    let bad = Db::open_with("bad", small(), in_memory(&resources, &bad_disk)).expect("opens");
    bad_disk.no_space(true);
    let mut failed = false;
    for number in 0..600 {
        failed |= bad.put(key(number), [7; 1_000]).is_err();
        good.put(key(number), [7; 1_000]).expect("writes");
    }
    assert!(failed || bad.flush().is_err(), "its disk is full");
    good.flush().expect("flushes");
    good.settle().expect("merges");
    assert_eq!(good.iter().count(), 600);
    good.close().expect("closes");
}

#[test]
fn options_that_make_no_sense_are_named() {
    let refused = |options: ResourceOptions, name: &str| {
        let error = Resources::new(options).expect_err("is refused").to_string();
        assert!(error.contains(name), "{error}");
    };
    refused(ResourceOptions::new().merge_threads(0), "merge_threads");
    refused(ResourceOptions::new().merge_threads(1025), "merge_threads");
    refused(ResourceOptions::new().write_memory_bytes(1), "write_memory_bytes");
    refused(ResourceOptions::new().merge_bytes_per_second(0), "merge_bytes_per_second");
}

#[test]
fn a_store_takes_its_own_options_where_it_shares_nothing() {
    let disk = Memory::new();
    let environment = Environment::new().storage(Arc::new(disk));
    let db = Db::open_with(Path::new("db"), small(), environment).expect("opens");
    (0..400).for_each(|number| db.put(key(number), [7; 1_000]).expect("writes"));
    db.settle().expect("flushes and merges");
    assert_eq!(db.iter().count(), 400);
}

fn on(disk: impl Storage + 'static, resources: &Resources) -> Environment {
    shared(resources).storage(Arc::new(disk))
}

fn runs(db: &Db) -> usize {
    db.stats().expect("open").levels.iter().map(|level| level.runs.len()).sum()
}

/// Whether work ends. What hangs is left behind.
fn ends(work: impl FnOnce() + Send + 'static) -> bool {
    const PATIENCE: Duration = Duration::from_secs(60);
    let (done, ended) = channel();
    std::thread::spawn(move || {
        work();
        let _ = done.send(());
    });
    ended.recv_timeout(PATIENCE).is_ok()
}

/// A store with runs that are due to be merged.
fn make_due(disk: &Memory, name: &str, run_count: usize, bytes: usize) {
    let options = small().background(Background::Stepped).write_buffer_bytes(64 << 20);
    let environment = Environment::new().storage(Arc::new(disk.clone()));
    let db = Db::open_with(name, options, environment).expect("opens");
    for run in 0..run_count {
        let numbers = (run..bytes / 1_000 * run_count).step_by(run_count);
        numbers.for_each(|number| db.put(key(number), [7; 1_000]).expect("writes"));
        db.flush().expect("flushes");
    }
    db.close().expect("closes");
}

#[test] // The one thread that flushed was held.
fn a_store_whose_disk_hangs_does_not_stop_the_others() {
    let (disk, slow, gate) = (Memory::new(), Memory::new(), Arc::new(Gate::default()));
    let resources = resources(ResourceOptions::new());
    let good = Db::open_with("good", small(), in_memory(&resources, &disk)).expect("opens");
    let bad = Db::open_with("bad", small(), on(gate.disk(&slow), &resources)).expect("opens");
    gate.close("create", ".table");
    let _opens = Opens(&gate);
    (0..100).for_each(|number| bad.put(key(number), [7; 1_000]).expect("writes"));
    gate.wait();
    assert!(ends(move || {
        (0..1_000).for_each(|number| good.put(key(number), [7; 1_000]).expect("writes"));
        good.close().expect("closes");
    }));
}

#[test] // The one keeper was held: what was written seconds ago was lost by a power cut.
fn a_hanging_sync_of_one_store_delays_no_sync_of_another() {
    let (disk, slow, gate) = (Memory::new(), Memory::new(), Arc::new(Gate::default()));
    let resources = resources(ResourceOptions::new());
    let options = || Options::new().sync(SyncPolicy::Interval(Duration::from_millis(20)));
    let good = Db::open_with("good", options(), in_memory(&resources, &disk)).expect("opens");
    let bad = Db::open_with("bad", options(), on(gate.disk(&slow), &resources)).expect("opens");
    bad.put("a", "b").and_then(|()| bad.sync()).expect("writes");
    gate.close("sync beside", ".wal");
    let _opens = Opens(&gate);
    bad.put("key", "value").expect("writes");
    gate.wait();
    good.put("key", "value").expect("writes");
    until("it survives a power cut", || {
        let environment = Environment::new().storage(Arc::new(disk.crash_hard()));
        let left = Db::open_with("good", options(), environment);
        left.is_ok_and(|left| left.get("key").is_ok_and(|value| value.is_some()))
    });
}

#[test] // The memory stayed counted, once for each attempt.
fn a_store_whose_opening_panics_gives_back_its_memory() {
    let disk = Memory::new();
    let resources = resources(ResourceOptions::new());
    let options = || small().background(Background::Stepped);
    let db = Db::open_with("db", options(), in_memory(&resources, &disk)).expect("opens");
    (0..200).for_each(|number| db.put(key(number), [7; 1_000]).expect("writes"));
    drop(db);
    let door = Door::new(&disk, |operation, path| {
        if operation == "create" && path.to_string_lossy().ends_with(".table") {
            std::panic::resume_unwind(Box::new("as the test wants it"));
        }
    });
    let open = || Db::open_with("db", options(), on(door, &resources));
    assert!(catch_unwind(AssertUnwindSafe(open)).is_err());
    assert_eq!(resources.stats().write_memory_bytes, 0);
}

#[test] // Nobody tried again, and the memory of a store that is not written to stayed.
fn an_early_seal_that_has_failed_is_tried_again() {
    let (disk, idle_disk) = (Memory::new(), Memory::new());
    let resources = resources(ResourceOptions::new().write_memory_bytes(1 << 20));
    let (fails, failed) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let (must_fail, count) = (Arc::clone(&fails), Arc::clone(&failed));
    let door = Door::refusing(&idle_disk, move |operation, _| {
        if must_fail.load(Ordering::SeqCst) && operation == "create" {
            count.fetch_add(1, Ordering::SeqCst);
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        Ok(())
    });
    let options = || Options::new().sync(SyncPolicy::Never);
    let idle = Db::open_with("idle", options(), on(door, &resources)).expect("opens");
    let busy = Db::open_with("busy", options(), in_memory(&resources, &disk)).expect("opens");
    (0..480).for_each(|number| idle.put(key(number), [7; 1_000]).expect("writes"));
    fails.store(true, Ordering::SeqCst);
    (0..100).for_each(|number| busy.put(key(number), [7; 1_000]).expect("writes"));
    until("it fails", || failed.load(Ordering::SeqCst) > 0);
    fails.store(false, Ordering::SeqCst);
    until("it is flushed", || runs(&idle) > 0);
    assert_eq!(idle.iter().count(), 480);
    idle.put("and", "on").expect("writes");
}

#[test] // Their merges were open until calls that were under way had ended.
fn stores_that_are_being_closed_give_back_their_lanes() {
    let disk = Memory::new();
    (0..4).for_each(|store| make_due(&disk, &format!("large {store}"), 4, 1 << 20));
    make_due(&disk, "good", 4, 100_000);
    let resources = resources(ResourceOptions::new().merge_threads(1));
    let open = |name: &str| {
        let options = small().merge_piece_bytes(64 << 10);
        Db::open_with(name, options, in_memory(&resources, &disk)).expect("opens")
    };
    let large: Vec<Db> = (0..4).map(|store| open(&format!("large {store}"))).collect();
    let is_over = Arc::new(AtomicBool::new(false));
    for db in &large {
        let (db, is_over) = (db.clone(), Arc::clone(&is_over));
        std::thread::spawn(move || {
            let _ = db.verify_with_progress(&mut |_| {
                until("it is over", || is_over.load(Ordering::SeqCst));
                ControlFlow::Continue(())
            });
        });
    }
    for db in large {
        std::thread::spawn(move || db.close());
    }
    let good = open("good");
    let settles = ends(move || good.settle().expect("settles"));
    is_over.store(true, Ordering::SeqCst);
    assert!(settles);
}
