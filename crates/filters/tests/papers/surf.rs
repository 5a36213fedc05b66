//! SuRF (SIGMOD 2018): Figure 4, and what sections 3.2 to 3.5 promise of each kind.

use trommel_filters::{
    CountBounds, HashUse, KeyRange, LowerBound, Surf, SurfBuilder, SurfKind, SurfOptions,
    SurfSuffix, TableFilter, TableFilterBuilder, hash_key,
};

const KEYS: [&[u8]; 3] = [b"SIGAI", b"SIGMOD", b"SIGOPS"];

fn surf(kind: SurfKind, hash: u32, real: u32) -> Surf<Vec<u8>> {
    let suffix = SurfSuffix::Bits { hash, real };
    let options = SurfOptions { suffix, ..SurfOptions::default() };
    let mut builder = SurfBuilder::new(kind, 0.0, &options);
    KEYS.iter().for_each(|key| builder.add(key).expect("in order"));
    Surf::read(builder.finish()).expect("whole")
}

fn known(surf: &Surf<Vec<u8>>) -> Vec<String> {
    let mut cursor = surf.cursor();
    cursor.seek_first();
    let keys = std::iter::from_fn(|| {
        let key = cursor.key();
        cursor.next();
        key.map(|key| String::from_utf8(key).expect("ASCII"))
    });
    keys.collect()
}

#[test]
fn figure_4_base_keeps_the_shared_prefix_and_one_more_byte() {
    let surf = surf(SurfKind::Base, 0, 0);
    assert_eq!(known(&surf), ["SIGA", "SIGM", "SIGO"]);
    assert_eq!((surf.edges(), surf.keys()), (6, 3));
    assert!(surf.may_contain(b"SIGMETRICS"), "the false positive of section 3.1");
    assert!(!surf.may_contain(b"SIGCOMM") && !surf.may_contain(b"SIG") && !surf.may_contain(b""));
}

#[test]
fn figure_4_real_keeps_the_next_byte() {
    let surf = surf(SurfKind::Real, 0, 8);
    assert_eq!(known(&surf), ["SIGAI", "SIGMO", "SIGOP"]);
    assert!(!surf.may_contain(b"SIGMETRICS") && surf.may_contain(b"SIGMOBILE"));
}

#[test]
fn figure_4_hash_keeps_the_least_bits_of_the_hash() {
    let surf = surf(SurfKind::Hash, 8, 0);
    let hash = |key: &[u8]| hash_key(key, HashUse::Table) as u8;
    assert_eq!(known(&surf), ["SIGA", "SIGM", "SIGO"]);
    let others = (0..5000u32).map(|n| format!("SIGM{n}").into_bytes());
    let (mut same, mut all) = (0, 0);
    for key in others {
        assert_eq!(surf.may_contain(&key), hash(&key) == hash(b"SIGMOD"));
        (same, all) = (same + usize::from(surf.may_contain(&key)), all + 1);
    }
    // One in 256 of 5000: 19.5, and five times the noise of it.
    assert!((1..42).contains(&same), "{same} of {all}");
}

#[test]
fn figure_4_mixed_keeps_both() {
    let surf = surf(SurfKind::Mixed, 8, 8);
    assert_eq!(known(&surf), ["SIGAI", "SIGMO", "SIGOP"]);
    assert!(!surf.may_contain(b"SIGMETRICS"));
    let of_prefix = (0..2000u32).map(|n| format!("SIGMO{n}").into_bytes());
    assert!(of_prefix.filter(|key| surf.may_contain(key)).count() < 30);
}

/// Section 3.5, moveToNext: the flag is set where a stored key's prefix is one of the key sought,
/// and real bits do not tell.
#[test]
fn section_3_5_the_false_positive_flag() {
    let bound = |surf: &Surf<Vec<u8>>, key: &[u8]| match surf.lower_bound(key) {
        Some(LowerBound::From { key, unsure }) => (String::from_utf8(key).expect("ASCII"), unsure),
        other => (format!("{other:?}"), false),
    };
    let base = surf(SurfKind::Base, 0, 0);
    let real = surf(SurfKind::Real, 0, 8);
    let is = |text: &str, unsure: bool| (text.to_owned(), unsure);
    assert_eq!(bound(&base, b"SIGB"), is("SIGM", false));
    assert_eq!(bound(&base, b"SIGMETRICS"), is("SIGMETRICS", true));
    assert_eq!(bound(&real, b"SIGMETRICS"), is("SIGMO", false));
    assert_eq!(bound(&real, b"SIGMOBILE"), is("SIGMOBILE", true));
    assert_eq!(bound(&real, b"SIGMUSIC"), is("SIGOP", false));
    assert_eq!(bound(&base, b"SIGM"), is("SIGM", false));
    assert_eq!(bound(&real, b"SIGP").0, "Some(End)");
}

