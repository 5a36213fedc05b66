//! A chunk of memory for nodes. Huge pages keep TLB misses few.
//! ```text
//! 2 MiB         one huge page, if the system has one: a search visits nodes all over the list, and
//!               with small pages it would wait for page tables, too
//! else          words
//! ```
//! Invariant: a chunk is aligned to words. It is neither moved nor freed while the `Chunk` lives.

use std::mem::MaybeUninit;

/// The unit of node memory: eight bytes, aligned to eight bytes on every machine.
pub(super) type Word = std::sync::atomic::AtomicU64;

/// The size of a huge page, on most machines.
pub(super) const HUGE_BYTES: usize = 2 << 20;

/// Raw memory: no word is read or written as such.
pub(super) enum Chunk {
    Words(Vec<Word>),
    Huge(Vec<HugePage>),
}

/// A huge page, aligned to its own size.
#[repr(align(0x20_0000))]
pub(super) struct HugePage {
    _memory: [MaybeUninit<u8>; HUGE_BYTES],
}

const _: () = assert!(align_of::<HugePage>() == HUGE_BYTES);
const _: () = assert!(size_of::<HugePage>() == HUGE_BYTES);

impl Chunk {
    /// Allocates `size` bytes. Requires: a multiple of a word's size.
    pub(super) fn new(size: usize) -> Chunk {
        // Other systems have no such advice, and the alignment would waste memory.
        if size != HUGE_BYTES || !cfg!(target_os = "linux") {
            return Chunk::Words(Vec::with_capacity(size / size_of::<Word>()));
        }
        let mut page = Vec::with_capacity(1);
        advise(&mut page);
        Chunk::Huge(page)
    }

    /// The start of the memory.
    pub(super) fn start(&mut self) -> *mut u8 {
        match self {
            Chunk::Words(words) => words.as_mut_ptr().cast(),
            Chunk::Huge(page) => page.as_mut_ptr().cast(),
        }
    }
}

/// Asks the system for one huge page instead of many small ones. Requires: capacity for one page.
#[cfg(all(target_os = "linux", not(any(loom, shuttle, miri))))]
fn advise(page: &mut Vec<HugePage>) {
    use rustix::mm::{Advice, madvise};

    let start = page.spare_capacity_mut().as_mut_ptr();
    #[expect(unsafe_code, reason = "the system is told that memory of ours is of one piece")]
    // SAFETY: the whole page is this vector's, and what the system puts under it changes no byte.
    // A failure leaves small pages.
    let _ = unsafe { madvise(start.cast(), HUGE_BYTES, Advice::LinuxHugepage) };
}

/// Does nothing on other systems.
#[cfg(not(all(target_os = "linux", not(any(loom, shuttle, miri)))))]
fn advise(_page: &mut Vec<HugePage>) {}
