//! Computes how well codes and fingerprints fill buckets: the paper's Figure 9.
//! ```text
//! uniform     fingerprints of one length; Huffman codes by frequency
//! malleable   lengths by level; Huffman codes by frequency                   (Equation 14)
//! fluid       lengths by level; codes as long as fingerprints leave room     (Equation 15)
//! ```
//! Each gives a mean fingerprint length, and the share of buckets that overflow. Invariant: the
//! length never exceeds what the entropy of combinations leaves.

use trommel_filters::bits::huffman::code_lengths;

use super::bucket::{BUCKET_SLOTS, FINGERPRINT_BITS_MIN};
use super::combinations::{Combination, combinations, likeliest};
use super::lengths::{CODE_ROOM, Frequent, climb};
use super::model::LevelModel;

/// A way to align codes and fingerprints, and its result.
#[derive(Clone, Debug, PartialEq)]
pub struct Alignment {
    /// Fingerprint bits of each level, newest level first.
    pub fingerprint_bits: Vec<u32>,
    /// Their mean over all entries.
    pub mean_fingerprint_bits: f64,
    /// The share of buckets that overflow.
    pub overflow_share: f64,
}

/// All combinations of a tree, most frequent first, with their Huffman codes.
struct Coded {
    level_of: Vec<u8>,
    combinations: Vec<(Combination, f64)>,
    code_bits: Vec<u32>,
    bucket_bits: u32,
}

impl Coded {
    fn new(model: &LevelModel, bucket_bits: u32) -> Coded {
        let of_level = |(level, runs): (u8, u32)| std::iter::repeat_n(level, runs as usize);
        let shares = model.slot_shares();
        let combinations = likeliest(&shares, combinations(shares.len()));
        let weights: Vec<f64> = combinations.iter().map(|pair| pair.1).collect();
        Coded {
            level_of: (0u8..=u8::MAX).zip(model.runs_of_levels()).flat_map(of_level).collect(),
            combinations,
            code_bits: code_lengths(&weights),
            bucket_bits,
        }
    }

    /// Whether code and fingerprints of the nth combination fit into a bucket.
    fn fits(&self, nth: usize, lengths: &[u32]) -> bool {
        let length = |slot: u8| lengths[usize::from(self.level_of[usize::from(slot)])];
        let fingerprints: u32 = self.combinations[nth].0.map(length).iter().sum();
        fingerprints + self.code_bits[nth] <= self.bucket_bits
    }

    /// The share of buckets whose combinations do not satisfy `fits`.
    fn overflow(&self, fits: impl Fn(usize) -> bool) -> f64 {
        let overflowing = (0..self.combinations.len()).filter(|&nth| !fits(nth));
        overflowing.map(|nth| self.combinations[nth].1).sum()
    }

    /// The number of most frequent combinations that make up this share of buckets.
    fn frequent(&self, share: f64) -> usize {
        let mut sum = 0.0;
        let before = self.combinations.iter().take_while(|pair| {
            let below = sum < share;
            sum += pair.1;
            below
        });
        before.count()
    }
}

impl Alignment {
    fn new(model: &LevelModel, fingerprint_bits: Vec<u32>, overflow_share: f64) -> Alignment {
        let shares = model.level_shares();
        let bits =
            shares.iter().zip(&fingerprint_bits).map(|(share, &bits)| share * f64::from(bits));
        Alignment { mean_fingerprint_bits: bits.sum(), fingerprint_bits, overflow_share }
    }

    /// Fingerprints of `fingerprint_bits` in all levels. Requires: a tree of at most 40 runs.
    pub fn uniform(model: &LevelModel, bucket_bits: u32, fingerprint_bits: u32) -> Alignment {
        let coded = Coded::new(model, bucket_bits);
        let lengths = vec![fingerprint_bits; model.levels as usize];
        let overflow = coded.overflow(|nth| coded.fits(nth, &lengths));
        Alignment::new(model, lengths, overflow)
    }

