//! Chooses fingerprint lengths: longer in older levels, as long as codes and fingerprints fit into
//! buckets.
//! ```text
//! B bits     | code of the combination | fingerprint | fingerprint | fingerprint | fingerprint |
//! frequent   | 0000                    | nine bits of each: all in the last level                |
//! rare       | 1101 0110 11            | 7           | 7           | 8           | 9           |
//! ```
//! Malleable fingerprinting (Algorithm 1) climbs: it lengthens the last level's fingerprints first,
//! which most entries have. This makes fingerprints long on average, which does not minimize false
//! positives. So a second climb adds one bit at a time, where it saves most false positives for its
//! room. The better of both results is taken.
//!
//! Fluid alignment coding (Equation 15) determines when to stop. Each frequent combination has a
//! code of exactly the bits that its fingerprints leave, if such codes are uniquely decodable
//! (Kraft and McMillan).
//!
//! Invariant: lengths never decrease from a level to the next older one.

use std::collections::BTreeMap;

use super::combinations::{BUCKET_SLOTS, Combination};

/// The maximum code length of a combination; longer room stays unused.
pub(super) const CODE_BITS_MAX: u32 = 30;

/// The room for codes, in units of the longest code.
pub(super) const CODE_ROOM: u64 = 1 << CODE_BITS_MAX;

/// The limit of work for the climb bit by bit; beyond it, it is skipped.
const GAIN_WORK_MAX: usize = 50_000_000;

/// Algorithm 1: returns the fingerprint lengths of levels, newest first, from `least` to `most`
/// bits. `fits`: whether lengths fit into buckets; if even the minimum lengths do not, they are
/// returned anyway.
pub(super) fn climb(
    levels: usize,
    least: u32,
    most: u32,
    fits: &mut dyn FnMut(&[u32]) -> bool,
) -> Vec<u32> {
    let mut lengths = vec![least; levels];
    let mut most = most.max(least);
    for level in (0..levels).rev() {
        while lengths[level] < most {
            lengths[level] += 1;
            if !fits(&lengths) {
                lengths[level] -= 1;
                break;
            }
        }
        most = lengths[level];
    }
    lengths
}

/// Returns the lengths with fewer expected false positives from two searches: Algorithm 1, and the
/// climb bit by bit. `shares`: those of the levels. None: even fingerprints of `least` bits do not
/// fit.
pub(super) fn fittest(
    frequent: &Frequent,
    shares: &[f64],
    least: u32,
    most: u32,
    room_max: u64,
) -> Option<Vec<u32>> {
    let fits = |lengths: &[u32]| frequent.room(lengths).is_some_and(|room| room <= room_max);
    let by_level = climb(shares.len(), least, most, &mut |lengths| fits(lengths));
    let steps = shares.len() * shares.len() * most.saturating_sub(least) as usize;
    if !fits(&by_level) || steps.saturating_mul(frequent.by_levels.len()) > GAIN_WORK_MAX {
        return fits(&by_level).then_some(by_level);
    }
    let by_gain = climb_by_gain(frequent, shares, least, most, room_max);
    let better = expected_rate(shares, &by_gain) < expected_rate(shares, &by_level);
    Some(if better { by_gain } else { by_level })
}

/// The probability that an entry's fingerprint equals that of another key.
fn expected_rate(shares: &[f64], lengths: &[u32]) -> f64 {
    shares.iter().zip(lengths).map(|(share, &bits)| share * (-f64::from(bits)).exp2()).sum()
}

/// Requires: fingerprints of `least` bits fit.
fn climb_by_gain(
    frequent: &Frequent,
    shares: &[f64],
    least: u32,
    most: u32,
    room_max: u64,
) -> Vec<u32> {
    let mut lengths = vec![least; shares.len()];
    let mut room = frequent.room(&lengths).unwrap_or(room_max);
    loop {
        let gain = |level: usize| {
            let end = lengths.get(level + 1).copied().unwrap_or(most);
            if lengths[level] >= end {
                return None;
            }
            let mut longer = lengths.clone();
            longer[level] += 1;
            let needed = frequent.room(&longer).filter(|&needed| needed <= room_max)?;
            let saved = expected_rate(shares, &lengths) - expected_rate(shares, &longer);
            Some((saved / needed.saturating_sub(room).max(1) as f64, level, needed))
        };
        let best = (0..shares.len()).filter_map(gain).max_by(|a, b| a.0.total_cmp(&b.0));
        let Some((_, level, needed)) = best else { return lengths };
        lengths[level] += 1;
        room = needed;
    }
}

