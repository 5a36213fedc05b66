//! A spill: an unnamed file of sorted rows that did not fit into memory.
//! ```text
//! block   length of the body u32 | checksum of what follows u32 | form u8 | body (compression.rs)
//! body    rows: key and value, each with its length as a varint
//! ```
//! Invariants: the name is removed as soon as the file is open, so a killed process leaves nothing.
//! Where the system cannot do that, it is removed after the last use of the file. Only the process
//! that wrote a file reads it, so its format has no version. A row never crosses blocks.

use std::path::PathBuf;

use trommel_filters::Reader;

use crate::entries::checksum::crc32c;
use crate::entries::compression::{Compression, Packer, Unreadable, unpack};
use crate::entries::entry::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use crate::error::{Error, Result};
use crate::files::names::spill_name;
use crate::storage::open_folder::OpenFolder;
use crate::storage::traits::{Append, ReadAt};
use crate::sync::Arc;

const HEAD_BYTES: usize = 9;
const FORM_AT: usize = 8;
/// Longer blocks, which have one long value, are not compressed.
const PACKED_BYTES_MAX: usize = 4 << 20;
/// After a block that did not shrink, this many are written uncompressed.
const BLOCKS_UNTRIED: u32 = 31;
/// The maximum length of a block's body, whatever its target size.
const BODY_BYTES_MAX: u64 = (KEY_BYTES_MAX + VALUE_BYTES_MAX + PACKED_BYTES_MAX) as u64;

/// Sizes of blocks and of reads and writes.
#[derive(Clone, Copy, Debug)]
pub(super) struct SpillShape {
    /// A block ends with the row that reaches this many bytes. Requires: 32 bytes less than
    /// `PACKED_BYTES_MAX`, or fewer.
    pub(super) block_bytes: usize,
    /// Bytes per write or read, about.
    pub(super) window_bytes: usize,
}

/// Where the files of a sort are created.
pub(super) struct SpillPlace {
    pub(super) folder: OpenFolder,
    /// Returns each number once.
    pub(super) new_number: Box<dyn Fn() -> u64>,
    pub(super) shape: SpillShape,
}

/// The name of a file, until it is removed.
struct Named {
    folder: OpenFolder,
    name: Option<String>,
}

impl Named {
    fn remove(&mut self) {
        if let Some(name) = self.name.take()
            && self.folder.remove(&name).is_err()
        {
            self.name = Some(name);
        }
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        self.remove();
    }
}

/// A file of sorted rows.
pub(super) struct Spill {
    path: PathBuf,
    file: Arc<dyn ReadAt>,
    _named: Named,
    /// The file's length.
    pub(super) bytes: u64,
    pub(super) rows: u64,
}

/// Writes rows in ascending order.
pub(super) struct SpillWriter {
    path: PathBuf,
    // Closed before the last attempt to remove the name, as some systems require.
    out: Box<dyn Append>,
    file: Arc<dyn ReadAt>,
    named: Named,
    shape: SpillShape,
    packer: Packer,
    /// Number of blocks still to be written without an attempt to compress them.
    untried: u32,
    block: Vec<u8>,
    /// Whole blocks that are not written yet.
    pending: Vec<u8>,
    bytes: u64,
    rows: u64,
}

impl SpillWriter {
    pub(super) fn create(place: &SpillPlace) -> Result<Self> {
        let folder = &place.folder;
        let (name, out) = loop {
            let name = spill_name((place.new_number)());
            match folder.create(&name) {
                // The sort of another store uses the same folder.
                Err(error) if error.is_name_taken() => {}
                created => break (name, created?),
            }
        };
        let path = folder.path_of(&name);
        let mut named = Named { folder: folder.clone(), name: Some(name.clone()) };
        let file = folder.open_file(&name)?;
        named.remove();
        Ok(SpillWriter {
            path,
            out,
            file,
            named,
            shape: place.shape,
            packer: Packer::new(Compression::Lz4, None),
            untried: 0,
            block: Vec::new(),
            pending: Vec::new(),
            bytes: 0,
            rows: 0,
        })
    }

    /// Adds a row. Requires: its key is greater than that of the previous row.
    pub(super) fn add(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        for part in [key, value] {
            push_varint(part.len(), &mut self.block);
            self.block.extend_from_slice(part);
        }
        self.rows += 1;
        if self.block.len() >= self.shape.block_bytes { self.end_block() } else { Ok(()) }
    }

