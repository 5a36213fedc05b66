//! Decodes the record of a value: a part, the whole, or a walk over its stored bytes.
//! ```text
//! ends     if there are several packed chunks: the end of each            locates a part
//! span     chunks -> bytes of the file -> checked, decompressed -> bytes of the value
//! walk     a record, referred to or not -> its bytes, checked
//! ```
//! Invariant: no length is used before it is known that the file has as many bytes.

use std::ops::{Deref, Range};

use trommel_filters::Reader;

use super::format::{
    CHECKSUM_BYTES, CHUNK_BYTES, CHUNK_HEAD_BYTES, HEAD_BYTES, Head, STRIDE, chunk_count,
    chunk_len, ends_bytes, join, plain_record_bytes, record_bytes, salt,
};
use crate::entries::checksum;
use crate::entries::compression::{Unreadable, unpack};
use crate::entries::value_ref::ValueRef;

/// What is wrong, and at which file offset.
pub(crate) type Wrong = (u64, Unreadable);

fn damage(offset: u64, what: &'static str) -> Wrong {
    (offset, Unreadable::Damaged(what))
}

/// Where the chunks of a value end, behind the head of its record.
pub(crate) enum Ends {
    /// All chunks but the last have the same length.
    Plain,
    Packed(Vec<u32>),
}

impl Ends {
    /// Returns the ends if they follow from the reference. `None`: they must be read.
    pub(super) fn known(at: &ValueRef) -> Option<Ends> {
        match at.packed_bytes {
            None => Some(Ends::Plain),
            Some(bytes) if chunk_count(at.len) <= 1 => {
                let end = bytes.saturating_sub(HEAD_BYTES as u64);
                Some(Ends::Packed(vec![u32::try_from(end).unwrap_or(u32::MAX)]))
            }
            Some(_) => None,
        }
    }

    /// Returns the file range of the list of ends. Requires: `known` returns `None`.
    pub(super) fn span(at: &ValueRef) -> Range<u64> {
        let end = at.offset + record_bytes(at);
        end.saturating_sub(ends_bytes(chunk_count(at.len))).max(at.offset)..end
    }

    /// Decodes the list of ends.
    pub(super) fn decode(bytes: &[u8], at: &ValueRef) -> Result<Ends, Wrong> {
        let place = Ends::span(at).start;
        let wrong = || damage(place, "the ends of a value's chunks are damaged");
        let (list, stored) = bytes.split_last_chunk::<CHECKSUM_BYTES>().ok_or_else(wrong)?;
        let sound = checksum::crc32c(list) ^ salt((at.file, place));
        if u32::from_le_bytes(*stored) != sound
            || bytes.len() as u64 != ends_bytes(chunk_count(at.len))
        {
            return Err(wrong());
        }
        let ends: Vec<u32> =
            list.as_chunks().0.iter().map(|end| u32::from_le_bytes(*end)).collect();
        let starts = [0].into_iter().chain(ends.iter().copied());
        let mut lens = starts.zip(&ends).map(|(start, end)| end.checked_sub(start));
        let may_be = |len: u32| len as usize <= CHUNK_HEAD_BYTES + CHUNK_BYTES + CHECKSUM_BYTES;
        let last = ends.last().map(|end| at.offset + HEAD_BYTES as u64 + u64::from(*end));
        if last != Some(place) || !lens.all(|len| len.is_some_and(may_be)) {
            return Err(wrong());
        }
        Ok(Ends::Packed(ends))
    }

    /// Returns the file range of some chunks, which includes the head if they begin with the first
    /// one. Requires: the value has these chunks.
    pub(super) fn chunks(&self, at: &ValueRef, chunks: &Range<u64>) -> Range<u64> {
        let first = at.offset + HEAD_BYTES as u64;
        let end_of = |chunk: u64| match self {
            Ends::Plain if chunk + 1 >= chunk_count(at.len) => {
                at.offset + plain_record_bytes(at.len)
            }
            Ends::Plain => first + (chunk + 1) * STRIDE,
            Ends::Packed(ends) => first + u64::from(ends[chunk as usize]),
        };
        let behind = |chunk: u64| if chunk == 0 { at.offset } else { end_of(chunk - 1) };
        let end = if chunks.end == 0 { first } else { end_of(chunks.end - 1) };
        behind(chunks.start)..end
    }
}

/// Checks the head of a record, if `bytes` begin with it. Returns its length, or 0.
fn check_head(bytes: &[u8], at: &ValueRef, first_chunk: u64) -> Result<usize, Wrong> {
    if first_chunk > 0 {
        return Ok(0);
    }
    let head = bytes.get(..HEAD_BYTES).ok_or(damage(at.offset, "a value that is not whole"))?;
    let head = Head::decode(head, (at.file, at.offset));
    let head = head.map_err(|wrong| damage(at.offset, wrong.what))?;
    if head.len != at.len || head.is_packed != at.packed_bytes.is_some() {
        return Err(damage(at.offset, "another value than its reference tells"));
    }
    Ok(HEAD_BYTES)
}

