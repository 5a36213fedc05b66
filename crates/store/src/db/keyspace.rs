//! A key space as its users see it.

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

/// A handle of a key space: a tree of its own in a store, with its own keys, guard and options.
/// Log, sequence numbers, cache, threads and memory for writes are the store's. Any thread may use
/// it; a clone is another handle of the same key space. [`Db::keyspace`](crate::Db::keyspace) makes
/// it. A [`Db`](crate::Db) is a handle of the key space `default`, which every store has, and
/// answers all that this does.
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
    /// Its name.
    pub fn name(&self) -> String {
        let manifest = self.engine.manifest();
        let keyspace = manifest.layout().keyspaces.get(&self.engine.keyspace);
        keyspace.map_or_else(String::new, |keyspace| keyspace.record.name.clone())
    }

    /// The value of a key; None if it has none.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        get::get(&self.engine, key.as_ref())
    }

    /// As [`get`](Keyspace::get), if it can be told from memory alone: the key is in a memtable, or
    /// the filter knows that it is nowhere, or its block is in the cache. None: the disk would have
    /// to be read. So a server answers at once what needs no thread of its own, and hands on the
    /// rest. Values that are apart from their keys, and operands of a merge operator, count as not
    /// in memory.
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

    /// Whether a key has a value. A value apart is not read, so damage in it is not found.
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        get::has(&self.engine, key.as_ref())
    }

    /// The values of many keys at one moment, each as [`get`](Keyspace::get) gives it, in the order
    /// of the keys. Takes less time a key than as many gets: waiting for memory and for the disk is
    /// done for many keys at once.
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<Result<Option<Value>>> {
        let keys: Vec<&[u8]> = keys.iter().map(AsRef::as_ref).collect();
        multi_get::multi_get(&self.engine, &keys)
    }

    /// As [`multi_get`](Keyspace::multi_get), with all values one behind the other in a buffer: for
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
    /// once, [`Options::overlap`](crate::Options::overlap) says. (Values apart that are longer than
    /// 2 MiB, or of ranges, are read one by one.)
    pub fn queue(&self, depth: usize) -> Queue {
        Queue::new(&self.engine.tree, None, depth)
    }

    /// Sets the value of a key.
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.write_if(None, |batch| batch.put(key, value))
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
        self.write_if(None, |batch| batch.put_ttl(key, value, ttl))
    }

    /// The moment that comes so long after now, by the clock of the store's environment.
    pub fn expiry_after(&self, ttl: Duration) -> Expiry {
        Expiry::after(ttl, &*self.engine.env.clock)
    }

    /// Merges an operand into the value of a key. What comes of it, the key space's merge operator
    /// says ([`Options::merge_operator`](crate::Options::merge_operator)) when the key is read, or
    /// in a flush or merge. So it costs what a put does, and nothing is read.
    ///
    /// An operand does not expire. When the value below it does, it is as if that had not been.
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
    /// `NoMergeOperator`: the key space is open without one. Else as [`write`](crate::Db::write).
    /// An operand that the operator does not take is told when the key is read.
    pub fn merge(&self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.write_if(None, |batch| batch.merge(key, operand))
    }

    /// Removes a key. No error if it is not there.
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.write_if(None, |batch| batch.delete(key))
    }

    /// Removes all keys from `from` on and before `to`, in one write, however many there are.
    /// Nothing if both are the same. Reads and scans pass over what it has removed without reading
    /// it, but for a block or two of each run; merges drop it.
    ///
    /// # Errors
    /// `InvertedRange` if `from` is behind `to`, and those of [`write`](crate::Db::write).
    pub fn delete_range(&self, from: impl AsRef<[u8]>, to: impl AsRef<[u8]>) -> Result<()> {
        self.write_if(None, |batch| batch.delete_range(from, to))
    }

    /// Writes entries whose keys ascend as one sorted run, in one pass, past log and memory: for
    /// large amounts of data that is sorted already. Readers see all of it or nothing, and so does
    /// a recovery; it is durable when this returns. How many there were.
    ///
    /// Other writes wait until it is done, so the iterator must not write to this store. What is in
    /// memory is flushed first. For a guard that is told of every key (`grf`, ...) keys are kept up
    /// to four times [`write_buffer_bytes`](crate::options::OptionValues::write_buffer_bytes); if
    /// there are more, the run is read once.
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

    /// As [`ingest`](Keyspace::ingest), of entries that may be errors: the first one ends it, and
    /// nothing was written.
    pub fn try_ingest<K: AsRef<[u8]>, V: AsRef<[u8]>, E: From<Error>>(
        &self,
        entries: impl IntoIterator<Item = std::result::Result<(K, V), E>>,
    ) -> std::result::Result<u64, E> {
        let _call = self.engine.life().enter()?;
        crate::write::ingest::ingest(&self.engine, entries.into_iter())
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

    /// About how many keys a range has: the estimate of
    /// [`approximate_count`](Keyspace::approximate_count). What was replaced or deleted, or has
    /// expired, counts until it is merged.
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

    /// As [`may_contain_range`](Keyspace::may_contain_range) for each of these ranges, all at one
    /// moment.
    pub fn multi_may_contain<B: Into<KeyBounds>>(
        &self,
        ranges: impl IntoIterator<Item = B>,
    ) -> Result<Vec<bool>> {
        let bounds: Vec<KeyBounds> = ranges.into_iter().map(Into::into).collect();
        estimate::multi_may_contain(&self.engine, &bounds)
    }

    /// What the store has done and what it holds.
    pub fn stats(&self) -> Result<Stats> {
        let _call = self.engine.life().enter()?;
        Ok(crate::tools::collect_stats::stats(&self.engine))
    }

    /// Writes everything in memory to a run on disk.
    pub fn flush(&self) -> Result<()> {
        let _call = self.engine.life().enter()?;
        self.engine.check_open()?;
        self.engine.flush_all()
    }

    /// Merges everything into one run of the last level, in one merge. Merges that are due are not
    /// made before, and merges under way are given up.
    pub fn compact(&self) -> Result<()> {
        let _call = self.engine.life().enter()?;
        self.engine.check_open()?;
        self.engine.flush_all()?;
        self.engine.merge_everything()
    }

    /// As [`compact`](Keyspace::compact), and tells how many entries of how many were merged.
    ///
    /// # Errors
    /// `Cancelled` if the listener stops it: nothing has changed.
    pub fn compact_with_progress(&self, listener: &mut OnProgress<'_>) -> Result<()> {
        let _call = self.engine.life().enter()?;
        self.engine.check_open()?;
        self.engine.flush_all()?;
        let all = self.engine.current.pin().files().map(|table| table.entry_count()).sum();
        let mut steps = Steps::new(listener);
        steps.begin(all)?;
        self.engine.merge_everything_telling(|merged| steps.reach(merged))?;
        // It is done: there is nothing to stop.
        let _ = steps.reach(all);
        Ok(())
    }

    /// Writes what is added to a batch for it alone, if the condition holds.
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
    /// Writes from here on go into this key space. Those before the first call go into the default
    /// one; `to(&db)` comes back to it.
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
