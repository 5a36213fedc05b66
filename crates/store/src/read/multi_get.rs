//! Many gets as one operation, all at one sequence number.
//! ```text
//! keys -> memtables -> guard, a batch -> candidate tables --.
//!                                                            v
//! round    fences of 16 keys ~~> slots of the cache ~~> blocks
//!          --> found, or the next block, or the next table
//!                                                \-> missing blocks of all keys,
//!     one read per file ----^
//! values apart, once all keys were found: read in the order of their places, with read-ahead
//! ```
//! A single get waits for memory again and again, since each access depends on the one before it.
//! Here each step is done for a group of keys, and the memory of the next step is prefetched
//! (`~~>`). Rounds continue until every key was found or has no table left.
//!
//! Invariant: a key's answer and its counters are those of a get at the same sequence number. But a
//! block that several keys miss in one round is read once.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use trommel_filters::prefetch_lines;

use crate::entries::block::Block;
use crate::entries::cursor::Reads;
use crate::entries::entry::Sequence;
use crate::entries::memtable::FoundEntry;
use crate::entries::value::Value;
use crate::error::Result;
use crate::files::table::Table;
use crate::files::value_file::AHEAD_BYTES_MAX;
use crate::files::value_file::pending_read::PendingRead;
use crate::read::lookup::{Lookup, PointQuery, Step, count_reads};
use crate::storage::pauses::PausePoint;
use crate::sync::Arc;
use crate::tree::open_tree::OpenTree;
use crate::tree::stats::{QueryKind, QueryStats};
use crate::tree::version::Version;

/// Keys whose next step is done together: about as many as a processor core has memory reads in
/// flight.
pub(crate) const GROUP: usize = 16;
/// Keys of a batch. Larger requests are answered batch by batch, so that the blocks in use do not
/// fill the memory.
const BATCH: usize = 1024;
/// Cache lines of a value that are prefetched: enough for most values.
const VALUE_LINES: usize = 3;
/// Values that queues read ahead at once, bypassing the system's page cache.
const COMING_MAX: usize = 16;

type Answer = Result<Option<Value>>;

/// Returns the current values of keys.
pub(crate) fn multi_get(tree: &OpenTree, keys: &[&[u8]]) -> Vec<Answer> {
    let version = tree.current.pin();
    tree.env.pauses.at(PausePoint::GetPinned);
    let at = tree.snapshots.visible();
    multi_get_at(tree, &version, keys, at)
}

/// Returns the values of keys at a sequence number. Requires: the number is registered, or was
/// taken after `version` was pinned.
pub(crate) fn multi_get_at(
    tree: &OpenTree,
    version: &Version,
    keys: &[&[u8]],
    at: Sequence,
) -> Vec<Answer> {
    if tree.check_open().is_err() {
        return keys.iter().map(|_| tree.check_open().map(|()| None)).collect();
    }
    let mut answers = Vec::with_capacity(keys.len());
    for keys in keys.chunks(BATCH) {
        let first = answers.len();
        answers.extend(keys.iter().map(|_| Ok(None)));
        let costs = QueryStats::default();
        let (answers, before) = (&mut answers[first..], tree.empty_query_sample.count(keys.len()));
        let reads = Reads::default();
        let apart = Vec::new();
        Batch { tree, version, at, answers, costs, reads, before, apart }.answer(keys);
    }
    answers
}

/// Appends all values to a buffer. Returns the length of each.
pub(crate) fn packed(answers: Vec<Answer>, values: &mut Vec<u8>) -> Result<Vec<Option<usize>>> {
    let answers = answers.into_iter().collect::<Result<Vec<_>>>()?;
    values.reserve(answers.iter().flatten().map(|value| value.len()).sum());
    let lens = answers.into_iter().map(|value| {
        value.map(|value| {
            values.extend_from_slice(&value);
            value.len()
        })
    });
    Ok(lens.collect())
}

/// Keys that are looked up together.
struct Batch<'v, 'a> {
    tree: &'v OpenTree,
    version: &'v Version,
    at: Sequence,
    answers: &'a mut [Answer],
    costs: QueryStats,
    reads: Reads,
    /// Point queries counted before the batch.
    before: u64,
    /// Places of keys, and references to their values, which are read last.
    apart: Vec<(usize, Value)>,
}

/// A key that is being looked up in tables.
struct Search<'v, 'k> {
    /// Its place among the keys of the batch.
    place: usize,
    lookup: Lookup<'v, 'k>,
    /// None: the search has ended.
    step: Option<Step<'v>>,
}

/// A block that is not cached, and the place of the search that needs it.
struct Missing<'v> {
    table: &'v Arc<Table>,
    number: usize,
    place: usize,
}

