//! Questions in batches, compared with the same questions asked one by one.
//! ```text
//! round 1   alone, together     round 2   together, alone  ...      guards in turns; medians
//! ```
//! Invariant: both ask the same questions in the same order. Before timing, every answer of a batch
//! was compared with the answer to the single question.

use std::hint::black_box;

use trommel::Db;

use crate::bench::rounds::medians_ns;
use crate::error::Result;
use crate::questions::queries::{Kind, Queries};
use crate::report::{ManyReport, TurnsReport};

/// Questions in one batch.
const BATCH: usize = 128;

/// Measures points and empty ranges, alone and in batches, on stores that take turns. Returns the
/// times of each store, and how many answers of batches were wrong.
pub(crate) fn measure_many(dbs: &[&Db], queries: &[&Queries]) -> Result<Vec<(ManyReport, u64)>> {
    let mut reports = vec![(ManyReport::default(), 0); dbs.len()];
    for queries in queries {
        let batches = Batches::of(queries);
        for ((report, wrong), db) in reports.iter_mut().zip(dbs) {
            let Some(turns) = report.of(queries.kind()) else { continue };
            turns.ops = queries.len() as u64;
            *wrong += batches.count_wrong(db)?;
        }
        if reports.iter_mut().all(|(report, _)| report.of(queries.kind()).is_none()) {
            continue;
        }
        let medians = medians_ns(2 * dbs.len(), |turn| {
            let db = dbs[turn / 2];
            if turn % 2 == 0 {
                batches.ask_alone(db)?
            } else {
                batches.ask_together(db)?
            }
            Ok::<_, crate::error::LabError>(queries.len() as u64)
        })?;
        for ((report, _), pair) in reports.iter_mut().zip(medians.chunks(2)) {
            if let Some(turns) = report.of(queries.kind()) {
                (turns.alone_ns_per_op, turns.ns_per_op) = (pair[0], pair[1]);
            }
        }
    }
    reports.iter_mut().for_each(|(report, _)| report.batch = BATCH as u64);
    Ok(reports)
}

impl ManyReport {
    /// Returns the times of a kind. None: the kind is not asked in batches.
    fn of(&mut self, kind: Kind) -> Option<&mut TurnsReport> {
        match kind {
            Kind::PointMiss => Some(&mut self.point_miss),
            Kind::PointHit => Some(&mut self.point_hit),
            Kind::EmptyRange => Some(&mut self.empty_range),
            Kind::PointHalf | Kind::RangeHit | Kind::Unanswered(_) => None,
            Kind::Seek | Kind::SeekNext50 | Kind::ClosedSeek => None,
        }
    }
}

/// The questions of one kind: points, or closed ranges.
enum Batches<'a> {
    Keys(Vec<&'a [u8]>),
    Ranges(Vec<std::ops::RangeInclusive<&'a [u8]>>),
}

impl<'a> Batches<'a> {
    fn of(queries: &'a Queries) -> Self {
        let places = 0..queries.len();
        if queries.kind().is_point() {
            return Batches::Keys(places.map(|place| queries.lower(place)).collect());
        }
        let range = |place| Some(queries.lower(place)..=queries.upper(place)?);
        Batches::Ranges(places.filter_map(range).collect())
    }

    fn ask_alone(&self, db: &Db) -> trommel::Result<()> {
        match self {
            Batches::Keys(keys) => {
                for key in keys {
                    black_box(db.get(key)?);
                }
            }
            Batches::Ranges(ranges) => {
                for range in ranges {
                    black_box(db.may_contain_range(range.clone())?);
                }
            }
        }
        Ok(())
    }

    fn ask_together(&self, db: &Db) -> trommel::Result<()> {
        match self {
            Batches::Keys(keys) => {
                for keys in keys.chunks(BATCH) {
                    for value in db.multi_get(keys) {
                        black_box(value?);
                    }
                }
            }
            Batches::Ranges(ranges) => {
                for ranges in ranges.chunks(BATCH) {
                    black_box(db.multi_may_contain(ranges.iter().cloned())?);
                }
            }
        }
        Ok(())
    }

    /// Counts the answers of batches that differ from those to single questions.
    fn count_wrong(&self, db: &Db) -> trommel::Result<u64> {
        let mut wrong = 0;
        match self {
            Batches::Keys(keys) => {
                for keys in keys.chunks(BATCH) {
                    for (key, value) in keys.iter().zip(db.multi_get(keys)) {
                        wrong += u64::from(value? != db.get(key)?);
                    }
                }
            }
            Batches::Ranges(ranges) => {
                for ranges in ranges.chunks(BATCH) {
                    let answers = db.multi_may_contain(ranges.iter().cloned())?;
                    for (range, maybe) in ranges.iter().zip(answers) {
                        wrong += u64::from(maybe != db.may_contain_range(range.clone())?);
                    }
                }
            }
        }
        Ok(wrong)
    }
}
