//! Memory for nodes, so much at once that few entries of the processor's table of pages lead to it.
//! ```text
//! 2 MiB         one huge page, if the system gives any: a search waits for nodes all over the
//!               list, and with small pages for the table of pages, too
//! else          words
//! ```
//! Invariant: it is aligned to words, and neither moves nor is given back while the chunk lives.

use std::mem::MaybeUninit;

/// What the memory of nodes is made of: of eight bytes, and aligned to them, on every machine.
pub(super) type Word = std::sync::atomic::AtomicU64;

/// The size of a huge page, on most machines.
pub(super) const HUGE_BYTES: usize = 2 << 20;

/// Memory alone: no word of it is read or written as such.
pub(super) enum Chunk {
    Words(Vec<Word>),
    Huge(Vec<HugePage>),
}

/// As large as it is aligned.
#[repr(align(0x20_0000))]
pub(super) struct HugePage {
    _memory: [MaybeUninit<u8>; HUGE_BYTES],
}

const _: () = assert!(align_of::<HugePage>() == HUGE_BYTES);
const _: () = assert!(size_of::<HugePage>() == HUGE_BYTES);

impl Chunk {
    /// Of `size` bytes. Requires: a multiple of a word's.
    pub(super) fn new(size: usize) -> Chunk {
        // Elsewhere nobody gives any, and alignment costs memory.
        if size != HUGE_BYTES || !cfg!(target_os = "linux") {
            return Chunk::Words(Vec::with_capacity(size / size_of::<Word>()));
        }
        let mut page = Vec::with_capacity(1);
        advise(&mut page);
        Chunk::Huge(page)
    }

    /// Where it begins.
    pub(super) fn start(&mut self) -> *mut u8 {
        match self {
            Chunk::Words(words) => words.as_mut_ptr().cast(),
            Chunk::Huge(page) => page.as_mut_ptr().cast(),
        }
    }
}

/// Asks for one huge page in place of many small ones. Requires: room for one.
#[cfg(all(target_os = "linux", not(any(loom, shuttle, miri))))]
fn advise(page: &mut Vec<HugePage>) {
    use rustix::mm::{Advice, madvise};

    let start = page.spare_capacity_mut().as_mut_ptr();
    #[expect(unsafe_code, reason = "the system is told that memory of ours is of one piece")]
    // SAFETY: the whole page is this vector's, and what the system puts under it changes no byte.
    // A failure leaves small pages.
    let _ = unsafe { madvise(start.cast(), HUGE_BYTES, Advice::LinuxHugepage) };
}

/// Elsewhere nobody is to be told.
#[cfg(not(all(target_os = "linux", not(any(loom, shuttle, miri)))))]
fn advise(_page: &mut Vec<HugePage>) {}
