//! The laws of every filter that is kept as bytes, against a twin too plain to be wrong.
//! ```text
//! keys (sorted, with repeats) ─┬─> filter ──> maybe or no ─┐
//!                              └─> BTreeSet ─> yes or no ──┴─> "no" only where the twin says no
//!
//! image damaged in    what must happen
//! its length          an error
//! its structure       an error (whoever reads the image checks the counts and tags)
//! its payload         no panic; the answers are wrong, so whoever stores an image keeps a checksum
//! ```
//! Invariant: a law names no filter. A new filter adds one line to `FILTERS`.

use std::collections::BTreeSet;
use std::hint::black_box;
use std::ops::Bound::{Included, Unbounded};
use std::sync::OnceLock;

use proptest::prelude::*;
use trommel_filters::{
    AlignedBytes, AnyFilterBuilder, Corrupt, FilterKind, FilterOptions, KeyRange, KeySample,
    LowerBound, TableKind, TextModel, UpperBound, read_filter,
};
use trommel_guards::{FingerprintFilterBuilder, kinds};

type Key = Vec<u8>;
type Filter = Box<dyn trommel_filters::AnyFilter>;

/// One kind of filter, at one size.
struct Maker {
    kind: &'static dyn FilterKind,
    bits_per_key: f64,
    /// How many bytes at the end of an image are structure: any flipped bit there is an error.
    structure_bytes: usize,
}

/// Every filter there is, at several sizes: the more bits, the more of its code is used.
const FILTERS: [Maker; 46] = [
    maker(kinds::BLOCKED_BLOOM, 1.0, 8),
    maker(kinds::BLOCKED_BLOOM, 10.0, 8),
    maker(kinds::BLOCKED_BLOOM, 40.0, 8),
    maker(kinds::BLOOM, 1.0, 12),
    maker(kinds::BLOOM, 10.0, 12),
    maker(kinds::BLOOM, 40.0, 12),
    maker(kinds::RIBBON, 1.0, 17),
    maker(kinds::RIBBON, 9.5, 17),
    maker(kinds::RIBBON, 30.0, 17),
    maker(kinds::BINARY_FUSE, 1.5, 18),
    maker(kinds::BINARY_FUSE, 9.5, 18),
    maker(kinds::BINARY_FUSE, 40.0, 18),
    maker(kinds::XOR, 1.5, 18),
    maker(kinds::XOR, 20.0, 18),
    maker(kinds::SURF_BASE, 10.0, 48),
    maker(kinds::SURF_HASH, 16.0, 48),
    maker(kinds::SURF_REAL, 20.0, 48),
    maker(kinds::SURF_REAL, 90.0, 48),
    maker(kinds::SURF_MIXED, 22.0, 48),
    maker(kinds::SURF_MIXED, 70.0, 48),
    maker(kinds::SURF_MIXED, 40.0, 48),
    maker(kinds::SNARF, 6.0, 60),
    maker(kinds::SNARF, 40.0, 60),
    maker(kinds::CELL, 10.0, 60),
    maker(kinds::CELL, 24.0, 60),
    maker(kinds::GAP, 8.0, 60),
    maker(kinds::GAP, 40.0, 60),
    maker(kinds::CODED, 8.0, 60),
    maker(kinds::CODED, 40.0, 60),
    maker(TEXT_CELL, 16.0, 60),
    maker(TEXT_GAP, 16.0, 60),
    maker(TEXT_CODED, 12.0, 60),
    maker(kinds::ROSETTA, 2.0, 52),
    maker(kinds::ROSETTA, 14.0, 52),
    maker(kinds::RENCODER, 2.0, 14),
    maker(kinds::RENCODER, 10.0, 14),
    maker(kinds::RENCODER, 24.0, 14),
    maker(kinds::PREFIX_BLOOM, 4.0, 13),
    maker(kinds::PREFIX_BLOOM, 16.0, 13),
    maker(kinds::PREFIX_RIBBON, 4.0, 13),
    maker(kinds::PREFIX_RIBBON, 24.0, 13),
    maker(kinds::ARF, 4.0, 16),
    maker(kinds::ARF, 14.0, 16),
    maker(kinds::ELASTIC, 1.0, 8 + 28),
    maker(kinds::ELASTIC, 10.0, 7 * 8 + 28),
    maker(kinds::ELASTIC, 30.0, 7 * 8 + 28),
];

