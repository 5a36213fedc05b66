//! The position of a key within a block of cells, as a fraction with more resolution near cells.
//! ```text
//! cells     . . [c0] . . . . . . . . . . . . . . . . [c1] . . [c2] . . .
//! gaps      <0-><--------------- gap 1 --------------><- gap 2 -><- 3 ->
//!           equal shares of the fraction, however wide
//! gap       in c0 | near c0, bits shared: many ... few | few ... many: near c1
//! fraction  (gap + offset in the gap) / number of gaps
//! ```
//! Queried and flushed keys crowd near the keys of the base. So all gaps have equal shares, and a
//! gap is measured from its two cells. A key in a gap differs from the nearer cell in some bit: the
//! later that bit, the nearer the key. Above a cell that bit must be a zero of the cell, below it a
//! one; the offset counts only such bits.
//!
//! Each next piece has half as many offsets; flatter divisions were measured and were worse on all
//! data sets. The key's bits after the differing one tell the keys of a piece apart.
//!
//! Invariant: fractions are monotone in keys.

use crate::fingerprint::cell::{CellPlace, Fall, Tail};

/// Bits of an offset within a gap.
const OFFSET_BITS: u32 = 12;
/// Half of a gap's offsets.
const HALF: u64 = 1 << (OFFSET_BITS - 1);
/// Bits of the offsets of each piece of a half, from its far end on. Beyond the last piece a key is
/// adjacent to the cell.
const PIECE_BITS: [u32; 8] = [10, 9, 8, 7, 6, 5, 4, 4];
/// The first offset of each piece, from the far end of the half on.
const STARTS: [u64; PIECE_BITS.len() + 1] = starts();
const _: () = assert!(STARTS[PIECE_BITS.len()] == HALF);

const fn starts() -> [u64; PIECE_BITS.len() + 1] {
    let mut starts = [0; PIECE_BITS.len() + 1];
    let mut piece = 0;
    while piece < PIECE_BITS.len() {
        starts[piece + 1] = starts[piece] + (1 << PIECE_BITS[piece]);
        piece += 1;
    }
    starts
}

/// What surrounds the cells of a block, as views.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The number of known bits that keys before the block's first cell share with that cell.
    pub(crate) head_bits: usize,
    /// An upper bound of the block's views.
    pub(crate) end: u64,
}

/// Returns the fraction, of `bits` bits, of a key found in a block of `count` cells.
#[inline]
pub(crate) fn fraction(
    found: &CellPlace,
    key: &Tail<'_>,
    count: usize,
    limits: &Limits,
    bits: usize,
) -> u64 {
    let offset = match found.fall {
        Fall::In => 1 << OFFSET_BITS, // as adjacent to the cell, but after it
        Fall::NearBefore { split, shared } => near_before(key, split, shared),
        Fall::NearAfter { split, shared } => {
            let split = if found.before == 0 { limits.head_bits } else { split };
            near_after(key, split, shared)
        }
        Fall::AfterAll { shared } => after_all(key, shared, limits.end),
    };
    let place = ((found.before as u64) << OFFSET_BITS) + offset;
    // Both fit into 32 bits, whose division is faster.
    u64::from((place << bits >> OFFSET_BITS) as u32 / (count as u32 + 1))
}

/// Returns the offset of a key that first differs from the cell before it in bit `shared`.
#[inline]
fn near_before(key: &Tail<'_>, split: usize, shared: usize) -> u64 {
    // Keys above the cell differ from it where it has a zero.
    let piece = ones(!key.bits(split), shared.saturating_sub(split));
    match PIECE_BITS.get(piece) {
        Some(&bits) => HALF - STARTS[piece + 1] + (key.bits(shared + 1) >> (64 - bits)),
        None => 0,
    }
}

/// Returns the offset of a key that first differs from the cell after it in bit `shared`.
#[inline]
fn near_after(key: &Tail<'_>, split: usize, shared: usize) -> u64 {
    // Keys below the cell differ from it where it has a one.
    let piece = ones(key.bits(split), shared.saturating_sub(split));
    match PIECE_BITS.get(piece) {
        Some(&bits) => HALF + STARTS[piece] + (key.bits(shared + 1) >> (64 - bits)),
        None => 2 * HALF - 1,
    }
}

/// Returns the number of ones in the first `len` bits; beyond a word, all bits count as ones.
#[inline]
fn ones(word: u64, len: usize) -> usize {
    if len >= 64 { 64 } else { (word & !(u64::MAX >> len)).count_ones() as usize }
}

