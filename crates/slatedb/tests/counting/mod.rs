//! An object store that counts reads, and a cache of all but blocks of data.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use slatedb::bytes::Bytes;
use slatedb::db_cache::{CachedEntry, CachedKey, DbCache, SplitCache};
use slatedb::object_store::memory::InMemory;
use slatedb::object_store::path::Path;
use slatedb::object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

/// Counts what is read of objects. (Asking whether one is there reads nothing.)
#[derive(Debug)]
pub struct CountingStore {
    inner: Arc<dyn ObjectStore>,
    gets: AtomicU64,
    delay_us: AtomicU64,
}

impl Default for CountingStore {
    /// In memory.
    fn default() -> CountingStore {
        CountingStore::over(Arc::new(InMemory::new()))
    }
}

impl CountingStore {
    /// Reads of another store.
    pub fn over(inner: Arc<dyn ObjectStore>) -> CountingStore {
        CountingStore { inner, gets: AtomicU64::new(0), delay_us: AtomicU64::new(0) }
    }

    /// How many reads there were since it was asked last.
    pub fn take_gets(&self) -> u64 {
        self.gets.swap(0, Ordering::Relaxed)
    }

    /// How long each read takes, from now on.
    #[allow(dead_code, reason = "the tests measure no time")]
    pub fn set_delay(&self, delay: Duration) {
        self.delay_us.store(delay.as_micros() as u64, Ordering::Relaxed);
    }

    async fn count(&self) {
        self.gets.fetch_add(1, Ordering::Relaxed);
        let delay = self.delay_us.load(Ordering::Relaxed);
        if delay > 0 {
            tokio::time::sleep(Duration::from_micros(delay)).await;
        }
    }
}

impl fmt::Display for CountingStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "counting {}", self.inner)
    }
}

#[async_trait]
impl ObjectStore for CountingStore {
    async fn put_opts(&self, at: &Path, what: PutPayload, how: PutOptions) -> Result<PutResult> {
        self.inner.put_opts(at, what, how).await
    }

    async fn put_multipart_opts(
        &self,
        at: &Path,
        how: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(at, how).await
    }

    async fn get_opts(&self, at: &Path, how: GetOptions) -> Result<GetResult> {
        if !how.head {
            self.count().await;
        }
        self.inner.get_opts(at, how).await
    }

    async fn get_ranges(&self, at: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.count().await;
        self.inner.get_ranges(at, ranges).await
    }

    fn delete_stream(
        &self,
        all: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(all)
    }

    fn list(&self, below: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(below)
    }

    async fn list_with_delimiter(&self, below: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(below).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, how: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, how).await
    }
}

/// Indexes and filters stay in memory; blocks of data are read each time.
#[derive(Default)]
struct AllButData(Mutex<HashMap<CachedKey, CachedEntry>>);

impl AllButData {
    fn at(&self, key: &CachedKey) -> Option<CachedEntry> {
        self.0.lock().expect("nobody panics").get(key).cloned()
    }
}

type Cached = std::result::Result<Option<CachedEntry>, slatedb::Error>;

#[async_trait]
impl DbCache for AllButData {
    async fn get_block(&self, _: &CachedKey) -> Cached {
        Ok(None)
    }

    async fn get_index(&self, key: &CachedKey) -> Cached {
        Ok(self.at(key))
    }

    async fn get_filter(&self, key: &CachedKey) -> Cached {
        Ok(self.at(key))
    }

    async fn get_stats(&self, key: &CachedKey) -> Cached {
        Ok(self.at(key))
    }

    async fn insert(&self, key: CachedKey, entry: CachedEntry) {
        self.0.lock().expect("nobody panics").insert(key, entry);
    }

    async fn remove(&self, key: &CachedKey) {
        self.0.lock().expect("nobody panics").remove(key);
    }

    fn entry_count(&self) -> u64 {
        self.0.lock().expect("nobody panics").len() as u64
    }
}

/// A cache of all but blocks of data.
pub fn all_but_data() -> Arc<dyn DbCache> {
    let meta: Arc<dyn DbCache> = Arc::new(AllButData::default());
    Arc::new(SplitCache::new().with_meta_cache(Some(meta)).build())
}
