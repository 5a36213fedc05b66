//! Builds the base of a part from sorted keys, streaming.
//! ```text
//! keys --> buffer --cut at the least common prefix of the last few--> blocks --up to 16--> group --> arena
//!                                                          Pace: bits of the next group <-- bits spent so far
//! ```
//! Invariant: all keys of a group share its prefix; its separator is above the last key of the group before.

use super::base::Base;
use super::count::GroupStartsBuilder;
use super::directory::DirectoryBuilder;
use super::group::{BLOCKS_MAX, GROUP_ALIGN};
use super::group_writer::{GroupPlan, GroupWriter};
use super::point_bits::POINT_BITS_MAX;
use super::{GrfOptions, Part};
use crate::bits::key_bits::bits_at;
use crate::bits::simd::{Work, fastest};
use crate::fingerprint::cell::CELLS_MAX;
use crate::fingerprint::gap::WINDOW;
use crate::fingerprint::keys::KeyBuffer;
use crate::shape::FlushNumber;

/// A block ends early where the next key shares much less: it may lack so many keys per bit.
const BLOCK_KEYS_PER_BIT: u32 = 4;
/// A block that ends early has at least so many keys.
const BLOCK_KEYS_MIN: usize = 8;
/// Bits of the number of a block's end among those that it may have.
const CHOICE_BITS: u32 = CELLS_MAX.ilog2();
/// Ends of a group among which the cheapest is taken.
const GROUP_CUT_CHOICES: usize = BLOCKS_MAX / 4;
/// A group ends early when it has so many bytes of keys.
const BUFFER_BYTES_MAX: usize = 1 << 20;
const HEAD_BITS_MAX: usize = 64;

/// Builds a part from the sorted keys of a last level.
pub struct PartBuilder {
    options: GrfOptions,
    keys: KeyBuffer,
    /// Ends of the blocks that were cut from the buffered keys.
    cuts: Vec<usize>,
    /// Where the next block ends at the latest.
    block_end_max: usize,
    /// The places of buffered keys after which others came that only add zeros, and how many.
    zeros: Vec<(usize, u64)>,
    first: Vec<u8>,
    entries: u64,
    arena: Vec<u8>,
    writer: GroupWriter,
    directory: DirectoryBuilder,
    starts: GroupStartsBuilder,
    pace: Pace,
    settled_bits: u8,
    /// Keys that the overlay is expected to get for each one of the base.
    overlay_ratio: f64,
    bytes_peak: usize,
}

impl PartBuilder {
    /// Starts without keys. Until the part is built anew, the overlay is expected to get 1 / `size_ratio` of all keys, as
    /// above a full last level.
    pub fn new(options: &GrfOptions) -> Self {
        Self::with_overlay_share(options, 1.0 / f64::from(options.size_ratio.max(2)))
    }

    /// As [`PartBuilder::new`], where the overlay is expected to get such a share of all keys (0 to 1): its entries take more
    /// than keys of the base do, so the base leaves room for them where they are many. At no filling of the tree does the
    /// filter take more than 1.25 times its budget, if they come to no more than half of the keys.
    pub fn with_overlay_share(options: &GrfOptions, overlay_share: f64) -> Self {
        let split = options.split(overlay_share);
        PartBuilder {
            options: *options,
            keys: KeyBuffer::default(),
            cuts: Vec::with_capacity(BLOCKS_MAX),
            block_end_max: CELLS_MAX,
            zeros: Vec::new(),
            first: Vec::new(),
            entries: 0,
            arena: Vec::new(),
            writer: GroupWriter::default(),
            directory: DirectoryBuilder::default(),
            starts: GroupStartsBuilder::default(),
            pace: Pace::new(split.base_bits),
            settled_bits: split.settled_bits,
            overlay_ratio: overlay_share / (1.0 - overlay_share).max(0.1),
            bytes_peak: 0,
        }
    }

    /// Adds the next key. Requires: above all keys before, and of at most 64 KiB.
    #[inline]
    pub fn push(&mut self, key: &[u8]) {
        self.entries += 1;
        if !self.keys.push(key) {
            self.count_zeros();
        }
        if self.keys.len() > self.block_end_max {
            self.end_block();
        }
    }