/// Returns the offset of a key that shares `shared` bits with the last cell. The block's end acts
/// as the next cell.
#[inline]
fn after_all(key: &Tail<'_>, shared: usize, end: u64) -> u64 {
    let shared_with_end = common(key.view(), end);
    if shared_with_end < shared || shared >= 64 {
        near_before(key, last_split(shared_with_end), shared)
    } else if shared_with_end < 64 {
        near_after(key, shared + 1, shared_with_end)
    } else {
        2 * HALF - 1 // the bits of the end beyond its view are unknown
    }
}

/// Returns the bit after the one in which the last cell and the block's end differ. Beyond the
/// view, the end is unknown.
#[inline]
fn last_split(shared_with_end: usize) -> usize {
    shared_with_end.min(63) + 1
}

/// Returns the common prefix of two views, in bits.
#[inline]
fn common(a: u64, b: u64) -> usize {
    (a ^ b).leading_zeros() as usize
}

/// Inverts [`fraction`]: finds the views of keys with a given fraction.
pub(crate) struct Bounds<'a> {
    /// The smallest and the largest view of each cell.
    pub(crate) cells: &'a [(u64, u64)],
    pub(crate) limits: Limits,
}

impl Bounds<'_> {
    /// Returns bounds on the views of keys with this fraction of `bits` bits; they may be too wide.
    pub(crate) fn of(&self, fraction: u64, bits: usize) -> (u64, u64) {
        let gaps = (self.cells.len() as u64 + 1) << OFFSET_BITS;
        // Keys after the group's prefix have the last fraction, which may be beyond all places.
        let first = (fraction * gaps).div_ceil(1 << bits).min(gaps - 1);
        let after = ((fraction + 1) * gaps).div_ceil(1 << bits);
        let low = if fraction == 0 { 0 } else { self.view(first, false) };
        (low, if after >= gaps { u64::MAX } else { self.view(after - 1, true) })
    }

    /// Returns a lower bound of the views at or after a place; with `greatest`, an upper bound of
    /// those up to it.
    fn view(&self, place: u64, greatest: bool) -> u64 {
        let (gap, offset) = ((place >> OFFSET_BITS) as usize, place & ((1 << OFFSET_BITS) - 1));
        let before = gap.checked_sub(1).map(|before| self.cells[before]);
        let after = self.cells.get(gap).map_or(self.limits.end, |cell| cell.0);
        let split = match before {
            None => self.limits.head_bits,
            Some((low, _)) if gap == self.cells.len() => last_split(common(low, after)),
            Some((low, _)) => common(low, after) + 1,
        };
        match before {
            Some(before) if offset < HALF => view_near_before(before, split, offset, greatest),
            _ => view_near_after(after, split, offset.max(HALF) - HALF, greatest),
        }
    }
}

/// Returns the bound at an offset after a cell with the views `before`.
fn view_near_before(before: (u64, u64), split: usize, offset: u64, greatest: bool) -> u64 {
    let (low, high) = before;
    let piece = STARTS.partition_point(|&start| start < HALF - offset) - 1;
    let within = offset + STARTS[piece + 1] - HALF;
    let bound = nth_one(!low, split, piece).map(|shared| {
        continued(low, shared, 1, within << (64 - PIECE_BITS[piece]), piece, greatest)
    });
    match bound {
        Some(bound) if greatest => bound.max(high),
        Some(bound) if offset > 0 => bound,
        // Adjacent to the cell, or in it.
        _ => {
            if greatest {
                high
            } else {
                low
            }
        }
    }
}

/// Returns the bound at an offset, counted from the middle of the gap, before a cell that begins at
/// view `after`.
fn view_near_after(after: u64, split: usize, offset: u64, greatest: bool) -> u64 {
    let piece = STARTS.partition_point(|&start| start <= offset) - 1;
    let within = offset - STARTS[piece];
    let next_to = offset + 1 == HALF;
    match nth_one(after, split, piece) {
        Some(shared) if !(greatest && next_to) => {
            continued(after, shared, 0, within << (64 - PIECE_BITS[piece]), piece, greatest)
        }
        _ => after,
    }
}

/// Returns the position of the one, from bit `from` on, that has `before` ones before it.
fn nth_one(word: u64, from: usize, before: usize) -> Option<usize> {
    (from..64).filter(|&at| word << at >> 63 == 1).nth(before)
}

