//! The place of a key among a table's fingerprints.
//! ```text
//! list     0: below the first key; 1..: the groups; last: above the last key
//! block    of the group
//! before   its cells whose keys are all below the key
//! through  these, plus the key's own cell if it lies in one
//! ```
//! Invariant: places are monotone in keys.

use trommel_filters::bits::simd::prefetch;
use trommel_filters::fingerprint::cell::{Block, Fall, Tail};
use trommel_filters::fingerprint::coded::CodedBlock;
use trommel_filters::fingerprint::directory::{Among, Directory, Prefix};
use trommel_filters::fingerprint::gap::{self, GapBlock, WINDOW, number};
use trommel_filters::fingerprint::group::{CodedAt, GROUP_ALIGN, Group};
use trommel_filters::fingerprint::keys::KEY_BYTES_MAX;
use trommel_filters::fingerprint::line::Line;
use trommel_filters::fingerprint::separator_tails::SeparatorTails;
use trommel_filters::fingerprint::spline::{SplineBlock, block_count};
use trommel_filters::{Trace, prefetch_traced};

use super::encoding::Encoding;
use super::image::Frame;

type Words<'a> = &'a [[u8; 8]];
type Numbers<'a> = &'a [[u8; 4]];

const LINE_BYTES: usize = 64;
/// The number of cache lines to prefetch around an estimated position, to cover a block and the
/// key's cell. So many of them come before the estimate.
const LINES_ABOUT: usize = 5;
const LINES_BEFORE: usize = 2;

/// Truncates a key to what fingerprints use.
#[inline(always)]
pub(super) fn cut(key: &[u8]) -> &[u8] {
    &key[..key.len().min(KEY_BYTES_MAX)]
}

/// A view of an image's parts.
pub(super) struct View<'a> {
    image: &'a [u8],
    pub(super) directory: Directory<Words<'a>, Numbers<'a>, &'a [u8]>,
    pub(super) frame: &'a Frame,
}

/// The place of a key.
#[derive(Clone, Copy, Debug)]
pub(super) struct CellPosition {
    pub(super) list: usize,
    pub(super) block: usize,
    pub(super) before: usize,
    pub(super) through: usize,
    /// The number of cells in the block.
    count: usize,
    /// The key's first 64 bits after its group's prefix.
    view: u64,
    reach: Reach,
}

/// How to recognize that a larger key lies between the same two cells.
#[derive(Clone, Copy, Debug)]
enum Reach {
    /// Its number is below this.
    Below(u64),
    /// It shares this many bits of the view.
    Shared(usize),
    /// Unknown: it must be looked up.
    Unknown,
}

/// A search result in a block: the cells below a key and through it, all cells.
type InBlock = ((usize, usize), usize, Reach);

impl CellPosition {
    /// Whether a key of the table may be here.
    #[inline(always)]
    pub(super) fn is_in_cell(&self) -> bool {
        self.before < self.through
    }

    /// The place below or above all keys.
    fn at_edge(list: usize) -> CellPosition {
        CellPosition::new(list, 0, 0, ((0, 0), 0, Reach::Unknown))
    }

    #[inline(always)]
    fn new(list: usize, block: usize, view: u64, found: InBlock) -> CellPosition {
        let ((before, through), count, reach) = found;
        CellPosition { list, block, before, through, count, view, reach }
    }
}

