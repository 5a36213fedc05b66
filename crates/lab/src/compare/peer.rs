//! The seam behind which stores stand that are measured beside each other.
//! ```text
//! Engine::open(folder, filter, settings) -> Peer     put, delete | get, scan | flush, settle, compact | runs, memory
//!                                            ^
//!                                            RunLoad: the same keys in the same sorted runs, whatever the engine
//! ```
//! Invariant: a peer answers like a map. `check_peer` asks it.

use std::ops::Range;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::{LabError, Result};
use crate::keys::SortedKeys;
use crate::tree::{TreePlan, fill_value};

/// A kind of store that can be opened.
pub trait Engine {
    /// The name that people write.
    fn name(&self) -> &'static str;
    /// The filters that it can be opened with, by their names; the first is what it is best compared with.
    fn filters(&self) -> Vec<String>;
    /// Opens a store, or makes it where there is none. Requires: `filter` is one of `filters`.
    fn open(&self, folder: &Path, filter: &str, settings: &PeerSettings) -> Result<Box<dyn Peer>>;
}

/// What all stores of a comparison are told.
#[derive(Clone, Debug)]
pub struct PeerSettings {
    /// Memory of filters.
    pub bits_per_key: f64,
    /// Memory for blocks that were read.
    pub block_cache_bytes: usize,
    /// How the store keeps its tree.
    pub shape: PeerShape,
}

/// How a store keeps its tree.
#[derive(Clone, Debug)]
pub enum PeerShape {
    /// As the engine does by default.
    Default,
    /// As the runs that it is loaded with: `load_runs`.
    Runs(TreePlan),
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
    /// Shows the first `limit` entries from `from` on, before `before` if there is such a bound; tells how many there were.
    fn scan(
        &self,
        from: &[u8],
        before: Option<&[u8]>,
        limit: usize,
        seen: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<usize>;
    /// Writes what is in memory to disk.
    fn flush(&self) -> Result<()>;
    /// Waits until nothing is left to be done in the background.
    fn settle(&self) -> Result<()>;
    /// Makes one sorted run of everything.
    fn compact(&self) -> Result<()>;
    /// How many sorted runs are on disk. None: it has none.
    fn runs(&self) -> Result<Option<u64>>;
    /// Memory of filters, in bytes. None: nobody knows.
    fn filter_bytes(&self) -> Result<Option<u64>>;
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

/// A filter of an engine, as in `rocksdb:bloom`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contender {
    /// The engine's name.
    pub engine: String,
    /// The filter's name.
    pub filter: String,
}

impl Contender {
    /// The engine. An error lists the engines, or their filters, if it is none of them.
    pub(crate) fn find<'e>(&self, engines: &'e [Box<dyn Engine>]) -> Result<&'e dyn Engine> {
        let Some(engine) = engines.iter().find(|engine| engine.name() == self.engine) else {
            let names: Vec<&str> = engines.iter().map(|engine| engine.name()).collect();
            let problem = format!("no peer '{}'; there are: {}", self.engine, names.join(", "));
            return Err(LabError::Plan(problem));
        };
        let filters = engine.filters();
        if !filters.contains(&self.filter) {
            let (engine, filter) = (&self.engine, &self.filter);
            let problem =
                format!("{engine} has no filter '{filter}'; there are: {}", filters.join(", "));
            return Err(LabError::Plan(problem));
        }
        Ok(engine.as_ref())
    }
}
