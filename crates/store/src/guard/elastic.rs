//! ElasticBF in the store: queries decide how many sub-filters of each table are in memory.
//! ```text
//! get ──> one in so many is counted ──> multi-queue: is one more here worth a few less elsewhere?
//!                                            │ yes: the sub-filter is read, outside the lock
//!                                            └────> one table has it, some others have one less
//! flush, merge ──> new tables come with the sub-filters that an equal share allows,
//!     and old ones leave with all of theirs
//! ```
//! A probe takes no lock and counts nothing. Only a sample of gets is counted, chosen by ordinal
//! number. So the same queries of one thread load and drop the same sub-filters at the same points.
//!
//! Invariants: the sub-filters in memory and the directories take at most the guard's bits for each
//! entry of the newest version. Tables that a flush or merge is about to install do not count. For
//! each table of that version, the multi-queue knows the exact number of sub-filters in memory.

use std::collections::HashMap;

use trommel_filters::{Adjustment, SubFilterPolicy};

use crate::files::placed_run::PlacedRun;
use crate::files::table::Table;
use crate::files::table::sub_filters::BoxedSubFilter;
use crate::guard::elastic_stats::ElasticStats;
use crate::plan::options::Options;
use crate::sync::{Arc, Mutex, MutexGuard, Weak, lock, try_lock};

/// Decides which sub-filters are in memory.
pub(crate) struct Elastic {
    state: Mutex<State>,
    /// Held by the thread that reads a sub-filter.
    reading: Mutex<()>,
    sample_gets: u64,
    bits_per_key: f64,
}

struct State {
    policy: Box<dyn SubFilterPolicy>,
    tables: HashMap<u64, Weak<Table>>,
    loads: u64,
    drops: u64,
    counted_gets: u64,
}

/// What a get has searched.
pub(crate) struct Looked {
    /// The number of runs searched, newest first.
    pub(crate) runs: usize,
    /// Whether the last of them had the key.
    pub(crate) found: bool,
}

impl Elastic {
    /// None: the store has another guard.
    pub(crate) fn of(options: &Options) -> Option<Elastic> {
        let parts = options.guard.table_filter()?.sub_filters()?;
        let state = Mutex::new(State {
            policy: parts.policy(&options.filter),
            tables: HashMap::new(),
            loads: 0,
            drops: 0,
            counted_gets: 0,
        });
        let sample_gets = u64::from(parts.sample_gets(&options.filter).max(1));
        let (reading, bits_per_key) = (Mutex::new(()), options.bits_per_key);
        Some(Elastic { state, reading, sample_gets, bits_per_key })
    }

