//! A reader thread. It reads the keys of all lanes, and checks each answer against the ledger while
//! writers go on.
//! ```text
//! floors before -> read -> what was begun after    one of the writes between; never an older one
//! snapshot -> all keys of a lane                   as after whole groups; always the same again
//! ```
//! Invariant: once a reader has seen a write, no later read may miss it.

use std::collections::HashMap;

use trommel::{Answer, Db, KeyValue, Snapshot, Value};

use super::cost::first_step;
use super::ledger::{Followed, Spot};
use super::posts::{Doing, Post};
use super::shared::{Sabotage, Shared};
use crate::keys::rng::Rng;
use crate::stress::keys::KeyIndex;
use crate::stress::model::{number_of, shown_at};
use crate::stress::operation::{key_text, range_text, way};
use crate::stress::world::Checked;

/// The most keys of one multi-get.
const TOGETHER_MAX: usize = 32;
/// The most keys in the range of a short scan.
const PASSED_MAX: usize = 64;
/// The most entries that it reads.
const SCAN_MAX: usize = 8;
/// The most snapshots that are held.
const HELD_MAX: usize = 4;

/// A reader during one opening of the store.
pub(super) struct Reader<'r> {
    db: &'r Db,
    shared: &'r Shared,
    rng: Rng,
    followed: Vec<Followed>,
    held: Vec<HeldLane>,
}

/// A snapshot, and what a lane's keys were when they were first read in it.
struct HeldLane {
    snapshot: Snapshot,
    lane: usize,
    found: Vec<u32>,
}

impl<'r> Reader<'r> {
    pub(super) fn new(db: &'r Db, shared: &'r Shared, rng: Rng) -> Self {
        let lanes = 0..shared.shares.lanes.len();
        let followed = lanes.map(|lane| shared.ledger.follow(lane)).collect();
        Reader { db, shared, rng, followed, held: Vec::new() }
    }

    /// Reads until the round is over.
    pub(super) fn work(&mut self, post: &Post) -> Checked<()> {
        while !self.shared.is_over() {
            let (_gate, tick) = self.shared.clock.hold();
            match self.rng.below(64) {
                0..2 => {
                    post.set(Doing::Said("reads a lane in a new snapshot"));
                    self.read_moment(tick)?;
                }
                2 => {
                    post.set(Doing::Said("reads a snapshot that was held"));
                    self.read_held(tick)?;
                }
                3..24 => {
                    post.set(Doing::Said("scans"));
                    self.scan(tick)?;
                }
                24..32 => {
                    post.set(Doing::Said("gets several keys by a queue"));
                    self.get_queued(tick)?;
                }
                32..36 => {
                    post.set(Doing::Said("gets several keys at once"));
                    self.get_together(tick)?;
                }
                _ => {
                    post.set(Doing::Said("gets"));
                    self.get(tick)?;
                }
            }
        }
        post.set(Doing::Rest);
        Ok(())
    }

