//! The questions that are asked, and how an answer is checked against the sorted keys.
//! ```text
//! point_miss    a key like the stored ones that is not stored
//! point_hit     a stored key
//! point_half    a stored key, or one that is not: as likely
//! empty_range   [left, left + width - 1] without a stored key, left like the stored keys
//! range_hit     a range of that width around a stored key
//! seek          the first key from a key like the stored ones on
//! seek_next_50  the same, and the fifty keys behind it
//! ```
//! Invariant: every question's answer is known from the sorted keys alone.

use trommel::Db;
use trommel_filters::{KeyRange, Query};

use crate::error::{LabError, Result};
use crate::keys::{KeyList, SortedKeys, key_after, key_before};
use crate::keyset::KeySet;
use crate::rng::Rng;
use crate::skew::{Places, Skew};
use crate::tree::fill_value;

/// A kind of question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A key that is not stored.
    PointMiss,
    /// A stored key.
    PointHit,
    /// A stored key or one that is not, as likely.
    PointHalf,
    /// A range without a stored key.
    EmptyRange,
    /// A range around a stored key.
    RangeHit,
    /// The first key from a key on.
    Seek,
    /// The first key from a key on, and the fifty behind it.
    SeekNext50,
}

/// So far behind a stored key, at most, are misses of skewed gets: two to this power.
const MISS_REACH_BITS: u32 = 12;
/// Keys that are read behind the first one.
const NEXT_COUNT: usize = 50;
/// Draws per question before a range width counts as too wide.
const DRAWS_PER_QUERY: usize = 1000;
/// Draws without any miss before looking for some ends.
const DRAWS_IN_VAIN_MAX: usize = 100_000;
/// Draws per question, on average, before looking for more ends.
const DRAWS_PER_QUERY_MEAN: usize = 50;

impl Kind {
    /// Every kind there is.
    pub const ALL: [Kind; 7] = [
        Kind::PointMiss,
        Kind::PointHit,
        Kind::PointHalf,
        Kind::EmptyRange,
        Kind::RangeHit,
        Kind::Seek,
        Kind::SeekNext50,
    ];

    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Kind::PointMiss => "point_miss",
            Kind::PointHit => "point_hit",
            Kind::PointHalf => "point_half",
            Kind::EmptyRange => "empty_range",
            Kind::RangeHit => "range_hit",
            Kind::Seek => "seek",
            Kind::SeekNext50 => "seek_next_50",
        }
    }

    /// Whether it asks for one key.
    pub(crate) fn is_point(self) -> bool {
        matches!(self, Kind::PointMiss | Kind::PointHit | Kind::PointHalf)
    }

    /// The keys that an open seek reads at most; None: the kind is no open seek.
    pub(crate) fn seek_count(self) -> Option<usize> {
        match self {
            Kind::Seek => Some(1),
            Kind::SeekNext50 => Some(1 + NEXT_COUNT),
            _ => None,
        }
    }
}

/// Questions of one kind.
#[derive(Clone, Debug)]
pub struct Queries {
    kind: Kind,
    lowers: KeyList,
    /// Of closed ranges alone.
    uppers: KeyList,
}

impl Queries {
    /// `count` questions. `width`: how many neighbouring keys a range takes in, at least 1. All keys are as likely.
    pub fn draw(
        kind: Kind,
        keys: &KeySet,
        count: usize,
        width: u64,
        rng: &mut Rng,
    ) -> Result<Self> {
        Self::draw_skewed(kind, keys, count, width, Skew::None, rng)
    }

    /// As above; gets are for keys that are spread by `skew`, and if it is some, misses are for keys behind such a key.
    pub fn draw_skewed(
        kind: Kind,
        keys: &KeySet,
        count: usize,
        width: u64,
        skew: Skew,
        rng: &mut Rng,
    ) -> Result<Self> {
        let mut queries = Queries { kind, lowers: KeyList::new(), uppers: KeyList::new() };
        let places = Places::new(skew, keys.stored().len());
        for _ in 0..count {
            match kind {
                Kind::PointMiss | Kind::PointHit | Kind::PointHalf => {
                    let is_stored =
                        kind == Kind::PointHit || (kind == Kind::PointHalf && rng.below(2) == 0);
                    queries.lowers.push(&point(keys, is_stored, skew, &places, rng)?);
                }
                _ => queries.add_range(keys, width.max(1) - 1, rng)?,
            }
        }
        Ok(queries)
    }

