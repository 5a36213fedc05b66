//! The store as its users see it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use trommel_filters::CountBounds;

use crate::entries::batch::Batch;
use crate::entries::entry::Sequence;
use crate::entries::expiry::Expiry;
use crate::entries::key_bounds::KeyBounds;
use crate::entries::value::Value;
use crate::error::{Error, Result};
use crate::events::Event;
use crate::open;
use crate::plan::options::Options;
use crate::plan::sync_policy::SyncPolicy;
use crate::read::indexed_batch::Readable;
use crate::read::queue::Queue;
use crate::read::scan::{KeyValue, Scan};
use crate::read::{estimate, get, multi_get};
use crate::shared::environment::Environment;
use crate::sync::Arc;
use crate::tools::progress::{OnProgress, Steps, unheard};
use crate::tools::verify::VerifyReport;
use crate::tree::open_tree::OpenTree;
use crate::tree::snapshots::Registered;
use crate::tree::stats::Stats;
use crate::write::engine::Engine;

/// A handle of an open store, which any thread may use. A clone is another handle of the same
/// store. The store is closed by [`close`](Db::close), or when its last handle is dropped.
///
/// ```
/// # fn main() -> trommel::Result<()> {
/// # let dir = tempfile::tempdir().expect("a temporary folder");
/// # let path = dir.path().join("store");
/// let db = trommel::Db::open(&path, trommel::Options::default())?;
/// db.put("drum", "turns")?;
/// assert_eq!(db.get("drum")?.as_deref(), Some(&b"turns"[..]));
/// assert!(db.range("a".."c").next().is_none());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Db {
    pub(crate) engine: Arc<Engine>,
    owner: Arc<Owner>,
}

/// What all handles of a store share: it closes the store.
struct Owner {
    engine: Arc<Engine>,
}

