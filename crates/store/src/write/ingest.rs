//! Bulk loading: sorted entries become the newest run at once, bypassing log and memtable.
//! ```text
//! writers wait   seal -> flush what is sealed -> one sequence number, one flush number
//!                entries, checked one by one -> tables -> guard, as in a flush -> one edit
//!                -> visible
//! ```
//! Invariants (ordering rule 1): all earlier writes are in tables when the flush number is taken.
//! Nothing else is written until the run is installed. So its entries, which share one sequence
//! number, are newer than all others. Readers and recovery see all of it or nothing, since one edit
//! names every table.
//!
//! Unlike a flushed memtable, the run is in no log. So a second edit follows, and damage to the
//! first one cannot look like a torn tail. The guard gets the run's keys as they came, or reads
//! them from the tables if they are too many for memory.

use trommel_filters::KeyList;

use crate::entries::entry::{Entry, KEY_BYTES_MAX, Kind, Sequence, VALUE_BYTES_MAX};
use crate::entries::tombstones::RangeTombstones;
use crate::error::{Error, Result};
use crate::files::sort::Sorted;
use crate::files::value_file::ValueFile;
use crate::sync::Arc;
use crate::tree::run_writer::RunWriter;
use crate::write::engine::Engine;
use crate::write::flush::{NewRun, Written, install};

/// Keys are kept in memory up to the size of this many write buffers. The memtables, which may take
/// as much, are empty meanwhile.
const BUFFERS_OF_KEYS: usize = 4;

/// A key and a value. None: there is no next entry.
type Lent<'e> = Option<(&'e [u8], &'e [u8])>;

/// A stream of entries. Each one is lent until the next call.
pub(crate) trait Entries<E> {
    /// Returns the number of entries, approximately.
    fn len_about(&self) -> u64;
    /// Returns the next entry.
    fn next(&mut self) -> std::result::Result<Lent<'_>, E>;
}

/// The entries of an iterator, and the one that was returned last.
struct Given<I, T>(I, Option<T>);

impl<I, K: AsRef<[u8]>, V: AsRef<[u8]>, E> Entries<E> for Given<I, (K, V)>
where
    I: Iterator<Item = std::result::Result<(K, V), E>>,
{
    fn len_about(&self) -> u64 {
        self.0.size_hint().0 as u64
    }

    fn next(&mut self) -> std::result::Result<Lent<'_>, E> {
        self.1 = self.0.next().transpose()?;
        Ok(self.1.as_ref().map(|(key, value)| (key.as_ref(), value.as_ref())))
    }
}

impl Entries<Error> for Sorted<'_, '_> {
    fn len_about(&self) -> u64 {
        self.rows_max()
    }

    fn next(&mut self) -> Result<Lent<'_>> {
        Sorted::next(self)
    }
}

/// The keys of a run, as long as there are few.
struct FewKeys {
    keys: Option<KeyList>,
    bytes: usize,
    bytes_max: usize,
}

impl FewKeys {
    fn new(bytes_max: usize) -> Self {
        FewKeys { keys: Some(KeyList::default()), bytes: 0, bytes_max }
    }

    fn push(&mut self, key: &[u8]) {
        let Some(keys) = &mut self.keys else { return };
        self.bytes += key.len() + size_of::<usize>();
        if self.bytes > self.bytes_max {
            self.keys = None;
            return;
        }
        keys.push(key);
    }
}

/// Makes a run of entries whose keys ascend. Returns their number.
pub(crate) fn ingest<E: From<Error>>(
    engine: &Engine,
    entries: impl Iterator<Item = std::result::Result<(impl AsRef<[u8]>, impl AsRef<[u8]>), E>>,
) -> std::result::Result<u64, E> {
    let mut entries = entries.peekable();
    if entries.peek().is_none() {
        return Ok(0);
    }
    ingest_all(engine, Given(entries, None))
}

