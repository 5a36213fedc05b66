//! The bytes of a value file: a header, then records, one for each value.
//! ```text
//! file     magic u64 | version u32 | number u64 | key space u32 | checksum u32    then records
//! record   magic u32 | length u64 | checksum u32 | chunk | checksum u32 | chunk | ...
//! ```
//! Invariants: a record is valid at its own offset in its own file and nowhere else. Each chunk has
//! its own checksum, so that a part of a value is read and checked without the rest.

use std::ops::Range;

use trommel_filters::{Corrupt, Reader, Writer};

use crate::entries::keyspace_id::KeyspaceId;
use crate::entries::value_ref::{VALUE_APART_BYTES_MAX, ValueRef};

/// The version of the format that is written, and the only one that is read.
pub(crate) const VERSION: u32 = 1;
const MAGIC: [u8; 8] = *b"TRMLVAL\0";
const RECORD_MAGIC: [u8; 4] = *b"tVal";

pub(crate) const HEADER_BYTES: usize = 28;
const HEADER_CHECKSUM_AT: usize = HEADER_BYTES - CHECKSUM_BYTES;
/// What a record has before its first chunk.
pub(crate) const HEAD_BYTES: usize = 16;
const HEAD_CHECKSUM_AT: usize = HEAD_BYTES - CHECKSUM_BYTES;
const CHECKSUM_BYTES: usize = size_of::<u32>();
const _: () = assert!(HEADER_CHECKSUM_AT == MAGIC.len() + 4 + 8 + 4);
const _: () = assert!(HEAD_CHECKSUM_AT == RECORD_MAGIC.len() + 8);

/// Bytes of a chunk; the last one of a value may have fewer.
pub(crate) const CHUNK_BYTES: usize = 64 << 10;
const STRIDE: u64 = (CHUNK_BYTES + CHECKSUM_BYTES) as u64;

pub(crate) fn header(number: u64, keyspace: KeyspaceId) -> Vec<u8> {
    let mut out = Writer::new();
    out.bytes(&MAGIC);
    out.u32(VERSION);
    out.u64(number);
    out.u32(keyspace.0);
    out.u32(crc32c::crc32c(out.as_slice()));
    out.finish()
}

/// The version and the key space that a header tells.
pub(crate) fn decode_header(bytes: &[u8], number: u64) -> Result<(u32, KeyspaceId), Corrupt> {
    let mut input = Reader::new(bytes);
    if input.bytes(MAGIC.len())? != MAGIC {
        return Err(Corrupt { at: 0, what: "the magic number of a value file" });
    }
    let (version, told, keyspace) = (input.u32()?, input.u64()?, input.u32()?);
    let (checksum, sound) = (input.u32()?, crc32c::crc32c(&bytes[..HEADER_CHECKSUM_AT]));
    input.end()?;
    if checksum != sound {
        return Err(input.corrupt("the checksum of the header does not match"));
    }
    if told != number {
        return Err(input.corrupt("a value file under another one's name"));
    }
    Ok((version, KeyspaceId(keyspace)))
}

/// How many chunks a value of so many bytes has.
pub(crate) fn chunk_count(len: u64) -> u64 {
    len.div_ceil(CHUNK_BYTES as u64)
}

/// Bytes of a record. Requires: the value is not too long.
pub(crate) fn record_bytes(len: u64) -> u64 {
    debug_assert!(len <= VALUE_APART_BYTES_MAX, "a value of {len} bytes");
    HEAD_BYTES as u64 + len + chunk_count(len) * CHECKSUM_BYTES as u64
}

/// What a place adds to the checksum of a chunk.
fn salt(file: u64, offset: u64) -> u32 {
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    const OF_FILE: u64 = 0xd6e8_feb8_6659_fd93;
    (offset.wrapping_add(file.wrapping_mul(OF_FILE)).wrapping_mul(SPREAD) >> 32) as u32
}

/// The head of a record at a place.
pub(crate) fn head((file, offset): (u64, u64), len: u64) -> [u8; HEAD_BYTES] {
    let mut head = [0; HEAD_BYTES];
    head[..RECORD_MAGIC.len()].copy_from_slice(&RECORD_MAGIC);
    head[RECORD_MAGIC.len()..HEAD_CHECKSUM_AT].copy_from_slice(&len.to_le_bytes());
    let checksum = head_checksum((file, offset), &head[..HEAD_CHECKSUM_AT]);
    head[HEAD_CHECKSUM_AT..].copy_from_slice(&checksum.to_le_bytes());
    head
}

