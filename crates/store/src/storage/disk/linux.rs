//! Linux only: direct I/O (`O_DIRECT`), and hints about coming reads. Other systems use their cache
//! instead.

use std::fs::File;
use std::io::IoSliceMut;
use std::num::NonZeroU64;

use rustix::fs::{Advice, AtFlags, FsWord, StatxFlags, fadvise, fstatfs, statx};
use rustix::io::{ReadWriteFlags, preadv2};

/// The alignment to use if the file system does not report one.
const ALIGN_DEFAULT: usize = 4096;
/// A file system in memory accepts the flag, but has no cache to bypass.
const TMPFS_MAGIC: FsWord = 0x0102_1994;

/// The system's own read-ahead, unless somebody has changed it.
const WINDOW_BYTES: usize = 128 << 10;

/// File systems that write a page of a mapped file in place, so that it needs no further space:
/// ext4 and tmpfs. Others copy pages on write; XFS does so for files that share them.
const IN_PLACE: [FsWord; 2] = [0xEF53, TMPFS_MAGIC];

/// Whether a file may be written through mapped memory.
pub(crate) fn can_map(file: &File) -> bool {
    fstatfs(file).is_ok_and(|system| IN_PLACE.contains(&system.f_type))
}

/// Makes the system read these bytes into its cache, unless the cache has the last of them.
pub(crate) fn will_read(file: &File, offset: u64, len: u64) -> std::io::Result<()> {
    let Some(len) = NonZeroU64::new(len) else { return Ok(()) };
    if has_cached(file, offset.saturating_add(len.get() - 1)) {
        return Ok(());
    }
    Ok(fadvise(file, offset, Some(len), Advice::WillNeed)?)
}

/// Announces a long read. If the cache lacks its end, the disk gets one request for all of it.
/// Without this, the system would read ahead in windows.
pub(crate) fn begin_long_read(file: &File, offset: u64, len: usize) {
    if len > WINDOW_BYTES {
        // Only a hint: the read itself reports errors.
        let _ = will_read(file, offset, len as u64);
    }
}

/// Whether the cache has a byte of a file. An error counts as no.
fn has_cached(file: &File, at: u64) -> bool {
    let (mut byte, flags) = ([0], ReadWriteFlags::NOWAIT);
    preadv2(file, &mut [IoSliceMut::new(&mut byte)], at, flags).is_ok_and(|read| read == 1)
}

/// Returns the alignment that direct I/O on a file needs. None: direct I/O is impossible.
pub(crate) fn alignment(file: &File) -> Option<usize> {
    if fstatfs(file).is_ok_and(|system| system.f_type == TMPFS_MAGIC) {
        return None;
    }
    let dioalign = statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok();
    let dioalign = dioalign.filter(|dioalign| dioalign.stx_mask & StatxFlags::DIOALIGN.bits() != 0);
    let align = dioalign.map_or(ALIGN_DEFAULT, |dioalign| {
        dioalign.stx_dio_offset_align.max(dioalign.stx_dio_mem_align) as usize
    });
    (align.is_power_of_two() && align <= ALIGN_DEFAULT).then_some(align)
}
