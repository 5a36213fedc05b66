//! Stores and reads objects, with checksums, and with errors that name the object.

use std::io::{ErrorKind, Read, Take};
use std::path::{Path, PathBuf};

use trommel_filters::{Corrupt, Reader};

use super::object_store::ObjectStore;
use crate::entries::checksum;
use crate::error::{Error, Result};

const PIECE_BYTES: usize = 1 << 20;

/// Returns the path of an object, for errors.
pub(super) fn path_of(objects: &dyn ObjectStore, name: &str) -> PathBuf {
    Path::new(&objects.place()).join(name)
}

/// A reader that computes the checksum of everything that is read.
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

/// Whether the last four bytes of an object are the checksum of the others.
pub(super) fn is_sound(bytes: &[u8]) -> bool {
    let is_of = |(rest, sum): (&[u8], &[u8; 4])| checksum::crc32c(rest) == u32::from_le_bytes(*sum);
    bytes.split_last_chunk::<4>().is_some_and(is_of)
}

/// Reads the next string, which must be UTF-8.
pub(super) fn text(input: &mut Reader<'_>) -> std::result::Result<String, Corrupt> {
    let bytes = input.string()?.to_vec();
    String::from_utf8(bytes).map_err(|_| input.corrupt("a name that is no text"))
}

/// Stores bytes as an object.
pub(super) fn put(objects: &dyn ObjectStore, name: &str, bytes: &[u8]) -> Result<()> {
    let put = objects.put(name, bytes.len() as u64, &mut &*bytes);
    put.map_err(Error::io(path_of(objects, name)))
}

/// Reads an object of at most `most` bytes.
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

/// Reads an object piece by piece, and checks it at the end.
pub(super) struct StoredReader<'o> {
    /// Ends one byte after the expected length, so that extra bytes are noticed.
    reader: Summed<Take<Box<dyn Read + 'o>>>,
    path: PathBuf,
    bytes: u64,
    checksum: u32,
}

impl<'o> StoredReader<'o> {
    /// Opens an object with this length and checksum.
    ///
    /// # Errors
    /// `FileMissing`: the object does not exist. `Io`.
    pub(super) fn open(
        objects: &'o dyn ObjectStore,
        name: &str,
        (bytes, checksum): (u64, u32),
    ) -> Result<Self> {
        let path = path_of(objects, name);
        let reader = objects.get(name).map_err(|error| match error.kind() {
            ErrorKind::NotFound => {
                let what = "a generation of backups, or changes behind it, needs it".into();
                Error::FileMissing { path: path.clone(), what }
            }
            _ => Error::io(&path)(error),
        })?;
        let reader = Summed::new(reader.take(bytes.saturating_add(1)));
        Ok(StoredReader { reader, path, bytes, checksum })
    }

    /// Reads at least one of the next bytes. 0: none are left.
    fn read(&mut self, piece: &mut [u8]) -> Result<usize> {
        loop {
            match self.reader.read(piece) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                count => return count.map_err(Error::io(&self.path)),
            }
        }
    }

    /// Fills `room` with the next bytes.
    ///
    /// # Errors
    /// `Corrupt`: fewer are left. `Io`.
    pub(super) fn fill(&mut self, room: &mut [u8]) -> Result<()> {
        let mut filled = 0;
        while filled < room.len() {
            match self.read(&mut room[filled..])? {
                0 => return Err(self.wrong()),
                count => filled += count,
            }
        }
        Ok(())
    }

    /// Checks the bytes that were read. Requires: the expected length was read.
    ///
    /// # Errors
    /// `Corrupt`: the bytes differ from those stored, or there are more. `Io`.
    pub(super) fn end(mut self) -> Result<()> {
        self.read(&mut [0])?;
        match (self.reader.bytes, self.reader.checksum) == (self.bytes, self.checksum) {
            true => Ok(()),
            false => Err(self.wrong()),
        }
    }

    fn wrong(&self) -> Error {
        let what = format!("it has other bytes than the {} that were stored", self.bytes);
        Error::corrupt(&self.path, self.reader.bytes.min(self.bytes), what)
    }
}

/// Reads an object piece by piece, and checks it at the end.
///
/// # Errors
/// `Corrupt`: the bytes differ from those stored. `FileMissing`: the object does not exist. `Io`.
pub(super) fn read(
    objects: &dyn ObjectStore,
    name: &str,
    expected: (u64, u32),
    mut each: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let mut reader = StoredReader::open(objects, name, expected)?;
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match reader.read(&mut piece)? {
            0 => return reader.end(),
            count => each(&piece[..count])?,
        }
    }
}
