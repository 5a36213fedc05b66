//! First addresses of networks, as 32-bit numbers: the stand-in for ranges of IPv4 addresses by
//! city.
//! ```text
//! allocation   30,000, /11 to /20, anywhere below 224.0.0.0; the n-th has a share of n^-0.6
//! network      a stretch of an allocation: one in three /24, else /18 to /32; aligned to its size
//! ```
//! The statistic that matters: keys are multiples of powers of two, so their last bits are zeros,
//! and they are clustered in allocations.

use super::traits::trait_of;
use crate::keys::rng::Rng;
use crate::keys::skew::Zipf;

/// The law of first addresses.
#[derive(Clone, Debug)]
pub(crate) struct Networks {
    ranks: Zipf,
}

const ALLOCATIONS: u64 = 30_000;
const EXPONENT: f64 = 0.6;
const ALLOCATION_BITS: [u64; 2] = [11, 20];
/// Prefix lengths of networks, and how many in a hundred have them.
const SIZES: [(u32, u64); 15] = [
    (18, 1),
    (19, 2),
    (20, 4),
    (21, 6),
    (22, 11),
    (23, 13),
    (24, 33),
    (25, 11),
    (26, 4),
    (27, 4),
    (28, 4),
    (29, 3),
    (30, 2),
    (31, 1),
    (32, 1),
];

impl Networks {
    pub(super) fn new() -> Self {
        Networks { ranks: Zipf::new(EXPONENT, ALLOCATIONS) }
    }

    pub(super) fn draw(&self, rng: &mut Rng) -> u64 {
        let drawn = trait_of(21, self.ranks.draw(rng));
        let [shortest, longest] = ALLOCATION_BITS;
        let prefix_bits = (shortest + (drawn >> 32) % (longest - shortest + 1)) as u32;
        // Scales to below 224.0.0.0, which is seven eighths of all addresses.
        let below = (drawn & 0xffff_ffff) * 7 / 8;
        let base = below >> (32 - prefix_bits) << (32 - prefix_bits);
        let host_bits = host_bits(rng);
        let within = rng.below(1 << (32 - prefix_bits)) >> host_bits << host_bits;
        base | within
    }
}

/// Draws the number of host bits of a network.
pub(super) fn host_bits(rng: &mut Rng) -> u32 {
    32 - size(rng)
}

/// Draws the prefix length of a network.
fn size(rng: &mut Rng) -> u32 {
    let mut left = rng.below(SIZES.iter().map(|(_, share)| share).sum());
    for (bits, share) in SIZES {
        if left < share {
            return bits;
        }
        left -= share;
    }
    unreachable!("it is less than all shares together")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_end_in_zeros_and_crowd() {
        let (networks, mut rng) = (Networks::new(), Rng::new(1));
        let mut drawn: Vec<u64> = (0..100_000).map(|_| networks.draw(&mut rng)).collect();
        let zeros = |bits: u32| {
            drawn.iter().filter(|one| one.trailing_zeros() >= bits).count() as f64 / 100_000.0
        };
        // In the real set, a share of 0.68 are multiples of 256.
        assert!((0.68..0.78).contains(&zeros(8)), "{}", zeros(8));
        assert!((0.93..1.0).contains(&zeros(3)), "{}", zeros(3));
        assert!(drawn.iter().all(|one| *one < 224 << 24));
        drawn.sort_unstable();
        drawn.dedup();
        let near = drawn.windows(2).filter(|pair| pair[1] - pair[0] <= 256).count();
        // If they were spread evenly, one in a hundred and fifty would be as near.
        assert!(near > drawn.len() / 20, "{near} of {}", drawn.len());
    }
}
