//! Makes a generation: a checkpoint, of which only what is not there yet is stored.
//! ```text
//! 000012.table    number, length, end -> 000012-4096-9ab3c1d2.table    stored if it is not there
//! log, manifest   made in memory      -> own-000003-MANIFEST           stored always
//! ```
//! Files with numbers never change, and a restored store takes numbers that are far away. So
//! number, length and the end of a file, with its sections' checksums, say which one it is.

use std::collections::BTreeMap;
use std::path::Path;

use super::folder::FileReader;
use super::generation::{self, Generation, StoredFile};
use super::object_store::ObjectStore;
use super::stored::{Summed, path_of};
use crate::db::Db;
use crate::error::{Error, Result};
use crate::files::manifest::MANIFEST_NAME;
use crate::files::names::file_number;
use crate::shared::environment::Environment;
use crate::storage::memory::Memory;
use crate::storage::open_folder::OpenFolder;
use crate::storage::traits::{ReadAt, Storage};
use crate::sync::Arc;
use crate::tools::checkpoint::Target;

/// A restored store leaves out so many numbers of files and of writes: so what it makes and what
/// the other store makes meanwhile have different ones.
const NUMBERS_LATER: u64 = 1 << 32;
/// Bytes at the end of a file that tell which one it is.
const END_BYTES: u64 = 64 << 10;

pub(super) fn back_up(
    objects: &dyn ObjectStore,
    db: &Db,
    environment: &Environment,
) -> Result<Generation> {
    let milliseconds = environment.clock.since_epoch().as_millis() as u64;
    let known = generation::all(objects)?;
    let number = known.last().map_or(1, |newest| newest.number + 1);
    // What is in memory would be stored anew by each generation. If it cannot, it is stored.
    let _ = db.flush();
    let mut upload = Upload::new(objects, &known)?;
    let sequence = db.give_files(&mut upload, NUMBERS_LATER)?;
    let mut files = upload.files;
    for name in upload.own.list()? {
        let object = format!("own-{number:06}-{name}");
        files.push(store(objects, &upload.own, name, object)?);
    }
    let generation = Generation { number, sequence, milliseconds, files };
    generation.store(objects)?;
    Ok(generation)
}

/// Takes the files of a store.
struct Upload<'o> {
    objects: &'o dyn ObjectStore,
    /// Where log and manifest are made.
    own: OpenFolder,
    /// What generations have, by the object.
    known: BTreeMap<String, StoredFile>,
    files: Vec<StoredFile>,
}

impl<'o> Upload<'o> {
    fn new(objects: &'o dyn ObjectStore, generations: &[Generation]) -> Result<Self> {
        let (memory, path) = (Memory::new(), Path::new("in memory"));
        memory.create_dir(path).map_err(Error::io(path))?;
        let files = generations.iter().flat_map(|generation| &generation.files);
        let known = files.map(|file| (file.object.clone(), file.clone())).collect();
        Ok(Upload { objects, own: OpenFolder::open(&memory, path)?, known, files: Vec::new() })
    }
}

impl Target for Upload<'_> {
    fn folder(&self) -> &OpenFolder {
        &self.own
    }

    fn take(&mut self, from: &OpenFolder, name: String) -> Result<()> {
        let file = from.open_file(&name)?;
        let object = object_of(&name, &file).map_err(Error::io(from.path_of(&name)))?;
        let taken = match self.known.get(&object) {
            Some(known) => StoredFile { name, ..known.clone() },
            None => store(self.objects, from, name, object)?,
        };
        self.files.push(taken);
        Ok(())
    }
}

/// The object of a file that has a number.
fn object_of(name: &str, file: &Arc<dyn ReadAt>) -> std::io::Result<String> {
    let len = file.size()?;
    let mut end = vec![0; len.min(END_BYTES) as usize];
    file.read_at(len - end.len() as u64, &mut end)?;
    let (number, kind) = name.split_once('.').unwrap_or((name, ""));
    Ok(format!("{number}-{len}-{:08x}.{kind}", crc32c::crc32c(&end)))
}

/// Whether an object has this name because it is a file of a store.
pub(super) fn is_file(object: &str) -> bool {
    if let Some((number, name)) = object.strip_prefix("own-").and_then(|it| it.split_once('-')) {
        let is_own = name == MANIFEST_NAME || file_number(name).is_some();
        return is_own && number.parse::<u64>().is_ok();
    }
    let Some((told, kind)) = object.split_once('.') else { return false };
    let [number, len, end] = told.split('-').collect::<Vec<_>>()[..] else { return false };
    let is_numbered = file_number(&format!("{number}.{kind}")).is_some();
    is_numbered && len.parse::<u64>().is_ok() && u32::from_str_radix(end, 16).is_ok()
}

/// Stores a file of a folder.
fn store(
    objects: &dyn ObjectStore,
    from: &OpenFolder,
    name: String,
    object: String,
) -> Result<StoredFile> {
    let source = FileReader::new(from.open_file(&name)?).map_err(Error::io(from.path_of(&name)))?;
    let bytes = source.len();
    let mut source = Summed::new(source);
    let put = objects.put(&object, bytes, &mut source);
    put.map_err(Error::io(path_of(objects, &object)))?;
    Ok(StoredFile { name, object, bytes, checksum: source.checksum })
}
