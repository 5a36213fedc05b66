//! Who merges what, and when: begins merges that are due, and has threads go on with open ones.
//! ```text
//! next_beside(layout, claims) -> open -> a piece in hand -> one step -> idle again, or done -> installed
//! ```
//! Invariant: a merge that has failed has not changed the tree: its inputs are all there, and it
//! begins anew.

use crate::error::Error;
use crate::plan::claims::{Claim, next_beside};
use crate::plan::partitions::RangeJob;
use crate::sync::{Arc, Ordering, current, lock};
use crate::write::engine::Engine;
use crate::write::merge_plan::MergePlan;
use crate::write::open_merges::{Leftovers, MergeId, Next};
use crate::write::submerge::MergePiece;
use crate::write::work::Work;

impl Leftovers {
    /// Removes the files.
    pub(crate) fn abandon(self, engine: &Engine) {
        self.pieces.into_iter().for_each(|piece| piece.abandon(engine));
        self.outputs.into_iter().for_each(|output| output.abandon(engine));
    }
}

/// A merge that has failed, how often by now, and its last error.
pub(crate) struct Failed {
    pub(crate) merge: MergeId,
    pub(crate) times: u32,
    pub(crate) error: Error,
}

impl Engine {
    /// One step of merging: begins a merge that is due, so that large ones do not hold up small
    /// ones, or goes on with one that is open; `choice` says with which, what is due being the last
    /// of them. False: there is none, or others have all in hand. A merge that fails stays open
    /// until someone releases it.
    pub(crate) fn merge_step(&self, choice: Option<usize>) -> Result<bool, Failed> {
        let mut work = lock(&self.work);
        let is_open = choice.is_some_and(|choice| choice < work.merges.idle_count());
        let due = if is_open { None } else { self.next_merge(&work) };
        if let Some((job, is_everything)) = due {
            work.merge_everything &= !is_everything;
            let id = work.merges.begin(Claim::of(&job));
            let hand = Hand::take(self, &mut work, id, None);
            drop(work);
            return self.begin_merge(hand, job);
        }
        let Some((id, piece)) = work.merges.take(choice) else { return Ok(false) };
        let hand = Hand::take(self, &mut work, id, Some(piece));
        drop(work);
        let done = self.go_on_merging(hand)?;
        self.sweep_or_call();
        Ok(done)
    }

    fn begin_merge(&self, mut hand: Hand<'_>, job: RangeJob) -> Result<bool, Failed> {
        let plan = MergePlan::new(self, job).map_err(|error| hand.failed(error))?;
        lock(&self.work).merges.opened(hand.id, MergePiece::all(&Arc::new(plan)));
        hand.is_done = true;
        Ok(true)
    }

    fn go_on_merging(&self, mut hand: Hand<'_>) -> Result<bool, Failed> {
        let id = hand.id;
        let piece = hand.piece.as_mut().expect("the caller has taken one");
        let done = piece.step(self);
        self.pacer.spend(piece.take_read_bytes(), self.env.clock.now());
        let done = done.map_err(|error| hand.failed(error))?;
        let piece = hand.piece.take().expect("as above");
        let plan = Arc::clone(piece.plan());
        let mut work = lock(&self.work);
        let next = match done {
            None => work.merges.put_back(id, piece),
            Some(output) => work.merges.ended(id, output),
        };
        drop(work);
        match next {
            Next::GoOn => hand.is_done = true,
            Next::Abandon(left) => {
                hand.is_done = true;
                left.abandon(self);
            }
            Next::Install(outputs) => {
                plan.install(self, outputs).map_err(|error| hand.failed(error))?;
                self.counters.merges.fetch_add(1, Ordering::Relaxed);
                lock(&self.work).merges.end(id);
                hand.is_done = true;
            }
        }
        Ok(true)
    }

    /// Removes what open merges have written: the store is closed. Requires: nobody has any of them
    /// in hand.
    pub(crate) fn abandon_merges(&self) {
        let left = lock(&self.work).merges.close_all();
        left.into_iter().for_each(|left| left.abandon(self));
    }

    fn merge_failed(&self, merge: MergeId, error: Error) -> Failed {
        let (times, left) = lock(&self.work).merges.fail(merge, error.clone());
        left.abandon(self);
        self.work_changed.notify_all();
        Failed { merge, times, error }
    }

    /// The merge that is due, if there is a lane for it, and whether it is the one of everything.
    fn next_merge(&self, work: &Work) -> Option<(RangeJob, bool)> {
        let options = &self.table_files.options;
        if work.merges.open_count() >= options.merge_lanes() {
            return None;
        }
        let layout = Arc::clone(&self.current.pin().layout);
        // Everything may have been deleted since someone asked.
        let everything = work.merge_everything && !layout.runs.is_empty();
        let (schedule, claims) = (options.schedule(), work.merges.claims());
        next_beside(&layout, &claims, (&schedule, options.division()), everything)
    }

    /// How many merges there are of which a step can be done now.
    pub(crate) fn merge_choices(&self, work: &Work) -> usize {
        work.merges.idle_count() + usize::from(self.next_merge(work).is_some())
    }

    /// Whether a merge is open or due.
    pub(crate) fn has_merges(&self, work: &Work) -> bool {
        work.merges.open_count() > 0 || self.next_merge(work).is_some()
    }

    /// How many merges are open.
    pub(crate) fn open_merges(&self) -> usize {
        lock(&self.work).merges.open_count()
    }

    /// The runs that open merges have, while they are still there.
    pub(crate) fn claimed_runs(&self) -> Vec<u64> {
        let claims = lock(&self.work).merges.claims();
        claims.iter().flat_map(|claim| claim.inputs().iter().copied()).collect()
    }
}

/// What this thread has of a merge. Dropped by a panic: the merge has failed, and may be tried
/// again.
struct Hand<'c> {
    engine: &'c Engine,
    id: MergeId,
    piece: Option<MergePiece>,
    /// It is not in hand any more.
    is_done: bool,
}

impl<'c> Hand<'c> {
    fn take(engine: &'c Engine, work: &mut Work, id: MergeId, piece: Option<MergePiece>) -> Self {
        work.merging.push(current().id());
        Hand { engine, id, piece, is_done: false }
    }

    fn failed(&mut self, error: Error) -> Failed {
        self.is_done = true;
        self.engine.merge_failed(self.id, error)
    }
}

impl Drop for Hand<'_> {
    fn drop(&mut self) {
        let mut work = lock(&self.engine.work);
        let own = work.merging.iter().position(|thread| *thread == current().id());
        own.map(|place| work.merging.swap_remove(place));
        let left = (!self.is_done).then(|| {
            let (_, left) = work.merges.fail(self.id, Error::panicked("a merge"));
            work.merges.release(self.id);
            left
        });
        drop(work);
        if let Some(mut left) = left {
            left.pieces.extend(self.piece.take());
            left.abandon(self.engine);
        }
        self.engine.work_changed.notify_all();
    }
}
