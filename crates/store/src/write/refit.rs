//! A part of the global filter that is built anew since it should have other bits: by what is asked
//! of it, where parts share memory.
//! ```text
//! look  -> allotment (guard/allotment.rs) -> no part is worth it: until more is asked or written
//!                 '-> a part from its runs -> carry over newer runs -> install -> image -> look
//!                                                    '-> other tables below it: given up
//! ```
//! Invariants: one at a time. Bases are of the same tables before and after it, flushes that are
//! installed meanwhile are carried over as in a merge (ordering rule 3). A failure leaves the part
//! as it is.

use std::time::{Duration, Instant};

use trommel_filters::{GrfOptions, Part};

use crate::error::Result;
use crate::guard::Guard;
use crate::guard::rebuild::{MadeFor, rebuild_part};
use crate::plan::background::Background;
use crate::shared::worker_pool::RETRY_LONGEST;
use crate::storage::pauses::PausePoint;
use crate::sync::{Arc, ThreadId, current, lock, now};
use crate::tree::guard_image;
use crate::tree::open_tree::OpenTree;
use crate::tree::version::Version;
use crate::write::engine::Engine;
use crate::write::parts_builder::PreparedParts;
use crate::write::work::Work;

/// So many more questions are noted before parts are looked at again.
const LOOK_EACH: u64 = 1024;
/// Threads look so often at most. They are not called for questions.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// Of the time of the thread that does it, building takes one part in so many.
const TIME_SHARE: u32 = 10;
/// Passes of carrying over outside the lock.
const PASSES_OUTSIDE: usize = 3;

/// A part on its way into the tree.
pub(crate) struct Refit {
    prepared: PreparedParts,
    /// The tables that its base is of.
    base_files: Vec<u64>,
}

/// What was looked at: if it is the same, a look finds the same.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    questions: u64,
    flushes: u64,
    merge_epoch: u64,
}

/// The part that is being built, and when parts are looked at again.
#[derive(Default)]
pub(crate) struct RefitWork {
    /// Between two steps. While a thread runs a step of it, it is not here.
    pub(super) task: Option<Refit>,
    /// The thread that runs a step.
    pub(super) busy: Option<ThreadId>,
    /// Of this, no part was worth it.
    found_nothing: Option<Seen>,
    not_before: Option<Instant>,
}

impl RefitWork {
    fn pause_left(&self) -> Option<Duration> {
        let left = self.not_before?.checked_duration_since(now())?;
        Some(left).filter(|left| !left.is_zero())
    }
}

impl Refit {
    /// Builds the part that is worth it most. None: none is.
    fn build(tree: &OpenTree) -> Result<Option<Refit>> {
        let version = tree.current.hold();
        let Some(parts) = version.guard.parts().filter(|_| !version.runs.is_empty()) else {
            return Ok(None);
        };
        let allotment = tree.allotment(parts);
        let change = allotment.as_ref().and_then(|allotment| allotment.next_change());
        let Some((lower, bits_per_key)) = change else { return Ok(None) };
        let (bounds, part) = parts.at(lower).expect("what is allotted is a part's");
        let grf = GrfOptions { bits_per_key, ..*part.options() };
        let questions = tree.asked_keys.known(part, &bounds);
        let made_for = MadeFor { asked: part.asked(), questions };
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

    /// Whether the part's base and range are still those of a version.
    fn fits(&self, now: &Version) -> bool {
        let range = &self.prepared.range;
        let part = now.guard.parts().and_then(|parts| parts.at(&range.from));
        let is_there = part.is_some_and(|(bounds, _)| bounds == *range);
        is_there && now.layout.base_files(range) == self.base_files
    }

    /// Makes the part one of the newest version, unless its base is another one there. Its image
    /// follows.
    fn install(mut self, tree: &OpenTree) -> Result<()> {
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
        // Until it is there, the next opening takes the part as it was.
        let _ = guard_image::write_anew(tree, &range);
        Ok(())
    }

    /// The oldest run is in the base, whatever its number is now. Requires: it fits.
    fn carry_over(&mut self, tree: &OpenTree, now: &Version) -> Result<()> {
        self.prepared.inputs = now.runs.last().map(|oldest| oldest.id).into_iter().collect();
        self.prepared.carry_over(tree, now)
    }

    /// Bytes of the tables below its base.
    fn base_bytes(&self, now: &Version) -> u64 {
        now.layout.base_tables(&self.prepared.range).iter().map(|table| table.bytes_within()).sum()
    }
}

/// A step that this thread runs. Dropped, by a panic too: another step may follow.
struct RefitStep<'c> {
    engine: &'c Engine,
    task: Option<Refit>,
    found_nothing: Option<Seen>,
    pause: Option<Duration>,
}

impl Drop for RefitStep<'_> {
    fn drop(&mut self) {
        let mut work = lock(&self.engine.work);
        let is_stepped = self.engine.table_files.options.background == Background::Stepped;
        work.refit = RefitWork {
            task: self.task.take(),
            busy: None,
            found_nothing: self.found_nothing,
            // Steps depend on nothing but what came before them.
            not_before: self.pause.filter(|_| !is_stepped).map(|pause| now() + pause),
        };
        drop(work);
        self.engine.work_has_changed();
    }
}

impl Engine {
    /// One step: builds a part, or installs it. False: no part is worth it, or another thread is at
    /// it. A failure is told, and stops nothing: the part stays as it is.
    pub(crate) fn refit_step(&self) -> bool {
        let mut work = lock(&self.work);
        if !self.is_refit_due(&work) {
            return false;
        }
        work.refit.busy = Some(current().id());
        let (task, start) = (work.refit.task.take(), now());
        drop(work);
        let mut step = RefitStep { engine: self, task: None, found_nothing: None, pause: None };
        let seen = self.seen();
        let done = match task {
            Some(task) => task.install(self).map(|()| true),
            None => Refit::build(self).map(|built| {
                step.task = built;
                step.task.is_some()
            }),
        };
        let Ok(has_done) = done.inspect_err(|error| self.env.tell_failure("a filter", error))
        else {
            (step.found_nothing, step.pause) = (seen, Some(RETRY_LONGEST));
            return true;
        };
        match &step.task {
            Some(built) => {
                let bytes = built.base_bytes(&self.current.pin());
                self.rate_limiter.spend(bytes, self.env.clock.now());
            }
            None if has_done => step.pause = Some((now() - start) * (TIME_SHARE - 1)),
            None => (step.found_nothing, step.pause) = (seen, Some(LOOK_AGAIN)),
        }
        has_done
    }

    /// Whether a part is being built, or parts are to be looked at.
    pub(crate) fn is_refit_due(&self, work: &Work) -> bool {
        let RefitWork { task, busy, found_nothing, .. } = &work.refit;
        if self.asked_keys.lately().is_none() || busy.is_some() {
            return false;
        }
        task.is_some() || (work.refit.pause_left().is_none() && *found_nothing != self.seen())
    }

    /// When a thread looks again. None: there is nothing to look at, ever.
    pub(crate) fn next_refit_look(&self) -> Option<Duration> {
        self.asked_keys.lately()?;
        Some(lock(&self.work).refit.pause_left().unwrap_or(LOOK_AGAIN))
    }

    fn seen(&self) -> Option<Seen> {
        let questions = self.asked_keys.lately()?.noted() / LOOK_EACH;
        let now = self.current.pin();
        let (flushes, merge_epoch) = (now.layout.next_flush.0, now.merge_epoch);
        Some(Seen { questions, flushes, merge_epoch })
    }
}
