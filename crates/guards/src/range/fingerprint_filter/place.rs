//! Where a key falls among a table's fingerprints.
//! ```text
//! list     0: below the first key; 1..: the groups; last: above the last key
//! block    of the group
//! before   its cells whose keys are all below the key
//! through  those and, if the key lies in one, that
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
use trommel_filters::{Trace, ask_for};

use super::encoding::Encoding;
use super::image::Frame;

type Words<'a> = &'a [[u8; 8]];
type Numbers<'a> = &'a [[u8; 4]];

const LINE_BYTES: usize = 64;
/// Lines that a block and its key's cell are likely to be on, if one of them is guessed; and how
/// many are before that.
const LINES_ABOUT: usize = 5;
const LINES_BEFORE: usize = 2;

/// As much of a key as fingerprints look at.
#[inline(always)]
pub(super) fn cut(key: &[u8]) -> &[u8] {
    &key[..key.len().min(KEY_BYTES_MAX)]
}

/// The image of a filter, its parts told apart.
pub(super) struct View<'a> {
    image: &'a [u8],
    pub(super) directory: Directory<Words<'a>, Numbers<'a>, &'a [u8]>,
    pub(super) frame: &'a Frame,
}

/// Where a key falls.
#[derive(Clone, Copy, Debug)]
pub(super) struct CellPosition {
    pub(super) list: usize,
    pub(super) block: usize,
    pub(super) before: usize,
    pub(super) through: usize,
    /// All cells of the block.
    count: usize,
    /// The key's 64 bits after its group's prefix.
    view: u64,
    reach: Reach,
}

/// What tells that a greater key lies between the same two cells.
#[derive(Clone, Copy, Debug)]
enum Reach {
    /// Its number is below this.
    Below(u64),
    /// It shares so many bits of its view.
    Shared(usize),
    /// Nothing does: it must be looked for.
    Unknown,
}

/// What was found in a block: the cells below a key and through it, all cells.
type InBlock = ((usize, usize), usize, Reach);

impl CellPosition {
    /// Whether a key of the table may be here.
    #[inline(always)]
    pub(super) fn is_in_cell(&self) -> bool {
        self.before < self.through
    }

    /// Below or above all keys.
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

    /// All keys.
    pub(super) fn entries(&self) -> u64 {
        self.frame.entries
    }

    /// The keys before each group.
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

    /// Where `key` falls.
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
            // A key of the group that lacks its prefix is above all keys that have it.
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

    /// Whether a key of the table may be `key`, as [`View::place`] tells, with less work.
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

    /// Asks for the memory where the block of a key is likely to be, so that it comes along with
    /// the group's header.
    #[inline(always)]
    fn load_about<T: Trace>(&self, index: usize, word: u64, trace: &mut T) {
        let guess = self.directory.estimate_place(index, word);
        ask_for(self.image, guess.group_at, trace);
        ask_for(self.image, guess.group_at + LINE_BYTES, trace);
        for line in 0..LINES_ABOUT {
            let at = guess.at.wrapping_add(line * LINE_BYTES);
            ask_for(self.image, at.wrapping_sub(LINES_BEFORE * LINE_BYTES), trace);
        }
    }

    /// Above all cells of a group's last block.
    fn after_all(&self, group: &Group<'_>) -> InBlock {
        let count = self.block_count(group, group.blocks - 1);
        ((count, count), count, Reach::Unknown)
    }

    /// The block of a view on the group's line, and what is found there.
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

    /// How views become positions, in the first block of a group.
    #[inline(always)]
    pub(super) fn line(&self, index: usize, group: &Group<'_>) -> Line {
        let low = self.directory.separator_view(index, group.prefix_bits);
        Line { model: group.model(), blocks: group.blocks, block: 0, low }
    }

    /// The number from which a gap block counts.
    #[inline(always)]
    pub(super) fn anchor(&self, index: usize, group: &Group<'_>, block: usize) -> u64 {
        number(if block == 0 {
            self.directory.separator_view(index, group.prefix_bits)
        } else {
            group.head(block)
        })
    }

    /// A block of a coded group.
    #[inline(always)]
    pub(super) fn coded_at(&self, group: &Group<'a>, block: usize) -> CodedAt<'a> {
        group.coded_at(block, self.image)
    }

    /// The cells of a block.
    pub(super) fn block_count(&self, group: &Group<'_>, block: usize) -> usize {
        let bytes = group.block(block);
        match self.frame.encoding {
            Encoding::Snarf => block_count(bytes),
            Encoding::Cell => Block::new(bytes).count(),
            Encoding::Gap => with_gaps(bytes, |block| block.count()),
            Encoding::Coded => CodedBlock::count_of(bytes),
        }
    }

    /// Whether there may be a key from `low` to `high`; no `high`: to the end. False: there is
    /// none.
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

    /// Whether a list has a cell from one block up to another, which does not count; without one:
    /// to its end.
    fn has_cells(&self, list: usize, from: usize, end: Option<usize>) -> bool {
        if list == 0 || list == self.above() {
            return false;
        }
        let group = self.group(list - 1);
        (from..end.unwrap_or(group.blocks)).any(|block| self.block_count(&group, block) > 0)
    }
}

/// The bytes of a block, whose second cache line is asked for without waiting: it is about a line,
/// and seldom begins with one.
#[inline(always)]
fn loaded(bytes: &[u8]) -> &[u8] {
    prefetch(bytes, LINE_BYTES);
    bytes
}

#[inline(always)]
fn find_cell<T: Trace>(block: &Block<'_>, key: &Tail<'_>, trace: &mut T) -> InBlock {
    let found = block.find(key, trace);
    let reach = match found.fall {
        // The next cell has a one after the bits that it shares with the cell before, where the key
        // has a zero.
        Fall::NearBefore { split, .. } => Reach::Shared(split),
        // Or after those that it shares with the key.
        Fall::NearAfter { shared, .. } => Reach::Shared(shared + 1),
        Fall::In | Fall::AfterAll { .. } => Reach::Unknown,
    };
    let through = found.before + usize::from(found.is_in());
    ((found.before, through), block.count(), reach)
}

/// What a fall in a block of `count` keys tells.
#[inline(always)]
fn in_gaps(fall: gap::Fall, count: usize) -> InBlock {
    let reach = match fall {
        gap::Fall::Between { next: Some(next), .. } => Reach::Below(next),
        gap::Fall::Between { next: None, .. } | gap::Fall::In { .. } => Reach::Unknown,
    };
    (fall.ranks(), count, reach)
}

/// Gives `ask` the gap block with which `bytes` begin.
#[inline(always)]
pub(super) fn with_gaps<R>(bytes: &[u8], ask: impl FnOnce(GapBlock<'_>) -> R) -> R {
    with_window(bytes, |window| ask(GapBlock::new(window)))
}

/// Gives `ask` a coded block.
#[inline(always)]
pub(super) fn with_coded<R>(coded: &CodedAt<'_>, ask: impl FnOnce(CodedBlock<'_>) -> R) -> R {
    with_window(coded.bytes, |bytes| ask(coded.of_copy(bytes).read(0)))
}

/// Gives `ask` as many bytes as a block may look at. Near the image's end there are fewer: then a
/// copy.
#[inline(always)]
fn with_window<R>(bytes: &[u8], ask: impl FnOnce(&[u8]) -> R) -> R {
    if bytes.len() >= WINDOW {
        return ask(bytes);
    }
    let mut copy = [0; WINDOW];
    copy[..bytes.len()].copy_from_slice(bytes);
    ask(&copy)
}