/// Values apart whose read-ahead was requested, in the order in which they are needed.
#[derive(Default)]
struct ReadAheadValues {
    /// The size of each value, and its read if a queue does it.
    values: VecDeque<(u64, Option<PendingRead>)>,
    bytes: u64,
    /// How many of them queues are reading.
    coming: usize,
}

impl ReadAheadValues {
    fn has_room(&self) -> bool {
        self.bytes < AHEAD_BYTES_MAX && self.coming < COMING_MAX
    }

    fn push(&mut self, (bytes, coming): (u64, Option<PendingRead>)) {
        self.bytes += bytes;
        self.coming += usize::from(coming.is_some());
        self.values.push_back((bytes, coming));
    }

    /// Takes the first value off. Returns its read, if a queue does it.
    fn pop(&mut self) -> Option<PendingRead> {
        let (bytes, coming) = self.values.pop_front()?;
        self.bytes -= bytes;
        self.coming -= usize::from(coming.is_some());
        coming
    }
}

impl<'v> Batch<'v, '_> {
    fn answer(mut self, keys: &[&[u8]]) {
        let mut searches = Vec::with_capacity(keys.len());
        for (group, keys) in keys.chunks(GROUP).enumerate() {
            self.begin(group * GROUP, keys, &mut searches);
        }
        while !searches.is_empty() {
            self.round(&mut searches);
            searches.retain(|search| search.step.is_some());
        }
        if !self.apart.is_empty() {
            self.read_values();
        }
        count_reads(&mut self.costs, &self.reads);
        self.tree.counters.queried(QueryKind::Point, &self.costs);
    }

    /// Looks up at most [`GROUP`] keys in memtables and guard. `first` is the place of the first
    /// one.
    fn begin<'k>(&mut self, first: usize, keys: &[&'k [u8]], searches: &mut Vec<Search<'v, 'k>>) {
        let (version, at) = (self.version, self.at);
        let (mut places, mut waiting) = ([0; GROUP], [&[][..]; GROUP]);
        let mut count = 0;
        for (place, key) in (first..).zip(keys) {
            let query = PointQuery { version, key, at };
            match query.in_memory() {
                Some(found) => {
                    self.count(query, |_| ());
                    self.settle(place, query, Ok(Some(found)));
                }
                None => {
                    (places[count], waiting[count]) = (place, key);
                    count += 1;
                }
            }
        }
        version.guard.ask_many(&waiting[..count], |number, answer| {
            let (place, key) = (places[number], waiting[number]);
            let mut lookup = Lookup::new(PointQuery { version, key, at }, answer);
            match lookup.next_table() {
                None => self.end(place, &lookup, Ok(None)),
                step => searches.push(Search { place, lookup, step }),
            }
        });
    }

    /// Searches one block for each key.
    fn round(&mut self, searches: &mut [Search<'v, '_>]) {
        let mut missing = Vec::new();
        for (group, searches) in searches.chunks_mut(GROUP).enumerate() {
            for Search { lookup, step, .. } in &*searches {
                if let Some(Step::Fences(table)) = step {
                    table.prefetch_fences(lookup.query.key);
                }
            }
            searches.iter_mut().for_each(|search| self.find_block(search));
            for search in &*searches {
                if let Some(Step::Block(table, number)) = search.step {
                    table.prefetch_block(number);
                }
            }
            for (place, search) in (group * GROUP..).zip(searches) {
                let Some(Step::Block(table, number)) = search.step else { continue };
                self.reads.blocks += 1;
                match table.cached_block(number) {
                    Some(block) => self.search_block(search, table, block),
                    None => missing.push(Missing { table, number, place }),
                }
            }
        }
        if !missing.is_empty() {
            self.read_missing(searches, missing);
        }
    }

    /// Asks the fences which block may hold the key, and prefetches its slot in the cache.
    fn find_block(&mut self, search: &mut Search<'v, '_>) {
        while let Some(Step::Fences(table)) = search.step {
            let next = search.lookup.ask_fences(table);
            self.go_on(search, ControlFlow::Continue(next));
        }
        if let Some(Step::Block(table, number)) = search.step {
            table.prefetch_slot(number);
        }
    }

    fn search_block(&mut self, search: &mut Search<'v, '_>, table: &'v Arc<Table>, block: Block) {
        let next = search.lookup.saw(table, block);
        self.go_on(search, next);
    }

    /// Finds the next table if that is the next step. If there is none, the search ends.
    fn go_on(&mut self, search: &mut Search<'v, '_>, next: ControlFlow<FoundEntry, Step<'v>>) {
        let (step, found) = match next {
            ControlFlow::Continue(Step::Table) => (search.lookup.next_table(), None),
            ControlFlow::Continue(step) => (Some(step), None),
            ControlFlow::Break(found) => (None, Some(found)),
        };
        search.step = step;
        if step.is_none() {
            self.end(search.place, &search.lookup, Ok(found));
        }
    }

    /// Reads the blocks that searches need and that are not cached, each of them once.
    #[cold]
    fn read_missing(&mut self, searches: &mut [Search<'v, '_>], mut missing: Vec<Missing<'v>>) {
        missing.sort_unstable_by_key(|Missing { table, number, place }| {
            (table.file(), *number, *place)
        });
        for of_file in missing.chunk_by(|one, other| one.table.file() == other.table.file()) {
            let table = of_file[0].table;
            let mut numbers: Vec<usize> = of_file.iter().map(|missing| missing.number).collect();
            numbers.dedup();
            let blocks = table.read_blocks(&numbers, &mut self.reads);
            for Missing { number, place, .. } in of_file {
                let search = &mut searches[*place];
                let read = numbers.binary_search(number).ok().and_then(|at| blocks[at].clone());
                // A block that failed in the joint read is read alone, which reports its own error.
                let alone = || table.missing_block(*number, &mut self.reads);
                match read.map_or_else(alone, Ok) {
                    Ok(block) => self.search_block(search, table, block),
                    Err(error) => {
                        search.step = None;
                        self.end(search.place, &search.lookup, Err(error));
                    }
                }
            }
        }
    }

    /// Ends a search with what was found in tables.
    fn end(&mut self, place: usize, lookup: &Lookup<'v, '_>, found: Result<Option<FoundEntry>>) {
        let found = self.count(lookup.query, |costs| lookup.end(found, costs));
        self.settle(place, lookup.query, found);
    }

    /// Sets the answer for a key, unless its value is stored apart.
    #[inline]
    fn settle(
        &mut self,
        place: usize,
        query: PointQuery<'_, '_>,
        found: Result<Option<FoundEntry>>,
    ) {
        self.answers[place] = match found {
            Ok(Some(found)) if found.kind.is_apart() => return self.put_aside(place, found),
            Ok(Some(found)) => {
                // The caller reads the value once all keys are done.
                prefetch_lines::<u8>(&found.value, 0, VALUE_LINES);
                self.tree.value_of(query, found, &mut self.costs)
            }
            Ok(None) => Ok(None),
            Err(error) => Err(error),
        };
    }

    #[cold]
    fn put_aside(&mut self, place: usize, found: FoundEntry) {
        let stored = match found.kind.has_expiry() {
            true => found.value.unless_expired(&*self.tree.env.clock),
            false => Some(found.value),
        };
        self.apart.extend(stored.map(|stored| (place, stored)));
    }

    /// Reads the values apart in the order of their places. Meanwhile the system, or queues, read
    /// the next ones ahead.
    #[cold]
    fn read_values(&mut self) {
        let tree = self.tree;
        let place_of = |stored: &Value| {
            let at = tree.ref_of(stored).ok()?;
            Some((at.file, at.offset))
        };
        let mut apart = std::mem::take(&mut self.apart);
        apart.sort_by_cached_key(|(_, stored)| place_of(stored));
        let mut apart = VecDeque::from(apart);
        // Read-ahead was requested for this many values at the front of `apart`.
        let mut ahead = ReadAheadValues::default();
        while let Some((place, stored)) = apart.pop_front() {
            let coming = ahead.pop();
            while ahead.has_room()
                && let Some((_, next)) = apart.get(ahead.values.len())
            {
                ahead.push(tree.will_get_value(next));
            }
            let value = tree.cached_value_apart(&stored, coming, &mut self.costs);
            self.answers[place] = value.map(Some);
        }
    }

    /// Counts one key. The guard `elastic` samples gets one by one.
    #[inline]
    fn count<T>(&mut self, query: PointQuery<'_, '_>, add: impl FnOnce(&mut QueryStats) -> T) -> T {
        if self.tree.elastic.is_none() {
            self.costs.queries += 1;
            let QueryStats { reached_runs, true_positives, .. } = self.costs;
            let added = add(&mut self.costs);
            if self.costs.reached_runs > reached_runs && self.costs.true_positives == true_positives
            {
                let before = self.before + self.costs.queries;
                self.tree.empty_query_sample.note_point(query.key, before);
            }
            return added;
        }
        let mut costs = QueryStats { queries: 1, ..QueryStats::default() };
        let added = add(&mut costs);
        query.count(self.tree, &costs);
        added
    }
}
