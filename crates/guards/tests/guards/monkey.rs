//! The rates that Monkey reckons with, beside those that the filters promise or have.
//! ```text
//! points   kind -> RateLaw (a straight line in logarithms)   ~   Builder::expected_rate (theory)
//! ranges   kind -> RateLaw                                   ~   false positives that are counted
//! ```
//! Invariant: where a filter has bits enough to be worth having, both agree so far that a budget
//! divided by the one is well divided by the other.

use trommel_filters::{
    AlignedBytes, AnyFilter, BlockedBloomBuilder, BloomBuilder, FilterKind, FilterOptions,
    KeyRange, RateLaw, RibbonBuilder,
};
use trommel_guards::{BinaryFuseBuilder, XorBuilder, kinds};

/// The rate of so many bits per key.
type Promise = fn(f64) -> f64;

const PROMISED: [(&'static dyn FilterKind, Promise); 5] = [
    (kinds::BLOCKED_BLOOM, BlockedBloomBuilder::expected_rate),
    (kinds::BLOOM, BloomBuilder::expected_rate),
    (kinds::RIBBON, RibbonBuilder::expected_rate),
    (kinds::BINARY_FUSE, BinaryFuseBuilder::expected_rate),
    (kinds::XOR, XorBuilder::expected_rate),
];

/// Filters of ranges whose rates were measured, over even keys.
const MEASURED: [&dyn FilterKind; 9] = [
    kinds::SURF_HASH,
    kinds::SURF_REAL,
    kinds::SURF_MIXED,
    kinds::SNARF,
    kinds::CELL,
    kinds::GAP,
    kinds::CODED,
    kinds::ROSETTA,
    kinds::RENCODER,
];

#[test]
fn rates_are_what_filters_promise() {
    for (kind, promised) in PROMISED {
        let rate = law(kind);
        for bits_per_key in [6.0, 8.0, 10.0, 12.0, 14.0, 16.0] {
            let (line, theory) = (rate.at(bits_per_key), promised(bits_per_key));
            // Cells of an xor filter have whole bits: up to one is lost.
            let bounds = if kind == kinds::XOR { 0.48..1.1 } else { 0.85..1.2 };
            let ratio = line / theory;
            assert!(bounds.contains(&ratio), "{}, {bits_per_key} bits: {ratio}", kind.name());
        }
    }
}

#[test]
fn rates_of_ranges_are_what_is_counted() {
    for kind in MEASURED {
        let (law, name) = (law(kind), kind.name());
        // How much a trie takes, and how much it tells, hangs on the number of keys.
        let is_surf = [kinds::SURF_HASH, kinds::SURF_REAL, kinds::SURF_MIXED].contains(&kind);
        let asked = if is_surf { [13.0, 16.0] } else { [9.0, 12.0] };
        let [(few, high), (many, low)] = asked.map(|asked| counted(kind, asked));
        let fall = law.at(few) / law.at(many) * low / high;
        assert!((0.7..1.4).contains(&fall), "{name}, from {few} to {many} bits: {fall}");
        let ratio = law.at(few) / high;
        assert!(is_surf || (0.7..1.5).contains(&ratio), "{name}, {few} bits: {ratio}");
    }
}

fn law(kind: &dyn FilterKind) -> RateLaw {
    kind.rate_law().expect("it has a law")
}

/// Even numbers, without a chance in them but that of a multiplication: the n-th of a stream.
fn number(stream: u64, nth: u64) -> u64 {
    let mixed = (nth ^ (stream << 40)).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ (mixed >> 29)) >> 14
}

/// The bits per key that a filter of even keys takes, and the share of empty questions for which
/// it says maybe: points if it has hashes of whole keys, else ranges of 64 keys.
fn counted(kind: &'static dyn FilterKind, asked: f64) -> (f64, f64) {
    const KEYS: u64 = 20_000;
    const QUESTIONS: u64 = 100_000;
    let mut keys: Vec<u64> = (0..KEYS).map(|nth| number(1, nth)).collect();
    keys.sort_unstable();
    keys.dedup();
    let mut builder = FilterOptions::new(kind, asked).builder();
    keys.iter().for_each(|key| builder.add(&key.to_be_bytes()).expect("ascending"));
    let bytes = builder.finish();
    let filter = kind.read(AlignedBytes::from_slice(&bytes)).expect("just built");
    let has_hashes = [kinds::SURF_HASH, kinds::SURF_MIXED].contains(&kind);
    let width = if has_hashes { 1 } else { 64 };
    let (mut asked, mut maybe) = (0, 0);
    for low in (0..QUESTIONS).map(|nth| number(2, nth)) {
        let next = keys[keys.partition_point(|key| *key < low).min(keys.len() - 1)];
        if !(low..low + width).contains(&next) {
            asked += 1;
            maybe += u32::from(may_hold(filter.as_ref(), low, width));
        }
    }
    (bytes.len() as f64 * 8.0 / keys.len() as f64, f64::from(maybe) / f64::from(asked))
}

fn may_hold(filter: &dyn AnyFilter, low: u64, width: u64) -> bool {
    let (low, high) = (low.to_be_bytes(), (low + width - 1).to_be_bytes());
    match width {
        1 => filter.may_contain(&low),
        _ => filter.may_overlap(&KeyRange::new(&low, Some(&high)).expect("in order")),
    }
}

#[test]
fn all_others_are_told_apart() {
    let with_law = kinds::TABLE_FILTERS.into_iter().filter(|&kind| kind.rate_law().is_some());
    let promised = PROMISED.map(|(kind, _)| kind);
    let known: Vec<&dyn FilterKind> = promised.into_iter().chain(MEASURED).collect();
    assert_eq!(with_law.collect::<Vec<_>>(), known);
}
