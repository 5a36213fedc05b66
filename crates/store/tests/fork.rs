//! A process that is forked: its child may not use a store that is open in the parent, and has
//! locks that are never let go of.
#![cfg(unix)]

mod door;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;
use trommel::research::Research as _;

use door::{Gate, Opens};
use trommel::options::{DirectIo, Overlap, ResourceOptions};
use trommel::storage::Memory;
use trommel::{
    Answer, Background, Batch, Db, Environment, Error, GuardKind, KeyspaceOptions, Options,
    Resources,
};

/// A child that hangs is ended by the kernel after so many seconds.
const CHILD_SECONDS: u32 = 60;

/// A child that runs, and ends with what it was to do.
struct Child {
    process: libc::pid_t,
    /// Where it says why it ended badly.
    reason: io::PipeReader,
}

/// Runs `work` in a child.
#[expect(unsafe_code, reason = "a test of forks has to fork")]
fn fork(work: impl FnOnce() -> bool) -> Child {
    let (reason, mut tell) = io::pipe().expect("a pipe");
    // SAFETY: the C library makes its own locks usable in the child. Of this program's locks the
    // child takes none that other threads may hold: that is what is tested, and a hang is ended.
    let process = unsafe { libc::fork() };
    assert!(process >= 0, "{}", io::Error::last_os_error());
    if process == 0 {
        // SAFETY: it concerns this process alone.
        unsafe { libc::alarm(CHILD_SECONDS) };
        // What it prints is kept for the end of a test that this process never comes to.
        let why = match std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)) {
            Ok(true) => String::new(),
            Ok(false) => "it was not refused, or read wrongly".into(),
            Err(panicked) => match panicked.downcast::<String>() {
                Ok(message) => format!("it panicked: {message}"),
                Err(_) => "it panicked".into(),
            },
        };
        let written = io::Write::write_all(&mut tell, why.as_bytes());
        // SAFETY: ends the process without what the parent has registered to be done at its end.
        unsafe { libc::_exit(i32::from(!why.is_empty() || written.is_err())) };
    }
    Child { process, reason }
}

impl Child {
    /// Waits for it. An error says how it ended, unless its work returned true.
    #[expect(
        unsafe_code,
        reason = "the standard library waits for no child that it has not started"
    )]
    fn end(mut self) -> Result<(), String> {
        let mut status = 0;
        // SAFETY: the child was made by `fork`, and no other thread waits for it; `status` outlives
        // the call.
        let ended = unsafe { libc::waitpid(self.process, &raw mut status, 0) };
        assert_eq!(ended, self.process);
        if libc::WIFSIGNALED(status) {
            return Err(match libc::WTERMSIG(status) {
                libc::SIGALRM => format!("it hung for {CHILD_SECONDS} s"),
                signal => format!("signal {signal} ended it"),
            });
        }
        if libc::WEXITSTATUS(status) == 0 {
            return Ok(());
        }
        // Children that were made meanwhile have the other end, too, but end in time.
        let mut reason = String::new();
        io::Read::read_to_string(&mut self.reason, &mut reason).expect("text");
        Err(reason)
    }
}

/// Runs `work` in a child, and waits for it.
fn in_child(work: impl FnOnce() -> bool) -> Result<(), String> {
    fork(work).end()
}

/// What a child says that was forked while another thread was starting or ending.
const NO_THREADS: &str = "the standard library starts no threads here";

/// Fails where this process can start no threads: the standard library holds a lock while one
/// starts or ends, and of a child that is forked meanwhile nobody ever lets go of it.
fn require_threads() {
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || tell.send(()));
    assert!(told.recv_timeout(Duration::from_secs(5)).is_ok(), "{NO_THREADS}");
}

fn lacks_threads(child: &Result<(), String>) -> bool {
    child.as_ref().is_err_and(|why| why.contains(NO_THREADS))
}