impl Db {
    /// Opens the store in a folder, and makes one if there is none and the options allow it.
    ///
    /// # Errors
    /// `Locked` if it is open already, here or elsewhere. `NotAStore` if the folder holds something
    /// else. `Version` if another version of Trommel wrote it. `Corrupt` with file and offset if a
    /// file is damaged.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Db> {
        Db::open_with(path, options, Environment::default())
    }

    /// As [`open`](Db::open), with storage, clock and pauses from outside.
    pub fn open_with(
        path: impl AsRef<Path>,
        options: Options,
        environment: Environment,
    ) -> Result<Db> {
        let begun = environment.clock.now();
        let engine = Arc::new(open::open(path.as_ref(), &options, environment)?);
        // It closes the store if what follows fails, or panics.
        let owner = Arc::new(Owner { engine: Arc::clone(&engine) });
        // Full memtables of the last session. If the disk is full they stay in memory and in their
        // logs.
        let _ = engine.flush_recovered();
        // If there are no threads to be had, the store is closed when its owner goes.
        engine.start_work()?;
        let (runs, time) = (engine.current.pin().runs.len(), engine.since(begun));
        engine.env.tell(Event::Opened { path: path.as_ref(), runs, time });
        Ok(Db { engine, owner })
    }

    /// The value of a key; None if it has none.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        get::get(&self.engine, key.as_ref())
    }

    /// Whether a key has a value.
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.get(key)?.is_some())
    }

    /// The values of many keys at one moment, each as [`get`](Db::get) gives it, in the order of
    /// the keys. Takes less time a key than as many gets: waiting for memory and for the disk is
    /// done for many keys at once.
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<Result<Option<Value>>> {
        let keys: Vec<&[u8]> = keys.iter().map(AsRef::as_ref).collect();
        multi_get::multi_get(&self.engine, &keys)
    }

    /// As [`multi_get`](Db::multi_get), with all values one behind the other in a buffer: for
    /// whoever pays for each value. It appends them, and gives the length of each; None: that key
    /// has no value.
    ///
    /// # Errors
    /// That of the first key that cannot be read; nothing is appended.
    pub fn multi_get_packed<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        values: &mut Vec<u8>,
    ) -> Result<Vec<Option<usize>>> {
        multi_get::packed(self.multi_get(keys), values)
    }

    /// A queue of gets and short ranges of which many are under way at once: while one waits for
    /// the disk, others go on. `depth`: how many reads of the disk at most. How they are done at
    /// once, [`Options::overlap`] says.
    pub fn queue(&self, depth: usize) -> Queue {
        Queue::new(&self.engine.tree, None, depth)
    }

    /// Sets the value of a key.
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        let mut batch = Batch::new();
        batch.put(key, value);
        self.write(batch)
    }

    /// Sets the value of a key for so long. Then the key has no value, neither this one nor an
    /// older one. That holds for snapshots and scans that began before, too. Merges drop what has
    /// expired as they drop deletions.
    pub fn put_ttl(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        ttl: Duration,
    ) -> Result<()> {
        let mut batch = Batch::new();
        batch.put_ttl(key, value, ttl);
        self.write(batch)
    }

    /// The moment that comes so long after now, by the clock of the store's environment.
    pub fn expiry_after(&self, ttl: Duration) -> Expiry {
        Expiry::after(ttl, &*self.engine.env.clock)
    }

    /// Removes a key. No error if it is not there.
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        let mut batch = Batch::new();
        batch.delete(key);
        self.write(batch)
    }

    /// Removes all keys from `from` on and before `to`, in one write, however many there are.
    /// Nothing if both are the same. Reads and scans pass over what it has removed without reading
    /// it, but for a block or two of each run; merges drop it.
    ///
    /// # Errors
    /// `InvertedRange` if `from` is behind `to`, and those of [`write`](Db::write).
    pub fn delete_range(&self, from: impl AsRef<[u8]>, to: impl AsRef<[u8]>) -> Result<()> {
        let mut batch = Batch::new();
        batch.delete_range(from, to);
        self.write(batch)
    }

    /// Writes entries whose keys ascend as one sorted run, in one pass, past log and memory: for
    /// large amounts of data that is sorted already. Readers see all of it or nothing, and so does
    /// a recovery; it is durable when this returns. How many there were.
    ///
    /// Other writes wait until it is done, so the iterator must not write to this store. What is in
    /// memory is flushed first. A guard that is told of every key (`grf`, ...) has them all in
    /// memory until the run is there.
    ///
    /// # Errors
    /// `Unsorted`, `KeyTooLong`, `ValueTooLong`: nothing was written, and no file is left. `Io`: as
    /// for [`write`](Db::write).
    pub fn ingest<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> Result<u64> {
        self.try_ingest(entries.into_iter().map(Ok::<_, Error>))
    }

    /// As [`ingest`](Db::ingest), of entries that may be errors: the first one ends it, and nothing
    /// was written.
    pub fn try_ingest<K: AsRef<[u8]>, V: AsRef<[u8]>, E: From<Error>>(
        &self,
        entries: impl IntoIterator<Item = std::result::Result<(K, V), E>>,
    ) -> std::result::Result<u64, E> {
        let _call = self.engine.life().enter()?;
        crate::write::ingest::ingest(&self.engine, entries.into_iter())
    }

    /// Applies a batch: readers see all of it or nothing, and so does a recovery.
    ///
    /// # Errors
    /// `KeyTooLong`, `ValueTooLong`, `BatchTooLong`, `InvertedRange`: nothing was written. `Io`:
    /// the batch is not visible now; after a crash it is there as a whole or not at all. `Stopped`:
    /// as `Io`. Flushing has failed; it is tried again, and writes go on when it succeeds.
    pub fn write(&self, batch: impl Into<Batch>) -> Result<()> {
        let sync = self.engine.table_files.options.sync == SyncPolicy::Always;
        self.write_with(batch.into(), sync)
    }

    /// As [`write`](Db::write), and on disk when it returns, whatever the options say.
    pub fn write_synced(&self, batch: impl Into<Batch>) -> Result<()> {
        self.write_with(batch.into(), true)
    }

    fn write_with(&self, mut batch: Batch, sync: bool) -> Result<()> {
        batch.check()?;
        batch.start_lifetimes(&*self.engine.env.clock);
        // In a child the locks of writers may be held for ever.
        self.engine.life().check()?;
        let (commit, clock) = (&self.engine.commit, self.engine.timing());
        self.engine.counters.batches.time(clock, || commit.write(&self.engine, batch, sync))
    }

    /// Makes all writes so far durable.
    pub fn sync(&self) -> Result<()> {
        let _call = self.engine.life().enter()?;
        let durable = self.engine.commit.writer().make_durable(&self.engine);
        self.engine.writer_is_free();
        durable
    }

    /// The keys of a range and their values, as of now. Forward as an iterator, backward with
    /// `rev()`.
    pub fn range(&self, bounds: impl Into<KeyBounds>) -> Scan {
        Scan::new(&self.engine.tree, self.engine.snapshots.register(), bounds.into())
    }

    /// All keys and their values, as of now.
    pub fn iter(&self) -> Scan {
        self.range(..)
    }

    /// The keys that begin with some bytes, and their values, as of now.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Scan {
        self.range(KeyBounds::prefix(prefix))
    }

    /// The least key and its value.
    pub fn first_key_value(&self) -> Result<Option<KeyValue>> {
        self.iter().next().transpose()
    }

    /// The greatest key and its value.
    pub fn last_key_value(&self) -> Result<Option<KeyValue>> {
        self.iter().next_back().transpose()
    }

    /// The store as it is now, to be read while writes go on. Merges keep what it sees.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            registered: self.engine.snapshots.register(),
            tree: Arc::clone(&self.engine.tree),
        }
    }

    /// About how many keys a range has: the estimate of
    /// [`approximate_count`](Db::approximate_count). What was replaced or deleted, or has expired,
    /// counts until it is merged.
    pub fn estimate_count(&self, bounds: impl Into<KeyBounds>) -> Result<u64> {
        Ok(self.approximate_count(bounds)?.estimate)
    }

    /// How many entries a range has: surely `least`, surely no more than `most`, and so no more
    /// keys than `most` (a proof). Old values and deletions count until a merge into the last level
    /// drops them. Entries that were never overwritten or deleted and do not expire are counted
    /// exactly, within the bounds. Keys of a deleted range count until then too; the deletion of a
    /// range counts for nothing. Reads no block of a table.
    ///
    /// In memory every entry is counted. On disk the guard `grf` counts by ranks
    /// ([`Part::approximate_count`] says more). Its bounds differ by the keys that its filter
    /// cannot tell from the two ends of the range, mostly one or two. A key counts once in the last
    /// level, and once for every later flush that had it. With the other guards the tables' block
    /// indexes count: the bounds differ by up to a block at each end of each run. Where a table has
    /// a filter that counts its keys more closely than that (`surf-base` and its kin, `cell`, ...),
    /// the filter does. With filters an excluded bound counts as an included one in `most` and in
    /// the estimate.
    ///
    /// [`Part::approximate_count`]: trommel_filters::Part::approximate_count
    pub fn approximate_count(&self, bounds: impl Into<KeyBounds>) -> Result<CountBounds> {
        estimate::approximate_count(&self.engine, &bounds.into(), Sequence::MAX)
    }

    /// False: no key lies in the range (a proof). True: there may be one; a deletion that no merge
    /// has dropped yet is enough. Memory is asked first, then the guard; guards that know no ranges
    /// (`none`, `blocked-bloom`) answer by the first and last keys of tables. Reads no block of a
    /// table.
    pub fn may_contain_range(&self, bounds: impl Into<KeyBounds>) -> Result<bool> {
        estimate::may_contain_range(&self.engine, &bounds.into())
    }

    /// As [`may_contain_range`](Db::may_contain_range) for each of these ranges, all at one moment.
    pub fn multi_may_contain<B: Into<KeyBounds>>(
        &self,
        ranges: impl IntoIterator<Item = B>,
    ) -> Result<Vec<bool>> {
        let bounds: Vec<KeyBounds> = ranges.into_iter().map(Into::into).collect();
        estimate::multi_may_contain(&self.engine, &bounds)
    }

    /// Writes everything in memory to a run on disk.
    pub fn flush(&self) -> Result<()> {
        let _call = self.engine.life().enter()?;
        self.engine.commit.writer().seal(&self.engine)?;
        self.engine.flush_sealed()
    }

    /// Has what is in memory wait for a flush.
    #[cfg(test)]
    pub(crate) fn seal(&self) -> Result<()> {
        self.engine.commit.writer().seal(&self.engine)
    }

    /// Merges everything into one run of the last level, in one merge. Merges that are due are not
    /// made before, and merges under way are given up.
    pub fn compact(&self) -> Result<()> {
        let _call = self.engine.life().enter()?;
        self.flush()?;
        self.engine.merge_everything()
    }

    /// As [`compact`](Db::compact), and tells how many entries of how many it has merged.
    ///
    /// # Errors
    /// `Cancelled` if the listener stops it: the runs are as they were.
    pub fn compact_with_progress(&self, listener: &mut OnProgress<'_>) -> Result<()> {
        let _call = self.engine.life().enter()?;
        self.flush()?;
        let entries = self.engine.current.pin().files().map(|table| table.entry_count()).sum();
        let mut steps = Steps::new(listener);
        steps.begin(entries)?;
        self.engine.merge_everything_telling(|merged| steps.reach(merged))?;
        // It is done: there is nothing to stop.
        let _ = steps.reach(entries);
        Ok(())
    }

    /// In stepped mode: does one step of background work. False: there is nothing to do.
    pub fn step(&self) -> Result<bool> {
        let _call = self.engine.life().enter()?;
        self.engine.step()
    }

    /// Returns when no flush or merge is due: waits for the threads, or does the steps.
    pub fn settle(&self) -> Result<()> {
        let _call = self.engine.life().enter()?;
        self.engine.wait_idle()
    }

    /// Makes a second store in `dir`, which must be new or empty, that holds all writes that are
    /// visible now. Cheap: tables are shared by hard links, or copied if the folder is on another
    /// file system. What is in memory is written as a log. Writes, flushes and merges go on
    /// meanwhile. If it is cut short, the folder is refused as no store, and this store is as it
    /// was. Files are never changed, so neither store can harm the other. But a disk that damages a
    /// shared file damages it for both. For a backup, copy the checkpoint to another disk.
    ///
    /// # Errors
    /// `NotEmpty` if the folder has files, `Io` if the disk refuses.
    pub fn checkpoint(&self, dir: impl AsRef<Path>) -> Result<()> {
        self.checkpoint_with_progress(dir, &mut unheard)
    }

    /// As [`checkpoint`](Db::checkpoint), and tells how many tables of how many it has.
    ///
    /// # Errors
    /// `Cancelled` if the listener stops it: what it has made is removed.
    pub fn checkpoint_with_progress(
        &self,
        dir: impl AsRef<Path>,
        listener: &mut OnProgress<'_>,
    ) -> Result<()> {
        let _call = self.engine.life().enter()?;
        let steps = &mut Steps::new(listener);
        crate::tools::checkpoint::checkpoint(&self.engine, dir.as_ref(), steps)
    }

    /// Reads every byte of every table and log and checks it, and every key against the guard.
    pub fn verify(&self) -> Result<VerifyReport> {
        self.verify_with_progress(&mut unheard)
    }

    /// As [`verify`](Db::verify), and tells how far it has come.
    ///
    /// # Errors
    /// `Cancelled` if the listener stops it.
    pub fn verify_with_progress(&self, listener: &mut OnProgress<'_>) -> Result<VerifyReport> {
        let _call = self.engine.life().enter()?;
        crate::tools::verify::verify(&self.engine, &mut Steps::new(listener))
    }

    /// What the store has done and what it holds.
    pub fn stats(&self) -> Result<Stats> {
        let _call = self.engine.life().enter()?;
        Ok(crate::tools::collect_stats::stats(&self.engine))
    }

    /// The store's folder, by the path that it was opened with. The store follows its folder when
    /// that gets another name; this does not.
    pub fn path(&self) -> PathBuf {
        self.engine.table_files.folder.path().to_path_buf()
    }

    /// Closes the store, for all its handles: waits for calls under way, makes all writes since it
    /// was opened durable, and ends background work. The folder is then free to be opened again,
    /// here or elsewhere. Snapshots, scans and queues may live on. They, and all calls of this
    /// store, give [`Error::Closed`] from then on, and no file is touched any more. Calls that wait
    /// in [`flush`](Db::flush), [`settle`](Db::settle) or [`compact`](Db::compact) end with that
    /// error. Their flushes and merges are not waited for: the next open goes on with the work.
    ///
    /// Closing a store that is closed does nothing. Dropping the last handle closes it too, but
    /// cannot tell what went wrong. Must not be called by an iterator that is being ingested, or by
    /// a follower: it would wait for itself.
    ///
    /// # Errors
    /// What kept writes from becoming durable. The store is closed all the same; [`sync`](Db::sync)
    /// before tells the same, and can be tried again. `Forked`: this process has not opened the
    /// store.
    pub fn close(&self) -> Result<()> {
        self.owner.close()
    }
}

