//! A shift of the workload: keys of newer runs have another distribution than those of the last
//! level.
//! ```text
//! load the last level -> ask misses (before) -> load newer runs -> ask the same misses (after)
//! ```
//! Invariant: the questions before and after are the same, and no key answers them at either time.

use trommel::Db;

use crate::error::Result;
use crate::keys::key_list::SortedKeys;
use crate::median::median;
use crate::questions::queries::Kind;
use crate::questions::read_workload::Stored;
use crate::questions::reader_threads::ReaderThreads;
use crate::report::{ShiftRates, ShiftReport};

/// Measurements of a store when only its last level was loaded.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BaseSeen {
    /// Seconds spent on the guard until then.
    guard_seconds: f64,
    /// Seconds spent on the guard until everything was loaded.
    pub(crate) guard_seconds_in_all: f64,
    /// Needless run searches per question.
    rates: ShiftRates,
    /// Wrong answers.
    pub(crate) wrong: u64,
}

impl BaseSeen {
    /// Asks the first thread's misses and empty ranges, and checks the answers.
    pub(crate) fn look(
        db: &Db,
        readers: &[ReaderThreads],
        stored: &SortedKeys,
        value_bytes: usize,
    ) -> Result<Self> {
        let mut seen = BaseSeen { guard_seconds: db.stats()?.guard.seconds, ..Self::default() };
        for queries in readers.iter().map(ReaderThreads::first) {
            let rate = match queries.kind() {
                Kind::PointMiss => &mut seen.rates.point_miss,
                Kind::EmptyRange => &mut seen.rates.empty_range,
                _ => continue,
            };
            let before = needless_runs(db)?;
            seen.wrong += queries.count_wrong(db, stored, value_bytes)?;
            *rate = (needless_runs(db)? - before) as f64 / queries.len() as f64;
        }
        Ok(seen)
    }

    /// Returns nanoseconds spent on the guard per key of newer runs.
    fn ns_per_insert(&self, new_keys: u64) -> f64 {
        (self.guard_seconds_in_all - self.guard_seconds) * 1e9 / new_keys as f64
    }
}

/// Returns the report of several loads; `after` was measured when all was loaded. None: nothing
/// shifted.
pub(crate) fn shift_report(
    seen: &[BaseSeen],
    stored: &Stored,
    after: ShiftRates,
) -> Option<ShiftReport> {
    let content = stored.content();
    let (base_keys, new_keys) = (content.keys.len() as u64, content.newer?.len() as u64);
    let rounds: Vec<f64> = seen.iter().map(|load| load.ns_per_insert(new_keys)).collect();
    let base: Vec<f64> = seen.iter().map(|load| load.guard_seconds).collect();
    Some(ShiftReport {
        inserts: stored.inserts()?.to_string(),
        base_keys,
        new_keys,
        guard_ns_per_base_key: median(&mut base.clone()) * 1e9 / base_keys as f64,
        guard_ns_per_insert: median(&mut rounds.clone()),
        guard_ns_per_insert_rounds: rounds,
        before: seen.last()?.rates,
        after,
    })
}

fn needless_runs(db: &Db) -> Result<u64> {
    let stats = db.stats()?;
    let kinds = [stats.point, stats.open_seek, stats.closed_seek];
    Ok(kinds.iter().map(|kind| kind.false_positives).sum())
}
