//! Draws the history of a seed, with transactions.

use super::super::model::expiring;
use super::super::operands::operand;
use super::super::operation::{End, Failure, Write};
use super::super::values::ValueDrawer;
use super::step::{NumberedStep, Step, Stretch};
use super::{History, KEYS, SPACES};
use crate::keys::rng::Rng;
use trommel::testing::Fault;

/// The mean weight of each kind over all histories. A kind without its own weight is drawn where it
/// makes sense.
const WEIGHTS: [(Kind, f64); 20] = [
    (Kind::Begin, 8.0),
    (Kind::Read, 20.0),
    (Kind::WriteInside, 12.0),
    (Kind::Savepoint, 2.0),
    (Kind::End, 9.0),
    (Kind::Write, 12.0),
    (Kind::DeleteRange, 1.5),
    (Kind::Expiring, 2.0),
    (Kind::Single, 6.0),
    (Kind::Ingest, 0.4),
    (Kind::Get, 3.0),
    (Kind::Snapshot, 3.0),
    (Kind::Keyspace, 0.3),
    (Kind::Flush, 3.0),
    (Kind::Compact, 0.5),
    (Kind::Work, 10.0),
    (Kind::Sync, 0.7),
    (Kind::Copy, 0.15),
    (Kind::Tick, 0.8),
    (Kind::Trouble, 0.9),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Begin,
    Read,
    WriteInside,
    Savepoint,
    End,
    Write,
    DeleteRange,
    Expiring,
    Single,
    Ingest,
    Get,
    Snapshot,
    Keyspace,
    Flush,
    Compact,
    Work,
    Sync,
    Copy,
    Tick,
    Trouble,
}

struct Drawer {
    rng: Rng,
    weights: Vec<(Kind, f64)>,
    next_number: u32,
    values: ValueDrawer,
    ticks: u32,
    /// The step at which the disk is mended, or, if true, the power is cut.
    ends_at: Option<(u32, bool)>,
}

pub(super) fn history(seed: u64, steps: u32) -> History {
    let mut rng = Rng::new(seed ^ 0x7a11_ac75);
    let setup = rng.next_u64();
    let weights = WEIGHTS
        .iter()
        .map(|&(kind, weight)| (kind, weight * [0.3, 1.0, 1.0, 2.0, 4.0][rng.place(5)]));
    let weights = weights.collect();
    let (values, ends_at) = (ValueDrawer::of_seed(seed), None);
    let mut drawer = Drawer { rng, weights, next_number: 2, values, ticks: 0, ends_at };
    let steps = (1..=steps).map(|number| NumberedStep { number, step: drawer.step(number) });
    History { setup, steps: steps.collect() }
}

/// Whether the key of a write takes operands. Its values then never expire, since expiry would
/// change what operands make of them.
fn takes_operands(write: &Write) -> bool {
    write.place.is_multiple_of(3)
}

impl Drawer {
    fn kind(&mut self) -> Kind {
        self.rng.weighted(&self.weights).unwrap_or(Kind::Write)
    }

    fn step(&mut self, number: u32) -> Step {
        if let Some((_, cuts)) = self.ends_at.take_if(|(at, _)| *at <= number) {
            return if cuts { self.reopen(true) } else { Step::Mend };
        }
        let which = self.rng.place(8);
        match self.kind() {
            Kind::Begin => Step::Begin { serializable: self.rng.below(4) != 0 },
            Kind::Read => self.read(which),
            Kind::WriteInside => match self.rng.below(8) {
                0 => Step::TxDeleteRange { which, stretch: self.stretch() },
                _ => Step::TxWrite { which, writes: self.writes(3) },
            },
            Kind::Savepoint => match self.rng.below(2) {
                0 => Step::Savepoint { which },
                _ => Step::RollBack { which },
            },
            Kind::End => match self.rng.below(8) {
                0 => Step::Abandon { which },
                _ => Step::Commit { which, synced: self.rng.below(10) == 0 },
            },
            Kind::Write => Step::Write { writes: self.writes(6), synced: self.rng.below(12) == 0 },
            Kind::DeleteRange => Step::DeleteRange(self.stretch()),
            Kind::Expiring => self.expiring(),
            Kind::Single => self.single(),
            Kind::Ingest => self.ingest(),
            Kind::Get => Step::Get(self.place()),
            Kind::Snapshot => match self.rng.below(5) {
                0 | 1 => Step::TakeSnapshot,
                2 => Step::DropSnapshot(which),
                _ => Step::ReadSnapshot { which, space: self.rng.place(SPACES) },
            },
            Kind::Keyspace => {
                let space = 1 + self.rng.place(SPACES - 1);
                match self.rng.below(2) {
                    0 => Step::Rename { space },
                    _ => Step::Drop { space, setup: self.rng.next_u64() },
                }
            }
            Kind::Flush => match self.rng.below(4) {
                0 => Step::FlushAll,
                _ => Step::Flush { space: self.rng.place(SPACES) },
            },
            Kind::Compact => Step::Compact { space: self.rng.place(SPACES) },
            Kind::Work => match self.rng.below(20) {
                0 => Step::Settle,
                _ => Step::Work(1 + self.rng.below(6) as u32),
            },
            Kind::Sync => Step::Sync,
            Kind::Copy => match self.rng.below(2) {
                0 => Step::Verify,
                _ => Step::Checkpoint,
            },
            Kind::Tick => {
                self.ticks += 1;
                Step::Tick
            }
            Kind::Trouble => match self.rng.below(2) {
                0 => self.fail(number),
                _ => self.reopen(false),
            },
        }
    }

