//! The encoding of a value file: a header, then a record for each value.
//! ```text
//! file     magic u64 | version u32 | number u64 | key space u32 | checksum u32    then records
//! record   magic u32 | length u64 | checksum u32 | chunk | chunk | ...            ends of chunks
//! chunk    plain     bytes | checksum u32                             of equal length but the last
//!          packed    form u8 | length u32 | body | checksum u32
//! ends     if there are several packed chunks: u32 each, from the first chunk on | checksum u32
//! ```
//! Invariants: a record is valid only at its own offset in its own file. Each chunk has its own
//! checksum, so a part of a value is read and checked without the rest.

use trommel_filters::{Corrupt, Reader, Writer};

use crate::entries::checksum;
use crate::entries::keyspace_id::KeyspaceId;
use crate::entries::value_ref::{VALUE_APART_BYTES_MAX, ValueRef};

/// The version of the format that is written, and the only one that is readable.
pub(crate) const VERSION: u32 = 1;
const MAGIC: [u8; 8] = *b"TRMLVAL\0";
const PLAIN_MAGIC: [u8; 4] = *b"tVal";
const PACKED_MAGIC: [u8; 4] = *b"tPak";

pub(crate) const HEADER_BYTES: usize = 28;
const HEADER_CHECKSUM_AT: usize = HEADER_BYTES - CHECKSUM_BYTES;
/// Bytes of a record before its first chunk.
pub(crate) const HEAD_BYTES: usize = 16;
const HEAD_CHECKSUM_AT: usize = HEAD_BYTES - CHECKSUM_BYTES;
pub(super) const CHECKSUM_BYTES: usize = size_of::<u32>();
const _: () = assert!(HEADER_CHECKSUM_AT == MAGIC.len() + 4 + 8 + 4);
const _: () = assert!(HEAD_CHECKSUM_AT == PLAIN_MAGIC.len() + 8);

/// Bytes of a chunk. The last one of a value may be shorter.
pub(crate) const CHUNK_BYTES: usize = 64 << 10;
/// Bytes of a plain chunk with its checksum.
pub(super) const STRIDE: u64 = (CHUNK_BYTES + CHECKSUM_BYTES) as u64;
/// Bytes of a packed chunk before its body.
pub(super) const CHUNK_HEAD_BYTES: usize = 1 + size_of::<u32>();
/// Longer values are stored plain, since the ends of their chunks would take memory.
pub(super) const PACKED_VALUE_BYTES_MAX: u64 = 1 << 30;

pub(crate) fn header(number: u64, keyspace: KeyspaceId) -> Vec<u8> {
    let mut out = Writer::new();
    out.bytes(&MAGIC);
    out.u32(VERSION);
    out.u64(number);
    out.u32(keyspace.0);
    out.u32(checksum::crc32c(out.as_slice()));
    out.finish()
}

/// Decodes the version and the key space of a header.
pub(crate) fn decode_header(bytes: &[u8], number: u64) -> Result<(u32, KeyspaceId), Corrupt> {
    let mut input = Reader::new(bytes);
    if input.bytes(MAGIC.len())? != MAGIC {
        return Err(Corrupt { at: 0, what: "the magic number of a value file" });
    }
    let (version, recorded, keyspace) = (input.u32()?, input.u64()?, input.u32()?);
    let (checksum, sound) = (input.u32()?, checksum::crc32c(&bytes[..HEADER_CHECKSUM_AT]));
    input.end()?;
    if checksum != sound {
        return Err(input.corrupt("the checksum of the header does not match"));
    }
    if recorded != number {
        return Err(input.corrupt("a value file under another one's name"));
    }
    Ok((version, KeyspaceId(keyspace)))
}

/// The number of chunks of a value of `len` bytes.
pub(crate) fn chunk_count(len: u64) -> u64 {
    len.div_ceil(CHUNK_BYTES as u64)
}

