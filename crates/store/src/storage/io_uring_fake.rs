//! The kernel's side of a ring, for Miri, which runs no system calls. The bytes of a file follow
//! from their offsets.
//! ```text
//! push -> pushed -> enter: in flight -> the entry's memory is written repeatedly -> completion
//! ```
//! Invariants: the fake does everything that the kernel may do. Until an entry completes, and while
//! the ring lives, it writes any bytes to the entry's memory through its pointer. Entries complete
//! in any order, in parts, or with an error.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;

/// The length of every file.
pub(crate) const FILE_LEN: u64 = 50_000;

/// As large as any alignment that `storage/aligned.rs` knows.
const SECTOR: u64 = 4096;
/// How many adjacent bytes of a file are equal, so that few steps write many bytes.
const STRETCH: u64 = 61;

/// Returns the content of every file from `offset` on: ranges of `0..len`, each with its byte.
fn stretches(offset: u64, len: usize) -> impl Iterator<Item = (Range<usize>, u8)> {
    let numbers = offset / STRETCH..(offset + len as u64).div_ceil(STRETCH);
    let from = move |number: u64| (number * STRETCH).saturating_sub(offset) as usize;
    numbers.map(move |number| (from(number)..from(number + 1).min(len), number as u8))
}

#[derive(Clone, Copy)]
struct Entry {
    memory: *mut u8,
    len: usize,
    offset: u64,
    slot: usize,
}

impl Entry {
    /// Writes bytes that nobody requested.
    fn scribble(&self) {
        // SAFETY: the caller that pushed the entry has promised that its memory may be written.
        unsafe { self.memory.write_bytes(0xa5, self.len) };
    }

    /// Reads some bytes, at most `most`, and returns how many.
    fn read(&self, most: usize) -> i32 {
        let there = FILE_LEN.saturating_sub(self.offset) as usize;
        let count = self.len.min(there).min(most);
        for (range, byte) in stretches(self.offset, count) {
            // SAFETY: as above, and within the entry's length.
            unsafe { self.memory.add(range.start).write_bytes(byte, range.len()) };
        }
        count as i32
    }
}

pub(crate) struct Kernel {
    entries: usize,
    pushed: Vec<Entry>,
    under_way: Vec<Entry>,
    /// Slots and results.
    done: VecDeque<(usize, i32)>,
    random: u64,
}

// SAFETY: any thread may use a pointer to an entry's memory, as the kernel does.
unsafe impl Send for Kernel {}

impl Kernel {
    pub(crate) fn new(entries: u32) -> io::Result<Kernel> {
        let (entries, done) = (entries as usize, VecDeque::new());
        Ok(Kernel { entries, pushed: Vec::new(), under_way: Vec::new(), done, random: 1 })
    }

    /// Returns a number below `end`.
    fn draw(&mut self, end: usize) -> usize {
        self.random = self.random.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
        (self.random >> 33) as usize % end
    }

    pub(crate) fn next_completion(&mut self) -> Option<(usize, i32)> {
        self.done.pop_front()
    }

    /// Queues an entry. All files have the same content.
    ///
    /// # Safety
    /// The memory may be written, and nothing else touches it, until the slot's completion is seen.
    pub(crate) unsafe fn push(
        &mut self,
        _fd: i32,
        offset: u64,
        memory: *mut u8,
        len: u32,
        slot: usize,
    ) {
        assert!(self.pushed.len() < self.entries, "the queue is full");
        self.pushed.push(Entry { memory, len: len as usize, offset, slot });
    }

    pub(crate) fn submit_and_wait(&mut self, wanted: usize) -> io::Result<usize> {
        let count = self.pushed.len();
        self.under_way.append(&mut self.pushed);
        self.under_way.iter().for_each(Entry::scribble);
        while !self.under_way.is_empty() && (self.done.len() < wanted || self.draw(3) == 0) {
            self.complete_one();
        }
        Ok(count)
    }

