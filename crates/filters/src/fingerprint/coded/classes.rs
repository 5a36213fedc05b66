//! Classes of blocks: rankings of the exponents by frequency.
//! ```text
//! class     ranking of even places (32 bytes) | of odd ones (32 bytes)
//! ranking   31 symbols, most frequent first; then a byte: 63, and k from bit 6 on
//! symbol    0..62 rotated exponent of a gap; 63: the key lies in the previous key's cell
//! rank r    r mod 2^k in k planes, r >> k in unary; 31: escape, the symbol is among the bits
//! ```
//! Even and odd gaps have rankings of their own, which suits keys that come in pairs. Classes are
//! learned from sampled blocks, by k-means with the cost in bits as distance.
//!
//! Invariant: every symbol can be encoded in every class.

use alloc::boxed::Box;
use alloc::vec::Vec;

/// Even and odd places have rankings of their own.
pub const PARITIES: usize = 2;
/// The number of symbols.
pub const SYMBOLS: usize = 64;
/// The number of exponents.
pub const EXPONENTS: u32 = 63;
/// The symbol of a key in the previous key's cell.
pub const SAME: u8 = 63;
/// The rank of an escaped symbol.
pub const ESCAPE: usize = 31;
/// Bits of an escaped symbol.
pub const ESCAPE_BITS: usize = 6;
/// The maximum number of classes in a chapter.
pub const CLASSES_MAX: usize = 8;
/// Bytes per class.
pub const CLASS_BYTES: usize = PARITIES * (ESCAPE + 1);
/// The maximum number of planes.
pub const PLANES_MAX: usize = 2;
/// Keys that pay for one class.
const KEYS_OF_CLASS: usize = 2048;
/// Iterations of k-means.
const TURNS: usize = 4;

/// The count of each symbol at even and at odd places.
type Counts = [[u32; SYMBOLS]; PARITIES];

/// A class as stored.
pub type ClassBytes = [u8; CLASS_BYTES];

/// A class, and what each symbol costs in it.
#[derive(Clone)]
pub struct Class {
    /// The class as stored.
    pub bytes: ClassBytes,
    /// Bits of a rank that are stored in planes.
    pub planes: usize,
    /// The rank of each symbol, by parity.
    pub ranks: [[u8; SYMBOLS]; PARITIES],
    /// The bits of each symbol, by parity.
    bits: [[u8; SYMBOLS]; PARITIES],
}

impl Class {
    /// The best class for symbols with these counts.
    fn new(counts: &Counts) -> Class {
        let rankings = [0, 1].map(|parity| ranking(counts, parity));
        let classes = (0..=PLANES_MAX).map(|planes| Class::of(&rankings, planes));
        classes.min_by_key(|class| class.bits_of(counts)).expect("a number of planes")
    }

    fn of(rankings: &[[u8; ESCAPE]; PARITIES], planes: usize) -> Class {
        let mut class = Class {
            bytes: [0; CLASS_BYTES],
            planes,
            ranks: [[ESCAPE as u8; SYMBOLS]; PARITIES],
            bits: [[(rank_bits(ESCAPE, planes) + ESCAPE_BITS) as u8; SYMBOLS]; PARITIES],
        };
        for (parity, ranking) in rankings.iter().enumerate() {
            for (rank, &symbol) in ranking.iter().enumerate() {
                class.bytes[parity * (ESCAPE + 1) + rank] = symbol;
                class.ranks[parity][symbol as usize] = rank as u8;
                class.bits[parity][symbol as usize] = rank_bits(rank, planes) as u8;
            }
        }
        for parity in 0..PARITIES {
            class.bytes[parity * (ESCAPE + 1) + ESCAPE] = SAME | (planes * SYMBOLS) as u8;
        }
        class
    }

    fn bits_of(&self, counts: &Counts) -> u64 {
        let all = counts.iter().flatten().zip(self.bits.iter().flatten());
        all.map(|(&count, &bits)| u64::from(count) * u64::from(bits)).sum()
    }
}

/// Returns the bits that a rank takes.
fn rank_bits(rank: usize, planes: usize) -> usize {
    planes + 1 + (rank >> planes)
}

/// The most frequent symbols of a parity, then those nearest to the mean.
fn ranking(counts: &Counts, parity: usize) -> [u8; ESCAPE] {
    let (own, other) = (&counts[parity], &counts[1 - parity]);
    let all: u64 = own.iter().map(|&count| u64::from(count)).sum();
    let sum: u64 = (0..).zip(own).map(|(symbol, &count)| symbol * u64::from(count)).sum();
    let mean = sum.checked_div(all).unwrap_or(SYMBOLS as u64 / 2) as usize;
    let mut symbols: [u8; SYMBOLS] = core::array::from_fn(|symbol| symbol as u8);
    symbols.sort_by_key(|&symbol| {
        let symbol = symbol as usize;
        (core::cmp::Reverse((own[symbol], other[symbol])), symbol.abs_diff(mean))
    });
    *symbols.first_chunk().expect("there are more symbols than ranks")
}

