//! A version: memtables, tables, shape and guard as one immutable value. An edit makes the next
//! one.
//! ```text
//! writes -> active memtable -> sealed memtables -> runs, newest first      + the guard of the runs
//!           one                newest first        level 0 ... last level
//! ```
//! Invariants (ordering rule 3): everything changes together, in one store of a new version. So a
//! reader that pins a version sees memtables, tables and guard that fit each other. Counters tell
//! how many long-lived holders a version has; versions share them until tables leave.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Deref;

use trommel_filters::FlushNumber;

use crate::entries::entry::Sequence;
use crate::entries::keyspace_id::KeyspaceId;
use crate::entries::memtable::Memtable;
use crate::entries::tombstones::Stretch;
use crate::files::held_values::HeldValues;
use crate::files::placed_run::PlacedRun;
use crate::files::run::Run;
use crate::files::run_table::RunTable;
use crate::files::table::Table;
use crate::files::value_file::ValueFile;
use crate::guard::Guard;
use crate::plan::layout::{Edit, Layout};
use crate::sync::{Arc, AtomicU64, Ordering};
use crate::tree::live_logs::LiveLogs;

/// The memtable that takes writes.
#[derive(Clone)]
pub(crate) struct Active {
    pub(crate) memtable: Arc<Memtable>,
    /// The log with the first entry; 0: no entry is in a log yet.
    first_log: Arc<AtomicU64>,
    /// No entry has a smaller sequence number.
    pub(crate) first: Sequence,
    /// The value files that the entries refer to.
    pub(crate) values: Arc<HeldValues>,
}

impl Active {
    /// Makes an active memtable without entries.
    pub(crate) fn new(memtable: Arc<Memtable>, first: Sequence) -> Self {
        Active { memtable, first_log: Arc::default(), first, values: Arc::default() }
    }

    /// Sets the log with the first entry.
    pub(crate) fn begun_in(self, first_log: u64) -> Self {
        Active { first_log: Arc::new(AtomicU64::new(first_log)), ..self }
    }

    /// Sets the value files that the entries refer to.
    pub(crate) fn holding(self, values: Arc<HeldValues>) -> Self {
        Active { values, ..self }
    }

    /// Returns the log with the first entry.
    pub(crate) fn first_log(&self) -> Option<u64> {
        Some(self.first_log.load(Ordering::Relaxed)).filter(|&log| log > 0)
    }

    /// Notes that an entry comes, which is in the newest log. Requires: the caller is the writer.
    #[inline]
    pub(crate) fn note_first_log(&self, logs: &LiveLogs, keyspace: KeyspaceId) {
        if self.first_log.load(Ordering::Relaxed) == 0 {
            self.first_log.store(logs.begin_memtable(keyspace), Ordering::Relaxed);
        }
    }

    /// Notes that all entries are in the newest log now. Requires: the caller is the writer.
    pub(crate) fn move_to_newest(&self, logs: &LiveLogs, keyspace: KeyspaceId) {
        if let Some(first) = self.first_log() {
            self.first_log.store(logs.move_to_newest(keyspace, first), Ordering::Relaxed);
        }
    }
}

/// A full memtable with its flush number, on its way to disk.
pub(crate) struct Sealed {
    pub(crate) memtable: Arc<Memtable>,
    /// The log with its first entry.
    pub(crate) first_log: Option<u64>,
    pub(crate) first: Sequence,
    pub(crate) last: Sequence,
    pub(crate) flush: FlushNumber,
    /// The value files that the entries refer to.
    pub(crate) values: Arc<HeldValues>,
}

impl Sealed {
    /// Whether an edit brings its entries into tables.
    pub(crate) fn is_flushed_by(&self, edit: &Edit) -> bool {
        edit.flushes.iter().any(|flushed| flushed.flush == self.flush)
    }
}

