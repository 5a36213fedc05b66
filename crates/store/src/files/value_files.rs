//! The value files of a store: which exist, which take values, and which must be synced.
//! ```text
//! put      a file of the pool, or a new one -> appended -> back into the pool, until it is full
//! known    references are counted: of tables, memtables, running puts, readers     none: free
//! sync     the files appended to since the last one -> durable            before the log is synced
//! ```
//! Invariants: a file is in the list of those to sync before anything refers to its new value. A
//! file with a value that anything may refer to is referenced. A free file is never referenced
//! again, so it needs no sync: the list itself keeps no file.

use std::collections::BTreeMap;

use crate::entries::compression::Compression;
use crate::entries::keyspace_id::KeyspaceId;
use crate::entries::value_ref::ValueRef;
use crate::error::{Error, Result};
use crate::files::names::value_name;
use crate::files::value_file::{ValueFile, pieces};
use crate::storage::open_files::OpenFiles;
use crate::storage::open_folder::OpenFolder;
use crate::sync::{Arc, AtomicBool, AtomicU64, AtomicUsize, Mutex, Ordering, Weak, lock};

/// Maximum number of files in a pool. Each has a file descriptor.
const POOLED_MAX: usize = 8;

/// A reference to a value that was put, and the value's file, which this keeps alive.
pub(crate) type PutValue = (ValueRef, Arc<ValueFile>);

/// The value files that the trees of a store share.
pub(crate) struct StoreValues {
    folder: OpenFolder,
    files: Arc<OpenFiles>,
    next_file: Arc<AtomicU64>,
    /// All files that exist, by number. Users hold strong references.
    known: Mutex<BTreeMap<u64, Weak<ValueFile>>>,
    /// Number of files that wait for a sync or are being synced, free ones included.
    pending: AtomicUsize,
    /// The files to sync. A put or a merge holds the file that it has appended to until a memtable
    /// or a table does, also one of an edit in doubt. What a failed write left in the log does not
    /// count, since it was not synced.
    unsynced: Mutex<Vec<Weak<ValueFile>>>,
    /// Held during a sync of these files.
    turn: Mutex<()>,
    /// Why the last put or sync failed, if it did.
    failure: Mutex<Option<String>>,
    has_failed: AtomicBool,
}

impl StoreValues {
    pub(crate) fn new(
        folder: OpenFolder,
        files: Arc<OpenFiles>,
        next_file: Arc<AtomicU64>,
    ) -> Self {
        StoreValues {
            folder,
            files,
            next_file,
            known: Mutex::default(),
            pending: AtomicUsize::new(0),
            unsynced: Mutex::default(),
            turn: Mutex::default(),
            failure: Mutex::default(),
            has_failed: AtomicBool::new(false),
        }
    }

    /// Why values cannot be written now, if they cannot.
    pub(crate) fn failure(&self) -> Option<String> {
        lock(&self.failure).clone()
    }

    /// Notes the outcome of a put or a sync.
    fn note_outcome<T>(&self, done: Result<T>) -> Result<T> {
        if let Err(error) = &done {
            *lock(&self.failure) = Some(format!("a value file has failed: {error}"));
            self.has_failed.store(true, Ordering::Relaxed);
        } else if self.has_failed.load(Ordering::Relaxed) {
            self.has_failed.store(false, Ordering::Relaxed);
            *lock(&self.failure) = None;
        }
        done
    }

    /// The open files through which value files are read.
    pub(crate) fn files(&self) -> &Arc<OpenFiles> {
        &self.files
    }

    /// Returns a file that somebody holds.
    ///
    /// # Errors
    /// `FileMissing`: nobody holds it.
    pub(crate) fn held(&self, number: u64) -> Result<Arc<ValueFile>> {
        let held = lock(&self.known).get(&number).and_then(Weak::upgrade);
        held.ok_or_else(|| {
            let (path, what) = (self.folder.path_of(&value_name(number)), "a value is to be in it");
            Error::FileMissing { path, what: what.into() }
        })
    }

