//! Compares the store with the model.
//! ```text
//! after each step   the touched keys, some others, at times a range      now and then: everything
//! ```
//! Invariant: a check changes nothing. It may meet a failure of the disk, and then an error is a
//! valid answer.

use std::ops::{Bound, Range};

use trommel::filters::CountBounds;
use trommel::{Answer, Answered, Db, Scan, Value};

use super::held::{compare, entries_of, next_of, value_text};
use super::keys::{Edges, KeyIndex, Keys};
use super::model::{State, is_streamed, number_of, value_of};
use super::operation::{StressOperation, StressStep, key_text, range_text, way};
use super::ranges::RangeDeletion;
use super::values::{keys_alone, read_through};
use super::world::{Checked, World};
use crate::keys::rng::Rng;

/// The steps between two comparisons of everything.
const FULL_EVERY: u32 = 256;
/// The most touched keys that are looked up.
const TOUCHED_MAX: usize = 4;
/// The most keys that are looked up when everything is compared.
pub(crate) const GETS_MAX: usize = 500;
/// The most entries of a scan that a check reads.
const SCAN_MAX: usize = 8;

/// Returns the state of a store that was just opened.
pub(crate) fn full_state(db: &Db, keys: &Keys) -> Checked<State> {
    let mut state = State(vec![0; keys.len()]);
    for entry in db.range(..) {
        let (key, value) = entry.map_err(|error| format!("scan after opening: {error}"))?;
        let place = keys.place_of(&key);
        let place = place.ok_or_else(|| format!("{} was never written", key_text(&key)))?;
        let number = number_of(&value).ok_or_else(|| {
            format!("{} has a value that was never written: {}", key_text(&key), key_text(&value))
        })?;
        state.0[usize::from(place)] = number;
    }
    Ok(state)
}

impl World<'_> {
    /// Makes the checks after a step.
    pub(crate) fn check_after(&mut self, step: &StressStep) -> Checked<()> {
        let mut rng = Rng::new(u64::from(step.number));
        if let StressOperation::Write { writes, .. } | StressOperation::Ingest(writes) =
            &step.operation
        {
            for write in writes.iter().take(TOUCHED_MAX) {
                self.check_get(write.place)?;
            }
        }
        if let StressOperation::DeleteRange(deletion) = &step.operation {
            self.check_deleted(deletion, rng.below(2) == 0)?;
        }
        for _ in 0..2 {
            let place = rng.place(self.keys.len()) as KeyIndex;
            self.check_get(place)?;
        }
        match rng.below(12) {
            0..2 => {
                let edges = self.keys.draw_edges(&mut rng);
                self.check_some(&edges, rng.below(2) == 0, SCAN_MAX)?;
            }
            2 => {
                let edges = self.keys.draw_edges(&mut rng);
                self.check_count(&edges)?;
            }
            _ => {}
        }
        if step.number.is_multiple_of(FULL_EVERY)
            || matches!(step.operation, StressOperation::Reopen(_))
        {
            self.check_all(step.number as usize)?;
        }
        Ok(())
    }

    /// Checks the first and the last keys of a deleted range, and scans over it and beyond.
    fn check_deleted(&mut self, deletion: &RangeDeletion, back: bool) -> Checked<()> {
        let places = deletion.places(self.keys);
        let touched = deletion.before.iter().chain(&deletion.after).map(|write| write.place);
        let ends = [places.start, places.end.saturating_sub(1), places.end];
        let ends = ends.into_iter().filter(|&place| place < self.keys.len());
        touched.chain(ends.map(|place| place as KeyIndex)).try_for_each(|p| self.check_get(p))?;
        let edges = match back {
            false => (Bound::Included(deletion.from.clone()), Bound::Unbounded),
            true => (Bound::Unbounded, Bound::Excluded(deletion.to.clone())),
        };
        self.check_some(&edges, back, SCAN_MAX)?;
        self.check_count(&edges)
    }

    pub(crate) fn check_get(&mut self, place: KeyIndex) -> Checked<()> {
        let could_fail = self.could_fail();
        let key = self.keys.get(place);
        let found = self.db().get(key);
        let number = self.model.seen().0[usize::from(place)];
        match self.done.allowed("get", could_fail, found)? {
            Some(found) => check_value(key, found, number)?,
            None => return Ok(()),
        }
        if is_streamed(number) {
            self.check_reader(place, number)?;
        }
        self.check_queue(place)
    }

    fn check_reader(&mut self, place: KeyIndex, number: u32) -> Checked<()> {
        let could_fail = self.could_fail();
        let read = read_through(self.db(), self.keys.get(place), number)?;
        self.done.allowed("get_reader", could_fail, read).map(|_| ())
    }

    /// Checks a key and the one before it, with both gets in flight.
    fn check_queue(&mut self, place: KeyIndex) -> Checked<()> {
        let could_fail = self.could_fail();
        let mut queue = self.db().queue(2);
        for place in [place, place.saturating_sub(1)] {
            queue.submit_get(self.keys.get(place), place.into());
        }
        while let Some(Answered { tag, answer }) = queue.wait() {
            let Answer::Value(found) = answer else {
                return Err("a get was answered a range".into());
            };
            let (key, number) = (self.keys.get(tag as KeyIndex), self.model.seen().0[tag as usize]);
            if let Some(found) = self.done.allowed("queue", could_fail, found)? {
                check_value(key, found, number)?;
            }
        }
        Ok(())
    }

    pub(crate) fn check_scan(&mut self, edges: &Edges, back: bool) -> Checked<()> {
        self.check_some(edges, back, usize::MAX)?;
        self.check_count(edges)
    }

    fn check_some(&mut self, edges: &Edges, back: bool, most: usize) -> Checked<()> {
        let could_fail = self.could_fail();
        let places = self.keys.places(edges);
        let scan = self.db().range(edges.clone());
        let read = read_scan(scan, self.model.seen(), places, back, self.keys, most);
        let read =
            read.map_err(|wrong| format!("scan {}{}: {wrong}", range_text(edges), way(back)))?;
        self.done.allowed("scan", could_fail, read).map(|_| ())
    }

    /// Checks that a range reported as empty has no key. Every key in a range is an entry, and
    /// every entry was written.
    pub(crate) fn check_count(&mut self, edges: &Edges) -> Checked<()> {
        let could_fail = self.could_fail();
        let places = self.keys.places(edges);
        let keys = entries_of(self.model.seen(), places.clone()).count() as u64;
        let written = self.model.written(places);
        let (maybe, bounds) = (
            self.db().may_contain_range(edges.clone()),
            self.db().approximate_count(edges.clone()),
        );
        let maybe = self.done.allowed("may_contain_range", could_fail, maybe)?;
        if maybe == Some(false) {
            check_empty(keys, edges)?;
        }
        let alone = keys_alone(self.db(), edges, self.keys, self.model.seen())?;
        self.done.allowed("keys alone", could_fail, alone)?;
        let Some(bounds) = self.done.allowed("approximate_count", could_fail, bounds)? else {
            return Ok(());
        };
        check_bounds(&bounds, keys, written, edges)
    }

    pub(crate) fn check_snapshot(
        &mut self,
        which: usize,
        place: KeyIndex,
        edges: &Edges,
        back: bool,
    ) -> Checked<()> {
        let Some(at) = self.snapshots.place(which) else { return Ok(()) };
        let could_fail = self.could_fail();
        let held = &self.snapshots[at];
        let (key, number) = (self.keys.get(place), held.state.0[usize::from(place)]);
        let (found, scan) = (held.snapshot.get(key), held.snapshot.range(edges.clone()));
        let places = self.keys.places(edges);
        let read = read_scan(scan, &held.state, places, back, self.keys, usize::MAX);
        let in_snapshot = |wrong| format!("snapshot {which}: {wrong}");
        let read = read.map_err(in_snapshot)?;
        if let Some(found) = self.done.allowed("get in a snapshot", could_fail, found)? {
            check_value(key, found, number).map_err(in_snapshot)?;
        }
        self.done.allowed("scan of a snapshot", could_fail, read).map(|_| ())
    }

    /// Compares everything by scans in both directions, and by single gets. Of many keys, gets take
    /// a sample that differs each time.
    pub(crate) fn check_all(&mut self, turn: usize) -> Checked<()> {
        let all = (Bound::Unbounded, Bound::Unbounded);
        self.check_scan(&all, false)?;
        self.check_scan(&all, true)?;
        let every = self.keys.len() / GETS_MAX + 1;
        let mut places = (turn % every..self.keys.len()).step_by(every);
        places.try_for_each(|place| self.check_get(place as KeyIndex))
    }
}

