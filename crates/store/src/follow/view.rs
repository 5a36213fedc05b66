//! The view of a follower's readers: all trees of the store as of one number.
//! ```text
//! reader     pins a view, then takes its number        any of its trees, as of that number
//! catch-up   logs alone    -> the same view, a greater number
//!            an edit       -> another view; both share trees that the edit does not touch
//! ```
//! Invariants: a tree of a view answers for every number that the view has had. The writer's merges
//! keep nothing for readers here, since the writer does not know them. So a tree never changes its
//! tables.

use std::collections::BTreeMap;

use crate::db::Snapshot;
use crate::entries::entry::Sequence;
use crate::entries::keyspace_id::KeyspaceId;
use crate::entries::memtable::MemtableSize;
use crate::error::{Error, Result};
use crate::files::manifest::Manifest;
use crate::files::names::LOCK_NAME;
use crate::follow::options::FollowOptions;
use crate::plan::options::Options;
use crate::plan::options::keyspace::{KeyspaceOptions, kept_buffer_bytes};
use crate::plan::registry;
use crate::plan::store_layout::{KeyspaceLayout, StoreLayout};
use crate::shared::environment::Environment;
use crate::shared::resources::StoreResources;
use crate::storage::io_mode::IoStats;
use crate::storage::open_folder::OpenFolder;
use crate::sync::{Arc, AtomicU64, Mutex, Ordering, lock};
use crate::tree::live_logs::LiveLogs;
use crate::tree::obsolete_files::ObsoleteFiles;
use crate::tree::open_tree::OpenTree;
use crate::tree::opening::{Recovered, SharedByTrees, TreeOptions, follow_tree, nothing};
use crate::tree::snapshots::{Registered, Snapshots};
use crate::tree::table_files::TableFiles;

/// The store as of some edit.
pub(crate) struct View {
    pub(crate) layout: Arc<StoreLayout>,
    /// The trees that have something, or that somebody has asked for.
    pub(crate) trees: BTreeMap<KeyspaceId, Arc<OpenTree>>,
    visible: AtomicU64,
}

impl View {
    /// Makes a view at a number. Requires: all writes up to it are in the trees.
    pub(crate) fn new(
        layout: Arc<StoreLayout>,
        trees: BTreeMap<KeyspaceId, Arc<OpenTree>>,
        visible: Sequence,
    ) -> Self {
        View { layout, trees, visible: AtomicU64::new(visible.0) }
    }

    /// Makes the view of a store of which nothing was read yet.
    pub(crate) fn nothing() -> Self {
        View::new(Arc::default(), BTreeMap::new(), Sequence(0))
    }

    /// Returns the newest number that reads may use.
    pub(crate) fn visible(&self) -> Sequence {
        Sequence(self.visible.load(Ordering::Acquire))
    }

    /// Makes all writes up to `sequence` visible. Requires: they are in the trees.
    pub(crate) fn publish(&self, sequence: Sequence) {
        self.visible.store(sequence.0, Ordering::Release);
    }

    /// Returns a tree as of a number that the view has had. None: the view lacks the tree.
    pub(crate) fn snapshot(&self, keyspace: KeyspaceId, at: Sequence) -> Option<Snapshot> {
        let tree = Arc::clone(self.trees.get(&keyspace)?);
        Some(Snapshot { tree, registered: Registered::alone(at) })
    }

    /// Returns the number of the key space with this name.
    pub(crate) fn named(&self, name: &str) -> Result<KeyspaceId> {
        let names = || self.layout.keyspaces.values().map(|it| it.record.name.clone());
        let unknown = || Error::NoKeyspace { name: name.into(), there: names().collect() };
        self.layout.named(name).ok_or_else(unknown)
    }
}

/// The store's folder, and the files, caches and options for its trees. Views share it.
pub(crate) struct FollowedStore {
    pub(crate) folder: OpenFolder,
    pub(crate) files: Arc<TableFiles>,
    pub(crate) shared: SharedByTrees,
    given: Options,
    /// The given options, completed by those that the store keeps for the default key space.
    options: Arc<Options>,
    keyspaces: BTreeMap<String, KeyspaceOptions>,
    resources: StoreResources,
}

