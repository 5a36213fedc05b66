//! Divides a Rosetta filter's memory among its levels.
//! ```text
//! rates      level 0  level 1 .. h       memory of n nodes at a rate e < 1/2: n ln(1/e) / ln(2)^2
//! single     minimal  1 (not stored)
//! variable   C/g(0)   C/g(r), at most 1  g(r): how often a query probes level r
//! first cut  e        1 / (2 - e)        then a query that begins at any level has the rate e
//! ```
//! Invariant: the shares never exceed the whole, and level 0 gets the remainder.

use std::f64::consts::LN_2;

use super::RosettaSplit;

/// Bisection steps in the search for a rate.
const ROUNDS: u32 = 100;

/// In the first cut, the last level has at most this rate; otherwise there are fewer levels. Many
/// levels of hardly any bits refute less than one level of all bits.
const LAST_RATE_MAX: f64 = 0.25;

/// Returns the size of each level in bytes. `nodes`: the number of nodes of each level. Requires:
/// level 0 has nodes.
pub(super) fn level_bytes(split: RosettaSplit, nodes: &[u64], bytes: usize) -> Vec<usize> {
    let mut rates = match split {
        RosettaSplit::Single => dearest(nodes, bytes, single),
        RosettaSplit::Variable => dearest(nodes, bytes, variable),
        RosettaSplit::FirstCut => (1..=nodes.len())
            .rev()
            .map(|levels| dearest(&nodes[..levels], bytes, first_cut))
            .find(|rates| rates.len() == 1 || rates[0] <= LAST_RATE_MAX)
            .unwrap_or_default(),
    };
    rates.resize(nodes.len(), 1.0);
    let bits = rates.into_iter().zip(nodes).map(|(rate, &nodes)| bits_of(nodes, rate));
    let mut sizes: Vec<usize> = bits.map(|bits| (bits / 8.0) as usize).collect();
    sizes[0] = 0;
    let upper = sizes.iter().sum::<usize>().min(bytes);
    sizes[0] = bytes - upper;
    sizes
}

/// Returns the lowest rates of a given form that fit into `bytes`.
fn dearest(nodes: &[u64], bytes: usize, rates: impl Fn(&[u64], f64) -> Vec<f64>) -> Vec<f64> {
    let bits_for = |rates: &[f64]| -> f64 {
        rates.iter().zip(nodes).map(|(&rate, &nodes)| bits_of(nodes, rate)).sum()
    };
    let budget = bytes as f64 * 8.0;
    // Bisects the logarithm of the rate: the lower end takes too much memory, the upper end none.
    let (mut low, mut high) = (-1000.0f64, 0.0f64);
    for _ in 0..ROUNDS {
        let middle = (low + high) / 2.0;
        if bits_for(&rates(nodes, middle.exp())) > budget { low = middle } else { high = middle }
    }
    rates(nodes, high.exp())
}

/// Returns the bits of a Bloom filter. A rate that needs no more than one probe takes one bit
/// position per node.
fn bits_of(nodes: u64, rate: f64) -> f64 {
    let bits_per_node = match rate {
        1.0.. => 0.0,
        0.5.. => -1.0 / (1.0 - rate).ln(),
        _ => -rate.ln() / (LN_2 * LN_2),
    };
    nodes as f64 * bits_per_node
}

fn single(nodes: &[u64], rate: f64) -> Vec<f64> {
    (0..nodes.len()).map(|level| if level == 0 { rate } else { 1.0 }).collect()
}

fn first_cut(nodes: &[u64], rate: f64) -> Vec<f64> {
    (0..nodes.len()).map(|level| if level == 0 { rate } else { 1.0 / (2.0 - rate) }).collect()
}

/// Minimizes the sum of g(r) e(r), by Lagrange multipliers. A range of maximum length has up to two
/// nodes at each level. Each of them may be followed by two at the next level.
fn variable(nodes: &[u64], rate: f64) -> Vec<f64> {
    let levels = nodes.len();
    let asked = |level: usize| 2f64.powi((levels - level) as i32 + 1) - 2.0;
    let weight = |level: usize| nodes[level] as f64 / asked(level);
    (0..levels).map(|level| (rate * weight(level) / weight(0)).min(1.0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODES: [u64; 7] = [1000; 7];

    #[test]
    fn shares_add_up() {
        for split in [RosettaSplit::Single, RosettaSplit::Variable, RosettaSplit::FirstCut] {
            for bytes in [0, 1, 100, 1750, 100_000] {
                let sizes = level_bytes(split, &NODES, bytes);
                assert_eq!(sizes.iter().sum::<usize>(), bytes, "{split:?}");
                assert!(sizes[1..].iter().all(|&upper| upper <= sizes[0]), "{split:?}: {sizes:?}");
            }
        }
    }

    #[test]
    fn single_keeps_one_level() {
        assert_eq!(level_bytes(RosettaSplit::Single, &NODES, 1750), [1750, 0, 0, 0, 0, 0, 0]);
    }

    /// Each level is probed about half as often as the one below, so it has one probe less per
    /// node: 1.44 bits.
    #[test]
    fn variable_falls_by_a_place_a_level() {
        let sizes = level_bytes(RosettaSplit::Variable, &NODES, 4000);
        let places: Vec<f64> = sizes.iter().map(|&size| size as f64 * 8.0 / 1443.0).collect();
        for pair in places.windows(2).take(4) {
            assert!((0.9..1.15).contains(&(pair[0] - pair[1])), "{places:?}");
        }
    }

    /// The paper's rates: with a small e at level 0, all other levels have about one half. This
    /// takes one probe, 1.44 bits per node.
    #[test]
    fn first_cut_gives_the_upper_levels_a_place_each() {
        let sizes = level_bytes(RosettaSplit::FirstCut, &NODES, 3000);
        assert!(sizes[1..].iter().all(|size| (170..=181).contains(size)), "{sizes:?}");
    }

    #[test]
    fn few_bits_are_not_spread_thin() {
        assert_eq!(level_bytes(RosettaSplit::FirstCut, &NODES, 250), [250, 0, 0, 0, 0, 0, 0]);
        let sizes = level_bytes(RosettaSplit::FirstCut, &NODES, 800);
        assert!(sizes[0] > 340 && sizes[1] > 100 && sizes[6] == 0, "{sizes:?}");
    }

    #[test]
    fn levels_with_few_nodes_are_cheap() {
        let sizes = level_bytes(RosettaSplit::FirstCut, &[1000, 500, 250, 125], 2000);
        assert!(sizes[1] > 80 && sizes[1] < sizes[0] / 4 && sizes[3] < sizes[1] / 3, "{sizes:?}");
    }
}
