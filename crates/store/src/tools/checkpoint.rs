//! A checkpoint: an independent store in its own folder, with everything that this store has at one
//! moment. A backup stores the same files.
//! ```text
//! this store    runs of a pinned version, values      memtables, up to the newest visible write
//!                 | hard links, or copies             | written as one log
//! the folder    NNNNNN.table, .filter, .value         NNNNNN.wal        then MANIFEST, last of all
//! ```
//! Invariants: the store is only read. The MANIFEST gets its name when everything that it names is
//! durable. A folder with files but no MANIFEST is refused as no store. The pinned version keeps
//! its tables, whatever merges do meanwhile. Files never change once they are named, so two stores
//! may share them.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::Path;

use crate::entries::entry::Sequence;
use crate::entries::memtable_writes::writes_up_to;
use crate::error::{Error, Result};
use crate::files::manifest::{MANIFEST_NAME, MANIFEST_NEW_NAME, Manifest};
use crate::files::names::{LOCK_NAME, image_name, table_name, value_name, wal_name};
use crate::files::store_folder::{FolderLock, lock_folder};
use crate::files::value_file::ValueFile;
use crate::files::wal::{Predecessor, Wal};
use crate::plan::layout::Layout;
use crate::plan::store_layout::{LogNumbers, StoreLayout};
use crate::storage::durable_folder::ensure_folder;
use crate::storage::io_mode::Access;
use crate::storage::link_or_copy::{copy_open, link_or_copy};
use crate::storage::open_folder::OpenFolder;
use crate::storage::traits::{ReadAt, Storage};
use crate::sync::Arc;
use crate::tools::progress::Steps;
use crate::tree::open_tree::OpenTree;
use crate::tree::version::Version;
use crate::write::engine::{Engine, EngineUse};
use crate::write::keyspaces::Keyspaces;

/// Creates a store in `dir` with all writes that are visible now.
pub(crate) fn checkpoint(
    main: &Arc<Engine>,
    keyspaces: &Keyspaces,
    dir: &Path,
    steps: &mut Steps<'_, '_>,
) -> Result<()> {
    let (folder, _lock) = take_new_folder(&*main.env.storage, dir)?;
    let mut made = Made::in_folder(folder);
    let filled = fill(main, keyspaces, &mut made, steps).map(drop);
    if filled.is_err() {
        made.remove();
    }
    filled
}

/// Creates a store in `dir` with all writes up to a number, from trees that another process writes.
/// Files are copied, never linked, since value files are not sealed for this.
pub(crate) fn of_followed(
    storage: &dyn Storage,
    followed: Followed<'_>,
    dir: &Path,
    steps: &mut Steps<'_, '_>,
) -> Result<()> {
    let (folder, _lock) = take_new_folder(storage, dir)?;
    let mut made = Made::in_folder(folder);
    let filled = fill_of_followed(followed, &mut made, steps);
    if filled.is_err() {
        made.remove();
    }
    filled
}

/// Creates the folder, or takes an empty one. A failed attempt may have left a lock file in it.
pub(crate) fn take_new_folder(
    storage: &dyn Storage,
    dir: &Path,
) -> Result<(OpenFolder, FolderLock)> {
    ensure_folder(storage, dir)?;
    let folder = OpenFolder::open(storage, dir)?;
    let require_empty = || {
        let names = folder.list()?;
        let is_empty = names.iter().all(|name| name == LOCK_NAME);
        if is_empty { Ok(()) } else { Err(Error::NotEmpty { path: dir.to_path_buf() }) }
    };
    // The first check is before the lock, so that a folder of something else gets no lock file.
    require_empty()?;
    let lock = lock_folder(&folder)?;
    require_empty()?;
    Ok((folder, lock))
}

/// Receives the files of a store.
pub(crate) trait Target {
    /// Returns the folder for the new log and manifest.
    fn folder(&self) -> &OpenFolder;

    /// Notes that this file of the folder is about to be written.
    fn begin(&mut self, _name: String) {}

    /// Takes a file of the store, which does not change meanwhile. `open`: the file may lose its
    /// name, or grow, so it must be copied.
    fn take(
        &mut self,
        from: &OpenFolder,
        name: String,
        open: Option<&Arc<dyn ReadAt>>,
    ) -> Result<()>;
}

/// Trees that another process writes, the layout of their store, and the newest visible write.
pub(crate) type Followed<'t> = (&'t [Arc<OpenTree>], StoreLayout, Sequence);

