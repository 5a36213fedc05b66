//! Bytes of a value file that are read before they are asked for, past the system's cache.
//! ```text
//! begin -> [ a queue of this one read ] -> bytes      dropped: nobody waits for it
//! ```
//! Invariant: it has no reference to a value file, so it keeps none from being removed.

use std::io;
use std::ops::Range;

use crate::storage::read_queue::{ReadBuffer, ReadQueue};
use crate::storage::traits::ReadAt;
use crate::sync::{Arc, Mutex, lock};

/// A read under way. The lock lets those who hold it be shared between threads.
pub(crate) struct PendingRead(Mutex<Box<dyn ReadQueue>>);

impl PendingRead {
    pub(super) fn begin(reader: &Arc<dyn ReadAt>, span: &Range<u64>) -> PendingRead {
        let mut reads = reader.reads_ahead();
        let len = usize::try_from(span.end - span.start).unwrap_or(usize::MAX);
        reads.submit(0, Arc::clone(reader), span.start, len);
        PendingRead(Mutex::new(reads))
    }

    /// What was read. After an error a second read may succeed.
    pub(crate) fn bytes(self) -> io::Result<ReadBuffer> {
        let done = lock(&self.0).collect(true);
        // A forked child lacks the thread that reads.
        done.map_or_else(|| Err(io::Error::other("nobody reads it")), |done| done.bytes)
    }
}
