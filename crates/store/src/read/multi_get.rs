//! Many gets at once, all of them at one sequence number.
//! ```text
//! keys -> memtables -> guard, a batch -> candidate tables --.
//!                                                            v
//! round    fences of 16 keys ~~> slots of the cache ~~> blocks --> found, or the next block, or the next table
//!                                                \-> missing blocks of all keys, a read for each file --^
//! ```
//! A get waits for memory again and again, each time for what it has just learnt the place of. Here
//! each step is taken by a group of keys, and what the next one reads is asked for (`~~>`) without
//! waiting. Rounds go on until every key was found or has no table left.
//!
//! Invariant: a key's answer, and what is counted for it, are those of a get at the same sequence
//! number; but a block that several keys miss in one round is read once.

use crate::entries::block::Block;
use crate::entries::cursor::Reads;
use crate::entries::entry::Sequence;
use crate::entries::memtable::Found;
use crate::entries::value::Value;
use crate::error::Result;
use crate::files::run_table::RunTable;
use crate::files::version_search::VersionSearch;
use crate::read::get::{Candidates, count_get, count_reads, get_in_memory};
use crate::storage::environment::PausePoint;
use crate::tree::open_tree::OpenTree;
use crate::tree::stats::QueryStats;
use crate::tree::version::Version;

/// Keys whose next step is taken together: their reads are about as many as a tree has under way.
pub(crate) const GROUP: usize = 16;
/// Keys of a batch: more are answered one batch after the other, so that blocks in hand do not fill
/// the memory.
const BATCH: usize = 1024;

type Answer = Result<Option<Value>>;

/// The values of keys as of now.
pub(crate) fn multi_get(tree: &OpenTree, keys: &[&[u8]]) -> Vec<Answer> {
    let version = tree.current.pin();
    tree.env.pauses.at(PausePoint::GetPinned);
    let at = tree.snapshots.visible();
    multi_get_at(tree, &version, keys, at)
}

/// The values of keys at a registered sequence number, or at one taken after `version` was pinned.
pub(crate) fn multi_get_at(
    tree: &OpenTree,
    version: &Version,
    keys: &[&[u8]],
    at: Sequence,
) -> Vec<Answer> {
    if tree.life().check().is_err() {
        return keys.iter().map(|_| tree.life().check().map(|()| None)).collect();
    }
    let mut answers = Vec::with_capacity(keys.len());
    for keys in keys.chunks(BATCH) {
        let first = answers.len();
        answers.extend(keys.iter().map(|_| Ok(None)));
        let costs = QueryStats::default();
        let answers = &mut answers[first..];
        Batch { tree, version, at, answers, costs, reads: Reads::default() }.answer(keys);
    }
    answers
}

/// Keys that are looked for together.
struct Batch<'v, 'a> {
    tree: &'v OpenTree,
    version: &'v Version,
    at: Sequence,
    answers: &'a mut [Answer],
    costs: QueryStats,
    reads: Reads,
}

/// A key that is looked for in tables.
struct Search<'v, 'k> {
    /// Among the keys of the batch.
    place: usize,
    key: &'k [u8],
    candidates: Candidates<'k>,
    table: &'v RunTable,
    /// The block of the table that is searched next. None: the fences were not asked yet.
    number: Option<usize>,
    /// Some: among the blocks that the key's entries fill.
    versions: Option<Box<VersionSearch>>,
    is_done: bool,
}

/// A block that the cache has not. In the order in which blocks are read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Missing {
    file: u64,
    number: usize,
    /// Of the search that needs it.
    place: usize,
}

