//! Divides a memory budget among the parts of a filter, in bits per key: parts with more empty
//! queries get more bits.
//! ```text
//! needless reads of a part   empty_queries * 2^-bits     its memory   keys * bits
//! least sum over all parts   bits = level + log2(empty_queries / keys), at least LEAST_BITS,
//!                                   at most the bits of the options
//! level                      as high as the memory allows
//! ```
//! `empty_queries` counts the queries of a part's range that found nothing. Places, codes and text
//! models may take a part beyond these bits; this excess is assumed to stay as it is.
//!
//! Invariants: the allotment fits into the memory, unless even the least bits of all parts do not.
//! Of two parts, the one with more queries per key has at least as many bits.

use crate::guard::parts::Parts;

/// The fewest bits per key. Fewer would not make a part smaller, since the order of keys takes that
/// much.
const LEAST_BITS: f64 = 3.0;
/// The share of the memory that is allotted. The rest is for what flushes add.
const ALLOTTED: f64 = 0.97;
/// Queries assumed for each part before any is counted, so that chance decides little.
const EXPECTED_EACH: f64 = 4.0;
/// The share of all queries that is assumed to be spread evenly over all keys.
const ANYWHERE: f64 = 0.02;
/// A part is rebuilt if its bits per key would change by at least this much.
const WORTH_BITS: f64 = 1.0;
/// The same threshold for a shrinking part, where all parts take too much or another part needs
/// memory.
const WORTH_BITS_IF_NEEDED: f64 = 0.1;
/// Bisection steps for the level: more than floating-point numbers can resolve.
const HALVINGS: usize = 60;

/// The size of a part, and its empty queries.
#[derive(Clone, Copy, Debug)]
struct PartUse {
    /// Keys of its base, and entries of its overlay.
    keys: u64,
    /// Bits per key that the part was built with.
    bits: f64,
    bytes: u64,
    /// Queries of its range that found nothing.
    empty_queries: u64,
}

impl PartUse {
    /// Returns the part's bytes, now or when its overlay is as full as planned, whichever is more.
    fn planned_bytes(&self) -> f64 {
        (self.bytes as f64).max(self.keys as f64 * self.bits / 8.0)
    }

    fn planned_bytes_with(&self, bits: f64) -> f64 {
        self.planned_bytes() + self.keys as f64 * (bits - self.bits) / 8.0
    }
}

/// The bits per key that each part should have.
pub(crate) struct Allotment {
    /// The lower bound of each part, in key order.
    lowers: Vec<Vec<u8>>,
    parts: Vec<PartUse>,
    bits: Vec<f64>,
    limit: u64,
}

impl Allotment {
    /// `empty_queries`: for each part, the queries that found nothing. `limit`: the bytes of all
    /// parts.
    pub(crate) fn of(parts: &Parts, empty_queries: &[u64], limit: u64, bits_per_key: f64) -> Self {
        let (mut lowers, mut uses) = (Vec::new(), Vec::new());
        for ((lower, part), &empty_queries) in parts.each().zip(empty_queries) {
            let size = part.size();
            lowers.push(lower.to_vec());
            uses.push(PartUse {
                keys: size.base_entries + size.overlay_entries,
                bits: part.options().bits_per_key,
                bytes: size.base_bytes + size.overlay_bytes,
                empty_queries,
            });
        }
        let bits = allot(&uses, limit, bits_per_key);
        Allotment { lowers, parts: uses, bits, limit }
    }

    /// Returns the bits for a part with this lower bound.
    pub(crate) fn bits_at(&self, lower: &[u8]) -> f64 {
        let after = self.lowers.partition_point(|begin| **begin <= *lower);
        self.bits[after.saturating_sub(1)]
    }

    /// Returns the lower bound of the part to rebuild next, and the bits that it should have. None:
    /// no rebuild is worth it.
    pub(crate) fn next_change(&self) -> Option<(&[u8], f64)> {
        let place = next_change(&self.parts, &self.bits, self.limit)?;
        Some((&self.lowers[place], self.bits[place]))
    }
}

/// Returns the bits per key if only the number of entries in all parts is known.
pub(crate) fn even_bits(limit: u64, entries: u64, bits_per_key: f64) -> f64 {
    let bits = ALLOTTED * limit as f64 * 8.0 / entries.max(1) as f64;
    bits.clamp(least_bits(bits_per_key), bits_per_key)
}

fn least_bits(bits_per_key: f64) -> f64 {
    LEAST_BITS.min(bits_per_key)
}

