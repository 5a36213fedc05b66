//! Objects, with checksums and errors that name them.

use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use super::object_store::ObjectStore;
use crate::entries::checksum;
use crate::error::{Error, Result};

const PIECE_BYTES: usize = 1 << 20;

/// What errors call an object.
pub(super) fn path_of(objects: &dyn ObjectStore, name: &str) -> PathBuf {
    Path::new(&objects.place()).join(name)
}

/// Computes a checksum of what is read.
pub(super) struct Summed<R> {
    source: R,
    pub(super) checksum: u32,
    pub(super) bytes: u64,
}

impl<R: Read> Summed<R> {
    pub(super) fn new(source: R) -> Self {
        Summed { source, checksum: 0, bytes: 0 }
    }
}

impl<R: Read> Read for Summed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.source.read(buffer)?;
        self.checksum = checksum::crc32c_append(self.checksum, &buffer[..count]);
        self.bytes += count as u64;
        Ok(count)
    }
}

/// Stores bytes.
pub(super) fn put(objects: &dyn ObjectStore, name: &str, bytes: &[u8]) -> Result<()> {
    let put = objects.put(name, bytes.len() as u64, &mut &*bytes);
    put.map_err(Error::io(path_of(objects, name)))
}

/// An object of at most so many bytes.
pub(super) fn get(objects: &dyn ObjectStore, name: &str, most: u64) -> Result<Vec<u8>> {
    let path = path_of(objects, name);
    let mut bytes = Vec::new();
    let reader = objects.get(name).map_err(Error::io(&path))?;
    reader.take(most + 1).read_to_end(&mut bytes).map_err(Error::io(&path))?;
    match bytes.len() as u64 > most {
        true => Err(Error::corrupt(path, most, "an object that is longer than any")),
        false => Ok(bytes),
    }
}

/// Reads an object, piece by piece, and checks it when all was read.
///
/// # Errors
/// `Corrupt`: it has other bytes than it was stored with. `FileMissing`: it is not there. `Io`.
pub(super) fn read(
    objects: &dyn ObjectStore,
    name: &str,
    (bytes, checksum): (u64, u32),
    mut each: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let path = path_of(objects, name);
    let missing = || {
        let what = "a generation of backups needs it".to_string();
        Error::FileMissing { path: path.clone(), what }
    };
    let reader = objects.get(name).map_err(|error| match error.kind() {
        ErrorKind::NotFound => missing(),
        _ => Error::io(&path)(error),
    })?;
    let (mut reader, mut piece) = (Summed::new(reader.take(bytes + 1)), vec![0; PIECE_BYTES]);
    loop {
        let count = match reader.read(&mut piece) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            count => count.map_err(Error::io(&path))?,
        };
        if count == 0 {
            break;
        }
        each(&piece[..count])?;
    }
    if (reader.bytes, reader.checksum) == (bytes, checksum) {
        return Ok(());
    }
    let what = format!("it has other bytes than the {bytes} that were stored");
    Err(Error::corrupt(path, reader.bytes.min(bytes), what))
}