impl FollowedStore {
    /// Prepares for a store with this layout, in a folder that is only read.
    pub(crate) fn new(
        folder: OpenFolder,
        layout: &StoreLayout,
        given: &FollowOptions,
        mut env: Environment,
    ) -> Result<FollowedStore> {
        let shared = env.resources.take();
        let kept = &layout.keyspaces[&KeyspaceId::DEFAULT].record.options;
        let options = given.options.with_kept(kept, folder.path())?;
        options.check()?;
        registry::register(options.guard)?;
        let (resources, options) = StoreResources::of(shared.as_ref(), &options)?;
        let options = Arc::new(options);
        let io = IoStats::granted(folder.handle(), LOCK_NAME, options.io());
        let (cache, next_file) = (resources.cache.share(), layout.next_file());
        let files = TableFiles::new(folder.clone(), &options, cache, io, next_file);
        files.files.follow();
        let manifest = Manifest::open(&folder, layout.clone());
        let snapshots = Snapshots::new(Sequence(0), Arc::clone(folder.life()));
        let shared = SharedByTrees {
            env: Arc::new(env),
            obsolete_files: Arc::new(ObsoleteFiles::default()),
            logs: Arc::new(LiveLogs::default()),
            snapshots: Arc::new(snapshots),
            manifest: Arc::new(Mutex::new(manifest)),
        };
        let (files, keyspaces) = (Arc::new(files), given.keyspaces.clone());
        let given = given.options.clone();
        Ok(FollowedStore { folder, files, shared, given, options, keyspaces, resources })
    }

    /// Returns the size of a key space's memtables.
    pub(crate) fn size_of(&self, id: KeyspaceId, keyspace: &KeyspaceLayout) -> MemtableSize {
        match id {
            KeyspaceId::DEFAULT => self.resources.memtable_size,
            _ => MemtableSize::of_many(kept_buffer_bytes(&keyspace.record.options)),
        }
    }

    /// Opens a tree of a layout, with these entries in memory. Reuses what is open of `before`, the
    /// same tree as of another edit.
    pub(crate) fn tree(
        &self,
        (id, keyspace): (KeyspaceId, &KeyspaceLayout),
        memtables: Recovered,
        before: Option<(&OpenTree, &KeyspaceLayout)>,
    ) -> Result<Arc<OpenTree>> {
        let same = before.filter(|(_, before)| before.record.options == keyspace.record.options);
        let files = match same {
            Some((tree, _)) => Arc::clone(&tree.table_files),
            None => self.files_of(id, keyspace)?,
        };
        let options = TreeOptions::of(Arc::clone(&files.options));
        let workers = self.resources.pool.place(Arc::clone(self.folder.life()));
        let before = before.map(|(tree, _)| tree);
        let (tree, files) = ((id, &keyspace.tree), (&options, files));
        follow_tree(&self.shared, tree, files, memtables, (before, workers)).map(Arc::new)
    }

    /// Opens a tree without entries in memory.
    pub(crate) fn tree_without_memtables(
        &self,
        (id, keyspace): (KeyspaceId, &KeyspaceLayout),
        next: Sequence,
    ) -> Result<Arc<OpenTree>> {
        let active = nothing(self.size_of(id, keyspace), next);
        let next_flush = keyspace.tree.next_flush;
        let memtables = Recovered { active, sealed: Vec::new(), next_flush };
        self.tree((id, keyspace), memtables, None)
    }

    fn files_of(&self, id: KeyspaceId, keyspace: &KeyspaceLayout) -> Result<Arc<TableFiles>> {
        let (record, store) = (&keyspace.record, self.folder.path());
        if id == KeyspaceId::DEFAULT && self.is_untouched(keyspace) {
            return Ok(Arc::clone(&self.files));
        }
        let options = match id {
            KeyspaceId::DEFAULT => self.given.with_kept(&record.options, store)?,
            _ => {
                let none = KeyspaceOptions::new();
                let given = self.keyspaces.get(&record.name).unwrap_or(&none);
                self.options.of_keyspace(&record.options, given, store)?
            }
        };
        options.check()?;
        registry::register(options.guard)?;
        Ok(Arc::new(self.files.sharing(id, &Arc::new(options))))
    }

    /// Whether the default key space still has the options that were read first.
    fn is_untouched(&self, keyspace: &KeyspaceLayout) -> bool {
        let first = lock(&self.shared.manifest);
        let first = &first.layout().keyspaces[&KeyspaceId::DEFAULT].record.options;
        *first == keyspace.record.options
    }
}
