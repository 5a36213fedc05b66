//! A batch: writes that are applied atomically.

use std::time::Duration;

use crate::entries::entry::{BATCH_BYTES_MAX, KEY_BYTES_MAX, Kind, VALUE_BYTES_MAX, WRITE_BYTES};
use crate::entries::expiry::{EXPIRY_BYTES, Expiry};
use crate::entries::keyspace_id::KeyspaceId;
use crate::entries::packed;
use crate::entries::value_ref::ValueRef;
use crate::error::{Error, Result};
use crate::storage::clock::Clock;

/// Writes that become visible together, and survive a crash together or not at all. If a batch
/// writes a key twice, the later write wins.
///
/// ```
/// # fn main() -> trommel::Result<()> {
/// # let dir = tempfile::tempdir().expect("a temporary folder");
/// # let db = trommel::Db::open(dir.path(), trommel::Options::default())?;
/// db.write(trommel::Batch::new().put("drum", "turns").delete("tuba"))?;
/// let mut batch = trommel::Batch::new();
/// for number in 0..3u32 {
///     batch.put(number.to_be_bytes(), "a number");
/// }
/// db.write(&mut batch)?; // it is empty then, for the next writes
/// # assert!(batch.is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    writes: Vec<Write>,
    /// Whether any write has a lifetime that begins when the batch is written.
    has_lifetimes: bool,
    /// Whether any write is a merge operand.
    has_operands: bool,
    /// Length in bytes of the longest stored value.
    longest: usize,
    /// The key space of the first writes.
    first_keyspace: KeyspaceId,
    /// Changes of key space: the index of the first write that a change applies to, and the new
    /// one.
    keyspaces: Vec<(usize, KeyspaceId)>,
    expected: Vec<Expected>,
}

/// A condition of the batch: the value that a key must have when the batch is written.
#[derive(Clone, Debug)]
pub(crate) struct Expected {
    pub(crate) keyspace: KeyspaceId,
    pub(crate) key: Vec<u8>,
    /// None: no value.
    pub(crate) value: Option<Vec<u8>>,
}

/// Where a write's key and value lie in the batch's bytes: the key, then the value.
#[derive(Clone, Copy, Debug)]
struct Write {
    kind: Kind,
    key_at: usize,
    value_at: usize,
    end: usize,
    /// Whether the value begins with a lifetime in nanoseconds, not a time of expiry. `u64::MAX`
    /// means that it never expires.
    is_lifetime: bool,
}

/// Takes the writes, and leaves the batch empty.
impl From<&mut Batch> for Batch {
    fn from(batch: &mut Batch) -> Self {
        std::mem::take(batch)
    }
}

impl Batch {
    /// Creates an empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the value of a key.
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> &mut Self {
        self.add(Kind::Put, key.as_ref(), &[value.as_ref()])
    }

    /// Sets the value of a key for the time `ttl` after the batch is written, as
    /// [`Db::put_ttl`](crate::Keyspace::put_ttl) does. A `ttl` of more than 584 years never ends.
    pub fn put_ttl(
        &mut self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        ttl: Duration,
    ) -> &mut Self {
        let nanoseconds = u64::try_from(ttl.as_nanos()).unwrap_or(u64::MAX).to_le_bytes();
        self.add(Kind::PutWithExpiry, key.as_ref(), &[&nanoseconds, value.as_ref()]);
        self.has_lifetimes = true;
        self.writes.last_mut().expect("it was added").is_lifetime = true;
        self
    }

    /// Sets the value of a key until `expiry`. From then on the key has no value, neither this one
    /// nor an older one. [`Db::expiry_after`](crate::Keyspace::expiry_after) converts a duration to
    /// an expiry.
    pub fn put_with_expiry(
        &mut self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        expiry: Expiry,
    ) -> &mut Self {
        let time = expiry.milliseconds().to_le_bytes();
        self.add(Kind::PutWithExpiry, key.as_ref(), &[&time, value.as_ref()])
    }