    /// At most `count` misses of a width (of width 1: points), drawn as the keys are: fewer, or none, where a
    /// bounded number of draws finds no more.
    pub(crate) fn draw_misses(keys: &KeySet, count: usize, width: u64, rng: &mut Rng) -> Self {
        let reach = width.max(1) - 1;
        let kind = if reach == 0 { Kind::PointMiss } else { Kind::EmptyRange };
        let mut queries = Queries { kind, lowers: KeyList::new(), uppers: KeyList::new() };
        for drawn in 0..count.saturating_mul(DRAWS_PER_QUERY_MEAN) {
            if queries.len() == count || (queries.is_empty() && drawn == DRAWS_IN_VAIN_MAX) {
                break;
            }
            let lower = keys.draw(rng);
            let upper = key_after(&lower, reach);
            if keys.stored().first_in(&lower, &upper).is_none() {
                queries.lowers.push(&lower);
                if kind == Kind::EmptyRange {
                    queries.uppers.push(&upper);
                }
            }
        }
        queries
    }

    fn add_range(&mut self, keys: &KeySet, reach: u64, rng: &mut Rng) -> Result<()> {
        let stored = keys.stored();
        match self.kind {
            Kind::EmptyRange => {
                let is_empty = |key: &[u8]| stored.first_in(key, &key_after(key, reach)).is_none();
                let lower = redrawn(keys, rng, is_empty)?;
                self.uppers.push(&key_after(&lower, reach));
                self.lowers.push(&lower);
            }
            Kind::RangeHit => {
                let key = stored.get(rng.place(stored.len()));
                let before = if reach == 0 { 0 } else { rng.below(reach) };
                self.uppers.push(&key_after(key, reach - before));
                self.lowers.push(&key_before(key, before));
            }
            _ => self.lowers.push(&keys.draw(rng)),
        }
        Ok(())
    }

    /// What is asked.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// How many questions there are.
    pub fn len(&self) -> usize {
        self.lowers.len()
    }

    /// Whether there is no question.
    pub fn is_empty(&self) -> bool {
        self.lowers.is_empty()
    }

    /// The key that is asked for, or the first one of the range.
    pub(crate) fn lower(&self, place: usize) -> &[u8] {
        self.lowers.get(place)
    }

    /// The last key of the range; None: it is no closed range.
    pub(crate) fn upper(&self, place: usize) -> Option<&[u8]> {
        (place < self.uppers.len()).then(|| self.uppers.get(place))
    }

    /// The question at a place as a filter sees it. An open seek is asked up to the last key that it
    /// reads: so far its cursor has to look.
    pub fn query<'a>(&'a self, place: usize, stored: &'a SortedKeys) -> Query<'a> {
        let lower = self.lowers.get(place);
        let upper = match self.kind {
            Kind::PointMiss | Kind::PointHit | Kind::PointHalf => return Query::Point(lower),
            Kind::EmptyRange | Kind::RangeHit => Some(self.uppers.get(place)),
            Kind::Seek | Kind::SeekNext50 => {
                let count = self.kind.seek_count().unwrap_or(1);
                let last = stored.place_from(lower) + count - 1;
                (last < stored.len()).then(|| stored.get(last))
            }
        };
        let range = KeyRange::new(lower, upper).expect("lower is at or before upper when drawn");
        Query::Range(range)
    }

    /// Asks the store one question; gives the number of keys in the answer.
    #[inline]
    pub(crate) fn ask(&self, db: &Db, place: usize) -> trommel::Result<usize> {
        let lower = self.lowers.get(place);
        match self.kind {
            Kind::PointMiss | Kind::PointHit | Kind::PointHalf => {
                Ok(usize::from(db.get(lower)?.is_some()))
            }
            Kind::EmptyRange | Kind::RangeHit => {
                let first = db.range(lower..=self.uppers.get(place)).next();
                Ok(usize::from(first.transpose()?.is_some()))
            }
            Kind::Seek => Ok(usize::from(db.range(lower..).next().transpose()?.is_some())),
            Kind::SeekNext50 => {
                let mut found = 0;
                for entry in db.range(lower..).take(1 + NEXT_COUNT) {
                    entry?;
                    found += 1;
                }
                Ok(found)
            }
        }
    }

    /// Asks every question and counts the answers that are not what the sorted keys say.
    pub(crate) fn count_wrong(
        &self,
        db: &Db,
        stored: &SortedKeys,
        value_bytes: usize,
    ) -> trommel::Result<u64> {
        let mut wrong = 0;
        let mut expected_value = Vec::new();
        for place in 0..self.len() {
            let lower = self.lowers.get(place);
            let right = if self.kind.is_point() {
                fill_value(&mut expected_value, lower, value_bytes);
                let expected = stored.holds(lower).then_some(&expected_value[..]);
                db.get(lower)?.as_deref() == expected
            } else {
                self.scan_is_right(db, stored, place)?
            };
            wrong += u64::from(!right);
        }
        Ok(wrong)
    }

