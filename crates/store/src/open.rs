//! Opens a store: recovers a version of every tree from the store's files.
//! ```text
//! MANIFEST --> layout --> tables --> guard (from its image and newer tables, or from the runs)
//! logs     --> sealed memtables (flushed at once) and the active one
//! ```
//! Invariant: no file is removed before its replacement is durable. Opening a store that was closed
//! cleanly writes nothing, so it works on a full disk too.

use std::collections::{BTreeSet, HashSet};
use std::io::ErrorKind;
use std::path::Path;

use crate::entries::entry::Sequence;
use crate::entries::keyspace_id::KeyspaceId;
use crate::entries::memtable::MemtableSize;
use crate::error::{Error, Result};
use crate::files::log_check::live_logs;
use crate::files::log_replay::{Replayed, ReplayedLog, replay_logs};
use crate::files::manifest::{FORMAT_VERSION, MANIFEST_NAME, Manifest, READ_VERSIONS};
use crate::files::names::{
    LOCK_NAME, file_number, free_number, image_name, is_spill, table_name, value_name, wal_name,
};
use crate::files::store_folder::{FolderLock, is_beginning, lock_folder, manifest_missing};
use crate::files::wal::Predecessor;
use crate::plan::options::Options;
use crate::plan::options::keyspace::kept_buffer_bytes;
use crate::plan::registry;
use crate::plan::store_layout::StoreLayout;
use crate::shared::environment::Environment;
use crate::shared::resources::StoreResources;
use crate::storage::durable_folder::{create_folder, sync_parents};
use crate::storage::io_mode::IoStats;
use crate::storage::open_folder::OpenFolder;
use crate::storage::traits::Storage;
use crate::sync::{Arc, Mutex};
use crate::tree::found_chain::{FoundChain, found_chain};
use crate::tree::live_logs::LiveLogs;
use crate::tree::obsolete_files::ObsoleteFiles;
use crate::tree::opening::{SharedByTrees, TreeOptions, open_tree};
use crate::tree::snapshots::Snapshots;
use crate::tree::table_files::TableFiles;
use crate::write::commit::{Commit, Log};
use crate::write::engine::Engine;
use crate::write::keyspaces::Keyspaces;

/// Opens or creates a store without starting its threads: the default tree, then the other key
/// spaces.
pub(crate) fn open_store(
    dir: &Path,
    options: &Options,
    mut env: Environment,
) -> Result<(Engine, Keyspaces)> {
    options.check()?;
    registry::register(options.guard)?;
    // The environment does not keep them. They live only while the store is open, even if readers
    // still hold the environment.
    let shared = env.resources.take();
    let (folder, lock) = take_store_folder(&*env.storage, dir, options.create_if_missing)?;
    let versions = if env.reads_older { &READ_VERSIONS[..] } else { &[FORMAT_VERSION] };
    let manifest = match Manifest::read_versions(&folder, versions)? {
        Some(layout) => Manifest::open(&folder, layout),
        None => Manifest::create(&folder, StoreLayout::default())?,
    };
    let layout = manifest.layout().clone();
    let options = with_kept(options, &layout, dir)?;
    let (resources, options) = StoreResources::of(shared.as_ref(), &options)?;
    let tree_options = TreeOptions::new(options);
    let options = &tree_options.options;
    let names = folder.list()?;
    let next_file = free_number(&names, Some(&layout));
    let io = IoStats::granted(folder.handle(), LOCK_NAME, options.io());
    let cache = resources.cache.share();
    let table_files = TableFiles::new(folder.clone(), options, cache, io, next_file);
    let size = resources.memtable_size;
    let size_of = |id: KeyspaceId| match id {
        KeyspaceId::DEFAULT => size,
        other => MemtableSize::of_many(kept_buffer_bytes(&layout.keyspaces[&other].record.options)),
    };
    let mut replayed =
        replay_logs((&folder, &table_files.values.store), &names, &layout, &size_of)?;
    let last = replayed.last().max(layout.last_sequence()).max(layout.logs.unlogged);
    let life = Arc::clone(folder.life());
    let files = (&folder, &*table_files.values.store);
    let chain = found_chain(files, &names, (&replayed, last), &layout, options.kept_log_bytes);
    let logs: BTreeSet<u64> =
        live_logs(&names, layout.logs).into_iter().chain(chain.kept.numbers()).collect();
    let shared = SharedByTrees {
        env: Arc::new(env),
        obsolete_files: Arc::new(ObsoleteFiles::expecting(logs.iter().copied())),
        logs: Arc::new(live_logs_of(&replayed, chain)),
        snapshots: Arc::new(Snapshots::new(last, Arc::clone(&life))),
        manifest: Arc::new(Mutex::new(manifest)),
    };
    if options.kept_log_bytes > 0 {
        shared.logs.times.begin(shared.env.clock.since_epoch());
    }
    let log = log_of(&replayed, last, || table_files.new_file());
    let id = KeyspaceId::DEFAULT;
    let memtables = (replayed.trees.remove(&id).unwrap_or_default(), size);
    let (tree, workers) = ((id, layout.default_tree()), resources.pool.place(Arc::clone(&life)));
    let tree = open_tree(&shared, tree, (&tree_options, table_files), memtables, workers)?;
    let commit = Arc::new(Commit::new(log, Sequence(last.0 + 1), life));
    let keyspaces = Keyspaces::new(resources.clone());
    let main = Engine::new(tree, commit, resources, Some(lock));
    keyspaces.open_those_with_data(&main, replayed.trees)?;
    // Orphans are removed only now. A manifest that lost an edit to damage makes a live table look
    // like an orphan. Then a file is missing, and one of the steps above has failed.
    let values: HashSet<u64> = {
        let held = main.table_files.values.store.all_held();
        held.iter().map(|file| file.number()).collect()
    };
    let orphans = || orphans(&names, &layout, &logs, &values);
    let orphans = if main.env.reads_older { Vec::new() } else { orphans() };
    remove_orphans(&folder, &orphans, || main.manifest().keep().is_ok());
    Ok((main, keyspaces))
}

