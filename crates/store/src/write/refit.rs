//! A refit: rebuilds a part of the global filter that should have other bits. Where parts share
//! memory, this depends on the queries that each of them gets.
//! ```text
//! allotment (guard/allotment.rs) -> a part from its runs -> carry over newer runs
//!                                                                 |  '-> install -> image
//!                                                                 '-> other tables below it:
//!                                                                     it is given up
//! ```
//! `refit_scheduler` decides when this happens. Invariants: the part's base is built from the same
//! tables before and after. Flushes that are installed meanwhile are carried over as in a merge
//! (ordering rule 3).

use std::time::{Duration, Instant};

use trommel_filters::{GrfOptions, Part};

use crate::error::Result;
use crate::guard::Guard;
use crate::guard::rebuild::{MadeFor, rebuild_part};
use crate::storage::pauses::PausePoint;
use crate::sync::{Arc, ThreadId, now};
use crate::tree::guard_image;
use crate::tree::open_tree::OpenTree;
use crate::tree::version::Version;
use crate::write::parts_builder::PreparedParts;

/// Passes of carrying over outside the lock.
const PASSES_OUTSIDE: usize = 3;

/// A rebuilt part that is to be installed.
pub(crate) struct Refit {
    prepared: PreparedParts,
    /// The tables from which its base was built.
    base_files: Vec<u64>,
}

/// The state in which parts were considered. In the same state, the outcome is the same.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(super) questions: u64,
    pub(super) flushes: u64,
    pub(super) merge_epoch: u64,
}

/// The part that is being rebuilt, and when parts are considered again.
#[derive(Default)]
pub(crate) struct RefitWork {
    /// The refit in progress. While a thread runs a step of it, it is not here.
    pub(super) task: Option<Refit>,
    /// The thread that runs a step.
    pub(super) busy: Option<ThreadId>,
    /// In this state, no part was worth a refit.
    pub(super) found_nothing: Option<Seen>,
    pub(super) not_before: Option<Instant>,
}

impl RefitWork {
    /// Returns how long a thread has to wait before it considers parts. None: it need not wait.
    pub(super) fn pause_left(&self) -> Option<Duration> {
        let left = self.not_before?.checked_duration_since(now())?;
        Some(left).filter(|left| !left.is_zero())
    }
}

impl Refit {
    /// Builds the part that is most worth it. None: none is.
    pub(super) fn build(tree: &OpenTree) -> Result<Option<Refit>> {
        let version = tree.current.hold();
        let Some(parts) = version.guard.parts().filter(|_| !version.runs.is_empty()) else {
            return Ok(None);
        };
        let allotment = tree.allotment(parts);
        let change = allotment.as_ref().and_then(|allotment| allotment.next_change());
        let Some((lower, bits_per_key)) = change else { return Ok(None) };
        let (bounds, part) = parts.at(lower).expect("what is allotted is a part's");
        let grf = GrfOptions { bits_per_key, ..*part.options() };
        let empty_queries = tree.empty_query_sample.known(part, &bounds);
        let made_for = MadeFor { query_mix: part.query_mix(), empty_queries };
        let layout = &version.layout;
        let part = rebuild_part(
            &tree.table_files.options,
            (&grf, &made_for),
            (layout, &version.runs),
            (&bounds, &tree.shape_within(layout, &bounds)),
        )?;
        let prepared = PreparedParts {
            parts: vec![(bounds.from.clone(), part)],
            range: bounds,
            inputs: Vec::new(),
            watermark: layout.next_flush,
        };
        let base_files = layout.base_files(&prepared.range);
        Ok(Some(Refit { prepared, base_files }))
    }

    /// Whether the part's range and base are still those of a version.
    fn fits(&self, now: &Version) -> bool {
        let range = &self.prepared.range;
        let part = now.guard.parts().and_then(|parts| parts.at(&range.from));
        let is_there = part.is_some_and(|(bounds, _)| bounds == *range);
        is_there && now.layout.base_files(range) == self.base_files
    }

    /// Makes the part that of the newest version, unless that version's base is another one. Then
    /// writes its image.
    pub(super) fn install(mut self, tree: &OpenTree) -> Result<()> {
        for _ in 0..PASSES_OUTSIDE {
            let now = tree.current.hold();
            if !self.fits(&now) {
                return Ok(());
            }
            self.carry_over(tree, &now)?;
        }
        tree.env.pauses.at(PausePoint::MergePrepared);
        let installer = tree.installer();
        let now = tree.current.hold();
        if tree.check_open().is_err() || !self.fits(&now) {
            return Ok(());
        }
        self.carry_over(tree, &now)?;
        let PreparedParts { range, parts: new, .. } = self.prepared;
        let Some(parts) = now.guard.parts() else { return Ok(()) };
        let most = tree.table_files.options.transaction_memory;
        let keep = |part: &Arc<Part>| tree.snapshots.keep_for_commits(part, most);
        let guard = parts.replaced(&range, new, now.layout.next_flush, keep);
        let next = Version { guard: Guard::Global(guard), ..Version::clone(&now) };
        tree.current.store(Arc::new(next));
        drop((installer, now));
        // If this fails, the next opening uses the part as it was before.
        let _ = guard_image::write_anew(tree, &range);
        Ok(())
    }

    /// Carries newer runs over. The oldest run is in the base, whatever its id is now. Requires:
    /// the part fits.
    fn carry_over(&mut self, tree: &OpenTree, now: &Version) -> Result<()> {
        self.prepared.inputs = now.runs.last().map(|oldest| oldest.id).into_iter().collect();
        self.prepared.carry_over(tree, now)
    }

    /// Returns the bytes of the tables below its base.
    pub(super) fn base_bytes(&self, now: &Version) -> u64 {
        now.layout.base_tables(&self.prepared.range).iter().map(|table| table.bytes_within()).sum()
    }
}
