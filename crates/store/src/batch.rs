//! Writes that land together: all of them, or none.

use crate::entry::{KEY_BYTES_MAX, Kind, VALUE_BYTES_MAX};
use crate::error::{Error, Result};
use crate::expiry::Expiry;

/// Writes that become visible together, and survive a crash together or not at all.
/// Of two writes of one key the later one counts.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    writes: Vec<Write>,
}

/// Where a write's key and value are: the key first, the value behind it.
#[derive(Clone, Copy, Debug)]
struct Write {
    kind: Kind,
    key_at: usize,
    value_at: usize,
    end: usize,
}

impl Batch {
    /// A batch without writes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the value of a key.
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> &mut Self {
        self.add(Kind::Put, key.as_ref(), value.as_ref())
    }

    /// Sets the value of a key until a time; from then on the key has no value, neither this one nor an older one.
    /// [`Db::expiry_after`](crate::Db::expiry_after) tells the time that comes so much later.
    pub fn put_with_expiry(
        &mut self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        expiry: Expiry,
    ) -> &mut Self {
        let time = expiry.milliseconds().to_le_bytes();
        self.add_parts(Kind::PutWithExpiry, key.as_ref(), &[&time, value.as_ref()])
    }

    /// Removes a key. No error if it is not there.
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> &mut Self {
        self.add(Kind::Delete, key.as_ref(), &[])
    }

    /// Removes all keys from `from` on and before `to`, whatever their number: it takes one write. Nothing if both are the
    /// same. If `from` is behind `to`, writing the batch is an error.
    pub fn delete_range(&mut self, from: impl AsRef<[u8]>, to: impl AsRef<[u8]>) -> &mut Self {
        let (from, to) = (from.as_ref(), to.as_ref());
        if from == to { self } else { self.add(Kind::DeleteRange, from, to) }
    }

    /// How many writes it has.
    pub fn len(&self) -> usize {
        self.writes.len()
    }

    /// Whether it has no writes.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// Bytes of keys and values.
    pub fn size_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Forgets its writes, and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.writes.clear();
    }

    fn add(&mut self, kind: Kind, key: &[u8], value: &[u8]) -> &mut Self {
        self.add_parts(kind, key, &[value])
    }

    fn add_parts(&mut self, kind: Kind, key: &[u8], value: &[&[u8]]) -> &mut Self {
        let key_at = self.bytes.len();
        self.bytes.extend_from_slice(key);
        let value_at = self.bytes.len();
        value.iter().for_each(|part| self.bytes.extend_from_slice(part));
        self.writes.push(Write { kind, key_at, value_at, end: self.bytes.len() });
        self
    }

    /// The writes in order: kind, key, value.
    pub(crate) fn writes(&self) -> impl Iterator<Item = (Kind, &[u8], &[u8])> {
        self.writes.iter().map(|write| {
            let key = &self.bytes[write.key_at..write.value_at];
            (write.kind, key, &self.bytes[write.value_at..write.end])
        })
    }

    /// An error if a key or a value is too long, or a range ends before it begins.
    pub(crate) fn check(&self) -> Result<()> {
        for (kind, key, value) in self.writes() {
            let (is_range, max) = (kind == Kind::DeleteRange, KEY_BYTES_MAX);
            let end = if is_range { value } else { &[] };
            if let Some(len) = [key.len(), end.len()].into_iter().find(|&len| len > max) {
                return Err(Error::KeyTooLong { len, max });
            }
            if is_range && key > end {
                return Err(Error::InvertedRange { from: key.to_vec(), to: end.to_vec() });
            }
            if value.len() > VALUE_BYTES_MAX {
                return Err(Error::ValueTooLong { len: value.len(), max: VALUE_BYTES_MAX });
            }
        }
        Ok(())
    }
}
