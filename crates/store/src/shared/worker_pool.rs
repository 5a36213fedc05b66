//! Threads that do the background work of one store, or of many.
//! ```text
//! store -call-> its task of that kind <- threads of that kind take turns over all stores
//!               due: called, or its time came     -> one piece of work -> due again
//!                                                                      -> due after a time
//!                                                                      -> due when called
//!                                                   a panic           -> due after a pause,
//!                                                                        longer each time
//! ```
//! A panic comes from user code (`Storage`, `Clock`) or from a bug of ours. Meanwhile, the thread
//! continues with other work.
//!
//! Invariants: no work is done while the pool's lock is held. No call is lost: a task that is
//! called while a thread works on it is looked at again. After `leave` no thread works for the
//! store. A store that is not called and waits for no time costs nothing: no thread looks at it.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::files::drop_notice::DropListener;
use crate::storage::life::Life;
use crate::sync::{
    Arc, Builder, Condvar, JoinHandle, Mutex, MutexGuard, ThreadId, current, lock, now, wait,
    wait_for,
};

/// The time after which failed work is tried again. Each failure doubles it.
pub(crate) const RETRY_FIRST: Duration = Duration::from_millis(50);
pub(crate) const RETRY_LONGEST: Duration = Duration::from_secs(10);

/// The kinds of background work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkKind {
    Flush,
    Merge,
    /// Syncs the log on time, and removes files.
    Keep,
}

const KINDS: [WorkKind; 3] = [WorkKind::Flush, WorkKind::Merge, WorkKind::Keep];

impl WorkKind {
    /// Returns the name of the threads for this kind.
    fn thread_name(self) -> &'static str {
        match self {
            WorkKind::Flush => "trommel-flush",
            WorkKind::Merge => "trommel-merge",
            WorkKind::Keep => "trommel-keeper",
        }
    }
}

/// The number of threads of each kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PoolSize {
    flush: usize,
    merge: usize,
    keep: usize,
}

impl PoolSize {
    /// A single store flushes one memtable at a time.
    pub(crate) fn of_one_store(merge: usize) -> Self {
        PoolSize { flush: 1, merge, keep: 1 }
    }

    /// Of several stores, some wait for the disk while others continue. A store whose disk hangs
    /// blocks one flushing and one keeping thread. Keeping threads mostly wait for syncs.
    pub(crate) fn of_many_stores(merge: usize) -> Self {
        PoolSize { flush: merge.div_ceil(2).max(2), merge, keep: merge.max(4) }
    }

    fn of(self, kind: WorkKind) -> usize {
        match kind {
            WorkKind::Flush => self.flush,
            WorkKind::Merge => self.merge,
            WorkKind::Keep => self.keep,
        }
    }
}

/// A store that the threads work for.
pub(crate) trait Client: Send + Sync {
    /// Does one piece of work, if there is any.
    fn work(&self, kind: WorkKind) -> Reschedule;

    /// Notes that work has panicked. It pauses until `begin_anew`.
    fn note_panic(&self, kind: WorkKind);

    /// Notes that work resumes after a panic.
    fn begin_anew(&self);
}

/// When to look at a task again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reschedule {
    Now,
    /// After this time, or when it is called.
    After(Duration),
    WhenCalled,
}

impl Reschedule {
    /// Returns the sooner of this and `time` from now.
    pub(crate) fn at_latest(self, time: Option<Duration>) -> Reschedule {
        match (self, time) {
            (Reschedule::After(own), Some(time)) => Reschedule::After(own.min(time)),
            (Reschedule::WhenCalled, Some(time)) => Reschedule::After(time),
            (next, _) => next,
        }
    }
}

/// A pool of threads. They end when it is dropped.
pub(crate) struct WorkerPool {
    size: PoolSize,
    tasks: Arc<Tasks>,
    threads: Mutex<Threads>,
    /// The process with the threads. A forked child has none of them.
    process: u32,
}

#[derive(Default)]
struct Threads {
    handles: Vec<JoinHandle<()>>,
    /// The number of threads of each kind.
    counts: [usize; 3],
}

