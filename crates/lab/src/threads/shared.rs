//! The state that threads share.
//! ```text
//! plan, counts, posts: of all histories    shares, ledger, clock, disk: of one    over: of a round
//! ```
//! Invariant: the first failure is reported, and ends every round and history.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use trommel::Environment;
use trommel::{Options, Resources, SyncPolicy};

use super::clock::TickClock;
use super::disk::{STORE, WatchedDisk};
use super::ledger::Ledger;
use super::plan::ThreadsPlan;
use super::posts::Posts;
use super::setup;
use super::share::Shares;

/// A deliberate fault, which shows that the test can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sabotage {
    /// Some writes are acknowledged but not made.
    LostWrite,
    /// A batch is written change by change.
    SplitBatch,
    /// A reader treats an old snapshot as the current state.
    OldAnswer,
    /// An obsolete table is not removed.
    LeftTable,
    /// Much more than the tree is on the disk, while all threads work.
    Hoard,
    /// The log is not synced.
    NeverSynced,
    /// A thread hangs.
    Stuck,
    /// Scans take longer and longer.
    SlowScan,
    /// A file of the store stays open.
    OpenFile,
}

/// A counter of all threads.
#[derive(Default)]
pub(super) struct Count(AtomicU64);

impl Count {
    pub(super) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub(super) fn rise_to(&self, least: u64) {
        self.0.fetch_max(least, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The counts over all histories.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) histories: Count,
    pub(super) openings: Count,
    pub(super) operations: Count,
    pub(super) writes: Count,
    pub(super) answers: Count,
    pub(super) flushes: Count,
    pub(super) merges: Count,
    pub(super) checkpoints: Count,
    pub(super) backups: Count,
    pub(super) shipments: Count,
    pub(super) verified: Count,
    pub(super) rests: Count,
    /// The longest times, in microseconds.
    pub(super) step_cpu_us: Count,
    pub(super) rest_us: Count,
    pub(super) unsynced_us: Count,
    /// The peak sizes, in bytes.
    pub(super) resident_bytes: Count,
    pub(super) table_bytes: Count,
}

/// The state that all histories share.
pub(super) struct Whole {
    pub(super) plan: ThreadsPlan,
    pub(super) lie: Option<Sabotage>,
    pub(super) counts: Counts,
    pub(super) posts: Posts,
    pub(super) deadline: Instant,
    /// The current history with its options.
    pub(super) under_way: Mutex<Option<Arc<Shared>>>,
    pub(super) failure: Mutex<Option<Wrong>>,
}

/// The first failure.
#[derive(Clone, Debug)]
pub(super) struct Wrong {
    pub(super) seed: u64,
    pub(super) what: String,
    pub(super) setup: String,
    /// What each thread was doing.
    pub(super) threads: Vec<String>,
}

/// The state that the threads of one history share.
pub(super) struct Shared {
    whole: Arc<Whole>,
    pub(super) seed: u64,
    pub(super) shares: Shares,
    pub(super) ledger: Ledger,
    pub(super) clock: Arc<TickClock>,
    pub(super) disk: WatchedDisk,
    /// Whether some values are several MiB.
    pub(super) has_large: bool,
    /// The store's folder.
    pub(super) store: PathBuf,
    options: Mutex<Options>,
    /// The resources that the open store shares with its copies, in some histories.
    resources: Mutex<Option<Resources>>,
    round_is_over: AtomicBool,
    history_is_over: AtomicBool,
}

impl std::ops::Deref for Shared {
    type Target = Whole;

    fn deref(&self) -> &Whole {
        &self.whole
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Whole {
    pub(super) fn lies(&self, lie: Sabotage) -> bool {
        self.lie == Some(lie)
    }

    pub(super) fn has_failed(&self) -> bool {
        lock(&self.failure).is_some()
    }

    /// Notes a failure. Only the first one counts.
    pub(super) fn fail(&self, what: String) {
        let threads = self.posts.tell();
        let under_way = lock(&self.under_way).clone();
        let setup = under_way.as_ref().map(|shared| shared.setup()).unwrap_or_default();
        let seed = under_way.map_or(self.plan.seed, |shared| shared.seed);
        lock(&self.failure).get_or_insert(Wrong { seed, what, setup, threads });
    }

    pub(super) fn is_late(&self) -> bool {
        Instant::now() >= self.deadline
    }

    /// Returns what takes longer than allowed. None: nothing does.
    pub(super) fn overdue(&self) -> Option<String> {
        let of_log = lock(&self.under_way).clone().and_then(|shared| shared.log_overdue());
        of_log.or_else(|| self.posts.late(self.plan.patience))
    }
}

impl Shared {
    pub(super) fn new(
        whole: &Arc<Whole>,
        seed: u64,
        shares: Shares,
        has_large: bool,
    ) -> Arc<Shared> {
        let shared = Arc::new(Shared {
            whole: Arc::clone(whole),
            seed,
            ledger: Ledger::new(&shares.lanes),
            shares,
            clock: Arc::new(TickClock::new()),
            disk: WatchedDisk::default(),
            has_large,
            store: whole.plan.folder.join(STORE),
            options: Mutex::default(),
            resources: Mutex::default(),
            round_is_over: AtomicBool::new(false),
            history_is_over: AtomicBool::new(false),
        });
        *lock(&whole.under_way) = Some(Arc::clone(&shared));
        shared
    }

    pub(super) fn environment(&self) -> Environment {
        let (storage, clock) = (Arc::new(self.disk.clone()), Arc::clone(&self.clock) as _);
        self.share(Environment::new().storage(storage).clock(clock))
    }

    /// Adds the shared resources to the environment of the store or of a copy.
    pub(super) fn share(&self, environment: Environment) -> Environment {
        match &*lock(&self.resources) {
            Some(resources) => environment.resources(resources),
            None => environment,
        }
    }

    pub(super) fn options(&self) -> Options {
        lock(&self.options).clone()
    }

    pub(super) fn begin_round(&self, options: Options) {
        *lock(&self.resources) = setup::resources(self.seed, &options);
        *lock(&self.options) = options;
        self.round_is_over.store(false, Ordering::SeqCst);
    }

    /// Drops the shared resources of a closed store, so that no thread is left.
    pub(super) fn let_go(&self) {
        *lock(&self.resources) = None;
    }

    pub(super) fn end_round(&self) {
        self.round_is_over.store(true, Ordering::SeqCst);
    }

    pub(super) fn end_history(&self) {
        self.history_is_over.store(true, Ordering::SeqCst);
        self.end_round();
    }

    /// Whether the threads of the round must end.
    pub(super) fn is_over(&self) -> bool {
        self.round_is_over.load(Ordering::SeqCst) || self.has_failed()
    }

    pub(super) fn history_is_over(&self) -> bool {
        self.history_is_over.load(Ordering::SeqCst) || self.has_failed() || self.is_late()
    }

    fn setup(&self) -> String {
        crate::stress::setup::tell(&self.options())
    }

    /// Returns a message if acknowledged writes wait for their sync longer than the options
    /// promise.
    fn log_overdue(&self) -> Option<String> {
        let SyncPolicy::Interval(interval) = self.options().sync else { return None };
        let age = self.disk.unsynced_for();
        self.counts.unsynced_us.rise_to(age.as_micros() as u64);
        let limit = interval + self.plan.sync_slack;
        (age > limit).then(|| {
            let (age, interval) = (age.as_secs_f64(), interval.as_secs_f64());
            format!(
                "writes are synced every {interval} s at the latest, and some wait for {age:.2} s"
            )
        })
    }
}
