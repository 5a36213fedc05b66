//! Stores and key spaces: opening, closing, and operations on a whole store.
//!
//! Invariant: every handle of a store knows the opening of the store that it belongs to.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use jni_sys::{jboolean, jbyteArray, jint};
use trommel::Db;
use trommel::stats::{Metric, MetricValue};

use crate::border::Handle;
use crate::bytes::{Room, texts};
use crate::env::Env;
use crate::error::{Failure, Outcome};
use crate::library::know_guards;
use crate::options::{keyspace_options, store_options};
use crate::reader::{Reader, Source};

/// Identifies one opening of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Opening(u64);

impl Opening {
    /// Returns an identity that no other opening has.
    fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Opening(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// Reads a text that Java has encoded.
pub(crate) fn text(env: Env, room: &mut Room, array: jbyteArray, len: jint) -> Outcome<&str> {
    let bytes = env.bytes(room, array, len)?;
    std::str::from_utf8(bytes).map_err(|_| Failure::argument("a text is not in UTF-8"))
}

native! {
    "open" fn open(
        env,
        path: jbyteArray,
        path_len: jint,
        options: jbyteArray,
        options_len: jint,
    ) -> Box<Reader> {
        know_guards();
        let (mut path_room, mut options_room) = (Room::new(), Room::new());
        let path = Path::new(text(env, &mut path_room, path, path_len)?);
        let options = store_options(env.bytes(&mut options_room, options, options_len)?)?;
        let db = Db::open(path, options)?;
        let source = Source::Keyspace(trommel::Keyspace::clone(&db));
        Ok(Box::new(Reader { source, db, opening: Opening::new() }))
    }
}

native! {
    "close" fn close(_env, of: Handle<Reader>) -> () {
        Ok(of.get()?.db.close()?)
    }
}

native! {
    /// Opens a key space, and creates it if it does not exist.
    "keyspace" fn keyspace(
        env,
        of: Handle<Reader>,
        name: jbyteArray,
        name_len: jint,
        options: jbyteArray,
        options_len: jint,
    ) -> Box<Reader> {
        let (mut name_room, mut options_room) = (Room::new(), Room::new());
        let name = text(env, &mut name_room, name, name_len)?;
        let options = keyspace_options(env.bytes(&mut options_room, options, options_len)?)?;
        let reader = of.get()?;
        Ok(reader.beside(Source::Keyspace(reader.db.keyspace(name, options)?)))
    }
}

native! {
    "openKeyspace" fn open_keyspace(
        env,
        of: Handle<Reader>,
        name: jbyteArray,
        name_len: jint,
    ) -> Box<Reader> {
        let mut room = Room::new();
        let (reader, name) = (of.get()?, text(env, &mut room, name, name_len)?);
        Ok(reader.beside(Source::Keyspace(reader.db.open_keyspace(name)?)))
    }
}

native! {
    "keyspaceName" fn keyspace_name(env, of: Handle<Reader>) -> jbyteArray {
        env.new_bytes(of.get()?.keyspace()?.name().as_bytes())
    }
}

native! {
    "keyspaces" fn keyspaces(env, of: Handle<Reader>) -> jbyteArray {
        env.new_bytes(&texts(of.get()?.db.keyspaces()?)?)
    }
}

native! {
    "dropKeyspace" fn drop_keyspace(
        env,
        of: Handle<Reader>,
        name: jbyteArray,
        name_len: jint,
    ) -> () {
        let mut room = Room::new();
        Ok(of.get()?.db.drop_keyspace(text(env, &mut room, name, name_len)?)?)
    }
}

native! {
    "renameKeyspace" fn rename_keyspace(
        env,
        of: Handle<Reader>,
        from: jbyteArray,
        from_len: jint,
        to: jbyteArray,
        to_len: jint,
    ) -> () {
        let (mut from_room, mut to_room) = (Room::new(), Room::new());
        let from = text(env, &mut from_room, from, from_len)?;
        Ok(of.get()?.db.rename_keyspace(from, text(env, &mut to_room, to, to_len)?)?)
    }
}

native! {
    "sync" fn sync(_env, of: Handle<Reader>) -> () {
        Ok(of.get()?.db.sync()?)
    }
}

native! {
    /// Flushes the whole store or a key space.
    "flush" fn flush(_env, of: Handle<Reader>, is_whole: jboolean) -> () {
        let reader = of.get()?;
        if is_whole { reader.db.flush()? } else { reader.keyspace()?.flush()? }
        Ok(())
    }
}

native! {
    "compact" fn compact(_env, of: Handle<Reader>, is_whole: jboolean) -> () {
        let reader = of.get()?;
        if is_whole { reader.db.compact()? } else { reader.keyspace()?.compact()? }
        Ok(())
    }
}

native! {
    "settle" fn settle(_env, of: Handle<Reader>) -> () {
        Ok(of.get()?.db.settle()?)
    }
}

native! {
    "checkpoint" fn checkpoint(
        env,
        of: Handle<Reader>,
        path: jbyteArray,
        path_len: jint,
    ) -> () {
        let mut room = Room::new();
        Ok(of.get()?.db.checkpoint(Path::new(text(env, &mut room, path, path_len)?))?)
    }
}

native! {
    /// Returns the numbers of tables, entries and bytes, then each damage found.
    "verify" fn verify(env, of: Handle<Reader>) -> jbyteArray {
        let report = of.get()?.db.verify()?;
        let numbers = [report.tables, report.entries, report.bytes];
        let numbers = numbers.map(|number| number.to_string());
        env.new_bytes(&texts(numbers.into_iter().chain(report.damage))?)
    }
}

native! {
    /// Returns what stopped background work, or an empty text, then name, label and text of each
    /// metric.
    "stats" fn stats(env, of: Handle<Reader>) -> jbyteArray {
        let stats = of.get()?.keyspace()?.stats()?;
        let failure = stats.failure.as_ref().map(ToString::to_string).unwrap_or_default();
        let mut all = vec![failure];
        for Metric { name, label, value, .. } in stats.metrics() {
            let label = label.map_or_else(String::new, |(_, label)| label.to_string());
            // A real number has a point, or is NaN or infinite, so Java can tell it from a whole
            // one.
            let value = match value {
                MetricValue::Whole(value) => value.to_string(),
                MetricValue::Real(value) => format!("{value:?}"),
            };
            all.extend([name.to_string(), label, value]);
        }
        env.new_bytes(&texts(all)?)
    }
}
