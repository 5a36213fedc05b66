//! Simulates the tree that a policy makes of a load, with tables that have no data.
//! ```text
//! flush ──> a run in level 0 ──> pick: the merge that a store would make now ──> its output's size
//!             ^-- this many entries               ^-- the store's own code           ^-- a model
//! ```
//! Invariant: the store's own code chooses each merge and the level of its output. Only the overlap
//! of runs is a model: keys are drawn uniformly.

use trommel_filters::{FlushNumber, Span};

use crate::plan::flush_size::FlushSize;
use crate::plan::layout::{Edit, Layout, RunRecord, TableRecord};
use crate::plan::merge_job::{MergeJob, Target};
use crate::plan::options::Options;
use crate::plan::partitions::Granularity;
use crate::plan::pick::pick;

/// What is written to a simulated store.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// Total number of entries.
    pub entries: u64,
    /// Number of distinct keys, drawn uniformly. None: each entry has its own key.
    pub keys: Option<u64>,
    /// Bytes per entry in a table.
    pub table_bytes: f64,
    /// Entries per flush: what fits into the write buffer.
    pub flush_entries: u64,
}

/// A run of a simulated tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimulatedRun {
    /// Its level.
    pub level: usize,
    /// Its entries.
    pub entries: u64,
    /// The flushes that its entries came with.
    pub flushes: u64,
}

/// A simulated tree, and the work that built it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SimulatedTree {
    /// Its runs, the newest first.
    pub runs: Vec<SimulatedRun>,
    /// The most runs after all merges due at a flush.
    pub most_runs: usize,
    /// The mean number of runs at these moments.
    pub mean_runs: f64,
    /// Flushes.
    pub flushes: u64,
    /// Merges.
    pub merges: u64,
    /// Merges into the last level, each of which rebuilds the global filter's base.
    pub last_merges: u64,
    /// Bytes of tables that flushes wrote.
    pub flushed_bytes: f64,
    /// Bytes of tables that merges wrote.
    pub merged_bytes: f64,
    /// Entries that merges into the last level wrote.
    pub last_merged_entries: u64,
}

impl SimulatedTree {
    /// Returns the bytes of tables written for each flushed byte, including that byte.
    pub fn write_amplification(&self) -> f64 {
        if self.flushed_bytes == 0.0 {
            return 0.0;
        }
        (self.flushed_bytes + self.merged_bytes) / self.flushed_bytes
    }

    /// Returns the entries of all runs.
    pub fn entries(&self) -> u64 {
        self.runs.iter().map(|run| run.entries).sum()
    }
}

/// Simulates a load under the policy and size ratio of `options`. Merges take whole runs, which are
/// as many bytes as merges by ranges. Time is proportional to flushes times runs.
pub fn simulate_tree(options: &Options, load: &Load) -> SimulatedTree {
    let mut options = options.clone();
    options = options.granularity(Granularity::Full);
    let mut tree = Simulation {
        options,
        load: *load,
        layout: Layout::default(),
        done: SimulatedTree::default(),
    };
    let mut left = load.entries;
    while left > 0 {
        let entries = left.min(load.flush_entries.max(1));
        left -= entries;
        tree.flush(entries);
        while let Some(job) = pick(&tree.layout, &[], &tree.options, false) {
            tree.merge(&job);
        }
        let runs = tree.layout.runs.len();
        tree.done.most_runs = tree.done.most_runs.max(runs);
        tree.done.mean_runs += (runs as f64 - tree.done.mean_runs) / tree.done.flushes as f64;
    }
    tree.done.runs = tree.layout.runs.iter().map(simulated).collect();
    tree.done
}

fn simulated(run: &RunRecord) -> SimulatedRun {
    SimulatedRun { level: run.level, entries: run.entries(), flushes: run.flush_count() }
}

struct Simulation {
    options: Options,
    load: Load,
    layout: Layout,
    done: SimulatedTree,
}

impl Simulation {
    fn flush(&mut self, entries: u64) {
        let flush = self.layout.next_flush;
        let first = if self.layout.runs.is_empty() { FlushNumber(0) } else { flush };
        let span = Span::new(first, flush.next()).expect("it begins before it ends");
        // A flush, too, has each key once.
        let entries = self.distinct([entries].into_iter());
        let next_flush = Some(flush.next());
        let record = self.record(0, span, entries);
        self.done.flushes += 1;
        self.done.flushed_bytes += record.bytes as f64;
        self.change(Edit { added: vec![record], next_flush, ..Edit::default() });
    }