pub(crate) fn check_value(key: &[u8], found: Option<Value>, number: u32) -> Checked<()> {
    let same = match &found {
        Some(value) => number != 0 && **value == value_of(number),
        None => number == 0,
    };
    if same {
        return Ok(());
    }
    let found = found.map_or_else(|| "nothing".into(), |value| value_text(&value));
    Err(format!("get {}: found {found}, expected #{number} (0: nothing)", key_text(key)))
}

/// Checks that a range reported as empty has no key.
pub(crate) fn check_empty(keys: u64, edges: &Edges) -> Checked<()> {
    match keys {
        0 => Ok(()),
        _ => Err(format!("{} has {keys} keys and is said to be empty", range_text(edges))),
    }
}

/// Checks a count. Its upper bound covers the keys of the range, its lower bound does not exceed
/// the writes to the range, and its estimate lies between.
pub(crate) fn check_bounds(
    bounds: &CountBounds,
    keys: u64,
    written: u64,
    edges: &Edges,
) -> Checked<()> {
    let right = keys <= bounds.most
        && bounds.least <= written
        && (bounds.least..=bounds.most).contains(&bounds.estimate);
    if right {
        return Ok(());
    }
    let range = range_text(edges);
    Err(format!("count of {range}: {bounds:?}, but it has {keys} keys of {written} writes"))
}

/// Reads a bounded number of entries of a scan, and compares them. The inner error is the store's.
pub(crate) fn read_scan(
    scan: Scan,
    state: &State,
    places: Range<usize>,
    back: bool,
    keys: &Keys,
    most: usize,
) -> Checked<trommel::Result<()>> {
    let mut expected = entries_of(state, places);
    let mut scan = scan;
    for _ in 0..most {
        let found = match next_of(&mut scan, back, keys) {
            Ok(found) => found,
            Err(error) => return Ok(Err(error)),
        };
        let expected = if back { expected.next_back() } else { expected.next() };
        compare(found.as_ref(), expected, keys)?;
        if found.is_none() {
            break;
        }
    }
    Ok(Ok(()))
}
