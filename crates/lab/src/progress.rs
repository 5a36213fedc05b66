//! What listens to long work.

use trommel::Db;

/// Hears what a measurement is doing. The laboratory never prints.
pub trait Progress {
    /// A new stage of the work begins, of so many steps.
    fn stage(&mut self, name: &str, steps: u64);
    /// So many more steps of the stage are done.
    fn advance(&mut self, steps: u64);
    /// Shows the store that is being worked on, now and then, to a listener that watches it.
    fn look(&mut self, _db: &Db) {}
}

/// Drops what it is told.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn stage(&mut self, _name: &str, _steps: u64) {}
    fn advance(&mut self, _steps: u64) {}
}
