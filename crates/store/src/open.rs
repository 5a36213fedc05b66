//! Opening a store: from files to a version.
//! ```text
//! MANIFEST --> layout --> tables --> guard (from its image and newer tables, or from the runs)
//! logs     --> sealed memtables (flushed at once) and the active one
//! ```
//! Invariant: nothing is removed before what replaces it is durable. Opening a store that was
//! closed in peace writes nothing: it works on a full disk too.

use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Instant;

use trommel_filters::FlushNumber;

use crate::entries::entry::Sequence;
use crate::entries::keyspace_id::KeyspaceId;
use crate::entries::memtable::{Memtable, MemtableSize};
use crate::error::{Error, Result};
use crate::files::log_check::live_logs;
use crate::files::log_replay::{Replayed, ReplayedLog, ReplayedMemtable, replay_logs};
use crate::files::manifest::{MANIFEST_NAME, Manifest};
use crate::files::names::{LOCK_NAME, file_number, free_number, image_name, table_name, wal_name};
use crate::files::store_folder::{FolderLock, is_beginning, lock_folder, manifest_missing};
use crate::files::wal::Predecessor;
use crate::guard::Guard;
use crate::guard::elastic::Elastic;
use crate::plan::layout::Layout;
use crate::plan::options::Options;
use crate::plan::registry;
use crate::plan::store_layout::StoreLayout;
use crate::shared::environment::Environment;
use crate::shared::resources::StoreResources;
use crate::shared::worker_pool::Workers;
use crate::storage::io_mode::IoStats;
use crate::storage::link_or_copy::{keep_folder, make_folder};
use crate::storage::open_folder::OpenFolder;
use crate::storage::traits::Storage;
use crate::sync::{Arc, AtomicU64, Mutex, Switch, lock as lock_of};
use crate::tree::asked::AskedRounds;
use crate::tree::asked_keys::AskedKeys;
use crate::tree::guard_image::{self};
use crate::tree::live_logs::LiveLogs;
use crate::tree::obsolete_files::Leaving;
use crate::tree::open_tree::{Installer, OpenTree};
use crate::tree::snapshots::Snapshots;
use crate::tree::stats::Counters;
use crate::tree::table_files::{TableFiles, open_tables};
use crate::tree::version::{Active, Sealed, Version, deletes_ranges};
use crate::write::commit::{Commit, Log};
use crate::write::engine::Engine;

/// Opens or makes a store, without its threads.
pub(crate) fn open(dir: &Path, options: &Options, mut env: Environment) -> Result<Engine> {
    options.check()?;
    registry::register(options.guard)?;
    // Not kept: they live no longer than the store is open, whatever its readers hold.
    let shared = env.resources.take();
    let (resources, options) = StoreResources::of(shared.as_ref(), options)?;
    let options = &options;
    let (folder, lock) = take_folder(&*env.storage, dir, options.create_if_missing)?;
    let found = Manifest::read(&folder)?;
    let manifest = match found {
        Some(layout) => Manifest::open(&folder, layout),
        None => Manifest::create(&folder, StoreLayout::default())?,
    };
    let layout = manifest.layout().clone();
    let names = folder.list()?;
    let next_file = free_number(&names, Some(&layout));
    let io = IoStats::granted(folder.handle(), LOCK_NAME, options.io());
    let cache = Arc::clone(&resources.cache);
    let table_files = TableFiles::new(folder.clone(), options, cache, io, next_file);
    let size = resources.memtable_size;
    let mut replayed = replay_logs(&folder, &names, &layout, &|_| size)?;
    let in_tables = layout.trees().map(|tree| tree.last_sequence).max().unwrap_or_default();
    let last = replayed.last().max(in_tables);
    let life = Arc::clone(folder.life());
    let shared = SharedByTrees {
        env,
        leaving: Arc::new(Leaving::expecting(live_logs(&names, layout.logs))),
        logs: Arc::new(live_logs_of(&replayed)),
        snapshots: Arc::new(Snapshots::new(last, Arc::clone(&life))),
        manifest: Arc::new(Mutex::new(manifest)),
    };
    let log = log_of(&replayed, || table_files.new_file());
    let id = KeyspaceId::DEFAULT;
    let memtables = replayed.trees.remove(&id).unwrap_or_default();
    let workers = resources.pool.place(life);
    let tree =
        open_tree(&shared, (id, layout.default_tree()), table_files, (memtables, size), workers)?;
    // Not earlier: a manifest that has lost an edit to damage makes a table look like an orphan,
    // and then something above is missing.
    let orphans = orphans(&names, &layout);
    remove_orphans(&folder, &orphans, || lock_of(&shared.manifest).keep().is_ok());
    Ok(Engine::new(tree, Commit::new(log, Sequence(last.0 + 1)), resources, lock))
}

/// What the trees of a store share.
#[derive(Clone)]
pub(crate) struct SharedByTrees {
    env: Environment,
    leaving: Arc<Leaving>,
    logs: Arc<LiveLogs>,
    snapshots: Arc<Snapshots>,
    manifest: Arc<Mutex<Manifest>>,
}

impl SharedByTrees {
    /// What a tree shares with the others.
    pub(crate) fn with(tree: &OpenTree) -> Self {
        SharedByTrees {
            env: tree.env.clone(),
            leaving: Arc::clone(&tree.leaving),
            logs: Arc::clone(&tree.logs),
            snapshots: Arc::clone(&tree.snapshots),
            manifest: Arc::clone(&tree.manifest),
        }
    }
}

