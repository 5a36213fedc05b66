//! A lane: a thread that writes its share of the keys and knows their exact values.
//! ```text
//! step -> ledger: begun -> store -> ledger: acknowledged -> own keys compared
//! ```
//! Invariant: no other thread writes a lane's keys. So the lane sees its keys, snapshots and scans
//! as in a store of its own.

use std::sync::Arc;

use trommel::Db;

use super::posts::{Doing, Post};
use super::setup::{Pattern, Theme};
use super::shared::{Sabotage, Shared};
use crate::keys::rng::Rng;
use crate::stress::draw::Drawer;
use crate::stress::held::{HeldScan, HeldSnapshot};
use crate::stress::held_list::HeldList;
use crate::stress::keys::{Edges, KeyIndex, Keys};
use crate::stress::model::{State, expiry_of, large, shown_at};
use crate::stress::operation::{StressOperation, StressStep, Write};
use crate::stress::ranges::RangeDeletion;
use crate::stress::values::{HeldReader, cut_stream};
use crate::stress::world::Checked;
use crate::stress::writer::Writer;

/// A liar drops one group in this many.
const LOST_EVERY: u32 = 50;
/// One value in this many is large, in histories with large values.
const LARGE_EVERY: u64 = 2000;

/// A lane, whose state carries over from one opening of the store to the next.
pub(super) struct LaneThread {
    pub(super) index: usize,
    pub(super) keys: Arc<Keys>,
    pub(super) rng: Rng,
    pub(super) drawer: Drawer,
    pub(super) pattern: Pattern,
    /// Whether some values are several MiB.
    has_large: bool,
    /// The current values of its keys.
    pub(super) state: State,
    /// How often each key was written.
    written: Vec<u64>,
    pub(super) tick: u32,
    step: u32,
    groups: u32,
    /// How far a lane that follows the log pattern has come.
    pub(super) log_end: usize,
}

/// What a lane keeps open while the store is open.
#[derive(Default)]
pub(super) struct HeldViews {
    pub(super) snapshots: HeldList<HeldSnapshot>,
    pub(super) scans: HeldList<HeldScan>,
    readers: HeldList<HeldReader>,
}

impl LaneThread {
    pub(super) fn new(
        index: usize,
        keys: Keys,
        (theme, has_large): (Theme, bool),
        mut rng: Rng,
    ) -> Self {
        let pattern = theme.pattern(index, &mut rng);
        let (state, written) = (State(vec![0; keys.len()]), vec![0; keys.len()]);
        let drawer = Drawer::of_writer(Rng::new(rng.next_u64()), theme.flushes());
        LaneThread {
            index,
            keys: Arc::new(keys),
            rng,
            drawer,
            pattern,
            has_large,
            state,
            written,
            tick: 0,
            step: 0,
            groups: 0,
            log_end: 0,
        }
    }

    /// Works until the round is over.
    pub(super) fn work(&mut self, db: &Db, shared: &Shared, post: &Post) -> Checked<()> {
        let mut held = HeldViews::default();
        while !shared.is_over() {
            self.step += 1;
            if self.pattern != Pattern::Drawn {
                self.follow_pattern(db, shared, post)?;
                continue;
            }
            let (_gate, tick) = shared.clock.hold();
            self.come_to(tick, &mut held);
            let operation = self.drawer.operation(self.step, &self.keys);
            let step = Arc::new(StressStep { number: self.step, operation });
            post.set(Doing::Step(Arc::clone(&step), Arc::clone(&self.keys)));
            if shared.lies(Sabotage::Stuck) && self.index == 0 && self.step > 50 {
                std::thread::sleep(std::time::Duration::from_secs(3600));
            }
            self.apply(db, shared, &step.operation, &mut held)?;
            self.check_after(db, shared, &step)?;
            shared.counts.operations.add(1);
        }
        post.set(Doing::Rest);
        Ok(())
    }

    /// Advances the model to a tick.
    pub(super) fn come_to(&mut self, tick: u32, held: &mut HeldViews) {
        if tick == self.tick {
            return;
        }
        self.tick = tick;
        self.drawer.ticks = tick;
        self.state.expire(tick);
        held.snapshots.iter_mut().for_each(|held| held.state.expire(tick));
        held.scans.iter_mut().for_each(|held| held.expire(tick));
    }

    fn apply(
        &mut self,
        db: &Db,
        shared: &Shared,
        operation: &StressOperation,
        held: &mut HeldViews,
    ) -> Checked<()> {
        match operation {
            StressOperation::Write { writes, synced } => {
                let writes = self.enlarge(writes);
                self.write(shared, &writes, |lane| lane.writer(db).write(&writes, *synced))
            }
            StressOperation::DeleteRange(deletion) => self.delete_range(db, shared, deletion),
            StressOperation::Ingest(writes) => {
                self.write(shared, writes, |lane| lane.writer(db).ingest(writes))
            }
            StressOperation::Get(place) => self.check_get(db, shared, *place),
            StressOperation::Scan { edges, back } => self.check_scan(db, shared, edges, *back),
            StressOperation::Count(edges) => self.check_count(db, shared, edges),
            StressOperation::TakeSnapshot => {
                let (snapshot, state) = (db.snapshot(), self.state.clone());
                held.snapshots.push(HeldSnapshot { snapshot, state });
                Ok(())
            }
            StressOperation::ReadSnapshot { which, place, edges, back } => {
                self.check_snapshot(shared, held, *which, (*place, edges, *back))
            }
            StressOperation::DropSnapshot(which) => {
                held.snapshots.drop_one(*which);
                Ok(())
            }
            StressOperation::OpenScan { edges, of_snapshot } => {
                self.open_scan(db, held, edges, *of_snapshot);
                Ok(())
            }
            StressOperation::MoveScan { which, back, times } => {
                self.move_scan(shared, held, (*which, *back, *times))
            }
            StressOperation::DropScan(which) => {
                held.scans.drop_one(*which);
                Ok(())
            }
            StressOperation::CutStream(write) => {
                cut_stream(db, self.keys.get(write.place), write.number)
            }
            StressOperation::OpenReader(place) => self.open_reader(db, held, *place),
            StressOperation::ReadOn { which, seed } => read_on(shared, held, *which, *seed),
            StressOperation::Flush => db.flush().map_err(|error| format!("flush: {error}")),
            StressOperation::Sync => db.sync().map_err(|error| format!("sync: {error}")),
            other => unreachable!("no lane does this: {other:?}"),
        }
    }

