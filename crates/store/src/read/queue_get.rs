//! A get that is put aside while a block is read: the same steps as [`read::get`](crate::read),
//! taken apart.
//! ```text
//! begin ----> Done
//!   '-> Read(block 7 of a table) -- read --> go_on(block) ----> Done
//!                                                     '-> Read(the next block, or one of the next table)
//! ```
//! Invariant: between two steps it holds its version, and no lock. The guard of a version always
//! says the same of a key (or, of `elastic`, nothing false), so it is asked again where the search
//! goes on, and counted once.

use trommel_filters::Query;

use crate::entries::block::Block;
use crate::entries::cursor::Reads;
use crate::entries::entry::Sequence;
use crate::entries::memtable::Found;
use crate::entries::value::Value;
use crate::error::Result;
use crate::files::query_blocks::Wanted;
use crate::files::table::Table;
use crate::files::version_search::VersionSearch;
use crate::read::get::{Candidates, Progress, count_get, count_reads, get_in_memory};
use crate::storage::environment::PausePoint;
use crate::sync::Arc;
use crate::tree::open_tree::OpenTree;
use crate::tree::stats::QueryStats;
use crate::tree::version::Version;

/// A get on its way.
pub(crate) struct GetSearch {
    key: Vec<u8>,
    version: Arc<Version>,
    at: Sequence,
    progress: Progress,
    /// Some: among the blocks that the key's entries fill.
    versions: Option<VersionSearch>,
    reads: Reads,
}

/// What a get needs next.
pub(crate) enum Step {
    Read(Box<GetSearch>, Wanted),
    Done(Result<Option<Value>>),
}

/// Where a search of blocks in the cache has ended.
enum Searched {
    Found(Found),
    Missing(Wanted),
    Nothing,
}

impl GetSearch {
    /// The value of a key as of now.
    pub(crate) fn begin(tree: &OpenTree, key: &[u8]) -> Step {
        let version = tree.current.hold();
        if let Err(error) = tree.life().check() {
            return Step::Done(Err(error));
        }
        tree.env.pauses.at(PausePoint::GetPinned);
        let at = tree.snapshots.visible();
        if let Some(found) = get_in_memory(&version, key, at) {
            let costs = QueryStats { queries: 1, ..QueryStats::default() };
            count_get(tree, &version, key, &costs);
            return Step::Done(Ok(found.into_put(&*tree.env.clock)));
        }
        let mut reads = Reads::default();
        let answer = version.guard.ask(&Query::Point(key));
        let mut candidates = Candidates::new(answer, &version, key, at);
        let mut versions = None;
        let searched =
            search_tables(&version, (key, at), &mut candidates, &mut versions, &mut reads);
        let progress = candidates.progress();
        let search = GetSearch { key: key.to_vec(), version, at, progress, versions, reads };
        Box::new(search).after(tree, searched)
    }

    /// Goes on with the block that it has waited for.
    pub(crate) fn go_on(
        mut self: Box<Self>,
        tree: &OpenTree,
        wanted: &Wanted,
        block: Result<Block>,
    ) -> Step {
        let block = match block {
            Ok(block) => block,
            Err(error) => return Step::Done(self.end(tree, Err(error))),
        };
        self.reads.disk_reads += 1;
        self.reads.bytes += wanted.table.block_place(wanted.number).2 as u64;
        let searched = self.search_from(wanted, block);
        self.after(tree, searched)
    }

    fn search_from(&mut self, wanted: &Wanted, block: Block) -> Searched {
        let (key, at, reads) = (&self.key[..], self.at, &mut self.reads);
        let Wanted { table, number } = wanted;
        let versions = &mut self.versions;
        match search_block(table, (*number, Some(block)), (key, at), versions, reads) {
            Searched::Nothing => {}
            end => return end,
        }
        let version = &*self.version;
        let answer = version.guard.ask(&Query::Point(key));
        let mut candidates = Candidates::resume(answer, &self.progress);
        let searched = search_tables(version, (key, at), &mut candidates, versions, reads);
        self.progress = candidates.progress();
        searched
    }

    fn after(self: Box<Self>, tree: &OpenTree, searched: Searched) -> Step {
        match searched {
            Searched::Missing(wanted) => Step::Read(self, wanted),
            Searched::Found(found) => Step::Done(self.end(tree, Ok(Some(found)))),
            Searched::Nothing => Step::Done(self.end(tree, Ok(None))),
        }
    }

    /// Counts the get, and makes a value of what was found in tables.
    fn end(&self, tree: &OpenTree, found: Result<Option<Found>>) -> Result<Option<Value>> {
        let mut costs = QueryStats { queries: 1, ..QueryStats::default() };
        self.progress.count(matches!(found, Ok(Some(_))), &mut costs);
        count_reads(&mut costs, &self.reads);
        count_get(tree, &self.version, &self.key, &costs);
        let found = self.progress.or_deleted(found?);
        Ok(found.and_then(|found| found.into_put(&*tree.env.clock)))
    }
}

/// Searches the tables that may have the key and were not searched yet, as far as their blocks are
/// in the cache.
fn search_tables(
    version: &Version,
    (key, at): (&[u8], Sequence),
    candidates: &mut Candidates<'_>,
    versions: &mut Option<VersionSearch>,
    reads: &mut Reads,
) -> Searched {
    while let Some(candidate) = candidates.next(version, key) {
        let table = &candidate.table;
        let Some(number) = table.block_for(key) else { continue };
        match search_block(table, (number, None), (key, at), versions, reads) {
            Searched::Nothing => {}
            end => return end,
        }
    }
    Searched::Nothing
}

/// Searches a table from one of its blocks on, which may have been read for the search.
fn search_block(
    table: &Arc<Table>,
    (mut number, mut read): (usize, Option<Block>),
    (key, at): (&[u8], Sequence),
    versions: &mut Option<VersionSearch>,
    reads: &mut Reads,
) -> Searched {
    loop {
        // What was read was counted when it was found missing.
        reads.blocks += u64::from(read.is_none());
        let Some(block) = read.take().or_else(|| table.cached_block(number)) else {
            return Searched::Missing(Wanted { table: Arc::clone(table), number });
        };
        match versions {
            Some(search) => {
                if let Some(end) = search.saw(block, key, at) {
                    *versions = None;
                    return end.map_or(Searched::Nothing, Searched::Found);
                }
            }
            None => {
                if let Some((sequence, kind, range)) = block.get(key, at) {
                    let value = Value::in_block(block, range);
                    return Searched::Found(Found { sequence, kind, value });
                }
                *versions = VersionSearch::behind(table, number, key);
            }
        }
        let Some(search) = versions else { return Searched::Nothing };
        number = search.number();
    }
}