impl<'v> Batch<'v, '_> {
    fn answer(mut self, keys: &[&[u8]]) {
        let mut searches = Vec::with_capacity(keys.len());
        for (group, keys) in keys.chunks(GROUP).enumerate() {
            self.begin(group * GROUP, keys, &mut searches);
        }
        while !searches.is_empty() {
            self.round(&mut searches);
            searches.retain(|search| !search.is_done);
        }
        count_reads(&mut self.costs, &self.reads);
        self.tree.counters.queried(crate::tree::stats::QueryKind::Point, &self.costs);
    }

    /// Asks memory and guard for at most [`GROUP`] keys, the first of which is at `first`.
    fn begin<'k>(&mut self, first: usize, keys: &[&'k [u8]], searches: &mut Vec<Search<'v, 'k>>) {
        let (version, at) = (self.version, self.at);
        let (mut places, mut waiting) = ([0; GROUP], [&[][..]; GROUP]);
        let mut count = 0;
        for (place, key) in (first..).zip(keys) {
            match get_in_memory(version, key, at) {
                Some(found) => {
                    self.count(key, |_| ());
                    self.answers[place] = Ok(found.into_put(&*self.tree.env.clock));
                }
                None => {
                    (places[count], waiting[count]) = (place, key);
                    count += 1;
                }
            }
        }
        version.guard.ask_many(&waiting[..count], |number, answer| {
            let (place, key) = (places[number], waiting[number]);
            let mut candidates = Candidates::new(answer, version, key, at);
            match candidates.next(version, key) {
                Some(table) => {
                    let (number, versions, is_done) = (None, None, false);
                    let search =
                        Search { place, key, candidates, table, number, versions, is_done };
                    searches.push(search);
                }
                None => self.end(place, key, &candidates, Ok(None)),
            }
        });
    }

    /// Searches one block for each key.
    fn round(&mut self, searches: &mut [Search<'v, '_>]) {
        let mut missing = Vec::new();
        for (group, searches) in searches.chunks_mut(GROUP).enumerate() {
            for search in searches.iter().filter(|search| search.number.is_none()) {
                search.table.table.ask_for_fences(search.key);
            }
            searches.iter_mut().for_each(|search| self.find_block(search));
            for search in &*searches {
                search.number.iter().for_each(|number| search.table.table.ask_for_block(*number));
            }
            for (place, search) in (group * GROUP..).zip(searches) {
                let Some(number) = search.number else { continue };
                self.reads.blocks += 1;
                match search.table.table.cached_block(number) {
                    Some(block) => self.search_block(search, number, block),
                    None => {
                        missing.push(Missing { file: search.table.table.file(), number, place })
                    }
                }
            }
        }
        if !missing.is_empty() {
            self.read_missing(searches, missing);
        }
    }

    /// Asks fences which block may have the key, and for its slot in the cache. A table without
    /// blocks has none: then the next one.
    fn find_block(&mut self, search: &mut Search<'v, '_>) {
        while search.number.is_none() && !search.is_done {
            match search.table.table.block_for(search.key) {
                Some(number) => search.number = Some(number),
                None => self.next_table(search),
            }
        }
        search.number.iter().for_each(|number| search.table.table.ask_for_slot(*number));
    }

    fn search_block(&mut self, search: &mut Search<'v, '_>, number: usize, block: Block) {
        if search.versions.is_some() {
            return self.search_version(search, block);
        }
        if let Some((sequence, kind, range)) = block.get(search.key, self.at) {
            let value = Value::in_block(block, range);
            return self.finish(search, Ok(Some(Found { sequence, kind, value })));
        }
        match VersionSearch::behind(&search.table.table, number, search.key) {
            Some(versions) => {
                search.number = Some(versions.number());
                search.versions = Some(Box::new(versions));
            }
            None => self.next_table(search),
        }
    }

    #[cold]
    fn search_version(&mut self, search: &mut Search<'v, '_>, block: Block) {
        let Some(versions) = &mut search.versions else { return };
        match versions.saw(block, search.key, self.at) {
            None => search.number = Some(versions.number()),
            Some(Some(found)) => self.finish(search, Ok(Some(found))),
            Some(None) => {
                search.versions = None;
                self.next_table(search);
            }
        }
    }

    fn next_table(&mut self, search: &mut Search<'v, '_>) {
        search.number = None;
        match search.candidates.next(self.version, search.key) {
            Some(table) => search.table = table,
            None => self.finish(search, Ok(None)),
        }
    }

    /// Reads the blocks that some keys need and the cache has not, each of them once.
    #[cold]
    fn read_missing(&mut self, searches: &mut [Search<'v, '_>], mut missing: Vec<Missing>) {
        missing.sort_unstable();
        for of_file in missing.chunk_by(|one, other| one.file == other.file) {
            let table = &searches[of_file[0].place].table.table;
            let mut numbers: Vec<usize> = of_file.iter().map(|missing| missing.number).collect();
            numbers.dedup();
            let blocks = table.read_blocks(&numbers, &mut self.reads);
            for Missing { number, place, .. } in of_file {
                let search = &mut searches[*place];
                let read = numbers.binary_search(number).ok().and_then(|at| blocks[at].clone());
                // What could not be read with the others is read alone, and says itself what is
                // wrong with it.
                let alone = || table.missing_block(*number, &mut self.reads);
                match read.map_or_else(alone, Ok) {
                    Ok(block) => self.search_block(search, *number, block),
                    Err(error) => self.finish(search, Err(error)),
                }
            }
        }
    }

    fn finish(&mut self, search: &mut Search<'v, '_>, found: Result<Option<Found>>) {
        search.is_done = true;
        search.number = None;
        self.end(search.place, search.key, &search.candidates, found);
    }

    /// Notes what was found in tables for a key.
    fn end(
        &mut self,
        place: usize,
        key: &[u8],
        candidates: &Candidates<'_>,
        found: Result<Option<Found>>,
    ) {
        let has_found = matches!(found, Ok(Some(_)));
        self.count(key, |costs| candidates.count(has_found, costs));
        let clock = &*self.tree.env.clock;
        let value = |found| candidates.or_deleted(found).and_then(|found| found.into_put(clock));
        self.answers[place] = found.map(value);
    }

    /// Counts one key. The guard `elastic` takes its sample of gets one by one.
    #[inline]
    fn count(&mut self, key: &[u8], add: impl FnOnce(&mut QueryStats)) {
        if self.tree.elastic.is_none() {
            self.costs.queries += 1;
            return add(&mut self.costs);
        }
        let mut costs = QueryStats { queries: 1, ..QueryStats::default() };
        add(&mut costs);
        count_get(self.tree, self.version, key, &costs);
    }
}