    fn read(&mut self, which: usize) -> Step {
        if self.rng.below(3) == 0 {
            let limit = [1, 3, KEYS][self.rng.place(3)];
            let back = self.rng.below(2) == 0;
            return Step::TxScan { which, stretch: self.stretch(), back, limit };
        }
        let for_update = self.rng.below(3) == 0;
        Step::TxGet { which, place: self.place(), for_update }
    }

    fn single(&mut self) -> Step {
        let (write, lies) = (self.write(), self.rng.below(3) == 0);
        match self.rng.below(4) {
            0 => Step::PutIfAbsent(Write { number: write.number.max(2), ..write }),
            1 => Step::Swap { write, lies },
            2 => Step::Update(write),
            _ => {
                let places = (0..1 + self.rng.place(3)).map(|_| self.place()).collect();
                Step::OnlyIf { places, lies, writes: self.writes(4) }
            }
        }
    }

    fn expiring(&mut self) -> Step {
        let mut writes = self.writes(3);
        for write in writes.iter_mut().filter(|write| write.number > 0 && !takes_operands(write)) {
            let tick = self.ticks + [0, 1, 2, 9][self.rng.place(4)];
            write.number = expiring(write.number, tick);
        }
        Step::Write { writes, synced: false }
    }

    fn ingest(&mut self) -> Step {
        let Stretch { space, from, to } = self.stretch();
        let writes = Stretch { space, from, to }.places();
        let writes = writes.map(|place| Write { place: place as u16, number: self.number() });
        Step::Ingest { space, writes: writes.collect() }
    }

    fn fail(&mut self, number: u32) -> Step {
        let reach = [4, 16, 64][self.rng.place(3)];
        let after = self.rng.below(reach);
        let kind = if self.rng.below(2) == 0 { Fault::Io } else { Fault::NoSpace };
        let failure = Failure { after, kind, lasts: self.rng.below(2) == 0 };
        self.ends_at = Some((number + 1 + self.rng.below(12) as u32, self.rng.below(3) == 0));
        Step::Fail(failure)
    }

    fn reopen(&mut self, cuts: bool) -> Step {
        let end = match self.rng.below(if cuts { 2 } else { 8 }) {
            0 => End::PowerCutHard,
            1..=4 => End::PowerCut(self.rng.next_u64()),
            5 => End::Kill,
            6 => End::Drop,
            _ => End::Close,
        };
        let setup = (self.rng.below(2) == 0).then(|| self.rng.next_u64());
        Step::Reopen { end, setup }
    }

    fn place(&mut self) -> usize {
        self.rng.place(SPACES * KEYS)
    }

    fn stretch(&mut self) -> Stretch {
        let (one, other) = (self.rng.place(KEYS), self.rng.place(KEYS));
        let space = self.rng.place(SPACES);
        Stretch { space, from: one.min(other), to: one.max(other) + 1 }
    }

    fn number(&mut self) -> u32 {
        self.next_number += 1;
        self.values.number(self.next_number - 1)
    }

    fn write(&mut self) -> Write {
        let deletes = self.rng.below(4) == 0;
        Write { place: self.place() as u16, number: if deletes { 0 } else { self.number() } }
    }

    fn writes(&mut self, most: usize) -> Vec<Write> {
        (0..1 + self.rng.place(most)).map(|_| self.write_or_operand()).collect()
    }

    fn write_or_operand(&mut self) -> Write {
        let write = self.write();
        let is_operand = takes_operands(&write) && write.number > 0 && self.rng.below(3) > 0;
        Write { number: if is_operand { operand(write.number) } else { write.number }, ..write }
    }
}
