//! Bulk loading of unsorted entries: sorts them outside log and memtable, then ingests them.
//! ```text
//! entries -> sort (files/sort.rs), while others write -> one run, while they wait
//! ```
//! Invariant: as for sorted bulk loads, either all entries become visible or none.

use std::ops::ControlFlow;

use crate::db::keyspace::Keyspace;
use crate::error::{Error, Result};
use crate::files::sort::{OnSorting, SortOptions, Sorter};
use crate::storage::open_folder::OpenFolder;
use crate::sync::Arc;
use crate::write::ingest::ingest_sorted;

impl Keyspace {
    /// As [`ingest`](Keyspace::ingest), for entries in any order. They are sorted first, in memory
    /// and in temporary files. If a key occurs more than once, its last entry wins. Returns the
    /// number of keys.
    ///
    /// Other writers may write while entries are taken, and wait while the run is written. Each
    /// entry is written twice, to a temporary file and to the run, and need not be merged at once.
    /// That is far less work than as many [writes](crate::Db::write). Where the system supports it,
    /// temporary files have no names, so that nothing is left of them even if the process dies.
    ///
    /// ```
    /// # fn main() -> trommel::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a temporary folder");
    /// # let db = trommel::Db::open(dir.path().join("store"), trommel::Options::default())?;
    /// let entries = [("drum", "1"), ("bell", "2"), ("drum", "3")];
    /// assert_eq!(db.ingest_unsorted(entries, &Default::default())?, 2);
    /// assert_eq!(db.get("drum")?.as_deref(), Some(&b"3"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `KeyTooLong`, `ValueTooLong`: of an entry. `Io`: also for the folder of temporary files.
    /// `Corrupt`: the disk has changed a temporary file. `Option`: an option is invalid. In all
    /// cases nothing was written, and no file is left.
    pub fn ingest_unsorted<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        entries: impl IntoIterator<Item = (K, V)>,
        options: &SortOptions,
    ) -> Result<u64> {
        let entries = entries.into_iter().map(Ok::<_, Error>);
        self.try_ingest_unsorted(entries, options, &mut |_| ControlFlow::Continue(()))
    }

    /// As [`ingest_unsorted`](Keyspace::ingest_unsorted), for entries that may be errors. The first
    /// error ends the load; then nothing was written. The listener receives the progress, and may
    /// stop the load, which then ends with [`Cancelled`](Error::Cancelled).
    pub fn try_ingest_unsorted<K: AsRef<[u8]>, V: AsRef<[u8]>, E: From<Error>>(
        &self,
        entries: impl IntoIterator<Item = std::result::Result<(K, V), E>>,
        options: &SortOptions,
        listener: &mut OnSorting<'_>,
    ) -> std::result::Result<u64, E> {
        let _call = self.engine.life().enter()?;
        options.check()?;
        let table_files = &self.engine.table_files;
        let folder = match &options.folder {
            None => table_files.folder.clone(),
            Some(folder) => OpenFolder::open(&*self.engine.env.storage, folder)?,
        };
        let numbers = Arc::clone(&self.engine.tree);
        let new_number = move || numbers.table_files.new_file();
        let mut sorter = Sorter::new(options.memory_bytes, folder, new_number, listener);
        for entry in entries {
            let (key, value) = entry?;
            sorter.add(key.as_ref(), value.as_ref())?;
        }
        Ok(ingest_sorted(&self.engine, sorter.finish()?)?)
    }
}
