//! Keys of all distributions, with classes learned from them and from other keys.

use super::super::settle::Numbers;
use super::super::settle_laws::{assert_cells, for_drawn_blocks, for_edge_blocks, mixed};
use super::classes::{CLASS_BYTES, ClassBytes, Classes};
use super::{CodedBlock, SPARE_MAX, Shared, encode_coded, gap_symbols};
use crate::base::filter::Untraced;
use crate::fingerprint::gap::WINDOW;

const TURN: u32 = 11;

fn learnt(blocks: &[&[u64]], keys: usize) -> Classes {
    let symbols: Vec<Vec<u8>> = blocks
        .iter()
        .map(|numbers| {
            let mut symbols = Vec::new();
            gap_symbols(numbers, None, TURN, &mut symbols);
            symbols
        })
        .collect();
    let symbols: Vec<&[u8]> = symbols.iter().map(Vec::as_slice).collect();
    Classes::learn(&symbols, keys)
}

/// A group that may contain a block with `spare` spare bits.
fn group_of(spare: usize, unit: u32) -> Shared {
    Shared { turn: TURN, spare: (spare - spare % 2) as u32, unit, is_aligned: false }
}

struct Encoded {
    bytes: Vec<u8>,
    len: usize,
    group: Shared,
    classes: Vec<ClassBytes>,
}

impl Encoded {
    fn new(block: &Numbers<'_>, classes: &Classes) -> Encoded {
        let (mut bytes, mut written) = (Vec::new(), Vec::new());
        encode_coded((block, 0), group_of(block.spare, block.unit), classes, &mut bytes);
        let len = bytes.len();
        // The bytes that follow are read, too, but must not matter.
        bytes.extend((0..WINDOW as u64).map(|at| mixed(at) as u8));
        classes.write(&mut written);
        let group = group_of(block.spare, block.unit);
        Encoded { bytes, len, group, classes: written.as_chunks::<CLASS_BYTES>().0.to_vec() }
    }

    fn block(&self) -> CodedBlock<'_> {
        CodedBlock::new(&self.bytes, self.len, self.group, |class| &self.classes[class])
    }
}

fn assert_block(numbers: &Numbers<'_>, classes: &Classes) {
    let encoded = Encoded::new(numbers, classes);
    let (block, mut bounds) = (encoded.block(), Vec::new());
    assert_eq!(block.count(), numbers.numbers.len());
    block.for_each_bounds(numbers.anchor, |low, high| bounds.push((low, high)));
    let find = |number| block.find(number, numbers.anchor, &mut Untraced);
    assert_cells(numbers, &bounds, find);
}

#[test]
fn keys_of_every_distribution_lie_in_their_cells() {
    let foreign: Vec<u64> = (0..60).map(|i| i << 50 | mixed(i) >> 40).collect();
    let foreign = learnt(&[&foreign], 100_000);
    for_drawn_blocks(&[0, 1, 4, 15, SPARE_MAX], |block| {
        assert_block(block, &learnt(&[block.numbers], 1));
        assert_block(block, &foreign);
    });
}

#[test]
fn the_edges_of_the_numbers() {
    for_edge_blocks(&[0, 5, 15, SPARE_MAX], |block| {
        for_edge_blocks(&[0], |other| assert_block(block, &learnt(&[other.numbers], 1)));
    });
}

#[test]
fn pairs_become_exact_and_then_take_no_more_bits() {
    let numbers: Vec<u64> = (0..62).map(|i| (i / 2) << 12 | mixed(i / 2) >> 54 | (i % 2)).collect();
    let classes = learnt(&[numbers.as_slice(); 40], 1);
    let encoded = |spare| {
        let block = Numbers { numbers: &numbers, anchor: numbers[0], next: None, spare, unit: 0 };
        Encoded::new(&block, &classes)
    };
    assert_eq!(encoded(14).len, encoded(SPARE_MAX).len);
    let exact = encoded(14);
    exact.block().for_each_bounds(numbers[0], |low, high| assert_eq!(low, high));
    // A gap of 2^12 takes its exponent's symbol and twelve bits, a gap of 1 a symbol: per two keys.
    assert!(exact.len * 8 < 31 * (12 + 2 + 2) + 40, "{} bytes", exact.len);
}

