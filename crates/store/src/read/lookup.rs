//! A point lookup as a sequence of steps, shared by single gets, multi-gets and the queue.
//! ```text
//! memtables -> guard -> Table --> Fences(table) --> Block(table, 7) --> found
//!                        ^   \                       ^             |
//!                        |    '-> nothing            '- next block -+
//!                        '------------- not in this table ---------'
//! get         reads each block synchronously
//! multi_get   interleaves the steps of many keys, and prefetches the memory that they need
//! queue       suspends the lookup until a block has arrived
//! deleted     range tombstones, in memory: runs whose entries they all hide are not searched
//! ```
//! Invariant: the steps, and the counters they update, do not depend on the driver. Drivers count
//! what they read.

use std::ops::ControlFlow;

use trommel_filters::Query;

use crate::entries::block::Block;
use crate::entries::cursor::Reads;
use crate::entries::entry::Sequence;
use crate::entries::memtable::FoundEntry;
use crate::error::Result;
use crate::files::table::Table;
use crate::files::table_search::TableSearch;
use crate::guard::Answer;
use crate::guard::elastic::Looked;
use crate::sync::Arc;
use crate::tree::open_tree::OpenTree;
use crate::tree::stats::{QueryKind, QueryStats};
use crate::tree::version::Version;

/// The query for a key in a version, as of a sequence number.
#[derive(Clone, Copy)]
pub(crate) struct PointQuery<'v, 'k> {
    pub(crate) version: &'v Version,
    pub(crate) key: &'k [u8],
    pub(crate) at: Sequence,
}

/// A lookup in the version's runs, from new to old.
pub(crate) struct Lookup<'v, 'k> {
    pub(crate) query: PointQuery<'v, 'k>,
    /// The guard's answer. None: the lookup was suspended, and has not reached another table since.
    answer: Option<Answer<'k>>,
    progress: Progress,
}

/// The progress of a lookup, without what it borrows.
#[derive(Default)]
pub(crate) struct Progress {
    /// The newest range tombstone that covers the key and is visible. Older runs need not be
    /// searched.
    deleted: Option<Sequence>,
    /// Runs that were considered, newest first.
    looked_at: usize,
    /// Of these runs: the tables whose key range has the key, and those of them that may hold it.
    covering: u64,
    searched: u64,
    /// Guard probes before the lookup was suspended.
    probes: u64,
    search: TableSearch,
}

/// The next step of a lookup.
#[derive(Clone, Copy)]
pub(crate) enum Step<'v> {
    /// Find the next table that may hold the key.
    Table,
    /// Ask the fence pointers of a table.
    Fences(&'v Arc<Table>),
    /// Search a block of a table. The driver supplies the block.
    Block(&'v Arc<Table>, usize),
}

impl<'k> PointQuery<'_, 'k> {
    /// Looks the key up in the memtables. None: the runs must be searched.
    #[inline]
    pub(crate) fn in_memory(&self) -> Option<FoundEntry> {
        let PointQuery { version, key, at } = *self;
        let active = &version.active.memtable;
        let in_active = if active.is_empty() { None } else { active.get(key, at) };
        in_active.or_else(|| version.sealed.iter().find_map(|sealed| sealed.memtable.get(key, at)))
    }

    /// Asks the version's guard for the key.
    #[inline]
    pub(crate) fn ask_guard(&self) -> Answer<'k> {
        self.version.guard.ask(&Query::Point(self.key))
    }

    /// Adds the costs of a lookup that ends with the guard's answer. Requires: no run may hold the
    /// key. (A range tombstone over the key makes no difference then.)
    #[inline]
    pub(crate) fn count_nowhere(&self, answer: &Answer<'_>, costs: &mut QueryStats) {
        costs.reached_runs += 1;
        costs.guard_probes += answer.probes(0);
        costs.true_negatives += self.version.runs.len() as u64;
    }

    /// Counts a get with these costs.
    pub(crate) fn count(&self, tree: &OpenTree, costs: &QueryStats) {
        let before = tree.counters.queried(QueryKind::Point, costs);
        if costs.reached_runs > 0 && costs.true_positives == 0 {
            tree.empty_query_sample.note_point(self.key, before);
        }
        if let Some(elastic) = &tree.elastic
            && costs.reached_runs > 0
            && elastic.counts(before)
        {
            let runs = costs.true_negatives + costs.false_positives + costs.true_positives;
            let looked = Looked { runs: runs as usize, found: costs.true_positives > 0 };
            elastic.count(&self.version.runs, self.key, &looked);
        }
    }
}

