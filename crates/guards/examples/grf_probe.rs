//! Measures the global range filter alone: bits per key, false positive rate, nanoseconds.
//! ```text
//! cargo run --release -p trommel-guards --example grf_probe -- --keys 5000000 --bits 12 \
//!     --flushes 99
//! cargo run --release -p trommel-guards --example grf_probe -- --file keys.u64le
//! cargo run --release -p trommel-guards --example grf_probe -- --run-codes huffman
//! ```
//! Nine of ten keys are in the base, the others in equal flushes. `--skew N`: flushed keys come
//! from 1 / N of the key space, and so does every tenth query. "clustered": keys in 1000 clusters
//! whose densities differ by a factor of a million.
//!
//! Queries are drawn like the keys. From a file (ascending keys, 8 bytes each, little-endian) every
//! eighth key is held out, and queries are drawn from those. Times depend on the machine: compare
//! them with `line`, a dependent random read of one cache line in an array of the filter's size.

#[path = "tools/mod.rs"]
mod tools;

use tools::{Random, now_ns, read_arguments, set, set_text};
use trommel_filters::{
    Codes, Fingerprints, FlushNumber, GrfOptions, KeyRange, LineCounter, Part, PartBuilder, Query,
    RunCodes, Shape, Span,
};

const KEY_BITS: u32 = 50;

/// The distribution of keys and queries.
enum Source {
    Uniform,
    /// Every tenth comes from a stretch, given by its first number and its width.
    Skewed(Box<Source>, u64, u64),
    /// Centre and scale of each cluster, and the cumulative weights.
    Clusters(Vec<(u64, f64)>, Vec<f64>),
    /// Keys that were held out.
    Held(Vec<u64>),
}

/// One in this many keys of a file is held out.
const HELD_OUT: usize = 8;

impl Source {
    fn clusters() -> Source {
        let mut random = Random(7);
        let (mut clusters, mut sums, mut sum) = (Vec::new(), Vec::new(), 0.0);
        for _ in 0..1000 {
            let centre = random.next() >> (64 - KEY_BITS);
            clusters.push((centre, 2f64.powf(18.0 + 20.0 * random.unit())));
            sum -= (1.0 - random.unit()).ln();
            sums.push(sum);
        }
        Source::Clusters(clusters, sums)
    }

    fn draw(&self, random: &mut Random) -> u64 {
        match self {
            Source::Uniform => random.next() >> (64 - KEY_BITS),
            Source::Skewed(_, from, width) if random.next().is_multiple_of(10) => {
                from + random.next() % width
            }
            Source::Skewed(source, ..) => source.draw(random),
            Source::Clusters(clusters, sums) => {
                let weight = random.unit() * sums[sums.len() - 1];
                let (centre, scale) = clusters[sums.partition_point(|&sum| sum <= weight)];
                centre + (scale * normal(random).exp()) as u64
            }
            Source::Held(held) => held[random.next() as usize % held.len()],
        }
    }

    /// Returns the keys of a file without those held out, and a source of the latter.
    fn of_file(path: &str) -> std::io::Result<(Vec<u64>, Source)> {
        let bytes = std::fs::read(path)?;
        let number = |chunk: &[u8]| chunk.iter().rev().fold(0, |sum, &b| sum << 8 | u64::from(b));
        let all: Vec<u64> = bytes.chunks_exact(8).map(number).collect();
        assert!(all.len() >= HELD_OUT, "{path}: {} keys", all.len());
        let held = all.iter().copied().skip(HELD_OUT / 2).step_by(HELD_OUT).collect();
        let kept = all.iter().enumerate().filter(|(at, _)| at % HELD_OUT != HELD_OUT / 2);
        Ok((kept.map(|(_, &key)| key).collect(), Source::Held(held)))
    }
}

