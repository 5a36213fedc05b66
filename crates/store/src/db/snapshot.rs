//! The store as it was at one moment.

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

/// The store as it was at one moment. It answers as [`Db`](crate::Db) did then.
pub struct Snapshot {
    /// Of the key space that it answers for.
    pub(crate) tree: Arc<OpenTree>,
    pub(crate) registered: Registered,
}

impl Snapshot {
    /// The same moment, of a key space of the same store.
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
    /// If the key space is another store's.
    pub fn of(&self, keyspace: &Keyspace) -> Snapshot {
        let (own, other) = (&self.tree.snapshots, &keyspace.engine.snapshots);
        assert!(Arc::ptr_eq(own, other), "a snapshot of one store, a key space of another");
        Snapshot { tree: Arc::clone(&keyspace.engine.tree), registered: self.registered.clone() }
    }

    /// The value that a key had; None if it had none.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        let version = self.tree.current.pin();
        get::get_at(&self.tree, &version, key.as_ref(), self.registered.sequence())
    }

    /// As [`get`](Snapshot::get), if it can be told from memory alone. None: the disk would have to
    /// be read. See [`Keyspace::get_if_cached`](crate::Keyspace::get_if_cached).
    pub fn get_if_cached(&self, key: impl AsRef<[u8]>) -> Option<Result<Option<Value>>> {
        let version = self.tree.current.pin();
        get::get_cached_at(&self.tree, &version, key.as_ref(), self.registered.sequence())
    }

    /// Whether a key had a value. A value apart is not read, so damage in it is not found.
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        let version = self.tree.current.pin();
        get::has_at(&self.tree, &version, key.as_ref(), self.registered.sequence())
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

    /// As [`Db::queue`](crate::Keyspace::queue); all its queries see what the snapshot does, which
    /// it keeps.
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

    /// As [`Db::approximate_count`](crate::Keyspace::approximate_count). Entries that were flushed
    /// since count in `most` and in the estimate; `least` then counts what is in memory alone.
    pub fn approximate_count(&self, bounds: impl Into<KeyBounds>) -> Result<CountBounds> {
        estimate::approximate_count(&self.tree, &bounds.into(), self.registered.sequence())
    }

    /// As [`Db::may_contain_range`](crate::Keyspace::may_contain_range). True, too, if a key was
    /// written there since.
    pub fn may_contain_range(&self, bounds: impl Into<KeyBounds>) -> Result<bool> {
        estimate::may_contain_range(&self.tree, &bounds.into())
    }

    /// As [`Db::multi_may_contain`](crate::Keyspace::multi_may_contain). True, too, of a range
    /// where a key was written since.
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
