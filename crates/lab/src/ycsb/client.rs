//! One client: a thread that draws operations, does them one by one, and times and checks each.
//! ```text
//! seed, client --> kinds and scan lengths    place, value --> due --[ store ]--> checked, untimed
//!             \--> places
//! ```
//! Invariant: kinds, lengths and draws of places depend on seed and client alone. In D and E, as in
//! YCSB, the key of a draw also depends on how many inserts are complete. With one client it
//! depends on the seed alone.

use std::time::Instant;

use crate::bench::pace::Pace;
use crate::compare::Peer;
use crate::error::Result;
use crate::keys::rng::{Rng, scramble};
use crate::ycsb::latency::Latencies;
use crate::ycsb::records::{Records, number, set_stamp};
use crate::ycsb::request::Chooser;
use crate::ycsb::workload::{Operation, Workload};

/// One scan of a client in this many is compared with all keys that the store was filled with.
const SCANS_PER_CHECK: u64 = 16;

/// A store, and what is known about it.
#[derive(Clone, Copy)]
pub(crate) struct Target<'a> {
    pub(crate) peer: &'a dyn Peer,
    pub(crate) records: &'a Records,
    /// The keys of the filling as numbers, ascending. Empty if no operation scans.
    pub(crate) sorted: &'a [u64],
}

/// The end of a client's turn.
#[derive(Clone, Copy)]
pub(crate) enum Until {
    /// After this many operations.
    Operations(u64),
    /// At this moment, or earlier if nothing more is due before it.
    Moment(Instant),
}

/// A drawn operation.
struct Request {
    operation: Operation,
    place: u64,
    key: [u8; 8],
    /// The most entries of a scan.
    length: usize,
}

/// A client with its draws and results on one store.
pub(crate) struct Client {
    workload: Workload,
    chooser: Chooser,
    draws: Rng,
    places: Rng,
    value: Vec<u8>,
    /// The keys of the last scan.
    scanned: Vec<u64>,
    scans: u64,
    pub(crate) latencies: Latencies,
    pub(crate) wrong: u64,
}

impl Client {
    pub(crate) fn new(workload: Workload, chooser: Chooser, seed: u64, client: usize) -> Self {
        let seed = scramble(seed ^ scramble(client as u64)) ^ scramble(workload as u64);
        Client {
            workload,
            chooser,
            draws: Rng::new(seed),
            places: Rng::new(scramble(seed)),
            value: Vec::new(),
            scanned: Vec::new(),
            scans: 0,
            latencies: Latencies::default(),
            wrong: 0,
        }
    }

    /// Does operations until the turn is over. Returns the moment of the last answer.
    pub(crate) fn run(
        &mut self,
        target: Target<'_>,
        mut pace: Pace,
        until: Until,
    ) -> Result<Instant> {
        let mut done = 0;
        let is_over = |pace: &Pace, done| match until {
            Until::Operations(count) => done == count,
            Until::Moment(end) => pace.is_over(end),
        };
        while !is_over(&pace, done) {
            let request = self.draw(target.records);
            let start = pace.wait();
            let right = self.perform(target, &request)?;
            self.latencies.record(request.operation, start.elapsed());
            let right = right && self.is_whole(target, &request);
            self.wrong += u64::from(!right);
            done += 1;
        }
        Ok(Instant::now())
    }

    /// Draws the next request, and the value that it may write.
    fn draw(&mut self, records: &Records) -> Request {
        let operation = self.workload.draw(&mut self.draws);
        let length = match operation {
            Operation::Scan => 1 + self.draws.place(Workload::SCAN_MAX),
            _ => 0,
        };
        let place = match operation {
            Operation::Insert => records.next_place(),
            _ => self.chooser.choose(records.there(), &mut self.places),
        };
        if !matches!(operation, Operation::Read | Operation::Scan) {
            records.fill(&mut self.value, place);
        }
        Request { operation, place, key: records.key(place), length }
    }

