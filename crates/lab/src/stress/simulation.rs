//! The interface between a kind of history and the threads that run it: drawing, running,
//! shortening and describing.
//! ```text
//! seed -> draw -> steps -> run -> what was done
//!                             -> the step and what is wrong -> fewer steps -> text
//! ```

use std::sync::atomic::{AtomicU64, Ordering};

use super::panics;
use super::world::{Checked, Done, Door};

/// A kind of history.
pub(crate) trait Simulation: Sized {
    /// One step, after which the store is checked.
    type Step: Clone + Send;
    /// The store and its model.
    type World<'h>
    where
        Self: 'h;

    /// Draws the history of a seed, with `steps` steps.
    fn draw(seed: u64, steps: u32) -> Self;

    fn steps(&self) -> &[Self::Step];

    /// Returns the step's number in the whole history.
    fn number(step: &Self::Step) -> u32;

    /// Returns simpler variants of a step.
    fn simpler(step: &Self::Step) -> Vec<Self::Step>;

    /// Creates the store as it is before the first step.
    fn begin(&self, door: Door) -> Checked<Self::World<'_>>;

    /// Applies a step, and checks the store after it.
    fn apply(world: &mut Self::World<'_>, step: &Self::Step) -> Checked<()>;

    /// Makes the last checks.
    fn finish(world: Self::World<'_>) -> Checked<Done>;

    /// Describes a step for readers.
    fn tell(&self, step: &Self::Step) -> String;

    /// Describes the options with which the store was first opened.
    fn tell_setup(&self) -> String;

    /// Returns the command that repeats the history.
    fn again(seed: u64, steps: u32) -> String;
}

/// A history that fails, and how.
#[derive(Clone, Debug)]
pub(crate) struct Failing<S> {
    pub(crate) steps: Vec<S>,
    /// What is wrong, and the number of the step after which it was found.
    pub(crate) wrong: String,
    pub(crate) at: u32,
}

/// Runs the history of a seed.
pub(crate) fn run_seed<H: Simulation>(
    seed: u64,
    steps: u32,
    door: Door,
    counted: &AtomicU64,
) -> Result<Done, Failing<H::Step>> {
    let history = H::draw(seed, steps);
    let run = run_steps(&history, history.steps(), door, counted);
    run.map_err(|(at, wrong)| Failing { steps: history.steps().to_vec(), wrong, at })
}

/// Runs some steps of a history. An error says after which step it failed, and how.
pub(crate) fn run_steps<H: Simulation>(
    history: &H,
    steps: &[H::Step],
    door: Door,
    counted: &AtomicU64,
) -> Result<Done, (u32, String)> {
    let mut at = 0;
    let run = panics::caught(|| {
        let mut world = history.begin(door)?;
        for step in steps {
            at = H::number(step);
            H::apply(&mut world, step)?;
            counted.fetch_add(1, Ordering::Relaxed);
        }
        H::finish(world)
    });
    run.map_err(|wrong| (at, wrong))
}