/// The files that were created in a folder, in order.
pub(crate) struct Made {
    folder: OpenFolder,
    names: Vec<String>,
}

impl Target for Made {
    fn folder(&self) -> &OpenFolder {
        &self.folder
    }

    fn begin(&mut self, name: String) {
        self.names.push(name);
    }

    /// Links or copies a file of the store into the folder.
    fn take(
        &mut self,
        from: &OpenFolder,
        name: String,
        open: Option<&Arc<dyn ReadAt>>,
    ) -> Result<()> {
        let to = (&self.folder, &*name);
        let made = match open {
            Some(open) => copy_open((&**open, &from.path_of(&name)), to),
            None => link_or_copy((from, &name), to),
        };
        // A link may exist although creating it failed. But a file that existed before is not ours.
        if !made.as_ref().is_err_and(Error::is_name_taken) {
            self.names.push(name);
        }
        made
    }
}

impl Made {
    /// Makes an empty list.
    pub(crate) fn in_folder(folder: OpenFolder) -> Made {
        Made { folder, names: Vec::new() }
    }

    /// Removes the files. The manifest goes first, durably: a power cut could otherwise bring it
    /// back without the files that it names. A folder that remains is refused as no store, or is
    /// complete.
    pub(crate) fn remove(&self) {
        let is_manifest = |name: &&String| [MANIFEST_NEW_NAME, MANIFEST_NAME].contains(&&***name);
        let (manifests, others): (Vec<_>, Vec<_>) = self.names.iter().partition(is_manifest);
        manifests.iter().for_each(|name| _ = self.folder.remove(name));
        if manifests.is_empty() || self.folder.sync().is_ok() {
            others.iter().rev().for_each(|name| _ = self.folder.remove(name));
        }
    }
}

/// A tree at one moment.
struct SourceTree {
    tree: Arc<OpenTree>,
    version: Arc<Version>,
    /// The value files of the moment. The version's active memtable grows, and refers to more.
    values: Vec<Arc<ValueFile>>,
}

impl SourceTree {
    fn of((tree, version): (Arc<OpenTree>, Arc<Version>)) -> Self {
        let values = version.value_files().into_values().map(|(file, _)| file).collect();
        SourceTree { tree, version, values }
    }
}

/// The trees of a store at one moment.
struct CheckpointSource {
    /// The newest write that is visible.
    last: Sequence,
    /// At least one.
    trees: Vec<SourceTree>,
    /// Includes key spaces of which nothing was read yet.
    layout: StoreLayout,
    /// Open files of another process, which may remove them.
    open: HashMap<String, Arc<dyn ReadAt>>,
}

impl CheckpointSource {
    /// Captures the present moment. No group is written meanwhile, so no batch is in some trees
    /// only. The trees stay in use while the returned `EngineUse`s are held.
    fn now(main: &Arc<Engine>, keyspaces: &Keyspaces) -> (Self, Vec<EngineUse>) {
        let (last, trees, layout, uses) = keyspaces.hold_still(|others| {
            let _writer = main.commit.writer();
            let last = main.snapshots.visible();
            let engines = std::iter::once(main).chain(others);
            let pinned = |engine: &Arc<Engine>| {
                ((Arc::clone(&engine.tree), engine.current.hold()), engine.used())
            };
            let (trees, uses): (Vec<_>, _) = engines.map(pinned).unzip();
            (last, trees, main.manifest().layout().clone(), uses)
        });
        let trees = trees.into_iter().map(SourceTree::of).collect();
        (CheckpointSource { last, trees, layout, open: HashMap::new() }, uses)
    }

    /// Captures a followed store. Opens its tables and value files if they are not open.
    fn of((trees, layout, last): Followed<'_>) -> Result<Self> {
        let pinned = |tree: &Arc<OpenTree>| SourceTree::of((Arc::clone(tree), tree.current.hold()));
        let trees: Vec<_> = trees.iter().map(pinned).collect();
        let mut open = HashMap::new();
        for SourceTree { tree, version, values } in &trees {
            let tables = version.files().map(|table| (table_name(table.file()), table.reader()));
            open.extend(tables.map(|(name, reader)| (name, Arc::clone(reader))));
            for file in values {
                let reader = file.reader(&tree.table_files.files)?;
                open.insert(value_name(file.number()), Arc::clone(reader));
            }
        }
        Ok(CheckpointSource { last, trees, layout, open })
    }

