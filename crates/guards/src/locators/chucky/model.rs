//! The theory of level ids: their probabilities, their minimum lengths, and the resulting false
//! positive rates.
//! ```text
//! level        1          2             L
//! runs         K          K             Z
//! share        (T-1)/T^L  (T-1)/T^(L-1) (T-1)/T       of the entries, all runs full
//! ```
//! Pure functions; equation numbers are those of "Chucky" (SIGMOD 2021). Bits are per level id.
//!
//! Invariant: shares add up to one.

use trommel_filters::bits::huffman::code_lengths;

use super::combinations::multisets;

/// A tree whose levels are all full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelModel {
    /// T: each level holds this many times more than the previous one.
    pub size_ratio: u32,
    /// L: the number of levels.
    pub levels: u32,
    /// K: runs per level except the last.
    pub runs: u32,
    /// Z: runs in the last level.
    pub last_runs: u32,
}

/// The shares of levels, newest first: a geometric series with sum one (Equation 7).
pub(super) fn level_shares(size_ratio: f64, levels: usize) -> Vec<f64> {
    let weights = (0..levels).rev().map(|above| size_ratio.powi(-(above as i32)));
    let weights: Vec<f64> = weights.collect();
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / sum).collect()
}

/// The shares of runs: a level's share, divided evenly among its runs (Equation 8).
pub(super) fn slot_shares(size_ratio: f64, runs_of_levels: &[u32]) -> Vec<f64> {
    let shares = level_shares(size_ratio, runs_of_levels.len());
    let of_level = |(share, &runs): (f64, &u32)| {
        std::iter::repeat_n(share / f64::from(runs.max(1)), runs as usize)
    };
    shares.into_iter().zip(runs_of_levels).flat_map(of_level).collect()
}

/// Shannon's entropy of shares, in bits.
fn entropy_of(shares: &[f64]) -> f64 {
    shares.iter().filter(|&&share| share > 0.0).map(|share| -share * share.log2()).sum()
}

fn factorial(number: usize) -> f64 {
    (1..=number).map(|factor| factor as f64).product()
}

/// The probability that a bucket has this combination: multinomial (Equation 12). `combination`:
/// its slots in ascending order.
pub(super) fn combination_share(shares: &[f64], combination: &[u8]) -> f64 {
    let mut share = factorial(combination.len());
    for same in combination.chunk_by(|a, b| a == b) {
        share *= shares[usize::from(same[0])].powi(same.len() as i32) / factorial(same.len());
    }
    share
}

/// The mean length of Huffman codes.
fn mean_length(shares: &[f64]) -> f64 {
    let lengths = code_lengths(shares);
    shares.iter().zip(lengths).map(|(share, length)| share * f64::from(length)).sum()
}

impl LevelModel {
    /// The number of runs in each level, newest level first.
    pub fn runs_of_levels(&self) -> Vec<u32> {
        let levels = self.levels.max(1) as usize;
        let mut runs = vec![self.runs.max(1); levels];
        runs[levels - 1] = self.last_runs.max(1);
        runs
    }

    /// A: the number of runs (Equation 1).
    pub fn slots(&self) -> usize {
        self.runs_of_levels().iter().map(|&runs| runs as usize).sum()
    }

    /// The share of each level in the entries, newest level first (Equation 7).
    pub fn level_shares(&self) -> Vec<f64> {
        level_shares(f64::from(self.size_ratio), self.levels.max(1) as usize)
    }

    /// The share of each run, newest level first (Equation 8).
    pub fn slot_shares(&self) -> Vec<f64> {
        slot_shares(f64::from(self.size_ratio), &self.runs_of_levels())
    }

    /// The entropy of a level id (Equation 9, the sum).
    pub fn entropy(&self) -> f64 {
        entropy_of(&self.slot_shares())
    }

    /// K^(1/T) · Z^((T-1)/T), the factor in the equations that depends on the numbers of runs.
    fn runs_factor(&self) -> f64 {
        let ratio = f64::from(self.size_ratio);
        let (runs, last_runs) = (f64::from(self.runs), f64::from(self.last_runs));
        last_runs.powf((ratio - 1.0) / ratio) * runs.powf(1.0 / ratio)
    }

    /// T^(T/(T-1)) / (T-1).
    fn skew_factor(&self) -> f64 {
        let ratio = f64::from(self.size_ratio);
        ratio.powf(ratio / (ratio - 1.0)) / (ratio - 1.0)
    }

