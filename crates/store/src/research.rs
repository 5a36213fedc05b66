//! What research on filters and tests of schedules need of a store. It is outside the stable part
//! of the interface: it changes as the inside does.
//! ```text
//! trace_guard               cache lines that an answer costs
//! step_any                  background work in any order that threads could do it in
//! pinned_tree, follow_tree  the tree as it is, and each tree that comes after it
//! simulate_tree             the tree that so many writes would make
//! ```
//! Invariant: nothing here changes what a store answers.

use trommel_filters::Query;

use crate::db::Db;
use crate::error::Result;
use crate::tree::version::Holder;

pub use crate::plan::simulate::{Load, SimulatedRun, SimulatedTree, simulate_tree};
pub use crate::tree::tree_view::PinnedTree;

/// Calls of an open store that are not for its users.
pub trait Research {
    /// In stepped mode: makes one [`step`](Db::step) of the work that `choice` picks, modulo the
    /// number of candidates, in a key space that it picks, too. Candidates are a flush, each open
    /// merge, and a due merge if `merges_at_once` allows another. With one number after the other,
    /// background work is done in any order that threads could do it in.
    fn step_any(&self, choice: usize) -> Result<bool>;

    /// Cache lines of filter memory that answering a query touches. Slow: for measurements.
    fn trace_guard(&self, query: &Query<'_>) -> usize;

    /// The tree as it is now.
    fn pinned_tree(&self) -> PinnedTree;

    /// Calls `follower` with the tree as it is now. Then calls it with every tree that a flush, a
    /// merge or a bulk load leaves behind, in order, none left out. One follower at a time: the one
    /// before hears no more. It is called where changes are installed, so all others wait for it:
    /// it should hand the tree on, and must not call this store. One that panics hears no more.
    fn follow_tree(&self, follower: impl FnMut(PinnedTree) + Send + 'static) -> Result<()>;

    /// Ends following.
    fn unfollow_tree(&self) -> Result<()>;
}

impl Research for Db {
    fn step_any(&self, choice: usize) -> Result<bool> {
        let _call = self.engine.life().enter()?;
        // Of one key space after the other, from a drawn one on.
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
        let asked = version
            .runs
            .iter()
            .flat_map(|placed| placed.run.overlapping(range.lower(), after_upper.as_deref()));
        version.guard.lines(query, asked)
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
