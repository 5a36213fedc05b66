//! A process that may have little memory, with a store, and with files that claim to be much longer
//! than what was written to them.
//! ```text
//! test -> this test again, in a process of its own -> RLIMIT_AS:
//!     what it has, and so much more -> the work
//! ```
//! Invariant: memory follows from the options and from what is in the files. What cannot be had is
//! an error, and never the process's end.
#![cfg(target_os = "linux")]

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use trommel::options::{DirectIo, Overlap};
use trommel::{Background, Db, Error, GuardKind, Options, SyncPolicy};

const FOLDER: &str = "TROMMEL_LIMITED_MEMORY";
const MIB: u64 = 1 << 20;

fn address_space() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux tells");
    let line = status.lines().find(|line| line.starts_with("VmSize:")).expect("a known line");
    let kib: u64 = line.split_whitespace().nth(1).expect("a number").parse().expect("a number");
    kib << 10
}

/// Runs a test of this file again, in a process of its own. A folder: this is it.
fn in_own_process(test: &str) -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return Some(folder.into());
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut again = Command::new(std::env::current_exe().expect("this program"));
    again.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(FOLDER, folder.path());
    let output = again.output().expect("starts");
    let [stdout, errors] =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success() && stdout.contains("1 passed"), "{stdout}\n{errors}");
    None
}

/// Does some work in so much more address space than the process has now.
fn with_room<T>(bytes: u64, work: impl FnOnce() -> T) -> T {
    let before = getrlimit(Resource::As);
    let limit = Rlimit { current: Some(address_space() + bytes), ..before };
    setrlimit(Resource::As, limit).expect("a lower limit");
    let done = work();
    setrlimit(Resource::As, before).expect("the limit before");
    done
}

fn options() -> Options {
    Options::new()
        .guard(GuardKind::Grf)
        .write_buffer_bytes(256 << 10)
        .block_cache_bytes(1 << 20)
        .table_bytes(1 << 20)
        .sync(SyncPolicy::Never)
        .background(Background::Stepped)
}

fn key(row: u32) -> [u8; 4] {
    row.wrapping_mul(2_654_435_761).to_be_bytes()
}

/// 20 MB in all: written, merged, read in every way, and opened again.
fn live(dir: &Path, options: &Options) {
    const ROWS: u32 = 20_000;
    let db = Db::open(dir, options.clone()).expect("opens");
    for row in 0..ROWS {
        let value: Vec<u8> = (0..1000u32).map(|at| ((at * row) >> 3) as u8).collect();
        db.put(key(row), value).expect("writes");
        db.step().expect("steps");
    }
    db.compact().expect("merges");
    assert_eq!(db.range(..).filter(Result::is_ok).count(), ROWS as usize);
    db.close().expect("closes");
    let db = Db::open(dir, options.clone()).expect("opens");
    assert_eq!(db.range(..).rev().filter(Result::is_ok).count(), ROWS as usize);
    assert!(db.verify().expect("reads").damage.is_empty());
    assert!((0..ROWS).step_by(97).all(|row| db.get(key(row)).expect("reads").is_some()));
}

#[test]
fn a_modest_store_lives_in_little_memory() {
    let Some(folder) = in_own_process("a_modest_store_lives_in_little_memory") else { return };
    with_room(32 * MIB, || live(&folder.join("stepped"), &options()));
    // Threads have stacks, and memory of their own to give out.
    let threads = options().background(Background::Threads(2));
    with_room(512 * MIB, || live(&folder.join("threads"), &threads));
}

// A write buffer of 64 GiB had 1.3 GiB made at once for each memtable, and each log that was read.
#[test]
fn large_options_take_memory_when_it_is_used() {
    let Some(folder) = in_own_process("large_options_take_memory_when_it_is_used") else { return };
    let largest = options()
        .write_buffer_bytes(64 << 30)
        .block_cache_bytes(1 << 60)
        .table_bytes(1 << 60)
        .partition_bytes(1 << 60)
        .merge_piece_bytes(1 << 60)
        .max_open_files(Some(usize::MAX));
    for round in 0..3 {
        with_room(96 * MIB, || {
            let db = Db::open(folder.join("db"), largest.clone()).expect("opens");
            db.put(key(round), "value").expect("writes");
            db.flush().expect("flushes");
            db.put(key(100 + round), "value").expect("writes");
            let found = db.range(..).filter(Result::is_ok).count();
            assert_eq!(found, 2 * (round as usize + 1));
            db.close().expect("closes");
        });
    }
}

