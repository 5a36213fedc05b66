//! Combinations of the level ids in a bucket: their ranks and their probabilities.
//! ```text
//! slots of a bucket  3 0 3 1  --sorted-->  0 1 3 3   one combination for any order
//! rank               C(0,1) + C(1+1,2) + C(3+2,3) + C(3+3,4)
//! ```
//! Invariant: ranks are dense: the combinations of A slots have exactly the ranks below C(A+3, 4).

use super::model::combination_share;

/// Entries per bucket.
pub(super) const BUCKET_SLOTS: usize = 4;

/// The slots of a bucket's entries. Invariant: they ascend.
pub(super) type Combination = [u8; BUCKET_SLOTS];

/// Returns the rank of a combination in the combinatorial number system.
#[inline]
pub(super) fn rank(combination: Combination) -> u32 {
    let [a, b, c, d] = combination.map(u64::from);
    let (b, c, d) = (b + 1, c + 2, d + 3);
    let pairs = b * (b - 1) / 2;
    let triples = c * (c - 1) * (c - 2) / 6;
    let fours = d * (d - 1) * (d - 2) * (d - 3) / 24;
    (a + pairs + triples + fours) as u32
}

/// The number of combinations of `slots` slots.
pub(super) fn combinations(slots: usize) -> usize {
    slots * (slots + 1) * (slots + 2) * (slots + 3) / 24
}

/// Calls `each` with every ascending list of `size` numbers below `slots`. Requires: at most 256
/// slots.
pub(super) fn multisets(slots: usize, size: usize, each: &mut dyn FnMut(&[u8])) {
    fn extend(slots: usize, list: &mut Vec<u8>, left: usize, each: &mut dyn FnMut(&[u8])) {
        if left == 0 {
            return each(list);
        }
        let least = list.last().map_or(0, |&last| usize::from(last));
        for slot in least..slots {
            list.push(slot as u8);
            extend(slots, list, left - 1, each);
            list.pop();
        }
    }
    assert!(slots <= 256, "{slots} slots");
    extend(slots, &mut Vec::with_capacity(size), size, each);
}

/// Returns the most likely combinations with their probabilities, most likely first, at most
/// `count_max` of them.
///
/// There may be too many combinations to enumerate. So those above a threshold are collected, with
/// ever lower thresholds, until there are enough.
pub(super) fn likeliest(shares: &[f64], count_max: usize) -> Vec<(Combination, f64)> {
    let mut found = Vec::new();
    if combinations(shares.len()) <= count_max {
        multisets(shares.len(), BUCKET_SLOTS, &mut |list| {
            let combination = list.try_into().expect("lists have the size that was asked for");
            found.push((combination, combination_share(shares, list)));
        });
    } else {
        let mut search = Search::new(shares, 4 * count_max + 10_000);
        while search.found.len() < count_max && search.threshold > f64::MIN_POSITIVE {
            search.threshold /= 4.0;
            search.found.clear();
            search.extend(&mut Vec::with_capacity(BUCKET_SLOTS), 0, 1.0);
        }
        found = search.found;
    }
    found.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    found.truncate(count_max);
    found
}

/// Collects combinations with a probability above a threshold.
struct Search<'a> {
    shares: &'a [f64],
    /// The slots, largest share first: the search ends where shares get too small.
    order: Vec<u8>,
    threshold: f64,
    found_max: usize,
    found: Vec<(Combination, f64)>,
}

impl<'a> Search<'a> {
    fn new(shares: &'a [f64], found_max: usize) -> Self {
        let mut order: Vec<u8> = (0..=u8::MAX).take(shares.len()).collect();
        let share = |slot: u8| shares[usize::from(slot)];
        order.sort_by(|&a, &b| share(b).total_cmp(&share(a)).then(a.cmp(&b)));
        Search { shares, order, threshold: 1.0, found_max, found: Vec::new() }
    }

    /// Adds the combinations that begin with `list` and continue with slots from place `from` of
    /// the order.
    fn extend(&mut self, list: &mut Vec<u8>, from: usize, product: f64) {
        const ORDERS_MAX: f64 = 24.0;
        let left = BUCKET_SLOTS - list.len();
        for place in from..self.order.len() {
            let slot = self.order[place];
            let share = self.shares[usize::from(slot)];
            let best = ORDERS_MAX * product * share.powi(left as i32);
            if best < self.threshold || self.found.len() >= self.found_max {
                return;
            }
            list.push(slot);
            if left == 1 {
                self.add(list);
            } else {
                self.extend(list, place, product * share);
            }
            list.pop();
        }
    }

    fn add(&mut self, list: &[u8]) {
        let mut combination: Combination = list.try_into().expect("as many as a bucket has");
        combination.sort_unstable();
        let share = combination_share(self.shares, &combination);
        if share >= self.threshold {
            self.found.push((combination, share));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::model::slot_shares;
    use super::*;

    fn all(slots: usize) -> Vec<Combination> {
        let mut all = Vec::new();
        multisets(slots, BUCKET_SLOTS, &mut |list| all.push(list.try_into().unwrap()));
        all
    }

    #[test]
    fn ranks_are_dense() {
        for slots in [1, 2, 3, 7, 21, 40] {
            let mut ranks: Vec<u32> = all(slots).into_iter().map(rank).collect();
            ranks.sort_unstable();
            assert_eq!(ranks.len(), combinations(slots));
            assert!((0..).zip(&ranks).all(|(place, &rank)| place == rank), "{slots} slots");
        }
        assert_eq!(rank([255; 4]) as usize + 1, combinations(256));
    }

    #[test]
    fn the_likeliest_are_those_of_the_whole_list() {
        for runs_of_levels in [vec![4, 4, 4, 1], vec![3, 3, 3], vec![1; 12], vec![9, 1]] {
            let shares = slot_shares(5.0, &runs_of_levels);
            let whole = likeliest(&shares, usize::MAX);
            assert_eq!(whole.len(), combinations(shares.len()));
            for count in [1, 10, 100] {
                let some = likeliest(&shares, count);
                let sums = |list: &[(Combination, f64)]| list.iter().map(|pair| pair.1).sum();
                let (some, best): (f64, f64) =
                    (sums(&some), sums(&whole[..count.min(whole.len())]));
                assert!((some - best).abs() < 1e-12, "{runs_of_levels:?}, {count}: {some} {best}");
            }
        }
    }

    #[test]
    fn many_equal_slots_are_not_enumerated() {
        let found = likeliest(&[1.0 / 256.0; 256], 1000);
        assert_eq!(found.len(), 1000);
        assert!(likeliest(&[0.0, 1.0], 3).iter().any(|(combination, _)| *combination == [1; 4]));
    }
}
