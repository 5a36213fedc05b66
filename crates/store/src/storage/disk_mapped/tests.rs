//! A file written through memory has the same bytes as one written by system calls.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use proptest::prelude::*;

use super::*;

fn created(path: &Path) -> MappedAppender {
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(path);
    MappedAppender::new(file.expect("creates"))
}

/// The twin, which is written only by system calls.
fn by_calls(path: &Path) -> MappedAppender {
    let mut file = created(path);
    file.can_map = false;
    file
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn mapped_and_written_files_are_alike(
        lens in prop::collection::vec(
            prop_oneof![8 => 0..400_usize, 2 => 2000..2100_usize, 1 => 0..200_000_usize],
            0..600,
        ),
    ) {
        let folder = tempfile::tempdir().expect("a folder");
        let paths = ["mapped", "written"].map(|name| folder.path().join(name));
        let mut files = [created(&paths[0]), by_calls(&paths[1])];
        let mut expected = Vec::new();
        for (at, len) in lens.into_iter().enumerate() {
            let piece: Vec<u8> = (0..len).map(|byte| (byte * 7 + at) as u8).collect();
            expected.extend_from_slice(&piece);
            for file in &mut files {
                file.append(&piece).expect("appends");
                if at % 64 == 0 {
                    file.sync().expect("syncs");
                }
            }
        }
        for (file, path) in files.into_iter().zip(&paths) {
            let read = fs::read(path).expect("reads");
            let (data, ahead) = read.split_at(expected.len());
            prop_assert!(data == expected && ahead.iter().all(|byte| *byte == 0));
            drop(file);
            prop_assert!(fs::read(path).expect("reads") == expected);
        }
    }
}

#[test]
fn small_pieces_are_mapped_where_the_file_system_allows_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("log");
    let mut file = created(&path);
    file.append(b"piece").expect("appends");
    assert_eq!(file.window.is_some(), file.can_map);
    let allocated = fs::metadata(&path).expect("is there").len();
    assert_eq!(allocated, if file.can_map { AHEAD.0 } else { 5 });
    file.append(&[7; PIECE_MAX + 1]).expect("appends");
    file.append(b"piece").expect("appends");
    drop(file);
    assert_eq!(fs::metadata(&path).expect("is there").len(), 5 + PIECE_MAX as u64 + 1 + 5);
}

// A forked child has a copy of the appender. Dropping it must not cut what the parent appends.
#[test]
fn another_process_cuts_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("log");
    let mut file = created(&path);
    file.append(b"piece").expect("appends");
    let before = fs::metadata(&path).expect("is there").len();
    let shared = Arc::clone(&file.file);
    file.process += 1;
    drop(file);
    assert_eq!(fs::metadata(&path).expect("is there").len(), before);
    let mut read = [0; 5];
    shared.read_exact_at(&mut read, 0).expect("reads");
    assert_eq!(&read, b"piece");
}

#[test]
fn what_cannot_be_mapped_is_written_by_calls_from_then_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("log");
    fs::write(&path, b"").expect("creates");
    // A writable shared mapping also needs a readable file.
    let file = OpenOptions::new().write(true).open(&path).expect("opens");
    let mut file = MappedAppender::new(file);
    for _ in 0..3 {
        file.append(b"piece").expect("appends");
    }
    assert!(file.window.is_none() && !file.can_map);
    drop(file);
    assert_eq!(fs::read(&path).expect("reads"), b"piecepiecepiece");
}
