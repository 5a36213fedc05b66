//! Files of records on the real disk: records longer than the window, and holes, which any file of
//! a Unix system may have.

use std::fs::File;
use std::os::unix::fs::FileExt;

use super::super::{HEAD_SIZE, RecordWriter, encode_head, next_record, read_all, read_records};
use super::RecordReader;
use crate::error::{Error, Result};
use crate::storage::disk::Disk;
use crate::storage::open_folder::OpenFolder;
use crate::storage::traits::ReadAt;
use crate::sync::{Arc, AtomicU64, Ordering};

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
    let head = encode_head(7, at, 3, &[3; 3]);
    file.write_all_at(&head, at).unwrap();
    file.write_all_at(&[3; 3], at + 16).unwrap();
    let (lens, tail) = read(&opened, end + 1);
    assert_eq!(lens, LENS);
    assert!(matches!(tail, Err(Error::Corrupt { offset, .. }) if offset == end));
    assert!(matches!(read_all(&opened, "log"), Err(Error::Corrupt { .. })));
}

/// A file in memory that counts the bytes that are read.
struct Counted {
    bytes: Vec<u8>,
    read: AtomicU64,
}

impl ReadAt for Counted {
    fn size(&self) -> std::io::Result<u64> {
        Ok(self.bytes.len() as u64)
    }
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> std::io::Result<()> {
        self.read.fetch_add(buffer.len() as u64, Ordering::Relaxed);
        let from = offset as usize;
        buffer.copy_from_slice(&self.bytes[from..from + buffer.len()]);
        Ok(())
    }
}

// Each payload was read and checked as a whole, however many heads claimed the same bytes.
#[test]
fn heads_that_claim_the_same_bytes_are_damage_and_cost_no_square() {
    let size = HEADER.len() + 4096 * HEAD_SIZE + (1 << 20);
    let mut bytes = HEADER.to_vec();
    for _ in 0..4096 {
        let left = size - bytes.len() - HEAD_SIZE;
        bytes.extend(encode_head(7, bytes.len() as u64, left as u32, b"another payload"));
    }
    bytes.resize(size, b'.');
    let file = Arc::new(Counted { bytes, read: AtomicU64::new(0) });
    let mut reader = RecordReader::new(Arc::clone(&file) as _, "log".as_ref(), 7).unwrap();
    let found = reader.find(HEADER.len() as u64, &mut |_, _| true);
    let read = file.read.load(Ordering::Relaxed);
    assert!(read <= 8 * size as u64, "{read} bytes of {size} were read");
    assert!(matches!(found, Err(Error::Corrupt { .. })), "{found:?}");
    assert!(next_record(&file.bytes, HEADER.len(), 7, &mut { size }).is_err());
}
