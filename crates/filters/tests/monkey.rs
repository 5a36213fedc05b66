//! The rates that Monkey reckons with, beside those that the filters promise.
//! ```text
//! kind -> PointRate (a straight line in logarithms)   ~   Builder::expected_rate (theory, in full)
//! ```
//! Invariant: where a filter has bits enough to be worth having, both agree so far that a budget
//! divided by the one is well divided by the other.

use trommel_filters::{
    BinaryFuseBuilder, BlockedBloomBuilder, BloomBuilder, FilterKind, PointRate, RibbonBuilder,
    XorBuilder,
};

/// The rate of so many bits per key.
type Promise = fn(f64) -> f64;

const PROMISED: [(FilterKind, Promise); 5] = [
    (FilterKind::BlockedBloom, BlockedBloomBuilder::expected_rate),
    (FilterKind::Bloom, BloomBuilder::expected_rate),
    (FilterKind::Ribbon, RibbonBuilder::expected_rate),
    (FilterKind::BinaryFuse, BinaryFuseBuilder::expected_rate),
    (FilterKind::Xor, XorBuilder::expected_rate),
];

#[test]
fn rates_are_what_filters_promise() {
    for (kind, promised) in PROMISED {
        let rate = PointRate::of(kind).expect("a point filter");
        for bits_per_key in [6.0, 8.0, 10.0, 12.0, 14.0, 16.0] {
            let (line, theory) = (rate.at(bits_per_key), promised(bits_per_key));
            // Cells of an xor filter have whole bits: up to one is lost.
            let bounds = if kind == FilterKind::Xor { 0.48..1.1 } else { 0.85..1.2 };
            let ratio = line / theory;
            assert!(bounds.contains(&ratio), "{}, {bits_per_key} bits: {ratio}", kind.name());
        }
    }
}

#[test]
fn all_others_are_told_apart() {
    let with_rate = FilterKind::ALL.into_iter().filter(|&kind| PointRate::of(kind).is_some());
    let promised: Vec<FilterKind> = PROMISED.map(|(kind, _)| kind).to_vec();
    assert_eq!(with_rate.collect::<Vec<_>>(), promised);
}
