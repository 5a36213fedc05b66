//! Reads what is in the record of a value: a part of it, the whole, or as it lies in its file.
//! ```text
//! ends     packed chunks, more than one -> where each ends            a part is found by them
//! span     chunks -> bytes of the file -> checked, unpacked -> bytes of the value
//! walk     a record that nobody may refer to -> its bytes, checked
//! ```
//! Invariant: no length is believed before it is known that the file has as many bytes.

use std::ops::{Deref, Range};

use trommel_filters::Reader;

use super::format::{
    CHECKSUM_BYTES, CHUNK_BYTES, CHUNK_HEAD_BYTES, HEAD_BYTES, Head, STRIDE, chunk_count,
    chunk_len, ends_bytes, join, plain_record_bytes, record_bytes, salt,
};
use crate::entries::checksum;
use crate::entries::compression::{Unreadable, unpack};
use crate::entries::value_ref::ValueRef;

/// Where in the file something is wrong, and what.
pub(crate) type Wrong = (u64, Unreadable);

fn damage(offset: u64, what: &'static str) -> Wrong {
    (offset, Unreadable::Damaged(what))
}

/// Where the chunks of a value end, behind the head of its record.
pub(crate) enum Ends {
    /// All are as long as each other, but the last one.
    Plain,
    Packed(Vec<u32>),
}

impl Ends {
    /// Those that need not be read.
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

    /// Where they are to be read. Requires: they are not known.
    pub(super) fn span(at: &ValueRef) -> Range<u64> {
        let end = at.offset + record_bytes(at);
        end.saturating_sub(ends_bytes(chunk_count(at.len))).max(at.offset)..end
    }

    /// Those that were read there.
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

    /// Where some chunks lie in the file, from the head of the record on if they are the first
    /// ones. Requires: the value has them.
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

/// Checks the head of a record, if these are its first bytes. Gives how many bytes it has.
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

/// Checks what was read of the span of plain chunks, and moves their bytes together. `checksum`: of
/// all chunks before, to which these are added. Gives where in `bytes` they are.
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
        bytes.copy_within(read..read + len, end);
        (read, end) = (read + stored, end + len);
    }
    Ok(start..end)
}

/// As above, of packed chunks, which are unpacked.
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

/// The form and the body of the packed chunk that bytes begin with.
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

/// Gives the checksum of what is before it.
fn check(stored: &[u8], place: (u64, u64)) -> Result<u32, Wrong> {
    let wrong = damage(place.1, "the checksum of a chunk of a value does not match");
    let (bytes, told) = stored.split_last_chunk::<CHECKSUM_BYTES>().ok_or(wrong)?;
    let own = checksum::crc32c(bytes);
    if own ^ salt(place) == u32::from_le_bytes(*told) { Ok(own) } else { Err(wrong) }
}

/// Why a walk has ended early.
pub(crate) enum Ended<E> {
    Damaged(Wrong),
    Failed(E),
}

/// Goes through a record behind its head, whether anybody refers to it or not. `read` gives bytes
/// of the file, or none if it ends before; `each` gets what was read and is sound. Gives where the
/// record ends.
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
