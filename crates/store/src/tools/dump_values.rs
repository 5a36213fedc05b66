//! Shows a value file: its header, and each record, referenced or not.

use std::io::ErrorKind;
use std::ops::Range;

use crate::entries::compression::Unreadable;
use crate::error::{Error, Result};
use crate::files::value_file::format::{
    HEAD_BYTES, HEADER_BYTES, Head, chunk_count, decode_header,
};
use crate::files::value_file::record_reader::{Ended, walk};
use crate::storage::open_folder::OpenFolder;
use crate::storage::traits::{ReadAt, zeroed};

/// What a file has at an offset, or what is wrong there.
pub(super) type Described = std::result::Result<String, String>;

/// Reads a value file, and reports what it has at which offset. Ends where no record begins.
///
/// # Errors
/// `Io`, and those of `tell`.
pub(super) fn read_values<E: From<Error>>(
    folder: &OpenFolder,
    name: &str,
    number: u64,
    mut tell: impl FnMut(u64, Described) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let (file, path) = (folder.open_file(name)?, folder.path_of(name));
    let len = file.size().map_err(Error::io(&path))?;
    let read = |offset: u64, bytes: u64| -> Result<Option<Vec<u8>>> {
        read_at(&*file, offset, bytes).map_err(Error::io(&path))
    };
    let header = read(0, HEADER_BYTES as u64)?;
    let header = header.as_ref().map(|header| decode_header(header, number));
    match header {
        Some(Ok((version, keyspace))) => {
            let text = format!("values of key space {}, format version {version}", keyspace.0);
            tell(0, Ok(text))?;
        }
        Some(Err(wrong)) => return tell(0, Err(wrong.to_string())),
        None => return tell(0, Err("a file too short for values".into())),
    }
    let mut offset = HEADER_BYTES as u64;
    while offset < len {
        let Some(head) = read(offset, HEAD_BYTES as u64)? else {
            return tell(offset, Err("a value that is not whole".into()));
        };
        let place = (number, offset);
        let decoded = match Head::decode(&head, place) {
            Ok(decoded) => decoded,
            Err(wrong) => return tell(offset, Err(wrong.what.into())),
        };
        let from_disk = |span: Range<u64>| read(span.start, span.end - span.start);
        offset = match walk(place, decoded, from_disk, |_| Ok(())) {
            Ok(end) => {
                let (chunks, packed) = (chunk_count(decoded.len), end - offset);
                let packed = decoded.is_packed.then(|| format!(", packed into {packed} bytes"));
                let packed = packed.unwrap_or_default();
                let text = format!("a value of {} bytes in {chunks} chunks{packed}", decoded.len);
                tell(offset, Ok(text))?;
                end
            }
            Err(Ended::Failed(error)) => return Err(E::from(error)),
            Err(Ended::Damaged((place, what))) => {
                let what = match what {
                    Unreadable::Damaged(what) | Unreadable::Lacks(what) => what,
                };
                tell(place, Err(what.into()))?;
                // Then the end of a packed value is unknown.
                match decoded.plain_bytes() {
                    Some(bytes) => offset + bytes,
                    None => return Ok(()),
                }
            }
        };
    }
    Ok(())
}

/// Reads bytes of a file. None: the file ends before them.
fn read_at(file: &dyn ReadAt, offset: u64, bytes: u64) -> std::io::Result<Option<Vec<u8>>> {
    let mut buffer = zeroed(usize::try_from(bytes).unwrap_or(usize::MAX))?;
    match file.read_at(offset, &mut buffer) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(None),
        read => read.map(|()| Some(buffer)),
    }
}
