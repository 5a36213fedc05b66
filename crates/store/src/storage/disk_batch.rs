//! Many disk reads at once: by a ring, by the thread pool, or one after the other.
//! ```text
//! read_many -> this thread's queue -> all submitted -> all collected
//!              made when first needed, then kept for the next call
//! ```
//! Invariants: a kept queue has no reads in flight. A queue whose caller panicked is dropped.

use std::cell::Cell;
use std::io;

use crate::storage::io_mode::Overlap;
use crate::storage::read_pool::PoolQueue;
use crate::storage::read_queue::{ReadQueue, one_by_one, read_many};
use crate::storage::ring_queue::{self, RingQueue};
use crate::storage::traits::ReadAt;
use crate::storage::traits::ReadAtWrapper;
use crate::sync::Arc;

/// The most reads in flight, for one call or for one read-ahead queue.
const DEPTH: usize = 64;

thread_local! {
    /// The queues of one thread: over the pool, and over a ring.
    static QUEUES: [Cell<Option<KeptQueue>>; 2] = const { [const { Cell::new(None) }; 2] };
}

/// A queue, and the process that it belongs to. A forked child has neither the queue's threads nor
/// its ring.
struct KeptQueue {
    queue: Box<dyn ReadQueue>,
    process: u32,
}

impl KeptQueue {
    /// None: this process is a forked child, which must not touch what the queue shares with its
    /// parent.
    fn take(self) -> Option<Box<dyn ReadQueue>> {
        if self.process == std::process::id() {
            return Some(self.queue);
        }
        std::mem::forget(self.queue);
        None
    }
}

/// Returns the kind of overlap that this process may use.
pub(crate) fn granted(wanted: Overlap) -> Overlap {
    match wanted {
        Overlap::Ring if !ring_queue::is_allowed() => Overlap::Pool,
        other => other,
    }
}

/// Makes a queue of reads, with at most `depth` reads in flight.
pub(crate) fn queue(overlap: Overlap, depth: usize) -> Box<dyn ReadQueue> {
    match overlap {
        Overlap::Ring => match RingQueue::new(depth) {
            Ok(ring) => Box::new(ring),
            // There may be too many rings or open files.
            Err(_) => Box::new(PoolQueue::new(depth)),
        },
        Overlap::Pool => Box::new(PoolQueue::new(depth)),
        Overlap::OneByOne => one_by_one(),
    }
}

/// A file that serves many reads at once.
pub(crate) struct Overlapping {
    file: Arc<dyn ReadAt>,
    overlap: Overlap,
    direct: bool,
}

/// Wraps a file so that its reads overlap. `direct`: whether it bypasses the system's cache.
pub(crate) fn overlapping(
    file: Arc<dyn ReadAt>,
    direct: bool,
    overlap: Overlap,
) -> Arc<dyn ReadAt> {
    match overlap {
        Overlap::OneByOne => file,
        Overlap::Pool | Overlap::Ring => Arc::new(Overlapping { file, overlap, direct }),
    }
}

impl Overlapping {
    /// Calls `f` with this thread's queue.
    fn with_queue<T>(&self, f: impl FnOnce(&mut dyn ReadQueue) -> T) -> T {
        let place = usize::from(self.overlap == Overlap::Ring);
        // A thread that is ending may be unable to keep a queue.
        let kept = QUEUES.try_with(|queues| queues[place].take()).ok().flatten();
        let mut queue =
            kept.and_then(KeptQueue::take).unwrap_or_else(|| queue(self.overlap, DEPTH));
        let result = f(&mut *queue);
        let kept = Some(KeptQueue { queue, process: std::process::id() });
        let _ = QUEUES.try_with(|queues| queues[place].set(kept));
        result
    }
}

impl ReadAtWrapper for Overlapping {
    fn inner(&self) -> &dyn ReadAt {
        &*self.file
    }

    fn read_many(&self, reads: &mut [(u64, &mut [u8])]) -> io::Result<()> {
        match reads {
            [] => Ok(()),
            [(offset, buffer)] => self.file.read_at(*offset, buffer),
            reads => self.with_queue(|queue| read_many(queue, &self.file, reads)),
        }
    }

    /// Reads ahead use the pool even where batches use a ring: many files are read ahead, and each
    /// ring would take a descriptor. For files in the system's cache, the system reads ahead.
    fn reads_ahead(&self) -> Box<dyn ReadQueue> {
        if self.direct { Box::new(PoolQueue::new(DEPTH)) } else { one_by_one() }
    }

    fn bypasses_cache(&self) -> bool {
        self.direct
    }
}