/// The work to be done, for all stores.
#[derive(Default)]
struct Tasks {
    state: Mutex<State>,
    /// By kind: signalled when a task of the kind is called.
    called: [Condvar; 3],
    /// Signalled when a thread stops working for a store that leaves.
    left: Condvar,
}

#[derive(Default)]
struct State {
    clients: BTreeMap<u64, Box<Joined>>,
    next_id: u64,
    /// By kind.
    turns: [Turns; 3],
    /// By kind: sleeping threads. A wake-up costs a system call even if none sleeps.
    asleep: [usize; 3],
    is_ending: bool,
}

struct Joined {
    client: Arc<dyn Client>,
    is_leaving: bool,
    tasks: [Task; 3],
}

/// The work of one kind for one store.
struct Task {
    /// The number of calls.
    calls: u64,
    /// The number of calls at the last look, if it found nothing to do. `NONE`: it found something.
    seen: u64,
    due: Option<Instant>,
    /// The threads that work on the task.
    threads: Vec<ThreadId>,
    /// Some: the task has panicked.
    panics: Option<Box<Panics>>,
}

/// Not a number of calls.
const NONE: u64 = u64::MAX;

struct Panics {
    /// The task is paused until it is due.
    is_paused: bool,
    /// The last pause, and the time when work resumed after it.
    pause: Duration,
    begun: Instant,
}

/// A task that a thread has taken.
struct Taken {
    id: u64,
    client: Arc<dyn Client>,
    calls: u64,
    begins_anew: bool,
}

impl Joined {
    /// Returns whether a thread may take a task now, and when it may later.
    fn turn(&self, kind: WorkKind) -> (bool, Option<Instant>) {
        let task = &self.tasks[kind as usize];
        match !self.is_leaving && task.is_free(kind) {
            true => (task.is_called(), task.due),
            false => (false, None),
        }
    }
}

impl Task {
    fn new() -> Self {
        Task { calls: 0, seen: NONE, due: None, threads: Vec::new(), panics: None }
    }

    /// Whether another thread may take the task once it is due. Only merges of one store run on
    /// several threads.
    fn is_free(&self, kind: WorkKind) -> bool {
        kind == WorkKind::Merge || self.threads.is_empty()
    }

    fn is_called(&self) -> bool {
        self.seen != self.calls && !self.is_paused()
    }

    fn is_paused(&self) -> bool {
        self.panics.as_ref().is_some_and(|panics| panics.is_paused)
    }

    /// Notes that a thread takes the task. Returns whether it resumes after a panic.
    fn begin(&mut self, now: Instant) -> bool {
        self.threads.push(current().id());
        if self.due.is_some_and(|due| due <= now) {
            self.due = None;
        }
        let begins_anew = self.is_paused();
        if let Some(panics) = self.panics.as_mut().filter(|panics| panics.is_paused) {
            (panics.is_paused, panics.begun) = (false, now);
        }
        begins_anew
    }

    /// Notes that the thread is done with the task. `next` None: it has panicked.
    fn end(&mut self, calls: u64, next: Option<Reschedule>, now: Instant) {
        let own = self.threads.iter().position(|thread| *thread == current().id());
        own.map(|place| self.threads.swap_remove(place));
        self.seen = match next {
            Some(Reschedule::After(_) | Reschedule::WhenCalled) => calls,
            Some(Reschedule::Now) | None => NONE,
        };
        let time = match next {
            Some(Reschedule::After(time)) => time,
            Some(Reschedule::Now | Reschedule::WhenCalled) => return,
            None => {
                self.due = None;
                let first = || Panics { is_paused: true, pause: Duration::ZERO, begun: now };
                let panics = self.panics.get_or_insert_with(|| Box::new(first()));
                let well = now.saturating_duration_since(panics.begun);
                (panics.is_paused, panics.pause) = (true, pause_after(panics.pause, well));
                panics.pause
            }
        };
        // A time beyond the clock's range never comes.
        let due = now.checked_add(time);
        self.due = self.due.into_iter().chain(due).min();
    }
}