/// A store that was closed, with one table that has an own filter, and a log.
fn make_store(dir: &Path, options: &Options) -> (PathBuf, PathBuf) {
    let db = Db::open(dir, options.clone()).expect("opens");
    (0..2000).for_each(|row| db.put(key(row), [7; 50]).expect("writes"));
    db.compact().expect("merges");
    db.put(key(9999), "in the log").expect("writes");
    db.close().expect("closes");
    let newest = |kind: &str| {
        let files = fs::read_dir(dir).expect("lists").map(|entry| entry.expect("an entry").path());
        let ours = files.filter(|path| path.extension().is_some_and(|found| found == kind));
        ours.max().unwrap_or_else(|| panic!("no {kind}"))
    };
    (newest("table"), newest("wal"))
}

/// The checksum of so many zeros. Requires: a power of two.
fn checksum_of_zeros(len: u64) -> u32 {
    let (mut checksum, mut done) = (crc32c::crc32c(&[0]), 1);
    while done < len {
        checksum = crc32c::crc32c_combine(checksum, checksum, done as usize);
        done *= 2;
    }
    checksum
}

/// The tail of a table, with a list of so many bytes.
fn tail(list_len: u32, list_checksum: u32) -> Vec<u8> {
    let mut tail = [list_len, list_checksum, 2].map(u32::to_le_bytes).concat();
    tail.extend_from_slice(&crc32c::crc32c(&tail).to_le_bytes());
    tail.extend_from_slice(b"TRMLTBL\0");
    tail
}

/// Lengthens a table by a hole of so many bytes that one of its sections claims to be, with the
/// right checksum.
fn stretch_section(path: &Path, tag: impl Fn(u16) -> bool, len: u64) {
    let mut bytes = fs::read(path).expect("reads");
    let tail_at = bytes.len() - 24;
    let list_len = u32::from_le_bytes(bytes[tail_at..tail_at + 4].try_into().expect("four"));
    let mut list = bytes[tail_at - list_len as usize..tail_at].to_vec();
    let tag_of = |section: &[u8]| u16::from_le_bytes(section[..2].try_into().expect("two"));
    let of_tag = list[2..].chunks_exact_mut(23).find(|section| tag(tag_of(section)));
    let section = of_tag.expect("the section is there");
    section[3..11].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
    section[11..19].copy_from_slice(&len.to_le_bytes());
    section[19..23].copy_from_slice(&checksum_of_zeros(len).to_le_bytes());
    let end = bytes.len() as u64 + len;
    bytes = list.clone();
    bytes.extend(tail(list_len, crc32c::crc32c(&list)));
    let file = File::options().write(true).open(path).expect("opens");
    file.write_all_at(&bytes, end).expect("writes behind a hole");
}

/// Everything that opens the files, in little room. The error of opening, if it gave one.
fn open_everything(dir: &Path, options: &Options) -> Option<Error> {
    with_room(96 * MIB, || {
        let opened = Db::open(dir, options.clone()).and_then(|db| {
            let found = db.range(..).filter(Result::is_ok).count();
            assert!(found >= 2000, "{found} are found without an error");
            assert!(db.get(key(7)).expect("reads").is_some());
            let verified = db.verify().map(drop);
            let checked: Vec<_> = db.multi_get(&[key(1), key(3)]).into_iter().collect();
            assert!(checked.iter().all(Result::is_ok));
            db.close()?;
            verified
        });
        let _ = trommel::tools::verify_files(dir);
        let mut items = 0;
        let dumped = trommel::tools::dump(&trommel::storage::Disk, dir, &mut |_| {
            items += 1;
            if items < 10_000 {
                std::ops::ControlFlow::Continue(())
            } else {
                std::ops::ControlFlow::Break(())
            }
        });
        assert!(dumped.is_ok() || dumped.is_err_and(|error| error.tells_of_damage()));
        opened.err()
    })
}

fn names(error: &Error, path: &Path) -> bool {
    let name = path.file_name().expect("a name").to_string_lossy();
    error.to_string().contains(&*name)
}

