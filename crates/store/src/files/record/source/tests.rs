//! Files of records on the real disk: records longer than the window, and holes, which any file of
//! a Unix system may have.

use std::fs::File;
use std::os::unix::fs::FileExt;

use super::super::{RecordWriter, read_all, read_records};
use crate::error::{Error, Result};
use crate::storage::disk::Disk;
use crate::storage::open_folder::OpenFolder;

const HEADER: &[u8] = b"HEADv1\0\0";

/// Reads a file. Returns the lengths of its records and how it ends, if it was durable up to
/// `durable`.
fn read(folder: &OpenFolder, durable: u64) -> (Vec<usize>, Result<u64>) {
    let mut lens = Vec::new();
    let on_record = &mut |_, payload: &[u8]| {
        assert!(payload.iter().all(|&byte| byte == payload.len() as u8));
        lens.push(payload.len());
        Ok(())
    };
    let tail = read_records(folder, "log", 7, HEADER, &|_, _| durable, on_record);
    (lens, tail)
}

fn write(folder: &OpenFolder, lens: &[usize]) -> u64 {
    let file = folder.create("log").unwrap();
    let mut writer = RecordWriter::begin(file, "log".into(), 7, HEADER).unwrap();
    lens.iter().for_each(|&len| writer.append(&vec![len as u8; len]).unwrap());
    writer.len()
}

fn open(folder: &tempfile::TempDir) -> (OpenFolder, File) {
    let opened = OpenFolder::open(&Disk, folder.path()).unwrap();
    let end = write(&opened, &LENS);
    let file = File::options().write(true).open(folder.path().join("log")).unwrap();
    assert_eq!(file.metadata().unwrap().len(), end);
    (opened, file)
}

/// Lengths within the window, equal to it, above it, and above what is loaded without a first pass.
const LENS: [usize; 6] = [5, (1 << 20) - 16, 1 << 20, (1 << 20) + 1, 20 << 20, 7];
const HOLE: u64 = 1 << 40;

#[test]
fn records_of_any_length_are_read_and_a_bad_one_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let (opened, file) = open(&folder);
    let (lens, tail) = read(&opened, 0);
    assert_eq!((&lens[..], tail.unwrap()), (&LENS[..], file.metadata().unwrap().len()));
    let start = |place: usize| 8 + LENS[..place].iter().map(|len| *len as u64 + 16).sum::<u64>();
    for place in 0..LENS.len() {
        let at = start(place) + 16 + LENS[place] as u64 / 2;
        file.write_all_at(&[!(LENS[place] as u8)], at).unwrap();
        let (lens, tail) = read(&opened, start(place));
        assert_eq!((&lens[..], tail.unwrap()), (&LENS[..place], start(place)));
        if place + 1 < LENS.len() {
            let (_, tail) = read(&opened, start(place) + 1);
            assert!(matches!(tail, Err(Error::Corrupt { offset, .. }) if offset == start(place)));
        }
        file.write_all_at(&[LENS[place] as u8], at).unwrap();
    }
}

#[test]
fn what_lies_behind_a_hole_of_a_terabyte_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let (opened, file) = open(&folder);
    let end = file.metadata().unwrap().len();
    file.set_len(end + HOLE).unwrap();
    let (lens, tail) = read(&opened, end);
    assert_eq!((&lens[..], tail.unwrap()), (&LENS[..], end));
    let bytes = read_all(&opened, "log").unwrap().len() as u64;
    // The hole begins at a block of the disk.
    let room = super::super::HOLES_BYTES_MAX;
    assert!((end + room..end + room + (1 << 20)).contains(&bytes), "{bytes} bytes of {end}");
    // A record behind the hole that says that everything before it was durable.
    let at = end + HOLE - 5000;
    let head = super::super::encode_head(7, at, 3, &[3; 3]);
    file.write_all_at(&head, at).unwrap();
    file.write_all_at(&[3; 3], at + 16).unwrap();
    let (lens, tail) = read(&opened, end + 1);
    assert_eq!(lens, LENS);
    assert!(matches!(tail, Err(Error::Corrupt { offset, .. }) if offset == end));
    assert!(matches!(read_all(&opened, "log"), Err(Error::Corrupt { .. })));
}
