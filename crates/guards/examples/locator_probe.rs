//! Measures run locators, which know each key's current run: bits per key, needless runs, cache
//! lines, nanoseconds.
//! ```text
//! cargo run --release -p trommel-guards --example locator_probe -- --keys 5000000 --bits 12
//! cargo run --release -p trommel-guards --example locator_probe -- --file keys.u64le
//! ```
//! The tree is lazily levelled and full: T - 1 runs in each inner level, one in the last. Keys are
//! uniform, or those of a file (ascending, 8 bytes each, little-endian), of which every eighth is
//! held out. Queries are drawn like the keys, or from those held out.
//!
//! "needless" counts the runs named for a query without a key. The sorted view is built as after a
//! flush: from the merged stream. Times depend on the machine: compare them with `line`, a
//! dependent random read of one cache line in an array of the filter's size.

#[path = "tools/mod.rs"]
mod tools;

use std::collections::BTreeSet;
use std::time::Instant;

use tools::{Random, read_arguments, set, set_text};
use trommel_filters::{
    KeyRange, LineCounter, Query, RunLocator, RunLocatorBuilder, RunSlot, SlotSet, TreePlan,
    Untraced,
};
use trommel_guards::{RemixBuilder, SortedRemixBuilder};

struct Arguments {
    keys: usize,
    bits: f64,
    ratio: u32,
    levels: usize,
    queries: usize,
    file: Option<String>,
}

fn arguments() -> Arguments {
    let (keys, queries) = (1_000_000, 200_000);
    let mut arguments = Arguments { keys, bits: 12.0, ratio: 10, levels: 4, queries, file: None };
    let usage =
        "locator_probe [--keys N | --file PATH] [--bits B] [--ratio T] [--levels L] [--queries N]";
    read_arguments(usage, |name, value| match name {
        "--file" => set_text(&mut arguments.file, value),
        "--keys" => set(&mut arguments.keys, value),
        "--bits" => set(&mut arguments.bits, value),
        "--ratio" => set(&mut arguments.ratio, value),
        "--levels" => set(&mut arguments.levels, value),
        "--queries" => set(&mut arguments.queries, value),
        _ => None,
    });
    arguments
}

/// Returns the keys, and what queries are drawn from; empty: from all numbers.
fn keys(arguments: &Arguments) -> (Vec<u64>, Vec<u64>) {
    let Some(path) = &arguments.file else {
        let mut random = Random(41);
        let keys: BTreeSet<u64> = (0..arguments.keys).map(|_| random.next()).collect();
        return (keys.into_iter().collect(), Vec::new());
    };
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let number = |chunk: &[u8]| chunk.iter().rev().fold(0, |sum, &b| sum << 8 | u64::from(b));
    let all: Vec<u64> = bytes.chunks_exact(8).map(number).collect();
    let is_held = |at: &usize| at % 8 == 4;
    let kept = (0..all.len()).filter(|at| !is_held(at)).map(|at| all[at]).collect();
    (kept, (0..all.len()).filter(is_held).map(|at| all[at]).collect())
}

