//! Opening one tree of a store: from its layout to a version.
//! ```text
//! layout --> tables --> guard (from its image and newer tables, or from the runs)
//! logs   --> sealed memtables (flushed at once) and the active one
//! ```
//! Invariant: nothing is written.

use std::sync::OnceLock;
use std::time::Instant;

use trommel_filters::FlushNumber;

use crate::entries::entry::Sequence;
use crate::entries::keyspace_id::KeyspaceId;
use crate::entries::memtable::{Memtable, MemtableSize};
use crate::error::Result;
use crate::files::log_replay::ReplayedMemtable;
use crate::files::manifest::Manifest;
use crate::guard::Guard;
use crate::guard::elastic::Elastic;
use crate::plan::layout::Layout;
use crate::plan::options::Options;
use crate::shared::environment::Environment;
use crate::shared::worker_pool::Workers;
use crate::sync::{Arc, AtomicBool, AtomicU64, Mutex, Switch};
use crate::tree::asked::AskedRounds;
use crate::tree::asked_keys::AskedKeys;
use crate::tree::guard_image;
use crate::tree::live_logs::LiveLogs;
use crate::tree::obsolete_files::Leaving;
use crate::tree::open_tree::{Dropped, Installer, OpenTree};
use crate::tree::snapshots::Snapshots;
use crate::tree::stats::Counters;
use crate::tree::table_files::{TableFiles, open_tables};
use crate::tree::version::{Active, Sealed, Version, deletes_ranges};

/// What the trees of a store share.
#[derive(Clone)]
pub(crate) struct SharedByTrees {
    pub(crate) env: Arc<Environment>,
    pub(crate) leaving: Arc<Leaving>,
    pub(crate) logs: Arc<LiveLogs>,
    pub(crate) snapshots: Arc<Snapshots>,
    pub(crate) manifest: Arc<Mutex<Manifest>>,
}

impl SharedByTrees {
    /// What a tree shares with the others.
    pub(crate) fn with(tree: &OpenTree) -> Self {
        SharedByTrees {
            env: Arc::clone(&tree.env),
            leaving: Arc::clone(&tree.leaving),
            logs: Arc::clone(&tree.logs),
            snapshots: Arc::clone(&tree.snapshots),
            manifest: Arc::clone(&tree.manifest),
        }
    }
}

/// Options, and what follows from them alone. Trees with the same options share it.
pub(crate) struct TreeOptions {
    pub(crate) options: Arc<Options>,
    /// Of a tree without runs, with one partition.
    guard: Guard,
}

impl TreeOptions {
    pub(crate) fn new(options: Options) -> Self {
        TreeOptions { guard: Guard::empty(&options, &[]), options: Arc::new(options) }
    }

    fn empty_guard(&self, cuts: &[Vec<u8>]) -> Guard {
        match cuts {
            [] => self.guard.clone(),
            cuts => Guard::empty(&self.options, cuts),
        }
    }
}

/// Opens the tree of a key space, with what logs have brought back.
pub(crate) fn open_tree(
    shared: &SharedByTrees,
    (keyspace, layout): (KeyspaceId, &Arc<Layout>),
    (options, table_files): (&TreeOptions, TableFiles),
    (memtables, size): (Vec<ReplayedMemtable>, MemtableSize),
    workers: Workers,
) -> Result<OpenTree> {
    let (table_files, layout) = (Arc::new(table_files), Arc::clone(layout));
    let (tables, mut damaged_filters) = open_tables(&table_files, &layout)?;
    let next = Sequence(shared.snapshots.visible().0 + 1);
    let nothing = || Active::new(Arc::new(Memtable::sized(size)), next);
    let Recovered { active, sealed, next_flush } =
        Recovered::of(memtables, layout.next_flush, nothing);
    let of_sealed = sealed.iter().filter_map(|sealed| sealed.first_log);
    of_sealed.for_each(|first| shared.logs.add_sealed(first));
    active.first_log().into_iter().for_each(|first| shared.logs.add_active(keyspace, first));
    let version = Version {
        active,
        sealed,
        runs: Vec::new(),
        guard: options.empty_guard(&layout.cuts),
        deletes_ranges: false,
        layout,
        merge_epoch: 0,
        holders: Arc::default(),
    };
    let runs = version.reopen_runs(&version.layout, &tables);
    let version = Version { deletes_ranges: deletes_ranges(&runs), runs, ..version };
    let start = Instant::now();
    let recovered = guard_image::recover(&table_files, &version)?;
    damaged_filters.extend(recovered.damage);
    let version = Version { guard: recovered.guard, ..version };
    let options = &*options.options;
    let elastic = Elastic::of(options).map(Box::new);
    if let Some(elastic) = &elastic {
        elastic.follow(version.files());
    }
    let SharedByTrees { env, leaving, logs, snapshots, manifest } = shared.clone();
    let tree = OpenTree {
        keyspace,
        env,
        leaving,
        logs,
        snapshots,
        manifest,
        filter_recovery: recovered.recovery,
        guard_open_seconds: start.elapsed().as_secs_f64(),
        current: Switch::new(Arc::new(version)),
        merge_epoch: AtomicU64::new(0),
        workers: Arc::new(workers),
        installer: Mutex::new(Installer::new(next_flush)),
        counters: Counters::default(),
        asked: AskedRounds::default(),
        asked_keys: AskedKeys::new(options),
        damaged_filters,
        elastic,
        merge_operator: options
            .merge_operator
            .operator()
            .cloned()
            .map_or_else(OnceLock::new, OnceLock::from),
        dropped: Dropped::default(),
        value_merge_due: AtomicBool::new(false),
        table_files,
    };
    tree.note_value_garbage();
    Ok(tree)
}

/// What logs bring back of a tree.
struct Recovered {
    active: Active,
    /// Newest first.
    sealed: Vec<Arc<Sealed>>,
    next_flush: FlushNumber,
}

impl Recovered {
    /// The newest memtable goes on, or if there is none, `nothing`.
    fn of(
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
