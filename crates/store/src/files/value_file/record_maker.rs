//! Encodes the record of a value, piece by piece.
//! ```text
//! first piece   packed: does any of its chunks shrink?     yes: the record is packed    no: plain
//! next pieces   chunks, each in the form that pays
//! end           the ends of the chunks, if there are several packed ones
//! ```
//! Invariant: memory is limited to one piece, and the ends of at most 16,384 chunks.

use super::format::{
    CHUNK_BYTES, CHUNK_HEAD_BYTES, HEAD_BYTES, Head, PACKED_VALUE_BYTES_MAX, chunk_count, join,
    salt,
};
use crate::entries::checksum;
use crate::entries::compression::{Packer, forms};
use crate::entries::value_ref::ValueRef;

/// Encodes a record for a place: a file and an offset.
pub(super) struct RecordMaker<'p> {
    place: (u64, u64),
    len: u64,
    /// `None`: the record is plain.
    packer: Option<&'p mut Packer>,
    /// Bytes of the record so far.
    written: u64,
    checksum: u32,
    /// Where each packed chunk ends, relative to the first one.
    ends: Vec<u32>,
}

impl<'p> RecordMaker<'p> {
    /// Begins the record of a value of `len` bytes.
    pub(super) fn new(place: (u64, u64), len: u64, packer: Option<&'p mut Packer>) -> Self {
        let packer = packer.filter(|_| len <= PACKED_VALUE_BYTES_MAX);
        RecordMaker { place, len, packer, written: 0, checksum: 0, ends: Vec::new() }
    }

    /// The maximum bytes that `len` bytes of a value add, without the list of ends.
    pub(super) fn bytes_max(len: u64) -> usize {
        let of_chunks = chunk_count(len) as usize * (CHUNK_HEAD_BYTES + size_of::<u32>());
        HEAD_BYTES + len as usize + of_chunks
    }

    /// Appends the encoding of the next bytes of the value. Requires: only the last piece has a
    /// length that is not a multiple of `CHUNK_BYTES`.
    pub(super) fn add(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        let is_first = self.written == 0;
        if is_first {
            self.add_head(out);
        }
        let shrinks = self.add_chunks(piece, out);
        if is_first && self.packer.is_some() && !shrinks {
            // Compression does not pay, so the record begins again, plain.
            out.truncate(start);
            self.packer = None;
            (self.written, self.checksum) = (0, 0);
            self.ends.clear();
            self.add_head(out);
            self.add_chunks(piece, out);
        }
    }

    fn add_head(&mut self, out: &mut Vec<u8>) {
        let head = Head { len: self.len, is_packed: self.packer.is_some() };
        out.extend_from_slice(&head.encode(self.place));
        self.written = HEAD_BYTES as u64;
    }

    /// Appends chunks. True: a chunk was compressed.
    fn add_chunks(&mut self, piece: &[u8], out: &mut Vec<u8>) -> bool {
        let mut shrinks = false;
        for chunk in piece.chunks(CHUNK_BYTES) {
            let start = out.len();
            if let Some(packer) = &mut self.packer {
                out.extend_from_slice(&[0; CHUNK_HEAD_BYTES]);
                let form = packer.pack(chunk, out);
                shrinks |= form != forms::PLAIN;
                let (head, body) = out[start..].split_at_mut(CHUNK_HEAD_BYTES);
                head[0] = form;
                head[1..].copy_from_slice(&(body.len() as u32).to_le_bytes());
            } else {
                out.extend_from_slice(chunk);
            }
            let checksum = checksum::crc32c(&out[start..]);
            self.checksum = join(self.checksum, checksum);
            out.extend_from_slice(&(checksum ^ self.salt()).to_le_bytes());
            self.written += (out.len() - start) as u64;
            if self.packer.is_some() {
                self.ends.push((self.written - HEAD_BYTES as u64) as u32);
            }
        }
        shrinks
    }

    /// The salt for the next byte's place.
    fn salt(&self) -> u32 {
        let (file, offset) = self.place;
        salt((file, offset + self.written))
    }

    /// Appends what follows the chunks. Returns the reference to the value.
    pub(super) fn end(mut self, out: &mut Vec<u8>) -> ValueRef {
        if self.written == 0 {
            self.packer = None;
            self.add_head(out);
        }
        if chunk_count(self.len) > 1 && self.packer.is_some() {
            let start = out.len();
            self.ends.iter().for_each(|end| out.extend_from_slice(&end.to_le_bytes()));
            let checksum = checksum::crc32c(&out[start..]) ^ self.salt();
            out.extend_from_slice(&checksum.to_le_bytes());
            self.written += (out.len() - start) as u64;
        }
        let ((file, offset), len, checksum) = (self.place, self.len, self.checksum);
        let packed_bytes = self.packer.is_some().then_some(self.written);
        ValueRef { file, offset, len, checksum, packed_bytes }
    }
}
