//! Reads through a ring, or through the pool if the ring fails.
//! ```text
//! submit -> waiting -> ring (at most `depth`) -> collect
//!                        |  fails: all of its reads ------------.
//!           no descriptor, no bytes, no such place --------> pool (at most `depth`) -> collect
//! ```
//! Invariant: each request is in one place: waiting, in the ring, in the pool, or done.

use std::collections::VecDeque;
use std::io;

use crate::storage::aligned::Window;
use crate::storage::io_uring::Ring;
pub(crate) use crate::storage::io_uring::is_allowed;
use crate::storage::read_pool::PoolQueue;
use crate::storage::read_queue::{Completed, ReadQueue, Request};
use crate::storage::traits::ReadAt;
use crate::sync::Arc;

/// Waiting reads are submitted in groups of this many, unless a thread waits for one.
const SUBMITTED_AT_ONCE: usize = 8;

pub(crate) struct RingQueue {
    /// None: the ring has failed.
    ring: Option<Ring>,
    waiting: VecDeque<Request>,
    pool: PoolQueue,
}

impl RingQueue {
    /// Fails if this process may not have a ring now.
    pub(crate) fn new(depth: usize) -> io::Result<RingQueue> {
        let ring = Some(Ring::new(depth)?);
        Ok(RingQueue { ring, waiting: VecDeque::new(), pool: PoolQueue::new(depth) })
    }

    /// Begins waiting reads while there is room.
    fn begin(&mut self) {
        let Some(ring) = &mut self.ring else { return };
        while ring.has_room()
            && let Some(mut request) = self.waiting.pop_front()
        {
            match request.file.opened() {
                Ok(None) => {}
                Ok(Some(file)) => request.file = file,
                // Completed reads of the ring give their files back.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && ring.in_flight() > 0 => {
                    self.waiting.push_front(request);
                    break;
                }
                // The pool waits for the file, or finds out what is wrong with it.
                Err(_) => {
                    self.pool.push(request);
                    continue;
                }
            }
            let align = request.file.raw().map(|raw| raw.align);
            match align.map(|align| Window::around(request.offset, request.len, align)) {
                Some(Ok(window)) if request.len > 0 => ring.begin(request, window),
                // The pool also finds out what is wrong with its offset.
                _ => self.pool.push(request),
            }
        }
        if ring.unsubmitted() >= SUBMITTED_AT_ONCE {
            self.enter(false);
        }
    }

    /// Enters the kernel. If the ring fails, its reads go to the pool.
    fn enter(&mut self, wait: bool) {
        if self.ring.as_mut().is_some_and(|ring| ring.enter(wait).is_err()) {
            self.fail_over();
        }
    }

    pub(crate) fn fail_over(&mut self) {
        let given_up = self.ring.take().map(|mut ring| ring.abandon()).unwrap_or_default();
        let left = given_up.into_iter().chain(self.waiting.drain(..));
        left.for_each(|request| self.pool.push(request));
    }

    /// Takes a completed read without entering the kernel.
    fn take_done(&mut self) -> Option<Completed> {
        let (request, bytes) = self.ring.as_mut()?.take_done()?;
        self.begin();
        Some(Completed { tag: request.tag, bytes })
    }
}

impl ReadQueue for RingQueue {
    fn submit(&mut self, tag: u64, file: Arc<dyn ReadAt>, offset: u64, len: usize) {
        let request = Request { tag, file, offset, len };
        if self.ring.is_none() {
            self.pool.push(request);
            return;
        }
        self.waiting.push_back(request);
        self.begin();
    }

    fn collect(&mut self, wait: bool) -> Option<Completed> {
        loop {
            if let Some(done) = self.take_done() {
                return Some(done);
            }
            let in_flight = self.ring.as_ref().map_or(0, Ring::in_flight);
            if in_flight == 0 {
                return self.pool.collect(wait);
            }
            if let Some(done) = self.pool.collect(false) {
                return Some(done);
            }
            self.enter(wait);
            if !wait {
                return self.take_done().or_else(|| self.pool.collect(false));
            }
        }
    }
}

#[cfg(test)]
mod tests;