/// Section 3.5, count: the flags of both ends are the width of the bounds.
#[test]
fn section_3_5_counts() {
    let (base, real) = (surf(SurfKind::Base, 0, 0), surf(SurfKind::Real, 0, 8));
    let count = |surf: &Surf<Vec<u8>>, low: &[u8], high: &[u8]| {
        surf.count(&KeyRange::new(low, Some(high)).expect("in order")).expect("known")
    };
    assert_eq!(base.count(&KeyRange::all()), Some(CountBounds::exact(3)));
    assert_eq!(count(&base, b"SIGB", b"SIGN"), CountBounds::exact(1));
    let unsure = count(&base, b"SIGAM", b"SIGOPT");
    assert_eq!((unsure.least, unsure.most), (1, 3));
    assert_eq!(count(&real, b"SIGAM", b"SIGOQ"), CountBounds::exact(2));
    let within_one = count(&base, b"SIGMA", b"SIGMZ");
    assert_eq!((within_one.least, within_one.most), (0, 1));
}

/// Section 3.2: n bits of hash leave at most one in 2^n of the keys that reach a leaf.
#[test]
fn section_3_2_each_hash_bit_halves_the_rate() {
    let spread = |n: u64| (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
    let mut keys: Vec<u64> = (0..20_000).map(spread).collect();
    keys.sort_unstable();
    let build = |hash: u32| {
        let suffix = SurfSuffix::Bits { hash, real: 0 };
        let options = SurfOptions { suffix, ..SurfOptions::default() };
        let mut builder = SurfBuilder::new(SurfKind::Hash, 0.0, &options);
        keys.iter().for_each(|key| builder.add(&key.to_be_bytes()).expect("in order"));
        Surf::read(builder.finish()).expect("whole")
    };
    // Beside stored keys: all of them reach a leaf.
    let beside = |surf: &Surf<Vec<u8>>| {
        let asked = keys.iter().filter(|key| keys.binary_search(&(*key ^ 1)).is_err());
        let maybe = |key: &&u64| surf.may_contain(&(*key ^ 1).to_be_bytes());
        let asked: Vec<&u64> = asked.collect();
        asked.iter().filter(|key| maybe(key)).count() as f64 / asked.len() as f64
    };
    let base = beside(&build(0));
    assert!(base > 0.99, "{base}");
    for bits in 1..=8 {
        let (rate, theory) = (beside(&build(bits)), 0.5f64.powi(bits as i32));
        let noise = 5.0 * (theory / 20_000.0).sqrt();
        assert!((theory * 0.9 - noise..=theory * 1.1 + noise).contains(&rate), "{bits}: {rate}");
    }
}

/// How likely a uniform key that is absent has a stored key's prefix: below some node that two keys
/// share, one key alone.
fn rate_of_base(keys: f64) -> f64 {
    let cell = |depth: i32| 256f64.powi(-depth);
    let empty_but_one = |depth: i32| (1.0 - cell(depth)).powf(keys - 1.0);
    (1..=8)
        .map(|depth| keys * cell(depth) * (empty_but_one(depth) - empty_but_one(depth - 1)))
        .sum()
}

/// Section 3.1 to 3.4, on uniform keys: each bit of a suffix, hashed or real, halves the rate for
/// points.
#[test]
fn section_3_rates_on_uniform_keys() {
    const KEYS: u64 = 20_000;
    const QUERIES: u64 = 60_000;
    let spread = |n: u64| {
        let mixed = (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    };
    let mut keys: Vec<u64> = (0..KEYS).map(spread).collect();
    keys.sort_unstable();
    let kinds = [(SurfKind::Base, 0, 0), (SurfKind::Hash, 4, 0)];
    let kinds = kinds.into_iter().chain([(SurfKind::Real, 0, 4), (SurfKind::Mixed, 2, 3)]);
    for (kind, hash, real) in kinds {
        let options =
            SurfOptions { suffix: SurfSuffix::Bits { hash, real }, ..SurfOptions::default() };
        let mut builder = SurfBuilder::new(kind, 0.0, &options);
        keys.iter().for_each(|key| builder.add(&key.to_be_bytes()).expect("in order"));
        let surf = Surf::read(builder.finish()).expect("whole");
        let asked = (KEYS..KEYS + QUERIES).map(spread);
        let maybe = asked.filter(|key| surf.may_contain(&key.to_be_bytes())).count();
        let rate = maybe as f64 / QUERIES as f64;
        let theory = rate_of_base(KEYS as f64) * 0.5f64.powi((hash + real) as i32);
        let noise = 5.0 * (theory / QUERIES as f64).sqrt();
        let bounds = theory * 0.9 - noise..theory * 1.1 + noise;
        assert!(bounds.contains(&rate), "{}: {rate}, {theory} expected", kind.name());
    }
}

/// The size is what was asked for, as near as whole bits of suffixes come to it.
#[test]
fn suffixes_fill_the_bits_that_were_asked_for_and_take_no_more() {
    let key = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
    let mut keys: Vec<[u8; 8]> = (0..20_000).map(key).collect();
    keys.sort_unstable();
    for kind in [SurfKind::Hash, SurfKind::Real, SurfKind::Mixed] {
        for bits_per_key in [16.0, 18.3, 25.0, 40.0, 70.0] {
            let mut builder = SurfBuilder::new(kind, bits_per_key, &SurfOptions::default());
            keys.iter().for_each(|key| builder.add(key).expect("in order"));
            let bits = builder.finish().len() as f64 * 8.0 / keys.len() as f64;
            let left_over = bits_per_key - bits;
            assert!((0.0..1.001).contains(&left_over), "{}: {bits}", kind.name());
        }
    }
}
