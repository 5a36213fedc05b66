//! The end of a merge: its outputs, and the guard that goes with them, become part of the newest
//! version.
//! ```text
//! inner merge   the guard stays as it is, except for garbage (and codes that are runs)
//! oldest run    the parts of the filter that the submerges have built
//!               -> carry over the runs that were not inputs -> install
//! ```
//! Filters that know each key's run take every key: see `locator_merge`. Invariants: an inner merge
//! adds nothing to the guard. A merge into the oldest run rebuilds the guard in its key range.
//! Flushes that are installed meanwhile are carried over, in passes outside the lock, with the last
//! pass under it (ordering rule 3).

use trommel_filters::{FlushNumber, Part, Span};

use crate::error::Result;
use crate::files::placed_run::PlacedRun;
use crate::guard::Guard;
use crate::guard::parts::PartChange;
use crate::plan::merge_job::Target;
use crate::storage::pauses::PausePoint;
use crate::sync::Arc;
use crate::tree::open_tree::OpenTree;
use crate::tree::version::Version;
use crate::write::locator_merge::{LocatorMerge, remade};
use crate::write::merge_plan::MergePlan;
use crate::write::parts_builder::PreparedParts;
use crate::write::submerge::MergeOutput;

/// Passes of carrying over outside the lock, and attempts to prepare a guard there.
const PASSES_OUTSIDE: usize = 3;

impl MergePlan {
    /// Makes the outputs of all submerges part of the newest version, atomically.
    pub(crate) fn install(&self, tree: &OpenTree, outputs: Vec<MergeOutput>) -> Result<()> {
        let mut merged = MergeOutput::of_all(outputs);
        merged.level = self.output_level(tree, &merged.run);
        let locator = merged.locator.take();
        let installed = tree.or_give_up(&merged.run, || match (self.job.target, locator) {
            (_, Some(locator)) => self.install_locator(tree, &merged, locator),
            (Target::Inner(_), None) => self.install_inner(tree, &merged),
            (Target::Last, None) => self.install_last(tree, &merged),
        });
        if installed.is_err() {
            drop(merged);
            tree.sweep_or_call();
        }
        installed
    }

    /// Installs the guard that has taken every key of the merge, once no run is missing in it.
    fn install_locator(
        &self,
        tree: &OpenTree,
        merged: &MergeOutput,
        locator: LocatorMerge,
    ) -> Result<()> {
        let gone = self.gone(tree, merged)?;
        let mut guard = locator.finish(tree, &gone);
        let mut catch_up =
            |now: &Version| tree.counters.time_guard(|| guard.catch_up(&now.runs, &gone));
        for _ in 0..PASSES_OUTSIDE {
            catch_up(&tree.current.hold())?;
        }
        let prepared_for = tree.current.hold();
        let edit_then = self.edit(tree, &prepared_for, merged)?;
        let opened = &merged.run.opened;
        let remade = tree.counters.time_guard(|| remade(tree, &prepared_for, &edit_then, opened));
        tree.env.pauses.at(PausePoint::MergePrepared);
        let mut installer = tree.installer();
        let now = tree.current.hold();
        let edit = self.edit(tree, &now, merged)?;
        // A view that lacks the newest flush is useless. Unordered notes of keys replace it until
        // the next view.
        let guard = match remade.filter(|_| now.guard.is_same(&prepared_for.guard)) {
            Some(remade) => remade,
            None => {
                catch_up(&now)?;
                match now.layout.apply(&edit) {
                    Ok(layout) => guard.settle(&layout),
                    // The installer will report the error.
                    Err(_) => guard.settle(&now.layout),
                }
                guard
            }
        };
        installer.install(tree, &edit, &merged.run.opened, Guard::Locator(Arc::new(guard)))
    }

    /// Returns the inputs of which nothing is left after the merge.
    fn gone(&self, tree: &OpenTree, merged: &MergeOutput) -> Result<Vec<u64>> {
        let now = tree.current.hold();
        let after = now.layout.apply(&self.edit(tree, &now, merged)?);
        let stays = |id: &u64| after.as_ref().is_ok_and(|after| after.run(*id).is_some());
        Ok(self.job.inputs.iter().copied().filter(|id| !stays(id)).collect())
    }