    /// Performs a request. Returns whether the answer is right as far as the answer alone shows.
    fn perform(&mut self, target: Target<'_>, request: &Request) -> Result<bool> {
        match request.operation {
            Operation::Read => read(target, request),
            Operation::Scan => self.scan(target, request),
            Operation::Update => self.write(target, request).map(|()| true),
            Operation::Insert => {
                self.write(target, request)?;
                target.records.inserted(request.place);
                Ok(true)
            }
            Operation::ReadModifyWrite => {
                let right = read(target, request)?;
                self.write(target, request)?;
                Ok(right)
            }
        }
    }

    fn write(&mut self, target: Target<'_>, request: &Request) -> Result<()> {
        let stamps = &target.records.stamps;
        let stamp = stamps.begin(request.place);
        set_stamp(&mut self.value, stamp);
        target.peer.put(&request.key, &self.value)?;
        stamps.end(request.place, stamp);
        Ok(())
    }

    fn scan(&mut self, target: Target<'_>, request: &Request) -> Result<bool> {
        self.scanned.clear();
        let (keys, mut right) = (&mut self.scanned, true);
        let mut see = |key: &[u8], value: &[u8]| {
            right &= target.records.look(key, value).is_some();
            keys.push(number(key));
        };
        let count = target.peer.scan(&request.key, None, request.length, &mut see)?;
        Ok(right && count == self.scanned.len())
    }

    /// Whether a scan is complete and in order, from its first key on. Since it takes long, only
    /// some scans are compared with all keys of the filling.
    fn is_whole(&mut self, target: Target<'_>, request: &Request) -> bool {
        if request.operation != Operation::Scan {
            return true;
        }
        self.scans += 1;
        let (found, sorted) = (&self.scanned[..], target.sorted);
        let first = number(&request.key);
        let begins = found.first() == Some(&first) && found.len() <= request.length;
        let is_full = found.len() == request.length;
        // Keys are never removed, so there were as many keys behind this one at that time, too.
        let must_be_full =
            sorted.len().checked_sub(Workload::SCAN_MAX).is_some_and(|last| first <= sorted[last]);
        begins
            && found.is_sorted_by(|one, next| one < next)
            && (is_full || !must_be_full)
            && (self.scans % SCANS_PER_CHECK != 1 || has_all(found, sorted, is_full))
    }
}

/// Whether the key has a value of its own that is not too old.
fn read(target: Target<'_>, request: &Request) -> Result<bool> {
    let records = target.records;
    let floor = records.stamps.floor(request.place);
    let mut right = false;
    let mut see = |value: &[u8]| {
        right = records.look(&request.key, value).is_some_and(|(_, stamp)| stamp >= floor);
    };
    Ok(target.peer.get(&request.key, &mut see)? && right)
}

/// Whether `found` has all of the sorted keys from its first on: up to its last if it is full,
/// otherwise to the end.
fn has_all(found: &[u64], sorted: &[u64], is_full: bool) -> bool {
    let Some(first) = found.first() else { return sorted.is_empty() };
    let last = found.last().filter(|_| is_full).unwrap_or(&u64::MAX);
    let start = sorted.partition_point(|key| key < first);
    let mut rest = found.iter();
    sorted[start..].iter().take_while(|key| *key <= last).all(|key| rest.any(|found| found == key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scan_has_every_sorted_key_or_not() {
        let sorted = [10, 20, 30, 40];
        assert!(has_all(&[20, 25, 30], &sorted, true), "one more was inserted");
        assert!(!has_all(&[20, 25, 40], &sorted, true), "30 is missing");
        assert!(has_all(&[30, 40], &sorted, false) && has_all(&[30, 40, 45], &sorted, false));
        assert!(!has_all(&[30], &sorted, false), "40 is missing");
        assert!(!has_all(&[], &sorted, false));
    }
}
