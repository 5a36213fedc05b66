//! The public API of a store: its handle and the calls on the whole store.

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

/// A handle of an open store. Any thread may use it, and a clone is another handle of the same
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

/// Reads and writes without a named key space go to the default key space.
impl Deref for Db {
    type Target = Keyspace;

    fn deref(&self) -> &Keyspace {
        &self.main
    }
}

impl Db {
    /// Opens the store in a folder. Creates it if there is none and the options allow that.
    ///
    /// # Errors
    /// `Locked`: the store is already open, in this process or another one. `NotAStore`: the folder
    /// holds something else. `Version`: another version of Trommel wrote the store. `Corrupt`: a
    /// file is damaged; the error names the file and the offset.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Db> {
        Db::open_with(path, options, Environment::default())
    }

    /// As [`open`](Db::open), with storage, clock and pauses supplied by the caller.
    pub fn open_with(
        path: impl AsRef<Path>,
        options: Options,
        environment: Environment,
    ) -> Result<Db> {
        let begun = environment.clock.now();
        let (engine, keyspaces) = open::open_store(path.as_ref(), &options, environment)?;
        let engine = Arc::new(engine);
        engine.commit.trees.add(&engine);
        // If a later step fails or panics, dropping the owner closes the store.
        let owner = Arc::new(Owner::new(&engine, keyspaces));
        // On a full disk the options cannot be kept; the next opening has to pass them again.
        if !engine.env.reads_older {
            let _ = keep_options(&engine, &options);
        }
        // If no thread can be started, dropping the owner closes the store.
        owner.each(|engine| {
            if !engine.env.reads_older {
                // These memtables were full in the last session. If the disk is full, they stay in
                // memory and in their logs.
                let _ = engine.flush_recovered();
            }
            engine.start_work()
        })?;
        let (runs, time) = (engine.current.pin().runs.len(), engine.since(begun));
        engine.env.tell(Event::Opened { path: path.as_ref(), runs, time });
        Ok(Db { main: Keyspace { engine: engine.used(), owner } })
    }

    /// As [`open`](Db::open), for any version that this Trommel reads
    /// ([`READ_VERSIONS`](crate::tools::READ_VERSIONS)): to copy its content into another store.
    /// The store is not changed as long as the caller does not write to it, which it must not do.
    ///
    /// # Errors
    /// As [`open`](Db::open). `Version`: the store has a version that cannot be read.
    #[doc(hidden)]
    pub fn open_older(path: impl AsRef<Path>, options: Options) -> Result<Db> {
        let environment = Environment { reads_older: true, ..Environment::default() };
        let options = options.create_if_missing(false).background(Background::Stepped);
        Db::open_with(path, options, environment)
    }

    /// Applies a batch atomically: readers and recovery see either all of it or nothing.
    ///
    /// # Errors
    /// `KeyTooLong`, `ValueTooLong`, `BatchTooLong`, `InvertedRange`: nothing was written. `Io`:
    /// the batch is not visible now; after a crash it is there as a whole or not at all. `Stopped`:
    /// as `Io`, because a flush failed. The flush is retried, and writes continue once it succeeds.
    /// `LockTimeout`: a transaction has locked a key; nothing was written.
    pub fn write(&self, batch: impl Into<Batch>) -> Result<()> {
        let sync = self.engine.table_files.options.sync == SyncPolicy::Always;
        self.owner.write(&mut Write::of(batch.into()), sync).map(|_| ())
    }

    /// As [`write`](Db::write), but the batch is durable when this returns, whatever the options
    /// say.
    pub fn write_synced(&self, batch: impl Into<Batch>) -> Result<()> {
        self.owner.write(&mut Write::of(batch.into()), true).map(|_| ())
    }

    /// Makes all earlier writes durable.
    pub fn sync(&self) -> Result<()> {
        let _call = self.engine.life().enter()?;
        let durable = self.engine.commit.writer().make_durable(&self.engine);
        self.engine.writer_is_free();
        durable
    }

    /// Returns a snapshot of the current state, to be read while writes continue. Merges keep the
    /// entries that it sees.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            registered: self.engine.snapshots.register(),
            tree: Arc::clone(&self.engine.tree),
        }
    }

    /// Flushes the memtables of every key space to runs on disk.
    pub fn flush(&self) -> Result<()> {
        let _call = self.engine.life().enter()?;
        self.owner.each(|engine| engine.flush_all())
    }

    /// Returns a change feed: all committed writes after this sequence number, of all key spaces,
    /// in their order. The feed reads the logs, as far as they are durable: see [`SyncPolicy`]. A
    /// log is removed once tables hold all of its entries, unless
    /// [`kept_log_bytes`](crate::options::OptionValues::kept_log_bytes) keeps it. Batches and
    /// transactions are delivered whole. There may be any number of feeds, and writers never wait
    /// for one.
    ///
    /// To start, take a [snapshot](Db::snapshot), then call [`sync`](Db::sync), so that no crash
    /// can undo what the snapshot sees. Read the snapshot, and ask for the changes after its
    /// [sequence number](Snapshot::sequence). To resume later, even after a crash, store the
    /// sequence number of the last batch together with its effects.
    ///
    /// The feed does not deliver entries that [`ingest`](Keyspace::ingest) has loaded: it ends
    /// there with `Gone`. So it does where a key space without a log gets one, if it has writes.
    /// Neither does it report that a key space was created, renamed or dropped. After a `repair`,
    /// or in a checkpoint, start anew.
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
    /// `Gone`: logs that held some of these writes are gone, or the store never had this number.
    pub fn changes_since(&self, sequence: u64) -> Result<Changes> {
        Changes::since(&self.engine.tree, Sequence(sequence))
    }

    /// Seals the active memtable, so that it waits for a flush.
    #[cfg(test)]
    pub(crate) fn seal(&self) -> Result<()> {
        self.engine.commit.writer().seal(&self.engine)
    }

    /// Merges everything in each key space into one run of its last level, in one merge. Due merges
    /// are not done first, and open ones are cancelled.
    pub fn compact(&self) -> Result<()> {
        let _call = self.engine.life().enter()?;
        self.owner.each(|engine| {
            engine.flush_all()?;
            engine.merge_everything()
        })
    }

    /// As [`compact`](Db::compact), and reports how many of all entries were merged.
    ///
    /// # Errors
    /// `Cancelled`: the listener stopped the call. The merge under way is cancelled; key spaces
    /// merged before it stay merged.
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
            // The merge is done: a request to stop comes too late.
            let _ = steps.reach(before);
        }
        Ok(())
    }

    /// In stepped mode: does one step of background work. Returns false if no work is due.
    pub fn step(&self) -> Result<bool> {
        let _call = self.engine.life().enter()?;
        for engine in self.owner.engines() {
            if engine.step()? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns when no flush or merge is due. Waits for the threads; in stepped mode does the
    /// steps.
    pub fn settle(&self) -> Result<()> {
        let _call = self.engine.life().enter()?;
        self.owner.each(|engine| engine.wait_idle())
    }

    /// Returns the key space with this name, and creates it if it does not exist. The store keeps
    /// the options that are set here; others stay as they were kept before. Changed options take
    /// effect at once: the key space is flushed and its tree is reopened. If the key space is in
    /// use, they take effect at its next opening instead. It is in use while it has a handle,
    /// snapshot or scan, or while a call on the store works on it. The default key space is in use
    /// as long as the store is open.
    ///
    /// # Errors
    /// `Option`: the name or an option is invalid. `Io`: either nothing has changed, or the options
    /// are kept and take effect at the next opening.
    pub fn keyspace(&self, name: impl AsRef<str>, options: KeyspaceOptions) -> Result<Keyspace> {
        self.named(name.as_ref(), &options, true)
    }

    /// Returns the existing key space with this name.
    ///
    /// # Errors
    /// `NoKeyspace`: there is none.
    pub fn open_keyspace(&self, name: impl AsRef<str>) -> Result<Keyspace> {
        self.named(name.as_ref(), &KeyspaceOptions::new(), false)
    }

    fn named(&self, name: &str, options: &KeyspaceOptions, makes: bool) -> Result<Keyspace> {
        let _call = self.engine.life().enter()?;
        if name == DEFAULT_NAME {
            self.owner.keyspaces.set_default(&self.engine, options)?;
            return Ok(self.main.clone());
        }
        let engine = self.owner.keyspaces.named(&self.engine, name, options, makes)?;
        Ok(Keyspace { engine, owner: Arc::clone(&self.owner) })
    }

    /// Returns the names of all key spaces, the default one first.
    pub fn keyspaces(&self) -> Result<Vec<String>> {
        let _call = self.engine.life().enter()?;
        Ok(keyspaces::names(&self.engine))
    }

    /// Drops a key space and all of its entries. From then on its handles, snapshots and scans give
    /// [`Error::KeyspaceDropped`], and so do batches that write into it. Snapshots do not preserve
    /// it.
    ///
    /// # Errors
    /// `NoKeyspace`: no key space has this name. `Option`: it is the default key space. `Io`: after
    /// a crash the key space may exist or not.
    pub fn drop_keyspace(&self, name: impl AsRef<str>) -> Result<()> {
        let _call = self.engine.life().enter()?;
        self.owner.keyspaces.drop_named(&self.engine, name.as_ref())
    }

    /// Renames a key space. Its handles stay valid.
    ///
    /// # Errors
    /// `NoKeyspace`: no key space has this name. `KeyspaceExists`: the new name is taken. `Option`:
    /// it is the default key space, or the new name is invalid.
    pub fn rename_keyspace(&self, from: impl AsRef<str>, to: impl AsRef<str>) -> Result<()> {
        let _call = self.engine.life().enter()?;
        self.owner.keyspaces.rename(&self.engine, from.as_ref(), to.as_ref())
    }

    /// Creates a second store in `dir`, which must be new or empty. It holds all writes that are
    /// visible now. This is cheap: the stores share tables by hard links, or by copies if the
    /// folder is on another file system. The content of memtables is written as a log. Writes,
    /// flushes and merges continue meanwhile.
    ///
    /// If the call is interrupted, the folder is not recognized as a store, and this store is
    /// unchanged. Files are immutable, so neither store can harm the other. But a disk that damages
    /// a shared file damages it for both. For a backup, copy the checkpoint to another disk.
    ///
    /// # Errors
    /// `NotEmpty`: the folder has files. `Io`: a disk operation failed.
    pub fn checkpoint(&self, dir: impl AsRef<Path>) -> Result<()> {
        self.checkpoint_with_progress(dir, &mut unheard)
    }

    /// As [`checkpoint`](Db::checkpoint), and reports how many of all tables are in place.
    ///
    /// # Errors
    /// `Cancelled`: the listener stopped the call. The files made so far are removed.
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

    /// Gives `target` the files of a store that holds all visible writes. Returns the sequence
    /// number of the last one.
    pub(crate) fn give_files(
        &self,
        target: &mut dyn crate::tools::checkpoint::Target,
        listener: &mut OnProgress<'_>,
    ) -> Result<u64> {
        let _call = self.engine.life().enter()?;
        let (main, keyspaces) = (&self.engine, &self.owner.keyspaces);
        let steps = &mut Steps::new(listener);
        let filled = crate::tools::checkpoint::fill(main, keyspaces, target, steps);
        filled.map(|last| last.0)
    }

    /// Reads and checks every byte of every table and log, and checks every key against the guard.
    pub fn verify(&self) -> Result<VerifyReport> {
        self.verify_with_progress(&mut unheard)
    }

    /// As [`verify`](Db::verify), and reports its progress.
    ///
    /// # Errors
    /// `Cancelled`: the listener stopped the call.
    pub fn verify_with_progress(&self, listener: &mut OnProgress<'_>) -> Result<VerifyReport> {
        let _call = self.engine.life().enter()?;
        let trees: Vec<_> = self.owner.engines().iter().map(|it| Arc::clone(&it.tree)).collect();
        crate::tools::verify::verify(&trees, &mut Steps::new(listener))
    }

    /// Returns the path with which the store was opened. If the folder is renamed, the store keeps
    /// using it, but this path does not change.
    pub fn path(&self) -> PathBuf {
        self.engine.table_files.folder.path().to_path_buf()
    }

    /// Closes the store for all its handles. Waits for running calls, makes all writes of this
    /// session durable, and ends background work. Then the folder can be opened again, in this
    /// process or another one.
    ///
    /// Snapshots, scans and queues may outlive the store. From then on they and all calls on this
    /// store give [`Error::Closed`], and no file is touched any more. Calls that wait in
    /// [`flush`](Db::flush), [`settle`](Db::settle) or [`compact`](Db::compact) end with that
    /// error. Closing does not wait for their flushes and merges: the next opening resumes the
    /// work.
    ///
    /// Closing a closed store does nothing. Dropping the last handle closes the store too, but
    /// cannot report an error. Neither an iterator that is being ingested nor a follower may call
    /// this: it would wait for itself.
    ///
    /// # Errors
    /// Whatever kept writes from becoming durable. The store is closed nevertheless. Calling
    /// [`sync`](Db::sync) first gives the same error, and can be retried. `Forked`: another process
    /// opened the store.
    pub fn close(&self) -> Result<()> {
        self.owner.close()
    }
}

/// Keeps, in the manifest, the options of the default key space that were set at this opening.
fn keep_options(engine: &Engine, options: &Options) -> Result<()> {
    let id = KeyspaceId::DEFAULT;
    let record = Arc::clone(&engine.manifest().layout().keyspaces[&id].record);
    keyspaces::end_feeds(engine, id, (record.has_log(), engine.has_log()))?;
    let new = options.to_keep(&record.options)?;
    if new.is_empty() {
        return Ok(());
    }
    let edit = KeyspaceEdit { options: new, ..KeyspaceEdit::default() };
    let keyspaces = vec![(id, edit)];
    engine.manifest().append(&StoreEdit { keyspaces, ..StoreEdit::default() })
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
    /// Flushes everything in memory to a run on disk.
    pub(crate) fn flush_all(&self) -> Result<()> {
        self.commit.writer().seal(self)?;
        self.flush_sealed()
    }

    /// Flushes the memtables that were full when the store was last closed.
    fn flush_recovered(&self) -> Result<()> {
        while self.flush_step()? {}
        Ok(())
    }
}
