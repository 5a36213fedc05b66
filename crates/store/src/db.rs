//! The store as its users see it.

use std::ops::Deref;
use std::path::{Path, PathBuf};

use crate::entries::batch::Batch;
use crate::entries::entry::Sequence;
use crate::entries::key_bounds::KeyBounds;
use crate::entries::keyspace_id::KeyspaceId;
use crate::entries::value::Value;
use crate::error::{Error, Result};
use crate::events::Event;
use crate::open;
use crate::plan::background::Background;
use crate::plan::options::Options;
use crate::plan::options::keyspace::KeyspaceOptions;
use crate::plan::store_layout::{DEFAULT_NAME, KeyspaceEdit, StoreEdit};
use crate::plan::sync_policy::SyncPolicy;
use crate::read::changes::Changes;
use crate::read::indexed_batch::Readable;
use crate::read::queue::Queue;
use crate::read::scan::Scan;
use crate::shared::environment::Environment;
use crate::sync::Arc;
use crate::tools::progress::{OnProgress, Steps, unheard};
use crate::tools::verify::VerifyReport;
use crate::write::conflicts::Write;
use crate::write::engine::{Engine, EngineUse};
use crate::write::keyspaces;

mod kept_write;
mod keyspace;
mod large_values;
mod owner;
mod single_keys;
mod snapshot;
mod transaction;
mod unsorted;

pub use keyspace::Keyspace;
use owner::Owner;
pub use single_keys::{Swap, Update};
pub use snapshot::Snapshot;
pub use transaction::{Isolation, Savepoint, Transaction, TransactionIn, TransactionScan};

/// A handle of an open store, which any thread may use. A clone is another handle of the same
/// store. The store is closed by [`close`](Db::close), or when its last handle is dropped.
///
/// ```
/// # fn main() -> trommel::Result<()> {
/// # let dir = tempfile::tempdir().expect("a temporary folder");
/// # let path = dir.path().join("store");
/// let db = trommel::Db::open(&path, trommel::Options::default())?;
/// db.put("drum", "turns")?;
/// assert_eq!(db.get("drum")?.as_deref(), Some(&b"turns"[..]));
/// assert!(db.range("a".."c").next().is_none());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Db {
    /// The default key space.
    main: Keyspace,
}

/// All that is done to a key space is done to the one that every store has.
impl Deref for Db {
    type Target = Keyspace;

    fn deref(&self) -> &Keyspace {
        &self.main
    }
}