/// Concatenates the first `shared` bits of a view, `bit`, the bits of an offset in its piece, and
/// then ones or zeros.
fn continued(view: u64, shared: usize, bit: u64, rest: u64, piece: usize, ones: bool) -> u64 {
    let fill = if ones { u64::MAX >> PIECE_BITS[piece] } else { 0 };
    view & !(u64::MAX >> shared) | bit << (63 - shared) | (rest | fill) >> shared >> 1
}

#[cfg(test)]
mod tests {
    use super::{Limits, fraction};
    use crate::base::filter::Untraced;
    use crate::base::shape::FlushNumber;
    use crate::fingerprint::Fingerprints;
    use crate::fingerprint::cell::{CellPlace, Fall, Tail};
    use crate::grf::base::bounds::BucketViews;
    use crate::grf::base::place::FRACTION_BITS;
    use crate::grf::base::{Role, Spot};
    use crate::grf::options::GrfOptions;
    use crate::grf::part::Part;
    use crate::grf::part::builder::PartBuilder;

    /// Fractions are rounded down, so each is a prefix of every longer one. Packed entries are
    /// truncated, query keys are not.
    #[test]
    fn a_fraction_is_the_prefix_of_one_with_another_bit() {
        for number in 0..20_000 {
            let (random, count) = (mixed(number + 1), 1 + (number % 64) as usize);
            let key = mixed(random).to_be_bytes();
            let tail = Tail::new(&key, 0);
            let (split, shared) = ((random % 20) as usize, (random % 20 + random % 7) as usize);
            let fall = match number % 4 {
                0 => Fall::In,
                1 => Fall::NearBefore { split, shared },
                2 => Fall::NearAfter { split, shared },
                _ => Fall::AfterAll { shared },
            };
            let before = random as usize % count + 1;
            let last = if matches!(fall, Fall::AfterAll { .. }) { count } else { before - 1 };
            let found = CellPlace { before: last, fall };
            let limits = Limits { head_bits: split, end: tail.view() | random };
            let of_bits = |bits| fraction(&found, &tail, count, &limits, bits);
            for bits in 1..FRACTION_BITS {
                assert_eq!(of_bits(bits + 1) >> 1, of_bits(bits), "{found:?}, {bits} bits");
            }
        }
    }

