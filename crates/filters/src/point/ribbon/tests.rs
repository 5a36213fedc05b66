//! Ribbon filters: rates, sizes, hashes of absent keys.

use super::*;
use crate::base::hash::{mix, scattered};

fn filter_of(keys: u64, bits_per_key: f64) -> Ribbon<Vec<u8>> {
    let mut builder = RibbonBuilder::new(bits_per_key);
    (0..keys).for_each(|key| builder.add_hash(scattered(key)));
    Ribbon::read(builder.finish()).expect("whole")
}

#[test]
fn the_rate_is_two_to_the_columns() {
    const KEYS: u64 = 60_000;
    const QUERIES: u64 = 1 << 20;
    for bits_per_key in [1.03, 4.0, 5.2, 8.4, 10.0, 12.7, 16.0] {
        let filter = filter_of(KEYS, bits_per_key);
        assert!((0..KEYS).all(|key| filter.may_contain_hash(scattered(key))));
        let absent = KEYS..KEYS + QUERIES;
        let found = absent.filter(|&key| filter.may_contain_hash(scattered(key))).count();
        let measured = found as f64 / QUERIES as f64;
        let theory = 0.5f64.powf(filter.columns());
        let noise = 5.0 * (theory / QUERIES as f64).sqrt();
        let bounds = theory * 0.9 - noise..theory * 1.1 + noise;
        assert!(bounds.contains(&measured), "{bits_per_key}: {measured}, theory {theory}");
        let expected = RibbonBuilder::expected_rate(bits_per_key);
        assert!((0.9..1.1).contains(&(expected / theory)), "{expected}, theory {theory}");
        let size = filter.size_bytes() as f64 * 8.0 / KEYS as f64;
        assert!((bits_per_key * 0.99..bits_per_key + 0.01).contains(&size), "{size} bits per key");
    }
}

/// Of 2,400 filters one once let 43 % through, and one in two hundred somewhat more than it should.
/// By chance more keys began in a stretch than it had slots.
#[test]
fn no_filter_is_crowded() {
    const KEYS: u64 = 5_000;
    const QUERIES: u64 = 20_000;
    for seed in [257, 173, 0, 1] {
        let hash = |nth: u64| mix(mix(seed + 77) ^ nth);
        let mut builder = RibbonBuilder::new(8.5);
        (0..KEYS).for_each(|nth| builder.add_hash(hash(nth)));
        let filter = Ribbon::read(builder.finish()).expect("whole");
        assert!((0..KEYS).all(|nth| filter.may_contain_hash(hash(nth))), "seed {seed}");
        let absent = (1 << 40)..(1 << 40) + QUERIES;
        let found = absent.filter(|&nth| filter.may_contain_hash(hash(nth))).count();
        let expected = RibbonBuilder::expected_rate(8.5) * QUERIES as f64;
        assert!((found as f64) < expected * 2.0, "seed {seed}: {found}, expected {expected}");
    }
}

/// On 32-bit targets the number of slots overflowed.
#[test]
fn blocks_whose_slots_cannot_be_counted_are_refused() {
    let columns = |blocks| Columns { blocks, wide: 0, columns: 0 };
    assert_eq!(columns(77).size_bytes(), Some(0));
    assert_eq!(columns(usize::MAX / WIDTH + 1).size_bytes(), None);
}

#[test]
fn many_sizes_lose_nothing() {
    for keys in (0..300).chain([1000, 5000]) {
        let filter = filter_of(keys, 10.0);
        assert!((0..keys).all(|key| filter.may_contain_hash(scattered(key))), "{keys} keys");
        let absent = keys..keys + 2000;
        let found = absent.filter(|&key| filter.may_contain_hash(scattered(key))).count();
        assert!(found < 200, "{found} of 2000 that are not among {keys}");
    }
}

#[test]
fn equal_hashes_are_one_and_any_hashes_end() {
    for step in [0, 1, 1 << 30, 1 << 50] {
        let hashes = || (0..3000u64).map(move |n| n.wrapping_mul(step) % 0xffff_ffff_ffff);
        let mut builder = RibbonBuilder::new(10.0);
        hashes().chain(hashes()).for_each(|hash| builder.add_hash(hash));
        let filter = Ribbon::read(builder.finish()).expect("whole");
        assert!(hashes().all(|hash| filter.may_contain_hash(hash)), "step {step}");
    }
}

#[test]
fn columns_are_what_the_bits_are_good_for() {
    for bits in [0.5, 1.0, 8.0, 20.0] {
        let columns = columns_for(bits);
        assert!((columns * slots_per_key(columns) - bits).abs() < 1e-9, "{columns} of {bits}");
    }
    assert_eq!(columns_for(1000.0), COLUMNS_MAX as f64);
}

#[test]
fn the_last_start_leaves_room_for_a_row() {
    for blocks in [1, 2, 77] {
        let row = Row::of(u64::MAX, blocks);
        assert_eq!(row.start + WIDTH, blocks * WIDTH);
        assert_eq!(Row::of(0, blocks).start, 0);
    }
}
