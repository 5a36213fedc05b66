//! Opening one tree of a store: from its layout to a version.
//! ```text
//! layout --> tables --> guard (from its images and newer tables, or from the runs)
//! logs   --> sealed memtables (flushed at once) and the active one
//! ```
//! Invariant: nothing is written.

use std::collections::HashMap;
use std::sync::OnceLock;
use std::time::Instant;

use trommel_filters::FlushNumber;

use crate::entries::entry::Sequence;
use crate::entries::keyspace_id::KeyspaceId;
use crate::entries::memtable::{Memtable, MemtableSize};
use crate::error::Result;
use crate::files::log_replay::ReplayedMemtable;
use crate::files::manifest::Manifest;
use crate::files::table::Table;
use crate::guard::Guard;
use crate::guard::elastic::Elastic;
use crate::guard::filter_recovery::FilterRecovery;
use crate::plan::layout::Layout;
use crate::plan::options::Options;
use crate::shared::environment::Environment;
use crate::shared::worker_pool::Workers;
use crate::sync::{Arc, AtomicBool, AtomicU64, Mutex, Switch};
use crate::tree::empty_query_sample::EmptyQuerySample;
use crate::tree::guard_image;
use crate::tree::live_logs::LiveLogs;
use crate::tree::obsolete_files::ObsoleteFiles;
use crate::tree::open_tree::{Dropped, Installer, OpenTree};
use crate::tree::query_mix::QueryMixRounds;
use crate::tree::snapshots::Snapshots;
use crate::tree::stats::Counters;
use crate::tree::table_files::{DamagedFilter, TableFiles, open_others, open_tables};
use crate::tree::version::{Active, Sealed, Version, deletes_ranges};

/// The state that the trees of a store share.
#[derive(Clone)]
pub(crate) struct SharedByTrees {
    pub(crate) env: Arc<Environment>,
    pub(crate) obsolete_files: Arc<ObsoleteFiles>,
    pub(crate) logs: Arc<LiveLogs>,
    pub(crate) snapshots: Arc<Snapshots>,
    pub(crate) manifest: Arc<Mutex<Manifest>>,
}

impl SharedByTrees {
    /// Returns the state that a tree shares with the others.
    pub(crate) fn with(tree: &OpenTree) -> Self {
        SharedByTrees {
            env: Arc::clone(&tree.env),
            obsolete_files: Arc::clone(&tree.obsolete_files),
            logs: Arc::clone(&tree.logs),
            snapshots: Arc::clone(&tree.snapshots),
            manifest: Arc::clone(&tree.manifest),
        }
    }
}

/// Options, and what follows from them alone. Trees with the same options share this.
pub(crate) struct TreeOptions {
    pub(crate) options: Arc<Options>,
    /// The guard of a tree without runs, with one partition.
    guard: Guard,
}

impl TreeOptions {
    pub(crate) fn new(options: Options) -> Self {
        TreeOptions::of(Arc::new(options))
    }

    pub(crate) fn of(options: Arc<Options>) -> Self {
        TreeOptions { guard: Guard::empty(&options, &[]), options }
    }

    fn empty_guard(&self, cuts: &[Vec<u8>]) -> Guard {
        match cuts {
            [] => self.guard.clone(),
            cuts => Guard::empty(&self.options, cuts),
        }
    }
}

/// Opens the tree of a key space, with the memtables that were read back from logs.
pub(crate) fn open_tree(
    shared: &SharedByTrees,
    (keyspace, layout): (KeyspaceId, &Arc<Layout>),
    (options, table_files): (&TreeOptions, TableFiles),
    (memtables, size): (Vec<ReplayedMemtable>, MemtableSize),
    workers: Workers,
) -> Result<OpenTree> {
    let table_files = Arc::new(table_files);
    let (tables, mut damaged_filters) = open_tables(&table_files, layout)?;
    let next = Sequence(shared.snapshots.visible().0 + 1);
    let recovered = Recovered::of(memtables, layout.next_flush, || nothing(size, next));
    let of_sealed = recovered.sealed.iter().filter_map(|sealed| sealed.first_log);
    of_sealed.for_each(|first| shared.logs.add_sealed(first));
    let first_log = recovered.active.first_log();
    first_log.into_iter().for_each(|first| shared.logs.add_active(keyspace, first));
    let next_flush = recovered.next_flush;
    let version = version_of(layout, recovered, options, &tables);
    let start = Instant::now();
    let guard = guard_image::recover(&table_files, &version)?;
    damaged_filters.extend(guard.damage);
    let version = Version { guard: guard.guard, ..version };
    let made = (guard.recovery, start.elapsed().as_secs_f64());
    let files = (table_files, damaged_filters);
    let tree = tree_of(shared, (keyspace, version), files, (made, next_flush), workers);
    tree.note_value_garbage();
    Ok(tree)
}