    fn scan_is_right(&self, db: &Db, stored: &SortedKeys, place: usize) -> trommel::Result<bool> {
        let lower = self.lowers.get(place);
        let first = stored.place_from(lower);
        let (scan, end, most) = match self.kind.seek_count() {
            Some(count) => (db.range(lower..), (first + count).min(stored.len()), count),
            None => {
                let upper = self.uppers.get(place);
                let end = stored.place_after(upper);
                (db.range(lower..=upper), end, end - first + 1)
            }
        };
        let mut expected = first..end;
        for entry in scan.take(most) {
            let (key, _) = entry?;
            if expected.next().is_none_or(|place| stored.get(place) != key) {
                return Ok(false);
            }
        }
        Ok(expected.next().is_none())
    }
}

/// A key for a get.
fn point(
    keys: &KeySet,
    is_stored: bool,
    skew: Skew,
    places: &Places,
    rng: &mut Rng,
) -> Result<Vec<u8>> {
    let stored = keys.stored();
    if is_stored {
        return Ok(stored.get(places.draw(rng)).to_vec());
    }
    if skew == Skew::None {
        return redrawn(keys, rng, |key| !stored.holds(key));
    }
    for _ in 0..DRAWS_PER_QUERY {
        let reach = 1 << rng.below(u64::from(MISS_REACH_BITS));
        let key = key_after(stored.get(places.draw(rng)), 1 + rng.below(reach));
        if !stored.holds(&key) {
            return Ok(key);
        }
    }
    Err(LabError::Plan("behind the keys that are asked for there is no room for misses".into()))
}

fn redrawn(keys: &KeySet, rng: &mut Rng, fits: impl Fn(&[u8]) -> bool) -> Result<Vec<u8>> {
    for _ in 0..DRAWS_PER_QUERY {
        let key = keys.draw(rng);
        if fits(&key) {
            return Ok(key);
        }
    }
    let problem =
        "among the keys' neighbours there is no miss of that width: use a smaller --range-width";
    Err(LabError::Plan(problem.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dist::{Dist, FileFormat};

    #[test]
    fn questions_are_what_they_are_called() {
        let dist = Dist::Clustered;
        let keys = KeySet::new(&dist, FileFormat::Lines, Some(20_000), 1).expect("keys");
        let stored = keys.stored();
        let drawn = |kind| {
            let queries = Queries::draw(kind, &keys, 500, 64, &mut Rng::new(2)).expect("drawn");
            assert_eq!(queries.len(), 500);
            queries
        };
        let answers = |queries: &Queries| -> Vec<bool> {
            let ranges = (0..queries.len()).map(|place| queries.query(place, stored).range());
            let first = |range: KeyRange<'_>| {
                stored.first_in(range.lower(), range.upper().expect("closed"))
            };
            ranges.map(|range| first(range).is_some()).collect()
        };
        for kind in [Kind::PointMiss, Kind::EmptyRange] {
            assert!(answers(&drawn(kind)).iter().all(|found| !found), "{}", kind.name());
        }
        for kind in [Kind::PointHit, Kind::RangeHit] {
            assert!(answers(&drawn(kind)).iter().all(|found| *found), "{}", kind.name());
        }
    }

    #[test]
    fn misses_of_dense_ids_are_points_alone() {
        let keys = KeySet::new(&Dist::Ids, FileFormat::Lines, Some(20_000), 1).expect("keys");
        let misses = |width| Queries::draw_misses(&keys, 500, width, &mut Rng::new(2));
        let (points, ranges) = (misses(1), misses(32));
        assert_eq!((points.len(), points.kind()), (500, Kind::PointMiss));
        let stored = keys.stored();
        assert!((0..500).all(|place| !stored.holds(points.lower(place))));
        // At most the end of the ids has room for such a range.
        assert!(ranges.len() < 50, "{} ranges", ranges.len());
    }

    #[test]
    fn a_width_that_leaves_no_gap_is_an_error() {
        let keys = KeySet::new(&Dist::Uniform, FileFormat::Lines, Some(1000), 1).expect("keys");
        let drawn = Queries::draw(Kind::EmptyRange, &keys, 10, u64::MAX, &mut Rng::new(2));
        assert!(drawn.expect_err("no gap").to_string().contains("--range-width"));
    }
}