/// Returns the pause after a panic, from the last pause and the time without panics since.
fn pause_after(last: Duration, well: Duration) -> Duration {
    let doubled = if well > RETRY_LONGEST { RETRY_FIRST } else { 2 * last };
    doubled.clamp(RETRY_FIRST, RETRY_LONGEST)
}

impl State {
    /// Takes a due task, of the client whose turn it is or of the first one after it.
    fn take(&mut self, kind: WorkKind) -> Option<Taken> {
        let now = now();
        let id = self.turns[kind as usize].next(now)?;
        let joined = self.clients.get_mut(&id)?;
        let task = &mut joined.tasks[kind as usize];
        let begins_anew = task.begin(now);
        let taken =
            Taken { id, client: Arc::clone(&joined.client), calls: task.calls, begins_anew };
        self.changed(id, kind);
        Some(taken)
    }

    /// Updates the turns after a client's task has changed.
    fn changed(&mut self, id: u64, kind: WorkKind) {
        let turn = self.clients.get(&id).map_or((false, None), |joined| joined.turn(kind));
        self.turns[kind as usize].set(id, turn);
    }
}

impl Tasks {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// The main loop of a thread.
    fn live(&self, kind: WorkKind) {
        while let Some(taken) = self.next(kind) {
            let Taken { id, client, calls, begins_anew } = taken;
            if begins_anew {
                client.begin_anew();
            }
            let worked = catch_unwind(AssertUnwindSafe(|| client.work(kind)));
            // Dropping the panic's payload may panic in turn, as may dropping what a client owns.
            let next = worked.map_err(std::mem::forget).ok();
            if next.is_none() {
                client.note_panic(kind);
            }
            // The last handle must not be dropped while the lock is held.
            let _ = catch_unwind(AssertUnwindSafe(|| drop(client))).map_err(std::mem::forget);
            self.end(id, kind, calls, next);
        }
    }

    /// Waits for a due task. None: the thread must end.
    fn next(&self, kind: WorkKind) -> Option<Taken> {
        let mut state = self.state();
        loop {
            if state.is_ending {
                return None;
            }
            if let Some(taken) = state.take(kind) {
                return Some(taken);
            }
            let called = &self.called[kind as usize];
            state.asleep[kind as usize] += 1;
            state = match state.turns[kind as usize].next_due() {
                Some(due) => {
                    let time = due.saturating_duration_since(now());
                    wait_for(called, &self.state, state, time).0
                }
                None => wait(called, state),
            };
            state.asleep[kind as usize] -= 1;
        }
    }

    fn end(&self, id: u64, kind: WorkKind, calls: u64, next: Option<Reschedule>) {
        let mut state = self.state();
        if let Some(joined) = state.clients.get_mut(&id) {
            let task = &mut joined.tasks[kind as usize];
            task.end(calls, next, now());
            let is_due_later = task.due.is_some();
            if joined.is_leaving {
                self.left.notify_all();
            }
            state.changed(id, kind);
            // Wakes a thread that sleeps without knowing of this time: this thread may take other
            // work.
            if is_due_later && state.asleep[kind as usize] > 0 {
                self.called[kind as usize].notify_one();
            }
        }
    }

    fn call(&self, id: u64, kinds: &[WorkKind]) {
        let mut state = self.state();
        let Some(joined) = state.clients.get_mut(&id) else { return };
        kinds.iter().for_each(|&kind| joined.tasks[kind as usize].calls += 1);
        kinds.iter().for_each(|&kind| state.changed(id, kind));
        let wakes = |kind: &&WorkKind| state.asleep[**kind as usize] > 0;
        // Several threads may work on the merges of one store.
        kinds.iter().filter(wakes).for_each(|&kind| match kind {
            WorkKind::Merge => self.called[kind as usize].notify_all(),
            _ => self.called[kind as usize].notify_one(),
        });
    }

