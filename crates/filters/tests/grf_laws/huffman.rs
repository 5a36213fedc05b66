//! Codes that are runs, rewritten by every merge (the GRF paper's GRF_H).
//! ```text
//! flush 4, 5, 6        [4,5) [5,6) [6,7)   in the part
//! merge of the three   [4,7)               beside each of their keys, in a new part
//! ```
//! The laws of all parts are asked of these, too (`twin.rs`); here is what they alone have to do.

use crate::twin::*;
use std::collections::BTreeSet;
use trommel_filters::{FlushNumber, GrfOptions, Part, Query, RunCodes, Shape, Span};

fn rewritten(bits_per_key: f64) -> GrfOptions {
    GrfOptions { run_codes: RunCodes::Huffman, ..options(bits_per_key) }
}

fn span(lo: u64, hi: u64) -> Span {
    Span::new(FlushNumber(lo), FlushNumber(hi)).expect("not empty")
}

fn dealt(count: usize, flushes: u64) -> (Vec<Key>, Vec<Vec<Key>>) {
    let mut random = Random(31);
    deal(&numbers(count, || random.next() >> 9), flushes, 8)
}

/// The codes that a part has for all keys of the twin.
fn codes_of(part: &Part, twin: &Twin) -> BTreeSet<Span> {
    let answers = twin.keys().map(|key| answer(part, &Query::Point(key)));
    answers.flat_map(|codes| codes.as_slice().to_vec()).collect()
}

#[test]
fn every_code_is_the_span_of_a_run() {
    let (base, flushes) = dealt(20_000, 26);
    for count in [1, 2, 3, 7, 9, 17, 26] {
        let (part, twin) =
            tree_with(&rewritten(12.0), &base, &flushes[..count], Schedule::LazyLeveling);
        let shape = shape_before(BASE_END.0 + count as u64);
        let runs: BTreeSet<Span> = shape.runs().collect();
        assert_eq!(codes_of(&part, &twin), runs, "after {count} flushes");
    }
}

#[test]
fn a_part_after_a_merge_is_right_for_the_version_before() {
    let (base, flushes) = dealt(9000, 3);
    let (part, twin) = tree_with(&rewritten(12.0), &base, &flushes[..2], Schedule::LazyLeveling);
    let part = insert(&part, 6, &flushes[2], &Shape::default());
    let mut older = twin.clone();
    for key in &flushes[2] {
        older.entry(key.clone()).or_default().insert(6);
    }
    let before = shape_before(6);
    let before = Shape { levels: [vec![vec![span(6, 7)]], before.levels].concat() };
    let after = merged(&part, &older, &before, &shape_before(7));
    assert_ne!(codes_of(&after, &older), codes_of(&part, &older));
    // The twin has flush numbers: a code with a key's flush meets the run that has it, before the
    // merge and after.
    assert_laws(&after, &older);
    let named = |part: &Part, key: &Key| {
        let codes = answer(part, &Query::Point(key));
        before.resolve(&codes).count()
    };
    let runs: usize = flushes[2].iter().map(|key| named(&after, key)).sum();
    assert!(runs >= 3 * flushes[2].len(), "of each merged key all inputs are named: {runs}");
    assert_laws(&part, &older);
}

#[test]
fn what_is_not_pushed_is_not_lost() {
    let (base, flushes) = dealt(9000, 2);
    let (part, twin) = tree_with(&rewritten(12.0), &base, &flushes, Schedule::NoMerges);
    let mut recoder = part.recoder(&[span(4, 5), span(5, 6)], span(4, 6));
    flushes[0].iter().step_by(2).for_each(|key| recoder.push(key));
    let part = recoder.finish();
    assert_laws(&part, &twin);
    let codes = codes_of(&part, &twin);
    assert!([span(4, 5), span(4, 6)].iter().all(|code| codes.contains(code)), "{codes:?}");
}

#[test]
fn a_merge_of_runs_that_a_part_has_not_changes_nothing() {
    let (base, flushes) = dealt(6000, 2);
    let (part, twin) = tree_with(&rewritten(12.0), &base, &flushes, Schedule::NoMerges);
    let mut recoder = part.recoder(&[span(40, 41)], span(40, 42));
    twin.keys().for_each(|key| recoder.push(key));
    assert_eq!(codes_of(&recoder.finish(), &twin), codes_of(&part, &twin));
}

#[test]
fn codes_of_shapes_are_not_rewritten() {
    let (base, flushes) = dealt(6000, 2);
    let (part, twin) = tree_with(&options(12.0), &base, &flushes, Schedule::NoMerges);
    let mut recoder = part.recoder(&[span(4, 5), span(5, 6)], span(4, 6));
    twin.keys().for_each(|key| recoder.push(key));
    assert_eq!(codes_of(&recoder.finish(), &twin), codes_of(&part, &twin));
}

#[test]
fn more_runs_than_a_chunk_has_codes_for() {
    let (base, _) = dealt(300, 1);
    let flushes: Vec<Vec<Key>> =
        (0..300u64).map(|flush| sorted((0..4).map(|n| number_key(n << 40 | flush)))).collect();
    let (part, twin) = tree_with(&rewritten(12.0), &base, &flushes, Schedule::NoMerges);
    twin.keys().for_each(|key| assert_point(&part, &twin, key));
    twin.keys().step_by(9).for_each(|key| assert_range(&part, &twin, key, None));
    assert!(
        codes_of(&part, &twin).iter().any(|code| code.hi().0 > code.lo().0 + 1),
        "joined codes"
    );
}

#[test]
fn images_are_read_back_and_go_on() {
    let (base, flushes) = dealt(20_000, 9);
    let (part, twin) = tree_with(&rewritten(12.0), &base, &flushes[..8], Schedule::LazyLeveling);
    let mut image = Vec::new();
    part.write_image(&mut image);
    let read = Part::read_image(&image).expect("reads");
    assert_eq!((read.options(), read.size()), (part.options(), part.size()));
    let mut again = Vec::new();
    read.write_image(&mut again);
    assert_eq!(again, image);
    let (mut goes_on, mut other) = (Vec::new(), Vec::new());
    insert(&read, 12, &flushes[8], &Shape::default()).write_image(&mut goes_on);
    insert(&part, 12, &flushes[8], &Shape::default()).write_image(&mut other);
    assert_eq!(goes_on, other);
    assert_laws(&read, &twin);
    for bit in (0..image.len() * 8).step_by(911) {
        let mut damaged = image.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(Part::read_image(&damaged).is_err(), "bit {bit}");
    }
}

/// With its checksum made right, damage leads to an error or to a part, not to a panic when numbers
/// are read.
#[test]
fn damaged_numbers_are_an_error_or_read() {
    let (base, flushes) = dealt(3000, 9);
    let (part, twin) = tree_with(&rewritten(12.0), &base, &flushes, Schedule::NoMerges);
    let mut image = Vec::new();
    part.write_image(&mut image);
    let probes: Vec<&Key> = twin.keys().step_by(40).collect();
    // The overlay is at the end of the image, where it takes a little less than in memory.
    let overlay_bytes = part.size().overlay_bytes as usize * 3 / 4;
    for bit in ((image.len() - overlay_bytes) * 8..image.len() * 8 - 64).step_by(13) {
        let mut damaged = image.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let Ok(part) = Part::of_checked_image(damaged) else { continue };
        probes.iter().for_each(|key| {
            std::hint::black_box(answer(&part, &Query::Point(key)));
        });
    }
}