fn head_checksum((file, offset): (u64, u64), bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes) ^ salt(file, offset)
}

/// The length that the head of a record at a place tells.
pub(crate) fn decode_head(bytes: &[u8], (file, offset): (u64, u64)) -> Result<u64, Corrupt> {
    let mut input = Reader::new(bytes);
    if input.bytes(RECORD_MAGIC.len())? != RECORD_MAGIC {
        return Err(Corrupt { at: 0, what: "no value begins here" });
    }
    let len = input.u64()?;
    let sound = head_checksum((file, offset), &bytes[..HEAD_CHECKSUM_AT]);
    if input.u32()? != sound || len > VALUE_APART_BYTES_MAX {
        return Err(Corrupt { at: 0, what: "the head of a value is damaged" });
    }
    Ok(len)
}

/// Makes a record, chunk after chunk.
pub(crate) struct RecordMaker {
    file: u64,
    /// Where the next chunk goes.
    at: u64,
    checksum: u32,
}

impl RecordMaker {
    /// Of a record at a place.
    pub(crate) fn new((file, offset): (u64, u64)) -> Self {
        RecordMaker { file, at: offset + HEAD_BYTES as u64, checksum: 0 }
    }

    /// Appends chunks of these bytes. Requires: only the last bytes of a value are not a multiple
    /// of the length of a chunk.
    pub(crate) fn add(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        for chunk in bytes.chunks(CHUNK_BYTES) {
            let checksum = crc32c::crc32c(chunk);
            out.extend_from_slice(chunk);
            out.extend_from_slice(&(checksum ^ salt(self.file, self.at)).to_le_bytes());
            self.at += (chunk.len() + CHECKSUM_BYTES) as u64;
            self.checksum = join(self.checksum, checksum);
        }
    }

    /// The checksum of all chunks, which the reference has.
    pub(crate) fn checksum(&self) -> u32 {
        self.checksum
    }
}

/// The checksum of a value's chunks with one more of them.
fn join(before: u32, chunk: u32) -> u32 {
    crc32c::crc32c_append(before, &chunk.to_le_bytes())
}

/// Where some chunks of a value lie in its file, from the head of its record on if they are the
/// first ones.
pub(crate) fn span(at: &ValueRef, chunks: &Range<u64>) -> Range<u64> {
    let first = at.offset + HEAD_BYTES as u64;
    let start = if chunks.start == 0 { at.offset } else { first + chunks.start * STRIDE };
    let is_last = chunks.end >= chunk_count(at.len);
    let end = if is_last { at.offset + record_bytes(at.len) } else { first + chunks.end * STRIDE };
    start..end
}

