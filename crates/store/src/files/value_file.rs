//! A value file: records are appended until it is retired. Then it is only read.
//! ```text
//! put      record -> appended, by one writer at a time            retired: nothing is appended
//! sync     concurrent with appends; makes durable what was appended before it
//! failed   a sync has failed -> retired -> rewritten: records copied, checked, synced, renamed
//! read     see `reads.rs`
//! ```
//! Invariants: no byte is overwritten. A file is retired if it may have a second name, or existed
//! when the store was opened. After a failed sync the system may have dropped unwritten pages, and
//! the next sync may succeed all the same. So the next sync is not trusted: the file is rewritten.

use std::io::ErrorKind;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::entries::compression::{Compression, Packer, Unreadable};
use crate::entries::keyspace_id::KeyspaceId;
use crate::entries::value_ref::ValueRef;
use crate::error::{Error, Result};
use crate::files::names::value_name;
use crate::storage::open_files::OpenFiles;
use crate::storage::open_folder::OpenFolder;
use crate::storage::read_queue::ReadBuffer;
use crate::storage::traits::{Append, ReadAt, Syncer};
use crate::sync::{Arc, AtomicBool, AtomicU64, Mutex, OnceLock, Ordering, lock, try_lock};

pub(crate) mod format;
pub(crate) mod pending_read;
mod reads;
mod record_maker;
pub(crate) mod record_reader;
#[cfg(test)]
mod tests;

use format::{CHUNK_BYTES, HEAD_BYTES, HEADER_BYTES, Head, chunk_count, record_bytes};
use record_maker::RecordMaker;
use record_reader::{Ended, Wrong, walk};

/// Bytes that are appended, copied or checked at once.
pub(crate) const PIECE_BYTES: usize = 512 << 10;
const PIECE_CHUNKS: usize = PIECE_BYTES / CHUNK_BYTES;

/// Maximum bytes of values that are read ahead. A single value that the system reads may be longer.
pub(crate) const AHEAD_BYTES_MAX: u64 = 2 << 20;

/// A value file, open for reads and perhaps for appends.
pub(crate) struct ValueFile {
    number: u64,
    path: PathBuf,
    keyspace: KeyspaceId,
    reader: OnceLock<Arc<dyn ReadAt>>,
    /// The reader of the rewritten file, which has replaced this one.
    rewritten: OnceLock<Arc<dyn ReadAt>>,
    writing: Mutex<Writing>,
    /// The length of whole records, and the durable part of it.
    len: AtomicU64,
    durable: AtomicU64,
    /// Held during a sync.
    syncing: Mutex<Syncing>,
    /// Whether it is in the list of files to sync.
    pub(super) is_listed: AtomicBool,
    /// Whether one of its values could not be moved.
    is_damaged: AtomicBool,
    /// Whether a log holds it for change feeds.
    is_held_by_log: AtomicBool,
}

/// The state of its writer.
#[derive(Default)]
struct Writing {
    /// `None`: another process wrote it, or it is retired, durable and closed.
    file: Option<Box<dyn Append>>,
    /// Whether nothing is appended any more.
    is_retired: bool,
    /// Compresses its values.
    packer: Option<Packer>,
}

#[derive(Default)]
struct Syncing {
    /// Syncs concurrently with appends. `None`: the storage cannot, or the file is closed.
    syncer: Option<Arc<dyn Syncer>>,
    /// Whether its name is durable.
    has_name: bool,
    /// Whether it must be rewritten: a sync has failed, or it may never have been synced.
    has_failed: bool,
    /// Whether it existed when the store was opened. Then it may have damaged records that nothing
    /// refers to, so it is copied byte by byte.
    was_found: bool,
}

impl ValueFile {
    /// Creates an empty file, for values with this compression. After an error the file does not
    /// exist.
    pub(super) fn create(
        folder: &OpenFolder,
        number: u64,
        keyspace: KeyspaceId,
        compression: Compression,
    ) -> Result<ValueFile> {
        let name = value_name(number);
        let (mut file, path) = (folder.create(&name)?, folder.path_of(&name));
        if let Err(error) = file.append(&format::header(number, keyspace)) {
            drop(file);
            let _ = folder.remove(&name);
            return Err(Error::io(path)(error));
        }
        let (syncer, len) = (file.syncer(), HEADER_BYTES as u64);
        let packs = compression != Compression::None;
        let packer = packs.then(|| Packer::new(compression, None));
        let writing = Writing { file: Some(file), is_retired: false, packer };
        Ok(ValueFile {
            number,
            path,
            keyspace,
            reader: OnceLock::new(),
            rewritten: OnceLock::new(),
            writing: Mutex::new(writing),
            len: AtomicU64::new(len),
            durable: AtomicU64::new(0),
            syncing: Mutex::new(Syncing { syncer, ..Syncing::default() }),
            is_listed: AtomicBool::new(false),
            is_damaged: AtomicBool::new(false),
            is_held_by_log: AtomicBool::new(false),
        })
    }

