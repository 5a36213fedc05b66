//! Tests of records: what is torn, what is damaged, and what lies behind a hole.

use super::*;
use crate::storage::io_mode::Access;
use crate::storage::memory::{Fault, Memory};
use crate::storage::traits::{Folder, FolderWrapper, Storage, StorageWrapper};
use crate::sync::{AtomicU64, Ordering};

const HEADER: &[u8] = b"HEADv1\0\0";
const SALT: u64 = 7;

type Read = (Vec<(u64, Vec<u8>)>, Result<u64>);

fn read(disk: &Memory, salt: u64) -> Read {
    let (folder, mut records) = (OpenFolder::on(disk, "db"), Vec::new());
    let mut push = |at, payload: &[u8]| {
        records.push((at, payload.to_vec()));
        Ok(())
    };
    let tail = read_records(&folder, "log", salt, HEADER, &all_before, &mut push);
    (records, tail)
}

fn write(disk: &Memory, payloads: &[&[u8]]) -> RecordWriter {
    disk.create_dir(Path::new("db")).unwrap();
    let file = OpenFolder::on(disk, "db").create("log").unwrap();
    let mut writer = RecordWriter::begin(file, "db/log".into(), SALT, HEADER).unwrap();
    payloads.iter().for_each(|payload| writer.append(payload).unwrap());
    assert_eq!(writer.len(), disk.file("db/log").unwrap().len() as u64);
    writer
}

fn payloads((records, _): &Read) -> Vec<&[u8]> {
    records.iter().map(|(_, payload)| payload.as_slice()).collect()
}

/// Three records: at 8 (21 bytes), 29 (16 bytes) and 45 (22 bytes).
const THREE: [&[u8]; 3] = [b"first", b"", b"second"];
const STARTS: [usize; 4] = [8, 29, 45, 67];

#[test]
fn the_bytes_are_those_of_the_format() {
    let disk = Memory::new();
    write(&disk, &[b"first"]);
    let expected: &[u8] = &[
        b'H', b'E', b'A', b'D', b'v', b'1', 0, 0, // the header
        b't', b'R', b'e', b'c', 5, 0, 0, 0, // magic, length
        GOLDEN[0], GOLDEN[1], GOLDEN[2], GOLDEN[3], // checksum of the payload
        GOLDEN[4], GOLDEN[5], GOLDEN[6], GOLDEN[7], // checksum of the head
        b'f', b'i', b'r', b's', b't',
    ];
    assert_eq!(disk.file("db/log").unwrap(), expected);
}

const GOLDEN: [u8; 8] = [80, 161, 62, 138, 138, 54, 196, 246];

#[test]
fn records_come_back_in_order_with_their_places() {
    let disk = Memory::new();
    write(&disk, &THREE);
    let (records, tail) = read(&disk, SALT);
    assert_eq!(tail.unwrap(), STARTS[3] as u64);
    let starts: Vec<_> = records.iter().map(|(at, _)| *at as usize).collect();
    assert_eq!(starts, STARTS[..3]);
    assert_eq!(payloads(&read(&disk, SALT)), THREE);
}

#[test]
fn every_cut_is_a_torn_tail() {
    let disk = Memory::new();
    write(&disk, &THREE);
    let whole = disk.file("db/log").unwrap();
    for len in 0..whole.len() {
        disk.put_file("db/log", &whole[..len]);
        let result = read(&disk, SALT);
        let kept = STARTS[1..].iter().filter(|&&end| end <= len).count();
        assert_eq!(payloads(&result), THREE[..kept], "cut at {len}");
        let expected = if len < HEADER.len() { 0 } else { STARTS[kept] as u64 };
        assert_eq!(result.1.unwrap(), expected, "cut at {len}");
    }
}

#[test]
fn zeros_and_rubbish_at_the_end_are_a_torn_tail() {
    let disk = Memory::new();
    write(&disk, &THREE);
    let whole = disk.file("db/log").unwrap();
    for cut in 0..=whole.len() {
        for fill in [&[0u8; 50][..], &[0xa5; 50], b"RectRectRectRectRectRectRectRectR"] {
            if fill[0] != 0 && cut < HEADER.len() {
                continue;
            }
            let bytes = [&whole[..cut], fill].concat();
            let has_header = bytes.starts_with(HEADER);
            disk.put_file("db/log", bytes);
            let (records, tail) = read(&disk, SALT);
            let kept = STARTS[1..].iter().filter(|&&end| end <= cut).count();
            assert_eq!(records.len(), kept, "cut at {cut}");
            let expected = if has_header { STARTS[kept] as u64 } else { 0 };
            assert_eq!(tail.unwrap(), expected, "cut at {cut}");
        }
    }
}