    fn mixed(number: u64) -> u64 {
        let mixed = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb)
    }

    fn part(keys: &[Vec<u8>], bits_per_key: f64, fingerprints: Fingerprints) -> Part {
        let mut builder =
            PartBuilder::new(&GrfOptions { bits_per_key, fingerprints, ..GrfOptions::default() });
        keys.iter().for_each(|key| builder.push(key));
        builder.finish(FlushNumber(1))
    }

    /// Places of ascending keys ascend, and each key's view is within the bounds of its place.
    fn assert_monotone_and_bounded(base: &[Vec<u8>], asked: &[Vec<u8>]) {
        let bits = [5.0, 12.0, 16.0].into_iter();
        for (bits, kind) in bits.flat_map(|bits| Fingerprints::ALL.map(|kind| (bits, kind))) {
            let part = part(base, bits, kind);
            let (mut last_low, mut last_high) = (None, None);
            for key in asked {
                let site = part.base().locate(key, &mut Untraced);
                let spot_as = |role| part.base().place(&site, role, &mut Untraced);
                let (spot, low) = (spot_as(Role::Point), spot_as(Role::Low));
                let place = |spot: &Spot| (spot.bucket_key(), spot.fraction);
                let (low, high) = (place(&low), place(&spot_as(Role::High(&low))));
                assert!(low <= place(&spot) && place(&spot) <= high, "{kind:?} {key:?}");
                assert!(last_low.is_none_or(|last| last <= low), "{key:?}: {last_low:?}, {low:?}");
                assert!(last_high.is_none_or(|last| last <= high), "{key:?}: {last_high:?}");
                (last_low, last_high) = (Some(low), Some(high));
                let mut views = BucketViews::default();
                views.read(part.base(), site.bucket_key());
                for bits in [6, 12, 15, FRACTION_BITS] {
                    let fraction = spot.fraction >> (FRACTION_BITS - bits);
                    let ((low, high), view) = (views.of_fraction(fraction, bits), site.view);
                    assert!(
                        low <= view && view <= high,
                        "{kind:?} {key:?} {fraction} of {bits} bits: {low:x} {view:x} {high:x}",
                    );
                }
            }
        }
    }

    fn numbers(count: u64, number: impl Fn(u64) -> u64) -> Vec<Vec<u8>> {
        let mut keys: Vec<Vec<u8>> =
            (0..count).map(|i| number(mixed(i + 1)).to_be_bytes().to_vec()).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    #[test]
    fn fractions_are_monotone_and_have_bounds() {
        let clustered = |number: u64| mixed(number % 40) ^ number >> (20 + number % 40);
        for few in [1, 2, 63, 64, 65, 3000] {
            assert_monotone_and_bounded(&numbers(few, |n| n), &numbers(20_000, |n| n));
            let (base, asked) = (numbers(few, clustered), numbers(30_000, clustered));
            assert_monotone_and_bounded(&base, &asked);
        }
    }

    /// Both ends of networks, at multiples of 2^`round` addresses.
    fn networks(seed: u64, count: u64, round: u64) -> Vec<u64> {
        let mut begin = 10 << 24 | mixed(seed) >> 44 << round;
        let mut ends = Vec::new();
        for place in 0..count {
            let next = begin + ((1 + mixed(seed << 20 | place) % 30) << round);
            ends.extend([begin, next - 1]);
            begin = next + (u64::from(mixed(place).is_multiple_of(9)) << round);
        }
        ends
    }

    /// Each block drops as many last bits as its networks allow.
    #[test]
    fn ends_of_networks_that_lack_last_bits() {
        let key = |number: u64| number.to_be_bytes().to_vec();
        let all: Vec<u64> = (0..12).flat_map(|seed| networks(seed, 90, seed)).collect();
        let of = |step: usize, from: usize| {
            let some = all.iter().enumerate().filter(|(place, _)| place % 5 < from);
            let mut some: Vec<Vec<u8>> = some.step_by(step).map(|(_, end)| key(*end)).collect();
            some.sort_unstable();
            some.dedup();
            some
        };
        let around = |end: u64| {
            (0..14).flat_map(move |bit| [end ^ 1 << bit, end + (1 << bit) - 1]).chain([end])
        };
        let mut asked: Vec<Vec<u8>> = all.iter().flat_map(|&end| around(end)).map(key).collect();
        asked.sort_unstable();
        asked.dedup();
        for base in [of(1, 5), of(1, 4)] {
            let part = part(&base, 5.0, Fingerprints::Coded);
            let groups = 0..part.base().directory.len();
            let is_aligned = |group| part.base().group(group).is_aligned();
            assert!(!groups.is_empty() && groups.clone().all(is_aligned));
            assert_monotone_and_bounded(&base, &asked);
        }
    }

    #[test]
    fn keys_around_every_cell_in_every_bit() {
        let base = numbers(500, |number| number >> (number % 30));
        let around = |key: &Vec<u8>| {
            let number = u64::from_be_bytes(key[..].try_into().expect("eight bytes"));
            (0..64).flat_map(move |bit| [number ^ 1 << bit, number | ((1 << bit) - 1)])
        };
        let mut asked: Vec<u64> = base.iter().flat_map(around).collect();
        asked.sort_unstable();
        let asked: Vec<Vec<u8>> = asked.iter().map(|key| key.to_be_bytes().to_vec()).collect();
        assert_monotone_and_bounded(&base, &asked);
    }

    /// A block's end is unknown beyond its view. So keys that share the whole view with it must get
    /// the same place, whatever they share with the last cell.
    #[test]
    fn keys_that_agree_with_the_end_of_a_block_beyond_its_view() {
        let deep = |stem: u64, rest: u64| {
            let ones = [0xff; 10];
            [&stem.to_be_bytes()[6..], &ones[..(rest % 11) as usize], &mixed(rest).to_be_bytes()]
                .concat()
        };
        let keys = |seed: u64, count: u64| {
            let mut keys: Vec<_> = (0..count).map(|i| deep(i % 3, seed + i)).collect();
            keys.sort_unstable();
            keys.dedup();
            keys
        };
        assert_monotone_and_bounded(&keys(1, 1000), &keys(5000, 20_000));
        let tails = |seed| -> Vec<_> {
            let stem = vec![0xff; 12];
            let mut keys: Vec<Vec<u8>> =
                keys(seed, 3000).iter().map(|key| [&stem, &key[..]].concat()).collect();
            keys.push(vec![0; 3]);
            keys.sort_unstable();
            keys
        };
        assert_monotone_and_bounded(&tails(1), &tails(9000));
    }
}