impl Db {
    /// Opens the store in a folder, and makes one if there is none and the options allow it.
    ///
    /// # Errors
    /// `Locked` if it is open already, here or elsewhere. `NotAStore` if the folder holds something
    /// else. `Version` if another version of Trommel wrote it. `Corrupt` with file and offset if a
    /// file is damaged.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Db> {
        Db::open_with(path, options, Environment::default())
    }

    /// As [`open`](Db::open), with storage, clock and pauses from outside.
    pub fn open_with(
        path: impl AsRef<Path>,
        options: Options,
        environment: Environment,
    ) -> Result<Db> {
        let begun = environment.clock.now();
        let (engine, keyspaces) = open::open_store(path.as_ref(), &options, environment)?;
        let engine = Arc::new(engine);
        engine.commit.trees.add(&engine);
        // It closes the store if what follows fails, or panics.
        let owner = Arc::new(Owner::new(&engine, keyspaces));
        // On a full disk they are not: the next opening is to say them again.
        if !engine.env.reads_older {
            let _ = keep_options(&engine, &options);
        }
        // If there are no threads to be had, the store is closed when its owner goes.
        owner.each(|engine| {
            // Full memtables of the last session. If the disk is full they stay in memory and in
            // their logs.
            let _ = engine.flush_recovered();
            engine.start_work()
        })?;
        let (runs, time) = (engine.current.pin().runs.len(), engine.since(begun));
        engine.env.tell(Event::Opened { path: path.as_ref(), runs, time });
        Ok(Db { main: Keyspace { engine: engine.used(), owner } })
    }

    /// As [`open`](Db::open), of any version that this one reads
    /// ([`READ_VERSIONS`](crate::tools::READ_VERSIONS)), to copy what it holds into another store.
    /// Nothing is changed, as long as nobody writes: do not.
    ///
    /// # Errors
    /// As there; `Version`: it is another one.
    #[doc(hidden)]
    pub fn open_older(path: impl AsRef<Path>, options: Options) -> Result<Db> {
        let environment = Environment { reads_older: true, ..Environment::default() };
        let options = options.create_if_missing(false).background(Background::Stepped);
        Db::open_with(path, options, environment)
    }

    /// Applies a batch: readers see all of it or nothing, and so does a recovery.
    ///
    /// # Errors
    /// `KeyTooLong`, `ValueTooLong`, `BatchTooLong`, `InvertedRange`: nothing was written. `Io`:
    /// the batch is not visible now; after a crash it is there as a whole or not at all. `Stopped`:
    /// as `Io`. Flushing has failed; it is tried again, and writes go on when it succeeds.
    /// `LockTimeout`: a transaction has locked a key; nothing was written.
    pub fn write(&self, batch: impl Into<Batch>) -> Result<()> {
        let sync = self.engine.table_files.options.sync == SyncPolicy::Always;
        self.owner.write(&mut Write::of(batch.into()), sync).map(|_| ())
    }

    /// As [`write`](Db::write), and on disk when it returns, whatever the options say.
    pub fn write_synced(&self, batch: impl Into<Batch>) -> Result<()> {
        self.owner.write(&mut Write::of(batch.into()), true).map(|_| ())
    }

    /// Makes all writes so far durable.
    pub fn sync(&self) -> Result<()> {
        let _call = self.engine.life().enter()?;
        let durable = self.engine.commit.writer().make_durable(&self.engine);
        self.engine.writer_is_free();
        durable
    }

    /// The store as it is now, to be read while writes go on. Merges keep what it sees.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            registered: self.engine.snapshots.register(),
            tree: Arc::clone(&self.engine.tree),
        }
    }

    /// Writes everything in memory to a run on disk, of each key space.
    pub fn flush(&self) -> Result<()> {
        let _call = self.engine.life().enter()?;
        self.owner.each(|engine| engine.flush_all())
    }

    /// All committed writes after the one of this number, in their order, of all key spaces. They
    /// come from the logs, as far as these are durable: see [`SyncPolicy`]. Logs go when tables
    /// have all that is in them, unless
    /// [`kept_log_bytes`](crate::options::OptionValues::kept_log_bytes) keeps them. Batches and
    /// transactions come whole. Feeds may be as many as you like, and writers wait for none.
    ///
    /// To begin, take a [snapshot](Db::snapshot), then [`sync`](Db::sync), so that no crash takes
    /// back what it has. Read it, and ask for what came after its
    /// [number](Snapshot::sequence). To go on later, after a crash too, keep the number of the
    /// last batch with what you make of it.
    ///
    /// Not told are entries of [`ingest`](Keyspace::ingest): the feed ends there with `Gone`.
    /// Neither are a key space's making, renaming or dropping. After a `repair`, or in a
    /// checkpoint, begin anew.
    ///
    /// ```
    /// # fn main() -> trommel::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a temporary folder");
    /// let options = trommel::Options::new().kept_log_bytes(64 << 20);
    /// let db = trommel::Db::open(dir.path().join("store"), options)?;
    /// let begin = db.snapshot().sequence();
    /// db.put("drum", "turns")?;
    /// db.sync()?;
    /// let mut feed = db.changes_since(begin)?;
    /// let batch = feed.next_batch()?.expect("it is durable");
    /// assert_eq!(batch.changes[0].key, b"drum");
    /// assert!(feed.next_batch()?.is_none());
    /// assert_eq!(feed.sequence(), db.snapshot().sequence());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Gone`: logs that had some of these writes are gone, or the store has never had that number.
    pub fn changes_since(&self, sequence: u64) -> Result<Changes> {
        Changes::since(&self.engine.tree, Sequence(sequence))
    }

    /// Has what is in memory wait for a flush.
    #[cfg(test)]
    pub(crate) fn seal(&self) -> Result<()> {
        self.engine.commit.writer().seal(&self.engine)
    }

    /// Merges everything of each key space into one run of its last level, in one merge. Merges
    /// that are due are not made before, and merges under way are given up.
    pub fn compact(&self) -> Result<()> {
        let _call = self.engine.life().enter()?;
        self.owner.each(|engine| {
            engine.flush_all()?;
            engine.merge_everything()
        })
    }

    /// As [`compact`](Db::compact), and tells how many entries of how many it has merged.
    ///
    /// # Errors
    /// `Cancelled` if the listener stops it: the runs are as they were.
    pub fn compact_with_progress(&self, listener: &mut OnProgress<'_>) -> Result<()> {
        let _call = self.engine.life().enter()?;
        self.owner.each(|engine| engine.flush_all())?;
        let entries = |engine: &EngineUse| -> u64 {
            engine.current.pin().files().map(|table| table.entry_count()).sum()
        };
        let engines = self.owner.engines();
        let mut steps = Steps::new(listener);
        steps.begin(engines.iter().map(entries).sum())?;
        let mut before = 0;
        for engine in &engines {
            let all = entries(engine);
            engine.merge_everything_telling(|merged| steps.reach(before + merged))?;
            before += all;
            // It is done: there is nothing to stop.
            let _ = steps.reach(before);
        }
        Ok(())
    }

    /// In stepped mode: does one step of background work. False: there is nothing to do.
    pub fn step(&self) -> Result<bool> {
        let _call = self.engine.life().enter()?;
        for engine in self.owner.engines() {
            if engine.step()? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns when no flush or merge is due: waits for the threads, or does the steps.
    pub fn settle(&self) -> Result<()> {
        let _call = self.engine.life().enter()?;
        self.owner.each(|engine| engine.wait_idle())
    }

    /// The key space of a name, which is made if it is not there. What is set in the options is
    /// kept; what is not, is as it was kept. What differs from before holds at once: what is in
    /// memory is flushed, and the tree is opened anew. But while a handle, snapshot or scan of the
    /// key space lives, or a call of the store is at work on it, it holds from the next opening on.
    ///
    /// # Errors
    /// `Option`: the name or an option makes no sense. `Io`: nothing has changed, or what was set
    /// is kept and holds from the next opening on.
    pub fn keyspace(&self, name: impl AsRef<str>, options: KeyspaceOptions) -> Result<Keyspace> {
        self.named(name.as_ref(), &options, true)
    }

    /// The key space of a name.
    ///
    /// # Errors
    /// `NoKeyspace`: there is none.
    pub fn open_keyspace(&self, name: impl AsRef<str>) -> Result<Keyspace> {
        self.named(name.as_ref(), &KeyspaceOptions::new(), false)
    }

    fn named(&self, name: &str, options: &KeyspaceOptions, makes: bool) -> Result<Keyspace> {
        let _call = self.engine.life().enter()?;
        if name == DEFAULT_NAME {
            self.owner.keyspaces.give_default_operator(&self.engine, options)?;
            return Ok(self.main.clone());
        }
        let engine = self.owner.keyspaces.named(&self.engine, name, options, makes)?;
        Ok(Keyspace { engine, owner: Arc::clone(&self.owner) })
    }

    /// The names of all key spaces, the default one first.
    pub fn keyspaces(&self) -> Result<Vec<String>> {
        let _call = self.engine.life().enter()?;
        Ok(keyspaces::names(&self.engine))
    }

    /// Drops a key space with all that is in it. Its handles, snapshots and scans give
    /// [`Error::KeyspaceDropped`] from then on, and so do batches that write into it. Snapshots do
    /// not keep it.
    ///
    /// # Errors
    /// `NoKeyspace`: there is none of that name. `Option`: it is the default one. `Io`: after a
    /// crash it is there, or not.
    pub fn drop_keyspace(&self, name: impl AsRef<str>) -> Result<()> {
        let _call = self.engine.life().enter()?;
        self.owner.keyspaces.drop_named(&self.engine, name.as_ref())
    }

    /// Gives a key space another name. Its handles stay good.
    ///
    /// # Errors
    /// `NoKeyspace`: there is none of that name. `KeyspaceExists`: the new name is taken. `Option`:
    /// it is the default one, or the new name makes no sense.
    pub fn rename_keyspace(&self, from: impl AsRef<str>, to: impl AsRef<str>) -> Result<()> {
        let _call = self.engine.life().enter()?;
        self.owner.keyspaces.rename(&self.engine, from.as_ref(), to.as_ref())
    }

    /// Makes a second store in `dir`, which must be new or empty, that holds all writes that are
    /// visible now. Cheap: tables are shared by hard links, or copied if the folder is on another
    /// file system. What is in memory is written as a log. Writes, flushes and merges go on
    /// meanwhile. If it is cut short, the folder is refused as no store, and this store is as it
    /// was. Files are never changed, so neither store can harm the other. But a disk that damages a
    /// shared file damages it for both. For a backup, copy the checkpoint to another disk.
    ///
    /// # Errors
    /// `NotEmpty` if the folder has files, `Io` if the disk refuses.
    pub fn checkpoint(&self, dir: impl AsRef<Path>) -> Result<()> {
        self.checkpoint_with_progress(dir, &mut unheard)
    }

    /// As [`checkpoint`](Db::checkpoint), and tells how many tables of how many it has.
    ///
    /// # Errors
    /// `Cancelled` if the listener stops it: what it has made is removed.
    pub fn checkpoint_with_progress(
        &self,
        dir: impl AsRef<Path>,
        listener: &mut OnProgress<'_>,
    ) -> Result<()> {
        let _call = self.engine.life().enter()?;
        let steps = &mut Steps::new(listener);
        let (main, keyspaces) = (&self.engine, &self.owner.keyspaces);
        crate::tools::checkpoint::checkpoint(main, keyspaces, dir.as_ref(), steps)
    }

    /// Gives a target the files of a store with all that is visible now, which goes on after so
    /// many numbers. Gives the number of the last write that it has.
    pub(crate) fn give_files(
        &self,
        target: &mut dyn crate::tools::checkpoint::Target,
        numbers_later: u64,
        listener: &mut OnProgress<'_>,
    ) -> Result<u64> {
        let _call = self.engine.life().enter()?;
        let (main, keyspaces) = (&self.engine, &self.owner.keyspaces);
        let steps = &mut Steps::new(listener);
        let filled = crate::tools::checkpoint::fill(main, keyspaces, target, numbers_later, steps);
        filled.map(|last| last.0)
    }

    /// Reads every byte of every table and log and checks it, and every key against the guard.
    pub fn verify(&self) -> Result<VerifyReport> {
        self.verify_with_progress(&mut unheard)
    }

    /// As [`verify`](Db::verify), and tells how far it has come.
    ///
    /// # Errors
    /// `Cancelled` if the listener stops it.
    pub fn verify_with_progress(&self, listener: &mut OnProgress<'_>) -> Result<VerifyReport> {
        let _call = self.engine.life().enter()?;
        let trees: Vec<_> = self.owner.engines().iter().map(|it| Arc::clone(&it.tree)).collect();
        crate::tools::verify::verify(&trees, &mut Steps::new(listener))
    }

    /// The store's folder, by the path that it was opened with. The store follows its folder when
    /// that gets another name; this does not.
    pub fn path(&self) -> PathBuf {
        self.engine.table_files.folder.path().to_path_buf()
    }

    /// Closes the store, for all its handles: waits for calls under way, makes all writes since it
    /// was opened durable, and ends background work. The folder is then free to be opened again,
    /// here or elsewhere. Snapshots, scans and queues may live on. They, and all calls of this
    /// store, give [`Error::Closed`] from then on, and no file is touched any more. Calls that wait
    /// in [`flush`](Db::flush), [`settle`](Db::settle) or [`compact`](Db::compact) end with that
    /// error. Their flushes and merges are not waited for: the next open goes on with the work.
    ///
    /// Closing a store that is closed does nothing. Dropping the last handle closes it too, but
    /// cannot tell what went wrong. Must not be called by an iterator that is being ingested, or by
    /// a follower: it would wait for itself.
    ///
    /// # Errors
    /// What kept writes from becoming durable. The store is closed all the same; [`sync`](Db::sync)
    /// before tells the same, and can be tried again. `Forked`: this process has not opened the
    /// store.
    pub fn close(&self) -> Result<()> {
        self.owner.close()
    }
}

/// Keeps options of the default key space that were set now.
fn keep_options(engine: &Engine, options: &Options) -> Result<()> {
    let mut manifest = engine.manifest();
    let kept = &manifest.layout().keyspaces[&KeyspaceId::DEFAULT].record.options;
    let new = options.to_keep(kept)?;
    if new.is_empty() {
        return Ok(());
    }
    let edit = KeyspaceEdit { options: new, ..KeyspaceEdit::default() };
    let keyspaces = vec![(KeyspaceId::DEFAULT, edit)];
    manifest.append(&StoreEdit { keyspaces, ..StoreEdit::default() })
}

impl std::fmt::Debug for Db {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Db")
            .field("path", &self.engine.table_files.folder.path())
            .finish_non_exhaustive()
    }
}

const _: () = {
    const fn is_free<T: Send + 'static>() {}
    is_free::<Db>();
    is_free::<Snapshot>();
    is_free::<Scan>();
    is_free::<Queue>();
    is_free::<Batch>();
    is_free::<Value>();
    is_free::<Error>();
    const fn is_shared<T: std::marker::Sync>() {}
    is_shared::<Db>();
    is_shared::<Snapshot>();
    is_shared::<Value>();
    is_shared::<Error>();
};

impl Readable for Db {
    fn value_of(&self, key: &[u8]) -> Result<Option<Value>> {
        self.get(key)
    }

    fn scan_of(&self, bounds: KeyBounds) -> Scan {
        self.range(bounds)
    }

    fn merged_of(
        &self,
        key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Vec<u8>> {
        self.engine.tree.merged(key, existing, operands)
    }
}

impl Engine {
    /// Writes everything in memory to a run on disk.
    pub(crate) fn flush_all(&self) -> Result<()> {
        self.commit.writer().seal(self)?;
        self.flush_sealed()
    }

    /// Flushes the memtables that were full when the store was closed.
    fn flush_recovered(&self) -> Result<()> {
        while self.flush_step()? {}
        Ok(())
    }
}
