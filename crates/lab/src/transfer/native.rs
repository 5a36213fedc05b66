//! The native form: blocks of entries, each with a checksum.
//! ```text
//! offset  size
//!      0     8  magic TRMLEXP\0
//!      8     4  version
//!     12        blocks: n u32 | checksum of the n bytes u32 | n bytes: entries, as in tally.rs
//!               the end: 0 u32 | checksum of the 24 bytes u32 | entries, bytes, checksum: u64 each
//! ```
//! Numbers are little-endian; checksums of blocks are CRC-32C.
//! Invariants: an entry is returned only after its block's checksum was verified. A claimed length
//! costs no memory before its bytes arrive. A stream without its end is incomplete.

use std::io::{self, BufRead, Read, Write};

use trommel::Expiry;
use trommel::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};

use crate::transfer::entry::{BadStream, StreamEntry, StreamItem};
use crate::transfer::tally::{PUT, PUT_WITH_EXPIRY, StreamEnd, head};

pub(crate) const MAGIC: &[u8; 8] = b"TRMLEXP\0";
/// The newest version. All versions up to it are readable.
const VERSION: u32 = 1;
/// A block ends with the entry that reaches this size.
const BLOCK_BYTES: usize = 64 << 10;
/// The most bytes of an entry before its key and value.
const HEAD_BYTES_MAX: usize = 17;
const BLOCK_BYTES_MAX: usize = BLOCK_BYTES + HEAD_BYTES_MAX + KEY_BYTES_MAX + VALUE_BYTES_MAX;
const END_BYTES: usize = 24;

/// The block being filled.
#[derive(Default)]
pub(crate) struct BlockWriter {
    block: Vec<u8>,
}

impl BlockWriter {
    pub(crate) fn begin(out: &mut dyn Write) -> io::Result<()> {
        out.write_all(MAGIC)?;
        out.write_all(&VERSION.to_le_bytes())
    }

    pub(crate) fn add(
        &mut self,
        entry: (&[u8], &[u8], Option<Expiry>),
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let (key, value, expiry) = entry;
        self.block.extend_from_slice(&head(key, value, expiry));
        self.block.extend_from_slice(key);
        self.block.extend_from_slice(value);
        if self.block.len() >= BLOCK_BYTES { self.write(out) } else { Ok(()) }
    }

    pub(crate) fn end(&mut self, end: &StreamEnd, out: &mut dyn Write) -> io::Result<()> {
        if !self.block.is_empty() {
            self.write(out)?;
        }
        let numbers = [end.entries, end.bytes, end.checksum].map(u64::to_le_bytes).concat();
        out.write_all(&0u32.to_le_bytes())?;
        out.write_all(&crc32c::crc32c(&numbers).to_le_bytes())?;
        out.write_all(&numbers)
    }

    fn write(&mut self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(&(self.block.len() as u32).to_le_bytes())?;
        out.write_all(&crc32c::crc32c(&self.block).to_le_bytes())?;
        out.write_all(&self.block)?;
        self.block.clear();
        Ok(())
    }
}

/// The block being read.
#[derive(Default)]
pub(crate) struct BlockReader {
    block: Vec<u8>,
    /// The offset of the next entry in the block.
    at: usize,
    /// The offsets in the stream of this block and of the next one.
    block_at: u64,
    next_at: u64,
}

impl BlockReader {
    /// Reads the head of a stream.
    pub(crate) fn begin(input: &mut dyn BufRead) -> Result<Self, BadStream> {
        let mut reader = BlockReader::default();
        let (mut magic, mut version) = ([0; 8], [0; 4]);
        reader.fill(input, &mut magic)?;
        reader.fill(input, &mut version)?;
        match (&magic == MAGIC, u32::from_le_bytes(version)) {
            (false, _) => Err(reader.bad("this is no stream that `export` has written")),
            (true, 1..=VERSION) => Ok(reader),
            (true, found) => Err(reader.bad(&format!(
                "the stream has version {found}; this Trommel reads versions up to {VERSION}"
            ))),
        }
    }

    pub(crate) fn next(&mut self, input: &mut dyn BufRead) -> Result<StreamItem, BadStream> {
        if self.at == self.block.len()
            && let Some(end) = self.next_block(input)?
        {
            return Ok(StreamItem::End(end));
        }
        let entry = self.entry().ok_or_else(|| self.bad("an entry that goes beyond its block"))?;
        Ok(StreamItem::Entry(entry))
    }

    /// Reads the next block. Returns the end of the stream if that comes instead.
    fn next_block(&mut self, input: &mut dyn BufRead) -> Result<Option<StreamEnd>, BadStream> {
        self.block_at = self.next_at;
        let (mut len, mut checksum) = ([0; 4], [0; 4]);
        self.fill(input, &mut len)?;
        self.fill(input, &mut checksum)?;
        let len = u32::from_le_bytes(len) as usize;
        if len > BLOCK_BYTES_MAX {
            return Err(self.bad("a block that is longer than any"));
        }
        let payload_len = if len == 0 { END_BYTES } else { len };
        (self.at, self.block) = (0, Vec::new());
        let read = input.take(payload_len as u64).read_to_end(&mut self.block);
        self.next_at += read.map_err(|error| self.bad(&error.to_string()))? as u64;
        if self.block.len() < payload_len {
            return Err(self.cut_short());
        }
        if crc32c::crc32c(&self.block) != u32::from_le_bytes(checksum) {
            return Err(self.bad("a block does not have its checksum"));
        }
        if len > 0 {
            return Ok(None);
        }
        let numbers = self.block.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
        let numbers: Vec<u64> = numbers.collect();
        Ok(Some(StreamEnd { entries: numbers[0], bytes: numbers[1], checksum: numbers[2] }))
    }

    /// Returns the next entry of the block. None: the bytes are no entry.
    fn entry(&mut self) -> Option<StreamEntry> {
        let (&kind, rest) = self.block.get(self.at..)?.split_first()?;
        let (key_len, rest) = rest.split_first_chunk()?;
        let (value_len, rest) = rest.split_first_chunk()?;
        let (expiry, rest) = match kind {
            PUT => (None, rest),
            PUT_WITH_EXPIRY => {
                let (time, rest) = rest.split_first_chunk()?;
                (Some(Expiry::at_milliseconds(u64::from_le_bytes(*time))), rest)
            }
            _ => return None,
        };
        let lens = [key_len, value_len].map(|len| u32::from_le_bytes(*len) as usize);
        let (key, rest) = rest.split_at_checked(lens[0])?;
        let (value, rest) = rest.split_at_checked(lens[1])?;
        if key.len() > KEY_BYTES_MAX || value.len() > VALUE_BYTES_MAX {
            return None;
        }
        let entry = StreamEntry { key: key.to_vec(), value: value.to_vec(), expiry };
        self.at = self.block.len() - rest.len();
        Some(entry)
    }

    fn fill(&mut self, input: &mut dyn BufRead, bytes: &mut [u8]) -> Result<(), BadStream> {
        input.read_exact(bytes).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => self.cut_short(),
            _ => self.bad(&error.to_string()),
        })?;
        self.next_at += bytes.len() as u64;
        Ok(())
    }

    fn cut_short(&self) -> BadStream {
        self.bad("the stream is cut short: its end, with counts and checksum, is missing")
    }

    pub(crate) fn bad(&self, problem: &str) -> BadStream {
        BadStream { place: format!("byte {}", self.block_at), problem: problem.into() }
    }
}