/// Opens the tree of a key space, with what logs have brought back.
pub(crate) fn open_tree(
    shared: &SharedByTrees,
    (keyspace, layout): (KeyspaceId, &Arc<Layout>),
    table_files: TableFiles,
    (memtables, size): (Vec<ReplayedMemtable>, MemtableSize),
    workers: Workers,
) -> Result<OpenTree> {
    let (table_files, layout) = (Arc::new(table_files), Arc::clone(layout));
    let options = &table_files.options;
    let (tables, mut damaged_filters) = open_tables(&table_files, &layout)?;
    let next = Sequence(shared.snapshots.visible().0 + 1);
    let nothing = || Active::new(Arc::new(Memtable::sized(size)), next);
    let Recovered { active, sealed, next_flush } =
        Recovered::of(memtables, layout.next_flush, nothing);
    let first_logs = sealed.iter().map(|sealed| sealed.first_log).chain([active.first_log()]);
    first_logs.flatten().for_each(|first| shared.logs.add_memtable(first));
    let version = Version {
        active,
        sealed,
        runs: Vec::new(),
        guard: Guard::empty(options, &layout.cuts),
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
    let elastic = Elastic::of(options);
    if let Some(elastic) = &elastic {
        elastic.follow(version.files());
    }
    let SharedByTrees { env, leaving, logs, snapshots, manifest } = shared.clone();
    Ok(OpenTree {
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
        table_files,
    })
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
        let newest = memtables
            .pop()
            .map(|newest| Active::new(newest.memtable, newest.first).begun_in(newest.first_log));
        let active = newest.unwrap_or_else(nothing);
        let mut sealed = Vec::new();
        for ReplayedMemtable { memtable, first_log, first, last, .. } in memtables {
            let (first_log, flush) = (Some(first_log), next_flush);
            sealed.insert(0, Arc::new(Sealed { memtable, first_log, first, last, flush }));
            next_flush = next_flush.next();
        }
        Recovered { active, sealed, next_flush }
    }
}

/// The newest log goes on, in a file that replaces it; or if there is none, a new one.
fn log_of(replayed: &Replayed, new_file: impl FnOnce() -> u64) -> Log {
    match replayed.logs.last() {
        Some(&ReplayedLog { number, before, .. }) => Log::Unmade { number, before, replaces: true },
        None => {
            let before = Predecessor { wal: 0, valid_bytes: 0 };
            Log::Unmade { number: new_file(), before, replaces: false }
        }
    }
}

fn live_logs_of(replayed: &Replayed) -> LiveLogs {
    let logs = LiveLogs::default();
    replayed.logs.iter().for_each(|log| logs.begin_log(log.number, log.counts.bytes));
    logs
}

/// Makes sure that the folder is a store or may become one, and takes it.
fn take_folder(
    storage: &dyn Storage,
    dir: &Path,
    create: bool,
) -> Result<(OpenFolder, FolderLock)> {
    let missing = || Error::Missing { path: dir.to_path_buf() };
    let folder = match OpenFolder::open(storage, dir) {
        Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotADirectory => {
            let what = "a store is a folder, and this is a file";
            let source = std::io::Error::new(ErrorKind::NotADirectory, what);
            return Err(Error::io(dir)(source));
        }
        Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
            if !create {
                return Err(missing());
            }
            make_folder(storage, dir)?;
            OpenFolder::open(storage, dir)?
        }
        opened => opened?,
    };
    let names = folder.list()?;
    if !names.iter().any(|name| name == MANIFEST_NAME) {
        if let Some(of_a_store) = names.iter().find(|name| file_number(name).is_some()) {
            return Err(manifest_missing(dir, of_a_store));
        }
        if !is_beginning(&names) {
            return Err(Error::NotAStore { path: dir.to_path_buf() });
        }
        if !create {
            return Err(missing());
        }
        keep_folder(storage, dir)?;
    }
    let lock = lock_folder(&folder)?;
    Ok((folder, lock))
}

/// What a crash or a reader of the last session has left: it is in no layout.
fn orphans<'n>(names: &'n [String], layout: &StoreLayout) -> Vec<&'n String> {
    let trees = || layout.trees();
    let tables = trees().flat_map(|tree| &tree.runs).flat_map(|run| &run.tables);
    let live: HashSet<String> = tables.map(|table| table_name(table.file)).collect();
    let images: HashSet<u64> = trees().flat_map(|it| &it.images).map(|image| image.file).collect();
    let is_dead = |name: &&String| {
        let dead_log = |number| **name == wal_name(number) && number < layout.logs.live;
        file_number(name).is_some_and(|number| {
            dead_log(number)
                || name.ends_with(".wal.new")
                || (**name == table_name(number) && !live.contains(*name))
                || (**name == image_name(number) && !images.contains(&number))
        })
    };
    names.iter().filter(is_dead).collect()
}

/// Removes files that the layout does not need. The layout is made durable first: the sync of its
/// last edit may have failed, and a power cut would then undo that edit.
fn remove_orphans(folder: &OpenFolder, orphans: &[&String], keep_layout: impl FnOnce() -> bool) {
    if !orphans.is_empty() && keep_layout() {
        // What stays now is tried again by the next open.
        orphans.iter().for_each(|name| drop(folder.remove(name)));
    }
}
