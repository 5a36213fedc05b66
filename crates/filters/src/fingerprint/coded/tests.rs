//! Keys of every distribution, under classes that were learnt from them and from others.

use super::super::settle::{KEYS_MAX, Numbers};
use super::classes::{CLASS_BYTES, ClassBytes, Classes};
use super::{CodedBlock, SPARE_MAX, encode_coded, gap_symbols};
use crate::base::filter::Untraced;
use crate::fingerprint::gap::{Fall, WINDOW};

const TURN: u32 = 11;

fn mixed(number: u64) -> u64 {
    let mixed = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb)
}

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

struct Encoded {
    bytes: Vec<u8>,
    len: usize,
    classes: Vec<ClassBytes>,
}

impl Encoded {
    fn new(block: &Numbers<'_>, classes: &Classes) -> Encoded {
        let (mut bytes, mut written) = (Vec::new(), Vec::new());
        encode_coded(block, TURN, classes, &mut bytes);
        let len = bytes.len();
        // What follows is read, and means nothing.
        bytes.extend((0..WINDOW as u64).map(|at| mixed(at) as u8));
        classes.write(&mut written);
        assert_eq!(written.len(), classes.size_bytes());
        Encoded { bytes, len, classes: written.as_chunks::<CLASS_BYTES>().0.to_vec() }
    }

    fn block(&self) -> CodedBlock<'_> {
        CodedBlock::new(&self.bytes, self.len, TURN, |class| &self.classes[class])
    }
}

/// Every key lies in a cell that has its place; cells ascend, are disjoint, and as narrow as
/// promised; whatever is asked falls where the cells say.
fn assert_block(block: &Numbers<'_>, classes: &Classes) {
    let (numbers, anchor) = (block.numbers, block.anchor);
    let encoded = Encoded::new(block, classes);
    let read = encoded.block();
    assert_eq!(read.count(), numbers.len());
    let mut bounds = Vec::new();
    read.for_each_bounds(anchor, |low, high| bounds.push((low, high)));
    assert_eq!(bounds.len(), numbers.len());
    for (place, (&number, &(low, high))) in numbers.iter().zip(&bounds).enumerate() {
        assert!((low..=high).contains(&number), "{place}: {number} in {low}..={high}");
        if place > 0 {
            let before = bounds[place - 1];
            assert!(before == (low, high) && numbers[place - 1] == number || before.1 < low);
            let apart = number - numbers[place - 1];
            let most = ((2 * u128::from(apart)) >> block.spare).max(1);
            assert!(apart == 0 || u128::from(high - low) < most, "{place}: wide");
        }
        let fall = read.find(number, anchor, &mut Untraced);
        let before = numbers.partition_point(|&other| other < number);
        let through = numbers.partition_point(|&other| other <= number);
        assert_eq!(fall, Fall::In { before, through, end: high + 1 }, "{number}");
    }
    let span = numbers[numbers.len() - 1] - anchor + 9;
    for asked in (0..200).map(|i| anchor + mixed(i) % span) {
        let before = bounds.partition_point(|&(_, high)| high < asked);
        let through = bounds.partition_point(|&(low, _)| low <= asked);
        let expected = if before < through {
            Fall::In { before, through, end: bounds[before].1 + 1 }
        } else {
            let end = before.checked_sub(1).map_or(anchor, |last| bounds[last].1 + 1);
            Fall::Between { before, end, next: bounds.get(before).map(|cell| cell.0) }
        };
        assert_eq!(read.find(asked, anchor, &mut Untraced), expected, "{asked}");
    }
}

