//! Compares point filters: the cost of building and probing, and the false positive rate.
//! ```text
//! hashes of n keys ─┬─> each filter's builder ──> bytes ──> reader ──> the same hits and misses
//!                   └─> crate xorf, BinaryFuse8                              │
//!                                     build, hit, miss: the best of several interleaved rounds
//! ```
//! `cargo run --release -p trommel-guards --example point_filters -- [keys] [rounds] [name...]`;
//! the default is 1000000 keys. Hashing the keys is never included. Names select filters. The
//! second binary fuse filter has packed cells: below nine bits per key, cells have no whole bytes.

#[path = "tools/mod.rs"]
mod tools;

use std::hint::black_box;

use tools::now_ns;
use trommel_filters::{
    AlignedBytes, BlockedBloom, BlockedBloomBuilder, Bloom, BloomBuilder, HashUse, Ribbon,
    RibbonBuilder, TableFilterBuilder, hash_key,
};
use trommel_guards::{BinaryFuse, BinaryFuseBuilder, Xor, XorBuilder};
use xorf::{BinaryFuse8, Filter};

const QUERIES: u64 = 1 << 20;

/// Counts the hashes that a filter may contain.
type Probe = Box<dyn Fn(&[u64]) -> usize>;

/// A built filter: its size, and how to probe it.
struct Built {
    size_bytes: usize,
    count_maybe: Probe,
}

/// Builds a filter from hashes.
type Build = Box<dyn Fn(&[u64]) -> Built>;

/// A filter to compare.
struct Contender {
    name: String,
    build: Build,
    theory: f64,
}

/// The measurements, in nanoseconds per key, best of all rounds.
#[derive(Clone, Copy)]
struct Figures {
    build: f64,
    hit: f64,
    miss: f64,
    bits_per_key: f64,
    rate: f64,
}

macro_rules! ours {
    ($name:literal, $filter:ident, $builder:ident, $bits:expr) => {{
        let bits: f64 = $bits;
        let build = move |hashes: &[u64]| {
            let mut builder = $builder::new(bits);
            hashes.iter().for_each(|&hash| builder.add_hash(hash));
            let bytes = AlignedBytes::from_slice(&builder.finish());
            let size_bytes = bytes.len();
            let filter = $filter::read(bytes).expect("just built");
            let count_maybe = move |hashes: &[u64]| {
                hashes.iter().filter(|&&hash| filter.may_contain_hash(hash)).count()
            };
            Built { size_bytes, count_maybe: Box::new(count_maybe) }
        };
        let theory = $builder::expected_rate(bits);
        Contender { name: format!("{}, {bits}", $name), build: Box::new(build), theory }
    }};
}

fn xorf_fuse() -> Contender {
    let build = |hashes: &[u64]| {
        let filter = BinaryFuse8::try_from(hashes).expect("distinct hashes");
        let size_bytes = filter.fingerprints.len();
        let count_maybe =
            move |hashes: &[u64]| hashes.iter().filter(|&hash| filter.contains(hash)).count();
        Built { size_bytes, count_maybe: Box::new(count_maybe) }
    };
    Contender { name: "xorf BinaryFuse8".into(), build: Box::new(build), theory: 1.0 / 256.0 }
}

fn contenders() -> Vec<Contender> {
    vec![
        ours!("blocked-bloom", BlockedBloom, BlockedBloomBuilder, 9.04),
        ours!("bloom", Bloom, BloomBuilder, 9.04),
        ours!("ribbon", Ribbon, RibbonBuilder, 9.04),
        ours!("binary-fuse", BinaryFuse, BinaryFuseBuilder, 9.04),
        ours!("binary-fuse", BinaryFuse, BinaryFuseBuilder, 8.0),
        ours!("xor", Xor, XorBuilder, 9.9),
        xorf_fuse(),
    ]
}

