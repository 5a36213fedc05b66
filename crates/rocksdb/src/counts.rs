//! What a door did, counted by many threads without waiting for each other.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

const STRIPES: usize = 16;

/// On a cache line of its own.
#[repr(align(128))]
#[derive(Default)]
struct Stripe {
    denied: AtomicU64,
    passed: AtomicU64,
    wasted: AtomicU64,
    ranges: AtomicU64,
}

/// Counts of one door.
#[derive(Default)]
pub(crate) struct Counts {
    stripes: [Stripe; STRIPES],
    /// Waste before the last scan.
    forgotten: AtomicU64,
    scans: AtomicU64,
    scanned_keys: AtomicU64,
}

static THREADS: AtomicUsize = AtomicUsize::new(0);
thread_local! {
    static STRIPE: Cell<usize> = Cell::new(THREADS.fetch_add(1, Ordering::Relaxed) % STRIPES);
}

impl Counts {
    fn stripe(&self) -> &Stripe {
        &self.stripes[STRIPE.get()]
    }

    /// Counts an answer, and gives it back.
    #[inline]
    pub(crate) fn count(&self, is_denied: bool) -> bool {
        let stripe = self.stripe();
        let count = if is_denied { &stripe.denied } else { &stripe.passed };
        count.fetch_add(1, Ordering::Relaxed);
        is_denied
    }

    /// A key was passed on for nothing.
    pub(crate) fn waste(&self) {
        self.stripe().wasted.fetch_add(1, Ordering::Relaxed);
    }

    fn sum(&self, count: impl Fn(&Stripe) -> &AtomicU64) -> u64 {
        self.stripes.iter().map(|stripe| count(stripe).load(Ordering::Relaxed)).sum()
    }

    pub(crate) fn denied(&self) -> u64 {
        self.sum(|stripe| &stripe.denied)
    }

    pub(crate) fn passed(&self) -> u64 {
        self.sum(|stripe| &stripe.passed)
    }

    /// A range is asked for.
    #[inline]
    pub(crate) fn count_range(&self) {
        self.stripe().ranges.fetch_add(1, Ordering::Relaxed);
    }

    /// Ranges that were asked for.
    pub(crate) fn ranges(&self) -> u64 {
        self.sum(|stripe| &stripe.ranges)
    }

    /// All questions.
    pub(crate) fn answered(&self) -> u64 {
        self.denied() + self.passed()
    }

    /// Since the last scan.
    pub(crate) fn wasted(&self) -> u64 {
        let all = self.sum(|stripe| &stripe.wasted);
        all - self.forgotten.load(Ordering::Relaxed).min(all)
    }

    /// A scan begins.
    pub(crate) fn forget_waste(&self) {
        self.forgotten.store(self.sum(|stripe| &stripe.wasted), Ordering::Relaxed);
    }

    /// A scan has made a filter of so many keys.
    pub(crate) fn count_scan(&self, keys: u64) {
        self.scans.fetch_add(1, Ordering::Relaxed);
        self.scanned_keys.fetch_add(keys, Ordering::Relaxed);
    }

    pub(crate) fn scans(&self) -> u64 {
        self.scans.load(Ordering::Relaxed)
    }

    pub(crate) fn scanned_keys(&self) -> u64 {
        self.scanned_keys.load(Ordering::Relaxed)
    }
}
