//! Measures table filters: bits per key, false positive rates by range width, nanoseconds.
//! ```text
//! cargo run --release -p trommel-guards --example range_filters -- --keys 1000000 --bits 10,14 \
//!     --filters rosetta,rencoder
//! cargo run --release -p trommel-guards --example range_filters -- --file keys.u64le
//! ```
//! Keys are uniform below 2^50, or those of a file (ascending, 8 bytes each, little-endian), of
//! which every eighth is held out. Queries begin at a number that is drawn like the keys ("near":
//! up to 32 above a key), and no key answers them. A cell of the output has the percentage of
//! "maybe", and the median time per query. Times depend on the machine: compare those of one run.

#[path = "tools/mod.rs"]
mod tools;

use std::time::Instant;

use tools::{Random, all_names, read_arguments, set, set_text};
use trommel_filters::{
    AlignedBytes, FilterKind, FilterOptions, FilterTuning, KeyRange, read_filter,
};
use trommel_guards::{RencoderPlan, RosettaPlan, RosettaSplit, kinds};

const KEY_BITS: u32 = 50;
const HELD_OUT: usize = 8;
/// The number of queries that are timed together: so few that other processes seldom interrupt.
const BATCH: usize = 50;
const DRAWS_PER_QUESTION_MAX: usize = 20;

struct Arguments {
    keys: usize,
    bits: Vec<f64>,
    filters: Vec<String>,
    file: Option<String>,
    questions: usize,
}

fn arguments() -> Arguments {
    let mut parsed = Arguments {
        keys: 1_000_000,
        bits: vec![10.0, 14.0],
        filters: kinds::TABLE_FILTERS.map(|kind| kind.name().to_owned()).to_vec(),
        file: None,
        questions: 100_000,
    };
    let usage = format!(
        "range_filters [--keys N | --file PATH] [--bits B,...] [--filters {}] [--questions N]",
        all_names()
    );
    read_arguments(&usage, |name, value| match name {
        "--keys" => set(&mut parsed.keys, value),
        "--bits" => {
            parsed.bits = value.split(',').map(|bits| bits.parse().ok()).collect::<Option<_>>()?;
            Some(())
        }
        "--filters" => {
            parsed.filters = value.split(',').map(str::to_owned).collect();
            Some(())
        }
        "--file" => set_text(&mut parsed.file, value),
        "--questions" => set(&mut parsed.questions, value),
        _ => None,
    });
    parsed
}

/// Returns the keys, and the numbers at which queries begin.
fn keys_and_lefts(arguments: &Arguments) -> (Vec<u64>, Vec<u64>) {
    let mut random = Random(42);
    let Some(path) = &arguments.file else {
        let mut draw = |count| (0..count).map(|_| random.next() >> (64 - KEY_BITS)).collect();
        let (mut keys, lefts): (Vec<u64>, Vec<u64>) =
            (draw(arguments.keys), draw(arguments.questions * 4));
        keys.sort_unstable();
        keys.dedup();
        return (keys, lefts);
    };
    let bytes = std::fs::read(path).expect("a file of keys");
    let (chunks, _) = bytes.as_chunks::<8>();
    let (mut keys, mut lefts) = (Vec::new(), Vec::new());
    for (at, chunk) in chunks.iter().enumerate() {
        let list = if at % HELD_OUT == 0 { &mut lefts } else { &mut keys };
        list.push(u64::from_le_bytes(*chunk));
    }
    let lefts = (0..arguments.questions * 4)
        .map(|_| lefts[(random.next() % lefts.len() as u64) as usize])
        .collect();
    (keys, lefts)
}

/// A set of queries: ranges without keys.
struct QuerySet {
    name: &'static str,
    ranges: Vec<([u8; 8], [u8; 8])>,
}