    /// Cuts a block, now that the key after the last one that it could have is known.
    #[inline(never)]
    fn end_block(&mut self) {
        fastest(CutBlock { builder: self });
        if self.cuts.len() == BLOCKS_MAX || self.keys.size_bytes() > BUFFER_BYTES_MAX {
            self.write_group(self.cheapest_group());
        }
        self.block_end_max = self.cut() + CELLS_MAX;
    }

    /// The part of the keys pushed, with an empty overlay. The flush numbers of the keys lie in [0, `base_end`).
    pub fn finish(mut self, base_end: FlushNumber) -> Part {
        assert!(base_end.0 > 0 || self.entries == 0, "keys of no flush");
        let last = self.keys.last().unwrap_or_default().to_vec();
        if self.keys.len() > self.cut() {
            self.cuts.push(self.keys.len());
        }
        while !self.cuts.is_empty() {
            self.write_group(self.cuts.len());
        }
        if self.entries > 0 {
            self.arena.extend_from_slice(&[0; WINDOW]);
        }
        let base = Base {
            arena: self.arena.into_boxed_slice(),
            directory: self.directory.finish(&self.first, &last),
            starts: self.starts.finish(),
            end: base_end,
            entries: self.entries,
            settled_bits: self.settled_bits,
            overlay_keys: (self.entries as f64 * self.overlay_ratio) as u64,
            point_bits: point_bits(&self.options),
        };
        Part::of_base(self.options, base)
    }

    /// The most heap bytes that building has taken so far.
    pub fn peak_bytes(&self) -> usize {
        self.bytes_peak.max(self.heap_bytes())
    }

    fn heap_bytes(&self) -> usize {
        let zeros = self.zeros.capacity() * size_of::<(usize, u64)>();
        let buffers = self.first.capacity() + self.writer.heap_bytes() + zeros;
        let directory = self.directory.heap_bytes() + self.starts.heap_bytes();
        self.arena.capacity() + self.keys.heap_bytes() + directory + buffers
    }

    /// Counts a key that only adds zeros to the last one of the buffer.
    #[cold]
    fn count_zeros(&mut self) {
        let place = self.keys.len() - 1;
        match self.zeros.last_mut() {
            Some((last, count)) if *last == place => *count += 1,
            _ => self.zeros.push((place, 1)),
        }
    }

    /// The end of the last block that was cut.
    fn cut(&self) -> usize {
        self.cuts.last().copied().unwrap_or(0)
    }

    #[inline(always)]
    fn cut_block(&mut self) {
        let most = self.cut() + CELLS_MAX;
        let commons = self.keys.commons();
        let ends = &commons[self.cut() + BLOCK_KEYS_MIN..=most];
        let costs = ends.iter().rev().zip(0..).map(|(common, lacking)| {
            (common + lacking / BLOCK_KEYS_PER_BIT) << CHOICE_BITS | lacking
        });
        let cheapest = costs.min().expect("there are choices");
        self.cuts.push(most - (cheapest & ((1 << CHOICE_BITS) - 1)) as usize);
    }

    /// The number of blocks after which the next group shares least with this one.
    fn cheapest_group(&self) -> usize {
        let most = self.cuts.len();
        let commons = self.keys.commons();
        let counts = most.saturating_sub(GROUP_CUT_CHOICES).max(1)..=most;
        let cheapest = counts.rev().min_by_key(|&count| commons[self.cuts[count - 1]]);
        cheapest.expect("there are choices")
    }

    /// Writes a group of at most `blocks_most` blocks.
    fn write_group(&mut self, blocks_most: usize) {
        fastest(WriteGroup { builder: self, blocks_most });
    }

