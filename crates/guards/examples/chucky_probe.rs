//! Measures the cost and the false positive rate of Chucky and its plain form, next to Equation 16.
//! ```text
//! cargo run --release -p trommel-guards --example chucky_probe -- --keys 10000000 --bits 10 \
//!     --levels 6
//! ```
//! The tree is lazily levelled, and all its runs are full. Times are medians over batches of work;
//! each query starts after the previous answer.

#[path = "tools/mod.rs"]
mod tools;

use std::hint::black_box;
use std::time::Instant;

use tools::{Random, read_arguments, set};
use trommel_filters::{
    LineCounter, Query, RunLocator, RunLocatorBuilder, RunSlot, SlotSet, TreePlan, Untraced,
};
use trommel_guards::{Chucky, ChuckyBuilder, ChuckyPlainBuilder, LevelModel};

struct Arguments {
    keys: usize,
    bits: f64,
    levels: u32,
    size_ratio: u32,
    queries: usize,
    flush: usize,
}

fn arguments() -> Arguments {
    let mut arguments = Arguments {
        keys: 1_000_000,
        bits: 10.0,
        levels: 6,
        size_ratio: 5,
        queries: 200_000,
        flush: 64_000,
    };
    let usage =
        "chucky_probe [--keys N] [--bits B] [--levels L] [--ratio T] [--queries N] [--flush N]";
    read_arguments(usage, |name, value| match name {
        "--keys" => set(&mut arguments.keys, value),
        "--bits" => set(&mut arguments.bits, value),
        "--levels" => set(&mut arguments.levels, value),
        "--ratio" => set(&mut arguments.size_ratio, value),
        "--queries" => set(&mut arguments.queries, value),
        "--flush" => set(&mut arguments.flush, value),
        _ => None,
    });
    arguments.levels = arguments.levels.clamp(1, 60);
    arguments.size_ratio = arguments.size_ratio.clamp(2, 200);
    arguments
}

fn main() {
    let arguments = arguments();
    let model = LevelModel {
        size_ratio: arguments.size_ratio,
        levels: arguments.levels,
        runs: arguments.size_ratio - 1,
        last_runs: 1,
    };
    let runs_of_levels = model.runs_of_levels().into_iter().map(|runs| runs as u8).collect();
    let plan = TreePlan {
        runs_of_levels,
        waiting_runs: 0,
        size_ratio: arguments.size_ratio,
        entries: arguments.keys as u64,
        bits_per_key: arguments.bits,
    };
    let expected = model.rate_of_chucky(4, arguments.bits);
    println!("{} keys, {} runs; Equation 16: {expected:.5}", arguments.keys, plan.slots());
    let chucky = measure::<ChuckyBuilder>("chucky", &plan, &model, &arguments);
    report_shape(&chucky, &plan);
    measure::<ChuckyPlainBuilder>("chucky-plain", &plan, &model, &arguments);
}

fn report_shape(chucky: &Chucky, plan: &TreePlan) {
    let levels = 0..plan.runs_of_levels.len();
    let lengths: Vec<u32> = levels
        .filter_map(|level| plan.slot(level, 0))
        .map(|slot| chucky.fingerprint_bits(slot))
        .collect();
    println!("  bits of fingerprints by level {lengths:?}; {:?}", chucky.shape());
}

fn measure<B: RunLocatorBuilder>(
    name: &str,
    plan: &TreePlan,
    model: &LevelModel,
    arguments: &Arguments,
) -> B::Filter {
    let mut random = Random(11);
    let mut runs: Vec<Vec<u64>> = model
        .slot_shares()
        .into_iter()
        .map(|share| (0..(share * arguments.keys as f64) as usize).map(|_| random.next()).collect())
        .collect();
    runs.iter_mut().for_each(|keys| keys.sort_unstable());
    println!("{name}:");
    let mut filter = build::<B>(plan, &runs);
    let size = filter.size();
    println!(
        "  {:.3} bits per key, of them {:.3} overflow; {} entries of {}",
        8.0 * size.bytes as f64 / size.entries.max(1) as f64,
        8.0 * size.overflow_bytes as f64 / size.entries.max(1) as f64,
        size.entries,
        size.room,
    );
    report_notes(&mut filter, &runs, arguments);
    report_probes(&filter, &runs, arguments);
    filter
}

fn build<B: RunLocatorBuilder>(plan: &TreePlan, runs: &[Vec<u64>]) -> B::Filter {
    let (oldest, newer) = runs.split_last().expect("a tree has a run");
    let start = Instant::now();
    let mut builder = B::new(plan);
    let code_ms = start.elapsed().as_nanos() as f64 / 1e6;
    let start = Instant::now();
    oldest.iter().for_each(|key| builder.push(&key.to_be_bytes()));
    let mut filter = builder.finish();
    let build_ns = start.elapsed().as_nanos() as f64 / oldest.len().max(1) as f64;
    let mut insert_ns = Vec::new();
    for (slot, keys) in (0..).zip(newer) {
        insert_ns.push(piecewise_ns(keys, |key| {
            filter.note(&key.to_be_bytes(), None, Some(RunSlot(slot)));
        }));
    }
    println!(
        "  codes {code_ms:.1} ms; build {build_ns:.0} ns per key, newer keys {:.0} ns",
        median(insert_ns)
    );
    filter
}