#[test]
fn every_flipped_bit_before_the_last_record_is_damage() {
    let disk = Memory::new();
    write(&disk, &THREE);
    let whole = disk.file("db/log").unwrap();
    for at in 0..whole.len() {
        for bit in 0..8 {
            disk.put_file("db/log", whole.as_slice());
            disk.flip_bit("db/log", at as u64, bit);
            let (records, tail) = read(&disk, SALT);
            let kept = STARTS[1..].iter().filter(|&&end| end <= at).count();
            if at >= STARTS[2] {
                assert_eq!((records.len(), tail.unwrap()), (2, 45));
                continue;
            }
            let start = if at < HEADER.len() { at } else { STARTS[kept] };
            match tail {
                Err(Error::Corrupt { path, offset, .. }) => {
                    assert_eq!((path.as_path(), offset), (Path::new("db/log"), start as u64));
                }
                other => panic!("bit {bit} of byte {at}: {other:?}"),
            }
        }
    }
}

#[test]
fn what_was_never_durable_may_have_holes() {
    let disk = Memory::new();
    write(&disk, &THREE);
    let whole = disk.file("db/log").unwrap();
    let read_with = |hole: std::ops::Range<usize>, durable: u64| {
        let mut bytes = whole.clone();
        bytes[hole].fill(0);
        disk.put_file("db/log", bytes);
        let (folder, says) = (OpenFolder::on(&disk, "db"), |_: u64, _: &[u8]| durable);
        read_records(&folder, "log", SALT, HEADER, &says, &mut |_, _| Ok(()))
    };
    assert_eq!(read_with(30..40, 29).unwrap(), 29);
    assert!(read_with(30..40, 30).is_err(), "a part of the bad record was durable");
    assert_eq!(read_with(0..40, 0).unwrap(), 0);
    assert!(read_with(0..40, 1).is_err(), "a part of the header was durable");
    assert!(read_with(0..8, 0).is_err(), "the record behind the header is there");
}

#[test]
fn a_record_of_another_file_or_place_is_none() {
    let disk = Memory::new();
    write(&disk, &THREE);
    assert_eq!(read(&disk, SALT + 1).1.unwrap(), 8);
    let whole = disk.file("db/log").unwrap();
    // The quoted record is no evidence of damage, neither at a torn end nor in the middle.
    let quoting = Memory::new();
    write(&quoting, &[b"x", &whole[8..], b"y"]);
    let (records, tail) = read(&quoting, SALT);
    let len = quoting.file("db/log").unwrap().len() as u64;
    assert_eq!(tail.unwrap(), len);
    quoting.truncate("db/log", len - 1);
    let last = records[2].0;
    let (records, tail) = read(&quoting, SALT);
    assert_eq!(records.len(), 2);
    assert_eq!(tail.unwrap(), last);
}

#[test]
fn after_a_failed_write_nothing_is_written() {
    let disk = Memory::new();
    let mut writer = write(&disk, &THREE);
    disk.fail_at(0, Fault::NoSpace);
    assert!(matches!(writer.append(b"lost"), Err(Error::Io { .. })));
    let len = disk.file("db/log").unwrap().len();
    assert!(writer.append(b"refused").is_err() && writer.sync().is_err());
    assert_eq!(disk.file("db/log").unwrap().len(), len);
    assert_eq!(payloads(&read(&disk, SALT)), THREE);
}

#[test]
fn the_reader_stops_when_the_caller_does() {
    let disk = Memory::new();
    write(&disk, &THREE);
    let folder = OpenFolder::on(&disk, "db");
    let refuse = &mut |at, _: &[u8]| Err(Error::corrupt("db/log", at, "refused"));
    let result = read_records(&folder, "log", SALT, HEADER, &all_before, refuse);
    assert!(matches!(result, Err(Error::Corrupt { offset: 8, .. })));
    let (file, path) = (folder.open_file("log").unwrap(), folder.path_of("log"));
    assert_eq!(read_header(&*file, &path, 4).unwrap(), b"HEAD");
    assert_eq!(read_header(&*file, &path, 1000).unwrap().len(), 67);
}

/// A disk with one file, which changes after a number of calls.
struct Changing {
    disk: Memory,
    file: Arc<ChangingFile>,
}

