//! Compares table filters: bits per key, false positive rate by range width, nanoseconds.
//! ```text
//! cargo run --release -p trommel-guards --example table_filters -- --kinds cell,gap \
//!     --keys 5000000 --bits 16
//! cargo run --release -p trommel-guards --example table_filters -- --file keys.u64le --bits 16
//! ```
//! Without `--kinds`: all kinds. `--dist uniform` (50 random bits), `clustered` (1000 clusters
//! whose densities differ by a factor of a million) or `ids` (every third number). Queries are
//! drawn like the keys, and only empty ones are used. From a file (ascending keys, 8 bytes each,
//! little-endian) every eighth key is held out, and queries are drawn from those. Kinds without
//! ranges get point queries.
//!
//! Next to each rate is its 95 % Wilson interval, which covers the choice of queries only. Times
//! are CPU times of this thread and depend on the machine. Compare them with `line`, a dependent
//! random read of one cache line in an array of the filter's size.

#[path = "tools/mod.rs"]
mod tools;

use tools::{Random, all_names, kinds, now_ns, read_arguments, set};
use trommel_filters::{
    AlignedBytes, FilterKind, FilterOptions, HashedKey, KeyRange, LineCounter, read_filter,
};
use trommel_guards::kinds;

type Filter = Box<dyn trommel_filters::AnyFilter>;

const DISTS: [&str; 3] = ["uniform", "clustered", "ids"];
const KEY_BITS: u32 = 50;
/// One in this many keys of a file is held out.
const HELD_OUT: usize = 8;
/// Widths of the queried ranges.
const WIDTHS: [u64; 4] = [1, 1 << 5, 1 << 10, 1 << 20];

/// The distribution of keys and queries.
enum Source {
    Uniform,
    /// The start and width of each cluster.
    Clusters(Vec<(u64, f64)>),
    /// Numbers below this one.
    Ids(u64),
    /// Keys that were held out.
    Held(Vec<u64>),
}

impl Source {
    fn named(name: &str, keys: usize) -> Source {
        let mut random = Random(7);
        let mut cluster =
            |_| (random.next() >> (64 - KEY_BITS), 2f64.powf(18.0 + 20.0 * random.unit()));
        match name {
            "uniform" => Source::Uniform,
            "clustered" => Source::Clusters((0..1000).map(&mut cluster).collect()),
            "ids" => Source::Ids(3 * keys as u64),
            other => unreachable!("{other} is none of the distributions"),
        }
    }

    fn draw(&self, random: &mut Random) -> u64 {
        match self {
            Source::Uniform => random.next() >> (64 - KEY_BITS),
            Source::Clusters(clusters) => {
                let (start, width) = clusters[random.next() as usize % clusters.len()];
                start + (width * -(1.0 - random.unit()).ln()) as u64
            }
            Source::Ids(end) => random.next() % end,
            Source::Held(held) => held[random.next() as usize % held.len()],
        }
    }

