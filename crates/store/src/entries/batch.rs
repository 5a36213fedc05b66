//! Writes that land together: all of them, or none.

use std::time::Duration;

use crate::entries::entry::{BATCH_BYTES_MAX, KEY_BYTES_MAX, Kind, VALUE_BYTES_MAX, WRITE_BYTES};
use crate::entries::expiry::{EXPIRY_BYTES, Expiry};
use crate::entries::keyspace_id::KeyspaceId;
use crate::entries::packed;
use crate::entries::value_ref::ValueRef;
use crate::error::{Error, Result};
use crate::storage::clock::Clock;

/// Writes that become visible together, and survive a crash together or not at all.
/// Of two writes of one key the later one counts.
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
    /// Whether any write is kept for a while from then on when the batch is written.
    has_lifetimes: bool,
    /// Whether any write is an operand.
    has_operands: bool,
    /// Bytes of the longest value as it is stored.
    longest: usize,
    /// The key space that its first writes go into.
    first_keyspace: KeyspaceId,
    /// From which later write on they go into which other one.
    keyspaces: Vec<(usize, KeyspaceId)>,
    expected: Vec<Expected>,
}

/// What a key must have when the batch is written.
#[derive(Clone, Debug)]
pub(crate) struct Expected {
    pub(crate) keyspace: KeyspaceId,
    pub(crate) key: Vec<u8>,
    /// None: no value.
    pub(crate) value: Option<Vec<u8>>,
}

/// Where a write's key and value are: the key first, the value behind it.
#[derive(Clone, Copy, Debug)]
struct Write {
    kind: Kind,
    key_at: usize,
    value_at: usize,
    end: usize,
    /// The time before the value is how long it is kept, in nanoseconds; the greatest number: ever.
    is_lifetime: bool,
}

/// Takes its writes, and leaves it empty.
impl From<&mut Batch> for Batch {
    fn from(batch: &mut Batch) -> Self {
        std::mem::take(batch)
    }
}

impl Batch {
    /// A batch without writes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the value of a key.
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> &mut Self {
        self.add(Kind::Put, key.as_ref(), &[value.as_ref()])
    }

    /// Sets the value of a key for so long after the batch is written, as
    /// [`Db::put_ttl`](crate::Keyspace::put_ttl); for more than 584 years: for ever.
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

    /// Sets the value of a key until a time; from then on the key has no value, neither this one
    /// nor an older one. [`Db::expiry_after`](crate::Keyspace::expiry_after) tells the time that
    /// comes so much later.
    pub fn put_with_expiry(
        &mut self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        expiry: Expiry,
    ) -> &mut Self {
        let time = expiry.milliseconds().to_le_bytes();
        self.add(Kind::PutWithExpiry, key.as_ref(), &[&time, value.as_ref()])
    }

    /// Merges an operand into the value of a key, as [`Db::merge`](crate::Keyspace::merge).
    pub fn merge(&mut self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> &mut Self {
        self.has_operands = true;
        self.add(Kind::Merge, key.as_ref(), &[operand.as_ref()])
    }

    /// Removes a key. No error if it is not there.
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> &mut Self {
        self.add(Kind::Delete, key.as_ref(), &[])
    }

    /// Removes all keys from `from` on and before `to`, whatever their number: it takes one write.
    /// Nothing if both are the same. If `from` is behind `to`, writing the batch is an error.
    pub fn delete_range(&mut self, from: impl AsRef<[u8]>, to: impl AsRef<[u8]>) -> &mut Self {
        let (from, to) = (from.as_ref(), to.as_ref());
        if from == to { self } else { self.add(Kind::DeleteRange, from, &[to]) }
    }

    /// The batch is written only if the key then has this value, or none; else the call gives
    /// [`Error::Conflict`] and writes nothing. The key is of the key space into which the batch's
    /// next write goes. What the batch itself writes does not count.
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

    /// What it expects, which it forgets.
    pub(crate) fn take_expected(&mut self) -> Vec<Expected> {
        std::mem::take(&mut self.expected)
    }

    /// The writes of a buffer, one behind the other, each:
    /// - a byte that says which: 1 put, 2 delete, 3 delete a range, 4 put for a while, 5 merge;
    /// - the length of its key, and that of its value, each in four bytes, the low one first;
    /// - its key, and its value. Of a range that is its end. A deletion has none. Of 4 it begins
    ///   with how many nanoseconds the value is kept, in eight bytes, the low one first.
    ///
    /// # Errors
    /// `Malformed`: where the bytes are no such writes.
    pub fn from_packed(bytes: &[u8]) -> Result<Batch> {
        packed::batch_of(bytes)
    }

    /// How many writes it has.
    pub fn len(&self) -> usize {
        self.writes.len()
    }

    /// Whether it has no writes; it may expect something.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// Bytes of keys and values.
    pub fn size_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Forgets its writes and what it expects, and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.writes.clear();
        self.keyspaces.clear();
        self.first_keyspace = KeyspaceId::DEFAULT;
        self.expected.clear();
        (self.has_lifetimes, self.has_operands, self.longest) = (false, false, 0);
    }

