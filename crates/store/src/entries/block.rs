//! A block: sorted entries, the unit of reading, checking and caching.
//! ```text
//! block    restart count u32 | length of the heads u32 | restarts | heads | values
//! restart  offset in the heads u32, offset in the values u32
//! head     shared | unshared | value length | sequence << 3 | kind | rest of the key
//! on disk  body and form, as in compression.rs | checksum u32 (covers the place too)
//! ```
//! Invariant: `Block::new` has walked the block from end to end, so every length in it leads to
//! bytes of the block. No read of a `Block` can fail. `shared` is the length of the whole common
//! prefix with the previous key. At restarts it is 0, since they have whole keys. A search relies
//! on that and never assembles a key. Values lie apart from heads, so a search reads few cache
//! lines, in sequence.

use std::ops::Range;

use trommel_filters::{Corrupt, Reader, Writer};

use crate::entries::checksum;
use crate::entries::compression::{Dictionary, Packer, Unreadable, unpack};
use crate::entries::entry::{Entry, Sequence, VALUE_BYTES_MAX};
use crate::entries::keys::common_prefix;
use crate::entries::read_value::ReadValue;
use crate::sync::{Arc, AtomicBool, AtomicU8, Ordering, Shared};

/// Entries from one restart to the next.
const RESTART_INTERVAL: usize = 16;
const KIND_BITS: u32 = 3;
/// The largest sequence number that a block can hold.
pub(crate) const SEQUENCE_MAX: Sequence = Sequence(u64::MAX >> KIND_BITS);

/// Builds a block from entries that are added in order.
#[derive(Default)]
pub(crate) struct BlockBuilder {
    restarts: Writer,
    heads: Writer,
    values: Writer,
    last_key: Vec<u8>,
    entry_count: usize,
}

const RESTARTS_AT: usize = 2 * size_of::<u32>();
const RESTART_SIZE: usize = 2 * size_of::<u32>();

/// Converts an offset to 32 bits. A block ends once it reaches its target size, which its last
/// entry exceeds by at most one key and one value.
fn place_in_block(place: usize) -> u32 {
    u32::try_from(place).expect("a block is far smaller than 4 GiB")
}

impl BlockBuilder {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds an entry. Requires: it follows the previous entry in the order of entries.
    pub(crate) fn add(&mut self, entry: &Entry<'_>) {
        assert!(entry.sequence <= SEQUENCE_MAX, "{:?} does not fit", entry.sequence);
        let restart = self.entry_count.is_multiple_of(RESTART_INTERVAL);
        let shared = if restart { 0 } else { common_prefix(&self.last_key, entry.key) };
        if restart {
            self.restarts.u32(place_in_block(self.heads.len()));
            self.restarts.u32(place_in_block(self.values.len()));
        }
        self.heads.varint(shared as u64);
        self.heads.varint((entry.key.len() - shared) as u64);
        self.heads.varint(entry.value.len() as u64);
        self.heads.varint(entry.sequence.0 << KIND_BITS | entry.kind as u64);
        self.heads.bytes(&entry.key[shared..]);
        self.values.bytes(entry.value);
        self.last_key.truncate(shared);
        self.last_key.extend_from_slice(&entry.key[shared..]);
        self.entry_count += 1;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entry_count == 0
    }

    pub(crate) fn entry_count(&self) -> usize {
        self.entry_count
    }

    /// The key of the last entry; empty if there is none.
    pub(crate) fn last_key(&self) -> &[u8] {
        &self.last_key
    }

    /// The size of the block if it ended here, in bytes.
    pub(crate) fn size_bytes(&self) -> usize {
        RESTARTS_AT + self.restarts.len() + self.heads.len() + self.values.len()
    }

    /// Returns the block, and resets the builder. Requires: it has an entry.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        assert!(!self.is_empty(), "a block without entries");
        let mut block = Vec::with_capacity(self.size_bytes());
        let restart_count = place_in_block(self.restarts.len() / RESTART_SIZE);
        block.extend_from_slice(&restart_count.to_le_bytes());
        block.extend_from_slice(&place_in_block(self.heads.len()).to_le_bytes());
        for part in [&mut self.restarts, &mut self.heads, &mut self.values] {
            block.extend_from_slice(part.as_slice());
            part.clear();
        }
        self.last_key.clear();
        self.entry_count = 0;
        block
    }
}