    /// Draws `count` keys, and returns them sorted and without duplicates.
    fn keys(&self, count: usize, random: &mut Random) -> Vec<u64> {
        let mut keys: Vec<u64> = match self {
            Source::Ids(end) => (0..*end).step_by(3).collect(),
            _ => (0..count).map(|_| self.draw(random)).collect(),
        };
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// Returns the keys of a file without those held out, and a source of the latter.
    fn of_file(path: &str) -> (Vec<u64>, Source) {
        let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let (words, _) = bytes.as_chunks::<8>();
        let all: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        assert!(all.len() >= HELD_OUT, "{path}: {} keys", all.len());
        let held = all.iter().copied().skip(HELD_OUT / 2).step_by(HELD_OUT).collect();
        let kept = all.iter().enumerate().filter(|(at, _)| at % HELD_OUT != HELD_OUT / 2);
        (kept.map(|(_, &key)| key).collect(), Source::Held(held))
    }
}

struct Arguments {
    kinds: Vec<&'static dyn FilterKind>,
    bits: f64,
    keys: usize,
    queries: usize,
    dist: String,
    file: Option<String>,
}

fn arguments() -> Arguments {
    let mut arguments = Arguments {
        kinds: kinds::TABLE_FILTERS.to_vec(),
        bits: 16.0,
        keys: 1_000_000,
        queries: 200_000,
        dist: "uniform".to_owned(),
        file: None,
    };
    let usage = format!(
        "table_filters [--kinds {}] [--bits B] [--keys N | --file PATH] [--queries N] [--dist uniform|clustered|ids]",
        all_names()
    );
    read_arguments(&usage, |name, value| {
        match name {
            "--kinds" => arguments.kinds = kinds(value)?,
            "--bits" => set(&mut arguments.bits, value)?,
            "--keys" => set(&mut arguments.keys, value)?,
            "--queries" => set(&mut arguments.queries, value)?,
            "--dist" if DISTS.contains(&value) => value.clone_into(&mut arguments.dist),
            "--file" => arguments.file = Some(value.to_owned()),
            _ => return None,
        }
        Some(())
    });
    arguments
}

fn main() {
    let arguments = arguments();
    let mut random = Random(1);
    let (keys, source) = match &arguments.file {
        Some(path) => Source::of_file(path),
        None => {
            let source = Source::named(&arguments.dist, arguments.keys);
            (source.keys(arguments.keys, &mut random), source)
        }
    };
    let queries = WIDTHS.map(|width| misses(&source, &keys, width, arguments.queries, &mut random));
    // In random order, like misses: neighbours would share cache lines.
    let hits: Vec<u64> =
        (0..arguments.queries).map(|_| keys[random.next() as usize % keys.len()]).collect();
    for &kind in &arguments.kinds {
        let options = FilterOptions::new(kind, arguments.bits);
        let filter = build(&options, &keys);
        let lost = hits.iter().filter(|&&key| !ask(&filter, key, 1)).count();
        let (lines, not_prefetched) = lines_of(&filter, &hits);
        println!(
            "  denied keys: {lost}; {:.0} ns a hit, {lines:.1} lines, {not_prefetched:.1} not prefetched",
            lone_ns(&filter, &hits, 1)
        );
        for (width, queries) in WIDTHS.into_iter().zip(&queries) {
            if !queries.is_empty() && (width == 1 || kind.knows_ranges()) {
                report(&filter, queries, width);
            }
        }
    }
}

/// Returns the nanoseconds that `work` takes, and its result.
fn timed<R>(work: impl FnOnce() -> R) -> (f64, R) {
    let start = now_ns();
    let result = work();
    (now_ns() - start, result)
}

/// Builds a filter and prints the cost.
fn build(options: &FilterOptions, keys: &[u64]) -> Filter {
    let (build_ns, bytes) = timed(|| {
        let mut builder = options.builder();
        keys.iter().for_each(|key| builder.add(&key.to_be_bytes()).expect("keys in order"));
        builder.finish()
    });
    let bytes = AlignedBytes::from_slice(&bytes);
    let (read_ns, filter) =
        timed(|| read_filter(bytes, &kinds::TABLE_FILTERS).expect("it was just built"));
    println!(
        "{}: {} keys, {:.3} bits per key; build {:.0} ns per key, read {:.1} ms; line {:.0} ns",
        options.kind.name(),
        keys.len(),
        8.0 * filter.size_bytes() as f64 / keys.len().max(1) as f64,
        build_ns / keys.len().max(1) as f64,
        read_ns / 1e6,
        line_ns(filter.size_bytes()),
    );
    filter
}

fn ask(filter: &Filter, key: u64, width: u64) -> bool {
    let low = key.to_be_bytes();
    if width == 1 {
        return filter.may_contain(&low);
    }
    let high = key.saturating_add(width - 1).to_be_bytes();
    filter.may_overlap(&KeyRange::new(&low, Some(&high)).expect("not upside down"))
}

/// Returns empty queries, drawn like the keys; fewer than `count` if hardly any are empty.
fn misses(
    source: &Source,
    keys: &[u64],
    width: u64,
    count: usize,
    random: &mut Random,
) -> Vec<u64> {
    let mut found = Vec::with_capacity(count);
    for _ in 0..50 * count {
        if found.len() == count {
            break;
        }
        let key = source.draw(random);
        let next = keys.partition_point(|&other| other < key);
        if keys.get(next).is_none_or(|&other| other > key.saturating_add(width - 1)) {
            found.push(key);
        }
    }
    found
}

fn report(filter: &Filter, queries: &[u64], width: u64) {
    let positives = queries.iter().filter(|&&key| ask(filter, key, width)).count();
    let (low, high) = wilson(positives, queries.len());
    let (lines, not_prefetched) = lines_of(filter, queries);
    println!(
        "  width 2^{}: {:.3} % false positives ({:.3} to {:.3}); {:.0} ns; {lines:.1} lines a point, {not_prefetched:.1} not prefetched",
        width.ilog2(),
        100.0 * positives as f64 / queries.len() as f64,
        100.0 * low,
        100.0 * high,
        lone_ns(filter, queries, width),
    );
}

/// Returns the cache lines that a point query reads, and how many of them were not prefetched.
fn lines_of(filter: &Filter, queries: &[u64]) -> (f64, f64) {
    let mut counter = LineCounter::default();
    let (mut lines, mut not_prefetched, counted) = (0, 0, queries.len().min(10_000));
    for &key in &queries[..counted] {
        let bytes = key.to_be_bytes();
        filter.may_contain_traced(&HashedKey::new(&bytes), &mut counter);
        not_prefetched += counter.not_prefetched();
        lines += counter.take();
    }
    (lines as f64 / counted as f64, not_prefetched as f64 / counted as f64)
}

/// Returns the 95 % Wilson interval of a share.
fn wilson(hits: usize, count: usize) -> (f64, f64) {
    const Z: f64 = 1.96;
    let (count, share) = (count as f64, hits as f64 / count as f64);
    let middle = (share + Z * Z / (2.0 * count)) / (1.0 + Z * Z / count);
    let spread = (share * (1.0 - share) / count + Z * Z / (4.0 * count * count)).sqrt();
    let half = Z * spread / (1.0 + Z * Z / count);
    ((middle - half).max(0.0), middle + half)
}

/// Returns the time per query when each depends on the previous answer: the fastest of 9 passes.
fn lone_ns(filter: &Filter, queries: &[u64], width: u64) -> f64 {
    let passes = (0..9).map(|_| {
        let (ns, ()) = timed(|| {
            let mut dependence = 0u64;
            for &key in queries {
                // Zero, which the processor cannot know.
                let maybe = ask(filter, key ^ dependence, width);
                dependence = std::hint::black_box(u64::from(maybe)) >> 1;
            }
        });
        ns / queries.len() as f64
    });
    passes.fold(f64::INFINITY, f64::min)
}

/// Returns the time of a dependent random read of one cache line in an array of this size.
fn line_ns(bytes: usize) -> f64 {
    const LINE_WORDS: usize = 8;
    const STEPS: usize = 1_000_000;
    let lines = (bytes / 64).max(1);
    let mut random = Random(3);
    let words: Vec<u64> = (0..lines * LINE_WORDS).map(|_| random.next()).collect();
    let (ns, _) = timed(|| {
        let mut at = 0usize;
        for step in 0..STEPS {
            at = (words[at % lines * LINE_WORDS] as usize).wrapping_add(step * 0x9e37_79b9);
        }
        std::hint::black_box(at)
    });
    ns / STEPS as f64
}