impl Owner {
    fn close(&self) -> Result<()> {
        crate::write::closing::close(&self.engine)
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        if self.engine.life().is_forked() {
            // What it is made of may be locked for ever, by threads that are not in this process.
            std::mem::forget(Arc::clone(&self.engine));
            return;
        }
        let _ = self.close();
    }
}

impl std::fmt::Debug for Db {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Db")
            .field("path", &self.engine.table_files.folder.path())
            .finish_non_exhaustive()
    }
}

/// The store as it was at one moment. It answers as [`Db`] did then.
pub struct Snapshot {
    tree: Arc<OpenTree>,
    registered: Registered,
}

impl Snapshot {
    /// The value that a key had; None if it had none.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        let version = self.tree.current.pin();
        get::get_at(&self.tree, &version, key.as_ref(), self.registered.sequence())
    }

    /// Whether a key had a value.
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.get(key)?.is_some())
    }

    /// The values that many keys had, each as [`get`](Snapshot::get) gives it, in the order of the
    /// keys.
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<Result<Option<Value>>> {
        let keys: Vec<&[u8]> = keys.iter().map(AsRef::as_ref).collect();
        let version = self.tree.current.pin();
        multi_get::multi_get_at(&self.tree, &version, &keys, self.registered.sequence())
    }

    /// As [`multi_get`](Snapshot::multi_get), with all values one behind the other in a buffer: for
    /// whoever pays for each value. It appends them, and gives the length of each; None: that key
    /// has no value.
    ///
    /// # Errors
    /// That of the first key that cannot be read; nothing is appended.
    pub fn multi_get_packed<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        values: &mut Vec<u8>,
    ) -> Result<Vec<Option<usize>>> {
        multi_get::packed(self.multi_get(keys), values)
    }

    /// As [`Db::queue`]; all its queries see what the snapshot does, which it keeps.
    pub fn queue(&self, depth: usize) -> Queue {
        Queue::new(&self.tree, Some(self.registered.clone()), depth)
    }

    /// The keys of a range and their values at that moment.
    pub fn range(&self, bounds: impl Into<KeyBounds>) -> Scan {
        Scan::new(&self.tree, self.registered.clone(), bounds.into())
    }

    /// All keys and their values at that moment.
    pub fn iter(&self) -> Scan {
        self.range(..)
    }

    /// The keys that begin with some bytes, and their values at that moment.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Scan {
        self.range(KeyBounds::prefix(prefix))
    }

    /// The key that was the least, and its value.
    pub fn first_key_value(&self) -> Result<Option<KeyValue>> {
        self.iter().next().transpose()
    }

    /// The key that was the greatest, and its value.
    pub fn last_key_value(&self) -> Result<Option<KeyValue>> {
        self.iter().next_back().transpose()
    }

    /// About how many keys a range had: the estimate of
    /// [`approximate_count`](Snapshot::approximate_count).
    pub fn estimate_count(&self, bounds: impl Into<KeyBounds>) -> Result<u64> {
        Ok(self.approximate_count(bounds)?.estimate)
    }

    /// As [`Db::approximate_count`]. Entries that were flushed since count in `most` and in the
    /// estimate; `least` then counts what is in memory alone.
    pub fn approximate_count(&self, bounds: impl Into<KeyBounds>) -> Result<CountBounds> {
        estimate::approximate_count(&self.tree, &bounds.into(), self.registered.sequence())
    }

    /// As [`Db::may_contain_range`]. True, too, if a key was written there since.
    pub fn may_contain_range(&self, bounds: impl Into<KeyBounds>) -> Result<bool> {
        estimate::may_contain_range(&self.tree, &bounds.into())
    }

    /// As [`Db::multi_may_contain`]. True, too, of a range where a key was written since.
    pub fn multi_may_contain<B: Into<KeyBounds>>(
        &self,
        ranges: impl IntoIterator<Item = B>,
    ) -> Result<Vec<bool>> {
        let bounds: Vec<KeyBounds> = ranges.into_iter().map(Into::into).collect();
        estimate::multi_may_contain(&self.tree, &bounds)
    }

    /// The sequence number of the last write that it sees.
    pub fn sequence(&self) -> u64 {
        self.registered.sequence().0
    }
}

/// What is handed to other threads, and kept there as long as they like.
const _: () = {
    const fn is_free<T: Send + 'static>() {}
    is_free::<Db>();
    is_free::<Snapshot>();
    is_free::<Scan>();
    is_free::<Queue>();
    is_free::<Batch>();
    is_free::<Value>();
    is_free::<Error>();
    const fn is_shared<T: std::marker::Sync>() {}
    is_shared::<Db>();
    is_shared::<Snapshot>();
    is_shared::<Value>();
    is_shared::<Error>();
};

impl Readable for Db {
    fn value_of(&self, key: &[u8]) -> Result<Option<Value>> {
        self.get(key)
    }

    fn scan_of(&self, bounds: KeyBounds) -> Scan {
        self.range(bounds)
    }
}

impl Readable for Snapshot {
    fn value_of(&self, key: &[u8]) -> Result<Option<Value>> {
        self.get(key)
    }

    fn scan_of(&self, bounds: KeyBounds) -> Scan {
        self.range(bounds)
    }
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Snapshot").field(&self.sequence()).finish()
    }
}

impl Engine {
    /// Flushes the memtables that were full when the store was closed.
    fn flush_recovered(&self) -> Result<()> {
        while self.flush_step()? {}
        Ok(())
    }
}
