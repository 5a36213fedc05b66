//! What several stores share: blocks in memory, memory for writes, threads, the rate of merges.
//! ```text
//! Environment::resources(&shared)  -->  store   one cache, one set of threads, ... for all of them
//! none given                       -->  store   its own, as its options say
//! ```
//! Invariant: a store has all four from one place.

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

/// Merges that may be open for each thread that merges: small ones need not wait for large ones.
const LANES_OF_A_THREAD: usize = 4;

/// What stores may use together that share [`Resources`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResourceOptions {
    /// Memory for blocks that were read, of all stores. 0: none is kept. 32 MiB by default.
    pub block_cache_bytes: usize,
    /// Memory for new entries before they become runs on disk, of all stores. Half of it is for
    /// memtables that are written to; when they hold more, the largest is flushed. Writers are
    /// slowed down while all hold more than all of it. At least 1 KiB; 64 MiB by default.
    pub write_memory_bytes: usize,
    /// Threads that merge, 1 to 1024, 2 by default. Beside them, half as many flush, 2 at least,
    /// and as many sync logs and remove files, 4 at least. At most four merges for each of them are
    /// open at once, and those that writers wait for. Where more stores wait for syncs than there
    /// are threads for it, [`SyncPolicy::Interval`](crate::SyncPolicy) is kept later.
    pub merge_threads: usize,
    /// Bytes that the merges of all stores may read in a second. None, the default: as fast as
    /// they can.
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

/// Setters, each of the field of its name.
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

/// What stores of this process share that are opened with it: a cache of blocks, memory for
/// writes, threads, and the rate of merges. A clone is another handle of the same. It lives as
/// long as a handle or an open store of it.
///
/// Of the stores' options, `block_cache_bytes`, `merge_bytes_per_second` and the number of threads
/// in `background` then say nothing. A store's `write_buffer_bytes` still bounds its own memtable.
/// A [`Background::Stepped`] store has no threads all the same. Clocks of stores that share a rate
/// should be the same.
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

/// What stores use now that share [`Resources`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResourceStats {
    /// Open stores that the threads work for; each key space that is open counts as one.
    pub stores: usize,
    /// Threads. They begin when the first store is opened.
    pub threads: usize,
    /// Memory of cached blocks, in bytes.
    pub cache_bytes: u64,
    /// Memory of new entries that are not in tables yet, in bytes.
    pub write_memory_bytes: usize,
}

impl Resources {
    /// Resources to share.
    ///
    /// # Errors
    /// `Option`: one of the options makes no sense.
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

    /// What is used now. Of a forked child, which has none of it: nothing.
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

/// What one store uses, shared or its own.
#[derive(Clone)]
pub(crate) struct StoreResources {
    pub(crate) cache: Arc<BlockCache>,
    /// None: its own write buffer bounds it.
    pub(crate) memory: Option<Arc<WriteMemory>>,
    pub(crate) memtable_size: MemtableSize,
    pub(crate) pool: Arc<WorkerPool>,
    pub(crate) lanes: Arc<MergeLanes>,
    pub(crate) rate_limiter: Arc<RateLimiter>,
}

impl StoreResources {
    /// Those that are shared, or a store's own; and its options, as they are with them.
    ///
    /// # Errors
    /// `Option`: what is shared was made before a fork, by the parent process.
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

    /// As these, for another tree of the store.
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
