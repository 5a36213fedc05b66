//! Atomic read-modify-write of single keys.
//! ```text
//! read at a sequence number -> what to write -> written, if the key has no newer entry
//!        ^                                        '-- else: another writer was faster
//!        '-------------------------------------------'
//! ```
//! Invariant: the comparison holds at the moment at which the write takes its place among all other
//! writes: puts, batches, range deletions and bulk loads.

use crate::db::keyspace::Keyspace;
use crate::entries::batch::Expected;
use crate::entries::entry::Sequence;
use crate::entries::value::Value;
use crate::error::{Error, Result};
use crate::read::get;
use crate::storage::pauses::PausePoint;
use crate::sync::{Ordering, yield_now};
use crate::tree::snapshots::Registered;
use crate::write::conflicts::{Condition, Write};
use crate::write::engine::Engine;

/// What to do with a value in [`update`](Keyspace::update).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Update {
    /// Leaves the value as it is: nothing is written.
    Keep,
    /// Sets the value to these bytes, without expiry.
    Put(Vec<u8>),
    /// Deletes the key.
    Delete,
}

/// The result of [`compare_and_swap`](Keyspace::compare_and_swap).
#[derive(Clone, Debug)]
pub enum Swap {
    /// The key had the expected value, and now has the new one.
    Done,
    /// The key has another value, or none: nothing was written.
    Found(Option<Value>),
}

/// The value of a key.
struct Seen {
    value: Option<Value>,
    /// All writes up to this number were seen.
    since: Sequence,
    /// Keeps merges from dropping newer entries of the key meanwhile.
    _registered: Option<Registered>,
}

/// Backs off after conflicts: yields up to twice as often each time. The number of yields is drawn
/// from a counter that all writers share, so that writers which conflicted do not collide again at
/// once.
#[derive(Default)]
struct BackOff {
    /// The bound on the number of yields, as a power of two.
    bits: u32,
}

impl BackOff {
    const BITS_MAX: u32 = 5;

    fn wait(&mut self, engine: &Engine) {
        /// The golden ratio: it spreads consecutive numbers.
        const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
        self.bits = (self.bits + 1).min(Self::BITS_MAX);
        let number = engine.commit.late.fetch_add(1, Ordering::Relaxed);
        let times = number.wrapping_mul(SPREAD) >> (u64::BITS - self.bits);
        (0..times).for_each(|_| yield_now());
    }
}

/// Writes a batch if its keys have the expected values. After a conflict the keys are compared
/// again, since the other writer may have left the expected values.
pub(super) fn write_as_expected(
    engine: &Engine,
    write: &Write,
    expected: &[Expected],
    sync: bool,
) -> Result<Sequence> {
    let mut back_off = BackOff::default();
    loop {
        let registered = engine.snapshots.register();
        let at = registered.sequence();
        let mut conditions = write.conditions.clone();
        for Expected { keyspace, key, value: expected } in expected {
            let tree = engine.commit.trees.of(engine, *keyspace)?;
            let value = get::get_at(&tree, &tree.current.pin(), key, at)?;
            let expiry = value.as_ref().and_then(Value::expiry);
            let condition = Condition { keyspace: *keyspace, key: key.clone(), at, expiry };
            if value.as_deref() != expected.as_deref() {
                return Err(condition.conflict());
            }
            conditions.push(condition);
        }
        if write.batch.is_empty() {
            return Ok(at);
        }
        let mut write = Write { conditions, ..Write::of(write.batch.clone()) };
        match engine.commit.write_if(engine, &mut write, sync) {
            Err(Error::Conflict { .. }) => back_off.wait(engine),
            written => return written,
        }
    }
}

impl Keyspace {
    /// Reads a key and writes what `change` makes of its value, atomically. If someone else writes
    /// the key in between, it tries again. Returns the value before. `change` runs outside all
    /// locks, and may run several times.
    ///
    /// ```
    /// # fn main() -> trommel::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a temporary folder");
    /// # let db = trommel::Db::open(dir.path().join("store"), trommel::Options::default())?;
    /// use trommel::Update;
    ///
    /// db.put("words", "a")?;
    /// db.update("words", |old| match old {
    ///     Some(old) => Update::Put([old, b" b"].concat()),
    ///     None => Update::Keep,
    /// })?;
    /// assert_eq!(db.get("words")?.as_deref(), Some(&b"a b"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`write`](crate::Db::write).
    pub fn update(
        &self,
        key: impl AsRef<[u8]>,
        mut change: impl FnMut(Option<&[u8]>) -> Update,
    ) -> Result<Option<Value>> {
        let key = key.as_ref();
        self.until_first(|| {
            let seen = self.see(key, true)?;
            let change = change(seen.value.as_deref());
            let new = match &change {
                Update::Keep => return Ok(Some(seen.value)),
                Update::Put(value) => Some(&**value),
                Update::Delete => None,
            };
            Ok(self.write_over(key, &seen, new)?.then_some(seen.value))
        })
    }

