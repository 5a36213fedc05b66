//! Writes of single keys, and reads and writes of a key in one step.
//!
//! Invariant: writes of a transaction's handle go to the transaction, those of a key space's handle
//! to the store.

use std::time::Duration;

use jni_sys::{jboolean, jbyteArray, jint, jlong, jobject};
use trommel::{Error, Keyspace, Swap, TransactionIn};

use crate::border::Handle;
use crate::bytes::Room;
use crate::error::{Failure, Outcome};
use crate::reader::{Reader, Source};

impl Reader {
    /// Writes into the key space, or into the transaction.
    fn write(
        &self,
        into_store: impl FnOnce(&Keyspace) -> trommel::Result<()>,
        into_transaction: impl FnOnce(TransactionIn<'_>) -> trommel::Result<()>,
    ) -> Outcome<()> {
        match &self.source {
            Source::Keyspace(keyspace) => Ok(into_store(keyspace)?),
            Source::Transaction(open, keyspace) => open.within(keyspace, into_transaction),
            Source::Snapshot(_) => Err(Failure::argument("a snapshot is not written")),
        }
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Outcome<()> {
        self.write(|it| it.put(key, value), |it| it.put(key, value))
    }
}

native! {
    "put" fn put(
        env,
        of: Handle<Reader>,
        key: jbyteArray,
        key_len: jint,
        value: jbyteArray,
        value_len: jint,
    ) -> () {
        let (mut key_room, mut value_room) = (Room::new(), Room::new());
        let key = env.bytes(&mut key_room, key, key_len)?;
        of.get()?.put(key, env.bytes(&mut value_room, value, value_len)?)
    }
}

native! {
    "putDirect" fn put_direct(
        env,
        of: Handle<Reader>,
        key: jobject,
        key_at: jint,
        key_len: jint,
        value: jobject,
        value_at: jint,
        value_len: jint,
    ) -> () {
        let (mut key_room, mut value_room) = (Room::new(), Room::new());
        let key = env.direct_bytes(&mut key_room, key, key_at, key_len)?;
        of.get()?.put(key, env.direct_bytes(&mut value_room, value, value_at, value_len)?)
    }
}

native! {
    /// Puts a value that expires after this many seconds and nanoseconds.
    "putFor" fn put_for(
        env,
        of: Handle<Reader>,
        key: jbyteArray,
        key_len: jint,
        value: jbyteArray,
        value_len: jint,
        seconds: jlong,
        nanoseconds: jint,
    ) -> () {
        let (mut key_room, mut value_room) = (Room::new(), Room::new());
        let key = env.bytes(&mut key_room, key, key_len)?;
        let value = env.bytes(&mut value_room, value, value_len)?;
        let negative = |_| Failure::argument("ttl: a duration below 0");
        let seconds = u64::try_from(seconds).map_err(negative)?;
        let ttl = Duration::new(seconds, u32::try_from(nanoseconds).map_err(negative)?);
        of.get()?.write(|it| it.put_ttl(key, value, ttl), |it| it.put_ttl(key, value, ttl))
    }
}

native! {
    "delete" fn delete(env, of: Handle<Reader>, key: jbyteArray, key_len: jint) -> () {
        let mut room = Room::new();
        let key = env.bytes(&mut room, key, key_len)?;
        of.get()?.write(|it| it.delete(key), |it| it.delete(key))
    }
}

native! {
    "deleteRange" fn delete_range(
        env,
        of: Handle<Reader>,
        from: jbyteArray,
        from_len: jint,
        to: jbyteArray,
        to_len: jint,
    ) -> () {
        let (mut from_room, mut to_room) = (Room::new(), Room::new());
        let from = env.bytes(&mut from_room, from, from_len)?;
        let to = env.bytes(&mut to_room, to, to_len)?;
        // A transaction would report this error only at its commit.
        if from > to {
            return Err(Error::InvertedRange { from: from.to_vec(), to: to.to_vec() }.into());
        }
        of.get()?.write(|it| it.delete_range(from, to), |it| it.delete_range(from, to))
    }
}

native! {
    "merge" fn merge(
        env,
        of: Handle<Reader>,
        key: jbyteArray,
        key_len: jint,
        operand: jbyteArray,
        operand_len: jint,
    ) -> () {
        let (mut key_room, mut operand_room) = (Room::new(), Room::new());
        let key = env.bytes(&mut key_room, key, key_len)?;
        let operand = env.bytes(&mut operand_room, operand, operand_len)?;
        of.get()?.write(|it| it.merge(key, operand), |it| it.merge(key, operand))
    }
}

native! {
    /// Returns the value that the key had, or null.
    "putIfAbsent" fn put_if_absent(
        env,
        of: Handle<Reader>,
        key: jbyteArray,
        key_len: jint,
        value: jbyteArray,
        value_len: jint,
    ) -> jbyteArray {
        let (mut key_room, mut value_room) = (Room::new(), Room::new());
        let key = env.bytes(&mut key_room, key, key_len)?;
        let value = env.bytes(&mut value_room, value, value_len)?;
        let found = of.get()?.keyspace()?.put_if_absent(key, value)?;
        env.new_bytes_if(found.as_deref())
    }
}

native! {
    /// Returns whether the value was swapped.
    "compareAndSwap" fn compare_and_swap(
        env,
        of: Handle<Reader>,
        key: jbyteArray,
        key_len: jint,
        expected: jbyteArray,
        expected_len: jint,
        value: jbyteArray,
        value_len: jint,
    ) -> jboolean {
        let (mut key_room, mut old_room, mut new_room) = (Room::new(), Room::new(), Room::new());
        let key = env.bytes(&mut key_room, key, key_len)?;
        let expected = env.some_bytes(&mut old_room, expected, expected_len)?;
        let value = env.some_bytes(&mut new_room, value, value_len)?;
        let swap = of.get()?.keyspace()?.compare_and_swap(key, expected, value)?;
        Ok(matches!(swap, Swap::Done))
    }
}

native! {
    "fetchAdd" fn fetch_add(
        env,
        of: Handle<Reader>,
        key: jbyteArray,
        key_len: jint,
        add: jlong,
    ) -> jlong {
        let mut room = Room::new();
        let key = env.bytes(&mut room, key, key_len)?;
        Ok(of.get()?.keyspace()?.fetch_add(key, add)?)
    }
}
