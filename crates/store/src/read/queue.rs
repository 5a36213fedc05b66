//! A queue of concurrent queries: submitted one by one, answered as their reads complete.
//! ```text
//! submit_get   -> memtables -> guard -> candidate table -> block in the cache?
//!              -> entry, or the next block or table
//!                                             ^                  | no
//!                                             '-- checked block <- read  ......  meanwhile, other
//!              -> value apart in the cache? -- no --> read, checked              queries proceed
//! submit_range -> a scan; if it lacks a block, that is read, and the scan is repeated
//! ```
//! Invariants: a submitted query is answered once, and sees the store as of its submission. A get
//! pins its version and then takes its sequence number (ordering rule 2); a range registers one.
//! Answers, counters and errors are those of [`Db::get`](crate::Keyspace::get) and
//! [`Db::range`](crate::Keyspace::range).

use std::collections::VecDeque;
use std::io;

use crate::entries::key_bounds::KeyBounds;
use crate::entries::value::Value;
use crate::error::Result;
use crate::files::query_blocks::Wanted;
use crate::read::queue_get::{GetSearch, Got, ValueSearch};
use crate::read::queue_range::RangeSearch;
use crate::read::scan::KeyValue;
use crate::storage::read_queue::{ReadBuffer, ReadQueue};
use crate::storage::traits::ReadAt;
use crate::sync::Arc;
use crate::tree::open_tree::OpenTree;
use crate::tree::snapshots::Registered;

/// Bytes of values apart that are read concurrently, at most. Further values are read
/// synchronously.
const AWAITED_BYTES_MAX: usize = 64 << 20;

/// The answer to a query.
#[derive(Debug)]
pub enum Answer {
    /// To a get: the value of the key, or None if it has none.
    Value(Result<Option<Value>>),
    /// To a range: its first entries.
    Entries(Result<Vec<KeyValue>>),
}

/// An answer, and the tag with which its query was submitted.
#[derive(Debug)]
pub struct Answered {
    /// The caller's tag, by which it tells its queries apart.
    pub tag: u64,
    /// The answer.
    pub answer: Answer,
}

/// Concurrent queries of one thread. Answers arrive in the order of completion. Dropping the queue
/// abandons open queries.
///
/// A query sees all writes that returned before it was submitted, and none that began afterwards.
/// In the queue of a snapshot, all queries see the snapshot.
///
/// ```
/// # fn main() -> trommel::Result<()> {
/// # let dir = tempfile::tempdir().expect("a temporary folder");
/// # let db = trommel::Db::open(dir.path().join("store"), trommel::Options::default())?;
/// db.put("drum", "turns")?;
/// let mut queue = db.queue(32);
/// queue.submit_get("drum", 1);
/// queue.submit_range("a".."z", 10, 2);
/// while let Some(answered) = queue.wait() {
///     println!("{}: {:?}", answered.tag, answered.answer);
/// }
/// # Ok(())
/// # }
/// ```
pub struct Queue {
    tree: Arc<OpenTree>,
    /// Some: all queries read at this sequence number.
    at: Option<Registered>,
    reads: Box<dyn ReadQueue>,
    /// Each has a read in progress, whose tag is the place in this list.
    searches: Vec<Option<Search>>,
    free: Vec<usize>,
    done: VecDeque<Answered>,
    /// Bytes of values apart that are being read.
    awaited_bytes: usize,
}

/// A query that waits for a read.
struct Search {
    tag: u64,
    query: Query,
}

enum Query {
    Get(Box<GetSearch>, Wanted),
    Value(Box<ValueSearch>),
    Range(Box<RangeSearch>, Wanted),
}

impl Query {
    /// Returns the file, the offset and the length of the read that the query waits for.
    fn place(&self) -> (Arc<dyn ReadAt>, u64, usize) {
        match self {
            Query::Get(_, wanted) | Query::Range(_, wanted) => {
                wanted.table.block_place(wanted.number)
            }
            Query::Value(search) => search.place(),
        }
    }
}

impl Queue {
    pub(crate) fn new(tree: &Arc<OpenTree>, at: Option<Registered>, depth: usize) -> Queue {
        let table_files = &tree.table_files;
        let reads = table_files.folder.handle().read_queue(table_files.io.overlap, depth.max(1));
        let (searches, free, done) = (Vec::new(), Vec::new(), VecDeque::new());
        Queue { tree: Arc::clone(tree), at, reads, searches, free, done, awaited_bytes: 0 }
    }

