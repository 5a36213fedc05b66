//! The seam between a comparison and the stores that it measures.
//! ```text
//! Engine::open(folder, filter, settings) -> Peer    put, delete | get, scan | flush, settle,
//!                                            ^      compact | runs, memory
//!                                            |
//!                       RunLoad: the same keys in the same sorted runs, whatever the engine
//! ```
//! Invariant: a peer answers like a map. `check_peer` asks it.

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
    /// The name that people write.
    fn name(&self) -> &'static str;
    /// The filters that it can be opened with, by their names, one at least; the first is what it
    /// is best compared with.
    fn filters(&self) -> Vec<String>;
    /// Opens a store, or makes it where there is none. Requires: `filter` is one of `filters`.
    fn open(&self, folder: &Path, filter: &str, settings: &PeerSettings) -> Result<Box<dyn Peer>>;
    /// As `open`, with transactions over key spaces of these names. None: the engine has none that
    /// could be measured. Requires: there is a name.
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
    /// Memory of filters.
    pub bits_per_key: f64,
    /// Memory for blocks that were read.
    pub block_cache_bytes: usize,
    /// Memory for new entries before they are written as a run.
    pub write_buffer_bytes: usize,
    /// Threads that merge. One more flushes.
    pub merge_threads: usize,
    /// Whether data goes past the operating system's cache, where an engine can do that.
    pub direct: bool,
    /// Whether this store waits until the disk has what flushes and merges wrote. (Filling to many
    /// flushes would measure the disk alone.)
    pub synced: bool,
    /// How it packs blocks.
    pub packing: PeerPacking,
    /// From how many bytes on it writes values apart from their keys, with what it recommends for
    /// their garbage. None: as the engine does by default.
    pub values_apart_from: Option<usize>,
    /// The share of garbage from which on files of values are written anew, however young they are.
    /// None: as the engine does by default.
    pub value_garbage_share: Option<f64>,
    /// How the store keeps its tree.
    pub shape: PeerShape,
}

/// How a store keeps its tree.
#[derive(Clone, Debug)]
pub enum PeerShape {
    /// The engine's default; this store by the settings here.
    Default(OwnTree),
    /// As the runs that it is loaded with: `load_runs`.
    Runs(TreePlan),
}

/// What a store has counted since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PeerCounts {
    /// Blocks that reads asked for, those that were cached included.
    pub blocks_read: u64,
    /// Blocks that came from the disk.
    pub disk_reads: u64,
    /// Filter probes.
    pub guard_probes: u64,
    /// Runs that were searched needlessly.
    pub needless_runs: u64,
    /// Bytes of tables that flushes and merges wrote.
    pub table_bytes: u64,
    /// How long writers were slowed down or stopped, all together.
    pub stall_seconds: f64,
    /// Memtables that were written as runs.
    pub flushes: u64,
}

impl PeerCounts {
    /// Adds what another tree of the same store has counted.
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

/// A store. All reads and writes may come from several threads.
pub trait Peer: Sync {
    /// Everything that was set, and the engine's version, as text.
    fn settings(&self) -> String;
    /// Sets the value of a key.
    fn put(&self, key: &[u8], value: &[u8]) -> Result<()>;
    /// Removes a key.
    fn delete(&self, key: &[u8]) -> Result<()>;
    /// Whether the key is there; its value is shown, not copied.
    fn get(&self, key: &[u8], seen: &mut dyn FnMut(&[u8])) -> Result<bool>;
    /// Shows the first `limit` entries from `from` on, before `before` if there is such a bound;
    /// tells how many there were.
    fn scan(
        &self,
        from: &[u8],
        before: Option<&[u8]>,
        limit: usize,
        seen: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<usize>;
    /// Shows all keys in order, without reading values where the engine can do that; tells how many
    /// there were.
    fn scan_keys(&self, seen: &mut dyn FnMut(&[u8])) -> Result<usize> {
        self.scan(&[], None, usize::MAX, &mut |key, _| seen(key))
    }
    /// Writes what is in memory to disk.
    fn flush(&self) -> Result<()>;
    /// Waits until nothing is left to be done in the background.
    fn settle(&self) -> Result<()>;
    /// Makes one sorted run of everything.
    fn compact(&self) -> Result<()>;
    /// How many sorted runs are on disk. None: it has none.
    fn runs(&self) -> Result<Option<u64>>;
    /// Entries of the smallest sorted run. None: unknown, or there is none.
    fn smallest_run(&self) -> Result<Option<u64>> {
        Ok(None)
    }
    /// Makes another store in a new folder, with what this one has in the same runs. False: it
    /// cannot.
    fn copy_to(&self, _folder: &Path) -> Result<bool> {
        Ok(false)
    }
    /// Memory of filters, in bytes. None: unknown.
    fn filter_bytes(&self) -> Result<Option<u64>>;
    /// What it has counted. None: it does not tell.
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

/// Takes an entry to write.
pub type WriteEntry<'a> = dyn FnMut(&[u8], &[u8]) -> Result<()> + 'a;

/// Keys in random order, cut into flushes, and these into the sorted runs of a tree.
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
    /// How many flushes there are.
    pub fn flushes(&self) -> u64 {
        self.tree.flush_count().expect("the plan was checked")
    }

    /// The flushes of each run, oldest run first.
    pub fn runs(&self) -> Vec<Range<u64>> {
        self.tree.run_flushes()
    }

    /// Shows every key of some flushes, with its value, in the order in which they are written.
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

/// A filter of an engine, as in `rocksdb:bloom`. Without a name of a filter: the engine's first.
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
    /// The same, with the engine's first filter if none was named.
    pub(crate) fn named(&self, engine: &dyn Engine) -> Contender {
        let filter =
            if self.filter.is_empty() { engine.filters().remove(0) } else { self.filter.clone() };
        Contender { filter, ..self.clone() }
    }

    /// What its folder is called.
    pub(crate) fn folder_name(&self) -> String {
        format!("{}-{}", self.engine, self.filter)
    }

    /// The engine. An error lists the engines, or their filters, if it is none of them.
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

/// The engines of some contenders, and these with their filters named. An error if there are none,
/// or one of them twice.
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
