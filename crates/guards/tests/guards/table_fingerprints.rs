//! `snarf`, `cell`, `gap` and `coded`: sizes, rates, lower bounds and counts; what the laws do not
//! say.
//! ```text
//! size     the image is what was asked for, within two percent;
//!          few keys take little more than their bits
//! rate     two filters of different bits: each bit halves it; all widths alike
//! ```
//! Seeds are fixed. `examples/table_filters.rs` prints the figures of larger sets.

use trommel_filters::{
    AlignedBytes, FilterKind, FilterOptions, KeyRange, LowerBound, UpperBound, read_filter,
};
use trommel_guards::kinds;

type Filter = Box<dyn trommel_filters::AnyFilter>;

const KINDS: [&'static dyn FilterKind; 4] = [kinds::SNARF, kinds::CELL, kinds::GAP, kinds::CODED];
const KEYS: usize = 120_000;
const QUERIES: usize = 40_000;

/// A generator: splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }
}

fn uniform(random: &mut Random) -> u64 {
    random.next() >> 14
}

/// Forty clusters whose widths differ by a factor of a million.
fn clustered(random: &mut Random) -> u64 {
    let cluster = random.next() % 40;
    let centre = Random(cluster).next() >> 14;
    centre + (random.next() >> (42 - cluster / 2) >> (random.next() % 8))
}

