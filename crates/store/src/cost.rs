//! Counts the work of operations in tests, without a clock: steps of searches, and comparisons.
//! ```text
//! skip list, deleted ranges, blocks, heaps    step()  ->  steps_of(a query)    (cost/laws.rs)
//! ```
//! Invariant: outside of tests nothing is counted.

#[cfg(test)]
thread_local! {
    static STEPS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Counts one look at a node, an entry or a source.
#[inline(always)]
pub(crate) fn step() {
    #[cfg(test)]
    STEPS.with(|steps| steps.set(steps.get() + 1));
}

/// Runs `work`, and returns the steps that this thread has counted meanwhile.
#[cfg(test)]
pub(crate) fn steps_of<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let before = STEPS.with(std::cell::Cell::get);
    let done = work();
    (done, STEPS.with(std::cell::Cell::get) - before)
}

#[cfg(test)]
mod laws;