/// Makes a run of sorted entries. Returns their number.
pub(crate) fn ingest_sorted(engine: &Engine, sorted: Sorted<'_, '_>) -> Result<u64> {
    if sorted.rows_max() == 0 {
        return Ok(0);
    }
    ingest_all(engine, sorted)
}

/// Makes a run of all entries. Requires: there is at least one.
fn ingest_all<E: From<Error>>(
    engine: &Engine,
    entries: impl Entries<E>,
) -> std::result::Result<u64, E> {
    let entries = engine.commit.write_exclusively(engine, |sequence| {
        let written = write_run(engine, sequence, entries);
        let (written, bytes) = written.inspect_err(|_| engine.sweep_or_call())?;
        let flush = engine.installer().take_flush();
        let (first, last) = (sequence, sequence);
        let run = NewRun { flush, first, last, is_flushed: false, first_log: None };
        let installed = engine.or_give_up(&written.output, || install(engine, &run, &written));
        if let Err(error) = installed {
            drop(written);
            engine.sweep_or_call();
            return Err(error.into());
        }
        // The load is complete. If repeating the edit fails, the next edit begins a new manifest,
        // which names the run from the start.
        let _ = engine.installer().repeat_edit(engine);
        engine.work_appeared();
        engine.counters.wrote(written.output.entries(), bytes);
        Ok::<_, E>(written.output.entries())
    })?;
    engine.sweep_or_call();
    Ok(entries)
}

/// Writes the tables of the run. Returns them, and the bytes of keys and values. After an error no
/// table is left, and nobody holds the value files.
fn write_run<E: From<Error>>(
    engine: &Engine,
    sequence: Sequence,
    mut entries: impl Entries<E>,
) -> std::result::Result<(Written, u64), E> {
    let takes_keys = engine.current.hold().guard.takes_flushed_keys();
    let bits = engine.filter_bits(&[], entries.len_about());
    let writer = RunWriter::new(&engine.table_files, RangeTombstones::default());
    let mut writer = writer.with_filter_bits(bits);
    let buffer_bytes = engine.table_files.options.write_buffer_bytes;
    let mut keys = FewKeys::new(buffer_bytes.saturating_mul(BUFFERS_OF_KEYS));
    let mut bytes = 0;
    let mut before: Option<Vec<u8>> = None;
    // Value files are held until the tables hold them.
    let mut held: Vec<Arc<ValueFile>> = Vec::new();
    while let Some((key, value)) = entries.next()? {
        check(before.as_deref(), key, value)?;
        if engine.is_apart(value) {
            let (at, file) = engine.table_files.values.put(value)?;
            let value = &at.encode();
            writer.add(&Entry { key, sequence, kind: Kind::PutApart, value })?;
            if held.last().is_none_or(|last| !Arc::ptr_eq(last, &file)) {
                held.push(file);
            }
        } else {
            writer.add(&Entry { key, sequence, kind: Kind::Put, value })?;
        }
        if takes_keys {
            keys.push(key);
        }
        key.clone_into(before.get_or_insert_default());
        bytes += (key.len() + value.len()) as u64;
    }
    let output = writer.finish()?;
    drop(held);
    engine.counters.flushed(output.bytes(), output.filter_seconds());
    Ok((Written { output, keys: keys.keys }, bytes))
}

/// Checks that an entry may follow the one before it.
fn check(before: Option<&[u8]>, key: &[u8], value: &[u8]) -> Result<()> {
    if key.len() > KEY_BYTES_MAX {
        return Err(Error::KeyTooLong { len: key.len(), max: KEY_BYTES_MAX });
    }
    if value.len() > VALUE_BYTES_MAX {
        return Err(Error::ValueTooLong { len: value.len(), max: VALUE_BYTES_MAX });
    }
    match before.filter(|before| *before >= key) {
        Some(before) => Err(Error::Unsorted { before: before.to_vec(), key: key.to_vec() }),
        None => Ok(()),
    }
}
