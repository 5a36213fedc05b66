//! All inserts into a thousandth of the base's keys (GRF, section 6.7): lists are not split, their
//! fractions grow.
//! ```text
//! base       . . . . . . . . . . . . . . . . . . . . . .      200,000 keys, spread evenly
//! flushes                  ::::                            20,000 keys between two hundred of them
//! ```
//! Invariant: no key is lost; a range without keys inside the stretch is rarely taken for one with
//! keys.

use std::collections::BTreeSet;

use trommel_filters::{
    Codes, Fingerprints, FlushNumber, GrfOptions, KeyRange, Part, PartBuilder, Query, Shape, Span,
};

use crate::bed::{Key, Random};

const BASE_KEYS: u64 = 200_000;
const FLUSHES: u64 = 99;
const FLUSHED_KEYS: u64 = 20_000;
const QUERIES: u64 = 20_000;
/// Between two base keys, on average.
const GAP: u64 = 1 << 32;
/// Where the stretch begins, and how long it is: a thousandth of all.
const STRETCH_AT: u64 = BASE_KEYS / 3 * GAP;
const STRETCH: u64 = BASE_KEYS / 1000 * GAP;
const BASE_END: FlushNumber = FlushNumber(100);

fn key(number: u64) -> Key {
    number.to_be_bytes().to_vec()
}

struct Tree {
    keys: BTreeSet<u64>,
    /// Flushed keys, by flush.
    flushes: Vec<BTreeSet<u64>>,
    part: Part,
}

/// `width` is that of the stretch that flushed keys come from.
fn tree(fingerprints: Fingerprints, at: u64, width: u64) -> Tree {
    let mut random = Random(7);
    let base: BTreeSet<u64> = (0..BASE_KEYS).map(|_| random.below(BASE_KEYS * GAP)).collect();
    let mut keys = base.clone();
    let options = GrfOptions { fingerprints, ..GrfOptions::default() };
    let mut builder = PartBuilder::new(&options);
    base.iter().for_each(|&number| builder.push(&key(number)));
    let mut part = builder.finish(BASE_END);
    let mut flushes = Vec::new();
    for number in (BASE_END.0..).take(FLUSHES as usize) {
        let count = FLUSHED_KEYS / FLUSHES;
        let flush: BTreeSet<u64> = (0..count).map(|_| at + random.below(width)).collect();
        let shape = Shape::of_round(BASE_END, FlushNumber(number), options.size_ratio);
        let mut inserter = part.inserter(FlushNumber(number), &shape);
        flush.iter().for_each(|&number| inserter.push(&key(number)));
        part = inserter.finish();
        keys.extend(&flush);
        flushes.push(flush);
    }
    Tree { keys, flushes, part }
}

fn answer(part: &Part, low: u64, width: u64) -> Codes {
    let (low_key, high_key) = (key(low), key(low + width));
    let mut codes = Codes::new();
    let range = KeyRange::new(&low_key, Some(&high_key)).expect("not upside down");
    let query = if width == 0 { Query::Point(&low_key) } else { Query::Range(range) };
    part.candidates(&query, &mut codes);
    codes
}

/// The share of empty ranges of a stretch for which the part says "maybe".
fn rate(tree: &Tree, at: u64, stretch: u64, width: u64) -> f64 {
    let mut random = Random(8);
    let (mut asked, mut positives) = (0, 0);
    while asked < QUERIES {
        let low = at + random.below(stretch);
        if tree.keys.range(low..=low + width).next().is_none() {
            asked += 1;
            positives += u64::from(!answer(&tree.part, low, width).is_empty());
        }
    }
    positives as f64 / QUERIES as f64
}

fn assert_nothing_is_lost(tree: &Tree) {
    for (number, flush) in (BASE_END.0..).zip(&tree.flushes) {
        let own = Span::of_flush(FlushNumber(number));
        for &key in flush {
            assert!(answer(&tree.part, key, 0).may_meet(own), "{key} of flush {number}");
            let around = answer(&tree.part, key.saturating_sub(3), 7);
            assert!(around.may_meet(own), "a range around {key} of flush {number}");
        }
    }
}

/// The share of empty ranges inside the stretch for which "maybe" is expected, if places are used
/// evenly. Keys of the stretch lie in three buckets or so, as 200 base keys do: 640 of each run of
/// ten flushes in each of them. When the j-th of nine runs is packed, an entry has j times as many
/// neighbours, and gets a bit more than the 13 of other entries for each doubling beyond
/// 16.
fn expected_inside() -> f64 {
    let per_run = FLUSHED_KEYS as f64 / 9.9;
    let per_bucket = per_run / (BASE_KEYS as f64 / 1000.0 / 64.0);
    let bits = |run: u32| 13 + (f64::from(run) * per_bucket / 16.0).log2() as i32;
    (1..=9).map(|run| per_bucket / f64::from(1 << bits(run))).sum()
}

/// How much more there may be than is expected. Along a line places are used evenly, but for
/// chance. `gap` and `cell` give all gaps between base keys alike many places, though wide ones get
/// most keys and most questions (with gaps as chance makes them, twice as many fall on one place),
/// and in each gap more of them near its ends; and `cell` tells only 2^12 places in a gap apart,
/// however many bits there are.
const EXCESS_MAX: [(Fingerprints, f64); 3] =
    [(Fingerprints::Auto, 1.15), (Fingerprints::Gap, 3.5), (Fingerprints::Cell, 15.0)];

#[test]
fn inserts_into_one_stretch_lose_nothing_and_are_told_apart() {
    let expected = expected_inside();
    assert!((0.005..0.01).contains(&expected), "{expected}");
    for (fingerprints, excess) in EXCESS_MAX {
        let skewed = tree(fingerprints, STRETCH_AT, STRETCH);
        assert_nothing_is_lost(&skewed);
        for width in [0, 1 << 20] {
            let inside = rate(&skewed, STRETCH_AT, STRETCH, width);
            assert!(inside <= excess * expected, "{fingerprints:?} {width}: {inside}");
        }
        // Elsewhere nothing is worse for it; the overlay takes the longer fractions.
        let even = tree(fingerprints, 0, BASE_KEYS * GAP);
        let [everywhere, usual] = [&skewed, &even].map(|tree| rate(tree, 0, BASE_KEYS * GAP, 0));
        assert!(everywhere <= 1.1 * usual, "{fingerprints:?}: {everywhere}, but {usual}");
        let [bytes, usual] = [&skewed, &even].map(|tree| tree.part.size().overlay_bytes);
        assert!(bytes as f64 <= 1.3 * usual as f64, "{fingerprints:?}: {bytes}, but {usual}");
    }
}
