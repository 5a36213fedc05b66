//! Reads by threads that wait for the disk: where there is no ring, where a ring has failed, and
//! for reads ahead.
//! ```text
//! queue --request--> pool -> thread: read -> the queue's mailbox -> collect
//! ```
//! Invariant: each request is answered exactly once, even if its thread panics.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};

use crate::storage::io_threads;
use crate::storage::read_queue::{Completed, ReadQueue, Request};
use crate::storage::traits::ReadAt;
use crate::sync::Arc;

/// Reads that the threads of the pool run.
pub(crate) struct PoolQueue {
    done: Receiver<Completed>,
    /// Of which each read has a copy.
    mailbox: Sender<Completed>,
    /// Reads that were submitted and not collected yet.
    under_way: usize,
}

impl Default for PoolQueue {
    fn default() -> Self {
        let (mailbox, done) = channel();
        PoolQueue { done, mailbox, under_way: 0 }
    }
}

impl PoolQueue {
    pub(crate) fn push(&mut self, request: Request) {
        self.under_way += 1;
        let mailbox = self.mailbox.clone();
        io_threads::spawn(move || {
            // Without an answer the queue would wait for ever.
            let panicked = |_| Err(io::Error::other("the thread that was to read it has panicked"));
            let read = catch_unwind(AssertUnwindSafe(|| request.read()));
            let bytes = read.unwrap_or_else(panicked);
            // The queue may have been dropped.
            let _ = mailbox.send(Completed { tag: request.tag, bytes });
        });
    }
}

impl ReadQueue for PoolQueue {
    fn submit(&mut self, tag: u64, file: Arc<dyn ReadAt>, offset: u64, len: usize) {
        self.push(Request { tag, file, offset, len });
    }

    fn collect(&mut self, wait: bool) -> Option<Completed> {
        if self.under_way == 0 {
            return None;
        }
        let done = if wait { self.done.recv().ok() } else { self.done.try_recv().ok() };
        self.under_way -= usize::from(done.is_some());
        done
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