#[test] // As much memory was taken as the list claimed to need, up to 4 GiB.
fn a_section_list_that_claims_gigabytes_is_refused() {
    let Some(folder) = in_own_process("a_section_list_that_claims_gigabytes_is_refused") else {
        return;
    };
    for (nth, claimed) in [u32::MAX, 1 << 30, 2_000_000].into_iter().enumerate() {
        let dir = folder.join(nth.to_string());
        let (table, _) = make_store(&dir, &options());
        let file = File::options().write(true).open(&table).expect("opens");
        file.write_all_at(&tail(claimed, 7), 5 << 30).expect("writes behind a hole");
        let refused = open_everything(&dir, &options()).expect("it is no table");
        assert!(names(&refused, &table), "{refused}");
        assert!(refused.to_string().contains("longer than any"), "{refused}");
    }
}

#[test] // As much memory was taken as a section claimed to need, or the process ended.
fn sections_of_gigabytes_without_a_byte_are_refused() {
    let Some(folder) = in_own_process("sections_of_gigabytes_without_a_byte_are_refused") else {
        return;
    };
    type Tag = (&'static str, fn(u16) -> bool);
    let tags: [Tag; 3] =
        [("index", |tag| tag == 1), ("properties", |tag| tag == 2), ("filter", |tag| tag > 0x100)];
    let ways = [
        (DirectIo::default(), Overlap::OneByOne),
        (DirectIo::default(), Overlap::Pool),
        (DirectIo::ALL, Overlap::Ring),
    ];
    for (what, tag) in tags {
        for (nth, (direct, overlap)) in ways.into_iter().enumerate() {
            let dir = folder.join(format!("{what} {nth}"));
            let guard = "blocked-bloom".parse().expect("known");
            let options = options().guard(guard).direct(direct).overlap(overlap);
            let (table, _) = make_store(&dir, &options);
            stretch_section(&table, tag, 4 << 30);
            let refused = open_everything(&dir, &options);
            // Without its filter a table is as good.
            assert_eq!(refused.is_none(), what == "filter", "{what}: {refused:?}");
            if let Some(refused) = refused {
                assert!(names(&refused, &table), "{refused}");
                assert!(refused.to_string().contains("holes"), "{refused}");
            }
        }
    }
}

/// The head of a record at the end of a log that claims a payload of so many bytes.
fn record_head(number: u64, offset: u64, len: u32, payload_checksum: u32) -> Vec<u8> {
    let mut head = b"tRec".to_vec();
    head.extend_from_slice(&len.to_le_bytes());
    head.extend_from_slice(&payload_checksum.to_le_bytes());
    let checksum = crc32c::crc32c(&number.to_le_bytes());
    let checksum = crc32c::crc32c_append(checksum, &offset.to_le_bytes());
    let checksum = crc32c::crc32c_append(checksum, &head);
    head.extend_from_slice(&checksum.to_le_bytes());
    head
}

#[test]
fn records_that_claim_gigabytes_take_no_memory() {
    let Some(folder) = in_own_process("records_that_claim_gigabytes_take_no_memory") else {
        return;
    };
    const LONG: u32 = 1 << 29;
    let right = checksum_of_zeros(u64::from(LONG));
    for (claimed, checksum, hole) in [
        (u32::MAX, 7, 0),
        (u32::MAX, 7, u64::from(LONG)),
        (LONG, 7, 1 << 30),
        (LONG, right, 1 << 30),
    ] {
        let dir = folder.join(format!("{claimed} {checksum} {hole}"));
        let (_, log) = make_store(&dir, &options());
        let number = log.file_stem().and_then(|stem| stem.to_str()?.parse().ok());
        let number = number.expect("a log has a number");
        let end = fs::metadata(&log).expect("is there").len();
        let file = File::options().write(true).open(&log).expect("opens");
        file.write_all_at(&record_head(number, end, claimed, checksum), end).expect("writes");
        file.set_len(end + 16 + hole).expect("makes a hole");
        let refused = open_everything(&dir, &options());
        // A wrong checksum is a torn end. One that is right takes the memory that the record
        // claims, and there is none.
        assert_eq!(refused.is_some(), checksum == right, "{refused:?}");
        if let Some(refused) = refused {
            assert!(names(&refused, &log) && refused.tells_of_damage(), "{refused}");
        }
    }
}
