//! Upper halves of first addresses of IPv6 networks: the stand-in for networks by country.
//! ```text
//! run        of an allocation, /32 within 2000::/5: networks of one size, mostly /44 to /48, each
//!            behind the one before; up to 4,096 of them, the logarithm of which is anywhere
//! ```
//! The statistic that matters: keys are multiples of powers of two, with runs of equal gaps. In the
//! real set, 12 % are multiples of 2^32 and 77 % are multiples of 2^16.

use crate::keys::key_list::KeyList;
use crate::keys::rng::Rng;

/// The first byte of an address is in the range from 0x20 up to, but not including, 0x28.
const FIRST_BYTES: [u64; 2] = [0x20, 0x28];
/// Bits of an allocation's prefix.
const ALLOCATION_BITS: u32 = 32;
/// A run has at most 2 to this power of networks.
const COUNT_BITS_MOST: u64 = 12;
/// Prefix lengths of networks, each for one run in sixteen.
const SIZES: [u32; 16] = [32, 32, 36, 40, 44, 44, 44, 45, 45, 45, 45, 48, 48, 48, 48, 64];

/// Adds the networks of a run.
pub(super) fn draw(keys: &mut KeyList, rng: &mut Rng) {
    let [first, end] = FIRST_BYTES;
    let first_byte = first + rng.below(end - first);
    let allocation = first_byte << 56 | rng.below(1 << 24) << ALLOCATION_BITS;
    let bits = SIZES[rng.place(SIZES.len())];
    let count_bits = rng.below(COUNT_BITS_MOST + 1).min(u64::from(bits - ALLOCATION_BITS));
    for network in 0..1 + rng.below(1 << count_bits) {
        keys.push(&(allocation | network << (u64::BITS - bits)).to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::key_list::SortedKeys;

    #[test]
    fn networks_are_multiples_of_powers_of_two_with_equal_gaps() {
        let (mut keys, mut rng) = (KeyList::new(), Rng::new(1));
        (0..2000).for_each(|_| draw(&mut keys, &mut rng));
        let keys = SortedKeys::from_list(&keys);
        let number = |key: &[u8]| u64::from_be_bytes(key.try_into().expect("eight bytes"));
        let numbers: Vec<u64> = keys.iter().map(number).collect();
        let multiples = numbers.iter().filter(|one| one.trailing_zeros() >= 16).count();
        let share = multiples as f64 / numbers.len() as f64;
        assert!((0.70..0.95).contains(&share), "{share}");
        let gaps: Vec<u64> = numbers.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let equal = gaps.windows(2).filter(|pair| pair[0] == pair[1]).count();
        assert!(equal > gaps.len() * 4 / 5, "{equal} of {}", gaps.len());
    }
}
