//! Homogeneous ribbon filter.
//! ```text
//! hash ─┬─> start          ........1011001...01........      a row: 128 bits at `start`,
//!       └─> 128 bits                │                        whose first bit is set
//! bytes   | block 0: column 0, 1, ... | block 1: ... | ... |
//!           16 bytes each: 128 slots    the first `wide` blocks have one more column
//!         | blocks u32 | wide u32 | columns u8 | check | signature |
//! ```
//! A key passes if its row meets an even number of set slots in every column. Building chooses the
//! columns at random among those for which all added keys pass (`solve.rs`). Any other key passes
//! each column with probability one half.
//!
//! "Homogeneous" means that such columns always exist: duplicate keys do no harm, and no seed is
//! retried. The price is slightly more slots than keys (`slots_per_key`), and more where keys crowd
//! by chance. (Ribbon filter: Dillinger and Walzer, arXiv 2103.02515, section 4.)
//!
//! Invariant: the rows of all added keys meet an even number of set slots in each column. No
//! blocks: no key was added.

mod solve;

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::base::filter::{
    HashedKey, OutOfOrder, TableFilter, TableFilterBuilder, Trace, Untraced, payload_bits,
};
use crate::base::hash::{HashUse, grouped, hash_key, remix, scaled};
use crate::base::kind::{FilterKind, TableKind};
use crate::base::monkey::RateLaw;
use crate::base::real::{ceil, exp2, floor, fract, sqrt};
use crate::base::wire::{Corrupt, Reader, Signature, Writer};
use crate::bits::simd::fastest;

/// `ribbon`: a homogeneous ribbon filter.
pub const RIBBON: &dyn FilterKind = &TableKind::new(
    "ribbon",
    |options| Box::new(RibbonBuilder::new(options.bits_per_key)),
    |bytes| Ok(Box::new(Ribbon::read(bytes)?)),
)
.with_tag(TAG)
.with_rate_law(RateLaw::of_fingerprints(1.047));
const TAG: u16 = 3;

/// Bits per row, and slots per block.
const WIDTH: usize = 128;
/// The bytes of a block's slots in one column.
const WORD_BYTES: usize = WIDTH / 8;
const COLUMNS_MAX: usize = 32;

/// Fields: u32 blocks, u32 wide blocks, u8 columns.
const FIELDS_BYTES: usize = 4 + 4 + 1;
const TRAILER_BYTES: usize = FIELDS_BYTES + Signature::BYTES;
const VERSION: u8 = 1;

/// A key's row.
#[derive(Clone, Copy)]
struct Row {
    start: usize,
    bits: u128,
}

impl Row {
    /// Requires: there are blocks.
    #[inline(always)]
    fn of(hash: u64, blocks: usize) -> Row {
        let starts = blocks * WIDTH - (WIDTH - 1);
        let (low, high) = (remix(hash, 0x1d8e_4e27_c47d_124f), remix(hash, 0xeb44_acca_b455_d165));
        let bits = (u128::from(high) << 64 | u128::from(low)) | 1;
        Row { start: scaled(hash, starts), bits }
    }
}

/// Slots per key. The more columns, the fewer rows of other keys may be linear combinations of
/// added rows, as these pass every column. So the slots exceed the keys by more.
fn slots_per_key(columns: f64) -> f64 {
    1.0 + (4.0 + columns / 4.0) / WIDTH as f64
}

/// Returns the average number of columns that `bits_per_key` pays for.
fn columns_for(bits_per_key: f64) -> f64 {
    // columns · slots_per_key(columns) = bits_per_key, solved for columns
    let (square, linear) = (0.25 / WIDTH as f64, 1.0 + 4.0 / WIDTH as f64);
    let root = sqrt(linear * linear + 4.0 * square * bits_per_key.max(0.0));
    ((root - linear) / (2.0 * square)).min(COLUMNS_MAX as f64)
}

/// The layout of blocks: the first `wide` of them have one more column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Columns {
    blocks: usize,
    wide: usize,
    columns: usize,
}

impl Columns {
    /// The layout for so many keys and bits per key.
    fn for_keys(keys: usize, bits_per_key: f64) -> Self {
        if keys == 0 {
            return Columns { blocks: 0, wide: 0, columns: 0 };
        }
        let payload = payload_bits(keys, bits_per_key, TRAILER_BYTES);
        let slots = keys as f64 * slots_per_key(columns_for(payload / keys as f64));
        let blocks = ceil(slots / WIDTH as f64);
        // The filter of a small table may take twice its budget.
        let slots = (blocks * WIDTH as f64).min(keys as f64 * 2.0);
        let average = (payload / slots).min(COLUMNS_MAX as f64);
        let wide = (fract(average) * blocks) as usize;
        Columns { blocks: blocks as usize, wide, columns: average as usize }
    }

