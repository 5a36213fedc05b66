//! Many keys or ranges at once: the same codes as for each alone.
//! ```text
//! keys of a tree, their neighbours, keys of nowhere --shuffled,
//!     in batches of any length--> codes = those of lone probes
//! ranges from one of them to another, far and near --^
//! ```
//! Invariant: every question of a batch is visited once, in order.

use crate::twin::{
    Key, Random, Schedule, Twin, answer, deal, neighbours, number_key, numbers, options, sorted,
    tree_with,
};
use trommel_filters::{Codes, Fingerprints, GrfOptions, KeyRange, Part, Query};

/// Around the length at which a batch is full, and far from it.
const LENGTHS: [usize; 6] = [0, 1, 15, 16, 17, 100];

fn assert_same(codes: &Codes, lone: &Codes, key: &[u8]) {
    assert_eq!((codes.is_all(), codes.as_slice()), (lone.is_all(), lone.as_slice()), "{key:?}");
}

/// Asks for all keys, so many at a time.
pub(crate) fn assert_many(part: &Part, keys: &[&[u8]], length: usize) {
    for batch in keys.chunks(length.max(1)) {
        let batch = &batch[..length.min(batch.len())];
        let mut visited = 0;
        part.candidates_many(batch, |place, codes| {
            assert_eq!(place, visited, "out of order");
            assert_same(codes, &answer(part, &Query::Point(batch[place])), batch[place]);
            visited += 1;
        });
        assert_eq!(visited, batch.len());
    }
}

/// Asks for a range from each key to the next one, and for some without an end, so many at a time.
fn assert_many_ranges(part: &Part, keys: &[&[u8]], length: usize) {
    let ranges = keys.windows(2).enumerate().map(|(place, pair)| {
        let (lower, upper) = (pair[0].min(pair[1]), pair[0].max(pair[1]));
        let upper = (place % 7 != 0).then_some(upper);
        (part, KeyRange::new(lower, upper).expect("in order"))
    });
    let ranges: Vec<_> = ranges.collect();
    for batch in ranges.chunks(length.max(1)) {
        let batch = &batch[..length.min(batch.len())];
        let mut visited = 0;
        Part::candidates_of_ranges(batch, |place, codes| {
            assert_eq!(place, visited, "out of order");
            let range = batch[place].1;
            assert_same(codes, &answer(part, &Query::Range(range)), range.lower());
            visited += 1;
        });
        assert_eq!(visited, batch.len());
    }
}

fn shuffle(keys: &mut [&[u8]], random: &mut Random) {
    for place in (1..keys.len()).rev() {
        keys.swap(place, random.below(place as u64 + 1) as usize);
    }
}

/// Keys of the twin and beside them, others, and those at the ends of the key space, in no order.
fn assert_batches(part: &Part, twin: &Twin, others: &[Key]) {
    let near: Vec<Key> = twin.keys().step_by(3).flat_map(|key| neighbours(key)).collect();
    let ends = [vec![], vec![0], vec![0; 20], vec![0xff; 8], vec![0xff; 30]];
    let all = twin.keys().chain(&near).chain(others).chain(&ends);
    let mut keys: Vec<&[u8]> = all.map(Vec::as_slice).collect();
    shuffle(&mut keys, &mut Random(23));
    for length in LENGTHS {
        assert_many(part, &keys, length);
        assert_many_ranges(part, &keys, length);
    }
    // Neighbours: most of these ranges lie in one bucket, or are empty.
    keys.sort_unstable();
    assert_many_ranges(part, &keys, 100);
}

/// Whatever the fingerprints, and however old the entries of the overlay.
fn assert_all_kinds_in_batches(keys: &[Key], others: &[Key]) {
    let (base, flushes) = deal(keys, 12, 5);
    for fingerprints in Fingerprints::ALL {
        for (schedule, point_bits) in [(Schedule::NoMerges, 3), (Schedule::LazyLeveling, 0)] {
            let options = GrfOptions { fingerprints, point_bits, ..options(12.0) };
            for (base, flushes) in [(&base, &flushes[..]), (&base, &[]), (&vec![], &flushes)] {
                let (part, twin) = tree_with(&options, base, flushes, schedule);
                assert_batches(&part, &twin, others);
            }
        }
    }
}