impl<'a> View<'a> {
    /// Requires: the frame of this image.
    #[inline(always)]
    pub(super) fn new(image: &'a [u8], frame: &'a Frame) -> View<'a> {
        let numbers = |range: &std::ops::Range<usize>| image[range.clone()].as_chunks::<4>().0;
        let tails = frame
            .rest_ends
            .as_ref()
            .map(|ends| SeparatorTails { ends: numbers(ends), bytes: &image[frame.tails.clone()] });
        let directory = Directory {
            prefix: Prefix::with_head(&image[frame.prefix.clone()], frame.head),
            separators: image[frame.separators.clone()].as_chunks::<8>().0,
            offsets: numbers(&frame.offsets),
            tails,
            radix: numbers(&frame.radix),
            radix_shift: frame.radix_shift,
            last: &image[frame.last.clone()],
        };
        View { image, directory, frame }
    }

    /// The number of keys.
    pub(super) fn entries(&self) -> u64 {
        self.frame.entries
    }

    /// Returns the number of keys before each group.
    pub(super) fn starts(&self) -> Numbers<'a> {
        self.image[self.frame.starts.clone()].as_chunks().0
    }

    /// The list above all keys.
    pub(super) fn above(&self) -> usize {
        self.directory.len() + 1
    }

    #[inline(always)]
    pub(super) fn group(&self, index: usize) -> Group<'a> {
        Group::new(&self.image[self.directory.offset(index) * GROUP_ALIGN..])
    }

    /// Returns the place of `key`.
    #[inline(always)]
    pub(super) fn place<T: Trace>(&self, key: &[u8], trace: &mut T) -> CellPosition {
        let key = cut(key);
        let (among, word) = match self.directory.word(key) {
            Ok(word) => (self.directory.find(key, word, trace), word),
            Err(among) => (among, 0),
        };
        let index = match among {
            Among::Group(index) => index,
            Among::Below => return CellPosition::at_edge(0),
            Among::Above => return CellPosition::at_edge(self.above()),
        };
        self.load_about(index, word, trace);
        let (list, group) = (index + 1, self.group(index));
        trace.touch(group.bytes.as_ptr() as usize, group.header_bytes());
        if !self.directory.shares_prefix(index, (key, word), group.prefix_bits) {
            // A key of the group that lacks its prefix is above all keys with the prefix.
            return CellPosition::new(list, group.blocks - 1, 0, self.after_all(&group));
        }
        let view = self.directory.view((key, word), group.prefix_bits);
        let (block, found) = match self.frame.encoding {
            Encoding::Snarf => self.find_on_line(index, &group, view, trace),
            Encoding::Cell => {
                let block = group.block_of(view);
                let tail = Tail::new(key, group.prefix_bits);
                (block, find_cell(&Block::new(loaded(group.block(block))), &tail, trace))
            }
            Encoding::Gap => {
                let block = group.block_of(view);
                let anchor = self.anchor(index, &group, block);
                let find = |gaps: GapBlock<'_>| {
                    in_gaps(gaps.find(number(view), anchor, trace), gaps.count())
                };
                (block, with_gaps(loaded(group.block(block)), find))
            }
            Encoding::Coded => {
                let block = group.block_of(view);
                let anchor = self.anchor(index, &group, block);
                let coded = self.coded_at(&group, block);
                loaded(coded.bytes);
                let find = |coded: CodedBlock<'_>| {
                    in_gaps(coded.find(number(view), anchor, trace), coded.count())
                };
                (block, with_coded(&coded, find))
            }
        };
        CellPosition::new(list, block, view, found)
    }

    /// Whether the table may have `key`. Same answer as by [`View::place`], with less work.
    #[inline(always)]
    pub(super) fn may_contain<T: Trace>(&self, key: &[u8], trace: &mut T) -> bool {
        if self.frame.encoding != Encoding::Cell {
            return self.place(key, trace).is_in_cell();
        }
        let key = cut(key);
        let Ok(word) = self.directory.word(key) else { return false };
        let Among::Group(index) = self.directory.find(key, word, trace) else { return false };
        self.load_about(index, word, trace);
        let group = self.group(index);
        trace.touch(group.bytes.as_ptr() as usize, group.header_bytes());
        if !self.directory.shares_prefix(index, (key, word), group.prefix_bits) {
            return false;
        }
        let block = group.block_of(self.directory.view((key, word), group.prefix_bits));
        let tail = Tail::new(key, group.prefix_bits);
        Block::new(loaded(group.block(block))).holds(&tail, trace)
    }

    /// Prefetches the estimated position of a key's block, together with the group's header.
    #[inline(always)]
    fn load_about<T: Trace>(&self, index: usize, word: u64, trace: &mut T) {
        let guess = self.directory.estimate_place(index, word);
        prefetch_traced(self.image, guess.group_at, trace);
        prefetch_traced(self.image, guess.group_at + LINE_BYTES, trace);
        for line in 0..LINES_ABOUT {
            let at = guess.at.wrapping_add(line * LINE_BYTES);
            prefetch_traced(self.image, at.wrapping_sub(LINES_BEFORE * LINE_BYTES), trace);
        }
    }

    /// The place above all cells of a group's last block.
    fn after_all(&self, group: &Group<'_>) -> InBlock {
        let count = self.block_count(group, group.blocks - 1);
        ((count, count), count, Reach::Unknown)
    }

    /// Finds the block of a view on the group's line, and searches it.
    #[inline(always)]
    fn find_on_line<T: Trace>(
        &self,
        index: usize,
        group: &Group<'_>,
        view: u64,
        trace: &mut T,
    ) -> (usize, InBlock) {
        let mut line = self.line(index, group);
        let Some(fine) = line.fine_position(view) else {
            return (group.blocks - 1, self.after_all(group));
        };
        line.block = line.block_of(fine);
        let block = SplineBlock::new(loaded(group.block(line.block)), line.model.layout);
        let ranks = block.find(line.position(fine), trace);
        (line.block, (ranks, block.count(), Reach::Unknown))
    }

    /// Whether `upper`, which is not below the key of `low`, surely lies between the same two
    /// cells. Requires: `low` is in no cell.
    pub(super) fn is_beside(&self, low: &CellPosition, upper: &[u8]) -> bool {
        if low.list == 0 || low.list == self.above() {
            return false;
        }
        let (index, upper) = (low.list - 1, cut(upper));
        let prefix_bits = self.group(index).prefix_bits;
        let Ok(word) = self.directory.word(upper) else { return false };
        if !self.directory.shares_prefix(index, (upper, word), prefix_bits) {
            return false;
        }
        let view = self.directory.view((upper, word), prefix_bits);
        match low.reach {
            Reach::Below(end) => number(view) < end,
            Reach::Shared(bits) => (view ^ low.view).leading_zeros() as usize >= bits,
            Reach::Unknown => false,
        }
    }

    /// Returns the line of a group, for its first block.
    #[inline(always)]
    pub(super) fn line(&self, index: usize, group: &Group<'_>) -> Line {
        let low = self.directory.separator_view(index, group.prefix_bits);
        Line { model: group.model(), blocks: group.blocks, block: 0, low }
    }

    /// Returns the number from which a gap block counts.
    #[inline(always)]
    pub(super) fn anchor(&self, index: usize, group: &Group<'_>, block: usize) -> u64 {
        number(if block == 0 {
            self.directory.separator_view(index, group.prefix_bits)
        } else {
            group.head(block)
        })
    }

    /// Locates a block of a coded group.
    #[inline(always)]
    pub(super) fn coded_at(&self, group: &Group<'a>, block: usize) -> CodedAt<'a> {
        group.coded_at(block, self.image)
    }

    /// The number of cells in a block.
    pub(super) fn block_count(&self, group: &Group<'_>, block: usize) -> usize {
        let bytes = group.block(block);
        match self.frame.encoding {
            Encoding::Snarf => block_count(bytes),
            Encoding::Cell => Block::new(bytes).count(),
            Encoding::Gap => with_gaps(bytes, |block| block.count()),
            Encoding::Coded => CodedBlock::count_of(bytes),
        }
    }

    /// Whether there may be a key from `low` to `high`, or from `low` on. False: there is none.
    pub(super) fn may_overlap(&self, low: &CellPosition, high: Option<&CellPosition>) -> bool {
        let end = CellPosition::at_edge(self.above());
        let high = high.unwrap_or(&end);
        if (low.list, low.block) == (high.list, high.block) {
            return low.before < high.through;
        }
        low.before < low.count
            || high.through > 0
            || low.list + 1 < high.list // a whole group between them, which has keys
            || self.has_cells(low.list, low.block + 1, (high.list == low.list).then_some(high.block))
            || high.list > low.list && self.has_cells(high.list, 0, Some(high.block))
    }

    /// Whether a list has a cell from one block up to another, exclusive, or to its end.
    fn has_cells(&self, list: usize, from: usize, end: Option<usize>) -> bool {
        if list == 0 || list == self.above() {
            return false;
        }
        let group = self.group(list - 1);
        (from..end.unwrap_or(group.blocks)).any(|block| self.block_count(&group, block) > 0)
    }
}