/// Returns the seconds that `work` takes.
fn seconds(work: impl FnOnce()) -> f64 {
    let start = now_ns();
    work();
    (now_ns() - start) / 1e9
}

fn hashes(numbers: impl Iterator<Item = u64>) -> Vec<u64> {
    numbers.map(|number| hash_key(&number.to_be_bytes(), HashUse::Table)).collect()
}

fn measure(contender: &Contender, keys: &[u64], hits: &[u64], misses: &[u64]) -> Figures {
    let mut built = None;
    let build = seconds(|| built = Some((contender.build)(black_box(keys))));
    let Built { size_bytes, count_maybe } = built.expect("built above");
    let (mut found, mut wrong) = (0, 0);
    let hit = seconds(|| found = count_maybe(black_box(hits)));
    let miss = seconds(|| wrong = count_maybe(black_box(misses)));
    assert_eq!(found, hits.len(), "{} lost a key", contender.name);
    let each = 1e9 / misses.len() as f64;
    Figures {
        build: build * 1e9 / keys.len() as f64,
        hit: hit * each,
        miss: miss * each,
        bits_per_key: size_bytes as f64 * 8.0 / keys.len() as f64,
        rate: wrong as f64 / misses.len() as f64,
    }
}

fn best(one: Figures, other: Figures) -> Figures {
    let [build, hit, miss] =
        [(one.build, other.build), (one.hit, other.hit), (one.miss, other.miss)]
            .map(|(one, other)| one.min(other));
    Figures { build, hit, miss, ..one }
}

fn print(contenders: &[Contender], figures: &[Figures]) {
    let heading = ["build", "hit", "miss", "bits/key", "rate", "theory"];
    println!("{:24}{}", "ns per key", heading.map(|name| format!("{name:>10}")).concat());
    for (contender, figures) in contenders.iter().zip(figures) {
        let times = [figures.build, figures.hit, figures.miss, figures.bits_per_key];
        let times = times.map(|time| format!("{time:>10.2}")).concat();
        let rates = [figures.rate, contender.theory].map(|rate| format!("{:>9.4}%", rate * 100.0));
        println!("{:24}{times}{}", contender.name, rates.concat());
    }
    let of = |name: &str| contenders.iter().position(|one| one.name.starts_with(name));
    if let (Some(ours), Some(theirs)) = (of("binary-fuse"), of("xorf")) {
        let (ours, theirs) = (figures[ours], figures[theirs]);
        let [build, hit, miss] =
            [ours.build / theirs.build, ours.hit / theirs.hit, ours.miss / theirs.miss];
        println!("binary-fuse / xorf: build {build:.2}, hit {hit:.2}, miss {miss:.2}");
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |or| {
        arguments.next().map_or(or, |text| {
            text.parse().unwrap_or_else(|_| {
                eprintln!("usage: point_filters [keys] [rounds] [name...]");
                std::process::exit(if text == "--help" { 0 } else { 2 })
            })
        })
    };
    let (key_count, rounds) = (number(1_000_000), number(5));
    let names: Vec<String> = arguments.collect();
    let keys = hashes(0..key_count);
    let hits: Vec<u64> = (0..QUERIES)
        .map(|n| keys[(n.wrapping_mul(0x9e37_79b9_7f4a_7c15) % key_count) as usize])
        .collect();
    let misses = hashes(key_count..key_count + QUERIES);
    let mut contenders = contenders();
    contenders.retain(|one| {
        names.is_empty() || names.iter().any(|name| one.name.starts_with(name.as_str()))
    });
    let mut figures: Vec<Option<Figures>> = vec![None; contenders.len()];
    for _ in 0..rounds {
        for (contender, figures) in contenders.iter().zip(&mut figures) {
            let now = measure(contender, &keys, &hits, &misses);
            *figures = Some(figures.map_or(now, |before| best(before, now)));
        }
    }
    let figures: Vec<Figures> = figures.into_iter().flatten().collect();
    print(&contenders, &figures);
}
