//! The listener that long measurements report to.

use trommel::Db;

/// Receives the progress of a measurement, since the library itself never prints.
pub trait Progress {
    /// Begins a new stage of `steps` steps.
    fn stage(&mut self, name: &str, steps: u64);
    /// Reports that `steps` more steps of the stage are done.
    fn advance(&mut self, steps: u64);
    /// Lends the store that is being worked on, now and then, to a listener that draws it.
    fn look(&mut self, _db: &Db) {}
}

/// Ignores all progress.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn stage(&mut self, _name: &str, _steps: u64) {}
    fn advance(&mut self, _steps: u64) {}
}