    /// Merges an operand into the value of a key, as [`Db::merge`](crate::Keyspace::merge) does.
    pub fn merge(&mut self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> &mut Self {
        self.has_operands = true;
        self.add(Kind::Merge, key.as_ref(), &[operand.as_ref()])
    }

    /// Removes a key. Removing a key that does not exist is not an error.
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> &mut Self {
        self.add(Kind::Delete, key.as_ref(), &[])
    }

    /// Removes all keys from `from` up to `to` (exclusive) as one write, however many there are.
    /// Does nothing if both are equal. If `from` is greater than `to`, writing the batch fails.
    pub fn delete_range(&mut self, from: impl AsRef<[u8]>, to: impl AsRef<[u8]>) -> &mut Self {
        let (from, to) = (from.as_ref(), to.as_ref());
        if from == to { self } else { self.add(Kind::DeleteRange, from, &[to]) }
    }

    /// Makes the batch conditional: it is written only if the key then has this value, or no value
    /// for `None`. Otherwise the write returns [`Error::Conflict`] and changes nothing. The key is
    /// looked up in the key space of the last call of [`to`](Batch::to), as a write made here would
    /// be; without one, in the default key space. The batch's own writes do not count.
    ///
    /// ```
    /// # fn main() -> trommel::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a temporary folder");
    /// # let db = trommel::Db::open(dir.path(), trommel::Options::default())?;
    /// let mut batch = trommel::Batch::new();
    /// batch.only_if("name ann", None).put("name ann", "7").put("user 7", "ann");
    /// db.write(&mut batch)?;
    /// batch.only_if("name ann", None).put("name ann", "8").put("user 8", "ann");
    /// assert!(db.write(&mut batch).is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub fn only_if(&mut self, key: impl AsRef<[u8]>, value: Option<&[u8]>) -> &mut Self {
        let keyspace = self.keyspace();
        let (key, value) = (key.as_ref().to_vec(), value.map(<[u8]>::to_vec));
        self.expected.push(Expected { keyspace, key, value });
        self
    }

    /// Removes and returns the conditions.
    pub(crate) fn take_expected(&mut self) -> Vec<Expected> {
        std::mem::take(&mut self.expected)
    }

    /// Decodes writes that are packed back to back, each as:
    /// - one byte for the operation: 1 put, 2 delete, 3 delete range, 4 put with a lifetime, 5
    ///   merge;
    /// - the lengths of key and value, four bytes each, little-endian;
    /// - the key, then the value. For a range the value is its end; a deletion has none. For 4 the
    ///   value begins with its lifetime in nanoseconds, eight bytes, little-endian.
    ///
    /// # Errors
    /// `Malformed`, with the offset, if the bytes are not such writes.
    pub fn from_packed(bytes: &[u8]) -> Result<Batch> {
        packed::batch_of(bytes)
    }

    /// The number of writes.
    pub fn len(&self) -> usize {
        self.writes.len()
    }

