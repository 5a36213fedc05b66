//! Builds the groups of sorted keys, streaming.
//! ```text
//! keys --> buffer --cut at the least common prefix--> blocks --up to 16--> group --> arena
//!          up to a chapter                Pace: bits of the next group <-- bits spent so far
//! ```
//! Invariant: all keys of a group share its prefix; its separator is above the last key of the
//! group before.

use alloc::vec::Vec;

use super::Fingerprints;
use super::cell::CELLS_MAX;
use super::chapter::Chapter;
use super::demand::Demand;
use super::directory::{Directory, DirectoryBuilder};
use super::group::{BLOCKS_MAX, GROUP_ALIGN, HEAD_BITS_MAX};
use super::group_writer::{GroupPlan, GroupWriter};
use super::keys::{KeyBuffer, Pushed, WORD_BYTES};
use super::starts::{GroupStarts, GroupStartsBuilder};
use crate::bits::key_bits::bits_at;
use crate::bits::simd::fastest;
use core::ops::Range;

/// Positions on a line are found as fast in blocks of twice as many keys.
pub const CUTS_OF_LINE_BLOCK: usize = 2;
/// A block ends early where the next key shares much less: it may lack so many keys per bit.
const BLOCK_KEYS_PER_BIT: u32 = 4;
/// A block that ends early has at least so many keys.
const BLOCK_KEYS_MIN: usize = 8;
/// Bits of the number of a block's end among those that it may have.
const CHOICE_BITS: u32 = CELLS_MAX.ilog2();
/// Ends of a group among which the cheapest is taken.
const GROUP_CUT_CHOICES: usize = BLOCKS_MAX / 4;

/// As long as nobody has judged a sample: keys that look alike are told apart worse than they
/// promise.
pub const HASH_ABOVE: f64 = 0.15;

/// Bits of a key that do not make its fingerprint finer, about, if it is not coded.
const BESIDE_RESOLUTION: f64 = 3.5;

/// How the groups of a run of keys are to be made.
#[derive(Clone, Copy)]
pub struct GroupsPlan {
    /// What fingerprints are.
    pub fingerprints: Fingerprints,
    /// Bits for each key, directory included.
    pub bits_per_key: f64,
    /// Of these, so many are of a hash. 0: groups have some whose questions ask for them.
    pub point_bits: usize,
    /// The rate above which groups whose keys look alike are hashed.
    pub hash_above: f64,
    /// Of keys that are cut: behind so many bits.
    pub key_bits: Option<usize>,
    /// Whether keys are text, of which order tells little.
    pub is_text: bool,
    /// What groups take elsewhere, more than is foreseen for each key.
    pub beside: Beside,
    /// So many blocks of other kinds are one on a line. More need fewer offsets, and places of
    /// newer keys, which are fractions of blocks, more bits.
    pub cuts_of_line_block: usize,
    /// Whether places of newer keys are measured in blocks: then groups may be aligned. (Table
    /// filters have none: their format was before.)
    pub has_newer: bool,
}

/// Bits that a group takes beside those of its keys, if it has `share` times as many newer keys.
#[derive(Clone, Copy)]
pub struct Beside {
    /// How many newer keys come for each key.
    pub share: f64,
    /// Bits that so many keys take then.
    pub bits: fn(keys: f64, share: f64) -> f64,
}

impl Beside {
    /// Nothing is beside them.
    pub const NOTHING: Beside = Beside { share: 0.0, bits: |_, _| 0.0 };

    fn bits(&self, keys: usize) -> f64 {
        (self.bits)(keys as f64, self.share)
    }
}

