//! Histories of several key spaces, and of transactions that are open at once.
//! ```text
//! seed -> steps: begin, read, write in a transaction, commit     -> world: store | model
//!                batches, conditions, drops, crashes between
//! ```
//! Invariant: a single thread does everything, so the result of every read and every commit is
//! known. A commit must fail only if someone has written what it read, or has locked what it
//! writes. Nobody waits for a lock: the thread would wait for itself.

mod draw;
mod models;
mod open;
mod step;
#[cfg(test)]
mod tests;
mod world;

use super::setup;
use super::simulation::Simulation;
use super::world::{Checked, Done, Door};
use crate::keys::spread::number_of_spread;
use step::NumberedStep;
use world::World;

/// Key spaces of a history, and keys of each. All have the same keys.
pub(crate) const SPACES: usize = 4;
pub(crate) const KEYS: usize = 40;

/// Returns the number of a key. None: it is no key of the history.
fn number_of_key(key: &[u8]) -> Option<usize> {
    number_of_spread(key).filter(|number| *number < KEYS)
}

/// A drawn history.
pub(crate) struct History {
    /// The seed of the options of the first opening.
    setup: u64,
    steps: Vec<NumberedStep>,
}

impl Simulation for History {
    type Step = NumberedStep;
    type World<'h> = World;

    fn draw(seed: u64, steps: u32) -> Self {
        draw::history(seed, steps)
    }

    fn steps(&self) -> &[NumberedStep] {
        &self.steps
    }

    fn number(step: &NumberedStep) -> u32 {
        step.number
    }

    fn simpler(step: &NumberedStep) -> Vec<NumberedStep> {
        let numbered = |step_that| NumberedStep { number: step.number, step: step_that };
        step.step.simpler().into_iter().map(numbered).collect()
    }

    fn begin(&self, door: Door) -> Checked<World> {
        World::new(self.setup, door)
    }

    fn apply(world: &mut World, step: &NumberedStep) -> Checked<()> {
        world.apply(step)
    }

    fn finish(world: World) -> Checked<Done> {
        world.finish()
    }

    fn tell(&self, step: &NumberedStep) -> String {
        step.tell()
    }

    fn tell_setup(&self) -> String {
        setup::tell(&setup::options(self.setup))
    }

    fn again(seed: u64, steps: u32) -> String {
        format!("trommel stress --transactions --seed {seed} --steps {steps}")
    }
}
