//! Counters of a door, which threads update without waiting for each other.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

const STRIPES: usize = 16;

/// Counters on a cache line of their own.
#[repr(align(128))]
#[derive(Default)]
struct Stripe {
    denied: AtomicU64,
    passed: AtomicU64,
    wasted: AtomicU64,
    ranges: AtomicU64,
}

/// The counters of one door.
#[derive(Default)]
pub(crate) struct Counts {
    stripes: [Stripe; STRIPES],
    /// Wasted queries before the last scan.
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

    /// Counts an answer, and returns it.
    #[inline]
    pub(crate) fn count(&self, is_denied: bool) -> bool {
        let stripe = self.stripe();
        let count = if is_denied { &stripe.denied } else { &stripe.passed };
        count.fetch_add(1, Ordering::Relaxed);
        is_denied
    }

    /// Counts a key that was passed on although RocksDB does not have it.
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

    /// Counts a range query.
    #[inline]
    pub(crate) fn count_range(&self) {
        self.stripe().ranges.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of range queries.
    pub(crate) fn ranges(&self) -> u64 {
        self.sum(|stripe| &stripe.ranges)
    }

    /// The number of all queries.
    pub(crate) fn answered(&self) -> u64 {
        self.denied() + self.passed()
    }

    /// The number of wasted queries since the last scan.
    pub(crate) fn wasted(&self) -> u64 {
        let all = self.sum(|stripe| &stripe.wasted);
        all - self.forgotten.load(Ordering::Relaxed).min(all)
    }

    /// Resets the wasted queries when a scan begins.
    pub(crate) fn forget_waste(&self) {
        self.forgotten.store(self.sum(|stripe| &stripe.wasted), Ordering::Relaxed);
    }

    /// Counts a scan that has made a filter of this many keys.
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
