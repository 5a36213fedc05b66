//! Draws the history of a seed.
//! ```text
//! seed -> keys, weights of the kinds of operations -> steps, each with all that it does
//! ```
//! Invariant: a seed has one history, whatever the store answers. Every history has its own
//! weights, some of them 0, because a few kinds of operations find what many together hide (swarm
//! testing).

use trommel::testing::Fault;

use super::beside::BesideDrawer;
use super::keys::{KeyIndex, Keys};
use super::model::expiring;
use super::operation::{End, Failure, Reopening, StressOperation, StressStep, Write};
use super::ranges::{RangeDeletion, RangeDrawer};
use super::values::ValueDrawer;
use crate::keys::rng::Rng;

/// A drawn history.
pub(crate) struct History {
    pub(crate) keys: Keys,
    /// The seed of the options of the first opening.
    pub(crate) setup: u64,
    pub(crate) steps: Vec<StressStep>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum OperationKind {
    Put,
    PutExpiring,
    Delete,
    Batch,
    DeleteStretch,
    DeleteRange,
    Ingest,
    Load,
    Get,
    Scan,
    Count,
    TakeSnapshot,
    ReadSnapshot,
    DropSnapshot,
    OpenScan,
    MoveScan,
    DropScan,
    Flush,
    Step,
    Settle,
    Compact,
    Sync,
    Verify,
    Checkpoint,
    Tick,
    Fail,
    Reopen,
}

/// The mean weight of each kind over all histories.
const WEIGHTS: [(OperationKind, f64); 27] = [
    (OperationKind::Put, 30.0),
    (OperationKind::PutExpiring, 4.0),
    (OperationKind::Delete, 8.0),
    (OperationKind::Batch, 6.0),
    (OperationKind::DeleteStretch, 0.5),
    (OperationKind::DeleteRange, 3.0),
    (OperationKind::Ingest, 0.3),
    (OperationKind::Load, 0.2),
    (OperationKind::Get, 6.0),
    (OperationKind::Scan, 6.0),
    (OperationKind::Count, 4.0),
    (OperationKind::TakeSnapshot, 1.5),
    (OperationKind::ReadSnapshot, 3.0),
    (OperationKind::DropSnapshot, 1.2),
    (OperationKind::OpenScan, 2.0),
    (OperationKind::MoveScan, 6.0),
    (OperationKind::DropScan, 1.0),
    (OperationKind::Flush, 1.0),
    (OperationKind::Step, 14.0),
    (OperationKind::Settle, 1.0),
    (OperationKind::Compact, 0.2),
    (OperationKind::Sync, 1.0),
    (OperationKind::Verify, 0.1),
    (OperationKind::Checkpoint, 0.15),
    (OperationKind::Tick, 1.0),
    (OperationKind::Fail, 0.5),
    (OperationKind::Reopen, 0.6),
];
/// The factors by which a history may multiply a weight.
const FACTORS: [f64; 6] = [0.0, 0.3, 1.0, 1.0, 2.0, 4.0];

/// Draws the steps of a history one by one.
pub(crate) struct Drawer {
    rng: Rng,
    weights: Vec<(OperationKind, f64)>,
    next_number: u32,
    /// The ticks that have passed.
    pub(crate) ticks: u32,
    ranges: RangeDrawer,
    values: ValueDrawer,
    beside: BesideDrawer,
    /// The step at which the disk is mended, if it still fails then.
    mend_at: Option<u32>,
    /// The step at which the power is cut after a fault.
    cut_at: Option<u32>,
}

/// Draws the history of a seed, with `steps` steps.
pub(crate) fn history(seed: u64, steps: u32) -> History {
    history_of(seed, steps, ValueDrawer::of_seed(seed))
}

/// Like [`history`], with these draws of values.
pub(crate) fn history_of(seed: u64, steps: u32, values: ValueDrawer) -> History {
    let mut rng = Rng::new(seed);
    let keys = Keys::draw_from(&mut rng);
    let setup = rng.next_u64();
    let weights = draw_weights(&mut rng);
    let mut drawer = Drawer::new(rng, weights, (values, BesideDrawer::of_seed(seed)));
    let step = |number| StressStep { number, operation: drawer.operation(number, &keys) };
    let steps = (1..=steps).map(step).collect();
    History { keys, setup, steps }
}

fn draw_weights(rng: &mut Rng) -> Vec<(OperationKind, f64)> {
    let mut of_kind = |&(kind, weight): &(OperationKind, f64)| {
        let factor = FACTORS[rng.place(FACTORS.len())];
        // Without these kinds nothing happens, or memtables pile up.
        let needed = matches!(kind, OperationKind::Put | OperationKind::Step);
        (kind, weight * if needed { factor.max(0.5) } else { factor })
    };
    WEIGHTS.iter().map(&mut of_kind).collect()
}

impl Drawer {
    fn new(
        rng: Rng,
        weights: Vec<(OperationKind, f64)>,
        (values, beside): (ValueDrawer, BesideDrawer),
    ) -> Self {
        let (ranges, mend_at, cut_at) = (RangeDrawer::default(), None, None);
        // Number 1 is that of the empty value.
        let (next_number, ticks) = (2, 0);
        Drawer { rng, weights, next_number, ticks, ranges, values, beside, mend_at, cut_at }
    }

