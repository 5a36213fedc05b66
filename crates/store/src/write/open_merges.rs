//! The merges that are open, and the pieces of each: which are idle, and which some thread works
//! on.
//! ```text
//! begin -> open: its pieces in hand <-> idle -> all done -> installed: its claim is gone
//!               '------> failed: its claim stays until it is tried again
//!               '------> given up: its claim is gone with the last piece in hand
//! ```
//! Invariant: what is open has a claim, and no two claims share a run.

use crate::error::Error;
use crate::plan::claims::Claim;
use crate::write::submerge::{MergePiece, PieceOutput};

/// The name of an open merge; never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MergeId(u64);

/// The merges that are open.
#[derive(Default)]
pub(crate) struct OpenMerges {
    /// In the order in which they began.
    open: Vec<OpenMerge>,
    begun: u64,
    /// What has failed, until it succeeds or someone wants to know whether it still does.
    failures: Vec<Failure>,
}

struct OpenMerge {
    id: MergeId,
    claim: Claim,
    /// How many pieces there are. None: nobody has counted them yet.
    pieces: Option<usize>,
    /// Those that nobody has in hand, in key order.
    idle: Vec<MergePiece>,
    /// How many someone has in hand; before there are any, whoever makes them.
    in_hand: usize,
    /// What the pieces that are done have written.
    outputs: Vec<PieceOutput>,
    has_failed: bool,
    /// It has failed, and may be tried again; or nobody wants it any more.
    is_released: bool,
}

/// What is to be done after a step.
pub(crate) enum Next {
    GoOn,
    /// All pieces are done.
    Install(Vec<PieceOutput>),
    /// The merge has failed elsewhere.
    Abandon(Leftovers),
}

/// What a merge that has failed had written.
#[derive(Default)]
pub(crate) struct Leftovers {
    pub(super) pieces: Vec<MergePiece>,
    pub(super) outputs: Vec<PieceOutput>,
}

struct Failure {
    claim: Claim,
    error: Error,
    /// How often.
    times: u32,
}

impl OpenMerges {
    /// Closes all merges. What they had written.
    pub(super) fn close_all(&mut self) -> Vec<Leftovers> {
        let left = |open: OpenMerge| Leftovers { pieces: open.idle, outputs: open.outputs };
        self.open.drain(..).map(left).collect()
    }

    pub(crate) fn open_count(&self) -> usize {
        self.open.len()
    }

    /// What is not to be merged by anyone else.
    pub(crate) fn claims(&self) -> Vec<Claim> {
        self.open.iter().map(|open| open.claim.clone()).collect()
    }

    /// Opens a merge whose pieces are still to be made.
    pub(crate) fn begin(&mut self, claim: Claim) -> MergeId {
        let id = MergeId(self.begun);
        self.begun += 1;
        let (idle, outputs, pieces) = Default::default();
        let (in_hand, has_failed, is_released) = (1, false, false);
        self.open.push(OpenMerge {
            id,
            claim,
            pieces,
            idle,
            in_hand,
            outputs,
            has_failed,
            is_released,
        });
        id
    }

    /// Its pieces are there. They are not wanted if it was given up meanwhile.
    pub(crate) fn opened(&mut self, id: MergeId, pieces: Vec<MergePiece>) {
        if let Some(open) = self.find(id) {
            let idle = if open.has_failed { Vec::new() } else { pieces };
            (open.pieces, open.idle, open.in_hand) = (Some(idle.len()), idle, 0);
        }
        self.close_released();
    }

    /// Gives up all merges that are open: what is to come takes their runs, too. One that is being
    /// installed is not stopped any more; what has failed waits as before. What they had written is
    /// left.
    pub(crate) fn give_up(&mut self) -> Leftovers {
        let mut left = Leftovers::default();
        for open in self.open.iter_mut().filter(|open| !open.has_failed) {
            (open.has_failed, open.is_released) = (true, true);
            left.pieces.append(&mut open.idle);
            left.outputs.append(&mut open.outputs);
        }
        self.close_released();
        left
    }

    /// Takes a piece in hand that is idle: of these, by the order in which merges began and then by
    /// keys, number `choice`, counted round; None: the first of the merge that began last, which is
    /// the smallest, mostly, and has newer runs wait for it.
    pub(crate) fn take(&mut self, choice: Option<usize>) -> Option<(MergeId, MergePiece)> {
        let Some(choice) = choice else {
            let newest = self.open.iter_mut().rev().find(|open| !open.idle.is_empty());
            return newest.map(|open| open.take(0));
        };
        let mut nth = choice.checked_rem(self.idle_count())?;
        for open in &mut self.open {
            match nth.checked_sub(open.idle.len()) {
                None => return Some(open.take(nth)),
                Some(behind) => nth = behind,
            }
        }
        None
    }