fn options() -> Options {
    Options::new().write_buffer_bytes(16 << 10)
}

fn is_forked<T>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::Forked { .. }))
}

/// Whether every call says that the store belongs to another process.
fn refuses_everything(db: &Db, copy: &Path) -> bool {
    let get = |answer| matches!(answer, Some(Answer::Value(Err(Error::Forked { .. }))));
    let mut queue = db.queue(4);
    queue.submit_get("a", 1);
    let of_get = queue.wait().map(|answered| answered.answer);
    queue.submit_range("a".."b", 1, 2);
    let of_range = queue.wait().map(|answered| answered.answer);
    let is_refused = [
        is_forked(db.get("a")),
        is_forked(db.multi_get(&["a"]).remove(0)),
        get(of_get),
        matches!(of_range, Some(Answer::Entries(Err(Error::Forked { .. })))),
        is_forked(db.put("a", "of the child")),
        is_forked(db.put_ttl("a", "of the child", Duration::from_secs(100))),
        is_forked(db.delete("a")),
        is_forked(db.delete_range("a", "b")),
        is_forked(db.ingest([("a", "of the child")])),
        is_forked(db.write(Batch::new())),
        is_forked(db.write_synced(Batch::new())),
        is_forked(db.sync()),
        db.range(..).next().is_some_and(is_forked),
        db.range(..).next_back().is_some_and(is_forked),
        is_forked(db.snapshot().get("a")),
        db.snapshot().range(..).next().is_some_and(is_forked),
        is_forked(db.estimate_count(..)),
        is_forked(db.may_contain_range(..)),
        is_forked(db.multi_may_contain([..])),
        is_forked(db.flush()),
        is_forked(db.compact()),
        is_forked(db.settle()),
        is_forked(db.step()),
        is_forked(db.step_any(0)),
        is_forked(db.checkpoint(copy)),
        is_forked(db.verify()),
        is_forked(db.stats()),
        is_forked(db.follow_tree(drop)),
        is_forked(db.unfollow_tree()),
        is_forked(db.pinned_tree().holders(b"a")),
        is_forked(db.close()),
        db.name().is_empty(),
    ];
    assert!(is_refused.iter().all(|refused| *refused), "{is_refused:?}");
    true
}

#[test] // Five acknowledged writes of the parent were gone after a clean close.
fn a_child_writes_nothing_and_the_parent_loses_nothing() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let copy = dir.path().join("copy");
    let db = Db::open(dir.path().join("store"), options()).expect("opens");
    (0..5u32).for_each(|number| db.put(number.to_be_bytes(), "before").expect("writes"));
    let mut db = Some(db);
    let ended = in_child(|| {
        let db = db.take().expect("open");
        let refused = refuses_everything(&db, &copy);
        drop(db);
        refused
    });
    ended.expect("the child");
    // It unlocks nothing: neither the parent nor another child gets the lock.
    let is_locked = || {
        let opened = Db::open(dir.path().join("store"), options());
        matches!(opened, Err(Error::Locked { .. }))
    };
    assert!(is_locked());
    in_child(is_locked).expect("the child");
    let db = db.expect("the parent's is open");
    (5..10u32).for_each(|number| db.put(number.to_be_bytes(), "after").expect("writes"));
    db.close().expect("closes");
    assert!(!copy.exists());
    let db = Db::open(dir.path().join("store"), options()).expect("opens");
    assert_eq!(db.range(..).filter(Result::is_ok).count(), 10);
}