    fn install_inner(&self, tree: &OpenTree, merged: &MergeOutput) -> Result<()> {
        for pass in 0.. {
            let prepared_for = tree.current.hold();
            let prepared = self.tidied_parts(tree, &prepared_for, merged)?;
            tree.env.pauses.at(PausePoint::MergePrepared);
            let mut installer = tree.installer();
            let now = tree.current.hold();
            let Some(parts) = now.guard.parts() else {
                let edit = self.edit(tree, &now, merged)?;
                return installer.install(tree, &edit, &merged.run.opened, now.guard.clone());
            };
            // Parts that a flush has changed meanwhile are skipped: the flush left no garbage where
            // it added something. But codes that are runs must all be rewritten.
            let changes = if merged.recoded.is_none() || parts.all_fit(&prepared) {
                prepared
            } else if pass < PASSES_OUTSIDE {
                continue;
            } else {
                self.tidied_parts(tree, &now, merged)?
            };
            let guard = Guard::Global(parts.with_fitting(&changes));
            let edit = self.edit(tree, &now, merged)?;
            installer.install(tree, &edit, &merged.run.opened, guard)?;
            let is_last = merged.level + 1 == now.layout.level_count();
            drop((installer, now));
            if is_last {
                // Runs of the last level are large; without an image the next opening would read
                // them.
                let _ = crate::tree::guard_image::write(tree, &self.job.range);
            }
            return Ok(());
        }
        unreachable!("the last pass installs")
    }

    /// Returns the parts with their garbage collected. This is done after a merge into the level
    /// above the last, or into the last level beside its oldest run. Then wider codes suffice for
    /// most entries. Codes that are runs are rewritten by every merge.
    fn tidied_parts(
        &self,
        tree: &OpenTree,
        version: &Version,
        merged: &MergeOutput,
    ) -> Result<Vec<PartChange>> {
        let Some(parts) = version.guard.parts() else { return Ok(Vec::new()) };
        if let Some(keys) = &merged.recoded {
            let spans: Vec<Span> = self.inputs.merged.iter().map(PlacedRun::span).collect();
            return Ok(tree.counters.time_guard(|| {
                parts.changes(keys, |_, part, keys| {
                    let mut recoder = part.recoder(&spans, self.inputs.span());
                    keys.give_to(&mut recoder);
                    recoder.finish()
                })
            }));
        }
        if merged.level + 2 < version.layout.level_count() {
            return Ok(Vec::new());
        }
        let after = version.layout.apply(&self.edit(tree, version, merged)?);
        let Ok(after) = after else { return Ok(Vec::new()) };
        Ok(tree.counters.time_guard(|| {
            parts.changes_within(&self.job.range, |bounds, part| {
                part.collect_garbage(&tree.shape_within(&after, bounds))
            })
        }))
    }

    /// Rebuilds the guard in the merge's key range, and installs it once no run is missing in it.
    fn install_last(&self, tree: &OpenTree, merged: &MergeOutput) -> Result<()> {
        let mut prepared = self.parts.as_ref().map(|parts| PreparedParts {
            range: self.job.range.clone(),
            parts: parts.finish(tree),
            inputs: self.job.inputs.clone(),
            watermark: FlushNumber(0),
        });
        if let Some(prepared) = &mut prepared {
            let now = tree.current.hold();
            let staying = &self.inputs.staying;
            staying.iter().rev().try_for_each(|run| prepared.insert(tree, run, &now))?;
        }
        let mut carry_over = |now: &Version| match &mut prepared {
            Some(prepared) => prepared.carry_over(tree, now),
            None => Ok(()),
        };
        for _ in 0..PASSES_OUTSIDE {
            carry_over(&tree.current.hold())?;
        }
        tree.env.pauses.at(PausePoint::MergePrepared);
        let mut installer = tree.installer();
        let now = tree.current.hold();
        carry_over(&now)?;
        let edit = self.edit(tree, &now, merged)?;
        let guard = match (now.guard.parts(), prepared) {
            (Some(parts), Some(new)) => {
                let most = tree.table_files.options.transaction_memory;
                let keep = |part: &Arc<Part>| tree.snapshots.keep_for_commits(part, most);
                let until = now.layout.next_flush;
                Guard::Global(parts.replaced(&self.job.range, new.parts, until, keep))
            }
            _ => now.guard.clone(),
        };
        installer.install(tree, &edit, &merged.run.opened, guard)?;
        drop((installer, now));
        // The merge is done. Without an image, the next opening reads the filter from the runs.
        let _ = crate::tree::guard_image::write(tree, &self.job.range);
        Ok(())
    }
}
