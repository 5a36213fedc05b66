//! Prefix Bloom: rates match the theory, and ranges are answered if all their keys have one prefix.

use trommel_filters::TableFilter;

use super::*;

const QUESTIONS: u64 = 100_000;

fn filter(rule: PrefixRule, bits_per_key: f64, keys: &[Vec<u8>]) -> PrefixBloom<Vec<u8>> {
    let mut builder = PrefixBloomBuilder::new(bits_per_key, rule);
    keys.iter().for_each(|key| builder.add(key).expect("any order will do"));
    PrefixBloom::read(builder.finish()).expect("whole")
}

fn assert_near(found: u64, expected: f64, what: &str) {
    let measured = found as f64 / QUESTIONS as f64;
    let noise = 5.0 * (expected / QUESTIONS as f64).sqrt();
    let bounds = expected * 0.9 - noise..expected * 1.1 + noise;
    assert!(bounds.contains(&measured), "{what}: {measured}, expected {expected}");
}

fn count(holds: impl Fn(u64) -> bool) -> u64 {
    (0..QUESTIONS).filter(|&n| holds(n)).count() as u64
}

/// Four keys per prefix: five entries for four keys.
#[test]
fn rates_are_those_of_a_bloom_filter_of_keys_and_prefixes() {
    let number = |n: u64| ((n / 4) << 16 | (n % 4)).to_be_bytes();
    let keys: Vec<Vec<u8>> = (0..40_000).map(|n| number(n).to_vec()).collect();
    for bits_per_key in [5.0, 10.0] {
        let filter = filter(PrefixRule::default(), bits_per_key, &keys);
        let rate = PrefixBloomBuilder::expected_rate(bits_per_key / 1.25);
        let near = count(|n| filter.may_contain(&(((n % 10_000) << 16) + 9 + n).to_be_bytes()));
        assert_near(near, rate, "a point whose prefix is there");
        let far = count(|n| filter.may_contain(&((n + 10_000) << 16).to_be_bytes()));
        assert_near(far, rate * rate, "another point");
        let ranges = count(|n| {
            let low = (n + 10_000) << 16;
            let (low, high) = (low.to_be_bytes(), (low + 0xffff).to_be_bytes());
            filter.may_overlap(&KeyRange::new(&low, Some(&high)).expect("in order"))
        });
        assert_near(ranges, rate, "a range in one prefix");
    }
}

#[test]
fn prefixes_are_what_the_rule_says() {
    let fixed = PrefixRule::Fixed(3);
    assert_eq!(fixed.prefix_of(b"user/7"), Some(&b"use"[..]));
    assert_eq!(fixed.prefix_of(b"use"), Some(&b"use"[..]));
    assert_eq!(fixed.prefix_of(b"us"), None);
    let separated = PrefixRule::Separator(b'/');
    assert_eq!(separated.prefix_of(b"user/7/8"), Some(&b"user/"[..]));
    assert_eq!(separated.prefix_of(b"/"), Some(&b"/"[..]));
    assert_eq!(separated.prefix_of(b"user"), None);
}

#[test]
fn ranges_are_answered_in_one_prefix_alone() {
    let keys = [&b"a/1"[..], b"a/2", b"b", b"m/9", b"\xff/"].map(<[u8]>::to_vec);
    let filter = filter(PrefixRule::Separator(b'/'), 40.0, &keys);
    let may = |low: &[u8], high: &[u8]| {
        filter.may_overlap(&KeyRange::new(low, Some(high)).expect("in order"))
    };
    assert!(may(b"a/", b"a0") && may(b"a/7", b"a/9"), "the prefix is there, whatever lies behind");
    assert!(!may(b"c/", b"c/zz") && !may(b"c/", b"c0"));
    assert!(may(b"c/", b"c00"), "other prefixes may begin before its end");
    assert!(may(b"l/", b"m/9"), "two prefixes");
    assert!(may(b"b", b"b0"), "no prefix");
    assert!(may(b"\xff/", b"\xff/7") && !may(b"\xfe/", b"\xfe/7"));
    assert!(filter.may_overlap(&KeyRange::all()));
    assert!(!filter.may_contain(b"a/") && !filter.may_contain(b"m"), "a prefix is no key");
    assert!(filter.may_contain(b"b"), "a key without prefix");
}

/// The hash has a fixed seed, so that such neighbours can be computed.
#[test]
fn neighbours_with_one_hash_keep_their_own_prefixes() {
    let twin = [0x94, 0xe4, 0x90, 0x59, 0xbd, 0x94, 0x39, 0xc2];
    let keys = [b"user1/".to_vec(), twin.to_vec()];
    assert_eq!(hash_key(&keys[0], HashUse::Table), hash_key(&keys[1], HashUse::Table));
    let filter = filter(PrefixRule::default(), 200.0, &keys);
    assert!(keys.iter().all(|key| filter.may_contain(key)));
    let (low, high) = ([&twin[..6], &[0, 0]].concat(), [&twin[..6], &[0xff, 0xff]].concat());
    assert!(filter.may_overlap(&KeyRange::new(&low, Some(&high)).expect("in order")));
}

/// The exclusive end of a prefix range is queried as if it were included, and may be a key.
#[test]
fn the_key_just_behind_a_prefix_is_not_lost() {
    let filter = filter(PrefixRule::Separator(b'/'), 20.0, &[b"user0".to_vec()]);
    let range = KeyRange::new(b"user/", Some(b"user0")).expect("in order");
    assert!(filter.may_overlap(&range));
    assert!(!filter.may_overlap(&KeyRange::new(b"user/", Some(b"user/\xff")).expect("in order")));
}

#[test]
fn the_rule_is_in_the_image() {
    for rule in [PrefixRule::Fixed(0), PrefixRule::Fixed(255), PrefixRule::Separator(b':')] {
        let filter = filter(rule, 10.0, &[b"drum:1".to_vec()]);
        assert_eq!(filter.rule(), rule);
        assert!(filter.may_contain(b"drum:1"));
    }
}
