//! What can be read: a key space as it is now, a snapshot of one, or a transaction in one.
//! ```text
//! Store, Keyspace --.
//! Snapshot ---------+--> Reader { source, db }      one handle each, and the same calls for all
//! Transaction ------'
//! ```
//! Invariant: reads of a snapshot or a transaction that has ended are errors, even with threads at
//! work.

use std::sync::{Arc, PoisonError, RwLock};

use jni_sys::{jboolean, jbyteArray, jint, jlong, jobject};
use trommel::{Db, KeyBounds, Keyspace, Snapshot, TransactionIn, Value};

use crate::border::Handle;
use crate::bytes::{LENGTH_BYTES, Room, cut, push_value};
use crate::env::Env;
use crate::error::{Failure, Outcome};
use crate::store::Opening;
use crate::transaction::Open;

/// The longest value for which a `byte[]` is sure to have room, other data included.
const ARRAY_MAX: usize = i32::MAX as usize - 64;
/// The length of a missing value.
const ABSENT: jint = -1;

/// A source of reads, and the store that it belongs to.
pub(crate) struct Reader {
    pub(crate) source: Source,
    pub(crate) db: Db,
    pub(crate) opening: Opening,
}

pub(crate) enum Source {
    Keyspace(Keyspace),
    /// None: the snapshot was closed.
    Snapshot(RwLock<Option<Snapshot>>),
    Transaction(Arc<Open>, Keyspace),
}

impl Reader {
    /// Makes a reader of another source of the same store.
    pub(crate) fn beside(&self, source: Source) -> Box<Reader> {
        Box::new(Reader { source, db: self.db.clone(), opening: self.opening })
    }

    /// Returns the key space itself. Snapshots and transactions are an error.
    pub(crate) fn keyspace(&self) -> Outcome<&Keyspace> {
        match &self.source {
            Source::Keyspace(keyspace) => Ok(keyspace),
            _ => Err(Failure::argument("the handle is not that of a key space")),
        }
    }

    /// Like [`Reader::keyspace`], for a caller that works on this opening of a store.
    pub(crate) fn keyspace_of(&self, opening: Opening) -> Outcome<&Keyspace> {
        match self.opening == opening {
            true => self.keyspace(),
            false => Err(Failure::of_another_store("the key space")),
        }
    }

    /// Fails if the store was closed, or the key space was dropped. Nothing is read.
    pub(crate) fn check_open(&self) -> Outcome<()> {
        // A question about no ranges does what every read does first, and no more.
        const NO_RANGES: [KeyBounds; 0] = [];
        match &self.source {
            Source::Keyspace(keyspace) => keyspace.multi_may_contain(NO_RANGES)?,
            Source::Snapshot(place) => {
                in_snapshot(place, |snapshot| Ok(snapshot.multi_may_contain(NO_RANGES)?))?
            }
            Source::Transaction(open, keyspace) => {
                open.within(keyspace, |_| keyspace.multi_may_contain(NO_RANGES))?
            }
        };
        Ok(())
    }

    fn get(&self, key: &[u8]) -> Outcome<Option<Value>> {
        match &self.source {
            Source::Keyspace(keyspace) => Ok(keyspace.get(key)?),
            Source::Snapshot(place) => in_snapshot(place, |snapshot| Ok(snapshot.get(key)?)),
            Source::Transaction(open, keyspace) => open.within(keyspace, |it| it.get(key)),
        }
    }

    fn get_many(&self, keys: &[&[u8]]) -> Outcome<Vec<Option<Value>>> {
        let all = |found: Vec<trommel::Result<Option<Value>>>| {
            Ok(found.into_iter().collect::<trommel::Result<Vec<_>>>()?)
        };
        match &self.source {
            Source::Keyspace(keyspace) => all(keyspace.multi_get(keys)),
            Source::Snapshot(place) => in_snapshot(place, |it| all(it.multi_get(keys))),
            Source::Transaction(open, keyspace) => open
                .within(keyspace, |it: TransactionIn<'_>| {
                    keys.iter().map(|key| it.get(key)).collect()
                }),
        }
    }

    /// False proves that no row lies in the range. It costs less than a scan that finds none.
    pub(crate) fn may_contain(&self, bounds: KeyBounds) -> Outcome<bool> {
        match &self.source {
            Source::Keyspace(keyspace) => Ok(keyspace.may_contain_range(bounds)?),
            Source::Snapshot(place) => {
                in_snapshot(place, |snapshot| Ok(snapshot.may_contain_range(bounds)?))
            }
            // A transaction has writes of its own, which no filter knows.
            Source::Transaction(..) => Ok(true),
        }
    }
}