    fn merge(&mut self, job: &MergeJob) {
        let inputs: Vec<&RunRecord> =
            job.inputs.iter().filter_map(|id| self.layout.run(*id)).collect();
        let span = inputs.iter().map(|run| run.span()).reduce(Span::hull);
        let entries = self.distinct(inputs.iter().map(|run| run.entries()));
        let removed = inputs.iter().flat_map(|run| &run.tables).map(|table| table.file).collect();
        let oldest = inputs.last().map_or(0, |run| run.level);
        let level = match job.target {
            Target::Inner(level) => level,
            Target::Last => {
                let size = FlushSize::of_inputs(&self.layout, job, Granularity::Full);
                size.last_level(entries, &self.options.schedule()).unwrap_or(oldest)
            }
        };
        let record = self.record(level, span.expect("a merge has inputs"), entries);
        self.done.merges += 1;
        self.done.merged_bytes += record.bytes as f64;
        if job.target == Target::Last {
            self.done.last_merges += 1;
            self.done.last_merged_entries += entries;
        }
        self.change(Edit { removed, added: vec![record], ..Edit::default() });
    }

    /// Estimates how many distinct keys runs with these entry counts have together.
    fn distinct(&self, entries: impl Iterator<Item = u64>) -> u64 {
        let Some(keys) = self.load.keys else { return entries.sum() };
        let keys = keys.max(1) as f64;
        // The chance that no run has a given key.
        let absent: f64 = entries.map(|entries| (1.0 - entries as f64 / keys).max(0.0)).product();
        ((1.0 - absent) * keys).round() as u64
    }

    /// Makes a run of one table that spans all keys.
    fn record(&self, level: usize, span: Span, entries: u64) -> TableRecord {
        let file = self.layout.next_file;
        TableRecord {
            file,
            run: file,
            level,
            from: vec![],
            to: vec![u8::MAX],
            span,
            is_trimmed: false,
            skipped: 0,
            entries,
            file_entries: entries,
            bytes: (entries as f64 * self.load.table_bytes) as u64,
        }
    }

    fn change(&mut self, edit: Edit) {
        let edit = Edit { next_file: Some(self.layout.next_file + 1), ..edit };
        let layout = std::mem::take(&mut self.layout);
        self.layout = layout.followed_by(&edit).expect("its own changes fit");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Memory;
    use crate::sync::Arc;
    use crate::{Background, Db, Environment, Policy};

    fn options(policy: Policy) -> Options {
        Options::new().size_ratio(4).policy(policy).write_buffer_bytes(64 << 10)
    }

    struct Measured {
        flushes: u64,
        flushed: f64,
        merged: f64,
        mean_runs: f64,
        levels: usize,
    }

    /// Writes the same load into a store.
    fn measured(options: &Options, writes: u64, keys: u64) -> Measured {
        let options = options.clone().granularity(Granularity::Full);
        let options = options.background(Background::Stepped).log(false);
        let environment = Environment::new().storage(Arc::new(Memory::new()));
        let db = Db::open_with("db", options, environment).expect("opens");
        let (mut runs, mut looks) = (0, 0);
        for number in 0..writes {
            let key = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % keys;
            db.put(key.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes(), [7; 24]).expect("puts");
            while db.step().expect("steps") {}
            if number % 100 == 0 {
                looks += 1;
                runs += db.stats().expect("open").run_count();
            }
        }
        let stats = db.stats().expect("open");
        Measured {
            flushes: stats.flushes,
            flushed: stats.bytes_flushed as f64,
            merged: stats.bytes_merged as f64,
            mean_runs: runs as f64 / f64::from(looks),
            levels: stats.levels.len(),
        }
    }

    #[test]
    fn a_simulated_tree_is_as_the_measured_one() {
        let near = |one: f64, other: f64| (one / other - 1.0).abs() < 0.1;
        for policy in [Policy::lazy_leveling(), Policy::leveling(), Policy::tiering()] {
            for (writes, keys) in [(240_000, u64::MAX), (240_000, 60_000)] {
                let options = options(policy.clone());
                let real = measured(&options, writes, keys);
                let load = Load {
                    entries: writes,
                    keys: (keys < u64::MAX).then_some(keys),
                    table_bytes: real.flushed / writes as f64,
                    flush_entries: writes.div_ceil(real.flushes),
                };
                let tree = simulate_tree(&options, &load);
                let what = format!("{}, of {keys} keys: {tree:?}", policy.name());
                let amplification = (real.flushed + real.merged) / real.flushed;
                let simulated = tree.write_amplification();
                assert!(near(simulated, amplification), "{simulated}, {amplification}, {what}");
                assert!(near(tree.mean_runs, real.mean_runs), "{} runs, {what}", real.mean_runs);
                let levels = tree.runs.iter().map(|run| run.level).max().expect("has runs") + 1;
                assert!(levels.abs_diff(real.levels) <= 1, "{} levels, {what}", real.levels);
            }
        }
    }

    #[test]
    fn a_large_load_is_simulated_soon_and_keeps_its_entries() {
        let load = Load {
            entries: 10_000_000_000,
            keys: None,
            table_bytes: 36.0,
            flush_entries: 1_000_000,
        };
        let tree = simulate_tree(&Options::new(), &load);
        assert_eq!((tree.entries(), tree.flushes), (load.entries, 10_000));
        let last = tree.runs.last().expect("has runs");
        assert!(last.level == 4 && tree.runs.len() <= 40, "{tree:?}");
        assert!((3.0..9.0).contains(&tree.write_amplification()), "{tree:?}");
    }
}