/// Prefetches a block's second cache line: a block takes about one line and seldom begins with one.
#[inline(always)]
fn loaded(bytes: &[u8]) -> &[u8] {
    prefetch(bytes, LINE_BYTES);
    bytes
}

#[inline(always)]
fn find_cell<T: Trace>(block: &Block<'_>, key: &Tail<'_>, trace: &mut T) -> InBlock {
    let found = block.find(key, trace);
    let reach = match found.fall {
        // The next cell has a one after the bits that it shares with the previous cell; there the
        // key has a zero.
        Fall::NearBefore { split, .. } => Reach::Shared(split),
        // Or after the bits that it shares with the key.
        Fall::NearAfter { shared, .. } => Reach::Shared(shared + 1),
        Fall::In | Fall::AfterAll { .. } => Reach::Unknown,
    };
    let through = found.before + usize::from(found.is_in());
    ((found.before, through), block.count(), reach)
}

/// Converts the result of a search in a block of `count` keys.
#[inline(always)]
fn in_gaps(fall: gap::Fall, count: usize) -> InBlock {
    let reach = match fall {
        gap::Fall::Between { next: Some(next), .. } => Reach::Below(next),
        gap::Fall::Between { next: None, .. } | gap::Fall::In { .. } => Reach::Unknown,
    };
    (fall.ranks(), count, reach)
}

/// Calls `ask` with the gap block that `bytes` begin with.
#[inline(always)]
pub(super) fn with_gaps<R>(bytes: &[u8], ask: impl FnOnce(GapBlock<'_>) -> R) -> R {
    with_window(bytes, |window| ask(GapBlock::new(window)))
}

/// Calls `ask` with a coded block.
#[inline(always)]
pub(super) fn with_coded<R>(coded: &CodedAt<'_>, ask: impl FnOnce(CodedBlock<'_>) -> R) -> R {
    with_window(coded.bytes, |bytes| ask(coded.of_copy(bytes).read(0)))
}

/// Calls `ask` with as many bytes as reading a block needs. Near the image's end they are copied
/// and padded.
#[inline(always)]
fn with_window<R>(bytes: &[u8], ask: impl FnOnce(&[u8]) -> R) -> R {
    if bytes.len() >= WINDOW {
        return ask(bytes);
    }
    let mut copy = [0; WINDOW];
    copy[..bytes.len()].copy_from_slice(bytes);
    ask(&copy)
}
