//! The exact checks of a lane, on its own keys.
//! ```text
//! get, multi_get, queue, scan, count, snapshot    against the lane's state; others' keys skipped
//! ```
//! Invariant: every answer is right, and there are no errors.

use std::ops::Bound;

use trommel::{Answer, Db};

use super::lane_thread::{HeldViews, LaneThread};
use super::shared::Shared;
use crate::keys::rng::Rng;
use crate::stress::check::{GETS_MAX, check_bounds, check_empty, check_value, read_scan};
use crate::stress::held::entries_of;
use crate::stress::keys::{Edges, KeyIndex};
use crate::stress::model::is_streamed;
use crate::stress::operation::{StressOperation, StressStep, range_text, way};
use crate::stress::values::{keys_alone, read_through};
use crate::stress::world::Checked;

/// The most touched keys that are looked up.
const TOUCHED_MAX: usize = 4;
/// The most keys of one multi-get.
const TOGETHER_MAX: usize = 24;
/// The most entries of a scan that a check reads.
const SCAN_MAX: usize = 8;
/// The steps between two comparisons of all keys of the lane.
const FULL_EVERY: u32 = 512;

fn failed(what: &'static str) -> impl Fn(trommel::Error) -> String {
    move |error| format!("{what}: {error}")
}

impl LaneThread {
    /// Makes the checks after a step.
    pub(super) fn check_after(&self, db: &Db, shared: &Shared, step: &StressStep) -> Checked<()> {
        let mut rng = Rng::new(u64::from(step.number));
        if let StressOperation::Write { writes, .. } | StressOperation::Ingest(writes) =
            &step.operation
        {
            for write in writes.iter().take(TOUCHED_MAX) {
                self.check_get(db, shared, write.place)?;
            }
        }
        if let StressOperation::DeleteRange(deletion) = &step.operation {
            let edges = (Bound::Included(deletion.from.clone()), Bound::Unbounded);
            self.check_some(db, shared, &edges, rng.below(2) == 0, SCAN_MAX)?;
        }
        self.check_get(db, shared, self.keys.draw(&mut rng))?;
        match rng.below(16) {
            0 => {
                let edges = self.keys.draw_edges(&mut rng);
                self.check_some(db, shared, &edges, rng.below(2) == 0, SCAN_MAX)?;
            }
            1 => {
                let edges = self.keys.draw_edges(&mut rng);
                self.check_count(db, shared, &edges)?;
            }
            2 => self.check_together(db, shared, &mut rng)?,
            3 => self.check_queue(db, shared, &mut rng)?,
            _ => {}
        }
        if step.number.is_multiple_of(FULL_EVERY) {
            self.check_all(db, shared, &mut rng)?;
        }
        Ok(())
    }

    fn number(&self, place: KeyIndex) -> u32 {
        self.state.0[usize::from(place)]
    }

    pub(super) fn check_get(&self, db: &Db, shared: &Shared, place: KeyIndex) -> Checked<()> {
        let key = self.keys.get(place);
        let found = db.get(key).map_err(failed("get"))?;
        shared.counts.answers.add(1);
        let number = self.number(place);
        check_value(key, found, number)?;
        if is_streamed(number) {
            read_through(db, key, number)?.map_err(failed("get_reader"))?;
        }
        Ok(())
    }

    fn check_together(&self, db: &Db, shared: &Shared, rng: &mut Rng) -> Checked<()> {
        let places = self.draw_some(rng);
        let keys: Vec<&[u8]> = places.iter().map(|&place| self.keys.get(place)).collect();
        for (place, found) in places.iter().zip(db.multi_get(&keys)) {
            let found = found.map_err(failed("multi_get"))?;
            check_value(self.keys.get(*place), found, self.number(*place))?;
        }
        shared.counts.answers.add(places.len() as u64);
        Ok(())
    }