/// Returns the bits per key of each part.
fn allot(parts: &[PartUse], limit: u64, bits_per_key: f64) -> Vec<f64> {
    let (least, heats) = (least_bits(bits_per_key), heats(parts));
    let bits_at = |level: f64, heat: f64| (level + heat).clamp(least, bits_per_key);
    let fits = |level: f64| {
        let parts = parts.iter().zip(&heats);
        let bytes = parts.map(|(part, heat)| part.planned_bytes_with(bits_at(level, *heat)));
        bytes.sum::<f64>() <= ALLOTTED * limit as f64
    };
    let hottest = heats.iter().copied().fold(f64::MIN, f64::max);
    let coldest = heats.iter().copied().fold(f64::MAX, f64::min);
    // These bounds lie beyond the levels at which all parts have the least or the most bits, so
    // that both extremes are exact.
    let (mut low, mut high) = (least - hottest - 1.0, bits_per_key - coldest + 1.0);
    if fits(high) {
        low = high;
    }
    for _ in 0..HALVINGS {
        let middle = (low + high) / 2.0;
        *(if fits(middle) { &mut low } else { &mut high }) = middle;
    }
    heats.iter().map(|heat| bits_at(low, *heat)).collect()
}

/// Returns for each part the base-2 logarithm of its queries per key.
fn heats(parts: &[PartUse]) -> Vec<f64> {
    let keys = |part: &PartUse| part.keys.max(1) as f64;
    let all_keys: f64 = parts.iter().map(keys).sum();
    let all_queries = parts.iter().map(|part| part.empty_queries as f64).sum::<f64>();
    let anywhere = EXPECTED_EACH * parts.len() as f64 + ANYWHERE * all_queries;
    let heat =
        |part: &PartUse| (part.empty_queries as f64 / keys(part) + anywhere / all_keys).log2();
    parts.iter().map(heat).collect()
}