/// The groups of a run of keys, and what finds them.
pub struct Groups {
    /// All groups, each at a multiple of [`GROUP_ALIGN`] bytes. Blocks are read with what follows
    /// them: see [`WINDOW`](super::gap::WINDOW).
    pub arena: Vec<u8>,
    /// Where each group begins.
    pub directory: Directory,
    /// How many keys come before each.
    pub starts: GroupStarts,
    /// The number of keys.
    pub entries: u64,
    /// Hash bits of the keys of groups that have some.
    pub point_bits: usize,
    /// The places of the questions that fell between keys.
    pub fallen: Range<usize>,
    /// Bits that no key had use for.
    pub bits_left: f64,
}

/// Builds the groups of sorted keys.
pub struct GroupsBuilder {
    plan: GroupsPlan,
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
    chapter: Chapter,
    /// How many keys there are for each one of the buffer, those in its cells included.
    counted_share: f64,
    directory: DirectoryBuilder,
    starts: GroupStartsBuilder,
    pace: Pace,
    demand: Demand,
    bytes_peak: usize,
}

impl GroupsBuilder {
    /// Starts without keys.
    pub fn new(plan: GroupsPlan) -> Self {
        GroupsBuilder {
            plan,
            keys: KeyBuffer::default(),
            cuts: Vec::new(),
            block_end_max: CELLS_MAX,
            zeros: Vec::new(),
            first: Vec::new(),
            entries: 0,
            arena: Vec::new(),
            writer: GroupWriter::default(),
            chapter: Chapter::default(),
            counted_share: 1.0,
            directory: DirectoryBuilder::default(),
            starts: GroupStartsBuilder::default(),
            pace: Pace::new(plan.bits_per_key),
            demand: Demand::default(),
            bytes_peak: 0,
        }
    }

    /// Divides bits between groups as questions fall. Requires: no key was pushed.
    pub(crate) fn set_demand(&mut self, demand: Demand) {
        self.demand = demand;
    }

    /// Adds the next key, if it is above the one before. Requires: of at most
    /// [`KEY_BYTES_MAX`](super::keys::KEY_BYTES_MAX) bytes.
    #[inline(always)]
    pub fn push(&mut self, key: &[u8]) -> Pushed {
        let pushed = self.keys.push(key);
        match pushed {
            Pushed::Kept => self.entries += 1,
            Pushed::Zeros => self.count_more(),
            Pushed::Repeated | Pushed::Below => return pushed,
        }
        if self.keys.len() > self.block_end_max {
            self.end_block();
        }
        pushed
    }

