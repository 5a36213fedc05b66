//! Many reads of the disk at once: by a ring, by the pool of threads, or one after the other.
//! ```text
//! read_many -> this thread's queue -> all submitted -> all collected
//!              made when it is first needed; kept, with nothing under way, for the next time
//! ```
//! Invariant: a queue that is kept has nothing under way. One that someone has panicked with is
//! gone.

use std::cell::Cell;
use std::io;
use std::ops::Range;

use crate::storage::io_mode::Overlap;
use crate::storage::read_pool::PoolQueue;
use crate::storage::read_queue::{ReadBuffer, ReadQueue, one_by_one, read_many};
use crate::storage::ring_queue::RingQueue;
use crate::storage::{RawFile, ReadAt, io_uring};
use crate::sync::Arc;

/// Reads of one call that are under way at once.
const DEPTH: usize = 64;

thread_local! {
    static QUEUES: Queues = const { Queues { ring: Cell::new(None), pool: Cell::new(None) } };
}

/// One thread's queues.
struct Queues {
    ring: Cell<Option<Kept>>,
    pool: Cell<Option<Kept>>,
}

/// A queue, and the process that it belongs to: a child that is forked has neither its threads nor
/// its ring.
struct Kept {
    queue: Box<dyn ReadQueue>,
    process: u32,
}

impl Kept {
    /// None: this process is a child. What the queue has shared with the parent is left alone.
    fn take(self) -> Option<Box<dyn ReadQueue>> {
        if self.process == std::process::id() {
            return Some(self.queue);
        }
        std::mem::forget(self.queue);
        None
    }
}

/// What this process may have.
pub(crate) fn granted(wanted: Overlap) -> Overlap {
    match wanted {
        Overlap::Ring if !io_uring::is_allowed() => Overlap::Pool,
        other => other,
    }
}

/// A queue of reads, of which `depth` may be under way at once.
pub(crate) fn queue(overlap: Overlap, depth: usize) -> Box<dyn ReadQueue> {
    match overlap {
        Overlap::Ring => match RingQueue::new(depth) {
            Ok(ring) => Box::new(ring),
            // Too many rings or files are open, perhaps.
            Err(_) => Box::new(PoolQueue::default()),
        },
        Overlap::Pool => Box::new(PoolQueue::default()),
        Overlap::OneByOne => one_by_one(),
    }
}

/// A file of which many reads are done at once.
pub(crate) struct Overlapping {
    file: Arc<dyn ReadAt>,
    overlap: Overlap,
    direct: bool,
}

/// A file, and whether it goes past the system's cache; its reads overlap in that way.
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
        let kept = |queues: &Queues| match self.overlap {
            Overlap::Ring => queues.ring.take(),
            Overlap::Pool | Overlap::OneByOne => queues.pool.take(),
        };
        // While a thread ends it may have none to keep.
        let kept = QUEUES.try_with(kept).ok().flatten();
        let mut queue = kept.and_then(Kept::take).unwrap_or_else(|| queue(self.overlap, DEPTH));
        let result = f(&mut *queue);
        let kept = Some(Kept { queue, process: std::process::id() });
        let _ = QUEUES.try_with(|queues| match self.overlap {
            Overlap::Ring => queues.ring.set(kept),
            Overlap::Pool | Overlap::OneByOne => queues.pool.set(kept),
        });
        result
    }
}

impl ReadAt for Overlapping {
    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }

    fn data_after(&self, from: u64) -> io::Result<Option<Range<u64>>> {
        self.file.data_after(from)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read_at(offset, buffer)
    }

    fn read_many(&self, reads: &mut [(u64, &mut [u8])]) -> io::Result<()> {
        match reads {
            [] => Ok(()),
            [(offset, buffer)] => self.file.read_at(*offset, buffer),
            reads => self.with_queue(|queue| read_many(queue, &self.file, reads)),
        }
    }

    fn read(&self, offset: u64, len: usize) -> io::Result<ReadBuffer> {
        self.file.read(offset, len)
    }

    /// By the pool, whoever does reads at once: many files are read ahead, and a ring for each
    /// would take a descriptor. What goes through the system's cache, the system reads ahead.
    fn reads_ahead(&self) -> Box<dyn ReadQueue> {
        if self.direct { Box::new(PoolQueue::default()) } else { one_by_one() }
    }

    fn raw(&self) -> Option<RawFile<'_>> {
        self.file.raw()
    }
}