    /// The probability that another key passes all columns.
    fn rate(&self) -> f64 {
        let wide = self.wide as f64 / self.blocks.max(1) as f64;
        exp2(-(self.columns as f64)) * (1.0 - wide / 2.0)
    }

    /// The same bytes in more blocks, by a thirty-second or at least by one, with fewer columns.
    fn with_more_slots(&self) -> Columns {
        let blocks = self.blocks + self.blocks.div_ceil(32);
        let words = self.blocks * self.columns + self.wide;
        Columns { blocks, wide: words % blocks, columns: words / blocks }
    }

    fn of_block(&self, block: usize) -> usize {
        self.columns + usize::from(block < self.wide)
    }

    /// The offset of a block's columns.
    #[inline(always)]
    fn at(&self, block: usize) -> usize {
        (block * self.columns + block.min(self.wide)) * WORD_BYTES
    }

    /// The size of all columns. None: more than fits into memory.
    fn size_bytes(&self) -> Option<usize> {
        self.blocks.checked_mul(WIDTH)?; // the slots, too, are counted in a usize
        let words = self.blocks.checked_mul(self.columns)?.checked_add(self.wide)?;
        words.checked_mul(WORD_BYTES)
    }

    fn encode(&self) -> Vec<u8> {
        let mut fields = Writer::new();
        for count in [self.blocks, self.wide] {
            fields.u32(u32::try_from(count).expect("as many as fit into memory"));
        }
        fields.u8(self.columns as u8);
        fields.finish()
    }

    /// Checks the trailer that follows the first `at` bytes.
    fn read(trailer: &[u8], at: usize) -> Result<Self, Corrupt> {
        let (fields, parameter) = Signature::fields(trailer, (TAG, VERSION), FIELDS_BYTES)
            .map_err(|error| Corrupt { at: at + error.at, ..error })?;
        let columns = Columns::decode(fields).map_err(|error| Corrupt { at, ..error })?;
        if columns.size_bytes() != Some(at) || parameter != 0 {
            return Err(Corrupt { at, what: "as many columns as there are bytes for" });
        }
        Ok(columns)
    }

    fn decode(fields: &[u8]) -> Result<Self, Corrupt> {
        let mut input = Reader::new(fields);
        let (blocks, wide) = (input.u32()? as usize, input.u32()? as usize);
        let columns = usize::from(input.u8()?);
        let most = columns + usize::from(wide > 0);
        if wide > blocks || most > COLUMNS_MAX {
            return Err(input.corrupt("columns that a ribbon filter may have"));
        }
        Ok(Columns { blocks, wide, columns })
    }
}

/// Collects the hashes of a table's keys and builds the filter's bytes.
#[derive(Clone, Debug)]
pub struct RibbonBuilder {
    hashes: Vec<u64>,
    bits_per_key: f64,
}

impl RibbonBuilder {
    /// An empty builder. `bits_per_key` may be a fraction; there are at most 32 columns. More: more
    /// memory, fewer false positives.
    ///
    /// # Panics
    /// [`finish`](TableFilterBuilder::finish) panics if it is not a number.
    pub fn new(bits_per_key: f64) -> Self {
        RibbonBuilder { hashes: Vec::new(), bits_per_key }
    }

    /// Adds a key by its hash for [`HashUse::Table`].
    #[inline]
    pub fn add_hash(&mut self, hash: u64) {
        if self.hashes.last() != Some(&hash) {
            self.hashes.push(hash);
        }
    }

    /// Returns the theoretical false positive rate at `bits_per_key`, for a large table.
    pub fn expected_rate(bits_per_key: f64) -> f64 {
        let columns = columns_for(bits_per_key);
        exp2(-floor(columns)) * (1.0 - fract(columns) / 2.0)
    }
}

impl TableFilterBuilder for RibbonBuilder {
    /// Adds a key. Never fails: the order of keys does not matter.
    #[inline]
    fn add(&mut self, key: &[u8]) -> Result<(), OutOfOrder> {
        self.add_hash(hash_key(key, HashUse::Table));
        Ok(())
    }

    fn finish(self) -> Vec<u8> {
        let columns = Columns::for_keys(self.hashes.len(), self.bits_per_key);
        let hashes = grouped(&self.hashes, |hash| hash);
        drop(self.hashes);
        let (columns, mut bytes) = fastest(
            #[inline(always)]
            move || solve::solve(hashes, columns),
        );
        let signature = Signature { tag: TAG, version: VERSION, parameter: 0 };
        signature.sign(&columns.encode(), &mut bytes);
        bytes
    }
}