    fn end_block(&mut self) -> Result<()> {
        let start = self.pending.len();
        self.pending.extend_from_slice(&[0; HEAD_BYTES]);
        let tries = self.untried == 0 && self.block.len() <= PACKED_BYTES_MAX;
        let form = match tries {
            true => self.packer.pack(&self.block, &mut self.pending),
            false => {
                self.pending.extend_from_slice(&self.block);
                PLAIN
            }
        };
        self.untried = match (tries, form) {
            (true, PLAIN) => BLOCKS_UNTRIED,
            _ => self.untried.saturating_sub(1),
        };
        self.block.clear();
        let body_bytes = (self.pending.len() - start - HEAD_BYTES) as u32;
        self.pending[start + FORM_AT] = form;
        let checksum = crc32c(&self.pending[start + FORM_AT..]);
        self.pending[start..start + 4].copy_from_slice(&body_bytes.to_le_bytes());
        self.pending[start + 4..start + 8].copy_from_slice(&checksum.to_le_bytes());
        if self.pending.len() >= self.shape.window_bytes { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<()> {
        self.out.append(&self.pending).map_err(Error::io(&self.path))?;
        self.bytes += self.pending.len() as u64;
        self.pending.clear();
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<Spill> {
        if !self.block.is_empty() {
            self.end_block()?;
        }
        self.write()?;
        self.out.publish().map_err(Error::io(&self.path))?;
        let SpillWriter { path, file, named, bytes, rows, .. } = self;
        Ok(Spill { path, file, _named: named, bytes, rows })
    }
}

/// The form of an uncompressed block.
const PLAIN: u8 = 0;

fn push_varint(mut value: usize, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Iterates over the rows of a file.
pub(super) struct SpillCursor {
    spill: Spill,
    window_bytes: usize,
    /// A part of the file. The bytes before `taken` are consumed.
    window: Vec<u8>,
    taken: usize,
    /// The file offset of the window's end.
    read: u64,
    block: Vec<u8>,
    /// In the block: the start of the next row, and the bounds of the current row's key and value.
    next: usize,
    key: (usize, usize),
    value: usize,
}

impl SpillCursor {
    /// Positions before the first row.
    pub(super) fn new(spill: Spill, shape: SpillShape) -> Self {
        SpillCursor {
            spill,
            window_bytes: shape.window_bytes,
            window: Vec::new(),
            taken: 0,
            read: 0,
            block: Vec::new(),
            next: 0,
            key: (0, 0),
            value: 0,
        }
    }

    /// Moves to the next row. False: there is none.
    pub(super) fn next_row(&mut self) -> Result<bool> {
        if self.next == self.block.len() && !self.next_block()? {
            return Ok(false);
        }
        let mut input = Reader::new(&self.block[self.next..]);
        let lengths = input.string().and_then(|key| Ok((key.len(), input.at(), input.string()?)));
        let Ok((key_len, key_end, value)) = lengths else {
            return Err(self.damaged("a row that goes beyond its block"));
        };
        let key_end = self.next + key_end;
        self.key = (key_end - key_len, key_end);
        self.next += input.at();
        self.value = self.next - value.len();
        Ok(true)
    }

    /// Returns key and value. Requires: at a row.
    #[inline]
    pub(super) fn row(&self) -> (&[u8], &[u8]) {
        (&self.block[self.key.0..self.key.1], &self.block[self.value..self.next])
    }

    /// Reads the next block. False: the file ends.
    fn next_block(&mut self) -> Result<bool> {
        (self.next, self.key, self.value) = (0, (0, 0), 0);
        self.block.clear();
        if self.taken == self.window.len() && self.read == self.spill.bytes {
            return Ok(false);
        }
        let head = self.ahead(HEAD_BYTES)?;
        let number = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("four"));
        let (body_bytes, checksum) = (number(0), number(4));
        // The length is not checked yet.
        if u64::from(body_bytes) > BODY_BYTES_MAX {
            return Err(self.damaged("a block longer than any"));
        }
        let body_bytes = body_bytes as usize;
        let mut block = std::mem::take(&mut self.block);
        let checked = &self.ahead(HEAD_BYTES + body_bytes)?[FORM_AT..];
        let unpacked = match crc32c(checked) == checksum {
            true => unpack((checked[0], &checked[1..]), None, BODY_BYTES_MAX, |bytes| {
                block.extend_from_slice(bytes);
                Ok(())
            }),
            false => Err(Unreadable::Damaged("a block does not have its checksum")),
        };
        if let Err(Unreadable::Damaged(what) | Unreadable::Lacks(what)) = unpacked {
            return Err(self.damaged(what));
        }
        self.taken += HEAD_BYTES + body_bytes;
        self.block = block;
        Ok(!self.block.is_empty())
    }

    /// Returns the next `bytes` bytes of the file.
    fn ahead(&mut self, bytes: usize) -> Result<&[u8]> {
        let has = self.window.len() - self.taken;
        if has < bytes {
            let left = self.spill.bytes - self.read;
            let more = (bytes - has).max(self.window_bytes) as u64;
            let more = more.min(left) as usize;
            if has + more < bytes {
                return Err(self.damaged("it ends within a block"));
            }
            self.window.drain(..self.taken);
            self.taken = 0;
            self.window.resize(has + more, 0);
            let read = self.spill.file.read_at(self.read, &mut self.window[has..]);
            read.map_err(Error::io(&self.spill.path))?;
            self.read += more as u64;
            // An error here does not affect the read.
            let _ = self.spill.file.will_read(self.read, self.window_bytes as u64);
        }
        Ok(&self.window[self.taken..][..bytes])
    }

    fn damaged(&self, what: &str) -> Error {
        let at = self.read - (self.window.len() - self.taken) as u64;
        Error::corrupt(&self.spill.path, at, what)
    }
}
