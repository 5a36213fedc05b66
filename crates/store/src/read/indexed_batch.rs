//! A batch that can be read before it is written.
//! ```text
//! writes    a key's last one, and operands  b: put   d: delete   k: put, merge, merge
//! deleted   disjoint ranges                 [c, f)   [m, t)
//! a key     its write; else: is it in a deleted range?; else the value in the store
//! ```
//! Invariant: of the keys in a deleted range, only writes after the deletion are kept. So the batch
//! is equivalent to its range deletions followed by its writes.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use crate::entries::batch::Batch;
use crate::entries::expiry::Expiry;
use crate::entries::key_bounds::KeyBounds;
use crate::entries::value::Value;
use crate::error::{Error, Result};
use crate::read::batch_scan::{BatchScan, Writes};
use crate::read::scan::Scan;
use crate::read::scan_direction::Direction;

/// What can be read beneath a batch: the current state of a store, or a snapshot.
pub trait Readable {
    /// Returns the value of a key, or None if it has none.
    fn value_of(&self, key: &[u8]) -> Result<Option<Value>>;
    /// Returns a scan of the entries of a range.
    fn scan_of(&self, bounds: KeyBounds) -> Scan;
    /// Returns what the merge operator makes of a key's operands, oldest first, and of the value
    /// below them. The default implementation has no operator, and returns an error.
    fn merged_of(
        &self,
        key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Vec<u8>> {
        let _ = (existing, operands);
        let path = "what is read beneath the batch".into();
        Err(Error::NoMergeOperator { path, keyspace: 0, key: key.to_vec() })
    }
}

impl<T: Readable + ?Sized> Readable for &T {
    fn value_of(&self, key: &[u8]) -> Result<Option<Value>> {
        (**self).value_of(key)
    }

    fn scan_of(&self, bounds: KeyBounds) -> Scan {
        (**self).scan_of(bounds)
    }

    fn merged_of(
        &self,
        key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Vec<u8>> {
        (**self).merged_of(key, existing, operands)
    }
}

/// A batch that can be read, on top of a store or a snapshot, before it is applied as a whole.
/// (RocksDB calls this a write batch with index.) A write takes time logarithmic in the number of
/// writes.
///
/// ```
/// # fn main() -> trommel::Result<()> {
/// # let dir = tempfile::tempdir().expect("a temporary folder");
/// # let db = trommel::Db::open(dir.path().join("store"), trommel::Options::default())?;
/// db.put("apples", "3")?;
/// let mut batch = trommel::IndexedBatch::new();
/// batch.put("pears", "5").delete("apples");
/// assert!(batch.get(&db, "apples")?.is_none());
/// assert_eq!(batch.range(&db, ..).count(), 1);
/// assert!(db.get("apples")?.is_some());
/// db.write(batch)?;
/// assert!(db.get("apples")?.is_none());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct IndexedBatch {
    writes: BTreeMap<Vec<u8>, KeyWrites>,
    /// Deleted ranges: each begin, with its end.
    deleted: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The first range that ends before it begins. It makes writing the batch fail.
    inverted: Option<(Vec<u8>, Vec<u8>)>,
}

/// The writes of one key.
#[derive(Clone, Debug)]
pub(crate) struct KeyWrites {
    base: Base,
    /// Operands merged into the base, oldest first.
    operands: Vec<Arc<[u8]>>,
}

#[derive(Clone, Debug)]
enum Base {
    /// The value beneath the batch.
    Beneath,
    Deleted,
    Put(Put),
}

impl Base {
    fn alone(self) -> KeyWrites {
        KeyWrites { base: self, operands: Vec::new() }
    }
}

impl KeyWrites {
    /// Whether the value beneath the batch matters.
    pub(crate) fn needs_beneath(&self) -> bool {
        matches!(self.base, Base::Beneath)
    }

    /// Returns the key's value once the batch is written. `beneath`: the value beneath the batch,
    /// if that matters. `merged`: applies the merge operator.
    pub(crate) fn value(
        &self,
        beneath: Option<Value>,
        merged: impl FnOnce(Option<&[u8]>, &[&[u8]]) -> Result<Vec<u8>>,
    ) -> Result<Option<Value>> {
        let existing = match &self.base {
            Base::Beneath => beneath,
            Base::Deleted => None,
            Base::Put(put) => Some(Value::from(Arc::clone(&put.value))),
        };
        if self.operands.is_empty() {
            return Ok(existing);
        }
        let operands: Vec<&[u8]> = self.operands.iter().map(|operand| &**operand).collect();
        let made = merged(existing.as_deref(), &operands)?;
        Ok(Some(Value::made(made, existing.as_ref().and_then(Value::expiry))))
    }
}

/// A put.
#[derive(Clone, Debug)]
struct Put {
    value: Arc<[u8]>,
    kept: Kept,
}

#[derive(Clone, Copy, Debug)]
enum Kept {
    Ever,
    For(Duration),
    Until(Expiry),
}

impl IndexedBatch {
    /// Returns an empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the value of a key.
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> &mut Self {
        self.set(key.as_ref(), value.as_ref(), Kept::Ever)
    }

    /// As [`Batch::put_ttl`]. In this batch the value does not expire.
    pub fn put_ttl(
        &mut self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        ttl: Duration,
    ) -> &mut Self {
        self.set(key.as_ref(), value.as_ref(), Kept::For(ttl))
    }

    /// As [`Batch::put_with_expiry`]. In this batch the value does not expire.
    pub fn put_with_expiry(
        &mut self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        expiry: Expiry,
    ) -> &mut Self {
        self.set(key.as_ref(), value.as_ref(), Kept::Until(expiry))
    }