    /// Submits a get.
    pub fn submit_get(&mut self, key: impl AsRef<[u8]>, tag: u64) {
        let at = self.at.as_ref().map(Registered::sequence);
        let got = GetSearch::begin(&self.tree, key.as_ref(), at);
        self.get(tag, got);
    }

    /// Submits a scan of the first `limit` entries of a range. Meant for short ranges: the whole
    /// answer is held in memory.
    pub fn submit_range(&mut self, bounds: impl Into<KeyBounds>, limit: usize, tag: u64) {
        let registered = self.at.clone().unwrap_or_else(|| self.tree.snapshots.register());
        let search = RangeSearch::new(registered, bounds.into(), limit);
        self.scan(tag, Box::new(search));
    }

    /// Returns the number of submitted queries whose answers were not taken yet.
    pub fn under_way(&self) -> usize {
        self.searches.len() - self.free.len() + self.done.len()
    }

    /// Waits for the next answer. None: no query is open.
    #[must_use]
    pub fn wait(&mut self) -> Option<Answered> {
        self.take(true)
    }

    /// Returns an answer if one is ready, without waiting.
    #[must_use]
    pub fn poll(&mut self) -> Option<Answered> {
        self.take(false)
    }

    fn take(&mut self, wait: bool) -> Option<Answered> {
        if self.tree.check_open().is_err() {
            return self.refuse();
        }
        while self.done.is_empty() {
            let completed = self.reads.collect(wait)?;
            self.go_on(completed.tag as usize, completed.bytes);
        }
        self.done.pop_front()
    }

    /// After the store was closed, or in a forked child: answers an open query with the error.
    fn refuse(&mut self) -> Option<Answered> {
        if let Some(answered) = self.done.pop_front() {
            return Some(answered);
        }
        let place = self.searches.iter().position(Option::is_some)?;
        let Search { tag, query, .. } = self.searches[place].take()?;
        self.free.push(place);
        let error = self.tree.check_open().err()?;
        let answer = match query {
            Query::Get(..) | Query::Value(_) => Answer::Value(Err(error)),
            Query::Range(..) => Answer::Entries(Err(error)),
        };
        Some(Answered { tag, answer })
    }

    /// Submits the read that a query waits for.
    fn read(&mut self, tag: u64, query: Query) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.searches.push(None);
            self.searches.len() - 1
        });
        let (file, offset, len) = query.place();
        self.reads.submit(place as u64, file, offset, len);
        self.searches[place] = Some(Search { tag, query });
    }

    /// Continues a query with the bytes that were read for it.
    fn go_on(&mut self, place: usize, bytes: io::Result<ReadBuffer>) {
        let Search { tag, query } = self.searches[place].take().expect("a read is for a query");
        self.free.push(place);
        let block = |wanted: &Wanted, bytes| wanted.table.block_of_bytes(wanted.number, bytes);
        match query {
            Query::Get(search, wanted) => {
                let got = search.go_on(&self.tree, &wanted, block(&wanted, bytes));
                self.get(tag, got);
            }
            Query::Value(search) => {
                self.awaited_bytes -= search.place().2;
                let value = search.arrived(&self.tree, bytes);
                self.get(tag, Got::Answer(value));
            }
            Query::Range(mut search, wanted) => {
                match block(&wanted, bytes) {
                    Ok(block) => search.arrived(&wanted, block),
                    Err(_) => search.give_up(),
                }
                self.scan(tag, search);
            }
        }
    }

    fn get(&mut self, tag: u64, got: Got) {
        match got {
            Got::Answer(value) => {
                self.done.push_back(Answered { tag, answer: Answer::Value(value) });
            }
            Got::Block(search, wanted) => self.read(tag, Query::Get(search, wanted)),
            Got::Value(search) => {
                let bytes = self.awaited_bytes + search.place().2;
                if bytes > AWAITED_BYTES_MAX {
                    let value = search.at_once(&self.tree);
                    return self.get(tag, Got::Answer(value));
                }
                self.awaited_bytes = bytes;
                self.read(tag, Query::Value(search));
            }
        }
    }

    fn scan(&mut self, tag: u64, mut search: Box<RangeSearch>) {
        match search.scan(&self.tree) {
            Ok(entries) => {
                self.done.push_back(Answered { tag, answer: Answer::Entries(entries) });
            }
            Err(wanted) => self.read(tag, Query::Range(search, wanted)),
        }
    }
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue").field("under_way", &self.under_way()).finish_non_exhaustive()
    }
}
