//! Makes a generation: a checkpoint of which only new files are stored.
//! ```text
//! 000012.table    number, length, end -> 000012-4096-9ab3c1d2.table    stored if it is new
//! log, manifest   made in memory      -> own-000003-MANIFEST           always stored
//! ```
//! The listener hears of each table, and is asked after each piece of a file whether to go on.
//!
//! Files with numbers never change, and a restored store uses numbers of its own: see
//! `tools/own_numbers.rs`. So a file is identified by number, length and the checksum of its end,
//! where its sections' checksums are.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::Path;

use super::folder::FileReader;
use super::generation::{self, Generation, StoredFile};
use super::object_store::ObjectStore;
use super::stored::{Summed, path_of};
use crate::db::Db;
use crate::entries::checksum;
use crate::error::{Error, Result};
use crate::follow::Follower;
use crate::shared::environment::Environment;
use crate::storage::memory::Memory;
use crate::storage::open_folder::OpenFolder;
use crate::storage::traits::{ReadAt, Storage};
use crate::sync::Arc;
use crate::tools::checkpoint::Target;
use crate::tools::progress::{OnProgress, Progress};

/// The bytes at the end of a file that identify it.
const END_BYTES: u64 = 64 << 10;

pub(super) fn back_up(
    objects: &dyn ObjectStore,
    db: &Db,
    environment: &Environment,
    listener: &mut OnProgress<'_>,
) -> Result<Generation> {
    // Otherwise each generation would store the contents of memory anew. If the flush fails, they
    // are stored in the log.
    let _ = db.flush();
    let mut fill = |upload: &mut Upload<'_, '_, '_>, progress: &mut OnProgress<'_>| {
        let last = db.give_files(upload, progress)?;
        // If a power cut took a sequence number, another write would get it, and changes would not
        // fit.
        db.sync().map(|()| last)
    };
    make_with_listener(objects, environment, listener, &mut fill)
}

/// Like `back_up`, for a store that another process writes, as the follower shows it now.
pub(super) fn back_up_followed(
    objects: &dyn ObjectStore,
    follower: &Follower,
    environment: &Environment,
    listener: &mut OnProgress<'_>,
) -> Result<Generation> {
    let mut fill = |upload: &mut Upload<'_, '_, '_>, progress: &mut OnProgress<'_>| {
        follower.give_files(upload, progress)
    };
    make_with_listener(objects, environment, listener, &mut fill)
}

/// Gives an upload all files of a store, and returns the number of its last write.
type FillUpload<'g> = dyn FnMut(&mut Upload<'_, '_, '_>, &mut OnProgress<'_>) -> Result<u64> + 'g;

fn make_with_listener(
    objects: &dyn ObjectStore,
    environment: &Environment,
    listener: &mut OnProgress<'_>,
    fill: &mut FillUpload<'_>,
) -> Result<Generation> {
    let listener = Listener::new(listener);
    let made = make(objects, environment, &listener, fill);
    // An object store reports a cancelled read as an I/O error.
    made.map_err(|error| if listener.has_refused.get() { Error::Cancelled } else { error })
}

fn make(
    objects: &dyn ObjectStore,
    environment: &Environment,
    listener: &Listener<'_, '_>,
    fill: &mut FillUpload<'_>,
) -> Result<Generation> {
    let milliseconds = environment.clock.since_epoch().as_millis() as u64;
    let known = generation::all(objects)?;
    let number = known.last().map_or(1, |newest| newest.number + 1);
    let mut upload = Upload::new(objects, &known, listener)?;
    let sequence = fill(&mut upload, &mut |now| listener.tell(now))?;
    for name in upload.own.list()? {
        let object = format!("own-{number:06}-{name}");
        let source = reader_of(&upload.own, &name, None)?;
        let file = store(objects, (name, object), source, listener)?;
        upload.files.push(file);
    }
    let files = upload.files;
    let generation = Generation { number, sequence, milliseconds, files };
    generation.store(objects)?;
    Ok(generation)
}

/// Passes progress on to the caller's listener, from wherever it is known.
struct Listener<'r, 'l> {
    on_progress: RefCell<&'r mut OnProgress<'l>>,
    now: Cell<Progress>,
    has_refused: Cell<bool>,
}

