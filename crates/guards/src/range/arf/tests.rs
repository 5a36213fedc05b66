//! Adaptive range filter: trained queries are answered, no key is lost, damage is harmless.

use trommel_filters::TableFilterBuilder;
use trommel_filters::hash::mix;

use super::*;

fn numbers(mut numbers: Vec<u64>) -> Vec<u64> {
    numbers.sort_unstable();
    numbers
}

fn image(bits_per_key: f64, keys: &[u64], questions: &[(u64, u64)]) -> Vec<u8> {
    let mut builder = ArfBuilder::new(bits_per_key);
    keys.iter().for_each(|key| builder.add(&key.to_be_bytes()).expect("sorted"));
    for (low, high) in questions {
        let (low, high) = (low.to_be_bytes(), high.to_be_bytes());
        builder.train(&KeyRange::new(&low, Some(&high)).expect("in order"));
    }
    builder.finish()
}

fn overlaps(filter: &Arf<Vec<u8>>, (low, high): (u64, u64)) -> bool {
    let (low, high) = (low.to_be_bytes(), high.to_be_bytes());
    filter.may_overlap(&KeyRange::new(&low, Some(&high)).expect("in order"))
}

fn share_of_maybe(filter: &Arf<Vec<u8>>, questions: &[(u64, u64)]) -> f64 {
    let maybe = questions.iter().filter(|&&question| overlaps(filter, question)).count();
    maybe as f64 / questions.len() as f64
}

/// Ranges without keys, some of them repeated.
fn empty_questions(keys: &[u64], seed: u64, width: u64) -> Vec<(u64, u64)> {
    let drawn = (0..20_000).map(|n| mix(seed + (n * n) % 7_001));
    let ranges = drawn.map(|low| (low, low.saturating_add(width)));
    let is_empty = |&(low, high): &(u64, u64)| {
        keys.get(keys.partition_point(|&key| key < low)).is_none_or(|&key| key > high)
    };
    ranges.filter(is_empty).collect()
}

#[test]
fn what_was_trained_is_answered() {
    let keys = numbers((0..5000).map(mix).collect());
    let questions = empty_questions(&keys, 1 << 20, 1 << 40);
    let filter = Arf::read(image(30.0, &keys, &questions)).expect("whole");
    assert_eq!(share_of_maybe(&filter, &questions), 0.0);
    assert!(keys.iter().all(|key| filter.may_contain(&key.to_be_bytes())));
}

#[test]
fn training_helps_where_memory_is_short() {
    let keys = numbers((0..5000).map(mix).collect());
    let questions = empty_questions(&keys, 1 << 20, 1 << 40);
    let untrained = Arf::read(image(5.0, &keys, &[])).expect("whole");
    let trained = Arf::read(image(5.0, &keys, &questions)).expect("whole");
    let (before, after) =
        (share_of_maybe(&untrained, &questions), share_of_maybe(&trained, &questions));
    assert!(after < before * 0.7, "{before} untrained, {after} trained");
}

#[test]
fn memory_is_what_was_asked_for() {
    let keys = numbers((0..5000).map(mix).collect());
    for bits_per_key in [2.0, 8.0, 14.0, 20.0] {
        let size = image(bits_per_key, &keys, &[]).len() as f64 * 8.0 / 5000.0;
        assert!((bits_per_key - 0.2..bits_per_key + 0.1).contains(&size), "{size}");
    }
}

#[test]
fn no_key_is_lost_at_any_size() {
    for keys in [vec![0], vec![u64::MAX], vec![0, u64::MAX], (500..1500).collect()] {
        for bits_per_key in [0.0, 3.0, 14.0, 200.0] {
            let filter = Arf::read(image(bits_per_key, &keys, &[(3, 400)])).expect("whole");
            for &key in &keys {
                assert!(filter.may_contain(&key.to_be_bytes()), "{key}");
                for reach in [1, 100, 1 << 40] {
                    assert!(overlaps(&filter, (key.saturating_sub(reach), key)));
                    assert!(overlaps(&filter, (key, key.saturating_add(reach))));
                }
            }
        }
    }
}

#[test]
fn the_worst_trees_are_walked_to_their_end() {
    // The longest possible walk: neighbours at both ends of all halves, and an empty range between
    // them.
    let keys = vec![(1 << 63) - 1, 1 << 63, u64::MAX];
    let filter = Arf::read(image(4000.0, &keys, &[])).expect("whole");
    assert!(!overlaps(&filter, ((1 << 63) + 1, u64::MAX - 1)));
    assert!(!overlaps(&filter, (0, (1 << 63) - 2)));
}

/// With arbitrary nodes, a walk still ends: children may be anywhere, even the node itself.
#[test]
fn rubbish_in_the_nodes_ends_too() {
    let keys = numbers((0..500).map(mix).collect());
    let whole = image(14.0, &keys, &[]);
    let payload = whole.len() - 16;
    for seed in 0..40 {
        let mut damaged = whole.clone();
        for (at, byte) in damaged[..payload].iter_mut().enumerate() {
            *byte = match seed {
                0 => 0xff,
                1 => 0,
                2 => 0xaa,
                _ => mix(seed << 32 | at as u64) as u8,
            };
        }
        let filter = Arf::read(damaged).expect("the structure is whole");
        overlaps(&filter, (0, u64::MAX));
        keys.iter().for_each(|&key| {
            overlaps(&filter, (key, key));
        });
    }
}