fn normal(random: &mut Random) -> f64 {
    let radius = (-2.0 * (1.0 - random.unit()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.unit()).cos()
}

struct Arguments {
    keys: usize,
    bits: f64,
    flushes: usize,
    queries: usize,
    file: Option<String>,
    only: Option<String>,
    fingerprints: Fingerprints,
    run_codes: RunCodes,
    skew: u64,
}

fn arguments() -> Arguments {
    let mut arguments = Arguments {
        keys: 1_000_000,
        bits: 12.0,
        flushes: 99,
        queries: 200_000,
        file: None,
        only: None,
        fingerprints: Fingerprints::Auto,
        run_codes: RunCodes::Shape,
        skew: 0,
    };
    let usage = "grf_probe [--keys N | --file PATH] [--bits B] [--flushes N] [--queries N] \
                 [--only uniform|clustered] [--fingerprints auto|spline|gap|cell|coded] [--skew N] \
                 [--run-codes shape|huffman]";
    let fingerprints = |value: &str| {
        let named = |kind: &Fingerprints| format!("{kind:?}").to_lowercase() == value;
        Fingerprints::ALL.into_iter().find(named)
    };
    let run_codes = |value: &str| match value {
        "shape" => Some(RunCodes::Shape),
        "huffman" => Some(RunCodes::Huffman),
        _ => None,
    };
    read_arguments(usage, |name, value| match name {
        "--file" => set_text(&mut arguments.file, value),
        "--only" => set_text(&mut arguments.only, value),
        "--fingerprints" => fingerprints(value).map(|kind| arguments.fingerprints = kind),
        "--run-codes" => run_codes(value).map(|codes| arguments.run_codes = codes),
        "--keys" => set(&mut arguments.keys, value),
        "--bits" => set(&mut arguments.bits, value),
        "--flushes" => set(&mut arguments.flushes, value),
        "--queries" => set(&mut arguments.queries, value),
        "--skew" => set(&mut arguments.skew, value),
        _ => None,
    });
    arguments
}

fn main() {
    let arguments = arguments();
    if let Some(path) = &arguments.file {
        match Source::of_file(path) {
            Ok((keys, source)) => measure(path, &source, keys, &arguments),
            Err(error) => eprintln!("{path}: {error}"),
        }
        return;
    }
    for (name, source) in [("uniform", Source::Uniform), ("clustered", Source::clusters())] {
        if arguments.only.as_deref().is_some_and(|only| only != name) {
            continue;
        }
        let mut random = Random(41);
        let keys = (0..arguments.keys).map(|_| source.draw(&mut random)).collect();
        if let Some(width) = (1u64 << KEY_BITS).checked_div(arguments.skew) {
            let skewed = Source::Skewed(Box::new(source), 1 << (KEY_BITS - 1), width);
            measure(name, &skewed, keys, &arguments);
        } else {
            measure(name, &source, keys, &arguments);
        }
    }
}

fn measure(name: &str, source: &Source, mut keys: Vec<u64>, arguments: &Arguments) {
    let mut random = Random(42);
    keys.sort_unstable();
    keys.dedup();
    let (mut base, mut flushes) = (Vec::new(), vec![Vec::new(); arguments.flushes.max(1)]);
    for &key in &keys {
        let draw = random.next() % 10;
        let count = flushes.len() as u64;
        let list =
            if draw == 0 { &mut flushes[(random.next() % count) as usize] } else { &mut base };
        list.push(key);
    }
    if let Source::Skewed(_, from, width) = source {
        flushes.iter_mut().flatten().for_each(|key| *key = from + random.next() % width);
        flushes.iter_mut().for_each(|keys| {
            keys.sort_unstable();
            keys.dedup();
        });
        keys = base.iter().chain(flushes.iter().flatten()).copied().collect();
        keys.sort_unstable();
    }
    let options = GrfOptions {
        bits_per_key: arguments.bits,
        fingerprints: arguments.fingerprints,
        run_codes: arguments.run_codes,
        ..GrfOptions::default()
    };
    let (part, build_ns) = build(&options, &base);
    let (part, insert_ns) = insert(part, &flushes);
    report_size(name, &part, keys.len(), build_ns, insert_ns);
    count_lost(&part, &base, &flushes);
    let (line_ns, of_many_ns) = line_ns(part.size());
    println!("  line {line_ns:.0} ns, one of many at once {of_many_ns:.0} ns");
    for width in [0, 64, 1_000_000] {
        let queries = misses(source, &keys, width, arguments.queries, &mut random);
        if !queries.is_empty() {
            report_queries(&part, &queries, width);
        }
        if width == 0 && !queries.is_empty() {
            report_batches(&part, &queries);
        }
    }
    let hits: Vec<u64> =
        (0..arguments.queries).map(|_| keys[random.next() as usize % keys.len()]).collect();
    let (lone, batch) = (lone_ns(&part, &hits, 0), batch_ns(&part, &hits));
    println!("  point hit: {lone:.0} ns alone, {batch:.0} ns in batches of {BATCH}");
}

/// The number of the first flush, which is the end of the base's flushes.
const FIRST_FLUSH: u64 = 1000;
const SIZE_RATIO: u32 = 10;

fn build(options: &GrfOptions, keys: &[u64]) -> (Part, f64) {
    let start = now_ns();
    let mut builder = PartBuilder::new(options);
    keys.iter().for_each(|key| builder.push(&key.to_be_bytes()));
    let part = builder.finish(FlushNumber(FIRST_FLUSH));
    (part, (now_ns() - start) / keys.len().max(1) as f64)
}

fn insert(mut part: Part, flushes: &[Vec<u64>]) -> (Part, f64) {
    let (mut spent, mut recoded, mut recoding) = (0.0, 0, 0.0);
    for (number, keys) in (FIRST_FLUSH..).zip(flushes) {
        let start = now_ns();
        let before = Shape::of_round(part.base_end(), FlushNumber(number), SIZE_RATIO);
        let mut inserter = part.inserter(FlushNumber(number), &before);
        keys.iter().for_each(|key| inserter.push(&key.to_be_bytes()));
        part = inserter.finish();
        spent += now_ns() - start;
        if part.options().run_codes == RunCodes::Huffman {
            let (merged, keys, ns) = merge(part, &before, number, flushes);
            (part, recoded, recoding) = (merged, recoded + keys, recoding + ns);
        }
    }
    let count = flushes.iter().map(Vec::len).sum::<usize>().max(1) as f64;
    if recoded > 0 {
        let (each, ns) = (recoded as f64 / count, recoding / recoded as f64);
        println!(
            "  merges rewrite {each:.2} codes per key, {ns:.0} ns each: {:.0} ns per key",
            each * ns
        );
    }
    (part, spent / count)
}

/// Records the merge that a flush triggers in the part. Returns also its number of keys, and the
/// nanoseconds that recording takes.
fn merge(part: Part, before: &Shape, flush: u64, flushes: &[Vec<u64>]) -> (Part, usize, f64) {
    let after = Shape::of_round(part.base_end(), FlushNumber(flush + 1), SIZE_RATIO);
    let newest = Span::of_flush(FlushNumber(flush));
    let runs: Vec<Span> = before.runs().chain([newest]).collect();
    let Some(output) = after.runs().find(|run| !runs.contains(run)) else { return (part, 0, 0.0) };
    let inputs: Vec<Span> = runs.into_iter().filter(|run| run.meets(output)).collect();
    let numbers = output.lo().0 - FIRST_FLUSH..output.hi().0 - FIRST_FLUSH;
    let mut keys = flushes[numbers.start as usize..numbers.end as usize].concat();
    keys.sort_unstable();
    keys.dedup();
    let start = now_ns();
    let mut recoder = part.recoder(&inputs, output);
    keys.iter().for_each(|key| recoder.push(&key.to_be_bytes()));
    (recoder.finish(), keys.len(), now_ns() - start)
}

fn report_size(name: &str, part: &Part, keys: usize, build_ns: f64, insert_ns: f64) {
    let size = part.size();
    let per = |bytes: u64, count: u64| 8.0 * bytes as f64 / count.max(1) as f64;
    println!(
        "{name}: {keys} keys, {:.2} bits per key (base {:.2}, overlay entry {:.2}); build {build_ns:.0} ns, insert \
         {insert_ns:.0} ns per key",
        per(size.base_bytes + size.overlay_bytes, keys as u64),
        per(size.base_bytes, size.base_entries),
        per(size.overlay_bytes, size.overlay_entries),
    );
}

fn ask(part: &Part, key: u64, width: u64, codes: &mut Codes) {
    codes.clear();
    let (low, high) = (key.to_be_bytes(), key.saturating_add(width).to_be_bytes());
    if width == 0 {
        return part.candidates(&Query::Point(&low), codes);
    }
    let range = KeyRange::new(&low, Some(&high)).expect("not upside down");
    part.candidates(&Query::Range(range), codes);
}

fn count_lost(part: &Part, base: &[u64], flushes: &[Vec<u64>]) {
    let mut codes = Codes::new();
    let mut lost = 0;
    let numbered = (FIRST_FLUSH..)
        .zip(flushes)
        .flat_map(|(number, keys)| keys.iter().map(move |key| (key, number)));
    for (&key, number) in base.iter().map(|key| (key, 0)).chain(numbered) {
        for width in [0, 64] {
            ask(part, key, width, &mut codes);
            lost += usize::from(!codes.may_meet(Span::of_flush(FlushNumber(number))));
        }
    }
    println!("  false negatives: {lost}");
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
        if keys.get(next).is_none_or(|&other| other > key.saturating_add(width)) {
            found.push(key);
        }
    }
    found
}

