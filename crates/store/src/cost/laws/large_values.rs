//! Long values are written and read piece by piece: the cost depends on the pieces, and memory is
//! bounded by two of them.
//! ```text
//! put_reader   stream -> piece -> append, for each           then one entry, whatever the length
//! get_reader   entry -> head     then: read -> chunk, or packed piece      a part: read -> chunk
//! ```
//! Invariant: compressible values obey the same laws as others. Only allocations are more frequent,
//! since each chunk is compressed separately.

use std::io::{Read, Seek, SeekFrom, copy, repeat, sink};

use super::Law;
use super::counted::Counted;
use crate::files::value_file::PIECE_BYTES;
use crate::files::value_file::format::CHUNK_BYTES;
use crate::{Background, Db, Options, SyncPolicy};

const MIB: u64 = 1 << 20;
/// The lengths of the two values, in bytes.
const LENGTHS: [u64; 2] = [4 * MIB, 40 * MIB];
/// The most disk calls, allocations and bytes of a call besides its pieces.
const CALLS_BESIDE: u64 = 6;
const ALLOCATIONS_BESIDE: u64 = 100;
const BYTES_BESIDE: u64 = 256 << 10;
/// The most allocations while a piece is compressed or decompressed.
const ALLOCATIONS_OF_PACKED: u64 = 40;
/// The part of the bytes that checksums of chunks, ends of chunks and heads may add: one in this
/// many.
const FRAMING: u64 = 1000;

fn open(disk: &Counted, packs: bool) -> Db {
    let options = Options::new()
        .compression(packs)
        .block_cache_bytes(0)
        .write_buffer_bytes(1 << 20)
        .sync(SyncPolicy::Never)
        .background(Background::Stepped);
    let db = Db::open_with("db", options, disk.environment()).expect("opens");
    // Makes sure that there is a log.
    db.put("first", "1").and_then(|()| db.sync()).expect("writes");
    db
}

fn pieces(length: u64) -> u64 {
    length.div_ceil(PIECE_BYTES as u64)
}

fn framed(length: u64) -> u64 {
    length + length / FRAMING + 4096
}

fn put(db: &Db, length: u64) {
    db.put_reader(length.to_be_bytes(), length, repeat(7).take(length)).expect("puts");
}

#[test]
fn a_long_value_is_written_piece_by_piece() {
    for packs in [false, true] {
        let disk = Counted::new();
        let db = open(&disk, packs);
        let used = LENGTHS.map(|length| {
            let ((), used) = disk.used(|| put(&db, length));
            assert!(used.appends <= pieces(length) + CALLS_BESIDE, "{length}: {used:?}");
            assert!(used.appended_bytes <= framed(length), "{length}: {used:?}");
            assert!(used.reads <= CALLS_BESIDE && used.syncs == 0, "{length}: {used:?}");
            let of_packed = if packs { ALLOCATIONS_OF_PACKED * pieces(length) } else { 0 };
            assert!(used.allocations <= of_packed + ALLOCATIONS_BESIDE, "{length}: {used:?}");
            assert!(used.peak_bytes <= MIB + BYTES_BESIDE, "{length}: {used:?}");
            // File, name and log, as for any value.
            let ((), synced) = disk.used(|| db.sync().expect("syncs"));
            assert!(synced.syncs <= CALLS_BESIDE && synced.reads <= CALLS_BESIDE, "{synced:?}");
            used
        });
        assert_eq!(used[0].breaks(used[1], Law::Linear), None, "{packs}");
    }
}

#[test]
fn a_long_value_is_read_piece_by_piece() {
    for packs in [false, true] {
        let disk = Counted::new();
        let db = open(&disk, packs);
        LENGTHS.into_iter().for_each(|length| put(&db, length));
        let used = LENGTHS.map(|length| {
            let (found, opened) = disk.used(|| db.get_reader(length.to_be_bytes()));
            let mut reader = found.expect("reads").expect("it is there");
            assert!(opened.reads <= CALLS_BESIDE, "{length}: {opened:?}");
            assert!(opened.read_bytes <= framed(0), "{length}: {opened:?}");
            assert!(opened.allocations <= ALLOCATIONS_BESIDE, "{length}: {opened:?}");
            assert!(opened.peak_bytes <= BYTES_BESIDE, "{length}: {opened:?}");
            let (count, used) = disk.used(|| copy(&mut reader, &mut sink()).expect("reads"));
            assert_eq!(count, length);
            // Plain chunks are read one by one.
            let chunks_of_piece = (PIECE_BYTES / CHUNK_BYTES) as u64;
            let reads_of_piece = if packs { 1 } else { chunks_of_piece };
            let reads = reads_of_piece * pieces(length) + CALLS_BESIDE;
            assert!(used.reads <= reads, "{length}: {used:?}");
            assert!(used.read_bytes <= framed(length), "{length}: {used:?}");
            assert_eq!((used.appends, used.syncs), (0, 0), "{length}");
            let of_piece = if packs { ALLOCATIONS_OF_PACKED } else { 2 + chunks_of_piece };
            let allocations = of_piece * pieces(length) + ALLOCATIONS_BESIDE;
            assert!(used.allocations <= allocations, "{length}: {used:?}");
            assert!(used.peak_bytes <= MIB + BYTES_BESIDE, "{length}: {used:?}");
            used
        });
        assert_eq!(used[0].breaks(used[1], Law::Linear), None, "{packs}");
    }
}

/// Read at a snapshot, so this holds for snapshots, too.
#[test]
fn a_part_of_a_long_value_costs_its_chunk() {
    for packs in [false, true] {
        let disk = Counted::new();
        let db = open(&disk, packs);
        LENGTHS.into_iter().for_each(|length| put(&db, length));
        let snapshot = db.snapshot();
        let used = LENGTHS.map(|length| {
            let found = snapshot.get_reader(length.to_be_bytes());
            let mut reader = found.expect("reads").expect("it is there");
            let mut byte = [0];
            let ((), used) = disk.used(|| {
                reader.seek(SeekFrom::Start(length / 2 + 1)).expect("seeks");
                reader.read_exact(&mut byte).expect("reads");
            });
            assert_eq!(byte, [7]);
            assert!(used.reads <= CALLS_BESIDE, "{length}: {used:?}");
            assert!(used.read_bytes <= framed(CHUNK_BYTES as u64), "{length}: {used:?}");
            used
        });
        assert_eq!(used[0].breaks(used[1], Law::Log), None, "{packs}");
    }
}
