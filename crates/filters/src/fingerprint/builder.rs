//! Builds groups from sorted keys, as a stream.
//! ```text
//! keys --> buffer --cut where common prefixes are short--> blocks --up to 16--> group --> arena
//!          up to a chapter                Pace: bits of the next group <-- bits spent so far
//! ```
//! Invariant: all keys of a group share its prefix. Its separator is above the last key of the
//! previous group.

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

/// The keys of a line block relative to others: position lookups stay as fast in larger blocks.
pub const CUTS_OF_LINE_BLOCK: usize = 2;
/// A block may end early, lacking this many keys per bit that the next key shares less.
const BLOCK_KEYS_PER_BIT: u32 = 4;
/// A block that ends early has at least this many keys.
const BLOCK_KEYS_MIN: usize = 8;
/// Bits of an index among a block's possible ends.
const CHOICE_BITS: u32 = CELLS_MAX.ilog2();
/// The number of possible ends of a group, of which the cheapest is taken.
const GROUP_CUT_CHOICES: usize = BLOCKS_MAX / 4;

/// More bytes than a group takes, unless its keys are long.
const GROUP_ROOM: usize = 16 << 10;
/// A full arena grows by one part in so many. More: less empty memory, but it moves more often.
const GROWTH: usize = 16;

/// The default for `hash_above`, without a judged sample: keys with equal numbers are told apart
/// less well than estimated.
pub const HASH_ABOVE: f64 = 0.15;

/// The approximate bits per key that do not improve resolution, in groups that are not coded.
const BESIDE_RESOLUTION: f64 = 3.5;

/// How to build the groups of a run of keys.
#[derive(Clone, Copy)]
pub struct GroupsPlan {
    /// The kind of fingerprints.
    pub fingerprints: Fingerprints,
    /// Target size in bits per key, directory included.
    pub bits_per_key: f64,
    /// The part of these bits that is a hash. 0: groups get hash bits where their queries call for
    /// them.
    pub point_bits: usize,
    /// The error rate above which groups with equal numbers store hashes instead.
    pub hash_above: f64,
    /// If keys are truncated codes, their length in bits.
    pub key_bits: Option<usize>,
    /// Whether keys are text, of which order tells little.
    pub is_text: bool,
    /// About how many keys come, for which memory is reserved. 0: unknown.
    pub expected_keys: u64,
    /// The further bits that a group causes elsewhere.
    pub beside: Beside,
    /// The number of blocks that form one block on a line. More: fewer offsets; but places of newer
    /// keys, which are fractions of blocks, need more bits.
    pub cuts_of_line_block: usize,
    /// Whether places of newer keys are measured in blocks. Then groups may be aligned. (Table
    /// filters have none, and their format is older.)
    pub has_newer: bool,
}

/// The bits that a group causes elsewhere: those of `share` newer keys per key.
#[derive(Clone, Copy)]
pub struct Beside {
    /// The number of newer keys per key.
    pub share: f64,
    /// Returns the bits for `keys` keys.
    pub bits: fn(keys: f64, share: f64) -> f64,
}

impl Beside {
    /// No further bits.
    pub const NOTHING: Beside = Beside { share: 0.0, bits: |_, _| 0.0 };

    fn bits(&self, keys: usize) -> f64 {
        (self.bits)(keys as f64, self.share)
    }
}

/// The groups of a run of keys, and the directory that finds them.
pub struct Groups {
    /// All groups, each at a multiple of [`GROUP_ALIGN`] bytes. Reading a block needs the bytes
    /// after it, too: see [`WINDOW`](super::gap::WINDOW).
    pub arena: Vec<u8>,
    /// Finds the group of a key.
    pub directory: Directory,
    /// The number of keys before each group.
    pub starts: GroupStarts,
    /// The number of keys.
    pub entries: u64,
    /// Hash bits per key in groups that have hashes.
    pub point_bits: usize,
    /// The range of the queries that fell between keys.
    pub fallen: Range<usize>,
    /// Bits of the budget that were not spent.
    pub bits_left: f64,
}

/// Builds groups from sorted keys.
pub struct GroupsBuilder {
    plan: GroupsPlan,
    keys: KeyBuffer,
    /// The ends of the blocks cut so far from the buffered keys.
    cuts: Vec<usize>,
    /// The latest end of the next block.
    block_end_max: usize,
    /// Indexes of buffered keys that are followed by keys which only append zeros, and their
    /// number.
    zeros: Vec<(usize, u64)>,
    first: Vec<u8>,
    entries: u64,
    arena: Vec<u8>,
    writer: GroupWriter,
    chapter: Chapter,
    /// The number of keys per buffered key, including those without a cell of their own.
    counted_share: f64,
    directory: DirectoryBuilder,
    starts: GroupStartsBuilder,
    pace: Pace,
    demand: Demand,
    bytes_peak: usize,
}

impl GroupsBuilder {
    /// An empty builder.
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

    /// Divides bits among groups by `demand`. Requires: no key was pushed.
    pub(crate) fn set_demand(&mut self, demand: Demand) {
        self.demand = demand;
    }

    /// Adds the next key if it is above the previous one. Requires: at most
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

    /// Adds each word as [`GroupsBuilder::push`] does, while they ascend. Returns the first word
    /// that does not.
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

    /// The plan of the groups.
    pub fn plan(&self) -> &GroupsPlan {
        &self.plan
    }

    /// Returns the last key that is not another key followed by zeros. None: no key was pushed.
    #[inline]
    pub fn last(&self) -> Option<&[u8]> {
        self.keys.last()
    }

