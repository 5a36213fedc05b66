//! Filters with three cells per key: rates, sizes, hashes of absent keys.

use trommel_filters::{AlignedBytes, LineCounter};

use super::*;

fn built<G: Graph>(hashes: impl Iterator<Item = u64>, bits_per_key: f64) -> ThreeCells<G, Vec<u8>> {
    let mut builder = ThreeCellsBuilder::<G>::new(bits_per_key);
    hashes.for_each(|hash| builder.add_hash(hash));
    ThreeCells::read(builder.finish()).expect("whole")
}

fn rate_is_theory<G: Graph>(bits_per_key: f64) {
    const KEYS: u64 = 60_000;
    const QUERIES: u64 = 1 << 20;
    let filter = built::<G>((0..KEYS).map(scattered), bits_per_key);
    assert!((0..KEYS).all(|key| filter.probe(scattered(key), &mut Untraced)));
    let absent = KEYS..KEYS + QUERIES;
    let found = absent.filter(|&key| filter.probe(scattered(key), &mut Untraced)).count();
    let measured = found as f64 / QUERIES as f64;
    let theory = 0.5f64.powf(filter.cell_bits());
    let noise = 5.0 * (theory / QUERIES as f64).sqrt();
    let bounds = theory * 0.9 - noise..theory * 1.1 + noise;
    assert!(bounds.contains(&measured), "{bits_per_key}: {measured}, theory {theory}");
    let size = filter.bytes.len() as f64 * 8.0 / KEYS as f64;
    let at_most_asked = bits_per_key - G::CELLS_PER_KEY - 0.05..bits_per_key + 0.01;
    assert!(at_most_asked.contains(&size), "{size} bits per key, asked for {bits_per_key}");
}

#[test]
fn the_rate_is_two_to_the_bits() {
    for bits_per_key in [4.5, 8.0, 9.0, 10.0, 12.0, 16.0] {
        rate_is_theory::<Fuse>(bits_per_key);
        rate_is_theory::<Xored>(bits_per_key);
    }
}

#[test]
fn fractions_of_bits_are_of_use() {
    for bits_per_key in [8.0, 9.3, 10.0, 12.5] {
        let size = built::<Fuse>((0..100_000).map(scattered), bits_per_key).bytes.len();
        let asked = bits_per_key * 100_000.0 / 8.0;
        assert!((asked * 0.9995..asked + 1.0).contains(&(size as f64)), "{size} for {asked}");
    }
    let rates = [8.0, 8.5, 9.0, 9.5, 10.0].map(BinaryFuseBuilder::expected_rate);
    assert!(rates.windows(2).all(|pair| pair[1] < pair[0] * 0.8), "{rates:?}");
}

#[test]
fn many_sizes_are_built_with_few_cells() {
    for keys in (0..130).chain([1000, 5000, 30_000]) {
        let fuse = built::<Fuse>((0..keys).map(scattered), 10.0);
        let xor = built::<Xored>((0..keys).map(scattered), 10.0);
        for hash in (0..keys).map(scattered) {
            assert!(
                fuse.probe(hash, &mut Untraced) && xor.probe(hash, &mut Untraced),
                "{keys} keys"
            );
        }
        let absent = (keys..keys + 2000).map(scattered);
        let found = absent.filter(|&hash| fuse.probe(hash, &mut Untraced)).count();
        assert!(found < 200, "{found} of 2000 that are not among {keys}");
    }
}

fn equal_hashes_are_one<G: Graph>() {
    let repeated = (0..3000u64).map(|n| scattered(n % 1000));
    let filter = built::<G>(repeated, 10.0);
    assert!((0..1000).all(|n| filter.probe(scattered(n), &mut Untraced)));
    let found = (1000..21_000).filter(|&n| filter.probe(scattered(n), &mut Untraced)).count();
    assert!(found < 300, "{found} of 20000");
    let one = built::<G>(std::iter::once(0).chain([5, 0, 5, 0, 5]), 10.0);
    assert!(one.probe(0, &mut Untraced) && one.probe(5, &mut Untraced));
}

#[test]
fn equal_hashes_end() {
    equal_hashes_are_one::<Fuse>();
    equal_hashes_are_one::<Xored>();
}

/// No real keys have such hashes. Even so, building ends and no key is lost.
#[test]
fn hashes_without_chance_end() {
    for step in [1, 1 << 20, 1 << 44] {
        let hashes = || (0..3000u64).map(move |n| n.wrapping_mul(step));
        let (fuse, xor) = (built::<Fuse>(hashes(), 9.0), built::<Xored>(hashes(), 9.0));
        for hash in hashes() {
            assert!(fuse.probe(hash, &mut Untraced) && xor.probe(hash, &mut Untraced), "{hash:x}");
        }
    }
}

#[test]
fn what_cannot_be_peeled_is_told() {
    let graph = Fuse::for_keys(2, 0);
    assert!(peel::peel(&graph, vec![7, 7]).is_none(), "two keys of the same three cells");
    assert!(peel::peel(&graph, vec![7; 64]).is_none(), "more than are counted");
    assert!(peel::peel(&graph, vec![7, 8]).is_some());
}

#[test]
fn a_filter_that_knows_nothing_says_maybe() {
    let builder = BinaryFuseBuilder::new(10.0);
    let graph = Fuse::for_keys(100, 0);
    let image = builder.image(graph, Cells::of_average(graph.cell_count(), 0.0), 0, Vec::new());
    let filter = BinaryFuse::read(image).expect("whole");
    assert!((0..1000).all(|n| filter.may_contain_hash(scattered(n))));
}

#[test]
fn a_probe_touches_three_cells() {
    let mut builder = BinaryFuseBuilder::new(10.0);
    (0..50_000).for_each(|n| builder.add_hash(scattered(n)));
    let filter = BinaryFuse::read(AlignedBytes::from_slice(&builder.finish())).expect("whole");
    assert_eq!(filter.kind(), BINARY_FUSE);
    let mut counter = LineCounter::default();
    let mut most = 0;
    for key in (0..1000u64).map(u64::to_be_bytes) {
        filter.may_contain_traced(&HashedKey::new(&key), &mut counter);
        most = most.max(counter.take());
    }
    assert!((3..=6).contains(&most), "{most} lines");
}

// Where `usize` has 32 bits.
#[test]
fn cells_that_cannot_be_counted_are_refused() {
    let counted = |cells: u64| usize::try_from(cells).is_ok();
    for (size, shape) in [(0x3fff, 18), (0x4000, 18), (u32::MAX, 18)] {
        let cells = (u64::from(size) << shape) + (2 << shape);
        assert_eq!(Fuse::decode(size, shape).is_some(), counted(cells), "{size} {shape}");
    }
    let third = 0x5555_5556;
    assert_eq!(Xored::decode(third, 0).is_some(), counted(u64::from(third) * 3));
}
