//! The image of a part: what is read back is the part, and damage is an error.
//! ```text
//! keys, flushes -> Part -> image -> Part    the same answers, the same image, the same inserts
//! ```
//! Invariant: bytes that were flipped, cut or added never read as a part, and never panic.

use trommel_filters::{
    Codes, Fingerprints, FlushNumber, GrfOptions, KeyRange, Part, PartBuilder, Query, RunCodes,
    Shape, Span,
};

type Key = Vec<u8>;

/// Spread numbers: multiples of the golden ratio's bits.
fn number(place: u64) -> Key {
    place.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes().to_vec()
}

/// Text with long shared beginnings, so that separators have more than eight bytes.
fn path(place: u64) -> Key {
    format!("shelf/{:02}/a drum that turns/{:05}.txt", place % 7, place * 37).into_bytes()
}

fn sorted(mut keys: Vec<Key>) -> Vec<Key> {
    keys.sort_unstable();
    keys.dedup();
    keys
}

fn insert(part: &Part, flush: u64, keys: &[Key]) -> Part {
    let mut inserter =
        part.inserter(FlushNumber(flush), &Shape::of_round(part.base_end(), FlushNumber(flush), 3));
    keys.iter().for_each(|key| inserter.push(key));
    inserter.finish()
}

/// A part of `base` keys and three flushes of a fourteenth as many each, beyond both ends too.
fn part_of(fingerprints: Fingerprints, base: u64, key: fn(u64) -> Key) -> Part {
    let options = GrfOptions { fingerprints, point_bits: 2, ..GrfOptions::default() };
    let mut builder = PartBuilder::new(&options);
    sorted((0..base).map(key).collect()).iter().for_each(|key| builder.push(key));
    let mut part = builder.finish(FlushNumber(if base == 0 { 0 } else { 7 }));
    for flush in 0..3 {
        let few = (0..base / 14 + 2).map(|place| key(base + 2 * place + flush));
        let keys = few.chain([vec![], vec![0xff; 12], vec![b'z'; flush as usize]]);
        part = insert(&part, 7 + 300 * flush, &sorted(keys.collect()));
    }
    part
}

fn image_of(part: &Part) -> Vec<u8> {
    let mut bytes = Vec::new();
    part.write_image(&mut bytes);
    bytes
}

fn answer(part: &Part, query: &Query<'_>) -> (bool, Vec<trommel_filters::Span>) {
    let mut codes = Codes::new();
    part.candidates(query, &mut codes);
    (codes.is_all(), codes.as_slice().to_vec())
}

fn assert_same_answers(one: &Part, other: &Part, probes: &[Key]) {
    for pair in probes.windows(2) {
        let point = Query::Point(&pair[0]);
        assert_eq!(answer(one, &point), answer(other, &point), "{:?}", pair[0]);
        let range = Query::Range(KeyRange::new(&pair[0], Some(&pair[1])).expect("in order"));
        assert_eq!(answer(one, &range), answer(other, &range), "{pair:?}");
    }
    let everything = Query::Range(KeyRange::all());
    assert_eq!(answer(one, &everything), answer(other, &everything));
}

fn assert_survives(part: &Part, probes: &[Key]) {
    let image = image_of(part);
    let read = Part::read_image(&image).expect("reads");
    assert_eq!(image_of(&read), image);
    assert_eq!((read.options(), read.base_end()), (part.options(), part.base_end()));
    assert_eq!(read.size(), part.size());
    assert_same_answers(part, &read, probes);
    // It goes on as the old one does.
    let (old, new) = (insert(part, 5000, probes), insert(&read, 5000, probes));
    assert_eq!(image_of(&old), image_of(&new));
    assert_same_answers(&old, &new, probes);
    let walk = |part: &Part| {
        let mut cursor = part.cursor(&[]);
        std::iter::from_fn(|| cursor.next_due(None, |_| true)).take(10_000).collect::<Vec<_>>()
    };
    assert_eq!(walk(part), walk(&read));
}

#[test]
fn a_part_that_is_read_back_answers_the_same() {
    for fingerprints in Fingerprints::ALL {
        for (count, key) in
            [(0, number as fn(u64) -> Key), (1, number), (9000, number), (9000, path)]
        {
            let part = part_of(fingerprints, count, key);
            let probes = sorted((0..2 * count + 100).step_by(3).map(key).collect());
            assert_survives(&part, &probes);
        }
    }
}

#[test]
fn an_empty_part_is_read_back() {
    let part = Part::empty(&GrfOptions::default());
    let read = Part::read_image(&image_of(&part)).expect("reads");
    assert!(answer(&read, &Query::Range(KeyRange::all())).1.is_empty());
    assert_survives(&part, &sorted(vec![number(1), number(2)]));
}

#[test]
fn an_image_is_appended() {
    let part = part_of(Fingerprints::Auto, 100, number);
    let mut bytes = b"before".to_vec();
    part.write_image(&mut bytes);
    assert_eq!(bytes, [b"before", image_of(&part).as_slice()].concat());
}

#[test]
fn every_flipped_byte_is_an_error() {
    for key in [number as fn(u64) -> Key, path] {
        let image = image_of(&part_of(Fingerprints::Auto, 600, key));
        for at in 0..image.len() {
            for flip in [1, 0x80, 0xff] {
                let mut damaged = image.clone();
                damaged[at] ^= flip;
                assert!(Part::read_image(&damaged).is_err(), "byte {at} of {}", image.len());
            }
        }
    }
}