    /// How many pieces of merges wait to be taken in hand.
    pub(crate) fn idle_count(&self) -> usize {
        self.open.iter().map(|open| open.idle.len()).sum()
    }

    /// Someone has done a step of it.
    pub(crate) fn put_back(&mut self, id: MergeId, piece: MergePiece) -> Next {
        let Some(open) = self.find(id) else { return Next::GoOn };
        open.in_hand -= 1;
        if open.has_failed {
            self.close_released();
            return Next::Abandon(Leftovers { pieces: vec![piece], outputs: Vec::new() });
        }
        let at = open.idle.partition_point(|other| other.place() < piece.place());
        open.idle.insert(at, piece);
        Next::GoOn
    }

    /// A piece is done. Of the last one the merge stays in hand: it is to be installed.
    pub(crate) fn ended(&mut self, id: MergeId, output: PieceOutput) -> Next {
        let Some(open) = self.find(id) else { return Next::GoOn };
        open.outputs.push(output);
        if Some(open.outputs.len()) == open.pieces {
            return Next::Install(std::mem::take(&mut open.outputs));
        }
        open.in_hand -= 1;
        if open.has_failed {
            let outputs = std::mem::take(&mut open.outputs);
            self.close_released();
            return Next::Abandon(Leftovers { pieces: Vec::new(), outputs });
        }
        Next::GoOn
    }

    /// It was installed. What has failed before and waits for nobody to try it again may not be
    /// wanted any more.
    pub(crate) fn end(&mut self, id: MergeId) {
        self.open.retain(|open| open.id != id);
        let open = &self.open;
        let is_open = |failed: &Claim| open.iter().any(|o| o.claim.shares_a_run(failed.inputs()));
        self.failures.retain(|failure| is_open(&failure.claim));
    }

    /// It has failed, whose piece was in hand. Its claim stays, so that nobody else tries the same;
    /// how often it has failed by now, and what is left of it.
    pub(crate) fn fail(&mut self, id: MergeId, error: Error) -> (u32, Leftovers) {
        let Some(open) = self.find(id) else { return Default::default() };
        let (claim, is_first) = (open.claim.clone(), !open.has_failed);
        let is_wanted = is_first || !open.is_released;
        open.has_failed = true;
        open.in_hand -= 1;
        let (pieces, outputs) = (std::mem::take(&mut open.idle), std::mem::take(&mut open.outputs));
        let times = if is_wanted { self.note_failure(claim, error, is_first) } else { 0 };
        self.close_released();
        (times, Leftovers { pieces, outputs })
    }

    /// `is_new`: it is no other piece of a merge that has failed a moment ago.
    fn note_failure(&mut self, claim: Claim, error: Error, is_new: bool) -> u32 {
        let same = |failure: &&mut Failure| failure.claim.shares_a_run(claim.inputs());
        let Some(failure) = self.failures.iter_mut().find(same) else {
            self.failures.push(Failure { claim, error, times: 1 });
            return 1;
        };
        failure.error = error;
        failure.times = failure.times.saturating_add(is_new.into());
        failure.times
    }

    /// What has failed may be tried again, when nobody has a piece of it in hand any more.
    pub(crate) fn release(&mut self, id: MergeId) {
        if let Some(open) = self.find(id) {
            open.is_released = true;
        }
        self.close_released();
    }

    fn close_released(&mut self) {
        self.open.retain(|open| !open.is_released || open.in_hand > 0);
    }

    /// Whether it has failed, and nobody has forgotten that.
    pub(crate) fn has_failed(&self, id: MergeId) -> bool {
        let open = self.open.iter().find(|open| open.id == id);
        open.is_some_and(|open| {
            self.failures.iter().any(|failure| failure.claim.shares_a_run(open.claim.inputs()))
        })
    }

    /// The first failure that is known.
    pub(crate) fn failure(&self) -> Option<&Error> {
        self.failures.first().map(|failure| &failure.error)
    }

    /// What has failed is to be tried again now.
    pub(crate) fn forget_failures(&mut self) {
        self.failures.clear();
    }

    fn find(&mut self, id: MergeId) -> Option<&mut OpenMerge> {
        self.open.iter_mut().find(|open| open.id == id)
    }
}

impl OpenMerge {
    fn take(&mut self, nth: usize) -> (MergeId, MergePiece) {
        self.in_hand += 1;
        (self.id, self.idle.remove(nth))
    }
}