    /// Returns a number above those of all its files. No edit records the numbers of logs and new
    /// value files.
    fn number_above(&self) -> u64 {
        let values = self.trees.iter().flat_map(|it| &it.values).map(|file| file.number());
        let newest = values.chain([self.layout.logs.newest]).max().unwrap_or_default();
        (newest + 1).max(self.layout.next_file())
    }
}

/// Gives a target all files of a store with all writes that are visible now. Returns the number of
/// the last one.
pub(crate) fn fill(
    main: &Arc<Engine>,
    keyspaces: &Keyspaces,
    made: &mut dyn Target,
    steps: &mut Steps<'_, '_>,
) -> Result<Sequence> {
    // Registering the number keeps entries that the versions see.
    let _registered = main.snapshots.register();
    let (source, _uses) = CheckpointSource::now(main, keyspaces);
    let last = source.last;
    let number = main.table_files.new_file();
    fill_with(source, number, made, steps).map(|()| last)
}

/// Like `fill`, for a store that another process writes.
pub(crate) fn fill_of_followed(
    followed: Followed<'_>,
    made: &mut dyn Target,
    steps: &mut Steps<'_, '_>,
) -> Result<()> {
    let source = CheckpointSource::of(followed)?;
    let number = source.number_above();
    fill_with(source, number, made, steps)
}

/// Fills a target with the store at a moment. `number`: above those of all its files.
fn fill_with(
    CheckpointSource { last, trees, mut layout, open }: CheckpointSource,
    number: u64,
    made: &mut dyn Target,
    steps: &mut Steps<'_, '_>,
) -> Result<()> {
    let take = |from: &OpenFolder, name: String, made: &mut dyn Target| {
        let open = open.get(&name);
        made.take(from, name, open)
    };
    let files = |version: &Version| version.files().count() as u64;
    steps.begin(trees.iter().map(|it| files(&it.version)).sum())?;
    for SourceTree { tree, version, values } in &trees {
        let folder = &tree.table_files.folder;
        for table in version.files() {
            take(folder, table_name(table.file()), made)?;
            steps.advance(1)?;
        }
        seal_values(tree, values)?;
        values.iter().try_for_each(|file| take(folder, value_name(file.number()), made))?;
        let mut layout_of_tree = (*version.layout).clone();
        link_images(tree, made, &mut layout_of_tree)?;
        layout_of_tree.next_file = number + 1;
        layout = layout.with(tree.keyspace, layout_of_tree);
    }
    let newest = if write_log(made, number, &trees, last)? { number } else { 0 };
    layout.logs = LogNumbers { live: number, newest, ..layout.logs };
    made.folder().sync()?;
    [MANIFEST_NEW_NAME, MANIFEST_NAME].into_iter().for_each(|name| made.begin(name.into()));
    Manifest::create(made.folder(), layout).map(drop)
}

/// Makes value files durable. Nothing is appended to them any more.
fn seal_values(tree: &OpenTree, files: &[Arc<ValueFile>]) -> Result<()> {
    let values = &tree.table_files.values;
    files.iter().for_each(|file| values.retire(file));
    values.store.sync()
}

/// Takes the filter's images, except those that newer ones have replaced. The parts of these are
/// rebuilt from tables.
fn link_images(tree: &OpenTree, made: &mut dyn Target, layout: &mut Layout) -> Result<()> {
    for image in std::mem::take(&mut layout.images) {
        match made.take(&tree.table_files.folder, image_name(image.file), None) {
            Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {}
            linked => {
                linked?;
                layout.images.push(image);
            }
        }
    }
    Ok(())
}

/// Writes the entries of the memtables up to `last` to a log, durably. False: there are none, and
/// no log was made.
fn write_log(
    made: &mut dyn Target,
    number: u64,
    trees: &[SourceTree],
    last: Sequence,
) -> Result<bool> {
    let memtables = trees.iter().flat_map(|SourceTree { tree, version, .. }| {
        let sealed = version.sealed.iter().map(|sealed| &sealed.memtable);
        let memtables = sealed.chain([&version.active.memtable]);
        memtables.map(|memtable| (tree.keyspace, &**memtable))
    });
    let writes = writes_up_to(memtables, last);
    if writes.is_empty() {
        return Ok(false);
    }
    made.begin(wal_name(number));
    let mut log = Wal::create((made.folder(), Access::default()), number, Predecessor::none(last))?;
    log.repeat(&writes)?;
    log.sync_alone()?;
    log.mark_end(Sequence(last.0 + 1))?;
    log.sync_alone()?;
    Ok(true)
}