/// Returns the options, completed with those that the default key space keeps in the manifest.
fn with_kept(options: &Options, layout: &StoreLayout, store: &Path) -> Result<Options> {
    let kept = &layout.keyspaces[&KeyspaceId::DEFAULT].record.options;
    let options = options.with_kept(kept, store)?;
    options.check()?;
    registry::register(options.guard)?;
    Ok(options)
}

/// Opens a store with a single key space.
#[cfg(test)]
pub(crate) fn open(dir: &Path, options: &Options, env: Environment) -> Result<Engine> {
    open_store(dir, options, env).map(|(main, _)| main)
}

/// Continues the newest log in a file that will replace it, or starts a new log if there is none.
fn log_of(replayed: &Replayed, last: Sequence, new_file: impl FnOnce() -> u64) -> Log {
    match replayed.logs.last() {
        Some(&ReplayedLog { number, before, counts, .. }) => {
            Log::read_back(number, before, counts.bytes)
        }
        None => Log::unmade(new_file(), Predecessor::none(last)),
    }
}

fn live_logs_of(replayed: &Replayed, chain: FoundChain) -> LiveLogs {
    let logs = LiveLogs::default();
    replayed.logs.iter().for_each(|log| logs.begin_log(log.number, log.counts.bytes));
    logs.begin_chain(chain.chain, chain.kept, chain.values);
    logs
}

/// Checks that the folder is a store or may become one, and takes its lock.
fn take_store_folder(
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
            create_folder(storage, dir)?;
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
        sync_parents(storage, dir)?;
    }
    let lock = lock_folder(&folder)?;
    Ok((folder, lock))
}

/// Returns the files that no layout names: leftovers of a crash, or of a reader of the last
/// session.
fn orphans<'n>(
    names: &'n [String],
    layout: &StoreLayout,
    logs: &BTreeSet<u64>,
    values: &HashSet<u64>,
) -> Vec<&'n String> {
    let trees = || layout.trees();
    let tables = trees().flat_map(|tree| &tree.runs).flat_map(|run| &run.tables);
    let live: HashSet<String> = tables.map(|table| table_name(table.file)).collect();
    let images: HashSet<u64> = trees().flat_map(|it| &it.images).map(|image| image.file).collect();
    let is_dead = |name: &&String| {
        let dead_log = |number| **name == wal_name(number) && !logs.contains(&number);
        // A sort unlinks its spill files right after opening them, where the system supports that.
        is_spill(name)
            || file_number(name).is_some_and(|number| {
                dead_log(number)
                    || name.ends_with(".wal.new")
                    || name.ends_with(".value.new")
                    || (**name == value_name(number) && !values.contains(&number))
                    || (**name == table_name(number) && !live.contains(*name))
                    || (**name == image_name(number) && !images.contains(&number))
            })
    };
    names.iter().filter(is_dead).collect()
}

/// Removes files that the layout does not need. The layout is made durable first. Otherwise the
/// sync of its last edit may have failed, and a power cut would undo that edit.
fn remove_orphans(folder: &OpenFolder, orphans: &[&String], keep_layout: impl FnOnce() -> bool) {
    if !orphans.is_empty() && keep_layout() {
        // The next open retries what could not be removed.
        orphans.iter().for_each(|name| drop(folder.remove(name)));
    }
}
