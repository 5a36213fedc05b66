//! A pool of threads that wait for the disk on behalf of others.
//! ```text
//! spawn(job) -> [ . . . . ] -> thread: job()      one list for the process, THREADS_MAX threads
//! ```
//! A forked child has none of the threads, and perhaps a lock that is held for ever. So it gets its
//! own pool.
//!
//! Invariants: each job is run or dropped exactly once, even if its thread panics. Threads are
//! created when a job finds none idle, and then stay.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

// The threads outlive every model, so they need the locks of std, not those of a model checker.
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwapOption;

/// As many as a modern disk serves well at once, but few enough for a small machine.
pub(crate) const THREADS_MAX: usize = 32;

/// The pool of this process, or of the process that it was forked from.
static POOL: ArcSwapOption<Pool> = ArcSwapOption::const_empty();

type Job = Box<dyn FnOnce() + Send>;

struct Pool {
    process: u32,
    state: Mutex<PoolState>,
    work: Condvar,
}

#[derive(Default)]
struct PoolState {
    jobs: VecDeque<Job>,
    threads: usize,
    /// The number of threads that wait for a job.
    idle: usize,
}

/// Runs a job on a thread of the pool. A job that panics is dropped halfway.
pub(crate) fn spawn(job: impl FnOnce() + Send + 'static) {
    this_process().push(Box::new(job));
}

/// Returns the pool of this process.
fn this_process() -> Arc<Pool> {
    let process = std::process::id();
    loop {
        let found = POOL.load_full();
        if let Some(pool) = found.as_ref().filter(|pool| pool.process == process) {
            return Arc::clone(pool);
        }
        let (state, work) = (Mutex::default(), Condvar::new());
        let new = Some(Arc::new(Pool { process, state, work }));
        // Another thread may have been faster.
        POOL.compare_and_swap(&found, new);
    }
}

/// Runs a job. If it panics, whoever waits for it sees that it was dropped, and the thread
/// continues.
fn run(job: Job) {
    let _ = catch_unwind(AssertUnwindSafe(job));
}

impl Pool {
    /// Locks the state. Nothing that can panic runs under the lock.
    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(self: &Arc<Self>, job: Job) {
        let mut state = self.lock();
        state.jobs.push_back(job);
        let needs_thread = state.jobs.len() > state.idle && state.threads < THREADS_MAX;
        state.threads += usize::from(needs_thread);
        drop(state);
        self.work.notify_one();
        if needs_thread {
            self.start_thread();
        }
    }

    fn start_thread(self: &Arc<Self>) {
        let builder = std::thread::Builder::new().name("trommel-disk".into());
        let pool = Arc::clone(self);
        let work = move || loop {
            run(pool.next());
        };
        if builder.spawn(work).is_ok() {
            return;
        }
        let mut state = self.lock();
        state.threads -= 1;
        // If there is no thread at all, the caller runs the jobs.
        let jobs =
            if state.threads == 0 { std::mem::take(&mut state.jobs) } else { VecDeque::new() };
        drop(state);
        jobs.into_iter().for_each(run);
    }

    fn next(&self) -> Job {
        let mut state = self.lock();
        state.idle += 1;
        loop {
            if let Some(job) = state.jobs.pop_front() {
                state.idle -= 1;
                return job;
            }
            state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

#[cfg(test)]
pub(crate) fn thread_count() -> usize {
    this_process().lock().threads
}
