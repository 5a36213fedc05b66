//! Replaces `ring_queue.rs` on systems without io_uring, where no process may have a ring. The pool
//! reads instead.

use std::io;

use crate::storage::read_queue::{Completed, ReadQueue};
use crate::storage::traits::ReadAt;
use crate::sync::Arc;

pub(crate) fn is_allowed() -> bool {
    false
}

/// A queue that never exists.
pub(crate) enum RingQueue {}

impl RingQueue {
    pub(crate) fn new(_depth: usize) -> io::Result<RingQueue> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl ReadQueue for RingQueue {
    fn submit(&mut self, _: u64, _: Arc<dyn ReadAt>, _: u64, _: usize) {
        match *self {}
    }

    fn collect(&mut self, _: bool) -> Option<Completed> {
        match *self {}
    }
}