    /// Opens a file that existed when the store was opened.
    pub(super) fn open(files: &Arc<OpenFiles>, number: u64) -> Result<ValueFile> {
        let (reader, path) = files.file(&value_name(number))?;
        let len = reader.size().map_err(Error::io(&path))?;
        let mut header = [0; HEADER_BYTES];
        reader.read_at(0, &mut header).map_err(|error| failed(&path, 0, error))?;
        let decoded = format::decode_header(&header, number);
        let (found, keyspace) =
            decoded.map_err(|it| Error::corrupt(&path, it.at as u64, it.what))?;
        if found != format::VERSION {
            return Err(Error::Version { path, found, known: format::VERSION });
        }
        let syncing = Syncing { has_name: true, was_found: true, ..Syncing::default() };
        Ok(ValueFile {
            number,
            path,
            keyspace,
            reader: OnceLock::from(reader),
            rewritten: OnceLock::new(),
            writing: Mutex::new(Writing { is_retired: true, ..Writing::default() }),
            len: AtomicU64::new(len),
            durable: AtomicU64::new(len),
            syncing: Mutex::new(syncing),
            is_listed: AtomicBool::new(false),
            is_damaged: AtomicBool::new(false),
            is_held_by_log: AtomicBool::new(false),
        })
    }

    /// Updates the length, since the process that writes the file may have appended to it.
    pub(super) fn measure_again(&self, files: &Arc<OpenFiles>) -> Result<()> {
        let size = self.reader(files)?.size().map_err(Error::io(&self.path))?;
        self.len.fetch_max(size, Ordering::AcqRel);
        Ok(())
    }

    /// Marks the file to be rewritten, since what it had when it was opened may not be durable.
    /// Requires: nothing else refers to the file.
    pub(super) fn doubt(&self) {
        lock(&self.syncing).has_failed = true;
        self.durable.store(0, Ordering::Release);
    }

    /// Notes that one of its values could not be moved, and stays there.
    pub(crate) fn note_damage(&self) {
        self.is_damaged.store(true, Ordering::Relaxed);
    }

    /// Whether `note_damage` was called.
    pub(crate) fn is_damaged(&self) -> bool {
        self.is_damaged.load(Ordering::Relaxed)
    }

    pub(crate) fn set_held_by_log(&self, is_held: bool) {
        self.is_held_by_log.store(is_held, Ordering::Relaxed);
    }