#[test]
fn an_empty_part_answers_batches() {
    let part = Part::empty(&options(12.0));
    for length in LENGTHS {
        assert_many(&part, &vec![&b"drum"[..]; 33], length);
    }
}

#[test]
fn a_key_may_be_asked_for_twice() {
    let (part, _) = tree_with(
        &options(12.0),
        &numbers(900, || 7 << 40),
        &[vec![number_key(7 << 40)]],
        Schedule::NoMerges,
    );
    let key = number_key(7 << 40);
    let mut found = 0;
    part.candidates_many(&[&key[..]; 40], |_, codes| {
        assert_eq!(codes.as_slice().len(), 2, "{codes:?}");
        found += 1;
    });
    assert_eq!(found, 40);
}

#[test]
fn keys_and_ranges_of_several_parts_in_one_batch() {
    let mut random = Random(37);
    let trees: Vec<(Part, Twin)> = (0..3)
        .map(|_| {
            let keys = numbers(2000, || random.next() >> 20);
            let (base, flushes) = deal(&keys, 6, 4);
            tree_with(&options(12.0), &base, &flushes, Schedule::LazyLeveling)
        })
        .collect();
    let mut asked: Vec<(&Part, &[u8])> = Vec::new();
    for place in 0..500 {
        let (part, _) = &trees[place % 3];
        let (_, other) = &trees[random.below(3) as usize];
        let key = other.keys().nth(random.below(other.len() as u64) as usize).expect("a key");
        asked.push((part, key));
    }
    let mut visited = 0;
    Part::candidates_of_parts(&asked, |place, codes| {
        assert_eq!(place, visited, "out of order");
        let (part, key) = asked[place];
        assert_same(codes, &answer(part, &Query::Point(key)), key);
        visited += 1;
    });
    assert_eq!(visited, asked.len());
    let ranges: Vec<_> = asked
        .windows(2)
        .map(|pair| {
            let (lower, upper) = (pair[0].1.min(pair[1].1), pair[0].1.max(pair[1].1));
            (pair[0].0, KeyRange::new(lower, Some(upper)).expect("in order"))
        })
        .collect();
    visited = 0;
    Part::candidates_of_ranges(&ranges, |place, codes| {
        assert_eq!(place, visited, "out of order");
        let (part, range) = ranges[place];
        assert_same(codes, &answer(part, &Query::Range(range)), range.lower());
        visited += 1;
    });
    assert_eq!(visited, ranges.len());
}

#[test]
fn numbers_in_batches() {
    let mut random = Random(31);
    let uniform = numbers(5000, || random.next() >> 14);
    let missing = numbers(3000, || random.next() >> 13);
    assert_all_kinds_in_batches(&uniform, &missing);
    let dense = sorted((0..4000u64).map(|id| number_key(u64::MAX / 2 + 3 * id)));
    assert_all_kinds_in_batches(&dense, &missing);
    let centres: Vec<u64> = (0..40).map(|_| random.next()).collect();
    let near = |random: &mut Random| {
        let width = 1 << random.below(30);
        centres[random.below(40) as usize].wrapping_add(random.below(width))
    };
    let clustered = numbers(5000, || near(&mut random));
    let missing = numbers(2000, || near(&mut random));
    assert_all_kinds_in_batches(&clustered, &missing);
}

#[test]
fn text_in_batches() {
    let mut random = Random(32);
    let word = |random: &mut Random| {
        let path: String =
            (0..random.below(6)).map(|_| format!("/node{}", random.below(4))).collect();
        format!("https://example.org{path}/{}", random.below(500)).into_bytes()
    };
    let words = sorted((0..4000).map(|_| word(&mut random)));
    let missing = sorted((0..1000).map(|_| word(&mut random)));
    assert_all_kinds_in_batches(&words, &missing);
}

#[test]
fn hashed_groups_in_batches() {
    // Ten keys begin with the same random word each: told apart by hash.
    let mut random = Random(33);
    let stems: Vec<u64> = (0..500).map(|_| random.next()).collect();
    let draw = |random: &mut Random| {
        let key = |stem: u64, rest: u64| [stem.to_be_bytes(), rest.to_be_bytes()].concat();
        sorted((0..5000).map(|i| key(stems[i % stems.len()], random.next())))
    };
    let (keys, missing) = (draw(&mut random), draw(&mut random));
    assert_all_kinds_in_batches(&keys, &missing);
}