    /// Turns a few of the values into values of several MiB.
    fn enlarge(&mut self, writes: &[Write]) -> Vec<Write> {
        let mut writes = writes.to_vec();
        for write in &mut writes {
            let may = write.number > 1 && expiry_of(write.number).is_none();
            if self.has_large && may && self.rng.below(LARGE_EVERY) == 0 {
                write.number = large(write.number);
            }
        }
        writes
    }

    /// Writes a group to the ledger, the store and the model.
    pub(super) fn write(
        &mut self,
        shared: &Shared,
        writes: &[Write],
        write: impl FnOnce(&LaneThread) -> trommel::Result<()>,
    ) -> Checked<()> {
        if !shared.ledger.has_room(self.index, writes.len()) {
            shared.end_history();
            return Ok(());
        }
        self.groups += 1;
        shared.ledger.begin(self.index, writes);
        let is_lost = shared.lies(Sabotage::LostWrite) && self.groups.is_multiple_of(LOST_EVERY);
        if !is_lost {
            write(self).map_err(|error| format!("write: {error}"))?;
        }
        shared.ledger.acknowledge(self.index);
        shared.counts.writes.add(writes.len() as u64);
        for write in writes {
            let place = usize::from(write.place);
            self.state.0[place] = shown_at(write.number, self.tick);
            self.written[place] += 1;
        }
        Ok(())
    }

    pub(super) fn writer<'w>(&'w self, db: &'w Db) -> Writer<'w> {
        Writer { db, keys: &self.keys, tick: self.tick }
    }

    /// Deletes the lane's part of a range.
    fn delete_range(&mut self, db: &Db, shared: &Shared, deletion: &RangeDeletion) -> Checked<()> {
        let RangeDeletion { before, from, to, after, synced } = deletion;
        let (ranges, places) = shared.shares.within(self.index, (from, to));
        if ranges.is_empty() && before.is_empty() && after.is_empty() {
            return Ok(());
        }
        // Deleting a key without a value is not noted: nothing changes.
        let is_there = |place: &usize| {
            self.state.0[*place] != 0 || before.iter().any(|w| usize::from(w.place) == *place)
        };
        let deleted = places.into_iter().flatten().filter(is_there);
        let deleted = deleted.map(|place| Write { place: place as KeyIndex, number: 0 });
        let writes: Vec<Write> =
            before.iter().copied().chain(deleted).chain(after.iter().copied()).collect();
        self.write(shared, &writes, |lane| {
            lane.writer(db).delete_ranges(before, &ranges, after, *synced)
        })
    }

    fn open_scan(&self, db: &Db, held: &mut HeldViews, edges: &Edges, of_snapshot: bool) {
        let places = self.keys.places(edges);
        let scan = match held.snapshots.last().filter(|_| of_snapshot) {
            Some(held) => HeldScan::new(held.snapshot.range(edges.clone()), &held.state, places),
            None => HeldScan::new(db.range(edges.clone()), &self.state, places),
        };
        held.scans.push(scan);
    }

    fn open_reader(&self, db: &Db, held: &mut HeldViews, place: KeyIndex) -> Checked<()> {
        let number = self.state.0[usize::from(place)];
        let opened = HeldReader::open(db, self.keys.get(place), number)?;
        let opened = opened.map_err(|error| format!("get_reader: {error}"))?;
        opened.into_iter().for_each(|reader| held.readers.push(reader));
        Ok(())
    }

    fn move_scan(
        &self,
        shared: &Shared,
        held: &mut HeldViews,
        (which, back, times): (usize, bool, usize),
    ) -> Checked<()> {
        let Some(place) = held.scans.place(which) else { return Ok(()) };
        for _ in 0..times {
            let moved = held.scans[place].step(back, &self.keys)?;
            moved.map_err(|error| format!("a scan that was held open: {error}"))?;
            shared.counts.answers.add(1);
        }
        Ok(())
    }

    /// Returns how often the keys at these places were written.
    pub(super) fn written(&self, places: std::ops::Range<usize>) -> u64 {
        self.written[places].iter().sum()
    }
}

fn read_on(shared: &Shared, held: &mut HeldViews, which: usize, seed: u64) -> Checked<()> {
    let Some(place) = held.readers.place(which) else { return Ok(()) };
    let read = held.readers[place].read_parts(&mut Rng::new(seed))?;
    shared.counts.answers.add(1);
    read.map_err(|error| format!("a reader that was held open: {error}"))
}
