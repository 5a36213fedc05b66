//! The keys of files that are about to be ingested.
//! ```text
//! file ── link, in a folder of the database ── a database of its own ── its keys
//! ```
//! RocksDB's C API cannot read single files.
//!
//! Invariant: the files stay unchanged.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rocksdb::{DB, IngestExternalFileOptions, IteratorMode, Options};

/// A file could not be read.
#[derive(Debug)]
pub(crate) struct Unreadable;

impl From<std::io::Error> for Unreadable {
    fn from(_: std::io::Error) -> Self {
        Unreadable
    }
}

impl From<rocksdb::Error> for Unreadable {
    fn from(_: rocksdb::Error) -> Self {
        Unreadable
    }
}

/// A temporary folder, removed when dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(database: &Path) -> std::io::Result<Scratch> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("trommel-ingest-{}-{count}", std::process::id());
        let folder = database.join(name);
        std::fs::create_dir(&folder)?;
        Ok(Scratch(folder))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A remainder takes space, but does no harm.
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// Calls `each` with every key in the files.
pub(crate) fn read_keys(
    database: &Path,
    files: &[PathBuf],
    mut each: impl FnMut(&[u8]),
) -> Result<(), Unreadable> {
    for file in files {
        let scratch = Scratch::new(database)?;
        let link = scratch.0.join("file.sst");
        if std::fs::hard_link(file, &link).is_err() {
            std::fs::copy(file, &link)?;
        }
        let mut options = Options::default();
        options.create_if_missing(true);
        options.set_keep_log_file_num(1);
        let db = DB::open(&options, scratch.0.join("database"))?;
        let mut ingested = IngestExternalFileOptions::default();
        ingested.set_move_files(true);
        db.ingest_external_file_opts(&ingested, vec![link])?;
        for entry in db.iterator(IteratorMode::Start) {
            each(&entry?.0);
        }
    }
    Ok(())
}
