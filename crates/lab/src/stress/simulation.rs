//! What a kind of histories is to the threads that run them: drawn, run, shortened and told alike.
//! ```text
//! seed -> draw -> steps -> run -> what was done
//!                             -> the step and what is wrong -> fewer steps -> text
//! ```

use std::sync::atomic::{AtomicU64, Ordering};

use super::panics;
use super::world::{Checked, Done, Door};

/// A history of some kind.
pub(crate) trait Simulation: Sized {
    /// What is between two checks.
    type Step: Clone + Send;
    /// The store and the model beside it.
    type World<'h>
    where
        Self: 'h;

    /// The history of a seed, with so many steps.
    fn draw(seed: u64, steps: u32) -> Self;

    fn steps(&self) -> &[Self::Step];

    /// The step's number in the whole history.
    fn number(step: &Self::Step) -> u32;

    /// Steps that do less of the same.
    fn simpler(step: &Self::Step) -> Vec<Self::Step>;

    /// The store as it is before the first step.
    fn begin(&self, door: Door) -> Checked<Self::World<'_>>;

    /// Does a step, and checks what can be seen after it.
    fn apply(world: &mut Self::World<'_>, step: &Self::Step) -> Checked<()>;

    /// The last checks.
    fn finish(world: Self::World<'_>) -> Checked<Done>;

    /// A step as people read it.
    fn tell(&self, step: &Self::Step) -> String;

    /// The options that the store was first opened with.
    fn tell_setup(&self) -> String;

    /// The command that repeats the history.
    fn again(seed: u64, steps: u32) -> String;
}

/// A history that fails, and what it says.
#[derive(Clone, Debug)]
pub(crate) struct Failing<S> {
    pub(crate) steps: Vec<S>,
    /// What is wrong, and the number of the step after which it was seen.
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

/// Runs some steps of a history. An error says after which step, and what is wrong.
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
