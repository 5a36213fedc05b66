//! A small random generator of this crate: a seed gives the same draws on every machine, for ever.
//! ```text
//! seed --splitmix64--> four words --xoshiro256++--> draws
//! ```
//! Invariant: the sequence of a seed never changes, so measurements that name a seed are
//! repeatable.

/// Draws pseudo-random numbers (xoshiro256++).
#[derive(Clone, Debug)]
pub struct Rng {
    words: [u64; 4],
}

/// One step of splitmix64: scrambles a number. Distinct numbers stay distinct.
#[inline]
pub(crate) fn scramble(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Returns the key of a place in a list of keys. Distinct places have distinct keys in random
/// order.
pub(crate) fn scattered_key(seed: u64, place: u64) -> [u8; 8] {
    scramble(place.wrapping_add(scramble(seed))).to_be_bytes()
}

impl Rng {
    /// Returns the generator of a seed.
    pub fn new(seed: u64) -> Self {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let word = |place: u64| scramble(seed.wrapping_add(place.wrapping_mul(STEP)));
        Rng { words: [word(0), word(1), word(2), word(3)] }
    }

    /// Draws one of several values in proportion to their weights. None: all weights are 0, or
    /// rounding left nothing.
    pub(crate) fn weighted<T: Copy>(&mut self, weights: &[(T, f64)]) -> Option<T> {
        let total: f64 = weights.iter().map(|(_, weight)| weight).sum();
        let mut left = self.unit() * total;
        let drawn = weights.iter().find(|(_, weight)| {
            left -= weight;
            left < 0.0
        });
        drawn.map(|(one, _)| *one)
    }

    /// Returns 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.words;
        let drawn = a.wrapping_add(*d).rotate_left(23).wrapping_add(*a);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        drawn
    }

    /// Returns a number below `bound`, by multiplication. Its bias is below 2^-32 for bounds below
    /// 2^32.
    /// Requires: `bound` > 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "no number is below 0");
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Returns a place in a list of `len` things. Requires: `len` > 0.
    pub fn place(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// Returns a number in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Draws from the standard normal distribution (Box and Muller).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// Shuffles a list.
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for end in (1..list.len()).rev() {
            list.swap(end, self.place(end + 1));
        }
    }
}

/// Returns the places of `count` things in random order.
pub(crate) fn random_order(count: usize, seed: u64) -> Vec<u32> {
    let mut order: Vec<u32> = (0..count as u32).collect();
    Rng::new(scramble(seed)).shuffle(&mut order);
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_has_one_history() {
        let draws = |seed| {
            let mut rng = Rng::new(seed);
            (0..100).map(|_| rng.next_u64()).collect::<Vec<_>>()
        };
        assert_eq!(draws(1), draws(1));
        assert_ne!(draws(1), draws(2));
    }

    #[test]
    fn the_first_draws_never_change() {
        // Xoshiro256++ from the words 1, 2, 3, 4: the first value is rotl(1 + 4, 23) + 1.
        let mut rng = Rng { words: [1, 2, 3, 4] };
        assert_eq!(rng.next_u64(), (5u64 << 23) + 1);
        // Splitmix64 from 0: the published first value.
        assert_eq!(scramble(0), 0xe220_a839_7b1d_cdaf);
    }

    #[test]
    fn distinct_places_have_distinct_keys() {
        let keys: std::collections::HashSet<_> =
            (0..10_000).map(|place| scattered_key(1, place)).collect();
        assert_eq!(keys.len(), 10_000);
        assert!(!keys.contains(&scattered_key(2, 0)), "another seed, other keys");
    }

    #[test]
    fn draws_look_as_they_should() {
        let mut rng = Rng::new(42);
        let count = 20_000;
        let mean = (0..count).map(|_| rng.unit()).sum::<f64>() / f64::from(count);
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
        let square = (0..count).map(|_| rng.normal().powi(2)).sum::<f64>() / f64::from(count);
        assert!((square - 1.0).abs() < 0.06, "{square}");
        assert!((0..count).all(|_| rng.below(3) < 3));
        let mut list: Vec<u32> = (0..1000).collect();
        rng.shuffle(&mut list);
        assert!(!list.is_sorted());
        list.sort_unstable();
        assert!(list.into_iter().eq(0..1000));
    }
}