    /// Deletes a key. It is no error if the key does not exist.
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> &mut Self {
        self.writes.insert(key.as_ref().to_vec(), Base::Deleted.alone());
        self
    }

    /// As [`Batch::merge`].
    pub fn merge(&mut self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> &mut Self {
        let key = key.as_ref();
        let operand = operand.as_ref().into();
        match self.writes.get_mut(key) {
            Some(written) => written.operands.push(operand),
            None => {
                let is_deleted = self.deleted_around(key).is_some();
                let base = if is_deleted { Base::Deleted } else { Base::Beneath };
                let written = KeyWrites { base, operands: vec![operand] };
                self.writes.insert(key.to_vec(), written);
            }
        }
        self
    }

    /// As [`Batch::delete_range`].
    pub fn delete_range(&mut self, from: impl AsRef<[u8]>, to: impl AsRef<[u8]>) -> &mut Self {
        let (mut from, mut to) = (from.as_ref().to_vec(), to.as_ref().to_vec());
        if from > to {
            self.inverted.get_or_insert((from, to));
            return self;
        }
        if from == to {
            return self;
        }
        let within = self.writes.range(from.clone()..to.clone());
        let overwritten: Vec<Vec<u8>> = within.map(|(key, _)| key.clone()).collect();
        overwritten.iter().for_each(|key| drop(self.writes.remove(key)));
        // Ranges that touch it are joined with it.
        while let Some((start, end)) = self.deleted.range(..=to.clone()).next_back()
            && *end >= from
        {
            let start = start.clone();
            let end = self.deleted.remove(&start).expect("it was found");
            from = from.min(start);
            to = to.max(end);
        }
        self.deleted.insert(from, to);
        self
    }

    /// Returns the value that a key will have once the batch is written on top of `beneath`.
    pub fn get(&self, beneath: &impl Readable, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        let key = key.as_ref();
        let Some(written) = self.write_of(key) else { return beneath.value_of(key) };
        let below = if written.needs_beneath() { beneath.value_of(key)? } else { None };
        written.value(below, |existing, operands| beneath.merged_of(key, existing, operands))
    }

    /// Returns a scan of a range as it will be once the batch is written on top of `beneath`.
    pub fn range(&self, beneath: &impl Readable, bounds: impl Into<KeyBounds>) -> BatchScan<'_> {
        let bounds = bounds.into();
        BatchScan::new(Writes::Borrowed(self), beneath.scan_of(bounds.clone()), bounds)
    }

    /// Returns the number of writes. A range deletion counts as one, and so does each operand.
    pub fn len(&self) -> usize {
        let operands: usize = self.writes.values().map(|written| written.operands.len()).sum();
        let alone = self.writes.values().filter(|written| written.needs_beneath()).count();
        self.writes.len() - alone + operands + self.deleted.len()
    }

    /// Whether it has no writes.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty() && self.deleted.is_empty()
    }

    /// Discards all writes.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Returns the next written key within bounds, from the front or from the back.
    pub(crate) fn next_write(
        &self,
        bounds: &KeyBounds,
        direction: Direction,
    ) -> Option<(&[u8], &KeyWrites)> {
        if !bounds.ends_after(&bounds.from) {
            return None;
        }
        let from = Bound::Included(bounds.from.as_slice());
        let to = bounds.to.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let mut within = self.writes.range::<[u8], _>((from, to));
        let (key, write) = match direction {
            Direction::Forward => within.next(),
            Direction::Backward => within.next_back(),
        }?;
        Some((key, write))
    }

    /// Returns the batch's write of a key, if it has one.
    pub(crate) fn write_of(&self, key: &[u8]) -> Option<&KeyWrites> {
        const DELETED: &KeyWrites = &KeyWrites { base: Base::Deleted, operands: Vec::new() };
        self.writes.get(key).or_else(|| self.deleted_around(key).map(|_| DELETED))
    }

    /// Returns the deleted range that covers a key.
    pub(crate) fn deleted_around(&self, key: &[u8]) -> Option<(&[u8], &[u8])> {
        let before = (Bound::Unbounded, Bound::Included(key));
        let (from, to) = self.deleted.range::<[u8], _>(before).next_back()?;
        (key < to.as_slice()).then_some((from, to))
    }

    fn set(&mut self, key: &[u8], value: &[u8], kept: Kept) -> &mut Self {
        self.writes.insert(key.to_vec(), Base::Put(Put { value: value.into(), kept }).alone());
        self
    }
}

impl From<IndexedBatch> for Batch {
    fn from(indexed: IndexedBatch) -> Self {
        let mut batch = Batch::new();
        indexed.add_to(&mut batch);
        batch
    }
}

impl IndexedBatch {
    /// Adds the writes to a batch.
    pub(crate) fn add_to(&self, batch: &mut Batch) {
        let inverted = self.inverted.iter().map(|(from, to)| (from, to));
        for (from, to) in inverted.chain(&self.deleted) {
            batch.delete_range(from, to);
        }
        for (key, KeyWrites { base, operands }) in &self.writes {
            match base {
                Base::Beneath => {}
                Base::Deleted => {
                    batch.delete(key);
                }
                Base::Put(put) => put.add_to(batch, key),
            }
            for operand in operands {
                batch.merge(key, operand);
            }
        }
    }
}

impl Put {
    fn add_to(&self, batch: &mut Batch, key: &[u8]) {
        let Put { value, kept } = self;
        match kept {
            Kept::Ever => batch.put(key, value),
            Kept::For(ttl) => batch.put_ttl(key, value, *ttl),
            Kept::Until(expiry) => batch.put_with_expiry(key, value, *expiry),
        };
    }
}
