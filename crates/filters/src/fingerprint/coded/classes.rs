//! Classes of blocks: which exponents come often there, and in which order.
//! ```text
//! class     ranking of even places (32 bytes) | of odd ones (32 bytes)
//! ranking   the commonest symbol, the next one, ... 31 of them; behind: 63, and from bit 6 on k
//! symbol    0..62 exponent of a gap, turned; 63: the key lies in the cell before
//! rank r    r mod 2^k in k planes, r >> k in unary; 31: the symbol itself is among the bits
//! ```
//! Neighbours that come in pairs have one ranking for either gap. Classes are learnt from some
//! blocks, by k-means under the cost in bits. Invariant: every symbol can be written in every
//! class.

use alloc::boxed::Box;
use alloc::vec::Vec;

/// Places that have a ranking of their own: even and odd ones.
pub const PARITIES: usize = 2;
/// Symbols there are.
pub const SYMBOLS: usize = 64;
/// Exponents that symbols tell apart.
pub const EXPONENTS: u32 = 63;
/// The symbol of a key that lies in the cell before.
pub const SAME: u8 = 63;
/// The rank of a symbol that is among the bits.
pub const ESCAPE: usize = 31;
/// Bits of such a symbol.
pub const ESCAPE_BITS: usize = 6;
/// Classes that a set can have.
pub const CLASSES_MAX: usize = 8;
/// Bytes of a class.
pub const CLASS_BYTES: usize = PARITIES * (ESCAPE + 1);
/// The most bits of a rank that are kept in planes.
pub const PLANES_MAX: usize = 2;
/// Keys that pay for a class.
const KEYS_OF_CLASS: usize = 2048;
/// Times that blocks look for a better class.
const TURNS: usize = 4;

/// How often each symbol is at even and at odd places.
type Counts = [[u32; SYMBOLS]; PARITIES];

/// A class as it is written and read.
pub type ClassBytes = [u8; CLASS_BYTES];

/// A class, and what each symbol costs in it.
#[derive(Clone)]
pub struct Class {
    /// As it is written.
    pub bytes: ClassBytes,
    /// Bits of a rank that are kept in planes.
    pub planes: usize,
    /// The rank of each symbol, by parity.
    pub ranks: [[u8; SYMBOLS]; PARITIES],
    /// The bits of each symbol, by parity.
    bits: [[u8; SYMBOLS]; PARITIES],
}

impl Class {
    /// The class that is best for symbols that come so often.
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

/// Bits of a rank.
fn rank_bits(rank: usize, planes: usize) -> usize {
    planes + 1 + (rank >> planes)
}

/// The commonest symbols of a parity. Behind those that came, those nearest to them.
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

/// What each symbol costs in each class, by parity: the costs of a symbol are added at once.
struct Costs([[[u16; CLASSES_MAX]; SYMBOLS]; PARITIES]);

impl Costs {
    /// More than a symbol costs in any class, and no sum for a block overflows.
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

    /// The cheapest class of a block of at most 64 symbols, and the bits of all of them.
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

/// The classes of some thousand neighbouring keys.
#[derive(Default)]
pub struct Classes {
    classes: Vec<Class>,
    costs: Option<Box<Costs>>,
}

impl Classes {
    /// Learns classes from blocks of symbols. `keys`: those that are to be written with them.
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

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.classes.is_empty()
    }

    /// The cheapest class of a block, its number, and the bits of the block's symbols. Requires:
    /// there are classes.
    #[inline(always)]
    pub fn cheapest(&self, symbols: &[u8]) -> (usize, &Class, u32) {
        let costs = self.costs.as_ref().expect("there are classes");
        let (number, bits) = costs.cheapest(symbols);
        (number, &self.classes[number], bits)
    }

    /// Appends all of them.
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

/// Classes of blocks whose symbols are about as great.
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
