//! Both ends of networks of IPv4 addresses: the stand-in for ranges by country.
//! ```text
//! chain      up to 160 networks, from a multiple of 2^16 on; sizes as in networks.rs, but not
//!            below the chain's own least: one in two /24, the others /25 to /32
//! network    first, last; the next one begins just behind the last, but for one in eighty
//! ```
//! The statistic that matters: half of all gaps are one, and most others are one less than a power
//! of two. In the real set, 52 % of gaps are one. Half of the chains have no network smaller than
//! /24.

use super::networks::host_bits;
use crate::keys::key_list::KeyList;
use crate::keys::rng::Rng;

const CHAIN_MOST: u64 = 160;
/// Chains begin at a multiple of 2^16 below 224.0.0.0.
const STARTS: u64 = 224 << 8;
const START_BITS: u32 = 16;
/// Host bits of the smallest network in every second chain.
const LEAST_BITS: u64 = 8;
/// One network in `HOLE_EVERY` is followed by a hole of up to `HOLE_MOST` addresses.
const HOLE_EVERY: u64 = 80;
const HOLE_MOST: u64 = 2048;

/// Adds both ends of each network of a chain.
pub(super) fn draw(keys: &mut KeyList, rng: &mut Rng) {
    let mut first = rng.below(STARTS) << START_BITS;
    let least = if rng.below(2) == 0 { LEAST_BITS } else { rng.below(LEAST_BITS) } as u32;
    for _ in 0..1 + rng.below(CHAIN_MOST) {
        let last = first + (1 << host_bits(rng).max(least)) - 1;
        keys.push(&first.to_be_bytes());
        keys.push(&last.to_be_bytes());
        let hole = if rng.below(HOLE_EVERY) == 0 { 1 + rng.below(HOLE_MOST) } else { 0 };
        first = (last + 1 + hole).next_multiple_of(1 << least);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::key_list::SortedKeys;

    #[test]
    fn half_of_all_gaps_are_one() {
        let (mut keys, mut rng) = (KeyList::new(), Rng::new(1));
        (0..200).for_each(|_| draw(&mut keys, &mut rng));
        let keys = SortedKeys::from_list(&keys);
        let number = |key: &[u8]| u64::from_be_bytes(key.try_into().expect("eight bytes"));
        let numbers: Vec<u64> = keys.iter().map(number).collect();
        let ones = numbers.windows(2).filter(|pair| pair[1] - pair[0] == 1).count();
        let share = ones as f64 / numbers.len() as f64;
        assert!((0.45..0.58).contains(&share), "{share}");
        assert!(numbers.iter().all(|one| *one < 1 << 32));
    }
}
