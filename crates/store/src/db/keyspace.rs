//! The public API of a key space.

use std::time::Duration;

use trommel_filters::CountBounds;

use crate::db::kept_write::with_write;
use crate::db::owner::Owner;
use crate::entries::batch::Batch;
use crate::entries::entry::Sequence;
use crate::entries::expiry::Expiry;
use crate::entries::key_bounds::KeyBounds;
use crate::entries::value::Value;
use crate::error::{Error, Result};
use crate::plan::sync_policy::SyncPolicy;
use crate::read::indexed_batch::Readable;
use crate::read::queue::Queue;
use crate::read::scan::{KeyValue, Scan};
use crate::read::{estimate, get, multi_get};
use crate::sync::Arc;
use crate::tools::progress::{OnProgress, Steps};
use crate::tree::stats::Stats;
use crate::write::conflicts::Condition;
use crate::write::engine::EngineUse;

/// A handle of a key space: one tree of a store, with its own keys, guard and options. The key
/// spaces of a store share its log, sequence numbers, cache, threads and write memory. Any thread
/// may use the handle, and a clone is another handle of the same key space.
/// [`Db::keyspace`](crate::Db::keyspace) creates one. A [`Db`](crate::Db) is a handle of the key
/// space `default`, which every store has, and offers all methods of this type.
///
/// ```
/// # fn main() -> trommel::Result<()> {
/// # let dir = tempfile::tempdir().expect("a temporary folder");
/// # let db = trommel::Db::open(dir.path().join("store"), trommel::Options::default())?;
/// use trommel::{Batch, KeyspaceOptions};
///
/// let events = db.keyspace("events", KeyspaceOptions::default())?;
/// events.put("2026-01-01", "rain")?;
/// assert!(db.get("2026-01-01")?.is_none());
/// let mut batch = Batch::new();
/// batch.put("count", "2").to(&events).put("2026-01-02", "snow");
/// db.write(batch)?;
/// assert_eq!(events.iter().count(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Keyspace {
    pub(crate) engine: EngineUse,
    pub(crate) owner: Arc<Owner>,
}

impl Keyspace {
    /// Returns the name of the key space. It is empty if the key space was dropped, and in a forked
    /// child of the process that opened the store.
    pub fn name(&self) -> String {
        // In a forked child, the manifest may be locked forever.
        if self.engine.life().is_forked() {
            return String::new();
        }
        let manifest = self.engine.manifest();
        let keyspace = manifest.layout().keyspaces.get(&self.engine.keyspace);
        keyspace.map_or_else(String::new, |keyspace| keyspace.record.name.clone())
    }

