//! The entries of a RocksDB or LevelDB folder, as a native stream of Trommel.
//! ```text
//! CURRENT, MANIFEST-*, *.sst or *.ldb, *.log  -->  read-only  -->  keys ascending  -->  stream
//! ```
//! RocksDB reads LevelDB's files as they are. Both folders are opened without their lock, so that a
//! copy or a checkpoint is what to read while their owner writes.
//! Invariants: nothing is written into the folder. Keys and values are not looked into. What
//! RocksDB cannot read as it was meant (another order of keys, merge operands) is an error.

use std::io::Write;
use std::path::Path;

use rocksdb::{DB, Options, ReadOptions};
use trommel_lab::{LabError, StreamEnd, StreamForm, StreamWriter};

type Result<T> = std::result::Result<T, LabError>;

/// Writes all entries of a column family.
pub(crate) fn export(folder: &Path, family: &str, out: impl Write) -> Result<StreamEnd> {
    let failed = |problem: String| LabError::Peer(format!("{}: {problem}", folder.display()));
    let of_rocks = |error: rocksdb::Error| failed(error.into_string());
    let options = Options::default();
    let families = DB::list_cf(&options, folder).map_err(of_rocks)?;
    if !families.iter().any(|name| name == family) {
        let there = families.join(", ");
        return Err(failed(format!("there is no column family '{family}'; there are: {there}")));
    }
    // RocksDB opens no family without the default one.
    let mut opened = vec!["default", family];
    opened.dedup();
    // Logs are read, too: they hold the newest writes.
    let db = DB::open_cf_for_read_only(&options, folder, opened, false).map_err(of_rocks)?;
    let handle = db.cf_handle(family).ok_or_else(|| failed("the family is gone".into()))?;
    tell_others(&families, family);
    let mut reads = ReadOptions::default();
    reads.fill_cache(false);
    reads.set_readahead_size(2 << 20);
    let mut entries = db.raw_iterator_cf_opt(&handle, reads);
    let unwritable = |error: std::io::Error| LabError::Peer(format!("standard output: {error}"));
    let mut stream = StreamWriter::new(out, StreamForm::Native).map_err(unwritable)?;
    entries.seek_to_first();
    while let Some((key, value)) = entries.item() {
        stream.put(key, value, None).map_err(unwritable)?;
        entries.next();
    }
    entries.status().map_err(of_rocks)?;
    stream.finish().map(|(end, _)| end).map_err(unwritable)
}

/// A store has one key space: families that were not asked for are named.
fn tell_others(families: &[String], family: &str) {
    let others: Vec<&str> =
        families.iter().map(String::as_str).filter(|name| *name != family).collect();
    if !others.is_empty() {
        let others = others.join(", ");
        eprintln!("trommel-peers: column families that are left out: {others}");
    }
}