const fn maker(kind: &'static dyn FilterKind, bits_per_key: f64, structure_bytes: usize) -> Maker {
    Maker { kind, bits_per_key, structure_bytes }
}

/// Of codes: whatever the keys are, with a model of some text.
const TEXT_CELL: &dyn FilterKind =
    &text_kind("cell", |options| with_text(FingerprintFilterBuilder::cell(options.bits_per_key)));
const TEXT_GAP: &dyn FilterKind =
    &text_kind("gap", |options| with_text(FingerprintFilterBuilder::gap(options.bits_per_key)));
const TEXT_CODED: &dyn FilterKind =
    &text_kind("coded", |options| with_text(FingerprintFilterBuilder::coded(options.bits_per_key)));

const fn text_kind(
    name: &'static str,
    builder: fn(&FilterOptions) -> Box<dyn AnyFilterBuilder>,
) -> TableKind {
    TableKind::new(name, builder, |bytes| kinds::CELL.read(bytes)).with_ranges()
}

fn with_text(builder: FingerprintFilterBuilder) -> Box<dyn AnyFilterBuilder> {
    static MODEL: OnceLock<TextModel> = OnceLock::new();
    let model = MODEL.get_or_init(|| {
        let mut sample = KeySample::default();
        families().iter().filter(|(name, _)| name.contains("prefixes")).for_each(|(_, keys)| {
            keys.iter().for_each(|key| sample.push(key));
        });
        TextModel::of(&sample, 1 << 20).with_code_bits(96)
    });
    Box::new(builder.with_text(model.clone(), 1 << 20))
}

impl Maker {
    fn name(&self) -> String {
        format!("{}, {} bits", self.kind.name(), self.bits_per_key)
    }

    /// The image of the filter of sorted keys, repeats allowed.
    fn build(&self, keys: &[Key]) -> Vec<u8> {
        let options = FilterOptions::new(self.kind, self.bits_per_key);
        let mut builder = options.builder();
        keys.iter().for_each(|key| builder.add(key).expect("sorted"));
        builder.finish()
    }

    fn read(&self, image: Vec<u8>) -> Result<Filter, Corrupt> {
        let read = read_filter(AlignedBytes::from_slice(&image), &kinds::TABLE_FILTERS);
        read.inspect(|filter| assert!(filter.kind() == self.kind || filter.size_bytes() < 100))
    }
}