    /// Cuts a block, once the key after its latest possible end is known.
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

    /// Returns the groups of all pushed keys.
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

    /// The peak heap size of the build so far, in bytes.
    pub fn peak_bytes(&self) -> usize {
        self.bytes_peak.max(self.heap_bytes())
    }

    fn heap_bytes(&self) -> usize {
        let zeros = self.zeros.capacity() * size_of::<(usize, u64)>();
        let buffers = self.first.capacity() + self.writer.heap_bytes() + zeros;
        let directory = self.directory.heap_bytes() + self.starts.heap_bytes();
        self.arena.capacity() + self.keys.heap_bytes() + directory + buffers
    }

    /// Counts another key in the cell of the last one in the buffer. Requires: the buffer is not
    /// empty.
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

    /// The first `keys` buffered keys, plus those that share their cells. All of them have a share
    /// of the budget.
    fn counted(&self, keys: usize) -> usize {
        let within = self.zeros.iter().take_while(|&&(place, _)| place < keys);
        keys + within.map(|&(_, count)| count as usize).sum::<usize>()
    }

    /// The end of the last block cut.
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

    /// The number of blocks at which the next group shares the shortest prefix with this one.
    fn cheapest_group(&self) -> usize {
        let most = self.cuts.len().min(BLOCKS_MAX);
        let commons = self.keys.commons();
        let counts = most.saturating_sub(GROUP_CUT_CHOICES).max(1)..=most;
        let cheapest = counts.rev().min_by_key(|&count| commons[self.cuts[count - 1]]);
        cheapest.expect("there are choices")
    }

    /// The length of all buffered keys in bits, if they are words or truncated codes.
    fn key_bits(&self) -> Option<usize> {
        self.plan.key_bits.or_else(|| self.keys.key_bits())
    }

    /// Prepares a chapter from the buffered keys.
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
        self.make_room();
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

    /// Makes room for a group in the arena: first for all expected keys, then by small shares. An
    /// arena that doubles would leave up to half of its memory empty, and be copied.
    fn make_room(&mut self) {
        let GroupsPlan { bits_per_key, expected_keys, .. } = self.plan;
        let arena = &mut self.arena;
        if expected_keys == 0 || arena.capacity() - arena.len() >= GROUP_ROOM {
            return;
        }
        let expected = (expected_keys as f64 * bits_per_key / 8.0) as usize;
        let more = expected.saturating_sub(arena.len()).max(arena.len() / GROWTH);
        // A failure is left to the group that needs the memory.
        let _ = arena.try_reserve_exact(more.saturating_add(GROUP_ROOM));
    }

    /// Returns the common prefix of all keys in the first `blocks` blocks, and the length of their
    /// heads, both in bits.
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

/// Grants bits to groups so that their total meets the budget.
struct Pace {
    budget: f64,
    /// Bits granted by the budget that no group has taken yet.
    credit: f64,
}

impl Pace {
    /// A debt is paid back over this many keys.
    const HORIZON: f64 = 8192.0;
    /// The same for a credit in chapters, where it is spent slowly, as spare bits: evenly on all
    /// keys.
    const SPARE_HORIZON: f64 = 16384.0;
    /// The approximate bits per key besides coded cells: headers, heads and directory.
    const BESIDE_CELLS: f64 = 1.1;
    /// The most bits that one key pays back: what some keys cannot do without must not cost others
    /// nearly all of theirs.
    const PAID_BACK_MAX: f64 = 2.2;
    /// Bytes per group in the directory: separator, offset, keys before it, two radix slots.
    const DIRECTORY_BYTES: usize = 8 + 4 + 4 + 2 * 4;

    fn new(budget: f64) -> Self {
        Pace { budget, credit: 0.0 }
    }

    /// Returns the bits in the arena that the next group of `keys` keys may take. Each key gets
    /// `bits_more` above an even share.
    fn grant(&self, keys: usize, bits_more: f64) -> f64 {
        let keys = keys as f64;
        let paid_back = self.credit * (keys / Self::HORIZON).min(1.0);
        let paid_back = paid_back.max(-Self::PAID_BACK_MAX * keys);
        (self.budget + bits_more) * keys + paid_back - 8.0 * Self::DIRECTORY_BYTES as f64
    }

    /// The bits per buffered key for coded cells. `counted_share`: the keys per buffered key.
    fn cell_bits(&self, counted_share: f64) -> f64 {
        self.budget * counted_share - Self::BESIDE_CELLS
    }

    /// Returns the spare bits of the next group of a chapter, if it is coded. All groups get the
    /// same number, since a bit is worth the same wherever it is spent, plus `more`. None: it is
    /// not coded, or has no spare bits.
    fn spare(&self, chapter: &Chapter, counted_share: f64, more: f64) -> Option<f64> {
        let horizon = if self.credit < 0.0 { Self::HORIZON } else { Self::SPARE_HORIZON };
        let bits = self.budget * counted_share + more + self.credit / horizon;
        let spare = chapter.spare(bits - Self::BESIDE_CELLS)?;
        (spare >= 0.0).then_some(spare)
    }

    /// Records that a group of `keys` keys took `bytes` bytes, including its separator's tail, and
    /// `beside` bits elsewhere.
    fn spent(&mut self, keys: usize, bytes: usize, beside: f64) {
        let bytes = bytes + Self::DIRECTORY_BYTES;
        self.credit += self.budget * keys as f64 - 8.0 * bytes as f64 - beside;
    }
}
