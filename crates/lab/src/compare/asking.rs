//! The questions of a measurement, put to a peer.

use std::hint::black_box;
use std::time::Instant;

use crate::bench::rounds::p99;
use crate::compare::peer::Peer;
use crate::error::Result;
use crate::keys::key_list::SortedKeys;
use crate::keys::values::fill_value;
use crate::questions::queries::{Kind, Queries};
use crate::questions::unanswered::PrefixEnd;

/// Questions of one kind. Their ranges are half-open, as peers expect them.
pub(crate) struct PeerQueries {
    pub(crate) queries: Queries,
    /// For closed ranges only: the first key behind each range. None: there is no such key.
    ends: Vec<Option<Vec<u8>>>,
}

impl PeerQueries {
    pub(crate) fn new(queries: Queries, stored: &SortedKeys) -> Self {
        let prefix_end = PrefixEnd::of(stored);
        let first_behind = |upper: &[u8]| match (queries.kind(), prefix_end) {
            (Kind::Unanswered(ask), _) if ask.has_prefixes() => prefix_end.behind(upper),
            (_, PrefixEnd::LastNumber) => Some(next_number(upper)),
            (_, PrefixEnd::Above) => Some([upper, &[0]].concat()),
        };
        let uppers = (0..queries.len()).filter_map(|place| queries.upper(place));
        let ends = uppers.map(first_behind).collect();
        PeerQueries { queries, ends }
    }

    /// Returns the end of a range. None: it is unbounded.
    fn end(&self, place: usize) -> Option<&[u8]> {
        self.ends.get(place)?.as_deref()
    }

    /// Asks one question. Returns the number of keys in the answer.
    fn ask(
        &self,
        peer: &dyn Peer,
        place: usize,
        seen: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<usize> {
        let (lower, end) = (self.queries.lower(place), self.end(place));
        if self.queries.kind().is_point() {
            return Ok(usize::from(peer.get(lower, &mut |value| seen(lower, value))?));
        }
        let limit = self.queries.kind().seek_count().unwrap_or(1);
        peer.scan(lower, end, limit, seen)
    }

    /// Asks every question once.
    pub(crate) fn ask_all(&self, peer: &dyn Peer) -> Result<u64> {
        for place in 0..self.queries.len() {
            self.ask_one(peer, place)?;
        }
        Ok(self.queries.len() as u64)
    }

    /// Asks one question, and reads bytes of the answer like a caller.
    fn ask_one(&self, peer: &dyn Peer, place: usize) -> Result<()> {
        let mut sum = 0usize;
        let mut look = |key: &[u8], value: &[u8]| {
            let [first, last] = [key.first(), value.last()].map(|byte| byte.map_or(0, |b| *b));
            sum = sum.wrapping_add(usize::from(first) ^ usize::from(last));
        };
        sum += self.ask(peer, place, &mut look)?;
        black_box(sum);
        Ok(())
    }

    /// Returns the 99th percentile of the times of single questions, in nanoseconds.
    pub(crate) fn time_each(&self, peer: &dyn Peer) -> Result<f64> {
        let mut times = Vec::with_capacity(self.queries.len());
        for place in 0..self.queries.len() {
            let start = Instant::now();
            self.ask_one(peer, place)?;
            times.push(start.elapsed().as_nanos() as u64);
        }
        Ok(p99(&mut times))
    }

    /// Asks every question, and counts the answers that differ from the sorted keys.
    pub(crate) fn count_wrong(
        &self,
        peer: &dyn Peer,
        keys: &SortedKeys,
        value_bytes: usize,
    ) -> Result<u64> {
        let mut wrong = 0;
        for place in 0..self.queries.len() {
            let places = self.expected(place, keys);
            let expected = places.len();
            let mut check = Check { keys, places, value: Vec::new(), right: true };
            let count =
                self.ask(peer, place, &mut |key, value| check.see(key, value, value_bytes))?;
            wrong += u64::from(!check.right || !check.places.is_empty() || count != expected);
        }
        Ok(wrong)
    }

    /// Returns the places of the keys in the right answer.
    fn expected(&self, place: usize, keys: &SortedKeys) -> std::ops::Range<usize> {
        if matches!(self.queries.kind(), Kind::Unanswered(_)) {
            return 0..0;
        }
        let lower = self.queries.lower(place);
        let first = keys.place_from(lower);
        if self.queries.kind().is_point() {
            return first..first + usize::from(keys.holds(lower));
        }
        let limit = self.queries.kind().seek_count().unwrap_or(1);
        let end = self.end(place).map_or(keys.len(), |end| keys.place_from(end));
        first..end.min(first + limit).max(first)
    }
}

/// Returns the successor of a key. Of keys of eight bytes it is the next number, so no key lies
/// between.
fn next_number(key: &[u8]) -> Vec<u8> {
    let number = <[u8; 8]>::try_from(key).ok().map(u64::from_be_bytes);
    match number.and_then(|number| number.checked_add(1)) {
        Some(next) => next.to_be_bytes().to_vec(),
        None => [key, &[0]].concat(),
    }
}

/// The comparison of an answer, entry by entry.
struct Check<'a> {
    keys: &'a SortedKeys,
    places: std::ops::Range<usize>,
    value: Vec<u8>,
    right: bool,
}

impl Check<'_> {
    fn see(&mut self, key: &[u8], value: &[u8], value_bytes: usize) {
        fill_value(&mut self.value, key, value_bytes);
        let is_next = self.places.next().is_some_and(|place| self.keys.get(place) == key);
        self.right &= is_next && value == self.value;
    }
}

/// Scans the store and counts the entries that differ from what was written.
pub(crate) fn count_wrong_entries(
    peer: &dyn Peer,
    keys: &SortedKeys,
    value_bytes: usize,
) -> Result<u64> {
    let (mut expected, mut expected_value, mut wrong) = (keys.iter(), Vec::new(), 0);
    let mut see = |key: &[u8], value: &[u8]| {
        fill_value(&mut expected_value, key, value_bytes);
        let is_right = expected.next() == Some(key) && expected_value == value;
        wrong += u64::from(!is_right);
    };
    let count = peer.scan(&[], None, usize::MAX, &mut see)?;
    Ok(wrong + keys.len().abs_diff(count) as u64)
}