fn questions(keys: &[u64], lefts: &[u64], count: usize) -> Vec<QuerySet> {
    let widths = [("point", 0), ("2^5", 5), ("2^10", 10), ("2^20", 20), ("near 2^5", 5)];
    let mut random = Random(7);
    let mut all = Vec::new();
    for (name, width) in widths {
        let mut ranges = Vec::new();
        for &left in lefts.iter().cycle().take(count * DRAWS_PER_QUESTION_MAX) {
            let near = keys[(random.next() % keys.len() as u64) as usize] + 1 + random.next() % 32;
            let low = if name.starts_with("near") { near } else { left };
            let high = low + (1u64 << width) - 1;
            let next = keys.get(keys.partition_point(|&key| key < low));
            if next.is_none_or(|&key| key > high) {
                ranges.push((low.to_be_bytes(), high.to_be_bytes()));
            }
            if ranges.len() == count {
                break;
            }
        }
        all.push(QuerySet { name, ranges });
    }
    all
}

/// Returns the variants of a filter that are worth comparing, by name.
fn variants(kind: &'static dyn FilterKind, bits: f64) -> Vec<(String, FilterOptions)> {
    let usual = FilterOptions::new(kind, bits);
    let name = kind.name();
    match name {
        "rosetta" => {
            let splits = [RosettaSplit::Single, RosettaSplit::Variable, RosettaSplit::FirstCut];
            let plans = splits.into_iter().flat_map(|split| [4, 6, 10].map(|bits| (split, bits)));
            let varied = plans.map(|(split, range_bits)| {
                let rosetta = RosettaPlan { range_bits, split };
                let options = usual.clone().tuned(FilterTuning::new().with(rosetta));
                (format!("{name} {split:?} {range_bits}"), options)
            });
            varied.collect()
        }
        "rencoder" => {
            let varied = [1, 2, 3, 4].map(|probes| {
                let rencoder = RencoderPlan { probes };
                let options = usual.clone().tuned(FilterTuning::new().with(rencoder));
                (format!("{name} {probes}"), options)
            });
            varied.to_vec()
        }
        _ => vec![(name.to_owned(), usual)],
    }
}

fn measure(name: &str, options: &FilterOptions, keys: &[u64], all: &[QuerySet]) {
    let start = Instant::now();
    let mut builder = options.builder();
    for key in keys {
        builder.add(&key.to_be_bytes()).expect("sorted");
    }
    let image = builder.finish();
    let build_ns = start.elapsed().as_nanos() as f64 / keys.len() as f64;
    let size = image.len() as f64 * 8.0 / keys.len() as f64;
    let filter =
        read_filter(AlignedBytes::from_slice(&image), &kinds::TABLE_FILTERS).expect("whole");
    let lost = keys.iter().filter(|key| !filter.may_contain(&key.to_be_bytes())).count();
    assert_eq!(lost, 0, "{name} lost keys");
    print!("| {name} | {size:.2} | {build_ns:.0} |");
    for QuerySet { ranges, .. } in all {
        let mut times = Vec::new();
        let mut maybe = 0;
        for batch in ranges.chunks(BATCH) {
            let start = Instant::now();
            for (low, high) in batch {
                let range = KeyRange::new(low, Some(high)).expect("in order");
                maybe += usize::from(filter.may_overlap(&range));
            }
            times.push(start.elapsed().as_nanos() as f64 / batch.len() as f64);
        }
        times.sort_by(f64::total_cmp);
        let rate = maybe as f64 * 100.0 / ranges.len().max(1) as f64;
        let ns = times.get(times.len() / 2).copied().unwrap_or(f64::NAN);
        print!(" {rate:.3} % {ns:.0} ns |");
    }
    println!();
}

fn main() {
    let arguments = arguments();
    let (keys, lefts) = keys_and_lefts(&arguments);
    let all = questions(&keys, &lefts, arguments.questions);
    let names: Vec<&str> = all.iter().map(|questions| questions.name).collect();
    println!("{} keys\n\n| filter | bits | build ns | {} |", keys.len(), names.join(" | "));
    println!("|---|---|---|{}", "---|".repeat(names.len()));
    for &bits in &arguments.bits {
        for kind in kinds::TABLE_FILTERS {
            if arguments.filters.iter().any(|name| name == kind.name()) {
                for (name, options) in variants(kind, bits) {
                    measure(&name, &options, &keys, &all);
                }
            }
        }
    }
}