/// Measures a flush and a merge, on a clone, which copies the pages that it changes.
fn report_notes<F: RunLocator>(filter: &mut F, runs: &[Vec<u64>], arguments: &Arguments) {
    let (Some(newest), Some(largest)) = (runs.len().checked_sub(2), runs.last()) else { return };
    let (newest, last) = (RunSlot(newest as u8), RunSlot(newest as u8 + 1));
    let step = (largest.len() / arguments.flush.max(1)).max(1);
    let moved: Vec<u64> = largest.iter().step_by(step).copied().collect();
    let timed = |filter: &mut F, from, to| {
        piecewise_ns(&moved, |key| filter.note(&key.to_be_bytes(), from, to))
    };
    let start = Instant::now();
    let mut clone = filter.clone();
    let clone_us = start.elapsed().as_nanos() as f64 / 1000.0;
    // The first batches copy nearly all pages, so a median would mislead. Instead: for each batch
    // the fastest of several rounds, each on a fresh clone.
    let mut fastest = vec![f64::INFINITY; moved.len().div_ceil(PIECE)];
    for _ in 0..7 {
        clone = filter.clone();
        for (fastest, piece) in fastest.iter_mut().zip(moved.chunks(PIECE)) {
            let start = Instant::now();
            piece.iter().for_each(|key| clone.note(&key.to_be_bytes(), Some(last), Some(newest)));
            *fastest = fastest.min(start.elapsed().as_nanos() as f64);
        }
    }
    let first = fastest.iter().sum::<f64>() / moved.len().max(1) as f64;
    let back = timed(&mut clone, Some(newest), Some(last));
    let removed = timed(&mut clone, Some(last), None);
    let inserted = timed(&mut clone, None, Some(last));
    println!(
        "  clone {clone_us:.1} us; {} keys moved in it: {first:.0} ns each with the pages' copies, {back:.0} ns without; \
         removed {removed:.0} ns, inserted {inserted:.0} ns",
        moved.len()
    );
}

fn report_probes(filter: &impl RunLocator, runs: &[Vec<u64>], arguments: &Arguments) {
    let mut random = Random(99);
    let misses: Vec<u64> = (0..arguments.queries).map(|_| random.next()).collect();
    let all: Vec<u64> = runs.iter().flatten().copied().collect();
    let hits: Vec<u64> = (0..arguments.queries)
        .map(|_| all[(random.next() % all.len().max(1) as u64) as usize])
        .collect();
    let needless: usize = misses.iter().map(|&key| ask(filter, key).len()).sum();
    let mut lost = 0usize;
    for (slot, keys) in (0..).zip(runs) {
        lost += keys.iter().filter(|key| !ask(filter, **key).contains(RunSlot(slot))).count();
    }
    let (mut counter, mut lines) = (LineCounter::default(), 0);
    for key in misses.iter().take(10_000) {
        let mut slots = SlotSet::default();
        filter.candidates(&Query::Point(&key.to_be_bytes()), &mut slots, &mut counter);
        lines += counter.take();
    }
    println!(
        "  {:.5} slots needlessly per miss; lost {lost}; {:.2} lines; point miss {:.0} ns, point hit {:.0} ns; a line {:.0} ns",
        needless as f64 / misses.len().max(1) as f64,
        lines as f64 / misses.len().clamp(1, 10_000) as f64,
        lone_ns(filter, &misses),
        lone_ns(filter, &hits),
        line_ns(filter.size().bytes),
    );
}

fn ask(filter: &impl RunLocator, key: u64) -> SlotSet {
    let mut slots = SlotSet::default();
    filter.candidates(&Query::Point(&key.to_be_bytes()), &mut slots, &mut Untraced);
    slots
}

/// The median of times: a busy machine interrupts some batches, but not half of them.
fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The number of items that are timed together.
const PIECE: usize = 1000;

/// Returns the median time per item over such batches.
fn piecewise_ns<T>(items: &[T], mut work: impl FnMut(&T)) -> f64 {
    let pieces = items.chunks(PIECE).map(|piece| {
        let start = Instant::now();
        piece.iter().for_each(&mut work);
        start.elapsed().as_nanos() as f64 / piece.len() as f64
    });
    median(pieces.collect())
}

/// Returns the time per query when each query depends on the previous answer.
fn lone_ns(filter: &impl RunLocator, queries: &[u64]) -> f64 {
    let mut dependence = 0u64;
    let passes = (0..7).map(|_| {
        piecewise_ns(queries, |&key| {
            let slots = ask(filter, key ^ dependence);
            // Zero, which the processor cannot know.
            dependence = black_box(slots.len() as u64) >> 32;
        })
    });
    median(passes.collect())
}

/// Returns the time of a dependent random read of one cache line in an array of the filter's size.
fn line_ns(bytes: usize) -> f64 {
    const LINE_WORDS: usize = 8;
    let lines = (bytes / 64).max(1);
    let mut random = Random(3);
    let words: Vec<u64> = (0..lines * LINE_WORDS).map(|_| random.next()).collect();
    let steps: Vec<usize> = (0..1_000_000).collect();
    let mut at = 0usize;
    piecewise_ns(&steps, |step| {
        at = (words[at % lines * LINE_WORDS] as usize).wrapping_add(step * 0x9e37_79b9);
        at = black_box(at);
    })
}
