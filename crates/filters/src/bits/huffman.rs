//! Huffman codes: lengths from weights, and canonical codes from lengths.
//! ```text
//! weights   .5 .25 .125 .125   ->  lengths  1 2 3 3   ->  codes  0 10 110 111
//! ```
//! Invariant: no code is a prefix of another, and no further code would fit (the codes are
//! complete).

use alloc::vec::Vec;
use core::ops::Add;

/// Returns the code length of each weight, in bits. A single weight gets length zero. Requires: no
/// weight is NaN.
pub fn code_lengths(weights: &[f64]) -> Vec<u32> {
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by(|&a, &b| weights[a].total_cmp(&weights[b]));
    let leaves: Vec<f64> = order.iter().map(|&nth| weights[nth]).collect();
    let mut lengths = vec![0; weights.len()];
    for (place, depth) in depths(&leaves).into_iter().enumerate() {
        lengths[order[place]] = depth;
    }
    lengths
}

/// Returns the depth of each leaf in the Huffman tree. Requires: ascending weights.
///
/// Inner nodes are created in ascending order of weight. So the two smallest are always at the
/// heads of two queues: the remaining leaves and the remaining nodes.
pub fn depths<W: Copy + PartialOrd + Add<Output = W>>(leaves: &[W]) -> Vec<u32> {
    let count = leaves.len();
    let mut weights = leaves.to_vec();
    let mut parents = vec![0; (2 * count).saturating_sub(1)];
    let (mut leaf, mut node) = (0, count);
    while weights.len() + 1 < 2 * count {
        let next = weights.len();
        let mut take = || {
            let take_leaf = leaf < count && (node >= next || weights[leaf] <= weights[node]);
            let taken = if take_leaf { &mut leaf } else { &mut node };
            parents[*taken] = next;
            *taken += 1;
            weights[*taken - 1]
        };
        let sum = take() + take();
        weights.push(sum);
    }
    let mut depths = vec![0; weights.len()];
    for nth in (0..weights.len().saturating_sub(1)).rev() {
        depths[nth] = depths[parents[nth]] + 1;
    }
    depths.truncate(count);
    depths
}

/// Returns the canonical codes, in the order of their lengths. Requires: ascending lengths of at
/// most 32 bits, such as sorted ones of `code_lengths`.
pub fn canonical_codes(lengths: &[u32]) -> Vec<u64> {
    let (mut next, mut before) = (0u64, lengths.first().copied().unwrap_or(0));
    let code = |&length: &u32| {
        next <<= length - before;
        before = length;
        next += 1;
        next - 1
    };
    lengths.iter().map(code).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::hash::scattered;

    /// Huffman's algorithm as published: combine the two least weights, repeatedly.
    fn lengths_by_search(weights: &[f64]) -> f64 {
        let mut left = weights.to_vec();
        let mut sum = 0.0;
        while left.len() > 1 {
            left.sort_by(|a, b| b.total_cmp(a));
            let merged = left.pop().unwrap() + left.pop().unwrap();
            sum += merged;
            left.push(merged);
        }
        sum
    }

    #[test]
    fn codes_are_as_short_as_any() {
        for seed in 0..300 {
            let count = 2 + scattered(seed) % 30;
            let weight = |nth| (1 + scattered(seed * 1000 + nth) % 20) as f64;
            let weights: Vec<f64> = (0..count).map(weight).collect();
            let lengths = code_lengths(&weights);
            let kraft: f64 = lengths.iter().map(|&length| (-f64::from(length)).exp2()).sum();
            assert_eq!(kraft, 1.0, "{weights:?}");
            let mean: f64 =
                weights.iter().zip(&lengths).map(|(weight, &len)| weight * f64::from(len)).sum();
            assert!((mean - lengths_by_search(&weights)).abs() < 1e-9, "{weights:?}");
        }
    }

    #[test]
    fn no_code_begins_another() {
        for seed in 0..100 {
            let weights: Vec<f64> =
                (0..20).map(|nth| (1 + scattered(seed * 100 + nth) % 50) as f64).collect();
            let mut lengths = code_lengths(&weights);
            lengths.sort_unstable();
            let codes = canonical_codes(&lengths);
            for (a, &code) in codes.iter().enumerate() {
                for b in a + 1..codes.len() {
                    assert_ne!(codes[b] >> (lengths[b] - lengths[a]), code, "{lengths:?}");
                }
            }
            assert_eq!(codes.last(), Some(&((1 << lengths[19]) - 1)));
        }
    }

    #[test]
    fn powers_of_two_get_their_exponents() {
        let weights: Vec<f64> = [3, 1, 2, 4, 4].map(|bits: i32| 0.5f64.powi(bits)).to_vec();
        assert_eq!(code_lengths(&weights), [3, 1, 2, 4, 4]);
    }

    #[test]
    fn one_weight_needs_no_code() {
        assert_eq!(code_lengths(&[1.0]), [0]);
        assert_eq!(code_lengths(&[]), [0; 0]);
        assert_eq!(canonical_codes(&[0]), [0]);
    }
}