/// Opens a tree that another process writes, as of some edit, with the memtables from its logs.
/// Reuses what is open of `before`, the same tree as of an earlier edit.
pub(crate) fn follow_tree(
    shared: &SharedByTrees,
    (keyspace, layout): (KeyspaceId, &Arc<Layout>),
    (options, table_files): (&TreeOptions, Arc<TableFiles>),
    memtables: Recovered,
    (before, workers): (Option<&OpenTree>, Workers),
) -> Result<OpenTree> {
    let old = before.map(|tree| tree.current.hold());
    let known = old.iter().flat_map(|old| old.files());
    let known = known.map(|table| (table.file(), Arc::clone(table))).collect();
    let (tables, mut damaged_filters) = open_others(&table_files, layout, known)?;
    damaged_filters.extend(before.iter().flat_map(|tree| tree.damaged_filters.iter().cloned()));
    let next_flush = memtables.next_flush;
    let version = version_of(layout, memtables, options, &tables);
    let start = Instant::now();
    let guard = match &old {
        Some(old) => guard_image::follow(&table_files, &version, old)?,
        None => guard_image::recover(&table_files, &version)?,
    };
    damaged_filters.extend(guard.damage);
    let version = Version { guard: guard.guard, ..version };
    let made = (guard.recovery, start.elapsed().as_secs_f64());
    let files = (table_files, damaged_filters);
    Ok(tree_of(shared, (keyspace, version), files, (made, next_flush), workers))
}

/// Makes an empty memtable for writes from this number on.
pub(crate) fn nothing(size: MemtableSize, next: Sequence) -> Active {
    Active::new(Arc::new(Memtable::sized(size)), next)
}

/// Makes a version whose guard is still empty.
fn version_of(
    layout: &Arc<Layout>,
    memtables: Recovered,
    options: &TreeOptions,
    tables: &HashMap<u64, Arc<Table>>,
) -> Version {
    let version = Version {
        active: memtables.active,
        sealed: memtables.sealed,
        runs: Vec::new(),
        guard: options.empty_guard(&layout.cuts),
        deletes_ranges: false,
        layout: Arc::clone(layout),
        lagging_runs: options.options.lagging_runs(layout),
        merge_epoch: 0,
        holders: Arc::default(),
    };
    let runs = version.reopen_runs(&version.layout, tables);
    Version { deletes_ranges: deletes_ranges(&runs), runs, ..version }
}

fn tree_of(
    shared: &SharedByTrees,
    (keyspace, version): (KeyspaceId, Version),
    (table_files, damaged_filters): (Arc<TableFiles>, Vec<DamagedFilter>),
    ((filter_recovery, guard_open_seconds), next_flush): ((FilterRecovery, f64), FlushNumber),
    workers: Workers,
) -> OpenTree {
    let options = &*table_files.options;
    let elastic = Elastic::of(options).map(Box::new);
    if let Some(elastic) = &elastic {
        elastic.follow(version.files());
    }
    let SharedByTrees { env, obsolete_files, logs, snapshots, manifest } = shared.clone();
    OpenTree {
        keyspace,
        env,
        obsolete_files,
        logs,
        snapshots,
        manifest,
        filter_recovery,
        guard_open_seconds,
        current: Switch::new(Arc::new(version)),
        merge_epoch: AtomicU64::new(0),
        workers: Arc::new(workers),
        installer: Mutex::new(Installer::new(next_flush)),
        counters: Counters::default(),
        query_mix: QueryMixRounds::default(),
        empty_query_sample: EmptyQuerySample::new(options),
        damaged_filters: damaged_filters.into(),
        elastic,
        merge_operator: options
            .merge_operator
            .operator()
            .cloned()
            .map_or_else(OnceLock::new, OnceLock::from),
        dropped: Dropped::default(),
        value_merge_due: AtomicBool::new(false),
        oldest_values: Mutex::default(),
        table_files,
    }
}

/// The memtables of a tree that were read back from logs.
pub(crate) struct Recovered {
    pub(crate) active: Active,
    /// Newest first.
    pub(crate) sealed: Vec<Arc<Sealed>>,
    pub(crate) next_flush: FlushNumber,
}

impl Recovered {
    /// Makes the newest memtable the active one, or `nothing` if there is none.
    pub(crate) fn of(
        mut memtables: Vec<ReplayedMemtable>,
        mut next_flush: FlushNumber,
        nothing: impl FnOnce() -> Active,
    ) -> Recovered {
        let newest = memtables.pop().map(|newest| {
            let active = Active::new(newest.memtable, newest.first).holding(newest.values);
            active.begun_in(newest.first_log)
        });
        let active = newest.unwrap_or_else(nothing);
        let mut sealed = Vec::new();
        for ReplayedMemtable { memtable, first_log, first, last, values, .. } in memtables {
            let (first_log, flush) = (Some(first_log), next_flush);
            sealed.insert(0, Arc::new(Sealed { memtable, first_log, first, last, flush, values }));
            next_flush = next_flush.next();
        }
        Recovered { active, sealed, next_flush }
    }
}