struct ChangingFolder {
    folder: Arc<dyn Folder>,
    file: Arc<ChangingFile>,
}

struct ChangingFile {
    before: Vec<u8>,
    after: Vec<u8>,
    calls: AtomicU64,
}

impl StorageWrapper for Changing {
    fn inner(&self) -> &dyn Storage {
        &self.disk
    }

    fn open_folder(&self, dir: &Path) -> std::io::Result<Arc<dyn Folder>> {
        let (folder, file) = (self.disk.open_folder(dir)?, Arc::clone(&self.file));
        Ok(Arc::new(ChangingFolder { folder, file }))
    }
}

impl FolderWrapper for ChangingFolder {
    fn inner(&self) -> &dyn Folder {
        &*self.folder
    }

    fn open_with(&self, _: &str, _: Access) -> std::io::Result<Arc<dyn ReadAt>> {
        Ok(Arc::<ChangingFile>::clone(&self.file))
    }
}

impl ChangingFile {
    fn bytes(&self) -> &[u8] {
        let left = self.calls.load(Ordering::SeqCst);
        self.calls.store(left.saturating_sub(1), Ordering::SeqCst);
        if left == 0 { &self.after } else { &self.before }
    }
}

impl ReadAt for ChangingFile {
    fn size(&self) -> std::io::Result<u64> {
        Ok(self.bytes().len() as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> std::io::Result<()> {
        let bytes = self.bytes().get(offset as usize..).and_then(|rest| rest.get(..buffer.len()));
        let copied = bytes.map(|bytes| buffer.copy_from_slice(bytes));
        copied.ok_or(std::io::ErrorKind::UnexpectedEof.into())
    }
}

fn changing(before: &[u8], after: &[u8], calls: u64) -> OpenFolder {
    let (before, after, calls) = (before.to_vec(), after.to_vec(), AtomicU64::new(calls));
    let disk = Memory::new();
    disk.create_dir(Path::new("db")).unwrap();
    let file = Arc::new(ChangingFile { before, after, calls });
    OpenFolder::open(&Changing { disk, file }, Path::new("db")).unwrap()
}

/// Reads a file that changes after `calls` calls.
fn read_changing(before: &[u8], after: &[u8], calls: u64) -> (Vec<Vec<u8>>, Result<u64>) {
    let (folder, mut payloads) = (changing(before, after, calls), Vec::new());
    let mut push = |_, payload: &[u8]| {
        payloads.push(payload.to_vec());
        Ok(())
    };
    let tail = read_records(&folder, "log", SALT, HEADER, &all_before, &mut push);
    (payloads, tail)
}

// When a log is closed, its writer cuts off the preallocated space. A reader that had asked for the
// size before used to fail at the end of the file.
#[test]
fn zeros_that_are_cut_off_while_a_file_is_read_are_zeros_still() {
    let disk = Memory::new();
    write(&disk, &THREE);
    let cut = disk.file("db/log").unwrap();
    let allocated = [&cut[..], &[0; 4096]].concat();
    for calls in 0..6 {
        let (payloads, tail) = read_changing(&allocated, &cut, calls);
        assert_eq!((payloads, tail.unwrap()), (THREE.map(<[u8]>::to_vec).to_vec(), 67));
        let all = read_all(&changing(&allocated, &cut, calls), "log").unwrap();
        assert!(all == cut || all == allocated, "{calls}: {} bytes", all.len());
        let file = changing(&allocated, &cut, calls).open_file("log").unwrap();
        let header = read_header(&*file, Path::new("log"), 100).unwrap();
        assert_eq!(header[..67], cut[..]);
    }
}

// Pages are read while a writer appends. So a reader may see an older record half written, and a
// newer one whole that says that all before it is durable.
#[test]
fn a_record_that_its_writer_completes_meanwhile_is_no_damage() {
    let disk = Memory::new();
    write(&disk, &THREE);
    let whole = disk.file("db/log").unwrap();
    let (mut half, mut begun) = (whole.clone(), whole.clone());
    half[STARTS[0] + 3..STARTS[1]].fill(0);
    begun[3..8].fill(0);
    let size_and_bytes = 2;
    for before in [&half, &begun] {
        let (payloads, tail) = read_changing(before, &whole, size_and_bytes);
        assert_eq!((payloads, tail.unwrap()), (THREE.map(<[u8]>::to_vec).to_vec(), 67));
        let (_, tail) = read_changing(before, before, size_and_bytes);
        assert!(tail.unwrap_err().tells_of_damage(), "it stays damage");
    }
}
