//! A ring of reads that the kernel runs (io_uring): the only file of this backend with `unsafe`.
//! Its safe twin is `read_pool.rs`. Both pass the same tests (`storage/ring_queue/tests.rs`).
//! ```text
//! begin(request) -> slot: file, window, memory -> entry, points to the memory -> enter -> kernel
//! take_done      <- slot is free again         <- completion, names the slot   <------------'
//! ```
//! Invariants: the kernel may write to a slot's memory from when its entry is submitted until its
//! completion is seen. Meanwhile nothing else touches that memory, and it is neither moved nor
//! freed: only its completion empties a slot. A dropped ring waits for all completions, or leaks
//! the memory if it cannot.

use std::io;
use std::os::fd::AsRawFd;

#[cfg(not(miri))]
use ::io_uring::{IoUring, opcode, types};
use rustix::io::Errno;

use crate::storage::aligned::{Sectors, Window};
#[cfg(miri)]
use crate::storage::io_uring_fake::Kernel;
use crate::storage::read_queue::{ReadBuffer, Request};

/// The most bytes that one entry reads. A longer read continues when these have arrived.
const ENTRY_BYTES_MAX: usize = 1 << 30;
/// How often in a row the kernel may reject entries temporarily.
const REFUSALS_MAX: u32 = 1000;

/// Reads in flight.
pub(crate) struct Ring {
    kernel: Kernel,
    slots: Box<[Option<Flight>]>,
    free: Vec<usize>,
    /// Entries that are not submitted yet.
    unsubmitted: usize,
    refusals: u32,
    /// The process that may use the ring. A forked child shares the ring's memory with it.
    process: u32,
}

/// A read that the kernel may be running.
struct Flight {
    request: Request,
    window: Window,
    sectors: Sectors,
    /// How many bytes of the window have arrived.
    filled: usize,
}

/// Whether this process may have rings that can read.
#[cfg(not(miri))]
pub(crate) fn is_allowed() -> bool {
    let Ok(ring) = IoUring::new(2) else { return false };
    let mut probe = ::io_uring::Probe::new();
    let known = ring.submitter().register_probe(&mut probe).is_ok();
    known && probe.is_supported(opcode::Read::CODE)
}

#[cfg(miri)]
pub(crate) fn is_allowed() -> bool {
    true
}

/// The kernel's side of a ring. Under Miri, which runs no system calls, a fake replaces it.
#[cfg(not(miri))]
struct Kernel(IoUring);

#[cfg(not(miri))]
impl Kernel {
    fn new(depth: u32) -> io::Result<Kernel> {
        // Completions may wait until this thread enters the kernel anyway. Older kernels reject
        // this flag.
        let ring = IoUring::builder().setup_coop_taskrun().build(depth);
        Ok(Kernel(ring.or_else(|_| IoUring::new(depth))?))
    }

    /// Queues an entry: the read of `len` bytes at `offset` into `memory`. Requires: there is one
    /// for each slot.
    ///
    /// # Safety
    /// The memory may be written, and nothing else touches it, until the slot's completion is seen.
    unsafe fn push(&mut self, fd: i32, offset: u64, memory: *mut u8, len: u32, slot: usize) {
        let read = opcode::Read::new(types::Fd(fd), memory, len).offset(offset);
        let entry = read.build().user_data(slot as u64);
        // SAFETY: the caller's.
        let pushed = unsafe { self.0.submission().push(&entry) };
        pushed.expect("the ring has an entry for each slot");
    }

    /// Submits the entries, and waits until `wanted` reads may have completed. Returns the number
    /// submitted.
    fn submit_and_wait(&mut self, wanted: usize) -> io::Result<usize> {
        self.0.submit_and_wait(wanted)
    }

    /// Returns the slot of a completed read, and its result.
    fn next_completion(&mut self) -> Option<(usize, i32)> {
        let completion = self.0.completion().next()?;
        Some((completion.user_data() as usize, completion.result()))
    }
}

impl Ring {
    /// Makes a ring for at most `depth` reads at once. Fails if this process may not have one now.
    pub(crate) fn new(depth: usize) -> io::Result<Ring> {
        let depth = depth.clamp(1, 4096);
        let kernel = Kernel::new(depth as u32)?;
        let slots = (0..depth).map(|_| None).collect();
        let (free, process) = ((0..depth).collect(), std::process::id());
        Ok(Ring { kernel, slots, free, unsubmitted: 0, refusals: 0, process })
    }