/// Reads a snapshot. A closed one is an error.
pub(crate) fn in_snapshot<T>(
    place: &RwLock<Option<Snapshot>>,
    read: impl FnOnce(&Snapshot) -> Outcome<T>,
) -> Outcome<T> {
    let snapshot = place.read().unwrap_or_else(PoisonError::into_inner);
    read(snapshot.as_ref().ok_or_else(|| Failure::closed("snapshot"))?)
}

/// The keys from `from` on and before `to`.
pub(crate) fn bounds(from: Option<&[u8]>, to: Option<&[u8]>) -> KeyBounds {
    match to {
        Some(to) => KeyBounds::from(from.unwrap_or_default()..to),
        None => KeyBounds::from(from.unwrap_or_default()..),
    }
}

native! {
    "get" fn get(env, of: Handle<Reader>, key: jbyteArray, key_len: jint) -> jbyteArray {
        let mut room = Room::new();
        let value = of.get()?.get(env.bytes(&mut room, key, key_len)?)?;
        env.new_bytes_if(value.as_deref())
    }
}

native! {
    "contains" fn contains(env, of: Handle<Reader>, key: jbyteArray, key_len: jint) -> jboolean {
        let mut room = Room::new();
        Ok(of.get()?.get(env.bytes(&mut room, key, key_len)?)?.is_some())
    }
}

native! {
    /// Reads between direct buffers. Returns the value's length, and copies the value if it fits.
    "getDirect" fn get_direct(
        env,
        of: Handle<Reader>,
        key: jobject,
        key_at: jint,
        key_len: jint,
        value: jobject,
        value_at: jint,
        value_room: jint,
    ) -> jint {
        let mut room = Room::new();
        let found = of.get()?.get(env.direct_bytes(&mut room, key, key_at, key_len)?)?;
        let Some(found) = found else { return Ok(ABSENT) };
        copy_to(env, &found, value, value_at, value_room)
    }
}

native! {
    /// Like `getDirect`, with the key in an array.
    "getInto" fn get_into(
        env,
        of: Handle<Reader>,
        key: jbyteArray,
        key_len: jint,
        value: jobject,
        value_at: jint,
        value_room: jint,
    ) -> jint {
        let mut room = Room::new();
        let found = of.get()?.get(env.bytes(&mut room, key, key_len)?)?;
        let Some(found) = found else { return Ok(ABSENT) };
        copy_to(env, &found, value, value_at, value_room)
    }
}

fn copy_to(env: Env, found: &[u8], value: jobject, at: jint, room: jint) -> Outcome<jint> {
    let len = jint::try_from(found.len()).map_err(|_| Failure::argument("2 GiB are too long"))?;
    if len <= room {
        env.fill_direct(value, at, found)?;
    }
    Ok(len)
}

native! {
    /// Reads a list of keys. Returns a list of values.
    "getMany" fn get_many(env, of: Handle<Reader>, keys: jbyteArray, len: jint) -> jbyteArray {
        let mut room = Room::new();
        let keys = cut(env.bytes(&mut room, keys, len)?)?;
        let found = of.get()?.get_many(&keys)?;
        let bytes = found.iter().flatten().map(|value| value.len()).sum::<usize>();
        let all = bytes + found.len() * LENGTH_BYTES;
        if all > ARRAY_MAX {
            let message = format!(
                "keys: the values of these {} take {bytes} bytes, more than one call can give: \
                 ask for fewer at once",
                keys.len(),
            );
            return Err(Failure::argument(message));
        }
        let mut values = Vec::with_capacity(all);
        found.iter().try_for_each(|value| push_value(&mut values, value.as_deref()))?;
        env.new_bytes(&values)
    }
}