/// Bytes that follow a block's body on disk: its form and its checksum.
const TRAILER_SIZE: usize = size_of::<u8>() + size_of::<u32>();
/// The maximum length of a block. Its last entry may have the longest value.
pub(crate) const BLOCK_BYTES_MAX: u64 = (VALUE_BYTES_MAX + (16 << 20)) as u64;

/// The place of a block, which its checksum covers. So a sound block at another offset, or of
/// another file, is detected as damage.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockPlace {
    pub(crate) file: u64,
    pub(crate) offset: u64,
}

impl BlockPlace {
    /// Returns what the place adds to the checksum. Two places of a file have different salts if
    /// they are at most 1.9 GB apart. The multiplier is 2^64 divided by the golden ratio, whose
    /// multiples stay farthest from whole numbers.
    fn salt(self) -> u32 {
        let place = self.offset.wrapping_add(self.file.wrapping_mul(FILE_MULTIPLIER));
        (place.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
    }

    pub(crate) fn checksum(self, bytes: &[u8]) -> u32 {
        checksum::crc32c(bytes) ^ self.salt()
    }
}

/// Any odd number with well-mixed bits will do.
const FILE_MULTIPLIER: u64 = 0xd6e8_feb8_6659_fd93;

/// Appends a block in its form on disk, compressed if that is enabled and pays. Returns the form.
pub(crate) fn seal(raw: &[u8], packer: &mut Packer, place: BlockPlace, out: &mut Vec<u8>) -> u8 {
    let start = out.len();
    let form = packer.pack(raw, out);
    out.push(form);
    let checksum = place.checksum(&out[start..]);
    out.extend_from_slice(&checksum.to_le_bytes());
    form
}

/// Checks and decodes a block as it is on disk. `dictionary` is the table's, if it has one.
pub(crate) fn unseal(
    bytes: &[u8],
    place: BlockPlace,
    dictionary: Option<&Dictionary>,
) -> Result<Block, Unreadable> {
    let wrong = |what| Corrupt { at: 0, what };
    let body_len = bytes.len().checked_sub(TRAILER_SIZE).ok_or(wrong("a whole block"))?;
    let checked_len = body_len + 1;
    let mut trailer = Reader::new(&bytes[checked_len..]);
    if trailer.u32()? != place.checksum(&bytes[..checked_len]) {
        return Err(wrong("the block's checksum does not match").into());
    }
    unpack((bytes[body_len], &bytes[..body_len]), dictionary, BLOCK_BYTES_MAX, Block::new)
}

/// Returns the form of a block as it is on disk. Requires: `unseal` has checked it.
pub(crate) fn form_of(bytes: &[u8]) -> u8 {
    bytes[bytes.len() - TRAILER_SIZE]
}

/// A block in memory. A clone shares the bytes.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    memory: BlockMemory,
}

/// A block's parts, its touch count and its bytes in one allocation, so that they share few cache
/// lines.
pub(crate) type BlockMemory = Shared<BlockHeader>;

/// What precedes a block's bytes in memory.
#[derive(Debug)]
pub(crate) struct BlockHeader {
    parts: Parts,
    /// How often readers found the block in the cache, up to a limit. It shares a cache line with
    /// the reference count, which each holder of the block writes anyway.
    touches: AtomicU8,
    /// Whether the cache lists it among its fresh blocks.
    is_fresh: AtomicBool,
    /// A cached value, for a block without entries that exists to hold it.
    value: Option<Arc<ReadValue>>,
}

impl BlockHeader {
    fn new(parts: Parts, value: Option<Arc<ReadValue>>) -> Self {
        let (touches, is_fresh) = (AtomicU8::new(0), AtomicBool::new(false));
        BlockHeader { parts, touches, is_fresh, value }
    }
}

impl Block {
    /// Decodes a block. Walks it once and checks every length and restart.
    pub(crate) fn new(bytes: &[u8]) -> Result<Block, Corrupt> {
        let view = View::split(bytes)?;
        let parts = Parts { entry_count: view.walk()?, ..view.parts };
        let header = BlockHeader::new(parts, None);
        Ok(Block { memory: Shared::from_header_and_slice(header, bytes) })
    }

