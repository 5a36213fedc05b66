//! A point lookup, step by step: what single gets, many at once and the queue share.
//! ```text
//! memtables -> guard -> Table --> Fences(table) --> Block(table, 7) --> found
//!                        ^   \                       ^             |
//!                        |    '-> nothing            '- next block -+
//!                        '------------- not in this table ---------'
//! get         reads each block at once
//! multi_get   takes steps of many keys in turns, and asks ahead for the memory that they need
//! queue       puts the lookup aside until a block has come
//! deleted     ranges, in memory: runs whose entries they hide are not searched
//! ```
//! Invariant: the same steps are taken and counted, whatever drives them. Drivers count what they
//! read.

use std::ops::ControlFlow;

use trommel_filters::Query;

use crate::entries::block::Block;
use crate::entries::cursor::Reads;
use crate::entries::entry::Sequence;
use crate::entries::memtable::Found;
use crate::error::Result;
use crate::files::table::Table;
use crate::files::table_search::TableSearch;
use crate::guard::Answer;
use crate::guard::elastic::Looked;
use crate::sync::Arc;
use crate::tree::open_tree::OpenTree;
use crate::tree::stats::{QueryKind, QueryStats};
use crate::tree::version::Version;

/// The question for a key in a version, as of a sequence number.
#[derive(Clone, Copy)]
pub(crate) struct PointQuery<'v, 'k> {
    pub(crate) version: &'v Version,
    pub(crate) key: &'k [u8],
    pub(crate) at: Sequence,
}

/// A lookup among the version's runs, from new to old.
pub(crate) struct Lookup<'v, 'k> {
    pub(crate) query: PointQuery<'v, 'k>,
    /// None: the lookup was put aside, and has not come to another table since.
    answer: Option<Answer<'k>>,
    progress: Progress,
}

/// How far a lookup has come, without what it borrows.
#[derive(Default)]
pub(crate) struct Progress {
    /// The newest deletion of a range that is in force for the key: older runs need not be looked
    /// at.
    deleted: Option<Sequence>,
    /// Runs that were looked at, newest first.
    looked_at: usize,
    /// Tables of these whose keys are around it, and of those the ones that may have it.
    asked: u64,
    searched: u64,
    /// As of when the lookup was put aside.
    probes: u64,
    search: TableSearch,
}

/// What a lookup does next.
#[derive(Clone, Copy)]
pub(crate) enum Step<'v> {
    /// It looks for the next table that may have the key.
    Table,
    /// It asks the fences of a table.
    Fences(&'v Arc<Table>),
    /// It searches a block of a table, which it is to be given.
    Block(&'v Arc<Table>, usize),
}

impl<'k> PointQuery<'_, 'k> {
    /// What memtables say of the key. None: the runs are to be asked.
    #[inline]
    pub(crate) fn in_memory(&self) -> Option<Found> {
        let PointQuery { version, key, at } = *self;
        let active = &version.active.memtable;
        let in_active = if active.is_empty() { None } else { active.get(key, at) };
        in_active.or_else(|| version.sealed.iter().find_map(|sealed| sealed.memtable.get(key, at)))
    }

    /// What the version's guard says of the key.
    #[inline]
    pub(crate) fn ask_guard(&self) -> Answer<'k> {
        self.version.guard.ask(&Query::Point(self.key))
    }

    /// Adds what a lookup costs that ends with the guard's answer. Requires: no run may have the
    /// key. (A deletion of a range around it changes nothing then.)
    #[inline]
    pub(crate) fn count_nowhere(&self, answer: &Answer<'_>, costs: &mut QueryStats) {
        costs.reached_runs += 1;
        costs.guard_probes += answer.probes(0);
        costs.true_negatives += self.version.runs.len() as u64;
    }

    /// Counts a get.
    pub(crate) fn count(&self, tree: &OpenTree, costs: &QueryStats) {
        let before = tree.counters.queried(QueryKind::Point, costs);
        if costs.reached_runs > 0 && costs.true_positives == 0 {
            tree.asked_keys.note_point(self.key, before);
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
    /// Before all tables. Requires: the version's guard has given the answer.
    #[inline]
    pub(crate) fn new(query: PointQuery<'v, 'k>, answer: Answer<'k>) -> Self {
        let PointQuery { version, key, at } = query;
        let looked_at = if answer.is_nowhere() { version.runs.len() } else { 0 };
        let deleted = version.covering_tombstone(key, at);
        let progress = Progress { deleted, looked_at, ..Progress::default() };
        Lookup { query, answer: Some(answer), progress }
    }

    /// Goes on with a lookup that was put aside. Requires: the query is the same.
    pub(crate) fn resume(query: PointQuery<'v, 'k>, progress: Progress) -> Self {
        Lookup { query, answer: None, progress }
    }

    /// Puts the lookup aside.
    pub(crate) fn into_progress(self) -> Progress {
        Progress { probes: self.probes(), ..self.progress }
    }

    #[inline]
    fn probes(&self) -> u64 {
        let Progress { asked, probes, .. } = self.progress;
        self.answer.as_ref().map_or(probes, |answer| answer.probes(asked))
    }

    /// Looks for the next table that may have the key. None: there is none, and nothing was found.
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
            progress.asked += 1;
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

    /// Asks fences for the first block that may have the key. Requires: the table is the step's.
    #[inline(always)]
    pub(crate) fn ask_fences(&mut self, table: &'v Arc<Table>) -> Step<'v> {
        match self.progress.search.begin(table, self.query.key) {
            Some(number) => Step::Block(table, number),
            None => Step::Table,
        }
    }

    /// Searches a block. Break: that was found. Requires: table and block are the step's.
    #[inline]
    pub(crate) fn saw(
        &mut self,
        table: &'v Arc<Table>,
        block: Block,
    ) -> ControlFlow<Found, Step<'v>> {
        let search = &mut self.progress.search;
        match search.saw(table, block, self.query.key, self.query.at) {
            Some(Some(found)) => ControlFlow::Break(found),
            Some(None) => ControlFlow::Continue(Step::Table),
            None => ControlFlow::Continue(Step::Block(table, search.number())),
        }
    }

    /// Takes all steps from one on, as far as there are blocks for them.
    #[inline(always)]
    pub(crate) fn run<E>(
        &mut self,
        mut step: Step<'v>,
        mut block: impl FnMut(&'v Arc<Table>, usize) -> std::result::Result<Block, E>,
    ) -> std::result::Result<Option<Found>, E> {
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

    /// Ends the lookup: adds what it has cost beside reads, and gives what was found in tables
    /// unless a deletion of a range is newer.
    #[inline]
    pub(crate) fn end(
        &self,
        found: Result<Option<Found>>,
        costs: &mut QueryStats,
    ) -> Result<Option<Found>> {
        let Progress { deleted, looked_at, searched, .. } = self.progress;
        let hit = u64::from(matches!(found, Ok(Some(_))));
        costs.reached_runs += 1;
        costs.guard_probes += self.probes();
        costs.true_positives += hit;
        costs.false_positives += searched - hit;
        costs.true_negatives += looked_at as u64 - searched;
        match deleted {
            Some(deleted) => found.map(|found| Found::or_deleted(found, deleted)),
            None => found,
        }
    }
}

/// Adds what was read to a query's costs.
pub(crate) fn count_reads(costs: &mut QueryStats, reads: &Reads) {
    costs.blocks_read += reads.blocks;
    costs.disk_reads += reads.disk_reads;
    costs.bytes_read += reads.bytes;
}
