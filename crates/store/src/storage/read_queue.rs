//! Reads in flight: submitted one by one, collected as they complete.
//! ```text
//! submit(tag, file, offset, len) -> [ . . . . ] -> collect() -> tag, bytes or error, in any order
//!                                   at most `depth` in flight at once; the rest wait
//! ```
//! Invariants: each submitted read is collected exactly once, whatever happens. Until then the
//! queue owns its memory, and keeps its file open. So a queue may be dropped at any time, and a
//! caller may panic.

use std::collections::VecDeque;
use std::io;
use std::ops::{Deref, Range};

use crate::storage::traits::ReadAt;
use crate::sync::Arc;

/// A completed read.
pub struct Completed {
    /// The tag that it was submitted with.
    pub tag: u64,
    /// As many bytes as were requested. `UnexpectedEof`: the file ends too early.
    pub bytes: io::Result<ReadBuffer>,
}

/// Reads in flight.
pub trait ReadQueue: Send {
    /// Submits a read of `len` bytes from `offset` on. The read may begin only when something is
    /// collected.
    fn submit(&mut self, tag: u64, file: Arc<dyn ReadAt>, offset: u64, len: usize);

    /// Returns a completed read. None: there is none; with `wait`, none is in flight either.
    fn collect(&mut self, wait: bool) -> Option<Completed>;
}

/// Bytes that were read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadBuffer {
    memory: Vec<u8>,
    range: Range<usize>,
}

impl ReadBuffer {
    /// Makes a buffer of a part of some memory. Requires: the memory has that part.
    pub(crate) fn part(memory: Vec<u8>, range: Range<usize>) -> ReadBuffer {
        assert!(range.start <= range.end && range.end <= memory.len(), "{range:?} is read");
        ReadBuffer { memory, range }
    }

    /// Returns the memory, and which part of it was read.
    pub(crate) fn into_memory(self) -> (Vec<u8>, Range<usize>) {
        (self.memory, self.range)
    }
}

impl From<Vec<u8>> for ReadBuffer {
    fn from(memory: Vec<u8>) -> Self {
        let range = 0..memory.len();
        ReadBuffer { memory, range }
    }
}

impl Deref for ReadBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory[self.range.clone()]
    }
}

/// A read that has not begun.
pub(crate) struct Request {
    pub(crate) tag: u64,
    pub(crate) file: Arc<dyn ReadAt>,
    pub(crate) offset: u64,
    pub(crate) len: usize,
}

impl Request {
    /// Runs the read, as any file allows.
    pub(crate) fn read(&self) -> io::Result<ReadBuffer> {
        self.file.read(self.offset, self.len)
    }
}

/// A queue that runs each read when it is collected. `choose` picks the next of the waiting reads,
/// given their number.
pub(crate) struct OneByOne<F> {
    waiting: VecDeque<Request>,
    choose: F,
}

impl<F: FnMut(usize) -> usize + Send> OneByOne<F> {
    pub(crate) fn choosing(choose: F) -> Self {
        OneByOne { waiting: VecDeque::new(), choose }
    }
}

/// Makes a queue that runs reads in the order of submission.
pub(crate) fn one_by_one() -> Box<dyn ReadQueue> {
    Box::new(OneByOne::choosing(|_| 0))
}

impl<F: FnMut(usize) -> usize + Send> ReadQueue for OneByOne<F> {
    fn submit(&mut self, tag: u64, file: Arc<dyn ReadAt>, offset: u64, len: usize) {
        self.waiting.push_back(Request { tag, file, offset, len });
    }

    fn collect(&mut self, _wait: bool) -> Option<Completed> {
        if self.waiting.is_empty() {
            return None;
        }
        let place = (self.choose)(self.waiting.len());
        let request = self.waiting.remove(place).expect("one of them was chosen");
        Some(Completed { tag: request.tag, bytes: request.read() })
    }
}

/// Fills all buffers of one file through a queue that has nothing else in flight. Returns the first
/// error by position. All buffers before it are filled.
pub(crate) fn read_many(
    queue: &mut dyn ReadQueue,
    file: &Arc<dyn ReadAt>,
    reads: &mut [(u64, &mut [u8])],
) -> io::Result<()> {
    for (tag, (offset, buffer)) in (0..).zip(&*reads) {
        queue.submit(tag, Arc::clone(file), *offset, buffer.len());
    }
    let mut wrong: Option<(u64, io::Error)> = None;
    for _ in 0..reads.len() {
        let done = queue.collect(true).expect("it was submitted");
        match done.bytes {
            Ok(bytes) => reads[done.tag as usize].1.copy_from_slice(&bytes),
            Err(error) if wrong.as_ref().is_none_or(|(tag, _)| done.tag < *tag) => {
                wrong = Some((done.tag, error));
            }
            Err(_) => {}
        }
    }
    wrong.map_or(Ok(()), |(_, error)| Err(error))
}
