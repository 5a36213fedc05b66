//! Tests that questions are what their kinds say.

use super::*;
use crate::keys::dist::{Dist, FileFormat};
use crate::keys::key_list::key_before;
use crate::keys::keyset::KeySet;
use crate::keys::rng::Rng;
use crate::keys::skew::Skew;
use crate::questions::question_draw::{Draw, Misses, closed_width};

#[test]
fn questions_are_what_they_are_called() {
    let dist = Dist::Clustered;
    let keys = KeySet::new(&dist, FileFormat::Lines, Some(20_000), 1).expect("keys");
    let stored = keys.stored();
    let drawn = |kind| {
        let queries = Queries::draw(kind, &keys, 500, 64, &mut Rng::new(2)).expect("drawn");
        assert_eq!(queries.len(), 500);
        queries
    };
    let answers = |queries: &Queries| -> Vec<bool> {
        let ranges = (0..queries.len()).map(|place| queries.query(place, stored).range());
        let first =
            |range: KeyRange<'_>| stored.first_in(range.lower(), range.upper().expect("closed"));
        ranges.map(|range| first(range).is_some()).collect()
    };
    for kind in [Kind::PointMiss, Kind::EmptyRange] {
        assert!(answers(&drawn(kind)).iter().all(|found| !found), "{}", kind.name());
    }
    for kind in [Kind::PointHit, Kind::RangeHit] {
        assert!(answers(&drawn(kind)).iter().all(|found| *found), "{}", kind.name());
    }
}

fn drawn(kind: Kind, keys: &KeySet, misses: Misses<'_>) -> Queries {
    let draw = Draw { misses, ..Draw::even(500, 64) };
    Queries::draw_as(kind, keys, draw, &mut Rng::new(2)).expect("drawn")
}

#[test]
fn correlated_misses_begin_close_behind_stored_keys() {
    for (dist, most) in [(Dist::Uniform, 1), (Dist::Clustered, 16), (Dist::Emails, 1 << 20)] {
        let keys = KeySet::new(&dist, FileFormat::Lines, Some(20_000), 1).expect("keys");
        let stored = keys.stored();
        for kind in [Kind::PointMiss, Kind::EmptyRange] {
            let queries = drawn(kind, &keys, Misses::Behind(most));
            for place in 0..500 {
                let lower = queries.lower(place);
                let upper = queries.upper(place).unwrap_or(lower);
                assert!(stored.first_in(lower, upper).is_none(), "{dist}, {}", kind.name());
                let nearest = stored.first_in(&key_before(lower, most), lower);
                assert!(nearest.is_some(), "{dist}, {}: nothing close before", kind.name());
            }
        }
    }
}

/// Returns how often the most frequent first key is asked for.
fn most_frequent(queries: &Queries) -> usize {
    let mut counts = std::collections::HashMap::new();
    (0..queries.len()).for_each(|place| *counts.entry(queries.lower(place)).or_insert(0) += 1);
    counts.into_values().max().expect("a question")
}

#[test]
fn hot_misses_ranges_and_seeks_are_drawn_like_keys_and_asked_for_often() {
    let dist = Dist::Uniform;
    let keys = KeySet::new(&dist, FileFormat::Lines, Some(20_000), 1).expect("keys");
    let stored = keys.stored();
    let drawn = |kind, skew, seed| {
        let draw = Draw { skew, ..Draw::even(2000, 64) };
        Queries::draw_as(kind, &keys, draw, &mut Rng::new(seed)).expect("drawn")
    };
    for kind in [Kind::PointMiss, Kind::EmptyRange, Kind::Seek] {
        for skew in [Skew::Zipf(1.2), Skew::ScatteredZipf(1.2)] {
            let queries = drawn(kind, skew, 2);
            let most = most_frequent(&queries);
            assert!(most > 300, "{skew}, {}: the hottest {most} times", kind.name());
            assert!(most_frequent(&drawn(kind, Skew::None, 2)) < 3, "{}", kind.name());
            for place in (0..2000).filter(|_| kind != Kind::Seek) {
                let lower = queries.lower(place);
                let upper = queries.upper(place).unwrap_or(lower);
                assert!(stored.first_in(lower, upper).is_none(), "{skew}, {}", kind.name());
                // Gaps are 2^35 wide on average, so a drawn key is not close behind another by
                // chance.
                let close = stored.first_in(&key_before(lower, 1 << 20), lower);
                assert!(close.is_none(), "{skew}, {}", kind.name());
            }
            let other_thread = drawn(kind, skew, 3);
            let first = (0..2000).map(|place| other_thread.lower(place).to_vec());
            let shared = first.filter(|key| (0..2000).any(|place| queries.lower(place) == key));
            assert!(shared.count() > 1000, "threads have the same hot keys");
        }
    }
}

