//! The engine of a tree: what changes it, by writers and by background work.
//! ```text
//! writers     commit (one leader at a time)  -> memtable, log
//! background  flush, merge                   -> installer of the tree
//! ```
//! Invariant: readers have the tree alone, and never its engine.

use std::ops::Deref;
use std::sync::OnceLock;

use crate::entries::memtable::MemtableSize;
use crate::error::Result;
use crate::files::store_folder::FolderLock;
use crate::plan::background::Background;
use crate::plan::run_limits::RunLimits;
use crate::shared::merge_lanes::MergeLanes;
use crate::shared::rate_limiter::RateLimiter;
use crate::shared::resources::StoreResources;
use crate::shared::worker_pool::WorkerPool;
use crate::shared::write_memory::{StoreMemory, WriteMemory};
use crate::sync::{Arc, Condvar, Mutex, lock};
use crate::tree::obsolete_files::Obsolete;
use crate::tree::open_tree::OpenTree;
use crate::tree::version::Version;
use crate::write::commit::Commit;
use crate::write::work::Work;

/// An open tree that can be written to. It dereferences to the tree, which it shares with readers.
pub(crate) struct Engine {
    pub(crate) tree: Arc<OpenTree>,
    /// Shared by all trees of the store.
    pub(crate) commit: Arc<Commit>,
    pub(crate) work: Mutex<Work>,
    /// Signalled when work appears, ends or fails.
    pub(crate) work_changed: Condvar,
    /// The threads that may work for the tree.
    pub(crate) pool: Mutex<Option<Arc<WorkerPool>>>,
    /// Bounds concurrent merges, together with the stores that share its threads.
    pub(crate) lanes: Arc<MergeLanes>,
    /// Limits the rate of merges.
    pub(crate) rate_limiter: Arc<RateLimiter>,
    /// Its share of write memory, if stores or key spaces share that.
    memory: OnceLock<Arc<StoreMemory>>,
    pub(crate) memtable_size: MemtableSize,
    /// The limits at which writers are slowed down and stopped.
    pub(crate) run_limits: RunLimits,
    /// The lock of the folder. The engine of the default tree has it while the store is open.
    pub(crate) lock: Mutex<Option<FolderLock>>,
    /// Counts the users of the engine.
    users: Arc<()>,
}

/// A use of a tree. While one exists, the key space is not reopened.
#[derive(Clone)]
pub(crate) struct EngineUse {
    engine: Arc<Engine>,
    _counted: Arc<()>,
}

impl Deref for EngineUse {
    type Target = Arc<Engine>;

    fn deref(&self) -> &Arc<Engine> {
        &self.engine
    }
}

impl Engine {
    /// Returns the engine of a tree. Requires: `lock` is the lock of the tree's folder, or another
    /// tree of the store has that lock.
    pub(crate) fn new(
        tree: OpenTree,
        commit: Arc<Commit>,
        resources: StoreResources,
        lock: Option<FolderLock>,
    ) -> Self {
        let StoreResources { memory, memtable_size, pool, lanes, rate_limiter, .. } = resources;
        let engine = Engine {
            commit,
            work: Mutex::default(),
            work_changed: Condvar::new(),
            pool: Mutex::new(Some(pool)),
            lanes,
            rate_limiter,
            memory: OnceLock::new(),
            memtable_size,
            run_limits: RunLimits::of(&tree.table_files.options),
            lock: Mutex::new(lock),
            users: Arc::new(()),
            tree: Arc::new(tree),
        };
        memory.iter().for_each(|memory| engine.join_memory(memory));
        engine
    }

    /// Returns a use of the engine.
    pub(crate) fn used(self: &Arc<Self>) -> EngineUse {
        EngineUse { engine: Arc::clone(self), _counted: Arc::clone(&self.users) }
    }

    /// Whether anyone uses the engine, or reads from its tree.
    pub(crate) fn is_used(&self) -> bool {
        Arc::strong_count(&self.users) > 1 || Arc::strong_count(&self.tree) > 1
    }

    /// Makes its memtables count in this write memory, unless they already count in another.
    /// Requires: nobody writes meanwhile.
    pub(crate) fn join_memory(&self, memory: &Arc<WriteMemory>) {
        if self.memory.get().is_some() {
            return;
        }
        let is_stepped = self.table_files.options.background == Background::Stepped;
        let _ = self.memory.set(memory.join(Arc::clone(&self.workers), is_stepped));
        self.note_recovered_memory();
    }

    /// Returns its share of write memory. None: it shares none.
    #[inline]
    pub(crate) fn memory(&self) -> Option<&Arc<StoreMemory>> {
        self.memory.get()
    }

    /// Shuts the tree of a dropped key space: nothing is read, written or installed any more.
    /// Requires: the caller is the writer and holds the installer's lock.
    pub(crate) fn drop_tree(&self, name: &str) {
        let last = self.current.hold();
        self.tree.dropped.set(name);
        let of_active = last.active.first_log();
        self.keep_values(of_active.is_some(), &last.active.values, self.snapshots.visible());
        for sealed in &last.sealed {
            self.keep_values(sealed.first_log.is_some(), &sealed.values, sealed.last);
        }
        of_active.into_iter().for_each(|first| self.logs.seal_memtable(self.keyspace, first));
        let first_logs = last.sealed.iter().map(|sealed| sealed.first_log).chain([of_active]);
        first_logs.flatten().for_each(|first| self.logs.end_memtable(first));
        self.obsolete_files.add_tables(&last, last.files(), Arc::clone(&self.workers) as _);
        let images = last.layout.images.iter().map(|image| Obsolete::Image(image.file));
        self.obsolete_files.add(images);
        // Readers of this version learn from it that the key space was dropped.
        self.current.store(Arc::new(Version::closed(&last)));
    }

    /// Gives its share of write memory back. Requires: nothing is written any more.
    pub(crate) fn release(&self) {
        if let Some(memory) = self.memory() {
            memory.leave();
        }
    }

    /// Counts memtables that were recovered at opening.
    fn note_recovered_memory(&self) {
        let Some(memory) = self.memory() else { return };
        let version = self.current.pin();
        memory.add_sealed(version.sealed.iter().map(|sealed| sealed.memtable.size_bytes()).sum());
        if !version.active.memtable.is_empty() {
            memory.note_active(version.active.memtable.size_bytes());
        }
    }

    /// Lets threads work for the tree, if its options ask for that.
    ///
    /// # Errors
    /// No thread can be started.
    pub(crate) fn start_work(self: &Arc<Self>) -> Result<()> {
        match (self.table_files.options.background, &*lock(&self.pool)) {
            (Background::Threads(_), Some(pool)) => pool.join(&self.workers, Arc::clone(self) as _),
            _ => Ok(()),
        }
    }

    /// Lets threads work for the tree again, after `end_work`.
    ///
    /// # Errors
    /// No thread can be started.
    pub(crate) fn resume_work(self: &Arc<Self>, pool: Arc<WorkerPool>) -> Result<()> {
        self.go_on();
        *lock(&self.pool) = Some(pool);
        self.start_work()
    }

    /// Returns when no thread works for the tree any more. Threads of its own have ended.
    pub(crate) fn end_work(&self) {
        self.stop();
        self.workers.leave();
        // Calls still in progress may take long, so lanes are given back now.
        lock(&self.work).merges.give_back_lanes();
        let pool = lock(&self.pool).take();
        drop(pool);
    }
}

impl Deref for Engine {
    type Target = OpenTree;

    fn deref(&self) -> &OpenTree {
        &self.tree
    }
}
