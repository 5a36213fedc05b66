//! Resources that several stores share: cached blocks, write memory, threads, the merge rate.
//! ```text
//! Environment::resources(&shared)  -->  store   one cache, one set of threads, ... for all of them
//! no resources given               -->  store   its own, by its options
//! ```
//! Invariant: a store takes all of them from one place.

use crate::entries::memtable::MemtableSize;
use crate::error::{Error, Result};
use crate::files::cache::BlockCache;
use crate::plan::background::Background;
use crate::plan::options::Options;
use crate::shared::merge_lanes::MergeLanes;
use crate::shared::rate_limiter::RateLimiter;
use crate::shared::worker_pool::{PoolSize, WorkerPool};
use crate::shared::write_memory::WriteMemory;
use crate::sync::Arc;

/// Open merges per merging thread: small merges need not wait for large ones.
const LANES_OF_A_THREAD: usize = 4;

/// Limits for all stores that share [`Resources`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResourceOptions {
    /// Memory for cached blocks of all stores. 0: no block is cached. Default: 32 MiB.
    pub block_cache_bytes: usize,
    /// Memory for new entries of all stores before they become runs on disk. Half of it is for
    /// active memtables: when these hold more, the largest is flushed. While all memtables hold
    /// more than all of it, writers are slowed down. At least 1 KiB. Default: 64 MiB.
    pub write_memory_bytes: usize,
    /// Threads that merge, 1 to 1024. Half as many more flush, at least two. As many more sync logs
    /// and remove files, at least four. At most four merges per merging thread are open at once,
    /// plus those that writers wait for. If more stores need a sync than there are threads for it,
    /// [`SyncPolicy::Interval`](crate::SyncPolicy) may be exceeded. Default: 2.
    pub merge_threads: usize,
    /// Bytes per second that the merges of all stores may read. None: no limit. Default: none.
    pub merge_bytes_per_second: Option<u64>,
}

impl Default for ResourceOptions {
    fn default() -> Self {
        ResourceOptions {
            block_cache_bytes: 32 << 20,
            write_memory_bytes: 64 << 20,
            merge_threads: 2,
            merge_bytes_per_second: None,
        }
    }
}

/// Setters, each for the field of its name.
impl ResourceOptions {
    /// The defaults.
    pub fn new() -> Self {
        ResourceOptions::default()
    }

    /// Sets [`block_cache_bytes`](ResourceOptions::block_cache_bytes).
    #[must_use]
    pub fn block_cache_bytes(self, block_cache_bytes: usize) -> Self {
        ResourceOptions { block_cache_bytes, ..self }
    }

    /// Sets [`write_memory_bytes`](ResourceOptions::write_memory_bytes).
    #[must_use]
    pub fn write_memory_bytes(self, write_memory_bytes: usize) -> Self {
        ResourceOptions { write_memory_bytes, ..self }
    }

    /// Sets [`merge_threads`](ResourceOptions::merge_threads).
    #[must_use]
    pub fn merge_threads(self, merge_threads: usize) -> Self {
        ResourceOptions { merge_threads, ..self }
    }

    /// Sets [`merge_bytes_per_second`](ResourceOptions::merge_bytes_per_second).
    #[must_use]
    pub fn merge_bytes_per_second(self, merge_bytes_per_second: impl Into<Option<u64>>) -> Self {
        let merge_bytes_per_second = merge_bytes_per_second.into();
        ResourceOptions { merge_bytes_per_second, ..self }
    }

    fn check(&self) -> Result<()> {
        let rules = [
            ("write_memory_bytes", self.write_memory_bytes >= 1 << 10, "at least 1 KiB"),
            ("merge_threads", (1..=1024).contains(&self.merge_threads), "1 to 1024"),
            ("merge_bytes_per_second", self.merge_bytes_per_second != Some(0), "at least 1"),
        ];
        match rules.into_iter().find(|(_, holds, _)| !holds) {
            Some((option, _, limits)) => {
                Err(Error::Option { option: option.into(), problem: format!("must be {limits}") })
            }
            None => Ok(()),
        }
    }
}

/// Resources that stores of this process share if they are opened with them: a block cache, write
/// memory, threads, and the merge rate. A clone is another handle of the same resources. They live
/// until the last handle and the last open store are gone.
///
/// The stores' options `block_cache_bytes`, `merge_bytes_per_second` and the number of threads in
/// `background` then have no effect. A store's `write_buffer_bytes` still limits its own memtable.
/// A [`Background::Stepped`] store uses no threads even so. Stores that share a rate should have
/// the same clock.
///
/// ```
/// use trommel::options::ResourceOptions;
/// use trommel::{Db, Environment, Options, Resources};
///
/// # fn main() -> trommel::Result<()> {
/// # let dir = tempfile::tempdir().expect("a temporary folder");
/// # let path = dir.path();
/// let shared = Resources::new(ResourceOptions::new().block_cache_bytes(256 << 20))?;
/// for tenant in ["anna", "beat", "carla"] {
///     let environment = Environment::new().resources(&shared);
///     let db = Db::open_with(path.join(tenant), Options::many_stores(), environment)?;
///     db.put("language", "de")?;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Resources {
    inner: Arc<Inner>,
}