    /// The entropy of a level id with infinitely many levels (Equation 9, closed form).
    pub fn entropy_limit(&self) -> f64 {
        (self.runs_factor() * self.skew_factor()).log2()
    }

    /// An upper bound of the mean code length of single ids (Equation 11): level in unary, run in
    /// binary.
    pub fn code_length_bound(&self) -> f64 {
        let ratio = f64::from(self.size_ratio);
        ratio / (ratio - 1.0) + self.runs_factor().log2()
    }

    /// The expected false positives per lookup of an absent key (Equation 5). `bits`: per entry;
    /// `id_bits`: of these, for the level id; `bucket_slots`: entries per bucket.
    pub fn rate(bucket_slots: u32, bits: f64, id_bits: f64) -> f64 {
        2.0 * f64::from(bucket_slots) * (id_bits - bits).exp2()
    }

    /// The expected rate of Chucky (Equation 16).
    pub fn rate_of_chucky(&self, bucket_slots: u32, bits: f64) -> f64 {
        let ratio = f64::from(self.size_ratio);
        Self::rate(bucket_slots, bits, 0.0) * (ratio / (ratio - 1.0)).exp2() * self.runs_factor()
    }

    /// The entropy per id of unordered groups of `size` ids (Equation 13).
    pub fn combination_entropy(&self, size: usize) -> f64 {
        let shares = self.slot_shares();
        let mut known = factorial(size).log2();
        for share in &shares {
            for count in 2..=size {
                let ways = factorial(size) / (factorial(count) * factorial(size - count));
                let chance = share.powi(count as i32) * (1.0 - share).powi((size - count) as i32);
                known -= ways * chance * factorial(count).log2();
            }
        }
        self.entropy() - known / size as f64
    }

    /// The mean length of Huffman codes of single ids.
    pub fn code_length(&self) -> f64 {
        mean_length(&self.slot_shares())
    }

    /// The mean length per id of Huffman codes of `size` ids in order. Work and memory grow as the
    /// number of slots to the power of `size`.
    pub fn permutation_code_length(&self, size: usize) -> f64 {
        let single = self.slot_shares();
        let mut shares = vec![1.0];
        for _ in 0..size {
            let longer = |share: &f64| single.iter().map(|next| share * next).collect::<Vec<_>>();
            shares = shares.iter().flat_map(longer).collect();
        }
        mean_length(&shares) / size as f64
    }

