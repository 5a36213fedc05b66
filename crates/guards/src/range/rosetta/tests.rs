//! Rosetta against its theoretical rates.

use super::*;
use crate::range::base::hashed::rate;

const KEYS: u64 = 20_000;
const QUESTIONS: u64 = 100_000;

fn filter(plan: RosettaPlan, bits_per_key: f64, keys: &[Vec<u8>]) -> Rosetta<Vec<u8>> {
    let mut builder = RosettaBuilder::new(bits_per_key, plan);
    keys.iter().for_each(|key| builder.add(key).expect("sorted"));
    Rosetta::read(builder.finish()).expect("whole")
}

fn sorted(mut numbers: Vec<u64>) -> Vec<Vec<u8>> {
    numbers.sort_unstable();
    numbers.into_iter().map(|number| number.to_be_bytes().to_vec()).collect()
}

fn uniform() -> Vec<Vec<u8>> {
    sorted((0..KEYS).map(mix).collect())
}

/// The share of ranges of this width, far from all keys, that are "maybe".
fn measured(filter: &Rosetta<Vec<u8>>, width: u64) -> f64 {
    let may_overlap = |&n: &u64| {
        let low = mix(n + KEYS).min(u64::MAX - width);
        let (low, high) = (low.to_be_bytes(), (low + width - 1).to_be_bytes());
        filter.may_overlap(&KeyRange::new(&low, Some(&high)).expect("in order"))
    };
    (0..QUESTIONS).filter(may_overlap).count() as f64 / QUESTIONS as f64
}

fn assert_near(measured: f64, expected: f64, what: &str) {
    let noise = 5.0 * (expected / QUESTIONS as f64).sqrt();
    let bounds = expected * 0.9 - noise..expected * 1.1 + noise;
    assert!(bounds.contains(&measured), "{what}: {measured}, expected {expected}");
}

/// The rates of the levels' Bloom filters.
fn level_rates(filter: &Rosetta<Vec<u8>>) -> Vec<f64> {
    let bits = filter.level_bytes().into_iter().map(|bytes| bytes as f64 * 8.0 / KEYS as f64);
    bits.map(|bits| if bits > 0.0 { rate(bits, best_probes(bits)) } else { 1.0 }).collect()
}

#[test]
fn the_last_level_alone_is_a_bloom_filter_asked_for_each_number() {
    let plan = RosettaPlan { range_bits: 6, split: RosettaSplit::Single };
    for bits_per_key in [4.0, 10.0, 16.0] {
        let filter = filter(plan, bits_per_key, &uniform());
        let rates = level_rates(&filter);
        assert!(
            (bits_per_key - 0.1..=bits_per_key)
                .contains(&(filter.size_bytes() as f64 * 8.0 / KEYS as f64))
        );
        for width in [1, 8, 48] {
            let expected = 1.0 - (1.0 - rates[0]).powi(width as i32);
            assert_near(measured(&filter, width), expected, &format!("{bits_per_key}, {width}"));
        }
    }
}

#[test]
fn a_point_must_be_in_every_level_that_is_kept() {
    for split in [RosettaSplit::Variable, RosettaSplit::FirstCut] {
        let filter = filter(RosettaPlan { range_bits: 4, split }, 10.0, &uniform());
        let expected = level_rates(&filter).iter().product();
        assert_near(measured(&filter, 1), expected, &format!("{split:?}"));
    }
}

/// A level with the rate 1 / (2 - e) turns two children with the rate e into one parent with that
/// rate.
#[test]
fn the_first_cut_keeps_its_rate_at_every_level() {
    let filter =
        filter(RosettaPlan { range_bits: 4, split: RosettaSplit::FirstCut }, 9.0, &uniform());
    let rates = level_rates(&filter);
    let kept = rates[1..].iter().fold(rates[0], |below, rate| rate * (1.0 - (1.0 - below).powi(2)));
    assert!((0.8..1.2).contains(&(kept / rates[0])), "{kept}, {rates:?}");
}

#[test]
fn all_splits_find_dense_ids_at_every_width() {
    let keys = sorted((7_000..9_000).chain([1 << 40]).collect());
    for split in [RosettaSplit::Single, RosettaSplit::Variable, RosettaSplit::FirstCut] {
        for range_bits in [0, 6, 31, 200] {
            let filter = filter(RosettaPlan { range_bits, split }, 12.0, &keys);
            for key in 7_000..9_000u64 {
                assert!(filter.may_contain(&key.to_be_bytes()), "{key}");
                for width in [0, 1, 13, 1 << 12, 1 << 33] {
                    let (low, high) = ((key - 500).to_be_bytes(), (key + width).to_be_bytes());
                    assert!(filter.may_overlap(&KeyRange::new(&low, Some(&high)).expect("order")));
                }
            }
        }
    }
}

/// Groups of ten such keys have equal numbers; the filter of whole keys tells them apart.
#[test]
fn long_keys_are_told_apart_by_their_whole_hash() {
    let key = |n: u64| format!("{:08}/{:08}", n / 10, n * 7).into_bytes();
    let keys: Vec<Vec<u8>> = (0..KEYS).map(key).collect();
    let filter = filter(RosettaPlan::default(), 16.0, &keys);
    let close = |n: u64| format!("{:08}/{:08}", n / 10, n * 7 + 1).into_bytes();
    let maybe = (0..KEYS).filter(|&n| filter.may_contain(&close(n))).count() as f64;
    let rate = maybe / KEYS as f64;
    assert!((0.005..0.035).contains(&rate), "eight bits for each key: {rate}");
    assert!(keys.iter().all(|key| filter.may_contain(key)));
}

#[test]
fn ranges_far_apart_end() {
    let keys = sorted(vec![5, 1 << 62]);
    let filter = filter(RosettaPlan::default(), 14.0, &keys);
    let (low, high) = (100u64.to_be_bytes(), (1u64 << 61).to_be_bytes());
    let wide = KeyRange::new(&low, Some(&high)).expect("in order");
    assert!(filter.may_overlap(&wide), "more nodes than are asked for");
    assert!(filter.may_overlap(&KeyRange::all()));
}
