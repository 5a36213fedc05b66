//! Keys of eight bytes handed over many at once: the same part, to the byte, as handed over one by
//! one.

use super::twin::*;
use trommel_filters::{FlushNumber, Part, PartBuilder, Shape};

/// A part of a base and two flushes, handed over one by one, or as `runs` says: so many words at
/// once, then one key alone, and on. Its image.
fn image(base: &[[u8; 8]], flushes: [&[[u8; 8]]; 2], runs: Option<&[usize]>) -> Vec<u8> {
    let mut builder = PartBuilder::new(&options(12.0));
    match runs {
        None => base.iter().for_each(|key| builder.push(key)),
        Some(runs) => in_runs(base, runs, |words, alone| {
            builder.push_words(words);
            alone.into_iter().for_each(|key| builder.push(key));
        }),
    }
    let mut part = builder.finish(FlushNumber(3));
    for (number, keys) in (3..).zip(flushes) {
        let flush = FlushNumber(number);
        let mut inserter = part.inserter(flush, &Shape::of_round(part.base_end(), flush, 10));
        match runs {
            None => keys.iter().for_each(|key| inserter.push(key)),
            Some(runs) => in_runs(keys, runs, |words, alone| {
                inserter.push_words(words);
                alone.into_iter().for_each(|key| inserter.push(key));
            }),
        }
        part = inserter.finish();
    }
    bytes_of(&part)
}

fn bytes_of(part: &Part) -> Vec<u8> {
    let mut bytes = Vec::new();
    part.write_image(&mut bytes);
    bytes
}

/// Words, again and again as many as the next of `runs` says, each time with one key behind them,
/// if there is one.
fn in_runs(
    mut keys: &[[u8; 8]],
    runs: &[usize],
    mut take: impl FnMut(&[[u8; 8]], Option<&[u8; 8]>),
) {
    for &run in runs.iter().cycle() {
        let (words, rest) = keys.split_at(run.min(keys.len()));
        take(words, rest.first());
        keys = rest.get(1..).unwrap_or_default();
        if keys.is_empty() {
            return;
        }
    }
}

fn words(count: usize, mut next: impl FnMut() -> u64) -> Vec<[u8; 8]> {
    let mut words: Vec<u64> = (0..count).map(|_| next()).collect();
    words.sort_unstable();
    words.dedup();
    words.into_iter().map(u64::to_be_bytes).collect()
}

#[test]
fn words_at_once_are_words_one_by_one() {
    let mut random = Random(77);
    for bits in [64, 40, 14] {
        let mut draw = |count| words(count, || random.next() >> (64 - bits));
        let (base, one, two) = (draw(9000), draw(700), draw(1));
        let expected = image(&base, [&one, &two], None);
        for runs in [&[usize::MAX][..], &[0], &[1], &[63, 64, 65], &[127, 128, 129, 5000, 0]] {
            assert!(image(&base, [&one, &two], Some(runs)) == expected, "{bits} bits, {runs:?}");
        }
    }
}

#[test]
fn words_among_longer_keys() {
    let mut random = Random(78);
    let numbers = words(3000, || random.next());
    let built = |at_once: bool| {
        let mut builder = PartBuilder::new(&options(12.0));
        for (turn, some) in numbers.chunks(170).enumerate() {
            match at_once {
                true => builder.push_words(some),
                false => some.iter().for_each(|word| builder.push(word)),
            }
            // Sometimes a key that only adds a zero, and sometimes one that is another.
            let last = some.last().expect("chunks have keys");
            builder.push(&[&last[..], &[(turn % 2) as u8]].concat());
        }
        bytes_of(&builder.finish(FlushNumber(1)))
    };
    assert!(built(true) == built(false));
}

fn panics(push: impl FnOnce() + std::panic::UnwindSafe) -> bool {
    std::panic::catch_unwind(push).is_err()
}

/// Wherever among them it is: a key out of order would be denied later.
#[test]
fn words_out_of_order_are_refused() {
    let sorted: Vec<[u8; 8]> = (0..400u64).map(|i| (i << 32).to_be_bytes()).collect();
    let full = {
        let mut builder = PartBuilder::new(&options(12.0));
        builder.push_words(&sorted);
        builder.finish(FlushNumber(1))
    };
    for place in [0, 1, 64, 128, 129, 398] {
        let (mut swapped, mut doubled) = (sorted.clone(), sorted.clone());
        swapped.swap(place, place + 1);
        doubled[place] = doubled[place + 1];
        for bad in [&swapped, &doubled] {
            let mut builder = PartBuilder::new(&options(12.0));
            assert!(panics(move || builder.push_words(bad)), "{place}");
            let mut inserter = full.inserter(FlushNumber(1), &Shape::default());
            let insert = move || {
                inserter.push_words(bad);
                inserter.finish();
            };
            assert!(panics(std::panic::AssertUnwindSafe(insert)), "{place}");
        }
    }
    let mut builder = PartBuilder::new(&options(12.0));
    builder.push(&sorted[1]);
    assert!(panics(move || builder.push_words(&sorted[..1])));
}