    /// The mean length per id of Huffman codes of `size` unordered ids.
    pub fn combination_code_length(&self, size: usize) -> f64 {
        let single = self.slot_shares();
        let mut shares = Vec::new();
        multisets(single.len(), size, &mut |combination| {
            shares.push(combination_share(&single, combination));
        });
        mean_length(&shares) / size as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tree of the paper's Figure 4: nine runs.
    const FIGURE_4: LevelModel = LevelModel { size_ratio: 5, levels: 3, runs: 4, last_runs: 1 };

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    fn some_models() -> Vec<LevelModel> {
        let ratios = [2, 3, 5, 10];
        let models = ratios.into_iter().flat_map(|size_ratio| {
            (1..4).flat_map(move |levels| {
                [(1, 1), (size_ratio - 1, 1), (size_ratio - 1, size_ratio - 1)]
                    .map(|(runs, last_runs)| LevelModel { size_ratio, levels, runs, last_runs })
            })
        });
        models.filter(|model| model.slots() <= 9).collect()
    }

    /// Every list of `size` slots.
    fn permutations(slots: usize, size: usize) -> Vec<Vec<u8>> {
        (0..slots.pow(size as u32))
            .map(|number| {
                (0..size).map(|nth| (number / slots.pow(nth as u32) % slots) as u8).collect()
            })
            .collect()
    }

    #[test]
    fn figure_4_a_huffman_code_of_nine_level_ids() {
        assert_eq!(FIGURE_4.slots(), 9);
        let shares = FIGURE_4.slot_shares();
        assert!(near(shares[5], 5.0 / 124.0), "the sixth id: {shares:?}");
        let lengths = code_lengths(&shares);
        assert_eq!((lengths[3], lengths[8]), (6, 1), "ids 4 (011011) and 9 (1)");
        assert_eq!(lengths[6], 3, "id 7 (001: 11001 is read as 9, 9, 7)");
        let length = FIGURE_4.code_length();
        assert!(near(length, 189.0 / 124.0) && (1.52..1.53).contains(&length), "{length}");
        // "62 % less than four bits".
        assert!((0.615..0.625).contains(&(1.0 - length / 4.0)));
    }

    #[test]
    fn figure_7_a_combination_of_two_runs() {
        let model = LevelModel { size_ratio: 10, levels: 2, runs: 1, last_runs: 1 };
        let shares = model.slot_shares();
        assert!(near(shares[0], 1.0 / 11.0) && near(shares[1], 10.0 / 11.0));
        assert!(near(combination_share(&shares, &[0, 1]), 20.0 / 121.0));
        assert!(model.permutation_code_length(2) < 1.0);
        assert!(model.combination_code_length(2) < model.permutation_code_length(2));
    }

    #[test]
    fn shares_are_as_equation_7_says() {
        for model in some_models() {
            let shares = model.level_shares();
            let (ratio, levels) = (f64::from(model.size_ratio), shares.len() as i32);
            for (level, share) in (1..).zip(&shares) {
                let printed = (ratio - 1.0) / ratio.powi(levels - level) * ratio.powi(levels - 1)
                    / (ratio.powi(levels) - 1.0);
                assert!(near(*share, printed), "{model:?}, level {level}");
            }
            assert!(near(model.slot_shares().iter().sum(), 1.0));
        }
    }

    #[test]
    fn combinations_are_as_likely_as_the_permutations_that_they_stand_for() {
        for model in some_models() {
            let shares = model.slot_shares();
            for size in 1..=4 {
                let mut sums = std::collections::BTreeMap::<Vec<u8>, f64>::new();
                for mut list in permutations(shares.len(), size) {
                    let share: f64 = list.iter().map(|&slot| shares[usize::from(slot)]).product();
                    list.sort_unstable();
                    *sums.entry(list).or_default() += share;
                }
                for (combination, sum) in &sums {
                    assert!(near(*sum, combination_share(&shares, combination)), "{model:?}");
                }
                let all: Vec<f64> = sums.into_values().collect();
                let entropy = entropy_of(&all) / size as f64;
                assert!(near(entropy, model.combination_entropy(size)), "{model:?}, {size}");
                let length = model.combination_code_length(size);
                assert!((entropy - 1e-9..=entropy + 1.0 / size as f64).contains(&length));
            }
        }
    }

    #[test]
    fn mean_lengths_of_permutations_are_those_of_the_enumeration() {
        for model in some_models().into_iter().filter(|model| model.slots() <= 5) {
            let shares = model.slot_shares();
            let lists = permutations(shares.len(), 3).into_iter();
            let all: Vec<f64> = lists
                .map(|list| list.iter().map(|&slot| shares[usize::from(slot)]).product())
                .collect();
            assert!(near(mean_length(&all) / 3.0, model.permutation_code_length(3)), "{model:?}");
        }
    }

    #[test]
    fn closed_forms_are_the_limits_of_the_sums() {
        for size_ratio in 2..=10 {
            for (runs, last_runs) in [(1, 1), (size_ratio - 1, 1), (size_ratio - 1, size_ratio - 1)]
            {
                let model = LevelModel { size_ratio, levels: 60, runs, last_runs };
                assert!((model.entropy() - model.entropy_limit()).abs() < 1e-6, "{model:?}");
                let levels = model.level_shares();
                let unary_and_binary: f64 = (0..60)
                    .zip(model.runs_of_levels())
                    .map(|(level, runs)| {
                        levels[level] * ((60 - level) as f64 + f64::from(runs).log2())
                    })
                    .sum();
                assert!((unary_and_binary - model.code_length_bound()).abs() < 1e-6, "{model:?}");
                assert!(model.entropy_limit() <= model.code_length_bound() + 1e-9);
            }
        }
    }

    #[test]
    fn rates_follow_from_the_bits_that_ids_take() {
        let model = LevelModel { size_ratio: 5, levels: 6, runs: 4, last_runs: 1 };
        let rate = |id_bits| LevelModel::rate(4, 10.0, id_bits);
        assert!(near(rate(0.0), 8.0 / 1024.0));
        assert!(near(model.rate_of_chucky(4, 10.0), rate(model.code_length_bound())));
        assert!((0.0244..0.0246).contains(&model.rate_of_chucky(4, 10.0)));
    }
}