    /// Returns a file that somebody holds, or opens it. Requires: the store is being opened, or
    /// read by a tool, so no file is removed.
    pub(crate) fn found(&self, number: u64) -> Result<Arc<ValueFile>> {
        let mut known = lock(&self.known);
        if let Some(held) = known.get(&number).and_then(Weak::upgrade) {
            if self.files.are_followed() {
                held.measure_again(&self.files)?;
            }
            return Ok(held);
        }
        let needed = Error::needed(self.folder.path_of(&value_name(number)), "values are in it");
        let file = match ValueFile::open(&self.files, number) {
            Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                Err(needed(std::io::ErrorKind::NotFound.into()))
            }
            opened => opened.map(Arc::new),
        }?;
        known.insert(number, Arc::downgrade(&file));
        Ok(file)
    }

    fn create(&self, keyspace: KeyspaceId, compression: Compression) -> Result<Arc<ValueFile>> {
        let number = self.next_file.fetch_add(1, Ordering::Relaxed);
        let file = Arc::new(ValueFile::create(&self.folder, number, keyspace, compression)?);
        lock(&self.known).insert(number, Arc::downgrade(&file));
        Ok(file)
    }

    /// Notes that a file's contents may not be durable. They are made durable before the next log
    /// is created.
    pub(crate) fn doubt(&self, file: &Arc<ValueFile>) {
        file.doubt();
        self.list_unsynced(file);
    }

    /// Has the next sync include the file. A value must be durable before references to it are.
    fn list_unsynced(&self, file: &Arc<ValueFile>) {
        if !file.is_listed.swap(true, Ordering::AcqRel) {
            self.pending.fetch_add(1, Ordering::SeqCst);
            lock(&self.unsynced).push(Arc::downgrade(file));
        }
    }

    /// Makes all values durable that were put before the call.
    ///
    /// # Errors
    /// `Io`: some are not. The next call tries them again.
    #[inline]
    pub(crate) fn sync(&self) -> Result<()> {
        if self.pending.load(Ordering::SeqCst) == 0 { Ok(()) } else { self.sync_listed() }
    }

    #[cold]
    fn sync_listed(&self) -> Result<()> {
        let _turn = lock(&self.turn);
        let files = std::mem::take(&mut *lock(&self.unsynced));
        let mut run = SyncRun { store: self, files };
        self.note_outcome(run.sync())
    }

    /// Returns the files that nobody holds, which can be removed.
    pub(crate) fn free(&self) -> Vec<u64> {
        let known = lock(&self.known);
        let free = known.iter().filter(|(_, file)| file.strong_count() == 0);
        free.map(|(number, _)| *number).collect()
    }

    /// Forgets a free file that was removed.
    pub(crate) fn forget(&self, number: u64) {
        lock(&self.known).remove(&number);
    }

    /// Closes all files for writing. Requires: nobody appends or syncs any more.
    pub(crate) fn close_all(&self) {
        self.all_held().iter().for_each(|file| file.close());
    }

    /// Returns the files that somebody holds.
    pub(crate) fn all_held(&self) -> Vec<Arc<ValueFile>> {
        lock(&self.known).values().filter_map(Weak::upgrade).collect()
    }
}

/// Files that are being synced. When it is dropped, also by a panic, the remaining ones are listed
/// again, except for free ones.
struct SyncRun<'s> {
    store: &'s StoreValues,
    files: Vec<Weak<ValueFile>>,
}

impl SyncRun<'_> {
    fn sync(&mut self) -> Result<()> {
        while let Some(file) = self.files.last() {
            if let Some(file) = file.upgrade() {
                // Anything appended from now on lists the file again.
                file.is_listed.swap(false, Ordering::AcqRel);
                file.make_durable(&self.store.files, &self.store.folder)?;
            }
            self.files.pop();
            self.store.pending.fetch_sub(1, Ordering::SeqCst);
        }
        Ok(())
    }
}