fn keys_of(draw: fn(&mut Random) -> u64, count: usize) -> Vec<u64> {
    let mut random = Random(1);
    let mut keys: Vec<u64> = (0..count).map(|_| draw(&mut random)).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

fn filter_of(kind: &'static dyn FilterKind, bits_per_key: f64, keys: &[u64]) -> Filter {
    let mut builder = FilterOptions::new(kind, bits_per_key).builder();
    keys.iter().for_each(|key| builder.add(&key.to_be_bytes()).expect("in order"));
    read_filter(AlignedBytes::from_slice(&builder.finish()), &kinds::TABLE_FILTERS)
        .expect("just built")
}

/// The share of empty ranges of so many numbers, drawn as the keys are, for which the filter says
/// "maybe".
fn rate(filter: &Filter, keys: &[u64], draw: fn(&mut Random) -> u64, width: u64) -> f64 {
    let mut random = Random(99);
    let (mut asked, mut positives) = (0, 0);
    while asked < QUERIES {
        let key = draw(&mut random);
        let next = keys.partition_point(|&other| other < key);
        if keys.get(next).is_some_and(|&other| other < key + width) {
            continue;
        }
        let (low, high) = (key.to_be_bytes(), (key + width - 1).to_be_bytes());
        let range = KeyRange::new(&low, Some(&high)).expect("not upside down");
        asked += 1;
        positives += usize::from(match width {
            1 => filter.may_contain(&low),
            _ => filter.may_overlap(&range),
        });
    }
    positives as f64 / asked as f64
}

#[test]
fn the_image_takes_the_bits_that_were_asked_for() {
    for draw in [uniform, clustered] {
        let keys = keys_of(draw, KEYS);
        for kind in KINDS {
            for bits in [10.0, 12.5, 16.0] {
                let size = filter_of(kind, bits, &keys).size_bytes() as f64;
                let had = 8.0 * size / keys.len() as f64;
                let near = bits * 0.98..bits * 1.02;
                assert!(near.contains(&had), "{}: {had} bits per key, not {bits}", kind.name());
            }
        }
    }
}

#[test]
fn few_keys_take_little_more_than_their_bits() {
    for kind in KINDS {
        for count in [1, 10, 100, 300, 1000] {
            let keys = keys_of(uniform, count);
            let size = filter_of(kind, 12.0, &keys).size_bytes();
            let most = count * 12 / 8 + 200;
            assert!(size < most, "{}: {size} bytes for {count} keys", kind.name());
        }
        assert!(filter_of(kind, 12.0, &[]).size_bytes() < 64);
    }
}

/// Of uniform keys; and no more than twice as many where gaps differ by a factor of a million.
#[test]
fn each_bit_halves_the_rate_whatever_the_width() {
    let (even, uneven) = (keys_of(uniform, KEYS), keys_of(clustered, KEYS));
    for (kind, bits, promised) in [
        (kinds::SNARF, 10.0, 0.0081),
        (kinds::SNARF, 12.0, 0.00215),
        (kinds::CELL, 10.0, 0.0518),
        (kinds::CELL, 12.0, 0.0130),
        (kinds::GAP, 10.0, 0.0265),
        (kinds::GAP, 12.0, 0.0065),
        (kinds::CODED, 10.0, 0.0094),
        (kinds::CODED, 12.0, 0.0023),
    ] {
        let filter = filter_of(kind, bits, &even);
        for width in [1, 1 << 5, 1 << 10] {
            let rate = rate(&filter, &even, uniform, width);
            let noise = 5.0 * (promised / QUERIES as f64).sqrt();
            let bounds = promised * 0.9 - noise..promised * 1.1 + noise;
            assert!(bounds.contains(&rate), "{}, {bits} bits, {width}: {rate}", kind.name());
        }
        if kind != kinds::SNARF {
            let filter = filter_of(kind, bits, &uneven);
            let rate = rate(&filter, &uneven, clustered, 1 << 5);
            assert!(rate < 2.0 * promised, "{}, {bits} bits, uneven: {rate}", kind.name());
        }
    }
}

/// A key's first eight bytes as a number.
fn number(key: &[u8]) -> u64 {
    let mut number = [0; 8];
    number[..key.len().min(8)].copy_from_slice(&key[..key.len().min(8)]);
    u64::from_be_bytes(number)
}

#[test]
fn lower_bounds_are_near_the_next_key() {
    let keys = keys_of(uniform, 50_000);
    for kind in KINDS {
        let filter = filter_of(kind, 14.0, &keys);
        let mut near = 0;
        for pair in keys.windows(2) {
            let (asked, next) = (pair[0] + (pair[1] - pair[0]) / 2, pair[1]);
            match filter.lower_bound(&asked.to_be_bytes()) {
                Some(LowerBound::From { key, unsure }) => {
                    let bound = number(&key);
                    assert!(asked <= bound && bound <= next, "{}: {bound}", kind.name());
                    near += usize::from(!unsure && next - bound <= (next - asked) / 4);
                }
                other => panic!("{}: {other:?} before {next}", kind.name()),
            }
        }
        assert!(near > keys.len() * 9 / 10, "{}: {near} of {}", kind.name(), keys.len());
        let after = (keys[keys.len() - 1] + (1 << 40)).to_be_bytes();
        assert_eq!(filter.lower_bound(&after), Some(LowerBound::End), "{}", kind.name());
    }
}

#[test]
fn upper_bounds_are_near_the_key_before() {
    let keys = keys_of(uniform, 50_000);
    for kind in KINDS {
        let filter = filter_of(kind, 14.0, &keys);
        let mut near = 0;
        for pair in keys.windows(2) {
            let (asked, last) = (pair[0] + (pair[1] - pair[0]) / 2, pair[0]);
            match filter.upper_bound(&asked.to_be_bytes()) {
                Some(UpperBound::Before { end, unsure }) => {
                    assert!(end[..] > last.to_be_bytes()[..], "{}: {end:?}", kind.name());
                    assert!(number(&end) <= asked + 1, "{}: {end:?}", kind.name());
                    near += usize::from(!unsure && number(&end) - last <= (asked - last) / 4 + 1);
                }
                other => panic!("{}: {other:?} behind {last}", kind.name()),
            }
        }
        assert!(near > keys.len() * 9 / 10, "{}: {near} of {}", kind.name(), keys.len());
        let before = (keys[0] / 2).to_be_bytes();
        assert_eq!(filter.upper_bound(&before), Some(UpperBound::Start), "{}", kind.name());
    }
}

/// Keys that differ only behind what fingerprints look at, with zeros up to there, and nothing but
/// ones before a key.
#[test]
fn ends_lie_behind_what_fingerprints_do_not_look_at() {
    let drums = |tail: &[u8]| [&vec![b'd'; 65_530][..], &[0; 6], tail].concat();
    let ones = |tail: &[u8]| [&[0xff; 30][..], tail].concat();
    let keys = [drums(&[]), drums(&[0xff; 9]), ones(&[]), ones(&[0xff; 3])];
    for kind in KINDS {
        let mut builder = FilterOptions::new(kind, 12.0).builder();
        keys.iter().for_each(|key| builder.add(key).expect("in order"));
        let filter =
            read_filter(AlignedBytes::from_slice(&builder.finish()), &kinds::TABLE_FILTERS)
                .expect("just built");
        for asked in [drums(&[]), drums(&[0xff; 12]), vec![b'e'], ones(&[1]), ones(&[0xff; 8])] {
            let last = keys.iter().rfind(|key| **key <= asked).expect("the first at least");
            match filter.upper_bound(&asked) {
                Some(UpperBound::Before { end, .. }) => {
                    assert!(end > *last && end <= [&asked[..], &[0]].concat(), "{}", kind.name());
                }
                other => panic!("{}: {other:?}", kind.name()),
            }
        }
    }
}

#[test]
fn counts_know_all_but_the_ends() {
    let keys = keys_of(uniform, 50_000);
    let mut random = Random(3);
    for kind in KINDS {
        let filter = filter_of(kind, 14.0, &keys);
        for _ in 0..500 {
            let ends = [0, 0].map(|_| uniform(&mut random));
            let (low, high) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
            let truth =
                keys.partition_point(|&key| key <= high) - keys.partition_point(|&key| key < low);
            let (low, high) = (low.to_be_bytes(), high.to_be_bytes());
            let range = KeyRange::new(&low, Some(&high)).expect("not upside down");
            let count = filter.count(&range).expect("it counts");
            let bounds = count.least..=count.most;
            assert!(bounds.contains(&(truth as u64)), "{}: {count:?}, {truth}", kind.name());
            assert!(count.most - count.least <= 4, "{}: {count:?}", kind.name());
        }
    }
}

#[test]
fn keys_longer_than_fingerprints_look_at_are_kept_and_counted() {
    let long = |tail: &str| [&vec![b'k'; 70_000][..], tail.as_bytes()].concat();
    let keys = ["", "a", "b", "c"].map(long);
    for kind in KINDS {
        let mut builder = FilterOptions::new(kind, 12.0).builder();
        builder.add(b"drum").expect("in order");
        for key in &keys {
            builder.add(key).expect("in order");
            builder.add(key).expect("the same again");
        }
        let refused = builder.add(&keys[1]).expect_err("out of order");
        assert_eq!((&refused.last, &refused.key), (&keys[3], &keys[1]));
        builder.add(b"tin").expect("in order");
        let filter =
            read_filter(AlignedBytes::from_slice(&builder.finish()), &kinds::TABLE_FILTERS)
                .expect("just built");
        assert!(keys.iter().all(|key| filter.may_contain(key)), "{}", kind.name());
        let count = filter.count(&KeyRange::all()).expect("it counts");
        assert_eq!((count.least, count.most), (6, 6), "{}", kind.name());
        let range = KeyRange::new(&keys[1], Some(&keys[2])).expect("not upside down");
        let count = filter.count(&range).expect("it counts");
        assert!(count.least <= 2 && count.most >= 2, "{}: {count:?}", kind.name());
        assert!(filter.may_overlap(&range));
    }
}

#[test]
fn a_key_that_is_refused_changes_nothing() {
    let keys: [&[u8]; 6] = [b"drum", b"drum\0", b"drum\0\0", b"sieve", b"tin\0", b"tin\0\0"];
    for kind in KINDS {
        let build = |disturb: bool| {
            let mut builder = FilterOptions::new(kind, 12.0).builder();
            for pair in [&[&b""[..]], &keys[..]].concat().windows(2) {
                builder.add(pair[1]).expect("in order");
                if disturb && !pair[0].is_empty() {
                    let refused = builder.add(pair[0]).expect_err("the key before");
                    assert_eq!((&refused.last[..], &refused.key[..]), (pair[1], pair[0]));
                }
            }
            builder.finish()
        };
        assert_eq!(build(true), build(false), "{}", kind.name());
    }
}