fn report_queries(part: &Part, queries: &[u64], width: u64) {
    let mut codes = Codes::new();
    let (mut positives, mut base_positives, mut needless) = (0, 0, 0);
    for &key in queries {
        ask(part, key, width, &mut codes);
        positives += usize::from(!codes.is_empty());
        base_positives += usize::from(codes.may_meet(Span::of_flush(FlushNumber(0))));
        needless += if codes.is_all() { 100 } else { codes.as_slice().len() };
    }
    let mut counter = LineCounter::default();
    let (mut lines, mut not_prefetched, mut pages) = (0, 0, 0);
    for &key in queries.iter().take(10_000) {
        let bytes = key.to_be_bytes();
        part.candidates_traced(&Query::Point(&bytes), &mut codes, &mut counter);
        (not_prefetched, pages) =
            (not_prefetched + counter.not_prefetched(), pages + counter.pages());
        lines += counter.take();
    }
    let (count, traced) = (queries.len() as f64, queries.len().min(10_000) as f64);
    println!(
        "  width {width}: {:.2} % false positives ({:.2} % base), {:.4} runs needlessly; {:.0} ns alone, {:.1} lines on {:.1} pages, {:.1} lines not prefetched",
        100.0 * positives as f64 / count,
        100.0 * base_positives as f64 / count,
        needless as f64 / count,
        lone_ns(part, queries, width),
        lines as f64 / traced,
        pages as f64 / traced,
        not_prefetched as f64 / traced,
    );
}

