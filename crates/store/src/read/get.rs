//! A get: memtables, then the guard, then the candidate runs from new to old.
//! ```text
//! pin version -> take sequence number -> memtables -> guard, once -> fence pointers -> block
//!                                            \-> deleted ranges, in memory: what they hide need not be looked for
//! ```
//! Invariant (ordering rule 2): the version is pinned before the sequence number is taken. A merge
//! that dropped an entry counted the then visible number, so whoever pins a version with its output
//! takes a number that is not smaller.

use trommel_filters::Query;

use crate::entries::cursor::Reads;
use crate::entries::entry::{Kind, Sequence};
use crate::entries::memtable::Found;
use crate::entries::value::Value;
use crate::error::Result;
use crate::files::run_table::RunTable;
use crate::guard::Answer;
use crate::guard::elastic::Looked;
use crate::storage::environment::{Clock, PausePoint};
use crate::tree::open_tree::OpenTree;
use crate::tree::stats::{QueryKind, QueryStats};
use crate::tree::version::Version;

/// The value of a key as of now.
pub(crate) fn get(tree: &OpenTree, key: &[u8]) -> Result<Option<Value>> {
    let version = tree.current.pin();
    tree.env.pauses.at(PausePoint::GetPinned);
    let at = tree.snapshots.visible();
    get_at(tree, &version, key, at)
}

/// The value of a key at a registered sequence number, or at one taken after `version` was pinned.
pub(crate) fn get_at(
    tree: &OpenTree,
    version: &Version,
    key: &[u8],
    at: Sequence,
) -> Result<Option<Value>> {
    tree.life().check()?;
    let mut costs = QueryStats { queries: 1, ..QueryStats::default() };
    let found = match get_in_memory(version, key, at) {
        Some(found) => Ok(Some(found)),
        None => get_in_runs(version, key, at, &mut costs),
    };
    count_get(tree, version, key, &costs);
    Ok(found?.and_then(|found| found.into_put(&*tree.env.clock)))
}

/// What memtables say of a key. None: the runs are to be asked.
pub(crate) fn get_in_memory(version: &Version, key: &[u8], at: Sequence) -> Option<Found> {
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
    let answer = version.guard.ask(&Query::Point(key));
    let mut candidates = Candidates::new(answer, version, key, at);
    let mut reads = Reads::default();
    let mut found = Ok(None);
    while matches!(found, Ok(None))
        && let Some(table) = candidates.next(version, key)
    {
        found = table.table.get(key, at, &mut reads);
    }
    candidates.count(matches!(found, Ok(Some(_))), costs);
    count_reads(costs, &reads);
    found.map(|found| candidates.or_deleted(found))
}

/// Counts a get.
pub(crate) fn count_get(tree: &OpenTree, version: &Version, key: &[u8], costs: &QueryStats) {
    let before = tree.counters.queried(QueryKind::Point, costs);
    if let Some(elastic) = &tree.elastic
        && costs.reached_runs > 0
        && elastic.counts(before)
    {
        elastic.count(&version.runs, key, &looked(costs));
    }
}

/// The tables that may have a key, from new to old.
pub(crate) struct Candidates<'k> {
    answer: Answer<'k>,
    /// The newest deletion of a range that is in force for the key: older runs need not be looked
    /// at.
    deleted: Option<Sequence>,
    /// Runs that were looked at, newest first.
    looked_at: usize,
    /// Tables of these whose keys are around it, and of those the ones that may have it.
    asked: u64,
    searched: u64,
}

/// How far a search has come: a [`Candidates`] without the guard's answer.
pub(crate) struct Progress {
    deleted: Option<Sequence>,
    looked_at: usize,
    asked: u64,
    searched: u64,
    probes: u64,
}

impl Progress {
    /// Adds what the search has cost beside reads: the last table had the key, or none had it.
    #[inline]
    pub(crate) fn count(&self, has_found: bool, costs: &mut QueryStats) {
        let hit = u64::from(has_found);
        costs.reached_runs += 1;
        costs.guard_probes += self.probes;
        costs.true_positives += hit;
        costs.false_positives += self.searched - hit;
        costs.true_negatives += self.looked_at as u64 - self.searched;
    }

    /// What was found in tables, unless a deletion of a range is newer.
    #[inline]
    pub(crate) fn or_deleted(&self, found: Option<Found>) -> Option<Found> {
        match self.deleted {
            Some(deleted) => Found::or_deleted(found, deleted),
            None => found,
        }
    }
}

impl<'k> Candidates<'k> {
    /// Goes on with a search. Requires: the same guard has answered for the same key.
    pub(crate) fn resume(answer: Answer<'k>, progress: &Progress) -> Self {
        let Progress { deleted, looked_at, asked, searched, .. } = *progress;
        Candidates { answer, deleted, looked_at, asked, searched }
    }

    /// How far the search has come.
    #[inline]
    pub(crate) fn progress(&self) -> Progress {
        let Candidates { deleted, looked_at, asked, searched, .. } = *self;
        Progress { deleted, looked_at, asked, searched, probes: self.answer.probes(asked) }
    }

    /// As the version's guard has answered for the key.
    #[inline]
    pub(crate) fn new(answer: Answer<'k>, version: &Version, key: &[u8], at: Sequence) -> Self {
        let looked_at = if answer.is_nowhere() { version.runs.len() } else { 0 };
        let deleted = version.covering(key, at);
        Candidates { answer, deleted, looked_at, asked: 0, searched: 0 }
    }

    /// The next table to be searched. Requires: version and key are always the same.
    #[inline]
    pub(crate) fn next<'v>(&mut self, version: &'v Version, key: &[u8]) -> Option<&'v RunTable> {
        while let Some(placed) = version.runs.get(self.looked_at) {
            self.looked_at += 1;
            if !self.answer.may_be_in(placed.span()) {
                continue;
            }
            if self.deleted.is_some_and(|deleted| placed.run.greatest() < deleted) {
                continue;
            }
            let Some(table) = placed.run.find(key) else { continue };
            self.asked += 1;
            if self.answer.may_hold(table) {
                self.searched += 1;
                return Some(table);
            }
        }
        None
    }

    /// Adds what the search has cost beside reads: the last table had the key, or none had it.
    #[inline]
    pub(crate) fn count(&self, has_found: bool, costs: &mut QueryStats) {
        self.progress().count(has_found, costs);
    }

    /// What was found in tables, unless a deletion of a range is newer.
    #[inline]
    pub(crate) fn or_deleted(&self, found: Option<Found>) -> Option<Found> {
        self.progress().or_deleted(found)
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
    #[inline]
    pub(crate) fn into_put(self, clock: &dyn Clock) -> Option<Value> {
        match self.kind {
            Kind::Put => Some(self.value),
            Kind::PutWithExpiry => self.value.unless_expired(clock),
            Kind::Delete | Kind::DeleteRange => None,
        }
    }
}