/// A fixed, evenly spread sequence (SplitMix64), so that every run asks the same.
fn spread(n: u64) -> u64 {
    let mixed = (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

fn numbers(numbers: impl Iterator<Item = u64>) -> Vec<Key> {
    numbers.map(|number| number.to_be_bytes().to_vec()).collect()
}

/// Keys that have hurt filters, by name. Unsorted; some repeat.
fn families() -> Vec<(&'static str, Vec<Key>)> {
    let runs_of = |byte: u8| (0..200).map(move |len| vec![byte; len]);
    let text = b"a sieve that turns, one drum, many sizes of grain";
    let long = |kib: u64| {
        let words = (0..kib * 128).flat_map(move |n| spread((kib << 32) | n).to_le_bytes());
        words.collect::<Key>()
    };
    let mut long_keys: Vec<Key> = [1, 2, 7, 33, 64].map(long).to_vec();
    long_keys.extend(long_keys.clone().into_iter().map(|mut key| {
        key.pop();
        key
    }));
    vec![
        ("no key", vec![]),
        ("one key", vec![b"drum".to_vec()]),
        ("the empty key", vec![vec![]]),
        ("the empty key and its successor", vec![vec![], vec![0]]),
        ("runs of 0x00 and 0xff", runs_of(0).chain(runs_of(0xff)).collect()),
        ("prefixes of each other", (0..text.len()).map(|len| text[..len].to_vec()).collect()),
        ("repeats", numbers((0..3000).map(|n| n / 7))),
        ("dense ids", numbers(1_000_000..1_005_000)),
        ("clusters", numbers((0..5000).map(|n| (spread(n % 50) & !0xf_ffff) | (spread(n) % 2000)))),
        ("uniform", numbers((0..5000).map(spread))),
        ("the ends of the key space", numbers([0, 1, u64::MAX - 1, u64::MAX].into_iter())),
        ("keys of 1 to 64 KiB", long_keys),
    ]
}

fn sorted(mut keys: Vec<Key>) -> Vec<Key> {
    keys.sort();
    keys
}

fn read(maker: &Maker, image: &[u8]) -> Filter {
    maker.read(image.to_vec()).unwrap_or_else(|error| panic!("{}: {error}", maker.name()))
}

/// Keys in, between and around the stored ones: each key, its neighbours, prefixes and extensions.
fn probes(keys: &BTreeSet<Key>) -> Vec<Key> {
    let step = keys.len().div_ceil(400).max(1);
    let mut probes: Vec<Key> = vec![vec![], vec![0], vec![0xff; 9], vec![0x7f; 8]];
    for key in keys.iter().step_by(step) {
        probes.push(key.clone());
        probes.push([key, &[0][..]].concat());
        probes.push(key[..key.len() / 2].to_vec());
        if let Some((last, head)) = key.split_last() {
            probes.push([head, &[last.wrapping_add(1)]].concat());
            probes.push([head, &[last.wrapping_sub(1), 0xff]].concat());
        }
    }
    probes
}

/// Closed ranges from each probe: to itself, to near and far ones, to the end of the key space.
fn ranges(probes: &[Key]) -> Vec<(&[u8], Option<&[u8]>)> {
    let far = probes.len() / 2;
    let pairs = probes.iter().enumerate().flat_map(|(at, lower)| {
        let uppers = [at, at + 1, at + 7, at + far].map(|other| &probes[other % probes.len()]);
        let bounded = uppers.map(|upper| (lower.min(upper), Some(&lower.max(upper)[..])));
        bounded.map(|(lower, upper)| (&lower[..], upper)).into_iter().chain([(&lower[..], None)])
    });
    pairs.collect()
}

fn no_key_is_lost(maker: &Maker, filter: &Filter, keys: &BTreeSet<Key>) {
    for key in keys {
        assert!(filter.may_contain(key), "{} lost {}", maker.name(), key.escape_ascii());
    }
}

fn no_means_absent(maker: &Maker, filter: &Filter, keys: &BTreeSet<Key>) {
    let probes = probes(keys);
    for key in &probes {
        let lost = keys.contains(key) && !filter.may_contain(key);
        assert!(!lost, "{} lost {}", maker.name(), key.escape_ascii());
    }
    for (lower, upper) in ranges(&probes) {
        let range = KeyRange::new(lower, upper).expect("the lesser bound first");
        let mut from_lower = keys.range::<[u8], _>((Included(lower), Unbounded));
        let present = from_lower.next().is_some_and(|key| range.covers(key));
        assert!(filter.may_overlap(&range) || !present, "{} lost a key in {range:?}", maker.name());
    }
}

fn bounds_are_no_lies(maker: &Maker, filter: &Filter, keys: &BTreeSet<Key>) {
    let probes = probes(keys);
    for key in &probes {
        let next = keys.range::<[u8], _>((Included(&key[..]), Unbounded)).next();
        match filter.lower_bound(key) {
            None => {}
            Some(LowerBound::End) => {
                assert_eq!(next, None, "{}: after {}", maker.name(), key.escape_ascii());
            }
            Some(LowerBound::From { key: bound, unsure }) => {
                let in_order = *key <= bound && next.is_none_or(|next| bound <= *next);
                assert!(in_order, "{}: {bound:?} from {key:?}, next {next:?}", maker.name());
                assert!(!unsure || bound == *key, "{}: unsure, yet {bound:?}", maker.name());
            }
        }
    }
    probes.iter().for_each(|key| an_upper_bound_is_no_lie(maker, filter, keys, key));
    for (lower, upper) in ranges(&probes) {
        let range = KeyRange::new(lower, upper).expect("the lesser bound first");
        let Some(count) = filter.count(&range) else { continue };
        let from_lower = keys.range::<[u8], _>((Included(lower), Unbounded));
        let truth = from_lower.take_while(|key| range.covers(key)).count() as u64;
        let bounded = count.least <= truth && truth <= count.most;
        assert!(bounded, "{}: {count:?} for {truth} in {range:?}", maker.name());
    }
}

fn an_upper_bound_is_no_lie(maker: &Maker, filter: &Filter, keys: &BTreeSet<Key>, key: &Key) {
    let last = keys.range::<[u8], _>((Unbounded, Included(&key[..]))).next_back();
    match filter.upper_bound(key) {
        None => {}
        Some(UpperBound::Start) => {
            assert_eq!(last, None, "{}: before {}", maker.name(), key.escape_ascii());
        }
        Some(UpperBound::Before { end, unsure }) => {
            let after = [key, &[0][..]].concat();
            let in_order = end <= after && last.is_none_or(|last| *last < end);
            assert!(in_order, "{}: before {end:?} from {key:?}, last {last:?}", maker.name());
            assert!(!unsure || end == after, "{}: unsure, yet before {end:?}", maker.name());
        }
    }
}

fn the_laws_hold(maker: &Maker, keys: Vec<Key>) {
    let keys = sorted(keys);
    let image = maker.build(&keys);
    let filter = read(maker, &image);
    let twin: BTreeSet<Key> = keys.iter().cloned().collect();
    no_key_is_lost(maker, &filter, &twin);
    no_means_absent(maker, &filter, &twin);
    bounds_are_no_lies(maker, &filter, &twin);
    let distinct: Vec<Key> = twin.into_iter().collect();
    assert_eq!(image, maker.build(&distinct), "{}: a repeated key changes the image", maker.name());
}

#[test]
fn no_family_of_keys_loses_one() {
    for maker in &FILTERS {
        families().into_iter().for_each(|(_, keys)| the_laws_hold(maker, keys));
    }
}

#[test]
fn a_filter_of_no_keys_says_no() {
    for maker in &FILTERS {
        let filter = read(maker, &maker.build(&[]));
        let all = probes(&BTreeSet::from([b"drum".to_vec()]));
        assert!(all.iter().all(|key| !filter.may_contain(key)), "{}", maker.name());
        let everything = filter.may_overlap(&KeyRange::all());
        assert!(!everything || !maker.kind.knows_ranges(), "{}", maker.name());
    }
}

#[test]
fn a_filter_earns_its_bits() {
    let keys = sorted(numbers((0..5000).map(spread)));
    let absent = numbers((5000..10_000).map(spread));
    for maker in &FILTERS {
        let filter = read(maker, &maker.build(&keys));
        let refuted = absent.iter().filter(|key| !filter.may_contain(key)).count();
        assert!(refuted > absent.len() / 4, "{} refuted {refuted}", maker.name());
    }
}

/// decode(encode(f)) = f, seen from outside: what is read twice answers alike, and answers as when
/// built from the same keys again.
#[test]
fn what_is_read_answers_alike() {
    for maker in &FILTERS {
        for (family, keys) in families() {
            let keys = sorted(keys);
            let image = maker.build(&keys);
            assert_eq!(image, maker.build(&keys), "{}, {family}: two images", maker.name());
            let (first, second) = (read(maker, &image), read(maker, &image));
            for probe in probes(&keys.into_iter().collect()) {
                assert_eq!(
                    first.may_contain(&probe),
                    second.may_contain(&probe),
                    "{}",
                    maker.name()
                );
                assert_eq!(first.lower_bound(&probe), second.lower_bound(&probe));
                assert_eq!(first.upper_bound(&probe), second.upper_bound(&probe));
            }
        }
    }
}

#[test]
fn a_truncated_or_extended_image_is_an_error() {
    for maker in &FILTERS {
        for (family, keys) in families() {
            let image = maker.build(&sorted(keys));
            for len in (0..image.len()).filter(|len| image.len() < 3000 || len % 61 < 3) {
                let error = maker.read(image[..len].to_vec()).err();
                let at =
                    error.unwrap_or_else(|| panic!("{}, {family}: cut to {len}", maker.name())).at;
                assert!(at <= len, "{}: an error at {at}, beyond {len} bytes", maker.name());
            }
            for extra in [1, 8, 56, 64] {
                let longer = [&image[..], &vec![0; extra][..]].concat();
                assert!(maker.read(longer).is_err(), "{}, {family}: {extra} more", maker.name());
            }
            let doubled = [&image[..], &image[..]].concat();
            assert!(maker.read(doubled).is_err(), "{}, {family}: twice", maker.name());
        }
    }
}

#[test]
fn a_flipped_bit_is_an_error_in_the_structure_and_no_panic_elsewhere() {
    for maker in &FILTERS {
        let keys = sorted(numbers((0..300).map(spread)));
        let image = maker.build(&keys);
        let structure_at = image.len() - maker.structure_bytes;
        for bit in 0..image.len() * 8 {
            let mut damaged = image.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let result = maker.read(damaged);
            assert!(
                result.is_err() || bit / 8 < structure_at,
                "{}: bit {bit} flipped",
                maker.name()
            );
            if let Ok(filter) = result {
                // Where a question is a few reads, every key is asked for; else in turns some of
                // them.
                let step = if maker.kind.knows_ranges() { bit % 8 + 8 } else { 1 };
                keys.iter().step_by(step).for_each(|key| ask_everything(&filter, key));
            }
        }
    }
}

/// Asks whatever can be asked: damage must not make a filter panic.
fn ask_everything(filter: &Filter, key: &[u8]) {
    black_box(filter.may_contain(key));
    black_box((filter.lower_bound(key), filter.upper_bound(key)));
    for upper in [None, Some(key), Some(&[0xff; 9][..])] {
        if let Some(range) = KeyRange::new(key, upper) {
            black_box((filter.may_overlap(&range), filter.count(&range)));
        }
    }
}

#[test]
fn every_kind_is_under_the_laws() {
    for kind in kinds::TABLE_FILTERS {
        assert!(FILTERS.iter().any(|maker| maker.kind == kind), "{}", kind.name());
    }
}

/// Few letters, so that keys are prefixes and neighbours of each other all the time.
fn crowded_keys() -> impl Strategy<Value = Vec<Key>> {
    let letter = prop_oneof![Just(0u8), Just(1), Just(b'a'), Just(0xfe), Just(0xff)];
    prop::collection::vec(prop::collection::vec(letter, 0..12), 0..300)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn crowded_keys_are_not_lost(keys in crowded_keys()) {
        FILTERS.iter().for_each(|maker| the_laws_hold(maker, keys.clone()));
    }

    #[test]
    fn any_bytes_read_as_a_filter_or_an_error(
        image in prop::collection::vec(any::<u8>(), 0..400),
        key in prop::collection::vec(any::<u8>(), 0..20),
    ) {
        for maker in &FILTERS {
            if let Ok(filter) = maker.read(image.clone()) {
                ask_everything(&filter, &key);
            }
        }
    }
}