#[test]
fn misses_among_deleted_keys_were_stored() {
    let keys = KeySet::new(&Dist::Clustered, FileFormat::Lines, Some(20_000), 1).expect("keys");
    let (kept, deleted) = keys.stored().split(|place| place % 1000 < 300);
    let keys = keys.with_stored(kept);
    let points = drawn(Kind::PointMiss, &keys, Misses::Deleted(&deleted));
    assert!((0..500).all(|place| deleted.holds(points.lower(place))));
    let ranges = drawn(Kind::EmptyRange, &keys, Misses::Deleted(&deleted));
    for place in 0..500 {
        let (lower, upper) = (ranges.lower(place), ranges.upper(place).expect("closed"));
        assert!(keys.stored().first_in(lower, upper).is_none());
        assert!(deleted.first_in(lower, upper).is_some());
    }
}

#[test]
fn the_width_of_closed_seeks_is_that_of_the_paper_where_keys_come_as_in_it() {
    let keys = KeySet::new(&Dist::Sensors, FileFormat::Lines, Some(100_000), 1).expect("keys");
    for share in [0.1f64, 0.5, 0.99] {
        let (width, reached) = closed_width(&keys, share, 20_000, &mut Rng::new(3));
        let paper = 100_000.0 * (1.0 / share).ln();
        let off = (width as f64 / paper - 1.0).abs();
        // At the largest share, only one sample in a hundred lies within the width, so chance
        // matters more.
        let noise = if share > 0.9 { 0.3 } else { 0.05 };
        assert!(off < noise, "{share}: {width}, in the paper {paper}");
        assert!((reached - share).abs() < 0.001, "{reached}");
    }
    let draw = Draw::even(500, 69_310);
    let queries = Queries::draw_as(Kind::ClosedSeek, &keys, draw, &mut Rng::new(2)).expect("drawn");
    let word = |key: &[u8], at: usize| {
        u64::from_be_bytes(key[at..at + 8].try_into().expect("eight bytes"))
    };
    for place in 0..500 {
        let (lower, upper) = (queries.lower(place), queries.upper(place).expect("closed"));
        assert_eq!((lower.len(), upper.len()), (8, 16), "all sensors of the times");
        assert_eq!(word(upper, 0) - word(lower, 0), 69_309);
        assert_eq!(word(upper, 8), u64::MAX);
    }
}

#[test]
fn misses_of_dense_ids_are_points_alone() {
    let keys = KeySet::new(&Dist::Ids, FileFormat::Lines, Some(20_000), 1).expect("keys");
    let misses = |kind| Queries::draw_misses(kind, &keys, 500, 32, &mut Rng::new(2));
    let (points, ranges) = (misses(Kind::PointMiss), misses(Kind::EmptyRange));
    assert_eq!((points.len(), points.kind()), (500, Kind::PointMiss));
    let stored = keys.stored();
    assert!((0..500).all(|place| !stored.holds(points.lower(place))));
    // At most the end of the ids has room for such a range.
    assert!(ranges.len() < 50, "{} ranges", ranges.len());
}

#[test]
fn a_width_that_leaves_no_gap_is_an_error() {
    let keys = KeySet::new(&Dist::Uniform, FileFormat::Lines, Some(1000), 1).expect("keys");
    let drawn = Queries::draw(Kind::EmptyRange, &keys, 10, u64::MAX, &mut Rng::new(2));
    assert!(drawn.expect_err("no gap").to_string().contains("--range-width"));
}
