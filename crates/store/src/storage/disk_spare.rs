//! Reads a file onto the end of a buffer, into memory that nobody has zeroed: for a long value,
//! zeroing would take a tenth of the whole read.
//!
//! Invariant: a buffer's length grows only over bytes that the system has written. The safe twin
//! is [`ReadAt::read_onto`](crate::storage::ReadAt::read_onto), which other systems use.

use std::fs::File;
use std::io;

use rustix::io::{Errno, pread};

use crate::storage::traits::reserve;

/// Appends `len` bytes from `offset` on. After an error, `bytes` are as before.
pub(crate) fn read_onto(
    file: &File,
    offset: u64,
    len: usize,
    bytes: &mut Vec<u8>,
) -> io::Result<()> {
    reserve(bytes, len)?;
    let room = &mut bytes.spare_capacity_mut()[..len];
    let mut done = 0;
    while done < len {
        match pread(file, &mut room[done..], offset.saturating_add(done as u64)) {
            Ok(([], _)) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok((read, _)) => done += read.len(),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let end = bytes.len() + len;
    // SAFETY: `room` is the memory between the old end and this one, so the capacity suffices. The
    // loop has ended, so the system has written each byte of it.
    unsafe { bytes.set_len(end) };
    Ok(())
}
