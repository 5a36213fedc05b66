//! The implicit trie of a block's cells, and the path of a key through it.
//! ```text
//! cells     0     1  2     3  4       start: the bits shared with the previous cell, plus one
//! starts    -     3  5     2  4
//! trie            .---- bit 1 ----.   a cell's first bit: 0 at the node left of it, 1 right of it
//!          .-- bit 2 --.       .- bit 3 -.
//!         (0)      .- bit 4 -. (3)      (4)
//!                 (1)       (2)
//! ```
//! A blind search, as in a Patricia trie: at each node the key's own bit decides, and nothing
//! stored is compared. The path names the cells at which it goes right. Those are compared
//! afterwards, with loads that do not depend on each other.
//!
//! All sixty-four cells are processed at once, in bit planes. A plane is a word with one bit of
//! each cell's nibble: bit 0, bit 1 and so on.
//!
//! Invariant: starts, runs and sums equal those that `Cells` in `cell.rs` finds one by one. Damaged
//! bytes give arbitrary results.

use super::cell::{CELLS_MAX, ESCAPE, take_escape};
use crate::bits::simd::nibble_planes;
use core::hint::select_unpredictable;

/// The bytes of the largest block's nibbles.
pub(super) const NIBBLE_BYTES: usize = CELLS_MAX / 2;
/// Bits per nibble.
const PLANES: usize = 4;

/// The starts of a block's cells; the first cell starts at 0. `ESCAPES`: whether some starts do not
/// fit into nibbles. If false, the code for escapes vanishes.
#[derive(Clone, Copy)]
pub(super) struct Trie<'a, const ESCAPES: bool> {
    nibbles: &'a [u8; NIBBLE_BYTES],
    base: usize,
    spare: usize,
    /// A bit for each cell except the first, and for those whose start is escaped.
    others: u64,
    escaped: u64,
    /// One bit plane per bit of the cells' nibbles.
    planes: [u64; PLANES],
    /// The bit planes of the runs of cells without escapes; the first cell's run is apart.
    runs: [u64; PLANES],
    first_run: usize,
    /// The escaped starts, at their cells' places; and whether one is below the base.
    escaped_starts: [u32; CELLS_MAX],
    is_low: bool,
}

/// The stored bits of a cell up to the next one's start, and whether a known zero follows.
#[derive(Clone, Copy)]
pub(super) struct Stretch {
    pub(super) run: usize,
    pub(super) gap: usize,
}

impl<'a, const ESCAPES: bool> Trie<'a, ESCAPES> {
    /// Requires: `count` is above 1. `escapes`: the bytes from the first escaped start on.
    #[inline(always)]
    pub(super) fn new(
        nibbles: &'a [u8; NIBBLE_BYTES],
        escapes: &[u8],
        (base, spare): (usize, usize),
        count: usize,
    ) -> Self {
        let others = ((2u64 << (count - 1)).wrapping_sub(1)) & !1;
        // The first nibble belongs to the second cell.
        let mut planes = nibble_planes(nibbles);
        for plane in &mut planes {
            *plane <<= 1;
        }
        let mut escaped = 0;
        if ESCAPES {
            escaped = planes[0] & planes[1] & planes[2] & planes[3] & others;
        }
        let runs = runs_of(&planes, others & !escaped);
        let (escaped_starts, is_low) = ([0; CELLS_MAX], false);
        let first_run = 0;
        let mut trie = Trie {
            nibbles,
            base,
            spare,
            others,
            escaped,
            planes,
            runs,
            first_run,
            escaped_starts,
            is_low,
        };
        if ESCAPES {
            trie.take_escapes(escapes);
        }
        trie.first_run = trie.start(1).saturating_sub(1);
        trie
    }

    /// Reads the escaped starts: each has at most three bytes of seven bits.
    #[inline(always)]
    fn take_escapes(&mut self, escapes: &[u8]) {
        let (mut rest, mut at) = (self.escaped, 0);
        while rest != 0 {
            let start = take_escape(escapes, &mut at);
            self.escaped_starts[rest.trailing_zeros() as usize] = start as u32;
            self.is_low |= start < self.base;
            rest &= rest - 1;
        }
    }

    /// Returns the start of a cell. Requires: the cell exists and is not the first.
    #[inline(always)]
    pub(super) fn start(&self, cell: usize) -> usize {
        if ESCAPES && self.escaped >> cell & 1 == 1 {
            return self.escaped_starts[cell % CELLS_MAX] as usize;
        }
        let nibble = cell.wrapping_sub(1) % CELLS_MAX;
        self.base + usize::from(self.nibbles[nibble / 2] >> (4 * (nibble % 2)) & 15)
    }

    /// Returns the stretch of a cell, given its start. Requires: the cell exists.
    #[inline(always)]
    pub(super) fn stretch(&self, cell: usize, start: usize) -> Stretch {
        let is_last = self.others >> cell >> 1 == 0;
        let next = if is_last { 0 } else { self.start(cell + 1) };
        Stretch { run: next.saturating_sub(start + 1), gap: usize::from(next > start) }
    }

