//! A part of the global range filter that grows as in a store: a base, then flushes, garbage
//! collection, images.
//! ```text
//! input   arbitrary bytes of: options | keys of the base | keys of each flush | probes
//! ```
//! Invariant: no key is lost, for points and for ranges, before and after an image; and an image
//! read back goes on as the part that wrote it.

use arbitrary::{Arbitrary, Unstructured};
use trommel_filters::{
    Codes, EmptyQueries, EmptyQuery, Fingerprints, FlushNumber, GrfOptions, KeyRange, KeySample,
    Part, PartBuilder, Query, Shape, Span, TextModel,
};

/// Keys of one list, so that a run of the body is short.
const KEYS_MAX: usize = 1500;
const FLUSHES_MAX: usize = 8;
/// Keys that are asked for, of each list.
const PROBES_MAX: usize = 64;

#[derive(Arbitrary, Debug)]
struct Case {
    fingerprints: u8,
    point_bits: u8,
    bits_per_key: u8,
    size_ratio: u8,
    /// What a model of text is learnt from, and the bits of its codes.
    text: Option<(Vec<Keys>, u16)>,
    base: Vec<Keys>,
    /// What it was asked, and whether that was close behind its keys, too.
    questions: (Vec<Keys>, bool),
    flushes: Vec<(u16, Vec<Keys>)>,
    probes: Vec<Vec<u8>>,
}

/// One or many keys.
#[derive(Arbitrary, Debug)]
enum Keys {
    One(Vec<u8>),
    Numbers { start: u64, step: u32, count: u8 },
    Wide { start: u32, step: u64, count: u8 },
    Behind { prefix: Vec<u8>, start: u16, step: u16, count: u8 },
}

impl Keys {
    fn add_to(&self, keys: &mut Vec<Vec<u8>>) {
        let numbers = |start: u64, step: u64, count: u8| {
            (0..u64::from(count)).map(move |n| start.wrapping_add(n.wrapping_mul(step)))
        };
        match self {
            Keys::One(key) => keys.push(key.clone()),
            Keys::Numbers { start, step, count } => {
                let all = numbers(*start, u64::from(*step), *count);
                keys.extend(all.map(|number| number.to_be_bytes().to_vec()));
            }
            Keys::Wide { start, step, count } => {
                let all = numbers(u64::from(*start), *step, *count);
                keys.extend(all.map(|number| number.to_be_bytes().to_vec()));
            }
            Keys::Behind { prefix, start, step, count } => {
                let all = numbers(u64::from(*start), u64::from(*step), *count);
                keys.extend(all.map(|number| [prefix, &number.to_be_bytes()[5..]].concat()));
            }
        }
    }
}

fn list(keys: &[Keys]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    keys.iter().for_each(|keys| keys.add_to(&mut all));
    all.truncate(KEYS_MAX);
    all.sort_unstable();
    all.dedup();
    all
}

fn model(learnt: &[Keys], code_bits: u16) -> TextModel {
    let mut sample = KeySample::default();
    list(learnt).iter().for_each(|key| sample.push(key));
    TextModel::of(&sample, 1 << 20).with_code_bits(u32::from(code_bits % 520))
}

/// Every third one is a range.
fn questions((queries, are_close): &(Vec<Keys>, bool), base: &[Vec<u8>]) -> EmptyQueries {
    let mut keys = list(queries);
    let close = base.iter().step_by(3).map(|key| [&key[..], &[1]].concat());
    keys.extend(close.take(if *are_close { KEYS_MAX } else { 0 }));
    let queries =
        keys.iter().enumerate().map(|(place, key)| EmptyQuery { key, is_point: place % 3 > 0 });
    EmptyQueries::of(queries)
}