/// Returns the part to rebuild next with these bits. Parts that free memory come first.
fn next_change(parts: &[PartUse], bits: &[f64], limit: u64) -> Option<usize> {
    let free = limit as f64 - parts.iter().map(PartUse::planned_bytes).sum::<f64>();
    let gained = |place: usize| bits[place] - parts[place].bits;
    let bytes = |place: usize| gained(place) * parts[place].keys as f64 / 8.0;
    let by_bytes = |one: &usize, other: &usize| bytes(*one).total_cmp(&bytes(*other));
    let all = || (0..parts.len()).filter(|&place| parts[place].keys > 0);
    let shrinks = |worth: f64| all().filter(|&place| gained(place) <= -worth).min_by(by_bytes);
    if free < 0.0 {
        return shrinks(WORTH_BITS_IF_NEEDED);
    }
    let growing = || all().filter(|&place| gained(place) >= WORTH_BITS);
    let grows = || growing().filter(|&place| bytes(place) <= free).max_by(by_bytes);
    let makes_room = || growing().next().and_then(|_| shrinks(WORTH_BITS_IF_NEEDED));
    shrinks(WORTH_BITS).or_else(grows).or_else(makes_room)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BITS: f64 = 12.0;

    fn part(keys: u64, empty_queries: u64) -> PartUse {
        PartUse { keys, bits: BITS, bytes: (keys as f64 * BITS / 8.0) as u64, empty_queries }
    }

    fn bytes_of(parts: &[PartUse], bits: &[f64]) -> f64 {
        parts.iter().zip(bits).map(|(part, bits)| part.planned_bytes_with(*bits)).sum()
    }

    /// Returns the parts after all changes that are worth it.
    fn settled(mut parts: Vec<PartUse>, limit: u64) -> Vec<PartUse> {
        for _ in 0..10 * parts.len() {
            let bits = allot(&parts, limit, BITS);
            let Some(place) = next_change(&parts, &bits, limit) else { return parts };
            let bytes = parts[place].planned_bytes_with(bits[place]) as u64;
            parts[place] = PartUse { bits: bits[place], bytes, ..parts[place] };
        }
        panic!("it does not settle: {parts:?}");
    }

    #[test]
    fn parts_that_nobody_asks_have_the_same_bits() {
        let parts = [part(1000, 0), part(50_000, 0), part(1, 0)];
        let bits = allot(&parts, 51_001 * 12 / 8 / 2, BITS);
        assert!(bits.iter().all(|one| (one - BITS * ALLOTTED / 2.0).abs() < 1e-3), "{bits:?}");
        assert_eq!(allot(&parts, u64::MAX, BITS), [BITS; 3]);
        assert_eq!(allot(&parts, 1, BITS), [LEAST_BITS; 3]);
        assert_eq!(allot(&[], 1, BITS), [0.0; 0]);
        let limit = 1000 * 6 / 8;
        assert!((even_bits(limit, 1000, BITS) - 6.0 * ALLOTTED).abs() < 1e-9);
        assert_eq!(even_bits(limit, 0, BITS), BITS);
        assert_eq!(even_bits(0, 1000, BITS), LEAST_BITS);
        assert_eq!(even_bits(0, 1000, 2.0), 2.0);
    }

    // A Zipf distribution over parts of equal size: a part gets about one bit more than one that is
    // asked half as often. Needless reads are a fraction of those with even bits.
    #[test]
    fn hot_parts_have_more_bits() {
        let parts: Vec<PartUse> = (1..=64).map(|rank| part(10_000, 100_000 / rank)).collect();
        let limit = 64 * 10_000 * 12 / 8 / 2;
        let bits = allot(&parts, limit, BITS);
        let gained = bits[1] - bits[31];
        assert!((3.0..=4.0).contains(&gained), "sixteen times as often: {gained} bits");
        let needless = |bits: &dyn Fn(usize) -> f64| {
            let of = |place: usize| parts[place].empty_queries as f64 * 0.5f64.powf(bits(place));
            (0..64).map(of).sum::<f64>()
        };
        let even = even_bits(limit, 640_000, BITS);
        let ratio = needless(&|place| bits[place]) / needless(&|_| even);
        assert!(ratio < 0.65, "{ratio}");
    }

    #[test]
    fn what_does_not_gain_is_left_alone() {
        let (all, fits) = (20_000 * 12 / 8, 20_000 * 12 / 8 * 2);
        let parts = [part(10_000, 50_000), part(10_000, 100)];
        assert_eq!(next_change(&parts, &allot(&parts, fits, BITS), fits), None);
        let half = settled(parts.to_vec(), all / 2);
        assert!(half[0].bits > half[1].bits + 4.0, "{half:?}");
        // A few queries do not change it.
        let little = [
            PartUse { empty_queries: 45_000, ..half[0] },
            PartUse { empty_queries: 110, ..half[1] },
        ];
        assert_eq!(next_change(&little, &allot(&little, all / 2, BITS), all / 2), None);
        // It follows when queries move to the other part.
        let turned = [
            PartUse { empty_queries: 100, ..half[0] },
            PartUse { empty_queries: 50_000, ..half[1] },
        ];
        let turned = settled(turned.to_vec(), all / 2);
        assert!(turned[1].bits > turned[0].bits + 4.0, "{turned:?}");
    }

    // No other part has much to give.
    #[test]
    fn many_parts_make_room_for_one() {
        let limit = 10 * 1000 * 6 / 8;
        let even = settled(vec![part(1000, 0); 10], limit);
        let mut uneven = even.clone();
        uneven[7].empty_queries = 8000;
        let settled = settled(uneven, limit);
        assert!(settled[7].bits > even[7].bits + 4.0, "{} bits", settled[7].bits);
        assert!(even.iter().zip(&settled).all(|(even, now)| now.bits > even.bits - 1.0));
        assert!(settled.iter().map(PartUse::planned_bytes).sum::<f64>() <= limit as f64);
    }

    proptest! {
        #[test]
        fn memory_is_kept_to_and_heat_orders(
            parts in prop::collection::vec((0u64..1 << 20, 2.0..16.0, 0.5..1.5, 0u64..1 << 14), 1..40),
            limit in 1u64..1 << 24,
            bits_per_key in 1.0..20.0,
        ) {
            let parts: Vec<PartUse> = parts.into_iter().map(|(keys, bits, filling, empty_queries)| {
                PartUse { keys, bits, bytes: (keys as f64 * bits * filling / 8.0) as u64, empty_queries }
            }).collect();
            let least = least_bits(bits_per_key);
            let bits = allot(&parts, limit, bits_per_key);
            prop_assert!(bits.iter().all(|bits| (least..=bits_per_key).contains(bits)), "{bits:?}");
            let fits = bytes_of(&parts, &bits) <= limit as f64;
            prop_assert!(fits || bits.iter().all(|bits| *bits < least + 1e-6), "{bits:?}");
            let heats = heats(&parts);
            for (one, heat) in bits.iter().zip(&heats) {
                for (other, colder) in bits.iter().zip(&heats) {
                    prop_assert!(heat < colder || one >= other);
                }
            }
            let settled = settled(parts, limit);
            let planned: f64 = settled.iter().map(PartUse::planned_bytes).sum();
            let is_least = |part: &PartUse| part.keys == 0 || part.bits < LEAST_BITS + 0.11;
            prop_assert!(planned <= limit as f64 || settled.iter().all(is_least), "{settled:?}");
        }
    }
}