    /// Returns the number of bits stored for the cells before `cell`. Requires: it is not the
    /// first.
    #[inline(always)]
    pub(super) fn bits_before(&self, cell: usize) -> usize {
        let mask = below(cell);
        let [ones, twos, fours, eights] = self.runs;
        let plain = (ones & mask).count_ones()
            + 2 * (twos & mask).count_ones()
            + 4 * (fours & mask).count_ones()
            + 8 * (eights & mask).count_ones();
        let mut sum = plain as usize + self.first_run + cell * self.spare;
        if ESCAPES {
            // Adds the runs that begin or end at an escaped start.
            sum += self.escaped_runs((self.escaped | self.escaped >> 1) & mask & !1);
        }
        sum
    }

    #[inline(always)]
    fn escaped_runs(&self, mut cells: u64) -> usize {
        let mut sum = 0;
        while cells != 0 {
            let cell = cells.trailing_zeros() as usize;
            sum += self.stretch(cell, self.start(cell)).run;
            cells &= cells - 1;
        }
        sum
    }

    /// Returns the cells at which the path of a key goes right, including the first cell, as far as
    /// nibbles tell. `window`: the key's bits from the one before the base on.
    #[inline(always)]
    pub(super) fn path(&self, window: u64) -> u64 {
        if ESCAPES && self.is_low {
            // A node above all levels would be missed, and later decisions would be wrong.
            return 1;
        }
        let (levels, mut descent) = (self.levels(), Descent { reached: self.others | 1, path: 1 });
        // All levels are visited even after the path has ended, as its end cannot be predicted.
        for level in 0..ESCAPE {
            descent.descend(levels.nodes(level), window << level);
        }
        descent.path
    }

    #[inline(always)]
    fn levels(&self) -> Levels {
        let [ones, twos, fours, eights] = self.planes;
        let plain = self.others & !self.escaped;
        let (no_eights, eights) = (plain & !eights, plain & eights);
        Levels {
            low: [!ones & !twos, ones & !twos, !ones & twos, ones & twos],
            high: [no_eights & !fours, no_eights & fours, eights & !fours, eights & fours],
        }
    }

    /// Returns the first cell after `after` that starts at or before `limit`.
    #[inline(always)]
    pub(super) fn next(&self, after: usize, limit: usize) -> Option<usize> {
        let mut found = match limit.checked_sub(self.base) {
            Some(nibble) => self.starting_by(nibble.min(ESCAPE - 1)) & !self.escaped,
            None => 0,
        };
        if ESCAPES {
            found |= self.escaped_by(limit);
        }
        let found = found & self.others & !below(after) & !(1 << after);
        (found != 0).then(|| found.trailing_zeros() as usize)
    }

    #[inline(always)]
    fn escaped_by(&self, limit: usize) -> u64 {
        let (mut rest, mut found) = (self.escaped, 0);
        while rest != 0 {
            let cell = rest.trailing_zeros();
            found |= u64::from(self.start(cell as usize) <= limit) << cell;
            rest &= rest - 1;
        }
        found
    }

    /// Returns the cells whose nibbles are at most `nibble`.
    #[inline(always)]
    fn starting_by(&self, nibble: usize) -> u64 {
        let mut above = 0;
        for (bit, plane) in self.planes.into_iter().enumerate() {
            let limit = 0u64.wrapping_sub((nibble >> bit & 1) as u64);
            // The higher bit decides.
            above = plane & !limit | !(plane ^ limit) & above;
        }
        !above
    }
}

/// The cells grouped by nibble.
struct Levels {
    /// By the two low bits.
    low: [u64; 4],
    /// By the two high bits.
    high: [u64; 4],
}

impl Levels {
    /// Returns the cells with this nibble.
    #[inline(always)]
    fn nodes(&self, nibble: usize) -> u64 {
        self.low[nibble % 4] & self.high[nibble / 4]
    }
}

/// A descent through the trie.
struct Descent {
    /// The cells below the current node.
    reached: u64,
    path: u64,
}

impl Descent {
    /// Goes left or right at the node of a level, if there is one, by the first bit of `window`.
    #[inline(always)]
    fn descend(&mut self, nodes: u64, window: u64) {
        // At most one of the cells below the current node starts at this level.
        let node = nodes & self.reached;
        let right = (window.cast_signed() >> 63).cast_unsigned();
        let side = node.wrapping_sub(1) ^ right;
        self.reached = select_unpredictable(node == 0, self.reached, self.reached & side);
        self.path |= node & right;
    }
}