struct Inner {
    options: ResourceOptions,
    cache: Arc<BlockCache>,
    memory: Arc<WriteMemory>,
    pool: Arc<WorkerPool>,
    lanes: Arc<MergeLanes>,
    rate_limiter: Arc<RateLimiter>,
}

/// The present use of shared [`Resources`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResourceStats {
    /// Open stores that the threads work for. Each open key space counts as one.
    pub stores: usize,
    /// Threads. They start when the first store is opened.
    pub threads: usize,
    /// Memory of cached blocks, in bytes.
    pub cache_bytes: u64,
    /// Memory of new entries that are not in tables yet, in bytes.
    pub write_memory_bytes: usize,
}

impl Resources {
    /// Makes resources to share.
    ///
    /// # Errors
    /// `Option`: one of the options is invalid.
    pub fn new(options: ResourceOptions) -> Result<Resources> {
        options.check()?;
        let inner = Arc::new(Inner {
            options,
            cache: Arc::new(BlockCache::new(options.block_cache_bytes as u64)),
            memory: Arc::new(WriteMemory::new(options.write_memory_bytes)),
            pool: Arc::new(WorkerPool::new(PoolSize::of_many_stores(options.merge_threads))),
            lanes: Arc::new(MergeLanes::new(LANES_OF_A_THREAD * options.merge_threads)),
            rate_limiter: Arc::new(RateLimiter::new(options.merge_bytes_per_second)),
        });
        Ok(Resources { inner })
    }

    /// Returns the present use. In a forked child, which has no part in the resources, it is zero.
    pub fn stats(&self) -> ResourceStats {
        if self.inner.pool.is_forked() {
            return ResourceStats::default();
        }
        let (stores, threads) = self.inner.pool.counts();
        ResourceStats {
            stores,
            threads,
            cache_bytes: self.inner.cache.size_bytes(),
            write_memory_bytes: self.inner.memory.used_bytes(),
        }
    }
}

impl std::fmt::Debug for Resources {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Resources").field("options", &self.inner.options).finish_non_exhaustive()
    }
}

/// The resources of one store, shared or its own.
#[derive(Clone)]
pub(crate) struct StoreResources {
    pub(crate) cache: Arc<BlockCache>,
    /// None: only the write buffer limits the store.
    pub(crate) memory: Option<Arc<WriteMemory>>,
    pub(crate) memtable_size: MemtableSize,
    pub(crate) pool: Arc<WorkerPool>,
    pub(crate) lanes: Arc<MergeLanes>,
    pub(crate) rate_limiter: Arc<RateLimiter>,
}

impl StoreResources {
    /// Returns the shared resources, or a store's own, with the options adapted to them.
    ///
    /// # Errors
    /// `Option`: the shared resources were made before a fork, by the parent process.
    pub(crate) fn of(shared: Option<&Resources>, options: &Options) -> Result<(Self, Options)> {
        let Some(shared) = shared.map(|shared| &shared.inner) else {
            return Ok((StoreResources::own(options), options.clone()));
        };
        if shared.pool.is_forked() {
            let problem = "were made before a fork; make others in this process".into();
            return Err(Error::Option { option: "resources".into(), problem });
        }
        let background = match options.background {
            Background::Threads(_) => Background::Threads(shared.options.merge_threads),
            Background::Stepped => Background::Stepped,
        };
        let options = (options.clone())
            .block_cache_bytes(shared.options.block_cache_bytes)
            .merge_bytes_per_second(shared.options.merge_bytes_per_second)
            .background(background);
        let resources = StoreResources {
            cache: Arc::clone(&shared.cache),
            memory: Some(Arc::clone(&shared.memory)),
            memtable_size: MemtableSize::of_many(options.write_buffer_bytes),
            pool: Arc::clone(&shared.pool),
            lanes: match background {
                Background::Threads(_) => Arc::clone(&shared.lanes),
                // Its steps wait for no other store.
                Background::Stepped => Arc::new(MergeLanes::unlimited()),
            },
            rate_limiter: Arc::clone(&shared.rate_limiter),
        };
        Ok((resources, options))
    }

    /// Returns the same resources for another tree of the store.
    pub(crate) fn for_tree(self, options: &Options) -> Self {
        let memtable_size = MemtableSize::of_many(options.write_buffer_bytes);
        StoreResources { memtable_size, ..self }
    }

    fn own(options: &Options) -> Self {
        let merge_threads = match options.background {
            Background::Threads(count) => count,
            Background::Stepped => 0,
        };
        StoreResources {
            cache: Arc::new(BlockCache::new(options.block_cache_bytes as u64)),
            memory: None,
            memtable_size: MemtableSize::of(options.write_buffer_bytes),
            pool: Arc::new(WorkerPool::new(PoolSize::of_one_store(merge_threads))),
            lanes: Arc::new(MergeLanes::unlimited()),
            rate_limiter: Arc::new(RateLimiter::new(options.merge_bytes_per_second)),
        }
    }
}
