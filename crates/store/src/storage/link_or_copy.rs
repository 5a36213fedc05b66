//! Gives files second names, or copies them where a second name is impossible.
//! ```text
//! from --link--> to                                  one file, two names, perhaps in two folders
//!      --copy--> to.copy --sync--> --rename--> to    another file system, or one without links
//! ```
//! Invariants: `from` is only read. Nothing is ever written to a file under the name `to`. It could
//! be the same file, since a link may exist although creating it failed.

use std::io::ErrorKind;
use std::path::Path;

use crate::error::{Error, Result};
use crate::storage::open_folder::OpenFolder;
use crate::storage::traits::{Append, ReadAt, Storage};

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

/// Copies an open file durably: it may have no name any more. Else as above.
pub(crate) fn copy_open(
    (source, from): (&dyn ReadAt, &Path),
    (folder, to): Named<'_>,
) -> Result<()> {
    let new = format!("{to}.copy");
    let out = folder.create_anew(&new)?;
    let copied = copy_bytes((source, from), (out, &folder.path_of(&new)))
        .and_then(|()| folder.rename(&new, to));
    if copied.is_err() {
        // A file of this name is not looked for.
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

/// Creates a folder and its parents, durably.
pub(crate) fn make_folder(storage: &dyn Storage, dir: &Path) -> Result<()> {
    let is_new = |dir: &&Path| !dir.as_os_str().is_empty() && !storage.dir_exists(dir);
    let new: Vec<&Path> = dir.ancestors().take_while(is_new).collect();
    storage.create_dir(dir).map_err(Error::io(dir))?;
    for parent in new.iter().filter_map(|dir| parent_of(dir)) {
        storage.sync_dir(parent).map_err(Error::io(parent))?;
    }
    Ok(())
}

/// Creates a folder and its parents, or takes one that is there: durably, also where its creator
/// was killed, or has failed, before it was.
pub(crate) fn take_folder(storage: &dyn Storage, dir: &Path) -> Result<()> {
    make_folder(storage, dir)?;
    keep_folder(storage, dir)
}

/// Makes the names of a folder and of its parents durable: their creator may have been killed
/// before it did.
pub(crate) fn keep_folder(storage: &dyn Storage, dir: &Path) -> Result<()> {
    for parent in dir.ancestors().filter_map(parent_of) {
        match storage.sync_dir(parent) {
            // A process that may not read a folder, or not change it, has not just created a name
            // in it.
            Err(error) if cannot_have_changed(&error) => {}
            synced => synced.map_err(Error::io(parent))?,
        }
    }
    Ok(())
}

fn cannot_have_changed(error: &std::io::Error) -> bool {
    use ErrorKind::{InvalidInput, PermissionDenied, ReadOnlyFilesystem, Unsupported};
    matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem | InvalidInput | Unsupported)
}

/// The folder that contains this one. None: there is none.
fn parent_of(dir: &Path) -> Option<&Path> {
    let parent = dir.parent()?;
    Some(if parent.as_os_str().is_empty() { Path::new(".") } else { parent })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::memory::{Fault, Memory};

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

    #[test]
    fn a_folder_that_was_not_made_durable_is_once_it_is_taken() {
        for after in 0.. {
            let (disk, dir) = (Memory::new(), Path::new("a/b"));
            disk.fail_at(after, Fault::Io);
            let made = take_folder(&disk, dir);
            let has_struck = !disk.may_fail();
            disk.mend();
            take_folder(&disk, dir).expect("takes");
            assert!(disk.crash_hard().dir_exists(dir), "after {after}");
            assert_eq!(made.is_err(), has_struck);
            if !has_struck {
                break;
            }
        }
    }

    #[test]
    fn folders_are_made_with_those_above_them() {
        let disk = Memory::new();
        for dir in ["new", "a/b/c", "/x/y"] {
            make_folder(&disk, Path::new(dir)).expect("makes");
            make_folder(&disk, Path::new(dir)).expect("it may be there");
            assert!(disk.dir_exists(Path::new(dir)));
        }
    }
}