    fn complete_one(&mut self) {
        let nth = self.draw(self.under_way.len());
        let entry = self.under_way.swap_remove(nth);
        let result = match self.draw(8) {
            0 => -rustix::io::Errno::INTR.raw_os_error(),
            1 => -rustix::io::Errno::AGAIN.raw_os_error(),
            2 | 3 => {
                // Short reads end at the end of a sector.
                let sectors = entry.offset / SECTOR + 1 + self.draw(2) as u64;
                entry.read((sectors * SECTOR - entry.offset) as usize)
            }
            _ => entry.read(usize::MAX),
        };
        self.done.push_back((entry.slot, result));
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        self.under_way.iter().for_each(Entry::scribble);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::os::fd::AsFd;

    use super::*;
    use crate::storage::read_queue::{Completed, ReadQueue};
    use crate::storage::ring_queue::RingQueue;
    use crate::storage::traits::{RawFile, ReadAt};
    use crate::sync::Arc;

    /// Any descriptor, and an alignment.
    struct File(io::Stdin, usize);

    impl ReadAt for File {
        fn size(&self) -> io::Result<u64> {
            Ok(FILE_LEN)
        }

        fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
            let end = offset + buffer.len() as u64;
            for (range, byte) in stretches(offset, buffer.len()) {
                buffer[range].fill(byte);
            }
            if end <= FILE_LEN { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
        }

        fn raw(&self) -> Option<RawFile<'_>> {
            Some(RawFile { fd: self.0.as_fd(), align: self.1 })
        }
    }

    pub(crate) fn file() -> Arc<dyn ReadAt> {
        Arc::new(File(io::stdin(), 512))
    }

    /// Returns the offset and length of the n-th read. The last reads end behind the file.
    fn place(tag: u64) -> (u64, usize) {
        (tag * 1009, (tag * 379 % 9000) as usize)
    }

    fn submit(queue: &mut RingQueue, tags: Range<u64>) {
        for tag in tags {
            let align = [1, 512, 4096][(tag % 3) as usize];
            let (offset, len) = place(tag);
            queue.submit(tag, Arc::new(File(io::stdin(), align)), offset, len);
        }
    }

    fn check(done: &Completed) {
        let (offset, len) = place(done.tag);
        match &done.bytes {
            Ok(bytes) => {
                let mut expected = vec![0; len];
                stretches(offset, len).for_each(|(range, byte)| expected[range].fill(byte));
                assert!(**bytes == expected, "{len} bytes at {offset}");
                assert!(len == 0 || offset + len as u64 <= FILE_LEN);
            }
            Err(error) => {
                assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
                assert!(offset + len as u64 > FILE_LEN, "{len} bytes at {offset}");
            }
        }
    }

    /// Collects all remaining reads, and returns their tags in order. All results stay in memory
    /// until then.
    fn collect(queue: &mut RingQueue) -> Vec<u64> {
        let all: Vec<Completed> = std::iter::from_fn(|| queue.collect(true)).collect();
        all.iter().for_each(check);
        let mut tags: Vec<u64> = all.iter().map(|done| done.tag).collect();
        tags.sort_unstable();
        tags
    }

    #[test]
    fn every_read_has_its_bytes_whatever_is_written_meanwhile() {
        for depth in [1, 4, 64] {
            let mut queue = RingQueue::new(depth).unwrap();
            submit(&mut queue, 0..30);
            let first: Vec<Completed> = (0..10).filter_map(|_| queue.collect(false)).collect();
            submit(&mut queue, 30..52);
            let tags = collect(&mut queue);
            first.iter().for_each(check);
            assert_eq!(first.len() + tags.len(), 52);
        }
    }

    #[test]
    fn a_ring_that_is_dropped_waits_for_its_reads() {
        for taken in [0, 1, 5] {
            let mut queue = RingQueue::new(16).unwrap();
            submit(&mut queue, 0..20);
            let some: Vec<Completed> = (0..taken).filter_map(|_| queue.collect(true)).collect();
            drop(queue);
            some.iter().for_each(check);
        }
    }

    #[test] // The memory of reads in flight is leaked: the ring writes to it when it is dropped.
    fn a_ring_that_fails_leaves_its_memory_to_the_kernel() {
        let mut queue = RingQueue::new(16).unwrap();
        submit(&mut queue, 0..40);
        let first = queue.collect(true).expect("under way");
        check(&first);
        queue.fail_over();
        assert!(collect(&mut queue).into_iter().eq((0..40).filter(|&tag| tag != first.tag)));
    }
}