    /// Returns the value of a key, or None if it has none.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        get::get(&self.engine, key.as_ref())
    }

    /// As [`get`](Keyspace::get), but only if memory alone has the answer: the key is in a
    /// memtable, the filter excludes it, or its block is cached. Returns None if the disk would
    /// have to be read. A server can thus answer such requests at once, and hand the others to
    /// threads that may block. Values stored apart from their keys, and merge operands, count as
    /// not in memory.
    ///
    /// ```
    /// # fn main() -> trommel::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a temporary folder");
    /// # let db = trommel::Db::open(dir.path().join("store"), trommel::Options::default())?;
    /// db.put("a", "1")?;
    /// db.flush()?;
    /// assert!(db.get_if_cached("b").is_some_and(|known| known.is_ok_and(|none| none.is_none())));
    /// let value = match db.get_if_cached("a") {
    ///     Some(known) => known?,
    ///     None => db.get("a")?, // on a thread that may wait
    /// };
    /// assert_eq!(value.as_deref(), Some(&b"1"[..]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn get_if_cached(&self, key: impl AsRef<[u8]>) -> Option<Result<Option<Value>>> {
        get::get_if_cached(&self.engine, key.as_ref())
    }

    /// Whether a key has a value. A value stored apart is not read, so damage in it goes unnoticed.
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        get::has(&self.engine, key.as_ref())
    }

    /// Returns the values of many keys as of one moment, in the order of the keys, each as
    /// [`get`](Keyspace::get) returns it. This takes less time per key than separate gets, since
    /// the waits for memory and disk overlap.
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<Result<Option<Value>>> {
        let keys: Vec<&[u8]> = keys.iter().map(AsRef::as_ref).collect();
        multi_get::multi_get(&self.engine, &keys)
    }

    /// As [`multi_get`](Keyspace::multi_get), but appends all values to one buffer: for callers
    /// that pay a price per value, such as language bindings. Returns the length of each value.
    /// None: that key has no value.
    ///
    /// # Errors
    /// The error of the first key that cannot be read. Nothing is appended.
    pub fn multi_get_packed<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        values: &mut Vec<u8>,
    ) -> Result<Vec<Option<usize>>> {
        multi_get::packed(self.multi_get(keys), values)
    }

    /// Returns a queue of gets and short ranges that run concurrently: while one waits for the
    /// disk, others proceed. `depth` bounds the number of concurrent disk reads.
    /// [`Options::overlap`](crate::Options::overlap) chooses how they are issued. Values stored
    /// apart are read one by one if they are longer than 2 MiB, or belong to a range.
    pub fn queue(&self, depth: usize) -> Queue {
        Queue::new(&self.engine.tree, None, depth)
    }

    /// Sets the value of a key.
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.write_if(None, |batch| batch.put(key, value))
    }

    /// Sets the value of a key for the duration `ttl`. After that the key has no value: neither
    /// this one nor an older one, not even in snapshots and scans that began earlier. Merges drop
    /// expired entries as they drop deletions.
    pub fn put_ttl(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        ttl: Duration,
    ) -> Result<()> {
        self.write_if(None, |batch| batch.put_ttl(key, value, ttl))
    }

    /// Returns the time that is `ttl` from now, by the clock of the store's environment.
    pub fn expiry_after(&self, ttl: Duration) -> Expiry {
        Expiry::after(ttl, &*self.engine.env.clock)
    }

    /// Merges an operand into the value of a key. The key space's [merge
    /// operator](crate::Options::merge_operator) combines them when the key is read, or in a flush
    /// or merge. So this costs as much as a put, and reads nothing.
    ///
    /// An operand does not expire. If the value below it expires, the operand counts as merged into
    /// no value.
    ///
    /// ```
    /// # fn main() -> trommel::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a temporary folder");
    /// use trommel::merge_operators::Concat;
    ///
    /// let options = trommel::Options::new().merge_operator(Concat::new(", "));
    /// let db = trommel::Db::open(dir.path().join("store"), options)?;
    /// db.put("fruit", "apple")?;
    /// db.merge("fruit", "pear")?;
    /// assert_eq!(db.get("fruit")?.as_deref(), Some(&b"apple, pear"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `NoMergeOperator`: the key space is open without a merge operator. Otherwise as
    /// [`write`](crate::Db::write). If the operator rejects an operand, only a read of the key
    /// reports it.
    pub fn merge(&self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.write_if(None, |batch| batch.merge(key, operand))
    }

    /// Deletes a key. It is no error if the key does not exist.
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.write_if(None, |batch| batch.delete(key))
    }

    /// Deletes all keys from `from` (inclusive) to `to` (exclusive) with one write, however many
    /// there are. Deletes nothing if both are equal. Reads and scans skip the deleted entries,
    /// reading at most a block or two of each run. Merges drop them.
    ///
    /// # Errors
    /// `InvertedRange`: `from` is greater than `to`. Otherwise as [`write`](crate::Db::write).
    pub fn delete_range(&self, from: impl AsRef<[u8]>, to: impl AsRef<[u8]>) -> Result<()> {
        self.write_if(None, |batch| batch.delete_range(from, to))
    }

    /// Bulk-loads entries whose keys ascend: writes them as one sorted run, in one pass, bypassing
    /// log and memtable. For large amounts of data that is already sorted. Readers and recovery see
    /// either all of it or nothing, and it is durable when this returns. Returns the number of
    /// entries.
    ///
    /// Other writes wait until the load is done, so the iterator must not write to this store.
    /// Memtables are flushed first. A guard that takes every key (`grf`, ...) keeps the keys in
    /// memory, up to four times
    /// [`write_buffer_bytes`](crate::options::OptionValues::write_buffer_bytes). If there are more,
    /// it reads them from the run.
    ///
    /// # Errors
    /// `Unsorted`, `KeyTooLong`, `ValueTooLong`: nothing was written, and no file is left. `Io`: as
    /// for [`write`](crate::Db::write).
    pub fn ingest<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> Result<u64> {
        self.try_ingest(entries.into_iter().map(Ok::<_, Error>))
    }

    /// As [`ingest`](Keyspace::ingest), for entries that may be errors. The first error ends the
    /// load; then nothing was written.
    pub fn try_ingest<K: AsRef<[u8]>, V: AsRef<[u8]>, E: From<Error>>(
        &self,
        entries: impl IntoIterator<Item = std::result::Result<(K, V), E>>,
    ) -> std::result::Result<u64, E> {
        let _call = self.engine.life().enter()?;
        crate::write::ingest::ingest(&self.engine, entries.into_iter())
    }

    /// Returns a scan of the entries of a range, as of now: forward as an iterator, backward with
    /// `rev()`.
    pub fn range(&self, bounds: impl Into<KeyBounds>) -> Scan {
        Scan::new(&self.engine.tree, self.engine.snapshots.register(), bounds.into())
    }

    /// Returns a scan of all entries, as of now.
    pub fn iter(&self) -> Scan {
        self.range(..)
    }

    /// Returns a scan of the entries whose keys begin with `prefix`, as of now.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Scan {
        self.range(KeyBounds::prefix(prefix))
    }

    /// Returns the first entry in key order.
    pub fn first_key_value(&self) -> Result<Option<KeyValue>> {
        self.iter().next().transpose()
    }

    /// Returns the last entry in key order.
    pub fn last_key_value(&self) -> Result<Option<KeyValue>> {
        self.iter().next_back().transpose()
    }

    /// Estimates the number of keys in a range: the estimate of
    /// [`approximate_count`](Keyspace::approximate_count). Replaced, deleted and expired entries
    /// count until a merge drops them.
    pub fn estimate_count(&self, bounds: impl Into<KeyBounds>) -> Result<u64> {
        Ok(self.approximate_count(bounds)?.estimate)
    }

    /// Returns an estimate of, and bounds on, the number of entries in a range. There are at least
    /// `least` and at most `most` entries, so there are at most `most` keys; both bounds are
    /// proofs. Old values and deletions count until a merge into the last level drops them, and so
    /// do the keys of a deleted range. The deletion of a range itself does not count. If no key was
    /// overwritten, deleted or given an expiry, the number of keys lies within the bounds. No block
    /// of a table is read.
    ///
    /// Entries in memory are counted one by one. On disk the guard `grf` counts by ranks: see
    /// [`Part::approximate_count`]. Its bounds differ by the keys that its filter cannot
    /// distinguish from the ends of the range, mostly one or two. A key counts once in the last
    /// level, and once for every later flush that contained it.
    ///
    /// With other guards the block indexes of tables count. Their bounds differ by up to a block at
    /// each end, for each run. Where a table's own filter counts more closely (`surf-base` and its
    /// kin, `cell`, ...), the filter counts instead. In `most` and in the estimate, filters treat
    /// an excluded bound as an included one.
    ///
    /// [`Part::approximate_count`]: trommel_filters::Part::approximate_count
    pub fn approximate_count(&self, bounds: impl Into<KeyBounds>) -> Result<CountBounds> {
        estimate::approximate_count(&self.engine, &bounds.into(), Sequence::MAX)
    }

    /// Whether a range may contain a key. False proves that it contains none. True: there may be
    /// one; a deletion that no merge has dropped yet suffices. Asks memory first, then the guard.
    /// Guards without range support (`none`, `blocked-bloom`) answer by the first and last keys of
    /// tables. No block of a table is read.
    pub fn may_contain_range(&self, bounds: impl Into<KeyBounds>) -> Result<bool> {
        estimate::may_contain_range(&self.engine, &bounds.into())
    }

    /// As [`may_contain_range`](Keyspace::may_contain_range) for each of the ranges, all as of one
    /// moment.
    pub fn multi_may_contain<B: Into<KeyBounds>>(
        &self,
        ranges: impl IntoIterator<Item = B>,
    ) -> Result<Vec<bool>> {
        let bounds: Vec<KeyBounds> = ranges.into_iter().map(Into::into).collect();
        estimate::multi_may_contain(&self.engine, &bounds)
    }

    /// Returns statistics: counters of the work done, and what the store holds now.
    pub fn stats(&self) -> Result<Stats> {
        let _call = self.engine.life().enter()?;
        Ok(crate::tools::collect_stats::stats(&self.engine))
    }

    /// Flushes everything in memory to a run on disk.
    pub fn flush(&self) -> Result<()> {
        let _call = self.engine.life().enter()?;
        self.engine.check_open()?;
        self.engine.flush_all()
    }

    /// Merges everything into one run of the last level, in one merge. Due merges are not done
    /// first, and open ones are cancelled.
    pub fn compact(&self) -> Result<()> {
        let _call = self.engine.life().enter()?;
        self.engine.check_open()?;
        self.engine.flush_all()?;
        self.engine.merge_everything()
    }

    /// As [`compact`](Keyspace::compact), and reports how many of all entries were merged.
    ///
    /// # Errors
    /// `Cancelled`: the listener stopped the call. The merge is cancelled, and the runs are
    /// unchanged. But once a merge by partitions has finished one of them, the rest is merged in
    /// the background.
    pub fn compact_with_progress(&self, listener: &mut OnProgress<'_>) -> Result<()> {
        let _call = self.engine.life().enter()?;
        self.engine.check_open()?;
        self.engine.flush_all()?;
        let all = self.engine.current.pin().files().map(|table| table.entry_count()).sum();
        let mut steps = Steps::new(listener);
        steps.begin(all)?;
        self.engine.merge_everything_telling(|merged| steps.reach(merged))?;
        // The merge is done: a request to stop comes too late.
        let _ = steps.reach(all);
        Ok(())
    }

    /// Writes what `add` puts into a batch for this key space, if the condition holds.
    pub(super) fn write_if(
        &self,
        condition: Option<Condition>,
        add: impl FnOnce(&mut Batch) -> &mut Batch,
    ) -> Result<()> {
        let sync = self.engine.table_files.options.sync == SyncPolicy::Always;
        with_write(|write| {
            add(write.batch.to(self));
            write.conditions.extend(condition);
            self.owner.write(write, sync).map(|_| ())
        })
    }
}

impl Batch {
    /// Directs the following writes and conditions into this key space. Those before the first call
    /// go into the default key space; `to(&db)` returns to it.
    pub fn to(&mut self, keyspace: &Keyspace) -> &mut Self {
        self.go_on_in(keyspace.engine.keyspace);
        self
    }
}

impl Readable for Keyspace {
    fn value_of(&self, key: &[u8]) -> Result<Option<Value>> {
        self.get(key)
    }

    fn scan_of(&self, bounds: KeyBounds) -> Scan {
        self.range(bounds)
    }

    fn merged_of(
        &self,
        key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Vec<u8>> {
        self.engine.tree.merged(key, existing, operands)
    }
}

impl std::fmt::Debug for Keyspace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keyspace").field("name", &self.name()).finish_non_exhaustive()
    }
}
