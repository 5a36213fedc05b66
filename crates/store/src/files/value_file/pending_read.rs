//! A read-ahead of a value file, for readers that bypass the system's cache.
//! ```text
//! begin -> [ a queue of this one read ] -> bytes      dropped: nobody waits for it
//! ```
//! Invariant: it does not refer to a value file, so it never delays the removal of one.

use std::io;
use std::ops::Range;

use crate::storage::read_queue::{ReadBuffer, ReadQueue};
use crate::storage::traits::ReadAt;
use crate::sync::{Arc, Mutex, lock};

/// A read in progress. The lock makes it `Sync`, so that its holders can be shared between threads.
pub(crate) struct PendingRead(Mutex<Box<dyn ReadQueue>>);

impl PendingRead {
    pub(super) fn begin(reader: &Arc<dyn ReadAt>, span: &Range<u64>) -> PendingRead {
        let mut reads = reader.reads_ahead();
        let len = usize::try_from(span.end - span.start).unwrap_or(usize::MAX);
        reads.submit(0, Arc::clone(reader), span.start, len);
        PendingRead(Mutex::new(reads))
    }

    /// Waits for the bytes. After an error a second read may succeed.
    pub(crate) fn bytes(self) -> io::Result<ReadBuffer> {
        let done = lock(&self.0).collect(true);
        // A forked child lacks the thread that reads.
        done.map_or_else(|| Err(io::Error::other("nobody reads it")), |done| done.bytes)
    }
}