    /// Creates the drawer of one of several writers, which leaves maintenance to others. `flushes`:
    /// it may flush memtables, which includes bulk loads.
    pub(crate) fn of_writer(mut rng: Rng, flushes: bool) -> Self {
        let mut weights = draw_weights(&mut rng);
        for (kind, weight) in &mut weights {
            *weight *= match kind {
                OperationKind::Step
                | OperationKind::Settle
                | OperationKind::Compact
                | OperationKind::Verify
                | OperationKind::Checkpoint => 0.0,
                OperationKind::Tick | OperationKind::Fail | OperationKind::Reopen => 0.0,
                OperationKind::Flush | OperationKind::Ingest if !flushes => 0.0,
                OperationKind::Flush | OperationKind::Sync => 0.1,
                _ => 1.0,
            };
        }
        // Values that are stored apart do not pile up in memory.
        let seed = Some(rng.next_u64()).filter(|_| flushes);
        let values = seed.map_or_else(ValueDrawer::short, ValueDrawer::of_seed);
        Drawer::new(rng, weights, (values, BesideDrawer::none()))
    }

    fn kind(&mut self) -> OperationKind {
        self.rng.weighted(&self.weights).unwrap_or(OperationKind::Put)
    }

    /// Draws the operation of a step.
    pub(crate) fn operation(&mut self, number: u32, keys: &Keys) -> StressOperation {
        let operation = self.any_operation(number, keys);
        let reopening = if let StressOperation::Reopen(it) = &operation { Some(it) } else { None };
        if reopening.is_some_and(|it| it.end == End::Kill) {
            // Bytes that a killed process leaves are not durable yet, neither in logs nor in value
            // files.
            self.cut_at = self.values.cut_after_kill().map(|steps| number + steps);
        }
        let operation = self.values.instead_of(operation, keys);
        self.beside.instead_of(operation, keys)
    }

