//! Test helpers: properties of all blocks of settled cells, in any encoding.

use super::gap::Fall;
use super::read_cells::ReadCells;
use super::settle::{KEYS_MAX, Numbers};

/// A pseudorandom number.
pub(super) fn mixed(number: u64) -> u64 {
    let mixed = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb)
}

/// Checks the properties. Every key lies in its cell; cells ascend, are disjoint, and are as narrow
/// as promised; any number falls where the cells say. `bounds`: each key's cell.
pub(super) fn assert_cells(block: &Numbers<'_>, bounds: &[(u64, u64)], find: impl Fn(u64) -> Fall) {
    let (numbers, anchor) = (block.numbers, block.anchor);
    assert_eq!(bounds.len(), numbers.len());
    for (place, (&number, &(low, high))) in numbers.iter().zip(bounds).enumerate() {
        assert!((low..=high).contains(&number), "{place}: {number} in {low}..={high}");
        if place > 0 {
            let before = bounds[place - 1];
            assert!(before == (low, high) && numbers[place - 1] == number || before.1 < low);
            let apart = number - numbers[place - 1];
            let exact = (1 << block.unit).min(2 * apart);
            let most = ((2 * apart) >> block.spare).max(exact);
            assert!(apart == 0 || high - low < most, "{place}: wide");
        }
        let before = numbers.partition_point(|&other| other < number);
        let through = numbers.partition_point(|&other| other <= number);
        assert_eq!(find(number), Fall::In { before, through, end: high + 1 }, "{number}");
    }
    let mut read = ReadCells::default();
    bounds.iter().for_each(|&(low, high)| read.push(low, high));
    numbers.iter().for_each(|&number| assert_eq!(read.find(number, anchor), find(number)));
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
        assert_eq!(find(asked), expected, "{asked}");
        assert_eq!(read.find(asked, anchor), expected, "{asked}, of cells that were read");
    }
}

/// Blocks of keys of all distributions.
pub(super) fn for_drawn_blocks(spares: &[usize], mut check: impl FnMut(&Numbers<'_>)) {
    for seed in 0..400u64 {
        let count = 1 + (mixed(seed) % KEYS_MAX as u64) as usize;
        let shift = 1 + mixed(seed ^ 99) % 60;
        let skew = mixed(seed ^ 7) % 50;
        let number = |i: u64| mixed(seed << 8 | i) >> shift >> (mixed(i ^ seed) % (skew + 1));
        let mut numbers: Vec<u64> = (0..count as u64).map(number).collect();
        numbers.sort_unstable();
        let next = (seed % 3 > 0).then(|| numbers[count - 1].saturating_add(mixed(seed) >> 40));
        let anchor = numbers[0] - mixed(seed ^ 3) % (numbers[0] + 1) / (1 + seed % 5);
        for &spare in spares {
            let unit = (mixed(seed ^ 5) % 64) as u32 * (seed % 2) as u32;
            check(&Numbers { numbers: &numbers, anchor, next, spare, unit });
        }
    }
}

/// Blocks at the ends of the number range, and of keys with equal numbers.
pub(super) fn for_edge_blocks(spares: &[usize], mut check: impl FnMut(&Numbers<'_>)) {
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
        for &spare in spares {
            for unit in [0, 1, 30, 62] {
                check(&Numbers { numbers, anchor, next, spare, unit });
            }
        }
    }
}
