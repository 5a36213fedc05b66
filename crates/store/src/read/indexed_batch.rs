//! A batch that can be read before it is written.
//! ```text
//! writes    a key's last one, and operands  b: put   d: delete   k: put, merge, merge
//! deleted   ranges that do not touch        [c, f)   [m, t)
//! a key     its write, else in a range?     else what the store has
//! ```
//! Invariant: of a range that is deleted, only later writes of its keys are kept. So the batch is
//! its ranges, then its writes.

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

/// What is read beneath a batch: a store as it is now, or a snapshot of it.
pub trait Readable {
    /// The value of a key; None if it has none.
    fn value_of(&self, key: &[u8]) -> Result<Option<Value>>;
    /// The keys of a range and their values.
    fn scan_of(&self, bounds: KeyBounds) -> Scan;
    /// What its merge operator makes of operands of a key, oldest first, and of the value below
    /// them. What is read through others has no operator of its own: an error.
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

/// Writes that are read, over a store or a snapshot, before they are applied together. (RocksDB
/// calls it a write batch with an index.) A write takes time by the logarithm of their number.
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
    /// Where deleted ranges begin and end.
    deleted: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The first range that ends before it begins: writing the batch is an error.
    inverted: Option<(Vec<u8>, Vec<u8>)>,
}

/// What is written of one key.
#[derive(Clone, Debug)]
pub(crate) struct KeyWrites {
    base: Base,
    /// What is merged into that, oldest first.
    operands: Vec<Arc<[u8]>>,
}

#[derive(Clone, Debug)]
enum Base {
    /// What is beneath the batch.
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
    /// Whether what is beneath the batch counts.
    pub(crate) fn needs_beneath(&self) -> bool {
        matches!(self.base, Base::Beneath)
    }

    /// The key's value then. `beneath`: that of what is beneath the batch, if that counts.
    /// `merged`: what the operator makes of operands.
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

/// A value that is set.
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
    /// A batch without writes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the value of a key.
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> &mut Self {
        self.set(key.as_ref(), value.as_ref(), Kept::Ever)
    }

    /// As [`Batch::put_ttl`]. Here it has its value all the while.
    pub fn put_ttl(
        &mut self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        ttl: Duration,
    ) -> &mut Self {
        self.set(key.as_ref(), value.as_ref(), Kept::For(ttl))
    }

    /// As [`Batch::put_with_expiry`]. Here it has its value all the while.
    pub fn put_with_expiry(
        &mut self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        expiry: Expiry,
    ) -> &mut Self {
        self.set(key.as_ref(), value.as_ref(), Kept::Until(expiry))
    }

    /// Removes a key. No error if it is not there.
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
        // Ranges that it touches become one with it.
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

    /// The value of a key once the batch is written to what is read beneath it.
    pub fn get(&self, beneath: &impl Readable, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        let key = key.as_ref();
        let Some(written) = self.write_of(key) else { return beneath.value_of(key) };
        let below = if written.needs_beneath() { beneath.value_of(key)? } else { None };
        written.value(below, |existing, operands| beneath.merged_of(key, existing, operands))
    }

    /// The keys of a range and their values once the batch is written to what is read beneath it.
    pub fn range(&self, beneath: &impl Readable, bounds: impl Into<KeyBounds>) -> BatchScan<'_> {
        let bounds = bounds.into();
        BatchScan::new(Writes::Borrowed(self), beneath.scan_of(bounds.clone()), bounds)
    }

    /// How many writes it is: a range that is deleted is one, and so is each operand.
    pub fn len(&self) -> usize {
        let operands: usize = self.writes.values().map(|written| written.operands.len()).sum();
        let alone = self.writes.values().filter(|written| written.needs_beneath()).count();
        self.writes.len() - alone + operands + self.deleted.len()
    }

    /// Whether it has no writes.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty() && self.deleted.is_empty()
    }

    /// Forgets its writes.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// The next key within bounds that is written, from the front or from the back.
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

    /// What the batch makes of a key. None: nothing.
    pub(crate) fn write_of(&self, key: &[u8]) -> Option<&KeyWrites> {
        const DELETED: &KeyWrites = &KeyWrites { base: Base::Deleted, operands: Vec::new() };
        self.writes.get(key).or_else(|| self.deleted_around(key).map(|_| DELETED))
    }

    /// The deleted range that a key is in.
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
