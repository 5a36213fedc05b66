//! Direct files compared with the same bytes in memory: odd offsets, ends of files, file systems
//! without direct I/O.

use std::path::Path;

use super::*;
use crate::storage::disk::linux::alignment;
use crate::storage::disk_folder::DiskFolder;
use crate::storage::io_mode::{Access, Overlap};
use crate::storage::traits::Folder;

/// Returns a folder on a file system with direct I/O. None: this machine has none.
fn folder() -> Option<tempfile::TempDir> {
    let roots = [Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf(), std::env::temp_dir()];
    let folders = roots.iter().filter_map(|root| tempfile::tempdir_in(root).ok());
    folders.into_iter().find(|folder| {
        let file = File::create(folder.path().join("probe")).expect("a file");
        alignment(&file).is_some()
    })
}

fn opened(folder: &tempfile::TempDir) -> DiskFolder {
    DiskFolder::open_path(folder.path()).unwrap()
}

/// Makes a new file that is written directly. Requires: the file system can do it.
fn direct_writer(files: &DiskFolder, behind: bool) -> DirectWriter {
    let buffered = files.create_file("file").unwrap();
    let direct = files.open_direct("file", DIRECT, true).unwrap().expect("can be direct");
    DirectWriter::new(direct, buffered, behind)
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 + at / 251) as u8).collect()
}

const DIRECT: Access = Access { direct: true, overlap: Overlap::OneByOne, mapped: false };

#[test]
fn every_place_and_length_is_read_as_it_was_written() {
    let Some(folder) = folder() else { return };
    let (path, files) = (folder.path().join("file"), opened(&folder));
    for len in [0, 1, 511, 512, 513, 4096, 10_000, CHUNK_BYTES + 7] {
        let expected = bytes(len);
        std::fs::write(&path, &expected).unwrap();
        let (file, align) =
            files.open_direct("file", DIRECT, false).unwrap().expect("can be direct");
        let reader = DirectReader { file, align };
        assert_eq!(reader.size().unwrap(), len as u64);
        for offset in [0, 1, 100, 511, 512, 4095, 5000, len / 2, len.saturating_sub(1), len] {
            for wanted in [0, 1, 5, 512, 700, 4096, len] {
                let mut buffer = vec![0xaa; wanted];
                let read = reader.read_at(offset as u64, &mut buffer);
                match expected.get(offset..offset + wanted) {
                    Some(there) => {
                        read.unwrap();
                        assert_eq!(buffer, there, "{wanted} bytes at {offset} of {len}");
                    }
                    None if wanted == 0 => read.unwrap(),
                    None => {
                        let kind = read.unwrap_err().kind();
                        assert_eq!(kind, io::ErrorKind::UnexpectedEof, "{wanted} at {offset}");
                    }
                }
            }
        }
    }
}

#[test]
fn what_is_appended_in_chunks_and_synced_anywhere_is_the_file() {
    for behind in [false, true] {
        appends_in_chunks(behind);
    }
}

fn appends_in_chunks(behind: bool) {
    let Some(folder) = folder() else { return };
    let (path, files) = (folder.path().join("file"), opened(&folder));
    let chunks =
        [1, 510, 1, 512, 4096, 3, 70_000, 0, 511, 2 * CHUNK_BYTES + 9, 77, 5 * CHUNK_BYTES, 4095];
    let expected = bytes(chunks.iter().sum());
    let mut writer = direct_writer(&files, behind);
    let mut written = 0;
    for (nth, chunk) in chunks.into_iter().enumerate() {
        writer.append(&expected[written..written + chunk]).unwrap();
        written += chunk;
        if nth % 2 == 0 {
            writer.sync().unwrap();
            assert!(std::fs::read(&path).unwrap() == expected[..written], "after chunk {nth}");
        }
        assert!(std::fs::metadata(&path).unwrap().len() <= written as u64, "never padded");
    }
    writer.sync().unwrap();
    drop(writer);
    assert!(std::fs::read(&path).unwrap() == expected);
    let taken = files.create_with("file", DIRECT).err().expect("the name is taken");
    assert_eq!(taken.kind(), io::ErrorKind::AlreadyExists);
    assert!(std::fs::read(&path).unwrap() == expected, "what is there is not touched");
}

#[test]
fn what_the_cache_has_and_the_disk_has_not_yet_is_read() {
    let Some(folder) = folder() else { return };
    let files = opened(&folder);
    let mut writer = files.create_with("file", Access::default()).unwrap();
    writer.append(&bytes(5000)).unwrap();
    let reader = files.open_with("file", DIRECT).unwrap();
    let mut buffer = vec![0; 4990];
    reader.read_at(10, &mut buffer).unwrap();
    assert!(buffer == bytes(5000)[10..]);
}

#[test]
fn a_file_system_in_memory_is_not_direct() {
    let Ok(folder) = tempfile::tempdir_in("/dev/shm") else { return };
    let files = opened(&folder);
    let mut writer = files.create_with("file", DIRECT).unwrap();
    assert_eq!(files.grant("file", DIRECT), Access::default());
    writer.append(b"drum").unwrap();
    let mut buffer = [0; 4];
    files.open_with("file", DIRECT).unwrap().read_at(0, &mut buffer).unwrap();
    assert_eq!(&buffer, b"drum");
}

#[test]
fn what_is_missing_is_not_granted_and_not_opened() {
    let folder = tempfile::tempdir().unwrap();
    let files = opened(&folder);
    assert_eq!(files.grant("none", DIRECT), Access::default());
    let missing = files.open_with("none", DIRECT).err().expect("no such file");
    assert_eq!(missing.kind(), io::ErrorKind::NotFound);
}

#[test]
fn a_write_behind_that_fails_is_the_error_of_what_comes_next_and_of_all_after_it() {
    let Some(folder) = folder() else { return };
    let (path, files) = (folder.path().join("file"), opened(&folder));
    for comes_next in
        [DirectWriter::sync, |writer: &mut DirectWriter| writer.append(&[7; CHUNK_BYTES])]
    {
        let mut writer = direct_writer(&files, true);
        // A descriptor that cannot be written to.
        writer.direct = Arc::new(File::open(&path).unwrap());
        writer.append(&[7; CHUNK_BYTES]).expect("it is written behind");
        let first = comes_next(&mut writer).unwrap_err();
        assert_eq!(first.raw_os_error(), Some(rustix::io::Errno::BADF.raw_os_error()));
        for _ in 0..2 {
            assert!(writer.append(b"more").is_err() && writer.sync().is_err());
        }
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 0);
        files.remove("file").unwrap();
    }
}

#[test]
fn a_writer_may_be_dropped_while_a_chunk_is_written() {
    let Some(folder) = folder() else { return };
    let (path, files) = (folder.path().join("file"), opened(&folder));
    for _ in 0..20 {
        let mut writer = direct_writer(&files, true);
        writer.append(&bytes(CHUNK_BYTES)).unwrap();
        let file = Arc::downgrade(&writer.direct);
        drop(writer);
        // The thread holds the file until it is done.
        while file.strong_count() > 0 {
            std::thread::yield_now();
        }
        assert!(std::fs::read(&path).unwrap() == bytes(CHUNK_BYTES));
        files.remove("file").unwrap();
    }
}
