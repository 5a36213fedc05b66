//! Prefix ribbon: rates match the theory, and no range denies a key.

use proptest::prelude::*;
use trommel_filters::TableFilter;

use super::*;

fn filter(levels: &str, bits_per_key: f64, keys: &[Vec<u8>]) -> PrefixRibbon<Vec<u8>> {
    let levels = levels.parse().expect("levels");
    let mut builder = PrefixRibbonBuilder::new(bits_per_key, levels);
    keys.iter().for_each(|key| builder.add(key).expect("any order will do"));
    PrefixRibbon::read(builder.finish()).expect("whole")
}

fn range<'a>(lower: &'a [u8], upper: &'a [u8]) -> KeyRange<'a> {
    KeyRange::new(lower, Some(upper)).expect("in order")
}

fn assert_near(found: u64, questions: u64, expected: f64, what: &str) {
    let measured = found as f64 / questions as f64;
    let noise = 5.0 * (expected / questions as f64).sqrt();
    let bounds = expected * 0.85 - noise..expected * 1.15 + noise;
    assert!(bounds.contains(&measured), "{what}: {measured}, expected {expected}");
}

fn text(user: u64, time: u64) -> Vec<u8> {
    format!("user{user:08}time{time:08}").into_bytes()
}

/// One row for each of 40,000 users, out of 100 million, at 14 bits.
#[test]
fn rates_are_those_of_the_levels() {
    const QUESTIONS: u64 = 50_000;
    let user = |nth: u64| nth * 2_477;
    let time = |nth: u64| nth * 7_919_993 % 100_000_000;
    let keys: Vec<Vec<u8>> = (0..40_000).map(|nth| text(user(nth), time(nth))).collect();
    let filter = filter("12+21", 14.0, &keys);
    let levels = filter.levels();
    let [(_, of_users), (_, of_times)] = levels[..] else { panic!("{levels:?}") };
    assert!((of_users - of_times - 1.0).abs() < 0.1, "{levels:?}");
    let bits = filter.bytes().len() as f64 * 8.0 / 40_000.0;
    assert!((13.7..14.1).contains(&bits), "{bits}");
    let rate = |columns: f64| RibbonBuilder::expected_rate(columns * 1.047);
    let count = |may: &dyn Fn(u64) -> bool| (0..QUESTIONS).filter(|&nth| may(nth)).count() as u64;
    let absent = count(&|nth| {
        let prefix = format!("user{:08}", user(nth % 40_000) + 1 + nth % 2_000);
        let mut end = Vec::new();
        filter.may_overlap(&KeyRange::of_prefix(prefix.as_bytes(), &mut end))
    });
    assert_near(absent, QUESTIONS, rate(of_users), "an absent user");
    // A thousand times have two prefixes of five digits. The row's own are left out.
    let stretch = |nth: u64| {
        let from = (time(nth % 40_000) + 10_000 + nth % 90_000) % 99_990_000;
        filter.may_overlap(&range(
            &text(user(nth % 40_000), from),
            &text(user(nth % 40_000), from + 999),
        ))
    };
    assert_near(count(&stretch), QUESTIONS, 2.0 * rate(of_times), "a stretch of a user");
    let point = |nth: u64| {
        filter.may_contain(&text(user(nth % 40_000), (time(nth % 40_000) + 5_000) % 99_999_999))
    };
    assert_near(count(&point), QUESTIONS, rate(of_times), "another time of a user");
}

#[test]
fn what_ends_just_behind_a_prefix_holds_one_key_more() {
    let may = |keys: &[&[u8]], lower: &[u8], upper: &[u8]| {
        let keys: Vec<Vec<u8>> = keys.iter().map(|key| key.to_vec()).collect();
        filter("5+all", 40.0, &keys).may_overlap(&range(lower, upper))
    };
    assert!(!may(&[b"user2-1"], b"user1", b"user2"), "no key is so short");
    assert!(may(&[b"user2"], b"user1", b"user2"));
    assert!(!may(&[b"user2", b"user4"], b"user3", b"user3-"));
}

#[test]
fn neighbouring_numbers_are_asked_for_and_nothing_between_them() {
    let keys: Vec<Vec<u8>> =
        (0..2_000u64).map(|nth| text(nth / 10, nth % 10 * 10_000_000)).collect();
    let filter = filter("12+19", 40.0, &keys);
    let may = |from: u64, to: u64| filter.may_overlap(&range(&text(7, from), &text(7, to)));
    assert!(!may(29_900_001, 29_999_999) && !may(10_100_000, 13_000_000));
    assert!(may(29_900_001, 30_000_000), "there is a key at its end");
    assert!(
        !filter.may_overlap(&range(b"user00000007time0x", b"user00000007time0z")),
        "no key is so"
    );
    assert!(!filter.may_overlap(&range(b"v", b"w")));
    assert!(filter.may_overlap(&KeyRange::all()));
}