/// Children are made while threads of the parent hold any of the store's locks.
fn forks_amid_everything(options: Options) {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let store = dir.path().join("store");
    let db = Db::open(&store, options.clone()).expect("opens");
    let (is_over, acknowledged) = (AtomicBool::new(false), AtomicU64::new(0));
    let ended = std::thread::scope(|scope| {
        let (mut ended, mut round) = (Ok(()), 0);
        scope.spawn(|| {
            for number in 0u64.. {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                // Few keys, so that forking and the look at the end stay quick.
                db.put((number % 20_000).to_be_bytes(), [7; 100]).expect("writes");
                acknowledged.store(number + 1, Ordering::Relaxed);
            }
        });
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let snapshot = db.snapshot();
                assert!(snapshot.range(..).take(500).all(|entry| entry.is_ok()));
                db.stats().expect("open");
            }
        });
        scope.spawn(|| {
            let mut queue = db.queue(16);
            for number in 0u64.. {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                queue.submit_get((number % 10_000).to_be_bytes(), number);
                while queue.under_way() > 16 {
                    let _ = queue.wait();
                }
            }
        });
        while round < 10 {
            let (mut queue, snapshot) = (db.queue(8), db.snapshot());
            let (mut scan, pinned) = (db.range(..), db.pinned_tree());
            let _ = scan.next();
            (0..8u64).for_each(|number| queue.submit_get((number * 7).to_be_bytes(), number));
            let own = dir.path().join(format!("own-{round}"));
            let ours = (&db, &own, &options);
            let child = in_child(move || {
                require_threads();
                let (db, own, options) = ours;
                // A scan that has found nothing has ended.
                let refused = refuses_everything(db, &own.join("copy"))
                    && scan.next().is_none_or(is_forked)
                    && is_forked(snapshot.get("a"));
                // Those that are answered already may be right.
                while queue.wait().is_some() {}
                drop((queue, scan, snapshot, pinned));
                refused && has_a_store_of_its_own(own, options.clone())
            });
            if !lacks_threads(&child) {
                (ended, round) = (ended.and(child), round + 1);
            }
        }
        is_over.store(true, Ordering::Relaxed);
        ended
    });
    ended.expect("a child");
    db.close().expect("closes");
    let db = Db::open(&store, options).expect("opens");
    let entries = db.range(..).map(|entry| entry.expect("reads").0);
    let keys = acknowledged.load(Ordering::Relaxed).min(20_000);
    assert!(entries.eq((0..keys).map(u64::to_be_bytes)));
    assert!(db.verify().expect("reads").damage.is_empty());
}

/// Whether this process can make a store, with threads, and read it past the cache.
fn has_a_store_of_its_own(dir: &Path, options: Options) -> bool {
    let db = Db::open(dir, options).expect("opens");
    (0..500u64).for_each(|number| db.put(number.to_be_bytes(), [9; 100]).expect("writes"));
    db.compact().expect("merges");
    let keys: Vec<_> = (0..500u64).map(u64::to_be_bytes).collect();
    let found = db.multi_get(&keys);
    let found = found.into_iter().all(|value| value.expect("reads").is_some());
    db.close().expect("closes");
    found
}

#[test]
fn children_that_are_forked_amid_everything_never_hang() {
    for overlap in [Overlap::Ring, Overlap::Pool] {
        let (direct, background) = (DirectIo::ALL, Background::Threads(2));
        let cache = options().block_cache_bytes(1 << 16).overlap(overlap);
        forks_amid_everything(cache.direct(direct).background(background).guard(GuardKind::Grf));
    }
}

#[test]
fn a_store_that_is_open_in_the_parent_is_locked_for_its_child_until_the_parent_closes_it() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let db = Db::open(dir.path(), options()).expect("opens");
    let is_locked = || matches!(Db::open(dir.path(), options()), Err(Error::Locked { .. }));
    in_child(is_locked).expect("the child");
    // A child has copies of all descriptors: of the lock's too.
    let (mut reader, writer) = io::pipe().expect("a pipe");
    let mut of_parent = Some(writer);
    let child = fork(|| {
        of_parent = None;
        io::Read::read(&mut reader, &mut [0]).is_ok()
    });
    db.close().expect("closes");
    drop(Db::open(dir.path(), options()).expect("the lock is free"));
    drop(of_parent);
    child.end().expect("the child");
}