fn main() {
    let arguments = arguments();
    let (keys, held) = keys(&arguments);
    let inner = vec![(arguments.ratio - 1) as u8; arguments.levels - 1];
    let plan = TreePlan {
        runs_of_levels: inner.into_iter().chain([1]).collect(),
        waiting_runs: 0,
        size_ratio: arguments.ratio,
        entries: keys.len() as u64,
        bits_per_key: arguments.bits,
    };
    // Level l gets T^l parts, spread over its runs.
    let parts: Vec<u64> =
        (0..arguments.levels as u32).map(|level| u64::from(arguments.ratio).pow(level)).collect();
    let mut random = Random(43);
    let slots: Vec<RunSlot> = keys
        .iter()
        .map(|_| {
            let mut draw = random.next() % parts.iter().sum::<u64>();
            let level = parts.iter().position(|&part| {
                let is_here = draw < part;
                draw = draw.wrapping_sub(part);
                is_here
            });
            let level = level.expect("less than all parts");
            let runs = u64::from(plan.runs_of_levels[level]);
            plan.slot(level, (random.next() % runs) as usize).expect("a run of the level")
        })
        .collect();
    let entries: Vec<([u8; 8], RunSlot)> =
        keys.iter().map(|key| key.to_be_bytes()).zip(slots).collect();
    let oldest = RunSlot((plan.slots() - 1) as u8);

    let mut builder = RemixBuilder::new(&plan);
    let last_level = entries.iter().filter(|(_, slot)| *slot == oldest);
    last_level.for_each(|(key, _)| builder.push(key));
    let mut view = builder.finish();
    let (start, mut moved) = (Instant::now(), 0);
    for (key, slot) in entries.iter().filter(|(_, slot)| *slot != oldest) {
        view.note(key, None, Some(*slot));
        moved += 1;
    }
    let note = start.elapsed().as_nanos() as f64 / f64::from(moved.max(1));
    println!("{} keys, {} slots, {} bits per key", keys.len(), plan.slots(), arguments.bits);
    println!("remix: {} segments, {note:.0} ns per key noted", view.segments());
    measure(&view, &keys, &held, &arguments);

    let start = Instant::now();
    let mut builder = SortedRemixBuilder::new(&plan);
    entries.iter().for_each(|(key, slot)| builder.add(key, *slot));
    let view = builder.finish();
    let built = start.elapsed().as_nanos() as f64 / entries.len() as f64;
    println!(
        "sorted remix: {} segments, {built:.0} ns per key of the whole tree built",
        view.segments()
    );
    measure(&view, &keys, &held, &arguments);
}

fn measure(view: &impl RunLocator, keys: &[u64], held: &[u64], arguments: &Arguments) {
    let bytes = view.size().bytes;
    let line = line_ns(bytes);
    println!("  {:.2} bits per key, line {line:.0} ns", bytes as f64 * 8.0 / keys.len() as f64);
    for width in [1u64, 1 << 5, 1 << 10, 1 << 20] {
        let (mut random, mut counter) = (Random(width), LineCounter::default());
        let (mut asked, mut wrong, mut runs, mut lines) = (0, 0, 0, 0);
        let mut bounds = Vec::new();
        for _ in 0..arguments.queries {
            let draw = random.next();
            let low = if held.is_empty() { draw } else { held[draw as usize % held.len()] };
            let high = low.saturating_add(width - 1);
            let next = keys.get(keys.partition_point(|&key| key < low));
            if next.is_some_and(|&next| next <= high) {
                continue;
            }
            bounds.push((low.to_be_bytes(), high.to_be_bytes()));
        }
        for (low, high) in &bounds {
            let mut slots = SlotSet::default();
            view.candidates(&query(low, high), &mut slots, &mut counter);
            asked += 1;
            wrong += usize::from(!slots.is_empty());
            runs += slots.len();
            lines += counter.take();
        }
        let start = Instant::now();
        let mut last = 0;
        for (low, high) in &bounds {
            // Each probe depends on the previous answer.
            let mut low = *low;
            low[7] ^= last;
            let mut slots = SlotSet::default();
            view.candidates(&query(&low.min(*high), high), &mut slots, &mut Untraced);
            last = u8::from(slots.len() > 250);
        }
        let ns = start.elapsed().as_nanos() as f64 / bounds.len().max(1) as f64;
        let of = |count: usize| count as f64 / asked.max(1) as f64;
        println!(
            "  width {width}: maybe {:.2} %, {:.3} needless runs, {:.1} lines, {ns:.0} ns ({asked} asked)",
            100.0 * of(wrong),
            of(runs),
            of(lines)
        );
    }
}

fn query<'a>(low: &'a [u8; 8], high: &'a [u8; 8]) -> Query<'a> {
    if low == high {
        return Query::Point(low);
    }
    Query::Range(KeyRange::new(low, Some(high)).expect("in order"))
}

/// Returns the time of a dependent random read of one cache line in an array of this size.
fn line_ns(bytes: usize) -> f64 {
    const LINE_WORDS: usize = 8;
    let lines = (bytes / 64).max(2);
    let (mut words, mut random) = (vec![0u64; lines * LINE_WORDS], Random(5));
    words.iter_mut().step_by(LINE_WORDS).for_each(|word| *word = random.next());
    let (mut at, reads) = (0, 500_000);
    let start = Instant::now();
    for nth in 0..reads {
        at = (words[at * LINE_WORDS] as usize ^ nth) % lines;
    }
    let ns = start.elapsed().as_nanos() as f64 / reads as f64;
    std::hint::black_box(at);
    ns
}