    /// Returns when no other thread works for the client.
    fn leave(&self, id: u64) {
        let mut state = self.state();
        let is_left = loop {
            let Some(joined) = state.clients.get_mut(&id) else { return };
            joined.is_leaving = true;
            KINDS.into_iter().for_each(|kind| state.changed(id, kind));
            let Some(joined) = state.clients.get(&id) else { return };
            let mut threads = joined.tasks.iter().flat_map(|task| &task.threads);
            // Otherwise a listener that closes its store would wait for itself.
            if threads.all(|thread| *thread == current().id()) {
                break state.clients.remove(&id);
            }
            state = wait(&self.left, state);
        };
        self.left.notify_all();
        drop(state);
        drop(is_left);
    }
}

impl WorkerPool {
    /// Makes a pool. Its threads start when the first client joins.
    pub(crate) fn new(size: PoolSize) -> Self {
        let (tasks, threads, process) = (Arc::default(), Mutex::default(), std::process::id());
        WorkerPool { size, tasks, threads, process }
    }

    /// Reserves a place for a client that may join.
    pub(crate) fn place(&self, life: Arc<Life>) -> Workers {
        let mut state = self.tasks.state();
        state.next_id += 1;
        Workers { tasks: Arc::clone(&self.tasks), id: state.next_id, life }
    }

    /// Begins to work for a client.
    ///
    /// # Errors
    /// A thread could not be started. Then the client has not joined.
    pub(crate) fn join(&self, place: &Workers, client: Arc<dyn Client>) -> Result<()> {
        KINDS.into_iter().try_for_each(|kind| self.start_threads(kind))?;
        let tasks = KINDS.map(|_| Task::new());
        let joined = Box::new(Joined { client, is_leaving: false, tasks });
        self.tasks.state().clients.insert(place.id, joined);
        place.call(&KINDS);
        Ok(())
    }

    /// Starts the missing threads of a kind.
    fn start_threads(&self, kind: WorkKind) -> Result<()> {
        let mut threads = lock(&self.threads);
        while threads.counts[kind as usize] < self.size.of(kind) {
            let tasks = Arc::clone(&self.tasks);
            let builder = Builder::new().name(kind.thread_name().into());
            let thread = builder.spawn(move || tasks.live(kind));
            threads.handles.push(thread.map_err(Error::io("a background thread"))?);
            threads.counts[kind as usize] += 1;
        }
        Ok(())
    }

    /// Returns the number of clients, and the number of threads.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.tasks.state().clients.len(), lock(&self.threads).handles.len())
    }

    /// Whether this process is a forked child of the one with the threads.
    pub(crate) fn is_forked(&self) -> bool {
        std::process::id() != self.process
    }
}

impl Drop for WorkerPool {
    fn drop(&mut self) {
        // In a child, the lock may be held for ever.
        if self.is_forked() {
            return;
        }
        self.tasks.state().is_ending = true;
        self.tasks.called.iter().for_each(Condvar::notify_all);
        for thread in lock(&self.threads).handles.drain(..) {
            if thread.thread().id() != current().id() {
                // The panic of a thread was reported already.
                let _ = thread.join();
            }
        }
    }
}

/// A store's place among the clients of a pool, through which it calls threads.
pub(crate) struct Workers {
    tasks: Arc<Tasks>,
    id: u64,
    life: Arc<Life>,
}

impl Workers {
    /// Makes threads look for work of these kinds. Does nothing if no threads work for the store:
    /// it is stepped, or closed, or this process is a forked child.
    pub(crate) fn call(&self, kinds: &[WorkKind]) {
        if !self.life.is_forked() {
            self.tasks.call(self.id, kinds);
        }
    }

    /// Returns when no thread works for the store.
    pub(crate) fn leave(&self) {
        self.tasks.leave(self.id);
    }
}

impl DropListener for Workers {
    /// The table's file can be removed now.
    fn was_dropped(&self) {
        self.call(&[WorkKind::Keep]);
    }
}

mod turns;
use turns::Turns;

#[cfg(test)]
mod tests;
