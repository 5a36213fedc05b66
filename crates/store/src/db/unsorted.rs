//! Many entries in any order, at once: sorted past log and memory, then ingested.
//! ```text
//! entries -> sort (files/sort.rs), while others write -> one run, while they wait
//! ```
//! Invariant: as for what is ingested: all of it is there, or nothing.

use std::ops::ControlFlow;

use crate::db::keyspace::Keyspace;
use crate::error::{Error, Result};
use crate::files::sort::{OnSorting, SortOptions, Sorter};
use crate::storage::open_folder::OpenFolder;
use crate::sync::Arc;
use crate::write::ingest::ingest_sorted;

impl Keyspace {
    /// As [`ingest`](Keyspace::ingest), of entries in any order: they are sorted first, in memory
    /// and files of the sort's own. Of entries with one key the last one counts. How many keys
    /// there were.
    ///
    /// Others may write while entries are taken, and wait when the run is written. Each entry is
    /// written twice, to a file and to the run, and nothing of it is merged again at once: far less
    /// work than as many [writes](crate::Db::write). Files of the sort have no names, so whatever
    /// becomes of the process, nothing is left of them.
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
    /// `KeyTooLong`, `ValueTooLong`; `Io`, of the folder of the sort's files, too; `Corrupt`: the
    /// disk has changed one of these; `Option`. Nothing was written, and no file is left.
    pub fn ingest_unsorted<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        entries: impl IntoIterator<Item = (K, V)>,
        options: &SortOptions,
    ) -> Result<u64> {
        let entries = entries.into_iter().map(Ok::<_, Error>);
        self.try_ingest_unsorted(entries, options, &mut |_| ControlFlow::Continue(()))
    }

    /// As [`ingest_unsorted`](Keyspace::ingest_unsorted), of entries that may be errors: the first
    /// one ends it, and nothing was written. The listener hears how far it has come, and may stop
    /// it: then it ends with [`Cancelled`](Error::Cancelled).
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
