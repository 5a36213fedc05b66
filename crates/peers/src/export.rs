//! Exports the entries of a RocksDB or LevelDB folder as a native stream of Trommel.
//! ```text
//! RocksDB   OPTIONS-*, IDENTITY    opened by RocksDB, read-only
//! LevelDB   neither                leveldb.rs        --> keys ascending --> stream
//! ```
//! The export takes no lock: while another process writes the store, export a copy or a checkpoint.
//!
//! Invariants: nothing is written into the folder. Keys and values are not interpreted. What cannot
//! be read correctly (another order of keys, merge operands) is an error.

use std::io::Write;
use std::path::Path;

use rocksdb::{DB, Options, ReadOptions};
use trommel_lab::{LabError, StreamEnd, StreamForm, StreamWriter};

use crate::leveldb;

type Result<T> = std::result::Result<T, LabError>;

/// Writes all entries; of RocksDB, those of one column family.
pub(crate) fn export(folder: &Path, family: &str, out: impl Write) -> Result<StreamEnd> {
    if is_of_rocksdb(folder) { of_rocksdb(folder, family, out) } else { of_leveldb(folder, out) }
}

fn is_of_rocksdb(folder: &Path) -> bool {
    let names = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names = names.map(|file| file.file_name().to_string_lossy().into_owned());
    names.any(|name| name == "IDENTITY" || name.starts_with("OPTIONS-"))
}

fn unwritable(error: std::io::Error) -> LabError {
    LabError::Peer(format!("standard output: {error}"))
}

fn of_leveldb(folder: &Path, out: impl Write) -> Result<StreamEnd> {
    let mut stream = StreamWriter::new(out, StreamForm::Native).map_err(unwritable)?;
    let read = leveldb::read(folder, &mut |key, value| {
        stream.put(key, value, None).map_err(|error| unwritable(error).to_string())
    });
    read.map_err(|problem| LabError::Peer(format!("{}: {problem}", folder.display())))?;
    stream.finish().map(|(end, _)| end).map_err(unwritable)
}

fn of_rocksdb(folder: &Path, family: &str, out: impl Write) -> Result<StreamEnd> {
    let failed = |problem: String| LabError::Peer(format!("{}: {problem}", folder.display()));
    let of_rocks = |error: rocksdb::Error| failed(error.into_string());
    let options = Options::default();
    let families = DB::list_cf(&options, folder).map_err(of_rocks)?;
    if !families.iter().any(|name| name == family) {
        let there = families.join(", ");
        return Err(failed(format!("there is no column family '{family}'; there are: {there}")));
    }
    // RocksDB opens no column family without the default one.
    let mut opened = vec!["default", family];
    opened.dedup();
    // RocksDB replays its logs, too, which hold the newest writes.
    let db = DB::open_cf_for_read_only(&options, folder, opened, false).map_err(of_rocks)?;
    let handle = db.cf_handle(family).ok_or_else(|| failed("the family is gone".into()))?;
    tell_others(&families, family);
    let mut reads = ReadOptions::default();
    reads.fill_cache(false);
    reads.set_readahead_size(2 << 20);
    let mut entries = db.raw_iterator_cf_opt(&handle, reads);
    let mut stream = StreamWriter::new(out, StreamForm::Native).map_err(unwritable)?;
    entries.seek_to_first();
    while let Some((key, value)) = entries.item() {
        stream.put(key, value, None).map_err(unwritable)?;
        entries.next();
    }
    entries.status().map_err(of_rocks)?;
    stream.finish().map(|(end, _)| end).map_err(unwritable)
}

/// Names the families that are left out, since a store has one key space.
fn tell_others(families: &[String], family: &str) {
    let others: Vec<&str> =
        families.iter().map(String::as_str).filter(|name| *name != family).collect();
    if !others.is_empty() {
        let others = others.join(", ");
        eprintln!("trommel-peers: column families that are left out: {others}");
    }
}
