//! Reads by threads that wait for them: where there is no ring, and where one has failed.
//! ```text
//! queue --request--> [ . . . . ] -> thread: read_at -> the queue's mailbox -> collect
//! queue --request-->      one list for the process, at most THREADS_MAX threads
//! ```
//! Invariants: each request is answered once, also when its thread panics. Threads are made when requests find
//! none at leisure, and stay.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
// The threads outlive every model: no model checker's locks.
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::read_queue::{Completed, ReadQueue, Request};
use crate::storage::ReadAt;

/// As many as a disk of today likes to have under way, less than what would burden a small machine.
const THREADS_MAX: usize = 32;

static POOL: Pool = Pool {
    state: Mutex::new(PoolState { jobs: VecDeque::new(), threads: 0, idle: 0 }),
    work: Condvar::new(),
};

struct Pool {
    state: Mutex<PoolState>,
    work: Condvar,
}

struct PoolState {
    jobs: VecDeque<Job>,
    threads: usize,
    /// Those that wait for a job.
    idle: usize,
}

/// Where answers wait for one queue.
#[derive(Default)]
struct Mailbox {
    done: Mutex<VecDeque<Completed>>,
    arrived: Condvar,
}

/// A request and who waits for it.
struct Job {
    request: Request,
    mailbox: Arc<Mailbox>,
    answered: bool,
}

/// Nothing that panics is done while one of these locks is held.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condition.wait(guard).unwrap_or_else(PoisonError::into_inner)
}

impl Mailbox {
    fn put(&self, done: Completed) {
        lock(&self.done).push_back(done);
        self.arrived.notify_one();
    }
}

impl Job {
    fn run(mut self) {
        let bytes = self.request.read();
        self.answered = true;
        self.mailbox.put(Completed { tag: self.request.tag, bytes });
    }
}

impl Drop for Job {
    /// Whoever waits for it would wait for ever.
    fn drop(&mut self) {
        if !self.answered {
            let error = io::Error::other("the thread that was to read it has panicked");
            self.mailbox.put(Completed { tag: self.request.tag, bytes: Err(error) });
        }
    }
}

impl Pool {
    fn push(&'static self, job: Job) {
        let mut state = lock(&self.state);
        state.jobs.push_back(job);
        let needs_thread = state.jobs.len() > state.idle && state.threads < THREADS_MAX;
        state.threads += usize::from(needs_thread);
        drop(state);
        self.work.notify_one();
        if needs_thread {
            self.start_thread();
        }
    }

    fn start_thread(&'static self) {
        let builder = std::thread::Builder::new().name("trommel-read".into());
        let work = || loop {
            let job = self.next();
            // What was asked for is answered when the job is dropped; the thread goes on.
            let _ = catch_unwind(AssertUnwindSafe(|| job.run()));
        };
        if builder.spawn(work).is_ok() {
            return;
        }
        let mut state = lock(&self.state);
        state.threads -= 1;
        // Without any thread, whoever asks does what is asked.
        let jobs =
            if state.threads == 0 { std::mem::take(&mut state.jobs) } else { VecDeque::new() };
        drop(state);
        jobs.into_iter().for_each(Job::run);
    }

    fn next(&self) -> Job {
        let mut state = lock(&self.state);
        state.idle += 1;
        loop {
            if let Some(job) = state.jobs.pop_front() {
                state.idle -= 1;
                return job;
            }
            state = wait(&self.work, state);
        }
    }
}

/// Reads that the threads of the pool do.
#[derive(Default)]
pub(crate) struct PoolQueue {
    mailbox: Arc<Mailbox>,
    /// Submitted and not yet collected.
    under_way: usize,
}

impl PoolQueue {
    pub(crate) fn push(&mut self, request: Request) {
        self.under_way += 1;
        POOL.push(Job { request, mailbox: Arc::clone(&self.mailbox), answered: false });
    }
}

impl ReadQueue for PoolQueue {
    fn submit(&mut self, tag: u64, file: Arc<dyn ReadAt>, offset: u64, len: usize) {
        self.push(Request { tag, file, offset, len });
    }

    fn collect(&mut self, wait_for_it: bool) -> Option<Completed> {
        if self.under_way == 0 {
            return None;
        }
        let mut done = lock(&self.mailbox.done);
        while wait_for_it && done.is_empty() {
            done = wait(&self.mailbox.arrived, done);
        }
        let completed = done.pop_front()?;
        self.under_way -= 1;
        Some(completed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file whose reads go wrong.
    struct Broken;

    impl ReadAt for Broken {
        fn size(&self) -> io::Result<u64> {
            Ok(0)
        }

        fn read_at(&self, _offset: u64, _buffer: &mut [u8]) -> io::Result<()> {
            panic!("a read that panics, as it should in this test")
        }
    }

    #[test]
    fn a_read_that_panics_is_an_error_and_its_thread_goes_on() {
        let mut queue = PoolQueue::default();
        for tag in 0..3 * THREADS_MAX as u64 {
            queue.submit(tag, Arc::new(Broken), 0, 1);
        }
        let mut tags: Vec<u64> = Vec::new();
        while let Some(done) = queue.collect(true) {
            assert!(done.bytes.unwrap_err().to_string().contains("panicked"));
            tags.push(done.tag);
        }
        tags.sort_unstable();
        assert!(tags.into_iter().eq(0..3 * THREADS_MAX as u64));
        assert!(lock(&POOL.state).threads <= THREADS_MAX);
    }
}
