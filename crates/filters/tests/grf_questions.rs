//! Parts whose bits are divided as questions fall.
//! ```text
//! keys --> part as nobody has asked | part for a sample of questions     asked the same, compared
//! ```
//! Invariant: nobody's questions cost others more than twice as many wrong answers, and no key is
//! ever missed.

use trommel_filters::{
    Codes, EmptyQueries, EmptyQuery, Fingerprints, FlushNumber, GrfOptions, KeyRange, KeySample,
    Part, PartBuilder, Query,
};

const KEYS: u64 = 400_000;

fn mixed(number: u64) -> u64 {
    let mixed = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

fn uniform() -> Vec<u64> {
    let mut keys: Vec<u64> = (1..=KEYS).map(mixed).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

fn part(keys: &[u64], bits_per_key: f64, queries: &EmptyQueries) -> Part {
    part_of(keys, bits_per_key, queries, Fingerprints::Auto)
}

fn part_of(keys: &[u64], bits: f64, queries: &EmptyQueries, fingerprints: Fingerprints) -> Part {
    let options = GrfOptions { bits_per_key: bits, fingerprints, ..GrfOptions::default() };
    let bytes: Vec<[u8; 8]> = keys.iter().map(|key| key.to_be_bytes()).collect();
    let sample = KeySample::evenly(bytes.len(), |place| &bytes[place]);
    let builder = PartBuilder::new(&options).with_sample(&sample, bytes.len() as u64);
    let mut builder = builder.with_empty_queries(queries, &sample, bytes.len() as u64);
    bytes.iter().for_each(|key| builder.push(key));
    builder.finish(FlushNumber(1))
}

fn empty_queries(keys: impl Iterator<Item = u64>, is_point: bool) -> EmptyQueries {
    let keys: Vec<[u8; 8]> = keys.map(u64::to_be_bytes).collect();
    EmptyQueries::of(keys.iter().map(|key| EmptyQuery { key, is_point }))
}

fn is_maybe(part: &Part, query: &Query<'_>) -> bool {
    let mut codes = Codes::new();
    part.candidates(query, &mut codes);
    !codes.is_empty()
}

/// The share of keys to which the answer is "maybe".
fn rate(part: &Part, keys: impl Iterator<Item = u64>) -> f64 {
    let answers: Vec<bool> =
        keys.map(|key| is_maybe(part, &Query::Point(&key.to_be_bytes()))).collect();
    answers.iter().filter(|maybe| **maybe).count() as f64 / answers.len() as f64
}

fn range_rate(part: &Part, keys: impl Iterator<Item = u64>) -> f64 {
    let is_maybe = |key: u64| {
        let (low, high) = (key.to_be_bytes(), (key + (1 << 20)).to_be_bytes());
        is_maybe(part, &Query::Range(KeyRange::new(&low, Some(&high)).expect("in order")))
    };
    let answers: Vec<bool> = keys.map(is_maybe).collect();
    answers.iter().filter(|maybe| **maybe).count() as f64 / answers.len() as f64
}

fn bits_per_key(part: &Part, keys: &[u64]) -> f64 {
    8.0 * part.size().base_bytes as f64 / keys.len() as f64
}

/// Numbers that are no keys, of a part of the space.
fn absent(seed: u64, count: u64, shift: u32) -> impl Iterator<Item = u64> {
    (0..count).map(move |nth| mixed((seed << 40) + nth) >> shift)
}

fn behind(keys: &[u64], seed: u64, step: usize) -> impl Iterator<Item = u64> {
    keys.iter().step_by(step).map(move |key| key + 1 + mixed(key ^ seed) % (1 << 20))
}

fn assert_holds_all(part: &Part, keys: &[u64]) {
    for key in keys {
        assert!(is_maybe(part, &Query::Point(&key.to_be_bytes())), "{key:x}");
        let [low, high] = [key - 1, *key].map(u64::to_be_bytes);
        let range = KeyRange::new(&low, Some(&high)).expect("in order");
        assert!(is_maybe(part, &Query::Range(range)), "{key:x}");
    }
}

#[test]
fn points_close_behind_keys_are_learnt() {
    let keys = uniform();
    let queries = empty_queries(behind(&keys, 1, 701), true);
    for (bits, most) in [(8.0, 0.35), (12.0, 0.07), (16.0, 0.02)] {
        let (even, learnt) =
            (part(&keys, bits, &EmptyQueries::default()), part(&keys, bits, &queries));
        let [before, after] = [&even, &learnt].map(|part| rate(part, behind(&keys, 2, 37)));
        assert!(before > 0.99, "{bits}: {before}");
        assert!(after < most, "{bits}: {after}");
        let [few, many] = [&even, &learnt].map(|part| bits_per_key(part, &keys));
        assert!(many < few + 0.1, "{bits}: {few}, then {many}");
        let [even, other] = [&even, &learnt].map(|part| rate(part, absent(5, 200_000, 0)));
        assert!(other < 1.5 * even, "other points: {even}, then {other}");
        assert_holds_all(&learnt, &keys);
    }
}

#[test]
fn points_behind_keys_of_some_groups_cost_others_nothing() {
    let keys = uniform();
    let some = &keys[..keys.len() / 20];
    let queries = empty_queries(behind(some, 1, 67), true);
    let (even, learnt) = (part(&keys, 12.0, &EmptyQueries::default()), part(&keys, 12.0, &queries));
    assert!(rate(&learnt, behind(some, 2, 7)) < 0.05, "{}", rate(&learnt, behind(some, 2, 7)));
    // Elsewhere nobody asked so.
    let elsewhere = || absent(3, 200_000, 1).map(|key| key | 1 << 63);
    let [before, after] = [&even, &learnt].map(|part| range_rate(part, elsewhere()));
    assert!(after < 2.0 * before, "ranges elsewhere: {before}, then {after}");
    assert_holds_all(&learnt, &keys);
}

#[test]
fn bits_go_where_questions_fall_and_nobody_pays_more_than_double() {
    let keys = uniform();
    for (bits, is_point) in [(8.0, true), (12.0, true), (12.0, false)] {
        let even = part(&keys, bits, &EmptyQueries::default());
        for shift in [3, 6, 9] {
            // All of them fall into a 8th, a 64th, or a 512th of the keys.
            let learnt = part(&keys, bits, &empty_queries(absent(1, 5000, shift), is_point));
            let [before, after] =
                [&even, &learnt].map(|part| rate(part, absent(2, 400_000, shift)));
            assert!(after < 0.4 * before, "{bits} {shift}: {before}, then {after}");
            let [before, after] = [&even, &learnt].map(|part| rate(part, absent(4, 400_000, 0)));
            assert!(after < 2.05 * before, "others, {bits} {shift}: {before}, then {after}");
            let [few, many] = [&even, &learnt].map(|part| bits_per_key(part, &keys));
            assert!(many < few + 0.1, "{bits} {shift}: {few}, then {many}");
            assert_holds_all(&learnt, &keys);
        }
    }
}

#[test]
fn questions_outlive_an_image() {
    let keys = uniform();
    let queries = empty_queries(behind(&keys, 1, 701), true);
    for kind in Fingerprints::ALL {
        let built = part_of(&keys, 12.0, &queries, kind);
        let mut image = Vec::new();
        built.write_image(&mut image);
        let read = Part::read_image(&image).expect("an image");
        let queries = |part: &Part| -> Vec<(Vec<u8>, bool)> {
            part.empty_queries().iter().map(|query| (query.key.to_vec(), query.is_point)).collect()
        };
        assert_eq!(queries(&read), queries(&built));
        let kept = if kind == Fingerprints::Spline { 0 } else { keys.len() / 4096 };
        assert_eq!(read.empty_queries().len(), kept, "{kind:?}");
        for key in behind(&keys, 2, 37) {
            let query = key.to_be_bytes();
            let query = Query::Point(&query);
            assert_eq!(is_maybe(&read, &query), is_maybe(&built, &query), "{kind:?} {key:x}");
        }
    }
}

#[test]
fn text_is_divided_by_its_codes() {
    let words: Vec<String> =
        (0..KEYS / 4).map(|nth| format!("user{:08}/mail/{:04}", nth / 7, nth % 7)).collect();
    let sample = KeySample::evenly(words.len(), |place| words[place].as_bytes());
    let absent: Vec<String> =
        (0..900).map(|nth| format!("user{:08}/mail/{:04}x", nth * 3, nth % 7)).collect();
    let queries = absent.iter().map(|key| EmptyQuery { key: key.as_bytes(), is_point: true });
    let mut builder = PartBuilder::new(&GrfOptions::default());
    builder = builder.with_sample(&sample, words.len() as u64);
    builder = builder.with_empty_queries(&EmptyQueries::of(queries), &sample, words.len() as u64);
    words.iter().for_each(|key| builder.push(key.as_bytes()));
    let part = builder.finish(FlushNumber(1));
    for key in &words {
        assert!(is_maybe(&part, &Query::Point(key.as_bytes())), "{key}");
    }
}

/// A part whose keys have eight hash bits.
fn hashed(keys: &[Vec<u8>], fingerprints: Fingerprints) -> Part {
    let options = GrfOptions { bits_per_key: 18.0, point_bits: 8, fingerprints, ..<_>::default() };
    let mut builder = PartBuilder::new(&options);
    keys.iter().for_each(|key| builder.push(key));
    builder.finish(FlushNumber(1))
}

fn is_maybe_between(part: &Part, low: &[u8], high: &[u8]) -> bool {
    is_maybe(part, &Query::Range(KeyRange::new(low, Some(high)).expect("in order")))
}

#[test]
fn short_ranges_are_asked_key_by_key_where_keys_have_one_length() {
    for bytes in [5, 8, 12, 64, 65] {
        // The last bytes differ, or those before them.
        let key = |number: u64| {
            let number = number.to_be_bytes();
            let mut key = vec![3; bytes.max(8)];
            key[..3].copy_from_slice(&number[..3]);
            key[bytes.max(8) - 5..].copy_from_slice(&number[3..]);
            key.split_off(bytes.max(8) - bytes)
        };
        let mut keys: Vec<Vec<u8>> = (0..12_000).map(|nth| key(mixed(nth) >> 5 << 5)).collect();
        keys.sort_unstable();
        keys.dedup();
        for kind in Fingerprints::ALL {
            let part = hashed(&keys, kind);
            let mut image = Vec::new();
            part.write_image(&mut image);
            let read = Part::read_image(&image).expect("an image");
            let (mut maybe, mut asked) = (0, 0);
            for (nth, stored) in keys.iter().enumerate() {
                let after = |by: u8| {
                    let mut key = stored.clone();
                    *key.last_mut().expect("bytes") += by;
                    key
                };
                // Around the key, with ends of all lengths; and behind it, where there is none.
                let (low, high) = (after(0), after(1 + (nth % 7) as u8));
                assert!(is_maybe_between(&part, &low, &high), "{kind:?} {stored:?}");
                assert!(is_maybe_between(&part, &low[..bytes - 1], &high), "{kind:?} {stored:?}");
                let longer = [&high[..], &[0]].concat();
                assert!(is_maybe_between(&part, &low, &longer), "{kind:?} {stored:?}");
                let (low, high) = (after(1), after(4));
                let answer = is_maybe_between(&part, &low, &high);
                assert_eq!(answer, is_maybe_between(&read, &low, &high));
                let range = KeyRange::new(&low, Some(&high)).expect("in order");
                Part::candidates_of_ranges(&[(&part, range)], |_, codes| {
                    assert_eq!(answer, !codes.is_empty(), "asked alone, and with others");
                });
                (maybe, asked) = (maybe + usize::from(answer), asked + 1);
            }
            let rate = f64::from(maybe as u32) / f64::from(asked);
            let is_told = rate < 0.03;
            assert_eq!(is_told, bytes <= 64, "{kind:?}, {bytes} bytes: {rate}");
        }
    }
}

#[test]
fn keys_of_another_length_turn_that_off() {
    let keys: Vec<Vec<u8>> =
        uniform().iter().step_by(20).map(|key| (key & !31).to_be_bytes().to_vec()).collect();
    let mut others = keys.clone();
    others.extend(keys.iter().map(|key| [&key[..7], &[key[7] + 2, 9]].concat()));
    others.sort_unstable();
    others.dedup();
    let (of_one, of_two) = (hashed(&keys, Fingerprints::Auto), hashed(&others, Fingerprints::Auto));
    let mut flushed = of_one.inserter(FlushNumber(1), &Default::default());
    others.iter().filter(|key| key.len() == 9).for_each(|key| flushed.push(key));
    let flushed = flushed.finish();
    for key in &keys {
        // No key of eight bytes is in it, one of nine is.
        let [low, high] = [1, 4].map(|by| [&key[..7], &[key[7] + by]].concat());
        assert!(is_maybe_between(&of_two, &low, &high), "{key:?}");
        assert!(is_maybe_between(&flushed, &low, &high), "{key:?}");
    }
}

#[test]
fn a_part_keeps_questions_of_its_own_keys_alone() {
    let keys = uniform();
    let (own, others) = keys.split_at(keys.len() / 2);
    let queries = empty_queries(behind(&keys, 1, 701), true);
    for (own, others) in [(own, others), (others, own)] {
        let part = part(own, 12.0, &queries);
        assert_eq!(part.empty_queries().len(), own.len() / 4096);
        let all: Vec<_> = part.empty_queries().iter().map(|query| query.key.to_vec()).collect();
        let is_own = |key: &[u8]| {
            key > &own[0].to_be_bytes()[..] && key < &own[own.len() - 1].to_be_bytes()[..]
        };
        assert!(all.iter().all(|key| is_own(key)));
        let built = self::part(others, 12.0, part.empty_queries());
        assert!(built.empty_queries().is_empty(), "nobody asked for these keys");
    }
}

#[test]
fn samples_and_questions_of_any_kind_lose_no_key() {
    let words = |seed: u64, count: u64| -> Vec<Vec<u8>> {
        let word = |nth: u64| {
            let random = mixed(seed << 32 | nth);
            let mut word = random.to_be_bytes()[..(random % 9) as usize].to_vec();
            word.resize(word.len() + (random >> 40) as usize % 3, 0);
            if random.is_multiple_of(97) {
                word.extend(vec![random as u8; (random >> 20) as usize % 400]);
            }
            word
        };
        let mut words: Vec<Vec<u8>> = (0..count).map(word).collect();
        words.sort_unstable();
        words.dedup();
        words
    };
    for seed in 1..25 {
        let keys = words(seed, 1 + mixed(seed) % 9000);
        let queries = words(if seed % 3 == 0 { seed } else { seed + 50 }, 2000);
        let queries = queries.iter().enumerate();
        let queries = queries.map(|(nth, key)| EmptyQuery { key, is_point: nth % 4 > 0 });
        let queries = EmptyQueries::of(queries);
        // Stretches wherever they lie, of other keys.
        let mut sample = KeySample::default();
        for stretch in 0..seed % 7 {
            words(stretch + 90, 300).iter().for_each(|key| sample.push(key));
            sample.end_stretch();
        }
        for kind in Fingerprints::ALL {
            let bits_per_key = [1.0, 6.0, 12.0, 30.0][seed as usize % 4];
            let options = GrfOptions { bits_per_key, fingerprints: kind, ..<_>::default() };
            let builder = PartBuilder::new(&options).with_sample(&sample, 1 << 20);
            let mut builder = builder.with_empty_queries(&queries, &sample, 1 << 20);
            keys.iter().for_each(|key| builder.push(key));
            let part = builder.finish(FlushNumber(1));
            for key in &keys {
                assert!(is_maybe(&part, &Query::Point(key)), "{kind:?} {key:?}");
                assert!(is_maybe_between(&part, key, key), "{kind:?} {key:?}");
            }
            let mut cursor = part.cursor(&[]);
            for key in &keys {
                while cursor.next_due(Some(key), |_| true).is_some() {}
            }
        }
    }
}

// Half of the keys lay in one of 64 stretches, for which the whole filter took half of it more.
#[test]
fn a_sample_of_some_keys_alone_keeps_the_budget() {
    let keys = uniform();
    let bytes: Vec<[u8; 8]> = keys.iter().map(|key| key.to_be_bytes()).collect();
    let old = bytes.len() / 2;
    let sample = KeySample::evenly(old, |place| &bytes[place]);
    for hot in [&keys[old..], &keys[..old / 60]] {
        let queries = empty_queries(
            absent(3, 40_000, 0).filter(|key| (hot[0]..hot[hot.len() - 1]).contains(key)),
            true,
        );
        for bits_per_key in [6.0, 12.0] {
            let options = GrfOptions { bits_per_key, ..GrfOptions::default() };
            let bits = |queries: &EmptyQueries| {
                let builder = PartBuilder::new(&options).with_sample(&sample, KEYS);
                let mut builder = builder.with_empty_queries(queries, &sample, KEYS);
                bytes.iter().for_each(|key| builder.push(key));
                self::bits_per_key(&builder.finish(FlushNumber(1)), &keys)
            };
            let (even, learnt) = (bits(&EmptyQueries::default()), bits(&queries));
            assert!(learnt < even + 0.2, "{even}, then {learnt}");
        }
    }
}