    /// Adapts to a new version with these tables. Its new tables begin with the sub-filters that
    /// they have loaded; tables that left give theirs back.
    pub(crate) fn follow<'t>(&self, files: impl Iterator<Item = &'t Arc<Table>>) {
        let mut state = lock(&self.state);
        let tables: Vec<&Arc<Table>> = files.collect();
        let present: HashMap<u64, &Arc<Table>> =
            tables.iter().map(|&table| (table.file(), table)).collect();
        for gone in state.policy.retain(&|file| present.contains_key(&file)) {
            let table = state.tables.remove(&gone).and_then(|table| table.upgrade());
            if let Some(sub_filters) = table.as_deref().and_then(Table::sub_filters) {
                sub_filters.clear();
            }
        }
        let (mut entries, mut directories) = (0, 0);
        for table in tables {
            entries += table.entry_count();
            let Some(sub_filters) = table.sub_filters() else { continue };
            directories += sub_filters.directory_bytes() as u64;
            if !state.tables.contains_key(&table.file()) {
                let loaded = sub_filters.loaded_count();
                state.policy.insert(table.file(), sub_filters.of_table(), loaded);
                state.tables.insert(table.file(), Arc::downgrade(table));
            }
        }
        let budget = (entries as f64 * self.bits_per_key / 8.0) as u64;
        state.policy.set_budget_bytes(budget.saturating_sub(directories));
        for file in state.policy.shrink() {
            state.drop_sub_filter(file);
        }
    }

    /// Whether a get is in the sample. `before` counts the gets before it.
    #[inline]
    pub(crate) fn counts(&self, before: u64) -> bool {
        // The number is mixed, so that no rhythm of queries matches that of the sample.
        let mixed = (before ^ (before >> 16)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32 & 0xffff_ffff
            < (1 << 32) / self.sample_gets
    }

    /// Counts a get, and loads a sub-filter if that is worth it. While another thread holds the
    /// lock, the get is not counted.
    #[cold]
    pub(crate) fn count(&self, runs: &[PlacedRun], key: &[u8], looked: &Looked) {
        let Some(mut state) = try_lock(&self.state) else { return };
        let runs = runs[..looked.runs].iter();
        let searched: Vec<&Arc<Table>> =
            runs.filter_map(|placed| placed.run.find(key)).map(|table| &table.table).collect();
        // Where the key was found, no filter could have avoided the read.
        let in_vain =
            &searched[..searched.len() - usize::from(looked.found && !searched.is_empty())];
        state.counted_gets += 1;
        state.policy.tick();
        in_vain.iter().for_each(|table| state.policy.note_empty_query(table.file()));
        let Some(_reading) = try_lock(&self.reading) else { return };
        let wanting = state.most_wanting(in_vain);
        if let Some(table) = wanting {
            drop(state);
            let sub_filter = table.read_next_sub_filter();
            let mut state = lock(&self.state);
            match sub_filter {
                Ok(Some(sub_filter)) => state.take(table, sub_filter),
                Ok(None) => state.policy.lose_one(table.file()),
                // The disk refused. A later attempt may succeed.
                Err(_) => {}
            }
        }
    }

    /// Returns which sub-filters are in memory, and why.
    pub(crate) fn stats(&self) -> ElasticStats {
        let state: MutexGuard<'_, State> = lock(&self.state);
        let policy = &state.policy;
        let counted = policy.counted_questions();
        ElasticStats {
            budget_bytes: policy.budget_bytes(),
            sub_filter_bytes: policy.loaded_bytes(),
            tables_by_sub_filters: policy.queues().iter().map(|queue| queue.len() as u64).collect(),
            loads: state.loads,
            drops: state.drops,
            counted_gets: state.counted_gets,
            expected_rate: policy.expected_needless_reads() / counted.max(1.0),
        }
    }
}

impl State {
    /// Returns the table where one more sub-filter avoids the most reads for its bytes. Only tables
    /// that were searched in vain and can get one count.
    fn most_wanting<'t>(&self, searched: &[&'t Arc<Table>]) -> Option<&'t Arc<Table>> {
        let worth = |table: &Arc<Table>| self.policy.worth(table.file());
        let mut wanting: Vec<&Arc<Table>> =
            searched.iter().copied().filter(|table| worth(table) > 0.0).collect();
        wanting.sort_by(|a, b| worth(b).total_cmp(&worth(a)));
        wanting.into_iter().find(|table| self.policy.adjustment(table.file()).is_some())
    }

    /// Adds a sub-filter, if that is still right: flushes and merges continued while it was read.
    fn take(&mut self, table: &Table, sub_filter: BoxedSubFilter) {
        let Some(adjustment) = self.policy.adjustment(table.file()) else { return };
        if !table.sub_filters().is_some_and(|loaded| loaded.add(sub_filter)) {
            return;
        }
        self.policy.apply(&adjustment);
        self.loads += 1;
        let Adjustment { drop, .. } = adjustment;
        drop.into_iter().for_each(|file| self.drop_sub_filter(file));
    }

    fn drop_sub_filter(&mut self, file: u64) {
        self.drops += 1;
        let table = self.tables.get(&file).and_then(Weak::upgrade);
        if let Some(sub_filters) = table.as_deref().and_then(Table::sub_filters) {
            sub_filters.drop_one();
        }
    }
}
