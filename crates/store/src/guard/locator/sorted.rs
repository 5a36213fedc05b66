//! The guard whose view has every entry of all runs in key order: Remix as published.
//! ```text
//! flush, merge   all runs, merged entry by entry -> the run of each -> a new view: each time the
//!                                                                      whole tree is read
//! if it fails    the old view, and unordered notes beside it         -> scans merge the runs
//! ```
//! The place of a new key among the others is known only after these are read (GRF paper, section
//! 3.2). That is this guard's cost. Invariant: a whole view has each entry of the guard's runs, at
//! its rank.

use trommel_filters::{AnyRunLocator, RunLocatorKind, RunSlot, TreePlan};

use super::{LocatorGuard, SLOTS_MAX, plan_of};
use crate::entries::entry::Sequence;
use crate::entries::key_bounds::KeyBounds;
use crate::entries::merge_cursor::MergeCursor;
use crate::error::Result;
use crate::files::distinct_keys::is_in_order;
use crate::files::placed_run::PlacedRun;
use crate::guard::view_cursor::ViewCursor;
use crate::plan::layout::Layout;
use crate::plan::options::Options;
use crate::sync::Arc;

impl LocatorGuard {
    /// Returns all runs of a version as one cursor, for a reader at `at` within the bounds. None:
    /// the view lacks some entries of these runs.
    pub(crate) fn cursor(
        &self,
        runs: &[PlacedRun],
        at: Sequence,
        bounds: &KeyBounds,
    ) -> Option<ViewCursor> {
        let view = self.filter.sorted_view().filter(|_| self.is_whole)?;
        let mut by_slot = vec![None; self.plan.slots()];
        for placed in runs {
            let slot = self.slot_of(placed.id)?;
            by_slot[usize::from(slot.0)] = Some(Arc::clone(&placed.run));
        }
        Some(ViewCursor::new(view, by_slot, at, bounds.clone()))
    }
}

/// Builds the guard of these runs, which are the layout's. None: there are none. Requires: the kind
/// has a sorted view.
pub(crate) fn of_runs(
    kind: &'static dyn RunLocatorKind,
    options: &Options,
    (layout, runs): (&Layout, &[PlacedRun]),
) -> Result<Option<LocatorGuard>> {
    let Some((oldest, newer)) = runs.split_last() else { return Ok(None) };
    let plan = with_slots_for(newer, plan_of(options, layout));
    let empty = kind.builder(&plan).finish();
    let mut guard = LocatorGuard::of_oldest(kind, empty, plan);
    guard.settle_run(oldest.id, oldest.span());
    for placed in newer.iter().rev() {
        guard.add_run(placed.id, placed.level, placed.span(), placed.run.entry_count());
    }
    let slots: Vec<Option<RunSlot>> = runs.iter().map(|placed| guard.slot_of(placed.id)).collect();
    guard.filter = view(&guard, runs, &slots)?;
    guard.is_whole = slots.iter().all(Option::is_some);
    Ok(Some(guard))
}

/// Returns the plan with a slot for each existing run, if there are enough slots.
fn with_slots_for(newer: &[PlacedRun], plan: TreePlan) -> TreePlan {
    let mut wider = plan.clone();
    let (_, inner) = wider.runs_of_levels.split_last_mut().expect("a plan has a level");
    for (level, slots) in inner.iter_mut().enumerate() {
        let runs = newer.iter().filter(|placed| placed.level == level).count();
        *slots = (*slots).max(u8::try_from(runs).unwrap_or(u8::MAX));
    }
    if wider.slots() <= SLOTS_MAX { wider } else { plan }
}

/// Builds the view of all entries of the runs that have slots.
fn view(
    guard: &LocatorGuard,
    runs: &[PlacedRun],
    slots: &[Option<RunSlot>],
) -> Result<Box<dyn AnyRunLocator>> {
    let mut merged = MergeCursor::over(runs.iter().map(|placed| placed.run.cursor().end_to_end()))?;
    let mut builder = guard.kind.builder(&guard.plan);
    let mut last = Vec::new();
    while let Some(entry) = merged.entry() {
        let placed = merged.input();
        is_in_order(&last, entry.key, runs[placed].run.path())?;
        entry.key.clone_into(&mut last);
        if let Some(slot) = slots[placed] {
            builder.push_entry(entry.key, slot);
        }
        merged.next()?;
    }
    Ok(builder.finish())
}
