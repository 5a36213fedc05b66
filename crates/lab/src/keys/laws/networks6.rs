//! Upper halves of first addresses of IPv6 networks: what stands in for networks by country.
//! ```text
//! allocation   40,000, /32 within 2000::/5; the n-th has a share of n^-0.7
//! network      one of the first of its size in an allocation: the n-th has a share of 1 / n;
//!              /44 to /48 mostly, few of /64 and of /36
//! ```
//! The statistic that matters: keys are multiples of powers of two, and networks of an allocation
//! are numbered from its begin on. Of the real ones 12 % are multiples of 2^32, 77 % of 2^16.

use super::traits::trait_of;
use crate::keys::rng::Rng;
use crate::keys::skew::Zipf;

/// Draws upper halves.
#[derive(Clone, Debug)]
pub(crate) struct Networks6 {
    allocations: Zipf,
    networks: Zipf,
}

const ALLOCATIONS: u64 = 40_000;
const EXPONENT: f64 = 0.7;
/// An allocation has so many networks at most: all of /48.
const NETWORKS: u64 = 1 << 16;
/// The first byte of all addresses is from 2^5 on.
const FIRST: u64 = 0x20;
/// Networks of each size: bits of the prefix, and how many in a hundred.
const SIZES: [(u32, u64); 7] = [(32, 12), (36, 6), (40, 6), (44, 16), (45, 20), (48, 25), (64, 15)];

impl Networks6 {
    pub(super) fn new() -> Self {
        let allocations = Zipf::new(EXPONENT, ALLOCATIONS);
        Networks6 { allocations, networks: Zipf::new(1.0, NETWORKS) }
    }

    pub(super) fn draw(&self, rng: &mut Rng) -> u64 {
        let drawn = trait_of(22, self.allocations.draw(rng));
        let allocation = (FIRST + (drawn >> 32) % 8) << 56 | (drawn & 0x00ff_ffff) << 32;
        let bits = size(rng);
        let within = self.networks.draw(rng) - 1;
        // Larger networks than /48 are fewer: they begin again where there are no more.
        let network = within << (64 - bits) & u64::from(u32::MAX);
        allocation | network
    }
}

/// The bits of a network's prefix.
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
    fn networks_are_multiples_of_powers_of_two() {
        let (networks, mut rng) = (Networks6::new(), Rng::new(1));
        let mut drawn: Vec<u64> = (0..300_000).map(|_| networks.draw(&mut rng)).collect();
        drawn.sort_unstable();
        drawn.dedup();
        let share = |bits: u32| {
            let multiples = drawn.iter().filter(|one| one.trailing_zeros() >= bits).count();
            multiples as f64 / drawn.len() as f64
        };
        assert!((0.08..0.30).contains(&share(32)), "{}", share(32));
        assert!((0.70..0.95).contains(&share(16)), "{}", share(16));
        assert!(drawn.iter().all(|one| (0x20..0x28).contains(&(one >> 56))));
    }
}
