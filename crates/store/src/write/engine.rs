//! What changes an open store: its writers, and its background work.
//! ```text
//! writers     commit (one leader at a time)  -> memtable, log
//! background  flush, merge                   -> installer of the tree
//! ```
//! Invariant: readers have the tree alone, and never this.

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

/// An open store that can be written to. What it shares with readers is reached as if it were its
/// own.
pub(crate) struct Engine {
    pub(crate) tree: Arc<OpenTree>,
    /// Of the store.
    pub(crate) commit: Arc<Commit>,
    pub(crate) work: Mutex<Work>,
    /// Signalled when work appears, ends or fails.
    pub(crate) work_changed: Condvar,
    /// The threads that may work for it.
    pub(crate) pool: Mutex<Option<Arc<WorkerPool>>>,
    /// Of its merges, and of those of stores that it shares threads with.
    pub(crate) lanes: Arc<MergeLanes>,
    /// Keeps merges to their rate.
    pub(crate) rate_limiter: Arc<RateLimiter>,
    /// Its share of memory for writes, where stores or key spaces share it.
    memory: OnceLock<Arc<StoreMemory>>,
    pub(crate) memtable_size: MemtableSize,
    /// Where writers are slowed down and stopped.
    pub(crate) run_limits: RunLimits,
    /// Held while the store is open, by the default tree's.
    pub(crate) lock: Mutex<Option<FolderLock>>,
    /// Counts those who use it.
    users: Arc<()>,
}

/// The use of a tree: meanwhile the key space is not opened anew.
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
    /// Requires: `lock` is that of the folder that the tree is in, or another tree of the store
    /// has it.
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

    /// It is used as long as this is there.
    pub(crate) fn used(self: &Arc<Self>) -> EngineUse {
        EngineUse { engine: Arc::clone(self), _counted: Arc::clone(&self.users) }
    }

    /// Whether somebody uses it, or reads from its tree.
    pub(crate) fn is_used(&self) -> bool {
        Arc::strong_count(&self.users) > 1 || Arc::strong_count(&self.tree) > 1
    }

    /// From now on its memtables count in this memory, unless they do in another. Requires: nobody
    /// writes meanwhile.
    pub(crate) fn join_memory(&self, memory: &Arc<WriteMemory>) {
        if self.memory.get().is_some() {
            return;
        }
        let is_stepped = self.table_files.options.background == Background::Stepped;
        let _ = self.memory.set(memory.join(Arc::clone(&self.workers), is_stepped));
        self.note_recovered_memory();
    }

    /// Its share of memory for writes. None: it shares none.
    #[inline]
    pub(crate) fn memory(&self) -> Option<&Arc<StoreMemory>> {
        self.memory.get()
    }

    /// Its key space was dropped: nothing is read, written or installed any more. Requires: the
    /// caller is the writer and has the installer's lock.
    pub(crate) fn drop_tree(&self, name: &str) {
        let last = self.current.hold();
        self.tree.dropped.set(name);
        let of_active = last.active.first_log();
        of_active.into_iter().for_each(|first| self.logs.seal_memtable(self.keyspace, first));
        let first_logs = last.sealed.iter().map(|sealed| sealed.first_log).chain([of_active]);
        first_logs.flatten().for_each(|first| self.logs.end_memtable(first));
        self.leaving.add_tables(&last, last.files(), Arc::clone(&self.workers) as _);
        let images = last.layout.images.iter().map(|image| Obsolete::Image(image.file));
        self.leaving.add(images);
        // Readers that see this version see that it is dropped.
        self.current.store(Arc::new(Version::closed(&last)));
    }

    /// Gives back its share of memory for writes. Requires: nothing is written any more.
    pub(crate) fn release(&self) {
        if let Some(memory) = self.memory() {
            memory.leave();
        }
    }

    /// Counts what is in memory already.
    fn note_recovered_memory(&self) {
        let Some(memory) = self.memory() else { return };
        let version = self.current.pin();
        memory.add_sealed(version.sealed.iter().map(|sealed| sealed.memtable.size_bytes()).sum());
        if !version.active.memtable.is_empty() {
            memory.note_active(version.active.memtable.size_bytes());
        }
    }

    /// Has threads work for the store from now on, if its options say so.
    ///
    /// # Errors
    /// A thread cannot be had.
    pub(crate) fn start_work(self: &Arc<Self>) -> Result<()> {
        match (self.table_files.options.background, &*lock(&self.pool)) {
            (Background::Threads(_), Some(pool)) => pool.join(&self.workers, Arc::clone(self) as _),
            _ => Ok(()),
        }
    }

    /// Has threads work for it again, after `end_work`.
    ///
    /// # Errors
    /// A thread cannot be had.
    pub(crate) fn resume_work(self: &Arc<Self>, pool: Arc<WorkerPool>) -> Result<()> {
        self.go_on();
        *lock(&self.pool) = Some(pool);
        self.start_work()
    }

    /// Returns when no thread works for the store any more. Those that were its own have ended.
    pub(crate) fn end_work(&self) {
        self.stop();
        self.workers.leave();
        // Calls that are under way may take long.
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