/// A child has the parent's transactions, with their locks, and a table of locks that a thread of
/// the parent may have held when it was forked.
#[test]
fn a_child_lets_go_of_transactions_and_takes_no_lock() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let db = Db::open(dir.path(), options()).expect("opens");
    let is_over = AtomicBool::new(false);
    let ended = std::thread::scope(|scope| {
        let mut ended = Ok(());
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let transaction = db.transaction();
                    transaction.get_for_update("hot").expect("locks");
                    transaction.put("hot", "x").expect("puts");
                    transaction.commit().expect("it has the lock");
                }
            });
        }
        for round in 0..40 {
            let key = [round];
            let (own, other) = (db.transaction(), db.transaction());
            own.get_for_update(key).expect("locks");
            let before = own.savepoint();
            own.get_for_update("second").expect("locks");
            let (of_child, other) = (&mut Some(own), &mut Some(other));
            let child = in_child(|| {
                let (own, other) = (of_child.take().expect("it"), other.take().expect("it"));
                let refused = is_forked(own.get_for_update("third"))
                    && is_forked(other.get_for_update(key))
                    && is_forked(db.put(key, "of the child"));
                let _ = own.savepoint();
                own.roll_back_to(&before);
                drop(other);
                refused && own.put("a", "b").is_ok() && is_forked(own.commit())
            });
            ended = ended.and(child);
            // The parent's are locked still.
            let own = of_child.take().expect("the child had a copy");
            own.put(key, "of the parent").expect("puts");
            own.commit().expect("it has the lock");
        }
        is_over.store(true, Ordering::Relaxed);
        ended
    });
    ended.expect("a child");
    assert_eq!(db.range(..).filter(Result::is_ok).count(), 41);
}

/// What stores share is of one process: a child has none of its threads.
#[test]
fn resources_of_the_parent_are_refused_in_a_child() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let shared = Resources::new(ResourceOptions::new()).expect("they make sense");
    let open = |name: &str, shared: &Resources| {
        let environment = Environment::new().resources(shared);
        Db::open_with(dir.path().join(name), options(), environment)
    };
    let db = open("of the parent", &shared).expect("opens");
    db.put("a", "b").expect("writes");
    let ended = in_child(|| {
        let refused = open("of the child", &shared).expect_err("is refused").to_string();
        assert!(refused.contains("resources") && refused.contains("fork"), "{refused}");
        assert!(is_forked(db.get("a")));
        assert_eq!(shared.stats().threads, 0, "it does not wait for locks of the parent");
        let own = Resources::new(ResourceOptions::new()).expect("they make sense");
        let of_child = open("of the child", &own).expect("opens");
        (0..500u64).for_each(|it| of_child.put(it.to_be_bytes(), [9; 100]).expect("writes"));
        of_child.flush().expect("by threads of the child");
        drop((db.clone(), shared.clone()));
        of_child.close().is_ok()
    });
    ended.expect("the child");
    db.flush().expect("the parent goes on");
    db.close().expect("closes");
}

/// Names are in the manifest, which a thread of the parent may have locked for ever.
#[test]
fn a_child_does_not_wait_for_the_name_of_a_key_space() {
    let gate = Arc::new(Gate::default());
    let environment = Environment::new().storage(Arc::new(gate.disk(&Memory::new())));
    let db = Db::open_with("db", options(), environment).expect("opens");
    let made = |name| db.keyspace(name, KeyspaceOptions::new()).expect("makes it");
    let events = made("events");
    let ended = std::thread::scope(|scope| {
        let _opens = Opens(&gate);
        gate.close("sync", "MANIFEST");
        scope.spawn(|| made("other"));
        gate.wait();
        in_child(|| events.name().is_empty() && format!("{events:?}").starts_with("Keyspace"))
    });
    ended.expect("the child");
    assert_eq!(events.name(), "events");
}