/// Checks the bytes of plain chunks, and moves their contents together. Returns where in `bytes`
/// these lie. `checksum` is that of all chunks before, and is extended by these.
pub(super) fn plain_chunks(
    bytes: &mut [u8],
    at: &ValueRef,
    (first_chunk, place): (u64, u64),
    checksum: &mut u32,
) -> Result<Range<usize>, Wrong> {
    let start = check_head(bytes, at, first_chunk)?;
    let (mut read, mut end) = (start, start);
    while read < bytes.len() {
        let offset = place + read as u64;
        let stored = (bytes.len() - read).min(STRIDE as usize);
        let own = check(&bytes[read..read + stored], (at.file, offset))?;
        *checksum = join(*checksum, own);
        let len = stored - CHECKSUM_BYTES;
        // A single chunk is where it belongs.
        if read != end {
            bytes.copy_within(read..read + len, end);
        }
        (read, end) = (read + stored, end + len);
    }
    Ok(start..end)
}

/// Does the same for packed chunks, and decompresses them.
pub(super) fn packed_chunks(
    bytes: &[u8],
    at: &ValueRef,
    (chunks, place): (&Range<u64>, u64),
    checksum: &mut u32,
) -> Result<Vec<u8>, Wrong> {
    let mut read = check_head(bytes, at, chunks.start)?;
    let mut out = Vec::new();
    for chunk in chunks.clone() {
        let offset = place + read as u64;
        let rest = &bytes[read..];
        let (form, body) = packed_chunk(rest).map_err(|what| damage(offset, what))?;
        let stored = CHUNK_HEAD_BYTES + body.len() + CHECKSUM_BYTES;
        *checksum = join(*checksum, check(&rest[..stored], (at.file, offset))?);
        let len = chunk_len(at.len, chunk);
        let unpacked = unpack((form, body), None, len, |bytes| {
            out.extend_from_slice(bytes);
            Ok(bytes.len() as u64)
        });
        if unpacked.map_err(|wrong| (offset, wrong))? != len {
            return Err(damage(offset, "a chunk of another length than it has to have"));
        }
        read += stored;
    }
    Ok(out)
}

/// Returns form and body of the packed chunk at the start of `bytes`.
fn packed_chunk(bytes: &[u8]) -> Result<(u8, &[u8]), &'static str> {
    let mut input = Reader::new(bytes);
    let mut chunk = || {
        let (form, len) = (input.u8()?, input.u32()?);
        let body = input.bytes(len as usize)?;
        input.bytes(CHECKSUM_BYTES)?;
        Ok((form, body))
    };
    chunk().map_err(|_: trommel_filters::Corrupt| "a chunk that is not whole")
}

/// Checks stored bytes against the checksum that ends them. Returns the checksum.
fn check(stored: &[u8], place: (u64, u64)) -> Result<u32, Wrong> {
    let wrong = damage(place.1, "the checksum of a chunk of a value does not match");
    let (bytes, recorded) = stored.split_last_chunk::<CHECKSUM_BYTES>().ok_or(wrong)?;
    let own = checksum::crc32c(bytes);
    if own ^ salt(place) == u32::from_le_bytes(*recorded) { Ok(own) } else { Err(wrong) }
}

/// Why a walk ended early.
pub(crate) enum Ended<E> {
    Damaged(Wrong),
    Failed(E),
}

/// Walks over a record behind its head, whether anything refers to it or not. `read` returns bytes
/// of the file, or `None` if it ends before. `each` gets the bytes once they are checked. Returns
/// the end of the record.
pub(crate) fn walk<B: Deref<Target = [u8]>, E>(
    place: (u64, u64),
    head: Head,
    mut read: impl FnMut(Range<u64>) -> Result<Option<B>, E>,
    mut each: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<u64, Ended<E>> {
    let mut read = |at: u64, bytes: u64| {
        let read = read(at..at.saturating_add(bytes)).map_err(Ended::Failed)?;
        read.ok_or(Ended::Damaged(damage(at, "a value that is not whole")))
    };
    let ((file, offset), count) = (place, chunk_count(head.len));
    let mut at = offset + HEAD_BYTES as u64;
    let mut part = |at: &mut u64, bytes: &[u8]| {
        check(bytes, (file, *at)).map_err(Ended::Damaged)?;
        each(bytes).map_err(Ended::Failed)?;
        *at += bytes.len() as u64;
        Ok(())
    };
    for chunk in 0..count {
        let mut len = chunk_len(head.len, chunk);
        if head.is_packed {
            let head = read(at, CHUNK_HEAD_BYTES as u64)?;
            let body = u32::from_le_bytes(head[1..].try_into().expect("four bytes"));
            len = (CHUNK_HEAD_BYTES as u64) + u64::from(body).min(CHUNK_BYTES as u64);
        }
        let stored = read(at, len + CHECKSUM_BYTES as u64)?;
        part(&mut at, &stored)?;
    }
    if head.is_packed && count > 1 {
        let ends = read(at, ends_bytes(count))?;
        part(&mut at, &ends)?;
    }
    Ok(at)
}