/// Computes each cell's run, its successor's nibble minus its own minus one, where that is not
/// negative, for all cells at once. `plain`: the cells without escapes.
#[inline(always)]
fn runs_of(planes: &[u64; PLANES], plain: u64) -> [u64; PLANES] {
    // next - own - 1 equals next + !own, which carries if the difference is not negative.
    let (mut runs, mut carry) = ([0; PLANES], 0);
    for bit in 0..PLANES {
        let (own, next) = (!planes[bit], planes[bit] >> 1);
        runs[bit] = own ^ next ^ carry;
        carry = own & next | carry & (own ^ next);
    }
    let valid = plain & plain >> 1 & carry;
    for run in &mut runs {
        *run &= valid;
    }
    runs
}

/// A bit for each cell before `cell`.
#[inline(always)]
fn below(cell: usize) -> u64 {
    (1 << cell) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mixed(number: u64) -> u64 {
        let mixed = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb)
    }

    /// The starts in a block of ascending 64-bit keys, and their nibbles.
    fn starts_of(keys: &[u64], base: usize) -> (Vec<usize>, [u8; NIBBLE_BYTES], Vec<u8>) {
        let start = |pair: &[u64]| (pair[0] ^ pair[1]).leading_zeros() as usize + 1;
        let starts: Vec<usize> = [0].into_iter().chain(keys.windows(2).map(start)).collect();
        let (mut nibbles, mut escaped) = ([0xa5; NIBBLE_BYTES], Vec::new());
        for (place, &start) in starts[1..].iter().enumerate() {
            let is_plain = start >= base && start - base < ESCAPE;
            escaped.extend((!is_plain).then_some(start as u8));
            let nibble = if is_plain { start - base } else { ESCAPE };
            let shift = 4 * (place % 2);
            nibbles[place / 2] = nibbles[place / 2] & !(15 << shift) | (nibble << shift) as u8;
        }
        (starts, nibbles, escaped)
    }

    fn keys(seed: u64, count: u64) -> Vec<u64> {
        let mut keys: Vec<u64> = (0..count)
            .map(|i| mixed(seed << 8 | i) >> (mixed(i ^ seed) % (1 + seed % 30)))
            .collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    #[test]
    fn starts_runs_and_sums_are_those_of_one_by_one() {
        for seed in 0..300 {
            let keys = keys(seed, 2 + seed % 63);
            let (base, spare) = (1 + (seed % 9) as usize, (seed % 16) as usize);
            let (starts, nibbles, escaped) = starts_of(&keys, base);
            let trie = Trie::<true>::new(&nibbles, &escaped, (base, spare), keys.len());
            assert_starts(&trie, &starts, seed);
            if escaped.is_empty() {
                let trie = Trie::<false>::new(&nibbles, &[], (base, spare), keys.len());
                assert_starts(&trie, &starts, seed);
            }
        }
    }

    fn assert_starts<const ESCAPES: bool>(trie: &Trie<'_, ESCAPES>, starts: &[usize], seed: u64) {
        let mut sum = 0;
        for (cell, &start) in starts.iter().enumerate() {
            let next = starts.get(cell + 1).copied().unwrap_or(0);
            let stretch = trie.stretch(cell, start);
            assert!(cell == 0 || trie.start(cell) == start, "{seed} {cell}");
            assert!(cell == 0 || trie.bits_before(cell) == sum, "{seed} {cell}");
            assert_eq!(stretch.run, next.saturating_sub(start + 1), "{seed} {cell}");
            assert_eq!(stretch.gap, usize::from(next > start), "{seed} {cell}");
            sum += stretch.run + trie.spare;
            for limit in 0..70 {
                let first = (cell + 1..starts.len()).find(|&other| starts[other] <= limit);
                assert_eq!(trie.next(cell, limit), first, "{seed} {cell} {limit}");
            }
        }
    }

    /// The expected path: cells before the key that share more with it than all cells in between.
    /// For a stored key its own cell is the last one.
    #[test]
    fn the_path_of_a_stored_key_leads_to_its_cell() {
        let mut trusted = 0;
        for seed in 0..300 {
            let keys = keys(seed, 2 + seed % 63);
            let (_, _, all) = starts_of(&keys, 1);
            let least = keys.windows(2).map(|pair| (pair[0] ^ pair[1]).leading_zeros() + 1).min();
            let base = least.unwrap_or(1) as usize + usize::from(seed % 5 == 0 && !all.is_empty());
            let (starts, nibbles, escaped) = starts_of(&keys, base);
            let trie = Trie::<true>::new(&nibbles, &escaped, (base, 0), keys.len());
            for (cell, &key) in keys.iter().enumerate() {
                let path = trie.path(key << (base - 1));
                let is_right = |other: &usize| {
                    (other + 1..=cell).all(|later| starts[later] > starts[*other])
                        && (*other == 0 || starts[*other] < base + ESCAPE)
                };
                let expected: u64 = (0..=cell).filter(is_right).map(|other| 1 << other).sum();
                if escaped.iter().all(|&start| usize::from(start) >= base) {
                    assert_eq!(path, expected, "{seed} {cell}");
                    trusted += 1;
                }
            }
        }
        assert!(trusted > 5000, "{trusted} paths");
    }
}
