//! What filter research and schedule tests need from a store. This module is not part of the stable
//! interface: it changes with the implementation.
//! ```text
//! trace_guard               cache lines that an answer costs
//! step_any                  background work, in any order in which threads could do it
//! pinned_tree, follow_tree  the current tree, and each tree that comes after it
//! simulate_tree             the tree that a given number of writes would produce
//! ```
//! Invariant: nothing here changes what a store answers.

use trommel_filters::Query;

use crate::db::Db;
use crate::error::Result;
use crate::tree::version::Holder;

pub use crate::plan::simulate::{Load, SimulatedRun, SimulatedTree, simulate_tree};
pub use crate::tree::tree_view::PinnedTree;

/// Calls on an open store that are not meant for ordinary users.
pub trait Research {
    /// In [stepped mode](crate::Background::Stepped): does one [`step`](Db::step) of background
    /// work. `choice` picks the key space and the work, modulo the number of candidates. Candidates
    /// are a flush, each open merge, and a due merge if `merges_at_once` allows another one. A
    /// sequence of choices thus reproduces any order in which threads could do the work. Returns
    /// false if no key space has work.
    fn step_any(&self, choice: usize) -> Result<bool>;

    /// Returns the number of cache lines of filter memory that answering a query touches. Slow:
    /// meant for measurements.
    fn trace_guard(&self, query: &Query<'_>) -> usize;

    /// Returns the current tree, pinned.
    fn pinned_tree(&self) -> PinnedTree;

    /// Calls `follower` with the current tree, then with every tree that a flush, a merge or a bulk
    /// load produces, in order and without gaps. There is one follower at a time: a new one
    /// replaces the previous one. The follower runs while the change is being installed, so all
    /// other changes wait for it. It should hand the tree on, and must not call this store. A
    /// follower that panics is not called again.
    fn follow_tree(&self, follower: impl FnMut(PinnedTree) + Send + 'static) -> Result<()>;

    /// Removes the follower.
    fn unfollow_tree(&self) -> Result<()>;
}

impl Research for Db {
    fn step_any(&self, choice: usize) -> Result<bool> {
        let _call = self.engine.life().enter()?;
        // All key spaces are tried in turn, starting with the one that `choice` picks.
        let mut engines = self.owner.engines();
        let count = engines.len();
        engines.rotate_left(choice % count);
        for engine in engines {
            if engine.step_any(choice / count)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn trace_guard(&self, query: &Query<'_>) -> usize {
        let version = self.engine.current.pin();
        let range = query.range();
        let after_upper = range.upper().map(|upper| [upper, &[0]].concat());
        let tables = version
            .runs
            .iter()
            .flat_map(|placed| placed.run.overlapping(range.lower(), after_upper.as_deref()));
        version.guard.lines(query, tables)
    }

    fn pinned_tree(&self) -> PinnedTree {
        PinnedTree::new(&self.engine, Holder::PinnedTree)
    }

    fn follow_tree(&self, follower: impl FnMut(PinnedTree) + Send + 'static) -> Result<()> {
        let _call = self.engine.life().enter()?;
        self.engine.installer().follow(&self.engine, Box::new(follower));
        Ok(())
    }

    fn unfollow_tree(&self) -> Result<()> {
        let _call = self.engine.life().enter()?;
        self.engine.installer().unfollow();
        Ok(())
    }
}