impl<'v, 'k> Lookup<'v, 'k> {
    /// Begins a lookup, before the first table. Requires: `answer` is from the version's guard.
    #[inline]
    pub(crate) fn new(query: PointQuery<'v, 'k>, answer: Answer<'k>) -> Self {
        let PointQuery { version, key, at } = query;
        let looked_at = if answer.is_nowhere() { version.runs.len() } else { 0 };
        let deleted = version.covering_tombstone(key, at);
        let progress = Progress { deleted, looked_at, ..Progress::default() };
        Lookup { query, answer: Some(answer), progress }
    }

    /// Resumes a suspended lookup. Requires: the query is the same.
    pub(crate) fn resume(query: PointQuery<'v, 'k>, progress: Progress) -> Self {
        Lookup { query, answer: None, progress }
    }

    /// Suspends the lookup.
    pub(crate) fn into_progress(self) -> Progress {
        Progress { probes: self.probes(), ..self.progress }
    }

    #[inline]
    fn probes(&self) -> u64 {
        let Progress { covering, probes, .. } = self.progress;
        self.answer.as_ref().map_or(probes, |answer| answer.probes(covering))
    }

    /// Finds the next table that may hold the key. None: there is none, so the key was not found.
    #[inline(always)]
    pub(crate) fn next_table(&mut self) -> Option<Step<'v>> {
        if self.answer.is_none() {
            self.ask_again();
        }
        let (answer, progress) = (self.answer.as_ref()?, &mut self.progress);
        while let Some(placed) = self.query.version.runs.get(progress.looked_at) {
            progress.looked_at += 1;
            if !answer.may_be_in(placed.span()) {
                continue;
            }
            if progress.deleted.is_some_and(|deleted| placed.run.greatest() < deleted) {
                continue;
            }
            let Some(table) = placed.run.find(self.query.key) else { continue };
            progress.covering += 1;
            if answer.may_hold(table) {
                progress.searched += 1;
                return Some(Step::Fences(&table.table));
            }
        }
        None
    }

    #[cold]
    fn ask_again(&mut self) {
        self.answer = Some(self.query.ask_guard());
    }

    /// Asks the fence pointers for the first block that may hold the key. Requires: `table` is that
    /// of the current step.
    #[inline(always)]
    pub(crate) fn ask_fences(&mut self, table: &'v Arc<Table>) -> Step<'v> {
        match self.progress.search.begin(table, self.query.key) {
            Some(number) => Step::Block(table, number),
            None => Step::Table,
        }
    }

    /// Searches a block. Breaks with the entry if it was found. Requires: `table` and `block` are
    /// those of the current step.
    #[inline]
    pub(crate) fn saw(
        &mut self,
        table: &'v Arc<Table>,
        block: Block,
    ) -> ControlFlow<FoundEntry, Step<'v>> {
        let search = &mut self.progress.search;
        match search.saw(table, block, self.query.key, self.query.at) {
            Some(Some(found)) => ControlFlow::Break(found),
            Some(None) => ControlFlow::Continue(Step::Table),
            None => ControlFlow::Continue(Step::Block(table, search.number())),
        }
    }

    /// Runs all steps from `step` on, until a block is not available.
    #[inline(always)]
    pub(crate) fn run<E>(
        &mut self,
        mut step: Step<'v>,
        mut block: impl FnMut(&'v Arc<Table>, usize) -> std::result::Result<Block, E>,
    ) -> std::result::Result<Option<FoundEntry>, E> {
        loop {
            step = match step {
                Step::Table => match self.next_table() {
                    Some(step) => step,
                    None => return Ok(None),
                },
                Step::Fences(table) => self.ask_fences(table),
                Step::Block(table, number) => match self.saw(table, block(table, number)?) {
                    ControlFlow::Continue(step) => step,
                    ControlFlow::Break(found) => return Ok(Some(found)),
                },
            };
        }
    }

    /// Ends the lookup: adds its costs except for reads. Returns what was found in tables, or a
    /// newer range tombstone instead.
    #[inline]
    pub(crate) fn end(
        &self,
        found: Result<Option<FoundEntry>>,
        costs: &mut QueryStats,
    ) -> Result<Option<FoundEntry>> {
        let Progress { deleted, looked_at, searched, .. } = self.progress;
        let hit = u64::from(matches!(found, Ok(Some(_))));
        costs.reached_runs += 1;
        costs.guard_probes += self.probes();
        costs.true_positives += hit;
        costs.false_positives += searched - hit;
        costs.true_negatives += looked_at as u64 - searched;
        match deleted {
            Some(deleted) => found.map(|found| FoundEntry::or_deleted(found, deleted)),
            None => found,
        }
    }
}

/// Adds reads to the costs of a query.
pub(crate) fn count_reads(costs: &mut QueryStats, reads: &Reads) {
    costs.blocks_read += reads.blocks;
    costs.disk_reads += reads.disk_reads;
    costs.bytes_read += reads.bytes;
}