    /// Checks several gets in flight, and a short range among them.
    fn check_queue(&self, db: &Db, shared: &Shared, rng: &mut Rng) -> Checked<()> {
        let (places, edges) = (self.draw_some(rng), self.keys.draw_edges(rng));
        let mut queue = db.queue(1 + rng.place(TOGETHER_MAX));
        for &place in &places {
            queue.submit_get(self.keys.get(place), place.into());
        }
        queue.submit_range(edges.clone(), usize::MAX, u64::MAX);
        let mut answers = 0;
        while let Some(answered) = queue.wait() {
            answers += 1;
            match answered.answer {
                Answer::Value(found) => {
                    let (place, found) =
                        (answered.tag as KeyIndex, found.map_err(failed("queue"))?);
                    check_value(self.keys.get(place), found, self.number(place))?;
                }
                Answer::Entries(entries) => {
                    let entries = entries.map_err(failed("queue"))?;
                    let own = entries.iter().filter(|(key, _)| !self.keys.is_foreign(key)).count();
                    let expected = entries_of(&self.state, self.keys.places(&edges)).count();
                    if own != expected {
                        let range = range_text(&edges);
                        return Err(format!("queue: {own} keys in {range}, and not {expected}"));
                    }
                }
            }
        }
        shared.counts.answers.add(answers);
        match answers == places.len() as u64 + 1 {
            true => Ok(()),
            false => Err(format!("queue: {answers} answers to {} questions", places.len() + 1)),
        }
    }

    fn draw_some(&self, rng: &mut Rng) -> Vec<KeyIndex> {
        let count = 1 + rng.place(TOGETHER_MAX);
        (0..count).map(|_| self.keys.draw(rng)).collect()
    }

    pub(super) fn check_scan(
        &self,
        db: &Db,
        shared: &Shared,
        edges: &Edges,
        back: bool,
    ) -> Checked<()> {
        self.check_some(db, shared, edges, back, usize::MAX)?;
        self.check_count(db, shared, edges)
    }

    pub(super) fn check_some(
        &self,
        db: &Db,
        shared: &Shared,
        edges: &Edges,
        back: bool,
        most: usize,
    ) -> Checked<()> {
        let (scan, places) = (db.range(edges.clone()), self.keys.places(edges));
        let read = read_scan(scan, &self.state, places, back, &self.keys, most);
        let in_range = |wrong| format!("scan {}{}: {wrong}", range_text(edges), way(back));
        shared.counts.answers.add(1);
        read.map_err(in_range)?.map_err(failed("scan"))
    }

    pub(super) fn check_count(&self, db: &Db, shared: &Shared, edges: &Edges) -> Checked<()> {
        let places = self.keys.places(edges);
        let keys = entries_of(&self.state, places.clone()).count() as u64;
        if !db.may_contain_range(edges.clone()).map_err(failed("may_contain_range"))? {
            check_empty(keys, edges)?;
        }
        let bounds = db.approximate_count(edges.clone()).map_err(failed("approximate_count"))?;
        keys_alone(db, edges, &self.keys, &self.state)?.map_err(failed("keys alone"))?;
        // How often keys of other lanes were written is unknown.
        let is_own = shared.shares.is_whole(self.index, &places);
        let written = if is_own { self.written(places) } else { u64::MAX };
        shared.counts.answers.add(2);
        check_bounds(&bounds, keys, written, edges)
    }

    pub(super) fn check_snapshot(
        &self,
        shared: &Shared,
        held: &HeldViews,
        which: usize,
        (place, edges, back): (KeyIndex, &Edges, bool),
    ) -> Checked<()> {
        let Some(at) = held.snapshots.place(which) else { return Ok(()) };
        let held = &held.snapshots[at];
        let in_snapshot = |wrong| format!("snapshot: {wrong}");
        let key = self.keys.get(place);
        let found = held.snapshot.get(key).map_err(failed("get in a snapshot"))?;
        check_value(key, found, held.state.0[usize::from(place)]).map_err(in_snapshot)?;
        let (scan, places) = (held.snapshot.range(edges.clone()), self.keys.places(edges));
        let read = read_scan(scan, &held.state, places, back, &self.keys, usize::MAX);
        shared.counts.answers.add(2);
        read.map_err(in_snapshot)?.map_err(failed("scan of a snapshot"))
    }

    /// Compares every key by scans in both directions, and some keys by gets.
    pub(super) fn check_all(&self, db: &Db, shared: &Shared, rng: &mut Rng) -> Checked<()> {
        let all = (Bound::Unbounded, Bound::Unbounded);
        self.check_scan(db, shared, &all, false)?;
        self.check_some(db, shared, &all, true, usize::MAX)?;
        let every = self.keys.len() / GETS_MAX + 1;
        let mut places = (rng.place(every)..self.keys.len()).step_by(every);
        places.try_for_each(|place| self.check_get(db, shared, place as KeyIndex))
    }
}