#[test]
fn keys_of_every_distribution_lie_in_their_cells() {
    let foreign: Vec<u64> = (0..60).map(|i| i << 50 | mixed(i) >> 40).collect();
    let foreign = learnt(&[&foreign], 100_000);
    for seed in 0..300u64 {
        let count = 1 + (mixed(seed) % KEYS_MAX as u64) as usize;
        let shift = 1 + mixed(seed ^ 99) % 60;
        let skew = mixed(seed ^ 7) % 50;
        let number = |i: u64| mixed(seed << 8 | i) >> shift >> (mixed(i ^ seed) % (skew + 1));
        let mut numbers: Vec<u64> = (0..count as u64).map(number).collect();
        numbers.sort_unstable();
        let next = (seed % 3 > 0).then(|| numbers[count - 1].saturating_add(mixed(seed) >> 40));
        let anchor = numbers[0] - mixed(seed ^ 3) % (numbers[0] + 1) / (1 + seed % 5);
        let own = learnt(&[&numbers], 1);
        for spare in [0, 1, 4, 15, SPARE_MAX] {
            let block = Numbers { numbers: &numbers, anchor, next, spare };
            assert_block(&block, &own);
            assert_block(&block, &foreign);
        }
    }
}

#[test]
fn the_edges_of_the_numbers() {
    let most = (1 << 63) - 1;
    let powers: Vec<u64> = (0..63).map(|bit| 1 << bit).collect();
    let deep: Vec<u64> = (0..63).rev().map(|bit| most - (1 << bit) + 1).collect();
    let cases: [(&[u64], u64, Option<u64>); 9] = [
        (&[most], 0, None),
        (&[0], 0, Some(most)),
        (&[0, most], 0, None),
        (&[0, 1, 2, 3, most - 1, most], 0, None),
        (&[7; KEYS_MAX], 7, Some(8)),
        (&[7; 3], 7, None),
        (&[7, 7, 7, 7, 7, 7, 7, 7, 7, 9, 9, 9, 9, 9, 9, 9, 9, 12], 1, None),
        (&powers, 1, None),
        (&deep, 0, Some(most)),
    ];
    for (numbers, anchor, next) in cases {
        for spare in [0, 5, 15, SPARE_MAX] {
            for (other, ..) in cases {
                let block = Numbers { numbers, anchor, next, spare };
                assert_block(&block, &learnt(&[other], 1));
            }
        }
    }
}

#[test]
fn pairs_become_exact_and_then_take_no_more_bits() {
    let numbers: Vec<u64> = (0..62).map(|i| (i / 2) << 12 | mixed(i / 2) >> 54 | (i % 2)).collect();
    let classes = learnt(&[numbers.as_slice(); 40], 1);
    let encoded = |spare| {
        let block = Numbers { numbers: &numbers, anchor: numbers[0], next: None, spare };
        Encoded::new(&block, &classes)
    };
    assert_eq!(encoded(14).len, encoded(SPARE_MAX).len);
    let exact = encoded(14);
    exact.block().for_each_bounds(numbers[0], |low, high| assert_eq!(low, high));
    // A gap of 2^12 takes its exponent's symbol and twelve bits, a gap of 1 a symbol: of two keys.
    assert!(exact.len * 8 < 31 * (12 + 2 + 2) + 40, "{} bytes", exact.len);
}

#[test]
fn damaged_blocks_lead_nowhere_else() {
    let numbers: Vec<u64> = (0..60).map(|i| i << 30 | mixed(i) >> 36).collect();
    let classes = learnt(&[&numbers], 1);
    let block = Numbers { numbers: &numbers, anchor: numbers[0], next: None, spare: 5 };
    for seed in 0..3000 {
        let mut encoded = Encoded::new(&block, &classes);
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
        let read = CodedBlock::new(&encoded.bytes, encoded.len, TURN, |class| &all[class]);
        let mut count = 0;
        read.for_each_bounds(numbers[0], |_, _| count += 1);
        assert_eq!(count, read.count());
        (0..50).for_each(|i| {
            let (before, through) = read.find(mixed(i) >> 1, numbers[0], &mut Untraced).ranks();
            assert!(before <= through && through <= read.count());
        });
    }
}
