//! Snapshots: the store as it was at one moment.

use trommel_filters::CountBounds;

use crate::db::keyspace::Keyspace;
use crate::entries::key_bounds::KeyBounds;
use crate::entries::value::Value;
use crate::error::Result;
use crate::read::indexed_batch::Readable;
use crate::read::queue::Queue;
use crate::read::scan::{KeyValue, Scan};
use crate::read::{estimate, get, multi_get};
use crate::sync::Arc;
use crate::tree::open_tree::OpenTree;
use crate::tree::snapshots::Registered;

/// The store as it was at one moment. Reads return what [`Db`](crate::Db) returned at that moment.
pub struct Snapshot {
    /// The tree of the key space that it reads.
    pub(crate) tree: Arc<OpenTree>,
    pub(crate) registered: Registered,
}

impl Snapshot {
    /// Returns the same snapshot for another key space of the same store.
    ///
    /// ```
    /// # fn main() -> trommel::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a temporary folder");
    /// # let db = trommel::Db::open(dir.path().join("store"), trommel::Options::default())?;
    /// let events = db.keyspace("events", trommel::KeyspaceOptions::default())?;
    /// let before = db.snapshot();
    /// events.put("today", "rain")?;
    /// assert!(before.of(&events).get("today")?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    /// If the key space belongs to another store.
    pub fn of(&self, keyspace: &Keyspace) -> Snapshot {
        let (own, other) = (&self.tree.snapshots, &keyspace.engine.snapshots);
        assert!(Arc::ptr_eq(own, other), "a snapshot of one store, a key space of another");
        Snapshot { tree: Arc::clone(&keyspace.engine.tree), registered: self.registered.clone() }
    }

    /// Returns the value that a key had, or None if it had none.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        let version = self.tree.current.pin();
        get::get_at(&self.tree, &version, key.as_ref(), self.registered.sequence())
    }

    /// As [`get`](Snapshot::get), but only if memory alone has the answer. Returns None if the disk
    /// would have to be read. See [`Keyspace::get_if_cached`](crate::Keyspace::get_if_cached).
    pub fn get_if_cached(&self, key: impl AsRef<[u8]>) -> Option<Result<Option<Value>>> {
        let version = self.tree.current.pin();
        get::get_cached_at(&self.tree, &version, key.as_ref(), self.registered.sequence())
    }

    /// Whether a key had a value. A value stored apart is not read, so damage in it goes unnoticed.
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        let version = self.tree.current.pin();
        get::has_at(&self.tree, &version, key.as_ref(), self.registered.sequence())
    }

    /// Returns the values that many keys had, in the order of the keys, each as
    /// [`get`](Snapshot::get) returns it.
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<Result<Option<Value>>> {
        let keys: Vec<&[u8]> = keys.iter().map(AsRef::as_ref).collect();
        let version = self.tree.current.pin();
        multi_get::multi_get_at(&self.tree, &version, &keys, self.registered.sequence())
    }

    /// As [`multi_get`](Snapshot::multi_get), but appends all values to one buffer: for callers
    /// that pay a price per value, such as language bindings. Returns the length of each value.
    /// None: that key had no value.
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

    /// As [`Db::queue`](crate::Keyspace::queue), but all queries read this snapshot, which the
    /// queue keeps alive.
    pub fn queue(&self, depth: usize) -> Queue {
        Queue::new(&self.tree, Some(self.registered.clone()), depth)
    }

    /// Returns a scan of the entries of a range at that moment.
    pub fn range(&self, bounds: impl Into<KeyBounds>) -> Scan {
        Scan::new(&self.tree, self.registered.clone(), bounds.into())
    }

    /// Returns a scan of all entries at that moment.
    pub fn iter(&self) -> Scan {
        self.range(..)
    }

    /// Returns a scan of the entries whose keys began with `prefix` at that moment.
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

    /// Estimates the number of keys that a range had: the estimate of
    /// [`approximate_count`](Snapshot::approximate_count).
    pub fn estimate_count(&self, bounds: impl Into<KeyBounds>) -> Result<u64> {
        Ok(self.approximate_count(bounds)?.estimate)
    }

    /// As [`Db::approximate_count`](crate::Keyspace::approximate_count). Entries that were flushed
    /// after the snapshot count in `most` and in the estimate. If there are any, `least` counts
    /// only entries in memory.
    pub fn approximate_count(&self, bounds: impl Into<KeyBounds>) -> Result<CountBounds> {
        estimate::approximate_count(&self.tree, &bounds.into(), self.registered.sequence())
    }

    /// As [`Db::may_contain_range`](crate::Keyspace::may_contain_range). Also returns true if a key
    /// was written to the range after the snapshot.
    pub fn may_contain_range(&self, bounds: impl Into<KeyBounds>) -> Result<bool> {
        estimate::may_contain_range(&self.tree, &bounds.into())
    }

    /// As [`Db::multi_may_contain`](crate::Keyspace::multi_may_contain). Also returns true for a
    /// range to which a key was written after the snapshot.
    pub fn multi_may_contain<B: Into<KeyBounds>>(
        &self,
        ranges: impl IntoIterator<Item = B>,
    ) -> Result<Vec<bool>> {
        let bounds: Vec<KeyBounds> = ranges.into_iter().map(Into::into).collect();
        estimate::multi_may_contain(&self.tree, &bounds)
    }

    /// Returns the sequence number of the last write that the snapshot sees.
    pub fn sequence(&self) -> u64 {
        self.registered.sequence().0
    }
}

/// A snapshot can be handed to other threads and kept for as long as they like.
impl Readable for Snapshot {
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
        self.tree.merged(key, existing, operands)
    }
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Snapshot").field(&self.sequence()).finish()
    }
}
