//! A number that reads as 0 in every forked child, since the kernel wipes its memory page.
//! ```text
//! process   page [ 2 ....... ]  -- fork -->  child   page [ 0 ....... ]
//! ```
//! One load tells a child from its parent, without a system call or a fork handler. Linux before
//! 4.14 and macOS cannot wipe pages. There the number is marked, and a reader that sees the mark
//! compares process ids.
//!
//! Invariant: the page belongs to this value alone. It is mapped as long as the value lives, and
//! nothing else points into it.

use crate::sync::Ordering;

/// The mark of a number whose page the kernel cannot wipe.
const UNWIPED: usize = 1 << (usize::BITS - 1);

/// A number below 2^31. 0: this process is a child of the one that created it.
pub(crate) struct ForkWord {
    page: Page,
    mark: usize,
    process: u32,
}

impl ForkWord {
    pub(crate) fn new(value: usize) -> Self {
        let (page, is_wiped) = Page::new();
        let mark = if is_wiped { 0 } else { UNWIPED };
        let word = ForkWord { page, mark, process: std::process::id() };
        word.store(value);
        word
    }

    /// Whether the number is `value`, which is not 0. This check is cheap, but may say no where the
    /// kernel cannot wipe pages.
    #[inline]
    pub(crate) fn is_surely(&self, value: usize) -> bool {
        self.page.word().load(Ordering::Acquire) == value
    }

    pub(crate) fn value(&self) -> usize {
        let value = self.page.word().load(Ordering::Acquire);
        let is_child = value & UNWIPED != 0 && std::process::id() != self.process;
        if is_child { 0 } else { value & !UNWIPED }
    }

    /// Requires: this process created it. A store by a child is visible to that child alone.
    pub(crate) fn store(&self, value: usize) {
        self.page.word().store(value | self.mark, Ordering::Release);
    }
}

#[cfg(all(target_os = "linux", not(any(loom, shuttle, miri))))]
mod page {
    use std::ffi::c_void;
    use std::ptr::{NonNull, null_mut};

    use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

    use crate::sync::AtomicUsize;

    /// Mappings consist of whole pages, and no page is smaller.
    const LEN: usize = 4096;

    /// A page that a fork wipes, with a number at its start.
    pub(super) enum Page {
        Mapped(NonNull<AtomicUsize>),
        /// The kernel provided no page.
        Boxed(Box<AtomicUsize>),
    }

    // SAFETY: it owns its page, and gives out shared references to the atomic number there alone.
    unsafe impl Send for Page {}
    // SAFETY: as above.
    unsafe impl Sync for Page {}

    impl Page {
        /// A page with 0 in it, and whether a fork wipes it.
        pub(super) fn new() -> (Self, bool) {
            match map() {
                Some(word) => (Page::Mapped(word), true),
                None => (Page::Boxed(Box::default()), false),
            }
        }

        #[inline]
        pub(super) fn word(&self) -> &AtomicUsize {
            match self {
                // SAFETY: the page is mapped until this value is dropped, and is aligned. It was
                // zeros when it was mapped, which is an atomic 0. Only atomics ever refer to it.
                Page::Mapped(word) => unsafe { word.as_ref() },
                Page::Boxed(word) => word,
            }
        }
    }

    fn map() -> Option<NonNull<AtomicUsize>> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new private mapping at an address of the kernel's choice touches no other
        // memory.
        let page = unsafe { mmap_anonymous(null_mut(), LEN, protection, MapFlags::PRIVATE) };
        let page = NonNull::new(page.ok()?)?;
        // SAFETY: the whole page was mapped above, and nothing was stored in it yet.
        if unsafe { madvise(page.as_ptr(), LEN, Advice::LinuxWipeOnFork) }.is_ok() {
            return Some(page.cast());
        }
        unmap(page);
        None
    }

    /// Requires: `map` has mapped the page, and nothing refers to it any more.
    fn unmap(page: NonNull<c_void>) {
        // SAFETY: see above. A failure leaves a page behind that nothing refers to.
        let _ = unsafe { munmap(page.as_ptr(), LEN) };
    }

    impl Drop for Page {
        fn drop(&mut self) {
            if let Page::Mapped(word) = self {
                unmap(word.cast());
            }
        }
    }
}

/// Models, Miri and Windows never fork. Other systems fork, but cannot wipe pages.
#[cfg(any(not(target_os = "linux"), loom, shuttle, miri))]
mod page {
    use crate::sync::AtomicUsize;

    const NEVER_FORKS: bool = cfg!(any(not(unix), loom, shuttle, miri));

    pub(super) struct Page(AtomicUsize);

    impl Page {
        pub(super) fn new() -> (Self, bool) {
            (Page(AtomicUsize::new(0)), NEVER_FORKS)
        }

        pub(super) fn word(&self) -> &AtomicUsize {
            &self.0
        }
    }
}

use page::Page;

#[cfg(test)]
mod tests {
    use super::*;

    #[test] // Children are in `tests/fork.rs`.
    fn a_number_is_what_was_stored() {
        let word = ForkWord::new(1);
        assert_eq!(word.value(), 1);
        word.store(3);
        assert_eq!(word.value(), 3);
        assert!(!word.is_surely(1));
    }

    #[test]
    fn a_marked_number_is_of_the_process_that_made_it() {
        let mut word = ForkWord::new(1);
        word.mark = UNWIPED;
        word.store(2);
        assert!(!word.is_surely(2), "who looks quickly asks for the process");
        assert_eq!(word.value(), 2);
        word.process += 1;
        assert_eq!(word.value(), 0);
    }
}
