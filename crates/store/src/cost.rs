//! What work is counted by where no clock tells: steps of searches and comparisons, in tests alone.
//! ```text
//! skip list, deleted ranges, blocks, heaps    step()  ->  steps_of(a query)    (cost/laws.rs)
//! ```
//! Invariant: in the program itself nothing is counted.

#[cfg(test)]
thread_local! {
    static STEPS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// A node, an entry or a source was looked at.
#[inline(always)]
pub(crate) fn step() {
    #[cfg(test)]
    STEPS.with(|steps| steps.set(steps.get() + 1));
}

/// The steps that this thread takes for something.
#[cfg(test)]
pub(crate) fn steps_of<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let before = STEPS.with(std::cell::Cell::get);
    let done = work();
    (done, STEPS.with(std::cell::Cell::get) - before)
}

#[cfg(test)]
mod laws;
