//! Gives each live thread a place, so that threads can count without sharing counters.
//! ```text
//! place   0 .. 15   owned by one live thread: its counters need no atomic addition
//!        16 .. 31   shared, in turns, by threads that found no free place of their own
//! ```
//! Invariant: two live threads never own the same place below `OWN`. The next owner of a place sees
//! everything that was written there before.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// The number of places that one thread owns alone.
pub(crate) const OWN: usize = 16;
/// All places.
pub(crate) const PLACES: usize = 2 * OWN;

// These outlive every model, so they do not use the model checker's atomics.
/// A bit for each owned place.
static TAKEN: AtomicU32 = AtomicU32::new(0);
/// The next of the shared places.
static NEXT_SHARED: AtomicUsize = AtomicUsize::new(0);

struct Place(usize);

impl Place {
    fn take() -> Place {
        // Threads of a model are not those of the system, so none owns a place.
        if cfg!(any(loom, shuttle)) {
            return Place(shared());
        }
        let free = |taken: u32| (taken.trailing_ones() as usize) < OWN;
        let with_next = |taken: u32| free(taken).then(|| taken | (taken + 1));
        match TAKEN.fetch_update(Ordering::Acquire, Ordering::Relaxed, with_next) {
            Ok(before) => Place(before.trailing_ones() as usize),
            Err(_) => Place(shared()),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.0 < OWN {
            TAKEN.fetch_and(!(1 << self.0), Ordering::Release);
        }
    }
}

fn shared() -> usize {
    OWN + NEXT_SHARED.fetch_add(1, Ordering::Relaxed) % (PLACES - OWN)
}

thread_local! {
    static PLACE: Place = Place::take();
}

/// Returns the place of this thread. Below [`OWN`] the thread owns it alone.
#[inline]
pub(crate) fn place() -> usize {
    // A thread that is ending may have returned its place already.
    PLACE.try_with(|place| place.0).unwrap_or_else(|_| shared())
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::sync::{Barrier, Mutex};

    #[test]
    fn threads_that_live_together_have_no_place_of_their_own_in_common() {
        let (own, barrier) = (Mutex::new(BTreeSet::new()), Barrier::new(40));
        let mut rounds = 0;
        while rounds < 20 {
            rounds += 1;
            std::thread::scope(|scope| {
                for _ in 0..40 {
                    scope.spawn(|| {
                        let place = place();
                        assert!(place < PLACES);
                        if place < OWN {
                            assert!(own.lock().expect("nobody panicked").insert(place));
                        }
                        // All threads live until each has its place.
                        barrier.wait();
                    });
                }
            });
            // Threads of other tests count, too.
            own.lock().expect("nobody panicked").clear();
        }
    }
}