/// The frequent combinations, grouped by the levels of their slots, which determine the room that
/// they need.
pub(super) struct Frequent {
    bucket_bits: u32,
    by_levels: BTreeMap<[u8; BUCKET_SLOTS], u64>,
}

impl Frequent {
    /// Counts combinations. `level_of`: the level of each slot.
    pub(super) fn new<'a>(
        bucket_bits: u32,
        combinations: impl Iterator<Item = &'a Combination>,
        level_of: &[u8],
    ) -> Self {
        let mut by_levels = BTreeMap::new();
        for combination in combinations {
            let levels = combination.map(|slot| level_of[usize::from(slot)]);
            *by_levels.entry(levels).or_default() += 1;
        }
        Frequent { bucket_bits, by_levels }
    }

    /// Returns the room that their codes need with fingerprints of these lengths. None: the
    /// fingerprints alone are too long.
    pub(super) fn room(&self, lengths: &[u32]) -> Option<u64> {
        let mut room = 0u64;
        for (levels, count) in &self.by_levels {
            let bits =
                code_bits(self.bucket_bits, levels.map(|level| lengths[usize::from(level)]))?;
            room = room.saturating_add(count.saturating_mul(CODE_ROOM >> bits));
        }
        Some(room)
    }
}

/// Returns the code length of a combination with these fingerprint lengths: the rest of the bucket.
/// None: nothing is left.
pub(super) fn code_bits(bucket_bits: u32, lengths: [u32; BUCKET_SLOTS]) -> Option<u32> {
    let left = bucket_bits.checked_sub(lengths.iter().sum())?;
    (left > 0).then_some(left.min(CODE_BITS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_level_climbs_first() {
        let lengths = climb(3, 5, 9, &mut |lengths| lengths.iter().sum::<u32>() <= 22);
        assert_eq!(lengths, [5, 8, 9]);
        assert_eq!(climb(2, 5, 9, &mut |_| true), [9, 9]);
        assert_eq!(climb(2, 5, 9, &mut |_| false), [5, 5]);
        assert_eq!(climb(1, 5, 4, &mut |_| true), [5]);
    }

    #[test]
    fn the_better_climb_is_taken() {
        // Four runs in each of five levels, and one in the last; 16 bits per entry. Algorithm 1
        // leaves newer levels short.
        let shares = super::super::model::level_shares(5.0, 6);
        let slots = super::super::model::slot_shares(5.0, &[4, 4, 4, 4, 4, 1]);
        let level_of: Vec<u8> = (0..21).map(|slot| slot / 4).collect();
        let named = super::super::combinations::likeliest(&slots, 1341);
        let frequent = Frequent::new(64, named.iter().map(|pair| &pair.0), &level_of);
        let room_max = CODE_ROOM - 1;
        let fits = |lengths: &[u32]| frequent.room(lengths).is_some_and(|room| room <= room_max);
        let by_level = climb(6, 5, 15, &mut |lengths| fits(lengths));
        let fittest = fittest(&frequent, &shares, 5, 15, room_max).expect("it fits");
        assert!(fits(&by_level) && fits(&fittest) && fittest.is_sorted());
        let rates = [&fittest, &by_level].map(|lengths| expected_rate(&shares, lengths));
        assert!(rates[0] < 0.8 * rates[1], "{fittest:?} {by_level:?}: {rates:?}");
        assert_eq!(super::fittest(&frequent, &shares, 5, 15, 0), None);
    }

    #[test]
    fn frequent_combinations_need_what_their_codes_take() {
        // Two levels: slots 0 and 1, and slot 2. Buckets of 16 bits.
        let combinations = [[2, 2, 2, 2], [0, 2, 2, 2], [1, 2, 2, 2]];
        let frequent = Frequent::new(16, combinations.iter(), &[0, 0, 1]);
        // One code of 4 bits, and two of 5.
        assert_eq!(frequent.room(&[2, 3]), Some((CODE_ROOM >> 4) + 2 * (CODE_ROOM >> 5)));
        assert_eq!(frequent.room(&[3, 4]), None);
        assert_eq!(code_bits(40, [9; 4]), Some(4));
        assert_eq!(code_bits(120, [5; 4]), Some(CODE_BITS_MAX));
        assert_eq!(code_bits(36, [9; 4]), None);
    }
}
