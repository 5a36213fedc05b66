//! What Linux tells of direct transfers (`O_DIRECT`), and what it is told of reads to come. Other
//! systems have no such transfers, and use their cache.

use std::fs::File;
use std::num::NonZeroU64;

use rustix::fs::{Advice, AtFlags, FsWord, StatxFlags, fadvise, fstatfs, statx};

/// The alignment to use where the file system does not tell.
const ALIGN_UNTOLD: usize = 4096;
/// A file system in memory accepts the flag, but has no cache to bypass.
const TMPFS_MAGIC: FsWord = 0x0102_1994;

/// File systems that write a page of a mapped file where it was allocated, so that it needs no more
/// space: ext4 and tmpfs. Others copy pages on write, XFS where files share them.
const IN_PLACE: [FsWord; 2] = [0xEF53, TMPFS_MAGIC];

/// Whether a file may be written through memory.
pub(crate) fn can_map(file: &File) -> bool {
    fstatfs(file).is_ok_and(|system| IN_PLACE.contains(&system.f_type))
}

/// Has the system read into its cache.
pub(crate) fn will_read(file: &File, offset: u64, len: u64) -> std::io::Result<()> {
    let Some(len) = NonZeroU64::new(len) else { return Ok(()) };
    Ok(fadvise(file, offset, Some(len), Advice::WillNeed)?)
}

/// The alignment that direct transfers of a file need. None: direct transfers are impossible.
pub(crate) fn alignment(file: &File) -> Option<usize> {
    if fstatfs(file).is_ok_and(|system| system.f_type == TMPFS_MAGIC) {
        return None;
    }
    let told = statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok();
    let told = told.filter(|told| told.stx_mask & StatxFlags::DIOALIGN.bits() != 0);
    let align = told.map_or(ALIGN_UNTOLD, |told| {
        told.stx_dio_offset_align.max(told.stx_dio_mem_align) as usize
    });
    (align.is_power_of_two() && align <= ALIGN_UNTOLD).then_some(align)
}
