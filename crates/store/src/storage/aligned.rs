//! Buffers and file ranges for direct I/O, which moves whole sectors.
//! ```text
//! file     |......|......|......|......|         | a multiple of the alignment
//! wanted          .  [=====]    .
//! window          [......|......]                what is read; the wanted bytes begin at `skip`
//! ```
//! Invariants: a window begins and ends at multiples of its alignment, and contains the wanted
//! bytes. A buffer begins at a multiple of `MEMORY_ALIGN`, which is a multiple of every alignment
//! that disks require.

use std::io;
use std::ops::Range;

use crate::storage::read_queue::ReadBuffer;
use crate::storage::traits::zeroed;

/// Buffers for direct I/O begin at a multiple of this.
const MEMORY_ALIGN: usize = 4096;

/// A buffer at an aligned address.
pub(crate) struct Sectors {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

impl Sectors {
    /// A buffer of `len` zeros.
    pub(crate) fn zeroed(len: usize) -> Sectors {
        Sectors::of(vec![0; len + MEMORY_ALIGN - 1], len)
    }

    /// Like `zeroed`, but fails if there is not enough memory.
    pub(crate) fn if_there_is_memory(len: usize) -> io::Result<Sectors> {
        Ok(Sectors::of(zeroed(len + MEMORY_ALIGN - 1)?, len))
    }

    fn of(memory: Vec<u8>, len: usize) -> Sectors {
        let start = memory.as_ptr().align_offset(MEMORY_ALIGN);
        assert!(start < MEMORY_ALIGN, "bytes can be aligned, in {start}");
        Sectors { memory, start, len }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.len]
    }

    /// Returns a part of the bytes, without a copy.
    pub(crate) fn part(self, range: Range<usize>) -> ReadBuffer {
        assert!(range.end <= self.len, "{range:?} of {}", self.len);
        ReadBuffer::part(self.memory, self.start + range.start..self.start + range.end)
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.len]
    }
}

/// The whole sectors of a file that contain the wanted bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) offset: u64,
    pub(crate) len: usize,
    /// The offset of the wanted bytes in the window.
    pub(crate) skip: usize,
    /// The number of wanted bytes.
    pub(crate) wanted: usize,
    pub(crate) align: usize,
}

impl Window {
    /// Returns the window around `wanted` bytes from `offset` on. Fails if no file can be that
    /// long. Requires: the alignment is a power of two.
    pub(crate) fn around(offset: u64, wanted: usize, align: usize) -> io::Result<Window> {
        assert!(align.is_power_of_two() && align <= MEMORY_ALIGN, "alignment {align}");
        let skip = (offset % align as u64) as usize;
        let end = skip.checked_add(wanted).and_then(|end| end.checked_next_multiple_of(align));
        let is_in_file =
            offset.checked_add(wanted as u64).is_some_and(|end| end <= i64::MAX as u64);
        let len = end.filter(|_| is_in_file).ok_or(io::ErrorKind::UnexpectedEof)?;
        Ok(Window { offset: offset - skip as u64, len, skip, wanted, align })
    }

    /// Returns the range of the wanted bytes in the window.
    pub(crate) fn range(&self) -> Range<usize> {
        self.skip..self.skip + self.wanted
    }

    /// Returns where to continue in the window after the first `filled` bytes, at a multiple of the
    /// alignment. None: all wanted bytes have arrived.
    pub(crate) fn rest(&self, filled: usize) -> Option<usize> {
        (filled < self.range().end).then(|| filled - filled % self.align)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_whole_sectors_around_what_is_wanted() {
        for align in [1, 512, 4096] {
            for offset in [0u64, 1, 511, 512, 513, 4095, 4096, 70_000] {
                for wanted in [0, 1, 511, 512, 4096, 4097] {
                    let window = Window::around(offset, wanted, align).unwrap();
                    assert_eq!((window.offset % align as u64, window.len % align), (0, 0));
                    assert_eq!(window.offset + window.skip as u64, offset);
                    let range = window.range();
                    assert!(range.end <= window.len && range.len() == wanted);
                    assert!(window.len < wanted + 2 * align, "{window:?}");
                }
            }
        }
    }

    #[test]
    fn what_is_left_begins_with_a_sector() {
        let window = Window::around(700, 1000, 512).unwrap();
        assert_eq!((window.offset, window.len, window.skip), (512, 1536, 188));
        assert_eq!(window.rest(0), Some(0));
        assert_eq!(window.rest(511), Some(0));
        assert_eq!(window.rest(513), Some(512));
        assert_eq!(window.rest(1187), Some(1024));
        assert_eq!(window.rest(1188), None);
    }

    #[test]
    fn places_beyond_any_file_are_its_end() {
        for (offset, wanted) in [(u64::MAX, 1), (u64::MAX - 10, 4096), (1 << 63, 1)] {
            let refused = Window::around(offset, wanted, 512).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::UnexpectedEof);
        }
    }

    #[test]
    fn memory_is_aligned() {
        for len in [0, 1, 512, 4096, 1 << 20] {
            let mut sectors = Sectors::zeroed(len);
            assert_eq!(sectors.bytes().len(), len);
            assert_eq!(sectors.bytes_mut().as_ptr().align_offset(MEMORY_ALIGN), 0);
        }
    }
}