#[test]
fn every_other_length_is_an_error() {
    let image = image_of(&part_of(Fingerprints::Auto, 600, path));
    for len in 0..image.len() {
        assert!(Part::read_image(&image[..len]).is_err(), "cut to {len} of {}", image.len());
    }
    for more in 1..20 {
        let longer = [&image[..], &vec![0; more]].concat();
        assert!(Part::read_image(&longer).is_err(), "{more} bytes more");
    }
}

/// The module's head allows a forged part to panic when it is asked; reading must not.
#[test]
fn reading_an_image_with_a_forged_checksum_does_not_panic() {
    const SEED: u64 = 0x7472_6f6d_6d65_6c03;
    let good = image_of(&part_of(Fingerprints::Auto, 300, number));
    let body = good.len() - size_of::<u64>();
    let sum = |bytes: &[u8]| xxhash_rust::xxh3::xxh3_64_with_seed(bytes, SEED).to_le_bytes();
    assert_eq!(sum(&good[..body]), good[body..], "the seed of checksums is another");
    let panics = |(at, flip): &(usize, u8)| {
        let mut bytes = good.clone();
        bytes[*at] ^= flip;
        let forged = sum(&bytes[..body]);
        bytes[body..].copy_from_slice(&forged);
        std::panic::catch_unwind(|| Part::read_image(&bytes).is_ok()).is_err()
    };
    let flips = (0..body).flat_map(|at| [(at, 0x04), (at, 0x80), (at, 0xff), (at, good[at])]);
    let panicked: Vec<(usize, u8)> = flips.filter(panics).collect();
    assert_eq!(panicked, [], "of {body} bytes");
}

/// A small part before and after some flushes, of which some were merged, two by two: codes of each
/// sort are packed.
fn part_with_merges(run_codes: RunCodes, merges: u64) -> (Part, Part) {
    let mut builder = PartBuilder::new(&GrfOptions { run_codes, ..GrfOptions::default() });
    sorted((0..260).map(number).collect()).iter().for_each(|key| builder.push(key));
    let base = builder.finish(FlushNumber(7));
    let of_flush = |flush: u64| sorted((0..9).map(|n| number(300 + flush * 9 + n)).collect());
    let flushed = (7..16).fold(base.clone(), |part, flush| insert(&part, flush, &of_flush(flush)));
    let merged = (0..merges).fold(flushed, |part, merge| {
        let (lo, hi) = (7 + 2 * merge, 9 + 2 * merge);
        let keys: Vec<Key> = (lo..hi).flat_map(of_flush).collect();
        recoded(&part, (lo, hi), &sorted(keys))
    });
    let last = Shape::of_round(FlushNumber(7), FlushNumber(40), 3);
    (base, merged.collect_garbage(&last))
}

/// The part after a merge of the flushes from one to another.
fn recoded(part: &Part, (lo, hi): (u64, u64), keys: &[Key]) -> Part {
    let span = |lo, hi| Span::new(FlushNumber(lo), FlushNumber(hi)).expect("not empty");
    let inputs: Vec<Span> = (lo..hi).map(|flush| span(flush, flush + 1)).collect();
    let mut recoder = part.recoder(&inputs, span(lo, hi));
    keys.iter().for_each(|key| recoder.push(key));
    recoder.finish()
}

/// All that a store does with a part.
fn use_part(part: &Part, keys: &[Key]) {
    keys.iter().for_each(|key| drop(answer(part, &Query::Point(key))));
    answer(part, &Query::Range(KeyRange::all()));
    let (mut forward, mut back) = (part.cursor(&[]), part.cursor_back(None));
    let codes = std::iter::from_fn(|| forward.next_due(None, |_| true)).take(9999).count();
    let codes_back = std::iter::from_fn(|| back.next_due(None, |_| true)).take(9999).count();
    assert!(codes < 9999 && codes_back < 9999, "a cursor without an end");
    let part = recoded(&insert(part, 40, keys), (9, 13), keys);
    drop(part.collect_garbage(&Shape::of_round(FlushNumber(7), FlushNumber(60), 3)));
    image_of(&part);
}

#[test]
fn entries_with_damage_behind_right_checksums_are_refused_or_do_no_harm() {
    let keys = sorted((0..400).step_by(7).map(number).collect());
    let cases = [(RunCodes::Shape, 0), (RunCodes::Huffman, 1), (RunCodes::Huffman, 4)];
    for (run_codes, merges) in cases {
        let (base, part) = part_with_merges(run_codes, merges);
        let image = image_of(&part);
        let same = image.iter().zip(image_of(&base)).take_while(|(a, b)| **a == *b).count();
        let (mut refused, mut used) = (0, 0);
        for at in same..image.len() - size_of::<u64>() {
            for change in [1u8, 2, 4, 8, 16, 32, 64, 128, 255] {
                let mut damaged = image.clone();
                damaged[at] ^= change;
                match Part::of_checked_image(damaged) {
                    Ok(part) => {
                        use_part(&part, &keys);
                        used += 1;
                    }
                    Err(_) => refused += 1,
                }
            }
        }
        assert!(refused > 300 && used > 500, "{run_codes:?}: {refused} refused, {used} used");
    }
}
