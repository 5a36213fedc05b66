//! Large values, which need not fit into memory: written from a stream, and read as one.
//! ```text
//! put_reader   stream -> a value file of its own, piece by piece -> reference -> log, memtable
//! get_reader   key -> reference -> chunks, read on demand
//! ```
//! Invariant: the value file is held from its first byte until the reference is published.

use std::io::Read;

use crate::db::keyspace::Keyspace;
use crate::db::snapshot::Snapshot;
use crate::entries::entry::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use crate::entries::value_ref::VALUE_APART_BYTES_MAX;
use crate::error::{Error, Result};
use crate::files::value_file::PIECE_BYTES;
use crate::read::get;
use crate::read::value_reader::ValueReader;

impl Keyspace {
    /// Sets the value of a key to the next `length` bytes of a stream: up to 1 TiB, with 1 MiB of
    /// memory. [`get`](Keyspace::get) returns such a value up to 1 GiB;
    /// [`get_reader`](Keyspace::get_reader) also reads longer ones. If no values are [stored
    /// apart](crate::options::OptionValues::value_threshold), the value is read into memory, and
    /// may have at most 1 GiB.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let db = trommel::Db::open(dir.path().join("store"), trommel::Options::default())?;
    /// use std::io::{Read, Seek, SeekFrom};
    ///
    /// let noise = std::io::repeat(7).take(3 << 20);
    /// db.put_reader("noise", 3 << 20, noise)?;
    /// let mut reader = db.get_reader("noise")?.expect("it is there");
    /// reader.seek(SeekFrom::End(-2))?;
    /// let mut end = Vec::new();
    /// reader.read_to_end(&mut end)?;
    /// assert_eq!(end, [7, 7]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Io`: the stream failed or ended early, or a disk operation failed. `KeyTooLong`,
    /// `ValueTooLong`: nothing was read from the stream. Otherwise as [`write`](crate::Db::write).
    /// In all cases nothing was written.
    pub fn put_reader(
        &self,
        key: impl AsRef<[u8]>,
        length: u64,
        mut reader: impl Read,
    ) -> Result<()> {
        let call = self.engine.life().enter()?;
        let key = key.as_ref();
        if key.len() > KEY_BYTES_MAX {
            return Err(Error::KeyTooLong { len: key.len(), max: KEY_BYTES_MAX });
        }
        let files = &self.engine.table_files;
        let is_off = files.options.value_threshold == 0;
        let max = if is_off { VALUE_BYTES_MAX as u64 } else { VALUE_APART_BYTES_MAX };
        if length > max {
            let [len, max] = [length, max].map(|it| usize::try_from(it).unwrap_or(usize::MAX));
            return Err(Error::ValueTooLong { len, max });
        }
        let mut fill =
            |room: &mut [u8]| reader.read_exact(room).map_err(Error::io(files.folder.path()));
        if is_off || length <= PIECE_BYTES as u64 {
            let mut value = vec![0; length as usize];
            fill(&mut value)?;
            drop(call);
            return self.put(key, value);
        }
        let put = files.values.put_from(length, fill);
        let (at, _held) = put.inspect_err(|_| self.engine.sweep_or_call())?;
        // Closing waits for calls such as this one, but not for writes, which may have to wait
        // themselves.
        drop(call);
        self.write_if(None, |batch| batch.put_apart(key, &at))
    }

    /// Returns a reader of the value of a key, or None if it has no value. For a value [stored
    /// apart](crate::options::OptionValues::value_threshold) it takes at most 1 MiB of memory. The
    /// value does not change while the reader lives, and keeps its space on disk.
    pub fn get_reader(&self, key: impl AsRef<[u8]>) -> Result<Option<ValueReader>> {
        let version = self.engine.current.pin();
        let at = self.engine.snapshots.visible();
        get::reader_at(&self.engine, &version, key.as_ref(), at)
    }
}

impl Snapshot {
    /// Returns a reader of the value that a key had: see
    /// [`get_reader`](crate::Keyspace::get_reader).
    pub fn get_reader(&self, key: impl AsRef<[u8]>) -> Result<Option<ValueReader>> {
        let version = self.tree.current.pin();
        get::reader_at(&self.tree, &version, key.as_ref(), self.registered.sequence())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::Db;
    use crate::entries::value_ref::ValueRef;
    use crate::plan::background::Background;
    use crate::plan::options::Options;
    use crate::shared::environment::Environment;
    use crate::storage::memory::Memory;
    use crate::sync::Arc;

    #[test]
    fn gets_and_scans_refuse_a_value_that_is_only_read_in_parts() {
        let environment = Environment::new().storage(Arc::new(Memory::new()));
        let options = Options::new().background(Background::Stepped);
        let db = Db::open_with("db", options, environment).expect("opens");
        db.put("a", "short").expect("puts");
        db.put("c", "short").expect("puts");
        // Its file has less: nothing tells before the value is read.
        let (at, _held) = db.engine.table_files.values.put(&[7; 1000]).expect("puts");
        let long = ValueRef { len: VALUE_BYTES_MAX as u64 + 1, ..at };
        db.write_if(None, |batch| batch.put_apart(b"b", &long)).expect("writes");
        let is_too_long = |error: &Error| {
            matches!(error, Error::ValueTooLong { len, max: VALUE_BYTES_MAX }
                if *len == VALUE_BYTES_MAX + 1)
        };
        for place in ["in memory", "in a table"] {
            assert!(db.get("b").is_err_and(|it| is_too_long(&it)), "{place}");
            let found = db.multi_get(&["a", "b", "c"]);
            let which = found.iter().map(|it| it.as_ref().is_err_and(is_too_long));
            assert_eq!(which.collect::<Vec<_>>(), [false, true, false], "{place}");
            for (first, is_backward) in [("a", false), ("c", true)] {
                let mut scan = db.iter();
                let mut next = || if is_backward { scan.next_back() } else { scan.next() };
                let (key, _) = next().expect("an entry").expect("reads");
                assert_eq!(key, first.as_bytes(), "{place}");
                assert!(next().expect("an entry").is_err_and(|it| is_too_long(&it)), "{place}");
                assert!(next().is_none(), "{place}: the scan has ended");
            }
            let keys = db.iter().keys_only().filter(|entry| entry.is_ok());
            assert_eq!(keys.count(), 3, "{place}");
            db.flush().expect("flushes");
        }
    }
}
