//! A file that grows by small pieces, which are written through memory: a system call for each
//! would cost several times what its bytes do.
//! ```text
//! file      data ............. | zeros, allocated ahead |
//! window              [ mapped ........................ ]      small pieces are copied here
//! ```
//! Long pieces are written by calls, and so is everything where the file cannot be mapped. Copied
//! bytes are the kernel's, as written ones are: they outlive the process, and a sync of the file
//! makes them durable. What a window shows was allocated before: a full disk is an error of the
//! call that allocates, and that piece is written by a call. But a copy into a file that somebody
//! has shortened, or whose file system has given up, raises SIGBUS, and ends the process: so it is
//! an option.
//!
//! Invariants: a window lies within the file, which nobody else shortens. Behind the data there are
//! zeros alone. They are cut off when the file is closed, by the process that made it.

use std::fs::File;
use std::io;

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::retry_on_intr;

use crate::storage::disk::linux;
use crate::storage::disk::system::write_all_at;
use crate::storage::traits::{Append, Syncer};
use crate::sync::Arc;

/// Longer pieces cost less by a call: each page of a window costs a fault.
const PIECE_MAX: usize = 2 << 10;
/// The least and the most that is allocated at once: in between, as much as there is data.
const AHEAD: (u64, u64) = (128 << 10, 4 << 20);
/// Mappings begin at pages. No page is larger, and a larger multiple will do.
const PAGE: u64 = 64 << 10;

/// A file that grows at its end.
pub(crate) struct MappedAppender {
    file: Arc<File>,
    /// Of the data.
    len: u64,
    /// Of the file.
    allocated: u64,
    window: Option<Window>,
    can_map: bool,
    process: u32,
}

impl MappedAppender {
    /// Of an empty file, open for reading and writing.
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

    /// Copies a piece into the window. False: there is none for it.
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

    /// To where the data ends.
    fn move_window(&mut self) -> io::Result<()> {
        self.window = None;
        let start = self.len / PAGE * PAGE;
        let bytes = self.len.next_power_of_two().clamp(AHEAD.0, AHEAD.1);
        let allocate = || fallocate(&*self.file, FallocateFlags::empty(), start, bytes);
        if let Err(error) = retry_on_intr(allocate) {
            // A part may be there, and take the last space of the disk.
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

    /// The kernel has the bytes.
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
        // A forked child has a copy of this, and the file goes on to grow.
        if self.allocated > self.len && self.process == std::process::id() {
            // If that fails, zeros stay, as after a crash.
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
        /// Where it begins in the file.
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

        /// Copies bytes to a place of the file. False: it does not show all of that place.
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

/// Miri maps no files.
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
