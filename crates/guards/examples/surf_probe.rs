//! Measures SuRF: bits per key and per edge, false positives, nanoseconds, and the benefit of each
//! optimization.
//! ```text
//! cargo run --release -p trommel-guards --example surf_probe -- --keys 5000000 --suffix 4
//! valgrind --tool=callgrind target/release/examples/surf_probe --keys 200000 --only surf-base
//! ```
//! Keys are uniform 64-bit numbers. Points: half of the queries are keys, the others are drawn like
//! the keys. Ranges: from a query's key plus an eighth of the mean gap up to plus a quarter. Then
//! SuRF's Figure 7: the same points with fewer optimizations.
//!
//! Times depend on the machine: compare them with `line`, a dependent random read of one cache line
//! in an array of the filter's size. Each phase is a separate function, so that a profile counts
//! its instructions.

#[path = "tools/mod.rs"]
mod tools;

use std::hint::black_box;

use tools::{Random, kinds, now_ns, read_arguments, set};
use trommel_filters::{
    AlignedBytes, KeyRange, Surf, SurfBuilder, SurfEffort, SurfKind, SurfOptions, SurfSuffix,
    TableFilter, TableFilterBuilder,
};

struct Arguments {
    keys: usize,
    queries: usize,
    suffix: u32,
    size_ratio: u32,
    only: Option<String>,
}

fn arguments() -> Arguments {
    let mut arguments =
        Arguments { keys: 1_000_000, queries: 500_000, suffix: 8, size_ratio: 64, only: None };
    let usage =
        "surf_probe [--keys N] [--queries N] [--suffix BITS] [--size-ratio N] [--only KIND]";
    read_arguments(usage, |name, value| match name {
        "--keys" => set(&mut arguments.keys, value),
        "--queries" => set(&mut arguments.queries, value),
        "--suffix" => set(&mut arguments.suffix, value),
        "--size-ratio" => set(&mut arguments.size_ratio, value),
        "--only" => kinds(value).map(|_| arguments.only = Some(value.to_owned())),
        _ => None,
    });
    arguments
}

type Filter = Surf<AlignedBytes>;

#[inline(never)]
fn build(keys: &[u64], kind: SurfKind, suffix: u32, size_ratio: u32) -> Vec<u8> {
    let (hash, real) = match kind {
        SurfKind::Mixed => (suffix / 2, suffix - suffix / 2),
        _ => (suffix, suffix),
    };
    let options = SurfOptions { suffix: SurfSuffix::Bits { hash, real }, size_ratio };
    let mut builder = SurfBuilder::new(kind, 0.0, &options);
    keys.iter().for_each(|key| builder.add(&key.to_be_bytes()).expect("sorted"));
    builder.finish()
}

#[inline(never)]
fn ask_points(filter: &Filter, queries: &[u64]) -> usize {
    queries.iter().filter(|key| filter.may_contain(&key.to_be_bytes())).count()
}

#[inline(never)]
fn ask_points_with(filter: &Filter, queries: &[u64], effort: SurfEffort) -> usize {
    queries.iter().filter(|key| filter.may_contain_with(&key.to_be_bytes(), effort)).count()
}

#[inline(never)]
fn ask_ranges(filter: &Filter, queries: &[u64], gap: u64) -> usize {
    let ask = |key: &&u64| {
        let low = key.saturating_add(gap / 8).to_be_bytes();
        let high = key.saturating_add(gap / 4).to_be_bytes();
        filter.may_overlap(&KeyRange::new(&low, Some(&high)).expect("not upside down"))
    };
    queries.iter().filter(ask).count()
}

#[inline(never)]
fn ask_counts(filter: &Filter, queries: &[u64], gap: u64) -> u64 {
    let ask = |key: &u64| {
        let (low, high) = (key.to_be_bytes(), key.saturating_add(gap * 100).to_be_bytes());
        let range = KeyRange::new(&low, Some(&high)).expect("not upside down");
        filter.count(&range).map_or(0, |count| count.estimate)
    };
    queries.iter().map(ask).sum()
}

#[inline(never)]
fn ask_seeks(filter: &Filter, queries: &[u64]) -> usize {
    queries.iter().filter(|key| filter.lower_bound(&key.to_be_bytes()).is_some()).count()
}

#[inline(never)]
fn go_through(filter: &Filter) -> usize {
    let mut cursor = filter.cursor();
    cursor.seek_first();
    let mut bytes = 0;
    while let Some(prefix) = cursor.prefix() {
        bytes += prefix.len();
        cursor.next();
    }
    bytes
}

/// Returns the time per item of `work` on `count` items, in nanoseconds.
fn time<R>(count: usize, work: impl FnOnce() -> R) -> (R, f64) {
    let start = now_ns();
    let result = black_box(work());
    (result, (now_ns() - start) / count.max(1) as f64)
}

/// Same as `time`: the minimum of several rounds.
fn least_time<R>(count: usize, work: impl Fn() -> R) -> (R, f64) {
    const ROUNDS: usize = 5;
    let rounds = (1..ROUNDS).map(|_| time(count, &work));
    rounds.fold(time(count, &work), |one, other| if other.1 < one.1 { other } else { one })
}

