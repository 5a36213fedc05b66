//! More codes in one chunk than it can have: the oldest are joined.
//!
//! Where keys crowd their fractions are longer. So codes that are joined can have longer ones than
//! all that stay, and their entries have to be cut.

use crate::twin::*;
use trommel_filters::{Codes, FlushNumber, GrfOptions, Part, PartBuilder, Query, Shape, Span};

/// More flushes than codes of a chunk, each of so many keys.
const FLUSHES: u64 = 300;

fn spread(number: u64) -> Key {
    number_key(number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Flushes of which few have keys that crowd: two early ones and a late one.
fn flushes(each: u64) -> Vec<Vec<Key>> {
    let crowd = || (0..40u64).map(|number| number_key((1 << 62) + (number << 44)));
    let keys = |flush: u64| -> Vec<Key> {
        let others = || (0..each).map(|number| spread(1_000_000 + flush * 1000 + number));
        match flush {
            1 | 2 => sorted(crowd()),
            240 => sorted(others().chain(crowd())),
            _ => sorted(others()),
        }
    };
    (1..=FLUSHES).map(keys).collect()
}

fn grown(bits_per_key: f64, flushes: &[Vec<Key>], mut each: impl FnMut(&Part)) -> Part {
    let options = GrfOptions { size_ratio: 2, ..options(bits_per_key) };
    let mut builder = PartBuilder::new(&options);
    sorted((1..11_000).map(spread)).iter().for_each(|key| builder.push(key));
    let mut part = builder.finish(FlushNumber(1));
    for (flush, keys) in (1..).zip(flushes) {
        let mut inserter = part.inserter(FlushNumber(flush), &Shape::default());
        keys.iter().for_each(|key| inserter.push(key));
        part = inserter.finish();
        each(&part);
    }
    part
}

#[test]
fn joined_codes_keep_the_order_of_entries() {
    for (bits_per_key, each) in [(3.0, 20), (3.0, 30), (4.0, 60), (5.0, 20), (12.0, 30)] {
        let flushes = flushes(each);
        let part = grown(bits_per_key, &flushes, |part| {
            let mut image = Vec::new();
            part.write_image(&mut image);
            assert!(Part::read_image(&image).is_ok(), "a part reads its own image");
        });
        for (flush, key) in (1..).zip(&flushes).flat_map(|(flush, keys)| {
            keys.iter().map(move |key| (Span::of_flush(FlushNumber(flush)), key))
        }) {
            let mut codes = Codes::new();
            part.candidates(&Query::Point(key), &mut codes);
            assert!(codes.may_meet(flush), "{key:x?} of {flush:?} is denied");
        }
    }
}
