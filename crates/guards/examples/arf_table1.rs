//! Table 1 of the SuRF paper (appendix B): an adaptive range filter next to other filters of the
//! same size. A fifth of the queries trains it.
//! ```text
//! cargo run --release -p trommel-guards --example arf_table1 -- --scale 10
//! cargo run --release -p trommel-guards --example arf_table1 -- --scale 1 \
//!     --filters arf,surf-real,cell --bits 14
//! ```
//! There are 10 M / scale random keys, half of which are stored, and as many ranges. Ranges begin
//! at one of all keys (Zipf, 0.99) and are 2^40 * scale wide. Some 36 % of them are empty (the
//! paper: "roughly 50%"). The first fifth trains `arf`, the others are queried. "build MB" is the
//! peak growth of the process while it built (on Linux only). Times depend on the machine: compare
//! those of one run.

#[path = "tools/mod.rs"]
mod tools;

use std::time::Instant;

use tools::{Random, all_names, kinds, read_arguments, set};
use trommel_filters::{
    AlignedBytes, AnyFilterBuilder, FilterKind, FilterOptions, KeyRange, read_filter,
};
use trommel_guards::{ArfBuilder, kinds};

const PAPER_KEYS: usize = 10_000_000;
const PAPER_RANGE_BITS: u32 = 40;
const ZIPF: f64 = 0.99;

struct Arguments {
    scale: usize,
    bits: f64,
    filters: Vec<&'static dyn FilterKind>,
}

fn arguments() -> Arguments {
    let ranged = kinds::TABLE_FILTERS.into_iter().filter(|kind| kind.knows_ranges());
    let mut parsed = Arguments { scale: 10, bits: 14.0, filters: ranged.collect() };
    let usage = format!("arf_table1 [--scale N] [--bits B] [--filters {}]", all_names());
    read_arguments(&usage, |name, value| match name {
        "--scale" => set(&mut parsed.scale, value),
        "--bits" => set(&mut parsed.bits, value),
        "--filters" => kinds(value).map(|kinds| parsed.filters = kinds),
        _ => None,
    });
    parsed
}

type Range = ([u8; 8], [u8; 8]);

fn range_of(range: &Range) -> KeyRange<'_> {
    KeyRange::new(&range.0, Some(&range.1)).expect("in order")
}

/// Returns the stored keys, and the queries with whether a key answers them.
fn data(scale: usize) -> (Vec<u64>, Vec<(Range, bool)>) {
    let mut random = Random(42);
    let all: Vec<u64> = (0..PAPER_KEYS / scale).map(|_| random.next()).collect();
    let mut stored = all[..all.len() / 2].to_vec();
    stored.sort_unstable();
    let mut sum = 0.0;
    let weights = (1..=all.len()).map(|rank| (rank as f64).powf(-ZIPF));
    let sums: Vec<f64> = weights.map(|weight| (sum += weight, sum).1).collect();
    // By rank, stored and other keys alternate.
    let half = all.len() / 2;
    let ranked = |rank: usize| all[if rank.is_multiple_of(2) { rank / 2 } else { half + rank / 2 }];
    let width = (1u64 << PAPER_RANGE_BITS).saturating_mul(scale as u64);
    let question = |_| {
        let drawn = random.unit() * sum;
        let low = ranked(sums.partition_point(|&sum| sum <= drawn).min(all.len() - 1));
        let high = low.saturating_add(width - 1);
        let next = stored.get(stored.partition_point(|&key| key < low));
        ((low.to_be_bytes(), high.to_be_bytes()), next.is_some_and(|&key| key <= high))
    };
    let questions = (0..all.len()).map(question).collect();
    (stored, questions)
}

/// Returns the peak memory of the process since the last call of `reset_peak`, in MB.
fn peak_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.split_whitespace().next()?.parse::<f64>().ok()? / 1024.0)
}

fn reset_peak() {
    // If this is refused, growth is reported too low, never too high.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

struct Built {
    image: Vec<u8>,
    build_seconds: f64,
    train_seconds: f64,
}

fn timed<R>(work: impl FnOnce() -> R) -> (R, f64) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed().as_secs_f64())
}

fn build(
    kind: &'static dyn FilterKind,
    bits: f64,
    stored: &[u64],
    training: &[(Range, bool)],
) -> Built {
    if kind == kinds::ARF {
        let mut builder = ArfBuilder::new(bits);
        let train = || training.iter().for_each(|(range, _)| builder.train(&range_of(range)));
        let ((), train_seconds) = timed(train);
        let (image, build_seconds) = timed(|| finished(Box::new(builder), stored));
        return Built { image, build_seconds, train_seconds };
    }
    let builder = FilterOptions::new(kind, bits).builder();
    let (image, build_seconds) = timed(|| finished(builder, stored));
    Built { image, build_seconds, train_seconds: 0.0 }
}

fn finished(mut builder: Box<dyn AnyFilterBuilder>, stored: &[u64]) -> Vec<u8> {
    stored.iter().for_each(|key| builder.add(&key.to_be_bytes()).expect("sorted"));
    builder.finish()
}

fn main() {
    let Arguments { scale, bits, filters } = arguments();
    let (stored, questions) = data(scale);
    let (training, asked) = questions.split_at(questions.len() / 5);
    let empty = asked.iter().filter(|(_, holds)| !holds).count();
    let share = 100.0 * empty as f64 / asked.len() as f64;
    println!("{} keys, {} questions, {share:.0} % of them empty\n", stored.len(), asked.len());
    println!(
        "| filter | bits per key | M questions/s | false positives | build s | build MB | noting the training s |"
    );
    println!("|---|---|---|---|---|---|---|");
    for kind in filters {
        reset_peak();
        let before = peak_mb();
        let built = build(kind, bits, &stored, training);
        let grown = before.zip(peak_mb()).map_or("-".to_owned(), |(a, b)| format!("{:.0}", b - a));
        let size = built.image.len() as f64 * 8.0 / stored.len() as f64;
        let filter = read_filter(AlignedBytes::from_slice(&built.image), &kinds::TABLE_FILTERS)
            .expect("whole");
        let ask = |(range, _): &&(Range, bool)| filter.may_overlap(&range_of(range));
        let (maybe, seconds) = timed(|| asked.iter().filter(ask).count());
        let lost = asked.iter().filter(|(range, holds)| *holds && !ask(&&(*range, *holds))).count();
        assert_eq!(lost, 0, "{} lost keys", kind.name());
        let rate = 100.0 * (maybe - (asked.len() - empty)) as f64 / empty.max(1) as f64;
        println!(
            "| {} | {size:.2} | {:.2} | {rate:.2} % | {:.2} | {grown} | {:.2} |",
            kind.name(),
            asked.len() as f64 / seconds / 1e6,
            built.build_seconds,
            built.train_seconds
        );
    }
}
