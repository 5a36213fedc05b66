//! Reads by threads that wait for the disk: where there is no ring, after a ring has failed, and
//! for reads ahead.
//! ```text
//! queue --request--> waiting -> pool -> thread: read -> the queue's mailbox -> collect
//!                               '--------- at most `depth` of them ---------'
//! ```
//! Invariants: each request is answered exactly once, even if its thread panics. Requests wait only
//! while `depth` others are in flight, so collecting these begins them. A forked child never drops
//! a mailbox: a thread that it lacks may be putting something into it, and the drop would wait for
//! ever.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};

use crate::storage::io_threads;
use crate::storage::read_queue::{Completed, ReadQueue, Request};
use crate::storage::traits::ReadAt;
use crate::sync::Arc;

/// A queue of reads that the threads of the pool run.
pub(crate) struct PoolQueue {
    /// The sender, which each read gets a copy of, and the receiver for collecting. None only while
    /// this is dropped.
    mailbox: Option<(Sender<Completed>, Receiver<Completed>)>,
    /// Reads that were not given to a thread yet.
    waiting: VecDeque<Request>,
    /// Reads that were given to threads and were not collected yet.
    in_flight: usize,
    /// The most reads in flight.
    depth: usize,
    /// The process whose threads read.
    process: u32,
}

impl Drop for PoolQueue {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            std::mem::forget(self.mailbox.take());
        }
    }
}

impl PoolQueue {
    /// Makes a queue with at most `depth` reads in flight, at least one.
    pub(crate) fn new(depth: usize) -> PoolQueue {
        PoolQueue {
            mailbox: Some(channel()),
            waiting: VecDeque::new(),
            in_flight: 0,
            depth: depth.max(1),
            process: std::process::id(),
        }
    }

    pub(crate) fn push(&mut self, request: Request) {
        self.waiting.push_back(request);
        self.begin();
    }

    /// Gives waiting reads to threads while there is room.
    fn begin(&mut self) {
        let Some((mailbox, _)) = &self.mailbox else { return };
        while self.in_flight < self.depth
            && let Some(request) = self.waiting.pop_front()
        {
            self.in_flight += 1;
            read_elsewhere(request, mailbox.clone());
        }
    }
}

/// Makes a thread of the pool read, and send the result to the mailbox.
fn read_elsewhere(request: Request, mailbox: Sender<Completed>) {
    io_threads::spawn(move || {
        // Without an answer the queue would wait for ever.
        let panicked = |_| Err(io::Error::other("the thread that was to read it has panicked"));
        let read = catch_unwind(AssertUnwindSafe(|| request.read()));
        let bytes = read.unwrap_or_else(panicked);
        // The queue may have been dropped.
        let _ = mailbox.send(Completed { tag: request.tag, bytes });
    });
}

impl ReadQueue for PoolQueue {
    fn submit(&mut self, tag: u64, file: Arc<dyn ReadAt>, offset: u64, len: usize) {
        self.push(Request { tag, file, offset, len });
    }

    fn collect(&mut self, wait: bool) -> Option<Completed> {
        // A forked child has none of the threads that read.
        if self.in_flight == 0 || self.process != std::process::id() {
            return None;
        }
        let (_, done) = self.mailbox.as_ref()?;
        let done = if wait { done.recv().ok() } else { done.try_recv().ok() };
        self.in_flight -= usize::from(done.is_some());
        self.begin();
        done
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Condvar, Mutex};

    use super::*;
    use crate::storage::io_threads::{THREADS_MAX, thread_count};

    /// A file whose reads panic.
    struct Broken;

    impl ReadAt for Broken {
        fn size(&self) -> io::Result<u64> {
            Ok(0)
        }

        fn read_at(&self, _offset: u64, _buffer: &mut [u8]) -> io::Result<()> {
            panic!("a read that panics, as it should in this test")
        }
    }

    /// The bytes of a [`Gate`].
    const GATE_BYTES: u64 = 200;

    /// A file in which each byte is its offset. It counts its reads, which wait until it is open.
    #[derive(Default)]
    struct Gate {
        begun: Mutex<usize>,
        is_open: Mutex<bool>,
        opened: Condvar,
    }

    impl Gate {
        fn open(&self) {
            *self.is_open.lock().unwrap() = true;
            self.opened.notify_all();
        }

        fn begun(&self) -> usize {
            *self.begun.lock().unwrap()
        }
    }

    impl ReadAt for Gate {
        fn size(&self) -> io::Result<u64> {
            Ok(GATE_BYTES)
        }

        fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
            *self.begun.lock().unwrap() += 1;
            let mut is_open = self.is_open.lock().unwrap();
            while !*is_open {
                is_open = self.opened.wait(is_open).unwrap();
            }
            if offset >= GATE_BYTES {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            buffer.fill(offset as u8);
            Ok(())
        }
    }

    /// Submits reads of one byte each, whose tags are their offsets.
    fn reading(file: &Arc<Gate>, depth: usize, places: std::ops::Range<u64>) -> PoolQueue {
        let mut queue = PoolQueue::new(depth);
        for place in places {
            queue.submit(place, Arc::<Gate>::clone(file), place, 1);
        }
        queue
    }

    /// Returns the tags of all remaining reads, in the order of their answers.
    fn all_tags(queue: &mut PoolQueue) -> Vec<u64> {
        std::iter::from_fn(|| queue.collect(true)).map(|done| done.tag).collect()
    }

    #[test]
    fn no_more_are_in_flight_than_the_depth_and_each_is_answered_once() {
        for depth in [1, 3, 50] {
            let file = Arc::new(Gate::default());
            file.open();
            let mut queue = reading(&file, depth, 0..20);
            let mut tags = Vec::new();
            loop {
                assert!(file.begun() <= tags.len() + depth, "depth {depth}");
                let Some(done) = queue.collect(true) else { break };
                tags.push(done.tag);
                let bytes = done.bytes.expect("it is there");
                assert_eq!(bytes.to_vec(), [done.tag as u8]);
            }
            if depth > 1 {
                tags.sort_unstable();
            }
            assert!(tags.into_iter().eq(0..20), "those of depth 1 in their order");
            assert!(queue.waiting.is_empty() && queue.in_flight == 0);
        }
    }

    #[test]
    fn nothing_more_begins_while_nothing_is_collected() {
        let file = Arc::new(Gate::default());
        let mut queue = reading(&file, 2, 0..6);
        for _ in 0..3 {
            assert!(queue.collect(false).is_none());
            assert!(file.begun() <= 2 && queue.waiting.len() == 4);
        }
        file.open();
        while file.begun() < 2 {
            std::thread::yield_now();
        }
        assert_eq!(queue.waiting.len(), 4);
        let mut tags = all_tags(&mut queue);
        tags.sort_unstable();
        assert!(tags.into_iter().eq(0..6));
    }

    #[test]
    fn a_queue_that_is_dropped_gives_up_what_waits() {
        let file = Arc::new(Gate::default());
        let queue = reading(&file, 2, 0..10);
        assert_eq!(Arc::strong_count(&file), 1 + 10);
        drop(queue);
        assert_eq!(Arc::strong_count(&file), 1 + 2, "threads have two of them");
        file.open();
        while Arc::strong_count(&file) > 1 {
            std::thread::yield_now();
        }
        assert_eq!(file.begun(), 2);
    }

    #[test]
    fn reads_that_go_wrong_make_room_for_others() {
        let file = Arc::new(Gate::default());
        file.open();
        let mut queue = reading(&file, 2, GATE_BYTES - 5..GATE_BYTES + 5);
        let mut count = 0;
        while let Some(done) = queue.collect(true) {
            let is_there = done.tag < GATE_BYTES;
            match done.bytes {
                Ok(bytes) => assert!(is_there && bytes.to_vec() == [done.tag as u8]),
                Err(error) => {
                    assert!(!is_there && error.kind() == io::ErrorKind::UnexpectedEof, "{error}");
                }
            }
            count += 1;
        }
        assert_eq!(count, 10);
    }

    #[test]
    fn a_read_that_panics_is_an_error_and_its_thread_goes_on() {
        let mut queue = PoolQueue::new(2 * THREADS_MAX);
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

    #[test]
    fn a_forked_child_waits_for_no_thread_of_its_parent() {
        let file = Arc::new(Gate::default());
        let mut queue = reading(&file, 1, 0..2);
        queue.process += 1;
        assert!(queue.collect(true).is_none());
        file.open();
    }

    // Once, a child that was forked while a thread sent to a mailbox hung when it dropped the
    // mailbox.
    #[test]
    fn a_forked_child_leaves_the_mailbox_as_it_is() {
        let completed = || Completed { tag: 1, bytes: Ok(Vec::new().into()) };
        for is_forked in [false, true] {
            let mut queue = PoolQueue::new(1);
            let (mailbox, _) = queue.mailbox.as_ref().expect("it is not dropped");
            let mailbox = mailbox.clone();
            queue.process += u32::from(is_forked);
            drop(queue);
            assert_eq!(mailbox.send(completed()).is_ok(), is_forked, "somebody could collect it");
        }
    }
}