    /// Wraps a value so that the cache can keep it like a block. `bytes` identify the value.
    /// Requires: nobody searches this block.
    pub(crate) fn of_value(bytes: &[u8], value: Arc<ReadValue>) -> Block {
        let parts = Parts { restart_count: 0, heads_at: 0, values_at: 0, entry_count: 0 };
        let header = BlockHeader::new(parts, Some(value));
        Block { memory: Shared::from_header_and_slice(header, bytes) }
    }

    /// The value that `of_value` wrapped.
    pub(crate) fn value(&self) -> Option<&Arc<ReadValue>> {
        self.memory.header.header.value.as_ref()
    }

    #[inline]
    fn view(&self) -> View<'_> {
        View { bytes: &self.memory.slice, parts: self.memory.header.header.parts }
    }

    /// Finds the first entry at or after (key, at) in the order of entries. `None`: all precede it.
    #[inline]
    pub(crate) fn seek(&self, key: &[u8], at: Sequence) -> Option<Sought> {
        self.view().seek(key, at)
    }

    /// Returns the place of the last restart before `place`, or of the first restart.
    pub(crate) fn restart_before_place(&self, place: EntryOffsets) -> EntryOffsets {
        self.view().restart_before_place(place)
    }

    /// Returns the entry at `place`. `None`: the block ends there. Requires: `place` is that of an
    /// entry or the block's end.
    #[inline(always)]
    pub(crate) fn entry_at(&self, place: EntryOffsets) -> Option<Parsed> {
        let view = self.view();
        if place.head >= view.parts.values_at as usize {
            return None;
        }
        Some(view.entry(place))
    }

    /// Returns bytes of the block, by offsets from its entries.
    #[inline]
    pub(crate) fn bytes(&self, range: Range<usize>) -> &[u8] {
        &self.memory.slice[range]
    }

    /// All bytes of the block.
    #[inline]
    pub(crate) fn raw(&self) -> &[u8] {
        &self.memory.slice
    }

    /// The place of the first entry.
    pub(crate) fn first(&self) -> EntryOffsets {
        self.view().first()
    }

    /// The place after the last entry.
    pub(crate) fn end(&self) -> EntryOffsets {
        self.view().end()
    }

    /// The number of entries, at least one.
    pub(crate) fn entry_count(&self) -> usize {
        self.view().parts.entry_count as usize
    }

    /// The memory that the block takes, in bytes.
    pub(crate) fn size_bytes(&self) -> usize {
        // Reference count, header, length, bytes.
        let own = size_of::<usize>() + size_of_val(&self.memory.header) + self.memory.slice.len();
        own + self.value().map_or(0, |value| value.size_bytes())
    }

    /// Counts a hit in the cache, up to three. One of two concurrent hits may be lost.
    #[inline]
    pub(crate) fn touch(&self) {
        const COUNTED: u8 = 3;
        let touches = self.touches().load(Ordering::Relaxed);
        if touches < COUNTED {
            self.touches().store(touches + 1, Ordering::Relaxed);
        }
    }

    /// Decrements the touch count. False: it was 0.
    pub(crate) fn take_touch(&self) -> bool {
        let touches = self.touches().load(Ordering::Relaxed);
        self.touches().store(touches.saturating_sub(1), Ordering::Relaxed);
        touches > 0
    }

    /// Resets the touch count. False: it was 0.
    pub(crate) fn forget_touches(&self) -> bool {
        self.touches().swap(0, Ordering::Relaxed) > 0
    }

    /// Stores whether the cache lists the block among its fresh blocks, and returns the previous
    /// value.
    pub(crate) fn note_fresh(&self, is_fresh: bool) -> bool {
        self.memory.header.header.is_fresh.swap(is_fresh, Ordering::Relaxed)
    }

    fn touches(&self) -> &AtomicU8 {
        &self.memory.header.header.touches
    }

    /// Returns the block's memory, to be stored in a cache slot.
    pub(crate) fn into_memory(self) -> BlockMemory {
        self.memory
    }
}

impl From<BlockMemory> for Block {
    #[inline]
    fn from(memory: BlockMemory) -> Self {
        Block { memory }
    }
}

mod view;
pub(crate) use view::{EntryOffsets, Parsed, Sought};
use view::{Parts, View};

#[cfg(test)]
mod tests;
