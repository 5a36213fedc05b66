//! Reading a key and writing it in one step: nobody else writes it between.
//! ```text
//! read at a number -> what is to be written -> written, if the key has no newer entry
//!        ^                                        '-- else: somebody was faster
//!        '------------------------------------------------'
//! ```
//! Invariant: what is compared is what is there when the write takes its place among all others,
//! whoever makes them: puts, batches, deletions of ranges, bulk loads.

use crate::db::keyspace::Keyspace;
use crate::entries::batch::Expected;
use crate::entries::entry::Sequence;
use crate::entries::value::Value;
use crate::error::{Error, Result};
use crate::read::get;
use crate::sync::{Ordering, yield_now};
use crate::tree::snapshots::Registered;
use crate::write::conflicts::{Condition, Write};
use crate::write::engine::Engine;

/// What becomes of a value that is updated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Update {
    /// It stays as it is: nothing is written.
    Keep,
    /// It has this value from then on, which does not expire.
    Put(Vec<u8>),
    /// It is deleted.
    Delete,
}

/// What came of [`compare_and_swap`](Keyspace::compare_and_swap).
#[derive(Clone, Debug)]
pub enum Swap {
    /// It had the value that was expected, and has the new one.
    Done,
    /// It has another one, or none: nothing was written.
    Found(Option<Value>),
}

/// What a key had, and when that was so.
struct Seen {
    value: Option<Value>,
    at: Sequence,
    /// Merges respect the number meanwhile.
    _registered: Option<Registered>,
}

/// Gets out of the way of those who were faster with a key: each time it lets others go first up to
/// twice as often. How often is drawn by a number that nobody else has at that time, so those who
/// have met do not meet again at once.
#[derive(Default)]
struct BackOff {
    /// The most that it has let others go first, as a power of two.
    bits: u32,
}

impl BackOff {
    const BITS_MAX: u32 = 5;

    fn wait(&mut self, engine: &Engine) {
        /// The golden ratio: numbers that follow each other are spread.
        const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
        self.bits = (self.bits + 1).min(Self::BITS_MAX);
        let number = engine.commit.late.fetch_add(1, Ordering::Relaxed);
        let times = number.wrapping_mul(SPREAD) >> (u64::BITS - self.bits);
        (0..times).for_each(|_| yield_now());
    }
}

/// Writes a batch if keys have what is expected. Who was faster with one of them may have left it
/// so: then it is looked at anew.
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
    /// Reads a key, and writes what `change` makes of its value, if nobody else has written the key
    /// between; else once more. Returns the value before. `change` runs outside of all locks, and
    /// may run several times.
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

    /// Sets the value of a key that has none. Returns the value that it has: then nothing was
    /// written.
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
            // Whether it was there for a while is all the same: the number need not be registered.
            let seen = self.see(key, false)?;
            if seen.value.is_some() {
                return Ok(Some(seen.value));
            }
            Ok(self.write_over(key, &seen, Some(value))?.then_some(None))
        })
    }

    /// Sets or deletes (`new` is None) the value of a key, if it has the value that is expected, or
    /// none as expected.
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

    /// Adds to a counter: 8 bytes, a signed number, the low byte first. A key without a value
    /// counts as 0. Returns the number before. It wraps around.
    ///
    /// # Errors
    /// `NoCounter`: the value has another length. Else as [`write`](crate::Db::write).
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

    /// Looks at a key and writes it, until nobody was faster. `attempt` gives None if somebody was.
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
        let version = tree.current.pin();
        let visible = || tree.snapshots.visible();
        let at = registered.as_ref().map_or_else(visible, Registered::sequence);
        let value = get::get_at(tree, &version, key, at)?;
        Ok(Seen { value, at, _registered: registered })
    }

    /// Writes or deletes a key, unless it was written since it was seen: false.
    fn write_over(&self, key: &[u8], seen: &Seen, new: Option<&[u8]>) -> Result<bool> {
        let expiry = seen.value.as_ref().and_then(|value| value.expiry());
        let (keyspace, of_key) = (self.engine.keyspace, key.to_vec());
        let condition = Condition { keyspace, key: of_key, at: seen.at, expiry };
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
