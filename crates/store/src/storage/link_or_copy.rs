//! Hard-links files, or copies them where links are impossible.
//! ```text
//! from --link--> to                                  one file, two names, perhaps in two folders
//!      --copy--> to.copy --sync--> --rename--> to    another file system, or one without links
//! ```
//! Invariants: `from` is only read. Nothing is ever written to a file under the name `to`: it could
//! be the same file, since a link may exist although creating it failed.

use std::io::ErrorKind;
use std::path::Path;

use crate::error::{Error, Result};
use crate::storage::open_folder::OpenFolder;
use crate::storage::traits::{Append, ReadAt};

/// How many bytes are copied at once.
const CHUNK_BYTES: u64 = 1 << 20;

/// A file's name in a folder.
pub(crate) type Named<'a> = (&'a OpenFolder, &'a str);

/// Gives a file a second name, or copies it durably. The name is durable after its folder's sync.
/// Fails if the name is taken. Requires: only the caller creates files in that folder.
pub(crate) fn link_or_copy(from: Named<'_>, to: Named<'_>) -> Result<()> {
    match from.0.handle().link(from.1, to.0.handle(), to.1) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            Err(Error::io(to.0.path_of(to.1))(error))
        }
        Err(_) => copy(from, to),
    }
}

fn copy((of, from): Named<'_>, to: Named<'_>) -> Result<()> {
    copy_open((&*of.open_file(from)?, &of.path_of(from)), to)
}

/// Copies an open file durably; it may have lost its name. Otherwise like `link_or_copy`.
pub(crate) fn copy_open(
    (source, from): (&dyn ReadAt, &Path),
    (folder, to): Named<'_>,
) -> Result<()> {
    let new = format!("{to}.copy");
    let out = folder.create_anew(&new)?;
    let copied = copy_bytes((source, from), (out, &folder.path_of(&new)))
        .and_then(|()| folder.rename(&new, to));
    if copied.is_err() {
        // Nobody looks for a file of this name.
        let _ = folder.remove(&new);
    }
    copied
}

fn copy_bytes(
    (source, from): (&dyn ReadAt, &Path),
    (mut out, to): (Box<dyn Append>, &Path),
) -> Result<()> {
    let size = source.size().map_err(Error::io(from))?;
    let mut buffer = vec![0; size.min(CHUNK_BYTES) as usize];
    let mut at = 0;
    while at < size {
        let chunk = &mut buffer[..(size - at).min(CHUNK_BYTES) as usize];
        source.read_at(at, chunk).map_err(Error::io(from))?;
        out.append(chunk).map_err(Error::io(to))?;
        at += chunk.len() as u64;
    }
    out.sync().map_err(Error::io(to))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::memory::{Fault, Memory};
    use crate::storage::traits::Storage;

    #[test]
    fn where_linking_fails_the_bytes_are_copied() {
        let disk = Memory::new();
        let bytes: Vec<u8> = (0..CHUNK_BYTES * 2 + 7).map(|at| (at % 251) as u8).collect();
        disk.put_file("db/a", bytes.clone());
        let (from, to) = (Path::new("db/a"), Path::new("db/b"));
        let folder = OpenFolder::on(&disk, "db");
        disk.fail_at(0, Fault::Io);
        link_or_copy((&folder, "a"), (&folder, "b")).expect("copies");
        disk.sync_dir(Path::new("db")).expect("syncs");
        assert_eq!(disk.crash_hard().file(to), Some(bytes.clone()), "the copy is durable");
        disk.flip_bit(to, 0, 0);
        assert_eq!(disk.file(from), Some(bytes), "the copy is another file");
        assert!(link_or_copy((&folder, "a"), (&folder, "b")).is_err(), "the name is taken");
        assert_eq!(disk.list(Path::new("db")).expect("lists"), ["a", "b"]);
    }

    #[test]
    fn a_copy_that_fails_leaves_nothing() {
        let disk = Memory::new();
        disk.put_file("db/a", vec![1; 100]);
        let folder = OpenFolder::on(&disk, "db");
        disk.no_space(true);
        link_or_copy((&folder, "a"), (&folder, "b")).expect_err("the disk is full");
        assert_eq!(disk.list(Path::new("db")).expect("lists"), ["a"]);
    }
}
