//! Which value files have much garbage, and when merges should free their space.
//! ```text
//! file     [ referred to | garbage ]        garbage beyond a share: merges into the last level
//!                                           move the other values; then the file goes
//! age      the oldest files                 the same, if the options say so, whatever garbage they
//!                                           have: those that were oldest when the merge began
//! runs     newer than the oldest one        what they refer to may have replaced as many bytes:
//!                                           beyond a share, all runs are merged
//! ```
//! Nothing is counted when values are written or dropped: each table names its value files, and how
//! many of their bytes it refers to.
//!
//! Invariant: after a merge of all runs nothing is due, as long as nothing is written. (So a merge
//! by ranges moves the same old files in every range. If it moved a file in some ranges only, the
//! rest of the file would be garbage.)

use std::collections::{BTreeMap, BTreeSet};

use crate::files::placed_run::PlacedRun;
use crate::files::value_file::format::HEADER_BYTES;
use crate::plan::options::Options;
use crate::sync::{Ordering, lock};
use crate::tree::open_tree::OpenTree;
use crate::tree::version::Version;

/// The most of all referenced value bytes that runs newer than the oldest may refer to. Half of the
/// garbage share limits this, too.
const NEWER_SHARE_MAX: f64 = 0.15;

/// The garbage in the value files of a version.
#[derive(Default)]
pub(crate) struct ValueGarbage {
    /// Files whose values are to be moved.
    pub(crate) moved: BTreeSet<u64>,
    /// Whether a merge of all runs is worth it.
    pub(crate) is_merge_due: bool,
}

impl ValueGarbage {
    pub(crate) fn of(version: &Version, options: &Options) -> ValueGarbage {
        let share = options.value_garbage_share;
        let tables = || version.runs.iter().flat_map(|placed| placed.run.tables());
        if tables().all(|it| it.table.named_values().is_empty()) {
            return ValueGarbage::default();
        }
        let named = tables().flat_map(|it| it.table.named_values().iter());
        let in_tables: BTreeSet<u64> = named.map(|(file, _)| file).collect();
        let (mut moved, mut garbage) = (BTreeSet::new(), 0);
        for (number, (file, bytes)) in version.value_files() {
            let all = file.len().saturating_sub(HEADER_BYTES as u64);
            let of_file = all.saturating_sub(bytes);
            if !in_tables.contains(&number) || file.is_damaged() {
                continue;
            }
            if of_file as f64 > share * all as f64 {
                moved.insert(number);
                garbage += of_file;
            }
        }
        // Freeing any space costs writing all tables.
        let cost: u64 = version.runs.iter().map(|placed| placed.run.bytes()).sum();
        let of_runs: Vec<u64> = version.runs.iter().map(referred_bytes).collect();
        let all: u64 = of_runs.iter().sum();
        let newer = all - of_runs.last().copied().unwrap_or_default();
        let newer_max = (share / 2.0).min(NEWER_SHARE_MAX) * all as f64;
        let is_merge_due = garbage > cost || newer > cost && newer as f64 > newer_max;
        ValueGarbage { moved, is_merge_due }
    }
}

/// Returns the oldest files that tables refer to, as many as the options say.
fn oldest_files(version: &Version, options: &Options) -> BTreeSet<u64> {
    if options.value_move_oldest == 0.0 {
        return BTreeSet::new();
    }
    let held = version.tables().flat_map(|it| it.table.held_values());
    let files: BTreeMap<u64, bool> = held.map(|it| (it.number(), it.is_damaged())).collect();
    let count = (options.value_move_oldest * files.len() as f64) as usize;
    let oldest = files.into_iter().take(count);
    oldest.filter(|(_, is_damaged)| !is_damaged).map(|(number, _)| number).collect()
}

/// Returns the bytes of values that a run refers to; for trimmed tables an estimate.
fn referred_bytes(placed: &PlacedRun) -> u64 {
    let of_table = |table: &crate::files::run_table::RunTable| {
        let bytes: u64 = table.table.named_values().iter().map(|(_, bytes)| bytes).sum();
        let share = table.entry_count() as f64 / table.table.entry_count().max(1) as f64;
        (bytes as f64 * share) as u64
    };
    placed.run.tables().iter().map(of_table).sum()
}

impl OpenTree {
    /// Returns the value files whose values the next range of a merge into the last level moves.
    pub(crate) fn values_to_move(&self, version: &Version) -> BTreeSet<u64> {
        let options = &self.table_files.options;
        let mut oldest = lock(&self.oldest_values);
        if version.layout.last_merge.is_none() {
            *oldest = oldest_files(version, options);
        }
        let mut moved = ValueGarbage::of(version, options).moved;
        moved.extend(&*oldest);
        moved
    }

    /// Determines whether a merge is due that frees space of values. Requires: the caller has
    /// changed the version, or nobody else knows the tree.
    pub(crate) fn note_value_garbage(&self) {
        let options = &self.table_files.options;
        let is_due = ValueGarbage::of(&self.current.pin(), options).is_merge_due;
        self.value_merge_due.store(is_due, Ordering::Relaxed);
    }

    /// Whether a merge is due that frees space of values.
    #[inline]
    pub(crate) fn is_value_merge_due(&self) -> bool {
        self.value_merge_due.load(Ordering::Relaxed)
    }
}