    pub(crate) fn has_room(&self) -> bool {
        !self.free.is_empty()
    }

    /// Returns the number of reads that were begun and not collected yet.
    pub(crate) fn in_flight(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Returns the number of reads that were not submitted yet.
    pub(crate) fn unsubmitted(&self) -> usize {
        self.unsubmitted
    }

    /// Begins a read of a window of at least one byte. Requires: a slot is free, and the file has a
    /// descriptor.
    pub(crate) fn begin(&mut self, request: Request, window: Window) {
        assert!(window.wanted > 0, "nothing is read at {}", window.offset);
        let slot = self.free.pop().expect("there is room");
        let sectors = Sectors::zeroed(window.len);
        self.slots[slot] = Some(Flight { request, window, sectors, filled: 0 });
        self.push(slot, 0);
    }

    /// Queues an entry for the rest of a slot's window from `at` on.
    fn push(&mut self, slot: usize, at: usize) {
        let flight = self.slots[slot].as_mut().expect("the slot is taken");
        let bytes = &mut flight.sectors.bytes_mut()[at..];
        let len = bytes.len().min(ENTRY_BYTES_MAX) as u32;
        let raw = flight.request.file.raw().expect("the file has a descriptor");
        let (fd, offset) = (raw.fd.as_raw_fd(), flight.window.offset + at as u64);
        // SAFETY: the entry points to `len` bytes of memory that the slot owns. The slot keeps the
        // memory untouched until the entry's completion is seen (`take_done`, `drop`), or leaks it
        // (`abandon`). The descriptor is open as long as the slot has the file. Even if it named
        // another file, that file's bytes would go to the same memory.
        unsafe { self.kernel.push(fd, offset, bytes.as_mut_ptr(), len, slot) };
        self.unsubmitted += 1;
    }

    /// Submits the entries. If `wait`, returns when a read may have completed. After an error the
    /// ring is unusable.
    pub(crate) fn enter(&mut self, wait: bool) -> io::Result<()> {
        match self.kernel.submit_and_wait(usize::from(wait)) {
            Ok(count) => {
                self.unsubmitted -= count.min(self.unsubmitted);
                self.refusals = 0;
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(error) if is_for_now(&error) && self.refusals < REFUSALS_MAX => {
                self.refusals += 1;
                std::thread::yield_now();
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Returns a completed read, if there is one.
    pub(crate) fn take_done(&mut self) -> Option<(Request, io::Result<ReadBuffer>)> {
        loop {
            let (slot, result) = self.kernel.next_completion()?;
            let flight =
                self.slots[slot].as_mut().expect("a completion is of a slot that is taken");
            match flight.complete(result) {
                ReadStep::Read(at) => self.push(slot, at),
                ReadStep::Done(read) => {
                    let flight = self.slots[slot].take().expect("it is taken");
                    self.free.push(slot);
                    let range = flight.window.range();
                    return Some((flight.request, read.map(|()| flight.sectors.part(range))));
                }
            }
        }
    }

    /// Gives up a failed ring, and returns its requests. Their memory is leaked, since the kernel
    /// may still write to it.
    pub(crate) fn abandon(&mut self) -> Vec<Request> {
        let flights = self.slots.iter_mut().filter_map(Option::take);
        let requests = flights.map(|flight| {
            std::mem::forget(flight.sectors);
            flight.request
        });
        let requests = requests.collect();
        self.free = (0..self.slots.len()).collect();
        requests
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            drop(self.abandon());
            return;
        }
        while self.in_flight() > 0 {
            if self.enter(true).is_err() {
                drop(self.abandon());
                return;
            }
            while let Some((slot, _)) = self.kernel.next_completion() {
                self.free.extend(self.slots[slot].take().map(|_| slot));
            }
        }
    }
}

/// Whether the error is temporary: the kernel has no room now, or the submitting thread has ended.
fn is_for_now(error: &io::Error) -> bool {
    let code = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(code, Some(Errno::AGAIN | Errno::BUSY | Errno::CANCELED))
}

/// What to do after a completion.
enum ReadStep {
    /// The rest of the window, from here on, must be read.
    Read(usize),
    Done(io::Result<()>),
}

impl Flight {
    /// Handles the result of an entry: the number of bytes read or, below 0, an error.
    fn complete(&mut self, result: i32) -> ReadStep {
        let from = self.window.rest(self.filled).expect("it was not done");
        if result < 0 {
            let error = io::Error::from_raw_os_error(-result);
            let again = error.kind() == io::ErrorKind::Interrupted || is_for_now(&error);
            return if again { ReadStep::Read(from) } else { ReadStep::Done(Err(error)) };
        }
        let now = from + result as usize;
        if now <= self.filled {
            return ReadStep::Done(Err(io::ErrorKind::UnexpectedEof.into()));
        }
        self.filled = now;
        self.window.rest(now).map_or(ReadStep::Done(Ok(())), ReadStep::Read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(miri)]
    use crate::storage::io_uring_fake::tests::file;
    use crate::sync::Arc;

    #[cfg(not(miri))]
    fn file() -> Arc<dyn crate::storage::traits::ReadAt> {
        use crate::storage::traits::Storage;
        let folder = tempfile::tempdir().unwrap();
        let folder = crate::storage::disk::Disk.open_folder(folder.path()).unwrap();
        folder.create("file").unwrap();
        folder.open("file").unwrap()
    }

    fn flight(offset: u64, wanted: usize) -> Flight {
        let request = Request { tag: 0, file: file(), offset, len: wanted };
        let window = Window::around(offset, wanted, 512).unwrap();
        Flight { request, window, sectors: Sectors::zeroed(window.len), filled: 0 }
    }

    /// Returns what `complete` says to each of these results, until the read is done.
    fn course(results: &[i32]) -> Vec<String> {
        let mut flight = flight(700, 1000);
        let says = |next| match next {
            ReadStep::Read(at) => format!("from {at}"),
            ReadStep::Done(Ok(())) => "done".into(),
            ReadStep::Done(Err(error)) => format!("{:?}", error.kind()),
        };
        results.iter().map(|result| says(flight.complete(*result))).collect()
    }

    #[test]
    fn short_reads_go_on_where_a_sector_begins() {
        assert_eq!(course(&[1536]), ["done"]);
        assert_eq!(course(&[1188]), ["done"]);
        assert_eq!(course(&[512, 600, 1]), ["from 512", "from 1024", "UnexpectedEof"]);
        assert_eq!(course(&[100, 1536]), ["from 0", "done"]);
        assert_eq!(course(&[1187, 163]), ["from 1024", "UnexpectedEof"]);
        assert_eq!(course(&[1187, 164]), ["from 1024", "done"]);
        assert_eq!(course(&[0]), ["UnexpectedEof"]);
    }

    #[test]
    fn what_may_pass_is_asked_again_and_the_rest_is_an_error() {
        let errnos = [Errno::INTR, Errno::AGAIN, Errno::CANCELED, Errno::IO];
        let [interrupted, again, canceled, io] = errnos.map(|errno| -errno.raw_os_error());
        let course = course(&[interrupted, 512, again, canceled, io]);
        assert_eq!(course[..4], ["from 0", "from 512", "from 512", "from 512"]);
        assert!(course[4] != "done" && !course[4].starts_with("from"), "{course:?}");
    }

    #[test]
    fn a_ring_that_is_given_up_tells_what_it_was_to_read() {
        if !is_allowed() {
            return;
        }
        let mut ring = Ring::new(3).unwrap();
        for tag in 0..3 {
            let Flight { request, window, .. } = flight(0, 10);
            ring.begin(Request { tag, ..request }, window);
        }
        assert!(!ring.has_room() && (ring.in_flight(), ring.unsubmitted()) == (3, 3));
        ring.enter(false).unwrap();
        assert_eq!(ring.unsubmitted(), 0);
        let mut requests = ring.abandon();
        requests.sort_by_key(|request| request.tag);
        assert!(requests.iter().map(|request| request.tag).eq(0..3));
        assert!(requests.iter().all(|request| Arc::strong_count(&request.file) == 1));
    }
}