/// A ribbon filter over checked bytes.
#[derive(Clone, Debug)]
pub struct Ribbon<B> {
    bytes: B,
    columns: Columns,
}

impl<B: AsRef<[u8]>> Ribbon<B> {
    /// Checks bytes that [`RibbonBuilder`] made. It does not check the columns, since any bits form
    /// a filter: the owner of the bytes keeps a checksum.
    ///
    /// # Errors
    /// The trailer is damaged or belongs to another kind, or the length is wrong.
    pub fn read(bytes: B) -> Result<Self, Corrupt> {
        let image = bytes.as_ref();
        let at = image.len().saturating_sub(TRAILER_BYTES);
        let columns = Columns::read(&image[at..], at)?;
        Ok(Ribbon { bytes, columns })
    }

    /// Same as [`read`](Self::read), with the last [`TRAILER_BYTES`](Ribbon::TRAILER_BYTES) given
    /// apart. Filters of several ribbons store trailers so.
    pub fn read_apart(bytes: B, trailer: &[u8]) -> Result<Self, Corrupt> {
        let columns = Columns::read(trailer, bytes.as_ref().len())?;
        Ok(Ribbon { bytes, columns })
    }

    /// False: no key with this hash for [`HashUse::Table`] was added. True: one may have been.
    #[inline]
    pub fn may_contain_hash(&self, hash: u64) -> bool {
        self.probe(hash, &mut Untraced)
    }

    /// Same as [`may_contain_hash`](Self::may_contain_hash). Reports to `trace` which memory it
    /// reads.
    #[inline]
    pub fn may_contain_hash_traced<T: Trace>(&self, hash: u64, trace: &mut T) -> bool {
        self.probe(hash, trace)
    }

    #[inline]
    fn probe<T: Trace>(&self, hash: u64, trace: &mut T) -> bool {
        if self.columns.blocks == 0 {
            return false; // no blocks, no keys
        }
        let (bytes, columns) = (self.bytes.as_ref(), &self.columns);
        fastest(
            #[inline(always)]
            move || meets_evenly(bytes, columns, hash, trace),
        )
    }
}

impl Ribbon<()> {
    /// The length of what follows the columns in an image.
    pub const TRAILER_BYTES: usize = TRAILER_BYTES;
}

impl<B> Ribbon<B> {
    /// The same filter over other bytes, for filters that keep several in one image. Requires:
    /// `bytes` are those that it was read from, or a copy. (Others may make a probe panic.)
    pub fn over<C>(&self, bytes: C) -> Ribbon<C> {
        Ribbon { bytes, columns: self.columns }
    }

    /// The average number of columns per slot.
    pub fn columns(&self) -> f64 {
        let Columns { blocks, wide, columns } = self.columns;
        columns as f64 + wide as f64 / blocks.max(1) as f64
    }
}

/// Probes for one hash. Counting bits takes most of the time. Requires: there are blocks.
#[inline(always)]
fn meets_evenly<T: Trace>(bytes: &[u8], columns: &Columns, hash: u64, trace: &mut T) -> bool {
    let row = Row::of(hash, columns.blocks);
    let (block, offset) = (row.start / WIDTH, row.start % WIDTH);
    let low = row.bits << offset;
    // The part of the row that lies in the next block. (A shift by the whole width would overflow.)
    let high = row.bits >> 1 >> (WIDTH - 1 - offset);
    let end = if high == 0 { block } else { block + 1 };
    let words = |block: usize| {
        let (words, _) = bytes[columns.at(block)..].as_chunks::<WORD_BYTES>();
        &words[..columns.of_block(end)]
    };
    let mut pairs = words(block).iter().zip(words(end));
    pairs.all(|(first, second)| {
        trace.touch_bytes(first);
        trace.touch_bytes(second);
        let met = low & u128::from_le_bytes(*first) ^ high & u128::from_le_bytes(*second);
        is_even(met)
    })
}

/// Whether an even number of bits is set.
#[inline(always)]
fn is_even(word: u128) -> bool {
    (word as u64 ^ (word >> 64) as u64).count_ones() & 1 == 0
}

impl<B: AsRef<[u8]>> TableFilter for Ribbon<B> {
    fn kind(&self) -> &'static dyn FilterKind {
        RIBBON
    }

    fn bytes(&self) -> &[u8] {
        self.bytes.as_ref()
    }

    #[inline]
    fn may_contain_traced<T: Trace>(&self, key: &HashedKey<'_>, trace: &mut T) -> bool {
        self.probe(key.hash(), trace)
    }
}

#[cfg(test)]
mod tests;