    fn any_operation(&mut self, number: u32, keys: &Keys) -> StressOperation {
        if self.cut_at.take_if(|at| *at <= number).is_some() {
            self.mend_at = None;
            let end = self.power_cut();
            return StressOperation::Reopen(self.reopening(end));
        }
        if self.mend_at.take_if(|at| *at <= number).is_some() {
            return StressOperation::Mend;
        }
        match self.kind() {
            OperationKind::Put => self.writes(1, 0.0, keys),
            OperationKind::PutExpiring => self.put_expiring(keys),
            OperationKind::Delete => self.writes(1, 1.0, keys),
            OperationKind::Batch => {
                let count = 1 + self.rng.place(12);
                self.writes(count, 0.3, keys)
            }
            OperationKind::DeleteStretch => self.stretch(200, false, keys),
            OperationKind::DeleteRange => self.delete_range(keys),
            OperationKind::Ingest => self.ingest(keys),
            OperationKind::Load => self.stretch(400, true, keys),
            OperationKind::Get => StressOperation::Get(keys.draw(&mut self.rng)),
            OperationKind::Scan => {
                StressOperation::Scan { edges: self.edges(keys), back: self.toss() }
            }
            OperationKind::Count => StressOperation::Count(self.edges(keys)),
            OperationKind::TakeSnapshot => StressOperation::TakeSnapshot,
            OperationKind::ReadSnapshot => StressOperation::ReadSnapshot {
                which: self.rng.place(8),
                place: keys.draw(&mut self.rng),
                edges: self.edges(keys),
                back: self.toss(),
            },
            OperationKind::DropSnapshot => StressOperation::DropSnapshot(self.rng.place(8)),
            OperationKind::OpenScan => {
                let of_snapshot = self.rng.below(4) == 0;
                StressOperation::OpenScan { edges: self.edges(keys), of_snapshot }
            }
            OperationKind::MoveScan => StressOperation::MoveScan {
                which: self.rng.place(8),
                back: self.toss(),
                times: 1 + self.rng.place(6),
            },
            OperationKind::DropScan => StressOperation::DropScan(self.rng.place(8)),
            OperationKind::Flush => StressOperation::Flush,
            OperationKind::Step => StressOperation::Step(1 + self.rng.below(4) as u32),
            OperationKind::Settle => StressOperation::Settle,
            OperationKind::Compact => StressOperation::Compact,
            OperationKind::Sync => StressOperation::Sync,
            OperationKind::Verify => StressOperation::Verify,
            OperationKind::Checkpoint => {
                let failure = (self.rng.below(3) == 0).then(|| self.failure());
                StressOperation::Checkpoint { failure, seed: self.rng.next_u64() }
            }
            OperationKind::Tick => {
                self.ticks += 1;
                StressOperation::Tick
            }
            OperationKind::Fail => self.fail(number),
            OperationKind::Reopen => {
                let end = self.end();
                StressOperation::Reopen(self.reopening(end))
            }
        }
    }

    fn toss(&mut self) -> bool {
        self.rng.below(2) == 0
    }

    fn edges(&mut self, keys: &Keys) -> super::keys::Edges {
        keys.draw_edges(&mut self.rng)
    }

    /// Draws `count` writes, of which a share of `deletions` are deletions.
    fn writes(&mut self, count: usize, deletions: f64, keys: &Keys) -> StressOperation {
        let mut writes = Vec::with_capacity(count);
        for _ in 0..count {
            let place = keys.draw(&mut self.rng);
            let number = if self.rng.unit() < deletions { 0 } else { self.number() };
            writes.push(Write { place, number });
        }
        StressOperation::Write { writes, synced: self.rng.below(12) == 0 }
    }

    /// Returns the number of a new value.
    pub(crate) fn number(&mut self) -> u32 {
        if self.rng.below(24) == 0 {
            return 1;
        }
        self.next_number += 1;
        self.values.number(self.next_number - 1)
    }

    /// Draws at most `most` neighbouring keys that one batch puts or deletes.
    fn stretch(&mut self, most: usize, puts: bool, keys: &Keys) -> StressOperation {
        let first = self.rng.place(keys.len());
        let end = (first + 1 + self.rng.place(most)).min(keys.len());
        let places = first..end;
        let write = |place| Write {
            place: place as KeyIndex,
            number: if puts { self.number() } else { 0 },
        };
        StressOperation::Write { writes: places.map(write).collect(), synced: false }
    }