    /// Whether the batch has no writes. It may still have conditions.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// Total bytes of keys and values.
    pub fn size_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Removes all writes and conditions, and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.writes.clear();
        self.keyspaces.clear();
        self.first_keyspace = KeyspaceId::DEFAULT;
        self.expected.clear();
        (self.has_lifetimes, self.has_operands, self.longest) = (false, false, 0);
    }

    /// Clears the batch, and keeps at most `bytes` bytes of the memory for keys and values.
    pub(crate) fn clear_to(&mut self, bytes: usize) {
        self.clear();
        self.bytes.shrink_to(bytes);
    }

    /// Returns whether a stored value may have `bytes` bytes or more. False: none has.
    #[inline]
    pub(crate) fn may_have_value_of(&self, bytes: usize) -> bool {
        self.longest >= bytes
    }

    /// Sets the value of a key to a reference into a value file.
    pub(crate) fn put_apart(&mut self, key: &[u8], at: &ValueRef) -> &mut Self {
        self.add(Kind::PutApart, key, &[&at.encode()])
    }

    /// Does the same until `expiry`.
    pub(crate) fn put_apart_with_expiry(
        &mut self,
        key: &[u8],
        at: &ValueRef,
        expiry: Expiry,
    ) -> &mut Self {
        let time = expiry.milliseconds().to_le_bytes();
        self.add(Kind::PutApartWithExpiry, key, &[&time, &at.encode()])
    }

    /// Moves values into value files. `put` gets each value that is not there yet, with its key
    /// space. It returns a reference, or `None` if the value stays in the batch. Requires:
    /// lifetimes have begun. After an error the batch is unchanged.
    pub(crate) fn put_values_apart(
        &mut self,
        mut put: impl FnMut(KeyspaceId, &[u8]) -> Result<Option<ValueRef>>,
    ) -> Result<()> {
        let (mut bytes, mut writes) = (Vec::new(), Vec::with_capacity(self.writes.len()));
        for ((keyspace, kind, key, stored), write) in self.logged().zip(&self.writes) {
            let (time, value) = match kind {
                Kind::Put => (&[][..], stored),
                Kind::PutWithExpiry => stored.split_at(EXPIRY_BYTES),
                _ => (stored, &[][..]),
            };
            let at = if value.is_empty() { None } else { put(keyspace, value)? };
            let at = at.map(|at| at.encode());
            let kind = match (kind, &at) {
                (Kind::Put, Some(_)) => Kind::PutApart,
                (Kind::PutWithExpiry, Some(_)) => Kind::PutApartWithExpiry,
                (kind, _) => kind,
            };
            let key_at = bytes.len();
            bytes.extend_from_slice(key);
            let value_at = bytes.len();
            bytes.extend_from_slice(time);
            bytes.extend_from_slice(at.as_deref().unwrap_or(value));
            writes.push(Write { kind, key_at, value_at, end: bytes.len(), ..*write });
        }
        (self.bytes, self.writes) = (bytes, writes);
        Ok(())
    }

    /// Returns a key for each key space with merge operands, once for each stretch of writes.
    pub(crate) fn merged_keys(&self) -> impl Iterator<Item = (KeyspaceId, &[u8])> {
        let all = self.has_operands.then(|| self.logged()).into_iter().flatten();
        let merged = all.filter(|(_, kind, ..)| *kind == Kind::Merge);
        let mut last = None;
        merged.filter_map(move |(keyspace, _, key, _)| {
            (last.replace(keyspace) != Some(keyspace)).then_some((keyspace, key))
        })
    }

    /// Replaces lifetimes by times of expiry, counted from now.
    pub(crate) fn start_lifetimes(&mut self, clock: &dyn Clock) {
        if !std::mem::take(&mut self.has_lifetimes) {
            return;
        }
        for write in self.writes.iter_mut().filter(|write| write.is_lifetime) {
            write.is_lifetime = false;
            let time = &mut self.bytes[write.value_at..write.value_at + EXPIRY_BYTES];
            let nanoseconds = u64::from_le_bytes((&*time).try_into().expect("as long as a time"));
            let expiry = match nanoseconds {
                u64::MAX => Expiry::NEVER,
                _ => Expiry::after(Duration::from_nanos(nanoseconds), clock),
            };
            time.copy_from_slice(&expiry.milliseconds().to_le_bytes());
        }
    }

    fn add(&mut self, kind: Kind, key: &[u8], value: &[&[u8]]) -> &mut Self {
        // Most batches have one write, so one allocation of the exact size is enough.
        self.bytes.reserve(key.len() + value.iter().map(|part| part.len()).sum::<usize>());
        let key_at = self.bytes.len();
        self.bytes.extend_from_slice(key);
        let value_at = self.bytes.len();
        value.iter().for_each(|part| self.bytes.extend_from_slice(part));
        let end = self.bytes.len();
        self.longest = self.longest.max(end - value_at);
        self.writes.push(Write { kind, key_at, value_at, end, is_lifetime: false });
        self
    }

    /// Returns the writes in order: kind, key, stored value.
    pub(crate) fn writes(&self) -> impl Iterator<Item = (Kind, &[u8], &[u8])> {
        self.writes.iter().map(|write| {
            let key = &self.bytes[write.key_at..write.value_at];
            (write.kind, key, &self.bytes[write.value_at..write.end])
        })
    }

    /// Directs the writes that follow into a key space.
    pub(crate) fn go_on_in(&mut self, keyspace: KeyspaceId) {
        let from = self.writes.len();
        if from == 0 {
            self.first_keyspace = keyspace;
            return;
        }
        self.keyspaces.pop_if(|(place, _)| *place == from);
        if self.keyspace() != keyspace {
            self.keyspaces.push((from, keyspace));
        }
    }

    /// Returns the key spaces that the batch writes to. One may occur several times.
    pub(crate) fn all_keyspaces(&self) -> impl Iterator<Item = KeyspaceId> {
        let first = (!self.is_empty()).then_some(self.first_keyspace);
        first.into_iter().chain(self.keyspaces.iter().map(|(_, keyspace)| *keyspace))
    }

    /// The key space of the next write.
    fn keyspace(&self) -> KeyspaceId {
        self.keyspaces.last().map_or(self.first_keyspace, |(_, current)| *current)
    }

    /// Returns the key space of all writes. `None`: there are several.
    pub(crate) fn only_keyspace(&self) -> Option<KeyspaceId> {
        self.keyspaces.is_empty().then_some(self.first_keyspace)
    }

    /// Returns the key spaces of the writes, without the default one. One may occur several times.
    pub(crate) fn other_keyspaces(&self) -> impl Iterator<Item = KeyspaceId> {
        let later = self.keyspaces.iter().map(|(_, keyspace)| *keyspace);
        let ids = std::iter::once(self.first_keyspace).chain(later);
        ids.filter(|keyspace| *keyspace != KeyspaceId::DEFAULT)
    }

    /// Returns the writes in order, each with its key space, as the log stores them.
    pub(crate) fn logged(&self) -> impl Iterator<Item = (KeyspaceId, Kind, &[u8], &[u8])> {
        let (mut later, mut keyspace) = (self.keyspaces.iter().peekable(), self.first_keyspace);
        self.writes().enumerate().map(move |(place, (kind, key, value))| {
            while let Some((_, next)) = later.next_if(|(from, _)| *from == place) {
                keyspace = *next;
            }
            (keyspace, kind, key, value)
        })
    }

    /// Returns an error if a key, a value or the whole batch is too long, or if a range is
    /// inverted.
    pub(crate) fn check(&self) -> Result<()> {
        let mut all = 0usize;
        for (kind, key, value) in self.writes() {
            let (is_range, max) = (kind == Kind::DeleteRange, KEY_BYTES_MAX);
            let end = if is_range { value } else { &[] };
            if let Some(len) = [key.len(), end.len()].into_iter().find(|&len| len > max) {
                return Err(Error::KeyTooLong { len, max });
            }
            if is_range && key > end {
                return Err(Error::InvertedRange { from: key.to_vec(), to: end.to_vec() });
            }
            if let Some(excess) = value.len().checked_sub(kind.stored_bytes_max() + 1) {
                let max = VALUE_BYTES_MAX;
                return Err(Error::ValueTooLong { len: max + excess + 1, max });
            }
            all = all.saturating_add(key.len() + value.len() + WRITE_BYTES);
        }
        // The log stores the batch as one record.
        if all <= BATCH_BYTES_MAX {
            return Ok(());
        }
        Err(Error::BatchTooLong { len: all, max: BATCH_BYTES_MAX })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes `count` writes of `len` bytes each that share their bytes, which are never touched.
    fn forged(kind: Kind, len: usize, count: usize) -> Batch {
        let write = Write { kind, key_at: 0, value_at: 0, end: len, is_lifetime: false };
        Batch { bytes: vec![0; len], writes: vec![write; count], ..Batch::default() }
    }

    #[test] // The time of expiry used to count as a part of the value.
    fn a_value_with_an_expiry_may_be_as_long_as_any() {
        for (kind, beside) in [(Kind::Put, 0), (Kind::PutWithExpiry, EXPIRY_BYTES)] {
            let longest = VALUE_BYTES_MAX + beside;
            forged(kind, longest, 1).check().expect("the longest value");
            let refused = forged(kind, longest + 1, 1).check();
            let len_max = (VALUE_BYTES_MAX + 1, VALUE_BYTES_MAX);
            match refused {
                Err(Error::ValueTooLong { len, max }) => assert_eq!((len, max), len_max),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn a_batch_may_have_exactly_what_a_record_of_the_log_holds() {
        let count = BATCH_BYTES_MAX / (VALUE_BYTES_MAX + WRITE_BYTES) + 1;
        let mut batch = forged(Kind::Put, VALUE_BYTES_MAX, count);
        let rest = BATCH_BYTES_MAX % (VALUE_BYTES_MAX + WRITE_BYTES) - WRITE_BYTES;
        batch.writes[count - 1].end = rest;
        batch.check().expect("as much as fits");
        batch.writes[count - 1].end = rest + 1;
        match batch.check() {
            Err(Error::BatchTooLong { len, max }) => {
                assert_eq!((len, max), (BATCH_BYTES_MAX + 1, BATCH_BYTES_MAX));
            }
            other => panic!("{other:?}"),
        }
    }

    // Such a batch used to reach the log, whose records have 32-bit lengths, and looked like a disk
    // failure.
    #[test]
    fn a_batch_beyond_a_record_of_the_log_is_refused() {
        let most = BATCH_BYTES_MAX / (VALUE_BYTES_MAX + WRITE_BYTES);
        forged(Kind::Put, VALUE_BYTES_MAX, most).check().expect("as much as fits");
        let refused = forged(Kind::Put, VALUE_BYTES_MAX, most + 1).check();
        let message = refused.expect_err("beyond a record").to_string();
        assert!(message.contains("a batch has at most"), "{message}");
    }
}