/// Keys that differ only in their last bits share a cell. It contains exactly the numbers that
/// differ from them only in these bits.
#[test]
fn cells_of_numbers_without_last_bits() {
    for dropped in (0..=12u32).chain([20]) {
        let begins: Vec<u64> = (0..31).map(|i| (i * 5 + mixed(i) % 5) << dropped).collect();
        let numbers: Vec<u64> =
            begins.iter().flat_map(|&it| [it, it + (1 << dropped) - 1]).collect();
        let mut numbers: Vec<u64> = numbers.iter().map(|&number| (1 << 40) + number).collect();
        numbers.dedup();
        let group = Shared { spare: SPARE_MAX as u32, ..Shared::of_prefix(0, 0, true) };
        let kept: Vec<u64> = numbers.iter().map(|number| number >> dropped).collect();
        let anchor = numbers[0];
        let block = Numbers {
            numbers: &kept,
            anchor: anchor >> dropped,
            next: None,
            spare: SPARE_MAX,
            unit: 0,
        };
        let (classes, mut written) = (learnt(&[&kept], 1), Vec::new());
        let mut bytes = Vec::new();
        encode_coded((&block, dropped), group, &classes, &mut bytes);
        let len = bytes.len();
        bytes.extend([0; WINDOW]);
        classes.write(&mut written);
        let written = written.as_chunks::<CLASS_BYTES>().0;
        let read = CodedBlock::new(&bytes, len, group, |class| &written[class]);
        let mut bounds = Vec::new();
        read.for_each_bounds(anchor, |low, high| bounds.push((low, high)));
        for (number, (low, high)) in numbers.iter().zip(&bounds) {
            let cell = number >> dropped << dropped;
            assert_eq!((*low, *high), (cell, cell + (1 << dropped) - 1), "{dropped} bits");
        }
        assert_eq!(bounds.len(), numbers.len());
        let last = numbers[numbers.len() - 1] + 3;
        for number in (anchor..last).step_by(1 << dropped.saturating_sub(12)) {
            let (before, through) = read.find(number, anchor, &mut Untraced).ranks();
            let cells = kept.iter().filter(|&&it| it < number >> dropped).count();
            let own = kept.iter().filter(|&&it| it == number >> dropped).count();
            assert_eq!((before, through), (cells, cells + own), "{dropped} bits, {number}");
        }
    }
}

#[test]
fn damaged_blocks_lead_nowhere_else() {
    let numbers: Vec<u64> = (0..60).map(|i| i << 30 | mixed(i) >> 36).collect();
    let classes = learnt(&[&numbers], 1);
    let block = Numbers { numbers: &numbers, anchor: numbers[0], next: None, spare: 5, unit: 0 };
    for seed in 0..3000 {
        let mut encoded = Encoded::new(&block, &classes);
        // The first six bits of the symbols are read as the number of dropped bits.
        encoded.group.is_aligned = seed % 3 == 0;
        for turn in 0..1 + seed % 7 {
            let noise = mixed(seed << 8 | turn);
            let len = encoded.len;
            match noise % 5 {
                0 => encoded.classes[0][(noise >> 8) as usize % CLASS_BYTES] = (noise >> 40) as u8,
                1 => encoded.len = (noise >> 8) as usize % WINDOW,
                _ => encoded.bytes[(noise >> 8) as usize % len.max(1)] ^= 1 << (noise >> 40 & 7),
            }
        }
        let all = [encoded.classes[0]; 8];
        let read = CodedBlock::new(&encoded.bytes, encoded.len, encoded.group, |class| &all[class]);
        let mut count = 0;
        read.for_each_bounds(numbers[0], |_, _| count += 1);
        assert_eq!(count, read.count());
        (0..50).for_each(|i| {
            let (before, through) = read.find(mixed(i) >> 1, numbers[0], &mut Untraced).ranks();
            assert!(before <= through && through <= read.count());
        });
    }
}
