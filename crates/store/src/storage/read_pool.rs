//! Reads by threads that wait for the disk: where there is no ring, where a ring has failed, and
//! for reads ahead.
//! ```text
//! queue --request--> pool -> thread: read -> the queue's mailbox -> collect
//! ```
//! Invariants: each request is answered exactly once, even if its thread panics. In a forked child
//! a mailbox is left as it is: a thread that is not there may be putting something into it, for
//! which dropping it would wait for ever.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};

use crate::storage::io_threads;
use crate::storage::read_queue::{Completed, ReadQueue, Request};
use crate::storage::traits::ReadAt;
use crate::sync::Arc;

/// Reads that the threads of the pool run.
pub(crate) struct PoolQueue {
    /// Where reads are put, of which each has a copy, and where they are collected. Some, until it
    /// is dropped.
    mailbox: Option<(Sender<Completed>, Receiver<Completed>)>,
    /// Reads that were submitted and not collected yet.
    under_way: usize,
    /// The process whose threads read.
    process: u32,
}

impl Default for PoolQueue {
    fn default() -> Self {
        PoolQueue { mailbox: Some(channel()), under_way: 0, process: std::process::id() }
    }
}

impl Drop for PoolQueue {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            std::mem::forget(self.mailbox.take());
        }
    }
}

impl PoolQueue {
    pub(crate) fn push(&mut self, request: Request) {
        let Some((mailbox, _)) = &self.mailbox else { return };
        self.under_way += 1;
        let mailbox = mailbox.clone();
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
        let (_, done) = self.mailbox.as_ref()?;
        let done = if wait { done.recv().ok() } else { done.try_recv().ok() };
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

    // A child that was forked while a thread put a read into a mailbox hung when it dropped that.
    #[test]
    fn a_forked_child_leaves_the_mailbox_as_it_is() {
        let completed = || Completed { tag: 1, bytes: Ok(Vec::new().into()) };
        for is_forked in [false, true] {
            let mut queue = PoolQueue::default();
            let (mailbox, _) = queue.mailbox.as_ref().expect("it is not dropped");
            let mailbox = mailbox.clone();
            queue.process += u32::from(is_forked);
            drop(queue);
            assert_eq!(mailbox.send(completed()).is_ok(), is_forked, "somebody could collect it");
        }
    }
}
