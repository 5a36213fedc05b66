//! Reads by threads that wait for the disk: where there is no ring, where a ring has failed, and
//! for reads ahead.
//! ```text
//! queue --request--> pool -> thread: read -> the queue's mailbox -> collect
//! ```
//! Invariant: each request is answered exactly once, even if its thread panics.

use std::collections::VecDeque;
use std::io;

// The threads outlive every model, so they need the locks of std, not those of a model checker.
use std::sync::{Arc, Condvar, Mutex};

use crate::storage::ReadAt;
use crate::storage::io_threads::{self, lock, wait};
use crate::storage::read_queue::{Completed, ReadQueue, Request};

/// The answers for one queue.
#[derive(Default)]
struct Mailbox {
    done: Mutex<VecDeque<Completed>>,
    arrived: Condvar,
}

/// A request, and the mailbox of the queue that waits for it.
struct PoolRead {
    request: Request,
    mailbox: Arc<Mailbox>,
    answered: bool,
}

impl Mailbox {
    fn put(&self, done: Completed) {
        lock(&self.done).push_back(done);
        self.arrived.notify_one();
    }
}

impl PoolRead {
    fn run(mut self) {
        let bytes = self.request.read();
        self.answered = true;
        self.mailbox.put(Completed { tag: self.request.tag, bytes });
    }
}

impl Drop for PoolRead {
    /// Without an answer the queue would wait for ever.
    fn drop(&mut self) {
        if !self.answered {
            let error = io::Error::other("the thread that was to read it has panicked");
            self.mailbox.put(Completed { tag: self.request.tag, bytes: Err(error) });
        }
    }
}

/// Reads that the threads of the pool run.
#[derive(Default)]
pub(crate) struct PoolQueue {
    mailbox: Arc<Mailbox>,
    /// Reads that were submitted and not collected yet.
    under_way: usize,
}

impl PoolQueue {
    pub(crate) fn push(&mut self, request: Request) {
        self.under_way += 1;
        let job = PoolRead { request, mailbox: Arc::clone(&self.mailbox), answered: false };
        io_threads::spawn(move || job.run());
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
    use crate::storage::io_threads::{THREADS_MAX, thread_count};

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
        assert!(thread_count() <= THREADS_MAX);
    }
}
