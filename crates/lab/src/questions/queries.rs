//! The questions of measurements, and the check of answers against the sorted keys.
//! ```text
//! point_miss    a key like the stored ones that is not stored
//! point_hit     a stored key
//! point_half    a stored key, or one that is not: as likely
//! empty_range   [left, left + width - 1] without a stored key, left like the stored keys
//! range_hit     a range of that width around a stored key
//! seek          the first key from a key like the stored ones on
//! seek_next_50  the same, and the fifty keys behind it
//! closed_seek   the first key of [n, n + width - 1], n: first eight bytes of such a key
//! unanswered    what people ask for that is not there (unanswered.rs), under its own names
//! ```
//! `question_draw.rs` draws them.
//! Invariant: the answer to every question follows from the sorted keys alone.

use std::fmt;

use trommel::Db;
use trommel_filters::{KeyRange, Query};

use crate::keys::key_list::{KeyList, SortedKeys};
use crate::keys::values::fill_value;
use crate::questions::unanswered::Ask;

/// A kind of question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A get of a key that is not stored.
    PointMiss,
    /// A get of a stored key.
    PointHit,
    /// A get of a key that is stored with probability 1/2.
    PointHalf,
    /// A closed range without a stored key.
    EmptyRange,
    /// A closed range around a stored key.
    RangeHit,
    /// The first key at or after a key.
    Seek,
    /// The first key at or after a key, and the fifty keys behind it.
    SeekNext50,
    /// A range of numbers; some share of these questions finds nothing.
    ClosedSeek,
    /// A question that no stored key answers.
    Unanswered(Ask),
}

/// Keys that are read behind the first one.
const NEXT_COUNT: usize = 50;

impl Kind {
    /// The kinds that are measured by default.
    pub const ALL: [Kind; 7] = [
        Kind::PointMiss,
        Kind::PointHit,
        Kind::PointHalf,
        Kind::EmptyRange,
        Kind::RangeHit,
        Kind::Seek,
        Kind::SeekNext50,
    ];

    /// Returns the name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Kind::PointMiss => "point_miss",
            Kind::PointHit => "point_hit",
            Kind::PointHalf => "point_half",
            Kind::EmptyRange => "empty_range",
            Kind::RangeHit => "range_hit",
            Kind::Seek => "seek",
            Kind::SeekNext50 => "seek_next_50",
            Kind::ClosedSeek => "closed_seek",
            Kind::Unanswered(ask) => ask.name(),
        }
    }

    /// Whether it asks for one key.
    pub(crate) fn is_point(self) -> bool {
        match self {
            Kind::PointMiss | Kind::PointHit | Kind::PointHalf => true,
            Kind::EmptyRange | Kind::RangeHit | Kind::ClosedSeek => false,
            Kind::Seek | Kind::SeekNext50 => false,
            Kind::Unanswered(ask) => ask.is_point(),
        }
    }

    /// Returns the most keys that an open seek reads. None: the kind is no open seek.
    pub(crate) fn seek_count(self) -> Option<usize> {
        match self {
            Kind::Seek => Some(1),
            Kind::SeekNext50 => Some(1 + NEXT_COUNT),
            _ => None,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Questions of one kind.
#[derive(Clone, Debug)]
pub struct Queries {
    kind: Kind,
    lowers: KeyList,
    /// For closed ranges only.
    uppers: KeyList,
}

impl Queries {
    /// Requires: closed ranges have as many uppers as lowers; other kinds have none.
    pub(crate) fn of(kind: Kind, lowers: KeyList, uppers: KeyList) -> Self {
        Queries { kind, lowers, uppers }
    }

    /// Returns the kind of the questions.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the number of questions.
    pub fn len(&self) -> usize {
        self.lowers.len()
    }

    /// Whether there is no question.
    pub fn is_empty(&self) -> bool {
        self.lowers.is_empty()
    }

    /// Returns the key of a point query, or the first key of a range.
    pub(crate) fn lower(&self, place: usize) -> &[u8] {
        self.lowers.get(place)
    }

    /// Returns the last key of a range. None: the question is no closed range.
    pub(crate) fn upper(&self, place: usize) -> Option<&[u8]> {
        (place < self.uppers.len()).then(|| self.uppers.get(place))
    }

    /// Returns the question at a place as a filter sees it. An open seek ends at the last key that
    /// it reads, since its cursor goes that far.
    pub fn query<'a>(&'a self, place: usize, stored: &'a SortedKeys) -> Query<'a> {
        let lower = self.lowers.get(place);
        if self.kind.is_point() {
            return Query::Point(lower);
        }
        let upper = match self.kind.seek_count() {
            None => Some(self.uppers.get(place)),
            Some(count) => {
                let last = stored.place_from(lower) + count - 1;
                (last < stored.len()).then(|| stored.get(last))
            }
        };
        let range = KeyRange::new(lower, upper).expect("lower is at or before upper when drawn");
        Query::Range(range)
    }

    /// Asks the store one question. Returns the number of keys in the answer.
    #[inline]
    pub(crate) fn ask(&self, db: &Db, place: usize) -> trommel::Result<usize> {
        let lower = self.lowers.get(place);
        if self.kind.is_point() {
            return Ok(usize::from(db.get(lower)?.is_some()));
        }
        match self.kind.seek_count() {
            None => {
                let first = db.range(lower..=self.uppers.get(place)).next();
                Ok(usize::from(first.transpose()?.is_some()))
            }
            Some(1) => Ok(usize::from(db.range(lower..).next().transpose()?.is_some())),
            Some(count) => {
                let mut found = 0;
                for entry in db.range(lower..).take(count) {
                    entry?;
                    found += 1;
                }
                Ok(found)
            }
        }
    }

    /// Asks every question and counts the answers that differ from the sorted keys.
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
            let right = if matches!(self.kind, Kind::Unanswered(_)) {
                self.ask(db, place)? == 0
            } else if self.kind.is_point() {
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

#[cfg(test)]
mod tests;
