//! The guard of a version that another process made, from that of an earlier version.
//! ```text
//! tables that left a run or went with it    each key: slot of its run -> none
//! tables of new runs, or new ones of a run  each key: none -> slot of its run
//! ```
//! The follower does not see the merge, only its inputs and its output. It reads their keys, or
//! just the hashes that tables store: the work of the merge, not that of the tree. Where all runs
//! went, a new filter is less work, and has the right room.
//!
//! Invariant: as for the writer's guard, the filter has each key of a slotted run in that slot. The
//! slots are the follower's own.

use trommel_filters::Move;

use super::{KeyOrHash, KeySource, LocatorGuard, SlottedRun, rebuild};
use crate::error::Result;
use crate::files::placed_run::PlacedRun;
use crate::files::run_table::RunTable;
use crate::plan::layout::Layout;
use crate::plan::options::Options;

/// The tables that one run has lost or gained between two versions.
struct Change<'v> {
    run: u64,
    tables: Vec<&'v RunTable>,
}

/// Returns the tables of each run of `ours` that the same run of `theirs` lacks.
fn beyond<'v>(ours: &'v [PlacedRun], theirs: &[PlacedRun]) -> Vec<Change<'v>> {
    let change = |placed: &'v PlacedRun| {
        let same = theirs.iter().find(|other| other.id == placed.id);
        let known = same.map_or(&[][..], |other| other.run.tables());
        let is_new = |table: &&RunTable| !known.iter().any(|other| other.is_same(table));
        Change { run: placed.id, tables: placed.run.tables().iter().filter(is_new).collect() }
    };
    ours.iter().map(change).filter(|change| !change.tables.is_empty()).collect()
}

fn entries(changes: &[Change<'_>]) -> u64 {
    changes.iter().flat_map(|change| &change.tables).map(|table| table.entry_count()).sum()
}

/// Returns the guard of the runs `new`, from `guard`, the one of the runs `old`. It reads keys of
/// the tables that came or went, unless there are more of these than `new` has.
pub(crate) fn followed(
    guard: &LocatorGuard,
    options: &Options,
    old: &[PlacedRun],
    (layout, new): (&Layout, &[PlacedRun]),
) -> Result<LocatorGuard> {
    let anew = || rebuild(guard.kind, options, (layout, new)).map(|(guard, _)| guard);
    let (gone, come) = (beyond(old, new), beyond(new, old));
    let all: u64 = new.iter().map(|placed| placed.run.entry_count()).sum();
    let is_less = entries(&gone) + entries(&come) < all;
    if guard.kind.has_sorted_view() || guard.runs.is_empty() || !is_less {
        return anew();
    }
    let mut next = guard.clone();
    // A table that is gone may not be readable any more.
    if next.forget(&gone, new).is_err() {
        return anew();
    }
    next.learn(&come, new)?;
    next.settle(layout);
    let lacks_slots = |guard: &LocatorGuard| guard.runs.iter().any(|run| run.slot.is_none());
    if lacks_slots(&next) && !lacks_slots(guard) { anew() } else { Ok(next) }
}

impl LocatorGuard {
    /// Removes the keys of tables that are gone, and the runs that `new` lacks.
    fn forget(&mut self, gone: &[Change<'_>], new: &[PlacedRun]) -> Result<()> {
        // A filter of keys holds sets of runs, from which only `vacate` removes one.
        for change in gone.iter().filter(|_| self.kind.takes_hashes()) {
            if let Some(slot) = self.slot_of(change.run) {
                self.note_tables(&change.tables, (Some(slot), None))?;
            }
        }
        let is_gone = |run: &&SlottedRun| !new.iter().any(|placed| placed.id == run.id);
        let ids: Vec<u64> = self.runs.iter().filter(is_gone).map(|run| run.id).collect();
        self.remove_runs(&ids);
        Ok(())
    }

    /// Adds the keys of tables that are new, and their runs.
    fn learn(&mut self, come: &[Change<'_>], new: &[PlacedRun]) -> Result<()> {
        // From old to new, as runs are made.
        for change in come.iter().rev() {
            let placed = new.iter().find(|placed| placed.id == change.run).expect("a run of `new`");
            let slot = match self.knows(placed.id) {
                true => self.slot_of(placed.id),
                false => {
                    let entries = placed.run.entry_count();
                    self.add_run(placed.id, placed.level, placed.span(), entries)
                }
            };
            if slot.is_some() {
                self.note_tables(&change.tables, (None, slot))?;
            }
        }
        Ok(())
    }

    fn note_tables(&mut self, tables: &[&RunTable], (from, to): Move) -> Result<()> {
        let (kind, filter) = (self.kind, &mut self.filter);
        KeySource::default().tables(tables.iter().copied(), kind, |key| match key {
            KeyOrHash::Hash(hash) => filter.note_hash(hash, from, to),
            KeyOrHash::Key(key) => filter.note(key, from, to),
        })
    }
}