    /// Malleable fingerprints: the combinations of a share `fitting` of all buckets must fit. None:
    /// even the shortest fingerprints do not. Requires: a tree of at most 40 runs.
    pub fn malleable(model: &LevelModel, bucket_bits: u32, fitting: f64) -> Option<Alignment> {
        let coded = Coded::new(model, bucket_bits);
        let frequent = coded.frequent(fitting);
        let mut fits = |lengths: &[u32]| (0..frequent).all(|nth| coded.fits(nth, lengths));
        let lengths = climbed(model, bucket_bits, &mut fits)?;
        let overflow = coded.overflow(|nth| coded.fits(nth, &lengths));
        Some(Alignment::new(model, lengths, overflow))
    }

    /// Malleable fingerprints with fluid alignment coding. None: even the shortest fingerprints do
    /// not fit. Requires: a tree of at most 40 runs.
    pub fn fluid(model: &LevelModel, bucket_bits: u32, fitting: f64) -> Option<Alignment> {
        let coded = Coded::new(model, bucket_bits);
        let frequent = coded.frequent(fitting);
        let list = coded.combinations[..frequent].iter().map(|pair| &pair.0);
        let by_levels = Frequent::new(bucket_bits, list, &coded.level_of);
        let rest = (coded.combinations.len() - frequent) as u64;
        let rest_room = (u128::from(rest * CODE_ROOM) >> bucket_bits) as u64 + 1;
        let mut fits = |lengths: &[u32]| {
            by_levels.room(lengths).is_some_and(|room| room + rest_room <= CODE_ROOM)
        };
        let lengths = climbed(model, bucket_bits, &mut fits)?;
        Some(Alignment::new(model, lengths, coded.overflow(|nth| nth < frequent)))
    }

    /// Returns the most fingerprint bits that the entropy of combinations leaves.
    pub fn bound(model: &LevelModel, bucket_bits: u32) -> f64 {
        f64::from(bucket_bits) / BUCKET_SLOTS as f64 - model.combination_entropy(BUCKET_SLOTS)
    }
}

fn climbed(
    model: &LevelModel,
    bucket_bits: u32,
    fits: &mut dyn FnMut(&[u32]) -> bool,
) -> Option<Vec<u32>> {
    let most = bucket_bits.saturating_sub(1) / BUCKET_SLOTS as u32;
    let lengths = climb(model.levels as usize, FINGERPRINT_BITS_MIN, most, fits);
    fits(&lengths).then_some(lengths)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODEL: LevelModel = LevelModel { size_ratio: 5, levels: 6, runs: 4, last_runs: 1 };

    /// Figure 9: with both, fingerprints stay long and few buckets overflow, at a price of about
    /// half a bit.
    #[test]
    fn figure_9_long_fingerprints_and_few_overflows() {
        let fluid = Alignment::fluid(&MODEL, 40, 0.9999).expect("it fits");
        assert!(fluid.overflow_share < 1.001e-4, "{fluid:?}");
        // Without fluid alignment, the rarest combinations that must fit have codes of 22 bits.
        assert_eq!(Alignment::malleable(&MODEL, 40, 0.9999), None);
        let malleable = Alignment::malleable(&MODEL, 40, 0.99).expect("it fits");
        assert_eq!(malleable.fingerprint_bits, [5, 5, 6, 6, 7, 7]);
        assert_eq!(fluid.fingerprint_bits, [5, 5, 6, 7, 7, 9]);
        let bound = Alignment::bound(&MODEL, 40);
        assert!(
            fluid.mean_fingerprint_bits > malleable.mean_fingerprint_bits,
            "{fluid:?} {malleable:?}"
        );
        assert!((bound - 0.7..bound).contains(&fluid.mean_fingerprint_bits), "{bound}, {fluid:?}");
        let as_long = Alignment::uniform(&MODEL, 40, fluid.mean_fingerprint_bits.floor() as u32);
        assert!(as_long.overflow_share > 10.0 * fluid.overflow_share, "{as_long:?}");
        assert!(fluid.fingerprint_bits.is_sorted() && malleable.fingerprint_bits.is_sorted());
    }

    #[test]
    fn longer_fingerprints_overflow_more() {
        let shares = (5..11).map(|bits| Alignment::uniform(&MODEL, 40, bits).overflow_share);
        let shares: Vec<f64> = shares.collect();
        assert!(shares.is_sorted(), "{shares:?}");
        assert!((1.0 - shares[5]).abs() < 1e-9, "{shares:?}");
        assert_eq!(Alignment::fluid(&MODEL, 19, 0.9999), None);
    }
}