/// The state that readers pin.
#[derive(Clone)]
pub(crate) struct Version {
    pub(crate) active: Active,
    /// Newest first.
    pub(crate) sealed: Vec<Arc<Sealed>>,
    /// Newest first: the layout's runs, opened.
    pub(crate) runs: Vec<PlacedRun>,
    /// Whether any run has deleted ranges.
    pub(crate) deletes_ranges: bool,
    pub(crate) layout: Arc<Layout>,
    /// How far merges lag behind, as a run count.
    pub(crate) lagging_runs: usize,
    pub(crate) guard: Guard,
    /// Merges installed so far. A scan that pinned an older epoch moves on to release its tables.
    pub(crate) merge_epoch: u64,
    /// Counters of the long-lived holders of versions with these tables.
    pub(crate) holders: Arc<Holders>,
}

impl Version {
    /// Makes the version of a closed store. It is empty, so that memory and files are released.
    pub(crate) fn closed(last: &Version) -> Version {
        Version {
            active: Active::new(Arc::new(Memtable::new(0)), last.active.first),
            sealed: Vec::new(),
            runs: Vec::new(),
            deletes_ranges: false,
            layout: Arc::default(),
            lagging_runs: 0,
            guard: Guard::Open,
            merge_epoch: last.merge_epoch,
            holders: Arc::default(),
        }
    }

    /// Returns the number of entries in memtables.
    pub(crate) fn memtable_entries(&self) -> u64 {
        let sealed = self.sealed.iter().map(|sealed| sealed.memtable.len());
        (self.active.memtable.len() + sealed.sum::<usize>()) as u64
    }

    /// Returns a number before which all writes are in tables. None: all writes are.
    pub(crate) fn first_unflushed(&self) -> Option<Sequence> {
        let sealed = self.sealed.iter().map(|sealed| (&sealed.memtable, sealed.first));
        let memtables = sealed.chain([(&self.active.memtable, self.active.first)]);
        memtables.filter(|(memtable, _)| !memtable.is_empty()).map(|(_, first)| first).min()
    }

    /// Returns a number up to which all writes are in tables. `visible`: the newest write of any
    /// key space, or an earlier one.
    pub(crate) fn flushed_through(&self, visible: Sequence) -> Sequence {
        let before = self.first_unflushed().map(|first| Sequence(first.0.saturating_sub(1)));
        before.map_or(visible, |before| before.min(visible))
    }

    /// Returns the version with the active memtable sealed and a new one in its place.
    #[must_use]
    pub(crate) fn seal(&self, sealed: Arc<Sealed>, active: Active) -> Version {
        let mut next = self.clone();
        next.sealed.insert(0, sealed);
        next.active = active;
        next
    }

    /// Returns the version after `edit`, which made `layout` out of this one's. `opened` has the
    /// tables that the edit adds; `guard` describes the new runs.
    #[must_use]
    pub(crate) fn apply(
        &self,
        edit: &Edit,
        (layout, lagging_runs): (Arc<Layout>, usize),
        opened: &HashMap<u64, Arc<Table>>,
        guard: Guard,
    ) -> Version {
        let fits = guard.parts().is_none_or(|parts| parts.begin_at(&layout.cuts));
        assert!(fits, "parts of the filter that are not those of the tree");
        let runs = self.reopen_runs(&layout, opened);
        let leave = !edit.removed.is_empty();
        Version {
            active: self.active.clone(),
            sealed: self.sealed.iter().filter(|it| !it.is_flushed_by(edit)).cloned().collect(),
            deletes_ranges: deletes_ranges(&runs),
            runs,
            layout,
            lagging_runs,
            guard,
            merge_epoch: self.merge_epoch + u64::from(leave),
            holders: if leave { Arc::default() } else { Arc::clone(&self.holders) },
        }
    }

    /// Returns the layout's runs. Tables that are open already are reused.
    pub(crate) fn reopen_runs(
        &self,
        layout: &Layout,
        opened: &HashMap<u64, Arc<Table>>,
    ) -> Vec<PlacedRun> {
        let old = self.runs.iter().flat_map(|placed| placed.run.tables());
        let mut tables: HashMap<u64, &Arc<Table>> =
            old.map(|table| (table.table.file(), &table.table)).collect();
        tables.extend(opened.iter().map(|(&file, table)| (file, table)));
        let open_run = |record: &crate::plan::layout::RunRecord| {
            let run_tables = record.tables.iter().map(|table| {
                let opened = tables.get(&table.file).expect("every table of a layout is open");
                RunTable::of_record(Arc::clone(opened), table)
            });
            let run = Run::new(run_tables.collect()).expect("a layout's runs are in order");
            PlacedRun::new(record.id, record.level, run)
        };
        layout.runs.iter().map(open_run).collect()
    }