    /// Retires the file if only the caller holds it, and perhaps a log. Returns whether it did.
    pub(super) fn retire_if_unused(self: &Arc<Self>) -> bool {
        let of_log = usize::from(self.is_held_by_log.load(Ordering::Relaxed));
        let is_unused = Arc::strong_count(self) <= 1 + of_log;
        if is_unused {
            self.retire();
        }
        is_unused
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The key space of its values.
    pub(crate) fn keyspace(&self) -> KeyspaceId {
        self.keyspace
    }

    /// The length of the header and all whole records, in bytes.
    pub(crate) fn len(&self) -> u64 {
        self.len.load(Ordering::Acquire)
    }

    /// Ends appends, after the current one.
    pub(crate) fn retire(&self) {
        self.end_appends();
        // Does not wait for a running sync, which closes the file itself.
        if let Some(mut syncing) = try_lock(&self.syncing) {
            self.close_if_done(&mut syncing);
        }
    }

    /// Closes the handles for writing, even if something is not durable. Requires: nobody appends
    /// or syncs any more.
    pub(super) fn close(&self) {
        self.end_appends();
        lock(&self.syncing).syncer = None;
        lock(&self.writing).file = None;
    }

    fn end_appends(&self) {
        let mut writing = lock(&self.writing);
        (writing.is_retired, writing.packer) = (true, None);
    }

    /// Appends a value. `None`: the file is retired. An error retires the file, and leaves a part
    /// of the value as garbage.
    pub(super) fn append(&self, value: &[u8]) -> Result<Option<ValueRef>> {
        let mut rest = value;
        self.append_pieces(value.len() as u64, |len, add| {
            let (piece, later) = rest.split_at(len);
            rest = later;
            add(piece);
            Ok(())
        })
    }

    /// As `append`, for a value of `len` bytes that `fill` supplies in pieces.
    pub(super) fn append_from(
        &self,
        len: u64,
        mut fill: impl FnMut(&mut [u8]) -> Result<()>,
    ) -> Result<Option<ValueRef>> {
        let mut piece = Vec::new();
        self.append_pieces(len, |len, add| {
            piece.resize(len, 0);
            fill(&mut piece)?;
            add(&piece);
            Ok(())
        })
    }

    /// As `append`, for a value of `len` bytes. `give(n, add)` calls `add` with the next `n` bytes.
    /// So a caller that has them in memory need not copy them.
    pub(super) fn append_pieces(
        &self,
        len: u64,
        mut give: impl FnMut(usize, &mut dyn FnMut(&[u8])) -> Result<()>,
    ) -> Result<Option<ValueRef>> {
        let mut writing = lock(&self.writing);
        let Writing { file: Some(file), is_retired: is_retired @ false, packer } = &mut *writing
        else {
            return Ok(None);
        };
        let place = (self.number, self.len());
        let mut append = || {
            let mut maker = RecordMaker::new(place, len, packer.as_mut());
            let mut left = len;
            let mut out = Vec::with_capacity(RecordMaker::bytes_max(len.min(PIECE_BYTES as u64)));
            while left > 0 {
                let piece = left.min(PIECE_BYTES as u64) as usize;
                give(piece, &mut |bytes| maker.add(bytes, &mut out))?;
                left -= piece as u64;
                if left > 0 {
                    file.append(&out).map_err(Error::io(&self.path))?;
                    out.clear();
                }
            }
            let at = maker.end(&mut out);
            file.append(&out).map_err(Error::io(&self.path))?;
            Ok(at)
        };
        // Set first, also in case of a panic: until the record is whole, the end of the file is
        // unknown.
        *is_retired = true;
        let at = append()?;
        *is_retired = false;
        self.len.store(at.offset + record_bytes(&at), Ordering::Release);
        Ok(Some(at))
    }

    /// Makes everything appended so far durable, and the file's name.
    ///
    /// # Errors
    /// `Io`: what is not durable may never be. The next call rewrites the file.
    pub(super) fn make_durable(&self, files: &Arc<OpenFiles>, folder: &OpenFolder) -> Result<()> {
        let mut syncing = lock(&self.syncing);
        self.sync_or_rewrite(files, folder, &mut syncing)?;
        self.close_if_done(&mut syncing);
        Ok(())
    }

    fn sync_or_rewrite(
        &self,
        files: &Arc<OpenFiles>,
        folder: &OpenFolder,
        syncing: &mut Syncing,
    ) -> Result<()> {
        let upto = self.len();
        if upto > self.durable.load(Ordering::Acquire) {
            if syncing.has_failed {
                self.rewrite(folder, syncing)?;
                // The old file may have lost pages, so it is not read any more.
                if let Ok((reader, _)) = files.file(&value_name(self.number)) {
                    let _ = self.rewritten.set(reader);
                }
                return Ok(());
            }
            syncing.has_failed = true;
            self.sync(syncing)?;
            syncing.has_failed = false;
            self.durable.store(upto, Ordering::Release);
        }
        if !syncing.has_name {
            folder.sync()?;
            syncing.has_name = true;
        }
        Ok(())
    }

    /// Closes the handles for writing once they are no longer needed. A store may have more value
    /// files than a process may open.
    fn close_if_done(&self, syncing: &mut Syncing) {
        // Does not wait for a running append.
        let Some(mut writing) = try_lock(&self.writing) else { return };
        if writing.is_retired && self.len() == self.durable.load(Ordering::Acquire) {
            (writing.file, syncing.syncer) = (None, None);
        }
    }

    fn sync(&self, syncing: &Syncing) -> Result<()> {
        let synced = match &syncing.syncer {
            Some(syncer) => syncer.sync(),
            None => lock(&self.writing).file.as_mut().map_or(Ok(()), |file| file.sync()),
        };
        synced.map_err(Error::io(&self.path))
    }

    /// Copies the file into a new one, which replaces it. Records that this process wrote are
    /// checked meanwhile, since some of their pages may be lost. Requires: no other thread syncs
    /// it.
    fn rewrite(&self, folder: &OpenFolder, syncing: &mut Syncing) -> Result<()> {
        self.end_appends();
        let (name, new) = (value_name(self.number), format!("{}.new", value_name(self.number)));
        let copied = folder.create_anew(&new).and_then(|mut file| match syncing.was_found {
            true => self.copy_as_it_is(folder, &mut *file),
            false => self.copy_records(folder, &mut *file),
        });
        let renamed = copied.and_then(|()| folder.rename(&new, &name));
        if renamed.is_err() {
            let _ = folder.remove(&new);
        }
        renamed?;
        syncing.has_name = false;
        folder.sync()?;
        self.durable.store(self.len(), Ordering::Release);
        (syncing.has_name, syncing.has_failed) = (true, false);
        Ok(())
    }

    fn copy_as_it_is(&self, folder: &OpenFolder, new: &mut dyn Append) -> Result<()> {
        let (old, len) = (folder.open_file(&value_name(self.number))?, self.len());
        for offset in (0..len).step_by(PIECE_BYTES) {
            // A hole at the end has no value, and may be longer than the disk.
            let data = old.data_after(offset).map_err(|error| failed(&self.path, offset, error))?;
            if data.is_none() {
                break;
            }
            let span = offset..len.min(offset + PIECE_BYTES as u64);
            let bytes = read_span(&*old, &self.path, &span)?;
            new.append(&bytes).map_err(Error::io(&self.path))?;
        }
        new.sync().map_err(Error::io(&self.path))
    }

    fn copy_records(&self, folder: &OpenFolder, new: &mut dyn Append) -> Result<()> {
        let old = folder.open_file(&value_name(self.number))?;
        let wrong = |offset, what| Error::corrupt(&self.path, offset, what);
        let mut header = [0; HEADER_BYTES];
        old.read_at(0, &mut header).map_err(|error| failed(&self.path, 0, error))?;
        format::decode_header(&header, self.number).map_err(|it| wrong(0, it.what))?;
        new.append(&header).map_err(Error::io(&self.path))?;
        let (mut offset, len) = (HEADER_BYTES as u64, self.len());
        while offset < len {
            let place = (self.number, offset);
            let mut head = [0; HEAD_BYTES];
            old.read_at(offset, &mut head).map_err(|error| failed(&self.path, offset, error))?;
            let decoded = Head::decode(&head, place).map_err(|it| wrong(offset, it.what))?;
            new.append(&head).map_err(Error::io(&self.path))?;
            let read = |span| read_span(&*old, &self.path, &span).map(Some);
            let copy = |bytes: &[u8]| new.append(bytes).map_err(Error::io(&self.path));
            offset = walk(place, decoded, read, copy).map_err(|ended| match ended {
                Ended::Failed(error) => error,
                Ended::Damaged(wrong) => self.wrong(wrong),
            })?;
        }
        new.sync().map_err(Error::io(&self.path))
    }

    /// Returns the error for what is wrong with a value.
    fn wrong(&self, (offset, what): Wrong) -> Error {
        match what {
            Unreadable::Damaged(what) => Error::corrupt(&self.path, offset, what),
            Unreadable::Lacks(feature) => {
                let what = format!("the value at {offset}").into();
                Error::FeatureMissing { path: self.path.clone(), what, feature }
            }
        }
    }

    /// Returns the reader of the file.
    pub(crate) fn reader(&self, files: &Arc<OpenFiles>) -> Result<&Arc<dyn ReadAt>> {
        if let Some(reader) = self.rewritten.get() {
            return Ok(reader);
        }
        if self.reader.get().is_none() {
            let (reader, _) = files.file(&value_name(self.number))?;
            let _ = self.reader.set(reader);
        }
        Ok(self.reader.get().expect("it was set"))
    }
}

/// Splits the chunks of a value of `len` bytes into pieces. There is at least one piece, which has
/// the head.
pub(crate) fn pieces(len: u64) -> impl Iterator<Item = Range<u64>> {
    let count = chunk_count(len);
    let step = PIECE_CHUNKS as u64;
    (0..count.max(1)).step_by(PIECE_CHUNKS).map(move |first| first..(first + step).min(count))
}

fn read_span(file: &dyn ReadAt, path: &Path, span: &Range<u64>) -> Result<ReadBuffer> {
    let len = usize::try_from(span.end - span.start).unwrap_or(usize::MAX);
    file.read(span.start, len).map_err(|error| failed(path, span.start, error))
}

fn failed(path: &Path, offset: u64, error: std::io::Error) -> Error {
    match error.kind() {
        ErrorKind::UnexpectedEof => Error::corrupt(path, offset, "the file ends too early"),
        ErrorKind::NotFound => Error::needed(path, "values are in it")(error),
        _ => Error::io(path)(error),
    }
}