    fn key(&self, spot: Spot) -> &'r [u8] {
        self.shared.shares.lanes[usize::from(spot.lane)].get(spot.place)
    }

    fn draw(&mut self, most: usize) -> Vec<Spot> {
        let spots = &self.shared.shares.spots;
        let count = 1 + self.rng.place(most);
        let mut drawn: Vec<Spot> = (0..count).map(|_| spots[self.rng.place(spots.len())]).collect();
        drawn.sort_unstable();
        drawn.dedup();
        drawn
    }

    fn get(&mut self, tick: u32) -> Checked<()> {
        let spot = self.draw(1)[0];
        let before = self.shared.ledger.before(vec![spot]);
        let old = self.held.first().filter(|_| self.shared.lies(Sabotage::OldAnswer));
        let found = match old {
            Some(held) => held.snapshot.get(self.key(spot)),
            None => self.db.get(self.key(spot)),
        };
        let number = number_found(self.key(spot), found)?;
        self.shared.counts.answers.add(1);
        self.shared.ledger.check(&before, |_| Some(number), tick)
    }

    fn get_together(&mut self, tick: u32) -> Checked<()> {
        let spots = self.draw(TOGETHER_MAX);
        let keys: Vec<&[u8]> = spots.iter().map(|&spot| self.key(spot)).collect();
        let before = self.shared.ledger.before(spots.clone());
        let mut numbers = HashMap::new();
        for (spot, found) in spots.iter().zip(self.db.multi_get(&keys)) {
            numbers.insert(*spot, number_found(self.key(*spot), found)?);
        }
        self.shared.counts.answers.add(numbers.len() as u64);
        self.shared.ledger.check(&before, |spot| numbers.get(&spot).copied(), tick)
    }

    fn get_queued(&mut self, tick: u32) -> Checked<()> {
        let spots = self.draw(TOGETHER_MAX);
        let before = self.shared.ledger.before(spots.clone());
        let mut queue = self.db.queue(1 + self.rng.place(TOGETHER_MAX));
        for (tag, &spot) in spots.iter().enumerate() {
            queue.submit_get(self.key(spot), tag as u64);
        }
        let mut numbers = HashMap::new();
        while let Some(answered) = queue.wait() {
            let Answer::Value(found) = answered.answer else {
                return Err("a get was answered a range".into());
            };
            let spot = spots[answered.tag as usize];
            numbers.insert(spot, number_found(self.key(spot), found)?);
        }
        if numbers.len() != spots.len() {
            return Err(format!("queue: {} answers to {} gets", numbers.len(), spots.len()));
        }
        self.shared.counts.answers.add(numbers.len() as u64);
        self.shared.ledger.check(&before, |spot| numbers.get(&spot).copied(), tick)
    }

    /// Reads the first entries of a range, from either end.
    fn scan(&mut self, tick: u32) -> Checked<()> {
        let (shared, back) = (self.shared, self.rng.below(2) == 0);
        let edges = shared.shares.all.draw_edges(&mut self.rng);
        let places = shared.shares.all.places(&edges);
        let near = if back {
            places.end.saturating_sub(PASSED_MAX).max(places.start)..places.end
        } else {
            places.start..(places.start + PASSED_MAX).min(places.end)
        };
        let before = shared.ledger.before(shared.shares.spots[near.clone()].to_vec());
        let (mut scan, mut next) = first_step(shared, self.db, &edges, back)?;
        // Keys between two entries have no value; keys behind the last one are unknown.
        let (mut numbers, mut unread) = (HashMap::new(), near.clone());
        for _ in 0..SCAN_MAX {
            let Some(entry) = next.take() else {
                unread = near.end..near.end;
                break;
            };
            let place = self.place_of(&entry)?;
            let is_next = if back { place < unread.end } else { place >= unread.start };
            if !is_next || !places.contains(&place) {
                let (key, range) = (key_text(&entry.0), range_text(&edges));
                return Err(format!("scan {range}{}: {key} is out of order", way(back)));
            }
            numbers.insert(place, number_in(&entry)?);
            match back {
                true => unread.end = place,
                false => unread.start = place + 1,
            }
            if unread.is_empty() {
                break;
            }
            next = if back { scan.next_back() } else { scan.next() }.transpose().map_err(failed)?;
        }
        let known = near.filter(|place| !unread.contains(place));
        let number = |place: usize| numbers.get(&place).copied().unwrap_or(0);
        let numbers: HashMap<Spot, u32> =
            known.map(|place| (shared.shares.spots[place], number(place))).collect();
        shared.counts.answers.add(1);
        shared.ledger.check(&before, |spot| numbers.get(&spot).copied(), tick)
    }

    fn place_of(&self, (key, _): &KeyValue) -> Checked<usize> {
        let place = self.shared.shares.all.place_of(key).map(usize::from);
        place.ok_or_else(|| format!("{} was never written", key_text(key)))
    }

    /// Reads all keys of a lane at one moment, and holds that snapshot for a while.
    fn read_moment(&mut self, tick: u32) -> Checked<()> {
        let (shared, lane) = (self.shared, self.rng.place(self.followed.len()));
        let least = shared.ledger.done()[lane];
        let snapshot = self.db.snapshot();
        let most = shared.ledger.begun()[lane];
        let found = lane_in(shared, &snapshot, lane, self.rng.below(2) == 0)?;
        let followed = &mut self.followed[lane];
        shared.ledger.check_moment(lane, followed, &found, (least, most), tick)?;
        shared.counts.answers.add(1);
        self.held.push(HeldLane { snapshot, lane, found });
        if self.held.len() > HELD_MAX {
            let which = if shared.lies(Sabotage::OldAnswer) { 1 } else { self.rng.place(HELD_MAX) };
            self.held.remove(which);
        }
        Ok(())
    }

    /// Checks that a held snapshot shows the same again, except for expired keys.
    fn read_held(&mut self, tick: u32) -> Checked<()> {
        if self.held.is_empty() {
            return Ok(());
        }
        let back = self.rng.below(2) == 0;
        let HeldLane { snapshot, lane, found } = &self.held[self.rng.place(self.held.len())];
        let again = lane_in(self.shared, snapshot, *lane, back)?;
        self.shared.counts.answers.add(1);
        let same = |(first, now): (&u32, &u32)| shown_at(*first, tick) == *now;
        match found.iter().zip(&again).position(|pair| !same(pair)) {
            None => Ok(()),
            Some(place) => Err(format!(
                "a snapshot has changed: {} of lane {lane} had #{}, and has #{}",
                key_text(self.shared.shares.lanes[*lane].get(place as KeyIndex)),
                found[place],
                again[place],
            )),
        }
    }
}

fn failed(error: trommel::Error) -> String {
    format!("scan: {error}")
}

fn number_found(key: &[u8], found: trommel::Result<Option<Value>>) -> Checked<u32> {
    let found = found.map_err(|error| format!("get {}: {error}", key_text(key)))?;
    found.map_or(Ok(0), |value| number_in(&(key.to_vec(), value)))
}

/// Returns the number of an entry's value.
pub(super) fn number_in((key, value): &KeyValue) -> Checked<u32> {
    number_of(value).ok_or_else(|| {
        format!("{} has a value that was never written: {}", key_text(key), key_text(value))
    })
}

/// Returns the numbers of a lane's keys in a snapshot.
fn lane_in(shared: &Shared, snapshot: &Snapshot, lane: usize, back: bool) -> Checked<Vec<u32>> {
    let keys = &shared.shares.lanes[lane];
    let mut numbers = vec![0; keys.len()];
    let mut scan = snapshot.range(..);
    loop {
        let entry = if back { scan.next_back() } else { scan.next() };
        let Some(entry) = entry.transpose().map_err(failed)? else { return Ok(numbers) };
        if let Some(place) = keys.place_of(&entry.0) {
            numbers[usize::from(place)] = number_in(&entry)?;
        }
    }
}