pub(crate) fn body(input: &[u8]) {
    let Ok(case) = Case::arbitrary(&mut Unstructured::new(input)) else { return };
    let options = GrfOptions {
        bits_per_key: f64::from(case.bits_per_key % 64) + 1.0,
        size_ratio: u32::from(case.size_ratio).max(2),
        fingerprints: Fingerprints::ALL[usize::from(case.fingerprints) % Fingerprints::ALL.len()],
        point_bits: case.point_bits % 17,
        ..GrfOptions::default()
    };
    let base = list(&case.base);
    let mut builder = PartBuilder::new(&options);
    if let Some((learnt, code_bits)) = &case.text {
        builder = builder.with_text(model(learnt, *code_bits), base.len() as u64);
    }
    let sample = KeySample::evenly(base.len(), |place| &base[place]);
    builder =
        builder.with_empty_queries(&questions(&case.questions, &base), &sample, base.len() as u64);
    base.iter().for_each(|key| builder.push(key));
    let end = u64::from(!base.is_empty());
    let mut part = builder.finish(FlushNumber(end));
    let mut entries: Vec<(Span, Vec<Vec<u8>>)> = Vec::new();
    entries.extend(Span::new(FlushNumber(0), FlushNumber(end)).map(|span| (span, base)));
    let mut next = end;
    for (gap, keys) in case.flushes.iter().take(FLUSHES_MAX) {
        let flush = FlushNumber(next + u64::from(*gap));
        let keys = list(keys);
        part = insert(&part, flush, &keys, options.size_ratio);
        entries.push((Span::of_flush(flush), keys));
        next = flush.0 + 1;
    }
    let probes = probes(&entries, &case.probes);
    check(&part, &entries, &probes);
    let shape = Shape::of_round(part.base_end(), FlushNumber(next), options.size_ratio);
    for part in [&part, &part.collect_garbage(&shape)] {
        let read = through_an_image(part);
        check(&read, &entries, &probes);
        let more = |part: &Part| insert(part, FlushNumber(next), &probes, options.size_ratio);
        assert!(image_of(&more(part)) == image_of(&more(&read)), "it goes on in another way");
    }
}

fn insert(part: &Part, flush: FlushNumber, keys: &[Vec<u8>], size_ratio: u32) -> Part {
    let shape = Shape::of_round(part.base_end(), flush, size_ratio);
    let mut inserter = part.inserter(flush, &shape);
    keys.iter().for_each(|key| inserter.push(key));
    inserter.finish()
}

fn image_of(part: &Part) -> Vec<u8> {
    let mut image = Vec::new();
    part.write_image(&mut image);
    image
}

fn through_an_image(part: &Part) -> Part {
    let image = image_of(part);
    let read = Part::read_image(&image).expect("an image that was just written");
    assert!(image_of(&read) == image, "an image that is written in two ways");
    assert_eq!((read.options(), read.size()), (part.options(), part.size()));
    read
}

/// Keys of every list and others, ascending.
fn probes(entries: &[(Span, Vec<Vec<u8>>)], others: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut probes: Vec<Vec<u8>> = others.iter().take(PROBES_MAX).cloned().collect();
    for (_, keys) in entries {
        let step = keys.len().div_ceil(PROBES_MAX).max(1);
        probes.extend(keys.iter().step_by(step).cloned());
    }
    probes.sort_unstable();
    probes.dedup();
    probes
}

/// No false "no", for each probe and for each range between two.
fn check(part: &Part, entries: &[(Span, Vec<Vec<u8>>)], probes: &[Vec<u8>]) {
    let mut codes = Codes::new();
    let mut ask = |query: &Query<'_>, holds: &dyn Fn(&[Vec<u8>]) -> bool| {
        codes.clear();
        part.candidates(query, &mut codes);
        for (span, keys) in entries {
            assert!(!holds(keys) || codes.may_meet(*span), "{span:?} is lost: {query:?}");
        }
    };
    for key in probes {
        ask(&Query::Point(key), &|keys| keys.binary_search(key).is_ok());
    }
    for step in [1, 7] {
        for pair in probes.windows(step + 1) {
            let (lower, upper) = (&pair[0], &pair[step]);
            let range = KeyRange::new(lower, Some(upper)).expect("in order");
            let holds = |keys: &[Vec<u8>]| {
                let from = keys.partition_point(|key| key < lower);
                keys.get(from).is_some_and(|key| key <= upper)
            };
            ask(&Query::Range(range), &holds);
            let count = part.approximate_count(&range);
            assert!(count.least <= count.most, "{count:?}");
        }
    }
    ask(&Query::Range(KeyRange::all()), &|keys| !keys.is_empty());
}
