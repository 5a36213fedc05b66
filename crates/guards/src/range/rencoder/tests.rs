//! REncoder: no key is lost, and the rate follows from the share of set bits.

use trommel_filters::{AlignedBytes, LineCounter};

use super::*;

fn image(probes: u8, bits_per_key: f64, keys: &[Vec<u8>]) -> Vec<u8> {
    let mut builder = RencoderBuilder::new(bits_per_key, RencoderPlan { probes });
    keys.iter().for_each(|key| builder.add(key).expect("sorted"));
    builder.finish()
}

fn filter(probes: u8, bits_per_key: f64, keys: &[Vec<u8>]) -> Rencoder<Vec<u8>> {
    Rencoder::read(image(probes, bits_per_key, keys)).expect("whole")
}

fn numbers(mut numbers: Vec<u64>) -> Vec<Vec<u8>> {
    numbers.sort_unstable();
    numbers.into_iter().map(|number| number.to_be_bytes().to_vec()).collect()
}

fn overlaps(filter: &Rencoder<Vec<u8>>, low: u64, high: u64) -> bool {
    let (low, high) = (low.to_be_bytes(), high.to_be_bytes());
    filter.may_overlap(&KeyRange::new(&low, Some(&high)).expect("in order"))
}

/// The public code loses all of these: it never writes a level at which all keys have the same
/// prefix.
#[test]
fn dense_ids_are_not_lost_at_any_width() {
    const COUNT: u64 = 3_000;
    for base in [0, 1 << 20, u64::MAX - COUNT] {
        let keys = numbers((base..base + COUNT).collect());
        for (probes, bits) in [(1, 4.0), (3, 12.0), (3, 20.0), (8, 60.0)] {
            let filter = filter(probes, bits, &keys);
            assert!(filter.levels() >= 8, "levels of dense ids are cheap: {}", filter.levels());
            for key in base..base + COUNT {
                assert!(filter.may_contain(&key.to_be_bytes()), "{key}");
                for width in (0..64).step_by(7) {
                    let reach = (1u64 << width) - 1;
                    let low = key.saturating_sub(reach / 2);
                    assert!(overlaps(&filter, low, key.saturating_add(reach / 3)), "{key} {width}");
                }
            }
        }
    }
}

#[test]
fn one_key_is_not_lost() {
    for key in [0, 1, 1 << 63, u64::MAX] {
        let filter = filter(3, 14.0, &numbers(vec![key]));
        assert!(filter.may_contain(&key.to_be_bytes()));
        assert!(overlaps(&filter, 0, u64::MAX) && overlaps(&filter, key, key));
    }
}

#[test]
fn half_of_the_bits_are_set() {
    let keys = numbers((0..20_000).map(mix).collect());
    for (probes, bits_per_key) in [(1, 8.0), (2, 14.0), (3, 14.0), (3, 30.0)] {
        let filter = filter(probes, bits_per_key, &keys);
        let payload = &filter.bytes[..filter.bytes.len() - 14];
        let ones: u32 = payload.iter().map(|byte| byte.count_ones()).sum();
        let share = f64::from(ones) / (payload.len() * 8) as f64;
        assert!((0.4..0.6).contains(&share), "{probes}, {bits_per_key}: {share}");
        let bits_had = filter.size_bytes() as f64 * 8.0 / 20_000.0;
        assert!((bits_had - bits_per_key).abs() < 0.05, "{bits_had}");
    }
}

/// All levels of an absent number must be present by chance. Lines differ in their share of set
/// bits, as in a blocked Bloom filter, which costs up to a third.
#[test]
fn a_point_must_be_in_every_level_that_is_stored() {
    const QUESTIONS: u64 = 200_000;
    let keys = numbers((0..20_000).map(mix).collect());
    for (probes, bits_per_key) in [(1, 10.0), (2, 10.0), (3, 12.0)] {
        let filter = filter(probes, bits_per_key, &keys);
        let marks = u64::from(filter.levels() * u32::from(probes)) as f64;
        let share = 1.0 - (-marks / bits_per_key).exp();
        let expected = share.powf(marks);
        let absent = (20_000..20_000 + QUESTIONS).map(mix);
        let found = absent.filter(|n| filter.may_contain(&n.to_be_bytes())).count();
        let measured = found as f64 / QUESTIONS as f64;
        let noise = 5.0 * (expected / QUESTIONS as f64).sqrt();
        let bounds = expected * 0.9 - noise..expected * 1.35 + noise;
        assert!(bounds.contains(&measured), "{probes}: {measured}, expected {expected}");
    }
}

#[test]
fn a_group_of_levels_is_one_line_a_probe() {
    let keys = numbers((0..20_000).map(mix).collect());
    let image = AlignedBytes::from_slice(&image(2, 14.0, &keys));
    let filter = Rencoder::read(image).expect("whole");
    assert!((2..=GROUP_LEVELS).contains(&filter.levels()), "one group: {}", filter.levels());
    let mut counter = LineCounter::default();
    for key in &keys[..1000] {
        assert!(filter.may_contain_traced(&HashedKey::new(key), &mut counter));
        assert!(counter.take() <= 2);
    }
}

#[test]
fn trees_fill_all_of_a_line() {
    let mut met = [0u32; LINE_BITS];
    for root in 0..2000 {
        let place = TreePlace::new(group_hash(0, root), 0, 1);
        for node in [2, 3, 300] {
            let (at, bit) = place.of(node);
            met[at * 8 + bit as usize] += 1;
        }
        let mut own: Vec<_> = (0..LINE_BITS).map(|node| place.of(node)).collect();
        own.sort_unstable();
        own.dedup();
        assert_eq!(own.len(), LINE_BITS, "each node has a bit of its own");
    }
    assert!(met.iter().all(|&times| (1..40).contains(&times)), "{met:?}");
}

#[test]
fn long_keys_are_told_apart_by_their_whole_hash() {
    let key = |n: u64, last: u64| format!("{:08}/{:08}", n / 10, n * 7 + last).into_bytes();
    let keys: Vec<Vec<u8>> = (0..10_000).map(|n| key(n, 0)).collect();
    let filter = filter(3, 16.0, &keys);
    let maybe = (0..10_000).filter(|&n| filter.may_contain(&key(n, 1))).count();
    assert!((100..700).contains(&maybe), "five or six places for each key: {maybe}");
}
