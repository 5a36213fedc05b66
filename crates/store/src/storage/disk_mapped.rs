//! Appends small pieces to a file through mapped memory. A system call for each would cost several
//! times as much as copying its bytes.
//! ```text
//! file      data ............. | zeros, allocated ahead |
//! window              [ mapped ........................ ]      small pieces are copied here
//! ```
//! Long pieces are written by system calls, as is everything if the file cannot be mapped. Copied
//! bytes belong to the kernel, as written ones do: they outlive the process, and a sync of the file
//! makes them durable. A window covers only allocated space. If the disk is full, the allocating
//! call fails, and the piece is written by a system call. But a copy raises SIGBUS, which ends the
//! process, if somebody has shortened the file or its file system has failed. So mapping is
//! optional.
//!
//! Invariants: a window lies within the file, which nobody else shortens. Behind the data there are
//! only zeros. They are cut off when the process that made the file closes it.

use std::fs::File;
use std::io;

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::retry_on_intr;

use crate::storage::disk::linux;
use crate::storage::disk::system::write_all_at;
use crate::storage::traits::{Append, Syncer};
use crate::sync::Arc;

/// Longer pieces are cheaper by system call, since each page of a window costs a page fault.
const PIECE_MAX: usize = 2 << 10;
/// The least and the most bytes that are allocated at once. In between, it is about as much as the
/// file has.
const AHEAD: (u64, u64) = (128 << 10, 4 << 20);
/// Mappings begin at pages. No page is larger than this, and a multiple of a page works, too.
const PAGE: u64 = 64 << 10;

/// A file that grows at its end.
pub(crate) struct MappedAppender {
    file: Arc<File>,
    /// Length of the data.
    len: u64,
    /// Allocated length of the file.
    allocated: u64,
    window: Option<Window>,
    can_map: bool,
    process: u32,
}

impl MappedAppender {
    /// Makes an appender of an empty file that is open for reading and writing.
    pub(crate) fn new(file: File) -> MappedAppender {
        let can_map = linux::can_map(&file);
        let process = std::process::id();
        MappedAppender {
            file: Arc::new(file),
            len: 0,
            allocated: 0,
            window: None,
            can_map,
            process,
        }
    }

    /// Copies a piece into the window. False: the piece is too long, or no window can be had.
    fn copy(&mut self, bytes: &[u8]) -> bool {
        if !self.can_map || bytes.len() > PIECE_MAX {
            return false;
        }
        if self.window.as_mut().is_some_and(|window| window.copy(self.len, bytes)) {
            return true;
        }
        self.can_map = self.move_window().is_ok();
        self.window.as_mut().is_some_and(|window| window.copy(self.len, bytes))
    }

    /// Moves the window to the end of the data.
    fn move_window(&mut self) -> io::Result<()> {
        self.window = None;
        let start = self.len / PAGE * PAGE;
        let bytes = self.len.next_power_of_two().clamp(AHEAD.0, AHEAD.1);
        let allocate = || fallocate(&*self.file, FallocateFlags::empty(), start, bytes);
        if let Err(error) = retry_on_intr(allocate) {
            // A partial allocation may remain, and take the last space on the disk.
            self.file.set_len(self.len)?;
            return Err(error.into());
        }
        self.allocated = self.allocated.max(start + bytes);
        self.window = Some(Window::map(&self.file, start, bytes as usize)?);
        Ok(())
    }
}

impl Append for MappedAppender {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if !self.copy(bytes) {
            write_all_at(&self.file, bytes, self.len)?;
        }
        self.len += bytes.len() as u64;
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Does nothing, since the kernel has the bytes.
    fn publish(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn syncer(&self) -> Option<Arc<dyn Syncer>> {
        Some(Arc::<File>::clone(&self.file))
    }
}

impl Drop for MappedAppender {
    fn drop(&mut self) {
        self.window = None;
        // A forked child has a copy of this value, while the parent's file continues to grow.
        if self.allocated > self.len && self.process == std::process::id() {
            // If this fails, zeros remain, as after a crash.
            let _ = self.file.set_len(self.len);
        }
    }
}

#[cfg(not(miri))]
mod window {
    use std::ffi::c_void;
    use std::fs::File;
    use std::io;
    use std::ptr::{NonNull, copy_nonoverlapping, null_mut};

    use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

    /// A part of a file in memory.
    pub(super) struct Window {
        memory: NonNull<c_void>,
        /// Its offset in the file.
        start: u64,
        len: usize,
    }

    // SAFETY: it owns its mapping, and gives out no reference into it.
    unsafe impl Send for Window {}

    impl Window {
        /// Requires: the file has these bytes, and keeps them for as long as the window lives.
        pub(super) fn map(file: &File, start: u64, len: usize) -> io::Result<Window> {
            let protection = ProtFlags::READ | ProtFlags::WRITE;
            // SAFETY: a new mapping at an address of the kernel's choice touches no other memory.
            let memory =
                unsafe { mmap(null_mut(), len, protection, MapFlags::SHARED, file, start)? };
            let memory = NonNull::new(memory).ok_or(io::ErrorKind::OutOfMemory)?;
            Ok(Window { memory, start, len })
        }

        /// Copies bytes to an offset of the file. False: the window does not cover all of it.
        pub(super) fn copy(&mut self, at: u64, bytes: &[u8]) -> bool {
            let Some(at) = at.checked_sub(self.start) else { return false };
            if at > self.len as u64 || bytes.len() > self.len - at as usize {
                return false;
            }
            // SAFETY: the place is within the mapping, by the lines above, and the file has it, as
            // `map` requires. Nothing else in this process points into the mapping, so `bytes` are
            // elsewhere. If the file system has given up, the kernel ends the process here.
            unsafe {
                let place = self.memory.cast::<u8>().add(at as usize);
                copy_nonoverlapping(bytes.as_ptr(), place.as_ptr(), bytes.len());
            }
            true
        }
    }

    impl Drop for Window {
        fn drop(&mut self) {
            // SAFETY: `map` has mapped these bytes, and nothing else points into them. A failure
            // leaves a mapping behind that nobody uses.
            let _ = unsafe { munmap(self.memory.as_ptr(), self.len) };
        }
    }
}

/// Miri cannot map files.
#[cfg(miri)]
mod window {
    use std::fs::File;
    use std::io;

    pub(super) enum Window {}

    impl Window {
        pub(super) fn map(_: &File, _: u64, _: usize) -> io::Result<Window> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub(super) fn copy(&mut self, _: u64, _: &[u8]) -> bool {
            match *self {}
        }
    }
}

use window::Window;

#[cfg(test)]
mod tests;
