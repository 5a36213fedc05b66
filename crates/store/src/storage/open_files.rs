//! Limits the open files of tables: a table stays open, while its file handle is closed and
//! reopened as needed.
//! ```text
//! read     handle open? -yes-> read                              one load of a switch, no lock
//!             '-no-> make room -> open the file by its name -> read
//!
//! clock    [ a* b c* d ]    *: read since it came here. a loses its mark and goes to the end;
//!                           b is closed
//! ```
//! Invariants: only `OpenFiles::open` opens handles, and each is counted until it is closed. No
//! more are open than the limit allows, except for readers that have waited in vain. Rings hold at
//! most half of them, so that other readers need not wait for slow collectors. A thread that is
//! reading a handle keeps it open, even if it is closed meanwhile. No destructor here takes a lock.
//!
//! A file that another process has removed could not be reopened. So it is not closed to make room,
//! and does not count; there are at most as many of these as the limit. (A file with a second name,
//! as in a checkpoint, counts as usual.)

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::storage::exhausted;
use crate::storage::io_mode::Access;
use crate::storage::life::Life;
use crate::storage::open_folder::OpenFolder;
use crate::storage::read_queue::{ReadBuffer, ReadQueue, one_by_one};
use crate::storage::traits::ReadAt;
use crate::storage::traits::ReadAtWrapper;
use crate::sync::{
    Arc, AtomicBool, AtomicU64, AtomicUsize, Condvar, Mutex, Ordering, Switch, Weak, lock, wait_for,
};

/// How long a reader waits for others to finish. (They may be waiting for threads that wait for
/// this one.)
const WAIT_MAX: Duration = Duration::from_millis(50);

/// The open table files, and how often they were reopened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileStats {
    /// The number of open table files.
    pub open: u64,
    /// The limit.
    pub max: u64,
    /// How often a file was reopened after it had been closed to make room. Only grows.
    pub reopened: u64,
}

/// The open files of one store's tables.
pub(crate) struct OpenFiles {
    folder: OpenFolder,
    access: Access,
    max: usize,
    /// Handles that are open or about to be.
    open: AtomicUsize,
    /// Those of them whose files are known to have no name.
    nameless: AtomicUsize,
    /// Handles that rings hold.
    lent: AtomicUsize,
    reopened: AtomicU64,
    /// Readers that wait until a handle is closed or no longer read.
    waiting: AtomicUsize,
    freed: Condvar,
    /// The open files, in the order in which the clock examines them.
    clock: Mutex<VecDeque<Weak<TableFile>>>,
    /// Whether another process writes the files, and removes those that it no longer needs.
    are_followed: AtomicBool,
}

/// The purpose of an open file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HandleFor {
    /// A thread, for one read.
    Reader,
    /// A ring, until the read is collected.
    Ring,
}

impl OpenFiles {
    /// Returns the state of the store that the files belong to.
    pub(crate) fn life(&self) -> Arc<Life> {
        Arc::clone(self.folder.life())
    }

    /// Manages the files of a folder, with a limit of `max`, at least one.
    pub(crate) fn new(folder: OpenFolder, access: Access, max: usize) -> Arc<OpenFiles> {
        let files = Arc::new(OpenFiles {
            folder,
            access,
            max: max.max(1),
            open: AtomicUsize::new(0),
            nameless: AtomicUsize::new(0),
            lent: AtomicUsize::new(0),
            reopened: AtomicU64::new(0),
            waiting: AtomicUsize::new(0),
            freed: Condvar::new(),
            clock: Mutex::default(),
            are_followed: AtomicBool::new(false),
        });
        exhausted::join(&files);
        files
    }

    /// Marks the files as written by another process: they may grow, and may be gone when reopened.
    pub(crate) fn follow(&self) {
        self.are_followed.store(true, Ordering::Relaxed);
    }

    /// Whether another process writes the files.
    pub(crate) fn are_followed(&self) -> bool {
        self.are_followed.load(Ordering::Relaxed)
    }