    /// Sets the value of a key if it has none. Otherwise writes nothing and returns the existing
    /// value.
    ///
    /// # Errors
    /// As [`write`](crate::Db::write).
    pub fn put_if_absent(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<Option<Value>> {
        let (key, value) = (key.as_ref(), value.as_ref());
        self.until_first(|| {
            // A key that was written and deleted in between does no harm, so the number is not
            // registered.
            let seen = self.see(key, false)?;
            if seen.value.is_some() {
                return Ok(Some(seen.value));
            }
            Ok(self.write_over(key, &seen, Some(value))?.then_some(None))
        })
    }

    /// Replaces the value of a key with `new` if the key has the value `expected`. None as
    /// `expected` means that the key must have no value; None as `new` deletes it.
    ///
    /// # Errors
    /// As [`write`](crate::Db::write).
    pub fn compare_and_swap(
        &self,
        key: impl AsRef<[u8]>,
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<Swap> {
        let key = key.as_ref();
        self.until_first(|| {
            let seen = self.see(key, true)?;
            if seen.value.as_deref() != expected {
                return Ok(Some(Swap::Found(seen.value)));
            }
            Ok(self.write_over(key, &seen, new)?.then_some(Swap::Done))
        })
    }

    /// Adds to a counter and returns its previous value. A counter is a signed 8-byte little-endian
    /// integer; an absent key counts as 0. The addition wraps around.
    ///
    /// # Errors
    /// `NoCounter`: the value does not have 8 bytes. Otherwise as [`write`](crate::Db::write).
    pub fn fetch_add(&self, key: impl AsRef<[u8]>, add: i64) -> Result<i64> {
        let key = key.as_ref();
        self.until_first(|| {
            let seen = self.see(key, true)?;
            let number = |value: &Value| {
                let bytes = (**value).try_into().map(i64::from_le_bytes);
                let (key, len) = (key.to_vec(), value.len());
                bytes.map_err(|_| Error::NoCounter { key, len })
            };
            let before = seen.value.as_ref().map(number).transpose()?.unwrap_or_default();
            let sum = before.wrapping_add(add).to_le_bytes();
            Ok(self.write_over(key, &seen, Some(&sum))?.then_some(before))
        })
    }

    /// Repeats `attempt` until no other writer was faster. `attempt` returns None if one was.
    fn until_first<T>(&self, mut attempt: impl FnMut() -> Result<Option<T>>) -> Result<T> {
        let mut back_off = BackOff::default();
        loop {
            if let Some(done) = attempt()? {
                return Ok(done);
            }
            back_off.wait(&self.engine);
        }
    }

    fn see(&self, key: &[u8], registers: bool) -> Result<Seen> {
        let tree = &self.engine.tree;
        let registered = registers.then(|| tree.snapshots.register());
        let visible = || tree.snapshots.visible();
        // Taken before the pin: the version has all writes up to it, but not all later ones.
        let since = registered.as_ref().map_or_else(visible, Registered::sequence);
        let version = tree.current.pin();
        tree.env.pauses.at(PausePoint::GetPinned);
        // A number that is not registered is taken after the pin, as by any get.
        let at = if registers { since } else { visible() };
        let value = get::get_at(tree, &version, key, at)?;
        Ok(Seen { value, since, _registered: registered })
    }

    /// Writes or deletes a key. Returns false if the key was written after it was seen.
    fn write_over(&self, key: &[u8], seen: &Seen, new: Option<&[u8]>) -> Result<bool> {
        let expiry = seen.value.as_ref().and_then(|value| value.expiry());
        let (keyspace, of_key) = (self.engine.keyspace, key.to_vec());
        let condition = Condition { keyspace, key: of_key, at: seen.since, expiry };
        let written = self.write_if(Some(condition), |batch| match new {
            Some(value) => batch.put(key, value),
            None => batch.delete(key),
        });
        match written {
            Err(Error::Conflict { .. }) => Ok(false),
            written => written.map(|()| true),
        }
    }
}
