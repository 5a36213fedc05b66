//! A get: memtables, then the guard, then the candidate runs from new to old.
//! ```text
//! pin version -> take sequence number -> memtables -> guard, once -> fence pointers -> block
//!                                            \-> deleted ranges, in memory: what they hide need not be looked for
//! ```
//! Invariant (ordering rule 2): the version is pinned before the sequence number is taken. A merge
//! that dropped an entry counted the then visible number, so whoever pins a version with its output
//! takes a number that is not smaller.

use trommel_filters::Query;

use crate::core::Core;
use crate::cursor::Reads;
use crate::elastic::Looked;
use crate::entry::{Kind, Sequence};
use crate::environment::{Clock, PausePoint};
use crate::error::Result;
use crate::memtable::Found;
use crate::stats::{QueryKind, QueryStats};
use crate::value::Value;
use crate::version::Version;

/// The value of a key as of now.
pub(crate) fn get(core: &Core, key: &[u8]) -> Result<Option<Value>> {
    let version = core.current.pin();
    core.env.pauses.at(PausePoint::GetPinned);
    let at = core.snapshots.visible();
    get_at(core, &version, key, at)
}

/// The value of a key at a registered sequence number, or at one taken after `version` was pinned.
pub(crate) fn get_at(
    core: &Core,
    version: &Version,
    key: &[u8],
    at: Sequence,
) -> Result<Option<Value>> {
    let mut costs = QueryStats { queries: 1, ..QueryStats::default() };
    let found = match get_in_memory(version, key, at) {
        Some(found) => Ok(Some(found)),
        None => get_in_runs(version, key, at, &mut costs),
    };
    let before = core.counters.queried(QueryKind::Point, &costs);
    if let Some(elastic) = &core.elastic
        && costs.reached_runs > 0
        && elastic.counts(before)
    {
        elastic.count(version, key, &looked(&costs));
    }
    Ok(found?.and_then(|found| found.into_put(&*core.env.clock)))
}

fn get_in_memory(version: &Version, key: &[u8], at: Sequence) -> Option<Found> {
    let active = &version.active.memtable;
    let in_active = if active.is_empty() { None } else { active.get(key, at) };
    in_active.or_else(|| version.sealed.iter().find_map(|sealed| sealed.memtable.get(key, at)))
}

fn get_in_runs(
    version: &Version,
    key: &[u8],
    at: Sequence,
    costs: &mut QueryStats,
) -> Result<Option<Found>> {
    let deleted = version.covering(key, at);
    let answer = version.guard.ask(&Query::Point(key));
    costs.reached_runs = 1;
    let mut reads = Reads::default();
    let (mut looked_at, mut asked, mut searched) = (version.runs.len() as u64, 0, 0);
    let mut found = Ok(None);
    if !answer.is_nowhere() {
        for (newer, placed) in (0..).zip(&version.runs) {
            if !answer.may_be_in(placed.span()) {
                continue;
            }
            if deleted.is_some_and(|deleted| placed.run.greatest() < deleted) {
                continue;
            }
            let Some(table) = placed.run.find(key) else { continue };
            asked += 1;
            if !answer.may_hold(table) {
                continue;
            }
            searched += 1;
            found = table.table.get(key, at, &mut reads);
            if !matches!(found, Ok(None)) {
                looked_at = newer + 1;
                break;
            }
        }
    }
    let hit = u64::from(matches!(found, Ok(Some(_))));
    costs.guard_probes = answer.probes(asked);
    costs.true_positives = hit;
    costs.false_positives = searched - hit;
    costs.true_negatives = looked_at - searched;
    count_reads(costs, &reads);
    match deleted {
        Some(deleted) => found.map(|found| Found::or_deleted(found, deleted)),
        None => found,
    }
}

/// What a get of these costs has looked at.
fn looked(costs: &QueryStats) -> Looked {
    let runs = costs.true_negatives + costs.false_positives + costs.true_positives;
    Looked { runs: runs as usize, found: costs.true_positives > 0 }
}

/// Adds what was read to a query's costs.
pub(crate) fn count_reads(costs: &mut QueryStats, reads: &Reads) {
    costs.blocks_read += reads.blocks;
    costs.disk_reads += reads.disk_reads;
    costs.bytes_read += reads.bytes;
}

impl Found {
    /// The value, unless the entry is a deletion, or has expired.
    fn into_put(self, clock: &dyn Clock) -> Option<Value> {
        match self.kind {
            Kind::Put => Some(self.value),
            Kind::PutWithExpiry => self.value.unless_expired(clock),
            Kind::Delete | Kind::DeleteRange => None,
        }
    }
}
