//! Shortens a failing history (delta debugging).
//! ```text
//! [........x]  drop half, a quarter, ... one step, wherever it still fails  ->  [. . x]
//!              then put simpler steps in place of those that are left
//! ```
//! Invariant: the result fails, and its message is its own, not that of the long history.

use std::time::{Duration, Instant};

use super::operation::{BackupOperation, End, Reopening, StressOperation};
use super::ranges::RangeDeletion;
use super::simulation::{Failing, Simulation};

/// Runs steps. Returns the failing step's number and what is wrong; None: nothing is wrong.
pub(crate) type Trial<'t, S> = dyn FnMut(&[S]) -> Option<(u32, String)> + 't;

/// Drops steps while the rest still fails, within a time limit.
pub(crate) fn shorten<H: Simulation>(
    failing: Failing<H::Step>,
    limit: Duration,
    trial: &mut Trial<'_, H::Step>,
) -> Failing<H::Step> {
    let deadline = Instant::now() + limit;
    let mut best = failing;
    cut_behind::<H>(&mut best);
    // A power cut that loses everything needs fewer steps before it than a drawn one.
    let last = best.steps.len().saturating_sub(1);
    simplify::<H>(&mut best, last, deadline, trial);
    drop_steps::<H>(&mut best, deadline, trial);
    simplify::<H>(&mut best, 0, deadline, trial);
    drop_steps::<H>(&mut best, deadline, trial);
    best
}

fn drop_steps<H: Simulation>(
    best: &mut Failing<H::Step>,
    deadline: Instant,
    trial: &mut Trial<'_, H::Step>,
) {
    let mut chunk = best.steps.len() / 2;
    while chunk > 0 && Instant::now() < deadline {
        let dropped = drop_chunks::<H>(best, chunk, deadline, trial);
        // Single steps are tried again: dropping some may allow to drop others.
        chunk = if chunk == 1 && dropped { 1 } else { chunk / 2 };
    }
}

/// Replaces steps from a place on by simpler ones, as long as the history still fails.
fn simplify<H: Simulation>(
    best: &mut Failing<H::Step>,
    first: usize,
    deadline: Instant,
    trial: &mut Trial<'_, H::Step>,
) {
    let mut place = first;
    while place < best.steps.len() && Instant::now() < deadline {
        let tried = H::simpler(&best.steps[place]).into_iter().any(|step| {
            let mut steps = best.steps.clone();
            steps[place] = step;
            let Some((at, wrong)) = trial(&steps) else { return false };
            *best = Failing { steps, wrong, at };
            cut_behind::<H>(best);
            true
        });
        // A simplified step may become simpler still.
        place += usize::from(!tried);
    }
}

/// Returns simpler variants of an operation.
pub(super) fn simpler(operation: &StressOperation) -> Vec<StressOperation> {
    match operation {
        StressOperation::Write { writes, synced } if writes.len() > 1 => {
            let without = |place| {
                let mut writes = writes.clone();
                writes.remove(place);
                StressOperation::Write { writes, synced: *synced }
            };
            let half = writes.len() / 2;
            let halves = [&writes[half..], &writes[..half]]
                .map(|writes| StressOperation::Write { writes: writes.to_vec(), synced: *synced });
            halves.into_iter().chain((0..writes.len()).map(without)).collect()
        }
        StressOperation::OpenReader(place) => vec![StressOperation::Get(*place)],
        StressOperation::Write { writes, synced: true } => {
            vec![StressOperation::Write { writes: writes.clone(), synced: false }]
        }
        StressOperation::Ingest(writes) if writes.len() > 1 => {
            let half = writes.len() / 2;
            [&writes[half..], &writes[..half]]
                .map(|half| StressOperation::Ingest(half.to_vec()))
                .into()
        }
        StressOperation::DeleteRange(deletion) => {
            let without = |before, after| RangeDeletion { before, after, ..deletion.clone() };
            let unsynced = RangeDeletion { synced: false, ..deletion.clone() };
            let (before, after) = (deletion.before.clone(), deletion.after.clone());
            let simpler = [without(Vec::new(), after), without(before, Vec::new()), unsynced];
            let changed = simpler.into_iter().filter(|simpler| simpler != deletion);
            changed.map(StressOperation::DeleteRange).collect()
        }
        StressOperation::MoveScan { which, back, times } if *times > 1 => {
            vec![StressOperation::MoveScan { which: *which, back: *back, times: times - 1 }]
        }
        StressOperation::Step(count) if *count > 1 => vec![StressOperation::Step(count - 1)],
        StressOperation::Checkpoint { failure: Some(_), seed } => {
            vec![StressOperation::Checkpoint { failure: None, seed: *seed }]
        }
        StressOperation::Backup(BackupOperation::BackUp(Some(_))) => {
            vec![StressOperation::Backup(BackupOperation::BackUp(None))]
        }
        StressOperation::Backup(BackupOperation::Ship(Some(_))) => {
            vec![StressOperation::Backup(BackupOperation::Ship(None))]
        }
        StressOperation::Reopen(reopening) => {
            simpler_reopenings(reopening).into_iter().map(StressOperation::Reopen).collect()
        }
        _ => Vec::new(),
    }
}