/// Returns the time of a dependent read of a cache line in an array of this size, in nanoseconds.
fn line_read(bytes: usize) -> f64 {
    let lines = (bytes / 64).max(2);
    let mut next: Vec<[u64; 8]> = vec![[0; 8]; lines];
    let mut random = Random(3);
    let mut order: Vec<usize> = (0..lines).collect();
    for place in (1..lines).rev() {
        order.swap(place, random.next() as usize % place);
    }
    for pair in 0..lines {
        next[order[pair]][0] = order[(pair + 1) % lines] as u64;
    }
    let steps = 500_000;
    time(steps, || (0..steps).fold(0, |at, _| next[at as usize][0])).1
}

struct Bed {
    keys: Vec<u64>,
    /// Alternately a key, and a number drawn like the keys.
    queries: Vec<u64>,
    absent: usize,
    gap: u64,
}

fn bed(arguments: &Arguments) -> Bed {
    let mut random = Random(1);
    let mut keys: Vec<u64> = (0..arguments.keys).map(|_| random.next()).collect();
    keys.sort_unstable();
    keys.dedup();
    let queries: Vec<u64> = (0..arguments.queries)
        .map(|n| match n % 2 {
            0 => keys[random.next() as usize % keys.len()],
            _ => random.next(),
        })
        .collect();
    let absent = queries.iter().filter(|key| keys.binary_search(key).is_err()).count();
    let gap = u64::MAX / keys.len().max(1) as u64;
    Bed { keys, queries, absent, gap }
}

/// The share of empty ranges for which the filter says "maybe".
fn range_rate(bed: &Bed, maybe: usize) -> f64 {
    let is_empty = |key: &&u64| {
        let low = key.saturating_add(bed.gap / 8);
        let next = bed.keys.partition_point(|&other| other < low);
        bed.keys.get(next).is_none_or(|&next| next > key.saturating_add(bed.gap / 4))
    };
    let empty = bed.queries.iter().filter(is_empty).count();
    (maybe - (bed.queries.len() - empty)) as f64 / empty.max(1) as f64
}

fn measure(bed: &Bed, kind: SurfKind, arguments: &Arguments) {
    let keys = bed.keys.len();
    let work = || build(&bed.keys, kind, arguments.suffix, arguments.size_ratio);
    let (image, build_ns) = time(keys, work);
    let filter = Surf::read(AlignedBytes::from_slice(&image)).expect("what was built");
    let queries = bed.queries.len();
    let (points, point_ns) = least_time(queries, || ask_points(&filter, &bed.queries));
    let (ranges, range_ns) = least_time(queries, || ask_ranges(&filter, &bed.queries, bed.gap));
    let (_, count_ns) = time(queries, || ask_counts(&filter, &bed.queries, bed.gap));
    let (_, seek_ns) = time(queries, || ask_seeks(&filter, &bed.queries));
    let (_, next_ns) = time(keys, || go_through(&filter));
    let (hash, real) = filter.suffix_bits();
    let bits = image.len() as f64 * 8.0;
    let trie_bits = bits - (keys as f64) * f64::from(hash + real);
    let present = queries - bed.absent;
    println!(
        "{:<11} suffix {hash}+{real:<3} {:6.2} bits/key {:6.2} bits/edge {:.2} edges/key  levels {:?}  build {build_ns:.0}",
        kind.name(),
        bits / keys as f64,
        trie_bits / filter.edges() as f64,
        filter.edges() as f64 / keys as f64,
        filter.levels(),
    );
    println!(
        "            false positives: points {:.5}, ranges {:.5}   ns: point {point_ns:.0}, range {range_ns:.0}, count {count_ns:.0}, lower_bound {seek_ns:.0}, next {next_ns:.1}; line {:.0}",
        (points - present) as f64 / bed.absent as f64,
        range_rate(bed, ranges),
        line_read(image.len()),
    );
}

fn figure_7(bed: &Bed) {
    println!("Figure 7, surf-base, ns per point (three rounds):");
    let filter = |size_ratio| {
        let image = build(&bed.keys, SurfKind::Base, 0, size_ratio);
        Surf::read(AlignedBytes::from_slice(&image)).expect("what was built")
    };
    let (sparse, mixed) = (filter(u32::MAX), filter(64));
    let row = |name: &str, filter: &Filter, effort: SurfEffort| {
        let once = || time(bed.queries.len(), || ask_points_with(filter, &bed.queries, effort)).1;
        let times = [once(), once(), once()];
        println!("  {name:<24} {:6.0} {:6.0} {:6.0}", times[0], times[1], times[2]);
    };
    row("LOUDS-Sparse alone", &sparse, SurfEffort::Plain);
    for effort in SurfEffort::ALL {
        let name = match effort {
            SurfEffort::Plain => "+ LOUDS-Dense",
            SurfEffort::Rank => "+ rank",
            SurfEffort::Select => "+ select",
            SurfEffort::Simd => "+ SIMD label search",
            SurfEffort::Prefetch => "+ prefetching",
        };
        row(name, &mixed, effort);
    }
    row("all, without LOUDS-Dense", &sparse, SurfEffort::Prefetch);
}

fn main() {
    let arguments = arguments();
    let bed = bed(&arguments);
    println!("{} keys, {} queries", bed.keys.len(), bed.queries.len());
    let kinds = [SurfKind::Base, SurfKind::Hash, SurfKind::Real, SurfKind::Mixed];
    for kind in kinds {
        if arguments.only.as_deref().is_none_or(|only| only == kind.name()) {
            measure(&bed, kind, &arguments);
        }
    }
    if arguments.only.is_none() {
        figure_7(&bed);
    }
}