impl<'r, 'l> Listener<'r, 'l> {
    fn new(listener: &'r mut OnProgress<'l>) -> Self {
        let (on_progress, now) = (RefCell::new(listener), Cell::new(Progress::default()));
        Listener { on_progress, now, has_refused: Cell::new(false) }
    }

    fn tell(&self, now: Progress) -> ControlFlow<()> {
        self.now.set(now);
        let outcome = (self.on_progress.borrow_mut())(now);
        self.has_refused.set(self.has_refused.get() || outcome.is_break());
        outcome
    }
}

/// A reader that asks before each piece whether to go on.
struct Asking<'a, 'r, 'l, R> {
    source: R,
    listener: &'a Listener<'r, 'l>,
}

impl<R: Read> Read for Asking<'_, '_, '_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self.listener.tell(self.listener.now.get()) {
            ControlFlow::Continue(()) => self.source.read(buffer),
            ControlFlow::Break(()) => Err(std::io::Error::other(Error::Cancelled)),
        }
    }
}

/// Receives the files of a store, and stores those that are new.
struct Upload<'o, 'r, 'l> {
    objects: &'o dyn ObjectStore,
    listener: &'o Listener<'r, 'l>,
    /// The folder in memory where log and manifest are made.
    own: OpenFolder,
    /// The files of all generations, by object.
    known: BTreeMap<String, StoredFile>,
    files: Vec<StoredFile>,
}

impl<'o, 'r, 'l> Upload<'o, 'r, 'l> {
    fn new(
        objects: &'o dyn ObjectStore,
        generations: &[Generation],
        listener: &'o Listener<'r, 'l>,
    ) -> Result<Self> {
        let (memory, path) = (Memory::new(), Path::new("in memory"));
        memory.create_dir(path).map_err(Error::io(path))?;
        let files = generations.iter().flat_map(|generation| &generation.files);
        let known = files.map(|file| (file.object.clone(), file.clone())).collect();
        let own = OpenFolder::open(&memory, path)?;
        Ok(Upload { objects, listener, own, known, files: Vec::new() })
    }
}

impl Target for Upload<'_, '_, '_> {
    fn folder(&self) -> &OpenFolder {
        &self.own
    }

    fn take(
        &mut self,
        from: &OpenFolder,
        name: String,
        open: Option<&Arc<dyn ReadAt>>,
    ) -> Result<()> {
        let source = reader_of(from, &name, open)?;
        let object = object_of(&name, &source).map_err(Error::io(from.path_of(&name)))?;
        let taken = match self.known.get(&object) {
            Some(known) => StoredFile { name, ..known.clone() },
            None => store(self.objects, (name, object), source, self.listener)?,
        };
        self.files.push(taken);
        Ok(())
    }
}

/// Returns a reader of a file, up to its present length.
fn reader_of(from: &OpenFolder, name: &str, open: Option<&Arc<dyn ReadAt>>) -> Result<FileReader> {
    let file = match open {
        Some(open) => Arc::clone(open),
        None => from.open_file(name)?,
    };
    FileReader::new(file).map_err(Error::io(from.path_of(name)))
}

/// Returns the object name of a numbered file.
fn object_of(name: &str, file: &FileReader) -> std::io::Result<String> {
    let len = file.len();
    let mut end = vec![0; len.min(END_BYTES) as usize];
    file.read_at(len - end.len() as u64, &mut end)?;
    let (number, kind) = name.split_once('.').unwrap_or((name, ""));
    Ok(format!("{number}-{len}-{:08x}.{kind}", checksum::crc32c(&end)))
}

/// Stores a file as an object.
fn store(
    objects: &dyn ObjectStore,
    (name, object): (String, String),
    source: FileReader,
    listener: &Listener<'_, '_>,
) -> Result<StoredFile> {
    let bytes = source.len();
    let mut source = Summed::new(Asking { source, listener });
    let put = objects.put(&object, bytes, &mut source);
    put.map_err(Error::io(path_of(objects, &object)))?;
    Ok(StoredFile { name, object, bytes, checksum: source.checksum })
}
