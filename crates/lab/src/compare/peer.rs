//! The interface between a comparison and the stores that it measures.
//! ```text
//! Engine::open(folder, filter, settings) -> Peer    put, delete | get, scan | flush, settle,
//!                                            ^      compact | runs, memory
//!                                            |
//!                       RunLoad: the same keys in the same sorted runs, whatever the engine
//! ```
//! Invariant: a peer answers like a map; `check_peer` tests it.

use std::collections::HashSet;
use std::convert::Infallible;
use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::compare::own_tree::OwnTree;
use crate::compare::peer_packing::PeerPacking;
use crate::compare::transactional::TransactionalStore;
use crate::error::{LabError, Result};
use crate::keys::key_list::SortedKeys;
use crate::keys::values::fill_value;
use crate::tree_plan::TreePlan;

/// A kind of store that can be opened.
pub trait Engine {
    /// The name in commands and reports.
    fn name(&self) -> &'static str;
    /// The names of its filters, at least one. The first is its default in comparisons.
    fn filters(&self) -> Vec<String>;
    /// Opens a store, or creates it. Requires: `filter` is one of `filters`.
    fn open(&self, folder: &Path, filter: &str, settings: &PeerSettings) -> Result<Box<dyn Peer>>;
    /// Like `open`, but with transactions over named key spaces. None: the engine has no
    /// transactions to measure. Requires: at least one name.
    fn open_transactional(
        &self,
        _folder: &Path,
        _filter: &str,
        _settings: &PeerSettings,
        _spaces: &[&str],
    ) -> Result<Option<Box<dyn TransactionalStore>>> {
        Ok(None)
    }
}

/// The settings that all stores of a comparison share.
#[derive(Clone, Debug)]
pub struct PeerSettings {
    /// Memory of filters, in bits per key.
    pub bits_per_key: f64,
    /// Capacity of the block cache, in bytes.
    pub block_cache_bytes: usize,
    /// Capacity of the memtable, in bytes.
    pub write_buffer_bytes: usize,
    /// Threads that merge. One more thread flushes.
    pub merge_threads: usize,
    /// Whether data bypasses the operating system's cache, where the engine supports it.
    pub direct: bool,
    /// Whether this store waits for the syncs of flushes and merges. With them, a load of many
    /// flushes would measure the disk alone.
    pub synced: bool,
    /// The packing of blocks.
    pub packing: PeerPacking,
    /// The size in bytes from which values are stored apart from their keys, with the engine's
    /// recommended garbage collection. None: the engine's default.
    pub values_apart_from: Option<usize>,
    /// The share of garbage at which files of values are rewritten, regardless of their age. None:
    /// the engine's default.
    pub value_garbage_share: Option<f64>,
    /// The shape of the tree.
    pub shape: PeerShape,
}

/// The shape of a store's tree.
#[derive(Clone, Debug)]
pub enum PeerShape {
    /// The engine's default. For this store: these settings.
    Default(OwnTree),
    /// The runs that `load_runs` loads.
    Runs(TreePlan),
}

/// What a store has counted since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PeerCounts {
    /// Blocks that reads asked for, cached ones included.
    pub blocks_read: u64,
    /// Blocks read from the disk.
    pub disk_reads: u64,
    /// Filter probes.
    pub guard_probes: u64,
    /// Runs searched in vain.
    pub needless_runs: u64,
    /// Bytes of tables that flushes and merges wrote.
    pub table_bytes: u64,
    /// The total time that writers were slowed down or stopped, in seconds.
    pub stall_seconds: f64,
    /// Flushes.
    pub flushes: u64,
}

impl PeerCounts {
    /// Adds the counts of another tree of the same store.
    pub(crate) fn add(&mut self, other: &PeerCounts) {
        self.blocks_read += other.blocks_read;
        self.disk_reads += other.disk_reads;
        self.guard_probes += other.guard_probes;
        self.needless_runs += other.needless_runs;
        self.table_bytes += other.table_bytes;
        self.stall_seconds += other.stall_seconds;
        self.flushes += other.flushes;
    }
}

