//! Turns successive trees into steps.
//! ```text
//! PinnedTree -> runs of each level -> what has changed -> ReplayStep, with the guard's answers
//! ```
//! Invariant: a step has the answers of its pinned tree alone; no history of keys is kept.

use trommel::Policy;
use trommel::research::PinnedTree;
use trommel_filters::Query;

use crate::error::Result;
use crate::replay::positions::ReplayTree;
use crate::replay::recording::{ReplayAnswer, ReplayEvent, ReplayRun, ReplayStep};

/// What the next step needs of the recording so far.
pub(crate) struct Recorder {
    keys: Vec<Vec<u8>>,
    size_ratio: u32,
    is_lazy: bool,
    /// The levels after the last step. None: there was no step.
    before: Option<Levels>,
}

/// The runs of each level. Levels and runs are ordered newest first.
type Levels = Vec<Vec<ReplayRun>>;

impl Recorder {
    /// Creates a recorder for a tree with this policy and ratio, and for these keys.
    pub(crate) fn new(keys: Vec<Vec<u8>>, policy: &Policy, size_ratio: u32) -> Self {
        let is_lazy = *policy == Policy::default();
        Recorder { keys, size_ratio, is_lazy, before: None }
    }

    /// Returns the step that led to this tree. None: its runs have not changed.
    pub(crate) fn step(&mut self, tree: &PinnedTree) -> Result<Option<ReplayStep>> {
        let now = levels(tree);
        let event = match &self.before {
            None => ReplayEvent::Begin,
            Some(before) => match event(before, &now) {
                None => return Ok(None),
                Some(event) => event,
            },
        };
        self.before = Some(now.clone());
        self.described(event, now, tree).map(Some)
    }

    fn described(
        &self,
        event: ReplayEvent,
        levels: Levels,
        tree: &PinnedTree,
    ) -> Result<ReplayStep> {
        let shapes = ReplayTree::new(&levels, self.size_ratio, self.is_lazy);
        let answer = |key: &Vec<u8>| -> Result<ReplayAnswer> {
            let codes = tree.guard_codes(&Query::Point(key));
            Ok(ReplayAnswer {
                is_uncoded: codes.as_ref().is_none_or(|codes| codes.is_all()),
                codes: codes.map_or(Vec::new(), |codes| shapes.codes(&codes)),
                named: tree.candidates(key),
                holds: tree.holders(key)?,
            })
        };
        Ok(ReplayStep {
            event,
            shape: shapes.shape.digits(),
            is_encoding: shapes.is_encoding(),
            filter_bytes: tree.filter_bytes(),
            answers: self.keys.iter().map(answer).collect::<Result<_>>()?,
            levels,
        })
    }
}

fn levels(tree: &PinnedTree) -> Levels {
    let runs = tree.peek().runs;
    let count = runs.last().map_or(1, |run| run.level + 1);
    let mut levels = vec![Vec::new(); count];
    for run in runs {
        levels[run.level].push(ReplayRun { span: run.span, entries: run.entries });
    }
    levels
}

/// A level and a run in it.
type Placed = (usize, ReplayRun);

/// Returns the event that turned `before` into `now`. None: nothing has changed.
fn event(before: &Levels, now: &Levels) -> Option<ReplayEvent> {
    let placed = |levels: &Levels| -> Vec<Placed> {
        let runs = levels.iter().enumerate();
        runs.flat_map(|(level, runs)| runs.iter().map(move |run| (level, *run))).collect()
    };
    let (before, now) = (placed(before), placed(now));
    let (gone, come) = (missing(&before, &now), missing(&now, &before));
    let runs = |placed: &[Placed]| placed.iter().map(|(_, run)| *run).collect::<Vec<_>>();
    let spans = |placed: &[Placed]| placed.iter().map(|(_, run)| run.span).collect::<Vec<_>>();
    match (&gone[..], &come[..]) {
        ([], []) => None,
        ([], [(_, run)]) => Some(ReplayEvent::Flush { span: run.span }),
        _ if runs(&gone) == runs(&come) => Some(ReplayEvent::Move { runs: spans(&come) }),
        _ => {
            let level = come.last().or(gone.last()).map_or(0, |(level, _)| *level);
            let (inputs, outputs) = (spans(&gone), spans(&come));
            Some(ReplayEvent::Merge { inputs, outputs, level })
        }
    }
}

/// Returns the runs that are not among `others`.
fn missing(runs: &[Placed], others: &[Placed]) -> Vec<Placed> {
    runs.iter().filter(|run| !others.contains(run)).copied().collect()
}

#[cfg(test)]
mod tests;