/// The length of one chunk of a value of `len` bytes.
pub(super) fn chunk_len(len: u64, chunk: u64) -> u64 {
    len.saturating_sub(chunk * CHUNK_BYTES as u64).min(CHUNK_BYTES as u64)
}

/// The length of a plain record. Requires: the value is not too long.
pub(super) fn plain_record_bytes(len: u64) -> u64 {
    debug_assert!(len <= VALUE_APART_BYTES_MAX, "a value of {len} bytes");
    HEAD_BYTES as u64 + len + chunk_count(len) * CHECKSUM_BYTES as u64
}

/// The length of the record that a reference points to.
pub(crate) fn record_bytes(at: &ValueRef) -> u64 {
    at.packed_bytes.unwrap_or_else(|| plain_record_bytes(at.len))
}

/// The length of the list of ends for this many packed chunks.
pub(super) fn ends_bytes(chunks: u64) -> u64 {
    if chunks > 1 { chunks * size_of::<u32>() as u64 + CHECKSUM_BYTES as u64 } else { 0 }
}

/// The maximum length of a packed record. `None`: a value of this length is never packed.
pub(super) fn packed_record_bytes_max(len: u64) -> Option<u64> {
    let (count, around) = (chunk_count(len), (CHUNK_HEAD_BYTES + CHECKSUM_BYTES) as u64);
    let bytes = HEAD_BYTES as u64 + len + count * around + ends_bytes(count);
    (len <= PACKED_VALUE_BYTES_MAX).then_some(bytes)
}

/// Returns what a place (file, offset) adds to a checksum.
pub(super) fn salt((file, offset): (u64, u64)) -> u32 {
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    const OF_FILE: u64 = 0xd6e8_feb8_6659_fd93;
    (offset.wrapping_add(file.wrapping_mul(OF_FILE)).wrapping_mul(SPREAD) >> 32) as u32
}

/// The head of a record, before its first chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// The length of the value in bytes.
    pub(crate) len: u64,
    pub(crate) is_packed: bool,
}

impl Head {
    /// The length of its record. `None`: only its chunks tell.
    pub(crate) fn plain_bytes(self) -> Option<u64> {
        (!self.is_packed).then(|| plain_record_bytes(self.len))
    }

    /// Encodes the head for a place.
    pub(super) fn encode(self, place: (u64, u64)) -> [u8; HEAD_BYTES] {
        let magic = if self.is_packed { PACKED_MAGIC } else { PLAIN_MAGIC };
        let mut head = [0; HEAD_BYTES];
        head[..PLAIN_MAGIC.len()].copy_from_slice(&magic);
        head[PLAIN_MAGIC.len()..HEAD_CHECKSUM_AT].copy_from_slice(&self.len.to_le_bytes());
        let checksum = checksum::crc32c(&head[..HEAD_CHECKSUM_AT]) ^ salt(place);
        head[HEAD_CHECKSUM_AT..].copy_from_slice(&checksum.to_le_bytes());
        head
    }

    /// Decodes the head of the record at a place.
    pub(crate) fn decode(bytes: &[u8], place: (u64, u64)) -> Result<Head, Corrupt> {
        let mut input = Reader::new(bytes);
        let magic = input.bytes(PLAIN_MAGIC.len())?;
        let is_packed = magic == PACKED_MAGIC;
        if !is_packed && magic != PLAIN_MAGIC {
            return Err(Corrupt { at: 0, what: "no value begins here" });
        }
        let len = input.u64()?;
        let sound = checksum::crc32c(&bytes[..HEAD_CHECKSUM_AT]) ^ salt(place);
        let max = if is_packed { PACKED_VALUE_BYTES_MAX } else { VALUE_APART_BYTES_MAX };
        if input.u32()? != sound || len > max {
            return Err(Corrupt { at: 0, what: "the head of a value is damaged" });
        }
        Ok(Head { len, is_packed })
    }
}

/// Extends the checksum of a value's chunks by that of the next chunk.
pub(super) fn join(before: u32, chunk: u32) -> u32 {
    checksum::crc32c_append(before, &chunk.to_le_bytes())
}