/// Returns the time per query when each depends on the previous answer: the fastest of 25 passes.
fn lone_ns(part: &Part, queries: &[u64], width: u64) -> f64 {
    let mut codes = Codes::new();
    let passes: Vec<f64> = (0..25)
        .map(|_| {
            let start = now_ns();
            let mut dependence = 0u64;
            for &key in queries {
                ask(part, key ^ dependence, width, &mut codes);
                // Zero, which the processor cannot know.
                dependence = std::hint::black_box(codes.as_slice().len() as u64) >> 32;
            }
            (now_ns() - start) / queries.len() as f64
        })
        .collect();
    passes.into_iter().fold(f64::INFINITY, f64::min)
}

/// The number of keys that are queried at once.
const BATCH: usize = 16;

/// Returns the time per point query in batches: the fastest of 25 passes.
fn batch_ns(part: &Part, queries: &[u64]) -> f64 {
    let passes = (0..25).map(|_| {
        let start = now_ns();
        for batch in queries.chunks(BATCH) {
            let mut keys = [[0; 8]; BATCH];
            keys.iter_mut().zip(batch).for_each(|(key, query)| *key = query.to_be_bytes());
            let slices = keys.each_ref().map(|key| &key[..]);
            part.candidates_many(&slices[..batch.len()], |_, codes| {
                std::hint::black_box(codes.is_empty());
            });
        }
        (now_ns() - start) / queries.len() as f64
    });
    passes.fold(f64::INFINITY, f64::min)
}

/// Reports point queries, single and in batches.
fn report_batches(part: &Part, queries: &[u64]) {
    let (lone, batch) = (lone_ns(part, queries, 0), batch_ns(part, queries));
    println!(
        "  point miss: {lone:.0} ns alone, {batch:.0} ns in batches of {BATCH}: {:.2} times the throughput",
        lone / batch
    );
}

/// Returns the time of a dependent random read of one cache line in an array of the filter's size.
fn line_ns(size: trommel_filters::PartSize) -> (f64, f64) {
    const LINE_WORDS: usize = 8;
    const STEPS: usize = 1_000_000;
    let lines = ((size.base_bytes + size.overlay_bytes) as usize / 64).max(1);
    let mut words = vec![0u64; lines * LINE_WORDS];
    let mut random = Random(3);
    words.iter_mut().for_each(|word| *word = random.next());
    let mut at = 0usize;
    let start = now_ns();
    for step in 0..STEPS {
        at = (words[at % lines * LINE_WORDS] as usize).wrapping_add(step * 0x9e37_79b9);
    }
    std::hint::black_box(at);
    let alone = (now_ns() - start) / STEPS as f64;
    let (mut sum, start) = (0, now_ns());
    for _ in 0..STEPS {
        sum ^= words[random.next() as usize % lines * LINE_WORDS];
    }
    std::hint::black_box(sum);
    (alone, (now_ns() - start) / STEPS as f64)
}
