//! The changes that a merge makes to a filter that knows each key's run.
//! ```text
//! inner merge   a clone: each key moves from its inputs' slots to the output's, or nowhere
//! last level    as an inner merge, as long as the filter has room; else
//!               a new filter of the keys that outlive the merge
//!               -> + runs that are no inputs -> installed with the output
//! key range     as an inner merge; the output's slot is that of the run that it joins
//! ```
//! The output reuses the slot of its largest input in the target level, whose keys stay where they
//! are. So a key moves once per level, however greedy merges are (Chucky, section 4.1, Table 2). No
//! extra block is read, since a merge reads every key anyway. The clone is private until the merge
//! is installed. Flushes that arrive meanwhile are carried over as for GRF (`merge_install`).

use std::collections::HashMap;

use trommel_filters::{AnyRunLocatorBuilder, KeyList, Move, RunLocatorKind, RunSlot, TreePlan};

use crate::files::placed_run::PlacedRun;
use crate::files::table::Table;
use crate::guard::Guard;
use crate::guard::locator::{ExpectedEntries, LocatorGuard, sorted_of_runs};
use crate::plan::layout::Edit;
use crate::plan::merge_job::{MergeJob, Target};
use crate::sync::Arc;
use crate::tree::open_tree::OpenTree;
use crate::tree::version::Version;

/// Keys that are collected before they are applied, so that the clock is read once for all of them.
const KEYS_WAITING: usize = 4096;

/// The guard that a merge prepares.
pub(crate) struct LocatorMerge {
    prepared: PreparedGuard,
    /// The slots of the inputs, newest first.
    inputs: Vec<Option<RunSlot>>,
    /// The current key, the inputs that had it (newest first), and whether an entry of it is kept.
    key: Vec<u8>,
    had_by: Vec<usize>,
    is_kept: bool,
    moved: KeyList,
    moves: Vec<Move>,
}

enum PreparedGuard {
    /// The guard of the version, changed key by key.
    Changed { guard: LocatorGuard, output: Option<RunSlot> },
    /// A new filter.
    New {
        kind: &'static dyn RunLocatorKind,
        builder: Box<dyn AnyRunLocatorBuilder>,
        plan: TreePlan,
    },
}

impl LocatorMerge {
    /// `new_plan`: plans a new filter for that many entries. None: the version has another guard.
    pub(crate) fn new(
        version: &Version,
        inputs: &[PlacedRun],
        job: &MergeJob,
        expected: ExpectedEntries,
        new_plan: impl Fn(u64) -> TreePlan,
    ) -> Option<Self> {
        let Guard::Locator(guard) = &version.guard else { return None };
        let slots = inputs.iter().map(|placed| guard.slot_of(placed.id)).collect();
        let prepared = match job.target {
            Target::Last if !job.range.is_all() => {
                let output = version.runs.last().and_then(|oldest| guard.slot_of(oldest.id));
                PreparedGuard::Changed { guard: LocatorGuard::clone(guard), output }
            }
            Target::Inner(level) => {
                let mut guard = LocatorGuard::clone(guard);
                let output = guard.reserve(level, inputs);
                PreparedGuard::Changed { guard, output }
            }
            Target::Last => {
                let mut changed = LocatorGuard::clone(guard);
                let output = changed.reserve_oldest(&new_plan(expected.needed), inputs);
                if output.is_some() {
                    PreparedGuard::Changed { guard: changed, output }
                } else {
                    let (kind, plan) = (guard.kind(), new_plan(expected.room()));
                    PreparedGuard::New { kind, builder: kind.builder(&plan), plan }
                }
            }
        };
        Some(LocatorMerge {
            prepared,
            inputs: slots,
            key: Vec::new(),
            had_by: Vec::new(),
            is_kept: false,
            moved: KeyList::default(),
            moves: Vec::new(),
        })
    }

    /// Notes an entry of an input, which the merge keeps or drops.
    pub(crate) fn saw(&mut self, key: &[u8], input: usize, is_kept: bool, tree: &OpenTree) {
        if self.key != key || self.had_by.is_empty() {
            self.end_key();
            if self.moved.len() >= KEYS_WAITING {
                self.apply(tree);
            }
            self.key.clear();
            self.key.extend_from_slice(key);
        }
        if !self.had_by.contains(&input) {
            self.had_by.push(input);
        }
        self.is_kept |= is_kept;
    }

    fn end_key(&mut self) {
        let is_kept = std::mem::take(&mut self.is_kept);
        match self.prepared {
            PreparedGuard::New { .. } if !is_kept => {}
            PreparedGuard::New { .. } => self.moved.push(&self.key),
            PreparedGuard::Changed { output, .. } => {
                let output = output.filter(|_| is_kept);
                let froms = self.had_by.iter().map(|&input| self.inputs[input]);
                // A key that is already in the output's slot stays there.
                let stays = |from: &Option<RunSlot>| output.is_some() && *from == output;
                let mut to = output.filter(|_| !froms.clone().any(|from| stays(&from)));
                for from in froms.filter(|from| !stays(from)) {
                    self.moved.push(&self.key);
                    self.moves.push((from, to.take()));
                }
            }
        }
        self.had_by.clear();
    }

    fn apply(&mut self, tree: &OpenTree) {
        tree.counters.time_guard(|| match &mut self.prepared {
            PreparedGuard::New { builder, .. } => {
                self.moved.iter().for_each(|key| builder.push(key))
            }
            PreparedGuard::Changed { guard, .. } => {
                guard.note_all(&self.moved, &|nth| self.moves[nth])
            }
        });
        self.moved.clear();
        self.moves.clear();
    }

    /// Returns the guard with all changes of the merge: without `inputs`, and with the slot of the
    /// output reserved.
    pub(crate) fn finish(mut self, tree: &OpenTree, inputs: &[u64]) -> LocatorGuard {
        self.end_key();
        self.apply(tree);
        tree.counters.time_guard(|| match self.prepared {
            PreparedGuard::Changed { mut guard, .. } => {
                guard.remove_runs(inputs);
                guard
            }
            PreparedGuard::New { kind, builder, plan } => {
                LocatorGuard::of_oldest(kind, builder.finish(), plan)
            }
        })
    }
}

/// Returns the guard of `version` after `edit`, with its sorted view rebuilt. None: the guard has
/// no view, or a run cannot be read to its end. In that case readers of the run get the error.
pub(crate) fn remade(
    tree: &OpenTree,
    version: &Version,
    edit: &Edit,
    opened: &HashMap<u64, Arc<Table>>,
) -> Option<LocatorGuard> {
    let Guard::Locator(guard) = &version.guard else { return None };
    if !guard.kind().has_sorted_view() {
        return None;
    }
    let layout = version.layout.apply(edit).ok()?;
    let runs = version.reopen_runs(&layout, opened);
    sorted_of_runs(guard.kind(), &tree.table_files.options, (&layout, &runs)).ok()?
}