native! {
    "mayContainRange" fn may_contain_range(
        env,
        of: Handle<Reader>,
        from: jbyteArray,
        from_len: jint,
        to: jbyteArray,
        to_len: jint,
    ) -> jboolean {
        let (mut from_room, mut to_room) = (Room::new(), Room::new());
        let from = env.some_bytes(&mut from_room, from, from_len)?;
        let bounds = bounds(from, env.some_bytes(&mut to_room, to, to_len)?);
        let reader = of.get()?;
        match &reader.source {
            Source::Transaction(open, keyspace) => {
                open.within(keyspace, |it| Ok(it.range(bounds).next().transpose()?.is_some()))
            }
            _ => reader.may_contain(bounds),
        }
    }
}

native! {
    /// Returns three numbers of 8 bytes: the least, the estimated and the greatest count.
    "approximateCount" fn approximate_count(
        env,
        of: Handle<Reader>,
        from: jbyteArray,
        from_len: jint,
        to: jbyteArray,
        to_len: jint,
    ) -> jbyteArray {
        let (mut from_room, mut to_room) = (Room::new(), Room::new());
        let from = env.some_bytes(&mut from_room, from, from_len)?;
        let bounds = bounds(from, env.some_bytes(&mut to_room, to, to_len)?);
        let count = match &of.get()?.source {
            Source::Keyspace(keyspace) => keyspace.approximate_count(bounds)?,
            Source::Snapshot(place) => {
                in_snapshot(place, |snapshot| Ok(snapshot.approximate_count(bounds)?))?
            }
            Source::Transaction(open, keyspace) => {
                open.within(keyspace, |_| keyspace.approximate_count(bounds))?
            }
        };
        let numbers = [count.least, count.estimate, count.most].map(u64::to_le_bytes);
        env.new_bytes(&numbers.concat())
    }
}

native! {
    /// Returns the sequence number of the last write that the reader sees.
    "sequence" fn sequence(_env, of: Handle<Reader>) -> jlong {
        let reader = of.get()?;
        reader.check_open()?;
        let number = match &reader.source {
            Source::Keyspace(_) => reader.db.snapshot().sequence(),
            Source::Snapshot(place) => in_snapshot(place, |snapshot| Ok(snapshot.sequence()))?,
            Source::Transaction(open, _) => open.living()?.sequence(),
        };
        Ok(number as jlong)
    }
}

native! {
    "snapshot" fn snapshot(_env, of: Handle<Reader>) -> Box<Reader> {
        let reader = of.get()?;
        // Taking a snapshot never fails, not even of a closed store.
        reader.check_open()?;
        let snapshot = reader.db.snapshot().of(reader.keyspace()?);
        Ok(reader.beside(Source::Snapshot(RwLock::new(Some(snapshot)))))
    }
}

native! {
    /// Returns a snapshot of another key space at the same sequence number.
    "snapshotOf" fn snapshot_of(
        _env,
        of: Handle<Reader>,
        keyspace: Handle<Reader>,
    ) -> Box<Reader> {
        let reader = of.get()?;
        let keyspace = keyspace.get()?.keyspace_of(reader.opening)?;
        let Source::Snapshot(place) = &reader.source else {
            return Err(Failure::argument("the handle is not that of a snapshot"));
        };
        let other = in_snapshot(place, |snapshot| Ok(snapshot.of(keyspace)))?;
        Ok(reader.beside(Source::Snapshot(RwLock::new(Some(other)))))
    }
}

native! {
    "closeSnapshot" fn close_snapshot(_env, of: Handle<Reader>) -> () {
        if let Source::Snapshot(place) = &of.get()?.source {
            let snapshot = place.write().unwrap_or_else(PoisonError::into_inner).take();
            drop(snapshot);
        }
        Ok(())
    }
}

native! {
    "freeReader" fn free_reader(_env, of: Handle<Reader>) -> () {
        drop(of.take()?);
        Ok(())
    }
}