    /// As `clear`, and of the memory for keys and values keeps at most so many bytes.
    pub(crate) fn clear_to(&mut self, bytes: usize) {
        self.clear();
        self.bytes.shrink_to(bytes);
    }

    /// Whether it has a value of so many bytes, perhaps.
    #[inline]
    pub(crate) fn may_have_value_of(&self, bytes: usize) -> bool {
        self.longest >= bytes
    }

    /// Sets the value of a key to one that is apart.
    pub(crate) fn put_apart(&mut self, key: &[u8], at: &ValueRef) -> &mut Self {
        self.add(Kind::PutApart, key, &[&at.encode()])
    }

    /// As above, until a time.
    pub(crate) fn put_apart_with_expiry(
        &mut self,
        key: &[u8],
        at: &ValueRef,
        expiry: Expiry,
    ) -> &mut Self {
        let time = expiry.milliseconds().to_le_bytes();
        self.add(Kind::PutApartWithExpiry, key, &[&time, &at.encode()])
    }

    /// Has values be apart: `put` gets those that are not, each with its key space, and gives a
    /// reference, or none if the value stays. Requires: lifetimes have begun. After an error the
    /// batch is as it was.
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

    /// A key of each key space into which operands are merged.
    pub(crate) fn merged_keys(&self) -> impl Iterator<Item = (KeyspaceId, &[u8])> {
        let all = self.has_operands.then(|| self.logged()).into_iter().flatten();
        let merged = all.filter(|(_, kind, ..)| *kind == Kind::Merge);
        let mut last = None;
        merged.filter_map(move |(keyspace, _, key, _)| {
            (last.replace(keyspace) != Some(keyspace)).then_some((keyspace, key))
        })
    }

    /// Lifetimes begin now.
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
        // Most batches have one write: its bytes are given room at once.
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

    /// The writes in order: kind, key, value.
    pub(crate) fn writes(&self) -> impl Iterator<Item = (Kind, &[u8], &[u8])> {
        self.writes.iter().map(|write| {
            let key = &self.bytes[write.key_at..write.value_at];
            (write.kind, key, &self.bytes[write.value_at..write.end])
        })
    }

    /// Writes from here on go into a key space.
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

    /// The key spaces that it writes to, some perhaps more than once.
    pub(crate) fn all_keyspaces(&self) -> impl Iterator<Item = KeyspaceId> {
        let first = (!self.is_empty()).then_some(self.first_keyspace);
        first.into_iter().chain(self.keyspaces.iter().map(|(_, keyspace)| *keyspace))
    }

    /// The key space that the next write goes into.
    fn keyspace(&self) -> KeyspaceId {
        self.keyspaces.last().map_or(self.first_keyspace, |(_, current)| *current)
    }

    /// The key space that all its writes go into, if it is one.
    pub(crate) fn only_keyspace(&self) -> Option<KeyspaceId> {
        self.keyspaces.is_empty().then_some(self.first_keyspace)
    }

    /// The key spaces that it writes into, beside the default one; some of them several times.
    pub(crate) fn other_keyspaces(&self) -> impl Iterator<Item = KeyspaceId> {
        let later = self.keyspaces.iter().map(|(_, keyspace)| *keyspace);
        let ids = std::iter::once(self.first_keyspace).chain(later);
        ids.filter(|keyspace| *keyspace != KeyspaceId::DEFAULT)
    }

    /// The writes, each with its key space.
    pub(crate) fn logged(&self) -> impl Iterator<Item = (KeyspaceId, Kind, &[u8], &[u8])> {
        let (mut later, mut keyspace) = (self.keyspaces.iter().peekable(), self.first_keyspace);
        self.writes().enumerate().map(move |(place, (kind, key, value))| {
            while let Some((_, next)) = later.next_if(|(from, _)| *from == place) {
                keyspace = *next;
            }
            (keyspace, kind, key, value)
        })
    }

    /// An error if a key, a value or all together are too long, or a range ends before it begins.
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
        // The log has it in one record.
        if all <= BATCH_BYTES_MAX {
            return Ok(());
        }
        Err(Error::BatchTooLong { len: all, max: BATCH_BYTES_MAX })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes of so many bytes each, which share their memory; it is not touched.
    fn forged(kind: Kind, len: usize, count: usize) -> Batch {
        let write = Write { kind, key_at: 0, value_at: 0, end: len, is_lifetime: false };
        Batch { bytes: vec![0; len], writes: vec![write; count], ..Batch::default() }
    }

    #[test] // It took less by the bytes of the time.
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

    // It got to the log, which has 32 bits for the length of a record, and was taken for a failure
    // of the disk.
    #[test]
    fn a_batch_beyond_a_record_of_the_log_is_refused() {
        let most = BATCH_BYTES_MAX / (VALUE_BYTES_MAX + WRITE_BYTES);
        forged(Kind::Put, VALUE_BYTES_MAX, most).check().expect("as much as fits");
        let refused = forged(Kind::Put, VALUE_BYTES_MAX, most + 1).check();
        let message = refused.expect_err("beyond a record").to_string();
        assert!(message.contains("a batch has at most"), "{message}");
    }
}