    /// Draws some writes of which some expire, most of them soon.
    fn put_expiring(&mut self, keys: &Keys) -> StressOperation {
        let count = [1, 1, 5][self.rng.place(3)];
        let mut operation = self.writes(count, 0.0, keys);
        if let StressOperation::Write { writes, .. } = &mut operation {
            for write in writes {
                let tick = self.ticks + [0, 1, 2, 20][self.rng.place(4)];
                write.number = expiring(write.number, tick);
            }
        }
        operation
    }

    /// Draws a range deletion, alone or in a batch with writes.
    fn delete_range(&mut self, keys: &Keys) -> StressOperation {
        let (from, to) = self.ranges.draw(keys, &mut self.rng);
        let mut some = || -> Vec<Write> {
            let count = if self.rng.below(4) == 0 { self.rng.place(4) } else { 0 };
            let write = |_| Write { place: keys.draw(&mut self.rng), number: self.number() };
            (0..count).map(write).collect()
        };
        let (before, after) = (some(), some());
        let synced = self.rng.below(12) == 0;
        StressOperation::DeleteRange(RangeDeletion { before, from, to, after, synced })
    }

    /// Draws keys for a bulk load, near each other or not.
    fn ingest(&mut self, keys: &Keys) -> StressOperation {
        let mut places: Vec<KeyIndex> = match self.rng.below(2) {
            0 => (0..self.rng.place(20)).map(|_| keys.draw(&mut self.rng)).collect(),
            _ => {
                let first = self.rng.place(keys.len());
                let end = (first + self.rng.place(300)).min(keys.len());
                (first..end).map(|place| place as KeyIndex).collect()
            }
        };
        places.sort_unstable();
        places.dedup();
        let write = |place| Write { place, number: self.number() };
        StressOperation::Ingest(places.into_iter().map(write).collect())
    }

    fn fail(&mut self, number: u32) -> StressOperation {
        let failure = self.failure();
        let then = number + 1 + self.rng.below(12) as u32;
        if self.rng.below(3) == 0 {
            self.cut_at = Some(then)
        } else {
            self.mend_at = Some(then)
        }
        StressOperation::Fail(failure)
    }

    fn failure(&mut self) -> Failure {
        draw_failure(&mut self.rng)
    }

    fn power_cut(&mut self) -> End {
        if self.rng.below(4) == 0 { End::PowerCutHard } else { End::PowerCut(self.rng.next_u64()) }
    }

    fn end(&mut self) -> End {
        match self.rng.below(6) {
            0 => End::Close,
            1 => End::Drop,
            2 => End::Kill,
            _ => self.power_cut(),
        }
    }

    fn reopening(&mut self, end: End) -> Reopening {
        let setup = self.toss().then(|| self.rng.next_u64());
        let failure = (self.rng.below(5) == 0).then(|| self.failure());
        let rot = self.toss().then(|| self.rng.next_u64());
        let repair = (self.rng.below(6) == 0).then(|| self.rng.next_u64());
        Reopening { end, setup, failure, rot, repair }
    }
}

pub(super) fn draw_failure(rng: &mut Rng) -> Failure {
    let reach = [4, 16, 64][rng.place(3)];
    let kind = if rng.below(2) == 0 { Fault::Io } else { Fault::NoSpace };
    Failure { after: rng.below(reach), kind, lasts: rng.below(2) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_has_one_history_and_all_kinds_come() {
        assert_eq!(history(3, 500).steps, history(3, 500).steps);
        assert_ne!(history(3, 500).steps, history(4, 500).steps);
        let mut seen = std::collections::HashSet::new();
        for seed in 0..40 {
            let steps = history(seed, 500).steps;
            seen.extend(steps.iter().map(|step| std::mem::discriminant(&step.operation)));
        }
        assert_eq!(seen.len(), 28);
    }

    #[test]
    fn a_longer_history_begins_like_a_shorter_one() {
        assert_eq!(history(9, 300).steps, history(9, 900).steps[..300]);
    }
}