    pub(crate) fn stats(&self) -> FileStats {
        let open = self.open.load(Ordering::Relaxed) as u64;
        let reopened = self.reopened.load(Ordering::Relaxed);
        FileStats { open, max: self.max as u64, reopened }
    }

    /// Opens a table's file, and returns it with its path for errors. Its handle is closed and
    /// reopened as needed.
    pub(crate) fn file(self: &Arc<Self>, name: &str) -> Result<(Arc<dyn ReadAt>, PathBuf)> {
        let path = self.folder.path_of(name);
        let file = TableFile::closed(self, name);
        file.open(HandleFor::Reader, false).map_err(Error::io(&path))?;
        Ok((file, path))
    }

    /// Opens a file, for the first time or again.
    fn open(self: &Arc<Self>, name: &str, wanted: HandleFor) -> io::Result<Arc<Handle>> {
        self.make_room(wanted)?;
        let (files, is_nameless) = (Arc::clone(self), AtomicBool::new(false));
        let counted = CountedHandle { files, is_nameless };
        let file = self.folder.open_with(name, self.access)?;
        Ok(Arc::new(Handle { file, borrowers: AtomicUsize::new(0), counted }))
    }

    /// Counts one more handle as soon as the limit allows it.
    fn make_room(&self, wanted: HandleFor) -> io::Result<()> {
        let (mut is_waiting, mut has_waited) = (false, false);
        let mut clock = lock(&self.clock);
        while self.open_with_names() >= self.max && !has_waited {
            if let Some(closed) = self.take_idle(&mut clock, true) {
                drop(clock);
                drop(closed);
                clock = lock(&self.clock);
            } else if wanted == HandleFor::Ring {
                return Err(io::ErrorKind::WouldBlock.into());
            } else if !is_waiting {
                // From now on, a reader that finishes notifies this one. Another look finds those
                // that finished before.
                self.waiting.fetch_add(1, Ordering::SeqCst);
                is_waiting = true;
            } else {
                (clock, has_waited) = wait_for(&self.freed, &self.clock, clock, WAIT_MAX);
            }
        }
        self.waiting.fetch_sub(usize::from(is_waiting), Ordering::SeqCst);
        self.open.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    fn open_with_names(&self) -> usize {
        let nameless = self.nameless.load(Ordering::SeqCst);
        self.open.load(Ordering::SeqCst).saturating_sub(nameless)
    }

    /// Wakes waiting readers after a handle was closed or is no longer read. (It takes no lock. A
    /// reader that misses this call looks again by itself.)
    fn tell_freed(&self) {
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.freed.notify_all();
        }
    }

    /// Adds an opened file to the clock, so that it can be closed to make room.
    fn keep(&self, file: Weak<TableFile>) {
        let mut clock = lock(&self.clock);
        clock.push_back(file);
        // Closed tables have left their entries here.
        if clock.len() > 2 * self.open.load(Ordering::Relaxed) + 64 {
            clock.retain(|file| file.strong_count() > 0);
        }
    }

    /// Closes all files. A file that is being read is closed after the read. Requires: no more
    /// files are opened.
    pub(crate) fn close_all(&self) {
        let files = std::mem::take(&mut *lock(&self.clock));
        for file in files.iter().filter_map(Weak::upgrade) {
            file.handle.store(Arc::new(None));
        }
    }

    /// Closes some files that are not being read. False: there are none.
    pub(crate) fn close_idle(&self) -> bool {
        // In a forked child, the lock may be held for ever.
        if self.folder.life().is_forked() {
            return false;
        }
        let mut clock = lock(&self.clock);
        let count = clock.len().div_ceil(4);
        let closed: Vec<_> = (0..count).map_while(|_| self.take_idle(&mut clock, false)).collect();
        drop(clock);
        !closed.is_empty()
    }

