//! Sub-filters together and alone: rates, cache lines, damage.

use trommel_filters::{LineCounter, SubFilter};

use super::*;

const KEYS: u64 = 20_000;
const QUERIES: u64 = 100_000;

fn image_of(keys: u64, bits_per_key: f64, sub_filters: Option<u8>) -> Vec<u8> {
    let mut builder = ElasticBuilder::new(bits_per_key, sub_filters);
    (0..keys).for_each(|key| builder.add(&key.to_be_bytes()).expect("any order will do"));
    builder.finish()
}

/// All sub-filters, each read alone.
fn sub_filters_of(image: &[u8]) -> Vec<Box<dyn SubFilter>> {
    let tail = &image[image.len().saturating_sub(ElasticDirectory::SIZE_MAX)..];
    let directory = ElasticDirectory::read(tail, image.len() as u64).expect("whole");
    let sub_filter = |number: u8| {
        let range = directory.range(number);
        let bytes = image[range.start as usize..range.end as usize].to_vec();
        directory.part(number, bytes).expect("whole")
    };
    (0..directory.count()).map(sub_filter).collect()
}

/// The share of absent keys that no sub-filter refutes.
fn measured_rate(sub_filters: &[Box<dyn SubFilter>]) -> f64 {
    let maybe = |key: &u64| {
        let key = key.to_be_bytes();
        let hashed = HashedKey::new(&key);
        sub_filters.iter().all(|sub_filter| sub_filter.may_contain(&hashed))
    };
    (KEYS..KEYS + QUERIES).filter(maybe).count() as f64 / QUERIES as f64
}

fn agree(measured: f64, expected: f64) -> bool {
    let noise = 5.0 * (expected / QUERIES as f64).sqrt();
    (measured - expected).abs() < 0.1 * expected + noise
}

/// The paper's section 3.1: n sub-filters have the rate of one filter with all their bits,
/// (0.6185^(b/n))^n = 0.6185^b.
#[test]
fn sub_filters_together_are_one_filter_of_their_bits() {
    for (sub_filters, sub_filter_bits) in
        [(8u8, std::f64::consts::LOG2_E), (4, 2.885), (3, 4.328), (6, 2.885)]
    {
        let all = sub_filters_of(&image_of(
            KEYS,
            f64::from(sub_filters) * sub_filter_bits,
            Some(sub_filters),
        ));
        for count in 1..=usize::from(sub_filters) {
            let measured = measured_rate(&all[..count]);
            let one_filter = 0.6185f64.powf(sub_filter_bits * count as f64);
            assert!(
                agree(measured, one_filter),
                "{count} of {sub_filter_bits}: {measured}, {one_filter}"
            );
        }
        // Any sub-filters will do.
        let others = measured_rate(&all[1..3]);
        assert!(agree(others, 0.6185f64.powf(2.0 * sub_filter_bits)), "{others}");
    }
}

#[test]
fn the_usual_sub_filters_waste_few_bits() {
    for bits_per_key in [1.0, 2.0, 4.0, 8.0, 11.5, 12.0, 16.0] {
        let builder = ElasticBuilder::new(bits_per_key, None);
        let promised = builder.expected_rate(builder.sub_filters);
        let measured = measured_rate(&sub_filters_of(&image_of(KEYS, bits_per_key, None)));
        assert!(agree(measured, promised), "{bits_per_key}: {measured}, promised {promised}");
        let bloom = 0.6185f64.powf(bits_per_key);
        assert!(promised < 1.12 * bloom, "{bits_per_key}: {promised}, one filter {bloom}");
    }
}

#[test]
fn all_sub_filters_answer_as_the_whole_does() {
    let image = image_of(3000, 9.0, None);
    let sub_filters = sub_filters_of(&image);
    let whole = Elastic::read(&image[..]).expect("whole");
    assert_eq!(whole.directory().count(), 6);
    assert_eq!(whole.directory().key_count(), 3000);
    for key in 0..9000u64 {
        let key = key.to_be_bytes();
        let hashed = HashedKey::new(&key);
        let by_sub_filters = sub_filters.iter().all(|sub_filter| sub_filter.may_contain(&hashed));
        assert_eq!(whole.may_contain_hashed(&hashed), by_sub_filters);
        assert!(by_sub_filters || u64::from_be_bytes(key) >= 3000);
    }
}

#[test]
fn the_directory_promises_the_rate_of_a_sub_filter() {
    for bits_per_key in [8.0, 11.5, 24.0] {
        let image = image_of(KEYS, bits_per_key, Some(8));
        let directory = Elastic::read(&image[..]).expect("whole").directory().clone();
        let sub_filters = sub_filters_of(&image);
        for sub_filter in sub_filters.chunks(1) {
            let (measured, promised) = (measured_rate(sub_filter), directory.part_rate());
            assert!(agree(measured, promised), "{measured}, promised {promised}");
        }
    }
}

#[test]
fn a_sub_filter_of_one_probe_reads_one_cache_line() {
    let sub_filter = &sub_filters_of(&image_of(5000, 11.5, Some(8)))[3];
    let mut counter = LineCounter::default();
    for key in 0..10_000u64 {
        sub_filter.may_contain_traced(&HashedKey::new(&key.to_be_bytes()), &mut counter);
        assert_eq!(counter.take(), 1);
    }
}

#[test]
fn a_damaged_sub_filter_is_told_and_the_others_are_not_touched_by_it() {
    let image = image_of(500, 11.5, Some(8));
    let directory = Elastic::read(&image[..]).expect("whole").directory().clone();
    for number in 0..8 {
        let range = directory.range(number);
        let bytes = image[range.start as usize..range.end as usize].to_vec();
        for bit in (0..bytes.len() * 8).step_by(7) {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            directory.part(number, damaged).err().expect("a flipped bit");
        }
        directory.part(number, bytes[1..].to_vec()).err().expect("too short");
        directory.part((number + 1) % 8, bytes.clone()).err().expect("another sub-filter");
        assert_eq!(directory.part(number, bytes).expect("whole").number(), number);
    }
}

#[test]
fn no_keys_no_bytes_no_candidates() {
    let image = image_of(0, 4.0, None);
    assert!(image.len() <= ElasticDirectory::SIZE_MAX);
    for sub_filter in sub_filters_of(&image) {
        assert_eq!(sub_filter.size_bytes(), 0);
        assert!(!sub_filter.may_contain(&HashedKey::new(b"drum")));
    }
    let directory = Elastic::read(&image[..]).expect("whole").directory().clone();
    assert_eq!((directory.part_rate(), directory.part_bytes()), (0.0, 0));
}

#[test]
fn a_directory_that_lies_is_refused() {
    let directory = |keys, sub_filter_bytes: u64, probes| ElasticDirectory {
        checksums: vec![0; 2].into(),
        sub_filter_bytes,
        keys,
        probes,
    };
    let read = |directory: ElasticDirectory, sub_filters: usize| {
        let image = directory.encode_into(vec![0; sub_filters]);
        ElasticDirectory::read(&image, image.len() as u64)
    };
    read(directory(1, 8, 1), 16).expect("sound");
    read(directory(1, 8, 0), 16).expect_err("no probes");
    read(directory(1, 8, 17), 16).expect_err("too many probes");
    read(directory(1, 0, 1), 0).expect_err("a key without bits");
    read(directory(1, 8, 1), 24).expect_err("bytes of no sub-filter");
    read(directory(1, u64::MAX / 2 + 1, 1), 0).expect_err("more bytes than there can be");
}
