//! Tests of records: round trips, whole and in parts; everything else is refused.

use std::result::Result;

use super::format::{CHUNK_BYTES, HEADER_BYTES, VERSION, chunk_count, decode_header, header};
use super::record_reader::{Ended, Ends, Wrong, packed_chunks, plain_chunks, walk};
use super::*;

const PLACE: (u64, u64) = (7, 1000);
const ALL: [Compression; 3] = [Compression::None, Compression::Lz4, Compression::Zstd { level: 3 }];

/// Makes the record of a value, in pieces of this many chunks.
fn record_at(
    place: (u64, u64),
    value: &[u8],
    compression: Compression,
    chunks: usize,
) -> (Vec<u8>, ValueRef) {
    let mut packer = (compression != Compression::None).then(|| Packer::new(compression, None));
    let mut maker = RecordMaker::new(place, value.len() as u64, packer.as_mut());
    let mut bytes = Vec::new();
    value.chunks(chunks * CHUNK_BYTES).for_each(|piece| maker.add(piece, &mut bytes));
    let at = maker.end(&mut bytes);
    (bytes, at)
}

fn record(value: &[u8], compression: Compression) -> (Vec<u8>, ValueRef) {
    record_at(PLACE, value, compression, 2)
}

fn text(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at / 100 * 31) as u8).collect()
}

fn noise(len: usize) -> Vec<u8> {
    let mut state = 7u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    };
    (0..len).map(|_| next()).collect()
}

/// Reads chunks from a record whose bytes are all there is from `at.offset` on.
fn read_part(
    record: &[u8],
    at: &ValueRef,
    chunks: Range<u64>,
    checksum: &mut u32,
) -> Result<Vec<u8>, Wrong> {
    let of = |span: Range<u64>| {
        let [from, to] = [span.start, span.end].map(|place| (place - at.offset) as usize);
        record.get(from..to).unwrap_or_default().to_vec()
    };
    let known = Ends::known(at);
    let ends = known.map_or_else(|| Ends::decode(&of(Ends::span(at)), at), Ok)?;
    let span = ends.chunks(at, &chunks);
    let mut bytes = of(span.clone());
    match at.packed_bytes {
        None => plain_chunks(&mut bytes, at, (chunks.start, span.start), checksum)
            .map(|range| bytes[range].to_vec()),
        Some(_) => packed_chunks(&bytes, at, (&chunks, span.start), checksum),
    }
}

/// Reads a value. `None`: something is wrong with it.
fn read(record: &[u8], at: &ValueRef) -> Option<Vec<u8>> {
    let mut checksum = 0;
    let value = read_part(record, at, 0..chunk_count(at.len), &mut checksum).ok()?;
    (checksum == at.checksum && value.len() as u64 == at.len).then_some(value)
}

/// Walks over a record. Returns its end.
fn walk_of(record: &[u8], place: (u64, u64)) -> Result<u64, &'static str> {
    let head = Head::decode(record.get(..HEAD_BYTES).ok_or("short")?, place);
    let head = head.map_err(|wrong| wrong.what)?;
    let mut seen = record[..HEAD_BYTES].to_vec();
    let read = |span: Range<u64>| {
        let [from, to] = [span.start, span.end].map(|at| (at - place.1) as usize);
        Ok::<_, ()>(record.get(from..to).map(<[u8]>::to_vec))
    };
    let each = |bytes: &[u8]| {
        seen.extend_from_slice(bytes);
        Ok(())
    };
    match walk(place, head, read, each) {
        Ok(end) => {
            assert_eq!(seen, record[..(end - place.1) as usize], "it has seen all of it");
            Ok(end)
        }
        Err(Ended::Damaged((_, Unreadable::Damaged(what)))) => Err(what),
        Err(_) => Err("it needs what it does not need"),
    }
}