    /// Takes a handle out of the clock and out of its file: one that was not read recently and that
    /// no thread is reading. With `keeps`, never one that could not be reopened. None: there is no
    /// such handle. Dropping the handle closes it.
    fn take_idle(
        &self,
        clock: &mut VecDeque<Weak<TableFile>>,
        keeps: bool,
    ) -> Option<Arc<Option<Arc<Handle>>>> {
        for _ in 0..2 * clock.len() {
            let Some(file) = clock.pop_front()?.upgrade() else { continue };
            let held = file.handle.hold();
            let handle = held.as_ref().as_ref();
            let is_lent = handle.is_some_and(|handle| Arc::strong_count(handle) > 1);
            let is_needed = file.was_read.swap(false, Ordering::Relaxed) || is_lent;
            let is_kept = || handle.is_some_and(|handle| handle.keeps_nameless());
            if is_needed || (keeps && self.are_followed() && is_kept()) {
                clock.push_back(Weak::clone(&file.me));
                continue;
            }
            file.handle.store(Arc::new(None));
            return Some(held);
        }
        None
    }
}

/// One counted handle of a store.
struct CountedHandle {
    files: Arc<OpenFiles>,
    is_nameless: AtomicBool,
}

impl Drop for CountedHandle {
    fn drop(&mut self) {
        self.files.open.fetch_sub(1, Ordering::SeqCst);
        let is_nameless = self.is_nameless.load(Ordering::SeqCst);
        self.files.nameless.fetch_sub(usize::from(is_nameless), Ordering::SeqCst);
        self.files.tell_freed();
    }
}

/// Notifies waiting readers when dropped, that is, after the fields before it.
struct TellsFreed(Arc<OpenFiles>);

impl Drop for TellsFreed {
    fn drop(&mut self) {
        self.0.tell_freed();
    }
}

/// An open file.
struct Handle {
    /// Dropped, and so closed, before the count goes down.
    file: Arc<dyn ReadAt>,
    /// The number of reads in rings that use it.
    borrowers: AtomicUsize,
    counted: CountedHandle,
}

impl Handle {
    /// Whether the file has lost its name, and so stays open without being counted. As many such
    /// files stay open as the limit allows of others.
    fn keeps_nameless(&self) -> bool {
        let (counted, files) = (&self.counted, &self.counted.files);
        if counted.is_nameless.load(Ordering::SeqCst) {
            return true;
        }
        if self.file.has_name() || files.nameless.load(Ordering::SeqCst) >= files.max {
            return false;
        }
        if !counted.is_nameless.swap(true, Ordering::SeqCst) {
            files.nameless.fetch_add(1, Ordering::SeqCst);
        }
        true
    }
}

/// A table's file, which is opened when it is read.
struct TableFile {
    me: Weak<TableFile>,
    name: String,
    files: Arc<OpenFiles>,
    /// None: it is closed. The holder of `opening` sets the handle before the clock has the file.
    /// The thread that takes the file out of the clock clears it.
    handle: Switch<Option<Arc<Handle>>>,
    /// Whether the file was read since it was opened, or since the clock examined it.
    was_read: AtomicBool,
    opening: Mutex<()>,
}

impl TableFile {
    fn closed(files: &Arc<OpenFiles>, name: &str) -> Arc<TableFile> {
        Arc::new_cyclic(|me| TableFile {
            me: Weak::clone(me),
            name: name.to_string(),
            files: Arc::clone(files),
            handle: Switch::new(Arc::new(None)),
            was_read: AtomicBool::new(false),
            opening: Mutex::new(()),
        })
    }