fn simpler_reopenings(reopening: &Reopening) -> Vec<Reopening> {
    let plain = Reopening { failure: None, ..reopening.clone() };
    let no_rot = Reopening { rot: None, ..reopening.clone() };
    let no_repair = Reopening { repair: None, ..reopening.clone() };
    let same_options = Reopening { setup: None, ..reopening.clone() };
    let hard = Reopening { end: End::PowerCutHard, ..reopening.clone() };
    let mut all = Vec::new();
    all.extend(reopening.failure.map(|_| plain));
    all.extend(reopening.rot.map(|_| no_rot));
    all.extend(reopening.repair.map(|_| no_repair));
    all.extend(reopening.setup.map(|_| same_options));
    all.extend(matches!(reopening.end, End::PowerCut(_)).then_some(hard));
    all
}

/// Drops the steps after the one that shows the failure.
fn cut_behind<H: Simulation>(failing: &mut Failing<H::Step>) {
    let at = failing.at;
    failing.steps.retain(|step| H::number(step) <= at);
}

/// Tries to drop each chunk, from the end on. Returns whether any was dropped.
fn drop_chunks<H: Simulation>(
    best: &mut Failing<H::Step>,
    chunk: usize,
    deadline: Instant,
    trial: &mut Trial<'_, H::Step>,
) -> bool {
    let mut dropped = false;
    let mut end = best.steps.len();
    while end > 0 && Instant::now() < deadline {
        let start = end.saturating_sub(chunk);
        let rest = [&best.steps[..start], &best.steps[end..]].concat();
        if let Some((at, wrong)) = trial(&rest) {
            *best = Failing { steps: rest, wrong, at };
            cut_behind::<H>(best);
            dropped = true;
        }
        end = start.min(best.steps.len());
    }
    dropped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stress::draw::History;
    use crate::stress::operation::StressStep;

    #[test]
    fn steps_that_are_left_become_simpler() {
        let end = End::PowerCut(1);
        let (setup, rot, repair) = (Some(1), Some(1), Some(1));
        let reopening = Reopening { end, setup, failure: None, rot, repair };
        let steps = vec![
            StressStep { number: 1, operation: StressOperation::Step(4) },
            StressStep { number: 2, operation: StressOperation::Reopen(reopening) },
        ];
        let mut trial = |steps: &[StressStep]| (steps.len() == 2).then(|| (2, "two".to_string()));
        let failing = Failing { steps, wrong: "two".into(), at: 2 };
        let short = shorten::<History>(failing, Duration::from_secs(60), &mut trial);
        let (setup, failure, rot, repair) = (None, None, None, None);
        let simplest = Reopening { end: End::PowerCutHard, setup, failure, rot, repair };
        let left: Vec<StressOperation> =
            short.steps.into_iter().map(|step| step.operation).collect();
        assert_eq!(left, [StressOperation::Step(1), StressOperation::Reopen(simplest)]);
    }

    #[test]
    fn only_the_steps_that_matter_are_left() {
        let steps: Vec<StressStep> = (1..=1000)
            .map(|number| StressStep { number, operation: StressOperation::Tick })
            .collect();
        let mut trials = 0;
        let mut trial = |steps: &[StressStep]| {
            trials += 1;
            let has = |number| steps.iter().any(|step| step.number == number);
            (has(17) && has(400)).then(|| (400, "both".to_string()))
        };
        let failing = Failing { steps, wrong: "first".into(), at: 700 };
        let short = shorten::<History>(failing, Duration::from_secs(60), &mut trial);
        let left: Vec<u32> = short.steps.iter().map(|step| step.number).collect();
        assert_eq!((left, short.wrong.as_str()), (vec![17, 400], "both"));
        assert!(trials < 200, "{trials}");
    }
}