#[test]
fn keys_without_a_prefix_are_not_lost() {
    let keys = [&b""[..], b"a", b"a/1", b"a/1/7", b"b", b"longer than that"].map(<[u8]>::to_vec);
    for levels in ["3+9", "sep:/", "sep:/+5+all", "255", "all"] {
        let filter = filter(levels, 30.0, &keys);
        for key in &keys {
            assert!(filter.may_contain(key), "{levels}");
            let above = [key, &b"\0"[..]].concat();
            assert!(filter.may_overlap(&range(key, &above)), "{levels}");
            assert!(filter.may_overlap(&range(b"", key)), "{levels}");
        }
    }
}

#[test]
fn a_zero_behind_the_key_before_is_not_lost() {
    let keys = [&b"ab"[..], b"ab\0", b"ab\0\0"].map(<[u8]>::to_vec);
    let filter = filter("4+all", 30.0, &keys);
    assert!(filter.may_overlap(&range(b"ab\0", b"ab\0\0\0")));
    assert!(filter.may_overlap(&range(b"ab\0\0", b"ab\0\0\0")));
}

#[test]
fn no_keys_are_denied_everything() {
    let filter = filter("6+all", 14.0, &[]);
    assert!(!filter.may_contain(b"") && !filter.may_overlap(&KeyRange::all()));
    assert_eq!(filter.levels(), []);
}

#[test]
fn levels_that_are_not_kept_deny_nothing() {
    let keys: Vec<Vec<u8>> = (0..5_000u64).map(|nth| nth.to_be_bytes().to_vec()).collect();
    let filter = filter("7+all", 0.5, &keys);
    assert!(filter.levels().iter().any(|(_, bits)| *bits == 0.0), "{:?}", filter.levels());
    assert!((0..5_000u64).all(|nth| filter.may_contain(&nth.to_be_bytes())));
}

/// Bytes close to each other, so that ranges meet keys.
fn key() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![Just(0u8), Just(b'/'), b'0'..b'4', Just(255u8)];
    prop_oneof![
        9 => proptest::collection::vec(byte, 0..7),
        1 => (60usize..70, any::<u8>()).prop_map(|(len, byte)| vec![byte % 2; len]),
    ]
}

fn levels() -> impl Strategy<Value = &'static str> {
    let levels = ["1+2+3", "2+all", "sep:/", "sep:/+4+all", "5", "all", "3+sep:0x00+66"];
    proptest::sample::select(levels.to_vec())
}

proptest! {
    #[test]
    fn no_key_is_denied(
        mut keys in proptest::collection::vec(key(), 0..60),
        asked in proptest::collection::vec((key(), key()), 40),
        levels in levels(),
        bits in 0.1f64..30.0,
    ) {
        keys.sort();
        let filter = filter(levels, bits, &keys);
        for key in &keys {
            prop_assert!(filter.may_contain(key));
            let mut end = Vec::new();
            for len in 0..key.len() {
                prop_assert!(filter.may_overlap(&KeyRange::of_prefix(&key[..len], &mut end)));
            }
        }
        for (one, other) in &asked {
            let (lower, upper) = if one < other { (one, other) } else { (other, one) };
            for range in [range(lower, upper), KeyRange::new(lower, None).expect("open")] {
                let holds = keys.iter().any(|key| range.covers(key));
                prop_assert!(!holds || filter.may_overlap(&range), "{range:?} of {keys:?}");
            }
        }
    }

    /// Arbitrary files never cause a panic.
    #[test]
    fn damaged_fields_are_refused_or_answer(
        keys in proptest::collection::vec(key(), 1..20),
        (at, value) in (any::<prop::sample::Index>(), any::<u8>()),
        (lower, upper) in (key(), key()),
    ) {
        let image = filter("2+sep:/+4+all", 14.0, &keys).bytes().to_vec();
        let parts = tail::open(&image, TAG, VERSION).expect("whole");
        let mut fields = parts.fields.to_vec();
        let at = at.index(fields.len());
        fields[at] = value;
        let signature = Signature { tag: TAG, version: VERSION, parameter: 0 };
        let sealed = tail::seal(signature, parts.payload.to_vec(), &fields);
        if let Ok(filter) = PrefixRibbon::read(sealed) {
            filter.may_contain(&lower);
            if let Some(range) = KeyRange::new(&lower, Some(&upper)) {
                filter.may_overlap(&range);
            }
        }
    }
}
