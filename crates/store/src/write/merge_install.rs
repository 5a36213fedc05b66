//! How a merge ends: the outputs of its pieces, and the guard that goes with them, become part of
//! the newest version.
//! ```text
//! inner merge   the guard stays as it is, but for garbage (and codes that are runs)
//! oldest run    the parts of the filter that the pieces have built
//!               -> carry over the runs that were not inputs -> install
//! ```
//! Filters that know in which run each key is are told of every key: see `located_merge`.
//! Invariants: an inner merge adds nothing to the guard. A merge into the oldest run rebuilds it,
//! where its keys are; flushes that are installed meanwhile are carried over, in rounds outside the
//! lock, the last one under it (ordering rule 3).

use std::time::Instant;

use trommel_filters::{FlushNumber, Span};

use crate::error::Result;
use crate::files::distinct_keys::KeyList;
use crate::files::placed_run::PlacedRun;
use crate::guard::Guard;
use crate::guard::parts::PartChange;
use crate::plan::pick_runs::Target;
use crate::storage::environment::PausePoint;
use crate::sync::Arc;
use crate::tree::open_tree::OpenTree;
use crate::tree::run_writer::RunOutput;
use crate::tree::version::Version;
use crate::write::locator_merge::{LocatedMerge, remade};
use crate::write::merge_plan::MergePlan;
use crate::write::parts_builder::PreparedParts;
use crate::write::submerge::PieceOutput;

/// Rounds of carrying over that are tried outside the lock.
const ROUNDS_OUTSIDE: usize = 3;

/// What all pieces of a merge have written, in key order.
#[derive(Default)]
pub(crate) struct Merged {
    pub(crate) run: RunOutput,
    /// Where partitions begin in it.
    pub(crate) cuts: Vec<Vec<u8>>,
    /// The keys that outlive an inner merge, if the guard's codes are runs.
    recoded: Option<KeyList>,
}

impl MergePlan {
    /// Makes the outputs of all pieces part of the newest version, at once.
    pub(crate) fn install(&self, tree: &OpenTree, mut pieces: Vec<PieceOutput>) -> Result<()> {
        pieces.sort_unstable_by_key(|piece| piece.place);
        let (mut merged, mut told) = (Merged::default(), None);
        for piece in pieces {
            merged.run.tables.extend(piece.run.tables);
            merged.run.opened.extend(piece.run.opened);
            merged.cuts.extend(piece.cuts);
            // Of merges that have one piece.
            (merged.recoded, told) = (piece.recoded, piece.located);
        }
        let installed = match (self.job.target, told) {
            (_, Some(located)) => self.install_located(tree, &merged, located),
            (Target::Inner(level), None) => self.install_inner(tree, &merged, level),
            (Target::Last, None) => self.install_last(tree, &merged),
        };
        if installed.is_err() {
            tree.installer().give_up(tree, &merged.run);
            drop(merged);
            tree.sweep_or_call();
        }
        installed
    }

    /// Installs the guard that the merge has told of every key, when no run is missing in it.
    fn install_located(
        &self,
        tree: &OpenTree,
        merged: &Merged,
        located: LocatedMerge,
    ) -> Result<()> {
        let level = match self.job.target {
            Target::Inner(level) => level,
            Target::Last => self.last_level(tree, &merged.run),
        };
        let gone = self.gone(tree, merged, level);
        let mut guard = located.finish(tree, &gone);
        let mut catch_up = |now: &Version| {
            let start = Instant::now();
            let caught_up = guard.catch_up(&now.runs, &gone);
            tree.counters.guard_worked(start.elapsed());
            caught_up
        };
        for _ in 0..ROUNDS_OUTSIDE {
            catch_up(&tree.current.hold())?;
        }
        let prepared_for = tree.current.hold();
        let start = Instant::now();
        let edit_then = self.edit(tree, &prepared_for, merged, level);
        let remade = remade(tree, &prepared_for, &edit_then, &merged.run.opened);
        tree.counters.guard_worked(start.elapsed());
        tree.env.pauses.at(PausePoint::MergePrepared);
        let mut installer = tree.installer();
        let now = tree.current.hold();
        let edit = self.edit(tree, &now, merged, level);
        // A view that does not know the newest flush is of no use: notes do until the next one.
        let guard = match remade.filter(|_| now.guard.is_same(&prepared_for.guard)) {
            Some(remade) => remade,
            None => {
                catch_up(&now)?;
                match now.layout.apply(&edit) {
                    Ok(layout) => guard.settle(&layout),
                    // The installer says what is wrong.
                    Err(_) => guard.settle(&now.layout),
                }
                guard
            }
        };
        installer.install(tree, &edit, &merged.run.opened, Guard::Located(Arc::new(guard)))
    }