    /// Returns the newest range deletion in the runs that covers a key, with a sequence number of
    /// at most `at`.
    #[inline]
    pub(crate) fn covering_tombstone(&self, key: &[u8], at: Sequence) -> Option<Sequence> {
        if !self.deletes_ranges {
            return None;
        }
        self.stretches(key, at).filter_map(|stretch| stretch.newest).max()
    }

    /// Returns what each run knows of deleted ranges around a key.
    pub(crate) fn stretches(&self, key: &[u8], at: Sequence) -> impl Iterator<Item = Stretch<'_>> {
        let deleting = self.runs.iter().filter(|placed| placed.run.deletes_ranges());
        deleting.map(move |placed| placed.run.stretch(key, at))
    }

    /// The runs with these ids, newest first.
    pub(crate) fn runs_of(&self, ids: &[u64]) -> Vec<PlacedRun> {
        self.runs.iter().filter(|placed| ids.contains(&placed.id)).cloned().collect()
    }

    /// Returns the value files that the version refers to, each with the referenced bytes. Trimmed
    /// tables count as a whole.
    pub(crate) fn value_files(&self) -> BTreeMap<u64, (Arc<ValueFile>, u64)> {
        let mut all: BTreeMap<u64, (Arc<ValueFile>, u64)> = BTreeMap::new();
        let mut count = |file: Arc<ValueFile>, bytes: u64| {
            all.entry(file.number()).or_insert((file, 0)).1 += bytes;
        };
        let memtables = self.sealed.iter().map(|sealed| &sealed.values);
        for values in memtables.chain([&self.active.values]) {
            values.all().into_iter().for_each(|(file, bytes)| count(file, bytes));
        }
        for table in self.files() {
            let bytes = table.named_values().iter().map(|(_, bytes)| bytes);
            let files = table.held_values().iter().cloned();
            files.zip(bytes).for_each(|(file, bytes)| count(file, bytes));
        }
        all
    }

    /// Returns every file once.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Arc<Table>> {
        let mut known = HashSet::new();
        let tables = self.tables().map(|table| &table.table);
        tables.filter(move |table| known.insert(table.file()))
    }

    /// Returns every table, newest run first. A file whose middle a merge has taken appears twice.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &RunTable> {
        self.runs.iter().flat_map(|placed| placed.run.tables())
    }
}

/// Whether any of these runs has deleted ranges.
pub(crate) fn deletes_ranges(runs: &[PlacedRun]) -> bool {
    runs.iter().any(|placed| placed.run.deletes_ranges())
}

/// The kinds of long-lived holders of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holder {
    Scan,
    PinnedTree,
    /// A pinned tree that a follower was given.
    Follower,
}

/// The numbers of holders of a tree, by kind. Versions share them until a table leaves.
#[derive(Default)]
pub(crate) struct Holders([AtomicU64; 3]);

impl Holders {
    pub(crate) fn of(&self, kind: Holder) -> &AtomicU64 {
        &self.0[kind as usize]
    }

    pub(crate) fn count(&self, kind: Holder) -> u64 {
        self.of(kind).load(Ordering::Relaxed)
    }
}

/// A version with a long-lived holder.
pub(crate) struct HeldVersion {
    version: Arc<Version>,
    kind: Holder,
}

impl HeldVersion {
    pub(crate) fn new(version: Arc<Version>, kind: Holder) -> Self {
        version.holders.of(kind).fetch_add(1, Ordering::Relaxed);
        HeldVersion { version, kind }
    }
}

impl Deref for HeldVersion {
    type Target = Arc<Version>;

    fn deref(&self) -> &Arc<Version> {
        &self.version
    }
}

impl Drop for HeldVersion {
    fn drop(&mut self) {
        self.version.holders.of(self.kind).fetch_sub(1, Ordering::Relaxed);
    }
}