/// Checks what was read of the [`span`] of chunks, and moves their bytes together. `checksum`: of
/// all chunks before, to which these are added. Gives where in `bytes` they are. An error: where in
/// the file something is wrong.
pub(crate) fn checked(
    bytes: &mut [u8],
    at: &ValueRef,
    chunks: &Range<u64>,
    checksum: &mut u32,
) -> Result<Range<usize>, (u64, &'static str)> {
    let mut read = 0;
    if chunks.start == 0 {
        let head = bytes.get(..HEAD_BYTES).ok_or((at.offset, "a value that is not whole"))?;
        let len = decode_head(head, (at.file, at.offset)).map_err(|it| (at.offset, it.what))?;
        if len != at.len {
            return Err((at.offset, "a value of another length than its reference tells"));
        }
        read = HEAD_BYTES;
    }
    let (start, place) = (read, span(at, chunks).start);
    let mut end = start;
    while read < bytes.len() {
        let offset = place + read as u64;
        let stored = (bytes.len() - read).min(STRIDE as usize);
        let len = stored.checked_sub(CHECKSUM_BYTES).ok_or((offset, "a chunk of no bytes"))?;
        let (chunk, rest) = bytes[read..read + stored].split_at(len);
        let told = u32::from_le_bytes(rest.try_into().expect("as long as a checksum"));
        let own = crc32c::crc32c(chunk);
        if own ^ salt(at.file, offset) != told {
            return Err((offset, "the checksum of a chunk of a value does not match"));
        }
        *checksum = join(*checksum, own);
        bytes.copy_within(read..read + len, end);
        (read, end) = (read + stored, end + len);
    }
    Ok(start..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(place: (u64, u64), value: &[u8]) -> (Vec<u8>, ValueRef) {
        let mut bytes = head(place, value.len() as u64).to_vec();
        let mut maker = RecordMaker::new(place);
        maker.add(value, &mut bytes);
        let (file, offset) = place;
        let (len, checksum) = (value.len() as u64, maker.checksum());
        (bytes, ValueRef { file, offset, len, checksum })
    }

    fn value(len: usize) -> Vec<u8> {
        (0..len).map(|at| (at * 31 / 7) as u8).collect()
    }

    fn read(bytes: &[u8], at: &ValueRef) -> Result<Vec<u8>, (u64, &'static str)> {
        let (mut bytes, mut checksum) = (bytes.to_vec(), 0);
        let range = checked(&mut bytes, at, &(0..chunk_count(at.len)), &mut checksum)?;
        assert_eq!(checksum, at.checksum);
        Ok(bytes[range].to_vec())
    }

    #[test]
    fn golden_bytes_of_a_header_and_a_record() {
        let bytes = header(12, KeyspaceId(3));
        assert_eq!(bytes.len(), HEADER_BYTES);
        let plain =
            [&b"TRMLVAL\0"[..], &[1, 0, 0, 0, 12, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0]].concat();
        assert_eq!(bytes[..HEADER_CHECKSUM_AT], plain);
        assert_eq!(bytes[HEADER_CHECKSUM_AT..], [0x1c, 0xee, 0xd5, 0xc2]);
        assert_eq!(decode_header(&bytes, 12), Ok((VERSION, KeyspaceId(3))));
        assert!(decode_header(&bytes, 13).is_err());
        let (bytes, at) = record((12, 28), b"drum");
        let expected = [
            &b"tVal"[..],
            &[4, 0, 0, 0, 0, 0, 0, 0],
            &[0x7d, 0x9d, 0x75, 0x8c],
            b"drum",
            &[0x43, 0x6f, 0xb7, 0xa4],
        ];
        assert_eq!(bytes, expected.concat());
        assert_eq!(at.checksum, 0x9677_9dff);
        assert_eq!(bytes.len() as u64, record_bytes(4));
    }

    #[test]
    fn values_of_any_length_come_back_whole_and_in_parts() {
        for len in [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES + 5] {
            let value = value(len);
            let (bytes, at) = record((7, 1000), &value);
            assert_eq!(bytes.len() as u64, record_bytes(len as u64));
            assert_eq!(read(&bytes, &at).expect("it is sound"), value);
            for chunk in 0..chunk_count(at.len) {
                let chunks = chunk..chunk + 1;
                let span = span(&at, &chunks);
                let mut part =
                    bytes[(span.start - 1000) as usize..(span.end - 1000) as usize].to_vec();
                let range = checked(&mut part, &at, &chunks, &mut 0).expect("it is sound");
                let from = chunk as usize * CHUNK_BYTES;
                assert_eq!(part[range], value[from..len.min(from + CHUNK_BYTES)]);
            }
        }
    }

    #[test]
    fn every_damaged_byte_is_found_and_so_is_another_place() {
        let (bytes, at) = record((7, 1000), &value(40));
        for place in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[place] ^= 4;
            assert!(read(&damaged, &at).is_err(), "byte {place}");
        }
        for len in 0..bytes.len() {
            let read = std::panic::catch_unwind(|| read(&bytes[..len], &at));
            assert!(!read.is_ok_and(|read| read.is_ok()), "{len} bytes");
        }
        assert!(read(&bytes, &ValueRef { offset: 1001, ..at }).is_err());
        assert!(read(&bytes, &ValueRef { file: 8, ..at }).is_err());
        assert!(read(&bytes, &ValueRef { len: 39, ..at }).is_err());
        let header = header(12, KeyspaceId(3));
        for place in 0..header.len() {
            let mut damaged = header.clone();
            damaged[place] ^= 4;
            assert!(decode_header(&damaged, 12).is_err(), "byte {place}");
        }
    }
}