    /// Returns the file's handle, and opens it if needed. `again`: the file was open before.
    fn open(&self, wanted: HandleFor, again: bool) -> io::Result<Arc<Handle>> {
        // A closed store opens nothing. In a forked child, locks may be held for ever.
        let _call = self.files.folder.life().enter_files().map_err(io::Error::other)?;
        let _opening = lock(&self.opening);
        if let Some(handle) = &**self.handle.pin() {
            return Ok(Arc::clone(handle));
        }
        let handle = self.files.open(&self.name, wanted).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound if again && self.files.are_followed() => self.gone(),
            _ => error,
        })?;
        self.files.reopened.fetch_add(u64::from(again), Ordering::Relaxed);
        self.handle.store(Arc::new(Some(Arc::clone(&handle))));
        // A file that is read only once is closed before those that are read repeatedly.
        self.was_read.store(false, Ordering::Relaxed);
        self.files.keep(Weak::clone(&self.me));
        Ok(handle)
    }

    /// Returns the error of a file that was closed to make room, and then removed by its owner.
    #[cold]
    fn gone(&self) -> io::Error {
        let file = Some(self.files.folder.path_of(&self.name).into());
        io::Error::other(Error::Gone { since: 0, first: 0, file })
    }

    #[inline]
    fn note_read(&self) {
        // A shared cache line is written to only if necessary.
        if !self.was_read.load(Ordering::Relaxed) {
            self.was_read.store(true, Ordering::Relaxed);
        }
    }

    fn with<T>(&self, read: impl FnOnce(&dyn ReadAt) -> io::Result<T>) -> io::Result<T> {
        self.note_read();
        match &**self.handle.pin() {
            Some(handle) => read(&*handle.file),
            None => {
                let opened = self.open(HandleFor::Reader, true)?;
                let answer = read(&*opened.file);
                drop(opened);
                self.files.tell_freed();
                answer
            }
        }
    }
}

impl ReadAt for TableFile {
    fn size(&self) -> io::Result<u64> {
        self.with(|file| file.size())
    }

    fn data_after(&self, from: u64) -> io::Result<Option<Range<u64>>> {
        self.with(|file| file.data_after(from))
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.with(|file| file.read_at(offset, buffer))
    }

    fn read(&self, offset: u64, len: usize) -> io::Result<ReadBuffer> {
        self.with(|file| file.read(offset, len))
    }

    fn read_onto(&self, offset: u64, len: usize, bytes: &mut Vec<u8>) -> io::Result<()> {
        self.with(|file| file.read_onto(offset, len, bytes))
    }

    fn reads_ahead(&self) -> Box<dyn ReadQueue> {
        self.with(|file| Ok(file.reads_ahead())).unwrap_or_else(|_| one_by_one())
    }

    fn bypasses_cache(&self) -> bool {
        self.with(|file| Ok(file.bypasses_cache())).unwrap_or(false)
    }

    fn read_many(&self, reads: &mut [(u64, &mut [u8])]) -> io::Result<()> {
        self.with(|file| file.read_many(reads))
    }

    fn will_read(&self, offset: u64, len: u64) -> io::Result<()> {
        self.with(|file| file.will_read(offset, len))
    }

    fn opened(&self) -> io::Result<Option<Arc<dyn ReadAt>>> {
        self.note_read();
        let handle = match &**self.handle.pin() {
            Some(handle) => Arc::clone(handle),
            None => self.open(HandleFor::Ring, true)?,
        };
        Ok(Some(Arc::new(Lent::of(handle)?)))
    }
}

/// A file that a ring reads.
struct Lent {
    handle: Arc<Handle>,
    /// Dropped after the handle.
    _freed: TellsFreed,
}

impl Lent {
    /// `WouldBlock`: rings hold as many files as they may.
    fn of(handle: Arc<Handle>) -> io::Result<Lent> {
        let files = &handle.counted.files;
        if handle.borrowers.fetch_add(1, Ordering::SeqCst) == 0 {
            files.lent.fetch_add(1, Ordering::SeqCst);
        }
        let max = files.max / 2;
        let freed = TellsFreed(Arc::clone(files));
        let lent = Lent { handle, _freed: freed };
        // Dropping an unused handle gives it back.
        if lent.handle.counted.files.lent.load(Ordering::SeqCst) > max {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(lent)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if self.handle.borrowers.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.handle.counted.files.lent.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

impl ReadAtWrapper for Lent {
    fn inner(&self) -> &dyn ReadAt {
        &*self.handle.file
    }
}

#[cfg(test)]
mod tests;