    /// The inputs that have nothing left after the merge.
    fn gone(&self, tree: &OpenTree, merged: &Merged, level: usize) -> Vec<u64> {
        let now = tree.current.hold();
        let merged = now.layout.apply(&self.edit(tree, &now, merged, level));
        let stays = |id: &u64| {
            merged.as_ref().is_ok_and(|after| after.runs.iter().any(|run| run.id == *id))
        };
        self.job.inputs.iter().copied().filter(|id| !stays(id)).collect()
    }

    fn install_inner(&self, tree: &OpenTree, merged: &Merged, level: usize) -> Result<()> {
        for round in 0.. {
            let prepared_for = tree.current.hold();
            let prepared = self.tidied_parts(tree, &prepared_for, merged, level);
            tree.env.pauses.at(PausePoint::MergePrepared);
            let mut installer = tree.installer();
            let now = tree.current.hold();
            let Some(parts) = now.guard.parts() else {
                let edit = self.edit(tree, &now, merged, level);
                return installer.install(tree, &edit, &merged.run.opened, now.guard.clone());
            };
            // A flush that came meanwhile has a part without garbage wherever it added something.
            // But codes that are runs must all be written.
            let changes = if merged.recoded.is_none() || parts.all_fit(&prepared) {
                prepared
            } else if round < ROUNDS_OUTSIDE {
                continue;
            } else {
                self.tidied_parts(tree, &now, merged, level)
            };
            let guard = Guard::Global(parts.with_fitting(&changes));
            let edit = self.edit(tree, &now, merged, level);
            installer.install(tree, &edit, &merged.run.opened, guard)?;
            let is_last = level + 1 == now.layout.level_count();
            drop((installer, now));
            if is_last {
                // As large as the last level's runs are, much would be read again at the next open.
                let _ = crate::tree::guard_image::write(tree, &self.range);
            }
            return Ok(());
        }
        unreachable!("the last round installs")
    }

    /// After a merge into the level above the last, or into that as another run of it, most entries
    /// need no more of their codes: the parts with their garbage collected; codes that are runs are
    /// rewritten by every merge.
    fn tidied_parts(
        &self,
        tree: &OpenTree,
        version: &Version,
        merged: &Merged,
        level: usize,
    ) -> Vec<PartChange> {
        let Some(parts) = version.guard.parts() else { return Vec::new() };
        let start = Instant::now();
        let changes = if let Some(keys) = &merged.recoded {
            let spans: Vec<Span> = self.inputs.iter().map(PlacedRun::span).collect();
            let output = spans.iter().copied().reduce(Span::hull).expect("a merge has inputs");
            parts.changes(keys, |_, part, keys| {
                let mut recoder = part.recoder(&spans, output);
                keys.give_to(&mut recoder);
                recoder.finish()
            })
        } else if level + 2 >= version.layout.level_count() {
            let after = version.layout.apply(&self.edit(tree, version, merged, level));
            let Ok(after) = after else { return Vec::new() };
            parts.changes_within(&self.range, |bounds, part| {
                part.collect_garbage(&after.shape_within(bounds))
            })
        } else {
            return Vec::new();
        };
        tree.counters.guard_worked(start.elapsed());
        changes
    }

    /// Rebuilds the guard where the merge's keys are, and installs it when no run is missing in it.
    fn install_last(&self, tree: &OpenTree, merged: &Merged) -> Result<()> {
        let level = self.last_level(tree, &merged.run);
        let mut prepared = self.parts.as_ref().map(|parts| PreparedParts {
            range: self.range.clone(),
            parts: parts.finish(tree),
            inputs: self.job.inputs.clone(),
            watermark: FlushNumber(0),
        });
        if let Some(prepared) = &mut prepared {
            let now = tree.current.hold();
            self.staying.iter().rev().try_for_each(|run| prepared.insert(tree, run, &now))?;
        }
        let mut carry_over = |now: &Version| match &mut prepared {
            Some(prepared) => prepared.carry_over(tree, now),
            None => Ok(()),
        };
        for _ in 0..ROUNDS_OUTSIDE {
            carry_over(&tree.current.hold())?;
        }
        tree.env.pauses.at(PausePoint::MergePrepared);
        let mut installer = tree.installer();
        let now = tree.current.hold();
        carry_over(&now)?;
        let edit = self.edit(tree, &now, merged, level);
        let guard = match (now.guard.parts(), prepared) {
            (Some(parts), Some(new)) => Guard::Global(parts.replaced(&self.range, new.parts)),
            _ => now.guard.clone(),
        };
        installer.install(tree, &edit, &merged.run.opened, guard)?;
        drop((installer, now));
        // The merge is done. Without an image the filter is read from the runs at the next open.
        let _ = crate::tree::guard_image::write(tree, &self.range);
        Ok(())
    }
}