    /// As [`GroupsBuilder::push`] of each, as long as they ascend. Gives the first one that does
    /// not.
    pub fn push_words<'w>(
        &mut self,
        mut words: &'w [[u8; WORD_BYTES]],
    ) -> Option<&'w [u8; WORD_BYTES]> {
        while let Some((first, others)) = words.split_first() {
            let room = self.block_end_max + 1 - self.keys.len();
            let (now, later) = words.split_at(room.min(words.len()));
            let keys = &mut self.keys;
            let taken = fastest(
                #[inline(always)]
                move || keys.push_words(now),
            );
            if taken {
                (self.entries, words) = (self.entries + now.len() as u64, later);
            } else {
                match self.push(first) {
                    Pushed::Kept | Pushed::Zeros => words = others,
                    Pushed::Repeated | Pushed::Below => return Some(first),
                }
            }
            if self.keys.len() > self.block_end_max {
                self.end_block();
            }
        }
        None
    }

    /// How the groups are made.
    pub fn plan(&self) -> &GroupsPlan {
        &self.plan
    }

    /// The last key that is no zeros more than another one.
    #[inline]
    pub fn last(&self) -> Option<&[u8]> {
        self.keys.last()
    }

    /// Cuts a block, now that the key after the last one that it could have is known.
    #[inline(never)]
    fn end_block(&mut self) {
        fastest(
            #[inline(always)]
            || self.cut_block(),
        );
        let (blocks, bytes) = Chapter::sizes(self.plan.fingerprints);
        if self.cuts.len() == blocks || self.keys.size_bytes() > bytes {
            self.begin_chapter();
            self.write_group(self.cheapest_group());
            while self.cuts.len() >= BLOCKS_MAX {
                self.write_group(self.cheapest_group());
            }
        }
        self.block_end_max = self.cut() + CELLS_MAX;
    }

    /// The groups of the keys pushed.
    pub fn finish(mut self) -> Groups {
        let last = self.keys.last().unwrap_or_default().to_vec();
        if self.keys.len() > self.cut() {
            self.cuts.push(self.keys.len());
        }
        self.begin_chapter();
        while !self.cuts.is_empty() {
            let is_last = self.cuts.len() <= BLOCKS_MAX;
            self.write_group(if is_last { self.cuts.len() } else { self.cheapest_group() });
        }
        Groups {
            arena: self.arena,
            directory: self.directory.finish(&self.first, &last),
            starts: self.starts.finish(),
            entries: self.entries,
            point_bits: self.plan.point_bits.max(self.demand.hash_bits()),
            fallen: self.demand.fallen(),
            bits_left: self.pace.credit.max(0.0),
        }
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

    /// Counts a key that lies in the cell of the last one of the buffer. Requires: there is that
    /// one.
    #[cold]
    #[inline]
    pub fn count_more(&mut self) {
        self.entries += 1;
        let place = self.keys.len() - 1;
        match self.zeros.last_mut() {
            Some((last, count)) if *last == place => *count += 1,
            _ => self.zeros.push((place, 1)),
        }
    }

    /// The first `keys` keys of the buffer and those that lie in their cells: all have their share
    /// of the budget.
    fn counted(&self, keys: usize) -> usize {
        let within = self.zeros.iter().take_while(|&&(place, _)| place < keys);
        keys + within.map(|&(_, count)| count as usize).sum::<usize>()
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
        let most = self.cuts.len().min(BLOCKS_MAX);
        let commons = self.keys.commons();
        let counts = most.saturating_sub(GROUP_CUT_CHOICES).max(1)..=most;
        let cheapest = counts.rev().min_by_key(|&count| commons[self.cuts[count - 1]]);
        cheapest.expect("there are choices")
    }

    /// The bits of all keys of the buffer, if they are words or cut.
    fn key_bits(&self) -> Option<usize> {
        self.plan.key_bits.or_else(|| self.keys.key_bits())
    }

    /// Buffered keys are to be written in groups.
    fn begin_chapter(&mut self) {
        let keys = self.keys.len().max(1);
        self.counted_share = self.counted(keys) as f64 / keys as f64;
        let aligned_bits = self.plan.has_newer.then(|| self.pace.cell_bits(self.counted_share));
        self.chapter = Chapter::new(
            self.plan.fingerprints,
            &self.keys,
            &self.cuts,
            self.key_bits(),
            aligned_bits,
        );
        self.demand.begin_chapter(&self.keys);
    }

    /// Writes a group of at most `blocks_most` blocks.
    fn write_group(&mut self, blocks_most: usize) {
        fastest(
            #[inline(always)]
            move || self.write_group_at_once(blocks_most),
        );
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
        let end = self.cuts[blocks - 1];
        let counted = self.counted(end);
        let bits_more = self.demand.bits_more(first, counted);
        let spare = |less: usize| {
            self.pace.spare(&self.chapter, self.counted_share, bits_more - less as f64)
        };
        let point_bits = match self.plan.point_bits {
            0 => {
                let uncoded = self.plan.bits_per_key + bits_more - BESIDE_RESOLUTION;
                self.demand.hash_bits_of(end, spare(0).unwrap_or(uncoded))
            }
            planned => planned,
        };
        let spare = spare(point_bits);
        let bits = self.pace.grant(counted, bits_more);
        let plan = GroupPlan {
            keys: &self.keys,
            cuts: &self.cuts[..blocks],
            prefix_bits,
            key_bits: self.key_bits(),
            head_bits: head_bits.max(1),
            low: bits_at(&separator, prefix_bits),
            fingerprints: self.plan.fingerprints,
            point_bits,
            hash_above: self.plan.hash_above,
            is_text: self.plan.is_text,
            line_blocks: blocks.div_ceil(self.plan.cuts_of_line_block),
            bits,
            even_bits: bits,
            spare,
        };
        let blocks = plan.write(&mut self.writer, &mut self.chapter, &mut self.arena);
        self.writer.finish_last_block(&mut self.arena);
        let rest = self.directory.push(&separator, prefix_bits, offset);
        let bytes = self.arena.len() - start;
        let keys = self.cuts[blocks - 1];
        let counted = self.counted(keys);
        let beside = self.plan.beside.bits(keys) - bits_more * counted as f64;
        self.pace.spent(counted, bytes + rest, beside);
        self.bytes_peak = self.peak_bytes();
        self.drop_blocks(blocks);
    }

    /// The bits that all keys of the first `blocks` blocks share, and the bits that their heads
    /// need.
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
        self.demand.drop_front(dropped);
        let with_zeros = self.zeros.partition_point(|&(place, _)| place < dropped);
        let zeros: u64 = self.zeros.drain(..with_zeros).map(|(_, count)| count).sum();
        self.zeros.iter_mut().for_each(|(place, _)| *place -= dropped);
        self.starts.push(dropped as u64 + zeros);
        self.cuts.drain(..blocks);
        self.cuts.iter_mut().for_each(|cut| *cut -= dropped);
    }
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
    /// As [`Pace::HORIZON`], where spare bits are alike for all keys: what is left is spent slowly.
    const SPARE_HORIZON: f64 = 16384.0;
    /// Bits of a key beside coded cells, about: headers, heads and directory.
    const BESIDE_CELLS: f64 = 1.1;
    /// The most that a key pays back of it: what some keys cannot do without shall not cost others
    /// nearly all that they have.
    const PAID_BACK_MAX: f64 = 2.2;
    /// Bytes of a group in the directory: separator's word, offset, keys before it, two radix
    /// slots.
    const DIRECTORY_BYTES: usize = 8 + 4 + 4 + 2 * 4;

    fn new(budget: f64) -> Self {
        Pace { budget, credit: 0.0 }
    }

    /// The bits that the next group of `keys` keys may take in the arena, each so many more than an
    /// even share.
    fn grant(&self, keys: usize, bits_more: f64) -> f64 {
        let keys = keys as f64;
        let paid_back = self.credit * (keys / Self::HORIZON).min(1.0);
        let paid_back = paid_back.max(-Self::PAID_BACK_MAX * keys);
        (self.budget + bits_more) * keys + paid_back - 8.0 * Self::DIRECTORY_BYTES as f64
    }

    /// The bits of coded cells, for each key, where so many keys share the budget of one.
    fn cell_bits(&self, counted_share: f64) -> f64 {
        self.budget * counted_share - Self::BESIDE_CELLS
    }

    /// The spare bits of the next group of a chapter, if it is coded: as many as other groups have,
    /// since a bit is worth as much wherever it is spent, and `more`. None: it is not, or there are
    /// none.
    fn spare(&self, chapter: &Chapter, counted_share: f64, more: f64) -> Option<f64> {
        let horizon = if self.credit < 0.0 { Self::HORIZON } else { Self::SPARE_HORIZON };
        let bits = self.budget * counted_share + more + self.credit / horizon;
        let spare = chapter.spare(bits - Self::BESIDE_CELLS)?;
        (spare >= 0.0).then_some(spare)
    }

    /// A group of `keys` keys took `bytes` bytes, its separator beyond a word included, and
    /// `beside` bits elsewhere.
    fn spent(&mut self, keys: usize, bytes: usize, beside: f64) {
        let bytes = bytes + Self::DIRECTORY_BYTES;
        self.credit += self.budget * keys as f64 - 8.0 * bytes as f64 - beside;
    }
}