    #[inline(always)]
    fn write_group_at_once(&mut self, blocks_most: usize) {
        let mut blocks = blocks_most;
        let (mut prefix_bits, mut head_bits) = self.group_bits(blocks);
        while head_bits > HEAD_BITS_MAX {
            blocks -= 1;
            (prefix_bits, head_bits) = self.group_bits(blocks);
        }
        if self.arena.is_empty() {
            self.first = self.keys.get(0).to_vec();
        }
        let start = self.arena.len();
        let offset = u32::try_from(start / GROUP_ALIGN).expect("an arena of less than 32 GiB");
        let separator_bits = prefix_bits.max(self.keys.commons()[0] as usize + 1);
        let first = self.keys.get(0);
        let separator = first[..first.len().min(separator_bits.div_ceil(8))].to_vec();
        let plan = GroupPlan {
            keys: &self.keys,
            cuts: &self.cuts[..blocks],
            prefix_bits,
            head_bytes: head_bits.div_ceil(8).max(1),
            low: bits_at(&separator, prefix_bits),
            fingerprints: self.options.fingerprints,
            point_bits: point_bits(&self.options),
            bits: self.pace.grant(self.cuts[blocks - 1]),
        };
        let blocks = plan.write(&mut self.writer, &mut self.arena);
        self.writer.finish_last_block(&mut self.arena);
        self.directory.push(&separator, prefix_bits, offset);
        let bytes = self.arena.len() - start;
        self.pace.spent(self.cuts[blocks - 1], bytes, separator.len());
        self.bytes_peak = self.peak_bytes();
        self.drop_blocks(blocks);
    }

    /// The bits that all keys of the first `blocks` blocks share, and the bits that their heads need.
    #[inline(always)]
    fn group_bits(&self, blocks: usize) -> (usize, usize) {
        let commons = self.keys.commons();
        let end = self.cuts[blocks - 1];
        let after = commons.get(end).copied().unwrap_or(0);
        let alone = commons[0].max(after);
        let prefix_bits = commons[1..end].iter().copied().min().unwrap_or(alone);
        let heads = self.cuts[..blocks - 1].iter().map(|&cut| commons[cut] + 1 - prefix_bits);
        (prefix_bits as usize, heads.max().unwrap_or(0) as usize)
    }

    fn drop_blocks(&mut self, blocks: usize) {
        let dropped = self.cuts[blocks - 1];
        self.keys.drop_front(dropped);
        let with_zeros = self.zeros.partition_point(|&(place, _)| place < dropped);
        let zeros: u64 = self.zeros.drain(..with_zeros).map(|(_, count)| count).sum();
        self.zeros.iter_mut().for_each(|(place, _)| *place -= dropped);
        self.starts.push(dropped as u64 + zeros);
        self.cuts.drain(..blocks);
        self.cuts.iter_mut().for_each(|cut| *cut -= dropped);
    }
}

/// Cuts a block; see [`PartBuilder::cut_block`].
struct CutBlock<'a> {
    builder: &'a mut PartBuilder,
}

impl Work for CutBlock<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.builder.cut_block();
    }
}

/// Writes a group; see [`PartBuilder::write_group`].
struct WriteGroup<'a> {
    builder: &'a mut PartBuilder,
    blocks_most: usize,
}

impl Work for WriteGroup<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.builder.write_group_at_once(self.blocks_most);
    }
}

fn point_bits(options: &GrfOptions) -> usize {
    usize::from(options.point_bits).min(POINT_BITS_MAX)
}

/// Grants bits to groups so that all of them together meet the budget.
struct Pace {
    budget: f64,
    /// Bits that the budget has granted and no group has taken.
    credit: f64,
}

impl Pace {
    /// Keys over which a debt is paid back.
    const HORIZON: f64 = 8192.0;
    /// Bytes of a group in the directory: separator, offset, keys before it, two radix slots.
    const DIRECTORY_BYTES: usize = 8 + 4 + 4 + 2 * 4;
    /// And the end of what a longer separator has beyond its word.
    const REST_BYTES: usize = 4;

    fn new(budget: f64) -> Self {
        Pace { budget, credit: 0.0 }
    }

    /// The bits that the next group of `keys` keys may take in the arena.
    fn grant(&self, keys: usize) -> f64 {
        let keys = keys as f64;
        let paid_back = self.credit * (keys / Self::HORIZON).min(1.0);
        self.budget * keys + paid_back - 8.0 * Self::DIRECTORY_BYTES as f64
    }

    /// A group of `keys` keys took `bytes` bytes of the arena, and has a separator of `separator` bytes.
    fn spent(&mut self, keys: usize, bytes: usize, separator: usize) {
        let rest = if separator > 8 { separator - 8 + Self::REST_BYTES } else { 0 };
        let bytes = bytes + Self::DIRECTORY_BYTES + rest;
        self.credit += self.budget * keys as f64 - 8.0 * bytes as f64;
    }
}