#[test]
fn golden_bytes_of_a_header_and_of_records() {
    let bytes = header(12, KeyspaceId(3));
    assert_eq!(bytes.len(), HEADER_BYTES);
    let plain = [&b"TRMLVAL\0"[..], &[1, 0, 0, 0, 12, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0]].concat();
    assert_eq!(bytes[..plain.len()], plain);
    assert_eq!(bytes[plain.len()..], [0x1c, 0xee, 0xd5, 0xc2]);
    assert_eq!(decode_header(&bytes, 12), Ok((VERSION, KeyspaceId(3))));
    assert!(decode_header(&bytes, 13).is_err());

    let (bytes, at) = record_at((12, 28), b"drum", Compression::None, 1);
    let expected = [
        &b"tVal"[..],
        &[4, 0, 0, 0, 0, 0, 0, 0],
        &[0x7d, 0x9d, 0x75, 0x8c],
        b"drum",
        &[0x43, 0x6f, 0xb7, 0xa4],
    ];
    assert_eq!(bytes, expected.concat());
    assert_eq!((at.checksum, at.packed_bytes), (0x9677_9dff, None));

    let packed = [
        &b"tPak"[..],
        &[0x2c, 1, 0, 0, 0, 0, 0, 0],
        &[121, 181, 61, 17],
        &[1, 15, 0, 0, 0],
        &[0xac, 2],
        &[31, 7, 1, 0, 255, 19, 96, 7, 7, 7, 7, 7, 7],
        &[205, 52, 96, 44],
    ];
    let (packed, value) = (packed.concat(), [7; 300]);
    let (_, at) = record_at((12, 28), &value, Compression::Lz4, 1);
    let at = ValueRef { packed_bytes: Some(packed.len() as u64), checksum: at.checksum, ..at };
    assert_eq!(read(&packed, &at).as_deref(), Some(&value[..]));
}

#[test]
fn values_of_any_length_come_back_whole_and_in_parts() {
    let lens = [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 5 * CHUNK_BYTES + 5];
    for (compression, len) in ALL.iter().flat_map(|it| lens.map(|len| (*it, len))) {
        for value in [text(len), noise(len), [noise(len), text(len)].concat()] {
            let (bytes, at) = record(&value, compression);
            assert_eq!(bytes.len() as u64, record_bytes(&at));
            assert_eq!(read(&bytes, &at).as_ref(), Some(&value), "{compression}, {len}");
            assert_eq!(walk_of(&bytes, PLACE), Ok(PLACE.1 + bytes.len() as u64));
            for chunk in 0..chunk_count(at.len) {
                let part = read_part(&bytes, &at, chunk..chunk + 1, &mut 0).expect("it is sound");
                let from = chunk as usize * CHUNK_BYTES;
                assert_eq!(part, value[from..value.len().min(from + CHUNK_BYTES)]);
            }
            let whole = record_at(PLACE, &value, compression, 100);
            assert!(bytes == whole.0 || at.packed_bytes != whole.1.packed_bytes);
        }
    }
}

#[test]
fn what_does_not_shrink_is_plain() {
    let half = [noise(CHUNK_BYTES), text(CHUNK_BYTES)].concat();
    for compression in [Compression::Lz4, Compression::Zstd { level: 3 }] {
        let is_packed = |value: &[u8]| record(value, compression).1.packed_bytes.is_some();
        assert!(!is_packed(&noise(3 * CHUNK_BYTES)));
        // Without the feature `zstd`, LZ4 takes its place.
        assert!(is_packed(&text(300)), "{compression}");
        let (bytes, at) = record(&half, compression);
        assert!(at.packed_bytes.is_some() && bytes.len() < half.len() * 2 / 3, "{compression}");
    }
    assert_eq!(record(&text(300), Compression::None).1.packed_bytes, None);
}

#[test]
fn every_damaged_byte_is_found_and_so_is_another_place() {
    let value = [text(CHUNK_BYTES), text(400)].concat();
    for (compression, value) in [
        (Compression::None, &value[..40]),
        (Compression::Lz4, &value[..300]),
        (Compression::Lz4, &value[..]),
    ] {
        let (bytes, at) = record(value, compression);
        for place in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[place] ^= 4;
            let whole = read(&damaged, &at);
            assert_eq!(whole, None, "{compression}, byte {place} of {}", bytes.len());
            assert!(walk_of(&damaged, PLACE).is_err(), "{compression}, byte {place}");
        }
        for len in 0..bytes.len() {
            assert_eq!(read(&bytes[..len], &at), None, "{len} bytes");
            assert!(walk_of(&bytes[..len], PLACE).is_err(), "{len} bytes");
        }
        assert_eq!(read(&bytes, &ValueRef { file: 8, ..at }), None);
        assert_eq!(read(&bytes, &ValueRef { len: at.len - 1, ..at }), None);
        let shorter = at.packed_bytes.map(|bytes| bytes - 1);
        assert!(
            shorter.is_none() || read(&bytes, &ValueRef { packed_bytes: shorter, ..at }).is_none()
        );
        let other = at.packed_bytes.is_none().then_some(bytes.len() as u64);
        assert_eq!(read(&bytes, &ValueRef { packed_bytes: other, ..at }), None);
    }
    let header = header(12, KeyspaceId(3));
    for place in 0..header.len() {
        let mut damaged = header.clone();
        damaged[place] ^= 4;
        assert!(decode_header(&damaged, 12).is_err(), "byte {place}");
    }
}