/// The cost of each symbol in each class, by parity, so that the costs in all classes are added at
/// once.
struct Costs([[[u16; CLASSES_MAX]; SYMBOLS]; PARITIES]);

impl Costs {
    /// More than a symbol costs in any class, yet no sum over a block overflows.
    const NONE: u16 = 1000;

    fn new(classes: &[Class]) -> Costs {
        let mut costs = [[[Self::NONE; CLASSES_MAX]; SYMBOLS]; PARITIES];
        for (number, class) in classes.iter().enumerate() {
            for (costs, bits) in costs.iter_mut().flatten().zip(class.bits.iter().flatten()) {
                costs[number] = u16::from(*bits);
            }
        }
        Costs(costs)
    }

    /// Returns the cheapest class of a block of at most 64 symbols, and the bits of these.
    #[inline(always)]
    fn cheapest(&self, symbols: &[u8]) -> (usize, u32) {
        let mut sums = [0u16; CLASSES_MAX];
        for (place, &symbol) in symbols.iter().enumerate() {
            let costs = &self.0[place % PARITIES][symbol as usize & (SYMBOLS - 1)];
            sums.iter_mut().zip(costs).for_each(|(sum, cost)| *sum += cost);
        }
        let cheapest = (0..).zip(sums).min_by_key(|&(_, bits)| bits).expect("there are classes");
        (cheapest.0, u32::from(cheapest.1))
    }
}

/// The classes of a chapter.
#[derive(Default)]
pub struct Classes {
    classes: Vec<Class>,
    costs: Option<Box<Costs>>,
}

impl Classes {
    /// Learns classes from blocks of symbols. `keys`: the number of keys to be encoded with them.
    pub fn learn(blocks: &[&[u8]], keys: usize) -> Classes {
        let wanted = (keys / KEYS_OF_CLASS).clamp(1, CLASSES_MAX);
        let mut classes = by_mean(blocks, wanted);
        for _ in 0..if classes.len() > 1 { TURNS } else { 0 } {
            let costs = Costs::new(&classes);
            let mut counts = vec![[[0; SYMBOLS]; PARITIES]; classes.len()];
            for block in blocks {
                add(&mut counts[costs.cheapest(block).0], block);
            }
            classes = counts.iter().filter(|counts| is_used(counts)).map(Class::new).collect();
        }
        let costs = Some(Box::new(Costs::new(&classes)));
        Classes { classes, costs }
    }

    /// Whether there are no classes.
    pub fn is_empty(&self) -> bool {
        self.classes.is_empty()
    }

    /// Returns the cheapest class for a block's symbols, its number, and the bits of the symbols.
    /// Requires: there are classes.
    #[inline(always)]
    pub fn cheapest(&self, symbols: &[u8]) -> (usize, &Class, u32) {
        let costs = self.costs.as_ref().expect("there are classes");
        let (number, bits) = costs.cheapest(symbols);
        (number, &self.classes[number], bits)
    }

    /// Appends all classes.
    pub fn write(&self, out: &mut Vec<u8>) {
        self.classes.iter().for_each(|class| out.extend_from_slice(&class.bytes));
    }
}

fn add(counts: &mut Counts, symbols: &[u8]) {
    for (place, &symbol) in symbols.iter().enumerate() {
        counts[place % PARITIES][symbol as usize] += 1;
    }
}

fn is_used(counts: &Counts) -> bool {
    counts.iter().flatten().any(|&count| count > 0)
}

/// The initial classes: blocks grouped by their mean symbol.
fn by_mean(blocks: &[&[u8]], wanted: usize) -> Vec<Class> {
    let mean = |block: &&[u8]| {
        let sum: usize = block.iter().map(|&symbol| symbol as usize).sum();
        sum * SYMBOLS / block.len().max(1)
    };
    let mut sorted = blocks.to_vec();
    sorted.sort_by_cached_key(mean);
    let per_class = sorted.len().div_ceil(wanted).max(1);
    let counted = sorted.chunks(per_class).map(|blocks| {
        let mut counts = [[0; SYMBOLS]; PARITIES];
        blocks.iter().for_each(|block| add(&mut counts, block));
        Class::new(&counts)
    });
    counted.collect()
}