/// An open store. Several threads may read and write at once.
pub trait Peer: Sync {
    /// All settings and the engine's version, as text.
    fn settings(&self) -> String;
    /// Sets the value of a key.
    fn put(&self, key: &[u8], value: &[u8]) -> Result<()>;
    /// Removes a key.
    fn delete(&self, key: &[u8]) -> Result<()>;
    /// Looks up a key. Returns whether it is there, and lends its value to `seen`.
    fn get(&self, key: &[u8], seen: &mut dyn FnMut(&[u8])) -> Result<bool>;
    /// Lends the first `limit` entries at or after `from` and below `before`, if that is given.
    /// Returns their number.
    fn scan(
        &self,
        from: &[u8],
        before: Option<&[u8]>,
        limit: usize,
        seen: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<usize>;
    /// Lends all keys in order, and reads no values if the engine can avoid it. Returns their
    /// number.
    fn scan_keys(&self, seen: &mut dyn FnMut(&[u8])) -> Result<usize> {
        self.scan(&[], None, usize::MAX, &mut |key, _| seen(key))
    }
    /// Flushes the memtable.
    fn flush(&self) -> Result<()>;
    /// Waits until no background work is left.
    fn settle(&self) -> Result<()>;
    /// Merges everything into one sorted run.
    fn compact(&self) -> Result<()>;
    /// Returns how many sorted runs are on disk. None: the engine has none.
    fn runs(&self) -> Result<Option<u64>>;
    /// Returns the entries of the smallest sorted run. None: unknown, or there is no run.
    fn smallest_run(&self) -> Result<Option<u64>> {
        Ok(None)
    }
    /// Creates another store in a new folder, with the contents of this one in the same runs.
    /// False: the engine cannot.
    fn copy_to(&self, _folder: &Path) -> Result<bool> {
        Ok(false)
    }
    /// Returns the memory of filters, in bytes. None: unknown.
    fn filter_bytes(&self) -> Result<Option<u64>>;
    /// Returns what the store has counted. None: it does not count.
    fn counts(&self) -> Option<PeerCounts> {
        None
    }
    /// Closes the store.
    fn close(self: Box<Self>) -> Result<()>;

    /// Fills an empty store that was opened with `PeerShape::Runs`.
    fn load_runs(&self, load: &RunLoad<'_>) -> Result<()> {
        for (nth, run) in load.runs().into_iter().enumerate() {
            load.each_entry(run, &mut |key, value| self.put(key, value))?;
            self.flush()?;
            if nth == 0 {
                self.compact()?;
            }
        }
        Ok(())
    }
}

/// Writes an entry.
pub type WriteEntry<'a> = dyn FnMut(&[u8], &[u8]) -> Result<()> + 'a;

/// Keys in random order, cut into flushes, and the flushes into the sorted runs of a tree.
/// ```text
/// order     . . . . . . . . . . . . . . . . . . .
/// flushes   0     1     2     3     4     5
/// runs      [oldest                ][    ][    ]
/// ```
pub struct RunLoad<'a> {
    pub(crate) keys: &'a SortedKeys,
    pub(crate) order: &'a [u32],
    pub(crate) tree: &'a TreePlan,
}

impl RunLoad<'_> {
    /// Returns the number of flushes.
    pub fn flushes(&self) -> u64 {
        self.tree.flush_count().expect("the plan was checked")
    }

    /// Returns the flushes of each run, oldest run first.
    pub fn runs(&self) -> Vec<Range<u64>> {
        self.tree.run_flushes()
    }

    /// Passes the entries of some flushes to `write`, in the order in which they are to be written.
    pub fn each_entry(&self, flushes: Range<u64>, write: &mut WriteEntry<'_>) -> Result<()> {
        let (all, count) = (u128::from(self.flushes()), self.keys.len() as u128);
        let place = |flush: u64| (u128::from(flush) * count / all) as usize;
        let mut value = Vec::new();
        for &nth in &self.order[place(flushes.start)..place(flushes.end)] {
            let key = self.keys.get(nth as usize);
            fill_value(&mut value, key, self.tree.value_bytes);
            write(key, &value)?;
        }
        Ok(())
    }
}

/// An engine with one of its filters, as in `rocksdb:bloom`. An empty filter: the engine's first
/// one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contender {
    /// The engine's name.
    pub engine: String,
    /// The filter's name.
    pub filter: String,
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Contender { engine, filter } = self;
        if filter.is_empty() { f.write_str(engine) } else { write!(f, "{engine}:{filter}") }
    }
}

impl FromStr for Contender {
    type Err = Infallible;

    fn from_str(name: &str) -> std::result::Result<Self, Infallible> {
        let (engine, filter) = name.split_once(':').unwrap_or((name, ""));
        Ok(Contender { engine: engine.into(), filter: filter.into() })
    }
}

impl Contender {
    /// Returns the contender with the engine's first filter if none was named.
    pub(crate) fn named(&self, engine: &dyn Engine) -> Contender {
        let filter =
            if self.filter.is_empty() { engine.filters().remove(0) } else { self.filter.clone() };
        Contender { filter, ..self.clone() }
    }

    /// Returns the name of its folder.
    pub(crate) fn folder_name(&self) -> String {
        format!("{}-{}", self.engine, self.filter)
    }

    /// Finds the engine. An error lists the known engines, or the engine's filters.
    pub(crate) fn find<'e>(&self, engines: &'e [Box<dyn Engine>]) -> Result<&'e dyn Engine> {
        let Some(engine) = engines.iter().find(|engine| engine.name() == self.engine) else {
            let names: Vec<&str> = engines.iter().map(|engine| engine.name()).collect();
            let problem = format!("no peer '{}'; there are: {}", self.engine, names.join(", "));
            return Err(LabError::Plan(problem));
        };
        let filters = engine.filters();
        if !self.filter.is_empty() && !filters.contains(&self.filter) {
            let (engine, filter) = (&self.engine, &self.filter);
            let problem =
                format!("{engine} has no filter '{filter}'; there are: {}", filters.join(", "));
            return Err(LabError::Plan(problem));
        }
        Ok(engine.as_ref())
    }
}

/// Finds the engines of all contenders, and names the contenders' filters. An error if there is no
/// contender, or one twice.
pub(crate) fn find_all<'e>(
    contenders: &[Contender],
    engines: &'e [Box<dyn Engine>],
) -> Result<(Vec<&'e dyn Engine>, Vec<Contender>)> {
    let found = contenders.iter().map(|one| one.find(engines)).collect::<Result<Vec<_>>>()?;
    let pairs = contenders.iter().zip(&found);
    let named: Vec<Contender> = pairs.map(|(one, engine)| one.named(*engine)).collect();
    let distinct: HashSet<String> = named.iter().map(Contender::to_string).collect();
    match named.len() {
        0 => Err(LabError::Plan("a store is the least to measure".into())),
        count if distinct.len() < count => Err(LabError::Plan("the same store twice".into())),
        _ => Ok((found, named)),
    }
}