impl Drop for SyncRun<'_> {
    fn drop(&mut self) {
        for file in self.files.drain(..) {
            if let Some(file) = file.upgrade() {
                file.is_listed.store(false, Ordering::Release);
                self.store.list_unsynced(&file);
            }
            self.store.pending.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// The value files of one key space.
pub(crate) struct ValueFiles {
    pub(crate) store: Arc<StoreValues>,
    keyspace: KeyspaceId,
    /// A file with this many bytes takes no more values.
    full_bytes: u64,
    /// For new values.
    new: Pool,
    /// For values that merges move, which have lived long.
    moved: Pool,
}

/// Files that take values, while nobody appends to them.
struct Pool {
    /// None: the pool was given up.
    files: Mutex<Option<Vec<Arc<ValueFile>>>>,
    /// How their values are compressed.
    compression: Compression,
}

impl Pool {
    fn new(compression: Compression) -> Self {
        Pool { files: Mutex::new(Some(Vec::new())), compression }
    }
}

impl ValueFiles {
    /// Creates an empty set of files, which are full with `full_bytes` bytes. The compressions are
    /// for new values and for moved ones.
    pub(crate) fn new(
        store: Arc<StoreValues>,
        keyspace: KeyspaceId,
        full_bytes: u64,
        [put, moved]: [Compression; 2],
    ) -> Self {
        ValueFiles { store, keyspace, full_bytes, new: Pool::new(put), moved: Pool::new(moved) }
    }

    /// Appends a value to a file.
    ///
    /// # Errors
    /// `Io`: a part of the value may remain as garbage.
    pub(crate) fn put(&self, value: &[u8]) -> Result<PutValue> {
        self.store.note_outcome(self.try_put(value))
    }

    fn try_put(&self, value: &[u8]) -> Result<PutValue> {
        loop {
            let file = self.take(&self.new)?;
            if let Some(at) = file.append(value)? {
                self.give_back(&self.new, &file);
                return Ok((at, file));
            }
        }
    }

    fn take(&self, pool: &Pool) -> Result<Arc<ValueFile>> {
        let file = lock(&pool.files).as_mut().and_then(Vec::pop);
        file.map_or_else(|| self.store.create(self.keyspace, pool.compression), Ok)
    }

    /// Copies a value into another file, for a merge. `None`: it is damaged, and stays where it is.
    pub(crate) fn copy(&self, at: &ValueRef) -> Result<Option<PutValue>> {
        let from = self.store.held(at.file)?;
        match self.copy_of(at, &from) {
            Err(error) if error.tells_of_damage() => {
                from.note_damage();
                Ok(None)
            }
            copied => self.store.note_outcome(copied.map(Some)),
        }
    }

    fn copy_of(&self, at: &ValueRef, from: &ValueFile) -> Result<PutValue> {
        let files = self.store.files();
        let ends = from.ends(files, at)?;
        loop {
            let file = self.take(&self.moved)?;
            let (mut chunks, mut checksum) = (pieces(at.len), 0);
            let copied = file.append_pieces(at.len, |_, add| {
                let chunks = chunks.next().expect("the value is as long as its reference tells");
                let read = from.read_chunks(files, (at, &ends), chunks, &mut checksum)?;
                add(&read.bytes[read.range]);
                Ok(())
            });
            let checked = copied.and_then(|copied| {
                from.check_all(at, if at.len == 0 { at.checksum } else { checksum })?;
                Ok(copied)
            });
            match checked {
                Ok(Some(to)) => {
                    self.give_back(&self.moved, &file);
                    return Ok((to, file));
                }
                Ok(None) => {}
                Err(error) => {
                    file.retire();
                    return Err(error);
                }
            }
        }
    }

    /// Appends a value of `len` bytes, which `fill` supplies in pieces, to a file of its own.
    pub(crate) fn put_from(
        &self,
        len: u64,
        fill: impl FnMut(&mut [u8]) -> Result<()>,
    ) -> Result<PutValue> {
        let file = self.store.create(self.keyspace, self.new.compression)?;
        let at = file.append_from(len, fill)?.expect("nobody else knows the file");
        self.give_back(&self.new, &file);
        Ok((at, file))
    }

    /// Lists the file for the next sync. Returns it to the pool, unless it is full.
    fn give_back(&self, pool: &Pool, file: &Arc<ValueFile>) {
        self.store.list_unsynced(file);
        let mut files = lock(&pool.files);
        match &mut *files {
            Some(files) if file.len() < self.full_bytes && files.len() < POOLED_MAX => {
                files.push(Arc::clone(file));
            }
            _ => file.retire(),
        }
    }

    fn each_pool(&self, mut each: impl FnMut(&mut Vec<Arc<ValueFile>>)) {
        let pools = [&self.new, &self.moved].into_iter();
        pools.for_each(|pool| lock(&pool.files).iter_mut().for_each(&mut each));
    }

    /// Gives the pools up, since the key space was dropped. Their files take no more values.
    pub(crate) fn give_up(&self) {
        for pool in [&self.new, &self.moved] {
            let files = lock(&pool.files).take();
            files.into_iter().flatten().for_each(|file| file.retire());
        }
    }

    /// Drops files from the pools that nothing else refers to, apart from logs that are kept.
    pub(crate) fn drop_unreferenced(&self) {
        // A put holds a reference until a table or a memtable has one.
        self.each_pool(|files| files.retain(|file| !file.retire_if_unused()));
    }

    /// Stops a file from taking values, after the current one.
    pub(crate) fn retire(&self, file: &Arc<ValueFile>) {
        self.each_pool(|files| files.retain(|pooled| !Arc::ptr_eq(pooled, file)));
        file.retire();
    }
}
